//! Delays as channels of plain messages, to plot over time in Foxglove, PlotJuggler or anything else that reads MCAP.

use std::collections::HashMap;

use taut_analysis::Row;
use taut_recording::{Error, Writer, cdr::Encoder};

/// Type of the channels.
pub const LATENCY: &str = "taut/msg/Latency";
/// Type and text of the channels' schema.
const SCHEMA: (&str, &str) =
    (LATENCY, "# At the time of the message's first stamp.\nuint64 message\nfloat64 duration_us\n");

/// Collects each message's delays, of its whole way and of each hop, and how long after the one before it began.
#[derive(Debug, Default)]
pub struct Latencies {
    topics: Vec<String>,
    by_topic: HashMap<String, usize>,
    rows: Vec<Latency>,
    /// First stamp of the message whose hops come now.
    message_start_ns: u64,
    /// Of each chain, the first stamp of the message before.
    before_ns: HashMap<String, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Latency {
    /// Of the message's start, so that all hops of a message stand at one place in a plot.
    time_ns: u64,
    topic: usize,
    message: u64,
    duration_ns: u64,
}

impl Latencies {
    /// Takes in a row; a message comes before its hops. Causes and states it passes over.
    pub fn row(&mut self, row: &Row<'_>) {
        match row {
            Row::Message(message) => {
                self.message_start_ns = message.start_ns;
                if let Some(before_ns) = self.before_ns.insert(message.chain.to_owned(), message.start_ns) {
                    let period_ns = message.start_ns.saturating_sub(before_ns);
                    self.add(format!("/period/{}", message.chain), message.id, period_ns);
                }
                if let Some(way_ns) = message.way_ns {
                    self.add(format!("/latency/{}", message.chain), message.id, way_ns);
                }
            }
            Row::Hop(hop) => {
                self.add(format!("/latency/{}/{} → {}", hop.chain, hop.from, hop.to), hop.id, hop.duration_ns);
            }
            Row::Cause(_) | Row::State(_) => {}
        }
    }

    fn add(&mut self, topic: String, message: u64, duration_ns: u64) {
        let topic = self.by_topic.get(&topic).copied().unwrap_or_else(|| {
            self.topics.push(topic.clone());
            self.by_topic.insert(topic, self.topics.len() - 1);
            self.topics.len() - 1
        });
        self.rows.push(Latency { time_ns: self.message_start_ns, topic, message, duration_ns });
    }

    /// How many channels there are.
    pub fn channels(&self) -> usize {
        self.topics.len()
    }

    /// Adds the channels to a recording.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(mut self, writer: &mut Writer) -> Result<(), Error> {
        self.rows.sort_by_key(|row| row.time_ns);
        let mut channels = Vec::new();
        for topic in &self.topics {
            channels.push((writer.channel(topic, SCHEMA.0, SCHEMA.1)?, 0));
        }
        for row in &self.rows {
            let (channel, sequence) = &mut channels[row.topic];
            let message = Encoder::new().number(row.message).number(row.duration_ns as f64 / 1e3).finish();
            writer.message(*channel, row.time_ns, *sequence, |out| out.extend_from_slice(&message))?;
            *sequence += 1;
        }
        Ok(())
    }
}
