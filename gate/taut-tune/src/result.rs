//! The whole result of a tuning.

use crate::{Attempt, Found, Left, Plan, Remedy, Standing, Within, Written, files::files};

/// The result.
#[derive(Clone, Debug, Default)]
pub struct Tuned {
    /// The command, as words.
    pub command: Vec<String>,
    /// The chain that was tuned.
    pub chain: String,
    /// Its points.
    pub points: Vec<String>,
    /// Its deadline.
    pub deadline_ns: Option<u64>,
    /// Messages of the first recording.
    pub messages: u64,
    /// The figure that was to become smaller: "p99".
    pub figure: String,
    /// Causes of the tail: word, detail, share of the excess.
    pub causes: Vec<(String, String, f64)>,
    /// What was tried.
    pub remedies: Vec<Remedy>,
    /// What was not, and why.
    pub left: Vec<Left>,
    /// What only the program can change.
    pub within: Vec<Within>,
    /// The search; `None` where nothing was to be tried.
    pub found: Option<Found>,
    /// Files that apply the recommendation.
    pub files: Vec<Written>,
    /// Where they were written.
    pub folder: Option<String>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// Of the order of trials.
    pub seed: u64,
    /// Since the start.
    pub elapsed_s: f64,
    /// Length of a trial; `None` where the command ends by itself.
    pub trial_s: Option<f64>,
    /// Where the time did not suffice: how much probably does.
    pub needed_s: Option<f64>,
    /// A signal ended it.
    pub is_interrupted: bool,
    /// Whether everything that was changed is as it was.
    pub is_restored: bool,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A set of remedies is recommended.
    Recommended,
    /// Nothing that was tried helps, or there was nothing to try.
    NothingHelps,
    /// Remedies exist, and none may be tried.
    NotPermitted,
    /// The time, or the trials, did not suffice.
    NotEnough,
    /// A signal ended it.
    Interrupted,
}

/// What looked best when the time was up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promising<'a> {
    /// Numbers of the remedies.
    pub set: &'a [usize],
    /// The tail without.
    pub before_ns: f64,
    /// The tail with.
    pub after_ns: f64,
    /// Fresh pairs, too few; `None` for figures of the selection.
    pub pairs: Option<usize>,
    /// Rounds of the selection.
    pub rounds: usize,
}

impl Tuned {
    /// The answer.
    pub fn answer(&self) -> Answer {
        match &self.found {
            _ if self.recommended().is_some() => Answer::Recommended,
            _ if self.is_interrupted => Answer::Interrupted,
            None if self.left.iter().any(|left| left.grant.is_some()) => Answer::NotPermitted,
            None => Answer::NothingHelps,
            Some(found) if found.is_out => Answer::NotEnough,
            Some(_) => Answer::NothingHelps,
        }
    }

    /// The attempt that was confirmed.
    pub fn recommended(&self) -> Option<&Attempt> {
        let found = self.found.as_ref()?;
        found.attempts.get(found.confirmed.as_ref()?.attempt)
    }

    /// Where the time did not suffice: the set that was under confirmation, else the best of the selection. It is no recommendation.
    pub fn promising(&self) -> Option<Promising<'_>> {
        let found = self.found.as_ref().filter(|found| found.is_out)?;
        let is_open = |one: &&Attempt| one.pairs > 0 && one.problem.is_none() && one.harmed.is_empty();
        let figures = |attempt: &'_ Attempt| attempt.tail.as_ref().map(|tail| (tail.a.value, tail.b.value));
        let under_way = found.attempts.last().filter(is_open).and_then(|attempt| {
            let (before_ns, after_ns) = figures(attempt).filter(|(before, after)| after < before)?;
            Some(Promising { set: &attempt.set, before_ns, after_ns, pairs: Some(attempt.pairs), rounds: 0 })
        });
        let helped = || {
            let tried = found.tried.iter().find(|one| one.standing == Standing::Helped)?;
            let (before_ns, after_ns) = tried.tail_ns?;
            Some(Promising { set: &tried.set, before_ns, after_ns, pairs: None, rounds: tried.rounds })
        };
        under_way.or_else(helped)
    }

    /// All changes of a set of remedies.
    pub fn plan(&self, set: &[usize]) -> Plan {
        let plans = set.iter().filter_map(|at| self.remedies.get(*at)).map(|remedy| remedy.plan.clone());
        plans.fold(Plan::default(), |all, one| all.and(&one).unwrap_or(all))
    }

    /// Files that apply a set of remedies. `gain` is a line about what was measured, for their heads.
    pub fn files_of(&self, set: &[usize], gain: &str) -> Vec<Written> {
        let remedies: Vec<&Remedy> = set.iter().filter_map(|at| self.remedies.get(*at)).collect();
        files(&remedies, &self.plan(set), gain)
    }

    /// Remedies by their numbers, as people call them: "timer-slack + nice".
    pub fn name(&self, set: &[usize]) -> String {
        let names: Vec<&str> =
            set.iter().filter_map(|at| self.remedies.get(*at)).map(|remedy| remedy.id.as_str()).collect();
        names.join(" + ")
    }
}
