//! A tuning as a document, and as JSON. What is said of it is said once (`sentences`).

mod document;
mod json;
mod sentences;

#[cfg(test)]
pub(crate) mod sample;

pub use document::tune_document;
pub use json::tune_json;
pub use sentences::headline as tune_headline;
