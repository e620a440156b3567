//! The consumer against ring files built by hand, as a producer, a killed one or a hostile one leaves them.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use proptest::{prelude::*, sample::Index};

use super::*;
use taut_skip::{Need, skip};

const SLOTS: u64 = 2;
const RECORDS: u64 = 64;
const NAMES: u64 = 4;
const NAMES_AT: u64 = 4096;
const SLOTS_AT: u64 = 4096 + NAMES * 128 + 512;
const RINGS_AT: u64 = 8192;
const STRIDE: u64 = 4096;
const LENGTH: u64 = RINGS_AT + SLOTS * STRIDE;

const HEAD: u64 = 64;
const LOST: u64 = 72;
const TAIL: u64 = 128;

/// A ring file of this process, and the session it lies in.
struct Written {
    folder: tempfile::TempDir,
    path: PathBuf,
    file: File,
}

impl Written {
    fn by(pid: u32) -> Written {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{pid}-0.taut"));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(LENGTH).unwrap();
        let written = Written { folder, path, file };
        written.bytes(0, MAGIC);
        for (at, value) in [(8, 1), (12, 2), (16, pid), (20, SLOTS as u32), (24, RECORDS as u32), (28, NAMES as u32)] {
            written.u32(at, value);
        }
        for (at, value) in [(48, NAMES_AT), (56, SLOTS_AT), (64, RINGS_AT), (72, STRIDE)] {
            written.u64(at, value);
        }
        written
    }

    fn by_us() -> Written {
        Written::by(std::process::id())
    }

    fn bytes(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).unwrap();
    }

    fn u32(&self, at: u64, value: u32) {
        self.bytes(at, &value.to_le_bytes());
    }

    fn u64(&self, at: u64, value: u64) {
        self.bytes(at, &value.to_le_bytes());
    }

    fn read_u64(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn name(&self, id: u64, name: &str) {
        let at = NAMES_AT + (id - 1) * 128;
        self.bytes(at + 8, name.as_bytes());
        self.u32(at, name.len() as u32);
    }

    /// An open slot of a thread, with its ring filled from `tail` to `head`: message id = position.
    fn slot(&self, slot: u64, tid: i32, tail: u64, head: u64) {
        let at = SLOTS_AT + slot * 256;
        for position in tail..head {
            self.record(slot, position, [position * 10, position, 1 | 1 << 32, 0]);
        }
        self.u32(at, OPEN);
        self.u32(at + 4, tid as u32);
        self.u64(at + HEAD, head);
        self.u64(at + TAIL, tail);
    }

    fn record(&self, slot: u64, position: u64, words: [u64; 4]) {
        let at = RINGS_AT + slot * STRIDE + position % RECORDS * 32;
        words.iter().enumerate().for_each(|(i, word)| self.u64(at + i as u64 * 8, *word));
    }

    fn at_slot(&self, slot: u64, field: u64) -> u64 {
        self.read_u64(SLOTS_AT + slot * 256 + field)
    }

    fn state(&self, slot: u64) -> u32 {
        self.at_slot(slot, 0) as u32
    }

    fn session(&self) -> Session {
        let mut session = Session::open(self.folder.path()).unwrap();
        let mut drained = Drained::default();
        session.discover(&mut drained);
        assert_eq!(drained.refused, Vec::<String>::new());
        session
    }

    /// What a consumer says that looks at this file.
    fn refusal(&self) -> String {
        let mut session = Session::open(self.folder.path()).unwrap();
        let mut drained = Drained::default();
        session.discover(&mut drained);
        assert!(session.pids().is_empty());
        session.discover(&mut drained);
        assert_eq!((drained.refused.len(), drained.uncounted.len()), (1, 1), "told once");
        // Lost, as far as is known.
        let lost = drained.uncounted.remove(0);
        let name = self.path.file_stem().unwrap().to_str().unwrap();
        assert_eq!((lost.what, lost.place.as_str(), &lost.why), (LostWhat::Stamps, name, &drained.refused[0]));
        assert_eq!((session.unread(), session.missing().len()), (vec![], 1));
        drained.refused.remove(0)
    }
}

fn own_tid() -> i32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::gettid() }
}

fn ids(drained: &Drained) -> Vec<u64> {
    drained.batches.iter().flat_map(|batch| batch.message_id.clone()).collect()
}

#[test]
fn records_are_taken_once_and_their_room_is_given_back() {
    let file = Written::by_us();
    file.name(1, "arm.read");
    file.slot(0, 77, 0, 3);
    let mut session = file.session();
    let drained = session.drain();
    assert_eq!((drained.batches[0].tid, &drained.batches[0].ticks), (77, &vec![0, 10, 20]));
    assert_eq!(drained.batches[0].counter, Counter::Monotonic as u8);
    assert_eq!(session.names().take_fresh(), [Name { id: 1, name: "arm.read".into() }]);
    assert_eq!(file.at_slot(0, TAIL), 3);
    assert!(session.drain().batches.is_empty());
}

