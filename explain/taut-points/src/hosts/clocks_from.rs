//! Where what is known of the clocks of two hosts comes from.

/// Where the offset of two clocks comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClocksFrom {
    /// The messages between the hosts.
    Messages,
    /// Both recordings are of one boot of one machine: the clocks are the same.
    OneMachine,
    /// CLOCK_REALTIME of both, as the user wants it.
    Realtime,
}
