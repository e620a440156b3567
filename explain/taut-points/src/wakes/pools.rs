//! Threads of a process that wait at one descriptor for the timers of all, as those of Tokio and of Go: whichever waits serves the next
//! one. None of them is a loop; together they are.

use std::collections::BTreeMap;

use foldhash::HashMap;

use super::{
    found::Found,
    timers,
    waits::{Kernel, Site},
    worker::{self, Run, Worker},
};

/// A thread is one of them if timers ended so many of its waits there.
const LEAST: usize = 10;

/// Waits at descriptors that timers ended, by process and place.
#[derive(Default)]
pub(super) struct Places(HashMap<(i32, Site), Vec<Served>>);

/// In a life of a thread, so many.
struct Served {
    tid: i32,
    bounds: (u64, u64),
    waits: usize,
}

/// Threads that serve timers in turn.
pub(super) struct Pool {
    /// As one thread, by the one that served most.
    pub worker: Worker,
    pub threads: Vec<i32>,
}

impl Places {
    pub fn add(&mut self, pid: i32, tid: i32, bounds: (u64, u64), timed: HashMap<Site, usize>) {
        for (site, waits) in timed {
            self.0.entry((pid, site)).or_default().push(Served { tid, bounds, waits });
        }
    }

    /// In order of their threads.
    pub fn pools(self, kernel: Kernel<'_>) -> Vec<Pool> {
        let of = |((_, site), lives): ((i32, Site), Vec<Served>)| Pool::of(site, &lives, kernel);
        let mut pools: Vec<Pool> = self.0.into_iter().filter_map(of).collect();
        pools.sort_by_key(|pool| (pool.worker.tid, pool.worker.site.object));
        pools
    }
}

impl Pool {
    fn of(site: Site, lives: &[Served], kernel: Kernel<'_>) -> Option<Pool> {
        let mut served: BTreeMap<i32, usize> = BTreeMap::new();
        lives.iter().for_each(|life| *served.entry(life.tid).or_default() += life.waits);
        let threads: Vec<i32> = served.iter().filter(|(_, n)| **n >= LEAST).map(|(tid, _)| *tid).collect();
        let tid = *threads.iter().max_by_key(|tid| (served[*tid], std::cmp::Reverse(**tid)))?;
        if threads.len() < 2 {
            return None;
        }
        let of = |life: &Served| {
            let timeline = kernel.timelines.threads.get(&life.tid)?;
            Some(worker::at_descriptor(life.tid, site, timeline, life.bounds, kernel))
        };
        let mut runs: Vec<Run> = lives.iter().filter_map(of).flatten().collect();
        runs.sort_unstable_by_key(|run| (run.start_ns, run.tid));
        let worker = Worker { tid, site, runs: runs.into(), expiries: Vec::new() };
        Some(Pool { worker, threads })
    }

    /// Whether its timers end that thread's main waits.
    pub fn has(&self, worker: &Worker) -> bool {
        worker.site == self.worker.site && self.threads.binary_search(&worker.tid).is_ok()
    }

    pub fn loops(&self) -> Vec<Found> {
        timers::of(&self.worker)
    }
}
