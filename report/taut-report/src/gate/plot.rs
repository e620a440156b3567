//! Pictures of a gate as SVG: both distributions on one pair of axes, and a history with its changes.

use taut_gate::Plot;

use crate::{
    svg::{FOOT, HEIGHT, LEFT, RIGHT, open, rule, text, text_width, ticks},
    words,
};

/// The share of messages that took longer than so much, A and B on one plot; both axes logarithmic, so that the tail is seen.
pub(super) fn beyond(a: &Plot, b: &Plot) -> String {
    let curves = [("a", survival(a)), ("b", survival(b))];
    let all = || curves.iter().flat_map(|(_, curve)| curve);
    let (low, high) = all().fold((f64::INFINITY, 0.0f64), |(low, high), (ns, _)| (low.min(*ns), high.max(*ns)));
    let least = all().fold(1.0f64, |least, (_, share)| least.min(*share));
    if !(low > 0.0 && high > low) {
        return String::new();
    }
    let decades = (-least.log10()).ceil().max(1.0);
    let x = |ns: f64| LEFT + (ns / low).ln() / (high / low).ln() * (RIGHT - LEFT);
    let y = |share: f64| -share.log10() / decades * (HEIGHT - FOOT);
    let mut svg = open("Share of messages that took longer");
    for decade in 0..=decades as i32 {
        let share = 10f64.powi(-decade);
        svg += &rule(LEFT, y(share), RIGHT, y(share));
        svg += &text(LEFT - 6.0, y(share) + 4.0, "end", &quantile(decade));
    }
    for ns in ticks(low, high) {
        svg += &rule(x(ns), 0.0, x(ns), HEIGHT - FOOT);
        svg += &text(x(ns), HEIGHT - FOOT + 18.0, "middle", &words::scaled(ns));
    }
    for (side, curve) in &curves {
        let points: Vec<String> = curve.iter().map(|(ns, share)| format!("{:.1},{:.1}", x(*ns), y(*share))).collect();
        svg += &format!("<polyline class=\"curve {side}\" points=\"{}\"/>", points.join(" "));
    }
    svg + "</svg>"
}

/// (time, share of messages that took at least that long), descending in share, down to the last message.
fn survival(plot: &Plot) -> Vec<(f64, f64)> {
    let all = plot.count().max(1) as f64;
    let mut left = plot.count();
    let mut curve = Vec::new();
    for (from, to, count) in plot.bins() {
        if curve.is_empty() {
            curve.push((from, 1.0));
        }
        left -= count;
        curve.push((to, if left == 0 { 0.5 / all } else { left as f64 / all }));
    }
    curve
}

/// A history: the median trial of each revision, the levels between changes, and the revisions that changed it. `name`: of the
/// revision with this index.
pub(super) fn history(
    values: &[f64],
    levels: &[(usize, usize, f64)],
    number: &dyn Fn(f64) -> String,
    name: &dyn Fn(usize) -> String,
) -> String {
    let high = values.iter().copied().fold(0.0, f64::max) * 1.05;
    if values.len() < 2 || high <= 0.0 {
        return String::new();
    }
    let x = |at: f64| LEFT + at / (values.len() - 1) as f64 * (RIGHT - LEFT);
    let y = |value: f64| (1.0 - value / high) * (HEIGHT - FOOT);
    let mut svg = open("Over time");
    for part in 0..=4 {
        let value = high * f64::from(part) / 4.0;
        svg += &rule(LEFT, y(value), RIGHT, y(value));
        svg += &text(LEFT - 6.0, y(value) + 4.0, "end", &number(value));
    }
    for (from, to, level) in levels {
        let (from, to) = (x(*from as f64), x(*to as f64 - 1.0));
        svg += &format!(
            "<line class=\"curve b\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>",
            y(*level)
        );
    }
    let mut free = LEFT;
    for at in levels.iter().map(|(from, ..)| *from).chain([values.len() - 1]) {
        let half = text_width(&name(at)) / 2.0;
        let middle = x(at as f64).min(RIGHT - half).max(LEFT + half);
        if middle - half >= free {
            svg += &text(middle, HEIGHT - FOOT + 18.0, "middle", &crate::html::escape(&name(at)));
            free = middle + half + 12.0;
        }
    }
    for (at, value) in values.iter().enumerate() {
        svg += &format!("<circle class=\"a\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>", x(at as f64), y(*value));
    }
    svg + "</svg>"
}

/// The quantile that a share beyond it stands for.
fn quantile(decade: i32) -> String {
    match decade {
        0 => "all".into(),
        1 | 2 => words::quantile(1.0 - 10f64.powi(-decade)),
        _ => format!("p99.{}", "9".repeat(decade as usize - 2)),
    }
}
