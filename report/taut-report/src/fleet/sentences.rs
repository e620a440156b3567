//! What is said of a fleet in sentences.

use super::{About, Answer, Bounds, Compare, ComparedPlace, Factor, Report, Worst};
use crate::words;

/// What a figure of a table stands for.
pub(super) const BOUNDS: &str =
    "A figure lies between the bounds of its bucket, 1.1 % apart; – where fewer than ten messages lie beyond it.";

/// "fleet · duckdb · since 2026-11-01".
pub(super) fn about(about: &About) -> String {
    let mut text = format!("{} · {}", place(&about.place), about.engine);
    for (word, value) in [("since", &about.since), ("until", &about.until), ("only revision", &about.revision)] {
        if let Some(value) = value {
            text += &format!(" · {word} {value}");
        }
    }
    if !about.set_aside.is_empty() {
        text += &format!(" · without {} that cannot be read", words::quantity(about.set_aside.len() as u64, "file"));
    }
    text
}

/// Without the password of a server's address.
fn place(place: &str) -> String {
    match (place.split_once("://"), place.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => place.to_owned(),
    }
}

pub(super) fn headline(answer: &Answer) -> String {
    match answer {
        Answer::Report(report) => report_headline(report),
        Answer::Worst(worst) => worst_headline(worst),
        Answer::Compare(compare) => compare_headline(compare),
    }
}

fn report_headline(report: &Report) -> String {
    let Some(chain) = report.chains.first() else { return "No chain".into() };
    let Some(way) = chain.places.first() else { return "No message went all the way".into() };
    let robots = words::quantity(chain.extent.robots, "robot");
    let p99 = way.figures.p99.map_or("too few messages for a p99".into(), |p99| format!("p99 {}", upper(p99)));
    let mut text = format!("{}: {p99} over {robots}, {}", chain.chain, words::quantity(way.figures.n, "message"));
    let hops = chain.places.iter().filter(|place| place.position > 0);
    if let Some(hop) = hops.max_by(|a, b| a.time_share.unwrap_or(0.0).total_cmp(&b.time_share.unwrap_or(0.0))) {
        text += &format!("; {} of the time is {}", words::percent(hop.time_share.unwrap_or(0.0)), hop.hop);
        if let Some(cause) = hop.causes.first() {
            text += &format!(", there most is {} ({})", cause.cause, words::percent(cause.time_share.unwrap_or(0.0)));
        }
    }
    text
}

fn worst_headline(worst: &Worst) -> String {
    let Some((first, median)) = worst.ranked.first().zip(worst.median) else {
        return format!("No robot has enough messages for a {}", figure(&worst.figure));
    };
    let highest = first.figures.of(&worst.figure).unwrap_or(median);
    format!(
        "{} is the worst of {}: {} {}, {} of the median robot{}",
        first.robot,
        words::quantity(worst.robots - worst.too_few, "robot"),
        figure(&worst.figure),
        upper(highest),
        words::ratio(highest.up_to_ns as f64 / median.up_to_ns.max(1) as f64),
        first.stands_out_by_cause.as_ref().map_or(String::new(), |out| format!("; {} stands out", out.cause)),
    )
}

/// The change that is sure and largest, of the first chain that has one.
fn compare_headline(compare: &Compare) -> String {
    let name = |place: &ComparedPlace| if place.hop.is_empty() { "the whole way".into() } else { place.hop.clone() };
    for chain in &compare.chains {
        let of = |place| changes(place).into_iter().map(move |(figure, factor)| (place, figure, factor));
        let sure = chain.places.iter().flat_map(of).filter(|(.., factor)| factor.is_sure());
        if let Some((place, quantile, factor)) = sure.max_by(|a, b| size(a.2).total_cmp(&size(b.2))) {
            let verb = if factor.factor > 1.0 { "later" } else { "earlier" };
            let by = words::ratio(factor.factor);
            let interval = interval(factor).map_or(String::new(), |interval| format!(" ({interval})"));
            let cause = moved(place).map_or(String::new(), |(cause, by)| format!("; its {cause} {}", words::ratio(by)));
            let (name, quantile) = (name(place), figure(quantile));
            return format!("{} is {verb} than {} at {name}: {quantile} {by}{interval}{cause}", compare.b, compare.a);
        }
    }
    match compare.by.as_str() {
        "robot" => format!("{} against {}: one robot each, so no interval", compare.b, compare.a),
        _ => format!("{} against {}: no change that robots agree on", compare.b, compare.a),
    }
}

