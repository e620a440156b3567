//! Foreign bytes through the importer of rosbag2's databases; seed it with a small database, or most of them stop at its head.
#![no_main]

use libfuzzer_sys::fuzz_target;
use taut_fuzz::check;
use taut_import::bag;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("taut-fuzz-{}.db3", std::process::id()));
    std::fs::write(&path, [b"SQLite format 3\0", bytes].concat()).expect("the folder is ours");
    check(|to| bag::import(&path, to, &mut |_| {}));
});
