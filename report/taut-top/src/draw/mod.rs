//! The display: made for 80 × 24, and for any size above 40 × 10.

mod clocks;
mod hop;
mod overview;
mod pieces;
mod thread;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::Color,
    text::{Line, Span},
    widgets::{Clear, Paragraph},
};
use taut_live::State;
use taut_recording::Shown;
use taut_report::words;

use crate::view::{Page, View};
use pieces::{bold, coloured, cut, fill};

const KEYS: &str = "? help  ↑↓ choose  Tab list  Enter into  s sort  p pause  r record  q quit";
/// A recorder that lives writes its clocks each second.
const SILENT_NS: u64 = 4_000_000_000;
const HELP: [&str; 15] = [
    "↑ ↓ k j       choose a chain, a hop, a thread",
    "Tab           to the next list",
    "Enter →       into it: a chain's hops, a hop, a thread",
    "Esc ←         back",
    "s             sort: by rate, by p99 (threads: by waiting), by drops, by name",
    "t             figures since the start, or of the last 10 s",
    "p space       the picture stands still, the recording goes on",
    "r             record the next minute into a file of its own",
    "q Ctrl-C      end",
    "",
    "TAIL: excess latency of the slowest messages of the last turn by cause,",
    "over typical ones; without enough messages, all time by cause.",
    "~ before a quantile: fewer than ten messages lie beyond it.",
    "Bars of hops: as long as p99, coloured by cause. wait: runnable, no CPU.",
    "Any key closes this.",
];

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, state: &State, view: &View, title: &str) {
    let clocks = clocks::lines(state, view, frame.area().width as usize);
    let of_head = Constraint::Length(2 + clocks.len() as u16);
    let [head, body, foot] =
        Layout::vertical([of_head, Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
    let heading = heading(state, view, title, head.width as usize);
    frame.render_widget(Paragraph::new([heading, clocks].concat()), head);
    match state.info.is_some() {
        true => match view.page {
            Page::Overview => overview::draw(frame, state, view, body),
            Page::Hop => hop::draw(frame, state, view, body),
            Page::Thread => thread::draw(frame, state, view, body),
        },
        false => frame.render_widget(Paragraph::new("waiting for the first records …"), body),
    }
    frame.render_widget(Paragraph::new(cut(KEYS, foot.width as usize)), foot);
    if view.is_help {
        help(frame, view, body);
    }
}

fn heading(state: &State, view: &View, title: &str, width: usize) -> Vec<Line<'static>> {
    let tier = state.info.as_ref().map_or(String::new(), |info| format!(" · {} tier", info.tier.word()));
    let since = state.info.as_ref().map_or(0, |info| state.until_ns.saturating_sub(info.start_monotonic_ns));
    let seconds = since / 1_000_000_000;
    let (count, what) = match state.stamps == 0 && state.ros_events > 0 {
        true => (state.ros_events_per_s, "ROS 2 events"),
        false => (state.stamps_per_s, "stamps"),
    };
    let right = format!(
        "{} {what}/s · {}:{:02}:{:02}",
        words::count(count.round() as u64),
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    let room = width.saturating_sub(right.chars().count() + 1);
    let first = Line::from(vec![
        bold(fill(&cut(&format!("taut top · {title}{tier}"), room), room)),
        Span::raw(format!(" {right}")),
    ]);
    let mut second = lost(state, view);
    second.push(Span::raw(format!(" · {}", guard(state))));
    match (&state.keeping, &state.kept) {
        (Some((path, until_ns)), _) => {
            let left = until_ns.saturating_sub(state.until_ns) / 1_000_000_000;
            second.push(coloured(format!(" · recording {}, {left} s left", path.shown()), Color::Yellow, view));
        }
        (None, Some(Ok(path))) => second.push(Span::raw(format!(" · recorded {}", path.shown()))),
        (None, Some(Err(why))) => second.push(coloured(format!(" · not recorded: {why}"), Color::Red, view)),
        (None, None) => {}
    }
    if state.silent_ns > SILENT_NS && state.ending.is_none() {
        let silent = words::duration(state.silent_ns);
        let of = if state.silent_host.is_empty() { String::new() } else { format!(" of {}", state.silent_host) };
        second.push(coloured(format!(" · nothing new{of} for {silent}: is the recorder gone?"), Color::Red, view));
    }
    if state.ending.is_some() {
        second.push(bold(" · the recording has ended".to_owned()));
    }
    if view.is_paused {
        second.push(bold(" · PAUSED".to_owned()));
    }
    vec![first, Line::from(second)]
}

fn lost(state: &State, view: &View) -> Vec<Span<'static>> {
    let lost = &state.lost;
    let mut spans = Vec::new();
    for (count, what) in [
        (lost.stamps, "stamps"),
        (lost.ros_events, "ROS 2 events"),
        (lost.kernel_events, "kernel events"),
        (lost.telemetry, "telemetry"),
        (lost.samples, "samples"),
        (state.damaged_chunks, "damaged chunks"),
    ] {
        if count > 0 {
            let dot = if spans.is_empty() { "" } else { " · " };
            spans.push(coloured(format!("{dot}LOST {} {what}", words::count(count)), Color::Red, view));
        }
    }
    if spans.is_empty() { vec![Span::raw("nothing lost")] } else { spans }
}

fn guard(state: &State) -> String {
    let guard = state.guard;
    match (guard.is_armed, guard.trips, guard.false_trips) {
        (false, ..) => "no guard".to_owned(),
        (true, trips, 0) => format!("guard armed, {}", words::quantity(trips, "trip")),
        (true, trips, not) => format!("guard armed, {}, {not} false", words::quantity(trips, "trip")),
    }
}

fn help(frame: &mut Frame<'_>, view: &View, within: Rect) {
    let height = within.height.min(HELP.len() as u16);
    let area = Rect { y: within.y + (within.height - height) / 2, height, ..within };
    let line = |text: &str| Line::from(coloured(cut(&format!("  {text}"), area.width as usize), Color::Cyan, view));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(HELP.map(line).to_vec()), area);
}
