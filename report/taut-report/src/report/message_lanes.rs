//! The messages that come with their path, worst first: their time by cause, and the threads' lanes.

use taut_analysis::{Cause, Chain, MessagePath, State};
use taut_document::{
    Activity, Block, Cell, LaneItem, LanePiece, LaneRow, LaneState, Lanes, Section, Show, Table, Text,
};

use super::{Asked, View, hop_name::hop_name};
use crate::{cause_classes, words};

/// Causes that the line of a message names.
const CAUSES: usize = 5;

pub(super) fn sections(chain: &Chain, view: View<'_>) -> Vec<Section> {
    let seen: Vec<&MessagePath> = chain.explained.paths.iter().filter(|path| is_seen(path)).collect();
    if seen.is_empty() {
        return Vec::new();
    }
    let lanes = |items: Vec<LaneItem>| Block::Lanes(Lanes { items, classes: cause_classes::classes() });
    let times = times(&chain.explained.paths).into();
    let mut sections = vec![Section::new(2, "Messages", vec![times]).shown(view.in_explanation())];
    if let View::Explanation(asked) = view {
        let drawn = drawn(&seen, asked).into_iter().map(|path| lanes(vec![item(chain, path)])).collect();
        sections.push(Section::new(2, "", drawn).shown(Show::Text));
    }
    let all = seen.into_iter().map(|path| item(chain, path)).collect();
    sections.push(Section::new(2, "", vec![lanes(all)]).shown(Show::Page));
    sections
}

/// Whether anything of the message's way is known.
fn is_seen(path: &MessagePath) -> bool {
    path.path.iter().any(|piece| piece.cause != Cause::Unknown)
}

/// The messages that are drawn as text: those asked for, else the worst.
fn drawn<'a>(seen: &[&'a MessagePath], asked: Asked<'_>) -> Vec<&'a MessagePath> {
    match asked.messages {
        [] => seen.iter().copied().take(1).collect(),
        ids => seen.iter().copied().filter(|path| ids.contains(&path.time.id)).collect(),
    }
}

/// "gil 8.00 ms (72.7 %), cpu 2.60 ms (23.6 %)" of each message.
fn times(paths: &[MessagePath]) -> Table {
    let mut table = Table::new(["worst first", "took", "spent on"]);
    table.columns[0].wraps = false;
    table.columns[2].wraps = true;
    for MessagePath { time, .. } in paths {
        let mut sums: Vec<(Cause, u64)> = Vec::new();
        for piece in &time.pieces {
            match sums.iter_mut().find(|(cause, _)| *cause == piece.cause) {
                Some((_, ns)) => *ns += piece.ns,
                None => sums.push((piece.cause, piece.ns)),
            }
        }
        sums.sort_by_key(|(cause, ns)| (std::cmp::Reverse(*ns), *cause));
        let part = |(cause, ns): &(Cause, u64)| {
            let share = words::percent(*ns as f64 / time.total_ns.max(1) as f64);
            format!("{} {} ({share})", cause.word(), words::duration(*ns))
        };
        let parts: Vec<String> = sums.iter().take(CAUSES).map(part).collect();
        table.row([Cell::text(time.id.to_string()), Cell::Time(time.total_ns), Cell::text(parts.join(", "))]);
    }
    table
}

fn item(chain: &Chain, path: &MessagePath) -> LaneItem {
    let hop = |at: usize| chain.hops.get(at).map_or(Text::default(), |hop| hop_name(&hop.from, &hop.to));
    let states = path.lanes.iter().enumerate().flat_map(|(row, lane)| {
        let state = move |(from_ns, to_ns, state): &(u64, u64, State)| LaneState {
            row,
            from_ns: *from_ns,
            to_ns: *to_ns,
            activity: activity(*state),
        };
        lane.states.iter().map(state)
    });
    let pieces = path.path.iter().map(|piece| LanePiece {
        row: piece.lane,
        from_ns: piece.from_ns,
        to_ns: piece.to_ns,
        class: piece.cause as usize,
        text: format!("{}, {}", what(piece), hop(piece.hop).plain()),
    });
    let point = |(point, ns): &(usize, u64)| {
        let name = chain.points.get(*point).map_or("", |point| point.name.as_str());
        (*ns, name.rsplit('.').next().unwrap_or(name).to_owned())
    };
    LaneItem {
        title: format!("Message {}: {}", path.time.id, words::duration(path.time.total_ns)).into(),
        from_ns: path.time.start_ns,
        to_ns: path.time.start_ns + path.time.total_ns,
        rows: path.lanes.iter().map(|lane| LaneRow { name: lane.thread.clone(), ..LaneRow::default() }).collect(),
        states: states.collect(),
        pieces: pieces.collect(),
        moments: path.passes.iter().map(point).collect(),
        table: pieces_table(chain, path),
    }
}

/// Hops in the order of the way, and the pieces of each.
fn pieces_table(chain: &Chain, path: &MessagePath) -> Table {
    let mut table = Table::new(["on its way", "at", "took", "share", "thread"]);
    let (start, total) = (path.time.start_ns, path.time.total_ns.max(1) as f64);
    let figures = |from: u64, to: u64| {
        [Cell::Time(from.saturating_sub(start)), Cell::Time(to - from), Cell::Share((to - from) as f64 / total)]
    };
    for pieces in path.path.chunk_by(|a, b| a.hop == b.hop) {
        let (first, last) = (&pieces[0], &pieces[pieces.len() - 1]);
        let name = chain.hops.get(first.hop).map_or(Text::default(), |hop| hop_name(&hop.from, &hop.to));
        let hop = [Cell::text(name)].into_iter().chain(figures(first.from_ns, last.to_ns));
        table.add(hop.chain([Cell::Empty]));
        for piece in pieces {
            let thread = path.lanes.get(piece.lane).map_or("", |lane| lane.thread.as_str());
            let cells = [Cell::text(what(piece))].into_iter().chain(figures(piece.from_ns, piece.to_ns));
            table.add(cells.chain([Cell::text(thread)])).indent = 1;
        }
    }
    table
}

/// "gil held by python/4243: python/4243 ran 98 % of it, in map update".
fn what(piece: &taut_analysis::PathPiece) -> String {
    let cause = format!("{} {}", piece.cause.word(), piece.cause.party(&piece.detail));
    let parts = [cause.trim_end(), &piece.note];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

fn activity(state: State) -> Activity {
    match state {
        State::Running => Activity::Running,
        State::Preempted => Activity::Preempted,
        State::Woken => Activity::Ready,
        State::Blocked => Activity::Waiting,
        State::Unknown => Activity::Unknown,
    }
}
