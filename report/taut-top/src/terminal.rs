//! Takes the terminal, and gives it back: at the end, on a panic, on a signal.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyEventKind},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use taut_live::{Follower, State};

use crate::{
    draw::draw,
    view::{Action, View},
};

/// Between two looks at the state; keys are answered at once.
const LOOK: Duration = Duration::from_millis(250);
/// How much is kept by a key.
const KEPT: Duration = Duration::from_secs(60);

/// How the session on the terminal came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The user or a signal wanted it.
    Asked,
    /// Nothing more can come, for this reason.
    Failed(String),
}

/// Shows a session until the user has seen enough: chains whose points are wanted. `keep_at` names the file of a stretch that is kept.
///
/// # Errors
/// The terminal does not do what terminals do.
pub fn run(
    follower: &Follower,
    title: &str,
    wants: &dyn Fn(&[&str]) -> bool,
    keep_at: &mut dyn FnMut() -> std::path::PathBuf,
) -> io::Result<Ended> {
    let asked = Arc::new(AtomicBool::new(false));
    let mut hooks = Vec::new();
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        // Who asks twice is not waited for any longer.
        hooks.push(signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))?);
        hooks.push(signal_hook::flag::register(signal, Arc::clone(&asked))?);
    }
    // Also sees that a panic gives the terminal back before it says what happened.
    let mut terminal = ratatui::try_init()?;
    let ended = show(&mut terminal, follower, title, wants, keep_at, &asked);
    let restored = ratatui::try_restore();
    for hook in hooks {
        signal_hook::low_level::unregister(hook);
    }
    let ended = ended?;
    restored?;
    Ok(ended)
}

fn show(
    terminal: &mut DefaultTerminal,
    follower: &Follower,
    title: &str,
    wants: &dyn Fn(&[&str]) -> bool,
    keep_at: &mut dyn FnMut() -> std::path::PathBuf,
    asked: &AtomicBool,
) -> io::Result<Ended> {
    // https://no-color.org
    let has_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut view = View { has_colour, ..View::default() };
    let mut state = State::default();
    let mut is_new = true;
    while !asked.load(Ordering::Relaxed) {
        if let Some(fresh) = fresh(follower, &state).filter(|_| !view.is_paused) {
            (state, is_new) = (fresh, true);
            state.chains.retain(|chain| wants(&chain.points.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        if let Some(failure) = &state.failure {
            return Ok(Ended::Failed(failure.clone()));
        }
        if is_new {
            terminal.draw(|frame| draw(frame, &state, &view, title))?;
            is_new = false;
        }
        let until = Instant::now() + LOOK;
        loop {
            match wait(until.saturating_duration_since(Instant::now()))? {
                Waited::Gone => return Ok(Ended::Asked),
                Waited::Nothing => break,
                Waited::Event => {}
            }
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match view.key(key, &state) {
                    Action::Quit => return Ok(Ended::Asked),
                    Action::Keep if state.keeping.is_none() => follower.keep(&keep_at(), KEPT),
                    Action::Keep | Action::None => {}
                },
                Event::Resize(..) => {}
                _ => continue,
            }
            is_new = true;
            break;
        }
    }
    Ok(Ended::Asked)
}

enum Waited {
    Event,
    Nothing,
    /// There is no terminal any more: the window was closed, the connection lost.
    Gone,
}

/// Waits for a key or another size. The library is asked only where it has something to read: of a terminal that is gone
/// it reads for ever (crossterm 0.29).
fn wait(span: Duration) -> io::Result<Waited> {
    let stdin = io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    let span = Timespec::try_from(span).expect("less than a second");
    match rustix::event::poll(&mut terminal, Some(&span)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Ok(Waited::Gone);
    }
    Ok(if event::poll(Duration::ZERO)? { Waited::Event } else { Waited::Nothing })
}

/// The state, if it is another one.
fn fresh(follower: &Follower, shown: &State) -> Option<State> {
    let state = follower.state();
    let is_same = state.turns == shown.turns
        && state.keeping == shown.keeping
        && state.kept == shown.kept
        && state.ending.is_some() == shown.ending.is_some()
        && state.failure == shown.failure;
    (!is_same).then(|| state.clone())
}