#[test]
fn a_ring_is_read_across_its_end() {
    let file = Written::by_us();
    file.slot(0, 77, RECORDS - 2, RECORDS + 3);
    assert_eq!(ids(&file.session().drain()), (RECORDS - 2..RECORDS + 3).collect::<Vec<_>>());
}

#[test]
fn a_full_ring_is_taken_whole() {
    let file = Written::by_us();
    file.slot(0, 77, 5, 5 + RECORDS);
    assert_eq!(ids(&file.session().drain()).len() as u64, RECORDS);
}

#[test]
fn equal_names_of_two_ids_and_two_files_are_one() {
    let [one, other] = [Written::by_us(), Written::by(1)];
    one.name(1, "lift");
    one.name(2, "lift");
    other.name(1, "grip");
    other.name(2, "lift");
    for file in [&one, &other] {
        file.slot(0, 7, 0, 0);
        file.record(0, 0, [1, 1, 1 | 1 << 32, 0]);
        file.record(0, 1, [2, 1, 2 | 1 << 32, 0]);
        file.u64(SLOTS_AT + HEAD, 2);
    }
    fs::copy(&other.path, one.folder.path().join("1-0.taut")).unwrap();
    let mut session = one.session();
    let drained = session.drain();
    let names: HashMap<u32, String> = session.names().take_fresh().into_iter().map(|n| (n.id, n.name)).collect();
    let point = |pid: i32| -> Vec<&str> {
        let batch = drained.batches.iter().find(|b| b.pid == pid).unwrap();
        batch.point.iter().map(|id| names[id].as_str()).collect()
    };
    assert_eq!((point(std::process::id() as i32), point(1)), (vec!["lift", "lift"], vec!["grip", "lift"]));
    assert_eq!(names.len(), 2);
}

#[test]
fn an_outcome_carries_the_reasons_number() {
    let file = Written::by_us();
    file.name(3, "speed_limit");
    file.slot(0, 7, 0, 0);
    file.record(0, 0, [1, 9, 4 << 32, 3]);
    file.u64(SLOTS_AT + HEAD, 1);
    let mut session = file.session();
    let drained = session.drain();
    assert_eq!((drained.batches[0].point[0], drained.batches[0].value[0]), (0, 1));
    assert_eq!(session.names().take_fresh()[0].name, "speed_limit");
}

#[test]
fn an_unknown_kind_never_looks_like_a_known_one() {
    let file = Written::by_us();
    file.slot(0, 7, 0, 0);
    file.record(0, 0, [1, 9, 0x0101 << 32, 5]);
    file.record(0, 1, [1, 9, 0x42 << 32, 5]);
    file.u64(SLOTS_AT + HEAD, 2);
    let batch = file.session().drain().batches.remove(0);
    assert_eq!((batch.kind, batch.value), (vec![u8::MAX, 0x42], vec![5, 5]));
}

#[test]
fn names_that_are_not_there_are_no_name() {
    let file = Written::by_us();
    file.name(2, "long");
    file.u32(NAMES_AT + 128, 121);
    file.slot(0, 7, 0, 0);
    // Not published, longer than the entry, beyond the table, the largest id there is.
    for (position, id) in [1, 2, NAMES + 1, u64::from(u32::MAX)].into_iter().enumerate() {
        file.record(0, position as u64, [1, 9, id | 1 << 32, 0]);
    }
    file.u64(SLOTS_AT + HEAD, 4);
    assert_eq!(file.session().drain().batches[0].point, [0; 4]);
}

#[test]
fn a_name_that_is_no_text_is_kept_readable() {
    let file = Written::by_us();
    file.bytes(NAMES_AT + 8, b"a\xffb");
    file.u32(NAMES_AT, 3);
    file.slot(0, 7, 0, 1);
    let mut session = file.session();
    session.drain();
    assert_eq!(session.names().take_fresh()[0].name, "a\u{fffd}b");
}

#[test]
fn losses_are_told_as_they_grow() {
    let file = Written::by_us();
    file.slot(1, 77, 0, 0);
    let mut session = file.session();
    let us = std::process::id();
    file.u64(SLOTS_AT + 256 + LOST, 4);
    file.u64(192, 2);
    file.u64(200, 1);
    let expected =
        [(format!("{us}/77"), 4), (format!("process {us}, no ring"), 2), (format!("process {us}, name table full"), 1)];
    assert_eq!(session.drain().lost, expected);
    assert_eq!(session.drain().lost, []);
    file.u64(SLOTS_AT + 256 + LOST, 9);
    assert_eq!(session.drain().lost, [(format!("{us}/77"), 5)]);
}

