//! Pools: threads that take a point's messages from one queue, so that each message goes to the first of them that is free.

use foldhash::HashMap;

use crate::{
    passage::Passage,
    walk::{Moment, Walker},
};

/// So many waits say whether threads have one queue.
const WAITS: usize = 200;
/// A thread of a pool has nothing to do for at most so much of the time that messages wait for others of it: its way to the CPU.
const IDLE_SHARE: f64 = 0.1;

/// Which threads of a chain are pools.
#[derive(Clone, Default)]
pub(crate) struct Pools {
    /// Each pool's threads.
    all: Vec<Vec<i32>>,
}

impl Pools {
    /// By some of the messages, and by as many of `all` as it takes to see some of them wait. Threads that stamp at one point are a pool if
    /// none of them has nothing to do while a message waits for another one: else each has its own queue.
    pub fn of(some: &[Passage], all: impl Iterator<Item = Passage>, walker: &mut Walker<'_>) -> Pools {
        let mut pools = Pools::default();
        // What executors are busy with is known.
        if !walker.holds.is_empty() {
            return pools;
        }
        let mut takers: HashMap<usize, Vec<i32>> = HashMap::default();
        for (from, (column, to)) in some.iter().flat_map(handed) {
            let known = takers.entry(column).or_default();
            let can_be = walker.timelines.threads.contains_key(&to.tid) && !walker.shared.contains_key(&to.tid);
            if can_be && from.tid != to.tid && !known.contains(&to.tid) {
                known.push(to.tid);
            }
        }
        takers.retain(|_, tids| tids.len() > 1);
        // Of each point: how long messages waited, and for how long of that another of its threads had nothing to do.
        let mut waits: HashMap<usize, (usize, u64, u64)> = HashMap::default();
        if takers.is_empty() {
            return pools;
        }
        for passage in all {
            for (from, (column, to)) in handed(&passage) {
                let Some(tids) = takers.get(&column) else { continue };
                let (n, waited_ns, idle_ns) = waits.entry(column).or_default();
                let busy = walker.spans.busy_until(to.tid, passage.id, from.time_ns, to.time_ns);
                let Some((until_ns, _)) = busy.filter(|_| *n < WAITS) else { continue };
                let others = tids.iter().filter(|tid| **tid != to.tid);
                let idles = others.map(|tid| match walker.spans.within(*tid, from.time_ns) {
                    Some(_) => 0,
                    None => {
                        walker.idles_at(*tid, from.time_ns).map_or(0, |(end_ns, _)| end_ns.min(until_ns) - from.time_ns)
                    }
                });
                *idle_ns += idles.max().unwrap_or(0);
                (*n, *waited_ns) = (*n + 1, *waited_ns + until_ns - from.time_ns);
            }
            if takers.keys().all(|column| waits.get(column).is_some_and(|(n, ..)| *n >= WAITS)) {
                break;
            }
        }
        for (column, tids) in takers {
            let is_one = waits.get(&column).is_some_and(|(_, waited_ns, idle_ns)| {
                *waited_ns > 0 && *idle_ns as f64 <= IDLE_SHARE * *waited_ns as f64
            });
            if is_one {
                pools.join(tids);
            }
        }
        pools
    }

    /// Threads that share a point with a pool are of it.
    fn join(&mut self, mut tids: Vec<i32>) {
        let (same, apart): (Vec<_>, Vec<_>) =
            self.all.drain(..).partition(|pool| pool.iter().any(|tid| tids.contains(tid)));
        tids.extend(same.into_iter().flatten());
        tids.sort_unstable();
        tids.dedup();
        self.all = apart;
        self.all.push(tids);
    }

    /// All threads of its pool; none of a thread alone.
    pub fn threads(&self, tid: i32) -> &[i32] {
        self.all.iter().find(|pool| pool.contains(&tid)).map_or(&[], Vec::as_slice)
    }

    /// What the thread takes its messages from: the number of the pool's first thread, or its own.
    pub fn line(&self, tid: i32) -> i32 {
        self.threads(tid).first().copied().unwrap_or(tid)
    }
}

/// Hops by which one thread hands a message to another.
fn handed(passage: &Passage) -> impl Iterator<Item = (Moment, (usize, Moment))> + '_ {
    passage.passes.windows(2).map(|pair| (pair[0].1, pair[1])).filter(|(from, (_, to))| from.is_handed_to(*to))
}
