//! Repeats a system under test under loads, and finds the load that breaks it. `lab.toml` says what ([`Lab`]), a
//! session runs it on fresh starts, a manifest keeps every trial, [`results`] makes figures of them. Prints nothing.

mod archive;
mod checks;
mod cpus;
mod error;
mod feasible;
mod figures;
mod hosts;
mod inputs;
mod isolation;
mod lab;
mod load;
mod manifest;
mod metric_figures;
mod objectives;
mod paths;
mod proportion;
mod ready;
mod ros2;
mod run;
mod run_order;
mod runner;
mod scenario_file;
mod score;
mod search;
mod session;
mod stamp_metric;
mod stamps;
mod sweep;
mod sweep_keys;
mod trial;
mod weights;

pub use archive::{Packed, archive};
pub use cpus::Cpus;
pub use error::Error;
pub use feasible::{Feasible, feasible};
pub use figures::{LoadReached, Misfortune, ProcessUse, Results, ScenarioFigures, TopicReached, results};
pub use hosts::{Host, Ray};
pub use isolation::{Network, Pressure, keep};
pub use lab::{
    Better, Breaking, Command, Isolation, Lab, Metric, Process, Ready, Report, Scenario, StopSignal, TrialCommand,
    Watch,
};
pub use load::{Achieved, Flood, History, Load, Method, Reliability, TopicRate, interpreter, worker};
pub use manifest::{Header, Kind, MANIFEST, Manifest};
pub use metric_figures::{Bound, Difference, FailedReported, MetricFigures, SuccessDifference};
pub use paths::{Criticality, Path};
pub use proportion::Proportion;
pub use run::run;
pub use run_order::{Event, Order, Ran};
pub use runner::{Ended, Remote, UNREACHABLE, quoted, run_on_hosts};
pub use score::{PathFigures, Score, Term};
pub use search::{Broken, Edge, Outcome, Probe, break_it};
pub use stamp_metric::{Figure, Stamps};
pub use sweep::{Grid, grid};
pub use sweep_keys::Sweep;
pub use trial::{Id, Status, Trial};
pub use weights::Weights;

/// For the fuzzer: what systems under test and earlier runs leave, as foreign bytes.
#[doc(hidden)]
pub mod fuzzing {
    /// The last line of a trial's output.
    pub fn reported(stdout: &str) -> Result<(), String> {
        crate::trial::reported(stdout).map(drop)
    }

    /// A run's manifest.
    pub fn manifest(bytes: &[u8]) -> Result<(), String> {
        crate::manifest::read(bytes).map(drop)
    }
}
