//! The consumer against files of objects built by hand, as a node, a killed one or a hostile one leaves them.

use std::{fs::File, os::unix::fs::FileExt, path::PathBuf};

use proptest::prelude::*;

use super::*;

struct Written {
    folder: tempfile::TempDir,
    path: PathBuf,
    file: File,
    length: u64,
}

impl Written {
    fn by(pid: u32) -> Written {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{pid}-0.ros"));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(4096).unwrap();
        file.write_all_at(MAGIC, 0).unwrap();
        file.write_all_at(&VERSION.to_le_bytes(), 8).unwrap();
        file.write_all_at(&pid.to_le_bytes(), 16).unwrap();
        Written { folder, path, file, length: 0 }
    }

    fn by_us() -> Written {
        Written::by(std::process::id())
    }

    fn u64(&self, at: usize, value: u64) {
        self.file.write_all_at(&value.to_le_bytes(), at as u64).unwrap();
    }

    /// Writes bytes behind what is published, and publishes them.
    fn append(&mut self, bytes: &[u8]) {
        self.file.write_all_at(bytes, 4096 + self.length).unwrap();
        self.length += bytes.len() as u64;
        self.u64(LENGTH, self.length);
    }

    fn watched(&self) -> RosObjects {
        let mut objects = RosObjects::open(self.folder.path());
        let mut refused = Vec::new();
        objects.discover(&mut refused);
        assert_eq!(refused, Vec::<String>::new());
        objects
    }

    /// What is said when it is drained once.
    fn refusal(&self) -> String {
        let mut objects = self.watched();
        let (first, second) = (objects.drain(), objects.drain());
        let (mut said, mut lost) = (first.refused, first.uncounted);
        said.extend(second.refused);
        lost.extend(second.uncounted);
        objects.discover(&mut said);
        assert_eq!(said.len(), 1, "told once: {said:?}");
        // Lost, as far as is known.
        assert_eq!((lost.len(), lost[0].what, &lost[0].why), (1, LostWhat::RosEvents, &said[0]));
        assert_eq!((objects.unread(), objects.missing()), (vec![], lost));
        said.remove(0)
    }
}