#[test]
fn a_late_consumer_counts_from_now() {
    let file = Written::by_us();
    file.slot(0, 77, 0, 9);
    file.u64(SLOTS_AT + LOST, 4);
    file.u64(192, 2);
    let mut session = Session::open_late(file.folder.path()).unwrap();
    let drained = session.drain();
    assert!(drained.batches.is_empty() && drained.lost.is_empty());
    assert_eq!(file.at_slot(0, TAIL), 9);
    file.slot(0, 77, 9, 11);
    assert_eq!(ids(&session.drain()), [9, 10]);
}

#[test]
fn a_late_consumer_still_learns_the_names_of_locks() {
    let file = Written::by_us();
    file.name(1, "sdk_lock");
    file.slot(0, 77, 0, 9);
    let kind = u64::from(Kind::LockNamed as u8);
    file.record(0, 4, [40, 24, 1 | kind << 32, 0x7f00]);
    let drained = Session::open_late(file.folder.path()).unwrap().drain();
    let batch = &drained.batches[0];
    assert_eq!((batch.tid, &batch.message_id, &batch.value), (77, &vec![24], &vec![0x7f00]));
    assert_eq!(drained.batches.len(), 1);
}

#[test]
fn a_closed_slot_is_freed_when_it_is_empty() {
    let file = Written::by_us();
    file.slot(0, 77, 0, 2);
    file.u32(SLOTS_AT, CLOSED);
    assert_eq!(ids(&file.session().drain()), [0, 1]);
    assert_eq!(file.state(0), FREE);
}

#[test]
fn the_slot_of_a_killed_thread_is_freed_and_a_living_ones_is_not() {
    let file = Written::by_us();
    let gone = std::thread::spawn(own_tid).join().unwrap();
    while Path::new(&format!("/proc/self/task/{gone}")).exists() {
        std::thread::yield_now();
    }
    file.slot(0, gone, 0, 2);
    file.slot(1, own_tid(), 0, 2);
    let mut session = file.session();
    session.reap();
    assert_eq!(ids(&session.drain()), [0, 1, 0, 1]);
    assert_eq!((file.state(0), file.state(1)), (FREE, OPEN));
}

#[test]
fn the_file_of_a_dead_process_is_drained_and_removed() {
    let mut child = sleeper();
    let file = Written::by(child.id());
    file.slot(0, 77, 0, 3);
    let mut session = file.session();
    assert!(session.reap().batches.is_empty() && file.path.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ids(&session.reap()), [0, 1, 2]);
    assert!(!file.path.exists());
    assert_eq!((session.pids(), session.processes()), (vec![], 1));
}

#[test]
fn a_reused_pid_is_another_process() {
    let file = Written::by_us();
    file.u64(32, 1);
    let mut session = file.session();
    session.reap();
    assert!(!file.path.exists(), "a process of another start time made it and is gone");
}

#[test]
fn a_process_of_an_unknown_namespace_is_not_taken_for_dead() {
    // No process has this pid here; in its own namespace it may live.
    let file = Written::by(4_194_304);
    file.u64(40, 1);
    file.slot(0, 77, 0, 3);
    let mut session = file.session();
    for _ in 0..2 * crate::owner::LOOKS_FOR_PID {
        session.reap();
    }
    assert!(file.path.exists());
    assert_eq!(ids(&session.drain()), [0, 1, 2]);
}

#[test]
fn more_records_than_the_ring_has_are_told_once_and_not_believed() {
    let file = Written::by_us();
    file.slot(0, 77, 0, 0);
    let mut session = file.session();
    file.u64(SLOTS_AT + HEAD, RECORDS + 1);
    let drained = session.drain();
    assert_eq!((drained.refused.len(), drained.batches.len()), (1, 0));
    let us = std::process::id();
    let of = |lost: &Uncounted| (lost.what, lost.place.clone());
    assert_eq!(
        drained.uncounted.iter().map(of).collect::<Vec<_>>(),
        [(LostWhat::Stamps, format!("process {us}, slot 0"))]
    );
    file.u64(SLOTS_AT + HEAD, 3 * RECORDS + 1);
    let drained = session.drain();
    assert_eq!((drained.refused.len(), drained.uncounted.len()), (0, 0));
    file.slot(0, 77, 3 * RECORDS + 1, 3 * RECORDS + 2);
    assert_eq!(ids(&session.drain()), [3 * RECORDS + 1]);
}

#[test]
fn a_tail_that_somebody_else_moved_is_ignored() {
    let file = Written::by_us();
    file.slot(0, 77, 0, 3);
    let mut session = file.session();
    session.drain();
    file.u64(SLOTS_AT + TAIL, 0);
    assert!(session.drain().batches.is_empty());
}

