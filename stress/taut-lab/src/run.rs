//! `taut lab run`: every scenario once a round, the order of each round drawn from the seed, so that a drift of the
//! machine reads as noise and not as an effect. A block is one scenario in one round: one fresh start of the system.

use std::{collections::BTreeSet, ffi::OsString, path::Path, sync::atomic::AtomicBool};

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use crate::{
    Error, Lab, Status, Trial,
    manifest::{Header, Kind, Manifest},
    session::{Block, Session},
};

/// What a run is told.
pub struct Order<'a> {
    /// What is to be done.
    pub lab: &'a Lab,
    /// The lab's file, and what it says.
    pub file: (&'a Path, &'a str),
    /// Where everything is written.
    pub folder: &'a Path,
    /// Whether the folder holds the beginning of this run.
    pub resume: bool,
    /// The command that makes loads: [`crate::worker::go`].
    pub worker: &'a [OsString],
    /// Set when somebody wants it to end.
    pub stop: &'a AtomicBool,
}

/// What happens meanwhile.
pub enum Event<'a> {
    /// A lab that died had left this; it is gone now.
    Removed(&'a str),
    /// One more of so many; a search does not know how many.
    Trial(&'a Trial, usize, Option<usize>),
}

/// All trials of a run, those of an interrupted beginning included.
pub struct Ran {
    /// What confined threads.
    pub confinement: String,
    /// In the order in which they ran.
    pub trials: Vec<Trial>,
}

/// Runs what is not yet run.
///
/// # Errors
/// What [`Error`] says; trials that ended before are in the manifest.
pub fn run(order: &Order<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Ran, Error> {
    let lab = order.lab;
    let rounds = rounds(lab);
    let mut work = Work::begin(order, Kind::Run, &rounds, tell)?;
    let total = lab.trials as usize * lab.scenarios.len();
    for (round, scenarios) in rounds.iter().enumerate() {
        for at in scenarios {
            let scenario = lab.scenarios[*at].clone();
            let done: BTreeSet<u32> =
                work.trials.iter().filter(|t| t.id.scenario == scenario.name).map(|t| t.id.index).collect();
            let first = round as u32 * lab.trials_per_start;
            let planned = first..(first + lab.trials_per_start).min(lab.trials);
            let trials = planned.filter(|index| !done.contains(index)).collect();
            work.block(&Block { round: round as u32, scenario, varied: None, trials }, Some(total), tell)?;
        }
    }
    Ok(work.end())
}

/// For each round the scenarios in their order.
pub(crate) fn rounds(lab: &Lab) -> Vec<Vec<usize>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(lab.seed);
    let one = |_| {
        let mut order: Vec<usize> = (0..lab.scenarios.len()).collect();
        order.shuffle(&mut random);
        order
    };
    (0..lab.trials.div_ceil(lab.trials_per_start)).map(one).collect()
}

/// A session with its manifest.
pub(crate) struct Work<'a> {
    session: Session<'a>,
    manifest: Manifest,
    pub trials: Vec<Trial>,
}

impl<'a> Work<'a> {
    pub fn begin(
        order: &Order<'a>,
        kind: Kind,
        rounds: &[Vec<usize>],
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<Work<'a>, Error> {
        let (lab, (file, toml)) = (order.lab, order.file);
        let session = Session::open(lab, order.worker, order.folder, order.stop)?;
        session.removed.iter().for_each(|what| tell(Event::Removed(what)));
        let names = |round: &Vec<usize>| round.iter().map(|at| lab.scenarios[*at].name.clone()).collect();
        let header = Header {
            confinement: session.confinement.clone(),
            order: rounds.iter().map(names).collect(),
            ..Header::new(kind, file, toml, lab)
        };
        let (manifest, trials) = match order.resume {
            true => Manifest::resume(order.folder, &header)?,
            false => (Manifest::create(order.folder, &header)?, Vec::new()),
        };
        Ok(Work { session, manifest, trials })
    }

    /// Runs a block. A system that does not start is an error where it never did, and else the trials' own misfortune.
    pub fn block(&mut self, block: &Block, total: Option<usize>, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Error> {
        let Work { session, manifest, trials } = self;
        let before = trials.len();
        match session.block(block, &mut |trial| keep(trial, manifest, trials, total, tell)) {
            Ok(()) => Ok(()),
            Err(Error::Start { place, problem }) if !trials.is_empty() => {
                let reason = format!("{place}: {problem}");
                let left = &block.trials[trials.len() - before..];
                left.iter().try_for_each(|index| keep(never_ran(block, *index, &reason), manifest, trials, total, tell))
            }
            Err(Error::Stopped { .. }) => Err(Error::Stopped { trials: trials.len() }),
            Err(error) => Err(error),
        }
    }

    pub fn end(self) -> Ran {
        Ran { confinement: self.session.confinement.clone(), trials: self.trials }
    }
}

/// First on disk, then anywhere else.
fn keep(
    trial: Trial,
    manifest: &mut Manifest,
    trials: &mut Vec<Trial>,
    total: Option<usize>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(), Error> {
    manifest.trial(&trial)?;
    tell(Event::Trial(&trial, trials.len() + 1, total));
    trials.push(trial);
    Ok(())
}

fn never_ran(block: &Block, index: u32, reason: &str) -> Trial {
    Trial {
        id: block.id(index),
        status: Status::Invalid,
        reason: Some(reason.to_owned()),
        started_unix_s: 0.0,
        wall_s: 0.0,
        exit_code: None,
        signal: None,
        metrics: Default::default(),
        achieved: Vec::new(),
        cpus_busy: Default::default(),
        looks: 0,
        threads: 0,
        pressure: Default::default(),
        logs: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(trials: u32, per_start: u32, seed: u64) -> Lab {
        let text = format!(
            "trials = {trials}\ntrials_per_start = {per_start}\nseed = {seed}\n[trial]\ncommand = \"true\"\ntimeout_s = 1\n\
             [[scenario]]\nname = \"a\"\n[[scenario]]\nname = \"b\"\n[[scenario]]\nname = \"c\"\n"
        );
        Lab::parse(&text, Path::new("lab.toml")).unwrap()
    }

    #[test]
    fn every_round_has_every_scenario_once_in_an_order_of_the_seed() {
        let first = rounds(&lab(40, 1, 7));
        assert_eq!(first, rounds(&lab(40, 1, 7)));
        assert_ne!(first, rounds(&lab(40, 1, 8)));
        for round in &first {
            assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), 3);
        }
        for at in 0..3 {
            let positions: BTreeSet<_> = first.iter().map(|round| round.iter().position(|s| *s == at)).collect();
            assert_eq!(positions.len(), 3, "scenario {at} stands in every place at some time");
        }
        assert_eq!(rounds(&lab(7, 3, 1)).len(), 3);
    }
}
