//! What a process has started, and what that has.

use std::collections::BTreeSet;

/// A process and what it has started, without these.
pub(crate) fn family(first: i32, foreign: &BTreeSet<i32>) -> Vec<i32> {
    let mut all = vec![first];
    let mut at = 0;
    while at < all.len() {
        all.extend(children(all[at]).into_iter().filter(|pid| !foreign.contains(pid)));
        at += 1;
    }
    all
}

/// What a process has started.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let of_thread = |tid: i32| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/children"));
    // Without CONFIG_PROC_CHILDREN every process of the machine must be asked for its parent.
    if !std::path::Path::new("/proc/thread-self/children").exists() {
        let all = procfs::process::all_processes().into_iter().flatten().flatten();
        return all.filter(|other| other.stat().is_ok_and(|stat| stat.ppid == pid)).map(|other| other.pid).collect();
    }
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let tids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    let number = |word: &str| word.parse::<i32>().ok();
    tids.flat_map(|tid| of_thread(tid).unwrap_or_default().split_whitespace().filter_map(number).collect::<Vec<_>>())
        .collect()
}
