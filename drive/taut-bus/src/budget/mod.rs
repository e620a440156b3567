//! The cycle budget: what one control cycle over all servos costs, term by term.
//!
//! A [`CycleBudget`] (`file`) is read from TOML (`read`, `change`, `check`): frames, links, resources, and terms (`term`),
//! each with what is known of its origin. Terms of resources that work one after the other add up; of parallel resources the longest decides
//! (`load`). Forward: [`Forecast`] with a Monte-Carlo over the terms' jitter (`forecast`, `draw`, `jitter`). Backward: how
//! many servos, bytes or bits a second a rate allows ([`solve`]). Event by event where microcontrollers are polled ([`polled()`]). Sideways: what each figure is worth
//! ([`sensitivity`]), by the figures one can turn (`knob`). Against a recording: [`compare`].

mod change;
mod check;
mod compare;
mod draw;
mod error;
mod file;
mod forecast;
mod jitter;
mod knob;
mod load;
mod polled;
mod presets;
mod read;
mod sampling;
mod sensitivity;
mod solve;
mod term;

pub use compare::{Comparison, MeasuredPhase, PhaseResidual, Residual, TermResidual, compare};
pub use error::Error;
pub use file::{CycleBudget, Published, Resource, Servos};
pub use forecast::{Cost, Forecast, Misses, Usage, forecast};
pub use jitter::Jitter;
pub use knob::{Knob, knobs};
pub use load::{Lane, Load, lanes};
pub use polled::{Polled, polled};
pub use presets::{PRESETS, Preset, preset};
pub use sampling::Sampling;
pub use sensitivity::{Gradient, sensitivity};
pub use solve::{Answer, Solve, Solved, solve};
pub use term::{IdKind, Origin, Payload, Per, Price, Stage, Term};
