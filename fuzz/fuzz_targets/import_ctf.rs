//! Foreign bytes through the CTF importer: as metadata alone, as metadata and a stream, and as a stream of a real trace's
//! metadata.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use taut_import::ros2;

const METADATA: &[u8] = include_bytes!(
    "../../trace/taut-import/tests/data/ros2-caret-sample/end_to_end_sample/ust/uid/1000/64-bit/metadata"
);

fuzz_target!(|bytes: &[u8]| {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    check(&[b"/* CTF 1.8 */\n", bytes].concat(), &[]);
    check(first, second);
    check(METADATA, bytes);
});

fn check(metadata: &[u8], stream: &[u8]) {
    let folder = std::env::temp_dir().join(format!("taut-fuzz-ctf-{}", std::process::id()));
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("the folder is ours");
    std::fs::create_dir_all(&folder).expect("a folder of ours");
    write("metadata", metadata);
    write("stream_0", stream);
    let to = Path::new(&folder).join(".run.mcap");
    match ros2::import(&folder, &to, &mut |_| {}) {
        Ok(imported) => {
            let contents = taut_recording::read(&std::fs::read(&to).expect("it was written"), &mut |_| {});
            let contents = contents.expect("a recording");
            assert_eq!(contents.damage.len(), 0);
            assert_eq!(contents.ending.expect("it ended").stamps, imported.stamps);
            std::fs::remove_file(&to).expect("the file is ours");
        }
        Err(error) => assert!(!error.to_string().is_empty() && !to.exists()),
    }
}
