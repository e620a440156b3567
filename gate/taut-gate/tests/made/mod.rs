//! Trials of known truth: a chain of three hops, made message by message from a seed, read as a recording is.

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use taut_analysis::{Analysis, Cause, Chain, Explained, Hop, Outcomes, Point, SideShare, Sides, Spent};
use taut_gate::{Asked, Error, Gated, Phase, Settings, Trial, TrialOptions, gate};
use taut_recording::Ending;

/// Messages of a trial.
const MESSAGES: usize = 1200;

/// A program on a machine.
#[derive(Clone, Debug)]
pub struct Made {
    /// Usual work of each hop, ns.
    pub work_ns: [f64; 3],
    /// Messages whose second hop takes five times as long: one in so many, 0 for none.
    pub one_in: usize,
    /// Chance that a message meets the machine in a hop, and for how long on average.
    pub machine: (f64, f64),
    /// Share of messages dropped.
    pub dropped: f64,
    /// As declared.
    pub deadline_ns: Option<u64>,
}

impl Default for Made {
    fn default() -> Made {
        Made {
            work_ns: [40_000.0, 100_000.0, 60_000.0],
            one_in: 0,
            machine: (0.02, 500_000.0),
            dropped: 0.0,
            deadline_ns: None,
        }
    }
}

impl Made {
    /// One trial.
    pub fn trial(&self, random: &mut Xoshiro256PlusPlus) -> Trial {
        Trial::of("made", &self.analysis(random), &TrialOptions::default()).unwrap()
    }

    fn analysis(&self, random: &mut Xoshiro256PlusPlus) -> Analysis {
        // Addresses and page layout: 2 % from trial to trial. How busy the machine is: by far more.
        let level = 1.0 + 0.02 * (random.random::<f64>() - 0.5);
        let busy = 2.0 * random.random::<f64>();
        let mut spent = Vec::new();
        for message in 0..MESSAGES {
            for (hop, work) in self.work_ns.iter().enumerate() {
                let slow = if self.one_in > 0 && hop == 1 && message % self.one_in == 7 { 5.0 } else { 1.0 };
                let work = work * level * slow * (1.0 + 0.1 * random.random::<f64>());
                let meets = random.random_bool((self.machine.0 * busy).min(1.0));
                let machine = if meets { -self.machine.1 * (1.0 - random.random::<f64>()).ln() } else { 0.0 };
                let (work_ns, machine_ns) = (work as u64, machine as u64);
                spent.push(Spent { total_ns: work_ns + machine_ns, machine_ns, work_ns });
            }
        }
        let sum = |hop: usize, of: fn(&Spent) -> u64| spent.iter().skip(hop).step_by(3).map(of).sum();
        let shares = (0..3).flat_map(|hop| {
            [
                SideShare { hop, cause: Cause::Cpu, is_machine: false, time_ns: sum(hop, |s| s.work_ns) },
                SideShare { hop, cause: Cause::Preempted, is_machine: true, time_ns: sum(hop, |s| s.machine_ns) },
            ]
        });
        let dropped = (self.dropped * MESSAGES as f64) as u64;
        let sides = Sides {
            hops: 3,
            start_ns: (0..MESSAGES as u64).map(|at| at * 1_000_000).collect(),
            shares: shares.collect(),
            spent,
            ..Sides::default()
        };
        let names = ["read", "plan", "send", "applied"];
        let point = |name: &&str| Point { name: (*name).into(), ..Point::default() };
        let hop = |two: &[&str]| Hop { from: two[0].into(), to: two[1].into(), ..Hop::default() };
        let chain = Chain {
            name: "arm".into(),
            deadline_ns: self.deadline_ns,
            points: names.iter().map(point).collect(),
            hops: names.windows(2).map(hop).collect(),
            outcomes: Outcomes {
                applied: MESSAGES as u64,
                dropped: vec![("late".into(), dropped)],
                ..Outcomes::default()
            },
            explained: Explained { sides: Some(sides), ..Explained::default() },
            ..Chain::default()
        };
        let ending = Ending { reason: "command exited".into(), exit_code: Some(0), ..Ending::default() };
        Analysis { chains: vec![chain], ending: Some(ending), ..Analysis::default() }
    }
}

/// A gate of A against B, with so many pairs to each phase.
#[allow(dead_code, reason = "the command's tests gate by themselves")]
pub fn gated(settings: &Settings, a: &Made, b: &Made, seed: u64, pairs: usize) -> Gated {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut left = [pairs; 2];
    let mut next = |asked: Asked| -> Result<_, Error> {
        let left = &mut left[usize::from(asked.phase == Phase::Confirm)];
        if *left == 0 {
            return Ok(None);
        }
        *left -= 1;
        Ok(Some((a.trial(&mut random), b.trial(&mut random))))
    };
    gate(settings, &mut next).unwrap()
}
