//! Changes beyond the program of a trial: other processes and files of the machine. Each is journaled before it is made.

use std::{
    collections::BTreeSet,
    fmt,
    fs::{File, OpenOptions},
    io::{self, Write},
    path::PathBuf,
};

use procfs::process::Process;
use serde::{Deserialize, Serialize};
use taut_lab::Cpus;

use crate::{
    Entry, Error, Identity, Journal,
    journal::PASSES,
    scheduler,
    setting_file::{read_setting, write_setting},
};

/// The kernel keeps CPUs awake as long as a process holds this open with 0.
const AWAKE: &str = "/dev/cpu_dma_latency";

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// Other processes get this nice value.
    Lower {
        /// Which.
        processes: Vec<Identity>,
        /// Nice value.
        nice: i32,
    },
    /// Other processes run on these CPUs only.
    Move {
        /// Which.
        processes: Vec<Identity>,
        /// CPUs.
        cpus: Cpus,
    },
    /// A value for a file.
    Write {
        /// The file.
        path: PathBuf,
        /// What is written.
        value: String,
    },
    /// CPUs stay out of deep idle states.
    Awake,
}

impl Outside {
    /// Whether both change the same thing.
    pub fn is_of(&self, other: &Outside) -> bool {
        match (self, other) {
            (Outside::Write { path, .. }, Outside::Write { path: of, .. }) => path == of,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Makes the change, after the journal has what undoes it. What is held open stays in force until it is dropped.
    ///
    /// # Errors
    /// What the system refuses; what was changed before is in the journal.
    pub fn apply(&self, journal: &mut Journal) -> Result<Option<File>, Error> {
        match self {
            Outside::Lower { processes, nice } => {
                each_thread(processes, &mut |tid| {
                    let before = scheduler::scheduling(tid).map_err(|source| self.refused(tid, source))?;
                    // A thread that was started by a changed one has the change from it, and is restored with it.
                    if !before.is_shared() || before.nice == *nice {
                        return Ok(());
                    }
                    journal.note(Entry::thread(tid)?)?;
                    let after = before.with_nice(*nice);
                    scheduler::schedule(tid, &after).map_err(|source| self.refused(tid, source))
                })?;
            }
            Outside::Move { processes, cpus } => {
                each_thread(processes, &mut |tid| {
                    if scheduler::cpus(tid).is_ok_and(|now| now == *cpus) {
                        return Ok(());
                    }
                    journal.note(Entry::thread(tid)?)?;
                    scheduler::place(tid, cpus).map_err(|source| self.refused(tid, source))
                })?;
            }
            Outside::Write { path, value } => {
                let before = read_setting(path).map_err(Error::file(path))?;
                journal.note(Entry::File { path: path.clone(), before })?;
                write_setting(path, value).map_err(Error::file(path))?;
            }
            Outside::Awake => {
                let mut file = OpenOptions::new().write(true).open(AWAKE).map_err(Error::file(AWAKE))?;
                file.write_all(&0i32.to_ne_bytes()).map_err(Error::file(AWAKE))?;
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Why the change is not in force; `None` where it is.
    pub fn amiss(&self) -> Option<String> {
        match self {
            Outside::Lower { processes, nice } => gone(processes).or_else(|| {
                threads(processes).into_iter().find_map(|tid| {
                    let now = scheduler::scheduling(tid).ok()?;
                    (now.is_shared() && now.nice != *nice).then(|| format!("thread {tid} has nice {}", now.nice))
                })
            }),
            Outside::Move { processes, cpus } => gone(processes).or_else(|| {
                threads(processes).into_iter().find_map(|tid| {
                    let now = scheduler::cpus(tid).ok()?;
                    (!cpus.contain(&now)).then(|| format!("thread {tid} may run on CPU {now}"))
                })
            }),
            Outside::Write { path, value } => match read_setting(path) {
                Ok(now) if now == *value || now.split_whitespace().next() == Some(value) => None,
                Ok(now) => Some(format!("{} has {now}", path.display())),
                Err(error) => Some(format!("{}: {error}", path.display())),
            },
            Outside::Awake => None,
        }
    }

    /// Whether it gives the program CPU time that a quota kept from it.
    pub fn lifts_quota(&self) -> bool {
        let is_quota = |path: &PathBuf| path.ends_with("cpu.max") || path.ends_with("cpu.cfs_quota_us");
        matches!(self, Outside::Write { path, .. } if is_quota(path))
    }

    /// As command lines; other processes by their names, since their numbers are of today. All processes of a name are meant.
    pub fn command(&self) -> String {
        // One that ends meanwhile, or may not be changed, must not keep the command from its start.
        let each = |processes: &[Identity], line: &str| {
            let names: BTreeSet<&str> = processes.iter().map(|one| one.name.as_str()).collect();
            let one = |name: &&str| match is_interpreter(name) {
                true => {
                    format!("# {name} is the name of many programs; for the number of the one that is meant: {line}")
                }
                false => {
                    let said = "echo \"process $pid is as it was\" >&2";
                    format!("for pid in $(pgrep -x '{}'); do {line} || {said}; done", pattern(name))
                }
            };
            names.iter().map(one).collect::<Vec<_>>().join("\n")
        };
        match self {
            Outside::Lower { processes, nice } => {
                each(processes, &format!("renice -n {nice} -p $(ls /proc/$pid/task) > /dev/null"))
            }
            Outside::Move { processes, cpus } => each(processes, &format!("taskset -acp {cpus} $pid > /dev/null")),
            Outside::Write { path, value } => format!("echo {value} > {}", path.display()),
            Outside::Awake => format!("exec 3> {AWAKE} && printf '\\0\\0\\0\\0' >&3"),
        }
    }

    fn refused(&self, tid: i32, source: io::Error) -> Error {
        Error::Setting { what: format!("{self}, thread {tid}"), source }
    }
}

/// Whether a process of that name may run any program.
fn is_interpreter(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(name, "python" | "sh" | "bash" | "dash" | "node" | "java" | "perl" | "ruby")
}

/// A name for pgrep, which takes patterns.
fn pattern(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || "-_/ ".contains(c) { c } else { '.' }).collect()
}

/// Changes the threads of these processes, and those that they start meanwhile. What ends meanwhile needs no change.
fn each_thread(processes: &[Identity], change: &mut dyn FnMut(i32) -> Result<(), Error>) -> Result<(), Error> {
    let mut known = BTreeSet::new();
    for _ in 0..PASSES {
        let fresh: Vec<i32> = threads(processes).into_iter().filter(|tid| known.insert(*tid)).collect();
        if fresh.is_empty() {
            break;
        }
        for tid in fresh {
            match change(tid) {
                Err(_) if Identity::of(tid).is_none() => {}
                changed => changed?,
            }
        }
    }
    Ok(())
}

/// The threads of these processes, as far as they are the same processes still.
fn threads(processes: &[Identity]) -> Vec<i32> {
    let of = |identity: &Identity| -> Vec<i32> {
        let process = Process::new(identity.number).ok().filter(|_| identity.is_alive());
        process.and_then(|process| process.tasks().ok()).into_iter().flatten().flatten().map(|task| task.tid).collect()
    };
    processes.iter().flat_map(of).collect()
}

fn gone(processes: &[Identity]) -> Option<String> {
    let gone = processes.iter().find(|identity| !identity.is_alive())?;
    Some(format!("process {}/{} has ended", gone.name, gone.number))
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |processes: &[Identity]| {
            processes.iter().map(|one| format!("{}/{}", one.name, one.number)).collect::<Vec<_>>().join(", ")
        };
        match self {
            Outside::Lower { processes, nice } => write!(f, "nice {nice} for {}", names(processes)),
            Outside::Move { processes, cpus } => write!(f, "{} moved to CPU {cpus}", names(processes)),
            Outside::Write { path, value } => write!(f, "{value} in {}", path.display()),
            Outside::Awake => write!(f, "{AWAKE} held at 0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("1000").spawn().unwrap()
    }

    #[test]
    fn a_process_that_was_lowered_and_a_file_are_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("setting");
        std::fs::write(&file, "one [two] three\n").unwrap();
        let mut child = sleeper();
        let who = Identity::of(child.id() as i32).unwrap();
        let before = (scheduler::scheduling(who.number).unwrap(), scheduler::cpus(who.number).unwrap());
        let one = Cpus::from(vec![before.1.iter().next().unwrap()]);
        let mut journal = Journal::create(folder.path(), &[]).unwrap();
        let changes = [
            Outside::Lower { processes: vec![who.clone()], nice: 19 },
            Outside::Move { processes: vec![who.clone()], cpus: one.clone() },
            Outside::Write { path: file.clone(), value: "three".into() },
        ];
        assert!(!changes.iter().any(Outside::lifts_quota));
        assert!(Outside::Write { path: "/sys/fs/cgroup/robot/cpu.max".into(), value: "max".into() }.lifts_quota());
        for change in &changes {
            assert!(change.apply(&mut journal).unwrap().is_none());
            assert_eq!(change.amiss(), None, "{change}");
        }
        assert_eq!(scheduler::scheduling(who.number).unwrap().nice, 19);
        assert_eq!(scheduler::cpus(who.number).unwrap(), one);
        journal.undo().unwrap();
        assert_eq!((scheduler::scheduling(who.number).unwrap(), scheduler::cpus(who.number).unwrap()), before);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
        assert!(changes[0].amiss().is_some());
        drop(journal);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the journal is gone");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// It inherited the change from one that is changed, and what undoes that one undoes it.
    #[test]
    fn what_is_so_already_is_not_noted_as_what_it_was() {
        let mut child = sleeper();
        let who = Identity::of(child.id() as i32).unwrap();
        let (now, cpus) = (scheduler::scheduling(who.number).unwrap(), scheduler::cpus(who.number).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), &[]).unwrap();
        let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let before = std::fs::read(&path).unwrap();
        Outside::Lower { processes: vec![who.clone()], nice: now.nice }.apply(&mut journal).unwrap();
        Outside::Move { processes: vec![who], cpus }.apply(&mut journal).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), before);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_command_finds_other_processes_by_their_names() {
        let hog = |number| Identity { number, started: 1, name: "hog (a)'s".into() };
        let lower = Outside::Lower { processes: vec![hog(7), hog(8)], nice: 19 };
        let wanted = "for pid in $(pgrep -x 'hog .a..s'); do renice -n 19 -p $(ls /proc/$pid/task) > /dev/null || \
                      echo \"process $pid is as it was\" >&2; done";
        assert_eq!(lower.command(), wanted);
    }

    #[test]
    fn a_later_process_of_the_same_number_is_left_alone() {
        let mut child = sleeper();
        let who = Identity::of(child.id() as i32).unwrap();
        let before = scheduler::scheduling(who.number).unwrap().nice;
        let earlier = Identity { started: who.started - 1, ..who.clone() };
        assert!(who.is_alive() && !earlier.is_alive());
        let lower = Outside::Lower { processes: vec![earlier], nice: 19 };
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), &[]).unwrap();
        lower.apply(&mut journal).unwrap();
        assert_eq!(scheduler::scheduling(who.number).unwrap().nice, before);
        assert!(lower.amiss().unwrap().contains("has ended"));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
