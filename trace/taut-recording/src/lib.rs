//! What a recording is: one MCAP file of stamps, kernel events and their environment.
//!
//! Filled by capture and importers, read by analysis. It knows MCAP; nobody else does.
//! The format is written down in `docs/recording.md`.

mod records;

pub use records::*;
