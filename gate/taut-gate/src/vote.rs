//! Which figures decide: the primary metrics, as the user writes them and as they apply to a chain.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Error, Side, Statistic, Trial};

/// A declared metric: "hops.own.p50", "chain.total.p99", "missed", "dropped".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Vote {
    /// A figure of times.
    Time(Scope, Side, Statistic),
    /// The share of messages over the deadline.
    Missed,
    /// The share of messages that were dropped or lost.
    Dropped,
}

/// Of which stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// From the first to the last point.
    Chain,
    /// Every hop by itself.
    Hops,
}

impl FromStr for Vote {
    type Err = Error;

    fn from_str(text: &str) -> Result<Vote, Error> {
        let unknown = || Error::NoMetric {
            given: text.to_owned(),
            hint: "SCOPE.SIDE.FIGURE, of chain or hops, total, own, work or machine, p50, p90, p95, p99, p99.9, mean, \
                   tail5, tail1 or slow: hops.work.p50",
        };
        match text {
            "missed" => return Ok(Vote::Missed),
            "dropped" => return Ok(Vote::Dropped),
            _ => {}
        }
        let mut words = text.splitn(3, '.');
        let mut word = || words.next().ok_or_else(unknown);
        let scope = match word()? {
            "chain" => Scope::Chain,
            "hops" => Scope::Hops,
            _ => return Err(unknown()),
        };
        let (side, statistic) = (word()?, word()?);
        let side = Side::ALL.into_iter().find(|s| s.word() == side).ok_or_else(unknown)?;
        let statistic = Statistic::ALL.into_iter().find(|s| s.word() == statistic).ok_or_else(unknown)?;
        Ok(Vote::Time(scope, side, statistic))
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Vote::Missed => f.write_str("missed"),
            Vote::Dropped => f.write_str("dropped"),
            Vote::Time(scope, side, statistic) => {
                let scope = if *scope == Scope::Chain { "chain" } else { "hops" };
                write!(f, "{scope}.{}.{}", side.word(), statistic.word())
            }
        }
    }
}

impl TryFrom<String> for Vote {
    type Error = Error;

    fn try_from(text: String) -> Result<Vote, Error> {
        text.parse()
    }
}

impl From<Vote> for String {
    fn from(vote: Vote) -> String {
        vote.to_string()
    }
}

/// One number of a trial: a vote applied to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Subject {
    /// A figure of the whole way.
    Chain {
        /// Of whose time.
        side: Side,
        /// Which figure.
        statistic: Statistic,
    },
    /// A figure of one hop.
    Hop {
        /// Index of the hop.
        hop: usize,
        /// Of whose time.
        side: Side,
        /// Which figure.
        statistic: Statistic,
    },
    /// Share of messages over the deadline.
    Missed,
    /// Share of messages dropped.
    Dropped,
    /// The own time of the slowest of the first messages, end to end.
    Startup,
    /// Share of the first messages that would be over the deadline without the machine's part.
    StartupMissed,
    /// Share of messages that would be over the deadline without the machine's part.
    MissedOwn,
    /// How late the probe beside the program woke.
    Probe {
        /// Which figure.
        statistic: Statistic,
    },
}

impl Subject {
    /// What a vote means for a chain of so many hops.
    pub fn of(vote: Vote, hops: usize) -> Vec<Subject> {
        match vote {
            Vote::Missed => vec![Subject::Missed],
            Vote::Dropped => vec![Subject::Dropped],
            Vote::Time(Scope::Chain, side, statistic) => vec![Subject::Chain { side, statistic }],
            Vote::Time(Scope::Hops, side, statistic) => {
                (0..hops).map(|hop| Subject::Hop { hop, side, statistic }).collect()
            }
        }
    }

    /// The number of a trial, in ns or as a share; `None` where the trial does not carry it.
    pub fn number(self, trial: &Trial) -> Option<f64> {
        match self {
            Subject::Chain { side, statistic } => side.of(&trial.way).get(statistic),
            Subject::Hop { hop, side, statistic } => side.of(&trial.hops.get(hop)?.times).get(statistic),
            Subject::Missed => trial.missed,
            Subject::Dropped => Some(trial.dropped),
            Subject::Startup => Some(trial.startup?.slowest_own_ns? as f64),
            Subject::StartupMissed => trial.startup?.missed_own,
            Subject::MissedOwn => trial.missed_own,
            Subject::Probe { statistic } => trial.beside.as_ref()?.late.get(statistic),
        }
    }

    /// Whether it is a share of messages, not a time.
    pub fn is_share(self) -> bool {
        match self {
            Subject::Missed | Subject::Dropped | Subject::StartupMissed | Subject::MissedOwn => true,
            Subject::Startup => false,
            Subject::Chain { statistic, .. } | Subject::Hop { statistic, .. } | Subject::Probe { statistic } => {
                statistic.is_share()
            }
        }
    }

    /// Whether it is time on a CPU alone. Other own time has waits in it, and which thread waits for which changes with the machine's load.
    pub fn is_work(self) -> bool {
        matches!(self, Subject::Chain { side: Side::Work, .. } | Subject::Hop { side: Side::Work, .. })
    }

    /// The median that a share of slow messages is about.
    pub(crate) fn median_of_slow(self) -> Option<Subject> {
        let statistic = Statistic::P50;
        match self {
            Subject::Chain { side, statistic: Statistic::Slow } => Some(Subject::Chain { side, statistic }),
            Subject::Hop { hop, side, statistic: Statistic::Slow } => Some(Subject::Hop { hop, side, statistic }),
            _ => None,
        }
    }

    /// The hop it is about.
    pub fn hop(self) -> Option<usize> {
        match self {
            Subject::Hop { hop, .. } => Some(hop),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_read_as_they_are_written() {
        for text in ["hops.own.p50", "chain.total.p99.9", "chain.machine.tail1", "missed", "dropped", "hops.work.slow"]
        {
            assert_eq!(text.parse::<Vote>().unwrap().to_string(), text);
        }
        for wrong in ["", "p50", "hops.own", "hop.own.p50", "chain.mine.p50", "chain.own.p42"] {
            assert!(wrong.parse::<Vote>().is_err(), "{wrong}");
        }
    }
}
