//! What is said of a fleet, the same in the terminal and on the page: headlines and rows of text.

use super::{About, Answer, Bounds, Compare, ComparedPlace, Factor, Place, Ranked, Report, Worst};
use crate::words;

/// Causes below this share of a place's time are left to JSON.
const SHARE_MIN: f64 = 0.005;
/// The same of a comparison: below this time a message on both sides.
const MEAN_MIN_NS: f64 = 100.0;

/// What a figure stands for, under every table.
pub(super) const BOUNDS: &str =
    "in ms; a figure lies between the bounds of its bucket, 1.1 % apart; – where fewer than ten messages lie beyond";

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

pub(super) const PLACES: [&str; 7] = ["hop, cause", "n", "time", "p50", "p99", "p99.9", "max"];

/// A chain's places, their causes indented.
pub(super) fn places(places: &[Place]) -> Vec<[String; 7]> {
    let mut rows = Vec::new();
    for place in places {
        let name = if place.hop.is_empty() { "whole way" } else { &place.hop };
        rows.push(row(name, place.time_share, &place.figures));
        for cause in place.causes.iter().filter(|cause| cause.time_share.is_some_and(|share| share >= SHARE_MIN)) {
            rows.push(row(&format!("  {}", cause.cause), cause.time_share, &cause.figures));
        }
    }
    rows
}

fn row(name: &str, share: Option<f64>, of: &super::FleetFigures) -> [String; 7] {
    let [p50, p99, p999, max] = [of.p50, of.p99, of.p999, of.max].map(bounds);
    [name.to_owned(), words::count(of.n), share.map_or("–".into(), words::percent), p50, p99, p999, max]
}

pub(super) const REVISIONS: [&str; 7] = ["revision", "robots", "messages", "days", "p50", "p99", "p99.9"];

pub(super) fn revisions(all: &[super::Revision]) -> Vec<[String; 7]> {
    let row = |of: &super::Revision| {
        let [p50, p99, p999] = [of.figures.p50, of.figures.p99, of.figures.p999].map(bounds);
        let days = days(&of.extent.first, &of.extent.last);
        let extent = [words::count(of.extent.robots), words::count(of.extent.messages)];
        let [robots, messages] = extent;
        [short(&of.revision), robots, messages, days, p50, p99, p999]
    };
    all.iter().map(row).collect()
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

pub(super) const WEEKS: [&str; 6] = ["week of", "messages", "p50", "p99", "p99.9", "max"];

pub(super) fn weeks(place: &Place) -> Vec<[String; 6]> {
    let row = |week: &super::Week| {
        let of = &week.figures;
        let [p50, p99, p999, max] = [of.p50, of.p99, of.p999, of.max].map(bounds);
        [week.week.clone(), words::count(of.n), p50, p99, p999, max]
    };
    place.weeks.iter().map(row).collect()
}

/// Heads of [`ranked`], the figure that ranks among them.
pub(super) fn ranked_head(worst: &Worst) -> [String; 6] {
    ["robot", "n", &figure(&worst.figure), "× median", "hop that stands out", "cause that stands out"]
        .map(str::to_owned)
}

pub(super) fn ranked(worst: &Worst) -> Vec<[String; 6]> {
    let row = |robot: &Ranked| {
        let own = robot.figures.of(&worst.figure);
        let against = own.zip(worst.median).map(|(own, median)| own.up_to_ns as f64 / median.up_to_ns.max(1) as f64);
        let hop = robot.stands_out_by_hop.as_ref();
        let hop = hop.map_or("–".into(), |out| format!("{}: {} for {}", out.hop, upper(out.robot), upper(out.fleet)));
        let cause = robot.stands_out_by_cause.as_ref().map_or("–".into(), |out| {
            let [own, fleet] = [out.robot_mean_ns, out.fleet_mean_ns].map(words::scaled);
            format!("{}: mean {own} for {fleet}", out.cause)
        });
        let figure = own.map_or("–".into(), bounds_of);
        let against = against.map_or("–".into(), words::ratio);
        [robot.robot.clone(), words::count(robot.figures.n), figure, against, hop, cause]
    };
    worst.ranked.iter().map(row).collect()
}

pub(super) const COMPARED: [&str; 5] = ["hop, figure", "A", "B", "by robots", "95 %"];

/// A place's p50, p99 and p99.9, then the mean time of its causes. The last word says how to colour: "worse", "better" or "".
pub(super) fn compared(place: &ComparedPlace) -> Vec<([String; 5], &'static str)> {
    let name = if place.hop.is_empty() { "whole way" } else { &place.hop };
    let figures = |quantile: &'static str| {
        let of = |side: &Option<super::SideOf>| side.as_ref().and_then(|side| side.figures.of(quantile));
        let factor = changes(place).into_iter().find(|(name, _)| *name == quantile).map(|(_, factor)| factor);
        change(format!("{name}, {}", figure(quantile)), bounds(of(&place.a)), bounds(of(&place.b)), factor)
    };
    let mut rows: Vec<_> = ["p50", "p99", "p999"].map(figures).into();
    for cause in &place.causes {
        let means = [&cause.a, &cause.b].map(|side| side.as_ref().map_or(0.0, |side| side.mean_ns));
        if means.iter().any(|ns| *ns >= MEAN_MIN_NS) {
            let [a, b] = means.map(|ns| words::milliseconds(Some(ns.round() as u64)));
            rows.push(change(format!("  {}, mean", cause.cause), a, b, cause.by_robots.mean.as_ref()));
        }
    }
    rows
}

fn change(name: String, a: String, b: String, factor: Option<&Factor>) -> ([String; 5], &'static str) {
    let by = factor.map_or("–".into(), |factor| words::ratio(factor.factor));
    let tone = match factor {
        Some(factor) if factor.is_sure() => {
            if factor.factor > 1.0 {
                "worse"
            } else {
                "better"
            }
        }
        _ => "",
    };
    ([name, a, b, by, factor.and_then(interval).unwrap_or_else(|| "–".into())], tone)
}

fn interval(factor: &Factor) -> Option<String> {
    let (low, high) = factor.low.zip(factor.high)?;
    Some(format!("{} … {}", words::ratio(low), words::ratio(high)))
}

/// "A v1: 120 robots, 2 000 messages, 2026-01-01 to 2026-02-03".
pub(super) fn side(name: &str, of: &super::Extent) -> String {
    let (robots, messages) = (words::quantity(of.robots, "robot"), words::quantity(of.messages, "message"));
    format!("{name}: {robots}, {messages}, {}", days(&of.first, &of.last))
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

/// A bucket in milliseconds: "1.02–1.03".
pub(super) fn bounds(of: Option<Bounds>) -> String {
    of.map_or("–".into(), bounds_of)
}

pub(super) fn bounds_of(of: Bounds) -> String {
    // So many digits that 1.1 % are seen.
    let digits = match of.up_to_ns {
        0..100_000 => 4,
        100_000..100_000_000 => 3,
        _ => 1,
    };
    let [above, up_to] = [of.above_ns, of.up_to_ns].map(|ns| format!("{:.digits$}", ns as f64 / 1e6));
    format!("{above}–{up_to}")
}

/// Where one figure must do: the bucket's upper bound.
pub(super) fn upper(of: Bounds) -> String {
    format!("≤ {}", words::duration(of.up_to_ns))
}

/// A git hash as git shows it.
fn short(revision: &str) -> String {
    let is_hash = revision.len() == 40 && revision.chars().all(|c| c.is_ascii_hexdigit());
    if is_hash { revision[..12].to_owned() } else { revision.to_owned() }
}