/// The cause whose time a message changed by most, and its factor, if robots agree on one.
fn moved(place: &ComparedPlace) -> Option<(&str, f64)> {
    let by_time = |cause: &&super::ComparedCause| {
        let [a, b] = [&cause.a, &cause.b].map(|side| side.as_ref().map_or(0.0, |side| side.mean_ns));
        (b - a).abs()
    };
    let sure = place.causes.iter().filter(|cause| cause.by_robots.mean.as_ref().is_some_and(Factor::is_sure));
    let most = sure.max_by(|a, b| by_time(a).total_cmp(&by_time(b)))?;
    Some((&most.cause, most.by_robots.mean.as_ref()?.factor))
}

fn size(factor: &Factor) -> f64 {
    factor.factor.ln().abs()
}

/// A place's changes by robots, those that there are.
pub(super) fn changes(place: &ComparedPlace) -> Vec<(&'static str, &Factor)> {
    let of = &place.by_robots;
    let all = [("p50", &of.p50), ("p90", &of.p90), ("p99", &of.p99), ("p999", &of.p999)];
    all.into_iter().filter_map(|(name, factor)| Some((name, factor.as_ref()?))).collect()
}

/// The best, the median and the worst robot.
pub(super) fn spread(of: &super::Spread) -> String {
    let few = match of.too_few {
        0 => String::new(),
        n => format!("; {} with too few messages", words::quantity(n, "robot")),
    };
    match (of.best, of.median, of.worst.first()) {
        (Some(best), Some(median), Some(worst)) => format!(
            "Robots' own p99: best {}, median {}, worst {} ({}){few}",
            upper(best),
            upper(median),
            worst.figures.p99.map_or("–".into(), upper),
            worst.robot,
        ),
        _ => format!("No robot has enough messages for a p99 of its own{few}"),
    }
}

fn interval(factor: &Factor) -> Option<String> {
    let (low, high) = factor.low.zip(factor.high)?;
    Some(format!("{} … {}", words::ratio(low), words::ratio(high)))
}

/// "120 robots, 2 000 messages, 2026-01-01 to 2026-02-03".
pub(super) fn extent(of: &super::Extent) -> String {
    let (robots, messages) = (words::quantity(of.robots, "robot"), words::quantity(of.messages, "message"));
    format!("{robots}, {messages}, {}", days(&of.first, &of.last))
}

/// A hop's name; without one it is the whole way.
pub(super) fn hop(name: &str) -> &str {
    if name.is_empty() { "whole way" } else { name }
}

/// What robots are ranked by.
pub(super) fn ranked_place(worst: &Worst) -> String {
    match (worst.hop.as_str(), worst.cause.as_str()) {
        (hop_name, "") => hop(hop_name).to_owned(),
        ("", cause) => format!("time lost to {cause}"),
        (hop, cause) => format!("{hop}, time lost to {cause}"),
    }
}

/// How robots were compared, by the first change that has an interval.
pub(super) fn unit(compare: &Compare) -> String {
    let all = compare.chains.iter().flat_map(|chain| &chain.places);
    let Some((_, factor)) = all.flat_map(changes).next() else {
        return "Of single robots there is no interval: it would take several on each side.".into();
    };
    let how = match factor.paired {
        true => format!("each of {} against itself", words::quantity(factor.robots_a, "robot")),
        false => {
            let [a, b] = [factor.robots_a, factor.robots_b].map(|n| words::quantity(n, "robot"));
            format!("{a} of A and {b} of B, by the medians of both groups")
        }
    };
    let few = if factor.low.is_none() { "; too few for an interval" } else { "" };
    format!("By robots: the median robot's change, {how}{few}. A and B themselves are all robots' messages together.")
}

/// A figure's name for people.
pub(super) fn figure(name: &str) -> String {
    if name == "p999" { "p99.9".into() } else { name.to_owned() }
}

pub(super) fn days(first: &str, last: &str) -> String {
    if first == last { first.to_owned() } else { format!("{first} to {last}") }
}

/// Where one figure must do: the bucket's upper bound.
pub(super) fn upper(of: Bounds) -> String {
    format!("≤ {}", words::duration(of.up_to_ns))
}

/// A git hash as git shows it.
pub(super) fn short(revision: &str) -> String {
    let is_hash = revision.len() == 40 && revision.chars().all(|c| c.is_ascii_hexdigit());
    if is_hash { revision[..12].to_owned() } else { revision.to_owned() }
}
