//! System calls and descriptors → sockets with what each sent and received.
//!
//! A descriptor's number is used again and again. Its lives begin where a call accepts, connects or opens it; what the recorder read of
//! it within a life says which socket that is. Descriptors of one socket, as after a fork, are one by its inode.

use std::{collections::BTreeMap, net::SocketAddr};

use foldhash::HashMap;
use taut_recording::{
    Object, ObjectKind,
    host_numbers::{host_of, thread_of},
};
use taut_timelines::{CallId, Objects, Transfer};

/// A call on a descriptor. Times are of one clock for each host, and the same as of its descriptors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketCall {
    pub tid: i32,
    pub id: CallId,
    pub descriptor: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub result: i64,
}

/// A call that moved bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub tid: i32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
}

/// One way of a socket.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// In order of their begins.
    pub chunks: Vec<Chunk>,
    /// Bytes before the first of them; `None`: not known, or what the kernel counts and the calls do not add up.
    pub before: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Socket {
    pub host: u16,
    pub is_tcp: bool,
    pub local: SocketAddr,
    /// `None` where it is not connected.
    pub remote: Option<SocketAddr>,
    pub sent: Stream,
    pub received: Stream,
}

/// All sockets of a recording with an address.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    /// In order of host and inode.
    pub all: Vec<Socket>,
    /// Connections that moved bytes and ended before their addresses were read.
    pub unseen: u64,
}

impl Socket {
    /// Whether its peer may be on another host.
    pub fn may_be_of_other_hosts(&self) -> bool {
        !self.local.ip().is_loopback() && self.remote.is_none_or(|remote| !remote.ip().is_loopback())
    }
}

/// A descriptor's number stands for another one from then on.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Birth {
    at_ns: u64,
    /// The recorder may have seen it since: the call that makes it returns later.
    named_ns: u64,
    is_socket: bool,
}

/// By so much: a thread may lose its CPU in between.
const RETURNS_NS: u64 = 20_000_000;

impl Birth {
    fn by_return(start_ns: u64, end_ns: u64, is_socket: bool) -> Birth {
        Birth { at_ns: end_ns, named_ns: start_ns.max(end_ns.saturating_sub(RETURNS_NS)), is_socket }
    }

    fn of_socket(at_ns: u64) -> Birth {
        Birth { at_ns, named_ns: at_ns, is_socket: true }
    }
}

/// What was done with a descriptor of that number.
#[derive(Default)]
struct Uses {
    births: Vec<Birth>,
    sent: Vec<Chunk>,
    received: Vec<Chunk>,
    /// When a call moved bytes that are not known.
    several: Vec<(u64, bool)>,
}

/// A socket as its descriptors' lives add to it.
#[derive(Default)]
struct Parts {
    name: Option<Name>,
    is_born: bool,
    sent: Vec<Chunk>,
    received: Vec<Chunk>,
    has_unknown: [bool; 2],
    /// Written and read until then.
    places: [Vec<(u64, u64)>; 2],
}

/// Of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Sent,
    Received,
}

/// A call that receives waits, and takes its bytes at its end: within this time.
const TAKES_NS: u64 = 500_000;

/// "tcp 10.0.0.1:80→10.0.0.2:5123 [77]".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    is_tcp: bool,
    local: SocketAddr,
    remote: Option<SocketAddr>,
    inode: u64,
}

/// What is behind "tcp …[77]", "socket:[77]" or "pipe:[77]".
fn inode(text: &str) -> Option<&str> {
    text.rsplit_once('[').map(|(_, inode)| inode)
}

impl Name {
    fn of(text: &str) -> Option<Name> {
        let (kind, rest) = text.split_once(' ')?;
        let (ends, inode) = rest.split_once(' ')?;
        let (local, remote) = ends.split_once('→')?;
        let address = |text: &str| -> Option<SocketAddr> {
            let address: SocketAddr = text.parse().ok()?;
            // One of IPv4 on a socket of IPv6 is the same to its peer.
            Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
        };
        let inode = inode.trim_matches(['[', ']']).parse().ok()?;
        let remote = address(remote)?;
        let is_tcp = match kind {
            "tcp" => true,
            "udp" => false,
            _ => return None,
        };
        let remote = Some(remote).filter(|remote| remote.port() != 0);
        Some(Name { is_tcp, local: address(local)?, remote, inode })
    }
}