#[test]
fn positions_may_run_over() {
    let file = Written::by_us();
    file.slot(0, 77, 0, 0);
    file.u64(SLOTS_AT + TAIL, u64::MAX - 1);
    file.u64(SLOTS_AT + HEAD, 2);
    assert_eq!(ids(&file.session().drain()).len(), 4);
    assert_eq!(file.at_slot(0, TAIL), 2);
}

#[test]
fn a_file_that_is_cut_short_is_told_and_left() {
    let file = Written::by_us();
    file.slot(0, 77, 0, 3);
    let mut session = file.session();
    file.file.set_len(5000).unwrap();
    let drained = session.drain();
    assert!(drained.refused[0].contains("cut short"));
    assert_eq!((drained.uncounted.len(), &drained.uncounted[0].why), (1, &drained.refused[0]), "its stamps are lost");
    let mut again = session.drain();
    session.discover(&mut again);
    assert!(again.refused.is_empty() && again.uncounted.is_empty() && session.pids().is_empty());
}

#[test]
fn headers_that_the_protocol_does_not_know_are_refused() {
    let refused = |at: u64, value: u32, why: &str| {
        let file = Written::by_us();
        file.u32(at, value);
        let refusal = file.refusal();
        assert!(refusal.contains(why) && refusal.contains("-0.taut"), "{at}: {refusal}");
    };
    refused(0, 0, "not a ring file");
    refused(8, 3, "protocol version 3");
    refused(12, 9, "counter 9");
    refused(12, 0x101, "counter 257");
    for (at, value) in [
        (20, 0),
        (20, SLOTS as u32 + 1),
        (20, SLOTS_MAX + 1),
        (28, NAMES_MAX + 1),
        (20, u32::MAX),
        (24, 63),
        (24, 0),
        (24, 256),
        (24, 1 << 31),
        (28, 0),
        (28, 1 << 30),
        (48, 8),
        (48, 4097),
        (56, LENGTH as u32),
        (60, u32::MAX),
        (64, RINGS_AT as u32 + 64),
        (64, RINGS_AT as u32 + 4096),
        (72, 2049),
        (72, 0),
        (76, 1 << 20),
    ] {
        refused(at, value, "does not fit");
    }
}

#[test]
fn what_is_no_file_of_a_header_is_refused() {
    let file = Written::by_us();
    file.file.set_len(4095).unwrap();
    assert!(file.refusal().contains("shorter than a header"));
    fs::remove_file(&file.path).unwrap();
    fs::create_dir(&file.path).unwrap();
    file.refusal();
    fs::remove_dir(&file.path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file.path).unwrap();
    file.refusal();
    fs::remove_file(&file.path).unwrap();
    assert!(Command::new("mkfifo").arg(&file.path).status().unwrap().success());
    file.refusal();
}

#[test]
fn a_file_whose_producer_reclaims_is_taken_up_afterwards_and_kept_locked() {
    let written = Written::by_us();
    written.slot(0, own_tid(), 0, 5);
    written.file.lock().unwrap();
    let mut session = Session::open(written.folder.path()).unwrap();
    let mut drained = Drained::default();
    session.discover(&mut drained);
    assert!(session.pids().is_empty());
    assert!(drained.refused[0].ends_with("not recorded while that lasts"), "{:?}", drained.refused);
    assert_eq!((session.unread().len(), session.missing().len()), (1, 1), "if it lasts to the end they are lost");
    written.file.unlock().unwrap();
    session.discover(&mut drained);
    assert_eq!((drained.refused.len(), ids(&session.drain())), (1, vec![0, 1, 2, 3, 4]));
    assert_eq!((drained.uncounted.len(), session.unread(), session.missing()), (0, vec![], vec![]), "nothing was lost");
    assert!(written.file.try_lock().is_err(), "its consumer has it");
    drop(session);
    // A child that another test is just starting may have the session's files open, too, until it is another program.
    written.file.lock().unwrap();
}

#[test]
fn a_file_in_the_place_of_a_removed_one_is_another() {
    let first = Written::by_us();
    first.slot(0, own_tid(), 0, 3);
    let mut session = first.session();
    fs::remove_file(&first.path).unwrap();
    // As a process does that executes another program.
    let second = Written::by_us();
    second.slot(0, own_tid(), 7, 9);
    fs::rename(&second.path, &first.path).unwrap();
    let mut drained = Drained::default();
    session.discover(&mut drained);
    assert_eq!(drained.refused, Vec::<String>::new());
    let mut taken = ids(&session.drain());
    taken.sort_unstable();
    assert_eq!(taken, [0, 1, 2, 7, 8]);
    session.reap();
    assert_eq!((session.pids().len(), session.processes()), (2, 2));
    assert!(first.path.exists(), "both are of a process that lives");
}

