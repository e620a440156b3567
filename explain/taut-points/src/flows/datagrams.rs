//! Datagrams of UDP, by size, order and time, where the hosts' clocks are known.
//!
//! Nothing that is recorded of a datagram says where it goes, or which one it is. Each that was received is taken for the last one
//! of its size that was sent before and that no later one is taken for: a lost one has none then, and a burst keeps its order. Where
//! addresses do not say which sockets belong together, the times must: intervals between what was received follow those between what was
//! sent, or all take nearly the same time. So do sizes that change, if what was sent in a row was received in a row: that holds on a busy
//! machine, too, where a receiver that waits for a CPU shifts all times.

use std::collections::BTreeMap;

use super::{
    Crossed, port,
    sockets::{Chunk, Socket},
};

/// What a host received from another.
#[derive(Default)]
pub(super) struct Found {
    pub crossed: Vec<Crossed>,
    /// Receiving calls of sockets that belong together for which no datagram fits.
    pub without: u64,
}

/// What says that two sockets belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Addresses,
    /// One is connected to the other's port, and that one takes any address.
    Port,
    /// Nothing but when what was sent and what was received.
    Times,
}

/// A clock may be wrong by so much that a datagram seems to arrive before it was sent; the first that fits clearly better than those
/// before it is used.
const EARLY_NS: [u64; 4] = [0, 50_000, 500_000, 5_000_000];
/// Sockets belong together if so many datagrams fit, and so large a share of what was received.
const LEAST: usize = 20;
const SHARE: f64 = 0.8;
/// What was received follows what was sent: the correlation of their intervals …
const FOLLOWS: f64 = 0.5;
/// … or, where those hardly differ, the delays do so by less than this share of them.
const STEADY: f64 = 0.1;
/// A datagram that takes longer is another one.
const LONGEST_NS: u64 = 5_000_000_000;
/// So many of other sizes are passed over at most.
const OTHER_SIZES: usize = 64;

type Pair = (Chunk, Chunk);

/// `share_clock`: whether the times of two hosts are of one clock.
pub(super) fn datagrams(sockets: &[Socket], share_clock: impl Fn(u16, u16) -> bool) -> BTreeMap<(u16, u16), Found> {
    let udp = || sockets.iter().filter(|socket| !socket.is_tcp && socket.may_be_of_other_hosts());
    let mut all: BTreeMap<(u16, u16), Found> = BTreeMap::new();
    for receiver in udp().filter(|socket| !socket.received.chunks.is_empty()) {
        let of = |sender: &&Socket| {
            sender.host != receiver.host && !sender.sent.chunks.is_empty() && share_clock(sender.host, receiver.host)
        };
        let mut fits: Vec<(By, &Socket, Vec<Pair>)> = udp()
            .filter(of)
            .filter_map(|sender| {
                let by = belongs(sender, receiver)?;
                // Of a known peer any number may be lost; of another socket most must fit.
                let can_be = sender.sent.chunks.len() as f64 >= SHARE * receiver.received.chunks.len() as f64;
                if by != By::Addresses && !can_be {
                    return None;
                }
                let pairs = matched(sender, receiver);
                is_enough(by, &pairs, sender, receiver).then_some((by, sender, pairs))
            })
            .collect();
        fits.sort_by_key(|(by, ..)| *by);
        let Some(best) = fits.first().map(|(by, ..)| *by) else { continue };
        fits.retain(|(by, ..)| *by == best);
        // Two that fit by their times alone say nothing.
        if best == By::Times && fits.len() > 1 {
            continue;
        }
        let mut taken: BTreeMap<(u64, i32), Crossed> = BTreeMap::new();
        for (_, sender, pairs) in &fits {
            for (sent, received) in pairs {
                let one = Crossed {
                    first: *sent,
                    last: *sent,
                    received: *received,
                    is_tcp: false,
                    port: port(sender, receiver),
                };
                let key = (received.start_ns, received.tid);
                if taken.get(&key).is_none_or(|known| sent.start_ns > known.first.start_ns) {
                    taken.insert(key, one);
                }
            }
        }
        let without = receiver.received.chunks.len() - taken.len();
        for crossed in taken.into_values() {
            all.entry((crossed.hosts().0, receiver.host)).or_default().crossed.push(crossed);
        }
        if let Some((_, sender, _)) = fits.first() {
            all.entry((sender.host, receiver.host)).or_default().without += without as u64;
        }
    }
    all
}

