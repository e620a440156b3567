//! Which client a service's gid stands for, where none says that it has it: before Kilted no middleware does, and Cyclone DDS says another.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, btree_map::Entry},
};

use foldhash::{HashMap, HashSet};

use super::{
    seen::Send,
    system::{Of, System},
};

/// Clients and gids of one service that are compared, and requests of each pair.
const MOST_PAIRS: usize = 1 << 20;
const MOST_COMPARED: usize = 64;

/// A service of the middleware took a request of this gid.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakeOfGid {
    pub time_ns: u64,
    pub process: i32,
    pub service: u64,
    pub gid: u64,
    pub number: u64,
}

/// A thread may be held up for so long before it says that it sent a request.
const LATE_NS: u64 = 10_000_000;

/// When each request of one sender was sent or taken, by its number.
type Requests = BTreeMap<u64, u64>;

/// A client from its making to its end: the address may be another's then.
struct Client {
    address: (i32, u64),
    since_ns: u64,
    sent: Requests,
}

/// Gives clients without a gid, or with one that no service takes, the one whose requests have the numbers that they sent, each taken after
/// it was sent. Of several that may be it is the one of most requests, and then the one whose requests were under way for the least time.
/// Returns how many services had too many clients for that.
pub(super) fn find_gids(sends: &[(u64, Send)], takes: &[TakeOfGid], system: &mut System) -> u64 {
    let gids: HashSet<u64> = takes.iter().map(|take| take.gid).collect();
    let mut clients: BTreeMap<u32, Vec<Client>> = BTreeMap::new();
    let mut newest: HashMap<(i32, u64), (u32, Option<u64>, usize)> = HashMap::default();
    for (time_ns, send) in sends {
        let address = (send.process, send.handle);
        let Some(requester) = system.requester_at.at(address, *time_ns) else { continue };
        if system.client_gid_at.at(address, *time_ns).is_some_and(|gid| gids.contains(gid)) {
            continue;
        }
        let topic = system.publishers[*requester as usize].topic;
        let all = clients.entry(topic).or_default();
        let made_ns = system.requester_at.since(address, *time_ns);
        let known = newest.get(&address).filter(|(of, made, _)| (*of, *made) == (topic, made_ns)).map(|(.., at)| *at);
        // Numbers of a client ascend: from 1 on, or, with Cyclone DDS, from those of its process's other clients on.
        let same = known.filter(|at| all[*at].sent.last_key_value().is_some_and(|(last, _)| *last < send.number));
        let at = same.unwrap_or_else(|| {
            // Its first request may have been taken before it was said to be sent, and what another one sent from there was before.
            let before_ns =
                known.and_then(|at| all[at].sent.last_key_value()).map_or(0, |(_, sent_ns)| sent_ns.saturating_add(1));
            let since_ns = time_ns.saturating_sub(LATE_NS).max(made_ns.unwrap_or(0)).max(before_ns).min(*time_ns);
            all.push(Client { address, since_ns, sent: Requests::new() });
            all.len() - 1
        });
        newest.insert(address, (topic, made_ns, at));
        all[at].sent.insert(send.number, *time_ns);
    }
    let mut taken: BTreeMap<u32, BTreeMap<u64, Requests>> = BTreeMap::new();
    for take in takes.iter().filter(|_| !clients.is_empty()) {
        let callback = system.service_at.at((take.process, take.service), take.time_ns);
        if let Some(Of::Topic(topic, _)) = callback.map(|callback| system.callbacks[*callback as usize].of) {
            let requests = taken.entry(topic).or_default().entry(take.gid).or_default();
            if let Entry::Vacant(first) = requests.entry(take.number) {
                first.insert(take.time_ns);
            }
        }
    }
    let (mut found, mut too_many): (Vec<(&Client, u64)>, u64) = (Vec::new(), 0);
    for (topic, clients) in &clients {
        let Some(gids) = taken.get(topic) else { continue };
        if gids.len().saturating_mul(clients.len()) > MOST_PAIRS {
            too_many += 1;
            continue;
        }
        let pairs = gids.iter().flat_map(|gid| clients.iter().enumerate().map(move |client| (gid, client)));
        let mut may_be: Vec<_> = pairs
            .filter_map(|((gid, taken), (at, client))| Some((under_way(&client.sent, taken)?, at, *gid)))
            .collect();
        may_be.sort_unstable();
        let (mut has_gid, mut is_given) = (HashSet::default(), HashSet::default());
        for (_, at, gid) in may_be {
            if !has_gid.contains(&at) && is_given.insert(gid) {
                has_gid.insert(at);
                found.push((&clients[at], gid));
            }
        }
    }
    for (client, gid) in found {
        system.client_gid_at.add(client.address, client.since_ns, gid);
    }
    too_many
}

/// How many requests were sent and taken, the most first, and for how long they were under way together. `None` where there is none, or
/// one was taken before it was sent, and not only before its sender said so.
fn under_way(sent: &Requests, taken: &Requests) -> Option<(Reverse<usize>, u64)> {
    let (first, _) = sent.first_key_value()?;
    let compared = taken.range(first..).take(MOST_COMPARED);
    let both = compared.filter_map(|(number, taken_ns)| Some((*sent.get(number)?, *taken_ns)));
    let (mut requests, mut total_ns) = (0, 0u64);
    for (sent_ns, taken_ns) in both {
        if taken_ns.saturating_add(LATE_NS) < sent_ns {
            return None;
        }
        total_ns = total_ns.saturating_add(taken_ns.saturating_sub(sent_ns));
        requests += 1;
    }
    (requests > 0).then_some((Reverse(requests), total_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_may_be_said_to_be_sent_a_little_late_and_times_may_be_any() {
        let under_way = |sent_ns, taken_ns| under_way(&[(1, sent_ns)].into(), &[(1, taken_ns)].into());
        assert_eq!(under_way(10, 30), Some((Reverse(1), 20)));
        assert_eq!(under_way(LATE_NS, 0), Some((Reverse(1), 0)));
        assert_eq!(under_way(LATE_NS + 1, 0), None);
        assert_eq!(under_way(0, u64::MAX), Some((Reverse(1), u64::MAX)));
    }
}
