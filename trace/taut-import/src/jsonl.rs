//! Stamps as JSON lines: one object a line, a stamp each or a message each. A common form of self-made traces.
//! `docs/reference/import.md` has the keys.

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    io::Read,
    path::Path,
};

use serde_json::{Map, Value};
use taut_recording::Kind;

use crate::{
    Error, Imported, Unit,
    error::Trouble,
    lines::{self, Filling, Format},
    writing::Row,
};

/// Keys that people use, the documented one first.
const IDS: [&str; 4] = ["id", "message_id", "trace_id", "seq"];
const POINTS: [&str; 4] = ["point", "hop", "name", "stage"];
const TIMES: [&str; 4] = ["t", "time", "ts", "timestamp"];
const MANY: [&str; 4] = ["stamps", "hops", "trace", "points"];
/// What may stand behind a time's key, and says its unit.
const UNITS: [(&str, Unit); 4] =
    [("_s", Unit::Seconds), ("_ms", Unit::Milliseconds), ("_us", Unit::Microseconds), ("_ns", Unit::Nanoseconds)];
/// Of threads that have no number, the first.
const FIRST_TID: i32 = 1;
const MOST_THREADS: usize = 10_000;
/// A float of seconds since 1970 steps by 0.24 µs, one of a year's uptime by 4 ns.
const COARSE_S: f64 = 1e9;

