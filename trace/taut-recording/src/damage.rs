//! What of a file could not be read, exactly.

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
        /// By channel: topic and messages that the index behind the chunk lists; empty when that is gone too.
        held: Vec<(String, u64)>,
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
        /// Plain messages salvaged from it, unverified.
        messages: u64,
    },
    /// Bytes between chunks that are no records.
    Bytes {
        /// First byte.
        start: usize,
        /// Behind the last byte.
        end: usize,
    },
    /// No verified copy of what was recorded where is left.
    Info {
        /// Whether a copy without a checksum stands in for it.
        has_copy: bool,
    },
    /// Verified messages that do not decode: a defect of their writer.
    Message {
        /// Their topic.
        topic: &'static str,
        /// How many.
        count: u64,
    },
    /// Messages that cannot be read: every copy of their channel's schema is gone, or it is none that taut knows.
    Schema {
        /// The channel's number.
        channel: u16,
        /// How many.
        count: u64,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Chunk { start, end, held } => {
                write!(f, "the chunk at bytes {start} to {end} fails its checksum and was left out")?;
                for (at, (topic, messages)) in held.iter().enumerate() {
                    let (before, plural) = (if at == 0 { ": " } else { ", " }, if *messages == 1 { "" } else { "s" });
                    write!(f, "{before}{messages} message{plural} of {topic}")?;
                }
                Ok(())
            }
            Damage::Torn { start, missing, stamps, kernel_events, messages } => {
                write!(
                    f,
                    "the last chunk, at byte {start}, is truncated: {missing} bytes are missing; {stamps} stamps"
                )?;
                if *messages > 0 {
                    write!(f, ", {messages} plain messages")?;
                }
                write!(f, " and {kernel_events} kernel events were salvaged from it without a checksum")
            }
            Damage::Bytes { start, end } => {
                write!(f, "bytes {start} to {end} are no readable records and were skipped")
            }
            Damage::Info { has_copy: true } => {
                write!(f, "what was recorded where is known only from a copy without a checksum")
            }
            Damage::Info { has_copy: false } => {
                write!(f, "what was recorded where is lost; host, command and wall-clock times are unknown")
            }
            Damage::Message { topic, count } => {
                write!(f, "{count} messages of {topic} do not decode and were skipped")
            }
            Damage::Schema { channel, count } => {
                write!(f, "{count} messages of channel {channel} have no ros2msg schema in the file and were skipped")
            }
        }
    }
}
