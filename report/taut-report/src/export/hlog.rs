//! Delays as HdrHistogram's interval log: a histogram for each second of each chain and each hop.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    time::{Duration, SystemTime},
};

use taut_analysis::Row;
use taut_hlog as hlog;

/// Of an interval.
const LENGTH: Duration = Duration::from_secs(1);

/// Collects delays by second and tag. Like the report's delays they leave the start-up out.
#[derive(Debug)]
pub struct IntervalLog {
    start_ns: u64,
    delays: BTreeMap<(u64, String), Vec<u64>>,
}

impl IntervalLog {
    /// Of a recording that began at this moment of CLOCK_MONOTONIC.
    pub fn new(start_ns: u64) -> IntervalLog {
        IntervalLog { start_ns, delays: BTreeMap::new() }
    }

    /// Takes in a message's whole way, or one of its hops, in the second when it began; other rows it passes over.
    pub fn row(&mut self, row: &Row<'_>) {
        match row {
            Row::Message(message) if !message.is_startup => {
                let tag = tag(message.chain);
                message.way_ns.into_iter().for_each(|ns| self.add(message.start_ns, tag.clone(), ns));
            }
            Row::Hop(hop) if !hop.is_startup => {
                let hop_tag = tag(&format!("{}/{}→{}", hop.chain, hop.from, hop.to));
                self.add(hop.start_ns, hop_tag, hop.duration_ns);
            }
            _ => {}
        }
    }

    fn add(&mut self, at_ns: u64, tag: String, delay_ns: u64) {
        let second = at_ns.saturating_sub(self.start_ns) / LENGTH.as_nanos() as u64;
        self.delays.entry((second, tag)).or_default().push(delay_ns);
    }

    /// Writes the log of a recording that began at this time of day.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn write(&self, mut out: &mut dyn Write, start: SystemTime) -> io::Result<()> {
        let mut serializer = hlog::Serializer::new();
        let mut log = hlog::begin(&mut out, &mut serializer, start, "Delays of chains and hops by taut export")?;
        for ((second, tag), delays) in &self.delays {
            hlog::write_values(&mut log, tag, LENGTH * (*second as u32), LENGTH, delays)?;
        }
        Ok(())
    }
}

/// A tag has neither white space nor commas.
fn tag(name: &str) -> String {
    name.replace(" → ", "→").replace(char::is_whitespace, "_").replace(',', ";")
}

#[cfg(test)]
mod tests {
    use taut_analysis::{HopRow, MessageRow};

    use super::*;

    #[test]
    fn delays_are_in_their_second_under_their_chain_and_hop() {
        let mut log = IntervalLog::new(5_000_000_000);
        let message =
            MessageRow { chain: "a, b → c", start_ns: 5_100_000_000, way_ns: Some(900), ..MessageRow::default() };
        let hop = HopRow { chain: "arm", from: "b", to: "c", start_ns: 7_000_000_000, ..HopRow::default() };
        for row in [
            Row::Message(message),
            Row::Message(MessageRow { way_ns: Some(100), ..message }),
            Row::Message(MessageRow { way_ns: None, ..message }),
            Row::Message(MessageRow { is_startup: true, ..message }),
            Row::Hop(HopRow { duration_ns: 400, ..hop }),
        ] {
            log.row(&row);
        }
        let mut bytes = Vec::new();
        log.write(&mut bytes, SystemTime::UNIX_EPOCH).unwrap();
        let read = hlog::read(&bytes).unwrap();
        let of = |i: &hlog::Interval| {
            let histogram = i.histogram.whole();
            (i.tag.clone(), i.start.as_secs(), histogram.len(), histogram.max())
        };
        let found: Vec<_> = read.iter().map(of).collect();
        assert_eq!(found, [("a;_b→c".to_owned(), 0, 2, 900), ("arm/b→c".to_owned(), 2, 1, 400)]);
    }
}
