//! Texts of a width, bars, shares.

use std::collections::BTreeMap;

use ratatui::{
    style::{Color, Modifier, Style},
    text::Span,
};
use taut_analysis::Cause;
use taut_live::{Hop, Spread};
use taut_report::words;

use crate::view::View;

/// Of a duration's column.
pub const COLUMN: usize = 9;
/// A quantile is drawn without reserve when so many values lie beyond it.
const BEYOND: f64 = 10.0;

/// At most so many characters; "…" stands for what is cut off.
pub fn cut(text: &str, width: usize) -> String {
    match text.chars().count() <= width {
        true => text.to_owned(),
        false => text.chars().take(width.saturating_sub(1)).chain(['…'].into_iter().take(width)).collect(),
    }
}

/// Text with spaces behind it.
pub fn fill(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.chars().count())))
}

/// Text with spaces before it.
pub fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.chars().count())))
}

/// A name's column, cut and filled.
pub fn name(text: &str, width: usize) -> String {
    fill(&cut(text, width.saturating_sub(1)), width)
}

/// Strong.
pub fn bold(text: String) -> Span<'static> {
    Span::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

/// In a colour, where there are any.
pub fn coloured(text: String, colour: Color, view: &View) -> Span<'static> {
    match view.has_colour {
        true => Span::styled(text, Style::new().fg(colour)),
        false => bold(text),
    }
}

/// The row that is chosen.
pub fn chosen(is_chosen: bool) -> Style {
    if is_chosen { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() }
}

/// A quantile's column: "~" before one that few values carry, "–" for none.
pub fn quantile(spread: &Spread, quantile: f64) -> String {
    let text = spread.quantile_ns(quantile).map_or("–".to_owned(), words::duration);
    let is_carried = spread.count() as f64 * (1.0 - quantile) >= BEYOND;
    right(&if is_carried || text == "–" { text } else { format!("~{text}") }, COLUMN)
}

/// The largest value's column.
pub fn largest(spread: &Spread) -> String {
    right(&spread.max_ns().map_or("–".to_owned(), words::duration), COLUMN)
}

/// Something a second: "12.3", "1 205".
pub fn rate(count: u64, span_ns: u64) -> String {
    match count as f64 * 1e9 / span_ns.max(1) as f64 {
        0.0 => "0".to_owned(),
        rate if rate < 99.95 => format!("{rate:.1}"),
        rate => words::count(rate.round() as u64),
    }
}

/// A hop's time by cause, most first.
pub fn shares(hop: &Hop) -> Vec<(Cause, f64)> {
    let sums: BTreeMap<Cause, u64> = hop.causes.iter().map(|(cause, spread)| (*cause, spread.sum_ns())).collect();
    let all = sums.values().sum::<u64>().max(1) as f64;
    let mut shares: Vec<(Cause, f64)> = sums.into_iter().map(|(cause, ns)| (cause, ns as f64 / all)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

/// A bar of which each stretch has its cause's colour.
pub fn cause_bar(shares: &[(Cause, f64)], length: usize, view: &View) -> Vec<Span<'static>> {
    let mut left = length;
    let mut spans = Vec::new();
    for (cause, share) in shares {
        let characters = ((share * length as f64).round() as usize).min(left);
        if characters > 0 {
            spans.push(coloured("█".repeat(characters), colour(*cause), view));
        }
        left -= characters;
    }
    spans.push(Span::raw("█".repeat(if shares.is_empty() { left } else { 0 })));
    spans
}

/// What is the program's own doing is green and blue, what others did is warm.
pub fn colour(cause: Cause) -> Color {
    match cause {
        Cause::Cpu => Color::Green,
        Cause::Syscall | Cause::Io | Cause::Network | Cause::Disk => Color::Blue,
        Cause::Sleep | Cause::TimerSlack => Color::Cyan,
        Cause::Lock | Cause::Gil | Cause::Partner | Cause::Queued | Cause::Executor => Color::Magenta,
        Cause::Preempted | Cause::Throttled | Cause::Hypervisor | Cause::Stopped => Color::Red,
        Cause::Wakeup | Cause::Irq | Cause::PageFault => Color::Yellow,
        Cause::Unknown => Color::DarkGray,
    }
}
