//! What a recording is: one MCAP file of stamps, kernel events and their environment.
//!
//! Filled by capture and importers, read by analysis. Only this crate knows MCAP.
//! The format is written down in `docs/reference/recording.md`.

pub mod cdr;
mod channel;
mod contents;
mod damage;
mod decoder;
mod error;
mod format_version;
pub mod futex;
mod growing;
mod holes;
pub mod host_numbers;
pub mod log;
pub mod mcap_reader;
mod mcap_record;
mod output;
mod plain;
mod printable;
mod reader;
mod records;
mod recover;
pub mod ros2msg;
mod schemas;
mod system_calls;
pub mod telemetry;
mod writer;

pub use channel::{Number, Told, channel_numbers};
pub use contents::Contents;
pub use damage::Damage;
pub use error::Error;
pub use format_version::FORMAT_VERSION;
pub use growing::{GrowingRecording, is_finished};
pub use output::Output;
pub use printable::{Shown, is_harmful, printable};
pub use reader::{info, read};
pub use records::*;
pub use recover::{Recovered, copy, pour, recover};
pub use system_calls::Architecture;
pub use writer::{Compression, Writer};
