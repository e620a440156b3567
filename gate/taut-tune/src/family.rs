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
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let number = |word: &str| word.parse::<i32>().ok();
    tasks.flat_map(|task| of(task).split_whitespace().filter_map(number).collect::<Vec<_>>()).collect()
}
