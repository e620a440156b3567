//! A recording that another host writes, which comes here by ssh as it grows.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Child,
    sync::atomic::AtomicBool,
};

use anyhow::{Context, Result, anyhow, bail};
use taut_lab::{Remote, quoted};
use taut_live::Growing;

use crate::scratch::Scratch;

/// Begins the name of such a recording.
const SCHEME: &str = "ssh://";
/// Prints the host's CLOCK_REALTIME in s and the file: that of $0, or the only one that a recorder of this user writes. A note of a recorder
/// has its process in the second line and the file from the sixth on.
const FIND: &str = r#"file=$0; count=0
if [ -z "$file" ]; then
  for note in /dev/shm/taut-session-*/recorder "${TMPDIR:-/tmp}"/taut-session-*/recorder; do
    [ -O "$note" ] && [ ! -L "$note" ] && [ -d "/proc/$(sed -n 2p "$note")" ] || continue
    count=$((count + 1)); all="$all $(tail -n +6 "$note")"; file=$(tail -n +6 "$note")
  done
  [ $count -gt 0 ] || { echo "nothing is being recorded there" >&2; exit 1; }
  [ $count -eq 1 ] || { echo "several recordings are under way there; put one behind the host:$all" >&2; exit 1; }
fi
[ -r "$file" ] || { echo "$file: cannot be read there" >&2; exit 1; }
echo "$(date +%s) $file""#;
/// Sends what is there and what comes, until its input ends.
const SEND: &str = r#"tail -c +1 -f "$0" & cat > /dev/null; kill $!"#;

/// A recording on its way here. It ends with this.
pub struct Elsewhere {
    child: Child,
    /// Where it is put until it is read.
    folder: Option<Scratch>,
    path: PathBuf,
    realtime_ns: u64,
}

impl Elsewhere {
    /// Whether a recording of this name is another host's.
    pub fn is_named(name: &Path) -> bool {
        name.to_string_lossy().starts_with(SCHEME)
    }

    /// Begins to fetch "ssh://HOST/FILE", or what is being recorded on "ssh://HOST".
    pub fn begin(name: &Path) -> Result<Elsewhere> {
        let name = name.to_string_lossy();
        let rest = name.strip_prefix(SCHEME).unwrap_or_default();
        let (host, file) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let is_host = !host.is_empty() && !host.starts_with('-') && host.chars().all(|c| c.is_ascii_graphic());
        if !is_host {
            bail!("{name}: takes ssh://USER@HOST or ssh://USER@HOST/FILE");
        }
        let remote = Remote::new(host, &format!("{SCHEME}{host}"), &[]);
        let script = |text: &str, file: &str| format!("exec sh -c {} {}", quoted(text), quoted(file));
        let asked = remote.ssh(&[], &script(FIND, file.trim_end_matches('/')), &AtomicBool::new(false))?;
        let found = asked.said.split_once(' ').filter(|_| asked.code == Some(0));
        let found = found.and_then(|(seconds, file)| Some((seconds.parse::<u64>().ok()?, file)));
        let (seconds, file) = found.ok_or_else(|| anyhow!("{name}: {}", asked.said))?;
        let folder = Scratch::in_memory("taut-top-")?;
        let path = folder.path().join("live.mcap");
        let child = remote.stream(&script(SEND, file), File::create(&path)?).with_context(|| name.to_string())?;
        Ok(Elsewhere { child, folder: Some(folder), path, realtime_ns: seconds * 1_000_000_000 })
    }

    /// What is to be followed of it.
    pub fn growing(&self) -> Growing {
        Growing { path: self.path.clone(), eat: true, realtime_ns: Some(self.realtime_ns) }
    }

    /// Whoever follows it has it open.
    pub fn is_followed(&mut self) {
        self.folder = None;
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // Its input ends, and with it the program there.
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
