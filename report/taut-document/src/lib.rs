//! A result as a document: headline, sentences, tables, charts. It is built once and shown by three renderers, which know tables and
//! charts and no subject. This crate depends on no other of the workspace, so that this stays true.

mod chart;
mod document;
pub mod escape;
mod html;
mod lanes;
mod markdown;
mod scale;
mod style;
mod svg;
mod table;
mod terminal;
mod text;
mod thin;
pub mod units;
mod wrap;

#[cfg(test)]
mod golden;

pub use chart::{Axis, AxisScale, Band, Chart, Curve, Mark, Quantity};
pub use document::{Block, Document, Evidence, Finding, Section, Show};
pub use html::{Front, html};
pub use lanes::{Activity, Class, LaneItem, LanePiece, LaneRow, LaneState, Lanes};
pub use markdown::markdown;
pub use style::Style;
pub use table::{Cell, Column, Table, TableRow};
pub use terminal::terminal;
pub use text::{Part, Text, Tone};
pub use thin::thinned;
