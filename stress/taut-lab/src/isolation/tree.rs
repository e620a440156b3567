//! Every process and thread that descends from the lab: whose part it is, where it may run and where it ran, what CPU
//! time it took. The lab is the reaper of its orphans, so that nothing leaves the tree.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::atomic::{AtomicI32, Ordering::Relaxed},
    time::{Duration, Instant},
};

use procfs::process::{Process, all_processes};
use rustix::{
    process::{Pid, Signal, WaitOptions, kill_process, waitpid},
    thread::{CpuSet, sched_getaffinity},
    time::{ClockId, clock_gettime},
};

use super::mine::{PART, variable};
use crate::{Cpus, Error};

/// How long killed processes may take to go.
const GONE: Duration = Duration::from_secs(5);

/// The process that cleans up after a killed lab: no part of its tree. 0: none.
static SPARED: AtomicI32 = AtomicI32::new(0);

/// Names the child that is no part of the tree: neither looked at nor killed.
pub(super) fn spare(pid: Option<u32>) {
    SPARED.store(pid.map_or(0, |pid| pid as i32), Relaxed);
}

/// CPU time since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub ran_ns: u64,
    /// In a run queue.
    pub waited_ns: u64,
}

/// The tree at one moment.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    usage: BTreeMap<String, Usage>,
    threads: Vec<Thread>,
}

/// One thread of it.
#[derive(Debug)]
pub(crate) struct Thread {
    pub part: String,
    pub pid: i32,
    pub tid: i32,
    pub name: String,
    state: char,
    last_cpu: Option<u32>,
    allowed: Option<Cpus>,
}

impl Tree {
    /// Looks at everything below this process. `roots`: the pids that the lab started, by part.
    pub fn look(roots: &HashMap<u32, String>) -> Result<Tree, Error> {
        let mut tree = Tree { at_ns: now_ns(), ..Tree::default() };
        let family = Family::now()?;
        for (pid, process) in family.descendants() {
            let part = family.part(pid, roots);
            let usage = tree.usage.entry(part.clone()).or_default();
            // A process may end at any moment: what cannot be read any more is gone, and not wrong.
            if let Ok(stat) = process.stat() {
                let (own, children) = (stat.utime + stat.stime, stat.cutime.max(0) + stat.cstime.max(0));
                let tick_ns = 1_000_000_000 / procfs::ticks_per_second();
                let mut ran_ns = 0;
                for task in process.tasks().into_iter().flatten().flatten() {
                    if let Ok(schedule) = task.schedstat() {
                        ran_ns += schedule.sum_exec_runtime;
                        usage.waited_ns += schedule.run_delay;
                    }
                    if let Ok(stat) = task.stat()
                        && !matches!(stat.state, 'Z' | 'X')
                    {
                        tree.threads.push(Thread {
                            part: part.clone(),
                            pid,
                            tid: task.tid,
                            name: stat.comm,
                            state: stat.state,
                            last_cpu: stat.processor.and_then(|cpu| cpu.try_into().ok()),
                            allowed: allowed(task.tid),
                        });
                    }
                }
                // Threads that ended are only in the process's own, coarser count.
                usage.ran_ns += ran_ns.max(own * tick_ns) + children as u64 * tick_ns;
            }
        }
        Ok(tree)
    }

    pub fn usage(&self, part: &str) -> Usage {
        self.usage.get(part).copied().unwrap_or_default()
    }

    pub fn parts(&self) -> impl Iterator<Item = (&String, &Usage)> {
        self.usage.iter()
    }

    /// Every thread.
    pub fn all(&self) -> &[Thread] {
        &self.threads
    }

    /// Threads looked at.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The processes looked at.
    pub fn pids(&self) -> BTreeSet<u32> {
        self.threads.iter().map(|thread| thread.pid as u32).collect()
    }

    /// Every thread with its state (as in `ps`), its CPU and, while it still sleeps there, where in the kernel.
    pub fn listing(&self) -> String {
        let mut text = String::new();
        for thread in &self.threads {
            let (pid, tid) = (thread.pid, thread.tid);
            let place = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/wchan")).unwrap_or_default();
            let cpu = thread.last_cpu.map_or("–".into(), |cpu| cpu.to_string());
            let (part, name, state) = (&thread.part, &thread.name, thread.state);
            text += format!("{part:<16} {pid:>8} {tid:>8} {state} CPU {cpu:<4} {name:<16} {place}").trim_end();
            text.push('\n');
        }
        text
    }

    /// The first thread that ran, or may run, where its part must not. What the lab cannot name any more (`stray`) is
    /// held against the system's CPUs by its caller.
    pub fn elsewhere(&self, wanted: &BTreeMap<String, Cpus>) -> Option<String> {
        self.threads.iter().find_map(|thread| {
            let cpus = wanted.get(&thread.part)?;
            let who = || format!("thread {} ({}) of {}", thread.tid, thread.name, thread.part);
            match (&thread.allowed, thread.last_cpu) {
                (Some(allowed), _) if !cpus.contain(allowed) => {
                    Some(format!("{} may run on CPU {allowed}, not only on {cpus}", who()))
                }
                (_, Some(cpu)) if !cpus.has(cpu) => Some(format!("{} ran on CPU {cpu}, not on {cpus}", who())),
                _ => None,
            }
        })
    }
}

