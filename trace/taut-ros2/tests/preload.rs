//! The preload against programs that call the tracepoints in the order of rclcpp, with no ROS at hand (`c/node.c`), as it is read
//! by the recorder's own consumer.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use object::{Object, ObjectSymbol, read::elf::ElfFile64};
use taut_capture::{
    rings::{Drained, Session},
    ros_objects::RosObjects,
};
use taut_recording::{RosEvent, RosObject, RosObjectKind};
use tempfile::TempDir;

/// An event without its time: event, handle, arguments.
type Event = (RosEvent, u64, [u64; 3]);

/// What a release's tracetools and rclcpp have, as flags of `c/stubs.c` and `c/node.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Release {
    Humble,
    Iron,
    Jazzy,
    Kilted,
}

impl Release {
    const ALL: [Release; 4] = [Release::Humble, Release::Iron, Release::Jazzy, Release::Kilted];

    fn flags(self) -> &'static [&'static str] {
        match self {
            Release::Humble => &["-DHUMBLE", "-DONE_ARGUMENT"],
            Release::Iron => &["-DONE_ARGUMENT"],
            Release::Jazzy => &[],
            Release::Kilted => &["-DKILTED"],
        }
    }
}

/// A program, and how it is started: it is linked to its libraries, or loads them apart from the global scope.
#[derive(Clone, Debug)]
struct Node {
    release: Release,
    words: Vec<PathBuf>,
}

fn scratch() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn compile(arguments: &[&str]) {
    let mut command = Command::new("gcc");
    command.args(["-O1", "-Wall", "-Wextra", "-Werror"]).args(arguments).args(["-ldl", "-pthread"]);
    let output = command.output().unwrap_or_else(|error| panic!("gcc: {error}; install it: apt-get install -y gcc"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn preload() -> &'static Path {
    static WRITTEN: OnceLock<PathBuf> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let path = scratch().join(taut_ros2::FILE_NAME);
        fs::write(&path, taut_ros2::PRELOAD).unwrap();
        path
    })
}

/// Of each release the program and the loaded one.
fn nodes() -> &'static [Node] {
    static BUILT: OnceLock<Vec<Node>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = |name: &str| format!("{}/tests/c/{name}", env!("CARGO_MANIFEST_DIR"));
        let build = |release: Release| {
            let folder = scratch().join(format!("{release:?}"));
            fs::create_dir_all(&folder).unwrap();
            let at = |name: &str| folder.join(name).display().to_string();
            let search = [format!("-L{}", folder.display()), format!("-Wl,-rpath,{}", folder.display())];
            let flags = release.flags();
            // One file has rcl, rmw and tracetools: what counts is that the preload's caller was linked to it.
            let stubs =
                ["-fPIC", "-shared", "-Wl,-soname,libtracetools.so", &source("stubs.c"), "-o", &at("libtracetools.so")];
            compile(&[flags, &stubs].concat());
            let linked = [&source("node.c"), &search[0], &search[1], "-ltracetools"];
            compile(&[flags, &["-DPROGRAM", "-o", &at("node")], &linked].concat());
            compile(&[flags, &["-fPIC", "-shared", "-o", &at("libnode.so")], &linked].concat());
            compile(&["-o", &at("host"), &source("host.c")]);
            let words = [vec![at("node").into()], vec![at("host").into(), at("libnode.so").into()]];
            words.map(|words| Node { release, words })
        };
        Release::ALL.into_iter().flat_map(build).collect()
    })
}

fn of(release: Release) -> impl Iterator<Item = &'static Node> {
    nodes().iter().filter(move |node| node.release == release)
}

/// What a node left in its session.
#[derive(Debug, Default)]
struct Left {
    /// By (pid, tid).
    events: BTreeMap<(i32, i32), Vec<Event>>,
    /// When; of the same threads.
    ticks: BTreeMap<(i32, i32), Vec<u64>>,
    objects: Vec<RosObject>,
    lost: u64,
    refused: Vec<String>,
}

impl Left {
    fn all(&self) -> Vec<Event> {
        self.events.values().flatten().copied().collect()
    }

    fn of_kind(&self, kind: RosObjectKind) -> Vec<&RosObject> {
        self.objects.iter().filter(|object| object.kind == kind).collect()
    }
}

struct Run {
    session: TempDir,
    output: Output,
}

