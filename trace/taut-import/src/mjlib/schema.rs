//! A record's type: read from its binary schema, shown as `ros2msg`, and its values taken over as CDR.

use std::fmt::Write;

use taut_recording::{
    cdr::Encoder,
    telemetry::{Unused, camel, shout, snake},
};

use super::bytes::Bytes;

const DEEPEST: usize = 32;
const PACKAGE: &str = "mjlib";
/// Fixed arrays longer than this are shown as ones of any length, which tools then cut.
const MOST_FIXED: u64 = 1 << 16;

/// A type of the format. What ROS has not: a map is a list of keys and values, a union an index and a list of at most
/// one value for each of its types, an array of arrays a list of structs with `items`.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Null,
    Bool,
    /// Bytes of a signed integer.
    Int(u8),
    Uint(u8),
    /// Zig-zag, of any length.
    Varint,
    Varuint,
    Float32,
    Float64,
    Bytes,
    String,
    Object(Vec<Field>),
    /// Its number's type, and what the numbers mean.
    Enum(Box<Type>, Vec<(i64, String)>),
    Array(Box<Type>),
    FixedArray(u64, Box<Type>),
    Map(Box<Type>),
    Union(Vec<Type>),
    /// µs since 1970.
    Timestamp,
    /// µs.
    Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub of: Type,
}

/// Why a schema cannot be read.
pub enum Why {
    /// It is of a newer format.
    Unknown(String),
    Damaged(String),
}

impl Type {
    pub fn read(from: &mut Bytes<'_>) -> Result<Type, Why> {
        let of = some(Type::one(from, 0)?)?;
        if from.left() > 0 {
            return Err(damaged("there is more behind it"));
        }
        Ok(of)
    }

    /// `None` for the word that ends a list of types.
    fn one(from: &mut Bytes<'_>, depth: usize) -> Result<Option<Type>, Why> {
        if depth > DEEPEST {
            return Err(damaged("types more than 32 deep"));
        }
        let inner = |from: &mut Bytes<'_>| some(Type::one(from, depth + 1)?).map(Box::new);
        Ok(Some(match number(from)? {
            0 => return Ok(None),
            1 => Type::Null,
            2 => Type::Bool,
            3 => Type::Int(integer_bytes(from)?),
            4 => Type::Uint(integer_bytes(from)?),
            5 => Type::Varint,
            6 => Type::Varuint,
            7 => Type::Float32,
            8 => Type::Float64,
            9 => Type::Bytes,
            10 => Type::String,
            16 => Type::Object(object(from, depth)?),
            17 => enumeration(from, depth)?,
            18 => Type::Array(inner(from)?).checked()?,
            19 => Type::FixedArray(number(from)?, inner(from)?).checked()?,
            20 => Type::Map(inner(from)?),
            21 => {
                let mut types = Vec::new();
                while let Some(of) = Type::one(from, depth + 1)? {
                    types.push(of);
                }
                Type::Union(types)
            }
            22 => Type::Timestamp,
            23 => Type::Duration,
            other => return Err(Why::Unknown(format!("the type {other}"))),
        }))
    }

    /// An array of what takes no bytes could state any length.
    fn checked(self) -> Result<Type, Why> {
        match &self {
            Type::Array(of) | Type::FixedArray(_, of) if of.least() == 0 => Err(damaged("an array of nothing")),
            _ => Ok(self),
        }
    }

    /// Bytes that a value takes at least.
    fn least(&self) -> u64 {
        match self {
            Type::Null => 0,
            Type::Int(bytes) | Type::Uint(bytes) => u64::from(*bytes),
            Type::Float32 => 4,
            Type::Float64 | Type::Timestamp | Type::Duration => 8,
            Type::Object(fields) => fields.iter().map(|field| field.of.least()).fold(0, u64::saturating_add),
            Type::FixedArray(count, of) => count.saturating_mul(of.least()),
            Type::Enum(of, _) => of.least(),
            _ => 1,
        }
    }

