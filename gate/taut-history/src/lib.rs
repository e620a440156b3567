//! The history of a branch: figures of the trials of each revision, as Parquet, and when they changed. Takes and gives bytes; opens no
//! file.
//!
//! Each gate adds one file of its own to a folder; the rows of all files are the history, so that two builds that end at once
//! do not spoil each other's, and any tool that reads Parquet reads the folder as one table.

mod changes;
mod table;
mod thrift;

pub use changes::{Change, FigureHistory, RevisionFigure, lines};
pub use table::{Error, Row, read, rows, write};
