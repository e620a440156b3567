//! What a struct's bytes mean: types that `#[derive(Telemetry)]` fills in, and the text of them that
//! the recorder reads.

use core::fmt::Write;

/// A struct of plain values that can be copied as bytes: derive it.
///
/// # Safety
/// `LAYOUT` must be true: the recorder reads the struct's memory by it.
pub unsafe trait Telemetry: Copy + 'static {
    /// What lies where.
    const LAYOUT: Layout;
}

/// What lies where in a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name of the type.
    pub name: &'static str,
    /// Bytes, padding at the end included.
    pub size: usize,
    /// In the order that readers shall see.
    pub fields: &'static [Field],
}

/// One field of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it is, or what its elements are.
    pub kind: Kind,
    /// Elements of an array, all dimensions multiplied; 0 for one that is none.
    pub count: usize,
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// For people: unit, meaning.
    pub comment: &'static str,
    /// Names of values: what an enum's numbers mean.
    pub constants: &'static [(&'static str, i64)],
}

/// What one value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One byte, 0 is false.
    Bool,
    /// A signed integer of 1, 2, 4 or 8 bytes.
    Int(usize),
    /// An unsigned integer of 1, 2, 4 or 8 bytes.
    Uint(usize),
    /// IEEE 754, 4 or 8 bytes.
    Float(usize),
    /// UTF-8 in a field of so many bytes, zeros behind it.
    Text(usize),
    /// A struct of its own.
    Struct(&'static Layout),
}

/// What can be a field of a [`Telemetry`] struct.
///
/// # Safety
/// `KIND` and `COUNT` must be true of the type's bytes.
pub unsafe trait FieldType: Copy + 'static {
    /// What it is, or what its elements are.
    const KIND: Kind;
    /// As [`Field::count`].
    const COUNT: usize = 0;
    /// As [`Field::constants`].
    const CONSTANTS: &'static [(&'static str, i64)] = &[];
}

macro_rules! numbers {
    ($($type:ty: $kind:expr),*) => {$(
        // SAFETY: the kind is what Rust says of the type.
        unsafe impl FieldType for $type {
            const KIND: Kind = $kind;
        }
    )*};
}
numbers!(
    bool: Kind::Bool, i8: Kind::Int(1), i16: Kind::Int(2), i32: Kind::Int(4), i64: Kind::Int(8),
    u8: Kind::Uint(1), u16: Kind::Uint(2), u32: Kind::Uint(4), u64: Kind::Uint(8),
    f32: Kind::Float(4), f64: Kind::Float(8)
);

// SAFETY: an array is its elements without anything between; arrays of arrays are laid out likewise.
unsafe impl<E: FieldType, const N: usize> FieldType for [E; N] {
    const KIND: Kind = E::KIND;
    const COUNT: usize = if E::COUNT == 0 { N } else { N * E::COUNT };
    const CONSTANTS: &'static [(&'static str, i64)] = E::CONSTANTS;
}

/// Text of at most N bytes in place, for a struct that is copied as it is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// Cut before a character where it does not fit.
    pub fn new(text: &str) -> Text<N> {
        let mut length = text.len().min(N);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        let mut bytes = [0; N];
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Text(bytes)
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Text<N> {
        Text([0; N])
    }
}

// SAFETY: it is N bytes.
unsafe impl<const N: usize> FieldType for Text<N> {
    const KIND: Kind = Kind::Text(N);
}

/// The description that `docs/reference/protocol.md` defines.
pub(super) fn text(layout: &'static Layout) -> String {
    let mut said = Vec::new();
    let mut text = String::new();
    describe(layout, &mut said, &mut text);
    text
}

/// Types before those that hold them, each once; gives the type's name. Types of different modules may be called
/// the same: the later gets a number.
fn describe(layout: &'static Layout, said: &mut Vec<(String, &'static Layout)>, text: &mut String) -> String {
    if let Some((name, _)) = said.iter().find(|(_, known)| *known == layout) {
        return name.clone();
    }
    let mut fields = String::new();
    for field in layout.fields {
        for (name, value) in field.constants {
            // Writing to a String does not fail.
            let _ = writeln!(fields, "constant\t{}\t{name}\t{value}", field.name);
        }
        let kind = match field.kind {
            Kind::Bool => "bool".to_owned(),
            Kind::Int(bytes) => format!("int{}", bytes * 8),
            Kind::Uint(bytes) => format!("uint{}", bytes * 8),
            Kind::Float(bytes) => format!("float{}", bytes * 8),
            Kind::Text(bytes) => format!("text{bytes}"),
            Kind::Struct(inner) => format!("struct {}", describe(inner, said, text)),
        };
        let comment = field.comment.split(['\t', '\n']).next().unwrap_or_default();
        let _ = writeln!(fields, "field\t{}\t{kind}\t{}\t{}\t{comment}", field.name, field.count, field.offset);
    }
    let same = said.iter().filter(|(_, known)| known.name == layout.name).count();
    let name = if same == 0 { layout.name.to_owned() } else { format!("{}_{}", layout.name, same + 1) };
    let _ = write!(text, "type\t{name}\t{}\n{fields}", layout.size);
    said.push((name.clone(), layout));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_before_a_character() {
        assert_eq!(Text::<4>::new("abµµ").0, *b"ab\xc2\xb5");
        assert_eq!(Text::<3>::new("abµ").0, *b"ab\0");
    }

    #[test]
    fn inner_types_are_described_once_and_first() {
        const INNER: Layout = Layout {
            name: "Inner",
            size: 8,
            fields: &[Field {
                name: "mode",
                kind: Kind::Uint(1),
                count: 0,
                offset: 4,
                comment: "what it does",
                constants: &[("RUN", 3)],
            }],
        };
        const LAYOUT: Layout = Layout {
            name: "Outer",
            size: 32,
            fields: &[
                Field { name: "a", kind: Kind::Struct(&INNER), count: 2, offset: 0, comment: "", constants: &[] },
                Field { name: "b", kind: Kind::Struct(&INNER), count: 0, offset: 16, comment: "", constants: &[] },
            ],
        };
        assert_eq!(
            text(&LAYOUT),
            "type\tInner\t8\nconstant\tmode\tRUN\t3\nfield\tmode\tuint8\t0\t4\twhat it does\n\
             type\tOuter\t32\nfield\ta\tstruct Inner\t2\t0\t\nfield\tb\tstruct Inner\t0\t16\t\n"
        );
    }
}
