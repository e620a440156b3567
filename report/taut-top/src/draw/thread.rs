//! One thread: what it did, turn by turn.

use ratatui::{Frame, layout::Rect, text::Line, widgets::Paragraph};
use taut_live::State;
use taut_report::words;

use super::pieces::{bold, fill, right};
use crate::view::View;

pub fn draw(frame: &mut Frame<'_>, state: &State, view: &View, area: Rect) {
    let Some(thread) = view.thread(state) else { return };
    let states = thread.recently();
    let all = states.values().sum::<u64>().max(1) as f64;
    let width = (area.width as usize).saturating_sub(42);
    let mut lines = vec![Line::from(bold(format!("THREAD {} of 10 s", thread.name)))];
    let mut rows: Vec<(&str, u64)> = states.into_iter().collect();
    rows.sort_by_key(|(word, ns)| (std::cmp::Reverse(*ns), *word));
    for (word, ns) in rows {
        let share = ns as f64 / all;
        lines.push(Line::from(
            fill(word, 18)
                + &right(&words::duration(ns), 10)
                + &right(&words::percent(share), 9)
                + "  "
                + &words::bar(share, width),
        ));
    }
    lines.push(Line::from(""));
    lines.push(Line::from(bold(fill("RUNNING, turn by turn", 28) + &right("of the turn", 11))));
    for (until_ns, states) in thread.recent.iter().rev() {
        let all = states.values().sum::<u64>().max(1) as f64;
        let share = states.get("running").copied().unwrap_or(0) as f64 / all;
        let ago = state.until_ns.saturating_sub(*until_ns) as f64 / 1e9;
        lines.push(Line::from(
            fill(&format!("{ago:.1} s ago"), 28) + &right(&words::percent(share), 9) + "  " + &words::bar(share, width),
        ));
    }
    frame.render_widget(Paragraph::new(lines), area);
}
