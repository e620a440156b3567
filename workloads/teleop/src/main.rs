//! What of the teleoperation workload must be on time, and the arms that it talks to: each a process of its own. The main process
//! (`python -m workloads.teleop`) starts them as `taut-teleop ROLE SETTINGS`; SETTINGS is one JSON object, whose `fds` are the numbers
//! of inherited link ends.

mod account;
mod arms;
mod clock;
mod cnde;
mod commands;
mod controller;
mod follower;
mod following;
mod guarding;
mod guards;
#[cfg(test)]
mod jitter;
mod journal;
mod leader;
mod links;
mod pacing;
#[cfg(test)]
mod paused;
mod realtime;
mod safety;
mod serve;
mod servo;
mod stream;
mod wire;
mod xmlrpc;

use std::{
    collections::HashMap,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::Deserialize;
use serde_json::json;
use signal_hook::consts::SIGINT;

use clock::Clock;
use links::{Control, Link, inherited};

/// What any role is given.
#[derive(Deserialize)]
struct Common {
    /// 0: whoever it is, such as a recorder.
    parent: u32,
    #[serde(default)]
    fds: HashMap<String, i32>,
}

/// What a part of the loop is given.
#[derive(Deserialize)]
pub struct Part {
    clock: String,
    /// Its arm's.
    host: String,
    commands: u16,
    states: u16,
    receiver: stream::How,
    validator: Rule,
    guard: guards::Kind,
    wire: wire::Kind,
    operator: bool,
    radius_mm: f64,
    lap_s: f64,
}

/// What a broken limit does.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The setpoint is dropped.
    Reject,
    /// The command is shortened.
    Clamp,
}

impl Part {
    fn clock(&self) -> Result<Clock> {
        Clock::open(&self.clock)
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("taut-teleop: {error:#}");
            2.into()
        }
    }
}

fn run() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let (role, settings) = words.next().zip(words.next()).context("started by python -m workloads.teleop")?;
    let common: Common = serde_json::from_str(&settings)?;
    // Nothing is left when the main process is gone, however it ended, even before this.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    ensure!([0, std::os::unix::process::parent_id()].contains(&common.parent), "the main process is gone");
    // Ctrl-C reaches the whole group; the main process decides what comes of it.
    signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
    if role == "arm" {
        return serve::run(&serde_json::from_str(&settings)?);
    }
    let end = |name: &str| inherited(*common.fds.get(name).with_context(|| format!("no link {name:?}"))?);
    let control = Control::new(end("control")?);
    let part: Part = serde_json::from_str(&settings)?;
    let link = |name: &str| end(name).map(Link::new);
    let done = match role.as_str() {
        "leader" => {
            name(c"teleop-leader").and_then(|()| leader::run(&control, &part, &link("setpoints")?, &link("desk")?))
        }
        "follower" => name(c"teleop-follower")
            .and_then(|()| following::run(&control, &part, link("setpoints")?, link("heartbeat")?)),
        "guard" => name(c"teleop-guard").and_then(|()| guarding::run(&control, &part, link("heartbeat")?)),
        _ => bail!("no role {role:?}"),
    };
    if let Err(error) = &done {
        control.say("failed", &json!({ "why": format!("{role}: {error:#}") }));
    }
    done
}

/// The process's name, and its thread's: 15 bytes at most.
fn name(name: &std::ffi::CStr) -> Result<()> {
    Ok(rustix::thread::set_name(name)?)
}