/// Imports the lines of `source` into a recording at `to`. Times without a unit in their key are in `unit`.
///
/// # Errors
/// It holds no stamps, or the recording cannot be written. Then there is no recording.
pub fn import(source: impl Read, unit: Unit, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<Imported, Error> {
    let filling = Filling::new(to, "jsonl");
    let mut trace = Trace { filling, unit, threads: HashMap::new(), coarse: false };
    lines::read(source, progress, &mut trace)?;
    trace.finish()
}

/// Names the kinds that are easily taken for this one.
fn refuse_others(first: &[u8]) -> Result<(), Error> {
    let has = |text: &[u8]| first.windows(text.len()).any(|window| window == text);
    if first.starts_with(b"[") || has(b"\"traceEvents\"") {
        return Err(Error::Instead("is a Chrome trace; import it with `taut import chrome`".to_owned()));
    }
    if first.starts_with(b"#[Histogram log") {
        return Err(Error::Instead("is an HdrHistogram log; import it with `taut import hlog`".to_owned()));
    }
    Ok(())
}

struct Trace {
    filling: Filling,
    unit: Unit,
    /// Threads by name, and those by number that were reported.
    threads: HashMap<(i32, String), i32>,
    coarse: bool,
}

impl Format for Trace {
    fn filling(&mut self) -> &mut Filling {
        &mut self.filling
    }

    fn line(&mut self, text: &[u8], number: u64) -> Result<(), Trouble> {
        if number == 1 {
            refuse_others(text)?;
        }
        let object: Map<String, Value> = serde_json::from_slice(text)
            .map_err(|error| Trouble::Damage(format!("is no JSON object ({})", reason(&error))))?;
        let many = MANY.iter().find_map(|key| object.get(*key).filter(|value| value.is_object() || value.is_array()));
        match many {
            Some(stamps) => self.message(&object, stamps, number),
            None => self.stamp(&object),
        }
    }
}

impl Trace {
    /// `{"id": 17, "point": "leader.read", "t": 12.345}`, or an outcome or a value in the point's place.
    fn stamp(&mut self, object: &Map<String, Value>) -> Result<(), Trouble> {
        let time_ns = self.time_in(object)?;
        let point = text_in(object, &POINTS);
        let outcome = object.get("outcome").and_then(Value::as_str);
        let value = object.get("value").and_then(Value::as_f64);
        if point.is_none() && outcome.is_none() {
            return Err(Trouble::Damage(format!("has neither {:?} nor \"outcome\"", POINTS[0])));
        }
        let id = IDS.iter().find_map(|key| object.get(*key)).map(id_of);
        let thread = self.thread(object, time_ns)?;
        let import = self.filling.at(time_ns)?;
        let point = point.map_or(Ok(0), |point| import.name(point))?;
        let row = Row { time_ns, id: id.unwrap_or(0), point, value: 0 };
        match (outcome, value, id) {
            (Some(reason), _, Some(_)) => {
                let value = u64::from(import.name(reason)?);
                import.stamp(thread, Kind::Outcome, Row { value, ..row })?;
            }
            (None, Some(value), _) => import.stamp(thread, Kind::Value, Row { value: value.to_bits(), ..row })?,
            (None, None, Some(_)) => import.stamp(thread, Kind::Stamp, row)?,
            (_, _, None) => return Err(Trouble::Damage(format!("has no {:?}", IDS[0]))),
        }
        Ok(())
    }

    /// `{"id": 17, "stamps": {"leader.read": 12.345, …}, "outcome": "applied"}`; the stamps may also be a list of pairs, or
    /// of objects with a point and a time. Without an id the line's number is one.
    fn message(&mut self, object: &Map<String, Value>, stamps: &Value, number: u64) -> Result<(), Trouble> {
        let id = IDS.iter().find_map(|key| object.get(*key)).map_or(number, id_of);
        let mut passes: Vec<(u64, &str)> = Vec::new();
        let odd = || Trouble::Damage("has a stamp that is no pair of a point and a time".to_owned());
        match stamps {
            Value::Object(stamps) => {
                // A point that was not passed may be there without a time.
                for (point, time) in stamps.iter().filter(|(_, time)| !time.is_null()) {
                    passes.push((self.time(time, self.unit)?, point));
                }
            }
            Value::Array(stamps) => {
                for stamp in stamps {
                    passes.push(match stamp {
                        Value::Array(pair) => match pair.as_slice() {
                            [Value::String(point), time] | [time, Value::String(point)] => {
                                (self.time(time, self.unit)?, point.as_str())
                            }
                            _ => return Err(odd()),
                        },
                        Value::Object(stamp) => (self.time_in(stamp)?, text_in(stamp, &POINTS).ok_or_else(odd)?),
                        _ => return Err(odd()),
                    });
                }
            }
            _ => return Err(odd()),
        }
        passes.sort_by_key(|(time_ns, _)| *time_ns);
        let Some((last_ns, last)) = passes.last().copied() else {
            return Err(Trouble::Damage("has no stamps".to_owned()));
        };
        let thread = self.thread(object, passes[0].0)?;
        let import = self.filling.at(passes[0].0)?;
        for (time_ns, point) in passes {
            let point = import.name(point)?;
            import.stamp(thread, Kind::Stamp, Row { time_ns, id, point, value: 0 })?;
        }
        if let Some(reason) = object.get("outcome").and_then(Value::as_str) {
            let (point, value) = (import.name(last)?, u64::from(import.name(reason)?));
            import.stamp(thread, Kind::Outcome, Row { time_ns: last_ns, id, point, value })?;
        }
        Ok(())
    }

    /// The first key of an object that is a time's.
    fn time_in(&mut self, object: &Map<String, Value>) -> Result<u64, Trouble> {
        for key in TIMES {
            if let Some(value) = object.get(key) {
                return self.time(value, self.unit);
            }
            for (suffix, unit) in UNITS {
                if let Some(value) = object.get(&format!("{key}{suffix}")) {
                    return self.time(value, unit);
                }
            }
        }
        Err(Trouble::Damage(format!("has no time {:?}", TIMES[0])))
    }

    fn time(&mut self, value: &Value, unit: Unit) -> Result<u64, Trouble> {
        let ns = match value.as_u64() {
            Some(whole) => unit.of_whole(whole),
            None => value.as_f64().and_then(|value| {
                self.coarse |= value * unit.ns() as f64 / 1e9 >= COARSE_S;
                unit.of(value)
            }),
        };
        ns.ok_or_else(|| Trouble::Damage(format!("has the time {value}, which is none")))
    }

    /// The thread of a line: "thread", a name or a number, or "tid"; of the process "pid".
    fn thread(&mut self, object: &Map<String, Value>, time_ns: u64) -> Result<(i32, i32), Trouble> {
        let number = |key: &str| object.get(key).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
        let pid = number("pid").unwrap_or(1);
        let tid = number("tid").or(number("thread"));
        let name = object.get("thread").and_then(Value::as_str).unwrap_or_default();
        let key = (pid, tid.map_or_else(|| name.to_owned(), |tid| format!("{tid}")));
        if let Some(tid) = self.threads.get(&key) {
            return Ok((pid, *tid));
        }
        if self.threads.len() >= MOST_THREADS {
            return Err(Error::TooMany { what: format!("more than {MOST_THREADS} threads") }.into());
        }
        let is_numbered = tid.is_some();
        let tid = tid.unwrap_or(FIRST_TID + self.threads.len() as i32);
        let name = name.to_owned();
        self.threads.insert(key, tid);
        // Without a name it is none of the source's, and not shown.
        let comm = if name.is_empty() && is_numbered { "thread" } else { &name };
        self.filling.at(time_ns)?.thread(pid, tid, comm, "")?;
        Ok((pid, tid))
    }

    fn finish(self) -> Result<Imported, Error> {
        let mut import = self.filling.end().map_err(|first| match first {
            Some(why) => Error::Instead(format!(
                "holds no stamps as JSON lines ({why}); a line is like {{\"id\": 17, \"point\": \"read\", \"t\": 12.5}}"
            )),
            None => Error::Empty("no lines".to_owned()),
        })?;
        if self.coarse {
            import.note(
                "times are floats of seconds since 1970, which step by 0.24 µs; write whole nanoseconds (\"t_ns\") to see finer"
                    .to_owned(),
            );
        }
        import.finish()
    }
}

/// A whole number as it is; any other id as the hash of its text, which two messages share no sooner than by accident.
fn id_of(id: &Value) -> u64 {
    if let Some(number) = id.as_u64() {
        return number;
    }
    if let Some(number) = id.as_str().and_then(|text| text.parse().ok()) {
        return number;
    }
    let mut hasher = DefaultHasher::new();
    id.to_string().hash(&mut hasher);
    hasher.finish()
}

fn text_in<'a>(object: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| object.get(*key)?.as_str())
}

/// What serde_json says, without a line that would count within the line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}
