//! Numbers out of the messages of one channel of any MCAP file, a taut recording or not: `cdr` by its `ros2msg` schema, or
//! `json`. For commands that look at a robot's own messages; a recording's records come from [`crate::read`].
//!
//! A field is a path as in `pose.position.x`, `velocity[3]`, `header.stamp` (a time, in nanoseconds).

use std::{collections::HashMap, io::BufReader};

use serde_json::Value;

use crate::{
    Error,
    mcap_reader::{Item, McapReader, Record},
    mcap_record::MAGIC,
    printable::printable,
    ros2msg::Schema,
};

/// Fields that an error names.
const NAMED_MOST: usize = 30;
/// Sentences on damage; of more there is the number.
const DAMAGE_MOST: usize = 20;

/// What one look through a channel came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Messages handed on.
    pub messages: u64,
    /// What was left out, a sentence each.
    pub damage: Vec<String>,
}

/// A number of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole one, as it is: a calendar's nanoseconds do not fit a double.
    Integer(i64),
    /// Any other.
    Double(f64),
}

impl Number {
    /// As a double.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Double(value) => value,
        }
    }

    /// In another unit. It stays whole where the factor is.
    #[must_use]
    pub fn times(self, factor: f64) -> Number {
        let whole = match self {
            Number::Integer(value) if factor.fract() == 0.0 && factor.abs() < 1e15 => value.checked_mul(factor as i64),
            _ => None,
        };
        whole.map_or(Number::Double(self.as_f64() * factor), Number::Integer)
    }
}

/// Gives for each message of `topic` its log time and the value of each field, `None` where this message lacks it.
///
/// # Errors
/// No MCAP file, no such channel, another encoding, or a field that no message has.
pub fn channel_numbers(
    bytes: &[u8],
    topic: &str,
    fields: &[&str],
    sink: &mut dyn FnMut(u64, &[Option<Number>]),
) -> Result<Told, Error> {
    let wrong = |what: String| Error::Channel(format!("{topic}: {what}"));
    let paths: Vec<String> = fields
        .iter()
        .map(|field| pointer(field).ok_or_else(|| wrong(format!("{field:?} is no field; write a.b or a[0]"))))
        .collect::<Result<_, _>>()?;
    let Some(records) = bytes.strip_prefix(&MAGIC) else {
        return Err(Error::Channel("is no MCAP file; name one that has the channel".to_owned()));
    };
    let mut file = McapReader::new(BufReader::new(records), u64::MAX);
    let mut described = Described { topic, ..Described::default() };
    let mut lost = Lost::default();
    let (mut messages, mut undecodable) = (0, 0);
    let mut values = vec![None; fields.len()];
    let mut is_met = vec![false; fields.len()];
    while let Some(item) = file.next()? {
        let (header, data) = match item {
            Item::Record(_, Record::Message { header, data }) => (header, data),
            Item::Record(_, record) => {
                described.take(record);
                continue;
            }
            Item::Damage(what) => {
                lost.add(what);
                continue;
            }
        };
        let Some(form) = described.forms.get(&header.channel_id) else {
            match described.others.get_mut(&header.channel_id) {
                Some((_, has_messages)) => *has_messages = true,
                None => lost.add(format!("a message is of channel {}, which is not described", header.channel_id)),
            }
            continue;
        };
        let Some(decoded) = form.as_ref().map_err(|why| wrong(why.clone()))?.decode(&data) else {
            undecodable += 1;
            continue;
        };
        for ((path, value), is_met) in paths.iter().zip(&mut values).zip(&mut is_met) {
            *value = decoded.pointer(path).and_then(number);
            *is_met |= value.is_some();
        }
        messages += 1;
        sink(header.log_time, &values);
    }
    if undecodable > 0 {
        lost.add(format!("{undecodable} messages of {topic} do not decode by their schema"));
    }
    let damage = lost.told();
    if messages + undecodable == 0 {
        let there = [described.there()].into_iter().chain(damage).collect::<Vec<_>>().join("; ");
        return Err(Error::Channel(format!("no message of the channel {topic:?}; {there}")));
    }
    match is_met.iter().position(|is_met| !is_met) {
        Some(missing) if messages > 0 => {
            let known = described.forms.values().flatten().next().map(Form::numbers).unwrap_or_default();
            Err(wrong(format!("no message has the number {:?}{known}", fields[missing])))
        }
        _ => Ok(Told { messages, damage }),
    }
}

/// What the file said of its channels so far.
#[derive(Default)]
struct Described<'a> {
    /// The one that is wanted.
    topic: &'a str,
    /// By id: encoding, text.
    schemas: HashMap<u16, (String, String)>,
    /// By id, the channels of the topic: how their messages are read, or why they are not.
    forms: HashMap<u16, Result<Form, String>>,
    /// By id, the other channels: their topic, and whether it has messages.
    others: HashMap<u16, (String, bool)>,
}

