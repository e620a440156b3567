//! What stands on a terminal of 80 × 24, and what keys make of it.

use std::collections::BTreeMap;

use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    style::{Color, Modifier},
};
use taut_analysis::{Cause, CauseShare, Explained, Party, Selected};
use taut_live::{Chain, Clocks, Guard, Hop, LiveFigures, Lost, Spread, State, Thread};
use taut_points::hosts::ClocksFrom;
use taut_recording::{Info, Tier};
use taut_top::{Action, Focus, Page, View, draw};

const SECOND_NS: u64 = 1_000_000_000;

fn spread(values: impl IntoIterator<Item = u64>) -> Spread {
    let mut spread = Spread::default();
    values.into_iter().for_each(|ns| spread.record(ns));
    spread
}

fn hop(slow_ns: u64, causes: &[(Cause, u64)]) -> Hop {
    let delay = spread((0..2000).map(|n| 100_000 + n * 50 + if n % 50 == 0 { slow_ns } else { 0 }));
    let causes = causes.iter().map(|(cause, ns)| (*cause, spread([*ns]))).collect();
    Hop { delay, causes }
}

fn chain(name: &str, points: &[&str], hops: Vec<Hop>, outcomes: &[(&str, u64)]) -> Chain {
    let figures = LiveFigures {
        way: spread((0..2000).map(|n| 400_000 + n * 100 + if n % 50 == 0 { 7_000_000 } else { 0 })),
        outcomes: outcomes.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect(),
        hops,
        ..LiveFigures::default()
    };
    Chain {
        name: name.into(),
        points: points.iter().map(|point| (*point).to_owned()).collect(),
        total: figures.clone(),
        recent: [(60 * SECOND_NS, 4 * SECOND_NS, figures)].into(),
        ..Chain::default()
    }
}

fn thread(tid: i32, comm: &str, running: u64, preempted: u64, blocked: u64) -> Thread {
    let states = [("running", running), ("preempted", preempted), ("blocked", blocked)];
    let states: BTreeMap<&str, u64> = states.into_iter().map(|(word, ms)| (word, ms * 1_000_000)).collect();
    Thread { tid, name: format!("{comm}/{tid}"), recent: [(60 * SECOND_NS, states)].into() }
}

/// A teleoperation loop that is preempted now and then, and a second chain.
fn state() -> State {
    let share = |cause, detail: &str, tail_share| CauseShare {
        cause,
        detail: detail.into(),
        tail_share,
        ..CauseShare::default()
    };
    let hops = vec![
        hop(0, &[(Cause::Cpu, 900), (Cause::Syscall, 100)]),
        hop(6_000_000, &[(Cause::Preempted, 700), (Cause::Cpu, 300)]),
        hop(0, &[(Cause::Io, 1000)]),
    ];
    let points = ["leader.read", "map.converted", "follower.received", "follower.applied"];
    let mut loop_chain =
        chain("leader.read → follower.applied", &points, hops, &[("applied", 2000), ("speed_limit", 40), ("stale", 8)]);
    loop_chain.explained = Explained {
        tail_messages: 20,
        tail_quantile: Some(0.99),
        selected: Selected::Tail(0.99),
        causes: vec![share(Cause::Preempted, "", 0.81), share(Cause::Lock, "sdk_lock", 0.19)],
        hops: vec![
            Vec::new(),
            vec![share(Cause::Preempted, "", 0.8), share(Cause::Lock, "sdk_lock", 0.19)],
            Vec::new(),
        ],
        responsible: vec![Party { kind: "thread".into(), name: "stress-ng/977".into(), ..Party::default() }],
        ..Explained::default()
    };
    let imu = chain("imu.read → imu.used", &["imu.read", "imu.used"], vec![hop(0, &[])], &[("applied", 800)]);
    let start_monotonic_ns = SECOND_NS;
    State {
        info: Some(Info { tier: Tier::Full, start_monotonic_ns, ..Info::default() }),
        until_ns: 3_725 * SECOND_NS + start_monotonic_ns,
        turns: 3,
        stamps_per_s: 12_000.4,
        lost: Lost { stamps: 1234, ..Lost::default() },
        guard: Guard { is_armed: true, trips: 2, false_trips: 1 },
        chains: vec![loop_chain, imu],
        threads: vec![thread(4242, "python3", 600, 50, 350), thread(4250, "servo", 100, 300, 600)],
        ..State::default()
    }
}

