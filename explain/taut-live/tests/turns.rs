//! A stream cut into turns comes to what the whole of it is.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use taut_analysis::{Cause, DeclaredChain};
use taut_live::{Following, Growing, State, Turner, follow};
use taut_recording::{
    Ending, Info, KernelBatch, KernelEvent, Name, Record, RosBatch, RosEvent, RosObject, RosObjectKind, StampBatch,
    Thread, Tier, Writer,
};

const START_NS: u64 = 100_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const NAMES: [&str; 5] = ["sensor.read", "plan.done", "arm.written", "applied", "speed_limit"];

fn info() -> Info {
    // No kernel events, and no thread of /proc either.
    Info { start_monotonic_ns: START_NS, tier: Tier::Full, ..Info::default() }
}

/// Stamps on CLOCK_MONOTONIC: (time, message, name or reason, is outcome).
fn stamps(tid: i32, rows: &[(u64, u64, u32, bool)]) -> Record {
    Record::Stamps(StampBatch {
        pid: 1,
        tid,
        counter: 2,
        ticks: rows.iter().map(|(time, ..)| *time).collect(),
        message_id: rows.iter().map(|(_, id, ..)| *id).collect(),
        point: rows.iter().map(|(_, _, name, is_outcome)| if *is_outcome { 0 } else { *name }).collect(),
        kind: rows.iter().map(|(.., is_outcome)| if *is_outcome { 4 } else { 1 }).collect(),
        value: rows.iter().map(|(_, _, name, is_outcome)| if *is_outcome { u64::from(*name) } else { 0 }).collect(),
    })
}

/// A message's stamps: 1 ms to each next point, `slow` more to the last one; dropped behind the second one or applied.
fn message(id: u64, start_ns: u64, slow_ns: u64, dropped: bool) -> Record {
    let mut rows = vec![(start_ns, id, 1, false), (start_ns + MS, id, 2, false)];
    match dropped {
        true => rows.push((start_ns + MS, id, 5, true)),
        false => {
            rows.push((start_ns + 2 * MS + slow_ns, id, 3, false));
            rows.push((start_ns + 2 * MS + slow_ns, id, 4, true));
        }
    }
    stamps(7, &rows)
}

struct Stream {
    turner: Turner,
    state: Mutex<State>,
    until_ns: u64,
}

impl Stream {
    fn new(declared: Vec<DeclaredChain>) -> Stream {
        let mut turner = Turner::new(declared, true);
        for (id, name) in (1..).zip(NAMES) {
            turner.take(START_NS, Record::Name(Name { id, name: name.into() }));
        }
        Stream { turner, state: Mutex::default(), until_ns: START_NS }
    }

    fn turn(&mut self, until_ns: u64) {
        self.turner.turn(&[&info()], until_ns, || self.state.lock().unwrap(), self.until_ns);
        self.until_ns = until_ns;
    }

    fn state(&self) -> State {
        self.state.lock().unwrap().clone()
    }
}

