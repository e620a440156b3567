//! One event of a trace, and the reading of all, one at a time. Fields may be of any type: what is no number counts as
//! absent, and a malformed event affects no other.

use std::{
    fmt,
    hash::{Hash, Hasher},
    io::Read,
};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::{Error, Unit};

/// Numbers among a counter's arguments that are kept.
const MOST_NUMBERS: usize = 32;

/// What is wanted of an event.
#[derive(Clone, Debug, Default)]
pub struct Event {
    phase: Option<char>,
    name: Scalar,
    category: Scalar,
    time: Scalar,
    duration: Scalar,
    pub pid: Scalar,
    pub tid: Scalar,
    id: Scalar,
    bound: Scalar,
    is_flow_slice: bool,
    /// `"bp": "e"`.
    pub binds_to_enclosing: bool,
    pub args: Args,
}

/// What metadata and counters have besides.
#[derive(Clone, Debug, Default)]
pub struct Args {
    pub name: Option<String>,
    pub numbers: Vec<(String, f64)>,
}

/// A value that may be anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scalar {
    #[default]
    None,
    Whole(i64),
    Number(f64),
    Text(String),
    True,
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self {
            Scalar::None | Scalar::True => {}
            Scalar::Whole(n) => n.hash(hasher),
            Scalar::Number(n) => n.to_bits().hash(hasher),
            Scalar::Text(text) => text.hash(hasher),
        }
    }
}

impl Scalar {
    pub fn whole(&self) -> Option<i64> {
        match self {
            Scalar::Whole(n) => Some(*n),
            Scalar::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            Scalar::Whole(n) => Some(*n as f64),
            Scalar::Number(n) => Some(*n),
            Scalar::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn text(&self) -> &str {
        if let Scalar::Text(text) = self { text } else { "" }
    }

    /// An id as a number: written as one, in decimal or hexadecimal digits, or else its hash. 48 bits.
    pub fn number(&self) -> u64 {
        let written = match self {
            Scalar::Whole(n) => u64::try_from(*n).ok(),
            Scalar::Text(text) => match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            },
            _ => None,
        };
        const BITS: u64 = (1 << 48) - 1;
        written.filter(|id| *id <= BITS).unwrap_or_else(|| {
            let mut hasher = std::collections::hash_map::DefaultHasher::new();
            self.hash(&mut hasher);
            hasher.finish() & BITS
        })
    }
}

impl Event {
    /// The letter that says what kind of event it is; a space for none.
    pub fn phase(&self) -> char {
        self.phase.unwrap_or(' ')
    }

    pub fn name(&self) -> &str {
        match self.name.text() {
            "" => "(no name)",
            name => name,
        }
    }

    pub fn category(&self) -> &str {
        self.category.text()
    }

    /// Of `ts`, which is in microseconds.
    pub fn time_ns(&self) -> Option<u64> {
        micros(&self.time)
    }

    pub fn duration_ns(&self) -> u64 {
        micros(&self.duration).unwrap_or(0)
    }

    pub fn id(&self) -> Option<&Scalar> {
        Some(&self.id).filter(|id| **id != Scalar::None)
    }

    /// `bind_id` of a slice that a flow goes through.
    pub fn bound_id(&self) -> Option<&Scalar> {
        Some(&self.bound).filter(|bound| **bound != Scalar::None && self.is_flow_slice)
    }
}

fn micros(of: &Scalar) -> Option<u64> {
    match of {
        Scalar::Whole(whole) => Unit::Microseconds.of_whole(u64::try_from(*whole).ok()?),
        other => Unit::Microseconds.of(other.float()?),
    }
}

/// How a trace ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Whole,
    /// Without the bracket that ends the list, which the format does not ask for.
    Cut,
    /// With something that is no JSON.
    Broken(String),
}

/// Hands every event to `take`: those of an array, or of `traceEvents` of an object.
///
/// # Errors
/// Those of `take`, and of reading.
pub fn read(source: impl Read, take: &mut dyn FnMut(Event) -> Result<(), Error>) -> Result<End, Error> {
    let mut refused = None;
    let mut json = serde_json::Deserializer::from_reader(source);
    let events = Events { take, refused: &mut refused };
    let result = events.deserialize(&mut json).and_then(|()| json.end());
    if let Some(error) = refused {
        return Err(error);
    }
    match result {
        Ok(()) => Ok(End::Whole),
        Err(error) if error.io_error_kind() == Some(std::io::ErrorKind::UnexpectedEof) => {
            Ok(End::Broken("the compressed file was cut".to_owned()))
        }
        Err(error) if error.is_io() => Err(Error::Read(error.into())),
        Err(error) if error.is_eof() => Ok(End::Cut),
        // What is written event by event often ends so.
        Err(error) if error.to_string().starts_with("trailing comma") => Ok(End::Cut),
        Err(error) => Ok(End::Broken(error.to_string())),
    }
}

