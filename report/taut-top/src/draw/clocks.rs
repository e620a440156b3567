//! What is known of the clocks of several hosts.

use ratatui::{style::Color, text::Line};
use taut_live::{Clocks, State};
use taut_points::hosts::ClocksFrom;
use taut_report::words;

use super::pieces::{coloured, cut};
use crate::view::View;

/// A line for each host but the first.
pub fn lines(state: &State, view: &View, width: usize) -> Vec<Line<'static>> {
    if let Some(why) = &state.unaligned {
        return vec![Line::from(coloured(cut(&format!("not one clock yet: {why}"), width), Color::Yellow, view))];
    }
    let to_first = |clocks: &&Clocks| clocks.hosts[0] == state.clocks[0].hosts[0];
    state.clocks.iter().filter(to_first).map(|clocks| Line::from(cut(&sentence(clocks), width))).collect()
}

/// By how much the level of a hop between two hosts is wrong at most; `None`: it is of one host, or no bound is known.
pub fn bound(state: &State, ends: &[String]) -> Option<String> {
    let [from, to] = ends else { return None };
    let host = |point: &'_ str| point.split_once(':').map_or("", |(host, _)| host).to_owned();
    let (from, to) = (host(from), host(to));
    let is_between = |of: &&Clocks| of.hosts.contains(&from) && of.hosts.contains(&to) && from != to;
    let bound_ns = state.clocks.iter().find(is_between)?.bound_ns?;
    (bound_ns > 0).then(|| format!(" ± {}", words::scaled(bound_ns as f64)))
}

fn sentence(clocks: &Clocks) -> String {
    let [a, b] = &clocks.hosts;
    let [there, back] = clocks.messages.map(words::count);
    match (clocks.from, clocks.bound_ns) {
        (ClocksFrom::OneMachine, _) => format!("{a} ↔ {b}: one machine, one clock"),
        (ClocksFrom::Realtime, _) => format!("{a} ↔ {b}: CLOCK_REALTIME is taken for one clock, without a bound"),
        (ClocksFrom::Messages, Some(bound_ns)) => format!(
            "{a} ↔ {b}: offset {:.6} s ± {}, by the last {there} messages to {b} and {back} back",
            clocks.offset_ns as f64 / 1e9,
            words::scaled(bound_ns as f64)
        ),
        (ClocksFrom::Messages, None) => {
            format!("{a} ↔ {b}: messages one way only: a delay is the time beyond the fastest")
        }
    }
}
