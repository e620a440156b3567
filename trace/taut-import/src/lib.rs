//! Fills a recording from other people's files: one module a kind. Each streams (memory does not grow with the
//! file), believes nothing that it reads, and says what it had to leave out.

mod error;
pub mod mjlib;
mod writing;

pub use error::Error;
pub use writing::Imported;
