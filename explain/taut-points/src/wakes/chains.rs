//! Which run of a thread caused which run of another one, back to a timer, an interrupt or a process outside; and the paths that recur.

use foldhash::{HashMap, HashMapExt};

use super::{waits::Waker, worker::Worker};

/// A path is followed no further.
const DEEPEST: usize = 16;
/// A path recurs if so many runs end it …
const LEAST: u64 = 10;
/// … and no fewer than one of so many of its root's runs.
const LEAST_OF_ROOT: u64 = 20;
/// Chains in all.
const MOST: usize = 512;

/// Where a run stands: a worker, and which of its loops by a timer it is of, from 1; 0: none.
pub(super) type Station = (u32, u32);

/// A run of a worker.
pub(super) type RunId = (u32, u32);

/// A recurring path.
pub(super) struct Chain {
    /// From its root on.
    pub stations: Vec<Station>,
    /// Each passage: a run for each station, as far as it came.
    pub passages: Vec<Vec<RunId>>,
}

/// Causes of all runs.
pub(super) struct Causes {
    /// By worker and run.
    of: Vec<Vec<Option<RunId>>>,
}

/// Runs of all workers, by thread.
struct Places<'a> {
    workers: &'a [Worker],
    of_thread: HashMap<i32, Vec<u32>>,
}

impl Places<'_> {
    /// The thread's run at that moment.
    fn at(&self, tid: i32, at_ns: u64) -> Option<RunId> {
        self.of_thread.get(&tid)?.iter().find_map(|worker| {
            let runs = &self.workers[*worker as usize].runs;
            let run = runs.partition_point(|run| run.start_ns <= at_ns).checked_sub(1)?;
            (at_ns <= runs[run].done_ns).then_some((*worker, run as u32))
        })
    }
}

impl Causes {
    pub fn of(workers: &[Worker]) -> Causes {
        let mut of_thread: HashMap<i32, Vec<u32>> = HashMap::default();
        for (at, worker) in (0..).zip(workers) {
            of_thread.entry(worker.tid).or_default().push(at);
        }
        let places = Places { workers, of_thread };
        let cause = |waker: Waker| match waker {
            Waker::Thread { tid, at_ns } => places.at(tid, at_ns),
            _ => None,
        };
        Causes { of: workers.iter().map(|worker| worker.runs.iter().map(|run| cause(run.waker)).collect()).collect() }
    }

    pub fn cause(&self, (worker, run): RunId) -> Option<RunId> {
        self.of[worker as usize][run as usize]
    }

    /// Whether the run follows from one of those, however far back.
    pub fn follows(&self, mut run: RunId, is_one: impl Fn(RunId) -> bool) -> bool {
        for _ in 0..DEEPEST {
            match self.cause(run) {
                Some(cause) if is_one(cause) => return true,
                Some(cause) => run = cause,
                None => return false,
            }
        }
        false
    }
}

/// A path from its root on, as a tree.
struct Path {
    parent: u32,
    station: Station,
    depth: usize,
    root: u32,
    runs: u64,
}

const NONE: u32 = u32::MAX;

