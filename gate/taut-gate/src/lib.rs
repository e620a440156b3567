//! Has a change made a control loop worse, in the program or in the machine?
//!
//! One recording becomes a [`Trial`]: figures of every hop, the program's own time apart from the machine's. Pairs of
//! trials go to [`gate`], which evaluates them as they come and stops when the result is clear; the result is an
//! [`Outcome`]. [`judge_limits`] compares trials with absolute limits. `docs/reference/gate.md` says how to use it,
//! `docs/explanation/statistics.md` how errors are held. No file is opened and no clock is read here.

mod ballot;
mod blame;
pub mod config;
mod early;
mod error;
mod failures;
mod figures;
mod gate;
mod limit;
mod limits;
mod noise;
mod outcome;
mod plot;
mod settings;
mod side;
mod trial;
mod vote;

pub use ballot::Ballot;
pub use blame::{CauseChange, HopChange, TimeChange};
pub use early::STALL_S;
pub use error::Error;
pub use failures::{Failures, SideFailures};
pub use figures::{Statistic, Times, TrialFigures};
pub use gate::{Asked, Gated, Phase, gate};
pub use limit::{Limit, LimitFigure};
pub use limits::{Beyond, LimitFinding, LimitResult, LimitsOutcome, judge_limits};
pub use noise::{Noise, noise};
pub use outcome::{Described, Distributions, MachineChange, Outcome, VoidTrial};
pub use plot::Plot;
pub use settings::{ACCUSING, Most, Settings};
pub use side::Side;
pub use trial::{Beside, Failure, HopTimes, Host, Spent, Startup, Trial, TrialOptions, Void};
pub use vote::{Scope, Subject, Vote};
