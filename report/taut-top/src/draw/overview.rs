//! A little of everything: chains, the chosen one's hops, its tail, threads.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::Color,
    text::{Line, Span},
    widgets::Paragraph,
};
use taut_analysis::{Cause, Selected};
use taut_live::{Chain, LiveFigures, State};
use taut_report::words;

use super::clocks::bound;
use super::pieces::{
    COLUMN, bold, cause_bar, chosen, colour, coloured, cut, fill, largest, name, quantile, rate, right, shares,
};
use crate::view::{Focus, View};

/// Of a cause's word.
const CAUSE: usize = 11;
const RATE: usize = 8;
const BAR: usize = 8;
/// What a name needs to be known again. Where it does not fit beside all columns, only p50 and p99 stand beside it.
const NAME_MIN: usize = 12;
/// Below it the threads stand under the tail, and not beside it: half of the columns would cut both.
const BESIDE_MIN: u16 = 72;

pub fn draw(frame: &mut Frame<'_>, state: &State, view: &View, area: Rect) {
    let chains = view.chains(state);
    let hops = view.chain(state).map_or(0, |chain| chain.points.len().saturating_sub(1));
    // All chains, but a third at most; then the hops, and what is left for the tail and the threads.
    let of_chains = (chains.len() as u16).clamp(1, (area.height / 3).max(2) - 1) + 1;
    let of_hops = (hops as u16).clamp(1, (area.height / 3).max(3)) + 2;
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(of_chains), Constraint::Length(of_hops), Constraint::Fill(1)]).areas(area);
    let halves = [Constraint::Percentage(50), Constraint::Percentage(50)];
    let beside = if area.width < BESIDE_MIN { Layout::vertical(halves) } else { Layout::horizontal(halves) };
    let [of_tail, of_threads] = beside.areas(bottom);
    frame.render_widget(Paragraph::new(chain_lines(&chains, state, view, top)), top);
    if let Some(chain) = view.chain(state) {
        frame.render_widget(Paragraph::new(hop_lines(chain, state, view, middle)), middle);
        frame.render_widget(Paragraph::new(tail(chain, view, of_tail)), of_tail);
    }
    frame.render_widget(Paragraph::new(threads(state, view, of_threads)), of_threads);
}

/// Those of the last seconds, or since the start, and over how long.
pub fn figures(chain: &Chain, state_ns: u64, view: &View) -> (LiveFigures, u64) {
    if view.is_total { (chain.total.clone(), state_ns) } else { chain.recently() }
}

fn chain_lines(chains: &[&Chain], state: &State, view: &View, area: Rect) -> Vec<Line<'static>> {
    let since = state.info.as_ref().map_or(0, |info| state.until_ns.saturating_sub(info.start_monotonic_ns));
    let (width, beside) = (area.width as usize, RATE + 3 * COLUMN + RATE + 1 + CAUSE);
    let is_narrow = width < beside + NAME_MIN;
    let room = width.saturating_sub(if is_narrow { 2 * COLUMN } else { beside });
    let of = if view.is_total { "all" } else { "10 s" };
    let head = format!("CHAINS, {of}, by {}", view.sort.word());
    let columns = match is_narrow {
        true => right("p50", COLUMN) + &right("p99", COLUMN),
        false => {
            [
                right("/s", RATE),
                right("p50", COLUMN),
                right("p99", COLUMN),
                right("max", COLUMN),
                right("drops/s", RATE),
            ]
            .concat()
                + " tail"
        }
    };
    let mut lines = vec![Line::from(vec![bold(name(&head, room)), bold(columns)])];
    let of_view = view.chain(state).map(|chain| chain.name.clone());
    let at = chains.iter().position(|chain| Some(&chain.name) == of_view.as_ref()).unwrap_or(0);
    for chain in visible(chains, at, area.height) {
        let (figures, span_ns) = figures(chain, since, view);
        let style = chosen(view.focus == Focus::Chains && Some(&chain.name) == of_view.as_ref());
        if is_narrow {
            let figures = quantile(&figures.way, 0.5) + &quantile(&figures.way, 0.99);
            lines.push(Line::from(vec![Span::raw(name(&chain.name, room)), Span::raw(figures)]).style(style));
            continue;
        }
        let dropped = right(&rate(figures.dropped(), span_ns), RATE);
        let tail = chain.explained.causes.first().filter(|_| chain.explained.tail_messages > 0);
        lines.push(
            Line::from(vec![
                Span::raw(name(&chain.name, room)),
                Span::raw(right(&rate(figures.messages(), span_ns), RATE)),
                Span::raw(quantile(&figures.way, 0.5) + &quantile(&figures.way, 0.99) + &largest(&figures.way)),
                if figures.dropped() > 0 { coloured(dropped, Color::Yellow, view) } else { Span::raw(dropped) },
                Span::raw(" "),
                tail.map_or(Span::raw("–"), |share| coloured(share.cause.word().into(), colour(share.cause), view)),
            ])
            .style(style),
        );
    }
    if chains.is_empty() {
        lines.push(Line::from("no message has gone from a first to a last point yet"));
    }
    lines
}

