//! What waited for a thread while it was busy: of its waits that found something at once, who had sent it, and when.
//!
//! One read may take several sends, and a part of one. What lies between two descriptors is a queue: each sending adds its bytes, and each
//! receiving call takes some. Whenever the thread slept the queue was empty.

use std::collections::BTreeMap;

use taut_timelines::{Call, Expiry, SystemCall, Timeline, Transfer};

use super::{
    run::Run,
    waits::{Kernel, Waker},
};

/// Senders that woke a thread in fewer of its waits than one of so many are no peers of it.
const PEER_SHARE: usize = 10;

/// What one receiving call takes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Takes {
    Bytes,
    /// Datagrams: of one that is too long for the call the rest is gone.
    One,
    /// An eventfd adds up.
    All,
}

/// One message, or a part of a stream.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at_ns: u64,
    tid: i32,
    /// `None` of calls that say how many messages they send, and not of how many bytes.
    bytes: Option<u64>,
}

/// What peers send to the thread by one of its descriptors, in order of time.
struct Backlog {
    /// `None`: the recording does not say by which.
    descriptor: Option<u64>,
    takes: Takes,
    sent: Vec<Sent>,
    /// The first of which nothing is received.
    next: usize,
    /// Bytes of the one before that are not.
    rest: u64,
}

impl Backlog {
    /// That sending woke the thread. Whether it is one of these: then nothing but it is there.
    fn is_woken_by(&mut self, tid: i32, at_ns: u64) -> bool {
        let until = self.sent.partition_point(|sent| sent.at_ns <= at_ns);
        let last = self.sent[..until].iter().rposition(|sent| sent.tid == tid).filter(|last| *last >= self.next);
        if let Some(last) = last {
            (self.next, self.rest) = (last, 0);
        }
        last.is_some()
    }

    fn is_by(&self, call: &SystemCall) -> bool {
        self.descriptor == Some(call.arg0)
    }

    /// Takes what that call received.
    fn receive(&mut self, call: &SystemCall) {
        let there = self.sent.partition_point(|sent| sent.at_ns <= call.end_ns);
        let received = u64::try_from(call.result).unwrap_or(0);
        let several = match (call.id.transfer(), self.takes) {
            (Some(Transfer::ReceivesSeveral), _) => Some(received as usize),
            (_, Takes::One) => Some(1),
            (_, Takes::All) => Some(usize::MAX),
            (_, Takes::Bytes) => None,
        };
        if let Some(several) = several {
            (self.next, self.rest) = (self.next.saturating_add(several).min(there).max(self.next), 0);
            return;
        }
        let of_rest = received.min(self.rest);
        self.rest -= of_rest;
        let mut left = received - of_rest;
        while left > 0 && self.next < there {
            let bytes = self.sent[self.next].bytes.unwrap_or(left);
            self.next += 1;
            self.rest = bytes.saturating_sub(left);
            left = left.saturating_sub(bytes);
        }
    }

    fn next(&self) -> Option<Sent> {
        self.sent.get(self.next).copied()
    }
}

/// Says of those that did not sleep what they found: a timer that fired while the thread was busy, or what a peer sent meanwhile.
pub(super) fn confirm(runs: &mut [Run], timeline: &Timeline, kernel: Kernel<'_>) {
    if !runs.iter().any(|run| run.is_ready) {
        return;
    }
    let mut backlogs = backlogs(runs, timeline, kernel);
    let mut last_start_ns = 0;
    for at in 0..runs.len() {
        let received = receives(runs, at, timeline);
        let run = &mut runs[at];
        let first = first_received(&mut backlogs, run, received);
        if run.is_ready {
            if let Some(expiry) = timeline.expiry(last_start_ns, run.from_ns) {
                let Expiry { asked_ns, armed_ns, address, is_relative, .. } = *expiry;
                run.waker = Waker::Timer { asked_ns, armed_ns, address, is_relative };
                run.release_ns = Some(asked_ns.min(run.start_ns));
            } else if let Some(Sent { at_ns, tid, .. }) = first {
                run.waker = Waker::Thread { tid, at_ns };
                run.release_ns = Some(at_ns);
            } else {
                // The rest of what an earlier one received a part of, or something else.
                continue;
            }
            run.is_ready = false;
        }
        last_start_ns = run.start_ns;
    }
}

