//! Foreign bytes through the mjlib importer: as a whole file, and as schema and value of a block whose checksum is right.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use taut_fuzz::check;
use taut_import::mjlib;

fuzz_target!(|bytes: &[u8]| {
    import(bytes);
    import(&[b"TLOG0003\0", bytes].concat());
    import(&as_blocks(bytes));
});

fn import(file: &[u8]) {
    check(|to| mjlib::import(Cursor::new(file), file.len() as u64, to, &mut |_| {}));
}

/// The first half as a schema, the second as two values of it.
fn as_blocks(bytes: &[u8]) -> Vec<u8> {
    let (schema, value) = bytes.split_at(bytes.len() / 2);
    let mut file = b"TLOG0003\0".to_vec();
    block(&mut file, 1, &[&[1, 0, 1, b'r'], schema].concat());
    block(&mut file, 2, &[&[1, 0], value].concat());
    block(&mut file, 2, &[&[1, 16], value].concat());
    file
}

fn block(file: &mut Vec<u8>, kind: u8, body: &[u8]) {
    file.push(kind);
    let mut size = body.len();
    while size > 0x7f {
        file.push(size as u8 & 0x7f | 0x80);
        size >>= 7;
    }
    file.push(size as u8);
    file.extend(body);
}
