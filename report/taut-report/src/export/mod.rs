//! A recording in the forms that other people's tools open: one file a form.

mod csv;
mod foxglove;
mod hlog;
mod perfetto;

pub use csv::csv;
pub use foxglove::{LATENCY, Latencies};
pub use hlog::IntervalLog;
pub use perfetto::Perfetto;