    /// Name and text of the schema for a record of this name.
    pub fn ros2msg(&self, record: &str) -> (String, String) {
        let mut texts = Texts::default();
        let name = texts.name(record);
        let mut text = String::new();
        match self {
            Type::Object(fields) => texts.fields(&name, fields, &mut text),
            // A record that is no object is one with a single value.
            other => texts.field(&name, "value", other, &mut text, &mut Unused::default()),
        }
        for (inner, said) in &texts.done {
            // Writing to a String does not fail.
            let _ = write!(text, "{}\nMSG: {PACKAGE}/{inner}\n{said}", "=".repeat(80));
        }
        (format!("{PACKAGE}/msg/{name}"), text)
    }

    /// The CDR message of a value.
    pub fn transcode(&self, value: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let mut from = Bytes::new(value);
        let out = self.copy(&mut from, Encoder::new(), most)?;
        if from.left() > 0 {
            return Err(format!("{} bytes are left over", from.left()));
        }
        Ok(out.finish())
    }

    fn copy(&self, from: &mut Bytes<'_>, out: Encoder, most: usize) -> Result<Encoder, String> {
        const SHORT: &str = "it ends too early";
        if out.length() > most {
            return Err(format!("more than {most} bytes"));
        }
        macro_rules! number {
            ($type:ty) => {{
                let bytes = from.take(size_of::<$type>()).and_then(|bytes| bytes.try_into().ok()).ok_or(SHORT)?;
                out.number(<$type>::from_le_bytes(bytes))
            }};
        }
        Ok(match self {
            Type::Null => out,
            Type::Bool => match from.byte().ok_or(SHORT)? {
                truth @ (0 | 1) => out.number(truth),
                other => return Err(format!("a boolean of {other}")),
            },
            Type::Int(1) | Type::Uint(1) => out.number(from.byte().ok_or(SHORT)?),
            Type::Int(2) | Type::Uint(2) => number!(u16),
            Type::Int(4) | Type::Uint(4) | Type::Float32 => number!(u32),
            Type::Int(_) | Type::Uint(_) | Type::Float64 | Type::Timestamp | Type::Duration => number!(u64),
            Type::Varint => out.number(from.varint().ok_or(SHORT)?),
            Type::Varuint => out.number(from.varuint().ok_or(SHORT)?),
            Type::Bytes => out.sequence(from.counted().ok_or(SHORT)?.iter().copied()),
            Type::String => out.string(&from.string().ok_or(SHORT)?.replace('\0', " ")),
            Type::Object(fields) if is_empty(fields) => out.number(0_u8),
            Type::Object(fields) => fields.iter().try_fold(out, |out, field| field.of.copy(from, out, most))?,
            Type::Enum(of, _) => of.copy(from, out, most)?,
            Type::Array(of) => {
                let count = length(from, of.least()).ok_or(SHORT)?;
                (0..count).try_fold(out.number(count), |out, _| of.copy(from, out, most))?
            }
            Type::FixedArray(count, of) => {
                let listed = u32::try_from(*count).map_err(|_| SHORT)?;
                let out = if is_fixed(*count) { out } else { out.number(listed) };
                (0..*count).try_fold(out, |out, _| of.copy(from, out, most))?
            }
            Type::Map(of) => {
                let count = length(from, 1 + of.least()).ok_or(SHORT)?;
                (0..count).try_fold(out.number(count), |out, _| {
                    let key = from.string().ok_or(SHORT)?.replace('\0', " ");
                    of.copy(from, out.string(&key), most)
                })?
            }
            Type::Union(types) => {
                let index = from.varuint().ok_or(SHORT)?;
                if index >= types.len() as u64 {
                    return Err(format!("type {index} of a union of {}", types.len()));
                }
                let each = types.iter().enumerate().filter(|(_, of)| **of != Type::Null);
                each.into_iter().try_fold(out.number(index as u32), |out, (at, of)| {
                    let is_it = at as u64 == index;
                    let out = out.number(u32::from(is_it));
                    if is_it { of.copy(from, out, most) } else { Ok(out) }
                })?
            }
        })
    }
}

