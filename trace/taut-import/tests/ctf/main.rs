//! CTF traces of ROS 2: a real one, and those of a small robot that a writer of the tests makes as LTTng does.

mod robot;
mod writer;

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use robot::{CAMERA, DETECTOR, DRIVER, FUSION, Robot, START_NS, TICK_NS, VERSIONS, Version};
use taut_import::{Error, Imported, ros2};
use taut_points::{Intake, Linked, Pass, PointId};
use taut_recording::{KernelEvent, Record, Tier};
use writer::{Layout, Trace, USUAL, Value};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// What a recording's events are linked to.
#[derive(Debug, Default, PartialEq)]
struct Told {
    /// By id: points with their moments and threads, in order of time; and the outcome with its moment.
    messages: BTreeMap<u64, Message>,
    /// Values by name.
    values: BTreeMap<String, Vec<f64>>,
    /// Distributions: name, count, from, to.
    distributions: Vec<(String, u64, u64, u64)>,
    notes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Message {
    /// Numbers of the points: two chains' points may have one name.
    points: Vec<PointId>,
    passes: Vec<(u64, String, i32)>,
    outcome: Option<(String, u64)>,
    /// When an executor was busy, with which thread and callback.
    holds: Vec<(u64, u64, i32, String)>,
}

fn records(path: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    let contents = taut_recording::read(&std::fs::read(path).unwrap(), &mut |record| records.push(record)).unwrap();
    assert!(contents.damage.is_empty(), "{:?}", contents.damage);
    records
}

fn linked(path: &Path) -> Linked {
    let mut intake = Intake::default();
    let contents = taut_recording::read(&std::fs::read(path).unwrap(), &mut |record| intake.record(&record)).unwrap();
    assert!(contents.damage.is_empty(), "{:?}", contents.damage);
    let ending_ns = contents.ending.map(|ending| ending.end_monotonic_ns);
    intake.finish(&contents.info, ending_ns, false).linked
}

fn told(path: &Path) -> Told {
    let Linked { points, mut passes, holds, values, histograms, notes, damage, .. } = linked(path);
    assert_eq!(damage, Vec::<String>::new());
    let mut told = Told { notes, ..Told::default() };
    for of in histograms {
        let (from, to) = (of.from[0], of.to[of.to.len() - 1]);
        told.distributions.push((of.name.clone(), of.count.iter().sum(), from, to));
    }
    for of in values {
        told.values.entry(points.name(of.signal)).or_default().push(of.value);
    }
    passes.sort_by_key(|pass| (pass.message, pass.time_ns, pass.point.order()));
    for Pass { message: id, time_ns, point, thread } in passes {
        let message = told.messages.entry(id).or_default();
        if let Some(reason) = point.reason() {
            assert_eq!(message.outcome, None, "message {id} ends once");
            message.outcome = Some((points.name(reason), time_ns));
        } else {
            assert!(!message.points.contains(&point), "message {id} passes {} once", points.name(point));
            message.points.push(point);
            message.passes.push((time_ns, points.name(point), thread));
        }
    }
    for (id, message) in &mut told.messages {
        let of_message = holds.within(*id, 0, u64::MAX);
        message.holds = of_message.map(|(hold, name)| (hold.from_ns, hold.to_ns, hold.by, name.to_owned())).collect();
    }
    told
}

impl Told {
    /// Messages that begin at a point of this name and come to one of that name, with their names and times since the first.
    fn through(&self, first: &str, last: &str) -> Vec<&Message> {
        let is_it = |message: &&Message| {
            message.passes.first().is_some_and(|(_, name, _)| name == first)
                && message.passes.last().is_some_and(|(_, name, _)| name == last)
        };
        self.messages.values().filter(is_it).collect()
    }

    fn outcomes(&self, first: &str) -> BTreeMap<&str, usize> {
        let mut outcomes = BTreeMap::new();
        let of_it = |message: &&Message| message.passes.first().is_some_and(|(_, name, _)| name == first);
        for message in self.messages.values().filter(of_it) {
            let outcome = message.outcome.as_ref().map_or("none", |(reason, _)| reason.as_str());
            *outcomes.entry(outcome).or_default() += 1;
        }
        outcomes
    }
}

impl Message {
    fn names(&self) -> Vec<&str> {
        self.passes.iter().map(|(_, name, _)| name.as_str()).collect()
    }