fn picture(state: &State, view: &View, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, view, "run.mcap, process 4242")).unwrap();
    terminal
}

fn text(terminal: &Terminal<TestBackend>) -> String {
    let buffer = terminal.backend().buffer();
    let row = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..buffer.area.height).map(row).collect::<Vec<_>>().join("\n")
}

fn press(view: &mut View, state: &State, keys: &[KeyCode]) -> Action {
    keys.iter().map(|code| view.key(KeyEvent::new(*code, KeyModifiers::NONE), state)).last().unwrap()
}

#[test]
fn the_overview_on_80_by_24() {
    insta::assert_snapshot!(text(&picture(&state(), &View::default(), 80, 24)));
}

#[test]
fn a_hop_on_80_by_24() {
    let (mut view, state) = (View::default(), state());
    press(&mut view, &state, &[KeyCode::Enter, KeyCode::Down, KeyCode::Enter]);
    assert_eq!((view.focus, view.page, view.hop), (Focus::Hops, Page::Hop, 1));
    insta::assert_snapshot!(text(&picture(&state, &view, 80, 24)));
    press(&mut view, &state, &[KeyCode::Esc]);
    assert_eq!(view.page, Page::Overview);
}

/// A hop of it is between two hosts.
#[test]
fn two_hosts_on_80_by_24() {
    let mut state = state();
    let clocks = |hosts: [&str; 2], offset_ns, bound_ns| Clocks {
        hosts: hosts.map(String::from),
        from: ClocksFrom::Messages,
        offset_ns,
        bound_ns,
        messages: [250, 248],
    };
    state.clocks = vec![
        clocks(["desk", "robot"], 259_200_000_122_000, Some(61_000)),
        clocks(["desk", "arm"], -4_000, None),
        clocks(["robot", "arm"], 0, None),
    ];
    let points = ["desk:leader.read", "desk:map.converted", "robot:received", "robot:applied"];
    state.chains[0].points = points.map(String::from).to_vec();
    insta::assert_snapshot!(text(&picture(&state, &View::default(), 80, 24)));
    state.unaligned = Some("no message was stamped on both hosts".to_owned());
    assert!(
        text(&picture(&state, &View::default(), 80, 24)).contains("not one clock yet: no message was stamped on both")
    );
    (state.silent_ns, state.silent_host) = (5_000_000_000, "robot".to_owned());
    assert!(text(&picture(&state, &View::default(), 160, 24)).contains("nothing new of robot for 5"));
}

#[test]
fn a_thread_on_80_by_24() {
    let (mut view, state) = (View::default(), state());
    press(&mut view, &state, &[KeyCode::Tab, KeyCode::Tab, KeyCode::Down, KeyCode::Enter]);
    assert_eq!((view.page, view.thread), (Page::Thread, 4250));
    insta::assert_snapshot!(text(&picture(&state, &view, 80, 24)));
}

#[test]
fn the_help_on_80_by_24() {
    let (mut view, state) = (View::default(), state());
    press(&mut view, &state, &[KeyCode::Char('?')]);
    insta::assert_snapshot!(text(&picture(&state, &view, 80, 24)));
    // Any key closes it, and does nothing else.
    assert_eq!(press(&mut view, &state, &[KeyCode::Char('q')]), Action::None);
    assert!(!view.is_help);
}

#[test]
fn keys_sort_pause_and_ask() {
    let (mut view, state) = (View::default(), state());
    assert_eq!(view.chains(&state)[0].name, "leader.read → follower.applied");
    press(&mut view, &state, &[KeyCode::Char('s'); 3]);
    assert_eq!(view.chains(&state)[0].name, "imu.read → imu.used");
    // What was chosen stays chosen in another order.
    press(&mut view, &state, &[KeyCode::Down, KeyCode::Char('s')]);
    assert_eq!(view.chain(&state).unwrap().name, "leader.read → follower.applied");
    press(&mut view, &state, &[KeyCode::Char(' ')]);
    assert!(view.is_paused && text(&picture(&state, &view, 120, 24)).contains("PAUSED"));
    assert_eq!(press(&mut view, &state, &[KeyCode::Char('r')]), Action::Keep);
    assert_eq!(press(&mut view, &state, &[KeyCode::Char('q')]), Action::Quit);
    assert_eq!(view.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), &state), Action::Quit);
}

