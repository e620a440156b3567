//! From the description of a struct (`docs/reference/protocol.md`, "Telemetry") to a `ros2msg` schema, and from the struct's
//! bytes in memory to CDR. Another process wrote both: every number is checked before it is used.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write,
};

/// More than any struct has; bounds what a hostile description can ask for.
const MOST_TYPES: usize = 1000;
const DEEPEST: usize = 32;
const MOST_OPERATIONS: usize = 1 << 16;
/// Overlapping fields may say more than the struct has bytes, but not without end.
const MOST_ENCODED: usize = 4 << 20;
const PACKAGE: &str = "telemetry";
/// CDR, little endian, no options.
const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];

/// How a channel's struct is shown, and how its bytes become a message.
#[derive(Clone, Debug)]
pub struct StructLayout {
    /// The channel's name as its program gave it.
    pub name: String,
    /// `telemetry/msg/NAME`.
    pub schema_name: String,
    /// `ros2msg` text, with the inner types.
    pub schema: String,
    bytes: usize,
    operations: Vec<Operation>,
}

/// One step from memory to message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Operation {
    /// Bytes as they are, at a multiple of `align` in the message.
    Copy { from: usize, bytes: usize, align: usize },
    /// Bytes that become 0 or 1.
    Bools { from: usize, count: usize },
    /// UTF-8 up to the first zero.
    Text { from: usize, bytes: usize },
}

struct Type {
    name: String,
    bytes: usize,
    depth: usize,
    fields: Vec<Field>,
    field_names: Unused,
    constants: Vec<(String, Number, i64)>,
    constant_names: Unused,
    /// What was said already, under whatever name.
    known_constants: HashSet<(String, i64)>,
}

