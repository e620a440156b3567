//! Numbers out of the messages of one channel of any MCAP file, a taut recording or not: `cdr` by its `ros2msg` schema, or
//! `json`. For commands that look at a robot's own messages; a recording's records come from [`crate::read`].
//!
//! A field is a path as in `pose.position.x`, `velocity[3]`, `header.stamp` (a time, in nanoseconds).

use std::collections::HashMap;

use crate::Error;

/// What one look through a channel came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Messages handed on.
    pub messages: u64,
    /// Messages that do not decode by their schema.
    pub undecodable: u64,
}

/// Gives for each message of `topic` its log time and the value of each field, `None` where an array is too short.
///
/// # Errors
/// No MCAP file, no such channel, another encoding, or a field that its schema does not have.
pub fn channel_numbers(
    bytes: &[u8],
    topic: &str,
    fields: &[&str],
    sink: &mut dyn FnMut(u64, &[Option<f64>]),
) -> Result<Told, Error> {
    let messages = mcap::MessageStream::new_with_options(bytes, mcap::read::Options::IgnoreEndMagic.into())
        .map_err(|error| Error::Channel(error.to_string()))?;
    let mut plans: HashMap<u16, Plan> = HashMap::new();
    let mut topics: Vec<String> = Vec::new();
    let mut told = Told::default();
    let mut values = vec![None; fields.len()];
    for message in messages {
        // What comes behind a tear is lost; what came before stands.
        let Ok(message) = message else { break };
        let channel = &message.channel;
        if channel.topic != topic {
            if !topics.contains(&channel.topic) {
                topics.push(channel.topic.clone());
            }
            continue;
        }
        if !plans.contains_key(&channel.id) {
            plans.insert(channel.id, Plan::of(channel, fields)?);
        }
        values.fill(None);
        match plans[&channel.id].read(&message.data, &mut values) {
            Some(()) => {
                told.messages += 1;
                sink(message.log_time, &values);
            }
            None => told.undecodable += 1,
        }
    }
    if told == Told::default() {
        topics.sort();
        let there =
            if topics.is_empty() { "it has no messages".into() } else { format!("it has {}", topics.join(", ")) };
        return Err(Error::Channel(format!("no message of the channel {topic:?}; {there}")));
    }
    Ok(told)
}

/// How a channel's messages are read.
enum Plan {
    Cdr(Node),
    Json(Vec<Vec<Step>>),
}

impl Plan {
    fn of(channel: &mcap::Channel<'_>, fields: &[&str]) -> Result<Plan, Error> {
        let wrong = |what: String| Error::Channel(format!("{}: {what}", channel.topic));
        let wanted: Vec<Vec<Step>> = fields
            .iter()
            .map(|field| path(field).ok_or_else(|| wrong(format!("{field:?} is no field; write a.b or a[0]"))))
            .collect::<Result<_, _>>()?;
        let encoding = channel.message_encoding.as_str();
        if encoding == "json" {
            return Ok(Plan::Json(wanted));
        }
        let schema = channel.schema.as_ref().filter(|schema| encoding == "cdr" && schema.encoding == "ros2msg");
        let Some(schema) = schema else {
            return Err(wrong(format!(
                "its messages are {encoding:?}; only cdr with ros2msg schemas and json are read"
            )));
        };
        let text = String::from_utf8_lossy(&schema.data);
        let types = Types::parse(&text);
        let all: Vec<(usize, &[Step])> =
            wanted.iter().enumerate().map(|(slot, path)| (slot, path.as_slice())).collect();
        let unknown = |slot: usize| {
            let known = types.fields_of("").join(", ");
            wrong(format!("{} has no number {:?}; it has {known}", schema.name, fields[slot]))
        };
        types.compound("", &all, 0).map(Plan::Cdr).map_err(|refusal| match refusal {
            Refusal::Slot(slot) => unknown(slot),
            Refusal::Schema(what) => wrong(format!("its schema cannot be read: {what}")),
        })
    }

