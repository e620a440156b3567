//! Repeats a system under test under loads, and finds the load that breaks it. `lab.toml` says what ([`Lab`]), a
//! session runs it on fresh starts, a manifest keeps every trial, [`results`] makes figures of them. Prints nothing.

mod archive;
mod checks;
mod cpus;
mod error;
mod feasible;
mod figures;
mod file;
mod inputs;
mod isolation;
mod load;
mod manifest;
mod objectives;
mod proportion;
mod ready;
mod run;
mod runner;
mod score;
mod search;
mod session;
mod stamps;
mod sweep;
mod trial;

pub use archive::{Packed, archive};
pub use cpus::Cpus;
pub use error::Error;
pub use feasible::{Feasible, feasible};
pub use figures::{
    Bound, Difference, FailedReported, LoadReached, MetricFigures, Misfortune, ProcessUse, Results, ScenarioFigures,
    SuccessDifference, results,
};
pub use file::{
    Better, Breaking, Command, Isolation, Lab, Metric, Process, Ready, Report, Scenario, StopSignal, TrialCommand,
    Watch,
};
pub use isolation::{Network, Pressure, keep};
pub use load::{Achieved, Flood, History, Load, Method, Reliability, interpreter, worker};
pub use manifest::{Header, Kind, MANIFEST, Manifest};
pub use objectives::Weights;
pub use proportion::Proportion;
pub use run::{Event, Order, Ran, run};
pub use runner::{Host, Ray, run_on_hosts};
pub use score::{Criticality, Path, PathFigures, Score, Term};
pub use search::{Broken, Edge, Outcome, Probe, break_it};
pub use stamps::{Figure, Stamps};
pub use sweep::{Grid, Sweep, grid};
pub use trial::{Id, Status, Trial};

/// For the fuzzer: what systems under test and earlier runs leave, as if anybody had written it.
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
