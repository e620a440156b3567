//! How long threads ran and waited for a CPU, where no kernel events have it: /proc/PID/task/TID/schedstat.

use std::{
    collections::{BTreeMap, HashMap},
    time::Instant,
};

/// Reads times; tells what came since the last reading.
#[derive(Default)]
pub struct ThreadTimes {
    /// By tid: ns on a CPU, and ns runnable without one.
    known: HashMap<i32, (u64, u64)>,
    at: Option<Instant>,
}

impl ThreadTimes {
    /// Nanoseconds "running", "waiting" (for a CPU) and "blocked" of these threads, (pid, tid) each, since the last
    /// reading; nothing of those that are new or gone.
    pub fn read(&mut self, threads: impl Iterator<Item = (i32, i32)>) -> HashMap<i32, BTreeMap<&'static str, u64>> {
        let now = Instant::now();
        let span_ns = self.at.replace(now).map_or(0, |before| (now - before).as_nanos() as u64);
        let read = |(pid, tid): (i32, i32)| {
            let text = crate::proc::text(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
            Some((tid, times(&text)?))
        };
        let before = std::mem::replace(&mut self.known, threads.filter_map(read).collect());
        let since = |(tid, (ran, waited)): (&i32, &(u64, u64))| {
            let (ran_before, waited_before) = before.get(tid)?;
            let running = ran.saturating_sub(*ran_before).min(span_ns);
            let waiting = waited.saturating_sub(*waited_before).min(span_ns - running);
            let states = [("running", running), ("waiting", waiting), ("blocked", span_ns - running - waiting)];
            Some((*tid, states.into_iter().filter(|(_, ns)| *ns > 0).collect()))
        };
        self.known.iter().filter_map(since).collect()
    }
}

/// kernel/sched/stats: "ran waited slices", ns both.
fn times(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_computes_runs_and_one_that_sleeps_is_blocked() {
        let pid = std::process::id() as i32;
        let (send, tid) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            send.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            wait.recv().unwrap_err();
        });
        let (own, tid) = (rustix::thread::gettid().as_raw_nonzero().get(), tid.recv().unwrap());
        let mut times = ThreadTimes::default();
        let threads = || [(pid, own), (pid, tid), (pid, 4_194_305)].into_iter();
        assert!(times.read(threads()).is_empty(), "there is no span yet");
        let clock = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let ran_ns = |since: rustix::time::Timespec| {
            let now = clock();
            (now.tv_sec - since.tv_sec) * 1_000_000_000 + now.tv_nsec - since.tv_nsec
        };
        let begun = clock();
        while ran_ns(begun) < 30_000_000 {}
        let read = times.read(threads());
        drop(go);
        sleeper.join().unwrap();
        assert!(read[&own]["running"] >= 20_000_000, "{:?}", read[&own]);
        assert!(read[&tid]["blocked"] > read[&tid].get("running").copied().unwrap_or(0), "{:?}", read[&tid]);
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn foreign_text_is_no_times() {
        assert_eq!((times("12 7 3\n"), times(""), times("a b c")), (Some((12, 7)), None, None));
    }
}
