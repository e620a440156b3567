//! A tuning for people and scripts: terminal, Markdown, JSON, HTML. What is said of it is said once (`rows`, `sentences`).

mod html;
mod json;
mod markdown;
mod rows;
mod sentences;
mod terminal;

#[cfg(test)]
pub(crate) mod sample;

pub use html::tune_html;
pub use json::tune_json;
pub use markdown::tune_markdown;
pub use sentences::headline as tune_headline;
pub use terminal::tune_terminal;
