//! Has a change made a control loop worse, and who did: the program or the machine?
//!
//! One recording becomes a [`Trial`]: figures of every hop, the program's own time apart from the machine's. Pairs of
//! trials go to [`gate`], which looks at them as they come and stops when it is sure; what it found is an [`Outcome`].
//! [`budgets`] holds trials against absolute limits. `docs/gate.md` says how to use it, `docs/statistics.md` how errors
//! are held. No file is opened and no clock is read here.

mod blame;
mod budgets;
pub mod config;
mod early;
mod error;
mod failures;
mod figures;
mod gate;
mod noise;
mod outcome;
mod plot;
mod settings;
mod trial;
mod vote;

pub use blame::{CauseChange, HopChange, TimeChange};
pub use budgets::{Beyond, Budget, BudgetFigure, BudgetFinding, BudgetVerdict, Budgeted, budgets};
pub use error::Error;
pub use failures::{Failures, SideFailures};
pub use figures::{Figures, Statistic, Times};
pub use gate::{Asked, Gated, Phase, gate};
pub use noise::{Noise, noise};
pub use outcome::{Ballot, Described, MachineChange, Outcome};
pub use plot::Plot;
pub use settings::{ACCUSING, Most, Settings};
pub use trial::{Beside, Failure, HopTimes, Host, Spent, Startup, Trial, Void, Wanted};
pub use vote::{Scope, Side, Subject, Vote};
