//! Is a Thrift structure (compact protocol) one that is read in a time that its length bounds? The crate parquet (60) takes a list of bools that it
//! does not know for elements of no bytes, and so counts to 2³¹ where a damaged header says that number, repeatedly.

/// Structures and lists inside of each other: Parquet's own need eight.
const DEPTH_MAX: usize = 24;

/// Whether a structure begins the bytes, complete, with no list longer than its bytes.
pub fn is_sound(mut bytes: &[u8]) -> bool {
    skip(&mut bytes, STRUCT, 0).is_some()
}

const STRUCT: u8 = 12;

fn skip(bytes: &mut &[u8], kind: u8, depth: usize) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    match kind {
        // A bool of a structure is in its field's header.
        1 | 2 => Some(()),
        3 => take(bytes, 1),
        4..=6 => varint(bytes).map(|_| ()),
        7 => take(bytes, 8),
        8 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            take(bytes, length)
        }
        9 | 10 => {
            let header = byte(bytes)?;
            let (short, element) = (u64::from(header >> 4), header & 15);
            let size = if short == 15 { varint(bytes)? } else { short };
            elements(bytes, size, &[element], depth)
        }
        11 => {
            let size = varint(bytes)?;
            let kinds = if size > 0 { byte(bytes)? } else { 0 };
            elements(bytes, size, &[kinds >> 4, kinds & 15], depth)
        }
        STRUCT => loop {
            let header = byte(bytes)?;
            if header & 15 == 0 {
                return Some(());
            }
            if header >> 4 == 0 {
                varint(bytes)?;
            }
            skip(bytes, header & 15, depth + 1)?;
        },
        13 => take(bytes, 16),
        _ => None,
    }
}

fn elements(bytes: &mut &[u8], size: u64, kinds: &[u8], depth: usize) -> Option<()> {
    // Parquet has no bools in a list of a footer or a page's header; they are what takes no bytes. All else takes one at least.
    let is_of_bools = kinds.iter().any(|kind| matches!(kind, 1 | 2));
    if size > bytes.len() as u64 || (is_of_bools && size > 0) {
        return None;
    }
    for _ in 0..size {
        for kind in kinds {
            skip(bytes, *kind, depth + 1)?;
        }
    }
    Some(())
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

fn take(bytes: &mut &[u8], length: usize) -> Option<()> {
    *bytes = bytes.get(length..)?;
    Some(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = byte(bytes)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_walked_to_their_end() {
        // Field 1: i32 5; field 2: binary "ab"; field 3: list of two i64; stop.
        let sound = [0x15, 10, 0x18, 2, b'a', b'b', 0x19, 0x26, 2, 4, 0];
        assert!(is_sound(&sound));
        for cut in 0..sound.len() {
            assert!(!is_sound(&sound[..cut]), "{cut}");
        }
    }

    #[test]
    fn what_would_be_counted_without_bytes_is_refused() {
        // Field 1: list of 2³¹ − 1 bools.
        assert!(!is_sound(&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0]));
        // A list longer than what follows, and structures without end.
        assert!(!is_sound(&[0x19, 0xf5, 0xff, 0xff, 0x03, 0]));
        assert!(!is_sound(&[0x1c; 1000]));
    }
}
