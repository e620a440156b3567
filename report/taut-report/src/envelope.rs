//! What JSON forms begin with; all else is the result type itself.

use schemars::JsonSchema;
use serde::Serialize;

/// Of every JSON form; raised when a field is renamed, removed, or changes its meaning.
pub const SCHEMA_VERSION: u32 = 2;

/// A result with its kind and its headline.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{R}")]
pub(crate) struct Envelope<R> {
    /// Version of this schema.
    schema_version: u32,
    /// What it is: the command's word.
    kind: &'static str,
    /// The finding in one sentence.
    headline: String,
    #[serde(flatten)]
    result: R,
}

/// The JSON form of a result.
pub(crate) fn json<R: Serialize>(kind: &'static str, headline: String, result: R) -> serde_json::Value {
    serde_json::to_value(Envelope { schema_version: SCHEMA_VERSION, kind, headline, result }).unwrap_or_default()
}

/// A part of a result with the sentence that is said of it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}")]
pub(crate) struct Said<T> {
    #[serde(flatten)]
    of: T,
    /// For people.
    sentence: String,
}

impl<'a, T> Said<&'a T> {
    /// Of what there is.
    pub fn of(of: Option<&'a T>, sentence: impl Fn(&T) -> String) -> Option<Said<&'a T>> {
        of.map(|of| Said { of, sentence: sentence(of) })
    }
}
