//! Reads messages by the `ros2msg` schema that the file carries: what the fields are, and their values as JSON.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use crate::cdr::Decoder;

const DEEPEST: usize = 64;
/// Structs within one message, by its schema alone.
const MOST_VALUES: usize = 1 << 20;
/// Elements of an array whose type takes no bytes: more of those have no use.
const MOST_EMPTY: usize = 1000;

/// A parsed schema.
#[derive(Clone, Debug)]
pub struct Schema {
    types: HashMap<String, Vec<Field>>,
    sizes: HashMap<String, Size>,
}

/// Of one value of a type.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Structs in it, itself too; elements of arrays without a fixed length count once.
    values: usize,
    /// Of structs in structs in it.
    depth: usize,
    /// Whether it takes no bytes.
    is_empty: bool,
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
        let mut schema = Schema { types, sizes: HashMap::new() };
        schema.measure(OUTER, 0)?;
        Ok(schema)
    }

    /// Finds how large each type is, and refuses those that a few lines blow up: types that hold one another twice,
    /// 64 deep, are more than any reader can walk through.
    fn measure(&mut self, of: &str, depth: usize) -> Result<Size, String> {
        if depth > DEEPEST {
            return Err(format!("types more than {DEEPEST} deep"));
        }
        if let Some(known) = self.sizes.get(of) {
            return Ok(*known);
        }
        let mut size = Size { values: 1, depth: 0, is_empty: true };
        for at in 0..self.types[of].len() {
            let Field { name, kind, many } = self.types[of][at].clone();
            let one = match is_primitive(&kind) {
                true => Size { values: 0, depth: 0, is_empty: false },
                false if !self.types.contains_key(&kind) => {
                    return Err(format!("the type {kind:?} of {name:?} is not defined"));
                }
                false => self.measure(&kind, depth + 1)?,
            };
            let (count, is_empty) = match many {
                Many::One => (1, one.is_empty),
                Many::Fixed(count) => (count, one.is_empty || count == 0),
                Many::Any => (1, false),
            };
            size.values = size.values.saturating_add(one.values.saturating_mul(count));
            size.is_empty &= is_empty;
            size.depth = size.depth.max(one.depth + usize::from(one.values > 0));
            if depth + size.depth > DEEPEST {
                return Err(format!("types more than {DEEPEST} deep"));
            }
            if size.values > MOST_VALUES {
                return Err(format!("more than {MOST_VALUES} values of its types in one another"));
            }
        }
        self.sizes.insert(of.to_owned(), size);
        Ok(size)
    }

    /// Paths of the numbers and bools of a message, as plotting tools write them: `joint[2].position`; at most `most`. Of
    /// arrays without a fixed length only the first element counts.
    pub fn numbers(&self, most: usize) -> Vec<String> {
        let mut paths = Vec::new();
        self.add_numbers(OUTER, "", most, &mut paths);
        paths
    }

    fn add_numbers(&self, of: &str, before: &str, most: usize, paths: &mut Vec<String>) {
        for field in self.types[of].iter().filter(|field| field.kind != "string") {
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
                } else {
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
        // An element takes at least a byte, or else it is empty.
        let is_empty = self.sizes.get(kind).is_some_and(|size| size.is_empty);
        if count > from.left() || is_empty && count > MOST_EMPTY {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Types of which each holds the next, as this line says.
    fn nested(depth: usize, line: impl Fn(usize) -> String, last: &str) -> String {
        let inner =
            |n: usize| format!("===\nMSG: p/T{n}\n{}\n", if n == depth { last.to_owned() } else { line(n + 1) });
        format!("{}\n{}", line(0), (0..=depth).map(inner).collect::<String>())
    }

    #[test]
    fn a_few_lines_that_unfold_without_end_are_refused() {
        let twice = |n: usize| format!("p/T{n} a\np/T{n} b");
        assert!(Schema::parse(&nested(10, twice, "float64 x")).is_ok());
        assert!(Schema::parse(&nested(40, twice, "float64 x")).unwrap_err().contains("1048576 values"));
        let many = |n: usize| format!("p/T{n}[1000000] a");
        assert!(Schema::parse(&nested(3, many, "")).unwrap_err().contains("values"));
        let once = |n: usize| format!("p/T{n} a");
        assert!(Schema::parse(&nested(62, once, "float64 x")).is_ok());
        assert!(Schema::parse(&nested(70, once, "float64 x")).unwrap_err().contains("64 deep"));
        // Type by type no deeper than that; together they are.
        let chains = format!("{}{}", "p/T40 first\n", nested(90, once, "float64 x"));
        assert!(Schema::parse(&chains).unwrap_err().contains("64 deep"));
        assert!(Schema::parse("p/A a\n===\nMSG: p/A\np/A a\n").unwrap_err().contains("64 deep"));
    }

    #[test]
    fn arrays_without_bytes_are_short() {
        let schema = Schema::parse("string[18446744073709551615] s\np/E[] e\nfloat64[2] x\n===\nMSG: p/E\n").unwrap();
        assert_eq!(schema.numbers(10), ["x[0]", "x[1]"]);
        let schema = Schema::parse("p/E[] e\n===\nMSG: p/E\n").unwrap();
        let message = |count: u32| [&[0, 1, 0, 0][..], &count.to_le_bytes(), &[0; 4000]].concat();
        assert!(schema.decode(&message(1000)).is_some() && schema.decode(&message(1001)).is_none());
    }
}
