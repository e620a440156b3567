//! Settings of a gate: which figures decide, from which effect on, with which errors.

use serde::{Deserialize, Serialize};
use taut_stats::compare::{Margin, Plan, Rule, Scale};

use crate::{Scope, Side, Statistic, Subject, Vote};

/// Everything about a gate but the trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The primary metrics; each hop of a `hops` metric counts as one.
    pub votes: Vec<Vote>,
    /// From which change of a time on it is worse: share of it, or ns.
    pub minimum_effect: Margin,
    /// Within which change of a time there is no relevant difference.
    pub equivalence: Margin,
    /// The same of shares of messages (slow, missed, dropped), as differences: 0.001 is one message in a thousand.
    pub share_minimum_effect: f64,
    /// The same of shares of messages.
    pub share_equivalence: f64,
    /// Looks, errors.
    pub plan: Plan,
}

/// What decides by default: the median of each hop's work, which is the quietest figure there is; the median of
/// all own time of the way, for sleeps and locks, since who waits in which hop changes with the machine's load; and for tails
/// the share of slow work. bench/gate measures it.
pub const VOTES: [Vote; 5] = [
    Vote::Time(Scope::Hops, Side::Work, Statistic::P50),
    Vote::Time(Scope::Chain, Side::Own, Statistic::P50),
    Vote::Time(Scope::Hops, Side::Work, Statistic::Slow),
    Vote::Missed,
    Vote::Dropped,
];

/// From which change on a start-up is longer …
const STARTUP: Margin = Margin { relative: 0.25, absolute: 1e6 };
/// … or misses more deadlines: one in ten of the first messages.
const STARTUP_SHARE: Margin = Margin { relative: 0.0, absolute: 0.1 };

/// Of a gate's time, the share that accusing may take; the rest is for fresh pairs.
pub const ACCUSING: f64 = 0.6;

/// The most pairs that a gate can come to, by its time or by what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// To find.
    pub accuse: usize,
    /// Fresh ones, to confirm.
    pub confirm: usize,
}

impl Most {
    /// Of so many in all.
    pub fn of(pairs: usize) -> Most {
        let accuse = (pairs * 3).div_ceil(5);
        Most { accuse, confirm: pairs - accuse }
    }

    /// Of the pairs that its time is long; those that would end after it do not count.
    pub fn in_time(pairs: f64) -> Most {
        let accuse = (ACCUSING * pairs) as usize;
        Most { accuse, confirm: (pairs as usize).saturating_sub(accuse) }
    }

    /// What both allow.
    pub fn min(self, other: Most) -> Most {
        Most { accuse: self.accuse.min(other.accuse), confirm: self.confirm.min(other.confirm) }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            votes: VOTES.to_vec(),
            minimum_effect: Margin { relative: 0.03, absolute: 1_000.0 },
            equivalence: Margin { relative: 0.1, absolute: 2_000.0 },
            share_minimum_effect: 0.001,
            share_equivalence: 0.003,
            plan: Plan::default(),
        }
    }
}

impl Settings {
    /// How a subject is judged.
    pub fn rule(&self, subject: Subject) -> Rule {
        if subject == Subject::StartupMissed {
            return Rule { scale: Scale::Share, minimum_effect: STARTUP_SHARE, equivalence: STARTUP_SHARE };
        }
        if subject == Subject::Startup {
            return Rule { scale: Scale::Ratio, minimum_effect: STARTUP, equivalence: STARTUP };
        }
        if subject.is_share() {
            let share = |absolute| Margin { relative: 0.0, absolute };
            return Rule {
                scale: Scale::Share,
                minimum_effect: share(self.share_minimum_effect),
                equivalence: share(self.share_equivalence),
            };
        }
        Rule { scale: Scale::Ratio, minimum_effect: self.minimum_effect, equivalence: self.equivalence }
    }

    /// The same for so many pairs that are there already: the first part finds, the rest confirms.
    pub fn within(&self, pairs: usize) -> Settings {
        let most = Most::of(pairs);
        let up_to = |looks: &[usize], last: usize| {
            looks.iter().copied().filter(|look| *look < last).chain([last]).collect::<Vec<usize>>()
        };
        let looks = up_to(&self.plan.looks, most.accuse);
        let confirm_looks = up_to(&self.plan.confirm_looks, most.confirm);
        Settings { plan: Plan { looks, confirm_looks, ..self.plan.clone() }, ..self.clone() }
    }
}
