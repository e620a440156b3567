//! The list of all sources.

use crate::{source::Source, stamps::Stamps};

/// All sources, in the order in which they link.
pub fn all() -> Vec<Box<dyn Source>> {
    vec![Box::<Stamps>::default()]
}
