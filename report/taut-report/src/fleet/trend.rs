//! Pictures of a fleet: figures week by week, and changes with their intervals.

use super::{Bounds, ComparedPlace, Place, Worst, sentences};
use crate::{
    html::escape,
    svg::{FOOT, HEIGHT, LEFT, RIGHT, open, rule, text, text_width, ticks},
    words,
};

/// The colours that a picture has.
pub(super) const LINES: [&str; 4] = ["a", "b", "c", "d"];

/// A name, and a figure week by week.
pub(super) type Line<'a> = (&'a str, Vec<(&'a str, Option<Bounds>)>);

/// Lines over weeks; the axis of time is logarithmic. Weeks without the figure leave a gap.
pub(super) fn weeks(title: &str, lines: &[Line<'_>]) -> String {
    let mut names: Vec<&str> = lines.iter().flat_map(|(_, line)| line.iter().map(|(week, _)| *week)).collect();
    names.sort_unstable();
    names.dedup();
    let values =
        || lines.iter().flat_map(|(_, line)| line.iter().filter_map(|(_, of)| Some(of.as_ref()?.up_to_ns as f64)));
    let (low, high) = values().fold((f64::INFINITY, 0.0f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    if names.len() < 2 || high <= 0.0 {
        return String::new();
    }
    // Room above and below, so that a steady figure is a line in the middle.
    let (low, high) = (low.max(1.0) / 1.3, high * 1.3);
    let x = |at: usize| LEFT + at as f64 / (names.len() - 1) as f64 * (RIGHT - LEFT);
    let y = |ns: f64| (1.0 - (ns / low).ln() / (high / low).ln()) * (HEIGHT - FOOT);
    let mut svg = open(title);
    for ns in ticks(low, high) {
        svg += &rule(LEFT, y(ns), RIGHT, y(ns));
        svg += &text(LEFT - 6.0, y(ns) + 4.0, "end", &words::scaled(ns));
    }
    let mut free = LEFT;
    for (at, week) in names.iter().enumerate() {
        let half = text_width(week) / 2.0;
        let middle = x(at).min(RIGHT - half).max(LEFT + half);
        if middle - half >= free {
            svg += &text(middle, HEIGHT - FOOT + 18.0, "middle", &escape(week));
            free = middle + half + 12.0;
        }
    }
    for ((_, line), class) in lines.iter().zip(LINES) {
        let mut stretch: Vec<(f64, f64)> = Vec::new();
        let mut stretches = Vec::new();
        for (at, week) in names.iter().enumerate() {
            match line.iter().find(|(name, _)| name == week).and_then(|(_, of)| *of) {
                Some(of) => stretch.push((x(at), y(of.up_to_ns as f64))),
                None => stretches.push(std::mem::take(&mut stretch)),
            }
        }
        stretches.push(stretch);
        for stretch in stretches.iter().filter(|stretch| !stretch.is_empty()) {
            // A week alone is a dot: a line of no length with round ends.
            let points: Vec<String> = stretch
                .iter()
                .chain(stretch.first())
                .take(stretch.len().max(2))
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            svg += &format!(
                "<polyline class=\"curve {class}\" stroke-linecap=\"round\" points=\"{}\"/>",
                points.join(" ")
            );
        }
    }
    svg + "</svg>"
}

/// p50, p99, p99.9 of a place.
pub(super) fn figures(place: &Place) -> Vec<Line<'_>> {
    [("p50", "p50"), ("p99", "p99"), ("p99.9", "p999")]
        .into_iter()
        .map(|(name, key)| (name, place.weeks.iter().map(|week| (week.week.as_str(), week.figures.of(key))).collect()))
        .collect()
}

/// The p99 of the hops that take most time.
pub(super) fn hops(places: &[Place]) -> Vec<Line<'_>> {
    let mut hops: Vec<&Place> = places.iter().filter(|place| place.position > 0).collect();
    hops.sort_by(|a, b| b.time_share.unwrap_or(0.0).total_cmp(&a.time_share.unwrap_or(0.0)));
    hops.truncate(LINES.len());
    hops.into_iter()
        .map(|place| {
            (place.hop.as_str(), place.weeks.iter().map(|week| (week.week.as_str(), week.figures.p99)).collect())
        })
        .collect()
}

/// A line of a picture that has one for each name.
const ROW: f64 = 26.0;
/// Room for the names.
const NAMES: f64 = 330.0;

/// The ranked robots' figure as bars from 0, with a line at the median robot's.
pub(super) fn ranking(worst: &Worst) -> String {
    let rows: Vec<(&str, u64)> = worst
        .ranked
        .iter()
        .filter_map(|robot| Some((robot.robot.as_str(), robot.figures.of(&worst.figure)?.up_to_ns)))
        .collect();
    let (Some(high), Some(median)) = (rows.iter().map(|(_, ns)| *ns).max().filter(|ns| *ns > 0), worst.median) else {
        return String::new();
    };
    let x = |ns: u64| NAMES + ns as f64 / high as f64 * (RIGHT - NAMES - 60.0);
    let height = rows.len() as f64 * ROW;
    let mut svg = tall("Robots", height);
    for (at, (name, ns)) in rows.iter().enumerate() {
        let y = (at as f64 + 0.5) * ROW;
        svg += &text(NAMES - 14.0, y + 4.0, "end", &escape(&cut(name, 40)));
        svg += &format!("<line class=\"bar\" x1=\"{NAMES}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>", x(*ns));
        svg += &text(x(*ns) + 8.0, y + 4.0, "start", &words::duration(*ns));
    }
    let at = x(median.up_to_ns);
    svg += &format!("<line class=\"median\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"{height:.1}\"/>");
    svg += &text(at, height + 18.0, "middle", &format!("median robot {}", words::duration(median.up_to_ns)));
    svg + "</svg>"
}

/// A picture that is as tall as its rows.
fn tall(title: &str, height: f64) -> String {
    format!("<svg role=\"img\" viewBox=\"0 -8 1000 {}\" class=\"drawn\"><title>{title}</title>", height + FOOT + 8.0)
}

/// Each place's change of p50 and p99 by robots, as a dot with its interval; right of 1 is later.
pub(super) fn changes(places: &[ComparedPlace]) -> String {
    let rows: Vec<(String, &super::Factor)> = places
        .iter()
        .flat_map(|place| {
            let name = if place.hop.is_empty() { "whole way" } else { &place.hop };
            sentences::changes(place)
                .into_iter()
                .filter(|(figure, _)| ["p50", "p99"].contains(figure))
                .map(move |(figure, factor)| (format!("{name}, {}", sentences::figure(figure)), factor))
        })
        .collect();
    let ends = |factor: &super::Factor| [factor.low.unwrap_or(factor.factor), factor.high.unwrap_or(factor.factor)];
    // The axis is symmetric about 1 and shows at least a tenth more and less.
    let widest = rows.iter().flat_map(|(_, factor)| ends(factor)).map(|end| end.ln().abs()).fold(0.1, f64::max) * 1.1;
    if rows.is_empty() || !widest.is_finite() {
        return String::new();
    }
    let height = rows.len() as f64 * ROW;
    let x = |factor: f64| NAMES + (factor.ln() / widest + 1.0) / 2.0 * (RIGHT - NAMES);
    let mut svg = tall("Change by robots", height);
    let mut taken: Vec<f64> = Vec::new();
    // What matters most first; others where there is room.
    for factor in [1.0f64, 0.5, 2.0, 0.1, 10.0, 0.8, 1.25, 0.2, 5.0, 0.9, 1.1, 0.95, 1.05] {
        let at = x(factor);
        if factor.ln().abs() <= widest && taken.iter().all(|other| (other - at).abs() > text_width("×0.00") * 1.5) {
            svg += &rule(at, 0.0, at, height);
            svg += &text(at, height + 18.0, "middle", &words::ratio(factor));
            taken.push(at);
        }
    }
    for (at, (name, factor)) in rows.iter().enumerate() {
        let y = (at as f64 + 0.5) * ROW;
        svg += &text(NAMES - 14.0, y + 4.0, "end", &escape(&cut(name, 40)));
        let [low, high] = ends(factor);
        let class = if !factor.is_sure() {
            "same"
        } else if factor.factor > 1.0 {
            "worse"
        } else {
            "better"
        };
        svg += &format!(
            "<line class=\"change {class}\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
            x(low),
            x(high)
        );
        svg += &format!("<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>", x(factor.factor));
    }
    svg + "</svg>"
}

/// The end of a name that is too long says more than its beginning.
fn cut(name: &str, most: usize) -> String {
    let n = name.chars().count();
    if n <= most { name.to_owned() } else { format!("…{}", name.chars().skip(n - most + 1).collect::<String>()) }
}