impl Sockets {
    /// From the calls of all threads, in any order.
    pub fn of(calls: impl Iterator<Item = SocketCall>, objects: &Objects) -> Sockets {
        let mut uses: HashMap<(i32, u64), Uses> = HashMap::default();
        for call in calls {
            add(&mut uses, &call, objects);
        }
        let mut parts: BTreeMap<(u16, u64), Parts> = BTreeMap::new();
        let mut unseen = 0;
        for ((pid, descriptor), mut uses) in uses {
            uses.sort();
            let names = in_order(objects.behind_descriptor(pid, descriptor));
            let places = in_order(objects.places(pid, descriptor));
            let births = std::iter::once(Birth::default()).chain(uses.births.iter().copied());
            let never = Birth { at_ns: u64::MAX, named_ns: u64::MAX, is_socket: false };
            let ends = uses.births.iter().copied().chain([never]);
            for (birth, end) in births.zip(ends) {
                let (is_born, life) = (birth.is_socket, (birth.at_ns, end.at_ns));
                let named = within(&names, (birth.named_ns, end.named_ns), |object| object.time_ns);
                if named.is_empty() {
                    unseen += u64::from(is_born && uses.moves(life));
                    continue;
                }
                let same: Vec<&[&Object]> = named.chunk_by(|one, next| inode(&one.name) == inode(&next.name)).collect();
                for (nth, objects) in same.iter().enumerate() {
                    // What is known first holds from the life's beginning on, each until the next.
                    let from = if nth == 0 { life.0 } else { objects[0].time_ns };
                    let until = same.get(nth + 1).map_or(life.1, |next| next[0].time_ns);
                    // A socket may get its addresses later.
                    let Some(name) = objects.iter().rev().find_map(|object| Name::of(&object.name)) else { continue };
                    let of = parts.entry((host_of(pid), name.inode)).or_default();
                    of.add(name, is_born && nth == 0, &uses, (from, until), &places);
                }
            }
        }
        let all = parts.into_iter().filter_map(|((host, _), parts)| parts.socket(host)).collect();
        Sockets { all, unseen }
    }
}

impl Sockets {
    /// The same of a host whose threads have its numbers from now on.
    pub fn on_host(mut self, host: u16) -> Sockets {
        for socket in &mut self.all {
            socket.host = host;
            let chunks = socket.sent.chunks.iter_mut().chain(&mut socket.received.chunks);
            chunks.for_each(|chunk| chunk.tid = thread_of(host, chunk.tid));
        }
        self
    }

    /// The same of hosts that lost kernel events: a call that is missing moves all bytes of its connection behind it, so that no place
    /// in a stream is known.
    pub fn without_places(mut self, has_lost: impl Fn(u16) -> bool) -> Sockets {
        for socket in self.all.iter_mut().filter(|socket| has_lost(socket.host)) {
            (socket.sent.before, socket.received.before) = (None, None);
        }
        self
    }

    /// Adds those of another host.
    pub fn join(&mut self, other: Sockets) {
        self.all.extend(other.all);
        self.unseen += other.unseen;
    }
}

fn add(uses: &mut HashMap<(i32, u64), Uses>, call: &SocketCall, objects: &Objects) {
    let Some(transfer) = call.id.transfer() else { return };
    let pid = objects.pid(call.tid).unwrap_or(call.tid);
    let Ok(result) = u64::try_from(call.result) else {
        // A connection that is under way says so by an error.
        if transfer == Transfer::Connects {
            uses.entry((pid, call.descriptor)).or_default().births.push(Birth::of_socket(call.start_ns));
        }
        return;
    };
    let is_new = matches!(transfer, Transfer::Accepts | Transfer::Opens);
    let descriptor = if is_new { result } else { call.descriptor };
    let of = uses.entry((pid, descriptor)).or_default();
    let SocketCall { tid, start_ns, end_ns, .. } = *call;
    let chunk = Chunk { tid, start_ns, end_ns, bytes: result };
    match transfer {
        Transfer::Connects => of.births.push(Birth::of_socket(start_ns)),
        Transfer::Accepts => of.births.push(Birth::by_return(start_ns, end_ns, true)),
        Transfer::Opens => of.births.push(Birth::by_return(start_ns, end_ns, false)),
        _ if result == 0 => {}
        Transfer::Sends => of.sent.push(chunk),
        Transfer::Receives => of.received.push(chunk),
        Transfer::SendsSeveral => of.several.push((start_ns, true)),
        Transfer::ReceivesSeveral => of.several.push((start_ns, false)),
    }
}

/// In order of time, as the recorder mostly has it.
fn in_order(objects: &[Object]) -> Vec<&Object> {
    let mut objects: Vec<&Object> = objects.iter().collect();
    objects.sort_by_key(|object| object.time_ns);
    objects
}