#[test]
fn each_message_counts_once_however_turns_cut_them() {
    let mut stream = Stream::new(Vec::new());
    let mut next = 1;
    for n in 0..2000u64 {
        // Out of step with the turns, each 50th stalls, and each 10th is dropped.
        let start_ns = START_NS + n * 7_770_000;
        stream.turner.take(start_ns, message(n, start_ns, if n % 50 == 3 { 40 * MS } else { 0 }, n % 10 == 9));
        if start_ns > START_NS + next * SECOND_NS {
            // What the recorder has not yet handed on is counted in the next turn.
            stream.turn(START_NS + next * SECOND_NS - 300 * MS);
            next += 1;
        }
    }
    stream.turn(START_NS + 2000 * 7_770_000 + SECOND_NS);
    let state = stream.state();
    let [chain] = &state.chains[..] else { panic!("{:?}", state.chains) };
    assert_eq!(chain.points, NAMES[..3]);
    assert_eq!(chain.name, "sensor.read → arm.written");
    assert_eq!(chain.total.outcomes, [("applied".into(), 1800), ("speed_limit".into(), 200)].into());
    assert_eq!((chain.total.way.count(), chain.total.partial), (1800, 0));
    assert_eq!(chain.total.way.sum_ns(), 1800 * 2 * MS + 40 * 40 * MS);
    assert_eq!((chain.total.way.min_ns(), chain.total.way.max_ns()), (Some(2 * MS), Some(42 * MS)));
    let hops: Vec<(u64, u64)> = chain.total.hops.iter().map(|h| (h.delay.count(), h.delay.sum_ns())).collect();
    assert_eq!(hops, [(2000, 2000 * MS), (1800, 1800 * MS + 40 * 40 * MS)]);
    // Without kernel events nobody knows whose time it was, but all of it is there.
    let unknown: u64 = chain.total.hops.iter().map(|hop| hop.causes[&Cause::Unknown].sum_ns()).sum();
    assert_eq!(unknown, hops[0].1 + hops[1].1);
    assert_eq!(state.stamps, 2000 * 3 + 1800);
    let (recent, span_ns) = chain.recently();
    assert!(recent.messages() < 1500 && span_ns <= 11 * SECOND_NS, "{} in {span_ns}", recent.messages());
}

#[test]
fn a_chain_keeps_its_points_while_nobody_gets_through() {
    let mut stream = Stream::new(Vec::new());
    for n in 0..600u64 {
        let start_ns = START_NS + n * 10 * MS;
        stream.turner.take(start_ns, message(n, start_ns, 0, n >= 100));
        if n % 100 == 99 {
            stream.turn(start_ns + 5 * MS);
        }
    }
    let state = stream.state();
    let names: Vec<&str> = state.chains.iter().map(|chain| chain.name.as_str()).collect();
    assert_eq!(names, ["sensor.read → arm.written"]);
    let total = &state.chains[0].total;
    assert_eq!(total.outcomes, [("applied".into(), 100), ("speed_limit".into(), 500)].into());
    assert_eq!((total.hops[0].delay.count(), total.hops[1].delay.count()), (600, 100));
}

#[test]
fn a_chain_that_goes_on_further_is_found_anew_and_nobody_counts_twice() {
    let mut stream = Stream::new(Vec::new());
    for n in 0..1000u64 {
        let start_ns = START_NS + n * 10 * MS;
        let mut rows = vec![(start_ns, n, 1, false), (start_ns + MS, n, 2, false)];
        if n >= 400 {
            rows.push((start_ns + 2 * MS, n, 3, false));
        }
        stream.turner.take(start_ns, stamps(7, &rows));
        if n % 100 == 99 {
            stream.turn(start_ns + 5 * MS);
        }
    }
    let state = stream.state();
    let names: Vec<&str> = state.chains.iter().map(|chain| chain.name.as_str()).collect();
    assert!(names.contains(&"sensor.read → plan.done") && names.contains(&"sensor.read → arm.written"), "{names:?}");
    assert_eq!(state.chains.iter().map(|chain| chain.total.messages()).sum::<u64>(), 1000);
}

#[test]
fn stamps_wait_for_their_names() {
    let mut stream = Stream::new(Vec::new());
    let late = |n: u64, start_ns| stamps(7, &[(start_ns, n, 6, false), (start_ns + MS, n, 7, false)]);
    for n in 0..200u64 {
        let start_ns = START_NS + n * 10 * MS;
        stream.turner.take(start_ns, late(n, start_ns));
        if n == 99 {
            stream.turn(start_ns + 5 * MS);
            assert!(stream.state().chains.is_empty());
            for (id, name) in [(6, "imu.read"), (7, "imu.used")] {
                stream.turner.take(start_ns, Record::Name(Name { id, name: name.into() }));
            }
        }
    }
    stream.turn(START_NS + 2 * SECOND_NS);
    let state = stream.state();
    let [chain] = &state.chains[..] else { panic!("{:?}", state.chains) };
    assert_eq!((chain.name.as_str(), chain.total.way.count()), ("imu.read → imu.used", 200));
}

