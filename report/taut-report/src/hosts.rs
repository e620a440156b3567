//! What is known of the clocks of joined recordings: in words, and as the sidecar that stands beside a merged one.

use serde_json::{Value, json};
use taut_points::hosts::{
    Between, ClocksFrom, Joined, Keeper, OrderFrom, Pair, Stated, Use,
    align::{Alignment, Way},
};

use crate::words;

/// Messages that are named of those that were refused.
const NAMED: usize = 3;
/// Routes that are named.
const ROUTES: usize = 8;
/// CLOCK_REALTIME that is off by more than this beyond the bound is worth a sentence.
const REALTIME_NS: u64 = 1_000_000;

/// What a reader must know of the alignment, a sentence each. `names`: of the hosts, the first is the reference.
pub fn hosts_sentences(joined: &Joined, names: &[&str]) -> Vec<String> {
    let pair_of = |a: usize, b: usize| joined.pairs.iter().find(|pair| pair.hosts == (a, b));
    let mut sentences = Vec::new();
    for host in 1..names.len() {
        sentences.push(clocks_sentence(joined.between(0, host), pair_of(0, host), names, host));
    }
    for pair in &joined.pairs {
        sentences.extend(pair_sentences(pair, [names[pair.hosts.0], names[pair.hosts.1]]));
    }
    for ((a, b), why) in joined.unused.iter().filter(|_| names.len() > 2) {
        sentences.push(format!("{} ↔ {}: not used for the clocks: {why}", names[*a], names[*b]));
    }
    let (contradicted, moments) = joined.contradicted;
    if contradicted > 0 {
        sentences.push(format!(
            "the messages of several pairs of hosts contradict each other at {} of {} moments: no bound is known there",
            words::count(contradicted),
            words::count(moments)
        ));
    }
    sentences.extend((0..names.len()).filter_map(|host| ptp_sentence(joined, names, host)));
    for host in 1..names.len() {
        sentences.extend(realtime_sentence(joined, names, host));
    }
    sentences
}

/// What the messages between two hosts say.
fn pair_sentences(pair: &Pair, [a, b]: [&str; 2]) -> Vec<String> {
    let mut sentences = Vec::new();
    for route in pair.routes.iter().take(ROUTES) {
        let (from, to) = if route.way == Way::ToB { (a, b) } else { (b, a) };
        let count = words::quantity(route.messages, "message");
        sentences.push(format!("{from}:{} → {to}:{}: {count}", route.from, route.to));
    }
    if pair.routes.len() > ROUTES {
        let more = (pair.routes.len() - ROUTES) as u64;
        sentences.push(format!("{} more between {a} and {b}", words::quantity(more, "pair of points")));
    }
    let order = match pair.order_from {
        OrderFrom::Declared => None,
        OrderFrom::Spread => {
            Some("follows from the spread of the delays; declare the chain in taut.toml if it is otherwise")
        }
        OrderFrom::Realtime => {
            Some("is assumed from CLOCK_REALTIME of both hosts; declare the chain in taut.toml to be sure")
        }
    };
    sentences.extend(order.map(|order| format!("which of {a} and {b} a message left first {order}")));
    let [alone_a, alone_b] = pair.alone.map(words::count);
    let common = words::quantity(pair.common, "message");
    if pair.common + pair.repeated > 0 {
        sentences.push(format!(
            "stamped on {a} and on {b}: {common}; on {a} and not on {b}: {alone_a}, on {b} and not on {a}: {alone_b}"
        ));
    }
    if pair.repeated > 0 {
        let ids = words::quantity(pair.repeated, "id");
        sentences.push(format!("not used for the clocks, since they passed a point more than once: {ids}"));
    }
    sentences.extend(pair.stated.and_then(|stated| stated_sentence(stated, [a, b])));
    let alignment = &pair.alignment;
    let start_ns = alignment.pieces.first().map_or(0, |piece| piece.from_ns);
    let since_s = |raw_ns: i64| (raw_ns - start_ns) as f64 / 1e9;
    sentences.extend(alignment.pieces.windows(2).map(|two| {
        let offset = |at_ns: i64| alignment.at(at_ns).map_or(0, |known| known.offset_ns);
        let jump_ns = offset(two[1].from_ns) - offset(two[0].to_ns);
        format!(
            "a clock of {a} or {b} stepped by {:.3} ms between {:.3} s and {:.3} s after the first message: each side is aligned by itself, \
             and no bound is known between them",
            jump_ns as f64 / 1e6,
            since_s(two[0].to_ns),
            since_s(two[1].from_ns)
        )
    }));
    let named = alignment.refused.iter().take(NAMED).map(|refused| {
        format!("{} (its delay would be {} below 0)", refused.crossing.message, words::scaled(refused.by_ns as f64))
    });
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        let count = words::quantity(alignment.refused.len() as u64, "message");
        sentences.push(format!("not used for the clocks, since the others contradict: {count}: {}", named.join(", ")));
    }
    sentences
}

