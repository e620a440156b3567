//! Live metrics of a recording that is being written: [`taut_live::State`] as metric families (`families`), in the
//! forms that are asked for: Prometheus's text and OpenMetrics (`text`), Prometheus's protobuf with native histograms
//! (`native`), OTLP with exponential histograms (`otlp`). [`Server`] answers scrapes, [`Pusher`] pushes.
//! `docs/reference/metrics.md` is the list for people.

mod accept;
mod families;
mod native;
mod otlp;
mod push;
mod server;
mod text;

pub use accept::Form;
pub use families::{Family, Values, families};
pub use native::native;
pub use otlp::otlp;
pub use push::{Error as PushError, Pusher};
pub use server::{Error as ServeError, Server};
pub use text::text;

/// For the fuzzer: what a client of [`Server`] sends.
#[doc(hidden)]
pub mod fuzzing {
    /// All that a client gets which sends `request` and then nothing more; of a recording without messages, on the loopback.
    pub fn answered(request: &[u8]) -> Vec<u8> {
        crate::server::answered(request)
    }
}
