//! What is known of the clocks of two joined recordings: in words, as facts of the joined recording, and as the sidecar that stands
//! beside a merged one.

use serde_json::{Value, json};
use taut_points::hosts::{ClocksFrom, Joined, OrderFrom, align::Way};

use crate::words;

/// Messages that are named of those that were refused.
const NAMED: usize = 3;
/// Routes that are named.
const ROUTES: usize = 8;
/// CLOCK_REALTIME that is off by more than this beyond the bound is worth a sentence.
const REALTIME_NS: u64 = 1_000_000;

/// What a reader must know of the alignment, a sentence each. `names`: of the hosts, the first is the reference.
pub fn hosts_sentences(joined: &Joined, names: [&str; 2]) -> Vec<String> {
    let [a, b] = names;
    let mut sentences = vec![clocks_sentence(joined, names)];
    for route in joined.routes.iter().take(ROUTES) {
        let (from, to) = if route.way == Way::ToB { (a, b) } else { (b, a) };
        let count = words::quantity(route.messages, "message");
        sentences.push(format!("{from}:{} → {to}:{}: {count}", route.from, route.to));
    }
    if joined.routes.len() > ROUTES {
        let more = (joined.routes.len() - ROUTES) as u64;
        sentences.push(format!("{} more between the hosts", words::quantity(more, "pair of points")));
    }
    match joined.order_from {
        OrderFrom::Declared => {}
        OrderFrom::Spread => sentences.push(
            "which host a message left first follows from the spread of the delays; declare the chain in taut.toml if it is otherwise"
                .to_owned(),
        ),
        OrderFrom::Realtime => sentences.push(
            "which host a message left first is assumed from CLOCK_REALTIME of both hosts; declare the chain in taut.toml to be sure"
                .to_owned(),
        ),
    }
    let [alone_a, alone_b] = joined.alone.map(words::count);
    let common = words::quantity(joined.common, "message");
    sentences.push(format!("stamped on both hosts: {common}; on {a} alone: {alone_a}, on {b} alone: {alone_b}"));
    if joined.repeated > 0 {
        let ids = words::quantity(joined.repeated, "id");
        sentences.push(format!("not used for the clocks, since they passed a point more than once: {ids}"));
    }
    let alignment = &joined.alignment;
    let start_ns = alignment.pieces.first().map_or(0, |piece| piece.from_ns);
    let since_s = |raw_ns: i64| (raw_ns - start_ns) as f64 / 1e9;
    sentences.extend(alignment.pieces.windows(2).map(|two| {
        let offset = |at_ns: i64| alignment.at(at_ns).map_or(0, |known| known.offset_ns);
        let jump_ns = offset(two[1].from_ns) - offset(two[0].to_ns);
        format!(
            "a clock stepped by {:.3} ms between {:.3} s and {:.3} s after the first message: each side is aligned by itself, and no bound \
             is known between them",
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
    let bound = joined.bounds_ns().map_or(0, |(_, largest)| largest);
    if joined.realtime_off_ns.unsigned_abs() > bound + REALTIME_NS && alignment.is_two_way() {
        let [stated_a, stated_b] = joined.stated_error_us.map(|stated| match stated {
            Some(us) => format!("states an error of at most {us} µs"),
            None => "is not synchronized".to_owned(),
        });
        sentences.push(format!(
            "CLOCK_REALTIME of the hosts differs from the messages by {:.3} ms, and the messages were used: {a} {stated_a}, {b} {stated_b}",
            joined.realtime_off_ns as f64 / 1e6
        ));
    }
    sentences
}

fn clocks_sentence(joined: &Joined, names: [&str; 2]) -> String {
    let [a, b] = names;
    let [there, back] = joined.alignment.used.map(|count| words::quantity(count, "message"));
    match (joined.clocks_from, joined.bounds_ns()) {
        (ClocksFrom::OneMachine, _) => format!("{a} ↔ {b}: one boot of one machine, so the clocks are the same"),
        (ClocksFrom::Realtime, _) => format!(
            "{a} ↔ {b}: CLOCK_REALTIME of both is taken for one clock, as asked for; delays between the hosts have no bound"
        ),
        (ClocksFrom::Messages, Some((typical, largest))) => format!(
            "{a} ↔ {b}: the clocks' offset is {:.6} s, known to ± {} (median of the messages; at most ± {}) by {there} to {b} and {back} \
             back; drift {:.1} ppm. The order of events on two hosts that are closer together than that is not known",
            joined.offset_ns() as f64 / 1e9,
            words::scaled(typical as f64),
            words::scaled(largest as f64),
            drift_ppm(joined),
        ),
        (ClocksFrom::Messages, None) => format!(
            "{a} ↔ {b}: {there} to {b} and {back} back. One direction gives no bound: a delay between the hosts is what it exceeds the \
             fastest message by, so excess and shares of the tail are right, and levels are not known"
        ),
    }
}

fn drift_ppm(joined: &Joined) -> f64 {
    joined.alignment.pieces.first().map_or(0.0, |piece| (piece.rates.0 + piece.rates.1) * 5e5)
}

/// The same as facts of the joined recording.
pub fn hosts_facts(joined: &Joined) -> Vec<(String, String)> {
    let from = match joined.clocks_from {
        ClocksFrom::Messages if joined.alignment.is_two_way() => "messages",
        ClocksFrom::Messages => "messages one way",
        ClocksFrom::OneMachine => "one machine",
        ClocksFrom::Realtime => "CLOCK_REALTIME",
    };
    let mut facts = vec![
        ("clocks_from", from.to_owned()),
        ("clocks_offset_ns", joined.offset_ns().to_string()),
        ("clocks_drift_ppm", format!("{:.3}", drift_ppm(joined))),
    ];
    if let Some((typical, largest)) = joined.bounds_ns() {
        facts.extend([("clocks_bound_ns", typical.to_string()), ("clocks_bound_max_ns", largest.to_string())]);
    }
    facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The sidecar: pieces of the offset with their bounds, where it comes from, and what was refused. Times are ns of the first host's raw
/// clock.
pub fn hosts_json(joined: &Joined, names: [&str; 2]) -> Value {
    let alignment = &joined.alignment;
    let pieces = alignment.pieces.iter().map(|piece| {
        let knots = piece.knots.iter().map(|knot| json!([knot.at_ns, knot.low_ns, knot.high_ns]));
        json!({
            "from_ns": piece.from_ns, "to_ns": piece.to_ns, "rate_ppm": [piece.rates.0 * 1e6, piece.rates.1 * 1e6],
            "knots": knots.collect::<Vec<_>>(),
        })
    });
    let routes = joined.routes.iter().map(|route| {
        let to_b = route.way == Way::ToB;
        json!({ "from": route.from, "to": route.to, "from_host": names[usize::from(!to_b)], "messages": route.messages })
    });
    let refused = alignment.refused.iter().map(|refused| {
        json!({ "message": refused.crossing.message.to_string(), "negative_by_ns": refused.by_ns, "at_ns": refused.crossing.a_ns })
    });
    json!({
        "schema_version": 1, "kind": "alignment", "hosts": names, "reference": names[0],
        "messages": { "common": joined.common, "alone": joined.alone, "used": alignment.used },
        "bound_ns": joined.bounds_ns().map(|(typical, largest)| json!({ "median": typical, "max": largest })),
        "realtime_off_ns": joined.realtime_off_ns,
        "routes": routes.collect::<Vec<_>>(), "refused": refused.collect::<Vec<_>>(),
        "knot_columns": ["at_ns", "low_ns", "high_ns"], "pieces": pieces.collect::<Vec<_>>(),
    })
}
