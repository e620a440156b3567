//! When executors were busy, and with which callback: why a callback that was ready did not run.

use std::collections::VecDeque;

use foldhash::HashMap;

use super::system::System;

/// Callbacks that a thread remembers.
const MOST_RUNS: usize = 512;
/// Callbacks that one message waited for; shorter ones are left out.
const MOST_WAITED_FOR: usize = 32;

/// A callback ran, not within another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    from_ns: u64,
    to_ns: u64,
    /// `None`: it has no name.
    callback: Option<u32>,
}

/// A thread was in a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy {
    pub from_ns: u64,
    pub to_ns: u64,
    pub thread: u32,
    pub callback: Option<u32>,
}

/// What runs and ran, by thread.
pub(super) struct Executors<'a> {
    system: &'a System,
    runs: Vec<VecDeque<Run>>,
    /// By group: coroutines of it, from when each was first suspended until it ended.
    coroutines: HashMap<u64, VecDeque<(Coroutine, Busy)>>,
}

/// A coroutine, by its process and number.
pub(super) type Coroutine = (i32, u64);

impl<'a> Executors<'a> {
    pub fn new(system: &'a System, threads: usize) -> Executors<'a> {
        Executors { system, runs: vec![VecDeque::new(); threads], coroutines: HashMap::default() }
    }

    /// A callback begins on a thread that is in none.
    pub fn begin(&mut self, thread: u32, time_ns: u64, callback: Option<u32>) {
        let runs = &mut self.runs[thread as usize];
        if runs.len() >= MOST_RUNS {
            runs.pop_front();
        }
        runs.push_back(Run { from_ns: time_ns, to_ns: u64::MAX, callback });
    }

    /// Threads that ran callbacks.
    pub fn threads(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.runs).filter(|(_, runs)| !runs.is_empty()).map(|(thread, _)| thread)
    }

    /// It ends.
    pub fn end(&mut self, thread: u32, time_ns: u64) {
        if let Some(run) = self.runs[thread as usize].back_mut() {
            run.to_ns = run.to_ns.min(time_ns);
        }
    }

    /// A coroutine awaits something. Its group lets no other callback run until it ends.
    pub fn suspend(&mut self, coroutine: Coroutine, thread: u32, callback: u32, time_ns: u64) {
        let of_group = self.coroutines.entry(self.system.callbacks[callback as usize].group).or_default();
        if of_group.iter().any(|(other, busy)| *other == coroutine && busy.to_ns == u64::MAX) {
            return;
        }
        if of_group.len() >= MOST_RUNS {
            of_group.pop_front();
        }
        of_group.push_back((coroutine, Busy { from_ns: time_ns, to_ns: u64::MAX, thread, callback: Some(callback) }));
    }

    /// It ends.
    pub fn complete(&mut self, coroutine: Coroutine, callback: u32, time_ns: u64) {
        let of_group = self.coroutines.get_mut(&self.system.callbacks[callback as usize].group);
        let is_it = |entry: &&mut (Coroutine, Busy)| entry.0 == coroutine && entry.1.to_ns == u64::MAX;
        if let Some((_, busy)) = of_group.and_then(|all| all.iter_mut().rev().find(is_it)) {
            busy.to_ns = time_ns;
        }
    }

    /// Why the callback did not run on this thread between these moments: another one of its group ran, or all threads of its
    /// executor were in callbacks. In order of time, without overlaps.
    pub fn busy(&self, thread: u32, callback: u32, from_ns: u64, to_ns: u64) -> Vec<Busy> {
        let others = || self.system.executors[thread as usize].iter().copied().filter(|other| *other != thread);
        let mut own = self.within(thread, from_ns, to_ns);
        for other in others() {
            if own.is_empty() {
                break;
            }
            let theirs = self.within(other, from_ns, to_ns);
            own = own
                .iter()
                .flat_map(|busy| theirs.iter().filter_map(|other| busy.clipped(other.from_ns, other.to_ns)))
                .collect();
        }
        let group = self.system.callbacks[callback as usize].group;
        let is_of_group =
            |busy: &Busy| busy.callback.is_some_and(|other| self.system.callbacks[other as usize].group == group);
        let mut all: Vec<Busy> = Vec::new();
        if !self.system.open_groups.contains(&group) {
            let threads = self.system.executors[thread as usize].iter();
            all.extend(threads.flat_map(|any| self.within(*any, from_ns, to_ns)).filter(is_of_group));
            let coroutines = self.coroutines.get(&group).into_iter().flatten();
            all.extend(coroutines.filter_map(|(_, busy)| busy.clipped(from_ns, to_ns)));
        }
        let of_group = all.len();
        all.extend(own);
        longest(without_overlaps(all, of_group))
    }

    fn within(&self, thread: u32, from_ns: u64, to_ns: u64) -> Vec<Busy> {
        let runs = self.runs[thread as usize].iter().rev().take_while(|run| run.to_ns > from_ns);
        let busy = |run: &Run| Busy { from_ns: run.from_ns, to_ns: run.to_ns, thread, callback: run.callback };
        let mut all: Vec<Busy> = runs.filter_map(|run| busy(run).clipped(from_ns, to_ns)).collect();
        all.reverse();
        all
    }
}