    fn read(&self, data: &[u8], values: &mut [Option<f64>]) -> Option<()> {
        match self {
            Plan::Cdr(node) => {
                let (header, body) = data.split_at_checked(4)?;
                let is_big = match header[..2] {
                    [0, 0] => true,
                    [0, 1] => false,
                    _ => return None,
                };
                node.read(&mut Cursor { body, at: 0, is_big }, values)
            }
            Plan::Json(wanted) => {
                let message: serde_json::Value = serde_json::from_slice(data).ok()?;
                for (path, value) in wanted.iter().zip(values) {
                    let found = path.iter().try_fold(&message, |at, step| match step {
                        Step::Field(name) => at.get(name),
                        Step::Index(n) => at.get(n),
                    });
                    *value = found.and_then(json_number);
                }
                Some(())
            }
        }
    }
}

fn json_number(value: &serde_json::Value) -> Option<f64> {
    // A ROS time as the bridges write it.
    let part = |names: [&str; 2]| names.iter().find_map(|name| value.get(*name)?.as_f64());
    if let (Some(sec), Some(nanosec)) = (part(["sec", "secs"]), part(["nanosec", "nsec"])) {
        return Some(sec * 1e9 + nanosec);
    }
    value.as_f64().or(value.as_bool().map(|b| f64::from(u8::from(b))))
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
}

fn path(field: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for part in field.split('.') {
        let (name, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        if name.is_empty() {
            return None;
        }
        steps.push(Step::Field(name.to_owned()));
        for index in indices.split_inclusive(']') {
            let n = index.strip_prefix('[')?.strip_suffix(']')?;
            steps.push(Step::Index(n.parse().ok()?));
        }
    }
    Some(steps)
}

/// A schema's types by name; the message's own is "".
struct Types {
    fields: HashMap<String, Vec<(String, String)>>,
}

/// Why there is no plan.
enum Refusal {
    /// This wanted field is not there, or is no number.
    Slot(usize),
    Schema(String),
}

/// Types nest this deep at most; a schema that goes round in a circle ends here.
const DEPTH_MAX: usize = 32;
/// The time in a message, which is asked for as one number.
const TIMES: [&str; 2] = ["builtin_interfaces/Time", "builtin_interfaces/Duration"];

impl Types {
    /// The `ros2msg` text: the message's fields, then every type it needs behind a line of `=` and `MSG: package/Type`.
    fn parse(text: &str) -> Types {
        let mut fields: HashMap<String, Vec<(String, String)>> = HashMap::new();
        let mut of = String::new();
        fields.insert(String::new(), Vec::new());
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() || line.starts_with("===") {
                continue;
            }
            if let Some(name) = line.strip_prefix("MSG:") {
                of = plain_name(name.trim());
                continue;
            }
            let mut words = line.split_whitespace();
            let (Some(of_type), Some(name)) = (words.next(), words.next()) else { continue };
            // A constant.
            if name.contains('=') || words.next().is_some_and(|word| word.starts_with('=')) {
                continue;
            }
            fields.entry(of.clone()).or_default().push((name.to_owned(), of_type.to_owned()));
        }
        Types { fields }
    }

    /// The numbers of a type, for an error.
    fn fields_of(&self, name: &str) -> Vec<String> {
        self.fields.get(name).into_iter().flatten().map(|(name, of_type)| format!("{name} ({of_type})")).collect()
    }

    fn find(&self, name: &str) -> Option<&str> {
        let name = plain_name(name);
        if self.fields.contains_key(&name) {
            return self.fields.get_key_value(&name).map(|(key, _)| key.as_str());
        }
        // Within a package types go without its name.
        let tail = format!("/{name}");
        self.fields.keys().find(|key| key.ends_with(&tail)).map(String::as_str)
    }

    fn compound(&self, name: &str, wanted: &[(usize, &[Step])], depth: usize) -> Result<Node, Refusal> {
        if depth > DEPTH_MAX {
            return Err(Refusal::Schema("its types nest without end".into()));
        }
        let fields = self.fields.get(name).ok_or_else(|| Refusal::Schema(format!("{name} is not defined in it")))?;
        let mut nodes = Vec::new();
        let mut met = Vec::new();
        for (field, of_type) in fields {
            let inner: Vec<(usize, &[Step])> = wanted
                .iter()
                .filter(|(_, path)| path.first() == Some(&Step::Field(field.clone())))
                .map(|(slot, path)| (*slot, &path[1..]))
                .collect();
            met.extend(inner.iter().map(|(slot, _)| *slot));
            nodes.push(self.value(of_type, &inner, depth + 1)?);
        }
        match wanted.iter().find(|(slot, _)| !met.contains(slot)) {
            Some((slot, _)) => Err(Refusal::Slot(*slot)),
            None => Ok(Node::Compound(nodes)),
        }
    }

    fn value(&self, of_type: &str, wanted: &[(usize, &[Step])], depth: usize) -> Result<Node, Refusal> {
        if let Some((item, length)) = of_type.strip_suffix(']').and_then(|array| array.rsplit_once('[')) {
            return self.array(item, length, wanted, depth);
        }
        let leaf: Vec<usize> = wanted.iter().filter(|(_, path)| path.is_empty()).map(|(slot, _)| *slot).collect();
        if let Some(kind) = Kind::of(of_type) {
            return match (wanted.iter().find(|(_, path)| !path.is_empty()), kind) {
                (Some((slot, _)), _) => Err(Refusal::Slot(*slot)),
                (None, Kind::Text { .. }) if !leaf.is_empty() => Err(Refusal::Slot(leaf[0])),
                _ => Ok(Node::Plain(kind, leaf)),
            };
        }
        let name = self.find(of_type).ok_or_else(|| Refusal::Schema(format!("{of_type} is not defined in it")))?;
        if TIMES.contains(&name) && !leaf.is_empty() && leaf.len() == wanted.len() {
            return Ok(Node::Time(leaf));
        }
        match leaf.first() {
            Some(slot) => Err(Refusal::Slot(*slot)),
            None => self.compound(name, wanted, depth),
        }
    }

    fn array(&self, item: &str, length: &str, wanted: &[(usize, &[Step])], depth: usize) -> Result<Node, Refusal> {
        let fixed = length.parse::<usize>().ok();
        let mut special: HashMap<usize, Vec<(usize, &[Step])>> = HashMap::new();
        for (slot, path) in wanted {
            match path.split_first() {
                Some((Step::Index(n), rest)) if fixed.is_none_or(|length| *n < length) => {
                    special.entry(*n).or_default().push((*slot, rest));
                }
                _ => return Err(Refusal::Slot(*slot)),
            }
        }
        let special: HashMap<usize, Node> = special
            .into_iter()
            .map(|(n, wanted)| Ok((n, self.value(item, &wanted, depth + 1)?)))
            .collect::<Result<_, Refusal>>()?;
        Ok(Node::Array { fixed, item: Box::new(self.value(item, &[], depth + 1)?), special })
    }
}