    fn since_first(&self) -> Vec<u64> {
        self.passes.iter().map(|(time_ns, ..)| time_ns - self.passes[0].0).collect()
    }
}

fn import(from: &Path) -> Result<(Told, Imported, tempfile::TempDir), Error> {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("run.mcap");
    let imported = ros2::import(from, &to, &mut |_| {})?;
    Ok((told(&to), imported, folder))
}

fn imported(trace: &Trace) -> (Told, Imported, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    trace.write(&folder.path().join("ust/uid/0/64-bit"));
    import(folder.path()).unwrap()
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ros2-caret-sample/end_to_end_sample")
}

const WAY: [&str; 11] = [
    "/camera timer 10 ms",
    "/camera publish /image",
    "/detector take /image",
    "/detector callback /image",
    "/detector publish /objects",
    "/plan/fusion take /objects",
    "/plan/fusion callback /objects",
    "/plan/fusion callback /objects end",
    "/plan/fusion timer 20 ms",
    "/plan/fusion publish /command",
    "/driver take /command",
];

#[test]
fn a_chain_goes_from_timer_to_the_last_callback_over_three_processes() {
    let robot = Robot::run(Version::Jazzy, USUAL, 20, &[]);
    let (told, imported, _folder) = imported(&robot.trace);
    assert_eq!((imported.damage.len(), imported.notes.len(), imported.stamps), (0, 0, 0), "{imported:?}");
    // Each tick: two callbacks and a publish of three layers in two processes, a callback and two takes; each other tick the
    // command's way besides.
    assert_eq!(
        (imported.ros_events, told.notes.len()),
        (20 * (3 * 2 + 2 * 3 + 2) + 10 * (2 * 2 + 3 + 1), 0),
        "{:?}",
        told.notes
    );
    let through = told.through("/camera timer 10 ms", "/driver callback /command end");
    assert_eq!(through.len(), 10);
    for message in &through {
        let names = message.names();
        assert_eq!(names[..WAY.len()], WAY);
        assert_eq!(names[WAY.len()..], ["/driver callback /command", "/driver callback /command end"]);
        let times = [0, 1_000, 2_000, 2_010, 5_000, 6_000, 6_010, 6_200, 8_000, 8_500, 9_000, 9_010, 9_300];
        assert_eq!(message.since_first(), times.map(|us| us * US));
        let threads = message.passes.iter().map(|(.., tid)| *tid);
        let expected = [CAMERA; 2].into_iter().chain([DETECTOR; 3]).chain([FUSION; 5]).chain([DRIVER; 3]);
        assert!(threads.eq(expected.map(|thread| thread.1)));
        let end_ns = message.passes.last().unwrap().0;
        assert_eq!(message.outcome, Some(("applied".to_owned(), end_ns)));
    }
    // Of two images the fusion uses the later.
    assert_eq!(
        told.outcomes("/camera timer 10 ms"),
        BTreeMap::from([("applied", 10), ("superseded", 9), ("in_flight", 1)])
    );
    assert_eq!(told.through("/plan/fusion timer 20 ms", "/driver callback /command end").len(), 10);
    let ages: Vec<&Vec<f64>> = told.values.values().collect();
    assert_eq!(ages, [&vec![9.3; 10]], "what the driver acts on is as old as the way is long");
    let [(name, count, from, to)] = told.distributions.as_slice() else { panic!("{:?}", told.distributions) };
    assert_eq!(name, "data age, /camera timer 10 ms → /driver callback /command end");
    assert!(*count == 10 && (*from..=*to).contains(&9_300_000) && to - from < 10_000, "{count} {from} {to}");
}

#[test]
fn every_version_tells_the_same_way() {
    for version in VERSIONS {
        let robot = Robot::run(version, USUAL, 40, &[]);
        let (told, ..) = imported(&robot.trace);
        let through = told.through("/camera timer 10 ms", "/driver callback /command end");
        assert_eq!(through.len(), 20, "{version:?}");
        for message in through {
            assert_eq!(*message.since_first().last().unwrap(), 9 * MS + 300 * US, "{version:?}");
            let takes = message.names().iter().filter(|name| name.contains(" take ")).count();
            let expected = if matches!(version, Version::Galactic | Version::Caret) { 0 } else { 3 };
            assert_eq!(takes, expected, "{version:?}");
        }
        let is_said = |what: &str| told.notes.iter().any(|note| note.contains(what));
        assert_eq!(is_said("order of their queue"), version == Version::Galactic, "{:?}", told.notes);
        assert_eq!(is_said("moment of their source timestamp"), version == Version::Humble, "{:?}", told.notes);
    }
}

#[test]
fn a_message_that_nobody_takes_is_not_taken() {
    for version in [Version::Humble, Version::Jazzy, Version::Caret] {
        let robot = Robot::run(version, USUAL, 40, &[9, 10, 17]);
        let (told, ..) = imported(&robot.trace);
        let lost: Vec<&Message> = told
            .messages
            .values()
            .filter(|message| message.outcome.as_ref().is_some_and(|(reason, _)| reason == "not_taken"))
            .collect();
        let ticks: Vec<u64> = lost.iter().map(|message| (message.passes[0].0 - START_NS) / TICK_NS).collect();
        assert_eq!(ticks, [9, 10, 17], "{version:?}");
        for message in lost {
            assert_eq!(message.names(), WAY[..2], "{version:?}");
        }
        // At tick 10 the fusion used that of tick 8 once more: the age says so, and no message is in two places.
        let ages = told.values.values().next().unwrap();
        assert_eq!(ages.iter().copied().fold(0.0, f64::max), 29.3, "{version:?}");
    }
}

#[test]
fn the_last_that_nobody_took_yet_is_under_way() {
    let robot = Robot::run(Version::Jazzy, USUAL, 40, &[39]);
    let (told, ..) = imported(&robot.trace);
    let outcomes = told.outcomes("/camera timer 10 ms");
    assert_eq!(outcomes.get("not_taken"), None, "{outcomes:?}");
}

#[test]
fn an_executor_that_is_busy_is_told_from_the_way() {
    let mut robot = Robot::run(Version::Jazzy, USUAL, 4, &[]);
    let trace = &mut robot.trace;
    // The detector's thread runs another node's callback when the image of a fifth tick comes.
    let at = START_NS + 4 * TICK_NS;
    let event = |trace: &mut Trace, name: &str, thread, at, fields: &[(&'static str, Value)]| {
        trace.event(name, 3, at, thread, fields);
    };
    let started = |callback| [("callback", Value::Hex(callback)), ("is_intra_process", Value::Int(0))];
    event(trace, "ros2:callback_start", CAMERA, at, &started(0x12));
    event(
        trace,
        "ros2:rcl_publish",
        CAMERA,
        at + MS,
        &[("publisher_handle", Value::Hex(0x13)), ("message", Value::Hex(1))],
    );
    let stamp = Value::Long((trace.offset_ns + at + MS) as i64);
    let published = [("rmw_publisher_handle", Value::Hex(0)), ("message", Value::Hex(1)), ("timestamp", stamp.clone())];
    event(trace, "ros2:rmw_publish", CAMERA, at + MS + US, &published);
    event(trace, "ros2:callback_end", CAMERA, at + MS + 2 * US, &[("callback", Value::Hex(0x12))]);
    event(trace, "ros2:callback_start", DETECTOR, at + MS + 3 * US, &started(0x99));
    event(trace, "ros2:callback_end", DETECTOR, at + 8 * MS, &[("callback", Value::Hex(0x99))]);
    let taken = [
        ("rmw_subscription_handle", Value::Hex(0x22)),
        ("message", Value::Hex(9)),
        ("source_timestamp", stamp),
        ("taken", Value::Int(1)),
    ];
    event(trace, "ros2:rmw_take", DETECTOR, at + 8 * MS + 50 * US, &taken);
    event(trace, "ros2:callback_start", DETECTOR, at + 8 * MS + 60 * US, &started(0x24));
    event(trace, "ros2:callback_end", DETECTOR, at + 9 * MS, &[("callback", Value::Hex(0x24))]);
    let (told, ..) = imported(trace);
    let last = told.messages.values().find(|m| m.passes[0].0 == at && m.passes[0].1 == WAY[0]).unwrap();
    assert_eq!(last.names(), WAY[..4]);
    assert_eq!(last.since_first(), [0, MS, 8 * MS + 50 * US, 8 * MS + 60 * US]);
    let expected = (at + MS + 3 * US, at + 8 * MS, DETECTOR.1, "a callback without a name".to_owned());
    assert_eq!(last.holds, [expected]);
    assert_eq!(told.messages.values().filter(|message| !message.holds.is_empty()).count(), 1, "nobody else waited");
}

#[test]
fn messages_within_a_process_are_followed_through_their_buffers() {
    let mut robot = Robot::run(Version::Jazzy, USUAL, 1, &[]);
    let trace = &mut robot.trace;
    let at = START_NS - 50 * MS;
    let event = |trace: &mut Trace, name: &str, at, fields: &[(&'static str, Value)]| {
        trace.event(&format!("ros2:{name}"), 1, at, DETECTOR, fields);
    };
    let hex = Value::Hex;
    event(trace, "rclcpp_buffer_to_ipb", at, &[("buffer", hex(0x70)), ("ipb", hex(0x71))]);
    // The subscription's second object, with a callback of its own.
    event(trace, "rclcpp_subscription_init", at, &[("subscription_handle", hex(0x31)), ("subscription", hex(0x73))]);
    event(trace, "rclcpp_subscription_callback_added", at, &[("subscription", hex(0x73)), ("callback", hex(0x74))]);
    event(trace, "rclcpp_ipb_to_subscription", at, &[("ipb", hex(0x71)), ("subscription", hex(0x73))]);
    let first = START_NS + 100 * MS;
    for tick in 0..8 {
        // Outside callbacks: the way begins with the publish.
        let at = first + tick * TICK_NS;
        event(trace, "rclcpp_intra_publish", at, &[("publisher_handle", hex(0x13)), ("message", hex(tick))]);
        let place = [("buffer", hex(0x70)), ("index", hex(tick % 3))];
        event(trace, "rclcpp_ring_buffer_enqueue", at + US, &place);
        event(trace, "rclcpp_ring_buffer_dequeue", at + 9 * US, &place);
        event(trace, "callback_start", at + 10 * US, &[("callback", hex(0x74)), ("is_intra_process", Value::Int(1))]);
        event(trace, "callback_end", at + 12 * US, &[("callback", hex(0x74))]);
    }
    let (told, ..) = imported(trace);
    let ways: Vec<&Message> = told.messages.values().filter(|m| m.passes[0].0 >= first).collect();
    assert_eq!(ways.len(), 8);
    for way in ways {
        let names = [
            "/detector publish /objects",
            "/plan/fusion take /objects",
            "/plan/fusion callback /objects",
            "/plan/fusion callback /objects end",
        ];
        assert_eq!((way.names(), way.since_first()), (names.to_vec(), [0, 9, 10, 12].map(|us| us * US).to_vec()));
    }
}

#[test]
fn kernel_events_come_over_with_what_they_mean_here() {
    let folder = tempfile::tempdir().unwrap();
    Robot::run(Version::Jazzy, USUAL, 10, &[]).trace.write(&folder.path().join("ust/uid/0/64-bit"));
    let mut kernel = Trace::new("kernel", USUAL);
    let at = START_NS;
    let idle = (0, 0, "swapper/1");
    let comm = |name: &str| Value::Text(name.to_owned());
    let switch = |(from, from_name, state): (i32, &str, i64), (to, to_name): (i32, &str)| {
        vec![
            ("prev_comm", comm(from_name)),
            ("prev_tid", Value::Int(from)),
            ("prev_prio", Value::Int(20)),
            ("prev_state", Value::Long(state)),
            ("next_comm", comm(to_name)),
            ("next_tid", Value::Int(to)),
            ("next_prio", Value::Int(-60)),
        ]
    };
    let mut event = |name: &str, at, fields: &[(&'static str, Value)]| kernel.event(name, 1, at, idle, fields);
    event(
        "lttng_statedump_process_state",
        at - MS,
        &[("tid", Value::Int(203)), ("pid", Value::Int(200)), ("name", comm("recv"))],
    );
    event("sched_switch", at, &switch((203, "recv", 1), (77, "hog")));
    event("irq_handler_entry", at + US, &[("irq", Value::Int(33)), ("name", comm("eth0"))]);
    event(
        "sched_waking",
        at + 2 * US,
        &[("comm", comm("vision")), ("tid", Value::Int(201)), ("prio", Value::Int(20)), ("target_cpu", Value::Int(1))],
    );
    event("irq_handler_exit", at + 3 * US, &[("irq", Value::Int(33)), ("ret", Value::Int(1))]);
    event(
        "sched_wakeup",
        at + 4 * US,
        &[("comm", comm("vision")), ("tid", Value::Int(201)), ("prio", Value::Int(20)), ("target_cpu", Value::Int(1))],
    );
    event("sched_switch", at + 5 * US, &switch((77, "hog", 0), (201, "vision")));
    event(
        "syscall_entry_futex",
        at + 6 * US,
        &[("uaddr", Value::Hex(0x7f00)), ("op", Value::Int(128)), ("val", Value::Int(2))],
    );
    event("syscall_exit_futex", at + 7 * US, &[("ret", Value::Long(-11))]);
    event("syscall_entry_unheard_of", at + 8 * US, &[("x", Value::Int(1))]);
    kernel.discarded = 3;
    kernel.write(&folder.path().join("kernel"));
    let to = folder.path().join("run.mcap");
    let imported = ros2::import(folder.path(), &to, &mut |_| {}).unwrap();
    assert_eq!(imported.damage, Vec::<String>::new());
    let records = records(&to);
    let batch = records.iter().find_map(|record| match record {
        Record::Kernel(batch) => Some(batch),
        _ => None,
    });
    let batch = batch.unwrap();
    let rows: Vec<_> = (0..batch.time_ns.len())
        .map(|row| {
            let kind = KernelEvent::from_number(batch.event[row]).unwrap();
            let args = [batch.arg0[row], batch.arg1[row], batch.arg2[row]];
            ((batch.time_ns[row] - at) / US, kind, batch.tid[row], batch.flags[row], args)
        })
        .collect();
    // x86_64's, whatever machine imports.
    let futex = 202;
    assert_eq!(
        rows,
        [
            (0, KernelEvent::SchedSwitch, 203, 0, [77, 1, 40 << 16 | 120]),
            (1, KernelEvent::IrqEnter, 77, 8, [33, 0, 0]),
            (2, KernelEvent::SchedWaking, 77, 8, [201, 1, 120]),
            (3, KernelEvent::IrqExit, 77, 8, [33, 0, 0]),
            (5, KernelEvent::SchedSwitch, 77, 0, [201, 0, 40 << 16 | 120]),
            (6, KernelEvent::SyscallEnter, 201, 0, [futex, 0x7f00, 128]),
            (7, KernelEvent::SyscallExit, 201, 0, [futex, -11, 0]),
        ]
    );
    let threads: HashMap<i32, (i32, String, bool)> = records
        .iter()
        .filter_map(|record| match record {
            Record::Thread(thread) => Some((thread.tid, (thread.pid, thread.comm.clone(), thread.recorded))),
            _ => None,
        })
        .collect();
    assert_eq!(threads[&203], (200, "recv".to_owned(), true), "a thread of a ROS process");
    assert_eq!(threads[&77], (77, "hog".to_owned(), false));
    let lost = records.iter().filter_map(|record| match record {
        Record::Lost(lost) => Some((lost.place.as_str(), lost.count)),
        _ => None,
    });
    assert_eq!(lost.collect::<Vec<_>>(), [("cpu 1 lttng kernel", 3)]);
    let info = taut_recording::info(&std::fs::read(&to).unwrap()).unwrap();
    assert_eq!((info.tier, info.kernel_source.as_str()), (Tier::Full, "lttng"));
}

#[test]
fn who_had_the_cpu_is_told_from_the_kernels_events() {
    let folder = tempfile::tempdir().unwrap();
    let mut robot = Robot::made(Version::Jazzy, USUAL);
    let mut kernel = Trace::new("kernel", USUAL);
    let mut event = |name: &str, cpu, at, fields: &[(&'static str, Value)]| kernel.event(name, cpu, at, CAMERA, fields);
    let comm = |tid| match tid {
        0 => "swapper",
        77 => "hog",
        100 => "camera",
        _ => "vision",
    };
    let switch = |from: i32, state: i64, to: i32| {
        let priority = Value::Int(20);
        [
            ("prev_comm", Value::Text(comm(from).to_owned())),
            ("prev_tid", Value::Int(from)),
            ("prev_prio", priority.clone()),
            ("prev_state", Value::Long(state)),
            ("next_comm", Value::Text(comm(to).to_owned())),
            ("next_tid", Value::Int(to)),
            ("next_prio", priority),
        ]
    };
    let waking = |tid| [("tid", Value::Int(tid)), ("prio", Value::Int(20)), ("target_cpu", Value::Int(1))];
    for tick in 0..400 {
        let at = START_NS + tick * 2 * TICK_NS;
        let late = if tick % 20 == 19 { 4 * MS } else { 0 };
        event("sched_switch", 0, at - 50 * US, &switch(0, 0, 100));
        robot.start(CAMERA, at, 0x12);
        if late > 0 {
            event("sched_switch", 0, at + 200 * US, &switch(100, 0, 77));
            event("sched_switch", 0, at + 200 * US + late, &switch(77, 1, 100));
        }
        let at = at + late;
        robot.publish(CAMERA, at + MS, 0x13, tick);
        event("sched_waking", 0, at + MS + 10 * US, &waking(201));
        event("sched_switch", 1, at + MS + 50 * US, &switch(0, 0, 201));
        robot.end(CAMERA, at + MS + 200 * US, 0x12);
        event("sched_switch", 0, at + MS + 300 * US, &switch(100, 1, 0));
        robot.take(DETECTOR, at + 2 * MS, 0x21, at + MS, tick);
        robot.start(DETECTOR, at + 2 * MS + 10 * US, 0x24);
        robot.end(DETECTOR, at + 3 * MS, 0x24);
        event("sched_switch", 1, at + 3 * MS + 100 * US, &switch(201, 1, 0));
    }
    robot.trace.write(&folder.path().join("ust"));
    kernel.write(&folder.path().join("kernel"));
    let to = folder.path().join("run.mcap");
    ros2::import(folder.path(), &to, &mut |_| {}).unwrap();
    let mut analyzer = taut_analysis::Analyzer::new(taut_analysis::Config::default());
    records(&to).iter().for_each(|record| analyzer.record(record));
    let info = taut_recording::info(&std::fs::read(&to).unwrap()).unwrap();
    let analysis = analyzer.finish(info, None, Vec::new(), 0).unwrap();
    let chain = &analysis.chains[0];
    assert_eq!(chain.name, "/camera timer 10 ms → /detector callback /image end");
    let first = &chain.explained.causes[0];
    assert_eq!((first.cause, first.detail.as_str()), (taut_analysis::Cause::Preempted, "by hog/77"));
    assert!(first.tail_share > 0.95, "{first:?}");
}

#[test]
fn the_sample_takes_the_way_that_its_architecture_names() {
    let (told, imported, _folder) = import(&sample()).unwrap();
    assert_eq!(imported.damage, Vec::<String>::new());
    let through = told.through("/sensor_dummy_node timer 100 ms", "/actuator_dummy_node callback /topic4 end");
    let names = through[0].names();
    // `target` of architecture.yaml, node by node.
    let architecture = std::fs::read_to_string(sample().join("../architecture.yaml")).unwrap();
    let path = architecture.split("named_paths:").nth(1).unwrap().split("executors:").next().unwrap();
    let nodes: Vec<&str> = path.lines().filter_map(|line| line.split("node_name: ").nth(1)).collect();
    let mut on_the_way: Vec<&str> = names.iter().map(|name| name.split(' ').next().unwrap()).collect();
    on_the_way.dedup();
    assert_eq!(on_the_way, nodes);
    let topics: Vec<&str> = path.lines().filter_map(|line| line.split("publish_topic_name: ").nth(1)).collect();
    let published: Vec<&str> = names.iter().filter_map(|name| name.split(" publish ").nth(1)).collect();
    assert_eq!(published, topics[..4]);
    assert!(through.iter().all(|message| message.names() == names));
}

#[test]
fn the_layout_of_the_files_makes_no_difference() {
    let of = |layout| imported(&Robot::run(Version::Jazzy, layout, 30, &[5]).trace).0;
    let usual = of(USUAL);
    for choice in 0..16 {
        let is = |bit: u32| choice >> bit & 1 == 1;
        let layout = Layout { is_big: is(0), is_large: is(1), is_packed: is(2), is_json: is(3), packet_events: 7 };
        assert_eq!(of(layout), usual, "{layout:?}");
    }
}

#[test]
fn a_torn_packet_is_damage_and_what_is_before_it_comes_over() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout { packet_events: 10, ..USUAL };
    Robot::run(Version::Jazzy, layout, 100, &[]).trace.write(folder.path());
    let stream = folder.path().join(format!("channel_{}", CAMERA.1 % 4));
    let bytes = std::fs::read(&stream).unwrap();
    std::fs::write(&stream, &bytes[..bytes.len() - 4000]).unwrap();
    let (told, imported, _folder) = import(folder.path()).unwrap();
    assert!(imported.damage[0].contains("is truncated"), "{:?}", imported.damage);
    assert!(told.messages.len() > 100);
}

#[test]
fn what_is_not_known_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |metadata: &[u8]| {
        std::fs::write(folder.path().join("metadata"), metadata).unwrap();
        import(folder.path()).err().unwrap().to_string()
    };
    let robot = Robot::run(Version::Jazzy, Layout { is_packed: false, ..USUAL }, 1, &[]);
    let text = robot.trace.metadata();
    let ctf3 = refused(b"\x1e{\"type\":\"preamble\",\"version\":3}");
    assert!(ctf3.contains("version 3 of CTF"), "{ctf3}");
    let json = robot.trace.json();
    let odd = refused(json.replace("null-terminated-string", "optional").as_bytes());
    assert!(odd.contains("\"optional\""), "{odd}");
    let newer = refused(text.replace("CTF 1.8", "CTF 1.9").as_bytes());
    assert!(newer.contains("version 1.9 of CTF"), "{newer}");
    let newer = refused(text.replace("minor = 8", "minor = 9").as_bytes());
    assert!(newer.contains("version 1.9 of CTF"), "{newer}");
    let broken = refused(text.replace("uint32_t magic;", "uint33_t magic;").as_bytes());
    assert!(broken.contains("line 13") && broken.contains("uint33_t"), "{broken}");
    let other = refused(b"hello");
    assert!(other.contains("is no CTF trace"), "{other}");
    std::fs::remove_file(folder.path().join("metadata")).unwrap();
    let nothing = import(folder.path()).err().unwrap().to_string();
    assert!(nothing.contains("\"metadata\""), "{nothing}");
    let empty = refused(text.as_bytes());
    assert!(empty.contains("holds no data"), "{empty}");
}

#[test]
fn what_the_tracer_discarded_is_told() {
    let mut robot = Robot::run(Version::Jazzy, USUAL, 10, &[]);
    robot.trace.discarded = 5;
    let (_, imported, _folder) = imported(&robot.trace);
    let lost = imported.notes.iter().find(|note| note.contains("discarded")).unwrap();
    assert!(lost.contains("discarded 15 events"), "{lost}");
}

#[test]
fn traces_of_several_machines_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    for (host, boot) in [("a", "1"), ("b", "2")] {
        let mut robot = Robot::run(Version::Jazzy, USUAL, 10, &[]);
        (robot.trace.host, robot.trace.boot) = (host, boot);
        // The second machine was started 50 s later: its clock shows less.
        robot.trace.offset_ns += if host == "b" { 50_000_000_000 } else { 0 };
        robot.trace.write(&folder.path().join(host));
    }
    let (told, imported, _folder) = import(folder.path()).unwrap();
    assert!(imported.notes.iter().any(|note| note.contains("2 machines")), "{:?}", imported.notes);
    let starts: Vec<u64> = told.messages.values().map(|message| message.passes[0].0).collect();
    let (first, last) = (starts.iter().min().unwrap(), starts.iter().max().unwrap());
    assert!(last - first > 50_000_000_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_trace_is_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
        in_metadata: bool,
        is_large: bool,
        is_json: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout { is_large, is_json, is_packed: false, packet_events: 20, ..USUAL };
        Robot::run(Version::Jazzy, layout, 4, &[]).trace.write(folder.path());
        let file = folder.path().join(if in_metadata { "metadata".to_owned() } else { format!("channel_{}", CAMERA.1 % 4) });
        let mut bytes = std::fs::read(&file).unwrap();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&file, bytes).unwrap();
        let to = folder.path().join("run.mcap");
        match ros2::import(folder.path(), &to, &mut |_| {}) {
            // Whatever it says can be linked.
            Ok(_) => drop(linked(&to)),
            Err(error) => prop_assert!(!error.to_string().is_empty() && !to.exists()),
        }
    }
}