/// Those from one moment on until before another, of all in order of time: a number may have very many lives.
fn within<T>(all: &[T], (from, until): (u64, u64), time: impl Fn(&T) -> u64) -> &[T] {
    let [from, until] = [from, until].map(|at_ns| all.partition_point(|one| time(one) < at_ns));
    &all[from..until.max(from)]
}

impl Uses {
    fn sort(&mut self) {
        self.births.sort_unstable();
        self.sent.sort_by_key(|chunk| chunk.start_ns);
        self.received.sort_by_key(|chunk| chunk.start_ns);
        self.several.sort_unstable();
    }

    fn moves(&self, life: (u64, u64)) -> bool {
        [&self.sent, &self.received].iter().any(|way| !within(way, life, |chunk| chunk.start_ns).is_empty())
    }
}

impl Parts {
    fn add(&mut self, name: Name, is_born: bool, uses: &Uses, life: (u64, u64), places: &[&Object]) {
        if name.remote.is_some() || self.name.is_none() {
            self.name = Some(name);
        }
        self.is_born |= is_born;
        self.sent.extend(within(&uses.sent, life, |chunk| chunk.start_ns));
        self.received.extend(within(&uses.received, life, |chunk| chunk.start_ns));
        for (_, sends) in within(&uses.several, life, |(at_ns, _)| *at_ns) {
            self.has_unknown[usize::from(!sends)] = true;
        }
        for place in within(places, life, |place| place.time_ns) {
            self.places[usize::from(place.kind == ObjectKind::Read)].push((place.time_ns, place.size));
        }
    }

    fn socket(self, host: u16) -> Option<Socket> {
        let Name { is_tcp, local, remote, .. } = self.name?;
        let [sends_several, receives_several] = self.has_unknown;
        let [written, read] = self.places;
        Some(Socket {
            host,
            is_tcp,
            local,
            remote,
            sent: stream(self.sent, self.is_born, &written, Way::Sent, sends_several),
            received: stream(self.received, self.is_born, &read, Way::Received, receives_several),
        })
    }
}

fn stream(mut chunks: Vec<Chunk>, is_born: bool, places: &[(u64, u64)], way: Way, has_unknown: bool) -> Stream {
    chunks.sort_by_key(|chunk| (chunk.start_ns, chunk.end_ns, chunk.tid));
    let mut before: Option<Vec<u64>> = is_born.then(|| vec![0]);
    for (at_ns, bytes) in places {
        let can_be = before_place(&chunks, *at_ns, *bytes, way);
        match &mut before {
            Some(before) => before.retain(|of| can_be.contains(of)),
            None => before = Some(can_be),
        }
    }
    let before = match before.as_deref() {
        Some([one]) if !has_unknown => Some(*one),
        _ => None,
    };
    Stream { chunks, before }
}

/// What may have gone before the first call, if so many bytes have gone by then: a call under way may have moved its own by then, or not.
fn before_place(chunks: &[Chunk], at_ns: u64, bytes: u64, way: Way) -> Vec<u64> {
    let before = chunks.iter().filter(|chunk| chunk.end_ns <= at_ns);
    let gone = before.fold(0_u64, |sum, chunk| sum.saturating_add(chunk.bytes));
    let may_have = |chunk: &&Chunk| {
        let is_within = chunk.start_ns <= at_ns && at_ns < chunk.end_ns;
        is_within && (way == Way::Sent || chunk.end_ns - at_ns <= TAKES_NS)
    };
    let open = chunks.iter().find(may_have).map(|chunk| gone.saturating_add(chunk.bytes));
    std::iter::once(gone).chain(open).filter_map(|gone| bytes.checked_sub(gone)).collect()
}

#[cfg(test)]
mod tests {
    use taut_recording::Architecture;
    use taut_timelines::CallNumbers;

    use super::*;

    #[test]
    fn a_name_has_both_ends() {
        let name = Name::of("tcp [::ffff:10.0.0.1]:6379→[::ffff:10.0.0.2]:40012 [4]").unwrap();
        assert_eq!((name.local, name.inode), ("10.0.0.1:6379".parse().unwrap(), 4));
        assert_eq!(name.remote, Some("10.0.0.2:40012".parse().unwrap()));
        assert_eq!(Name::of("udp 0.0.0.0:5005→0.0.0.0:0 [9]").unwrap().remote, None);
        assert!(["unix /run/a→b [9]", "pipe:[77]", "/dev/ttyACM0", "tcp"].map(Name::of).iter().all(Option::is_none));
    }

