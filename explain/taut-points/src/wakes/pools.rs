//! Threads of a process that wait for the timers of all, one at a time: at one descriptor, as those of Tokio and of Go, or at futexes, as
//! those of Java's executors and of Tokio without sockets. Whichever waits serves the next one. None of them is a loop; together they are.

use std::{cmp::Reverse, collections::BTreeMap};

use foldhash::HashMap;
use taut_timelines::Call;

use super::{
    found::Found,
    run::Run,
    schedule, timers,
    waits::{Kernel, Site, Wait},
    worker::{self, Life, Worker},
};

/// A thread is one of them if timers ended so many of its waits there.
const LEAST: usize = 10;
/// Threads take turns if their waits meet in at most one of so many cases in which they would by chance, and those are so many. One that
/// ends within the other is no meeting: Java wakes another thread for an earlier task, and the first one's time-out stays as it is.
const RARELY: f64 = 10.0;
const LEAST_BY_CHANCE: f64 = 20.0;
/// A thread may begin to wait so long before the one before it has left its wait.
const HANDED_OVER_NS: u64 = 100_000;
/// Each is held against each other one, those with most waits. Pools have about as many threads as the machine has CPUs.
const MOST: usize = 64;
/// A thread has a timer of its own, and takes no turns, if so large a share of the times between its waits' ends are alike, to within so
/// much of their median: two loops of one period may never wait at the same time.
const ALIKE: f64 = 0.75;
const NEAR: f64 = 0.1;

/// Waits that timers ended, by process.
#[derive(Default)]
pub(super) struct Places {
    at_descriptors: HashMap<(i32, Site), Vec<Served>>,
    at_futexes: BTreeMap<i32, Vec<Turns>>,
}

/// In a life of a thread, so many.
struct Served {
    tid: i32,
    bounds: (u64, u64),
    waits: usize,
}

/// Waits of a life of a thread, each from when until when.
struct Turns {
    tid: i32,
    bounds: (u64, u64),
    waits: Vec<(u64, u64)>,
}

/// Threads that serve timers in turn.
pub(super) struct Pool {
    /// As one thread, by the one that served most.
    pub worker: Worker,
    /// Ascending.
    pub threads: Vec<i32>,
}

impl Places {
    /// A life of that thread, within those bounds.
    pub fn add(&mut self, pid: i32, tid: i32, bounds: (u64, u64), life: &mut Life) {
        for (site, waits) in life.timed.drain() {
            self.at_descriptors.entry((pid, site)).or_default().push(Served { tid, bounds, waits });
        }
        let waits = std::mem::take(&mut life.timed_at_futexes);
        if waits.len() >= LEAST {
            self.at_futexes.entry(pid).or_default().push(Turns { tid, bounds, waits });
        }
    }

    /// In order of their threads.
    pub fn pools(self, kernel: Kernel<'_>) -> Vec<Pool> {
        let of = |((_, site), lives): ((i32, Site), Vec<Served>)| Pool::at_descriptor(site, &lives, kernel);
        let mut pools: Vec<Pool> = self.at_descriptors.into_iter().filter_map(of).collect();
        let in_turn = self.at_futexes.values().flat_map(|lives| in_turn(lives));
        pools.extend(in_turn.filter_map(|lives| Pool::at_futexes(&lives, kernel)));
        pools.sort_by_key(|pool| (pool.worker.tid, pool.worker.site.object));
        pools
    }
}