/// Runs a scenario with a session and the preload, and these variables.
fn run(node: &Node, scenario: &[&str], variables: &[(&str, &str)]) -> Run {
    let session = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut command = Command::new(&node.words[0]);
    command.args(&node.words[1..]).args(scenario).env_remove("TAUT_RING_RECORDS").env_remove("ROS_DISTRO");
    command.env("TAUT_SESSION", session.path()).env("LD_PRELOAD", preload()).envs(variables.iter().copied());
    let output = command.output().unwrap();
    Run { session, output }
}

impl Run {
    /// That it ended well, without a word of the preload.
    fn fine(self) -> Run {
        assert!(self.output.status.success() && self.output.stderr.is_empty(), "{:?}", self.output);
        self
    }

    /// What it counted: calls that reached libtracetools, and those of the `do` kind.
    fn counted(&self) -> Vec<i64> {
        let text = String::from_utf8_lossy(&self.output.stdout);
        text.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect()
    }

    fn read(&self) -> Left {
        let mut left = Left::default();
        let mut session = Session::open(self.session.path()).unwrap();
        let mut found = Drained::default();
        session.discover(&mut found);
        left.take(found);
        // What a dead process left is drained by `reap`, which removes its file.
        left.take(session.reap());
        let mut objects = RosObjects::open(self.session.path());
        objects.discover(&mut left.refused);
        let drained = objects.drain();
        left.objects = drained.objects;
        left.lost += drained.lost.iter().map(|(_, count)| count).sum::<u64>();
        left.refused.extend(drained.refused);
        assert_eq!(left.refused, Vec::<String>::new());
        left
    }
}

impl Left {
    fn take(&mut self, drained: Drained) {
        assert!(drained.batches.is_empty() && drained.lost.is_empty(), "there are no stamps: {drained:?}");
        self.refused.extend(drained.refused);
        self.lost += drained.lost_ros.iter().map(|(_, count)| count).sum::<u64>();
        for batch in drained.ros {
            assert!(batch.ticks.is_sorted());
            let rows = (0..batch.ticks.len()).map(|at| {
                let event = RosEvent::from_number(batch.event[at]).unwrap();
                (event, batch.handle[at], [batch.arg0[at], batch.arg1[at], batch.arg2[at]])
            });
            self.events.entry((batch.pid, batch.tid)).or_default().extend(rows);
            self.ticks.entry((batch.pid, batch.tid)).or_default().extend(&batch.ticks);
        }
    }
}

const NOTHING: [u64; 3] = [0; 3];
const FOREVER: u64 = u64::MAX;

/// What `pass` of `c/node.c` is, as events.
fn pass(n: u64, release: Release) -> Vec<Event> {
    use RosEvent::*;
    let published = match release {
        Release::Humble | Release::Iron => (RmwPublish, 0, [0x6000 + n, 0, 0]),
        _ => (RmwPublish, 0x3100, [0x6000 + n, 1000 + n, 0]),
    };
    let (timeout, result) = if n == 0 { (7, 2) } else { (FOREVER, 0) };
    vec![
        (NextReady, 0, NOTHING),
        (Execute, 0x5000, NOTHING),
        (TimerCall, 0x5000, [1000, 1250, 0]),
        (CallbackStart, 0x5100, NOTHING),
        (RclcppPublish, 0, [0x6000 + n, 0, 0]),
        (RclPublish, 0x3000, [0x6000 + n, 0, 0]),
        published,
        (CallbackEnd, 0x5100, NOTHING),
        (WaitForWork, 0, [FOREVER, 0, 0]),
        (Wait, 0x9000, [timeout, 0, 0]),
        (WaitEnd, 0x9000, [result, 0, 0]),
        (NextReady, 0, NOTHING),
        (Execute, 0x4000, NOTHING),
        (Take, 0x4100, [0x7000, 1000 + n, 1]),
        (TakeInfo, 0x4100, [500, 3, 0x13]),
        (RclTake, 0, [0x7000, 0, 0]),
        (RclcppTake, 0, [0x7000, 0, 0]),
        (CallbackStart, 0x4300, NOTHING),
        (CallbackEnd, 0x4300, NOTHING),
    ]
}

fn passes(count: u64, release: Release) -> Vec<Event> {
    (0..count).flat_map(|n| pass(n, release)).collect()
}