    #[test]
    fn a_stream_begins_where_the_kernels_count_says() {
        let chunk = |start_ns, bytes| Chunk { tid: 1, start_ns, end_ns: start_ns + 10, bytes };
        let chunks = || vec![chunk(200, 7), chunk(100, 5)];
        let before = |is_born, places: &[(u64, u64)]| stream(chunks(), is_born, places, Way::Sent, false).before;
        assert_eq!(before(false, &[]), None);
        assert_eq!(before(true, &[]), Some(0));
        assert_eq!(before(false, &[(150, 1_005)]), Some(1_000));
        assert_eq!(before(false, &[(105, 1_005)]), None, "a call was under way");
        assert_eq!(before(false, &[(105, 1_005), (205, 1_005)]), Some(1_000), "of other bytes");
        assert_eq!(before(false, &[(150, 1_005), (250, 1_012)]), Some(1_000));
        // Bytes went by calls that are not recorded.
        assert_eq!(before(false, &[(150, 1_005), (250, 1_013)]), None);
        assert_eq!(before(true, &[(250, 13)]), None);
        assert_eq!(before(false, &[(150, 4)]), None);
        assert_eq!(stream(chunks(), true, &[], Way::Sent, true).before, None);
        // One that receives waits, mostly.
        let waits = || vec![Chunk { tid: 1, start_ns: 0, end_ns: 5_000_000, bytes: 5 }];
        let before = |at_ns| stream(waits(), false, &[(at_ns, 1_000)], Way::Received, false).before;
        assert_eq!((before(1_000_000), before(4_900_000), before(5_000_000)), (Some(1_000), None, Some(995)));
    }

    /// Calls of thread 7 of process 7, and what the recorder read of descriptor 5.
    fn sockets(calls: &[(&str, u64, u64, u64, i64)], read: &[(u64, &str)]) -> Sockets {
        let mut objects = Objects::default();
        for (time_ns, name) in read {
            let (kind, name) = (ObjectKind::Descriptor, (*name).to_owned());
            objects.object(&Object { time_ns: *time_ns, pid: 7, kind, start: 5, size: 0, name });
        }
        let architecture = Architecture::X86_64;
        let numbers = CallNumbers::of(Some(architecture));
        let number = |name: &str| architecture.system_calls().find(|(known, _)| *known == name).unwrap().1;
        let call = |(name, descriptor, start_ns, end_ns, result): &(&str, u64, u64, u64, i64)| SocketCall {
            tid: 7,
            id: numbers.id(number(name).into()),
            descriptor: *descriptor,
            start_ns: *start_ns,
            end_ns: *end_ns,
            result: *result,
        };
        Sockets::of(calls.iter().map(call), &objects)
    }

    const FIRST: &str = "tcp 10.0.0.1:80→10.0.0.2:40001 [1]";
    const SECOND: &str = "tcp 10.0.0.1:80→10.0.0.2:40002 [2]";

    #[test]
    fn a_descriptor_that_is_used_again_is_another_socket() {
        let calls = [
            ("accept4", 3, 10, 20, 5),
            ("read", 5, 30, 40, 100),
            ("openat", 0, 50, 60, 5),
            ("read", 5, 61, 62, 4_096),
            ("accept4", 3, 70, 100, 5),
            ("recvfrom", 5, 110, 120, 7),
            ("sendto", 5, 130, 140, 9),
        ];
        // The second one was seen before its call returned.
        let found = sockets(&calls, &[(45, FIRST), (55, "/etc/hosts"), (99, SECOND)]);
        let bytes = |stream: &Stream| (stream.before, stream.chunks.iter().map(|chunk| chunk.bytes).sum::<u64>());
        let of: Vec<_> = found.all.iter().map(|of| (bytes(&of.received), bytes(&of.sent))).collect();
        assert_eq!(of, [((Some(0), 100), (Some(0), 0)), ((Some(0), 7), (Some(0), 9))]);
        assert_eq!((found.unseen, sockets(&calls, &[(45, FIRST)]).unseen), (0, 1));
    }

    #[test]
    fn a_socket_may_get_its_addresses_later() {
        let calls = [("sendto", 5, 10, 20, 8), ("sendto", 5, 30, 40, 8)];
        let found = sockets(&calls, &[(25, "socket:[3]"), (35, "udp 0.0.0.0:47000→0.0.0.0:0 [3]")]);
        assert_eq!(found.all.len(), 1);
        assert_eq!((found.all[0].sent.chunks.len(), found.all[0].remote), (2, None));
    }
}
