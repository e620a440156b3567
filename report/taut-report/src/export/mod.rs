//! A recording in the forms that other people's tools open: one file a form.

mod csv;
mod perfetto;

pub use csv::csv;
pub use perfetto::Perfetto;
