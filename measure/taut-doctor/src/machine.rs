//! What checks share: the loop's CPUs, the kernel's version, build and command line, and reading a file in such a way
//! that what is missing becomes an answer.

use schemars::JsonSchema;
use serde::Serialize;
use std::{cell::OnceCell, str::FromStr};

use crate::{
    Missing, Root, cpus,
    seen::{Seen, not_applicable, not_visible},
};

/// What the doctor is asked to look at besides the machine itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Asked {
    /// CPUs that the loop runs on.
    pub cpus: Vec<u32>,
    /// Network interface that the loop talks through.
    pub interface: Option<String>,
    /// Serial port that the loop talks through, e.g. "/dev/ttyUSB0".
    pub tty: Option<String>,
    /// The loop's process.
    pub pid: Option<u32>,
}

/// The machine as checks see it.
pub(crate) struct Machine<'a> {
    pub root: &'a Root,
    pub asked: &'a Asked,
    online: OnceCell<Vec<u32>>,
    isolated: OnceCell<Vec<u32>>,
    command_line: OnceCell<String>,
    config: OnceCell<Option<String>>,
    processes: OnceCell<Option<Vec<String>>>,
}

impl<'a> Machine<'a> {
    pub fn new(root: &'a Root, asked: &'a Asked) -> Machine<'a> {
        Machine {
            root,
            asked,
            online: OnceCell::new(),
            isolated: OnceCell::new(),
            command_line: OnceCell::new(),
            config: OnceCell::new(),
            processes: OnceCell::new(),
        }
    }

    /// A file's text without the white space around it, or the answer "not visible".
    pub fn text(&self, path: &str) -> Result<String, Seen> {
        self.root.read(path).map(|text| text.trim().to_owned()).map_err(|why| hidden(path, &why))
    }

    /// As [`Machine::text`] of a file that belongs to a feature: where its folder can be listed and the file is not in
    /// it, this machine lacks the feature.
    pub fn feature(&self, path: &str, folder: &str, without: &str) -> Result<String, Seen> {
        match self.root.read(path) {
            Err(Missing::Absent) if self.root.list(folder).is_ok() => Err(not_applicable(without)),
            Err(why) => Err(hidden(path, &why)),
            Ok(text) => Ok(text.trim().to_owned()),
        }
    }

    /// A file's text, for what is only looked at in passing.
    pub fn maybe(&self, path: &str) -> Option<String> {
        self.root.read(path).ok().map(|text| text.trim().to_owned())
    }

    /// The number that a file holds.
    pub fn number<T: FromStr>(&self, path: &str) -> Result<T, Seen> {
        number(path, &self.text(path)?)
    }

    /// The names in a folder; none where it is missing.
    pub fn names(&self, folder: &str) -> Vec<String> {
        self.root.list(folder).unwrap_or_default()
    }

    /// CPUs that run.
    pub fn online(&self) -> &[u32] {
        self.online.get_or_init(|| self.cpu_list("/sys/devices/system/cpu/online"))
    }

    /// CPUs that the scheduler leaves alone.
    pub fn isolated(&self) -> &[u32] {
        self.isolated.get_or_init(|| self.cpu_list("/sys/devices/system/cpu/isolated"))
    }

    fn cpu_list(&self, path: &str) -> Vec<u32> {
        self.maybe(path).and_then(|text| cpus::list(&text)).unwrap_or_default()
    }

    /// CPUs that are the loop's: those named, else those isolated, since CPUs are isolated for nothing else.
    pub fn loop_cpus(&self) -> &[u32] {
        if self.asked.cpus.is_empty() { self.isolated() } else { &self.asked.cpus }
    }

    /// As [`Machine::loop_cpus`] for checks that say nothing without.
    pub fn needs_loop_cpus(&self) -> Result<&[u32], Seen> {
        match self.loop_cpus() {
            [] => Err(not_applicable("no CPU is isolated; name the loop's with --cpus")),
            cpus => Ok(cpus),
        }
    }

    /// CPUs that a setting is looked at on: the loop's, or all.
    pub fn cpus_of_interest(&self) -> &[u32] {
        if self.loop_cpus().is_empty() { self.online() } else { self.loop_cpus() }
    }

    /// The kernel's command line; empty where it is hidden.
    pub fn command_line(&self) -> &str {
        self.command_line.get_or_init(|| self.maybe("/proc/cmdline").unwrap_or_default())
    }

    /// As [`Machine::command_line`] for checks that say nothing without: no kernel boots with an empty one.
    pub fn needs_command_line(&self) -> Result<(), Seen> {
        match self.text("/proc/cmdline")?.is_empty() {
            true => Err(not_visible("/proc/cmdline is empty here")),
            false => Ok(()),
        }
    }

    /// The last value of a word on the kernel's command line: "full" of `preempt=full`, "" of `threadirqs`.
    pub fn boot_word(&self, name: &str) -> Option<&str> {
        // What stands behind "--" is for the first process.
        let words = self.command_line().split_whitespace().take_while(|word| *word != "--");
        words.filter_map(|word| value_of(word, name)).last()
    }

    /// The kernel's build options, where the machine keeps them.
    pub fn config(&self) -> Option<&str> {
        let read = || {
            self.maybe("/proc/config.gz").or_else(|| {
                let release = self.maybe("/proc/sys/kernel/osrelease").filter(|release| !release.contains('/'))?;
                self.maybe(&format!("/boot/config-{release}"))
            })
        };
        self.config.get_or_init(read).as_deref()
    }

    /// Whether the kernel was built with an option; `None` where that cannot be read.
    pub fn built_with(&self, option: &str) -> Option<bool> {
        let line = format!("{option}=y");
        self.config().map(|config| config.lines().any(|l| l.trim() == line))
    }

    /// (6, 12) of 6.12.34-rpi.
    pub fn kernel_version(&self) -> Option<(u32, u32)> {
        let release = self.maybe("/proc/sys/kernel/osrelease")?;
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    pub fn is_preempt_rt(&self) -> bool {
        self.maybe("/sys/kernel/realtime").as_deref() == Some("1")
            || self.maybe("/proc/sys/kernel/version").is_some_and(|version| version.contains("PREEMPT_RT"))
    }

    /// Whether a program of that name runs; `None` where programs of other users are not visible.
    pub fn runs(&self, program: &str) -> Option<bool> {
        let read = || Some(self.maybe("call:processes")?.lines().map(str::to_owned).collect());
        let processes: &Option<Vec<String>> = self.processes.get_or_init(read);
        let names = processes.as_ref()?;
        let found = names.iter().any(|name| name == program);
        // In a container or with hidepid only the own ones show; the kernel's own threads tell.
        (found || names.iter().any(|name| name == "kthreadd")).then_some(found)
    }

    /// A file of /proc about the process named, else about this one.
    pub fn own(&self, file: &str) -> String {
        self.named(&format!("/proc/PID/{file}"))
    }

    /// A pattern of the table with the names of what was asked about.
    pub fn named(&self, pattern: &str) -> String {
        let or = |name: &Option<String>, word: &str| name.clone().unwrap_or(word.into());
        let tty = or(&self.asked.tty, "TTY");
        let pid = self.asked.pid.map_or("self".into(), |pid| pid.to_string());
        readable(pattern)
            .replace("INTERFACE", &or(&self.asked.interface, "INTERFACE"))
            .replace("TTY", tty.strip_prefix("/dev/").unwrap_or(&tty))
            .replace("/PID/", &format!("/{pid}/"))
    }
}