/// As many as there is room for below a head, with the chosen one among them.
pub fn visible<T>(all: &[T], chosen: usize, height: u16) -> &[T] {
    let room = (height as usize).saturating_sub(1).max(1);
    let start = (chosen + 1).saturating_sub(room).min(all.len());
    &all[start..all.len().min(start + room)]
}

fn hop_lines(chain: &Chain, state: &State, view: &View, area: Rect) -> Vec<Line<'static>> {
    let (figures, span_ns) = figures(chain, 0, view);
    let (width, beside) = (area.width as usize, 3 * COLUMN + 1 + BAR + 1 + CAUSE);
    let is_narrow = width < beside + NAME_MIN;
    let room = width.saturating_sub(if is_narrow { 2 * COLUMN } else { beside });
    let columns = match is_narrow {
        true => right("p50", COLUMN) + &right("p99", COLUMN),
        false => format!(
            "{}{}{} {} mostly",
            right("p50", COLUMN),
            right("p99", COLUMN),
            right("max", COLUMN),
            fill("p99", BAR)
        ),
    };
    let mut lines = vec![Line::from(vec![
        bold(name(&format!("HOPS from {}", chain.points.first().map_or("", String::as_str)), room)),
        bold(columns),
    ])];
    let p99 = |hop: &taut_live::Hop| hop.delay.quantile_ns(0.99).unwrap_or(0);
    let longest = figures.hops.iter().map(p99).max().unwrap_or(0).max(1) as f64;
    let ends: Vec<(usize, &[String])> = chain.points.windows(2).enumerate().collect();
    // One line is for the drops.
    for (at, ends) in visible(&ends, view.hop, area.height.saturating_sub(1)) {
        let none = taut_live::Hop::default();
        let hop = figures.hops.get(*at).unwrap_or(&none);
        let shares = shares(hop);
        let style = chosen(view.focus == Focus::Hops && *at == view.hop);
        if is_narrow {
            let figures = quantile(&hop.delay, 0.5) + &quantile(&hop.delay, 0.99);
            lines.push(
                Line::from(vec![Span::raw(name(&format!("→ {}", ends[1]), room)), Span::raw(figures)]).style(style),
            );
            continue;
        }
        let bound = bound(state, ends).unwrap_or_default();
        let length = (p99(hop) as f64 / longest * BAR as f64).ceil() as usize;
        let mut spans = vec![
            Span::raw(name(&format!("→ {}", ends[1]), room.saturating_sub(bound.chars().count())) + &bound),
            Span::raw(quantile(&hop.delay, 0.5) + &quantile(&hop.delay, 0.99) + &largest(&hop.delay) + " "),
        ];
        spans.extend(cause_bar(&shares, length.min(BAR), view));
        spans.push(Span::raw(" ".repeat(BAR - length.min(BAR) + 1)));
        spans.extend(shares.first().map(|(cause, _)| coloured(cause.word().to_owned(), colour(*cause), view)));
        lines.push(Line::from(spans).style(style));
    }
    let is_drop = |(word, _): &(&String, &u64)| !matches!(word.as_str(), "applied" | "ended_early");
    let mut ended: Vec<(&String, &u64)> = figures.outcomes.iter().filter(is_drop).collect();
    ended.sort_by_key(|(word, count)| (std::cmp::Reverse(**count), *word));
    let one = |(word, count): &(&String, &u64)| match view.is_total {
        true => format!("{word} {}", words::count(**count)),
        false => format!("{word} {}/s", rate(**count, span_ns)),
    };
    let drops =
        if ended.is_empty() { "none".to_owned() } else { ended.iter().map(one).collect::<Vec<_>>().join(" · ") };
    let partial = match figures.partial {
        0 => String::new(),
        n => format!(" · {} not seen at both ends", words::count(n)),
    };
    let room = (area.width as usize).saturating_sub(6);
    lines.push(Line::from(vec![bold("DROPS ".to_owned()), Span::raw(cut(&format!("{drops}{partial}"), room))]));
    lines
}

