//! Which source a point is of.

/// Which source. It is reported; no stage behind the sources asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// Stamps of programs.
    #[default]
    Stamps,
    /// ROS 2 events.
    Ros,
    /// Kernel events alone: threads that wait and wake each other.
    Wakes,
}

impl SourceKind {
    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            SourceKind::Stamps => "stamps",
            SourceKind::Ros => "ros",
            SourceKind::Wakes => "wakes",
        }
    }
}
