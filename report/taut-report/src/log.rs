//! The JSON forms of `taut telemetry`. The schema is documented in `docs/schemas/telemetry.schema.json`, generated from these types.

use std::io::{Read, Seek};

use schemars::JsonSchema;
use serde::Serialize;
use taut_recording::{
    PlainChannel,
    log::{Log, Message},
};

/// All channels, with `--format json`.
#[derive(Serialize, JsonSchema)]
struct Channels {
    schema_version: u32,
    /// From the first message of any channel to the last.
    duration_s: f64,
    channels: Vec<Channel>,
}

#[derive(Serialize, JsonSchema)]
struct Channel {
    topic: String,
    #[serde(rename = "type")]
    type_name: String,
    messages: u64,
    /// Of the chunks that hold it, compressed.
    bytes: u64,
}

/// One message: a line of its own.
#[derive(Serialize, JsonSchema)]
struct Line<'a> {
    topic: &'a str,
    /// Since the first message of any channel.
    time_s: f64,
    /// Counts what was written, lost messages too.
    sequence: u32,
    /// The message's fields by name, as its own schema has them; numbers that are none are null.
    value: serde_json::Value,
}

/// The channels of a log.
pub fn log_channels_json<R: Read + Seek>(log: &Log<R>) -> serde_json::Value {
    let span = log.span();
    let channel = |channel: &PlainChannel| Channel {
        topic: channel.topic.clone(),
        type_name: channel.schema_name.clone(),
        messages: log.messages_of(channel.number),
        bytes: log.bytes_of(channel.number),
    };
    let channels = Channels {
        schema_version: crate::SCHEMA_VERSION,
        duration_s: (span.end - span.start) as f64 / 1e9,
        channels: log.channels().into_iter().map(channel).collect(),
    };
    serde_json::to_value(channels).unwrap_or_default()
}

/// A message as a line, its newline included. `value` is what its data decode to, `start_ns` the log's first log time.
pub fn log_line_json(
    channel: &PlainChannel,
    message: Message<'_>,
    value: serde_json::Value,
    start_ns: u64,
) -> serde_json::Result<String> {
    let time_s = message.log_time_ns.saturating_sub(start_ns) as f64 / 1e9;
    let line = Line { topic: &channel.topic, time_s, sequence: message.sequence, value };
    serde_json::to_string(&line).map(|line| line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list of channels, or one line of messages.
    #[derive(JsonSchema)]
    #[schemars(untagged)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    enum Form {
        Channels(Channels),
        Line(Line<'static>),
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        crate::json::assert_documented(&schemars::schema_for!(Form).to_value(), "schemas/telemetry.schema.json");
    }
}