/// "full" of "preempt=full" and "preempt"; "" of "threadirqs" and "threadirqs".
fn value_of<'a>(word: &'a str, name: &str) -> Option<&'a str> {
    match word.split_once('=') {
        Some((key, value)) => (key == name).then_some(value),
        None => (word == name).then_some(""),
    }
}

/// A file as it is, a call as one: "adjtimex()".
pub(crate) fn readable(read: &str) -> String {
    read.strip_prefix("call:").map_or(read.to_owned(), |call| match call.split_once(' ') {
        Some((name, argument)) => format!("{name}({argument})"),
        None => format!("{call}()"),
    })
}

/// Why a file gave no answer, as one.
pub(crate) fn hidden(path: &str, why: &Missing) -> Seen {
    let is_call = path.starts_with("call:");
    let path = readable(path);
    match why {
        Missing::Absent if is_call => not_visible(format!("{path} gives no answer")),
        Missing::Absent => not_visible(format!("{path} is not there")),
        Missing::Denied => not_visible(format!("{path} is not permitted to this user")),
        Missing::Failed(error) => not_visible(format!("{path}: {error}")),
    }
}

/// The number in a file's text.
pub(crate) fn number<T: FromStr>(path: &str, text: &str) -> Result<T, Seen> {
    text.trim().parse().map_err(|_| unreadable(path, text))
}

/// A file that says something else than the kernel's documentation promises.
pub(crate) fn unreadable(path: &str, text: &str) -> Seen {
    let start: String = text.chars().take(40).collect();
    not_visible(format!("{} says {start:?}, which taut cannot read", readable(path)))
}

/// "madvise" of "always [madvise] never"; the whole where nothing is in brackets.
pub(crate) fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text.trim(), |(word, _)| word)
}

/// The value behind "name :" or "name:" at the start of a line.
pub(crate) fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// The words behind "name :".
pub(crate) fn words_of<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    value(text, name).map(|value| value.split_whitespace().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_command_line_ends_where_the_first_process_starts() {
        let root =
            Root::recorded("== /proc/cmdline ==\npreempt=none quiet preempt=full threadirqs -- nohz_full=1\n").unwrap();
        let asked = Asked::default();
        let machine = Machine::new(&root, &asked);
        assert_eq!(machine.boot_word("preempt"), Some("full"), "the last word counts");
        assert_eq!(machine.boot_word("threadirqs"), Some(""));
        assert_eq!(machine.boot_word("nohz_full"), None);
        assert_eq!(machine.boot_word("quie"), None);
    }

    #[test]
    fn words_in_brackets_are_chosen() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("none\n"), "none");
        assert_eq!(chosen("]["), "][");
    }

    #[test]
    fn a_build_option_is_not_taken_for_a_longer_one() {
        let text = "== /proc/config.gz ==\nCONFIG_PREEMPT_DYNAMIC=y\n# CONFIG_PREEMPT is not set\n";
        let root = Root::recorded(text).unwrap();
        let asked = Asked::default();
        let machine = Machine::new(&root, &asked);
        assert_eq!(machine.built_with("CONFIG_PREEMPT"), Some(false));
        assert_eq!(machine.built_with("CONFIG_PREEMPT_DYNAMIC"), Some(true));
    }

    #[test]
    fn other_peoples_programs_are_out_of_sight_in_a_container() {
        let asked = Asked::default();
        for (names, expected) in
            [("bash\nirqbalance\n", Some(true)), ("bash\n", None), ("bash\nkthreadd\n", Some(false))]
        {
            let root = Root::recorded(&format!("== call:processes ==\n{names}")).unwrap();
            assert_eq!(Machine::new(&root, &asked).runs("irqbalance"), expected);
        }
    }
}
