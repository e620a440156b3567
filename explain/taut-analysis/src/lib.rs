//! Reads a recording: chains, hops, outcomes. Opens no file and reads no clock.
//!
//! The way through: [`Analyzer`] takes records to the sources of points (the crate `taut-points`), whose passes are cut into
//! messages (`messages`). It finds the line that most messages of a chain follow (`line`), and works out its figures
//! (`figures`, `startup`, `outcomes`). Then what the time was spent on: each message's critical path is walked on the
//! timelines of threads and CPUs (`walk`) and summed up (`ledger`), and the tail is compared with typical messages
//! (`explain`, `hypotheses`, `recommendations`). `docs/reference/report.md` and `docs/reference/causes.md` say how in words.

mod analyzer;
mod context;
mod crowds;
mod environment;
mod error;
mod explain;
mod explained;
mod factor;
mod figures;
mod histograms;
mod hypotheses;
mod kind;
mod ledger;
mod line;
mod lock_holders;
mod loop_types;
mod loops;
mod messages;
mod modes;
mod names;
mod notes;
mod options;
mod order;
mod outcomes;
mod passage;
mod pools;
mod predictions;
mod queues;
mod recommendations;
mod replay;
mod resample;
mod result;
mod rows;
mod sides;
mod signals;
mod stacks;
mod starts;
mod startup;
mod telemetry;
mod under_way;
mod wakeups;
mod walk;

pub use analyzer::Analyzer;
pub use error::Error;
pub use explained::*;
pub use histograms::{Histogram, Quantile};
pub use loop_types::{Loop, LoopFound, WakingThread};
pub use options::{Above, Config, DeclaredChain, ExplainOptions};
pub use order::main_chain;
pub use result::*;
pub use rows::{CauseRow, HopRow, MessageRow, Row, RowSink, StateRow};
pub use signals::{Signal, Tracking};
pub use stacks::{Profile, Stacks};
pub use taut_points::{
    CallbackFigures, Durations, ExecutorFigures, RosFigures, SourceKind, SubscriptionFigures, TopicFigures,
};
pub use telemetry::{Gaps, Telemetry};
pub use wakeups::{late_wakeups, probe_chain};
