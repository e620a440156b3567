//! A recording as tables: messages, hops, causes, thread states; and as histograms, for fleets. Their columns are defined here once,
//! for Parquet files and for Python's data frames alike; what the rows say is the analysis's.
//!
//! ```
//! use taut_tables::{MessageRow, Row, Tables};
//!
//! let mut tables = Tables::default();
//! tables.take(Row::Message(MessageRow { chain: "arm", id: 7, ..MessageRow::default() }));
//! assert_eq!(tables.all()[0].rows(), 1);
//! ```

mod column;
mod file;
mod fleet;
mod table;

pub use column::{Column, Texts, Values};
pub use file::{Error, File, ROWS_A_GROUP};
pub use fleet::{Histograms, Origin};
pub use table::{Table, Tables};
pub use taut_analysis::{CauseRow, HopRow, MessageRow, Row, StateRow};
