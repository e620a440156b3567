//! Session directories: files that another process writes while they are read. The input is a program that changes a sound
//! file step by step, between the consumer's looks and by cutting the file under it.

use std::{
    fs::File,
    os::unix::fs::{DirBuilderExt, FileExt},
    path::{Path, PathBuf},
};

use taut_capture::{
    recorder_of,
    rings::{Drained, Session},
    ros_objects::RosObjects,
    telemetry::Channels,
};
use taut_recording::{Ending, Info, Writer};

const PAGE: usize = 4096;

/// A session directory with one file in it.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new() -> Folder {
        let path = crate::file("session");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).expect("a folder of ours");
        Folder { path }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.path).expect("the folder is ours");
    }
}

/// What the writer does next.
enum Step {
    /// Writes a word at a multiple of eight bytes.
    Word(u64, u64),
    /// Writes bytes there.
    Bytes(u64, [u8; 8]),
    /// Makes the file so long.
    Length(u64),
    /// Lets the consumer look: in one of several ways.
    Look(u8),
}

/// Three bytes and what belongs to them: kind, place.
fn steps(bytes: &[u8]) -> impl Iterator<Item = Step> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (head, after) = rest.split_first_chunk::<3>()?;
        let at = u64::from(u16::from_le_bytes([head[1], head[2]])) * 8;
        let (kind, with) = (head[0], after.first_chunk::<8>());
        rest = after.get(8..).filter(|_| kind % 8 < 5).unwrap_or(after);
        Some(match kind % 8 {
            0 | 1 => Step::Word(decisive(at / 8), with.map_or(0, |with| u64::from_le_bytes(*with) >> (kind / 8 * 2))),
            2 | 3 => Step::Word(at, with.map_or(1, |with| u64::from_le_bytes(*with))),
            4 => Step::Bytes(at, with.copied().unwrap_or(*b"<script>")),
            5 => Step::Length(at),
            _ => Step::Look(kind / 8),
        })
    })
}

/// One of the words that decide: of the header, or of the slots.
fn decisive(word: u64) -> u64 {
    let slots = SLOTS as u64 * 32;
    match word % (40 + slots) {
        header @ 0..40 => header * 8,
        slot => SLOTS_AT as u64 + (slot - 40) * 8,
    }
}

fn act(file: &File, step: &Step) {
    // A write behind the file's end makes it long again, as a producer may.
    match step {
        Step::Word(at, value) => file.write_all_at(&value.to_le_bytes(), *at).expect("our file"),
        Step::Bytes(at, bytes) => file.write_all_at(bytes, *at).expect("our file"),
        Step::Length(bytes) => file.set_len(*bytes).expect("our file"),
        Step::Look(_) => {}
    }
}

fn written(path: &Path, bytes: &[u8]) -> File {
    std::fs::write(path, bytes).expect("the folder is ours");
    File::options().read(true).write(true).open(path).expect("it was written")
}