/// Paths that recur, those of most runs first. `station` says where a root stands.
pub(super) fn recurring(workers: &[Worker], causes: &Causes, station: impl Fn(RunId) -> Station) -> Vec<Chain> {
    let mut order: Vec<(u64, RunId)> = Vec::new();
    for (at, worker) in (0..).zip(workers) {
        order.extend((0..).zip(&worker.runs).map(|(run, of)| (of.start_ns, (at, run))));
    }
    order.sort_unstable();
    let mut paths: Vec<Path> = Vec::new();
    let mut known: HashMap<(u32, Station), u32> = HashMap::new();
    let mut of_run: Vec<Vec<u32>> = workers.iter().map(|worker| vec![NONE; worker.runs.len()]).collect();
    for (_, id) in &order {
        let run = &workers[id.0 as usize].runs[id.1 as usize];
        let (parent, station) = match causes.cause(*id) {
            _ if run.is_lost => continue,
            Some(cause) => (of_run[cause.0 as usize][cause.1 as usize], (id.0, 0)),
            None if matches!(run.waker, Waker::Unknown | Waker::Past) => continue,
            None => (NONE, station(*id)),
        };
        if causes.cause(*id).is_some() && (parent == NONE || goes_round(&paths, parent, id.0)) {
            continue;
        }
        let next = paths.len() as u32;
        let path = *known.entry((parent, station)).or_insert(next);
        if path == next {
            let (depth, root) = paths.get(parent as usize).map_or((1, next), |of| (of.depth + 1, of.root));
            paths.push(Path { parent, station, depth, root, runs: 0 });
        }
        paths[path as usize].runs += 1;
        of_run[id.0 as usize][id.1 as usize] = path;
    }
    let chosen = choose(&paths);
    let mut chains: Vec<Chain> =
        chosen.iter().map(|path| Chain { stations: stations(&paths, *path), passages: Vec::new() }).collect();
    // By path: the chains that it is a part of.
    let mut parts: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, path) in chosen.iter().enumerate() {
        let mut part = *path;
        while part != NONE {
            parts.entry(part).or_default().push(at);
            part = paths[part as usize].parent;
        }
    }
    // By chain and root's run: its passage.
    let mut passages: HashMap<(usize, RunId), usize> = HashMap::new();
    let mut roots: Vec<Vec<RunId>> = workers.iter().map(|worker| vec![(NONE, 0); worker.runs.len()]).collect();
    for (_, id) in &order {
        let path = of_run[id.0 as usize][id.1 as usize];
        if path == NONE {
            continue;
        }
        let cause = causes.cause(*id).filter(|_| paths[path as usize].parent != NONE);
        let root = cause.map_or(*id, |cause| roots[cause.0 as usize][cause.1 as usize]);
        roots[id.0 as usize][id.1 as usize] = root;
        let depth = paths[path as usize].depth;
        for chain in parts.get(&path).into_iter().flatten() {
            let all = &mut chains[*chain].passages;
            match (cause, passages.get(&(*chain, root))) {
                (None, _) => {
                    passages.insert((*chain, root), all.len());
                    all.push(vec![*id]);
                }
                // The first run that its cause led to there counts.
                (Some(cause), Some(place)) if all[*place].len() + 1 == depth && all[*place].last() == Some(&cause) => {
                    all[*place].push(*id);
                }
                _ => {}
            }
        }
    }
    // A run of the root that woke nobody is none of the chain's.
    chains.iter_mut().for_each(|chain| chain.passages.retain(|passage| passage.len() > 1));
    chains.retain(|chain| chain.passages.len() as u64 >= LEAST);
    chains
}

fn goes_round(paths: &[Path], mut path: u32, worker: u32) -> bool {
    if paths[path as usize].depth >= DEEPEST {
        return true;
    }
    while path != NONE {
        if paths[path as usize].station.0 == worker {
            return true;
        }
        path = paths[path as usize].parent;
    }
    false
}

/// Paths that recur and of which most runs lead no further.
fn choose(paths: &[Path]) -> Vec<u32> {
    let recurs = |path: &Path| {
        path.depth > 1 && path.runs >= LEAST && path.runs * LEAST_OF_ROOT >= paths[path.root as usize].runs
    };
    let mut goes_on = vec![false; paths.len()];
    for path in paths.iter().filter(|path| recurs(path)) {
        let parent = path.parent as usize;
        goes_on[parent] |= 2 * path.runs > paths[parent].runs;
    }
    let ends = |at: &u32| recurs(&paths[*at as usize]) && !goes_on[*at as usize];
    let mut chosen: Vec<u32> = (0..paths.len() as u32).filter(ends).collect();
    chosen.sort_by_key(|at| (std::cmp::Reverse(paths[*at as usize].runs), *at));
    chosen.truncate(MOST);
    chosen
}

fn stations(paths: &[Path], mut path: u32) -> Vec<Station> {
    let mut stations = Vec::new();
    while path != NONE {
        stations.push(paths[path as usize].station);
        path = paths[path as usize].parent;
    }
    stations.reverse();
    stations
}