#[test]
fn every_event_of_a_chain_is_recorded_in_every_release() {
    for node in nodes() {
        let left = run(node, &["chain", "3"], &[]).fine().read();
        assert_eq!(left.all(), passes(3, node.release), "{node:?}");
        assert_eq!((left.events.len(), left.lost), (1, 0), "{node:?}");
    }
}

#[test]
fn every_handle_is_explained_once() {
    use RosObjectKind::*;
    for node in nodes() {
        let left = run(node, &["chain", "1"], &[]).fine().read();
        let said: Vec<_> =
            left.objects.iter().map(|o| (o.kind, o.handle, o.owner, o.other, o.number, &*o.name, &*o.text)).collect();
        let gid = u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]) ^ 1 << 56;
        let expected = [
            (Context, 0x1000, 0, 0, 0, "", ""),
            (Node, 0x2000, 0, 0x2001, 0, "camera", "/front"),
            (RmwPublisher, 0x3100, 0, 0, gid, "", ""),
            (Publisher, 0x3000, 0x2000, 0x3100, 10, "/image_raw", ""),
            (RmwSubscription, 0x4100, 0, 0, gid, "", ""),
            (Subscription, 0x4000, 0x2000, 0x4100, 1, "/image_raw", ""),
            (SubscriptionObject, 0x4200, 0x4000, 0, 0, "", ""),
            (SubscriptionCallback, 0x4300, 0x4200, 0, 0, "", ""),
            (CallbackSymbol, 0x4300, 0, 0, 0, "Camera::on_image(Image)", ""),
            (Timer, 0x5000, 0, 0, 33_000_000, "", ""),
            (TimerCallback, 0x5100, 0x5000, 0, 0, "", ""),
            (TimerNode, 0x5000, 0x2000, 0, 0, "", ""),
        ];
        assert_eq!(said, expected, "{node:?}");
        assert!(left.objects.iter().all(|object| object.time_ns > 0));
    }
}

/// rclcpp counts subscriptions first, and its tracepoint comes late.
#[test]
fn a_publication_within_a_process_begins_when_its_subscriptions_are_counted() {
    for node in nodes().iter().filter(|node| node.release != Release::Humble) {
        let left = run(node, &["counted"], &[]).fine().read();
        let ticks_of = |wanted: RosEvent, handle: u64| -> Vec<u64> {
            let all = left.events.iter().flat_map(|(thread, events)| events.iter().zip(&left.ticks[thread]));
            let mut found: Vec<u64> = all.filter(|(e, _)| (e.0, e.1) == (wanted, handle)).map(|(_, t)| *t).collect();
            found.sort_unstable();
            found
        };
        let published = ticks_of(RosEvent::IntraPublish, 0x3000);
        let others = ticks_of(RosEvent::CallbackEnd, 0xf000);
        assert_eq!((published.len(), others.len()), (2, 2), "{node:?}");
        assert!(published[0] < others[0], "as of the count: {published:?} {others:?}");
        assert!(
            published[1] > others[1],
            "what came after an event of the thread is as late: {published:?} {others:?}"
        );
    }
}

/// A mutually exclusive group keeps a callback waiting, and no tracepoint says which group it is of.
#[test]
fn entities_of_rclcpp_are_in_the_groups_that_they_were_added_to() {
    use RosObjectKind::*;
    for node in nodes() {
        let recorded = run(node, &["groups"], &[]).fine();
        let left = recorded.read();
        let groups = left.objects.iter().filter(|object| matches!(object.kind, GroupOfSubscription | GroupOfTimer));
        let said: Vec<_> = groups.map(|object| (object.kind, object.handle, object.owner)).collect();
        let expected = [
            (GroupOfSubscription, 0x4000, 0x100),
            (GroupOfSubscription, 0x4001, 0x200),
            (GroupOfSubscription, 0xe100, 0x200),
            (GroupOfSubscription, 0xe200, 0x100),
            (GroupOfTimer, 0x5001, 0x200),
        ];
        assert_eq!(said, expected, "{node:?}");
        let alone = run(node, &["groups"], &[("LD_PRELOAD", ""), ("TAUT_SESSION", "")]).fine().counted();
        assert_eq!(recorded.counted(), alone, "the real functions are called");
    }
}

