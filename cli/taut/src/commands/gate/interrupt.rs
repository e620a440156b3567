//! Ctrl-C and its like while a gate runs: what it has started is ended, and the gate continues to remove the files that
//! it made.

use std::{
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
        set_parent_process_death_signal, waitid,
    },
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use taut_capture::Subreaper;

use crate::exit::Interrupted;

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// Whether the user has interrupted, and which processes that must reach.
#[derive(Clone)]
pub struct Interrupt(Arc<State>);

/// How a trial ended.
pub struct Ran {
    pub status: ExitStatus,
    /// It was still running after its limit.
    pub is_late: bool,
    /// Processes that it left running, and that were ended.
    pub left: usize,
}

#[derive(Default)]
struct State {
    /// That came; 0 for none.
    signal: AtomicI32,
    /// The process group that runs; 0 for none.
    group: AtomicI32,
}

impl Interrupt {
    /// Listens from now on, in a thread that sleeps until then: a gate that waits for a trial must not wake.
    pub fn listen() -> Result<Interrupt> {
        let state = Arc::new(State::default());
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals")?;
        let heard = state.clone();
        thread::spawn(move || {
            for came in signals.forever() {
                heard.signal.store(came, SeqCst);
                let group = heard.group.load(SeqCst);
                signal(group, Signal::TERM);
                thread::sleep(GRACE);
                if heard.group.load(SeqCst) == group {
                    signal(group, Signal::KILL);
                }
            }
        });
        Ok(Interrupt(state))
    }

    /// Fails once the user has interrupted.
    pub fn check(&self) -> Result<()> {
        match self.0.signal.load(SeqCst) {
            0 => Ok(()),
            signal => bail!(Interrupted { signal, without: "no verdict".to_owned() }),
        }
    }

    /// Runs a command to its end; fails if that was an interrupt.
    pub fn run(&self, command: &mut Command) -> Result<ExitStatus> {
        let status = self.wait(command, None)?.0;
        self.check()?;
        Ok(status)
    }

    /// The same, for a trial: when it is over nothing runs that it has started, and after the limit it is ended.
    pub fn run_trial(&self, command: &mut Command, limit: Duration) -> Result<Ran> {
        let subreaper = Subreaper::new();
        let (status, is_late) = self.wait(command, Some(limit))?;
        let left = subreaper.end_all(GRACE);
        self.check()?;
        match left {
            Ok(left) => Ok(Ran { status, is_late, left }),
            Err(left) => {
                bail!("{} of the trial does not end, and would disturb the trials that follow", left.join(", "))
            }
        }
    }

    /// What still runs after the limit is ended. True: that was so.
    fn wait(&self, command: &mut Command, limit: Option<Duration>) -> Result<(ExitStatus, bool)> {
        // SAFETY: prctl(2) is async-signal-safe, and nothing is allocated between fork and exec.
        unsafe {
            // Killed with SIGKILL, this process leaves no trial running.
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
        }
        // A group of its own: an interrupt must reach what the command has started, and that once.
        let mut child = command.process_group(0).spawn()?;
        self.0.group.store(child.id() as i32, SeqCst);
        if self.0.signal.load(SeqCst) != 0 {
            signal(child.id() as i32, Signal::TERM);
        }
        let is_late = limit.is_some_and(|limit| !ends_within(&child, limit));
        if is_late {
            signal(child.id() as i32, Signal::TERM);
            if !ends_within(&child, GRACE) {
                signal(child.id() as i32, Signal::KILL);
            }
        }
        Ok((self.end_of(&mut child)?, is_late))
    }

    /// Waits, and forgets the group before its number may be another's.
    fn end_of(&self, child: &mut Child) -> Result<ExitStatus> {
        let pid = Pid::from_child(child);
        retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT))?;
        self.0.group.store(0, SeqCst);
        Ok(child.wait()?)
    }
}

/// Waits for a child's end, but not longer. Where the kernel has no pidfd (before 5.3) there is no limit.
fn ends_within(child: &Child, limit: Duration) -> bool {
    let Ok(handle) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else { return true };
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left)) {
            Ok(ended) => return ended > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

fn signal(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group) {
        // Gone already: nothing to end.
        let _ = kill_process_group(group, signal);
    }
}