/// What became of what both hosts' daemons state.
fn stated_sentence((stated, used): (Stated, Use), [a, b]: [&str; 2]) -> Option<String> {
    let bound = words::scaled(stated.bound_ns as f64);
    let by = keeper(stated.by);
    match used {
        Use::Narrows => Some(format!(
            "{a} ↔ {b}: {by} on both states that CLOCK_REALTIME is right, together to ± {bound}: the clocks' bound is from that and from the \
             messages"
        )),
        Use::NotNeeded => None,
        Use::Contradicted(by_ns) => {
            let by_how_much = if by_ns > 0 { format!(" by {}", words::scaled(by_ns as f64)) } else { String::new() };
            Some(format!(
                "{a} ↔ {b}: {by} on both states that CLOCK_REALTIME is right, together to ± {bound}, and the messages contradict that{by_how_much}: \
                 they were used, and one of the two daemons, or its server, is wrong"
            ))
        }
    }
}

fn keeper(by: Keeper) -> &'static str {
    match by {
        Keeper::Chronyd => "chronyd",
        Keeper::Ptp4l => "ptp4l",
    }
}

/// What ptp4l states and is not used for the clocks.
fn ptp_sentence(joined: &Joined, names: &[&str], host: usize) -> Option<String> {
    let (time_stamps, steps) = joined.ptp_without_bound.get(host)?.as_ref()?;
    let why = match (time_stamps.as_str(), steps.as_str()) {
        ("software", "1") => "it has no Sync message, or does not say how often they come".to_owned(),
        ("software", _) => format!("it is {steps} steps from its grandmaster"),
        ("", _) => "it does not say what its time stamps are of".to_owned(),
        _ => format!("its time stamps ({time_stamps}) are of the network card's clock"),
    };
    Some(format!("ptp4l on {} bounds no error of CLOCK_REALTIME, and is not used for the clocks: {why}", names[host]))
}

fn realtime_sentence(joined: &Joined, names: &[&str], host: usize) -> Option<String> {
    let between = joined.between(0, host);
    let (_, largest_ns) = between.bounds_ns()?;
    let says = |host: usize| match joined.stated_error_us[host] {
        Some(us) => format!("{} states an error of at most {us} µs", names[host]),
        None => format!("{} is not synchronized", names[host]),
    };
    (between.realtime_off_ns.unsigned_abs() > largest_ns + REALTIME_NS).then(|| {
        format!(
            "CLOCK_REALTIME of the hosts differs from the messages by {:.3} ms, and the messages were used: {}, {}",
            between.realtime_off_ns as f64 / 1e6,
            says(0),
            says(host)
        )
    })
}