#[test]
fn a_declared_chain_has_its_name_and_its_deadline() {
    let declared = DeclaredChain {
        name: "reach".into(),
        points: NAMES[..3].iter().map(|name| (*name).to_owned()).collect(),
        deadline_ns: Some(10 * MS),
    };
    let unused = DeclaredChain { name: "none".into(), points: vec!["a".into(), "b".into()], deadline_ns: None };
    let mut stream = Stream::new(vec![unused, declared]);
    for n in 0..100u64 {
        let start_ns = START_NS + n * 10 * MS;
        stream.turner.take(start_ns, message(n, start_ns, if n % 20 == 0 { 9 * MS } else { 0 }, false));
    }
    stream.turn(START_NS + 2 * SECOND_NS);
    let state = stream.state();
    let [chain] = &state.chains[..] else { panic!("{:?}", state.chains) };
    assert_eq!((chain.name.as_str(), chain.deadline_ns, chain.total.missed), ("reach", Some(10 * MS), 5));
}

#[test]
fn who_was_longer_on_the_way_than_the_window_is_counted_and_said() {
    let mut stream = Stream::new(Vec::new());
    let slow = 10_000;
    stream.turner.take(START_NS, stamps(7, &[(START_NS + MS, slow, 1, false), (START_NS + 2 * MS, slow, 2, false)]));
    for second in 0..10 {
        for n in 0..100u64 {
            let start_ns = START_NS + second * SECOND_NS + n * 10 * MS;
            stream.turner.take(start_ns, message(second * 100 + n, start_ns, 0, false));
        }
        if second == 7 {
            let end_ns = START_NS + 7 * SECOND_NS + 500 * MS;
            stream.turner.take(end_ns, stamps(7, &[(end_ns, slow, 3, false), (end_ns, slow, 4, true)]));
        }
        stream.turn(START_NS + (second + 1) * SECOND_NS);
    }
    stream.turn(START_NS + 11 * SECOND_NS);
    let total = &stream.state().chains[0].total;
    assert_eq!(total.way.count(), 1000);
    // It looked lost when it had gone out of sight, and came to its end after all.
    assert_eq!((total.partial, total.outcomes["applied"], total.outcomes["unexplained"]), (1, 1001, 1));
}

#[test]
fn kernel_events_say_whose_time_it_was_and_what_threads_did() {
    let mut stream = Stream::new(Vec::new());
    let thread = |tid, comm: &str, recorded| {
        Record::Thread(Thread { pid: 1, tid, comm: comm.into(), recorded, ..Thread::default() })
    };
    stream.turner.take(START_NS, thread(7, "robot", true));
    stream.turner.take(START_NS, thread(8, "hog", false));
    let mut kernel = KernelBatch { cpu: 0, ..KernelBatch::default() };
    let mut switch = |time_ns: u64, from: i32, to: i64, state: i64| {
        kernel.push(time_ns, KernelEvent::SchedSwitch as u8, 0, from, [to, state, 120 << 16 | 120]);
    };
    switch(START_NS, 0, 7, 0);
    for n in 0..100u64 {
        // On the way to the second point the hog has the CPU for 0.4 ms.
        let start_ns = START_NS + MS + n * 10 * MS;
        switch(start_ns + 200_000, 7, 8, 0);
        switch(start_ns + 600_000, 8, 7, 1);
        stream.turner.take(start_ns, message(n, start_ns, 0, false));
    }
    stream.turner.take(START_NS, Record::Kernel(kernel));
    stream.turn(START_NS + SECOND_NS);
    let state = stream.state();
    let hop = &state.chains[0].total.hops[0];
    let sum = |cause| hop.causes.get(&cause).map_or(0, taut_live::Spread::sum_ns);
    assert_eq!((sum(Cause::Preempted), sum(Cause::Cpu)), (100 * 400_000, 100 * 600_000));
    assert_eq!(hop.causes[&Cause::Preempted].count(), 100, "once a message");
    let [thread] = &state.threads[..] else { panic!("{:?}", state.threads) };
    assert_eq!(thread.name, "robot/7");
    assert_eq!(thread.recently()["preempted"], 100 * 400_000);
}

