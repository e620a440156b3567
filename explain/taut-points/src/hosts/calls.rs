//! System calls around stamps: whether a thread sends right after it stamped a point, or had received right before. A message leaves a
//! host at a point of the former kind and reaches one at the latter, whatever the clocks show.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use taut_recording::{Architecture, KernelBatch, KernelEvent};

use super::host_clock::HostClock;

/// Calls of threads that stamp, by their numbers.
#[derive(Default)]
pub(super) struct Calls {
    /// Threads that stamped by now; calls of others are not kept.
    stamping: HashSet<i32>,
    by_thread: HashMap<i32, Vec<Call>>,
}

struct Call {
    time_ns: u64,
    number: i64,
    is_enter: bool,
    result: i64,
}

/// What the calls around a point's stamps were, mostly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    /// The next one sends.
    pub sends: bool,
    /// The one before received.
    pub received: bool,
}

const SEND: [&str; 5] = ["sendto", "sendmsg", "sendmmsg", "write", "writev"];
const RECEIVE: [&str; 5] = ["recvfrom", "recvmsg", "recvmmsg", "read", "readv"];
/// Waits for anything else; other calls between a stamp and its sending do not count.
const WAIT: [&str; 9] = [
    "nanosleep",
    "clock_nanosleep",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
];
/// In this share of the stamps it is so.
const MOSTLY: f64 = 0.8;
/// Fewer show nothing.
const ENOUGH: u64 = 5;
/// Calls of a thread that are kept: the first ones, which show it as well as all.
const MOST: usize = 1 << 14;

impl Calls {
    pub fn stamps(&mut self, tid: i32) {
        self.stamping.insert(tid);
    }

    pub fn kernel(&mut self, batch: &KernelBatch) {
        for (at, tid) in batch.tid.iter().copied().enumerate() {
            let is_enter = match KernelEvent::from_number(batch.event[at]) {
                Some(KernelEvent::SyscallEnter) => true,
                Some(KernelEvent::SyscallExit) => false,
                _ => continue,
            };
            if !self.stamping.contains(&tid) {
                continue;
            }
            let calls = self.by_thread.entry(tid).or_default();
            if calls.len() < MOST {
                let (time_ns, number, result) = (batch.time_ns[at], batch.arg0[at], batch.arg1[at]);
                calls.push(Call { time_ns, number, is_enter, result });
            }
        }
    }

    /// By point. `stamps`: thread, point, and raw time of each.
    pub fn around(
        &self,
        stamps: impl Iterator<Item = (i32, u32, i64)>,
        architecture: Option<Architecture>,
        clock: &HostClock,
    ) -> BTreeMap<u32, Around> {
        let numbers = |names: &[&str]| -> HashSet<i64> {
            let all = architecture.iter().flat_map(|architecture| architecture.system_calls());
            all.filter(|(name, _)| names.contains(name)).map(|(_, number)| number.into()).collect()
        };
        let (send, receive, wait) = (numbers(&SEND), numbers(&RECEIVE), numbers(&WAIT));
        let counts = |call: &&Call| [&send, &receive, &wait].iter().any(|of| of.contains(&call.number));
        // Begins of calls with whether they send, and ends with whether they received; in order of time.
        type Moments = Vec<(i64, bool)>;
        let moments = |calls: &Vec<Call>| -> (Moments, Moments) {
            let of = |is_enter: bool, is: &dyn Fn(&Call) -> bool| {
                let all = calls.iter().filter(|call| call.is_enter == is_enter).filter(counts);
                let mut all: Moments = all.map(|call| (clock.of_monotonic(call.time_ns), is(call))).collect();
                all.sort_unstable();
                all
            };
            let received = |call: &Call| receive.contains(&call.number) && call.result > 0;
            (of(true, &|call| send.contains(&call.number)), of(false, &received))
        };
        let by_thread: HashMap<i32, (Moments, Moments)> =
            self.by_thread.iter().map(|(tid, calls)| (*tid, moments(calls))).collect();
        let mut counted: BTreeMap<u32, [u64; 4]> = BTreeMap::new();
        for (tid, point, at_ns) in stamps {
            let Some((enters, exits)) = by_thread.get(&tid) else { continue };
            let next = enters.get(enters.partition_point(|(enter_ns, _)| *enter_ns < at_ns));
            // Behind the last one nothing is known.
            let Some((_, sends)) = next else { continue };
            let count = counted.entry(point).or_default();
            count[0] += 1;
            count[1] += u64::from(*sends);
            if let Some(before) = exits.partition_point(|(exit_ns, _)| *exit_ns <= at_ns).checked_sub(1) {
                count[2] += 1;
                count[3] += u64::from(exits[before].1);
            }
        }
        let mostly = |all: u64, of: u64| all >= ENOUGH && of as f64 >= MOSTLY * all as f64;
        let around = |[next, sends, last, received]: [u64; 4]| Around {
            sends: mostly(next, sends),
            received: mostly(last, received),
        };
        counted.into_iter().map(|(point, count)| (point, around(count))).collect()
    }
}
