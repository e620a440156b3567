//! Numbers out of the messages of one channel of any MCAP file, a taut recording or not: `cdr` by its `ros2msg` schema, or
//! `json`. For commands that look at a robot's own messages; a recording's records come from [`crate::read`].
//!
//! A field is a path as in `pose.position.x`, `velocity[3]`, `header.stamp` (a time, in nanoseconds).

use std::collections::{HashMap, hash_map::Entry};

use mcap::sans_io::{LinearReaderOptions, MessageReadEvent, MessageReader};
use serde_json::Value;

use crate::{Error, ros2msg::Schema};

/// Of one record or chunk; recorders of ROS make them of some megabytes.
const MOST_BYTES: usize = 192 << 20;
/// Fields that an error names.
const NAMED_MOST: usize = 30;

/// What one look through a channel came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Messages handed on.
    pub messages: u64,
    /// Messages that do not decode by their schema.
    pub undecodable: u64,
}

/// Gives for each message of `topic` its log time and the value of each field, `None` where this message lacks it.
///
/// # Errors
/// No MCAP file, no such channel, another encoding, or a field that no message has.
pub fn channel_numbers(
    bytes: &[u8],
    topic: &str,
    fields: &[&str],
    sink: &mut dyn FnMut(u64, &[Option<f64>]),
) -> Result<Told, Error> {
    let wrong = |what: String| Error::Channel(format!("{topic}: {what}"));
    let paths: Vec<String> = fields
        .iter()
        .map(|field| pointer(field).ok_or_else(|| wrong(format!("{field:?} is no field; write a.b or a[0]"))))
        .collect::<Result<_, _>>()?;
    let mut forms: HashMap<u16, Form> = HashMap::new();
    let mut topics: Vec<String> = Vec::new();
    let mut told = Told::default();
    let mut values = vec![None; fields.len()];
    let mut is_met = vec![false; fields.len()];
    for message in messages(bytes) {
        let channel = &message.channel;
        if channel.topic != topic {
            if !topics.contains(&channel.topic) {
                topics.push(channel.topic.clone());
            }
            continue;
        }
        let form = match forms.entry(channel.id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Form::of(channel).map_err(wrong)?),
        };
        let Some(decoded) = form.decode(&message.data) else {
            told.undecodable += 1;
            continue;
        };
        for ((path, value), is_met) in paths.iter().zip(&mut values).zip(&mut is_met) {
            *value = decoded.pointer(path).and_then(number);
            *is_met |= value.is_some();
        }
        told.messages += 1;
        sink(message.log_time, &values);
    }
    if told == Told::default() {
        topics.sort();
        let there =
            if topics.is_empty() { "it has no messages".into() } else { format!("it has {}", topics.join(", ")) };
        return Err(Error::Channel(format!("no message of the channel {topic:?}; {there}")));
    }
    match is_met.iter().position(|is_met| !is_met) {
        Some(missing) if told.messages > 0 => {
            let known = forms.values().next().map(Form::numbers).unwrap_or_default();
            Err(wrong(format!("no message has the number {:?}{known}", fields[missing])))
        }
        _ => Ok(told),
    }
}

/// A file's messages. What comes behind a tear is lost; what came before stands.
fn messages(mut rest: &[u8]) -> impl Iterator<Item = mcap::Message<'static>> {
    // Without a limit room is made for whatever a length says.
    let options = LinearReaderOptions::default().with_skip_end_magic(true).with_record_length_limit(MOST_BYTES);
    let mut reader = MessageReader::new_with_options(options);
    std::iter::from_fn(move || {
        loop {
            match reader.next_event()?.ok()? {
                MessageReadEvent::Message(message) => return Some(message),
                MessageReadEvent::ReadRequest(bytes) => {
                    let (read, after) = rest.split_at(bytes.min(rest.len()));
                    reader.insert(read.len()).copy_from_slice(read);
                    reader.notify_read(read.len());
                    rest = after;
                }
            }
        }
    })
}

/// How a channel's messages are read.
enum Form {
    Cdr(Schema),
    Json,
}

impl Form {
    fn of(channel: &mcap::Channel<'_>) -> Result<Form, String> {
        let encoding = channel.message_encoding.as_str();
        if encoding == "json" {
            return Ok(Form::Json);
        }
        match channel.schema.as_ref().filter(|schema| encoding == "cdr" && schema.encoding == "ros2msg") {
            Some(schema) => Schema::parse(&String::from_utf8_lossy(&schema.data)).map(Form::Cdr),
            None => Err(format!("its messages are {encoding:?}; only cdr with ros2msg schemas and json are read")),
        }
    }

    fn decode(&self, data: &[u8]) -> Option<Value> {
        match self {
            Form::Cdr(schema) => schema.decode(data),
            Form::Json => serde_json::from_slice(data).ok(),
        }
    }

    /// What there is instead, for an error.
    fn numbers(&self) -> String {
        match self {
            Form::Cdr(schema) => format!("; it has {}", schema.numbers(NAMED_MOST).join(", ")),
            Form::Json => String::new(),
        }
    }
}

