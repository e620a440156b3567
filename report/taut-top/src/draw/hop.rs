//! One hop: its figures, its distribution, its causes.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::{Line, Span},
    widgets::Paragraph,
};
use taut_live::{BUCKETS, Hop, Spread, State};
use taut_report::words;

use super::clocks::bound;
use super::pieces::{COLUMN, bold, colour, coloured, cut, fill, largest, quantile, right, shares};
use crate::view::View;

const QUANTILES: [(f64, &str); 4] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];

pub fn draw(frame: &mut Frame<'_>, state: &State, view: &View, area: Rect) {
    let Some(chain) = view.chain(state) else { return };
    let Some(ends) = chain.points.get(view.hop..view.hop + 2) else { return };
    let recent = chain.recently().0;
    let none = Hop::default();
    let of = |hops: &'_ [Hop]| hops.get(view.hop).cloned().unwrap_or(none.clone());
    let (recent, total) = (of(&recent.hops), of(&chain.total.hops));
    let [top, bottom] = Layout::vertical([Constraint::Length(4), Constraint::Fill(1)]).areas(area);
    let [left, right_half] = Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(bottom);
    let bound = bound(state, ends).unwrap_or_default();
    let title = format!("HOP {} of {}: {} → {}{bound}", view.hop + 1, chain.name, ends[0], ends[1]);
    let heads = QUANTILES.map(|(_, head)| right(head, COLUMN)).concat();
    let lines = vec![
        Line::from(bold(cut(&title, area.width as usize))),
        Line::from(bold(fill("", 18) + &right("messages", 12) + &heads + &right("max", COLUMN))),
        line("of 10 s", &recent.delay),
        line("since the start", &total.delay),
    ];
    frame.render_widget(Paragraph::new(lines), top);
    let shown = if view.is_total { &total } else { &recent };
    frame.render_widget(Paragraph::new(histogram(&shown.delay, left)), left);
    let tail = chain.explained.hops.get(view.hop);
    let mut lines = vec![Line::from(bold("TIME by cause".to_owned()))];
    let room = right_half.width as usize;
    for (cause, share) in shares(shown) {
        lines.push(Line::from(vec![
            coloured(fill(cause.word(), 12), colour(cause), view),
            Span::raw(right(&words::percent(share), 7) + " " + &words::bar(share, room.saturating_sub(22))),
        ]));
    }
    if let Some(tail) = tail.filter(|_| chain.explained.tail_messages > 0) {
        lines.push(Line::from(bold("TAIL of the chain, spent here".to_owned())));
        for share in tail.iter().filter(|share| share.tail_share > 0.0005) {
            lines.push(Line::from(vec![
                coloured(fill(share.cause.word(), 12), colour(share.cause), view),
                Span::raw(
                    right(&words::percent(share.tail_share), 7) + " " + &cut(&share.detail, room.saturating_sub(21)),
                ),
            ]));
        }
    }
    frame.render_widget(Paragraph::new(lines), right_half);
}

fn line(head: &str, spread: &Spread) -> Line<'static> {
    let quantiles = QUANTILES.map(|(at, _)| quantile(spread, at)).concat();
    Line::from(fill(head, 18) + &right(&words::count(spread.count()), 12) + &quantiles + &largest(spread))
}

/// A bar for each of so many buckets in a row that all fit.
fn histogram(spread: &Spread, area: Rect) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(bold("DISTRIBUTION".to_owned()))];
    let buckets: Vec<(i32, u64)> = spread.buckets().collect();
    let (Some((first, _)), Some((last, _))) = (buckets.first(), buckets.last()) else { return lines };
    let room = (area.height as i32 - 1).max(1);
    let together = ((last - first) / room + 1).max(1);
    let mut rows = vec![0u64; ((last - first) / together + 1) as usize];
    buckets.iter().for_each(|(index, count)| rows[((index - first) / together) as usize] += count);
    let most = rows.iter().copied().max().unwrap_or(1).max(1) as f64;
    let width = (area.width as usize).saturating_sub(24);
    for (at, count) in (0..).zip(rows) {
        let to = BUCKETS.whole_bounds(first + (at + 1) * together - 1).1;
        lines.push(Line::from(format!(
            "≤ {} {} {}",
            right(&words::duration(to), COLUMN),
            fill(&words::bar(count as f64 / most, width), width),
            right(&words::count(count), 9)
        )));
    }
    lines
}