/// Nothing that LTTng would record is kept from it, and nothing is invented for it.
#[test]
fn every_call_reaches_the_real_tracepoint() {
    for node in nodes() {
        // The register is the one that asks first; it is a plain call in Humble.
        let registers = i64::from(node.release != Release::Humble);
        let of = |variables: &[(&str, &str)]| run(node, &["chain", "5"], variables).fine().counted();
        let alone = of(&[("LD_PRELOAD", ""), ("TAUT_SESSION", "")]);
        assert!(alone[0] > 5 * 13, "{alone:?}");
        assert_eq!(of(&[]), [alone[0], 0], "{node:?}");
        assert_eq!(of(&[("TAUT_SESSION", "")]), [alone[0], 0], "{node:?}");
        let traced = of(&[("LD_PRELOAD", ""), ("STUB_TRACES", "1")]);
        assert_eq!(traced, [alone[0], registers]);
        assert_eq!(
            (of(&[("STUB_TRACES", "1")]), of(&[("STUB_TRACES", "1"), ("TAUT_SESSION", "")])),
            (traced.clone(), traced)
        );
    }
}

#[test]
fn without_a_session_nothing_is_left_and_nothing_changes() {
    for node in nodes() {
        let run = run(node, &["threads", "20"], &[("TAUT_SESSION", "")]).fine();
        assert_eq!(fs::read_dir(run.session.path()).unwrap().count(), 0);
    }
}

/// A missing directory, one that cannot be written, and no room at all.
#[test]
fn a_session_that_cannot_be_had_does_not_fail_the_node() {
    for node in of(Release::Kilted) {
        run(node, &["threads", "20"], &[("TAUT_SESSION", "/no/such/session")]).fine();
        run(node, &["fork", "20"], &[("TAUT_SESSION", "/proc/self")]).fine();
        let words: Vec<_> = node.words.iter().map(|word| word.to_str().unwrap()).collect();
        let limited = format!("ulimit -f 2; exec {} threads 20", words.join(" "));
        let shell = Node { words: vec!["/bin/sh".into(), "-c".into()], ..node.clone() };
        let run = run(&shell, &[&limited], &[]).fine();
        assert_eq!(fs::read_dir(run.session.path()).unwrap().count(), 0, "no ring fits the limit");
    }
}

#[test]
fn threads_keep_their_events_apart() {
    for node in of(Release::Kilted) {
        let left = run(node, &["threads", "200"], &[]).fine().read();
        assert_eq!((left.events.len(), left.lost), (16, 0));
        left.events.values().for_each(|events| assert_eq!(*events, passes(200, Release::Kilted)));
    }
}

/// The child writes into a file of its own and has its parent's handles.
#[test]
fn a_forked_child_has_its_own_events_and_its_parent_s_objects() {
    for node in of(Release::Kilted) {
        let left = run(node, &["fork", "40"], &[]).fine().read();
        let mut counts: Vec<_> = left.events.iter().map(|((pid, _), events)| (events.len(), *pid)).collect();
        counts.sort_unstable();
        let [(of_parent, parent), (of_child, child)] = counts[..] else { panic!("{counts:?}") };
        let each = pass(0, Release::Kilted).len();
        assert_eq!((of_parent, of_child, left.lost), (each, 40 * each, 0));
        let objects =
            |pid: i32| left.objects.iter().filter(move |o| o.pid == pid).map(|o| RosObject { pid: 0, ..o.clone() });
        assert!(objects(parent).eq(objects(child)) && objects(child).count() == 12);
    }
}

#[test]
fn what_a_killed_node_wrote_is_there() {
    for node in of(Release::Kilted) {
        let run = run(node, &["killed", "50"], &[]);
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&run.output.status), Some(9));
        let left = run.read();
        assert_eq!((left.all(), left.objects.len()), (passes(50, Release::Kilted), 12));
        let names: Vec<_> = fs::read_dir(run.session.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "the ring file is gone, the objects go with the next look: {names:?}");
    }
}

#[test]
fn a_context_that_is_initialised_twice_explains_its_handles_twice() {
    for node in of(Release::Kilted) {
        let left = run(node, &["contexts"], &[]).fine().read();
        assert_eq!(left.of_kind(RosObjectKind::Context).len(), 2);
        assert_eq!((left.objects.len(), left.lost), (24, 0));
        let times: Vec<_> = left.of_kind(RosObjectKind::Publisher).iter().map(|object| object.time_ns).collect();
        assert!(times[0] < times[1], "the later one holds");
    }
}