/// Kills everything below this process, until nothing is left.
pub(crate) fn kill_descendants() -> Result<(), Error> {
    let began = Instant::now();
    loop {
        let family = Family::now()?;
        let alive: Vec<i32> = family.descendants().filter(|(_, p)| is_running(p)).map(|(pid, _)| pid).collect();
        family.reap(&[]);
        if alive.is_empty() {
            return Ok(());
        }
        for pid in alive.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        if began.elapsed() > GONE {
            let survivors = std::io::Error::other("survive SIGKILL; no further trial would be a clean one");
            return Err(Error::system(format!("processes {alive:?}"))(survivors));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for orphans that ended; `known` are waited for by those who started them.
pub(crate) fn reap(known: &HashMap<u32, String>) -> Result<(), Error> {
    Family::now()?.reap(&known.keys().copied().collect::<Vec<_>>());
    Ok(())
}

struct Family {
    me: i32,
    processes: HashMap<i32, (i32, Process)>,
}

impl Family {
    fn now() -> Result<Family, Error> {
        let all = all_processes().map_err(|error| Error::system("/proc")(std::io::Error::other(error.to_string())))?;
        let parent = |process: Process| Some((process.pid, (process.stat().ok()?.ppid, process)));
        Ok(Family { me: std::process::id() as i32, processes: all.flatten().filter_map(parent).collect() })
    }

    fn descendants(&self) -> impl Iterator<Item = (i32, &Process)> {
        self.processes
            .iter()
            .filter(|(pid, _)| **pid != SPARED.load(Relaxed) && self.ancestors(**pid).any(|above| above == self.me))
            .map(|(pid, (_, process))| (*pid, process))
    }

    fn ancestors(&self, pid: i32) -> impl Iterator<Item = i32> {
        // A reading that is not of one moment could make a ring.
        std::iter::successors(self.processes.get(&pid).map(|(parent, _)| *parent), |above| {
            self.processes.get(above).map(|(parent, _)| *parent)
        })
        .take(1000)
    }

    fn part(&self, pid: i32, roots: &HashMap<u32, String>) -> String {
        let line = std::iter::once(pid).chain(self.ancestors(pid)).find_map(|pid| roots.get(&(pid as u32)).cloned());
        line.or_else(|| variable(pid as u32, PART)).unwrap_or_else(|| "stray".into())
    }

    fn reap(&self, known: &[u32]) {
        let ended = |(pid, (parent, process)): (&i32, &(i32, Process))| {
            let is_mine = known.contains(&(*pid as u32)) || *pid == SPARED.load(Relaxed);
            let is_orphan = *parent == self.me && !is_mine;
            (is_orphan && !is_running(process)).then(|| Pid::from_raw(*pid)).flatten()
        };
        for pid in self.processes.iter().filter_map(ended) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

fn is_running(process: &Process) -> bool {
    process.stat().is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Where a thread may run. Asked of the scheduler: the status file begins with a name, which need not be text.
fn allowed(tid: i32) -> Option<Cpus> {
    let set = sched_getaffinity(Pid::from_raw(tid)).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect::<Vec<_>>().into())
}

pub(crate) fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_whose_name_is_no_text_is_looked_at_too() {
        let folder = tempfile::tempdir().unwrap();
        // The kernel keeps 15 bytes, the last of them a part of a character.
        let program = folder.path().join("x로봇팔제어");
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("100").spawn().unwrap();
        let look = || Tree::look(&HashMap::from([(child.id(), "robot".to_owned())])).unwrap();
        let mut tree = look();
        // Until it has executed the program, it has the name of this test.
        while !tree.threads.iter().any(|thread| thread.part == "robot" && thread.name.starts_with('x')) {
            tree = look();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let thread = tree.threads.iter().find(|thread| thread.part == "robot").unwrap();
        assert!(thread.allowed.is_some());
    }

    #[test]
    fn a_thread_is_elsewhere_by_where_it_may_run_and_by_where_it_ran() {
        let thread = |allowed: Vec<u32>, last_cpu| Thread {
            part: "server".into(),
            pid: 7,
            tid: 7,
            state: 'S',
            name: "worker".into(),
            last_cpu: Some(last_cpu),
            allowed: Some(allowed.into()),
        };
        let of = |thread| {
            let wanted = BTreeMap::from([("server".to_owned(), Cpus::from(vec![1, 2]))]);
            Tree { threads: vec![thread], ..Tree::default() }.elsewhere(&wanted)
        };
        assert_eq!(of(thread(vec![1], 1)), None);
        assert_eq!(
            of(thread(vec![0, 1], 1)).unwrap(),
            "thread 7 (worker) of server may run on CPU 0-1, not only on 1-2"
        );
        assert_eq!(of(thread(vec![1], 3)).unwrap(), "thread 7 (worker) of server ran on CPU 3, not on 1-2");
    }
}
