//! Threads of a process that wait at one descriptor for the timers of all, as those of Tokio and of Go: whichever waits serves the next
//! one. None of them is a loop; together they are.

use foldhash::HashMap;

use super::{
    found::Found,
    timers,
    waits::Site,
    worker::{self, Run, Worker},
};

/// A thread is one of them if timers ended so many of its waits there.
const LEAST: usize = 10;

/// What threads do between their waits at descriptors, by process and place.
#[derive(Default)]
pub(super) struct Places(HashMap<(i32, Site), Vec<Run>>);

/// Threads that serve timers in turn.
pub(super) struct Pool {
    /// As one thread, by the one that served most.
    pub worker: Worker,
    pub threads: Vec<i32>,
}

impl Places {
    pub fn add(&mut self, pid: i32, runs: impl IntoIterator<Item = (Site, Run)>) {
        runs.into_iter().for_each(|(site, run)| self.0.entry((pid, site)).or_default().push(run));
    }

    /// In order of their threads.
    pub fn pools(self) -> Vec<Pool> {
        let mut pools: Vec<Pool> = self.0.into_iter().filter_map(|((_, site), runs)| Pool::of(site, runs)).collect();
        pools.sort_by_key(|pool| pool.worker.tid);
        pools
    }
}

impl Pool {
    fn of(site: Site, mut runs: Vec<Run>) -> Option<Pool> {
        let mut served: HashMap<i32, usize> = HashMap::default();
        let timed = runs.iter().filter(|run| worker::timer(run.waker).is_some());
        timed.for_each(|run| *served.entry(run.tid).or_default() += 1);
        let mut threads: Vec<i32> = served.iter().filter(|(_, n)| **n >= LEAST).map(|(tid, _)| *tid).collect();
        threads.sort_unstable();
        let tid = *threads.iter().max_by_key(|tid| (served[*tid], std::cmp::Reverse(**tid)))?;
        runs.sort_unstable_by_key(|run| (run.start_ns, run.tid));
        let worker = Worker { tid, site, runs: runs.into(), expiries: Vec::new() };
        (threads.len() > 1).then_some(Pool { worker, threads })
    }

    /// Whether its timers end that thread's main waits.
    pub fn has(&self, worker: &Worker) -> bool {
        worker.site == self.worker.site && self.threads.binary_search(&worker.tid).is_ok()
    }

    pub fn loops(&self) -> Vec<Found> {
        timers::of(&self.worker)
    }
}