/// The types that a record's text needs, being gathered.
#[derive(Default)]
struct Texts {
    names: Unused,
    done: Vec<(String, String)>,
}

impl Texts {
    fn name(&mut self, wanted: &str) -> String {
        self.names.of(camel(wanted), "")
    }

    fn fields(&mut self, of: &str, fields: &[Field], text: &mut String) {
        if is_empty(fields) {
            text.push_str("uint8 structure_needs_at_least_one_member\n");
        }
        let mut taken = Unused::default();
        for field in fields {
            let name = taken.of(snake(&field.name), "_");
            self.field(of, &name, &field.of, text, &mut taken);
        }
    }

    /// Adds the line of a field, after the constants that its numbers have.
    fn field(&mut self, of: &str, name: &str, kind: &Type, text: &mut String, taken: &mut Unused) {
        if *kind == Type::Null {
            return;
        }
        let mut inner = kind;
        while let Type::Array(of) | Type::FixedArray(_, of) = inner {
            inner = of;
        }
        if let Type::Enum(number, values) = inner {
            for (value, said) in values {
                let constant = taken.of(shout(&format!("{name}_{said}")), "_");
                let _ = writeln!(text, "{} {constant}={value}", self.kind(of, name, number));
            }
        }
        let comment = match kind {
            Type::Timestamp => " # µs since 1970",
            Type::Duration => " # µs",
            _ => "",
        };
        let said = self.kind(of, name, kind);
        let _ = writeln!(text, "{said} {name}{comment}");
    }

    /// The word for a type; what needs a type of its own is added.
    fn kind(&mut self, of: &str, name: &str, kind: &Type) -> String {
        match kind {
            Type::Null => "uint8".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Int(bytes) => format!("int{}", u32::from(*bytes) * 8),
            Type::Uint(bytes) => format!("uint{}", u32::from(*bytes) * 8),
            Type::Varint | Type::Timestamp | Type::Duration => "int64".to_owned(),
            Type::Varuint => "uint64".to_owned(),
            Type::Float32 => "float32".to_owned(),
            Type::Float64 => "float64".to_owned(),
            Type::Bytes => "uint8[]".to_owned(),
            Type::String => "string".to_owned(),
            Type::Enum(number, _) => self.kind(of, name, number),
            Type::Array(items) => format!("{}[]", self.item(of, name, items)),
            Type::FixedArray(count, items) if is_fixed(*count) => format!("{}[{count}]", self.item(of, name, items)),
            Type::FixedArray(_, items) => format!("{}[]", self.item(of, name, items)),
            Type::Object(fields) => self.inner(of, name, |texts, inner, text| texts.fields(inner, fields, text)),
            Type::Map(values) => {
                let list = self.inner(of, name, |texts, inner, text| {
                    text.push_str("string key\n");
                    texts.field(inner, "value", values, text, &mut Unused::default());
                });
                format!("{list}[]")
            }
            Type::Union(types) => self.inner(of, name, |texts, inner, text| {
                text.push_str("uint32 which\n");
                for (at, of) in types.iter().enumerate().filter(|(_, of)| **of != Type::Null) {
                    let item = texts.item(inner, &format!("value{at}"), of);
                    let _ = writeln!(text, "{item}[] value{at}");
                }
            }),
        }
    }

    /// The word for an array's element: ROS has no arrays of arrays.
    fn item(&mut self, of: &str, name: &str, kind: &Type) -> String {
        match kind {
            Type::Array(_) | Type::FixedArray(..) | Type::Map(_) | Type::Bytes => {
                self.inner(of, name, |texts, inner, text| {
                    texts.field(inner, "items", kind, text, &mut Unused::default())
                })
            }
            other => self.kind(of, name, other),
        }
    }

