//! Declarations → types that packets are read by: byte orders settled, lengths and tags found, and a register for each
//! field, which holds its value once it is read.

use std::{collections::HashMap, rc::Rc};

use super::{
    bits::{Bits, Order},
    syntax::{Declared, Length, Number},
};

/// The register of a field that cannot be asked for.
const NOWHERE: u32 = u32::MAX;

/// How to read one value.
#[derive(Debug)]
pub(super) enum Type {
    Number {
        size: u32,
        align: u32,
        is_signed: bool,
        order: Order,
        is_clock: bool,
        register: u32,
    },
    /// Zero-terminated.
    Text {
        register: u32,
    },
    /// An array or sequence of bytes, such as a thread's name.
    Bytes {
        length: Count,
        register: u32,
    },
    Struct {
        fields: Vec<Type>,
        align: u32,
    },
    Array {
        of: Box<Type>,
        length: Count,
    },
    /// The first option with a range that holds the tag.
    Variant {
        tag: u32,
        options: Vec<(Vec<(i128, i128)>, Type)>,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    Fixed(u64),
    Register(u32),
}

/// Reading one value failed: the packet ends before it, or holds what cannot be.
pub(super) struct Torn;

/// What reading goes into.
pub(super) struct State {
    /// By number: a number sign-extended, or where a text lies (see [`text`]).
    pub registers: Vec<u64>,
    /// The stream's clock, whole; fields that hold some of its bits move it on.
    pub clock: u64,
    /// How many more elements of arrays may be read until the packet ends. Elements can be empty, and a length can be
    /// anything.
    pub elements_left: u64,
}

impl Type {
    /// Reads a value into the registers.
    pub fn read(&self, bits: &mut Bits<'_>, state: &mut State) -> Result<(), Torn> {
        match self {
            Type::Number { size, align, is_signed, order, is_clock, register } => {
                bits.align(*align).ok_or(Torn)?;
                let mut value = bits.number(*size, *order).ok_or(Torn)?;
                if *is_clock {
                    state.clock = advanced(state.clock, value, *size);
                }
                if *is_signed {
                    let unused = 64 - size;
                    value = ((value << unused) as i64 >> unused) as u64;
                }
                if let Some(register) = state.registers.get_mut(*register as usize) {
                    *register = value;
                }
            }
            Type::Text { register } => {
                let at = bits.text().ok_or(Torn)?;
                if let Some(register) = state.registers.get_mut(*register as usize) {
                    *register = place(at.start, at.len());
                }
            }
            Type::Bytes { length, register } => {
                let length = state.count(*length);
                bits.align(8).ok_or(Torn)?;
                let start = (bits.at() / 8) as usize;
                bits.skip(length.checked_mul(8).ok_or(Torn)?).ok_or(Torn)?;
                if let Some(register) = state.registers.get_mut(*register as usize) {
                    *register = place(start, length as usize);
                }
            }
            Type::Struct { fields, align } => {
                bits.align(*align).ok_or(Torn)?;
                for field in fields {
                    field.read(bits, state)?;
                }
            }
            Type::Array { of, length } => {
                let length = state.count(*length);
                state.elements_left = state.elements_left.checked_sub(length).ok_or(Torn)?;
                for _ in 0..length {
                    of.read(bits, state)?;
                }
            }
            Type::Variant { tag, options } => {
                let unsigned = state.registers.get(*tag as usize).copied().unwrap_or(0);
                // A label's range is of the tag's own sign.
                let holds = |(from, to): &(i128, i128)| {
                    let tag = if *from < 0 { i128::from(unsigned as i64) } else { i128::from(unsigned) };
                    (*from..=*to).contains(&tag)
                };
                let option = options.iter().find(|(ranges, _)| ranges.iter().any(holds));
                option.ok_or(Torn)?.1.read(bits, state)?;
            }
        }
        Ok(())
    }
}

impl State {
    fn count(&self, count: Count) -> u64 {
        match count {
            Count::Fixed(count) => count,
            Count::Register(register) => self.registers.get(register as usize).copied().unwrap_or(0),
        }
    }
}

/// A clock of which the lowest `size` bits were read. It never runs back: where they are less, they began again.
pub(super) fn advanced(clock: u64, low: u64, size: u32) -> u64 {
    if size >= 64 {
        return low;
    }
    let mask = (1 << size) - 1;
    let moved = clock & !mask | low;
    if moved < clock { moved.wrapping_add(mask + 1) } else { moved }
}

/// Where a text lies in a packet, which is smaller than 4 GiB.
fn place(start: usize, length: usize) -> u64 {
    (start as u64) << 32 | length as u64 & u64::from(u32::MAX)
}

/// The bytes of a text in a register, up to its first zero.
pub(super) fn text(packet: &[u8], register: u64) -> &[u8] {
    let start = (register >> 32) as usize;
    let text = packet.get(start..start + (register as u32) as usize).unwrap_or(&[]);
    &text[..text.iter().position(|byte| *byte == 0).unwrap_or(text.len())]
}

/// What a field is called and where it goes. Those of the scopes around, which are settled before, are known here, too.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    around: Option<&'a Scopes<'a>>,
    fields: HashMap<String, Field>,
    pub registers: u32,
}

#[derive(Clone)]
struct Field {
    register: u32,
    labels: Rc<[(String, i128, i128)]>,
}

/// The scopes that a name may be looked up in, the innermost first.
const ROOTS: [&str; 6] = [
    "event.fields",
    "event.context",
    "stream.event.context",
    "stream.event.header",
    "stream.packet.context",
    "trace.packet.header",
];

