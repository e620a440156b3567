//! Fills a recording from files of other tools: one module a kind. Each streams (memory does not grow with the file),
//! checks everything that it reads, and reports what it leaves out.

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
