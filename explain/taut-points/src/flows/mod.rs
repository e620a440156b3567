//! What one host's sockets sent and another's received, from system calls and descriptors alone.
//!
//! `sockets` collects what each socket sent and received, call by call. Bytes of TCP are matched by their places in the stream
//! (`streams`), datagrams of UDP by size, order and time (`datagrams`). What cannot be matched is counted.

mod datagrams;
mod sockets;
mod streams;

use std::{collections::BTreeMap, net::SocketAddr};

use foldhash::HashMap;
use taut_recording::host_numbers::host_of;

pub(crate) use self::sockets::{Chunk, SocketCall, Sockets};
use self::{datagrams::datagrams, sockets::Socket, streams::streams};

/// Ports from here on are chosen by the system (Linux: net.ipv4.ip_local_port_range).
const CHOSEN_PORTS: u16 = 32_768;
/// Clocks of two hosts are not known better.
const EARLY_NS: u64 = 5_000_000;

/// What a receiving call got: the calls that sent its first and its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossed {
    pub first: Chunk,
    pub last: Chunk,
    pub received: Chunk,
    pub is_tcp: bool,
    /// The end of the two that has a port of its own.
    pub port: u16,
}

/// Calls of one pair of hosts, the sending one first, and what of them could not be matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Receiving calls whose sending one is known.
    pub matched: u64,
    /// Those of a TCP connection of which one end's place in the stream is not known, or whose bytes do not add up.
    pub without_place: u64,
    /// Those of UDP sockets between the two for which no datagram fits.
    pub without_datagram: u64,
}

/// All that crossed from one host to another.
#[derive(Default)]
pub(crate) struct Flows {
    pub crossed: Vec<Crossed>,
    /// By hosts and whether it is TCP.
    pub counts: BTreeMap<(u16, u16, bool), Counts>,
    /// TCP connections that ended before their addresses were read.
    pub unseen: u64,
    /// By host: calls that received from a socket of which no peer on another host is known.
    pub from_elsewhere: BTreeMap<u16, u64>,
}

impl Flows {
    /// What went between sockets of different hosts. Between hosts on one clock, times are checked too, and UDP is
    /// matched.
    pub fn of(sockets: &Sockets, share_clock: impl Fn(u16, u16) -> bool) -> Flows {
        let mut flows = Flows { unseen: sockets.unseen, ..Flows::default() };
        for (sender, receiver) in connections(&sockets.all) {
            let all = receiver.received.chunks.len() as u64;
            let is_checked = share_clock(sender.host, receiver.host);
            let crossed = streams(sender, receiver).filter(|all| !is_checked || all.iter().all(Crossed::is_possible));
            let crossed = crossed.unwrap_or_default();
            let count = flows.counts.entry((sender.host, receiver.host, true)).or_default();
            count.matched += crossed.len() as u64;
            count.without_place += all - crossed.len() as u64;
            flows.crossed.extend(crossed);
        }
        for ((from, to), found) in datagrams(&sockets.all, share_clock) {
            let count = flows.counts.entry((from, to, false)).or_default();
            count.matched += found.crossed.len() as u64;
            count.without_datagram += found.without;
            flows.crossed.extend(found.crossed);
        }
        for socket in sockets.all.iter().filter(|socket| socket.may_be_of_other_hosts()) {
            *flows.from_elsewhere.entry(socket.host).or_default() += socket.received.chunks.len() as u64;
        }
        for ((_, to, _), counts) in &flows.counts {
            let of_known = counts.matched + counts.without_place + counts.without_datagram;
            flows.from_elsewhere.entry(*to).and_modify(|left| *left = left.saturating_sub(of_known));
        }
        flows
    }

    /// What was matched and what was not, a sentence each. `names`: of the hosts.
    pub fn sentences(&self, names: &[String]) -> Vec<String> {
        let name = |host: u16| names.get(usize::from(host)).map_or("another host", String::as_str);
        let mut sentences = Vec::new();
        for ((from, to, is_tcp), counts) in &self.counts {
            let (kind, lacks, why) = match is_tcp {
                true => (
                    "TCP",
                    counts.without_place,
                    "their place in the stream is not known, or they were sent before the recording",
                ),
                false => ("UDP", counts.without_datagram, "no datagram that was sent fits"),
            };
            let (from, to) = (name(*from), name(*to));
            let not = if lacks > 0 { format!(", and not of {lacks} more: {why}") } else { String::new() };
            let matched = counts.matched;
            sentences
                .push(format!("{from} → {to}: the sending call is known of {matched} calls that received {kind}{not}"));
        }
        for (host, calls) in self.from_elsewhere.iter().filter(|(_, calls)| **calls > 0) {
            let host = name(*host);
            sentences.push(format!(
                "{host}: no sender on another recorded host is known of {calls} calls that received TCP or UDP"
            ));
        }
        if self.unseen > 0 {
            let unseen = self.unseen;
            sentences.push(format!(
                "{unseen} connections ended before their addresses were read: what they moved is not matched"
            ));
        }
        sentences
    }

    /// By the receiving call's thread and begin: the sending call's.
    pub fn senders(&self) -> HashMap<(i32, u64), (i32, u64)> {
        let of = |crossed: &Crossed| {
            ((crossed.received.tid, crossed.received.start_ns), (crossed.first.tid, crossed.first.start_ns))
        };
        self.crossed.iter().map(of).collect()
    }
}

/// Both ends of connections between hosts, each way.
fn connections(sockets: &[Socket]) -> Vec<(&Socket, &Socket)> {
    let tcp = || sockets.iter().filter(|socket| socket.is_tcp && socket.may_be_of_other_hosts());
    let mut ends: HashMap<(SocketAddr, SocketAddr), Vec<&Socket>> = HashMap::default();
    for socket in tcp() {
        if let Some(remote) = socket.remote {
            ends.entry((socket.local, remote)).or_default().push(socket);
        }
    }
    let mut both = Vec::new();
    for receiver in tcp() {
        let Some(remote) = receiver.remote else { continue };
        let is_alone = ends.get(&(receiver.local, remote)).is_some_and(|all| all.len() == 1);
        // An address that was used twice says not which one it was.
        match ends.get(&(remote, receiver.local)).map(Vec::as_slice) {
            Some([sender]) if is_alone && sender.host != receiver.host => both.push((*sender, receiver)),
            _ => {}
        }
    }
    both
}

/// The port by which a program is reached; where both are chosen by the system, the receiver's.
fn port(sender: &Socket, receiver: &Socket) -> u16 {
    let ports = [receiver.local.port(), sender.local.port()];
    ports.into_iter().find(|port| (1..CHOSEN_PORTS).contains(port)).unwrap_or(ports[0])
}

impl Crossed {
    /// Bytes that would be there long before they were sent are others: something moved them that is not recorded.
    fn is_possible(&self) -> bool {
        self.first.start_ns <= self.received.end_ns.saturating_add(EARLY_NS)
    }

    /// The sender's host, and the receiver's.
    pub fn hosts(&self) -> (u16, u16) {
        (host_of(self.first.tid), host_of(self.received.tid))
    }

    /// "tcp:6379".
    pub fn name(&self) -> String {
        format!("{}:{}", if self.is_tcp { "tcp" } else { "udp" }, self.port)
    }
}