fn entry_of(object: &RosObject) -> Vec<u8> {
    let size = (ENTRY_BYTES + object.name.len() + object.text.len()).next_multiple_of(8);
    let mut bytes = Vec::new();
    bytes.extend((size as u32).to_le_bytes());
    bytes.extend((object.kind as u32).to_le_bytes());
    for word in [object.time_ns, object.handle, object.owner, object.other, object.number] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend((object.name.len() as u16).to_le_bytes());
    bytes.extend((object.text.len() as u16).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(object.name.as_bytes());
    bytes.extend(object.text.as_bytes());
    bytes.resize(size, 0);
    bytes
}

fn publisher(handle: u64, topic: &str) -> RosObject {
    RosObject {
        time_ns: 7,
        pid: std::process::id() as i32,
        kind: RosObjectKind::Publisher,
        handle,
        owner: 2,
        other: 3,
        number: 10,
        name: topic.to_owned(),
        text: String::new(),
    }
}

#[test]
fn objects_come_once_and_in_order_also_to_a_recorder_that_is_late() {
    let mut written = Written::by_us();
    let node = RosObject { kind: RosObjectKind::Node, text: "/front".into(), ..publisher(2, "camera") };
    written.append(&entry_of(&node));
    let mut early = written.watched();
    assert_eq!(early.drain().objects, std::slice::from_ref(&node));
    let long = "/".to_owned() + &"t".repeat(254);
    written.append(&[entry_of(&publisher(1, &long)), entry_of(&publisher(4, "/scan"))].concat());
    let rest = [publisher(1, &long), publisher(4, "/scan")];
    assert!(early.has_more());
    assert_eq!(early.drain().objects, rest);
    assert!(early.drain().objects.is_empty() && !early.has_more());
    assert_eq!(written.watched().drain().objects, [&[node][..], &rest].concat());
}

#[test]
fn what_is_written_and_not_published_is_not_there() {
    let mut written = Written::by_us();
    written.append(&entry_of(&publisher(1, "/a")));
    written.file.write_all_at(&entry_of(&publisher(2, "/b")), 4096 + written.length).unwrap();
    assert_eq!(written.watched().drain().objects, [publisher(1, "/a")]);
}

#[test]
fn more_than_is_taken_in_one_go_comes_with_the_next() {
    let mut written = Written::by_us();
    let one = entry_of(&publisher(1, "/scan"));
    let count = TAKE_BYTES as usize / one.len() + 10;
    written.append(&one.repeat(count));
    let mut objects = written.watched();
    let (first, second) = (objects.drain().objects.len(), objects.drain().objects.len());
    assert!(first < count && first + second == count, "{first} and {second} of {count}");
}

#[test]
fn a_dead_process_s_file_goes_when_it_is_read() {
    let mut written = Written::by(i32::MAX as u32);
    written.append(&entry_of(&publisher(1, "/scan")));
    let mut objects = written.watched();
    objects.note_dead();
    assert_eq!(objects.drain().objects.len(), 1);
    assert!(!written.path.exists());
}

#[test]
fn objects_that_had_no_room_are_counted_once() {
    let written = Written::by_us();
    written.u64(LOST, 3);
    let mut objects = written.watched();
    assert_eq!(objects.drain().lost, [(format!("process {}, objects", std::process::id()), 3)]);
    assert!(objects.drain().lost.is_empty());
}

#[test]
fn a_file_that_is_not_what_it_should_be_is_refused() {
    let mut written = Written::by_us();
    written.u64(LENGTH, MOST_BYTES + 1);
    assert!(written.refusal().contains("it states 16777217 bytes of objects"));
    written.u64(LENGTH, 64);
    assert!(written.refusal().contains("the ROS 2 names behind are missing"), "it is shorter than it states");
    written.append(&[0; 64]);
    assert!(written.refusal().contains("an entry does not fit its size"));
    let mut long = entry_of(&publisher(1, "/a"));
    long[..4].copy_from_slice(&2048_u32.to_le_bytes());
    let mut written = Written::by_us();
    written.append(&long);
    assert!(written.refusal().contains("an entry is longer than what is published"));
    written.file.write_all_at(b"TAUTWHAT", 0).unwrap();
    let (mut objects, mut refused) = (RosObjects::open(written.folder.path()), Vec::new());
    objects.discover(&mut refused);
    assert!(refused[0].contains("not a file of ROS 2 objects"), "{refused:?}");
    assert_eq!(objects.drain().uncounted[0].why, refused[0]);
}

#[test]
fn a_file_that_is_cut_is_refused() {
    let mut written = Written::by_us();
    written.append(&entry_of(&publisher(1, "/a")));
    let mut objects = written.watched();
    objects.drain();
    written.append(&entry_of(&publisher(2, "/b")));
    written.file.set_len(4096).unwrap();
    let drained = objects.drain();
    assert!(drained.objects.is_empty() && drained.refused.len() == 1, "{drained:?}");
}

proptest! {
    /// Whatever the bytes are, what is read of them lies inside of them.
    #[test]
    fn any_bytes_are_entries_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        let mut written = Written::by_us();
        written.append(&bytes);
        let mut objects = written.watched();
        let drained = objects.drain();
        prop_assert!(drained.objects.len() * ENTRY_BYTES <= bytes.len());
    }

    /// Also where one field alone is wrong.
    #[test]
    fn a_damaged_entry_is_refused_or_read(at in 0_usize..64, byte in any::<u8>()) {
        let mut bytes = [entry_of(&publisher(1, "/scan")), entry_of(&publisher(2, "/map"))].concat();
        bytes[at] = byte;
        let mut written = Written::by_us();
        written.append(&bytes);
        let drained = written.watched().drain();
        prop_assert!(drained.objects.len() == 2 || !drained.refused.is_empty() || drained.objects.len() == 1);
    }
}
