//! Foreign files: what every importer promises of any bytes is a recording that is whole, or one sentence and
//! nothing.

use std::{
    io::{Cursor, Read},
    path::Path,
};

use taut_import::{Error, Imported, Unit, bag as bags, chrome, cyclictest, hlog, jsonl, mjlib as logs, ros2};

use crate::{file, halves};

/// Runs an importer and holds it to that.
fn check(import: impl FnOnce(&Path) -> Result<Imported, Error>) {
    let to = file("imported.mcap");
    match import(&to) {
        Ok(imported) => {
            let contents = taut_recording::read(&std::fs::read(&to).expect("it was written"), &mut |_| {});
            let contents = contents.expect("a recording");
            let found = (contents.messages, contents.stamps, contents.damage.len());
            assert_eq!(found, (imported.messages, imported.stamps, 0));
            std::fs::remove_file(&to).expect("the file is ours");
        }
        Err(error) => assert!(!error.to_string().contains('\n') && !to.exists(), "{error}"),
    }
}

/// As an MCAP file, as the records of a chunk whose checksum is right, and as a definition with a message of it.
pub fn bag(bytes: &[u8]) {
    import_mcap(bytes);
    import_mcap(&[MAGIC, bytes].concat());
    import_mcap(&chunk(bytes));
    import_mcap(&packed("lz4", 1 << 16, bytes));
    for encoding in ["ros2msg", "ros2idl", "ros1msg"] {
        import_mcap(&chunk(&described(encoding, bytes)));
    }
}

const MAGIC: &[u8] = b"\x89MCAP0\r\n";

fn import_mcap(file: &[u8]) {
    check(|to| bags::import_mcap(file, to, &mut |_| {}));
}

fn chunk(records: &[u8]) -> Vec<u8> {
    packed("", records.len() as u64, records)
}

/// A chunk without a checksum.
fn packed(compression: &str, uncompressed: u64, bytes: &[u8]) -> Vec<u8> {
    let name = [&(compression.len() as u32).to_le_bytes(), compression.as_bytes()].concat();
    let length = (bytes.len() as u64).to_le_bytes();
    let body = [&[0; 16][..], &uncompressed.to_le_bytes(), &[0; 4], &name, &length, bytes].concat();
    [MAGIC, &record(6, &body)].concat()
}

/// The first half as the definition of a type, the second as a message of it.
fn described(encoding: &str, bytes: &[u8]) -> Vec<u8> {
    let (definition, message) = halves(bytes);
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

/// A database of rosbag2: seeded with a small one, or most inputs stop at its head.
pub fn sqlite(bytes: &[u8]) {
    let path = file("bag.db3");
    std::fs::write(&path, [b"SQLite format 3\0", bytes].concat()).expect("the folder is ours");
    check(|to| bags::import(&path, to, &mut |_| {}));
    std::fs::remove_file(&path).expect("the file is ours");
}

/// The metadata of a real trace.
const METADATA: &[u8] = include_bytes!(
    "../../../trace/taut-import/tests/data/ros2-caret-sample/end_to_end_sample/ust/uid/1000/64-bit/metadata"
);

/// As metadata alone, as metadata and a stream, and as a stream of a real trace's metadata.
pub fn ctf(bytes: &[u8]) {
    let (first, second) = halves(bytes);
    trace(&[b"/* CTF 1.8 */\n", bytes].concat(), &[]);
    trace(first, second);
    trace(METADATA, bytes);
}

fn trace(metadata: &[u8], stream: &[u8]) {
    let folder = file("trace");
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("the folder is ours");
    std::fs::create_dir_all(&folder).expect("a folder of ours");
    write("metadata", metadata);
    write("stream_0", stream);
    let to = folder.join(".run.mcap");
    match ros2::import(&folder, &to, &mut |_| {}) {
        Ok(imported) => {
            let contents = taut_recording::read(&std::fs::read(&to).expect("it was written"), &mut |_| {});
            let contents = contents.expect("a recording");
            assert_eq!(contents.damage.len(), 0);
            assert_eq!(contents.ending.expect("it ended").stamps, imported.stamps);
        }
        Err(error) => assert!(!error.to_string().is_empty() && !to.exists()),
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

/// As a whole file, and as schema and value of a block whose checksum is right.
pub fn mjlib(bytes: &[u8]) {
    import_log(bytes);
    import_log(&[b"TLOG0003\0", bytes].concat());
    import_log(&as_blocks(bytes));
}

fn import_log(file: &[u8]) {
    check(|to| logs::import(Cursor::new(file), file.len() as u64, to, &mut |_| {}));
}

/// The first half as a schema, the second as two values of it.
fn as_blocks(bytes: &[u8]) -> Vec<u8> {
    let (schema, value) = halves(bytes);
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

/// JSON lines, Chrome's JSON, HdrHistogram's logs, cyclictest's files.
pub fn text(bytes: &[u8]) {
    check(|to| jsonl::import(bytes, Unit::Seconds, to, &mut |_| {}));
    check(|to| hlog::import(bytes, Unit::Milliseconds, to, &mut |_| {}));
    check(|to| cyclictest::import(Cursor::new(bytes), Unit::Microseconds, to, &mut |_| {}));
    for head in ["", "[", "{\"traceEvents\":["] {
        let text = [head.as_bytes(), bytes].concat();
        let mut open = || Ok(Box::new(Cursor::new(text.clone())) as Box<dyn Read>);
        check(|to| chrome::import_from(&mut open, to, &mut |_, _| {}));
    }
}