fn clocks_sentence(between: &Between, pair: Option<&Pair>, names: &[&str], host: usize) -> String {
    let (a, b) = (names[0], names[host]);
    let messages = match pair {
        Some(pair) => {
            let [there, back] = pair.alignment.used.map(|count| words::quantity(count, "message"));
            format!("{there} to {b} and {back} back")
        }
        None => {
            let through: Vec<&str> = between.through.iter().map(|host| names[*host]).collect();
            format!("messages through {}", through.join(" and "))
        }
    };
    match (between.clocks_from, between.bounds_ns()) {
        (ClocksFrom::OneMachine, _) => format!("{a} ↔ {b}: one boot of one machine, so the clocks are the same"),
        (ClocksFrom::Realtime, _) => format!(
            "{a} ↔ {b}: CLOCK_REALTIME of both is taken for one clock, as asked for; delays between the hosts have no bound"
        ),
        (ClocksFrom::Messages, Some((typical, largest))) => format!(
            "{a} ↔ {b}: the clocks' offset is {:.6} s, known to ± {} (median of the messages; at most ± {}) by {messages}; drift {:.1} ppm. \
             The order of events on two hosts that are closer together than that is not known",
            between.offset_ns() as f64 / 1e9,
            words::scaled(typical as f64),
            words::scaled(largest as f64),
            between.drift_ppm(),
        ),
        (ClocksFrom::Messages, None) => format!(
            "{a} ↔ {b}: {messages}. One direction gives no bound: a delay between the hosts is the time beyond the fastest message, so \
             differences between messages are right, and the delays themselves are not known"
        ),
    }
}

/// The sidecar: of each host but the first, pieces of its clock's offset with their bounds over the first host's raw clock in ns; of each
/// two hosts with common messages, those that were used and refused.
pub fn hosts_json(joined: &Joined, names: &[&str]) -> Value {
    let clocks = (1..names.len()).map(|host| {
        let between = joined.between(0, host);
        let through: Vec<&str> = between.through.iter().map(|host| names[*host]).collect();
        json!({
            "host": names[host], "through": through, "realtime_off_ns": between.realtime_off_ns,
            "bound_ns": between.bounds_ns().map(|(typical, largest)| json!({ "median": typical, "max": largest })),
            "pieces": pieces(&between.alignment),
        })
    });
    json!({
        "schema_version": 1, "kind": "alignment", "hosts": names, "reference": names[0],
        "knot_columns": ["at_ns", "low_ns", "high_ns"], "clocks": clocks.collect::<Vec<_>>(),
        "pairs": joined.pairs.iter().map(|pair| pair_json(pair, names)).collect::<Vec<_>>(),
    })
}

fn pieces(alignment: &Alignment) -> Vec<Value> {
    let piece = alignment.pieces.iter().map(|piece| {
        let knots = piece.knots.iter().map(|knot| json!([knot.at_ns, knot.low_ns, knot.high_ns]));
        json!({
            "from_ns": piece.from_ns, "to_ns": piece.to_ns, "rate_ppm": [piece.rates.0 * 1e6, piece.rates.1 * 1e6],
            "knots": knots.collect::<Vec<_>>(),
        })
    });
    piece.collect()
}

fn pair_json(pair: &Pair, names: &[&str]) -> Value {
    let names = [names[pair.hosts.0], names[pair.hosts.1]];
    let routes = pair.routes.iter().map(|route| {
        let to_b = route.way == Way::ToB;
        json!({ "from": route.from, "to": route.to, "from_host": names[usize::from(!to_b)], "messages": route.messages })
    });
    let refused = pair.alignment.refused.iter().map(|refused| {
        json!({ "message": refused.crossing.message.to_string(), "negative_by_ns": refused.by_ns, "at_ns": refused.crossing.a_ns })
    });
    json!({
        "hosts": names, "messages": { "common": pair.common, "alone": pair.alone, "used": pair.alignment.used },
        "stated": pair.stated.map(|(of, used)| {
            let used = match used {
                Use::Narrows => "narrows",
                Use::NotNeeded => "not_needed",
                Use::Contradicted(_) => "contradicted",
            };
            json!({
                "by": keeper(of.by), "at_ns": of.at_ns, "offset_ns": of.offset_ns, "bound_ns": of.bound_ns, "used": used
            })
        }),
        "routes": routes.collect::<Vec<_>>(), "refused": refused.collect::<Vec<_>>(),
    })
}