#[test]
fn long_topics_are_whole_and_endless_ones_are_cut() {
    for node in of(Release::Kilted) {
        for (length, kept) in [("255", 255), ("1000", 1000), ("1999", 1000)] {
            let left = run(node, &["long_topic", length], &[]).fine().read();
            let topics: Vec<_> =
                left.of_kind(RosObjectKind::Publisher).iter().map(|object| object.name.clone()).collect();
            assert_eq!(topics, ["/".to_owned() + &"t".repeat(kept - 1)]);
        }
    }
}

/// A full ring keeps what came first; the newest are dropped and counted, each event once.
#[test]
fn a_full_ring_drops_the_newest_and_counts_them() {
    for node in of(Release::Kilted) {
        let left = run(node, &["chain", "500"], &[("TAUT_RING_RECORDS", "64")]).fine().read();
        let (kept, all) = (left.all(), passes(500, Release::Kilted));
        assert_eq!(kept.len() as u64 + left.lost, all.len() as u64);
        // An event of one record may still find room where one of two does not.
        let records =
            |events: &[Event]| events.iter().map(|(_, _, [_, b, c])| if b | c == 0 { 1 } else { 2 }).sum::<u64>();
        assert!((63..=64).contains(&records(&kept)), "{}", records(&kept));
        assert_eq!(kept[..kept.len() - 1], all[..kept.len() - 1]);
    }
}

#[test]
fn of_timers_that_only_wait_nothing_is_kept() {
    for node in of(Release::Kilted) {
        let left = run(node, &["wait_timers", "1000"], &[]).fine().read();
        assert_eq!(left.of_kind(RosObjectKind::Timer).len(), 1, "the node's own");
        let (event, count) = (RosEvent::Gone, left.all().len());
        assert!(!left.all().iter().any(|(e, ..)| *e == event) && count == 2000, "waits alone");
    }
}

#[test]
fn timers_that_are_called_are_kept_however_many_wait() {
    for release in Release::ALL {
        for node in of(release) {
            let left = run(node, &["timers", "300"], &[]).fine().read();
            let called: Vec<u64> =
                left.all().iter().filter(|(e, ..)| *e == RosEvent::TimerCall).map(|(_, h, _)| *h).collect();
            assert_eq!(called, (0..150).map(|n| 0xd001 + 2 * n).collect::<Vec<_>>(), "{node:?}");
            let timers = left.of_kind(RosObjectKind::Timer);
            for handle in called {
                let periods: Vec<u64> = timers.iter().filter(|o| o.handle == handle).map(|o| o.number).collect();
                assert_eq!(periods, [1000 + handle - 0xd000]);
            }
            // Humble's rcl_timer_call tells no times.
            let info = if release == Release::Humble { NOTHING } else { [1000, 1250, 0] };
            assert!(left.all().iter().filter(|(e, ..)| *e == RosEvent::TimerCall).all(|(_, _, args)| *args == info));
        }
    }
}

#[test]
fn the_end_of_a_handle_is_an_event() {
    use RosEvent::*;
    for node in of(Release::Kilted) {
        let left = run(node, &["gone"], &[]).fine().read();
        let expected = [(Gone, 0x3000, NOTHING), (TimerCall, 0x5000, [1000, 1250, 0]), (Gone, 0x5000, NOTHING)];
        assert_eq!(left.all(), expected, "one call, though rcl_timer_call calls rcl_timer_call_with_info");
    }
}

#[test]
fn messages_within_a_process_pass_its_ring_buffers() {
    use RosEvent::*;
    for node in nodes().iter().filter(|node| node.release != Release::Humble) {
        let left = run(node, &["intra"], &[]).fine().read();
        let expected = [
            (IntraPublish, 0x3000, [0x6000, 0, 0]),
            (Enqueue, 0x8000, [3, 1, 0]),
            (Dequeue, 0x8000, [3, 0, 0]),
            (CallbackStart, 0x4300, [1, 0, 0]),
            (CallbackEnd, 0x4300, NOTHING),
        ];
        assert_eq!(left.all(), expected);
        let [buffer, of_ipb, of_object] =
            [RosObjectKind::RingBuffer, RosObjectKind::BufferOfIpb, RosObjectKind::IpbOfSubscription]
                .map(|kind| left.of_kind(kind)[0].clone());
        assert_eq!((buffer.handle, buffer.number), (0x8000, 10));
        assert_eq!((of_ipb.handle, of_ipb.owner, of_object.handle, of_object.owner), (0x8000, 0x8001, 0x8001, 0x4200));
    }
}

