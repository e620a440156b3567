//! The consumer against telemetry files built by hand, as a producer, a dead one or a hostile one leaves them.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::PathBuf,
};

use proptest::prelude::*;
use taut_recording::{Ending, Info, Record};

use super::*;
use taut_skip::{Need, skip};

const SLOTS: u64 = 16;
const STRIDE: u64 = 64;
const VALUE: u32 = 16;
const RING_AT: u64 = 8192;
const LENGTH: u64 = RING_AT + SLOTS * STRIDE;
const TEXT: &str = "name\tarm\ntype\tarm_t\t16\nfield\tposition\tfloat64\t0\t0\trad\nfield\tcycle\tuint64\t0\t8\t\n";

/// A telemetry file of this process, and the session it lies in.
struct Written {
    folder: tempfile::TempDir,
    path: PathBuf,
    file: File,
}

impl Written {
    fn by(pid: u32, text: &str) -> Written {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{pid}-0.telemetry"));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(LENGTH).unwrap();
        let written = Written { folder, path, file };
        written.bytes(0, MAGIC);
        for (at, value) in [(8, 1), (12, 2), (16, pid), (24, VALUE), (28, SLOTS as u32), (STATE as u64, 1)] {
            written.bytes(at, &value.to_le_bytes());
        }
        for (at, value) in [(48, STRIDE), (56, text.len() as u64), (64, RING_AT)] {
            written.u64(at, value);
        }
        written.bytes(4096, text.as_bytes());
        written
    }

    fn by_us() -> Written {
        Written::by(std::process::id(), TEXT)
    }

    fn bytes(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).unwrap();
    }

    fn u64(&self, at: u64, value: u64) {
        self.bytes(at, &value.to_le_bytes());
    }

    fn tail(&self) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, TAIL as u64).unwrap();
        u64::from_le_bytes(bytes)
    }

    /// Values from `from` to `to`, their cycle being their position.
    fn values(&self, from: u64, to: u64) {
        for position in from..to {
            let at = RING_AT + position % SLOTS * STRIDE;
            for (word, value) in [position * 1000, position, 0.5_f64.to_bits(), position].into_iter().enumerate() {
                self.u64(at + word as u64 * 8, value);
            }
        }
        self.u64(HEAD as u64, to);
    }

    /// What a consumer that looks now writes to a recording.
    fn consumed(&self) -> (Vec<u64>, Drained) {
        let mut channels = Channels::open(self.folder.path(), false);
        let mut refused = Vec::new();
        channels.discover(&mut refused);
        assert_eq!(refused, Vec::<String>::new());
        self.drain(&mut channels)
    }

    fn drain(&self, channels: &mut Channels) -> (Vec<u64>, Drained) {
        let run = self.folder.path().join("run.mcap");
        let mut writer = Writer::create(&run, &Info::default()).unwrap();
        let drained = channels.drain(&mut writer);
        writer.finish(&Ending::default()).unwrap();
        let mut cycles = Vec::new();
        taut_recording::read(&fs::read(run).unwrap(), &mut |record| {
            if let Record::Message(message) = record {
                assert_eq!(message.data[..12], [&[0, 1, 0, 0][..], &0.5_f64.to_le_bytes()].concat());
                cycles.push(u64::from_le_bytes(message.data[12..20].try_into().unwrap()));
            }
        })
        .unwrap();
        (cycles, drained)
    }

    /// What a consumer says that looks at this file; told once.
    fn refusal(&self) -> String {
        let mut channels = Channels::open(self.folder.path(), false);
        let mut refused = Vec::new();
        channels.discover(&mut refused);
        channels.discover(&mut refused);
        assert_eq!((channels.files.len(), refused.len()), (0, 1));
        // Lost, as far as is known.
        let lost = self.drain(&mut channels).1.uncounted;
        assert_eq!((lost.len(), lost[0].what, &lost[0].why), (1, LostWhat::Telemetry, &refused[0]));
        assert_eq!((channels.unread(), channels.missing()), (vec![], lost));
        refused.remove(0)
    }
}

#[test]
fn values_are_taken_once_and_their_room_is_given_back() {
    let file = Written::by_us();
    file.values(0, 3);
    let mut channels = Channels::open(file.folder.path(), false);
    channels.discover(&mut Vec::new());
    let (cycles, drained) = file.drain(&mut channels);
    assert_eq!((cycles, drained.messages, file.tail()), (vec![0, 1, 2], 3, 3));
    assert_eq!(file.drain(&mut channels).1.messages, 0);
    assert!(file.path.exists(), "its process lives");
}

#[test]
fn a_ring_is_read_across_its_end() {
    let file = Written::by_us();
    file.u64(TAIL as u64, SLOTS - 2);
    file.values(SLOTS - 2, SLOTS + 3);
    assert_eq!(file.consumed().0, (SLOTS - 2..SLOTS + 3).collect::<Vec<_>>());
}

#[test]
fn a_late_recorder_skips_what_was_and_counts_from_now() {
    let file = Written::by_us();
    file.values(0, 5);
    file.u64(LOST as u64, 7);
    let mut channels = Channels::open(file.folder.path(), true);
    assert_eq!(file.tail(), 5);
    file.values(5, 6);
    file.u64(LOST as u64, 9);
    let (cycles, drained) = file.drain(&mut channels);
    assert_eq!(cycles, [5]);
    assert_eq!(drained.lost, [(format!("{}/arm", std::process::id()), 2)]);
}