/// Those that wait one at a time, several together.
fn in_turn(lives: &[Turns]) -> Vec<Vec<&Turns>> {
    let mut lives: Vec<&Turns> = lives.iter().filter(|life| !life.is_periodic()).collect();
    // Where not all take turns with all the order decides, and that of a table is chance.
    lives.sort_unstable_by_key(|life| (Reverse(life.waits.len()), life.tid, life.bounds));
    lives.truncate(MOST);
    let mut groups: Vec<Vec<&Turns>> = Vec::new();
    for life in lives {
        let joins = |group: &Vec<&Turns>| {
            // A thread that follows one that ended meets it never.
            let known: Vec<bool> = group.iter().filter_map(|other| life.takes_turns_with(other)).collect();
            known.contains(&true) && !known.contains(&false)
        };
        match groups.iter_mut().find(|group| joins(group)) {
            Some(group) => group.push(life),
            None => groups.push(vec![life]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

impl Turns {
    /// `None` where their waits would hardly meet by chance either.
    fn takes_turns_with(&self, other: &Turns) -> Option<bool> {
        let ends = |of: &Turns| Some((of.waits.first()?.0, of.waits.last()?.1));
        let ((from, to), (other_from, other_to)) = (ends(self)?, ends(other)?);
        let both = (from.max(other_from), to.min(other_to));
        let (its, others) = (self.within(both), other.within(both));
        let ns = |waits: &[(u64, u64)]| waits.iter().map(|wait| wait.1.saturating_sub(wait.0) as f64).sum::<f64>();
        // So many begin within one of the other's, and short ones end within it, too.
        let begin = f64::min(its.len() as f64 * ns(others), others.len() as f64 * ns(its));
        let by_chance = 2.0 * begin / both.1.saturating_sub(both.0).max(1) as f64;
        let meetings = || (meet(its, others) + meet(others, its)) as f64;
        (by_chance >= LEAST_BY_CHANCE).then(|| RARELY * meetings() <= by_chance)
    }

    fn within(&self, (from_ns, to_ns): (u64, u64)) -> &[(u64, u64)] {
        let first = self.waits.partition_point(|wait| wait.0 < from_ns);
        let end = self.waits.partition_point(|wait| wait.1 <= to_ns);
        self.waits.get(first..end).unwrap_or_default()
    }

    /// Whether it has a timer of its own.
    fn is_periodic(&self) -> bool {
        let steps: Vec<f64> = self.waits.windows(2).map(|pair| pair[1].1.saturating_sub(pair[0].1) as f64).collect();
        let median = schedule::middle(&steps);
        let alike = steps.iter().filter(|step| (*step - median).abs() <= NEAR * median).count();
        alike as f64 >= ALIKE * steps.len() as f64
    }
}

/// How many of these waits begin within one of those, both ascending, and go on when that one has ended, or are the same.
fn meet(these: &[(u64, u64)], those: &[(u64, u64)]) -> usize {
    let mut at = 0;
    let meets = |wait: &&(u64, u64)| {
        while those.get(at).is_some_and(|other| other.1 <= wait.0) {
            at += 1;
        }
        let Some(other) = those.get(at).filter(|other| other.0 <= wait.0) else { return false };
        let begins_with = wait.0 - other.0 <= HANDED_OVER_NS;
        other.1 + HANDED_OVER_NS < wait.1 || begins_with && other.1.abs_diff(wait.1) <= HANDED_OVER_NS
    };
    these.iter().filter(meets).count()
}

impl Pool {
    fn at_descriptor(site: Site, lives: &[Served], kernel: Kernel<'_>) -> Option<Pool> {
        let mut served: BTreeMap<i32, usize> = BTreeMap::new();
        lives.iter().for_each(|life| *served.entry(life.tid).or_default() += life.waits);
        let threads: Vec<i32> = served.iter().filter(|(_, n)| **n >= LEAST).map(|(tid, _)| *tid).collect();
        let tid = *threads.iter().max_by_key(|tid| (served[*tid], std::cmp::Reverse(**tid)))?;
        if threads.len() < 2 {
            return None;
        }
        let lives = lives.iter().map(|life| (life.tid, life.bounds));
        Some(Pool { worker: together(tid, site, lives, |wait| wait.site == site, kernel), threads })
    }

    fn at_futexes(lives: &[&Turns], kernel: Kernel<'_>) -> Option<Pool> {
        let most = lives.iter().max_by_key(|life| (life.waits.len(), Reverse(life.tid)))?;
        let waits = super::waits::of(most.tid, kernel.timelines.threads.get(&most.tid)?, most.bounds, kernel);
        let site = waits.iter().find(|wait| worker::is_timed_at_futex(wait))?.site;
        let mut threads: Vec<i32> = lives.iter().map(|life| life.tid).collect();
        threads.sort_unstable();
        threads.dedup();
        let lives = lives.iter().map(|life| (life.tid, life.bounds));
        Some(Pool { worker: together(most.tid, site, lives, worker::is_timed_at_futex, kernel), threads })
    }

    /// Whether its timers end that thread's main waits.
    pub fn has(&self, worker: &Worker) -> bool {
        let is_there = match self.worker.site.kind() {
            Some(Call::Futex) => worker.site.kind() == Some(Call::Futex),
            _ => worker.site == self.worker.site,
        };
        is_there && self.threads.binary_search(&worker.tid).is_ok()
    }

    pub fn loops(&self) -> Vec<Found> {
        timers::of(&self.worker)
    }
}

/// As the runs of one thread what follows from such waits of all these lives.
fn together(
    tid: i32,
    site: Site,
    lives: impl Iterator<Item = (i32, (u64, u64))>,
    is_one: impl Fn(&Wait) -> bool,
    kernel: Kernel<'_>,
) -> Worker {
    let of = |(tid, bounds): (i32, (u64, u64))| {
        Some(worker::after(tid, &is_one, kernel.timelines.threads.get(&tid)?, bounds, kernel))
    };
    let mut runs: Vec<Run> = lives.filter_map(of).flatten().collect();
    runs.sort_unstable_by_key(|run| (run.start_ns, run.tid));
    Worker { tid, site, runs: runs.into(), expiries: Vec::new(), backs_off: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread with these waits, ms.
    fn turns(tid: i32, waits: impl Iterator<Item = (u64, u64)>) -> Turns {
        const MS: u64 = 1_000_000;
        Turns { tid, bounds: (0, u64::MAX), waits: waits.map(|(from, to)| (from * MS, to * MS)).collect() }
    }

    /// The waits of one server or of the others: one in each 10 ms.
    fn served(by: std::ops::Range<u64>, is_first: bool) -> impl Iterator<Item = (u64, u64)> {
        by.filter(move |k| (k * k % 7 < 3) == is_first).map(|k| (10 * k + 1, 10 * k + 9))
    }

    fn groups(lives: &[Turns]) -> Vec<Vec<i32>> {
        in_turn(lives).iter().map(|group| group.iter().map(|life| life.tid).collect()).collect()
    }

    #[test]
    fn who_takes_turns_does_not_depend_on_the_order_of_the_threads() {
        // 2 takes turns with 1 and with 3, which wait at the same times.
        let lives = |tids: [i32; 3]| tids.map(|tid| turns(tid, served(0..700, tid == 2)));
        for tids in [[1, 2, 3], [3, 2, 1], [1, 3, 2], [2, 3, 1]] {
            assert_eq!(groups(&lives(tids)), [[2, 1]], "{tids:?}");
        }
    }

    #[test]
    fn a_thread_that_follows_one_that_ended_takes_its_turns() {
        let lives =
            [turns(1, served(0..350, false)), turns(2, served(0..700, true)), turns(3, served(350..700, false))];
        assert_eq!(groups(&lives), [[2, 1, 3]]);
    }

    /// From 0 up to `below` (Lewis, Goodman and Miller 1969).
    fn random(state: &mut u64, below: u64) -> u64 {
        *state = *state * 16_807 % 2_147_483_647;
        *state % below
    }

    #[test]
    fn threads_whose_leader_waits_on_while_another_one_takes_an_earlier_task_are_a_pool() {
        let mut waits: [Vec<(u64, u64)>; 4] = Default::default();
        let mut state = 1_234;
        for from in (0..700).map(|k| 10 * k) {
            let leader = random(&mut state, 4) as usize;
            waits[leader].push((from + 1, from + 9));
            if from % 30 == 0 {
                let other = (leader + 1 + random(&mut state, 3) as usize) % 4;
                waits[other].extend([(from + 3, from + 5), (from + 6, from + 9)]);
            }
        }
        let lives: Vec<Turns> = (1..).zip(waits).map(|(tid, waits)| turns(tid, waits.into_iter())).collect();
        let mut groups = groups(&lives);
        groups.iter_mut().for_each(|group| group.sort_unstable());
        assert_eq!(groups, [[1, 2, 3, 4]]);
    }

    #[test]
    fn threads_that_wait_each_for_what_it_does_are_no_pool() {
        let mut state = 4_321;
        let mut waits = |longest: u64| {
            let mut at = 0;
            let mut wait = || {
                let from = at + 1 + random(&mut state, 5);
                at = from + 1 + random(&mut state, longest);
                (from, at)
            };
            (0..500).map(|_| wait()).collect::<Vec<(u64, u64)>>()
        };
        for [a, b] in [[20, 20], [20, 60], [5, 40]] {
            let lives = [turns(1, waits(a).into_iter()), turns(2, waits(b).into_iter())];
            assert_eq!(groups(&lives), [[0; 0]; 0], "{a} {b}");
        }
    }

    #[test]
    fn loops_of_one_period_that_never_wait_at_the_same_time_are_no_pool() {
        let every = |from: u64| (0..300).map(move |k| (10 * k + from, 10 * k + from + 4));
        assert_eq!(groups(&[turns(1, every(0)), turns(2, every(5))]), [[0; 0]; 0]);
    }
}
