//! The list of all sources.

use crate::{ros::Ros, source::Source, stamps::Stamps, wakes::Wakes};

/// All sources, in the order in which they link.
pub fn all() -> Vec<Box<dyn Source>> {
    vec![Box::<Stamps>::default(), Box::<Ros>::default(), Box::<Wakes>::default()]
}