#[test]
fn other_files_are_not_the_protocols() {
    let file = Written::by_us();
    fs::rename(&file.path, file.folder.path().join(".1-0.tmp")).unwrap();
    assert!(file.session().pids().is_empty());
}

/// A process in a PID namespace of its own, found by the inode; skipped where one may not be made.
#[test]
fn a_process_in_a_namespace_is_found_by_its_host_pid() {
    let shell = "readlink /proc/self/ns/pid; exec sleep 100";
    let mut child = Command::new("unshare");
    let child =
        child.args(["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", shell]).stdout(Stdio::piped());
    let mut child = child.spawn().expect("unshare, of util-linux");
    let mut link = String::new();
    let read = io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().unwrap()), &mut link);
    let inode = link.trim().trim_start_matches("pid:[").trim_end_matches(']').parse::<u64>();
    if read.is_ok()
        && let Ok(inode) = inode
    {
        let file = Written::by(1);
        file.u64(40, inode);
        file.slot(0, 1, 0, 2);
        let mut session = file.session();
        let pids = session.pids();
        assert_eq!(crate::proc::parent(&crate::proc::line(format!("/proc/{}/stat", pids[0]))), Some(child.id() as i32));
        let batch = session.drain().batches.remove(0);
        assert_eq!((batch.pid, batch.tid), (pids[0], pids[0]));
        session.reap();
        assert_eq!((file.path.exists(), file.state(0)), (true, OPEN));
    } else {
        skip(Need::Namespaces, "needs the right to make a PID namespace");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A process in a time namespace of its own reads another start time of itself than everybody else; skipped where none may be made.
#[test]
fn a_process_whose_boot_is_another_moment_is_not_taken_for_dead() {
    let shell = "cat /proc/$$/stat; exec sleep 100";
    let mut child = Command::new("unshare");
    let child = child.args(["--time", "--boottime", "100000", "--fork", "--kill-child", "sh", "-c", shell]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("unshare, of util-linux");
    let mut own = String::new();
    io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().unwrap()), &mut own).unwrap();
    let Some(started) = crate::proc::start_time(&own) else {
        child.wait().unwrap();
        return skip(Need::Namespaces, "needs the right to make a time namespace");
    };
    let pid: u32 = own.split(' ').next().unwrap().parse().unwrap();
    let ours = crate::proc::start_time(&crate::proc::line(format!("/proc/{pid}/stat"))).unwrap();
    assert!(started.abs_diff(ours) > 1_000_000, "{started} and {ours} are of one namespace");
    let [file, reused] = [Written::by(pid), Written::by(pid)];
    file.u64(32, started);
    file.slot(0, pid as i32, 0, 2);
    let mut session = file.session();
    session.reap();
    assert_eq!((file.path.exists(), file.state(0), session.pids()), (true, OPEN, vec![pid as i32]));
    // One that had this pid before and is gone.
    reused.u64(32, started - 1000);
    reused.session().reap();
    assert!(!reused.path.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    while crate::proc::runs(pid as i32, None) {
        std::thread::yield_now();
    }
    session.reap();
    assert!(!file.path.exists());
}

/// What a process of another PID namespace calls itself is somebody else's pid here.
#[test]
fn the_inner_pid_of_a_process_that_is_not_found_is_nobodys() {
    let file = Written::by_us();
    // No namespace has this inode.
    file.u64(40, 1);
    let session = file.session();
    assert_eq!((session.pids(), session.known()), (vec![], [1, 1]));
}

fn sleeper() -> Child {
    Command::new("sleep").arg("100").spawn().unwrap()
}

#[test]
fn a_file_that_is_cut_and_grows_while_it_is_read_costs_only_itself() {
    use std::sync::atomic::AtomicBool;
    let [hostile, sound] = [Written::by_us(), Written::by(1)];
    let both = hostile.folder.path();
    sound.slot(0, 5, 0, 3);
    fs::copy(&sound.path, both.join("1-0.taut")).unwrap();
    let (over, kept) = (AtomicBool::new(false), hostile.path.clone());
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for length in [5000, LENGTH, 100, LENGTH, RINGS_AT, LENGTH] {
                    hostile.file.set_len(length).unwrap();
                }
            }
        });
        let mut whole = 0;
        for _ in 0..300 {
            // Its header comes and goes with its length: sound for as long as nobody cuts it.
            let mut session = Session::open(both).unwrap();
            let mut drained = Drained::default();
            session.discover(&mut drained);
            for _ in 0..20 {
                whole += session.drain().batches.iter().filter(|batch| batch.pid == 1).count();
                session.reap();
            }
            fs::write(both.join("1-0.taut"), fs::read(&sound.path).unwrap()).unwrap();
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(whole, 300, "the other file's stamps, once by each consumer");
    });
    assert!(kept.exists());
}