fn recording(path: &Path) {
    let mut writer = Writer::create(path, &info()).unwrap();
    for (id, name) in (1..).zip(NAMES) {
        writer.write(&Record::Name(Name { id, name: name.into() })).unwrap();
    }
    for n in 0..300u64 {
        let start_ns = START_NS + n * 10 * MS;
        writer.write(&message(n, start_ns, 0, false)).unwrap();
        writer.flush_due(start_ns).unwrap();
    }
    let ending = Ending { end_monotonic_ns: START_NS + 4 * SECOND_NS, ..Ending::default() };
    writer.finish(&ending).unwrap();
}

#[test]
fn a_recording_is_followed_to_its_end_and_what_is_eaten_gives_its_room_back() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    recording(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    // Something to eat: records of nobody's, ahead of the rest.
    let mut padded = bytes[..8].to_vec();
    padded.extend([0x80].into_iter().chain((3u64 << 20).to_le_bytes()).chain(vec![1; 3 << 20]));
    padded.append(&mut bytes.split_off(8));
    std::fs::write(&path, padded).unwrap();
    let before = std::fs::metadata(&path).unwrap().blocks();
    let state = Arc::new(Mutex::new(State::default()));
    let following = Following {
        recordings: vec![Growing { eat: true, ..Growing::of(path.clone()) }],
        chains: Vec::new(),
        turn: Duration::from_millis(1),
        is_late: false,
        has_tail: false,
        hosts: Vec::new(),
        clocks: None,
    };
    let follower = follow(following, Arc::clone(&state)).unwrap();
    let is_over = || follower.state().ending.is_some() || follower.state().failure.is_some();
    while !is_over() {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(follower);
    let state = state.lock().unwrap().clone();
    assert_eq!(state.failure, None);
    assert_eq!(state.chains[0].total.way.count(), 300);
    let after = std::fs::metadata(&path).unwrap().blocks();
    assert!(after + 2048 * 2 < before, "{after} of {before} blocks are left");
}

#[test]
fn what_is_no_recording_fails_with_the_file_s_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    std::fs::write(&path, vec![7; 4096]).unwrap();
    let following = Following {
        recordings: vec![Growing::of(path)],
        chains: Vec::new(),
        turn: Duration::from_millis(1),
        is_late: true,
        has_tail: true,
        hosts: Vec::new(),
        clocks: None,
    };
    let state = Arc::new(Mutex::new(State::default()));
    let follower = follow(following, state).unwrap();
    while follower.state().failure.is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(follower.state().failure.clone().unwrap().contains("run.mcap: is not a recording"));
}

