//! What is known of the clocks of two joined recordings, in words and as the sidecar that stands beside a merged one.

use serde_json::{Value, json};
use taut_analysis::Chain;
use taut_points::hosts::{Joined, align::Way};

use crate::words;

/// Messages that are named of those that were refused.
const NAMED: usize = 3;
/// CLOCK_REALTIME that is off by more than this beyond the bound is worth a sentence.
const REALTIME_NS: u64 = 1_000_000;

/// What a reader must know of the alignment, a sentence each. `names`: of the hosts, the first is the reference.
pub fn hosts_sentences(joined: &Joined, names: [&str; 2]) -> Vec<String> {
    let [a, b] = names;
    let mut sentences = Vec::new();
    let alignment = &joined.alignment;
    let [there, back] = alignment.used;
    let rates = alignment.pieces.first().map_or((0.0, 0.0), |piece| piece.rates);
    let first = alignment.pieces.first().and_then(|piece| alignment.at(piece.from_ns));
    let offset = first.map_or(0.0, |known| known.offset_ns as f64 / 1e9);
    let counts = format!("{} messages {a} → {b} and {} back", words::count(there), words::count(back));
    match alignment.bounds_ns() {
        Some((typical, largest)) => sentences.push(format!(
            "{a} ↔ {b}: the clocks' offset is {offset:.6} s, known to ± {} (at most ± {}) by {counts}; drift {:.1} ppm. Events on two \
             hosts closer together than that have no known order",
            words::scaled(typical as f64),
            words::scaled(largest as f64),
            (rates.0 + rates.1) * 5e5,
        )),
        None => sentences.push(format!(
            "{a} ↔ {b}: {counts} were seen. Messages one way give no bound: delays between the hosts are above the fastest message, and \
             excess and shares of the tail are right, but levels are not known"
        )),
    }
    for route in joined.routes.iter().take(8) {
        let (from, to) = if route.way == Way::ToB { (a, b) } else { (b, a) };
        let count = words::count(route.messages);
        sentences.push(format!("{count} messages went {from}:{} → {to}:{}", route.from, route.to));
    }
    let [alone_a, alone_b] = joined.alone.map(words::count);
    sentences.push(format!(
        "{} messages were stamped on both hosts, {alone_a} on {a} alone, {alone_b} on {b} alone",
        words::count(joined.common)
    ));
    let steps = alignment.pieces.windows(2);
    sentences.extend(steps.map(|two| {
        let jump = alignment.at(two[1].from_ns).zip(alignment.at(two[0].to_ns)).map_or(0, |(next, last)| next.offset_ns - last.offset_ns);
        format!(
            "a clock stepped by {:.3} ms between {:.3} s and {:.3} s of {a}: the sides are aligned apart, and between them no bound is known",
            jump as f64 / 1e6,
            two[0].to_ns as f64 / 1e9,
            two[1].from_ns as f64 / 1e9
        )
    }));
    let named = alignment.refused.iter().take(NAMED).map(|refused| {
        format!("{} (its delay would be {} below 0)", refused.crossing.message, words::scaled(refused.by_ns as f64))
    });
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        let count = alignment.refused.len() as u64;
        let what = words::quantity(count, "message");
        sentences.push(format!("{what} contradicted the others and was not used for the clocks: {}", named.join(", ")));
    }
    let bound = alignment.bounds_ns().map_or(0, |(_, largest)| largest);
    let off = joined.realtime_off_ns.unsigned_abs();
    if off > bound + REALTIME_NS && alignment.is_two_way() {
        sentences.push(format!(
            "CLOCK_REALTIME of the two hosts contradicts the messages by {:.3} ms: the messages were used",
            joined.realtime_off_ns as f64 / 1e6
        ));
    }
    sentences
}

/// Of each hop between the hosts, its delay with its bound.
pub fn hop_sentences(chains: &[Chain], joined: &Joined, names: [&str; 2]) -> Vec<String> {
    let host =
        |point: &str| names.iter().position(|name| point.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')));
    let hops = chains.iter().flat_map(|chain| &chain.hops).filter(|hop| host(&hop.from) != host(&hop.to));
    let mut sentences: Vec<String> = hops
        .filter_map(|hop| {
            let p50 = hop.delay.distribution.p50_ns?;
            let known = match joined.alignment.bounds_ns() {
                Some((bound, _)) => {
                    let (low, high) =
                        (words::scaled(p50.saturating_sub(bound) as f64), words::scaled((p50 + bound) as f64));
                    format!(
                        "p50 {}, between {low} and {high}; its excess does not depend on the offset",
                        words::scaled(p50 as f64)
                    )
                }
                None => format!("p50 {} above its fastest message; the level is not known", words::scaled(p50 as f64)),
            };
            Some(format!("hop {} → {}: {known}", hop.from, hop.to))
        })
        .collect();
    sentences.sort();
    sentences.dedup();
    sentences
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
        "bound_ns": alignment.bounds_ns().map(|(typical, largest)| json!({ "median": typical, "max": largest })),
        "realtime_off_ns": joined.realtime_off_ns,
        "routes": routes.collect::<Vec<_>>(), "refused": refused.collect::<Vec<_>>(),
        "knot_columns": ["at_ns", "low_ns", "high_ns"], "pieces": pieces.collect::<Vec<_>>(),
    })
}
