//! Reads messages by the `ros2msg` schema that the file carries: what the fields are, and their values as JSON.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use crate::cdr::Decoder;

const DEEPEST: usize = 64;

/// A parsed schema.
#[derive(Clone, Debug)]
pub struct Schema {
    types: HashMap<String, Vec<Field>>,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    kind: String,
    many: Many,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Many {
    One,
    Fixed(usize),
    /// As many as the message says.
    Any,
}

/// The outer type has no name of its own in the text.
const OUTER: &str = "";

impl Schema {
    /// Reads the text: fields, constants (passed over), inner types behind separators.
    ///
    /// # Errors
    /// A sentence about the first line that is none of these, or a type that is not defined.
    pub fn parse(text: &str) -> Result<Schema, String> {
        let mut types: HashMap<String, Vec<Field>> = HashMap::from([(OUTER.to_owned(), Vec::new())]);
        let mut current = OUTER.to_owned();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with("===") {
                continue;
            }
            if let Some(name) = line.strip_prefix("MSG:") {
                current = base(name.trim()).to_owned();
                types.insert(current.clone(), Vec::new());
                continue;
            }
            if let Some(field) = field(line)? {
                types.entry(current.clone()).or_default().push(field);
            }
        }
        let schema = Schema { types };
        schema.check(OUTER, 0)?;
        Ok(schema)
    }

    fn check(&self, of: &str, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("types more than {DEEPEST} deep"));
        }
        for field in &self.types[of] {
            if !is_primitive(&field.kind) {
                if !self.types.contains_key(&field.kind) {
                    return Err(format!("the type {:?} of {:?} is not defined", field.kind, field.name));
                }
                self.check(&field.kind, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Paths of the numbers and bools of a message, as plotting tools write them: `joint[2].position`; at most `most`. Of
    /// arrays without a fixed length only the first element counts.
    pub fn numbers(&self, most: usize) -> Vec<String> {
        let mut paths = Vec::new();
        self.add_numbers(OUTER, "", most, &mut paths);
        paths
    }

    fn add_numbers(&self, of: &str, before: &str, most: usize, paths: &mut Vec<String>) {
        for field in &self.types[of] {
            let count = match field.many {
                Many::Fixed(count) => count,
                Many::One | Many::Any => 1,
            };
            for at in 0..count {
                if paths.len() >= most {
                    return;
                }
                let index = if field.many == Many::One { String::new() } else { format!("[{at}]") };
                let path = format!("{before}{}{index}", field.name);
                if !is_primitive(&field.kind) {
                    self.add_numbers(&field.kind, &format!("{path}."), most, paths);
                } else if field.kind != "string" {
                    paths.push(path);
                }
            }
        }
    }

    /// The message's fields; `None` when these bytes are not of this schema.
    pub fn decode(&self, message: &[u8]) -> Option<Value> {
        self.value(OUTER, &mut Decoder::new(message)?)
    }

    fn value(&self, of: &str, from: &mut Decoder<'_>) -> Option<Value> {
        let mut object = Map::new();
        for field in &self.types[of] {
            let value = match field.many {
                Many::One => self.one(&field.kind, from)?,
                Many::Fixed(count) => self.many(&field.kind, count, from)?,
                Many::Any => {
                    let count = from.number::<u32>()? as usize;
                    self.many(&field.kind, count, from)?
                }
            };
            object.insert(field.name.clone(), value);
        }
        Some(Value::Object(object))
    }

    fn many(&self, kind: &str, count: usize, from: &mut Decoder<'_>) -> Option<Value> {
        // An element takes at least a byte, unless its type has no fields; nobody needs many of those.
        if count > from.left() {
            return None;
        }
        (0..count).map(|_| self.one(kind, from)).collect::<Option<Vec<_>>>().map(Value::Array)
    }

    fn one(&self, kind: &str, from: &mut Decoder<'_>) -> Option<Value> {
        let float = |value: f64| Number::from_f64(value).map_or(Value::Null, Value::Number);
        Some(match kind {
            "bool" => Value::Bool(from.number::<u8>()? != 0),
            "int8" => from.number::<i8>()?.into(),
            "uint8" | "byte" | "char" => from.number::<u8>()?.into(),
            "int16" => from.number::<i16>()?.into(),
            "uint16" => from.number::<u16>()?.into(),
            "int32" => from.number::<i32>()?.into(),
            "uint32" => from.number::<u32>()?.into(),
            "int64" => from.number::<i64>()?.into(),
            "uint64" => from.number::<u64>()?.into(),
            "float32" => float(f64::from(from.number::<f32>()?)),
            "float64" => float(from.number::<f64>()?),
            "string" => Value::String(from.string()?),
            inner => self.value(inner, from)?,
        })
    }
}

/// `float64[3] position`; `None` for a constant.
fn field(line: &str) -> Result<Option<Field>, String> {
    let not_understood = || format!("the schema's line {line:?} is not understood");
    let (kind, name) = line.split_once(char::is_whitespace).ok_or_else(not_understood)?;
    let name = name.split_whitespace().next().unwrap_or_default();
    if line.contains('=') && !kind.contains('=') {
        return Ok(None);
    }
    let (kind, many) = match kind.split_once('[') {
        None => (kind, Many::One),
        Some((kind, rest)) => {
            let count = rest.strip_suffix(']').ok_or_else(not_understood)?;
            let is_bound = count.is_empty() || count.starts_with("<=");
            (kind, if is_bound { Many::Any } else { Many::Fixed(count.parse().map_err(|_| not_understood())?) })
        }
    };
    let kind = kind.split("<=").next().unwrap_or(kind);
    Ok(Some(Field { name: name.to_owned(), kind: base(kind).to_owned(), many }))
}

/// A type's name without its package.
fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn is_primitive(kind: &str) -> bool {
    matches!(
        kind,
        "bool"
            | "byte"
            | "char"
            | "string"
            | "float32"
            | "float64"
            | "int8"
            | "int16"
            | "int32"
            | "int64"
            | "uint8"
            | "uint16"
            | "uint32"
            | "uint64"
    )
}
