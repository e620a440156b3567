//! How many samples the guard looks back on.

/// Samples kept: 15 periods of W_max before the oldest frame that may still be inserted, 15 periods late.
pub(crate) const CAPACITY: usize = 32;
