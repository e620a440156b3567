//! The kernel's own description of a tracepoint (its `format` file), read at run time.
//! Layouts and flag bits differ between kernels, so nothing here is fixed at compile time.

/// A tracepoint's number and fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// What `common_type` holds in this event's records, and perf's `config`.
    pub id: u16,
    /// All fields in the order of the file, the common ones first.
    pub fields: Vec<Field>,
}

/// Where a field lies in the raw record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// The C name without array brackets.
    pub name: String,
    /// Bytes from the start of the record.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// Whether a shorter field is sign-extended.
    pub signed: bool,
}

impl Format {
    /// Reads a `format` file; `None` when it has no number or no field.
    pub fn parse(text: &str) -> Option<Format> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields: Vec<Field> = text.lines().filter_map(Field::parse).collect();
        (!fields.is_empty()).then_some(Format { id, fields })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The `index`-th argument of a named system call: the fields after its number.
    pub fn system_call_argument(&self, index: usize) -> Option<&Field> {
        let number = self.fields.iter().position(|field| is_system_call_number(&field.name))?;
        self.fields.get(number + 1 + index)
    }

    /// The system call's number in `sys_enter_*` and `sys_exit_*` (renamed over the years).
    pub fn system_call_number(&self) -> Option<&Field> {
        self.fields.iter().find(|field| is_system_call_number(&field.name))
    }
}

fn is_system_call_number(name: &str) -> bool {
    matches!(name, "__syscall_nr" | "nr")
}

impl Field {
    /// Reads a line like `field:pid_t pid; offset:24; size:4; signed:1;`.
    pub fn parse(line: &str) -> Option<Field> {
        let line = line.trim();
        let declaration = line.strip_prefix("field:").or_else(|| line.strip_prefix("field special:"))?;
        let mut parts = declaration.split(';').map(str::trim);
        let declared = parts.next()?;
        let word = declared.rsplit([' ', '*']).next()?;
        let name = word.split('[').next()?.to_owned();
        let (mut offset, mut size, mut signed) = (None, None, false);
        for part in parts {
            match part.split_once(':') {
                Some(("offset", value)) => offset = value.parse().ok(),
                Some(("size", value)) => size = value.parse().ok(),
                Some(("signed", value)) => signed = value == "1",
                _ => {}
            }
        }
        Some(Field { name, offset: offset?, size: size?, signed })
    }

    /// An element of an array of 64-bit numbers; `None` behind its end.
    pub fn element(&self, index: usize) -> Option<Field> {
        let offset = self.offset.checked_add(index * 8)?;
        (index * 8 + 8 <= self.size).then(|| Field { offset, size: 8, ..self.clone() })
    }

    /// The field as an integer; `None` when the record is too short or the size is no integer's.
    #[inline]
    pub fn read(&self, record: &[u8]) -> Option<i64> {
        let bytes = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match (bytes, self.signed) {
            (&[a], false) => i64::from(a),
            (&[a], true) => i64::from(a as i8),
            (&[a, b], false) => i64::from(u16::from_le_bytes([a, b])),
            (&[a, b], true) => i64::from(i16::from_le_bytes([a, b])),
            (&[a, b, c, d], false) => i64::from(u32::from_le_bytes([a, b, c, d])),
            (&[a, b, c, d], true) => i64::from(i32::from_le_bytes([a, b, c, d])),
            (&[a, b, c, d, e, f, g, h], _) => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FUTEX: &str = "name: sys_enter_futex\nID: 522\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:u32 * uaddr;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:int op;\toffset:24;\tsize:8;\tsigned:0;\n\nprint fmt: \"x\"\n";

    #[test]
    fn arguments_of_a_system_call_follow_its_number() {
        let format = Format::parse(FUTEX).unwrap();
        assert_eq!(format.id, 522);
        assert_eq!(format.system_call_argument(0).unwrap().name, "uaddr");
        assert_eq!(format.system_call_argument(1).unwrap().offset, 24);
        assert_eq!(format.system_call_argument(2), None);
    }

    #[test]
    fn arrays_and_locators_keep_their_bare_names() {
        let field = Field::parse("\tfield:__data_loc char[] child_comm;\toffset:16;\tsize:4;\tsigned:0;").unwrap();
        assert_eq!(field.name, "child_comm");
        let field = Field::parse("\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;").unwrap();
        assert_eq!((field.name.as_str(), field.size), ("args", 48));
    }

    #[test]
    fn a_signed_field_is_sign_extended_and_a_short_record_gives_nothing() {
        let field = Field { name: "x".into(), offset: 2, size: 4, signed: true };
        assert_eq!(field.read(&[0, 0, 0xff, 0xff, 0xff, 0xff]), Some(-1));
        assert_eq!(field.read(&[0, 0, 0xff, 0xff, 0xff]), None);
    }

    proptest! {
        #[test]
        fn any_text_and_any_record_is_survived(text in "(field:|ID:|[a-z0-9:; \\n\\[\\]*-]){0,200}", record in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some(format) = Format::parse(&text) {
                for field in &format.fields {
                    field.read(&record);
                }
            }
        }

        #[test]
        fn no_offset_overflows(offset in any::<usize>(), size in any::<usize>()) {
            Field { name: String::new(), offset, size, signed: false }.read(&[0; 8]);
        }
    }
}