fn tail(chain: &Chain, view: &View, area: Rect) -> Vec<Line<'static>> {
    let width = (area.width as usize).saturating_sub(2);
    let explained = &chain.explained;
    let rows: Vec<(Cause, String, f64)> = match explained.tail_messages {
        1.. => explained.causes.iter().map(|c| (c.cause, c.detail.clone(), c.tail_share)).collect(),
        0 => {
            let mut sum = taut_live::Hop::default();
            for (cause, spread) in figures(chain, 0, view).0.hops.iter().flat_map(|hop| &hop.causes) {
                sum.causes.entry(*cause).or_default().add(spread);
            }
            shares(&sum).into_iter().map(|(cause, share)| (cause, String::new(), share)).collect()
        }
    };
    let messages = words::quantity(explained.tail_messages, "message");
    let head = match (explained.tail_messages, explained.selected) {
        (0, _) => "TIME by cause".to_owned(),
        (_, Selected::Tail(at) | Selected::AboveQuantile(at)) => {
            format!("TAIL, {messages} above {}", words::quantile(at))
        }
        (_, Selected::Overran) => format!("OVERRUNS, {messages}"),
        _ => format!("TAIL, {messages} above {}", words::duration(explained.tail_limit_ns)),
    };
    let room = width.saturating_sub(CAUSE + 9);
    let columns = fill("cause", CAUSE) + &right("share", 8) + " detail";
    let mut lines = vec![Line::from(bold(cut(&head, width))), Line::from(bold(cut(&columns, width)))];
    for (cause, detail, share) in rows.into_iter().filter(|(.., share)| *share > 0.0005).take(area.height as usize) {
        let beside = if detail.is_empty() { words::bar(share, room.saturating_sub(1)) } else { cut(&detail, room) };
        lines.push(Line::from(vec![
            coloured(fill(cause.word(), CAUSE), colour(cause), view),
            Span::raw(right(&words::percent(share), 8) + " "),
            Span::raw(beside),
        ]));
    }
    for party in explained.responsible.iter().take((area.height as usize).saturating_sub(lines.len())) {
        lines.push(Line::from(cut(&format!("by {} {}", party.kind, party.name), width)));
    }
    lines
}

fn threads(state: &State, view: &View, area: Rect) -> Vec<Line<'static>> {
    const SHARE: usize = 7;
    let threads = view.threads(state);
    let room = (area.width as usize).saturating_sub(3 * SHARE);
    let mut lines = vec![Line::from(vec![
        bold(name(&format!("THREADS ({}), 10 s", threads.len()), room)),
        bold(right("run %", SHARE) + &right("wait %", SHARE) + &right("off %", SHARE)),
    ])];
    let of_view = view.thread(state).map(|thread| thread.tid);
    let at = threads.iter().position(|thread| Some(thread.tid) == of_view).unwrap_or(0);
    for thread in visible(&threads, at, area.height) {
        let states = thread.recently();
        let all = states.values().sum::<u64>().max(1) as f64;
        let share = |words: &[&str]| {
            let ns: u64 = words.iter().filter_map(|word| states.get(word)).sum();
            right(&format!("{:.1}", ns as f64 * 100.0 / all), SHARE)
        };
        let off = ["blocked", "uninterruptible", "stopped"];
        let waiting = ["preempted", "woken", "waiting"];
        let text = name(&thread.name, room) + &share(&["running"]) + &share(&waiting) + &share(&off);
        lines.push(Line::from(text).style(chosen(view.focus == Focus::Threads && Some(thread.tid) == of_view)));
    }
    if threads.is_empty() {
        lines.push(Line::from("none seen yet"));
    }
    lines
}
