//! Every reader of foreign bytes that taut has, as one function each, which hands it the bytes and holds what it promises:
//! no panic, nothing endless, no memory beyond the input's measure, and an answer that agrees with itself.
//!
//! `fuzz/run` has libFuzzer call them with generated inputs; `tests/corpus.rs` calls them with the inputs that were
//! kept. SECURITY.md lists them, with who writes those bytes.

mod devices;
mod imports;
mod recordings;
mod servers;
mod sessions;
mod texts;

use std::sync::atomic::{AtomicU32, Ordering};

/// A reader by its name.
#[derive(Clone, Copy)]
pub struct Reader {
    /// Also of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Panics where a promise is broken.
    pub read: fn(&[u8]),
    /// Longest input that is worth trying, in bytes.
    pub longest: usize,
}

const fn reader(name: &'static str, longest: usize, read: fn(&[u8])) -> Reader {
    Reader { name, read, longest }
}

/// All of them.
pub const READERS: &[Reader] = &[
    reader("session_rings", 4096, sessions::rings),
    reader("session_telemetry", 4096, sessions::telemetry),
    reader("session_objects", 4096, sessions::objects),
    reader("session_note", 512, sessions::note),
    reader("read_recording", 16_384, recordings::whole),
    reader("follow_recording", 16_384, recordings::followed),
    reader("recording_log", 16_384, recordings::log),
    reader("report_recording", 16_384, recordings::reported),
    reader("export_recording", 16_384, recordings::exported),
    reader("join_recordings", 16_384, recordings::joined),
    reader("channel_numbers", 8192, recordings::numbers),
    reader("telemetry_description", 65_536, recordings::description),
    reader("message_schema", 8192, recordings::schema),
    reader("import_bag", 8192, imports::bag),
    reader("import_sqlite", 16_384, imports::sqlite),
    reader("import_ctf", 8192, imports::ctf),
    reader("import_mjlib", 8192, imports::mjlib),
    reader("import_text", 4096, imports::text),
    reader("kernel_events", 8192, devices::kernel_events),
    reader("symbol_tables", 16_384, devices::symbol_tables),
    reader("bus_lines", 4096, devices::bus_lines),
    reader("servo_frames", 2048, devices::servo_frames),
    reader("metrics_request", 8192, servers::metrics_request),
    reader("viewer_messages", 4096, servers::viewer_messages),
    reader("settings_file", 8192, texts::settings),
    reader("fleet_answer", 16_384, texts::fleet_answer),
    reader("machine_file", 16_384, texts::machine),
    reader("lab_file", 8192, texts::lab),
    reader("lab_output", 4096, texts::lab_output),
    reader("lab_manifest", 8192, texts::lab_manifest),
    reader("budget_file", 8192, texts::budget),
    reader("guard_file", 4096, texts::guard),
    reader("truth_series", 4096, texts::truth),
    reader("tune_journal", 4096, texts::journal),
    reader("gate_trials", 8192, texts::trials),
    reader("gate_history", 16_384, texts::history),
    reader("interval_log", 4096, texts::interval_log),
];

/// The reader of that name.
pub fn named(name: &str) -> Option<&'static Reader> {
    READERS.iter().find(|reader| reader.name == name)
}

/// The two halves of an input, for readers of two texts.
fn halves(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len() / 2)
}

/// A file of this thread for what goes by the disk; the same each time, in memory where `TMPDIR` is there.
fn file(name: &str) -> std::path::PathBuf {
    static THREADS: AtomicU32 = AtomicU32::new(0);
    thread_local! { static THREAD: u32 = THREADS.fetch_add(1, Ordering::Relaxed); }
    let thread = THREAD.with(|thread| *thread);
    std::env::temp_dir().join(format!("taut-readers-{}-{thread}-{name}", std::process::id()))
}