/// All events of a file, or of its list.
struct Events<'a> {
    take: &'a mut dyn FnMut(Event) -> Result<(), Error>,
    refused: &'a mut Option<Error>,
}

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events, or an object with one in \"traceEvents\"")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Events { take, refused } = self;
        while let Some(event) = list.next_element::<Lenient<Event>>()? {
            let Some(event) = event.0 else { continue };
            if let Err(error) = take(event) {
                *refused = Some(error);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Events { take, refused } = self;
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(Events { take: &mut *take, refused: &mut *refused })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// A value of its type, or of any other, which is passed over.
struct Lenient<T>(Option<T>);

/// What can be made of an object's members.
trait OfMembers: Default {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error>;
}

impl OfMembers for Event {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "ph" => self.phase = map.next_value::<Scalar>()?.text().chars().next(),
            "name" => self.name = map.next_value()?,
            "cat" => self.category = map.next_value()?,
            "ts" => self.time = map.next_value()?,
            "dur" => self.duration = map.next_value()?,
            "pid" => self.pid = map.next_value()?,
            "tid" => self.tid = map.next_value()?,
            "id" => self.id = map.next_value()?,
            // {"local": …} or {"global": …}
            "id2" => self.id = map.next_value::<Lenient<Inner>>()?.0.unwrap_or_default().0,
            "bind_id" => self.bound = map.next_value()?,
            "flow_in" | "flow_out" => self.is_flow_slice |= map.next_value::<Scalar>()? == Scalar::True,
            "bp" => self.binds_to_enclosing = map.next_value::<Scalar>()?.text() == "e",
            "args" => self.args = map.next_value::<Lenient<Args>>()?.0.unwrap_or_default(),
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

impl OfMembers for Args {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match map.next_value::<Scalar>()? {
            Scalar::Text(text) if key == "name" => self.name = Some(text),
            value => {
                if let (Some(number), true) = (value.float(), self.numbers.len() < MOST_NUMBERS) {
                    self.numbers.push((key.to_owned(), number));
                }
            }
        }
        Ok(())
    }
}

/// The first scalar of an object.
#[derive(Default)]
struct Inner(Scalar);

impl OfMembers for Inner {
    fn member<'de, A: MapAccess<'de>>(&mut self, _: &str, map: &mut A) -> Result<(), A::Error> {
        let value = map.next_value()?;
        if self.0 == Scalar::None {
            self.0 = value;
        }
        Ok(())
    }
}

impl<'de, T: OfMembers> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Lenient<T>, D::Error> {
        struct Any<T>(std::marker::PhantomData<T>);
        impl<'de, T: OfMembers> Visitor<'de> for Any<T> {
            type Value = Lenient<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Lenient<T>, A::Error> {
                let mut value = T::default();
                while let Some(key) = map.next_key::<String>()? {
                    value.member(&key, &mut map)?;
                }
                Ok(Lenient(Some(value)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Lenient<T>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Lenient(None))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Lenient<T>, E> {
                Ok(Lenient(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Lenient<T>, E> {
                Ok(Lenient(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Lenient<T>, E> {
                Ok(Lenient(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Lenient<T>, E> {
                Ok(Lenient(None))
            }

            fn visit_str<E>(self, _: &str) -> Result<Lenient<T>, E> {
                Ok(Lenient(None))
            }

            fn visit_unit<E>(self) -> Result<Lenient<T>, E> {
                Ok(Lenient(None))
            }
        }
        from.deserialize_any(Any(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Scalar, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
                Ok(if value { Scalar::True } else { Scalar::None })
            }

            fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Whole(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
                Ok(i64::try_from(value).map_or(Scalar::Number(value as f64), Scalar::Whole))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar::Number(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(value.to_owned()))
            }

            fn visit_string<E>(self, value: String) -> Result<Scalar, E> {
                Ok(Scalar::Text(value))
            }

            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar::None)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::None)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::None)
            }
        }
        from.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> (Vec<Event>, End) {
        let mut events = Vec::new();
        let end = read(text.as_bytes(), &mut |event| {
            events.push(event);
            Ok(())
        });
        (events, end.unwrap())
    }

    #[test]
    fn a_list_and_an_object_hold_the_same_events() {
        let list = r#"[{"ph": "X", "name": "a", "ts": 1.5, "dur": 2, "pid": 7, "tid": "main"}]"#;
        for text in [list.to_owned(), format!(r#"{{"displayTimeUnit": "ns", "traceEvents": {list}, "x": [1]}}"#)] {
            let (events, end) = all(&text);
            assert_eq!((events.len(), end), (1, End::Whole));
            assert_eq!((events[0].phase(), events[0].name()), ('X', "a"));
            assert_eq!((events[0].time_ns(), events[0].duration_ns()), (Some(1500), 2000));
            assert_eq!((&events[0].pid, &events[0].tid), (&Scalar::Whole(7), &Scalar::Text("main".into())));
        }
    }

    #[test]
    fn a_list_may_end_anywhere_and_odd_elements_cost_only_themselves() {
        let text =
            r#"[{"ph": "B", "ts": "3"}, 7, null, [{"ph": "B"}], {"ph": ["B"], "args": "x"}, {"ph": "E"}, {"ph": "#;
        let (events, end) = all(text);
        assert_eq!(events.iter().map(Event::phase).collect::<String>(), "B E");
        assert_eq!((events[0].time_ns(), end), (Some(3000), End::Cut));
        assert!(matches!(all("[{\"ph\": \"B\"} oops").1, End::Broken(_)));
    }

    #[test]
    fn arguments_are_names_and_numbers() {
        let (events, _) = all(r#"[{"args": {"name": "python", "a": 1, "b": {"c": 2}, "d": 2.5}}]"#);
        assert_eq!(events[0].args.name.as_deref(), Some("python"));
        assert_eq!(events[0].args.numbers, [("a".to_owned(), 1.0), ("d".to_owned(), 2.5)]);
    }

    #[test]
    fn ids_are_numbers_however_they_are_written() {
        let (events, _) = all(r#"[{"id": 17}, {"id": "0x11"}, {"id": "17"}, {"id2": {"local": "0x11"}}, {"id": "a"}]"#);
        let ids: Vec<u64> = events.iter().map(|event| event.id().unwrap().number()).collect();
        assert_eq!(ids[..4], [17; 4]);
        assert!(ids[4] < 1 << 48);
    }
}