/// A ROS 2 timer that publishes to two other nodes: two chains, of which most points have the same names.
#[test]
fn messages_of_ros_2_count_once_in_each_of_their_chains() {
    const TIMER: u64 = 0x10;
    let object = |kind, handle, owner, other, number, name: &str| {
        let name = name.to_owned();
        let object =
            RosObject { time_ns: START_NS, pid: 1, kind, handle, owner, other, number, name, text: "/".into() };
        Record::RosObject(object)
    };
    let mut stream = Stream::new(Vec::new());
    let mut known = vec![
        object(RosObjectKind::Node, 1, 0, 0, 0, "camera"),
        object(RosObjectKind::Timer, 2, 0, 0, 10 * MS, ""),
        object(RosObjectKind::TimerNode, 2, 1, 0, 0, ""),
        object(RosObjectKind::TimerCallback, TIMER, 2, 0, 0, ""),
        object(RosObjectKind::Publisher, 3, 1, 4, 10, "/image"),
    ];
    for (node, name) in [(0x20, "planner"), (0x30, "logger")] {
        known.push(object(RosObjectKind::Node, node, 0, 0, 0, name));
        known.push(object(RosObjectKind::Subscription, node + 1, node, node + 2, 10, "/image"));
        known.push(object(RosObjectKind::SubscriptionCallback, node + 3, node + 1, 0, 0, ""));
    }
    known.into_iter().for_each(|record| stream.turner.take(START_NS, record));
    let events = |tid, rows: &[(u64, RosEvent, u64, [u64; 3])]| {
        let mut batch = RosBatch { pid: 1, tid, counter: 2, ..RosBatch::default() };
        rows.iter().for_each(|(ticks, event, handle, args)| batch.push(*ticks, *event as u8, *handle, *args));
        Record::Ros(batch)
    };
    let mut next = 1;
    for n in 0..1000u64 {
        // Out of step with the turns.
        let at = START_NS + n * 9_770_000;
        let camera = [
            (at, RosEvent::CallbackStart, TIMER, [0; 3]),
            (at + MS, RosEvent::RclPublish, 3, [n, 0, 0]),
            (at + MS, RosEvent::RmwPublish, 4, [n, at, 0]),
            (at + 2 * MS, RosEvent::CallbackEnd, TIMER, [0; 3]),
        ];
        stream.turner.take(at, events(7, &camera));
        for (tid, node) in [(8, 0x20), (9, 0x30)] {
            let taken = [
                (at + 3 * MS, RosEvent::Take, node + 2, [n, at, 1]),
                (at + 3 * MS, RosEvent::CallbackStart, node + 3, [0; 3]),
                (at + 5 * MS, RosEvent::CallbackEnd, node + 3, [0; 3]),
            ];
            stream.turner.take(at + 3 * MS, events(tid, &taken));
        }
        if at > START_NS + next * SECOND_NS {
            stream.turn(START_NS + next * SECOND_NS - 300 * MS);
            next += 1;
        }
    }
    stream.turn(START_NS + 1000 * 9_770_000 + SECOND_NS);
    let state = stream.state();
    assert_eq!(state.ros_events, 1000 * 10);
    let mut chains: Vec<_> = state.chains.iter().map(|chain| (chain.name.as_str(), &chain.total)).collect();
    chains.sort_by_key(|(name, _)| *name);
    let names: Vec<&str> = chains.iter().map(|(name, _)| *name).collect();
    let end = |node: &str| format!("/camera timer 10 ms → /{node} callback /image end");
    assert_eq!(names, [end("logger"), end("planner")]);
    for (name, total) in chains {
        assert_eq!(total.outcomes, [("applied".into(), 1000)].into(), "{name}");
        assert_eq!((total.way.count(), total.way.sum_ns()), (1000, 1000 * 5 * MS), "{name}");
    }
}

/// A host whose clock is ahead by so much: its points, and its stamps by the true time.
fn host(path: &Path, name: &str, ahead_ns: u64, points: [&str; 2], rows: &[(u64, u64, u32)]) {
    let start_monotonic_ns = START_NS + ahead_ns;
    let info = Info { host: name.into(), start_monotonic_ns, ..info() };
    let mut writer = Writer::create(path, &info).unwrap();
    for (id, name) in (1..).zip(points) {
        writer.write(&Record::Name(Name { id, name: name.into() })).unwrap();
    }
    for (time_ns, id, point) in rows {
        writer.write(&stamps(7, &[(time_ns + ahead_ns, *id, *point, false)])).unwrap();
        writer.flush_due(time_ns + ahead_ns).unwrap();
    }
    let ending = Ending { end_monotonic_ns: START_NS + ahead_ns + 4 * SECOND_NS, ..Ending::default() };
    writer.finish(&ending).unwrap();
}