#[test]
fn the_file_of_a_closed_channel_or_a_dead_process_goes_when_it_is_drained() {
    let closed = Written::by_us();
    closed.values(0, 2);
    closed.bytes(STATE as u64, &CLOSED.to_le_bytes());
    assert_eq!(closed.consumed().0, [0, 1]);
    assert!(!closed.path.exists());
    // No process has this pid: beyond the kernel's largest.
    let dead = Written::by(4_194_305, TEXT);
    dead.values(0, 2);
    let mut channels = Channels::open(dead.folder.path(), false);
    channels.discover(&mut Vec::new());
    channels.note_dead();
    assert_eq!(dead.drain(&mut channels).0, [0, 1]);
    assert!(!dead.path.exists());
}

#[test]
fn what_is_no_telemetry_file_is_refused_with_the_reason() {
    for (at, bytes, why) in [
        (0, &b"TAUTRING"[..], "not a telemetry file"),
        (8, &[2, 0, 0, 0], "telemetry protocol version 2, this taut knows 1"),
        (12, &[9, 0, 0, 0], "counter 9, which this machine has not"),
        (24, &[0, 0, 0, 0], "does not fit"),
        (24, &[49, 0, 0, 0], "does not fit"),
        (28, &[17, 0, 0, 0], "does not fit"),
        (28, &[0, 1, 0, 0], "does not fit"),
        (48, &[63, 0], "does not fit"),
        (56, &[255; 8], "does not fit"),
        (64, &[255; 8], "does not fit"),
        (4096, b"nope", "line 1 of its description: \"nope\\tarm\" is not understood"),
        (4096 + 9, b"tipe", "line 2 of its description"),
    ] {
        let file = Written::by_us();
        file.bytes(at, bytes);
        let refusal = file.refusal();
        assert!(refusal.contains(why), "{refusal}");
        assert!(refusal.ends_with("its telemetry is not recorded"), "{refusal}");
    }
}

#[test]
fn more_values_than_the_ring_has_are_not_believed() {
    let file = Written::by_us();
    file.values(0, 1);
    file.u64(HEAD as u64, 1000);
    let mut channels = Channels::open(file.folder.path(), false);
    channels.discover(&mut Vec::new());
    let (cycles, drained) = file.drain(&mut channels);
    assert_eq!((cycles.len(), file.tail()), (0, 1000));
    assert!(drained.refused[0].contains("\"arm\" states 1000 values in a ring of 16"), "{:?}", drained.refused);
    assert_eq!((drained.uncounted.len(), &drained.uncounted[0].why), (1, &drained.refused[0]));
    file.values(1000, 1001);
    assert_eq!(file.drain(&mut channels).0, [1000]);
}

#[test]
fn a_file_that_was_cut_short_is_given_up() {
    let file = Written::by_us();
    let mut channels = Channels::open(file.folder.path(), false);
    channels.discover(&mut Vec::new());
    file.file.set_len(4096).unwrap();
    let (_, drained) = file.drain(&mut channels);
    assert!(drained.refused[0].contains("cut short"), "{:?}", drained.refused);
    assert_eq!((drained.uncounted.len(), &drained.uncounted[0].why), (1, &drained.refused[0]));
    let mut refused = Vec::new();
    channels.discover(&mut refused);
    assert_eq!(refused, Vec::<String>::new(), "told once");
}

#[test]
fn a_name_that_is_empty_too_long_or_no_text_is_refused() {
    let refused = |name: &str| Written::by(std::process::id(), &TEXT.replacen("arm", name, 1)).refusal();
    for name in ["", " ", "a\u{1b}[2J", "a\u{9b}", &"a".repeat(NAME_BYTES + 1)] {
        assert!(refused(name).contains("control characters"), "{name:?}");
    }
}

#[test]
fn channels_without_end_are_cut_off() {
    let mut known = Described::default();
    let described = |name: &str| {
        let file = Written::by(std::process::id(), &TEXT.replacen("arm", name, 1));
        ChannelFile::open(&file.path).unwrap()
    };
    for n in 0..CHANNELS_MAX as u64 - 1 {
        known.channels.insert(n);
    }
    assert!(known.with(described("last")).is_ok());
    assert!(known.with(described("last")).is_ok(), "the same channel of another process");
    let error = known.with(described("more")).err().unwrap();
    assert!(error.to_string().contains("more than 4096 channels"), "{error}");
}

#[test]
fn ticks_without_a_calibration_wait() {
    let Some(native) = [Counter::Tsc, Counter::Cntvct].into_iter().find(is_ours) else {
        return skip(Need::Tsc, "CLOCK_MONOTONIC alone, which needs no calibration");
    };
    let file = Written::by_us();
    file.bytes(12, &(native as u32).to_le_bytes());
    file.values(0, 3);
    assert_eq!((file.consumed().1.messages, file.tail()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nonsense_in_a_file_never_panics(
        at in prop_oneof![0u64..72, 128u64..264, 4096u64..4300, RING_AT..LENGTH - 64],
        bytes in proptest::collection::vec(any::<u8>(), 1..64),
    ) {
        let file = Written::by_us();
        file.values(0, 5);
        file.bytes(at, &bytes);
        let mut channels = Channels::open(file.folder.path(), false);
        channels.discover(&mut Vec::new());
        let mut writer = Writer::create(&file.folder.path().join("run.mcap"), &Info::default()).unwrap();
        for _ in 0..3 {
            prop_assert!(channels.drain(&mut writer).messages <= 16);
        }
    }
}