/// `None`: the addresses say that they do not.
fn belongs(sender: &Socket, receiver: &Socket) -> Option<By> {
    let way = |connected: &Socket, other: &Socket| {
        let remote = connected.remote?;
        Some(match other.local.ip().is_unspecified() {
            _ if remote == other.local => Some(By::Addresses),
            true if remote.port() == other.local.port() => Some(By::Port),
            _ => None,
        })
    };
    match (way(sender, receiver), way(receiver, sender)) {
        (Some(there), Some(back)) => Some(there?.min(back?)),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => Some(By::Times),
    }
}

/// Each that was received with the one that was sent.
fn matched(sender: &Socket, receiver: &Socket) -> Vec<Pair> {
    let mut best: Option<(i64, Vec<Pair>)> = None;
    for early_ns in EARLY_NS {
        let pairs = matched_by(&sender.sent.chunks, &receiver.received.chunks, early_ns);
        let spread_ns = spread(&pairs);
        let is_better = best.as_ref().is_none_or(|(known_ns, known)| {
            pairs.len() > known.len() + known.len() / 10 || pairs.len() >= known.len() && spread_ns < known_ns / 2
        });
        if is_better {
            best = Some((spread_ns, pairs));
        }
    }
    best.map(|(_, pairs)| pairs).unwrap_or_default()
}

fn matched_by(sent: &[Chunk], received: &[Chunk], early_ns: u64) -> Vec<Pair> {
    let (mut left, mut pairs) = (sent.len(), Vec::new());
    for received in received.iter().rev() {
        let end_ns = received.end_ns.saturating_add(early_ns);
        while left > 0 && sent[left - 1].start_ns > end_ns {
            left -= 1;
        }
        let mut near = (0..left).rev().take(OTHER_SIZES).take_while(|at| end_ns - sent[*at].start_ns < LONGEST_NS);
        if let Some(at) = near.find(|at| sent[*at].bytes == received.bytes) {
            pairs.push((sent[at], *received));
            left = at;
        }
    }
    pairs.reverse();
    pairs
}

/// Between the 10th and the 90th of 100 delays.
fn spread(pairs: &[Pair]) -> i64 {
    let delay = |(sent, received): &Pair| received.end_ns.wrapping_sub(sent.start_ns) as i64;
    let mut delays: Vec<i64> = pairs.iter().map(delay).collect();
    delays.sort_unstable();
    let at = |tenth: usize| delays.get(delays.len() * tenth / 10).copied().unwrap_or(0);
    at(9) - at(1)
}

fn is_enough(by: By, pairs: &[Pair], sender: &Socket, receiver: &Socket) -> bool {
    let is_most = pairs.len() as f64 >= SHARE * receiver.received.chunks.len() as f64;
    match by {
        By::Addresses => !pairs.is_empty(),
        By::Port => is_most,
        By::Times => {
            let is_one_stream = || follows(pairs) >= FOLLOWS || is_steady(pairs) || is_in_a_row(pairs, sender);
            is_most && pairs.len() >= LEAST && is_one_stream()
        }
    }
}

