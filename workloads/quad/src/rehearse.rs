//! The robot in virtual time: host, buses and body on one thread, the same run each time.

use std::sync::{Arc, atomic::AtomicBool};

use anyhow::Result;
use serde_json::Value;
use taut_bus::{
    cycle::{Clock, Engine, Virtual},
    transport::Arrival,
};

use crate::{
    failure::{Failure, HostAct},
    host::{Host, Wishes, patience},
    told,
    world::{Shared, World},
};

/// Virtual time of a host that is stopped for a while.
struct Stopped {
    time: Virtual,
    from_ns: u64,
    until_ns: u64,
}

impl Clock for Stopped {
    fn now_ns(&mut self) -> u64 {
        self.time.now_ns()
    }

    fn wait(&mut self, arrivals: &[Arrival], until_ns: u64) {
        self.time.wait(arrivals, until_ns);
        if (self.from_ns..self.until_ns).contains(&self.time.now_ns()) {
            self.time.wait_until(self.until_ns);
        }
    }
}

/// Runs it for so long, and gives what each host says; `None`: it was killed.
///
/// # Errors
/// A rate at which the time-outs do not nest.
pub fn run(world: World, wishes: &Wishes, failure: &Failure) -> Result<(Vec<Option<Value>>, World)> {
    let end_ns = (wishes.duration_s * 1e9) as u64;
    let world = Shared::new(world);
    let acts: Vec<(u64, HostAct)> = failure.host_acts().into_iter().filter(|(ns, _)| *ns < end_ns).collect();
    let at = |wanted: HostAct| acts.iter().find(|(_, act)| *act == wanted).map(|(ns, _)| *ns);
    let stopped = (at(HostAct::Stop).unwrap_or(u64::MAX), at(HostAct::Resume).unwrap_or(u64::MAX));
    let killed_ns = at(HostAct::Kill);
    let mut hosts = Vec::new();
    let first = live(&world, wishes, 0, killed_ns.unwrap_or(end_ns), stopped)?;
    hosts.push(killed_ns.is_none().then_some(first));
    if let Some(start_ns) = at(HostAct::Start) {
        hosts.push(Some(live(&world, wishes, start_ns, end_ns, (u64::MAX, u64::MAX))?));
    }
    world.lock().advance(end_ns);
    let world = world.into_inner().unwrap_or_else(|| unreachable!("all hosts are gone"));
    Ok((hosts, world))
}

/// A host's life.
fn live(world: &Shared, wishes: &Wishes, from_ns: u64, to_ns: u64, stopped: (u64, u64)) -> Result<Value> {
    let mut time = Virtual::default();
    time.wait_until(from_ns);
    let clock = Stopped { time, from_ns: stopped.0, until_ns: stopped.1 };
    let wishes = Wishes { duration_s: (to_ns - from_ns) as f64 / 1e9, ..wishes.clone() };
    let mut engine = Engine::new(world.wires(), clock, patience(&wishes)).with_inertial(world.clone());
    let mut host = Host::new(wishes, Arc::new(AtomicBool::new(false)))?;
    host.run(&mut engine);
    Ok(told::host(&host))
}
