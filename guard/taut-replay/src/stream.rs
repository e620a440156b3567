//! The frames of one stream, in the order of their arrival.
//!
//! In a taut recording a frame is a run of values of one thread: `NAME.fields` says how many follow, `NAME.arrival_ns` comes
//! last (`taut.guard.record_frame` writes them; docs/reference/guard.md lists the fields). A run that is not whole lost a stamp, is left
//! out and counted.

use std::collections::{BTreeMap, HashMap};

use taut_guard::Frame;
use taut_recording::{Kind, Number, Record, StampBatch};

use crate::error::Error;

const FIRST: &str = "fields";
const LAST: &str = "arrival_ns";
/// The tool's true speed, where a simulation knows it.
pub(crate) const TRUTH: &str = "truth_mm_s";

/// A frame as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Recorded {
    /// What the guard is given.
    pub frame: Frame,
    /// The tool's true speed when the frame was sampled.
    pub truth_mm_s: Option<f64>,
}

impl Recorded {
    /// Sets a field of docs/reference/guard.md; `false` if nothing is called so.
    pub fn set(&mut self, field: &str, value: f64) -> bool {
        if field == TRUTH {
            self.truth_mm_s = Some(value);
            return true;
        }
        self.frame.set(field, value)
    }

    /// The same of a number of a message: times that are whole stay so.
    pub fn set_number(&mut self, field: &str, value: Number) -> bool {
        match (field, value) {
            ("source_ns", Number::Integer(ns)) => self.frame.source_ns = Some(ns),
            ("arrival_ns", Number::Integer(ns)) => self.frame.arrival_ns = u64::try_from(ns).unwrap_or(0),
            _ => return self.set(field, value.as_f64()),
        }
        true
    }
}

/// All frames of one stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// As in the recording.
    pub name: String,
    /// By arrival.
    pub frames: Vec<Recorded>,
    /// Frames that are left out because a field is missing: stamps were lost there.
    pub incomplete: u64,
}

/// Collects the values of a recording.
#[derive(Debug, Default)]
pub struct StreamBuilder {
    names: HashMap<u32, String>,
    /// Thread, point, value, in the order of each thread.
    values: Vec<(i32, u32, f64)>,
}

impl StreamBuilder {
    /// Takes one record of the recording; most are of no concern here.
    pub fn record(&mut self, record: Record) {
        match record {
            Record::Name(name) => _ = self.names.insert(name.id, name.name),
            Record::Stamps(batch) => self.stamps(&batch),
            _ => {}
        }
    }

    fn stamps(&mut self, batch: &StampBatch) {
        let rows = batch.kind.iter().zip(&batch.point).zip(&batch.value);
        let values = rows.filter(|((kind, _), _)| **kind == Kind::Value as u8);
        self.values.extend(values.map(|((_, point), value)| (batch.tid, *point, f64::from_bits(*value))));
    }

    /// Every stream of the recording, by name.
    pub fn finish(self) -> BTreeMap<String, Stream> {
        let mut streams: BTreeMap<String, Stream> = BTreeMap::new();
        let mut partial: HashMap<(i32, &str), Partial> = HashMap::new();
        for (thread, point, value) in self.values {
            let Some((name, field)) = self.names.get(&point).and_then(|name| name.rsplit_once('.')) else { continue };
            let run = partial.entry((thread, name)).or_default();
            if field == FIRST {
                if run.is_open {
                    streams.entry(name.to_owned()).or_default().incomplete += 1;
                }
                *run = Partial { is_open: true, wanted: value as usize, ..Partial::default() };
                continue;
            }
            run.got += usize::from(run.recorded.set(field, value));
            if field == LAST {
                let stream = streams.entry(name.to_owned()).or_default();
                if run.is_open && run.got == run.wanted {
                    stream.frames.push(run.recorded);
                } else {
                    stream.incomplete += 1;
                }
                *run = Partial::default();
            }
        }
        // Values of somebody else's that happen to have such a name.
        streams.retain(|_, stream| !stream.frames.is_empty());
        for (name, stream) in &mut streams {
            stream.name.clone_from(name);
            stream.frames.sort_by_key(|recorded| recorded.frame.arrival_ns);
        }
        streams
    }
}

/// A frame whose values are coming.
#[derive(Debug, Default)]
struct Partial {
    recorded: Recorded,
    is_open: bool,
    wanted: usize,
    got: usize,
}

