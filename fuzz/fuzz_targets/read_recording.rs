//! Foreign bytes through the reader, in two ways: as a whole file, and as the records inside a chunk
//! whose length, compression and checksum are right, since no fuzzer guesses a checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use taut_recording::{Record, read, recover};

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    check(&in_a_chunk(bytes));
});

fn check(file: &[u8]) {
    let (mut stamps, mut kernel_events) = (0, 0);
    let contents = read(file, &mut |record| match record {
        Record::Stamps(batch) => {
            let lengths = [batch.message_id.len(), batch.point.len(), batch.kind.len(), batch.value.len()];
            assert_eq!(lengths, [batch.ticks.len(); 4]);
            stamps += batch.ticks.len() as u64;
        }
        Record::Kernel(batch) => {
            assert_eq!([batch.event.len(), batch.tid.len(), batch.arg2.len()], [batch.time_ns.len(); 3]);
            kernel_events += batch.time_ns.len() as u64;
        }
        _ => {}
    });
    let Ok(contents) = contents else { return };
    assert_eq!((contents.stamps, contents.kernel_events), (stamps, kernel_events));
    contents.damage.iter().for_each(|damage| assert!(!damage.to_string().is_empty()));
    recovers(file, stamps, kernel_events);
}

/// What is recovered is whole, and all that could be read. One file in 64, because it goes by the disk.
fn recovers(file: &[u8], stamps: u64, kernel_events: u64) {
    if crc32fast::hash(file) % 64 != 0 {
        return;
    }
    let to = std::env::temp_dir().join(format!("taut-fuzz-{}.mcap", std::process::id()));
    let recovered = recover(file, &to).expect("what reads recovers");
    assert_eq!((recovered.stamps, recovered.kernel_events), (stamps, kernel_events));
    let clean = read(&std::fs::read(&to).expect("the clean file"), &mut |_| {}).expect("a recording");
    std::fs::remove_file(&to).expect("the clean file is ours");
    assert_eq!((clean.stamps, clean.kernel_events, clean.damage.len()), (stamps, kernel_events, 0));
}

fn in_a_chunk(records: &[u8]) -> Vec<u8> {
    let compressed = zstd::bulk::compress(records, 1).expect("compresses");
    let mut file = b"\x89MCAP0\r\n".to_vec();
    file.push(0x06);
    file.extend((44 + compressed.len() as u64).to_le_bytes());
    file.extend([0; 16]);
    file.extend((records.len() as u64).to_le_bytes());
    file.extend(crc32fast::hash(records).to_le_bytes());
    file.extend(b"\x04\0\0\0zstd");
    file.extend((compressed.len() as u64).to_le_bytes());
    file.extend(compressed);
    file
}
