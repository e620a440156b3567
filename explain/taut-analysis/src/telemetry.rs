//! Telemetry as the recording has it: how often each channel's structs came, and where some are missing. The values
//! themselves are read one channel at a time, by `taut_recording::log`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_recording::{Lost, PlainChannel, PlainMessage, ros2msg::Schema};
use taut_stats::Distribution;

/// More values than this in one message are not counted.
const MOST_VALUES: usize = 100_000;

/// One channel of plain messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Telemetry {
    /// Its topic.
    pub topic: String,
    /// The type of its messages.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Numbers and bools in each message; an array of any length counts as one.
    pub values: u64,
    /// Messages in the recording.
    pub messages: u64,
    /// Their bytes, as encoded and before compression.
    pub bytes: u64,
    /// Messages a second, from the first to the last.
    pub rate_hz: Option<f64>,
    /// Time from one message to the next.
    pub period: Distribution,
    /// Messages that the recorder saw lost, because the ring was full.
    pub lost: u64,
    /// Where the sequence of what was written has holes; `None` where several wrote by turns and it says nothing.
    pub gaps: Option<Gaps>,
}

/// Holes in a sequence: of lost messages, and of damaged chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gaps {
    /// Holes.
    pub count: u64,
    /// Messages that are missing in them.
    pub messages: u64,
}

/// All channels being collected.
#[derive(Default)]
pub(crate) struct Channels {
    /// By number in the recording.
    channels: BTreeMap<u16, Channel>,
    /// Messages lost, by place.
    lost: Vec<(String, u64)>,
}

impl Channels {
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    pub fn add(&mut self, channel: &PlainChannel) {
        self.channels.insert(channel.number, Channel::new(channel));
    }

    pub fn take(&mut self, message: &PlainMessage) {
        if let Some(channel) = self.channels.get_mut(&message.channel) {
            channel.take(message);
        }
    }

    pub fn lost(&mut self, lost: &Lost) {
        self.lost.push((lost.place.clone(), lost.count));
    }

    /// Messages lost, of all channels.
    pub fn lost_messages(&self) -> u64 {
        self.lost.iter().map(|(_, count)| count).sum()
    }

    /// Log time of each channel's last message.
    pub fn ends_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.channels.values().map(Channel::end_ns)
    }

    /// By topic.
    pub fn finish(self) -> Vec<Telemetry> {
        let mut all: Vec<_> = self.channels.into_values().map(|channel| channel.finish(&self.lost)).collect();
        all.sort_by(|a, b| a.topic.cmp(&b.topic));
        all
    }
}

/// One channel being collected.
struct Channel {
    channel: PlainChannel,
    bytes: u64,
    /// Log times, ns.
    times: Vec<u64>,
    last: Option<u32>,
    gaps: Option<Gaps>,
}

impl Channel {
    fn new(channel: &PlainChannel) -> Channel {
        Channel { channel: channel.clone(), bytes: 0, times: Vec::new(), last: None, gaps: Some(Gaps::default()) }
    }

    fn take(&mut self, message: &PlainMessage) {
        self.bytes += message.data.len() as u64;
        self.times.push(message.log_time_ns);
        let jump = self.last.replace(message.sequence).map_or(0, |last| message.sequence.wrapping_sub(last) as i32);
        match (&mut self.gaps, jump) {
            (Some(gaps), 2..) => *gaps = Gaps { count: gaps.count + 1, messages: gaps.messages + jump as u64 - 1 },
            // A writer that begins anew counts from 0; else there are several.
            (gaps, ..0) if message.sequence != 0 => *gaps = None,
            _ => {}
        }
    }

    /// Log time of the last message.
    fn end_ns(&self) -> u64 {
        self.times.iter().copied().max().unwrap_or(0)
    }

    /// `lost`: messages by place, as the recorder counted them.
    fn finish(mut self, lost: &[(String, u64)]) -> Telemetry {
        self.times.sort_unstable();
        let periods: Vec<u64> = self.times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mut sorted = periods.clone();
        sorted.sort_unstable();
        let active_ns = self.times.last().zip(self.times.first()).map_or(0, |(last, first)| last - first);
        let is_of_it = |place: &str| {
            place.split_once('/').is_some_and(|(_, name)| self.channel.topic.strip_prefix("/telemetry/") == Some(name))
        };
        Telemetry {
            values: Schema::parse(&self.channel.schema).map_or(0, |schema| schema.numbers(MOST_VALUES).len() as u64),
            messages: self.times.len() as u64,
            bytes: self.bytes,
            rate_hz: (active_ns > 0).then(|| periods.len() as f64 * 1e9 / active_ns as f64),
            period: Distribution::of(&periods, &sorted),
            lost: lost.iter().filter(|(place, _)| is_of_it(place)).map(|(_, count)| count).sum(),
            gaps: self.gaps,
            topic: self.channel.topic,
            type_name: self.channel.schema_name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(messages: &[(u64, u32)]) -> Telemetry {
        let channel = PlainChannel {
            number: 40,
            topic: "/telemetry/leg".into(),
            schema_name: "telemetry/msg/Leg".into(),
            schema: "float64[3] position # rad\nbool contact\nstring state\n".into(),
        };
        let mut channel = Channel::new(&channel);
        for (ms, sequence) in messages {
            let (log_time_ns, sequence, data) = (ms * 1_000_000, *sequence, vec![0; 40]);
            channel.take(&PlainMessage { channel: 40, log_time_ns, sequence, data });
        }
        let lost = [("7/leg", 3), ("7/arm", 5), ("8/leg", 1)].map(|(place, n)| (place.to_owned(), n));
        channel.finish(&lost)
    }

    #[test]
    fn rate_period_and_what_is_missing() {
        let found = collected(&[(0, 0), (10, 1), (20, 2), (50, 5), (60, 6)]);
        assert_eq!((found.messages, found.values, found.bytes, found.lost), (5, 4, 200, 4));
        assert_eq!(found.gaps, Some(Gaps { count: 1, messages: 2 }));
        assert!((found.rate_hz.unwrap() - 4000.0 / 60.0).abs() < 1e-9);
        assert_eq!((found.period.n, found.period.max_ns), (4, Some(30_000_000)));
    }

    #[test]
    fn a_writer_that_begins_anew_is_no_gap_and_two_at_once_say_nothing() {
        assert_eq!(collected(&[(0, 8), (10, 9), (20, 0), (30, 1)]).gaps, Some(Gaps::default()));
        assert_eq!(collected(&[(0, 8), (1, 108), (10, 9), (11, 109)]).gaps, None);
    }

    #[test]
    fn a_sequence_that_wraps_has_no_gap() {
        assert_eq!(collected(&[(0, u32::MAX), (10, 0)]).gaps, Some(Gaps::default()));
    }

    #[test]
    fn one_message_has_no_rate() {
        let found = collected(&[(5, 0)]);
        assert_eq!((found.messages, found.rate_hz, found.period.n), (1, None, 0));
    }
}