/// `a.b[0]` as RFC 6901 has it: `/a/b/0`.
fn pointer(field: &str) -> Option<String> {
    let mut pointer = String::new();
    for part in field.split('.') {
        let (name, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        if name.is_empty() {
            return None;
        }
        pointer += &format!("/{name}");
        for index in indices.split_inclusive(']') {
            let n: usize = index.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
            pointer += &format!("/{n}");
        }
    }
    Some(pointer)
}

fn number(value: &Value) -> Option<f64> {
    // A ROS time, as its schema has it or as the bridges write it.
    let part = |names: [&str; 2]| names.iter().find_map(|name| value.get(*name)?.as_f64());
    if let (Some(sec), Some(nanosec)) = (part(["sec", "secs"]), part(["nanosec", "nsec"])) {
        return Some(sec * 1e9 + nanosec);
    }
    value.as_f64().or(value.as_bool().map(|b| f64::from(u8::from(b))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = "# A comment\nstd_msgs/Header header\nuint8 KIND=3\nuint8 count\nfloat64[] positions\nPoint[2] ends\nbool ok true\n\
        ================\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n\
        ================\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n\
        ================\nMSG: my_msgs/Point\nfloat32 x\nint16 y\n";

    fn message() -> Vec<u8> {
        let mut data = vec![0, 1, 0, 0];
        let body = |data: &Vec<u8>| data.len() - 4;
        data.extend(5i32.to_le_bytes());
        data.extend(7u32.to_le_bytes());
        data.extend(5u32.to_le_bytes());
        data.extend(b"base\0");
        data.push(200);
        while body(&data) % 4 != 0 {
            data.push(0);
        }
        data.extend(2u32.to_le_bytes());
        while body(&data) % 8 != 0 {
            data.push(0);
        }
        data.extend(1.5f64.to_le_bytes());
        data.extend((-2.5f64).to_le_bytes());
        for (x, y) in [(0.25f32, -3i16), (0.5, 4)] {
            while body(&data) % 4 != 0 {
                data.push(0);
            }
            data.extend(x.to_le_bytes());
            data.extend(y.to_le_bytes());
        }
        data.push(1);
        data
    }

    fn file(encoding: &str, data: &[u8]) -> Vec<u8> {
        let mut out = std::io::Cursor::new(Vec::new());
        let mut writer = mcap::Writer::new(&mut out).unwrap();
        let schema = writer.add_schema("my_msgs/msg/Arm", "ros2msg", SCHEMA.as_bytes()).unwrap();
        let channel = writer.add_channel(schema, "/arm", encoding, &Default::default()).unwrap();
        let header =
            |sequence| mcap::records::MessageHeader { channel_id: channel, sequence, log_time: 9, publish_time: 8 };
        writer.write_to_known_channel(&header(0), data).unwrap();
        writer.write_to_known_channel(&header(1), &data[..data.len() / 2]).unwrap();
        writer.finish().unwrap();
        drop(writer);
        out.into_inner()
    }

    fn numbers(bytes: &[u8], topic: &str, fields: &[&str]) -> Result<(Vec<Option<f64>>, Told), Error> {
        let mut last = Vec::new();
        let told = channel_numbers(bytes, topic, fields, &mut |log_time, values| {
            assert_eq!(log_time, 9);
            last = values.to_vec();
        })?;
        Ok((last, told))
    }

    #[test]
    fn fields_are_found_by_their_path() {
        let bytes = file("cdr", &message());
        let fields = ["header.stamp", "count", "positions[1]", "ends[1].x", "ends[0].y", "ok"];
        let (values, told) = numbers(&bytes, "/arm", &fields).unwrap();
        let expected = [Some(5e9 + 7.0), Some(200.0), Some(-2.5), Some(0.5), Some(-3.0), Some(1.0)];
        assert_eq!(values, expected);
        // The second message is torn.
        assert_eq!(told, Told { messages: 1, undecodable: 1 });
    }

    #[test]
    fn json_is_read_too() {
        let text =
            br#"{"stamp":{"sec":2,"nanosec":5},"pose":{"x":1.25},"joints":[0.5,true]}                           "#;
        let (values, _) = numbers(&file("json", text), "/arm", &["stamp", "pose.x", "joints[1]"]).unwrap();
        assert_eq!(values, [Some(2e9 + 5.0), Some(1.25), Some(1.0)]);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let bytes = file("cdr", &message());
        for (topic, field, words) in [
            ("/leg", "count", "no message of the channel \"/leg\"; it has /arm"),
            ("/arm", "colour", "/arm: no message has the number \"colour\"; it has "),
            ("/arm", "header.frame_id", "no message has the number \"header.frame_id\""),
            ("/arm", "ends[2].x", "no message has the number \"ends[2].x\""),
            ("/arm", "a..b", "\"a..b\" is no field"),
        ] {
            let said = numbers(&bytes, topic, &[field]).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
        assert!(numbers(&file("protobuf", &[0; 8]), "/arm", &["count"]).unwrap_err().to_string().contains("only cdr"));
        assert!(channel_numbers(b"no file", "/arm", &[], &mut |_, _| {}).is_err());
    }
}
