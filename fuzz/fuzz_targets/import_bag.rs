//! Foreign bytes through the bag importer: as an MCAP file, as the records of a chunk whose checksum is right, and as a
//! definition with a message of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use taut_fuzz::check;
use taut_import::bag;

fuzz_target!(|bytes: &[u8]| {
    import(bytes);
    import(&[MAGIC, bytes].concat());
    import(&chunk(bytes));
    for encoding in ["ros2msg", "ros2idl", "ros1msg"] {
        import(&chunk(&described(encoding, bytes)));
    }
});

const MAGIC: &[u8] = b"\x89MCAP0\r\n";

fn import(file: &[u8]) {
    check(|to| bag::import_mcap(file, to, &mut |_| {}));
}

fn chunk(records: &[u8]) -> Vec<u8> {
    let length = (records.len() as u64).to_le_bytes();
    let crc = crc32fast::hash(records).to_le_bytes();
    let body = [&[0; 16][..], &length, &crc, &[0; 4], &length, records].concat();
    [MAGIC, &record(6, &body)].concat()
}

/// The first half as the definition of a type, the second as a message of it.
fn described(encoding: &str, bytes: &[u8]) -> Vec<u8> {
    let (definition, message) = bytes.split_at(bytes.len() / 2);
    let format: &[u8] = if encoding == "ros1msg" { b"ros1" } else { b"cdr" };
    let schema = [&[1, 0][..], &string(b"a/msg/B"), &string(encoding.as_bytes()), &string(definition)].concat();
    let channel = [&[1, 0, 1, 0][..], &string(b"/a"), &string(format), &[0; 4]].concat();
    let message = [&[1, 0][..], &[0; 4], &1_000_000_000_u64.to_le_bytes(), &[0; 8], message].concat();
    [record(3, &schema), record(4, &channel), record(5, &message)].concat()
}

fn record(opcode: u8, body: &[u8]) -> Vec<u8> {
    [&[opcode][..], &(body.len() as u64).to_le_bytes(), body].concat()
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}
