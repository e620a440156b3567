//! What of a file could not be read, said exactly.

use std::fmt;

/// One damaged stretch of a file; its Display is the sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A chunk whose bytes are not what was written: quarantined.
    Chunk {
        /// First byte.
        start: usize,
        /// Behind its last byte.
        end: usize,
        /// Log times that its header states, ns since 1970; themselves not vouched for.
        start_ns: u64,
        /// As above.
        end_ns: u64,
    },
    /// The last chunk, of which the end is missing.
    Torn {
        /// First byte.
        start: usize,
        /// Bytes that are not there.
        missing: usize,
        /// Stamps salvaged from it, unverified.
        stamps: u64,
        /// Kernel events salvaged from it, unverified.
        kernel_events: u64,
    },
    /// Bytes between chunks that are no records.
    Bytes {
        /// First byte.
        start: usize,
        /// Behind the last byte.
        end: usize,
    },
    /// A verified message that does not decode: a defect of whoever wrote it.
    Message {
        /// Its topic.
        topic: &'static str,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Chunk { start, end, start_ns, end_ns } => {
                let span_ms = end_ns.saturating_sub(*start_ns) as f64 / 1e6;
                write!(f, "the chunk at bytes {start} to {end} fails its checksum and was left out")?;
                // A damaged header may state anything; only a chunk-like span is worth saying.
                if span_ms < 10_000.0 { write!(f, " (about {span_ms:.0} ms of one channel group)") } else { Ok(()) }
            }
            Damage::Torn { start, missing, stamps, kernel_events } => write!(
                f,
                "the last chunk, at byte {start}, is torn: {missing} bytes are missing; {stamps} stamps and \
                 {kernel_events} kernel events were salvaged from it without a checksum"
            ),
            Damage::Bytes { start, end } => write!(f, "bytes {start} to {end} are no records and were skipped"),
            Damage::Message { topic } => write!(f, "a message on {topic} does not decode and was skipped"),
        }
    }
}