/// A generic subscription takes serialized messages, which the middleware says from Jazzy on; of those that it lends it says nothing.
#[test]
fn takes_of_serialized_and_of_lent_messages_are_takes() {
    use RosEvent::*;
    for node in nodes() {
        let left = run(node, &["other_takes"], &[]).fine().read();
        let info = (TakeInfo, 0x4100, [500, 3, 0x13]);
        assert_eq!(
            left.all(),
            [info, (Take, 0x4100, [0x7001, 5, 1]), info, (Take, 0x4100, [0x7002, 6, 1]), info],
            "{node:?}"
        );
    }
}

/// From Kilted on the middleware has tracepoints for them; before, its functions tell the same.
#[test]
fn requests_and_responses_carry_their_client_and_number() {
    use RosEvent::*;
    for node in nodes() {
        let left = run(node, &["service"], &[]).fine().read();
        let clients: Vec<u64> = left.of_kind(RosObjectKind::RmwClient).iter().map(|client| client.number).collect();
        let (gid, is_told) = (0x13, node.release == Release::Kilted);
        assert_eq!(clients.len(), usize::from(is_told), "{node:?}");
        // Of what was not taken, what the middleware left in the caller's structure is no number.
        let [left_behind, its_time] = if is_told { [(41, gid), (41, 2000)] } else { [(0, 0); 2] };
        let expected = [
            (SendRequest, 0xa100, [41, 0, 0]),
            (TakeRequest, 0xb100, [41, gid, 1]),
            (SendResponse, 0xb100, [41, gid, if is_told { 2000 } else { 0 }]),
            (TakeResponse, 0xa100, [41, 2000, 1]),
            (TakeRequest, 0xb100, [left_behind.0, left_behind.1, 0]),
            (TakeResponse, 0xa100, [its_time.0, its_time.1, 0]),
        ];
        assert_eq!(left.all(), expected, "{node:?}");
    }
}

/// It is in every process of a launch: shells and tools must not change by it.
#[test]
fn programs_without_ros_do_not_notice() {
    for words in [&["/bin/true"][..], &["/bin/sh", "-c", "echo a | cat"]] {
        for binding in ["", "1"] {
            let session = tempfile::tempdir_in("/dev/shm").unwrap();
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).env("LD_PRELOAD", preload()).env("TAUT_SESSION", session.path());
            if !binding.is_empty() {
                command.env("LD_BIND_NOW", binding);
            }
            let output = command.output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
            assert_eq!(fs::read_dir(session.path()).unwrap().count(), 0);
        }
    }
}

/// The C library of the process serves, from glibc 2.17 on, and nothing else is needed.
#[test]
fn the_library_needs_nothing_that_an_old_c_library_lacks() {
    const HAS: &str = "__errno_location access clock_gettime close flock free ftruncate getenv getpid getrlimit link madvise malloc \
                       memcmp memcpy memmove memset mmap munmap open open64 pread pread64 pthread_mutex_lock pthread_mutex_unlock \
                       pthread_setcancelstate pwrite pwrite64 read sigfillset snprintf strchr strcmp strcspn strdup strlen strnlen \
                       strrchr strtoul strtoull syscall unlink ftruncate64 mmap64 getrlimit64";
    let library = ElfFile64::<object::Endianness>::parse(taut_ros2::PRELOAD).unwrap();
    assert!(library.imports().unwrap().iter().all(|import| import.library().is_empty()), "it is linked to nothing");
    let needed: Vec<_> = library
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined() && !symbol.is_weak())
        .map(|symbol| symbol.name().unwrap().to_owned())
        .filter(|name| !name.is_empty() && !HAS.split_whitespace().any(|has| has == name))
        .collect();
    assert_eq!(needed, Vec::<String>::new());
    let exported = library
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
        .map(|symbol| symbol.name().unwrap().to_owned());
    let is_ours = |name: &String| {
        ["ros_trace_", "rcl_", "rmw_take_", "rmw_send_", "_ZN10tracetools6detail", "_ZN6rclcpp13CallbackGroup"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    assert_eq!(
        exported.filter(|name| !is_ours(name)).collect::<Vec<_>>(),
        Vec::<String>::new(),
        "nothing else of a process is replaced"
    );
}