#[test]
fn indices_that_move_while_they_are_read_bring_no_more_than_the_ring_has() {
    use std::sync::atomic::AtomicBool;
    let file = Written::by_us();
    (0..SLOTS).for_each(|slot| file.slot(slot, own_tid(), 0, RECORDS));
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut n = 0_u64;
            while !over.load(Ordering::Relaxed) {
                // As an xorshift does: everything from small steps to halves of the range.
                n = (n ^ n << 13).wrapping_add(0x9e37_79b9_7f4a_7c15);
                let at = SLOTS_AT + n % SLOTS * 256;
                let value = if n & 64 == 0 { n >> 40 } else { n };
                file.u64(at + [HEAD, TAIL, LOST, 0][(n >> 8) as usize % 4], value);
            }
        });
        let mut session = file.session();
        for _ in 0..3000 {
            for batch in session.drain().batches {
                assert!(batch.ticks.len() as u64 <= RECORDS);
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// A sparse file that promises 64 slots of a million stamps each: 2 GiB if it were believed at once.
#[test]
fn a_promise_of_billions_is_taken_in_bearable_pieces() {
    let (slots, records, rings) = (64_u32, 1_u32 << 20, 4096 + 4096 + 64 * 256);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("7-0.taut");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    let stride = u64::from(records) * 32;
    file.set_len(rings + u64::from(slots) * stride).unwrap();
    let put = |at: u64, bytes: &[u8]| file.write_all_at(bytes, at).unwrap();
    put(0, MAGIC);
    for (at, value) in [(8, 1), (12, 2), (16, std::process::id()), (20, slots), (24, records), (28, 32)] {
        put(at, &value.to_le_bytes());
    }
    for (at, value) in [(48, 4096), (56, 8192), (64, rings), (72, stride)] {
        put(at, &value.to_le_bytes());
    }
    for slot in 0..u64::from(slots) {
        put(8192 + slot * 256, &OPEN.to_le_bytes());
        put(8192 + slot * 256 + HEAD, &u64::from(records).to_le_bytes());
    }
    let mut session = Session::open(folder.path()).unwrap();
    let mut drained = Drained::default();
    session.discover(&mut drained);
    assert_eq!(drained.refused, Vec::<String>::new());
    let mut slots_seen = HashSet::new();
    for _ in 0..3 {
        let drained = session.drain();
        let taken: usize = drained.batches.iter().map(|batch| batch.ticks.len()).sum();
        assert!(taken as u64 <= DRAIN_MAX && drained.pace == Pace::Behind);
        let states = session.rings.iter().next().unwrap();
        slots_seen.extend((0..states.slot_count).filter(|slot| states.slots[*slot].tail > 0));
    }
    assert_eq!(slots_seen.len(), 64, "each gets its turn");
}

#[test]
fn names_without_end_are_cut_off_and_that_is_told_once() {
    let file = Written::by_us();
    file.name(1, "the last straw");
    file.slot(0, 77, 0, 1);
    let mut session = file.session();
    for n in 0..RECORDING_NAMES_MAX {
        assert_eq!(session.names().number(&format!("name {n}")), n as u32 + 1);
    }
    let drained = session.drain();
    assert_eq!(drained.batches[0].point, [0], "without a name, but not lost");
    assert_eq!((drained.refused.len(), drained.uncounted.len()), (1, 1));
    assert!(drained.refused[0].contains("more than 65536 different names"), "{:?}", drained.refused);
    file.slot(0, 77, 1, 2);
    assert_eq!(session.drain().refused, Vec::<String>::new());
    assert_eq!(session.names().number("name 7"), 8, "those that are known stay");
}

#[test]
fn a_session_that_is_gone_is_told_once_and_what_is_mapped_is_still_taken() {
    let file = Written::by_us();
    file.slot(0, 77, 0, 2);
    let mut session = file.session();
    fs::remove_dir_all(file.folder.path()).unwrap();
    let mut drained = Drained::default();
    session.discover(&mut drained);
    session.discover(&mut drained);
    assert_eq!(drained.refused.len(), 1);
    assert!(drained.refused[0].contains("is gone"), "{:?}", drained.refused);
    // What begins to stamp from now on is lost, and who knows how much that is.
    assert_eq!((drained.uncounted.len(), drained.uncounted[0].place.as_str()), (1, "session"));
    assert_eq!(ids(&session.drain()), [0, 1]);
}

#[test]
fn a_session_that_cannot_be_listed_to_the_end_is_said_to_lack_what_came() {
    let file = Written::by_us();
    file.slot(0, 77, 0, 2);
    let mut session = file.session();
    // What has its name now is no directory.
    let kept = tempfile::tempdir().unwrap();
    fs::rename(file.folder.path(), kept.path().join("session")).unwrap();
    fs::write(file.folder.path(), "").unwrap();
    let mut drained = Drained::default();
    session.discover(&mut drained);
    assert_eq!((drained.refused.len(), session.unread().len()), (0, 1));
    assert!(session.unread()[0].why.contains("cannot be listed"), "{:?}", session.unread());
    fs::remove_file(file.folder.path()).unwrap();
    fs::rename(kept.path().join("session"), file.folder.path()).unwrap();
    session.discover(&mut drained);
    assert_eq!((ids(&session.drain()), session.unread()), (vec![0, 1], vec![]), "it passed");
}

#[test]
fn what_is_written_after_the_seal_is_not_taken() {
    let file = Written::by_us();
    file.slot(0, 77, 0, 3);
    let mut session = file.session();
    session.seal();
    file.slot(0, 77, 3, 9);
    file.u32(SLOTS_AT, CLOSED);
    assert_eq!(ids(&session.drain()), [0, 1, 2]);
    assert!(session.drain().batches.is_empty());
    assert_eq!((file.state(0), file.at_slot(0, TAIL)), (CLOSED, 3), "the rest is the next consumer's");
}

/// Root may record into the session of somebody else, whose files must not speak for a third one's processes.
#[test]
fn a_file_that_names_another_users_process_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return skip(Need::Root, "only root reads the sessions of others");
    }
    let file = Written::by_us();
    std::os::unix::fs::chown(&file.path, Some(12_345), None).unwrap();
    assert!(file.refusal().contains("another user's"));
    let file = Written::by(4_194_304);
    std::os::unix::fs::chown(&file.path, Some(12_345), None).unwrap();
    assert_eq!(file.session().pids(), [4_194_304], "one that is gone may have been his");
}

