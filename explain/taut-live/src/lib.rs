//! The state of a recording while it is being written: every chain's latencies, hops and causes, where messages ended,
//! what threads did and what was lost; of the last seconds, and summed up since the start.
//!
//! The recorder knows nothing of it: [`follow`] reads the growing file. About once a second ([`turn`]) the last
//! seconds go through the same analysis as a report, and each message that ended counts once. Metrics and
//! `taut top` show the [`State`] that comes of it.

mod follow;
mod hosts;
mod keep;
mod messages;
mod spread;
mod state;
mod turn;
mod window;

pub use follow::{Follower, Following, Growing, follow};
pub use spread::{BUCKETS, Spread};
pub use state::{Chain, Clocks, Guard, Hop, LiveFigures, Lost, State, Thread};
pub use taut_capture::give_way;
pub use turn::Turner;