impl<'a> Scopes<'a> {
    pub fn within(around: &'a Scopes<'a>) -> Scopes<'a> {
        Scopes { around: Some(around), fields: HashMap::new(), registers: around.registers }
    }

    /// Settles a declaration that is the scope `root`.
    pub fn settle(&mut self, declared: Option<&Declared>, root: &str, is_big: bool) -> Result<Type, String> {
        match declared {
            Some(declared) => Settling { scopes: self, is_big }.settle(declared, root),
            None => Ok(Type::Struct { fields: Vec::new(), align: 1 }),
        }
    }

    /// The register of a field, by the scope it is in and its name there.
    pub fn register(&self, root: &str, name: &str) -> Option<u32> {
        // LTTng puts an underscore before names, which may be words of the language otherwise.
        let with = |name: &str| self.field(&format!("{root}.{name}"));
        with(name).or_else(|| with(&format!("_{name}"))).map(|field| field.register)
    }

    /// Registers of all fields below the scope `root` that have this name, not itself in the scope.
    pub fn below(&self, root: &str, name: &str) -> Vec<u32> {
        let is_it = |path: &str| {
            let inner = path.strip_prefix(root).and_then(|path| path.strip_prefix('.'));
            inner.and_then(|inner| inner.strip_suffix(name)).is_some_and(|before| before.ends_with('.'))
        };
        let mut found: Vec<u32> =
            self.fields.iter().filter(|(path, _)| is_it(path)).map(|(_, field)| field.register).collect();
        found.sort_unstable();
        found
    }

    fn field(&self, path: &str) -> Option<&Field> {
        self.fields.get(path).or_else(|| self.around?.field(path))
    }
}

struct Settling<'a, 'b> {
    scopes: &'a mut Scopes<'b>,
    is_big: bool,
}

/// Longer ones are no tracer's, and would fill the memory with names.
const MOST_PATH: usize = 1024;

impl Settling<'_, '_> {
    fn settle(&mut self, declared: &Declared, path: &str) -> Result<Type, String> {
        if path.len() > MOST_PATH {
            return Err(format!("field names of more than {MOST_PATH} bytes"));
        }
        match declared {
            Declared::Number(number) => {
                let register = self.register(path, &number.labels);
                Ok(self.number(number, register))
            }
            Declared::Text => Ok(Type::Text { register: self.register(path, &[]) }),
            Declared::Struct { fields, align } => {
                let mut settled = Vec::with_capacity(fields.len());
                for (name, field) in fields {
                    settled.push(self.settle(field, &format!("{path}.{name}"))?);
                }
                // A structure is aligned as the most aligned of its fields (specification, 4.2.1).
                let align = settled.iter().map(alignment).fold(*align, u32::max);
                Ok(Type::Struct { fields: settled, align })
            }
            Declared::Array { of, length } => {
                let length = match length {
                    Length::Fixed(length) => Count::Fixed(*length),
                    Length::Named(name) => Count::Register(self.find(name, path)?.register),
                };
                match &**of {
                    Declared::Number(Number { size: 8, align: 8, .. }) => {
                        Ok(Type::Bytes { length, register: self.register(path, &[]) })
                    }
                    of => Ok(Type::Array { of: Box::new(self.settle(of, &format!("{path}[]"))?), length }),
                }
            }
            Declared::Variant { tag, options } => {
                let tag = tag.as_ref().ok_or_else(|| format!("the variant {path} has no tag"))?;
                let tag = self.find(tag, path)?;
                let mut settled = Vec::with_capacity(options.len());
                for option in options {
                    let is_it = |(label, ..): &&(String, i128, i128)| *label == option.name;
                    let labelled = tag.labels.iter().filter(is_it).map(|(_, from, to)| (*from, *to));
                    let ranges = option.ranges.iter().copied().chain(labelled).collect();
                    settled.push((ranges, self.settle(&option.of, &format!("{path}.{}", option.name))?));
                }
                Ok(Type::Variant { tag: tag.register, options: settled })
            }
        }
    }

    fn number(&self, number: &Number, register: u32) -> Type {
        let Number { size, align, is_signed, is_clock, .. } = *number;
        let order = if number.is_big.unwrap_or(self.is_big) { Order::Big } else { Order::Little };
        Type::Number { size, align, is_signed, order, is_clock, register }
    }

    fn register(&mut self, path: &str, labels: &[(String, i128, i128)]) -> u32 {
        let register = self.scopes.registers;
        if path.contains("[]") || register == NOWHERE {
            return NOWHERE;
        }
        self.scopes.registers += 1;
        self.scopes.fields.insert(path.to_owned(), Field { register, labels: labels.into() });
        register
    }

    /// A field read before the one at `path`, by its full path or as seen from there.
    fn find(&self, name: &str, path: &str) -> Result<Field, String> {
        let mut inner = path;
        let mut around = Vec::new();
        while let Some((outer, _)) = inner.rsplit_once('.') {
            around.push(outer);
            inner = outer;
        }
        let mut names = around.iter().chain(&ROOTS).map(|scope| format!("{scope}.{name}")).chain([name.to_owned()]);
        let found = names.find_map(|name| self.scopes.field(&name).cloned());
        found.ok_or_else(|| format!("{path} refers to {name:?}, which is no field before it"))
    }
}

fn alignment(of: &Type) -> u32 {
    match of {
        Type::Number { align, .. } | Type::Struct { align, .. } => *align,
        Type::Text { .. } | Type::Bytes { .. } => 8,
        Type::Array { of, .. } => alignment(of),
        // That of the option that is there.
        Type::Variant { .. } => 1,
    }
}
