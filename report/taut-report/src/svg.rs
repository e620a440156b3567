//! Parts of pictures that are drawn here, not in the browser: they must look the same in an archive of build results, where scripts are
//! often forbidden.

/// What a page with such pictures needs.
pub(crate) const STYLE: &str = "
svg.drawn { width: 100%; height: auto; display: block; font-size: 12px; }
svg.drawn text { fill: var(--quiet); } svg.drawn .grid { stroke: var(--grid); }
svg.drawn .curve { fill: none; stroke-width: 2.5; } svg.drawn circle { fill: var(--line-1); }
svg.drawn .a { stroke: var(--line-1); } svg.drawn .b { stroke: var(--line-2); }
svg.drawn .c { stroke: var(--line-3); } svg.drawn .d { stroke: var(--line-4); }
";

pub(crate) const WIDTH: f64 = 1000.0;
pub(crate) const HEIGHT: f64 = 260.0;
/// Room for the labels below and to the left.
pub(crate) const FOOT: f64 = 34.0;
pub(crate) const LEFT: f64 = 64.0;
/// Where curves end: half of the last label's width before the edge.
pub(crate) const RIGHT: f64 = WIDTH - 26.0;

/// 1, 2, 5 of each decade; fewer where these would be crowded.
pub(crate) fn ticks(low: f64, high: f64) -> Vec<f64> {
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let steps: &[f64] = if last - first > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = (first..=last).flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
    all.filter(|ns| (low..=high).contains(ns)).collect()
}

pub(crate) fn open(title: &str) -> String {
    format!("<svg role=\"img\" viewBox=\"0 -8 {WIDTH} {}\" class=\"drawn\"><title>{title}</title>", HEIGHT + 8.0)
}

pub(crate) fn rule(x1: f64, y1: f64, x2: f64, y2: f64) -> String {
    format!("<line class=\"grid\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>")
}

/// At most, at the size that the page's style gives.
pub(crate) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 8.0
}

/// `text` is markup.
pub(crate) fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>")
}