struct Field {
    name: String,
    kind: Kind,
    /// 0 for one that is no array.
    count: usize,
    offset: usize,
    comment: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Number(Number),
    Text(usize),
    /// Index into the types.
    Struct(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Number {
    word: &'static str,
    bytes: usize,
}

const NUMBERS: [Number; 10] = [
    Number { word: "int8", bytes: 1 },
    Number { word: "int16", bytes: 2 },
    Number { word: "int32", bytes: 4 },
    Number { word: "int64", bytes: 8 },
    Number { word: "uint8", bytes: 1 },
    Number { word: "uint16", bytes: 2 },
    Number { word: "uint32", bytes: 4 },
    Number { word: "uint64", bytes: 8 },
    Number { word: "float32", bytes: 4 },
    Number { word: "float64", bytes: 8 },
];

impl StructLayout {
    /// Reads a description of a struct of `bytes` bytes.
    ///
    /// # Errors
    /// A sentence that names the line: an unknown word, a field outside its struct, too much of anything.
    pub fn parse(description: &str, bytes: usize) -> Result<StructLayout, String> {
        let mut reading = Reading::default();
        for (at, line) in description.lines().enumerate() {
            reading.line(line).map_err(|why| format!("line {} of its description: {why}", at + 1))?;
        }
        let Some(outer) = reading.types.last().filter(|t| !t.fields.is_empty()) else {
            return Err("its description has no type with fields".into());
        };
        if outer.bytes != bytes {
            return Err(format!("its description is of {} bytes, its values have {bytes}", outer.bytes));
        }
        let mut program = Program { operations: Vec::new(), phase: Some(0), encoded: 0 };
        program.add(&reading.types, outer, 0)?;
        Ok(StructLayout {
            name: reading.name,
            schema_name: format!("{PACKAGE}/msg/{}", outer.name),
            schema: schema(&reading.types),
            bytes,
            operations: program.operations,
        })
    }

    /// Appends the message of a struct's bytes.
    pub fn encode(&self, value: &[u8], out: &mut Vec<u8>) {
        debug_assert_eq!(value.len(), self.bytes);
        out.extend_from_slice(&ENCAPSULATION);
        let start = out.len();
        let align =
            |out: &mut Vec<u8>, align: usize| out.resize(start + (out.len() - start).next_multiple_of(align), 0);
        for operation in &self.operations {
            match *operation {
                Operation::Copy { from, bytes, align: to } => {
                    align(out, to);
                    out.extend_from_slice(&value[from..from + bytes]);
                }
                Operation::Bools { from, count } => {
                    out.extend(value[from..from + count].iter().map(|byte| u8::from(*byte != 0)));
                }
                Operation::Text { from, bytes } => {
                    let bytes = &value[from..from + bytes];
                    let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
                    align(out, 4);
                    out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
                    out.extend_from_slice(text.as_bytes());
                    out.push(0);
                }
            }
        }
    }
}

#[derive(Default)]
struct Reading {
    name: String,
    types: Vec<Type>,
    by_name: HashMap<String, usize>,
    type_names: Unused,
    /// Constants said since the last field, with the field they are of.
    constants: Vec<(String, String, i64)>,
}

impl Reading {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split('\t').collect();
        match words[..] {
            ["name", name] if self.types.is_empty() => self.name = name.to_owned(),
            ["type", name, bytes] => self.begin(name, number(bytes)?)?,
            ["constant", field, name, value] => {
                let value = value.parse().map_err(|_| format!("{value:?} is no integer"))?;
                self.constants.push((field.to_owned(), name.to_owned(), value));
            }
            ["field", name, kind, count, offset, comment] => {
                self.field(name, kind, number(count)?, number(offset)?, comment)?;
            }
            _ => return Err(format!("{:?} is not understood", line.chars().take(60).collect::<String>())),
        }
        Ok(())
    }

    fn begin(&mut self, said: &str, bytes: usize) -> Result<(), String> {
        if self.types.len() == MOST_TYPES {
            return Err(format!("more than {MOST_TYPES} types"));
        }
        if bytes == 0 {
            return Err("a type without bytes".into());
        }
        // ROS has no message without fields.
        if let Some(before) = self.types.last().filter(|before| before.fields.is_empty()) {
            return Err(format!("the type before, {}, has no fields", before.name));
        }
        let name = self.type_names.of(camel(said), "");
        self.by_name.insert(said.to_owned(), self.types.len());
        self.types.push(Type {
            name,
            bytes,
            depth: 0,
            fields: Vec::new(),
            field_names: Unused::default(),
            constants: Vec::new(),
            constant_names: Unused::default(),
            known_constants: HashSet::new(),
        });
        Ok(())
    }

    fn field(&mut self, said: &str, kind: &str, count: usize, offset: usize, comment: &str) -> Result<(), String> {
        let last = self.types.len().checked_sub(1).ok_or("a field of no type")?;
        let kind = self.kind(kind, last)?;
        let (each, depth) = match kind {
            Kind::Bool => (1, 0),
            Kind::Number(number) => (number.bytes, 0),
            Kind::Text(bytes) => (bytes, 0),
            Kind::Struct(at) => (self.types[at].bytes, self.types[at].depth + 1),
        };
        let constants = std::mem::take(&mut self.constants);
        let outer = &mut self.types[last];
        let end = count.max(1).checked_mul(each).and_then(|bytes| bytes.checked_add(offset));
        if end.is_none_or(|end| end > outer.bytes) {
            return Err(format!("{said:?} lies outside its struct of {} bytes", outer.bytes));
        }
        outer.depth = outer.depth.max(depth);
        if outer.depth > DEEPEST {
            return Err(format!("structs more than {DEEPEST} deep"));
        }
        for (of, name, value) in constants {
            let Kind::Number(number) = kind else { continue };
            let name = shout(&name);
            if of != said || !outer.known_constants.insert((name.clone(), value)) {
                continue;
            }
            let name = outer.constant_names.of(name, "_");
            outer.constants.push((name, number, value));
        }
        let name = outer.field_names.of(snake(said), "_");
        let comment = comment.chars().filter(|c| !c.is_control()).collect();
        outer.fields.push(Field { name, kind, count, offset, comment });
        Ok(())
    }

    fn kind(&self, said: &str, last: usize) -> Result<Kind, String> {
        let unknown = || format!("the type {said:?} is not known");
        if said == "bool" {
            return Ok(Kind::Bool);
        }
        if let Some(bytes) = said.strip_prefix("text") {
            return number(bytes).ok().filter(|bytes| *bytes > 0).map(Kind::Text).ok_or_else(unknown);
        }
        if let Some(name) = said.strip_prefix("struct ") {
            return self.by_name.get(name).filter(|at| **at < last).map(|at| Kind::Struct(*at)).ok_or_else(unknown);
        }
        NUMBERS.iter().find(|number| number.word == said).map(|number| Kind::Number(*number)).ok_or_else(unknown)
    }
}

/// Operations being gathered, neighbours joined.
struct Program {
    operations: Vec<Operation>,
    /// Bytes of the message so far, modulo 8; unknown behind a text.
    phase: Option<usize>,
    encoded: usize,
}

impl Program {
    fn add(&mut self, types: &[Type], of: &Type, base: usize) -> Result<(), String> {
        for field in &of.fields {
            let from = base + field.offset;
            let count = field.count.max(1);
            match field.kind {
                Kind::Bool => self.push(Operation::Bools { from, count }, count)?,
                Kind::Number(number) => self.copy(from, count * number.bytes, number.bytes)?,
                Kind::Text(bytes) => {
                    for i in 0..count {
                        self.push(Operation::Text { from: from + i * bytes, bytes }, bytes + 8)?;
                    }
                }
                Kind::Struct(at) => {
                    for i in 0..count {
                        self.add(types, &types[at], from + i * types[at].bytes)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn copy(&mut self, from: usize, bytes: usize, align: usize) -> Result<(), String> {
        let padding = self.phase.map(|phase| phase.next_multiple_of(align) - phase);
        let phase = padding.map(|padding| self.phase.unwrap_or(0) + padding);
        // Behind a text only what is aligned to the most is known.
        self.phase = phase.or((align == 8).then_some(0)).map(|phase| (phase + bytes) % 8);
        self.encoded += bytes + 8;
        if let (Some(0), Some(Operation::Copy { from: start, bytes: before, .. })) =
            (padding, self.operations.last_mut())
            && *start + *before == from
        {
            *before += bytes;
            return self.check();
        }
        self.operations.push(Operation::Copy { from, bytes, align });
        self.check()
    }

    fn push(&mut self, operation: Operation, encoded: usize) -> Result<(), String> {
        self.phase = match operation {
            Operation::Bools { count, .. } => self.phase.map(|phase| (phase + count) % 8),
            _ => None,
        };
        self.encoded += encoded;
        self.operations.push(operation);
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        let fits = self.operations.len() <= MOST_OPERATIONS && self.encoded <= MOST_ENCODED;
        if fits { Ok(()) } else { Err("its description says more than a message may hold".into()) }
    }
}

/// The outer type, then the inner ones behind separators, as `ros2msg` in MCAP has it.
fn schema(types: &[Type]) -> String {
    let mut text = String::new();
    for (at, of) in types.iter().rev().enumerate() {
        if at > 0 {
            // Writing to a String does not fail.
            let _ = writeln!(text, "{}\nMSG: {PACKAGE}/{}", "=".repeat(80), of.name);
        }
        for (name, number, value) in &of.constants {
            let _ = writeln!(text, "{} {name}={value}", number.word);
        }
        for field in &of.fields {
            let kind = match field.kind {
                Kind::Bool => "bool".to_owned(),
                Kind::Number(number) => number.word.to_owned(),
                Kind::Text(_) => "string".to_owned(),
                Kind::Struct(inner) => format!("{PACKAGE}/{}", types[inner].name),
            };
            let count = if field.count == 0 { String::new() } else { format!("[{}]", field.count) };
            let comment = if field.comment.is_empty() { String::new() } else { format!(" # {}", field.comment) };
            let _ = writeln!(text, "{kind}{count} {}{comment}", field.name);
        }
    }
    text
}

fn number(text: &str) -> Result<usize, String> {
    // A bound far above any struct, so that sums of these do not wrap.
    let number = text.parse::<usize>().ok().filter(|n| *n <= 1 << 32);
    number.ok_or_else(|| format!("{text:?} is no size"))
}

/// As ROS wants field names: lower case, digits and single underscores, a letter first.
pub fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            out.push('_');
        }
        out.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
        before = c;
    }
    let parts: Vec<&str> = out.split('_').filter(|part| !part.is_empty()).collect();
    let out = parts.join("_");
    if out.starts_with(|c: char| c.is_ascii_alphabetic()) { out } else { format!("f{out}") }
}

/// As ROS wants type names: letters and digits, words begun by a capital.
pub fn camel(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let out: String = words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect();
    if out.starts_with(|c: char| c.is_ascii_alphabetic()) { out } else { format!("T{out}") }
}

/// As ROS wants constants: capitals, digits and underscores.
pub fn shout(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

/// Names that are taken, and where to look for a free one: a foreign description may say the same name a thousand times.
#[derive(Default)]
pub struct Unused {
    taken: HashSet<String>,
    next: HashMap<String, usize>,
}

impl Unused {
    /// The name, with a number behind it where it is taken; it is taken then.
    pub fn of(&mut self, name: String, between: &str) -> String {
        if self.taken.insert(name.clone()) {
            return name;
        }
        let next = self.next.entry(name.clone()).or_insert(2);
        loop {
            let other = format!("{name}{between}{next}");
            *next += 1;
            if self.taken.insert(other.clone()) {
                return other;
            }
        }
    }
}
