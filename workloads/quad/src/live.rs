//! The robot in real time: this process simulates it, and starts its host as another, which can really be killed and stopped.

use std::{
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use taut_bus::transport::Frame;
use taut_simulated_clock::Slips;
use taut_stats::Distribution;

use crate::{clock::Pace, failure::HostAct, joints::LEGS, page::Mapped, realtime, world::World};

/// The host's end is looked for so often, ns.
const LOOK_NS: u64 = 10_000_000;
/// A host that was asked to end has so long, ns.
const END_NS: u64 = 10_000_000_000;
/// Replies whose lateness is kept.
const MOST_REPLIES: usize = 4_000_000;

/// A run in real time.
pub struct Live<'a> {
    /// The host's command line, but for where the page is.
    pub host: &'a [String],
    /// What is done to the host.
    pub acts: Vec<(u64, HostAct)>,
    /// How long, ns of the simulated clock.
    pub duration_ns: u64,
    /// Set to end early.
    pub stop: Arc<AtomicBool>,
}

/// Its result.
pub struct Lived {
    /// What each host printed; `None`: it was killed.
    pub hosts: Vec<Option<Value>>,
    /// The simulator's: "fifo 70", or why not.
    pub priority: String,
    /// How the simulator was held up.
    pub slips: Slips,
    /// How late replies were there, by the simulator's fault, ns.
    pub late: Distribution,
    /// Replies that found no room, because the host did not take those before.
    pub overflowed: u64,
    /// It was ended early.
    pub interrupted: bool,
}

impl Live<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// The host does not start, or ends without its account.
    pub fn run(self, world: &mut World) -> Result<Lived> {
        let page = Mapped::create().context("memory to share with the host")?;
        page.feel(&world.attitude());
        let mut hosts = Hosts { arguments: self.host, page: page.clone(), all: Vec::new() };
        hosts.act(HostAct::Start)?;
        let priority = realtime::ask(None, realtime::ROBOT)?;
        let mut acts = self.acts.into_iter().peekable();
        let mut late_ns = Vec::with_capacity(MOST_REPLIES.min((self.duration_ns / 20_000) as usize));
        let (mut overflowed, mut look_ns, mut ended_ns, mut slips) = (0, 0, None, Slips::default());
        let mut frame = Frame::new();
        // From here on the simulated clock goes.
        let mut pace = Pace::new(page.clone());
        loop {
            let rung = page.to_robot.rung();
            let now_ns = pace.now_ns();
            while let Some((bus, sent_ns)) = page.next_command() {
                page.take_command(bus, &mut frame);
                // At the moment at which it was sent, or if that is past, now. A full queue loses it, as on a real adapter.
                let _ = world.send(bus, sent_ns.min(now_ns).max(world.now_ns()), &frame);
            }
            world.advance(now_ns);
            let mut has_news = false;
            for bus in 0..LEGS {
                while let Some(at_ns) = world.receive(bus, now_ns, &mut frame)? {
                    // Seen by the host from now on.
                    overflowed += u64::from(!page.reply(bus, now_ns, &frame));
                    has_news = true;
                    if late_ns.len() < late_ns.capacity() && ended_ns.is_none() {
                        late_ns.push(now_ns - at_ns);
                    }
                }
            }
            page.feel(&world.attitude());
            if let Some((_, act)) = acts.next_if(|(ns, _)| *ns <= now_ns && *ns < self.duration_ns) {
                hosts.act(act)?;
            }
            if now_ns >= self.duration_ns || self.stop.load(Ordering::Relaxed) {
                if ended_ns.is_none() {
                    world.end();
                    slips = pace.slips();
                    hosts.end();
                }
                ended_ns.get_or_insert(now_ns);
            }
            if now_ns >= look_ns {
                look_ns = now_ns + LOOK_NS;
                if hosts.have_ended()? {
                    if ended_ns.is_none() {
                        slips = pace.slips();
                    }
                    break;
                }
                if ended_ns.is_some_and(|ns| now_ns > ns + END_NS) {
                    bail!("the host does not end");
                }
            }
            let act_ns = acts.peek().map_or(u64::MAX, |(ns, _)| *ns);
            let next_ns = world.next_ns().min(act_ns.max(now_ns));
            if pace.allow(next_ns) || has_news {
                page.to_host.note();
                page.to_host.wake();
            }
            pace.wait(rung, next_ns);
        }
        let mut sorted = late_ns.clone();
        sorted.sort_unstable();
        let late = Distribution::of(&late_ns, &sorted);
        let interrupted = self.stop.load(Ordering::Relaxed);
        Ok(Lived { hosts: hosts.told()?, priority, slips, late, overflowed, interrupted })
    }
}

/// The hosts, one after the other.
struct Hosts<'a> {
    arguments: &'a [String],
    page: Arc<Mapped>,
    all: Vec<(Child, bool)>,
}

impl Hosts<'_> {
    fn act(&mut self, act: HostAct) -> Result<()> {
        let signal = match act {
            HostAct::Start => {
                let program = std::env::current_exe().context("the path of this program")?;
                let mut command = Command::new(program);
                let robot = std::process::id().to_string();
                command.arg("host").args(["--page", &self.page.path(), "--robot", &robot]).args(self.arguments);
                command.stdout(Stdio::piped());
                self.all.push((command.spawn().context("starting the host")?, false));
                return Ok(());
            }
            HostAct::Kill => Signal::KILL,
            HostAct::Stop => Signal::STOP,
            HostAct::Resume => Signal::CONT,
        };
        if let Some((host, is_killed)) = self.all.last_mut() {
            *is_killed |= act == HostAct::Kill;
            signal_to(host, signal);
        }
        Ok(())
    }

    /// Asks the last one to end.
    fn end(&mut self) {
        if let Some((host, _)) = self.all.last() {
            signal_to(host, Signal::TERM);
            signal_to(host, Signal::CONT);
        }
    }

    /// Whether the last one has ended by itself, or because it was asked.
    fn have_ended(&mut self) -> Result<bool> {
        let Some((host, is_killed)) = self.all.last_mut() else { return Ok(true) };
        Ok(!*is_killed && host.try_wait()?.is_some())
    }

    fn told(mut self) -> Result<Vec<Option<Value>>> {
        std::mem::take(&mut self.all)
            .into_iter()
            .map(|(host, is_killed)| {
                let output = host.wait_with_output()?;
                if is_killed {
                    return Ok(None);
                }
                let told = serde_json::from_slice(&output.stdout);
                told.map(Some).with_context(|| format!("the host ended without its account ({})", output.status))
            })
            .collect()
    }
}

impl Drop for Hosts<'_> {
    fn drop(&mut self) {
        for (host, _) in &mut self.all {
            let _ = host.kill();
            let _ = host.wait();
        }
    }
}

/// To a process that has not been waited for, so that its number is still its own.
fn signal_to(host: &Child, signal: Signal) {
    if let Some(pid) = Pid::from_raw(host.id() as i32) {
        // It may have ended.
        let _ = kill_process(pid, signal);
    }
}
