//! Recordings of several hosts → one stream of records on one clock.

pub mod align;
