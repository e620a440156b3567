//! `taut lab run`: every scenario once a round, the order of each round drawn from the seed, so that a drift of the
//! machine counts as noise and not as an effect. A block is one scenario in one round: one fresh start of the system.

use std::collections::BTreeSet;

use crate::{
    Error, Event, Order, Ran, Status, Trial,
    feasible::missing_cpus,
    manifest::{Header, Kind, Manifest},
    run_order::rounds,
    session::{Block, Session},
};

/// Of a scenario's trials, the part that may be replaced when they are invalid.
const REPLACED: f64 = 0.2;

/// Runs what is not yet run; `kind` is what the manifest is called.
///
/// # Errors
/// What [`Error`] says; trials that ended before are in the manifest.
pub fn run(order: &Order<'_>, kind: Kind, tell: &mut dyn FnMut(Event<'_>)) -> Result<Ran, Error> {
    let lab = order.lab;
    let rounds = rounds(lab);
    let mut work = Work::begin(order, kind, &rounds, tell)?;
    let total = lab.trials as usize * lab.scenarios.len();
    let wanted = |round: &usize| order.round.is_none_or(|only| only as usize == *round);
    for (round, scenarios) in rounds.iter().enumerate().filter(|(round, _)| wanted(round)) {
        for at in scenarios {
            let scenario = lab.scenarios[*at].clone();
            let first = round as u32 * lab.trials_per_start;
            let planned = first..(first + lab.trials_per_start).min(lab.trials);
            loop {
                let trials = left(&work.trials, &scenario.name, planned.clone(), lab.trials);
                if trials.is_empty() {
                    break;
                }
                let total = total.max(work.trials.len() + trials.len());
                let block = Block { round: round as u32, scenario: scenario.clone(), varied: None, trials };
                work.block(&block, Some(total), tell)?;
            }
        }
    }
    Ok(work.end())
}

/// Of the planned trials those that have not run, or were invalid and may be replaced: at once and in the same round,
/// so that they are compared with what ran beside them.
fn left(trials: &[Trial], scenario: &str, planned: std::ops::Range<u32>, of: u32) -> Vec<u32> {
    let own = || trials.iter().filter(|trial| trial.id.scenario == scenario);
    let distinct: BTreeSet<u32> = own().map(|trial| trial.id.index).collect();
    let may_replace = (REPLACED * f64::from(of)) as usize;
    let mut replaced = own().count() - distinct.len();
    let is_left = |index: &u32| {
        let last = own().rfind(|trial| trial.id.index == *index);
        let replace = last.is_some_and(|trial| trial.status == Status::Invalid) && replaced < may_replace;
        replaced += usize::from(replace);
        last.is_none() || replace
    };
    planned.filter(is_left).collect()
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
        if let Some((place, problem)) = missing_cpus(lab).into_iter().next() {
            return Err(Error::Start { place, problem });
        }
        let session = Session::open(order)?;
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
    Trial { id: block.id(index), reason: Some(reason.to_owned()), ..Trial::default() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Lab;

    fn lab(trials: u32, per_start: u32, seed: u64) -> Lab {
        let text = format!(
            "trials = {trials}\ntrials_per_start = {per_start}\nseed = {seed}\n[trial]\ncommand = \"true\"\ntimeout_s = 1\n\
             [[scenario]]\nname = \"a\"\n[[scenario]]\nname = \"b\"\n[[scenario]]\nname = \"c\"\n"
        );
        Lab::parse(&text, Path::new("lab.toml")).unwrap()
    }

    #[test]
    fn invalid_trials_are_replaced_up_to_a_fifth() {
        let mut trials: Vec<Trial> = Vec::new();
        let mut run = |index: u32, status: Status| {
            let id = crate::Id { scenario: "a".into(), index, round: index, varied: None };
            trials.push(Trial { id, status, ..Trial::default() });
            left(&trials, "a", index..index + 1, 10)
        };
        assert_eq!(run(0, Status::Success), [0; 0]);
        assert_eq!(run(1, Status::Failed), [0; 0], "a failure is a result");
        assert_eq!(run(2, Status::Invalid), [2]);
        assert_eq!(run(2, Status::Invalid), [2]);
        assert_eq!(run(2, Status::Invalid), [0; 0], "two of ten, and no more");
        assert_eq!(run(3, Status::Invalid), [0; 0]);
        assert_eq!(left(&[], "a", 4..6, 10), [4, 5]);
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
