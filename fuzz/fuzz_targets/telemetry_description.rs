//! Foreign descriptions of telemetry structs, and values by them: what is accepted encodes to what its schema decodes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use taut_recording::{ros2msg::Schema, telemetry::StructLayout};

fuzz_target!(|input: (String, Vec<u8>)| {
    let (text, mut value) = input;
    value.resize(value.len().clamp(1, 4096), 0);
    let Ok(layout) = StructLayout::parse(&text, value.len()) else { return };
    let mut message = Vec::new();
    layout.encode(&value, &mut message);
    let schema = Schema::parse(&layout.schema).expect("our own schema");
    assert!(schema.decode(&message).is_some(), "{}", layout.schema);
    schema.numbers(1000);
});
