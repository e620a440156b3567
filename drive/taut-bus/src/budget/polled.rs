//! A cycle over polled microcontrollers, event by event: the host writes commands, reads the attitude, and then asks
//! each controller again and again what has come, until all replies are there. The sum of terms cannot know how often it asks
//! in vain, nor when a reply comes just after a question.

use std::cmp::Ordering;

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use taut_stats::Distribution;

use super::{
    draw::nanoseconds,
    file::CycleBudget,
    load::layout,
    sampling::Sampling,
    term::{Price, Stage},
};
use crate::wire::{
    canfd::{CanFd, Id},
    spi::Spi,
};

/// Cycles that are gone through; their times differ by the stuff bits of random payloads alone.
const CYCLES_MAX: u32 = 2000;
/// Bytes around a frame and of the other transactions of a pi3hat.
const WRITE_EXTRA: u32 = 3;
const READ_EXTRA: u32 = 5;
const STATUS: u32 = 6;
const ATTITUDE: u32 = 42;
/// Ids that moteus can address.
const IDS_MAX: u32 = 126;

/// Cycles gone through event by event.
#[derive(Clone, Debug)]
pub struct Polled {
    /// Their times.
    pub cycles: Distribution,
    /// Questions to the controllers a cycle, on average.
    pub questions: f64,
    /// Of these, questions to which nothing had come.
    pub in_vain: f64,
}

/// What one bus still has to carry.
struct Wire {
    /// Commands by when they were handed over: moment and servo.
    commands: Vec<(f64, u8)>,
    /// Replies by when they are ready.
    replies: Vec<(f64, u8)>,
    free_us: f64,
    /// When replies arrived at the controller.
    arrived_us: Vec<f64>,
    expected: usize,
}

/// The frames and times of one budget.
struct Model<'a> {
    spi: &'a Spi,
    can: &'a CanFd,
    command_bytes: u32,
    reply_bytes: u32,
    turnaround_us: f64,
    attitude_us: f64,
    buses_each: usize,
}

