//! One program for all readers, so that they are built once: TAUT_READER says which one is tried. `fuzz/run` calls it.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use taut_readers::{READERS, Reader, named};

static READER: LazyLock<&Reader> = LazyLock::new(|| {
    let name = std::env::var("TAUT_READER").unwrap_or_default();
    named(&name).unwrap_or_else(|| {
        // For `fuzz/run`, which asks so for all of them.
        READERS.iter().for_each(|reader| println!("{} {}", reader.name, reader.longest));
        std::process::exit(0);
    })
});

fuzz_target!(init: { LazyLock::force(&READER); }, |bytes: &[u8]| (READER.read)(bytes));
