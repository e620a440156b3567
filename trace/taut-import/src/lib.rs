//! Fills a recording from files of other tools: one module a kind. Each streams (memory does not grow with the
//! file), believes nothing that it reads, and says what it had to leave out.

pub mod bag;
pub mod chrome;
mod ctf;
pub mod cyclictest;
mod error;
mod histogram;
pub mod hlog;
pub mod jsonl;
mod lines;
pub mod mjlib;
pub mod ros2;
mod unit;
mod writing;

pub use error::Error;
pub use unit::Unit;
pub use writing::Imported;