/// Goes through cycles of a budget whose `[spi]` says how many buses each polled controller has; `None` where it does not, or
/// has no `[can]` and no frames called `command` and `reply`.
pub fn polled(budget: &CycleBudget, sampling: Sampling) -> Option<Polled> {
    let spi = budget.spi.as_ref()?;
    let buses = budget.resources.iter().map(|resource| layout(resource, budget.servos.count)).max_by_key(Vec::len)?;
    let turnaround = budget.terms.iter().find(|term| term.stage == Stage::ServoTurnaround);
    let model = Model {
        spi,
        can: budget.can.as_ref()?,
        command_bytes: *budget.frames.get("command")?,
        reply_bytes: *budget.frames.get("reply")?,
        turnaround_us: match turnaround.map(|term| &term.price) {
            Some(Price::Us(us)) => *us,
            _ => 0.0,
        },
        attitude_us: match budget.terms.iter().any(|term| term.stage == Stage::Imu) {
            true => spi.transaction_us(ATTITUDE),
            false => 0.0,
        },
        buses_each: spi.polled_buses? as usize,
    };
    if budget.servos.first_id + budget.servos.count > IDS_MAX + 1 {
        return None;
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(sampling.seed);
    let (mut ns, mut asked, mut vain) = (Vec::new(), 0_u64, 0_u64);
    for _ in 0..sampling.cycles.min(CYCLES_MAX) {
        let (us, questions, in_vain) = model.cycle(&buses, budget.servos.first_id, &mut random);
        ns.push(nanoseconds(us));
        (asked, vain) = (asked + questions, vain + in_vain);
    }
    let mut sorted = ns.clone();
    sorted.sort_unstable();
    let n = ns.len() as f64;
    Some(Polled { cycles: Distribution::of(&ns, &sorted), questions: asked as f64 / n, in_vain: vain as f64 / n })
}

impl Model<'_> {
    /// Its time, the questions asked, and those in vain.
    fn cycle(&self, buses: &[u32], first_id: u32, random: &mut Xoshiro256PlusPlus) -> (f64, u64, u64) {
        let (mut wires, mut now_us) = self.send(buses, first_id);
        now_us += self.attitude_us;
        let (mut questions, mut in_vain) = (0, 0);
        while wires.iter().any(|wire| wire.expected > 0) {
            for of_one in wires.chunks_mut(self.buses_each) {
                if of_one.iter().all(|wire| wire.expected == 0) {
                    continue;
                }
                now_us += self.spi.transaction_us(STATUS);
                questions += 1;
                let mut there = 0;
                for wire in of_one {
                    self.carry(wire, now_us, random);
                    let come = wire.arrived_us.iter().filter(|at| **at <= now_us).count();
                    wire.arrived_us.drain(..come);
                    wire.expected -= come;
                    there += come;
                }
                in_vain += u64::from(there == 0);
                now_us += there as f64 * self.spi.transaction_us(READ_EXTRA + self.reply_bytes);
            }
        }
        (now_us, questions, in_vain)
    }

    /// Commands, one after the other, round-robin over the buses.
    fn send(&self, buses: &[u32], first_id: u32) -> (Vec<Wire>, f64) {
        let mut wires: Vec<Wire> = buses
            .iter()
            .map(|servos| Wire {
                commands: Vec::new(),
                replies: Vec::new(),
                free_us: 0.0,
                arrived_us: Vec::new(),
                expected: *servos as usize,
            })
            .collect();
        let mut now_us = 0.0;
        for turn in 0..buses.iter().copied().max().unwrap_or(0) {
            let mut first = first_id;
            for (wire, servos) in wires.iter_mut().zip(buses) {
                if turn < *servos {
                    now_us += self.spi.transaction_us(WRITE_EXTRA + self.command_bytes);
                    wire.commands.push((now_us, (first + turn) as u8));
                }
                first += servos;
            }
        }
        (wires, now_us)
    }

    /// Everything that begins on the wire before `until_us`. Of frames that are ready the dominant id goes first: a command, but
    /// from servo 8 on, whose reply has 29 bits too, the reply.
    fn carry(&self, wire: &mut Wire, until_us: f64, random: &mut Xoshiro256PlusPlus) {
        loop {
            let command = wire.commands.first().copied();
            // Of replies that wait the lowest id wins; of those to come the first is next.
            let at = (0..wire.replies.len()).min_by(|a, b| {
                let rank = |at: usize| (wire.replies[at].0.max(wire.free_us), wire.replies[at].1);
                rank(*a).partial_cmp(&rank(*b)).unwrap_or(Ordering::Equal)
            });
            let reply = at.map(|at| wire.replies[at]);
            let ready = [command, reply].into_iter().flatten().map(|(at, _)| at).fold(f64::INFINITY, f64::min);
            let start_us = ready.max(wire.free_us);
            if start_us > until_us {
                return;
            }
            let may = |frame: Option<(f64, u8)>| frame.filter(|(at, _)| *at <= start_us).map(|(_, servo)| servo);
            match (may(command), may(reply)) {
                (Some(servo), waiting) if waiting.is_none_or(|servo| servo < 8) => {
                    wire.commands.remove(0);
                    wire.free_us = start_us + self.frame_us(Id::request(servo), self.command_bytes, random);
                    wire.replies.push((wire.free_us + self.turnaround_us, servo));
                }
                (_, Some(servo)) => {
                    at.map(|at| wire.replies.remove(at));
                    wire.free_us = start_us + self.frame_us(Id::reply(servo), self.reply_bytes, random);
                    wire.arrived_us.push(wire.free_us);
                }
                _ => return,
            }
        }
    }

    fn frame_us(&self, id: Id, bytes: u32, random: &mut Xoshiro256PlusPlus) -> f64 {
        let mut data = [0_u8; 64];
        let data = &mut data[..(bytes as usize).min(64)];
        random.fill(data);
        self.can.exact_frame_us(id, data, 0x50).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::preset;

    const SAMPLING: Sampling = Sampling { cycles: 500, seed: 1 };

    fn of(changes: &[(&str, &str)]) -> Polled {
        let changes: Vec<(String, String)> = changes.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        polled(&preset("pi3hat").unwrap().budget(&changes).unwrap(), SAMPLING).unwrap()
    }

    #[test]
    fn polling_adds_a_few_percent_to_the_sum_of_terms() {
        let found = of(&[]);
        let p50_us = found.cycles.p50_ns.unwrap() as f64 / 1e3;
        assert!((740.0..800.0).contains(&p50_us), "{p50_us} µs for 736 of the terms");
        assert!(found.questions >= 2.0 && found.in_vain < found.questions, "{found:?}");
    }

    #[test]
    fn one_bus_is_bound_by_can_and_asks_in_vain() {
        let found = of(&[("resource.CAN bus.buses", "1")]);
        assert!(found.in_vain > 10.0, "{found:?}");
        // 12 commands, 12 replies, and the last servo's turn-around.
        assert!((1.75e6..2.2e6).contains(&(found.cycles.p50_ns.unwrap() as f64)), "{found:?}");
    }

    #[test]
    fn longer_holds_cost_each_transaction() {
        let (short, long) = (of(&[]), of(&[("spi.hold_us", "10")]));
        let more_us = (long.cycles.p50_ns.unwrap() - short.cycles.p50_ns.unwrap()) as f64 / 1e3;
        // Three holds of 7 µs more on 25 transactions and each question.
        assert!(more_us > 25.0 * 21.0, "{more_us}");
    }

    #[test]
    fn a_budget_without_polled_controllers_has_none() {
        let budget = preset("rs485-3500us").unwrap().budget(&[]).unwrap();
        assert!(polled(&budget, SAMPLING).is_none());
    }
}