/// Bytes where they hurt: mostly zero or small numbers, sometimes anything.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![0..300u64, (0..64u32).prop_map(|bit| 1 << bit), Just(u64::MAX), any::<u64>()]
}

proptest! {
    /// Whatever stands in header, table and slots: no panic, no read outside the mapping, nothing
    /// endless, and no batch longer than its ring.
    #[test]
    fn any_damage_is_survived(
        damage in proptest::collection::vec((any::<Index>(), word(), any::<bool>()), 0..24),
        states in proptest::array::uniform2(0..4u32),
        late in any::<bool>(),
    ) {
        let file = Written::by_us();
        file.name(1, "arm.read");
        file.slot(0, own_tid(), 0, RECORDS);
        file.slot(1, 3, 7, 9);
        (0..SLOTS).for_each(|slot| file.u32(SLOTS_AT + slot * 256, states[slot as usize]));
        for (place, value, in_header) in damage {
            // Half of it in the 22 words of the header and the slots that decide everything.
            let words = if in_header { 26 } else { LENGTH as usize / 8 };
            file.u64(place.index(words) as u64 * 8, value);
        }
        let mut session = match late {
            true => Session::open_late(file.folder.path()).unwrap(),
            false => Session::open(file.folder.path()).unwrap(),
        };
        let mut drained = Drained::default();
        session.discover(&mut drained);
        for round in [session.drain(), session.reap(), session.drain()] {
            for batch in round.batches {
                let n = batch.ticks.len();
                prop_assert!(n as u64 <= BATCH_MAX && n > 0);
                prop_assert!([batch.message_id.len(), batch.point.len(), batch.kind.len(), batch.value.len()] == [n; 4]);
                prop_assert!(batch.ticks.is_sorted());
                prop_assert!(batch.point.iter().all(|point| *point as usize <= session.names.numbers.len()));
            }
        }
    }

    /// A slot's numbers alone, over a file that is otherwise sound.
    #[test]
    fn any_slot_is_survived(head in word(), tail in word(), lost in word(), state in 0..5u32, tid in any::<i32>()) {
        let file = Written::by_us();
        file.slot(0, tid, 0, 0);
        for (field, value) in [(HEAD, head), (TAIL, tail), (LOST, lost)] {
            file.u64(SLOTS_AT + field, value);
        }
        file.u32(SLOTS_AT, state);
        let mut session = file.session();
        let drained = session.drain();
        let waiting = head.wrapping_sub(tail);
        prop_assert_eq!(ids(&drained).len() as u64, if waiting <= RECORDS { waiting } else { 0 });
        prop_assert_eq!(drained.refused.len(), usize::from(waiting > RECORDS));
        // A slot that is not believed tells its losses at the next round.
        let told = drained.lost.into_iter().chain(session.drain().lost);
        prop_assert_eq!(told.map(|(_, n)| n).sum::<u64>(), lost);
        prop_assert_eq!(file.at_slot(0, TAIL), head);
    }
}