/// Takes what the run received out of the backlogs. The first of it that was there when the run began, and that is not the rest of
/// something.
fn first_received<'a>(
    backlogs: &mut [Backlog],
    run: &Run,
    received: impl Iterator<Item = &'a SystemCall> + Clone,
) -> Option<Sent> {
    let mut first: Option<Sent> = None;
    for backlog in backlogs {
        let is_woken = match run.waker {
            Waker::Thread { tid, at_ns } if !run.is_ready => backlog.is_woken_by(tid, at_ns),
            _ => false,
        };
        let before = (backlog.next, backlog.next().filter(|sent| sent.at_ns <= run.start_ns));
        let its: Vec<&SystemCall> = received.clone().filter(|call| backlog.is_by(call)).collect();
        // What is received by calls that are not recorded goes by one a run.
        let is_hidden = its.is_empty() && (is_woken || backlog.descriptor.is_none() && run.is_ready);
        if is_hidden && before.1.is_some() {
            backlog.next += 1;
        }
        its.into_iter().for_each(|call| backlog.receive(call));
        if let Some(sent) = before.1.filter(|_| backlog.next > before.0) {
            first = Some(first.filter(|first| first.at_ns <= sent.at_ns).unwrap_or(sent));
        }
    }
    first
}

/// Calls of that run that received something, its wait among them.
fn receives<'a>(
    runs: &[Run],
    at: usize,
    timeline: &'a Timeline,
) -> impl Iterator<Item = &'a SystemCall> + Clone + use<'a> {
    let until_ns = runs.get(at + 1).map_or(u64::MAX, |next| next.from_ns);
    let first = timeline.calls.partition_point(|call| call.start_ns < runs[at].from_ns);
    let within = timeline.calls[first..].iter().take_while(move |call| call.start_ns < until_ns);
    let is_one = |call: &&SystemCall| {
        let receives = matches!(call.id.transfer(), Some(Transfer::Receives | Transfer::ReceivesSeveral));
        receives && call.result > 0 && call.end_ns != u64::MAX
    };
    within.filter(is_one)
}

/// By descriptor of the thread: what those sent who woke it so, by which of theirs.
fn backlogs(runs: &[Run], timeline: &Timeline, kernel: Kernel<'_>) -> Vec<Backlog> {
    let mut woken = 0;
    let mut ways: BTreeMap<(i32, u64), BTreeMap<Option<u64>, usize>> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        let Waker::Thread { tid, at_ns } = run.waker else { continue };
        woken += 1;
        let sender = kernel.timelines.threads.get(&tid);
        let Some(call) = sender.and_then(|sender| sender.call(at_ns)).filter(|call| is_send(call)) else { continue };
        let descriptor = receives(runs, at, timeline).next().map(|call| call.arg0);
        *ways.entry((tid, call.arg0)).or_default().entry(descriptor).or_default() += 1;
    }
    ways.retain(|_, descriptors| descriptors.values().sum::<usize>() * PEER_SHARE >= woken);
    let mut of_descriptor: BTreeMap<Option<u64>, Vec<Sent>> = BTreeMap::new();
    for ((tid, descriptor), descriptors) in ways {
        let Some(sender) = kernel.timelines.threads.get(&tid) else { continue };
        let Some((main, _)) = descriptors.into_iter().max_by_key(|(_, count)| *count) else { continue };
        let sends = sender.calls.iter().filter(|call| is_send(call) && call.arg0 == descriptor && call.result > 0);
        of_descriptor.entry(main).or_default().extend(sends.flat_map(|call| sent(tid, call)));
    }
    let of = |(descriptor, mut sent): (Option<u64>, Vec<Sent>)| {
        sent.sort_by_key(|sent| sent.at_ns);
        let time_ns = runs.last().map_or(0, |run| run.start_ns);
        let takes = descriptor.map_or(Takes::Bytes, |descriptor| takes(runs, descriptor, time_ns, kernel));
        Backlog { descriptor, takes, sent, next: 0, rest: 0 }
    };
    of_descriptor.into_iter().map(of).collect()
}