/// The stream of this name, or the only one if no name is given.
///
/// # Errors
/// There is none, or several to choose from.
pub fn choose(mut streams: BTreeMap<String, Stream>, wanted: Option<&str>) -> Result<Stream, Error> {
    let names = streams.keys().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let instead = match streams.len() {
        0 => "it has none at all: record them with taut.guard.record_frame, or map a channel of an MCAP file in \
              [stream] of guard.toml"
            .to_owned(),
        _ => format!("it has {names}; name one with stream.name in guard.toml or --stream"),
    };
    let name = match (wanted, streams.len()) {
        (Some(name), _) => name.to_owned(),
        (None, 1) => streams.keys().next().cloned().unwrap_or_default(),
        (None, _) => String::new(),
    };
    streams.remove(&name).ok_or(Error::NoStream { wanted: name, instead })
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut_recording::Name;

    /// Values of one thread, as a recording has them.
    fn recording(values: &[(&str, f64)]) -> StreamBuilder {
        let mut builder = StreamBuilder::default();
        let mut batch = StampBatch { tid: 7, ..StampBatch::default() };
        for (name, value) in values {
            let known = builder.names.iter().find(|(_, known)| known == name).map(|(id, _)| *id);
            let id = known.unwrap_or(builder.names.len() as u32 + 1);
            builder.record(Record::Name(Name { id, name: (*name).to_owned() }));
            batch.point.push(id);
            batch.kind.push(Kind::Value as u8);
            batch.value.push(value.to_bits());
        }
        builder.record(Record::Stamps(batch));
        builder
    }

    fn frame(n: u64) -> Vec<(&'static str, f64)> {
        let at = n as f64 * 1e7;
        vec![
            ("arm.fields", 5.0),
            ("arm.truth_mm_s", 300.0),
            ("arm.sequence", n as f64),
            ("arm.source_ns", at),
            ("arm.x_mm", 3.0 * n as f64),
            ("arm.arrival_ns", at + 1e6),
        ]
    }

    #[test]
    fn a_frame_is_a_whole_run_of_values() {
        let mut values = vec![("temperature", 20.0), ("other.colour", 1.0)];
        (0..4).for_each(|n| values.extend(frame(n)));
        // The fourth frame loses a value, the fifth its end, the sixth its start.
        values.remove(2 + 3 * 6 + 4);
        values.extend(&frame(4)[..5]);
        values.extend(&frame(5)[1..]);
        values.extend(frame(6));
        let stream = choose(recording(&values).finish(), None).unwrap();
        assert_eq!((stream.name.as_str(), stream.frames.len(), stream.incomplete), ("arm", 4, 2));
        let last = stream.frames[3];
        assert_eq!((last.frame.sequence, last.frame.source_ns, last.frame.tcp_mm[0]), (6, Some(60_000_000), 18.0));
        assert_eq!((last.frame.arrival_ns, last.truth_mm_s), (61_000_000, Some(300.0)));
    }

    #[test]
    fn stamps_of_a_calendar_clock_are_read_as_they_were_written() {
        let frame = |n: i64| Frame {
            sequence: n as u32,
            source_ns: Some(1_700_000_000_000_000_123 + n * 10_000_000),
            arrival_ns: 1_000_000_000 + n as u64 * 10_000_000,
            ..Frame::default()
        };
        let frames: Vec<Frame> = (0..5).map(frame).collect();
        let values: Vec<(String, f64)> = frames
            .iter()
            .flat_map(|frame| [("fields", frame.fields().count() as f64)].into_iter().chain(frame.fields()))
            .map(|(field, value)| (format!("arm.{field}"), value))
            .collect();
        let values: Vec<(&str, f64)> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let stream = choose(recording(&values).finish(), None).unwrap();
        assert_eq!((stream.frames.iter().map(|of| of.frame).collect::<Vec<_>>(), stream.incomplete), (frames, 0));
    }

    #[test]
    fn a_stream_that_is_not_there_is_told_with_what_there_is() {
        let say = |values: &[(&str, f64)], wanted| choose(recording(values).finish(), wanted).unwrap_err().to_string();
        assert!(say(&[], None).contains("taut.guard.record_frame"));
        let other = |name: &'static str| [(name, 1.0), ("b.arrival_ns", 1.0)];
        let both = [("a.fields", 1.0), ("a.arrival_ns", 1.0), ("b.fields", 1.0), ("b.arrival_ns", 1.0)];
        assert!(say(&both, None).contains("it has \"a\", \"b\""));
        assert!(say(&both, Some("c")).starts_with("has no frames of the stream \"c\""));
        assert!(say(&other("b.x_mm"), None).contains("none at all"));
    }
}
