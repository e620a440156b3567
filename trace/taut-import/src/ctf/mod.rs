//! Traces in the Common Trace Format 1.8 or 2, as LTTng writes them: a folder of streams with their description.
//!
//! Written for this purpose: the crates there are wrap libbabeltrace2, which a static binary cannot carry. What it reads is the
//! format's, not LTTng's alone: any sizes, alignments and byte orders, structures, variants, sequences. What it knows of
//! the world is left to those who ask: [`Wanted`] names the events and fields that are kept.

mod bits;
mod description;
mod json;
mod lexer;
mod merge;
mod stream;
mod syntax;
mod types;

pub(crate) use description::Wanted;
pub(crate) use merge::{Loss, Reading, Source, Traces};
pub(crate) use stream::Event;
