//! Reads a recording: chains, hops, outcomes. Opens no file and reads no clock.

mod result;

pub use result::*;