/// Whether datagrams whose size is another than that of the one before were received in the row in which they were sent.
fn is_in_a_row(pairs: &[Pair], sender: &Socket) -> bool {
    let sent = &sender.sent.chunks;
    let place = |of: &Chunk| sent.partition_point(|other| other.start_ns < of.start_ns);
    let changes = || pairs.windows(2).filter(|two| two[0].0.bytes != two[1].0.bytes);
    let in_a_row = changes().filter(|two| place(&two[1].0) == place(&two[0].0) + 1).count();
    changes().count() >= LEAST && in_a_row as f64 >= SHARE * changes().count() as f64
}

fn is_steady(pairs: &[Pair]) -> bool {
    let mut steps: Vec<u64> = pairs.windows(2).map(|two| two[1].0.start_ns - two[0].0.start_ns).collect();
    steps.sort_unstable();
    let step_ns = steps.get(steps.len() / 2).copied().unwrap_or(0);
    (spread(pairs) as f64) < STEADY * step_ns as f64
}

/// The correlation of the intervals between what was sent with those between what was received.
fn follows(pairs: &[Pair]) -> f64 {
    let steps = pairs.windows(2).map(|two| {
        let ((sent, received), (next_sent, next_received)) = (two[0], two[1]);
        let step = |from: u64, to: u64| to.wrapping_sub(from) as i64 as f64;
        (step(sent.start_ns, next_sent.start_ns), step(received.end_ns, next_received.end_ns))
    });
    let steps: Vec<(f64, f64)> = steps.collect();
    let count = steps.len().max(1) as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| steps.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|step| step.0), mean(&|step| step.1));
    let (xy, xx, yy) = (
        mean(&|step| (step.0 - x) * (step.1 - y)),
        mean(&|step| (step.0 - x).powi(2)),
        mean(&|step| (step.1 - y).powi(2)),
    );
    if xx > 0.0 && yy > 0.0 { xy / (xx * yy).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use taut_recording::host_numbers::thread_of;

    use super::*;
    use crate::flows::sockets::Stream;

    fn chunk(host: u16, at_ns: u64, bytes: u64) -> Chunk {
        Chunk { tid: thread_of(host, 10), start_ns: at_ns, end_ns: at_ns + 5_000, bytes }
    }

    fn socket(host: u16, local: &str, remote: &str) -> Socket {
        let remote = (!remote.is_empty()).then(|| remote.parse().unwrap());
        let local = local.parse().unwrap();
        Socket { host, is_tcp: false, local, remote, sent: Stream::default(), received: Stream::default() }
    }

    /// nth of a fixed sequence, below `most`.
    fn some(nth: u64, most: u64) -> u64 {
        (nth + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) % most
    }

    /// A sender of host 0 at about 1 kHz, and a receiver of host 1; every 7th datagram is lost. The indices of those that arrive.
    fn link(jitter_ns: u64, ends: [(&str, &str); 2]) -> (Vec<Socket>, Vec<u64>) {
        let [(from, to), (at, of)] = ends;
        let (mut sender, mut receiver) = (socket(0, from, to), socket(1, at, of));
        let mut arrive = Vec::new();
        for nth in 0..200 {
            let sent_ns = 1_000_000 * nth + some(nth, jitter_ns);
            sender.sent.chunks.push(chunk(0, sent_ns, 64));
            if nth % 7 != 3 {
                receiver.received.chunks.push(chunk(1, sent_ns + 60_000 + some(3 * nth, 40_000), 64));
                arrive.push(sent_ns);
            }
        }
        (vec![sender, receiver], arrive)
    }

    fn found(sockets: &[Socket]) -> (Vec<u64>, u64) {
        let all = datagrams(sockets, |_, _| true);
        let of = all.get(&(0, 1));
        let sent = of.into_iter().flat_map(|of| &of.crossed).map(|of| of.first.start_ns).collect();
        (sent, of.map_or(0, |of| of.without))
    }

    const CONNECTED: [(&str, &str); 2] = [("10.0.0.1:47000", "10.0.0.2:5005"), ("10.0.0.2:5005", "")];
    const BY_PORT: [(&str, &str); 2] = [("10.0.0.1:47000", "10.0.0.2:5005"), ("0.0.0.0:5005", "")];
    const OPEN: [(&str, &str); 2] = [("0.0.0.0:47000", ""), ("0.0.0.0:5005", "")];

    #[test]
    fn a_lost_datagram_moves_no_other() {
        for ends in [CONNECTED, BY_PORT, OPEN] {
            let (sockets, arrive) = link(300_000, ends);
            assert_eq!(found(&sockets), (arrive, 0), "{ends:?}");
        }
    }

    #[test]
    fn sizes_that_change_say_what_belongs_together_where_a_busy_receiver_shifts_all_times() {
        let link = |sizes: u64, of_another: bool| {
            let (mut sender, mut receiver) = (socket(0, OPEN[0].0, ""), socket(1, OPEN[1].0, ""));
            for nth in 0..200 {
                let bytes = |seed: u64| 64 + 8 * some(nth + seed, sizes);
                sender.sent.chunks.push(chunk(0, 1_000_000 * nth, bytes(0)));
                let received_ns = 1_000_000 * nth + 20_000 + some(7 * nth, 900_000);
                receiver.received.chunks.push(chunk(1, received_ns, bytes(if of_another { 7_000 } else { 0 })));
            }
            found(&[sender, receiver]).0.len()
        };
        assert_eq!((link(12, false), link(1, false), link(12, true)), (200, 0, 0));
    }

    #[test]
    fn open_sockets_of_a_steady_sender_belong_together() {
        // The sender's intervals differ by less than the delays.
        let (sockets, arrive) = link(2_000, OPEN);
        assert_eq!(found(&sockets), (arrive, 0));
    }

    #[test]
    fn a_burst_keeps_its_order() {
        let (mut sender, mut receiver) = (socket(0, CONNECTED[0].0, CONNECTED[0].1), socket(1, CONNECTED[1].0, ""));
        for nth in 0..9 {
            sender.sent.chunks.push(chunk(0, 10_000_000 * (nth / 3) + 6_000 * (nth % 3), 64));
            receiver.received.chunks.push(chunk(1, 10_000_000 * (nth / 3) + 900_000 + 6_000 * (nth % 3), 64));
        }
        let sent = sender.sent.chunks.iter().map(|chunk| chunk.start_ns).collect();
        assert_eq!(found(&[sender, receiver]), (sent, 0));
    }

    #[test]
    fn open_sockets_that_only_keep_the_same_rate_do_not_belong_together() {
        let (mut sockets, _) = link(300_000, OPEN);
        // The receiver's datagrams come from elsewhere, at the same rate and of the same size.
        sockets[1].received.chunks =
            (0..200).map(|nth| chunk(1, 1_000_000 * nth + 500_000 + some(11 * nth + 5, 300_000), 64)).collect();
        assert_eq!(found(&sockets), (Vec::new(), 0));
    }

    #[test]
    fn other_ports_and_sizes_are_other_datagrams() {
        let (mut sockets, _) = link(300_000, [("10.0.0.1:47000", "10.0.0.2:5006"), ("10.0.0.2:5005", "")]);
        assert_eq!(found(&sockets), (Vec::new(), 0));
        sockets[0].remote = sockets[1].local.into();
        sockets[1].received.chunks.iter_mut().for_each(|chunk| chunk.bytes = 65);
        assert_eq!(found(&sockets), (Vec::new(), 0));
    }

    #[test]
    fn a_clock_that_is_ahead_by_less_than_a_period_moves_no_datagram() {
        let (mut sockets, arrive) = link(300_000, CONNECTED);
        sockets[1].received.chunks.iter_mut().for_each(|chunk| {
            chunk.start_ns = chunk.start_ns.saturating_sub(300_000);
            chunk.end_ns = chunk.end_ns.saturating_sub(300_000);
        });
        assert_eq!(found(&sockets), (arrive, 0));
    }
}