fn takes(runs: &[Run], descriptor: u64, time_ns: u64, kernel: Kernel<'_>) -> Takes {
    let pid = runs.first().and_then(|run| kernel.objects.pid(run.tid));
    let behind = pid.and_then(|pid| kernel.objects.behind(pid, descriptor, time_ns)).unwrap_or_default();
    match behind.split([' ', ':']).next() {
        Some("eventfd") => Takes::All,
        Some("udp") => Takes::One,
        _ => Takes::Bytes,
    }
}

/// What that call sent.
fn sent(tid: i32, call: &SystemCall) -> impl Iterator<Item = Sent> + use<> {
    let result = u64::try_from(call.result).unwrap_or(0);
    let (count, bytes) = match call.id.transfer() {
        Some(Transfer::SendsSeveral) => (result as usize, None),
        _ => (1, Some(result)),
    };
    std::iter::repeat_n(Sent { at_ns: call.start_ns, tid, bytes }, count)
}

fn is_send(call: &SystemCall) -> bool {
    call.id.kind() == Call::Send
}

#[cfg(test)]
mod tests {
    use taut_recording::Architecture;
    use taut_timelines::CallNumbers;

    use super::*;

    fn backlog(takes: Takes, sent: &[u64]) -> Backlog {
        let sent = (1..).zip(sent).map(|(n, bytes)| Sent { at_ns: 10 * n, tid: 1, bytes: Some(*bytes) });
        Backlog { descriptor: Some(5), takes, sent: sent.collect(), next: 0, rest: 0 }
    }

    /// How many sendings are received, at least in part, after each read of so many bytes.
    fn received(mut backlog: Backlog, reads: &[i32]) -> Vec<usize> {
        let id = CallNumbers::of(Some(Architecture::X86_64)).id(0);
        let read = |bytes: &i32| {
            let call = SystemCall { start_ns: 900, end_ns: 999, id, result: *bytes, arg0: 5, arg1: 0, value: 0 };
            backlog.receive(&call);
            backlog.next
        };
        reads.iter().map(read).collect()
    }

    #[test]
    fn a_read_takes_as_many_sends_as_their_bytes_are() {
        assert_eq!(received(backlog(Takes::Bytes, &[8, 8, 24, 8]), &[8, 32, 8, 8]), [1, 3, 4, 4]);
    }

    #[test]
    fn the_rest_of_a_message_is_not_the_next_one() {
        // A header and a body each; then the first half of one with the second half of the one before.
        assert_eq!(received(backlog(Takes::Bytes, &[20, 20, 20, 20]), &[4, 16, 4, 26, 30]), [1, 1, 2, 3, 4]);
    }

    #[test]
    fn a_datagram_is_one_however_much_of_it_is_taken_and_an_eventfd_adds_up() {
        assert_eq!(received(backlog(Takes::One, &[20, 20, 20]), &[8, 8, 8]), [1, 2, 3]);
        assert_eq!(received(backlog(Takes::All, &[8, 8, 8]), &[8]), [3]);
    }

    #[test]
    fn what_woke_a_thread_that_slept_is_all_that_is_there() {
        let mut backlog = backlog(Takes::Bytes, &[8, 8, 8]);
        backlog.rest = 3;
        assert!(!backlog.is_woken_by(2, 25) && backlog.is_woken_by(1, 25));
        assert_eq!((backlog.next, backlog.rest), (1, 0));
        assert!(!backlog.is_woken_by(1, 15), "received before");
    }
}