fn set(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

const SLOTS: usize = 4;
const RECORDS: usize = 64;
const NAMES: usize = 16;
const SLOTS_AT: usize = PAGE + NAMES * 128;
const RINGS_AT: usize = 2 * PAGE;

/// A ring file of this process, as docs/reference/protocol.md has it, with a name and two open slots that hold records.
fn ring_file() -> Vec<u8> {
    let mut file = vec![0; RINGS_AT + SLOTS * PAGE];
    set(&mut file, 0, b"TAUTRING");
    for (at, value) in
        [(8, 1), (12, 2), (16, std::process::id()), (20, SLOTS as u32), (24, RECORDS as u32), (28, NAMES as u32)]
    {
        set(&mut file, at, &value.to_le_bytes());
    }
    for (at, value) in [(48, PAGE), (56, SLOTS_AT), (64, RINGS_AT), (72, PAGE)] {
        set(&mut file, at, &(value as u64).to_le_bytes());
    }
    set(&mut file, PAGE, &8_u32.to_le_bytes());
    set(&mut file, PAGE + 8, b"arm.read");
    for slot in 0..2 {
        let at = SLOTS_AT + slot * 256;
        set(&mut file, at, &1_u32.to_le_bytes());
        set(&mut file, at + 4, &std::process::id().to_le_bytes());
        set(&mut file, at + 64, &(3 + slot as u64).to_le_bytes());
        for record in 0..3 + slot {
            let words = [1000 + record as u64, record as u64, 1 | 1 << 32, 0];
            let at = RINGS_AT + slot * PAGE + record * 32;
            words.iter().enumerate().for_each(|(word, value)| set(&mut file, at + word * 8, &value.to_le_bytes()));
        }
    }
    file
}

/// The consumer of stamps against a producer that writes what it likes when it likes.
pub fn rings(bytes: &[u8]) {
    let folder = Folder::new();
    let mut ring = ring_file();
    // Of ROS 2 events.
    if bytes.first().is_some_and(|byte| byte % 4 > 1) {
        set(&mut ring, 8, &2_u32.to_le_bytes());
        set(&mut ring, 80, &1_u32.to_le_bytes());
        let records: [[u64; 4]; 2] = [[1000, 7, 5 | 1 << 8 | 9 << 32, 1], [1000, 2, 10 << 32, 3]];
        for (word, value) in records.iter().flatten().enumerate() {
            set(&mut ring, RINGS_AT + word * 8, &value.to_le_bytes());
        }
    }
    let file = written(&folder.path.join(format!("{}-0.taut", std::process::id())), &ring);
    let is_late = bytes.first().is_some_and(|byte| byte % 2 == 1);
    let mut session = if is_late { Session::open_late(&folder.path) } else { Session::open(&folder.path) };
    let session = session.as_mut().expect("a folder of ours");
    let mut names = 0;
    let mut seen = |session: &mut Session, drained: Drained| {
        names += session.names().take_fresh().len();
        for batch in drained.batches {
            let n = batch.ticks.len();
            assert!((1..=65_536).contains(&n) && batch.ticks.is_sorted());
            assert_eq!([batch.message_id.len(), batch.point.len(), batch.kind.len(), batch.value.len()], [n; 4]);
            assert!(batch.point.iter().all(|point| *point as usize <= names));
        }
        for batch in drained.ros {
            let n = batch.ticks.len();
            assert!((1..=65_536).contains(&n) && batch.ticks.is_sorted());
            let columns = [&batch.handle, &batch.arg0, &batch.arg1, &batch.arg2].map(Vec::len);
            assert_eq!((batch.event.len(), columns), (n, [n; 4]));
        }
    };
    for step in steps(bytes) {
        act(&file, &step);
        let Step::Look(how) = step else { continue };
        let mut drained = Drained::default();
        match how % 8 {
            0..4 => session.discover(&mut drained),
            4 => drained = session.reap(),
            5 if how > 24 => session.seal(),
            _ => {}
        }
        seen(session, drained);
        let drained = session.drain();
        seen(session, drained);
    }
    for _ in 0..2 {
        let mut drained = Drained::default();
        session.discover(&mut drained);
        seen(session, drained);
        let drained = session.drain();
        seen(session, drained);
        let drained = session.reap();
        seen(session, drained);
    }
}

const DESCRIPTION: &[u8] =
    b"name\tarm\ntype\tarm_t\t16\nfield\tposition\tfloat64\t0\t0\trad\nfield\tcycle\tuint64\t0\t8\t\n";

/// A telemetry file of this process with two values.
fn telemetry_file() -> Vec<u8> {
    let mut file = vec![0; 2 * PAGE + 16 * 64];
    set(&mut file, 0, b"TAUTTELE");
    for (at, value) in [(8, 1), (12, 2), (16, std::process::id()), (24, 16), (28, 16), (128, 1)] {
        set(&mut file, at, &value.to_le_bytes());
    }
    for (at, value) in [(48, 64), (56, DESCRIPTION.len() as u64), (64, 2 * PAGE as u64), (192, 2)] {
        set(&mut file, at, &value.to_le_bytes());
    }
    set(&mut file, PAGE, DESCRIPTION);
    file
}

/// The consumer of telemetry, likewise. What it writes must be a recording.
pub fn telemetry(bytes: &[u8]) {
    let folder = Folder::new();
    let file = written(&folder.path.join(format!("{}-0.telemetry", std::process::id())), &telemetry_file());
    let run = crate::file("telemetry.mcap");
    let mut writer = Writer::create(&run, &Info::default()).expect("a file of ours");
    let mut channels = Channels::open(&folder.path, bytes.first().is_some_and(|byte| byte % 2 == 1));
    let (mut messages, mut refused) = (0, Vec::new());
    for step in steps(bytes) {
        act(&file, &step);
        if let Step::Look(how) = step {
            if how % 4 == 0 {
                channels.discover(&mut refused);
            }
            if how % 4 == 1 {
                channels.note_dead();
            }
            messages += channels.drain(&mut writer).messages;
        }
    }
    channels.discover(&mut refused);
    messages += channels.drain(&mut writer).messages;
    writer.finish(&Ending::default()).expect("a file of ours");
    let contents = taut_recording::read(&std::fs::read(&run).expect("it was written"), &mut |_| {});
    let contents = contents.expect("a recording");
    std::fs::remove_file(&run).expect("the file is ours");
    assert_eq!((contents.messages, contents.damage.len()), (messages, 0));
}

/// A file of ROS 2 objects of this process, with two of them.
fn objects_file() -> Vec<u8> {
    let mut file = vec![0; 2 * PAGE];
    set(&mut file, 0, b"TAUTROSO");
    for (at, value) in [(8, 1), (16, std::process::id())] {
        set(&mut file, at, &value.to_le_bytes());
    }
    for (number, name) in [b"camera--", b"/scan---"].into_iter().enumerate() {
        let at = PAGE + number * 64;
        set(&mut file, at, &64_u32.to_le_bytes());
        set(&mut file, at + 4, &(2 + number as u32).to_le_bytes());
        set(&mut file, at + 48, &(name.len() as u16).to_le_bytes());
        set(&mut file, at + 56, name);
    }
    set(&mut file, 128, &128_u64.to_le_bytes());
    file
}

/// The consumer of descriptions of ROS 2 handles, likewise.
pub fn objects(bytes: &[u8]) {
    let folder = Folder::new();
    let file = written(&folder.path.join(format!("{}-0.ros", std::process::id())), &objects_file());
    let (mut objects, mut refused) = (RosObjects::open(&folder.path), Vec::new());
    let drain = |objects: &mut RosObjects| {
        let drained = objects.drain();
        // One file, of which 1 MiB is read in one go; an entry has 56 bytes at least, and texts of 1000 of which each may be shown as 3.
        assert!(drained.objects.len() <= (1 << 20) / 56);
        assert!(drained.objects.iter().all(|object| object.name.len().max(object.text.len()) <= 3000));
        drained.refused
    };
    for step in steps(bytes) {
        act(&file, &step);
        if let Step::Look(how) = step {
            if how % 4 == 0 {
                objects.discover(&mut refused);
            }
            if how % 4 == 1 {
                objects.note_dead();
            }
            objects.has_more();
            refused.extend(drain(&mut objects));
        }
    }
    objects.discover(&mut refused);
    refused.extend(drain(&mut objects));
    assert!(refused.iter().all(|line| !line.contains('\n')), "{refused:?}");
}

/// The note that a recorder leaves, as another program left it.
pub fn note(bytes: &[u8]) {
    let folder = Folder::new();
    for head in [&b""[..], b"taut recorder 1\n1\n"] {
        std::fs::write(folder.path.join("recorder"), [head, bytes].concat()).expect("the folder is ours");
        recorder_of(&folder.path);
    }
}
