//! Foreign bytes through the importers of text: JSON lines, Chrome's JSON, HdrHistogram's logs, cyclictest's files.
#![no_main]

use std::io::{Cursor, Read};

use libfuzzer_sys::fuzz_target;
use taut_fuzz::check;
use taut_import::{Unit, chrome, cyclictest, hlog, jsonl};

fuzz_target!(|bytes: &[u8]| {
    check(|to| jsonl::import(bytes, Unit::Seconds, to, &mut |_| {}));
    check(|to| hlog::import(bytes, Unit::Milliseconds, to, &mut |_| {}));
    check(|to| cyclictest::import(Cursor::new(bytes), Unit::Microseconds, to, &mut |_| {}));
    for head in ["", "[", "{\"traceEvents\":["] {
        let text = [head.as_bytes(), bytes].concat();
        let mut open = || Ok(Box::new(Cursor::new(text.clone())) as Box<dyn Read>);
        check(|to| chrome::import_from(&mut open, to, &mut |_, _| {}));
    }
});
