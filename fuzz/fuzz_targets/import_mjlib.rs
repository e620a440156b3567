//! Foreign bytes through the mjlib importer: as a whole file, and as schema and value of a block whose checksum is right.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use taut_import::mjlib;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    check(&[b"TLOG0003\0", bytes].concat());
    check(&as_blocks(bytes));
});

fn check(file: &[u8]) {
    let to = std::env::temp_dir().join(format!("taut-fuzz-import-{}.mcap", std::process::id()));
    match mjlib::import(Cursor::new(file), file.len() as u64, &to, &mut |_| {}) {
        Ok(imported) => {
            let contents = taut_recording::read(&std::fs::read(&to).expect("it was written"), &mut |_| {});
            let contents = contents.expect("a recording");
            assert_eq!((contents.messages, contents.damage.len()), (imported.messages, 0));
            std::fs::remove_file(&to).expect("the file is ours");
        }
        Err(error) => assert!(!error.to_string().is_empty() && !to.exists()),
    }
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
