//! Signals that reach the recorder, and what becomes of them: the command gets each exactly once.

use std::io;

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2},
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
    low_level::siginfo::{Cause, Origin},
};

/// Passed on to the command.
const FORWARDED: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

pub struct Signals {
    pending: SignalsInfo<WithOrigin>,
    interrupts: u32,
    /// Not passed on: it asks for a save, as that of `perf record --switch-output` does.
    saves: Option<i32>,
}

/// What signals ask of the recorder.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// One that usually ends a program came.
    pub to_end: Option<i32>,
    /// The signal that asks for a save came.
    pub to_save: bool,
    /// SIGINT came twice: it shall end now.
    pub impatiently: bool,
}

impl Signals {
    /// Listens from now on. A signal that was ignored before (nohup) stays ignored, for the command too.
    /// With `saves` SIGUSR2 is the recorder's own.
    pub fn listen(saves: bool) -> io::Result<Signals> {
        let saves = saves.then_some(SIGUSR2);
        let is_heeded = |signal: &i32| saves == Some(*signal) || !is_ignored(*signal);
        let heeded: Vec<i32> = FORWARDED.into_iter().filter(is_heeded).collect();
        Ok(Signals { pending: SignalsInfo::new(heeded)?, interrupts: 0, saves })
    }

    /// Takes what came; with a command, passes on what has not reached it by itself.
    pub fn take(&mut self, command: Option<i32>) -> Asked {
        let mut asked = Asked::default();
        for origin in self.pending.pending() {
            if self.saves == Some(origin.signal) {
                asked.to_save = true;
                continue;
            }
            if let Some(pid) = command.filter(|pid| !has_reached(&origin, *pid)) {
                send(pid, origin.signal);
            }
            self.interrupts += u32::from(origin.signal == SIGINT);
            if origin.signal != SIGUSR1 && origin.signal != SIGUSR2 {
                asked.to_end = Some(origin.signal);
            }
        }
        asked.impatiently = self.interrupts >= 2;
        asked
    }

    /// Takes what came while the command was held: the handlers it had until exec were ours.
    pub fn while_held(&mut self) -> Vec<i32> {
        let saves = self.saves;
        let signals = self.pending.pending().map(|origin| origin.signal).filter(|signal| saves != Some(*signal));
        let signals: Vec<i32> = signals.collect();
        self.interrupts += signals.iter().filter(|signal| **signal == SIGINT).count() as u32;
        signals
    }
}

/// Between fork and exec: signals wait from now on.
pub fn hold() {
    // SAFETY: all zeros is a valid set to be filled; both calls may be made after a fork.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}

/// Right before exec: a signal that waited, and one that comes until then, does what it does to a program without a handler. Until here it
/// would have run the recorder's.
pub fn let_go() {
    for signal in FORWARDED.into_iter().filter(|signal| !is_ignored(*signal)) {
        // SAFETY: the default runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: as in `hold`.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Sends a signal to a command that was not waited for yet, so that the pid is its own.
pub fn send(pid: i32, signal: i32) {
    // SAFETY: kill has no preconditions.
    unsafe { libc::kill(pid, signal) };
}

/// What the terminal sends reaches the whole foreground group by itself; not a command that left the group.
fn has_reached(origin: &Origin, pid: i32) -> bool {
    // SAFETY: both only ask.
    origin.cause == Cause::Kernel && unsafe { libc::getpgid(pid) == libc::getpgrp() }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: asks for the action without setting one; all zeros is a valid sigaction to write to.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