/// `pkg/msg/Type` and `pkg/Type` are one.
fn plain_name(name: &str) -> String {
    name.replace("/msg/", "/")
}

/// What stands at a place of a message, and which wanted values it fills.
enum Node {
    Plain(Kind, Vec<usize>),
    Time(Vec<usize>),
    Compound(Vec<Node>),
    Array { fixed: Option<usize>, item: Box<Node>, special: HashMap<usize, Node> },
}

/// A type that needs no definition.
#[derive(Clone, Copy)]
enum Kind {
    Whole { bytes: usize, is_signed: bool },
    Float { bytes: usize },
    Text { unit_bytes: usize },
}

impl Kind {
    fn of(name: &str) -> Option<Kind> {
        let name = name.split("<=").next().unwrap_or(name);
        let whole = |bytes, is_signed| Some(Kind::Whole { bytes, is_signed });
        match name {
            "bool" | "byte" | "char" | "uint8" => whole(1, false),
            "int8" => whole(1, true),
            "uint16" => whole(2, false),
            "int16" => whole(2, true),
            "uint32" => whole(4, false),
            "int32" => whole(4, true),
            "uint64" => whole(8, false),
            "int64" => whole(8, true),
            "float32" => Some(Kind::Float { bytes: 4 }),
            "float64" => Some(Kind::Float { bytes: 8 }),
            "string" => Some(Kind::Text { unit_bytes: 1 }),
            "wstring" => Some(Kind::Text { unit_bytes: 4 }),
            _ => None,
        }
    }
}

