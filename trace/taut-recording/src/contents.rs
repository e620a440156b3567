//! What a file held besides its records.

use crate::{Damage, Ending, Info};

/// What a file held besides its records.
#[derive(Debug, Default)]
pub struct Contents {
    /// What was recorded where; defaults when every copy of it is gone.
    pub info: Info,
    /// How it ended; `None` when the recorder was killed.
    pub ending: Option<Ending>,
    /// What could not be read.
    pub damage: Vec<Damage>,
    /// Stamps given to the sink.
    pub stamps: u64,
    /// Kernel events given to the sink.
    pub kernel_events: u64,
    /// Plain messages given to the sink.
    pub messages: u64,
    /// ROS 2 events given to the sink.
    pub ros_events: u64,
}