/// Setpoints take 200 µs at least, states 300 µs.
fn two_hosts(folder: &Path, ahead_ns: u64) -> [Growing; 2] {
    const STATES: u64 = 1 << 32;
    let (mut desk, mut robot) = (Vec::new(), Vec::new());
    for n in 0..300u64 {
        let sent_ns = START_NS + 10 * MS + n * 10 * MS;
        let received_ns = sent_ns + 200_000 + n * 7 % 5 * 30_000;
        let answered_ns = received_ns + MS;
        desk.extend([(sent_ns, n, 1), (answered_ns + 300_000 + n * 3 % 7 * 40_000, STATES + n, 2)]);
        robot.extend([(received_ns, n, 1), (answered_ns, STATES + n, 2)]);
    }
    let [of_desk, of_robot] = ["desk.mcap", "robot.mcap"].map(|name| folder.join(name));
    host(&of_desk, "desk", 0, ["sent", "back"], &desk);
    host(&of_robot, "robot", ahead_ns, ["received", "answered"], &robot);
    [of_desk, of_robot].map(Growing::of)
}

fn followed(recordings: Vec<Growing>, hosts: &[&str]) -> State {
    let chain = |name: &str, points: [&str; 2]| DeclaredChain {
        name: name.into(),
        points: points.map(String::from).to_vec(),
        deadline_ns: None,
    };
    let chains =
        vec![chain("setpoint", ["desk:sent", "robot:received"]), chain("state", ["robot:answered", "desk:back"])];
    let following = Following {
        recordings,
        chains,
        turn: Duration::from_millis(1),
        is_late: false,
        has_tail: true,
        hosts: hosts.iter().map(|host| String::from(*host)).collect(),
        clocks: None,
    };
    let state = Arc::new(Mutex::new(State::default()));
    let follower = follow(following, state).unwrap();
    while follower.state().ending.is_none() && follower.state().failure.is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    follower.state().clone()
}

#[test]
fn two_hosts_are_followed_as_one_with_a_bound_of_their_clocks() {
    const AHEAD_NS: u64 = 500 * SECOND_NS;
    let folder = tempfile::tempdir().unwrap();
    let state = followed(two_hosts(folder.path(), AHEAD_NS).to_vec(), &[]);
    assert_eq!((&state.failure, &state.unaligned), (&None, &None));
    let [clocks] = &state.clocks[..] else { panic!("{:?}", state.clocks) };
    let bound_ns = clocks.bound_ns.unwrap();
    assert_eq!((&clocks.hosts, clocks.messages), (&["desk".to_owned(), "robot".to_owned()], [300, 300]));
    // Half of the fastest way there and back, and what clocks may drift meanwhile.
    assert!((250_000..260_000).contains(&bound_ns), "{clocks:?}");
    assert!((clocks.offset_ns - AHEAD_NS as i64).unsigned_abs() <= bound_ns, "{clocks:?}");
    for (name, least_ns, most_ns) in [("setpoint", 200_000, 320_000), ("state", 300_000, 540_000)] {
        let chain =
            state.chains.iter().find(|chain| chain.name == name).unwrap_or_else(|| panic!("{:?}", state.chains));
        let hop = &chain.total.hops[0].delay;
        assert_eq!((chain.total.messages(), hop.count()), (300, 300), "{chain:?}");
        let is_within = |ns: Option<u64>, truth_ns: u64| ns.is_some_and(|ns| ns.abs_diff(truth_ns) <= bound_ns);
        assert!(is_within(hop.min_ns(), least_ns) && is_within(hop.max_ns(), most_ns), "{hop:?}");
    }
}

#[test]
fn hosts_of_one_name_are_not_followed_unless_they_get_names() {
    let folder = tempfile::tempdir().unwrap();
    let [desk, robot] = two_hosts(folder.path(), SECOND_NS);
    let again = folder.path().join("again.mcap");
    host(&again, "desk", SECOND_NS, ["received", "answered"], &[(START_NS, 1, 1)]);
    let failure = followed(vec![desk.clone(), Growing::of(again)], &[]).failure.unwrap();
    assert!(
        failure.contains("two recordings are of a host named \"desk\": name all hosts with --hosts A,B"),
        "{failure}"
    );
    let state = followed(vec![desk, robot], &["desk", "arm"]);
    assert_eq!(state.clocks[0].hosts[1], "arm");
}
