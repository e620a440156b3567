//! System calls around stamps: whether a thread sends right after it stamped a point, or had received right before. A message leaves a
//! host at a point of the former kind and reaches one at the latter, whatever the clocks show. And calls on sockets, of all threads.

use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

use foldhash::{HashMap, HashSet};
use taut_recording::{Architecture, KernelBatch, KernelEvent};
use taut_timelines::{Call as Kind, CallNumbers, Transfer};

use super::host_clock::HostClock;
use crate::flows::SocketCall;

/// Calls by their numbers.
#[derive(Default)]
pub(super) struct Calls {
    /// Threads that stamped by now; of others all calls but those on sockets are not kept.
    stamping: HashSet<i32>,
    by_thread: HashMap<i32, Vec<Call>>,
    /// By thread, begins and ends of those that may be on a socket; in the order of the batches, each of which is of one CPU.
    on_sockets: BTreeMap<i32, Vec<End>>,
}

/// The begin of a call, or its end.
#[derive(Clone)]
struct End {
    number: u16,
    is_enter: bool,
    time_ns: u64,
    /// The descriptor, or the result.
    value: i64,
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
            let (time_ns, number) = (batch.time_ns[at], batch.arg0[at]);
            if let Some(number) = on_socket(number) {
                let of_thread = self.on_sockets.entry(tid).or_default();
                of_thread.push(End { number, is_enter, time_ns, value: batch.arg1[at] });
            }
            if !self.stamping.contains(&tid) {
                continue;
            }
            let calls = self.by_thread.entry(tid).or_default();
            if calls.len() < MOST {
                calls.push(Call { time_ns, number, is_enter, result: batch.arg1[at] });
            }
        }
    }

    /// All that ended.
    pub fn on_sockets(&self, architecture: Option<Architecture>) -> Vec<SocketCall> {
        let numbers = CallNumbers::of(architecture);
        let call = |tid: i32, two: &[End]| {
            let [enter, exit] = two else { return None };
            let is_one = enter.number == exit.number && enter.is_enter && !exit.is_enter;
            is_one.then(|| SocketCall {
                tid,
                id: numbers.id(enter.number.into()),
                descriptor: enter.value as u64,
                start_ns: enter.time_ns,
                end_ns: exit.time_ns,
                result: exit.value,
            })
        };
        let mut calls = Vec::new();
        for (tid, ends) in &self.on_sockets {
            let mut ends = Cow::Borrowed(ends.as_slice());
            // Out of order are those of a thread that moved to another CPU.
            if !ends.is_sorted_by_key(|end| end.time_ns) {
                ends.to_mut().sort_by_key(|end| end.time_ns);
            }
            calls.extend(ends.windows(2).filter_map(|two| call(*tid, two)));
        }
        calls
    }

    /// By point. `stamps`: thread, point, and raw time of each.
    pub fn around(
        &self,
        stamps: impl Iterator<Item = (i32, u32, i64)>,
        architecture: Option<Architecture>,
        clock: &HostClock,
    ) -> BTreeMap<u32, Around> {
        let numbers = CallNumbers::of(architecture);
        let sends =
            |call: &Call| matches!(numbers.id(call.number).transfer(), Some(Transfer::Sends | Transfer::SendsSeveral));
        let receives = |call: &Call| {
            matches!(numbers.id(call.number).transfer(), Some(Transfer::Receives | Transfer::ReceivesSeveral))
        };
        // Other calls between a stamp and its sending do not count, but waits for anything else do.
        let waits = |call: &Call| matches!(numbers.id(call.number).kind(), Kind::Sleep | Kind::Poll);
        let counts = |call: &&Call| sends(call) || receives(call) || waits(call);
        // Begins of calls with whether they send, and ends with whether they received; in order of time.
        type Moments = Vec<(i64, bool)>;
        let moments = |calls: &Vec<Call>| -> (Moments, Moments) {
            let of = |is_enter: bool, is: &dyn Fn(&Call) -> bool| {
                let all = calls.iter().filter(|call| call.is_enter == is_enter).filter(counts);
                let mut all: Moments = all.map(|call| (clock.of_monotonic(call.time_ns), is(call))).collect();
                all.sort_unstable();
                all
            };
            let received = |call: &Call| receives(call) && call.result > 0;
            (of(true, &sends), of(false, &received))
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

/// The number, if it is of a call on sockets on any architecture: which one recorded is not known yet.
fn on_socket(number: i64) -> Option<u16> {
    static NUMBERS: LazyLock<Vec<bool>> = LazyLock::new(|| {
        let mut numbers = Vec::new();
        for architecture in [Architecture::X86_64, Architecture::Aarch64] {
            let of = CallNumbers::of(Some(architecture));
            for (_, number) in architecture.system_calls() {
                let number = usize::from(number);
                numbers.resize(numbers.len().max(number + 1), false);
                numbers[number] |= of.id(number as i64).transfer().is_some();
            }
        }
        numbers
    });
    let number = u16::try_from(number).ok()?;
    NUMBERS.get(usize::from(number)).is_some_and(|is| *is).then_some(number)
}