impl Written {
    /// Of ROS 2 events.
    fn of_ros() -> Written {
        let file = Written::by_us();
        file.u32(8, 2);
        file.u32(80, 1);
        file.slot(0, 77, 0, 0);
        file
    }

    /// An event of two records at this position, unpublished.
    fn pair(&self, position: u64) {
        self.record(0, position, [position * 10, 0x100 + position, 5 | 1 << 8 | u64::from(ROS_EVENT) << 32, 20]);
        self.record(0, position + 1, [position * 10, 30, u64::from(ROS_REST) << 32, 40]);
    }

    /// An event of one record, likewise.
    fn single(&self, position: u64) {
        self.record(0, position, [position * 10, 0x100 + position, 1 | u64::from(ROS_EVENT) << 32, 1]);
    }

    fn publish(&self, head: u64) {
        self.u64(SLOTS_AT + HEAD, head);
    }
}

#[test]
fn ros_events_come_as_columns_and_their_losses_are_theirs() {
    let file = Written::of_ros();
    file.single(0);
    file.pair(1);
    file.publish(3);
    file.u64(SLOTS_AT + LOST, 4);
    file.u64(192, 2);
    file.u64(200, 1);
    let mut session = file.session();
    let drained = session.drain();
    let us = std::process::id();
    let expected = RosBatch {
        pid: us as i32,
        tid: 77,
        counter: 2,
        ticks: vec![0, 10],
        event: vec![1, 5],
        handle: vec![0x100, 0x101],
        arg0: vec![1, 20],
        arg1: vec![0, 30],
        arg2: vec![0, 40],
    };
    assert_eq!((drained.ros, drained.batches), (vec![expected], vec![]));
    let lost = [
        (format!("{us}/77"), 4),
        (format!("process {us}, no ring"), 2),
        (format!("process {us}, no file of objects"), 1),
    ];
    assert_eq!((drained.lost_ros, drained.lost), (lost.to_vec(), vec![]));
    assert_eq!((session.processes(), session.known()), (0, [1, 1]), "it has not stamped");
    assert_eq!(file.at_slot(0, TAIL), 3);
}

#[test]
fn an_event_of_two_records_is_not_taken_apart() {
    let file = Written::of_ros();
    file.pair(0);
    file.pair(2);
    file.publish(4);
    let mut session = file.session();
    let ring = session.rings.iter_mut().next().unwrap();
    let mut drained = Drained::default();
    let taken: Vec<u64> = (0..2).map(|_| ring.drain(3, &mut Names::default(), &mut drained)).collect();
    assert_eq!(taken, [2, 2]);
    assert_eq!(drained.ros.iter().flat_map(|batch| &batch.arg2).collect::<Vec<_>>(), [&40, &40]);
    // Also across the end of the ring.
    let file = Written::of_ros();
    file.u64(SLOTS_AT + TAIL, RECORDS - 1);
    file.pair(RECORDS - 1);
    file.publish(RECORDS + 1);
    assert_eq!(file.session().drain().ros[0].arg1, [30]);
}

#[test]
fn an_event_without_its_second_record_has_no_arguments_there() {
    let file = Written::of_ros();
    file.pair(0);
    file.publish(1);
    let mut session = file.session();
    let drained = session.drain();
    assert_eq!((&drained.ros[0].arg0, &drained.ros[0].arg1), (&vec![20], &vec![0]));
    file.pair(1);
    file.record(0, 2, [0; 4]);
    file.publish(3);
    let drained = session.drain();
    assert_eq!((drained.ros[0].ticks.len(), &drained.ros[0].arg2), (1, &vec![0]), "what is behind is no event");
}

#[test]
fn only_contents_that_are_known_are_read() {
    let file = Written::of_ros();
    file.u32(80, 2);
    assert!(file.refusal().contains("content 2, which this taut does not know"));
    let file = Written::by_us();
    file.u32(80, 1);
    file.slot(0, 77, 0, 1);
    assert_eq!(ids(&file.session().drain()), [0], "version 1 has stamps, whatever lies there");
    let file = Written::by_us();
    file.u32(8, 3);
    assert!(file.refusal().contains("protocol version 3, this taut knows 1 and 2"));
}

#[test]
fn a_late_consumer_takes_no_earlier_ros_events() {
    let file = Written::of_ros();
    file.single(0);
    file.publish(1);
    let mut session = Session::open_late(file.folder.path()).unwrap();
    assert!(session.drain().ros.is_empty());
    file.single(1);
    file.publish(2);
    assert_eq!(session.drain().ros[0].handle, [0x101]);
}