    fn inner(&mut self, of: &str, name: &str, fill: impl FnOnce(&mut Texts, &str, &mut String)) -> String {
        let inner = self.name(&format!("{of} {}", camel(name)));
        let mut text = String::new();
        fill(self, &inner, &mut text);
        self.done.push((inner.clone(), text));
        format!("{PACKAGE}/{inner}")
    }
}

fn object(from: &mut Bytes<'_>, depth: usize) -> Result<Vec<Field>, Why> {
    const VERSION: u64 = 1;
    let flags = number(from)?;
    if flags & !VERSION != 0 {
        return Err(Why::Unknown(format!("the object flags {flags:#x}")));
    }
    if flags & VERSION != 0 {
        number(from)?;
    }
    let mut fields = Vec::new();
    loop {
        let flags = number(from)?;
        if flags != 0 {
            return Err(Why::Unknown(format!("the field flags {flags:#x}")));
        }
        let name = text(from)?;
        for _ in 0..number(from)? {
            // Other names that it had.
            text(from)?;
        }
        let of = Type::one(from, depth + 1)?;
        match (number(from)?, &of) {
            (0, _) => {}
            // A default, for readers that know a newer schema.
            (1, Some(of)) => {
                of.copy(from, Encoder::new(), usize::MAX)
                    .map_err(|why| damaged(&format!("the default of {name:?}: {why}")))?;
            }
            _ => return Err(damaged(&format!("the default of {name:?}"))),
        }
        match of {
            Some(of) => fields.push(Field { name, of }),
            None => return Ok(fields),
        }
    }
}

fn enumeration(from: &mut Bytes<'_>, depth: usize) -> Result<Type, Why> {
    let of = some(Type::one(from, depth + 1)?)?;
    let mut values = Vec::new();
    for _ in 0..number(from)? {
        let value = match of {
            Type::Int(bytes) | Type::Uint(bytes) => {
                let raw = from.take(bytes.into()).ok_or_else(|| damaged("it ends too early"))?;
                let mut wide =
                    if matches!(of, Type::Int(_)) && raw.last().is_some_and(|b| *b > 127) { [255; 8] } else { [0; 8] };
                wide[..raw.len()].copy_from_slice(raw);
                i64::from_le_bytes(wide)
            }
            Type::Varint => from.varint().ok_or_else(|| damaged("it ends too early"))?,
            Type::Varuint => number(from)? as i64,
            _ => return Err(damaged("an enum of no integers")),
        };
        values.push((value, text(from)?));
    }
    Ok(Type::Enum(Box::new(of), values))
}

/// Whether ROS shows an array of this length as one of fixed length.
fn is_fixed(count: u64) -> bool {
    (1..=MOST_FIXED).contains(&count)
}

/// ROS 2 puts a byte into a message without fields, and so must everybody.
fn is_empty(fields: &[Field]) -> bool {
    fields.iter().all(|field| field.of == Type::Null)
}

/// Elements that an array states, if there can be as many.
fn length(from: &mut Bytes<'_>, least: u64) -> Option<u32> {
    let count = from.varuint()?;
    let fits = count.checked_mul(least.max(1)).is_some_and(|bytes| bytes <= from.left() as u64);
    u32::try_from(count).ok().filter(|_| fits)
}

fn integer_bytes(from: &mut Bytes<'_>) -> Result<u8, Why> {
    match from.byte() {
        Some(bytes @ (1 | 2 | 4 | 8)) => Ok(bytes),
        other => Err(damaged(&format!("an integer of {} bytes", other.unwrap_or(0)))),
    }
}

fn number(from: &mut Bytes<'_>) -> Result<u64, Why> {
    from.varuint().ok_or_else(|| damaged("it ends too early"))
}

fn text(from: &mut Bytes<'_>) -> Result<String, Why> {
    from.string().ok_or_else(|| damaged("it ends too early"))
}

fn some(of: Option<Type>) -> Result<Type, Why> {
    of.ok_or_else(|| damaged("a type is missing"))
}

fn damaged(why: &str) -> Why {
    Why::Damaged(why.to_owned())
}