impl Busy {
    /// What of it is between these moments.
    fn clipped(&self, from_ns: u64, to_ns: u64) -> Option<Busy> {
        let (from_ns, to_ns) = (self.from_ns.max(from_ns), self.to_ns.min(to_ns));
        (from_ns < to_ns).then_some(Busy { from_ns, to_ns, ..*self })
    }
}

/// In order of time; where two overlap, the first `ahead` of the list go before the others, and the earlier before the later.
fn without_overlaps(all: Vec<Busy>, ahead: usize) -> Vec<Busy> {
    let mut kept: Vec<Busy> = Vec::new();
    let mut all = all;
    all[..ahead].sort_by_key(|busy| busy.from_ns);
    for busy in all {
        let mut from_ns = busy.from_ns;
        let mut free: Vec<Busy> = Vec::new();
        kept.sort_by_key(|busy| busy.from_ns);
        for other in &kept {
            if other.from_ns > from_ns && from_ns < busy.to_ns {
                free.push(Busy { from_ns, to_ns: busy.to_ns.min(other.from_ns), ..busy });
            }
            from_ns = from_ns.max(other.to_ns);
        }
        if from_ns < busy.to_ns {
            free.push(Busy { from_ns, ..busy });
        }
        kept.extend(free);
    }
    kept.sort_by_key(|busy| busy.from_ns);
    kept
}

fn longest(mut all: Vec<Busy>) -> Vec<Busy> {
    if all.len() > MOST_WAITED_FOR {
        all.sort_by_key(|busy| std::cmp::Reverse(busy.to_ns - busy.from_ns));
        all.truncate(MOST_WAITED_FOR);
        all.sort_by_key(|busy| busy.from_ns);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ros::system::{Callback, Of};

    /// Threads 0 and 1 are of one executor, 2 is one by itself. Callbacks 0 and 1 are of one group, 2 of another.
    fn system() -> System {
        let callback = |group| Callback { name: String::new(), node: String::new(), of: Of::Timer, group };
        System {
            callbacks: [7, 7, 8].map(callback).to_vec(),
            executors: vec![vec![0, 1], vec![0, 1], vec![2]],
            ..System::default()
        }
    }

    fn stretches(busy: &[Busy]) -> Vec<(u64, u64, u32, Option<u32>)> {
        busy.iter().map(|busy| (busy.from_ns, busy.to_ns, busy.thread, busy.callback)).collect()
    }

    #[test]
    fn the_only_thread_of_an_executor_is_busy_with_its_callbacks() {
        let system = system();
        let mut executors = Executors::new(&system, 3);
        executors.begin(2, 10, Some(2));
        executors.end(2, 30);
        executors.begin(2, 35, None);
        executors.end(2, 40);
        assert_eq!(stretches(&executors.busy(2, 0, 20, 50)), [(20, 30, 2, Some(2)), (35, 40, 2, None)]);
        assert_eq!(stretches(&executors.busy(2, 0, 41, 50)), []);
    }

    #[test]
    fn with_several_threads_all_of_them_must_be_busy_or_one_of_the_group() {
        let system = system();
        let mut executors = Executors::new(&system, 3);
        executors.begin(0, 10, Some(2));
        executors.end(0, 30);
        assert_eq!(stretches(&executors.busy(0, 0, 10, 50)), [], "the other thread is free");
        executors.begin(1, 20, Some(2));
        assert_eq!(stretches(&executors.busy(0, 0, 10, 50)), [(20, 30, 0, Some(2))], "both are in callbacks");
        executors.end(1, 40);
        executors.begin(1, 41, Some(1));
        executors.end(1, 49);
        let found = executors.busy(0, 0, 10, 50);
        assert_eq!(stretches(&found), [(20, 30, 0, Some(2)), (41, 49, 1, Some(1))], "one of its group runs");
    }

    #[test]
    fn a_callback_of_the_group_holds_up_on_whichever_thread_it_ran() {
        let system = system();
        let mut executors = Executors::new(&system, 3);
        executors.begin(0, 10, Some(1));
        executors.end(0, 30);
        let found = executors.busy(0, 0, 12, 31);
        assert_eq!(stretches(&found), [(12, 30, 0, Some(1))], "the thread itself ran it, while the other one was free");
    }

    #[test]
    fn a_coroutine_that_awaits_something_holds_its_group_up_until_it_ends() {
        let system = system();
        let mut executors = Executors::new(&system, 3);
        executors.begin(0, 10, Some(0));
        executors.end(0, 11);
        executors.suspend((1, 5), 0, 0, 11);
        executors.suspend((1, 5), 1, 0, 20);
        assert_eq!(stretches(&executors.busy(0, 1, 5, 50)), [(10, 11, 0, Some(0)), (11, 50, 0, Some(0))]);
        assert_eq!(stretches(&executors.busy(0, 2, 5, 50)), [], "another group");
        executors.complete((1, 5), 0, 40);
        assert_eq!(stretches(&executors.busy(0, 1, 15, 50)), [(15, 40, 0, Some(0))]);
    }

    #[test]
    fn a_group_in_which_two_ran_at_once_holds_nothing_up() {
        let mut system = system();
        system.open_groups.insert(7);
        let mut executors = Executors::new(&system, 3);
        executors.begin(1, 10, Some(1));
        executors.end(1, 30);
        assert_eq!(stretches(&executors.busy(0, 0, 10, 50)), []);
    }
}