impl Described<'_> {
    fn take(&mut self, record: Record<'_>) {
        match record {
            Record::Schema { header, data } => {
                self.schemas.insert(header.id, (header.encoding, String::from_utf8_lossy(&data).into_owned()));
            }
            // Files repeat their channels.
            Record::Channel(channel) if channel.topic == self.topic => {
                let form = || Form::of(&channel.message_encoding, self.schemas.get(&channel.schema_id));
                self.forms.entry(channel.id).or_insert_with(form);
            }
            Record::Channel(channel) => {
                self.others.entry(channel.id).or_insert((printable(channel.topic), false));
            }
            _ => {}
        }
    }

    /// Which other topics have messages.
    fn there(&self) -> String {
        let with_messages = self.others.values().filter(|(_, has_messages)| *has_messages);
        let mut topics: Vec<&str> = with_messages.map(|(topic, _)| topic.as_str()).collect();
        topics.sort_unstable();
        topics.dedup();
        if topics.is_empty() { "it has no messages".into() } else { format!("it has {}", topics.join(", ")) }
    }
}

/// What was left out.
#[derive(Default)]
struct Lost {
    first: Vec<String>,
    more: u64,
}

impl Lost {
    fn add(&mut self, what: String) {
        match self.first.len() {
            DAMAGE_MOST => self.more += 1,
            _ => self.first.push(what),
        }
    }

    fn told(mut self) -> Vec<String> {
        if self.more > 0 {
            self.first.push(format!("{} more of such damage", self.more));
        }
        self.first
    }
}

/// How a channel's messages are read.
enum Form {
    Cdr(Schema),
    Json,
}

impl Form {
    fn of(encoding: &str, schema: Option<&(String, String)>) -> Result<Form, String> {
        if encoding == "json" {
            return Ok(Form::Json);
        }
        match schema.filter(|(kind, _)| encoding == "cdr" && kind == "ros2msg") {
            Some((_, text)) => Schema::parse(text).map(Form::Cdr),
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

fn number(value: &Value) -> Option<Number> {
    // A ROS time, as its schema has it or as the bridges write it.
    let part = |names: [&str; 2]| names.iter().find_map(|name| value.get(*name).filter(|part| part.is_number()));
    if let (Some(sec), Some(nanosec)) = (part(["sec", "secs"]), part(["nanosec", "nsec"])) {
        let whole = sec.as_i64().zip(nanosec.as_i64());
        let whole = whole.and_then(|(sec, nanosec)| sec.checked_mul(1_000_000_000)?.checked_add(nanosec));
        return match whole {
            Some(ns) => Some(Number::Integer(ns)),
            None => Some(Number::Double(sec.as_f64()? * 1e9 + nanosec.as_f64()?)),
        };
    }
    let whole = value.as_i64().or(value.as_bool().map(i64::from)).map(Number::Integer);
    whole.or(value.as_f64().map(Number::Double))
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
        let (values, told) = exact(bytes, topic, fields)?;
        Ok((values.into_iter().map(|value| value.map(Number::as_f64)).collect(), told))
    }

    fn exact(bytes: &[u8], topic: &str, fields: &[&str]) -> Result<(Vec<Option<Number>>, Told), Error> {
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
        let damage = vec!["1 messages of /arm do not decode by their schema".to_owned()];
        assert_eq!(told, Told { messages: 1, damage });
    }

    #[test]
    fn json_is_read_too() {
        let text =
            br#"{"stamp":{"sec":2,"nanosec":5},"pose":{"x":1.25},"joints":[0.5,true]}                           "#;
        let (values, _) = numbers(&file("json", text), "/arm", &["stamp", "pose.x", "joints[1]"]).unwrap();
        assert_eq!(values, [Some(2e9 + 5.0), Some(1.25), Some(1.0)]);
    }

    #[test]
    fn whole_numbers_stay_whole_and_times_exact_to_the_nanosecond() {
        const NS: i64 = 1_700_000_000_000_000_123;
        let text =
            br#"{"stamp":{"sec":1700000000,"nanosec":123},"ns":1700000000000000123,"us":1700000000000001,"s":1.5}"#;
        let (values, _) = exact(&file("json", text), "/arm", &["stamp", "ns", "us", "s"]).unwrap();
        let values: Vec<Number> = values.into_iter().map(Option::unwrap).collect();
        assert_eq!(values[..2], [Number::Integer(NS); 2]);
        assert_eq!(values[2].times(1000.0), Number::Integer(1_700_000_000_000_001_000));
        assert_eq!((values[3], values[3].times(1e9)), (Number::Double(1.5), Number::Double(1.5e9)));
        assert_eq!(Number::Integer(3).times(0.5), Number::Double(1.5));
        assert_eq!(Number::Integer(i64::MAX).times(1000.0), Number::Double(i64::MAX as f64 * 1000.0));
    }

    #[test]
    fn damage_costs_itself_and_is_told() {
        let whole = file("cdr", &message());
        // Magic and header, each with what it states of its length; then the chunk.
        let chunk = 8 + 9 + whole[9] as usize;
        let said = numbers(&whole[..chunk + 60], "/arm", &["count"]).unwrap_err().to_string();
        let expected =
            format!("it has no messages; the file ends within the record at byte {chunk}, which was left out");
        assert!(said.contains(&expected), "{said}");
        let mut flipped = whole.clone();
        flipped[chunk + 60] ^= 1;
        let said = numbers(&flipped, "/arm", &["count"]).unwrap_err().to_string();
        assert!(said.contains(&format!("the chunk at byte {chunk} ")), "{said}");
        // Without its end all messages are there.
        assert_eq!(numbers(&whole[..whole.len() - 40], "/arm", &["count"]).unwrap().1.messages, 1);
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
        let said = channel_numbers(b"no file", "/arm", &[], &mut |_, _| {}).unwrap_err().to_string();
        assert!(said.contains("is no MCAP file"), "{said}");
    }
}
