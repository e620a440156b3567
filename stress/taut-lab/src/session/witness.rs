//! Files of a trial without success, beside its logs: kernel messages, every thread at the trial's end, and which
//! settings of the machine are no longer what they were when the lab began.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use taut_doctor::{Asked, Root, examine};

use crate::isolation::Tree;

/// In the folder of a trial.
const KERNEL: &str = "kernel.log";
const THREADS: &str = "threads.txt";
const SETTINGS: &str = "settings.txt";

/// Reads on where it stopped.
pub(super) struct Witness {
    /// `None` where this user may not read it.
    kernel: Option<File>,
    settings: BTreeMap<&'static str, String>,
}

impl Witness {
    pub fn new() -> Witness {
        let open = || {
            let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
            file.seek(SeekFrom::End(0))?;
            io::Result::Ok(file)
        };
        Witness { kernel: open().ok(), settings: settings() }
    }

    /// Of a success nothing is kept but that the kernel's messages are read.
    pub fn forget(&mut self) {
        self.kernel_messages();
    }

    /// Writes the files of a trial that was none; those that would be empty are not there.
    pub fn keep(&mut self, tree: &Tree, logs: &Path) -> io::Result<()> {
        let messages = self.kernel_messages().concat();
        let changed = changed(&self.settings, &settings());
        for (name, text) in [(KERNEL, messages), (THREADS, tree.listing()), (SETTINGS, changed)] {
            if !text.is_empty() {
                fs::write(logs.join(name), text)?;
            }
        }
        Ok(())
    }

    fn kernel_messages(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        // A record a read; EPIPE says that some were overwritten before they were read.
        let mut record = [0; 8192];
        while let Some(file) = &mut self.kernel {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(n) => messages.extend(message(&String::from_utf8_lossy(&record[..n]))),
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => messages.push("(some are lost)\n".into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        messages
    }
}

/// "6,1234,5678901,-;text" (Documentation/ABI/testing/dev-kmsg) as "[5.678901] text".
fn message(record: &str) -> Option<String> {
    let (head, text) = record.lines().next()?.split_once(';')?;
    let us: u64 = head.split(',').nth(2)?.parse().ok()?;
    Some(format!("[{}.{:06}] {text}\n", us / 1_000_000, us % 1_000_000))
}

/// What the doctor reads that a person could have changed, by its check.
fn settings() -> BTreeMap<&'static str, String> {
    let found = examine(&Root::live(), &Asked::default());
    found
        .findings
        .into_iter()
        .map(|finding| (finding.id, format!("{} ({})", finding.value, finding.state.word())))
        .collect()
}

fn changed(before: &BTreeMap<&'static str, String>, now: &BTreeMap<&'static str, String>) -> String {
    let mut text = String::new();
    for (id, value) in now {
        let was = before.get(id).map_or("–", String::as_str);
        if was != value {
            let _ = writeln!(text, "{id}: was {was}, is {value}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_record_is_a_line_with_its_time() {
        let record = "4,812,71002345,-;Out of memory: Killed process 42 (robot)\n SUBSYSTEM=x\n";
        assert_eq!(message(record).unwrap(), "[71.002345] Out of memory: Killed process 42 (robot)\n");
        assert_eq!(message("nothing"), None);
    }

    #[test]
    fn only_settings_that_changed_are_told() {
        let of = |governor: &str| BTreeMap::from([("governor", governor.to_owned()), ("smt", "on".to_owned())]);
        assert_eq!(changed(&of("a"), &of("a")), "");
        assert_eq!(changed(&of("a"), &of("b")), "governor: was a, is b\n");
    }
}