#[test]
fn no_size_is_too_small_and_no_state_too_empty() {
    let empty = State { info: Some(Info::default()), ..State::default() };
    for state in [State::default(), empty, state()] {
        for (width, height) in [(1, 1), (10, 3), (40, 10), (80, 24), (300, 100)] {
            for page in [Page::Overview, Page::Hop, Page::Thread] {
                for is_help in [false, true] {
                    let view = View { page, is_help, hop: 7, ..View::default() };
                    picture(&state, &view, width, height);
                }
            }
        }
    }
}

#[test]
fn forty_columns_have_the_names_of_chains_and_the_tail_has_its_columns() {
    let lines = |view: &View, width| text(&picture(&state(), view, width, 24)).lines().map(str::to_owned).collect();
    for is_total in [false, true] {
        let view = View { is_total, ..View::default() };
        let narrow: Vec<String> = lines(&view, 40);
        for begins in
            ["leader.read → f", "imu.read → imu", "→ map.converted", "python3/4242", "by thread stress-ng/977"]
        {
            assert!(
                narrow.iter().any(|line| line.trim_start().starts_with(begins)),
                "{begins}:\n{}",
                narrow.join("\n")
            );
        }
        for width in [40, 80] {
            let lines: Vec<String> = lines(&view, width);
            let at = lines.iter().position(|line| line.starts_with("TAIL, ")).expect("the tail");
            let columns = lines[at + 1].split_whitespace().take(2).collect::<Vec<_>>();
            assert!(lines[at].starts_with("TAIL, 20 messages above p99"), "{}", lines.join("\n"));
            assert_eq!(columns, ["cause", "share"], "{width} columns:\n{}", lines.join("\n"));
        }
    }
}

/// Whatever the state holds: readers make names printable, and the screen does not count on it.
#[test]
fn no_name_leaves_its_cells() {
    const NAME: &str = "a\u{1b}]0;x\u{7}\n\rforged\u{9b}2J\u{202e}";
    let mut state = state();
    for chain in &mut state.chains {
        chain.name = format!("{NAME}{}", chain.name);
        chain.points.iter_mut().for_each(|point| point.insert_str(0, NAME));
        let explained = &mut chain.explained;
        let shares = explained.causes.iter_mut().chain(explained.hops.iter_mut().flatten());
        shares.for_each(|share| share.detail.push_str(NAME));
        explained.responsible.iter_mut().for_each(|party| party.name.push_str(NAME));
    }
    state.threads.iter_mut().for_each(|thread| thread.name.insert_str(0, NAME));
    state.keeping = Some((format!("/{NAME}.mcap").into(), 0));
    for page in [Page::Overview, Page::Hop, Page::Thread] {
        let view = View { page, hop: 1, ..View::default() };
        let terminal = picture(&state, &view, 200, 60);
        for cell in &terminal.backend().buffer().content {
            assert!(!cell.symbol().contains(|c: char| c.is_control() || c == '\u{202e}'), "{:?}", cell.symbol());
        }
        let lines = text(&terminal);
        assert!(lines.contains("forged") && !lines.lines().any(|line| line.starts_with("forged")), "{lines}");
    }
}

#[test]
fn without_colours_bold_does() {
    let has = |has_colour, what: &dyn Fn(&ratatui::buffer::Cell) -> bool| {
        let view = View { has_colour, ..View::default() };
        picture(&state(), &view, 80, 24).backend().buffer().content.iter().any(what)
    };
    assert!(has(true, &|cell| cell.fg == Color::Red));
    assert!(!has(false, &|cell| cell.fg != Color::Reset));
    assert!(has(false, &|cell| cell.modifier.contains(Modifier::BOLD)));
}
