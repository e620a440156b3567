//! What a lab leaves when it is killed, and how the next one knows it: every process carries the lab's mark in its
//! environment, and the lab's folder and control group carry it in their names. The mark is a pid with its start
//! time and the pid namespace in which both mean something, so that it can be asked whether that lab still lives.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    cgroup, frequency,
    mine::{PREFIX, SHARED, STARTED, entries, is_alive, mark_of, pids, start_time},
    shared,
};
use crate::Error;

/// How long killed processes may take to go.
const GONE: Duration = Duration::from_secs(5);

/// Ends and removes what dead labs left, and says what it was.
pub(crate) fn remove_stale() -> Result<Vec<String>, Error> {
    remove(&|mark| !is_alive(mark), false)
}

/// Ends and removes what one lab left that has just died, and says what it was. Besides what carries its mark that is
/// every process in the groups of those that it had started: their numbers mean nothing later.
pub(super) fn remove_of(mark: &str) -> Result<Vec<String>, Error> {
    remove(&|other| other == mark, true)
}

fn remove(is_gone: &dyn Fn(&str) -> bool, of_groups: bool) -> Result<Vec<String>, Error> {
    let mut removed = Vec::new();
    let is_left = |path: &PathBuf| mark_in(path).is_some_and(is_gone) && owned(path);
    let places = [std::env::temp_dir(), PathBuf::from(SHARED)];
    let left: Vec<PathBuf> = places.iter().flat_map(|place| entries(place)).filter(is_left).collect();
    let listed: Vec<(u32, u64)> = left.iter().flat_map(|folder| listed(&folder.join(STARTED))).collect();
    let groups = cgroup::named(PREFIX).into_iter().filter(is_left).collect::<Vec<_>>();
    let victims = || {
        let marked = pids().filter(|pid| mark_of(*pid).is_some_and(|mark| is_gone(&mark)));
        let mut all: Vec<u32> = marked.chain(groups.iter().flat_map(|group| cgroup::members(group))).collect();
        all.extend(listed.iter().filter(|(pid, start)| start_time(*pid) == Some(*start)).map(|(pid, _)| *pid));
        if of_groups {
            all.extend(in_groups(&listed));
        }
        all.sort_unstable();
        all.dedup();
        all
    };
    let began = Instant::now();
    let mut named = std::collections::BTreeSet::new();
    loop {
        let found = victims();
        if found.is_empty() {
            break;
        }
        for pid in &found {
            if named.insert(*pid) {
                removed.push(format!("process {pid} ({})", name_of(*pid)));
            }
            if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if began.elapsed() > GONE {
            let what = format!("processes {found:?} of a lab that is gone");
            return Err(Error::system(what)(std::io::Error::other("survive SIGKILL; end them first")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    for group in groups {
        cgroup::remove(&group);
        removed.push(format!("control group {}", group.display()));
    }
    for folder in left {
        let files = shared::remove_of(&folder);
        removed.extend(files.iter().map(|file| format!("file {}", file.display())));
        removed.extend(frequency::restore(&folder.join(frequency::BEFORE)));
        match fs::remove_dir_all(&folder) {
            // Another lab that begins just now was faster.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            done => done.map_err(Error::file(&folder))?,
        }
        removed.push(format!("folder {}", folder.display()));
    }
    Ok(removed)
}

/// Processes in the groups of those listed, whose leaders may be gone. A number that another process leads by now is
/// another group.
fn in_groups(listed: &[(u32, u64)]) -> Vec<u32> {
    let led = |group: u32| {
        let start = listed.iter().find(|(pid, _)| *pid == group)?.1;
        start_time(group).is_none_or(|now| now == start).then_some(())
    };
    let in_one = |pid: &u32| {
        let stat = procfs::process::Process::new(*pid as i32).and_then(|process| process.stat());
        stat.ok().filter(|stat| !matches!(stat.state, 'Z' | 'X')).and_then(|stat| led(stat.pgrp as u32)).is_some()
    };
    pids().filter(in_one).collect()
}

/// The mark that a folder or a control group has in its name.
fn mark_in(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)
}

/// Folders of others in a shared place are not ours to read or to remove.
fn owned(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw())
}

/// The processes that were written down, each with when it started.
fn listed(path: &Path) -> Vec<(u32, u64)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line =
        |line: &str| line.split_once(' ').and_then(|(pid, start)| Some((pid.parse().ok()?, start.parse().ok()?)));
    text.lines().filter_map(line).collect()
}

fn name_of(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm"));
    name.map_or_else(|_| "gone".into(), |name| String::from_utf8_lossy(&name).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use taut_capture::namespace_of;

    use super::*;

    #[test]
    fn a_mark_is_alive_as_long_as_that_very_process_is() {
        let pid = std::process::id();
        let (start, here) = (start_time(pid).unwrap(), namespace_of("self"));
        assert!(is_alive(&format!("{here}-{pid}-{start}")));
        assert!(!is_alive(&format!("{here}-{pid}-{}", start + 1)), "the number was given to another process");
        assert!(is_alive(&format!("{}-{pid}-{}", here + 1, start + 1)), "the number means nothing here");
        assert!(is_alive("what is this"), "never touches what it does not know");
    }

    #[test]
    fn processes_are_read_as_they_were_written_down() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(STARTED);
        fs::write(&path, "12 77\n13 x\ntorn").unwrap();
        assert_eq!(listed(&path), [(12, 77)]);
    }

    #[test]
    fn a_group_outlives_its_leader_and_is_not_taken_for_another() {
        use std::os::unix::process::CommandExt;
        // The shell leads a group, leaves a sleeper in it, and goes.
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-c", "sleep 1000 & read gone"]).process_group(0);
        let mut leader = shell.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let group = leader.id();
        let start = start_time(group).unwrap();
        // Between fork and exec the sleeper is a shell, too.
        while !in_groups(&[(group, start)]).iter().any(|pid| name_of(*pid) == "sleep") {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(in_groups(&[(group, start + 1)]), [0; 0], "another process leads the group of that number");
        drop(leader.stdin.take());
        leader.wait().unwrap();
        let left = in_groups(&[(group, start)]);
        assert_eq!((left.len(), name_of(left[0]).as_str()), (1, "sleep"));
        let _ = kill_process(Pid::from_raw(left[0] as i32).unwrap(), Signal::KILL);
    }
}