impl Node {
    fn read(&self, cursor: &mut Cursor<'_>, values: &mut [Option<f64>]) -> Option<()> {
        match self {
            Node::Plain(kind, slots) => {
                let value = cursor.plain(*kind)?;
                slots.iter().for_each(|slot| values[*slot] = Some(value));
            }
            Node::Time(slots) => {
                let sec = cursor.plain(Kind::Whole { bytes: 4, is_signed: true })?;
                let nanosec = cursor.plain(Kind::Whole { bytes: 4, is_signed: false })?;
                slots.iter().for_each(|slot| values[*slot] = Some(sec * 1e9 + nanosec));
            }
            Node::Compound(fields) => fields.iter().try_for_each(|field| field.read(cursor, values))?,
            Node::Array { fixed, item, special } => {
                let length = match fixed {
                    Some(length) => *length,
                    None => cursor.number(4)? as usize,
                };
                // Even an item of one octet cannot be more often there than octets are left.
                if length > cursor.body.len() {
                    return None;
                }
                for n in 0..length {
                    special.get(&n).unwrap_or(item).read(cursor, values)?;
                }
            }
        }
        Some(())
    }
}

/// A place in a message. Numbers are aligned to their size, from behind the header (XCDR1).
struct Cursor<'a> {
    body: &'a [u8],
    at: usize,
    is_big: bool,
}

impl Cursor<'_> {
    fn number(&mut self, bytes: usize) -> Option<u64> {
        let start = self.at.checked_next_multiple_of(bytes)?;
        let octets = self.body.get(start..start + bytes)?;
        self.at = start + bytes;
        let fold = |number: u64, octet: &u8| number << 8 | u64::from(*octet);
        Some(if self.is_big { octets.iter().fold(0, fold) } else { octets.iter().rev().fold(0, fold) })
    }

    fn plain(&mut self, kind: Kind) -> Option<f64> {
        Some(match kind {
            Kind::Whole { bytes, is_signed } => {
                let number = self.number(bytes)?;
                let unused = 64 - 8 * bytes as u32;
                if is_signed { ((number << unused) as i64 >> unused) as f64 } else { number as f64 }
            }
            Kind::Float { bytes: 4 } => f64::from(f32::from_bits(self.number(4)? as u32)),
            Kind::Float { .. } => f64::from_bits(self.number(8)?),
            Kind::Text { unit_bytes } => {
                let bytes = (self.number(4)? as usize).checked_mul(unit_bytes)?;
                self.at = self.at.checked_add(bytes).filter(|end| *end <= self.body.len())?;
                0.0
            }
        })
    }
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
        let fields = ["header.stamp", "count", "positions[1]", "positions[2]", "ends[1].x", "ends[0].y", "ok"];
        let (values, told) = numbers(&bytes, "/arm", &fields).unwrap();
        let expected = [Some(5e9 + 7.0), Some(200.0), Some(-2.5), None, Some(0.5), Some(-3.0), Some(1.0)];
        assert_eq!(values, expected);
        // The second message is torn.
        assert_eq!(told, Told { messages: 1, undecodable: 1 });
    }

    #[test]
    fn json_is_read_too() {
        let text =
            br#"{"stamp":{"sec":2,"nanosec":5},"pose":{"x":1.25},"joints":[0.5,true]}                           "#;
        let (values, _) = numbers(&file("json", text), "/arm", &["stamp", "pose.x", "joints[1]", "pose.y"]).unwrap();
        assert_eq!(values, [Some(2e9 + 5.0), Some(1.25), Some(1.0), None]);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let bytes = file("cdr", &message());
        for (topic, field, words) in [
            ("/leg", "count", "no message of the channel \"/leg\"; it has /arm"),
            (
                "/arm",
                "colour",
                "my_msgs/msg/Arm has no number \"colour\"; it has header (std_msgs/Header), count (uint8)",
            ),
            ("/arm", "header.frame_id", "has no number \"header.frame_id\""),
            ("/arm", "ends[2].x", "has no number \"ends[2].x\""),
            ("/arm", "positions", "has no number \"positions\""),
            ("/arm", "a..b", "\"a..b\" is no field"),
        ] {
            let said = numbers(&bytes, topic, &[field]).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
        assert!(numbers(&file("protobuf", &[0; 8]), "/arm", &["count"]).unwrap_err().to_string().contains("only cdr"));
        assert!(channel_numbers(b"no file", "/arm", &[], &mut |_, _| {}).is_err());
    }

    #[test]
    fn a_schema_in_a_circle_ends() {
        let types = Types::parse("A a\n===\nMSG: x/A\nA again\n");
        assert!(matches!(types.compound("", &[], 0), Err(Refusal::Schema(_))));
    }
}
