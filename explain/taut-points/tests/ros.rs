//! ROS 2 events to messages: nodes that are killed, restart and lose messages.

use std::collections::BTreeMap;

use taut_clock::Counter;
use taut_points::{HeldBy, Intake};
use taut_recording::{Info, Kind, Name, Record, RosBatch, RosEvent, RosObject, RosObjectKind, StampBatch};

const MS: u64 = 1_000_000;
const CAMERA: i32 = 1;

struct Robot {
    records: Vec<Record>,
}

impl Robot {
    /// A camera that publishes /image each 10 ms.
    fn new() -> Robot {
        Robot::of("/image")
    }

    /// The same with a detector that subscribes to it, with a queue of this depth.
    fn with_detector(depth: u64) -> Robot {
        let mut robot = Robot::new();
        robot.object(2, RosObjectKind::Node, 1, 0, 0, "detector");
        robot.object(2, RosObjectKind::Subscription, 2, 1, depth, "/image");
        robot.object(2, RosObjectKind::SubscriptionCallback, 3, 2, 0, "");
        robot
    }

    /// The same with this topic.
    fn of(topic: &str) -> Robot {
        let mut robot = Robot { records: Vec::new() };
        robot.camera(CAMERA, "camera", topic);
        for n in 1..=100 {
            let at = n * 10 * MS;
            robot.events(
                CAMERA,
                &[
                    (at, RosEvent::CallbackStart, 3, [0; 3]),
                    (at + MS, RosEvent::RclPublish, 4, [0; 3]),
                    (at + MS, RosEvent::RmwPublish, 0, [0, at, 0]),
                    (at + 2 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
                ],
            );
        }
        robot
    }

    /// A node whose timer of 10 ms has a publisher.
    fn camera(&mut self, pid: i32, node: &str, topic: &str) {
        self.object(pid, RosObjectKind::Node, 1, 0, 0, node);
        self.object(pid, RosObjectKind::Timer, 2, 0, 10 * MS, "");
        self.object(pid, RosObjectKind::TimerNode, 2, 1, 0, "");
        self.object(pid, RosObjectKind::TimerCallback, 3, 2, 0, "");
        self.object(pid, RosObjectKind::Publisher, 4, 1, 1, topic);
    }

    fn object(&mut self, pid: i32, kind: RosObjectKind, handle: u64, owner: u64, number: u64, name: &str) {
        let (name, text) = (name.to_owned(), "/".to_owned());
        let object = RosObject { time_ns: 1, pid, kind, handle, owner, other: handle + 50, number, name, text };
        self.records.push(Record::RosObject(object));
    }

    fn events(&mut self, pid: i32, rows: &[(u64, RosEvent, u64, [u64; 3])]) {
        let mut batch = RosBatch { pid, tid: pid, counter: Counter::Monotonic as u8, ..RosBatch::default() };
        rows.iter().for_each(|(ticks, event, handle, args)| batch.push(*ticks, *event as u8, *handle, *args));
        self.records.push(Record::Ros(batch));
    }

    /// A process with the node /detector, whose queue holds 2, and which takes these images 3 ms after they were due.
    fn detector(mut self, pid: i32, images: impl Iterator<Item = u64>) -> Robot {
        self.object(pid, RosObjectKind::Node, 1, 0, 0, "detector");
        self.object(pid, RosObjectKind::Subscription, 2, 1, 2, "/image");
        self.object(pid, RosObjectKind::SubscriptionCallback, 3, 2, 0, "");
        for n in images {
            let at = n * 10 * MS;
            self.events(
                pid,
                &[
                    (at + 3 * MS, RosEvent::Take, 52, [0, at, 1]),
                    (at + 3 * MS, RosEvent::CallbackStart, 3, [0; 3]),
                    (at + 4 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
                ],
            );
        }
        self
    }

    /// A process with the node /planner, which takes what /detector (process 2) publishes in its callback from this image on.
    fn planner(mut self, first: u64) -> Robot {
        const DETECTOR: i32 = 2;
        self.object(DETECTOR, RosObjectKind::Publisher, 4, 1, 2, "/detections");
        self.object(3, RosObjectKind::Node, 1, 0, 0, "planner");
        self.object(3, RosObjectKind::Subscription, 2, 1, 2, "/detections");
        self.object(3, RosObjectKind::SubscriptionCallback, 3, 2, 0, "");
        for n in 1..=100 {
            let (at, stamp) = (n * 10 * MS + 3 * MS, n * 10 * MS + 3);
            self.events(
                DETECTOR,
                &[
                    (at, RosEvent::Take, 52, [0, n * 10 * MS, 1]),
                    (at, RosEvent::CallbackStart, 3, [0; 3]),
                    (at + 10, RosEvent::RclPublish, 4, [0; 3]),
                    (at + 10, RosEvent::RmwPublish, 0, [0, stamp, 0]),
                    (at + MS, RosEvent::CallbackEnd, 3, [0; 3]),
                ],
            );
            let rows = [
                (at + 2 * MS, RosEvent::Take, 52, [0, stamp, 1]),
                (at + 2 * MS, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 3 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
            ];
            self.events(3, if n < first { &[] } else { &rows });
        }
        self
    }

    /// How many messages passed each point of this name.
    fn passed(&self, point: &str) -> usize {
        let mut intake = Intake::default();
        self.records.iter().for_each(|record| intake.record(record));
        let linked = intake.finish(&Info::default(), None, false).linked;
        linked.passes.iter().filter(|pass| pass.point.is_pass() && linked.points.name(pass.point) == point).count()
    }

    /// How many messages ended how, and the notes.
    fn ends(&self) -> (BTreeMap<String, usize>, Vec<String>) {
        let mut intake = Intake::default();
        self.records.iter().for_each(|record| intake.record(record));
        let linked = intake.finish(&Info::default(), None, false).linked;
        let mut ends = BTreeMap::new();
        for reason in linked.passes.iter().filter_map(|pass| pass.point.reason()) {
            *ends.entry(linked.points.name(reason)).or_default() += 1;
        }
        (ends, linked.notes)
    }
}

#[test]
fn what_a_queue_overwrites_is_counted_with_its_depth() {
    // Each third image is taken; by then two newer ones have come after the first of the others, and one after the second.
    let (ends, _) = Robot::new().detector(2, (1..=100).step_by(3)).ends();
    assert_eq!(
        ends,
        BTreeMap::from([("applied".into(), 34), ("not_taken".into(), 33), ("overwritten (depth 2)".into(), 33)])
    );
}

#[test]
fn what_is_published_while_a_subscriber_is_not_there_is_no_loss() {
    // Killed after 40, up again at 71.
    let robot = Robot::new().detector(2, 10..=40).detector(3, 71..=100);
    let (ends, notes) = robot.ends();
    assert_eq!(ends, BTreeMap::from([("applied".into(), 31 + 30), ("ended_early".into(), 30)]));
    assert_eq!(robot.passed("/camera timer 10 ms"), 91, "the timer went on meanwhile");
    assert!(notes.iter().any(|note| note.starts_with("39 messages were published before")), "{notes:?}");
}

/// Nothing more is heard of it, as of one that has ended; but a callback of it has begun and not ended.
#[test]
fn what_is_published_while_a_subscriber_hangs_is_lost() {
    let mut robot = Robot::new().detector(2, 1..=40);
    let at = 41 * 10 * MS;
    robot
        .events(2, &[(at + 3 * MS, RosEvent::Take, 52, [0, at, 1]), (at + 3 * MS, RosEvent::CallbackStart, 3, [0; 3])]);
    let (mut ends, notes) = robot.ends();
    let in_flight = ends.remove("in_flight").unwrap();
    // Those of the last 100 ms may be taken yet.
    assert_eq!(ends, BTreeMap::from([("applied".into(), 40), ("not_taken".into(), 60 - in_flight)]));
    assert!((1..=12).contains(&in_flight), "{in_flight}");
    let note =
        "messages were published after /detector callback /image had begun, which did not end: nothing took them";
    assert!(notes.iter().any(|said| said.ends_with(note)), "{notes:?}");
}

/// A launch of hundreds of nodes has one note of what nobody heard yet, beside those of the subscriptions that missed most.
#[test]
fn notes_of_many_subscriptions_are_one() {
    let mut robot = Robot::new();
    for pid in 2..=9 {
        robot = robot.detector(pid, 10 + pid as u64..=100);
    }
    let (_, notes) = robot.ends();
    let unheard: Vec<&String> = notes.iter().filter(|note| note.contains("did not go on to")).collect();
    assert_eq!(unheard.len(), 5, "{notes:?}");
    assert!(
        unheard[0].starts_with("18 messages were published before the subscription of /detector #8 callback"),
        "{notes:?}"
    );
    assert_eq!(
        unheard[4],
        "50 messages were published to 4 more subscriptions in the same way: they did not go on to them"
    );
}

/// The publisher's thread may be held up between its source timestamp and the event that says it.
#[test]
fn a_message_is_received_before_it_is_taken() {
    let mut robot = Robot::with_detector(10);
    for n in 1..=100 {
        let at = n * 10 * MS;
        robot.events(
            2,
            &[
                (at + 3 * MS, RosEvent::Take, 52, [0, at, 1]),
                (at + 3 * MS + 20, RosEvent::TakeInfo, 52, [at + 2 * MS + 10, n, 0]),
                (at + 3 * MS + 30, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 4 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
            ],
        );
    }
    let mut intake = Intake::default();
    robot.records.iter().for_each(|record| intake.record(record));
    let linked = intake.finish(&Info::default(), None, false).linked;
    let received = linked.passes.iter().filter(|pass| linked.points.name(pass.point) == "/detector receive /image");
    let times: Vec<u64> = received.map(|pass| pass.time_ns).collect();
    assert_eq!(times, (1..=100).map(|n| n * 10 * MS + 3 * MS).collect::<Vec<u64>>());
}

impl Robot {
    /// The process stamps at a point of this name at these moments, each with a number of its own.
    fn stamps(mut self, pid: i32, point: u32, name: &str, at_ns: &[u64]) -> Robot {
        let all = at_ns.len();
        self.records.push(Record::Name(Name { id: point, name: name.to_owned() }));
        self.records.push(Record::Stamps(StampBatch {
            pid,
            tid: pid,
            counter: Counter::Monotonic as u8,
            ticks: at_ns.to_vec(),
            message_id: (1..).take(all).collect(),
            point: vec![point; all],
            kind: vec![Kind::Stamp as u8; all],
            value: vec![0; all],
        }));
        self
    }

    /// Of each message of ROS its points' names in order of time; and the notes.
    fn ways(&self) -> (Vec<Vec<String>>, Vec<String>) {
        let mut intake = Intake::default();
        self.records.iter().for_each(|record| intake.record(record));
        let linked = intake.finish(&Info::default(), None, false).linked;
        let mut passes = linked.passes.clone();
        passes.retain(|pass| pass.point.is_pass());
        passes.sort_by_key(|pass| (pass.message, pass.time_ns, pass.point.order()));
        let mut ways: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for pass in passes {
            ways.entry(pass.message).or_default().push(linked.points.name(pass.point));
        }
        ways.retain(|_, way| way[0].starts_with('/'));
        (ways.into_values().collect(), linked.notes)
    }
}

#[test]
fn stamps_in_callbacks_are_on_the_way_of_what_the_callback_carries() {
    // Of each callback: before it, in the camera's before and after its publish, in the detector's, and after it.
    let camera: Vec<u64> = (1..=100).map(|n| n * 10 * MS + MS / 2).collect();
    let after: Vec<u64> = (1..=100).map(|n| n * 10 * MS + MS * 3 / 2).collect();
    let detector: Vec<u64> = (1..=100).map(|n| n * 10 * MS + MS * 7 / 2).collect();
    let outside: Vec<u64> = (1..=100).map(|n| n * 10 * MS + 5 * MS).collect();
    let robot = Robot::new()
        .detector(2, 1..=100)
        .stamps(CAMERA, 1, "camera.read", &camera)
        .stamps(CAMERA, 2, "camera.sent", &after)
        .stamps(2, 3, "detector.found", &detector)
        .stamps(2, 4, "detector.idle", &outside);
    let (ways, notes) = robot.ways();
    let way = [
        "/camera timer 10 ms",
        "/camera stamp camera.read",
        "/camera publish /image",
        "/detector take /image",
        "/detector callback /image",
        "/detector stamp detector.found",
        "/detector callback /image end",
    ];
    assert_eq!(ways.len(), 100);
    // What left the callback with the publish is not there when it stamps again.
    assert!(ways.iter().all(|found| *found == way), "{:?}", ways[0]);
    assert!(!notes.iter().any(|note| note.contains("stamps in callbacks")), "{notes:?}");
}

#[test]
fn a_point_that_a_callback_stamps_again_and_again_is_passed_once_and_the_rest_is_counted() {
    let at: Vec<u64> = (1..=100).flat_map(|n| [n * 10 * MS + MS / 4, n * 10 * MS + MS / 2]).collect();
    let (ways, notes) = Robot::new().detector(2, 1..=100).stamps(CAMERA, 1, "step", &at).ways();
    let passed = |way: &Vec<String>| way.iter().filter(|name| *name == "/camera stamp step").count();
    assert!(ways.iter().all(|way| passed(way) == 1), "{:?}", ways[0]);
    assert!(notes.iter().any(|note| note.starts_with("100 stamps in callbacks are of a point")), "{notes:?}");
}

#[test]
fn stamps_of_other_threads_are_in_no_chain_of_ros() {
    let at: Vec<u64> = (1..=100).map(|n| n * 10 * MS + MS / 2).collect();
    let (ways, _) = Robot::new().detector(2, 1..=100).stamps(77, 1, "driver.read", &at).ways();
    assert!(ways.iter().flatten().all(|name| !name.contains("driver.read")));
}

/// A planner that is found late: what the detector took before is in the chain, and ended with the detector.
#[test]
fn what_came_to_a_callback_before_the_next_one_was_there_ended_there() {
    let robot = Robot::new().detector(2, 0..0).planner(9);
    let (ends, notes) = robot.ends();
    assert_eq!(ends, BTreeMap::from([("applied".into(), 92), ("ended_early".into(), 8)]));
    let points = ["/detector callback /image", "/detector publish /detections", "/planner callback /detections"];
    assert_eq!(points.map(|point| robot.passed(point)), [100, 100, 92]);
    assert!(notes.iter().any(|note| note.starts_with("8 messages were published before")), "{notes:?}");
}

/// As rclpy does with a goal: its execution is a task of its own, and another goal may be executed first.
#[test]
fn what_a_callback_schedules_goes_on_in_that_run_of_the_scheduled_callback() {
    const SCHEDULED: u64 = 4;
    let mut robot = Robot::with_detector(2);
    robot.object(2, RosObjectKind::NodeCallback, 9, 1, 0, "action /turn execute");
    for n in 1..=100 {
        let at = n * 10 * MS;
        // Of each two the second runs first, and both after the second was scheduled.
        let runs: &[u64] = if n % 2 == 0 { &[n, n - 1] } else { &[] };
        let mut rows = vec![
            (at + 3 * MS, RosEvent::Take, 52, [0, at, 1]),
            (at + 3 * MS, RosEvent::CallbackStart, 3, [0; 3]),
            (at + 3 * MS + 10, RosEvent::Schedule, 9, [n, 0, 0]),
            (at + 4 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
        ];
        for (run, place) in runs.iter().zip(0..) {
            rows.push((at + (5 + place) * MS, RosEvent::CallbackStart, 9, [SCHEDULED, *run, 0]));
            rows.push((at + (5 + place) * MS + 10, RosEvent::CallbackEnd, 9, [0; 3]));
        }
        robot.events(2, &rows);
    }
    let (ways, notes) = robot.ways();
    let way = [
        "/camera timer 10 ms",
        "/camera publish /image",
        "/detector take /image",
        "/detector callback /image",
        "/detector action /turn execute scheduled",
        "/detector action /turn execute",
        "/detector action /turn execute end",
    ];
    assert_eq!(ways, vec![way.map(str::to_owned).to_vec(); 100]);
    assert!(!notes.iter().any(|note| note.contains("not in the trace")), "{notes:?}");
}

/// A callback of rclpy makes a task and goes on by itself, or awaits it.
#[test]
fn a_task_is_a_chain_beside_that_of_the_callback_that_made_it() {
    let mut robot = Robot::with_detector(2);
    robot.object(2, RosObjectKind::NodeCallback, 9, 1, 0, "task Detector.look_up");
    for n in 1..=100 {
        let at = n * 10 * MS;
        robot.events(
            2,
            &[
                (at + 3 * MS, RosEvent::Take, 52, [0, at, 1]),
                (at + 3 * MS, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 3 * MS + 10, RosEvent::Schedule, 9, [n, 1, 0]),
                (at + 4 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
                (at + 5 * MS, RosEvent::CallbackStart, 9, [4, n, 0]),
                (at + 6 * MS, RosEvent::CallbackEnd, 9, [0; 3]),
            ],
        );
    }
    let ends = ["/detector callback /image end", "/detector task Detector.look_up end"];
    assert_eq!(ends.map(|point| robot.passed(point)), [100, 100]);
}

/// The events executor takes what is there, and runs it then.
#[test]
fn an_actions_callback_runs_with_what_was_taken_first() {
    let feedback = "/turn/_action/feedback";
    let mut robot = Robot::of(feedback);
    robot.object(2, RosObjectKind::Node, 1, 0, 0, "detector");
    robot.object(2, RosObjectKind::Subscription, 2, 1, 10, feedback);
    robot.object(2, RosObjectKind::NodeCallback, 9, 1, 0, "action /turn feedback");
    for n in (2..=100).step_by(2) {
        let at = n * 10 * MS;
        robot.events(
            2,
            &[
                (at + 3 * MS, RosEvent::Take, 52, [0, at - 10 * MS, 1]),
                (at + 4 * MS, RosEvent::Take, 52, [0, at, 1]),
                (at + 6 * MS, RosEvent::CallbackStart, 9, [0; 3]),
                (at + 6 * MS + 10, RosEvent::CallbackEnd, 9, [0; 3]),
                (at + 7 * MS, RosEvent::CallbackStart, 9, [0; 3]),
                (at + 7 * MS + 10, RosEvent::CallbackEnd, 9, [0; 3]),
            ],
        );
    }
    let mut intake = Intake::default();
    robot.records.iter().for_each(|record| intake.record(record));
    let linked = intake.finish(&Info::default(), None, false).linked;
    let at = |name: &str| -> BTreeMap<u64, u64> {
        let passes = linked.passes.iter().filter(|pass| pass.point.is_pass() && linked.points.name(pass.point) == name);
        passes.map(|pass| (pass.message, pass.time_ns)).collect()
    };
    let (published, begun) = (at("/camera publish /turn/_action/feedback"), at("/detector action /turn feedback"));
    let mut waits: Vec<u64> = begun.iter().map(|(message, at)| (at - published[message]) / MS).collect();
    waits.sort_unstable();
    assert_eq!(waits, [[6; 50], [15; 50]].concat());
}

/// rclpy's events executor takes all that is there, and then runs a coroutine for each as a task; one step of each at a time.
#[test]
fn a_coroutine_runs_with_what_was_taken_for_it_and_is_one_run_of_several_steps() {
    const COROUTINE: u64 = 8;
    const RESUMED: u64 = 2;
    const SUSPENDED: u64 = 1;
    let mut robot = Robot::with_detector(10);
    for n in (2..=100).step_by(2) {
        let at = n * 10 * MS;
        let mut rows = vec![
            (at + 3 * MS, RosEvent::Take, 52, [0, at - 10 * MS, 1]),
            (at + 4 * MS, RosEvent::Take, 52, [0, at, 1]),
        ];
        for coroutine in [n - 1, n] {
            let at = at + (6 + coroutine % 2) * MS;
            rows.push((at, RosEvent::CallbackStart, 3, [COROUTINE, 0, 0]));
            rows.push((at + MS / 10, RosEvent::CallbackEnd, 3, [SUSPENDED, coroutine, 0]));
        }
        for coroutine in [n - 1, n] {
            let at = at + (8 + coroutine % 2) * MS;
            rows.push((at, RosEvent::CallbackStart, 3, [RESUMED, coroutine, 0]));
            rows.push((at + MS / 10, RosEvent::CallbackEnd, 3, [0; 3]));
        }
        rows.sort_by_key(|row| row.0);
        robot.events(2, &rows);
    }
    let mut intake = Intake::default();
    robot.records.iter().for_each(|record| intake.record(record));
    let linked = intake.finish(&Info::default(), None, false).linked;
    let at = |name: &str| -> BTreeMap<u64, u64> {
        let passes = linked.passes.iter().filter(|pass| pass.point.is_pass() && linked.points.name(pass.point) == name);
        passes.map(|pass| (pass.message, pass.time_ns)).collect()
    };
    let published = at("/camera publish /image");
    let begun = at("/detector callback /image");
    let mut waits: Vec<u64> = begun.iter().map(|(message, at)| (at - published[message]) / MS).collect();
    waits.sort_unstable();
    assert_eq!(waits, [[6; 50], [15; 50]].concat(), "the older first");
    let ros = linked.ros.unwrap();
    let run = ros.callbacks.iter().find(|callback| callback.name == "/detector callback /image").unwrap();
    let (n, max_ns) = (run.duration.n, run.duration.max_ns.unwrap());
    assert!(n == 100 && max_ns.abs_diff(MS / 5) < 1000, "{n} runs of two steps, {max_ns} ns");
    assert_eq!(ros.executors.iter().map(|thread| thread.callbacks).sum::<u64>(), 200, "of both nodes");
}

#[test]
fn two_nodes_of_one_name_at_once_are_two() {
    let robot = Robot::new().detector(2, 1..101).detector(3, 1..101);
    let points = ["/detector callback /image", "/detector #2 callback /image"];
    assert_eq!(points.map(|point| robot.passed(point)), [100, 100]);
}

/// A node on rcl alone, as rclc's: its thread waits, takes what is there, and does its work with that.
#[test]
fn what_a_program_without_callbacks_does_from_a_take_until_it_waits_stands_for_one() {
    let mut robot = Robot::new();
    robot.object(2, RosObjectKind::Node, 1, 0, 0, "detector");
    robot.object(2, RosObjectKind::Timer, 7, 0, 20 * MS, "");
    robot.object(2, RosObjectKind::Subscription, 2, 1, 2, "/image");
    robot.object(2, RosObjectKind::Publisher, 4, 1, 1, "/detections");
    robot.object(2, RosObjectKind::Publisher, 5, 1, 1, "/alive");
    robot.object(3, RosObjectKind::Node, 1, 0, 0, "planner");
    robot.object(3, RosObjectKind::Subscription, 2, 1, 2, "/detections");
    robot.object(3, RosObjectKind::Subscription, 3, 1, 2, "/alive");
    for n in 1..=100 {
        let at = n * 10 * MS;
        let mut rows = vec![
            (at + 3 * MS, RosEvent::WaitEnd, 9, [0; 3]),
            (at + 3 * MS, RosEvent::Take, 52, [0, at, 1]),
            (at + 3 * MS, RosEvent::TakeInfo, 52, [at + MS, n, 0]),
            (at + 4 * MS, RosEvent::RmwPublish, 54, [0, at + 4 * MS, 0]),
        ];
        if n % 2 == 0 {
            rows.push((at + 5 * MS, RosEvent::TimerCall, 7, [0; 3]));
            rows.push((at + 5 * MS + 10, RosEvent::RmwPublish, 55, [0, at + 5 * MS, 0]));
        }
        rows.push((at + 6 * MS, RosEvent::Wait, 9, [0; 3]));
        robot.events(2, &rows);
        let mut rows = vec![(at + 7 * MS, RosEvent::Take, 52, [0, at + 4 * MS, 1])];
        if n % 2 == 0 {
            rows.push((at + 7 * MS + 10, RosEvent::Take, 53, [0, at + 5 * MS, 1]));
        }
        rows.push((at + 8 * MS, RosEvent::Wait, 9, [0; 3]));
        robot.events(3, &rows);
    }
    let (mut ways, notes) = robot.ways();
    ways.sort_unstable_by_key(Vec::len);
    let alive =
        ["/detector timer 20 ms", "/detector publish /alive", "/planner take /alive", "/planner callback /alive"];
    let image = [
        "/camera timer 10 ms",
        "/camera publish /image",
        "/detector receive /image",
        "/detector take /image",
        "/detector callback /image",
        "/detector publish /detections",
        "/planner take /detections",
        "/planner callback /detections",
    ];
    let whole = |way: &[&str]| {
        [way.iter().map(|s| (*s).to_owned()).collect(), vec![format!("{} end", way[way.len() - 1])]].concat()
    };
    assert_eq!(ways, [vec![whole(&alive); 50], vec![whole(&image); 100]].concat(), "{notes:?}");
}

/// rclcpp_action has no tracepoint: the server takes a goal and answers it in its executor, and a thread of the program's own feeds back
/// and sends the result.
#[test]
fn an_action_of_rclcpp_is_found_by_its_requests_and_its_feedback() {
    let (goal, result) = ("/turn/_action/send_goal", "/turn/_action/get_result");
    let (client, server, gid) = (2, 3, 77);
    let mut robot = Robot::new();
    robot.object(client, RosObjectKind::Node, 1, 0, 0, "commander");
    // What every node of rclcpp has.
    robot.object(client, RosObjectKind::TimerCallback, 90, 91, 0, "");
    robot.object(server, RosObjectKind::TimerCallback, 90, 91, 0, "");
    robot.object(client, RosObjectKind::Client, 2, 1, 0, goal);
    robot.object(client, RosObjectKind::Client, 3, 1, 0, result);
    robot.object(client, RosObjectKind::RmwClient, 52, 0, gid, "");
    robot.object(client, RosObjectKind::RmwClient, 53, 0, gid + 1, "");
    robot.object(client, RosObjectKind::Subscription, 4, 1, 10, "/turn/_action/feedback");
    robot.object(server, RosObjectKind::Node, 1, 0, 0, "mover");
    robot.object(server, RosObjectKind::Service, 2, 1, 0, goal);
    robot.object(server, RosObjectKind::Service, 3, 1, 0, result);
    robot.object(server, RosObjectKind::Publisher, 4, 1, 10, "/turn/_action/feedback");
    for n in 1..=100 {
        let at = n * 10 * MS;
        robot.events(
            client,
            &[
                (at, RosEvent::SendRequest, 52, [n, 0, 0]),
                (at + 2 * MS, RosEvent::NextReady, 0, [0; 3]),
                (at + 2 * MS, RosEvent::TakeResponse, 52, [n, 0, 1]),
                (at + 2 * MS + 10, RosEvent::SendRequest, 53, [n, 0, 0]),
                (at + 2 * MS + 20, RosEvent::NextReady, 0, [0; 3]),
                (at + 5 * MS, RosEvent::Take, 54, [0, at + 4 * MS, 1]),
                (at + 5 * MS + 10, RosEvent::NextReady, 0, [0; 3]),
                (at + 7 * MS, RosEvent::TakeResponse, 53, [n, 0, 1]),
                (at + 7 * MS + 10, RosEvent::NextReady, 0, [0; 3]),
            ],
        );
        robot.events(
            server,
            &[
                (at + MS, RosEvent::TakeRequest, 52, [n, gid, 1]),
                (at + MS + 10, RosEvent::SendResponse, 52, [n, gid, 0]),
                (at + MS + 20, RosEvent::NextReady, 0, [0; 3]),
                (at + 3 * MS, RosEvent::TakeRequest, 53, [n, gid + 1, 1]),
                (at + 3 * MS + 20, RosEvent::NextReady, 0, [0; 3]),
            ],
        );
        let mut executing = RosBatch { pid: server, tid: 99, counter: Counter::Monotonic as u8, ..RosBatch::default() };
        executing.push(at + 4 * MS, RosEvent::RclPublish as u8, 4, [0; 3]);
        executing.push(at + 4 * MS, RosEvent::RmwPublish as u8, 54, [0, at + 4 * MS, 0]);
        executing.push(at + 6 * MS, RosEvent::SendResponse as u8, 53, [n, gid + 1, 0]);
        robot.records.push(Record::Ros(executing));
    }
    let (mut ways, notes) = robot.ways();
    ways.retain(|way| !way[0].starts_with("/camera"));
    ways.sort_unstable();
    let asked = [
        "/commander request /turn/_action/send_goal",
        "/mover take /turn/_action/send_goal",
        "/mover action /turn goal",
        "/mover answer /turn/_action/send_goal",
        "/commander take /turn/_action/send_goal",
        "/commander client /turn/_action/send_goal",
        "/commander request /turn/_action/get_result",
        "/mover take /turn/_action/get_result",
        "/mover action /turn get result",
        "/mover answer /turn/_action/get_result",
        "/commander take /turn/_action/get_result",
        "/commander client /turn/_action/get_result",
        "/commander client /turn/_action/get_result end",
    ];
    let fed = [
        "/mover publish /turn/_action/feedback",
        "/commander take /turn/_action/feedback",
        "/commander action /turn feedback",
        "/commander action /turn feedback end",
    ];
    let all = [vec![asked.map(str::to_owned).to_vec(); 100], vec![fed.map(str::to_owned).to_vec(); 100]].concat();
    assert_eq!(ways, all, "{notes:?}");
}

impl Robot {
    /// One process with the nodes /camera and /detector, between which rclcpp hands /image over by a buffer.
    fn within_a_process() -> Robot {
        let mut robot = Robot { records: Vec::new() };
        robot.object(CAMERA, RosObjectKind::Node, 1, 0, 0, "camera");
        robot.object(CAMERA, RosObjectKind::Timer, 2, 0, 10 * MS, "");
        robot.object(CAMERA, RosObjectKind::TimerNode, 2, 1, 0, "");
        robot.object(CAMERA, RosObjectKind::TimerCallback, 3, 2, 0, "");
        robot.object(CAMERA, RosObjectKind::Publisher, 4, 1, 10, "/image");
        robot.object(CAMERA, RosObjectKind::Node, 11, 0, 0, "detector");
        robot.object(CAMERA, RosObjectKind::Subscription, 12, 11, 10, "/image");
        robot.object(CAMERA, RosObjectKind::BufferOfIpb, 20, 21, 0, "");
        robot.object(CAMERA, RosObjectKind::IpbOfSubscription, 21, 22, 0, "");
        robot.object(CAMERA, RosObjectKind::SubscriptionCallback, 23, 22, 0, "");
        robot.object(CAMERA, RosObjectKind::SubscriptionObject, 22, 12, 0, "");
        robot.object(CAMERA, RosObjectKind::SubscriptionObject, 24, 12, 0, "");
        robot.object(CAMERA, RosObjectKind::SubscriptionCallback, 25, 24, 0, "");
        robot
    }

    /// The ways, without what the middleware says on them.
    fn steps(&self) -> (Vec<Vec<String>>, Vec<String>) {
        let (mut ways, notes) = self.ways();
        ways.iter_mut().for_each(|way| way.retain(|point| !point.contains(" take ") && !point.contains(" receive ")));
        ways.sort_unstable();
        (ways, notes)
    }
}

fn way(points: &[&str]) -> Vec<String> {
    points.iter().map(|point| (*point).to_owned()).collect()
}

/// Once a process subscribes that is another one, rclcpp publishes to the middleware, too, and the subscription within the process gets
/// a second copy by it, which rclcpp drops. Its executor takes subscriptions before buffers.
#[test]
fn a_copy_of_what_comes_within_the_process_is_no_message() {
    let mut robot = Robot::within_a_process();
    robot.object(3, RosObjectKind::Node, 1, 0, 0, "viewer");
    robot.object(3, RosObjectKind::Subscription, 2, 1, 10, "/image");
    robot.object(3, RosObjectKind::SubscriptionCallback, 3, 2, 0, "");
    for n in 1..=100 {
        let at = n * 10 * MS;
        robot.events(
            CAMERA,
            &[
                (at, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 10, RosEvent::IntraPublish, 4, [n, 0, 0]),
                (at + 20, RosEvent::Enqueue, 20, [n % 10, 0, 0]),
                (at + 30, RosEvent::RclcppPublish, 0, [n, 0, 0]),
                (at + 30, RosEvent::RclPublish, 4, [n, 0, 0]),
                (at + 40, RosEvent::RmwPublish, 54, [n, at, 0]),
                (at + 50, RosEvent::CallbackEnd, 3, [0; 3]),
                (at + MS, RosEvent::Take, 62, [0, at, 1]),
                (at + MS + 10, RosEvent::TakeInfo, 62, [at + MS / 2, n, 0]),
                (at + MS + 20, RosEvent::NextReady, 0, [0; 3]),
                (at + MS + 30, RosEvent::Dequeue, 20, [n % 10, 0, 0]),
                (at + MS + 40, RosEvent::CallbackStart, 23, [1, 0, 0]),
                (at + 2 * MS, RosEvent::CallbackEnd, 23, [0; 3]),
            ],
        );
        robot.events(
            3,
            &[
                (at + 3 * MS, RosEvent::Take, 52, [0, at, 1]),
                (at + 3 * MS + 10, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 4 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
            ],
        );
    }
    let (ways, notes) = robot.steps();
    let begin = ["/camera timer 10 ms", "/camera publish /image"];
    let within = way(&[&begin[..], &["/detector callback /image", "/detector callback /image end"]].concat());
    let beyond = way(&[&begin[..], &["/viewer callback /image", "/viewer callback /image end"]].concat());
    assert_eq!(ways, [vec![within; 100], vec![beyond; 100]].concat(), "{notes:?}");
    assert!(notes.iter().all(|note| !note.contains("led nowhere")), "{notes:?}");
    let mut intake = Intake::default();
    robot.records.iter().for_each(|record| intake.record(record));
    let ros = intake.finish(&Info::default(), None, false).linked.ros.unwrap();
    let taken: Vec<(String, u64)> =
        ros.topics[0].subscriptions.iter().map(|of| (of.callback.clone(), of.taken)).collect();
    assert_eq!(taken, [("/detector callback /image".to_owned(), 100), ("/viewer callback /image".to_owned(), 100)]);
}

/// What the same subscription gets from another process comes by the middleware alone.
#[test]
fn a_subscription_within_a_process_has_messages_of_others() {
    let mut robot = Robot::new();
    robot.records.extend(Robot::within_a_process().records.into_iter().map(|record| match record {
        Record::RosObject(object) => Record::RosObject(RosObject { pid: 2, ..object }),
        other => other,
    }));
    robot
        .records
        .retain(|record| !matches!(record, Record::RosObject(object) if object.pid == 2 && object.handle < 11));
    for n in 1..=100 {
        let at = n * 10 * MS;
        robot.events(
            2,
            &[
                (at + 3 * MS, RosEvent::Take, 62, [0, at, 1]),
                (at + 3 * MS + 10, RosEvent::TakeInfo, 62, [at + MS + MS / 2, n, 0]),
                (at + 3 * MS + 20, RosEvent::CallbackStart, 25, [0; 3]),
                (at + 4 * MS, RosEvent::CallbackEnd, 25, [0; 3]),
            ],
        );
    }
    let (ways, notes) = robot.ways();
    let whole = [
        "/camera timer 10 ms",
        "/camera publish /image",
        "/detector receive /image",
        "/detector take /image",
        "/detector callback /image",
        "/detector callback /image end",
    ];
    assert_eq!(ways, vec![way(&whole); 100], "{notes:?}");
}

/// A callback hands one message over within the process, and then publishes a serialized one, of which only the middleware says.
#[test]
fn what_only_the_middleware_says_is_not_of_the_publish_before() {
    let mut robot = Robot::within_a_process();
    robot.object(CAMERA, RosObjectKind::Publisher, 5, 1, 10, "/packed");
    robot.object(3, RosObjectKind::Node, 1, 0, 0, "viewer");
    robot.object(3, RosObjectKind::Subscription, 2, 1, 10, "/packed");
    robot.object(3, RosObjectKind::SubscriptionCallback, 3, 2, 0, "");
    for n in 1..=100 {
        let at = n * 10 * MS;
        robot.events(
            CAMERA,
            &[
                (at, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 10, RosEvent::IntraPublish, 4, [n, 0, 0]),
                (at + 20, RosEvent::Enqueue, 20, [n % 10, 0, 0]),
                (at + 30, RosEvent::RmwPublish, 55, [0, at, 0]),
                (at + 50, RosEvent::CallbackEnd, 3, [0; 3]),
                (at + MS, RosEvent::Dequeue, 20, [n % 10, 0, 0]),
                (at + MS + 10, RosEvent::CallbackStart, 23, [1, 0, 0]),
                (at + 2 * MS, RosEvent::CallbackEnd, 23, [0; 3]),
            ],
        );
        robot.events(
            3,
            &[
                (at + 3 * MS, RosEvent::Take, 52, [0, at, 1]),
                (at + 3 * MS + 10, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 4 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
            ],
        );
    }
    let (ways, notes) = robot.steps();
    let within = ["/camera publish /image", "/detector callback /image", "/detector callback /image end"];
    let beyond = ["/camera publish /packed", "/viewer callback /packed", "/viewer callback /packed end"];
    let whole = |rest: &[&str]| vec![way(&[&["/camera timer 10 ms"], rest].concat()); 100];
    assert_eq!(ways, [whole(&within), whole(&beyond)].concat(), "{notes:?}");
}

/// The events executor calls timers on a thread of their own, and runs their callbacks on another, later and in that order.
#[test]
fn a_timer_is_due_when_it_was_on_whichever_thread_it_was_called() {
    let mut robot = Robot::within_a_process();
    let mut manager = RosBatch { pid: CAMERA, tid: 99, counter: Counter::Monotonic as u8, ..RosBatch::default() };
    for n in 1..=100 {
        let due = n * 10 * MS;
        manager.push(due + 1000, RosEvent::TimerCall as u8, 2, [due, due + 1000, 0]);
    }
    robot.records.push(Record::Ros(manager));
    // The executor was busy: it runs two at a time, 15 ms and 5 ms late.
    for n in (1..=100).step_by(2) {
        let at = n * 10 * MS + 15 * MS;
        for at in [at, at + MS] {
            let rows = [(at, RosEvent::CallbackStart, 3, [0; 3]), (at + 50, RosEvent::CallbackEnd, 3, [0; 3])];
            robot.events(CAMERA, &rows);
        }
    }
    let mut intake = Intake::default();
    robot.records.iter().for_each(|record| intake.record(record));
    let linked = intake.finish(&Info::default(), None, false).linked;
    let at = |name: &str| -> BTreeMap<u64, u64> {
        let passes = linked.passes.iter().filter(|pass| linked.points.name(pass.point) == name);
        passes.map(|pass| (pass.message, pass.time_ns)).collect()
    };
    let (due, begun) = (at("/camera timer 10 ms due"), at("/camera timer 10 ms"));
    let mut late: Vec<u64> = begun.iter().map(|(message, at)| (at - due[message]) / MS).collect();
    late.sort_unstable();
    assert_eq!(late, [[6; 50], [15; 50]].concat());
}

/// What was published before a subscription came is put into its buffer where it is made: here in a callback that just published.
#[test]
fn what_a_late_subscription_is_given_is_not_of_the_publish_before() {
    let mut robot = Robot::within_a_process();
    robot.object(CAMERA, RosObjectKind::Publisher, 5, 1, 10, "/map");
    robot.object(CAMERA, RosObjectKind::Subscription, 13, 11, 10, "/map");
    robot.object(CAMERA, RosObjectKind::BufferOfIpb, 30, 31, 0, "");
    robot.object(CAMERA, RosObjectKind::IpbOfSubscription, 31, 32, 0, "");
    robot.object(CAMERA, RosObjectKind::SubscriptionCallback, 33, 32, 0, "");
    robot.object(CAMERA, RosObjectKind::SubscriptionObject, 32, 13, 0, "");
    for n in 1..=100 {
        let at = n * 10 * MS;
        robot.events(
            CAMERA,
            &[
                (at, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 10, RosEvent::IntraPublish, 5, [n, 0, 0]),
                (at + 20, RosEvent::IntraPublish, 4, [n, 0, 0]),
                (at + 30, RosEvent::Enqueue, 20, [n % 10, 0, 0]),
                (at + 40, RosEvent::Enqueue, 30, [n % 10, 0, 0]),
                (at + 50, RosEvent::CallbackEnd, 3, [0; 3]),
                (at + MS, RosEvent::Dequeue, 20, [n % 10, 0, 0]),
                (at + MS + 10, RosEvent::CallbackStart, 23, [1, 0, 0]),
                (at + 2 * MS, RosEvent::CallbackEnd, 23, [0; 3]),
                (at + 3 * MS, RosEvent::Dequeue, 30, [n % 10, 0, 0]),
                (at + 3 * MS + 10, RosEvent::CallbackStart, 33, [1, 0, 0]),
                (at + 4 * MS, RosEvent::CallbackEnd, 33, [0; 3]),
            ],
        );
    }
    let points = ["/detector callback /image", "/detector callback /map"];
    assert_eq!(points.map(|point| robot.passed(point)), [100, 0]);
}

/// As with a wait set, or in a loop of its own: no callback of the subscription runs, and it has one, as in rclcpp each has.
#[test]
fn what_a_program_takes_by_hand_stands_for_a_callback() {
    let mut robot = Robot::with_detector(10);
    robot.object(2, RosObjectKind::Publisher, 4, 1, 1, "/detections");
    robot.object(3, RosObjectKind::Node, 1, 0, 0, "planner");
    robot.object(3, RosObjectKind::Subscription, 2, 1, 10, "/detections");
    robot.object(3, RosObjectKind::SubscriptionCallback, 3, 2, 0, "");
    for n in 1..=100 {
        let at = n * 10 * MS;
        robot.events(
            2,
            &[
                (at + 3 * MS, RosEvent::WaitEnd, 9, [0; 3]),
                (at + 3 * MS, RosEvent::Take, 52, [0, at, 1]),
                (at + 4 * MS, RosEvent::RclPublish, 4, [0; 3]),
                (at + 4 * MS, RosEvent::RmwPublish, 54, [0, at + 4 * MS, 0]),
                (at + 5 * MS, RosEvent::Wait, 9, [0; 3]),
            ],
        );
        robot.events(
            3,
            &[
                (at + 6 * MS, RosEvent::Take, 52, [0, at + 4 * MS, 1]),
                (at + 6 * MS + 10, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 7 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
            ],
        );
    }
    let (ways, notes) = robot.steps();
    let whole = [
        "/camera timer 10 ms",
        "/camera publish /image",
        "/detector callback /image",
        "/detector publish /detections",
        "/planner callback /detections",
        "/planner callback /detections end",
    ];
    assert_eq!(ways, vec![way(&whole); 100], "{notes:?}");
}

/// As rclcpp's wait_for_message does first: a subscription of which one message is taken by hand, and then another has its address.
#[test]
fn a_subscription_at_the_address_of_one_that_was_taken_by_hand_has_its_callback() {
    let mut robot = Robot::new();
    let (pid, name, text) = (2, "/image".to_owned(), "/".to_owned());
    let kind = RosObjectKind::Subscription;
    let first = RosObject { time_ns: 0, pid, kind, handle: 7, owner: 1, other: 52, number: 1, name, text };
    robot.records.push(Record::RosObject(first));
    robot.object(2, RosObjectKind::SubscriptionCallback, 8, 7, 0, "");
    robot.events(2, &[(0, RosEvent::Take, 52, [0, 0, 1])]);
    let (ways, notes) = robot.detector(2, 1..=100).ways();
    // The first one had a callback, too, which never ran.
    let whole = [
        "/camera timer 10 ms",
        "/camera publish /image",
        "/detector take /image",
        "/detector callback /image #2",
        "/detector callback /image #2 end",
    ];
    assert_eq!(ways, vec![way(&whole); 100], "{notes:?}");
}

/// A controller's timer takes the newest image, if there is one, and publishes what comes of it; another node looks at images only.
#[test]
fn what_a_callback_takes_by_hand_goes_on_with_what_it_publishes() {
    let mut robot = Robot::with_detector(1);
    robot.object(2, RosObjectKind::Timer, 7, 0, 20 * MS, "");
    robot.object(2, RosObjectKind::TimerNode, 7, 1, 0, "");
    robot.object(2, RosObjectKind::TimerCallback, 8, 7, 0, "");
    robot.object(2, RosObjectKind::Publisher, 4, 1, 1, "/command");
    robot.object(3, RosObjectKind::Node, 1, 0, 0, "motor");
    robot.object(3, RosObjectKind::Subscription, 2, 1, 10, "/command");
    robot.object(3, RosObjectKind::SubscriptionCallback, 3, 2, 0, "");
    robot.object(3, RosObjectKind::Subscription, 5, 1, 10, "/image");
    robot.object(3, RosObjectKind::SubscriptionCallback, 6, 5, 0, "");
    for n in (2..=100).step_by(2) {
        let at = n * 10 * MS;
        robot.events(
            2,
            &[
                (at + 3 * MS, RosEvent::CallbackStart, 8, [0; 3]),
                // As rclcpp's WaitSet does.
                (at + 3 * MS + 2, RosEvent::Wait, 9, [0; 3]),
                (at + 3 * MS + 4, RosEvent::WaitEnd, 9, [0; 3]),
                (at + 3 * MS + 10, RosEvent::Take, 52, [0, at, 1]),
                (at + 3 * MS + 20, RosEvent::TakeInfo, 52, [at + 2 * MS, n, 0]),
                (at + 4 * MS, RosEvent::RclPublish, 4, [0; 3]),
                (at + 4 * MS, RosEvent::RmwPublish, 54, [0, at + 4 * MS, 0]),
                (at + 5 * MS, RosEvent::CallbackEnd, 8, [0; 3]),
            ],
        );
        robot.events(
            3,
            &[
                (at + 6 * MS, RosEvent::Take, 52, [0, at + 4 * MS, 1]),
                (at + 6 * MS + 10, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 6 * MS + 20, RosEvent::Take, 55, [0, at - 10 * MS, 1]),
                (at + 6 * MS + 30, RosEvent::Take, 55, [0, at, 1]),
                (at + 7 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
            ],
        );
    }
    let (mut ways, notes) = robot.ways();
    ways.retain(|way| way[0].starts_with("/camera") && way.len() > 2);
    ways.sort_unstable();
    let read = [
        "/camera timer 10 ms",
        "/camera publish /image",
        "/detector receive /image",
        "/detector take /image",
        "/detector publish /command",
        "/motor take /command",
        "/motor callback /command",
        "/motor callback /command end",
    ];
    let seen = ["/camera timer 10 ms", "/camera publish /image", "/motor take /image"];
    assert_eq!(ways, [vec![way(&read); 50], vec![way(&seen); 100]].concat(), "{notes:?}");
    let (ends, notes) = robot.ends();
    assert_eq!(ends.get("overwritten (depth 1)"), Some(&49), "{ends:?} {notes:?}");
    assert!(notes.iter().all(|note| !note.contains("led nowhere")), "{notes:?}");
}

/// Before Kilted a client does not say its gid, and with Cyclone DDS one that its services do not. Two of one service may send requests of
/// the same numbers at once. A client that is made at the address of one that has gone counts from 1 again.
#[test]
fn a_client_that_does_not_say_its_gid_is_found_by_its_requests() {
    two_clients_are_told_apart(|n| n - 5, 0);
}

/// With Cyclone DDS it counts on. A thread may be held up before it says that it sent a request.
#[test]
fn a_client_is_found_where_numbers_go_on_and_requests_are_taken_before_they_are_said_to_be_sent() {
    two_clients_are_told_apart(|n| n, 2 * MS + MS / 2);
}

/// `number`: of the second client's requests at an address; `late`: how much later than it was the first request is said to be sent.
fn two_clients_are_told_apart(number: impl Fn(u64) -> u64, late: u64) {
    const SERVER: i32 = 9;
    let mut robot = Robot { records: Vec::new() };
    robot.object(SERVER, RosObjectKind::Node, 1, 0, 0, "worker");
    robot.object(SERVER, RosObjectKind::Service, 2, 1, 0, "/work");
    robot.object(SERVER, RosObjectKind::ServiceCallback, 3, 2, 0, "");
    for (client, name) in [(2, "left"), (3, "right")] {
        robot.object(client, RosObjectKind::Node, 1, 0, 0, name);
        robot.object(client, RosObjectKind::Client, 2, 1, 0, "/work");
    }
    robot.object(2, RosObjectKind::RmwClient, 52, 0, 99, "");
    // The right one sends first, and its requests are taken last. Later it is another one.
    robot.object(3, RosObjectKind::Client, 2, 1, 0, "/work");
    if let Some(Record::RosObject(object)) = robot.records.last_mut() {
        object.time_ns = 55 * MS;
    }
    for n in 1..=10 {
        let at = n * 10 * MS;
        let right = if n <= 5 { (72, n) } else { (73, number(n)) };
        let late = if n == 1 { late } else { 0 };
        let answers = |at: u64, number: u64| {
            [(at, RosEvent::TakeResponse, 52, [number, 0, 1]), (at + 10, RosEvent::NextReady, 0, [0; 3])]
        };
        let serves = |at: u64, (gid, number): (u64, u64)| {
            [
                (at, RosEvent::TakeRequest, 52, [number, gid, 1]),
                (at + 10, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 20, RosEvent::CallbackEnd, 3, [0; 3]),
                (at + 30, RosEvent::SendResponse, 52, [number, gid, 0]),
                (at + 40, RosEvent::NextReady, 0, [0; 3]),
            ]
        };
        robot.events(3, &[(at, RosEvent::SendRequest, 52, [right.1, 0, 0])]);
        robot.events(3, &answers(at + 4 * MS, right.1));
        robot.events(2, &[(at + MS + late, RosEvent::SendRequest, 52, [n, 0, 0])]);
        robot.events(2, &answers(at + 4 * MS, n));
        robot.events(SERVER, &serves(at + 2 * MS, (71, n)));
        robot.events(SERVER, &serves(at + 3 * MS, right));
    }
    let (mut ways, notes) = robot.ways();
    ways.sort_unstable();
    let of = |client: &str| {
        let asked = [format!("/{client} request /work")];
        let answered = ["client /work", "client /work end"].map(|point| format!("/{client} {point}"));
        [&asked[..], &way(&["/worker service /work", "/worker answer /work"]), &answered].concat()
    };
    assert_eq!(ways, [vec![of("left"); 10], vec![of("right"); 10]].concat(), "{notes:?}");
}

/// A node may have several clients of one service, and an answer comes to the one that asked.
#[test]
fn an_answer_is_lost_to_no_other_client_of_its_node() {
    let (client, server) = (2, 3);
    let mut robot = Robot { records: Vec::new() };
    robot.object(client, RosObjectKind::Node, 1, 0, 0, "caller");
    robot.object(server, RosObjectKind::Node, 1, 0, 0, "worker");
    robot.object(server, RosObjectKind::Service, 2, 1, 0, "/work");
    robot.object(server, RosObjectKind::ServiceCallback, 3, 2, 0, "");
    for handle in [2, 3] {
        robot.object(client, RosObjectKind::Client, handle, 1, 0, "/work");
        robot.object(client, RosObjectKind::RmwClient, handle + 50, 0, 70 + handle, "");
    }
    for n in 1..=50 {
        let (at, handle) = (n * 20 * MS, 2 + n % 2);
        let (rmw, gid) = (handle + 50, 70 + handle);
        robot.events(
            client,
            &[
                (at, RosEvent::SendRequest, rmw, [n, 0, 0]),
                (at + 4 * MS, RosEvent::TakeResponse, rmw, [n, 0, 1]),
                (at + 5 * MS, RosEvent::NextReady, 0, [0; 3]),
            ],
        );
        robot.events(
            server,
            &[
                (at + 2 * MS, RosEvent::TakeRequest, 52, [n, gid, 1]),
                (at + 2 * MS + 10, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 3 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
                (at + 3 * MS + 10, RosEvent::SendResponse, 52, [n, gid, 0]),
            ],
        );
    }
    let (ends, notes) = robot.ends();
    assert_eq!(ends, BTreeMap::from([("applied".into(), 50)]), "{notes:?}");
}

/// The events executor does not look for what is ready between two that are: under load an image is taken right after an answer.
#[test]
fn what_is_taken_right_after_an_answer_comes_to_its_callback() {
    let (server, gid) = (3, 77);
    let mut robot = Robot::with_detector(10);
    robot.object(2, RosObjectKind::Client, 5, 1, 0, "/plan");
    robot.object(2, RosObjectKind::RmwClient, 55, 0, gid, "");
    robot.object(server, RosObjectKind::Node, 1, 0, 0, "planner");
    robot.object(server, RosObjectKind::Service, 2, 1, 0, "/plan");
    robot.object(server, RosObjectKind::ServiceCallback, 3, 2, 0, "");
    for n in 1..=100 {
        let at = n * 10 * MS + 5 * MS;
        robot.events(
            2,
            &[
                (at, RosEvent::SendRequest, 55, [n, 0, 0]),
                (at + 2 * MS, RosEvent::TakeResponse, 55, [n, 0, 1]),
                (at + 2 * MS + 10, RosEvent::Take, 52, [0, n * 10 * MS, 1]),
                (at + 2 * MS + 20, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 3 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
            ],
        );
        robot.events(
            server,
            &[
                (at + MS, RosEvent::TakeRequest, 52, [n, gid, 1]),
                (at + MS + 10, RosEvent::CallbackStart, 3, [0; 3]),
                (at + MS + 20, RosEvent::CallbackEnd, 3, [0; 3]),
                (at + MS + 30, RosEvent::SendResponse, 52, [n, gid, 0]),
            ],
        );
    }
    let (ends, notes) = robot.ends();
    assert_eq!(ends, BTreeMap::from([("applied".into(), 200)]), "{notes:?}");
    assert_eq!(robot.passed("/detector callback /image"), 100);
}

/// Cyclone DDS publishes what nodes there are, and no event says that it makes a publisher for that.
#[test]
fn what_a_middleware_publishes_for_itself_was_not_made_before_the_trace() {
    let mut robot = Robot::new();
    robot.events(CAMERA, &[(1, RosEvent::RmwPublish, 99, [0, 1, 0])]);
    let is_missed = |robot: &Robot| robot.ways().1.iter().any(|note| note.contains("before the trace began"));
    assert!(is_missed(&robot), "nothing is known of the process's beginning");
    robot.object(CAMERA, RosObjectKind::Context, 80, 0, 0, "");
    assert!(!is_missed(&robot));
}

/// As what a program publishes when a parameter is set, or at each tick of /clock.
#[test]
fn what_a_callback_sends_whose_messages_are_not_followed_begins_a_chain() {
    let mut robot = Robot::of("/clock");
    robot.object(2, RosObjectKind::Node, 1, 0, 0, "simulated");
    robot.object(2, RosObjectKind::Subscription, 2, 1, 10, "/clock");
    robot.object(2, RosObjectKind::SubscriptionCallback, 3, 2, 0, "");
    robot.object(2, RosObjectKind::Publisher, 4, 1, 10, "/scan");
    robot.object(3, RosObjectKind::Node, 1, 0, 0, "mapper");
    robot.object(3, RosObjectKind::Subscription, 2, 1, 10, "/scan");
    robot.object(3, RosObjectKind::SubscriptionCallback, 3, 2, 0, "");
    for n in 1..=100 {
        let at = n * 10 * MS + 3 * MS;
        robot.events(
            2,
            &[
                (at, RosEvent::Take, 52, [0, n * 10 * MS, 1]),
                (at, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 10, RosEvent::RclPublish, 4, [0; 3]),
                (at + 10, RosEvent::RmwPublish, 0, [0, at, 0]),
                (at + MS, RosEvent::CallbackEnd, 3, [0; 3]),
            ],
        );
        robot.events(
            3,
            &[
                (at + 2 * MS, RosEvent::Take, 52, [0, at, 1]),
                (at + 2 * MS, RosEvent::CallbackStart, 3, [0; 3]),
                (at + 3 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
            ],
        );
    }
    let (mut ways, notes) = robot.steps();
    ways.retain(|way| !way[0].starts_with("/camera"));
    let chain = way(&["/simulated publish /scan", "/mapper callback /scan", "/mapper callback /scan end"]);
    assert_eq!(ways, vec![chain; 100], "{notes:?}");
}

/// As most examples of a client do: it spins until it has the answer, and returns from `main`.
#[test]
fn a_client_that_ends_with_its_answer_has_it() {
    let (client, server, gid) = (2, 3, 77);
    let mut robot = Robot { records: Vec::new() };
    robot.object(client, RosObjectKind::Node, 1, 0, 0, "caller");
    robot.object(client, RosObjectKind::Client, 2, 1, 0, "/work");
    robot.object(client, RosObjectKind::RmwClient, 52, 0, gid, "");
    robot.object(server, RosObjectKind::Node, 1, 0, 0, "worker");
    robot.object(server, RosObjectKind::Service, 2, 1, 0, "/work");
    robot.object(server, RosObjectKind::ServiceCallback, 3, 2, 0, "");
    robot.events(
        client,
        &[
            (MS, RosEvent::SendRequest, 52, [1, 0, 0]),
            (4 * MS, RosEvent::NextReady, 0, [0; 3]),
            (4 * MS + 10, RosEvent::TakeResponse, 52, [1, 0, 1]),
            (5 * MS, RosEvent::Gone, 2, [0; 3]),
        ],
    );
    robot.events(
        server,
        &[
            (2 * MS, RosEvent::TakeRequest, 52, [1, gid, 1]),
            (2 * MS + 10, RosEvent::CallbackStart, 3, [0; 3]),
            (3 * MS, RosEvent::CallbackEnd, 3, [0; 3]),
            (3 * MS + 10, RosEvent::SendResponse, 52, [1, gid, 0]),
            (9 * MS, RosEvent::NextReady, 0, [0; 3]),
        ],
    );
    let (ends, notes) = robot.ends();
    assert_eq!(ends, BTreeMap::from([("applied".into(), 1)]), "{notes:?}");
}

/// Two nodes that answer each other, as a simulator and its controller in lockstep: only the first message comes from outside.
#[test]
fn each_round_of_a_circle_is_a_message() {
    let mut robot = Robot { records: Vec::new() };
    for (pid, name, from, to) in [(2, "ping", "/pong", "/ping"), (3, "pong", "/ping", "/pong")] {
        robot.object(pid, RosObjectKind::Node, 1, 0, 0, name);
        robot.object(pid, RosObjectKind::Subscription, 2, 1, 10, from);
        robot.object(pid, RosObjectKind::SubscriptionCallback, 3, 2, 0, "");
        robot.object(pid, RosObjectKind::Publisher, 4, 1, 10, to);
    }
    let publish = |at| [(at, RosEvent::RclPublish, 4, [0; 3]), (at, RosEvent::RmwPublish, 54, [0, at, 0])];
    robot.events(2, &publish(MS));
    for n in 1..=100 {
        let at = n * 10 * MS;
        for (pid, from, at) in [(3, if n == 1 { MS } else { at - 4 * MS }, at), (2, at + MS, at + 5 * MS)] {
            robot.events(pid, &[(at, RosEvent::Take, 52, [0, from, 1]), (at, RosEvent::CallbackStart, 3, [0; 3])]);
            robot.events(pid, &publish(at + MS));
            robot.events(pid, &[(at + 2 * MS, RosEvent::CallbackEnd, 3, [0; 3])]);
        }
    }
    let (ways, notes) = robot.steps();
    let round = [
        "/ping publish /ping",
        "/pong callback /ping",
        "/pong publish /pong",
        "/ping callback /pong",
        "/ping callback /pong end",
    ];
    assert_eq!(ways, vec![way(&round); 100], "{notes:?}");
}

/// rcl makes the services of a lifecycle node, and rclcpp their callbacks, with copies of rcl's handles.
#[test]
fn a_service_of_a_lifecycle_node_is_found_by_the_requests_that_its_callback_runs_for() {
    let mut robot = Robot { records: Vec::new() };
    robot.object(2, RosObjectKind::Node, 1, 0, 0, "planner");
    robot.object(2, RosObjectKind::Service, 2, 1, 0, "/planner/change_state");
    robot.object(2, RosObjectKind::Service, 5, 1, 0, "/planner/get_state");
    for (callback, copy) in [(3, 90), (6, 91)] {
        robot.object(2, RosObjectKind::ServiceCallback, callback, copy, 0, "");
        robot.object(2, RosObjectKind::CallbackSymbol, callback, 0, 0, "std::_Bind<void (Node::*(Node*))(X)>");
    }
    for n in 1..=100 {
        let at = n * 10 * MS;
        for (rmw, callback, at) in [(52, 3, at), (55, 6, at + MS)] {
            robot.events(
                2,
                &[
                    (at, RosEvent::TakeRequest, rmw, [n, 77, 1]),
                    (at + 10, RosEvent::CallbackStart, callback, [0; 3]),
                    (at + 20, RosEvent::CallbackEnd, callback, [0; 3]),
                    (at + 30, RosEvent::SendResponse, rmw, [n, 77, 0]),
                ],
            );
        }
    }
    let points = ["/planner service /planner/change_state", "/planner service /planner/get_state"];
    assert_eq!(points.map(|point| robot.passed(point)), [100, 100]);
    let (_, notes) = robot.ends();
    assert!(notes.iter().all(|note| !note.contains("cannot be named")), "{notes:?}");
}

type Row = (u64, RosEvent, u64, [u64; 3]);

const LEFT: u64 = 3;
const RIGHT: u64 = 13;
const FILTERED: u64 = 16;
const LAMBDA: &str = "message_filters::Subscriber<Image, rclcpp::Node>::subscribe(rclcpp::Node*)::{lambda(std::shared_ptr<Image const>)#1}";

/// A callback of /fusion takes the message of this stamp, and runs for 1 ms.
fn run(of: u64, at: u64, stamp: u64, start: [u64; 3], inside: &[Row]) -> Vec<Row> {
    let mut rows = vec![(at, RosEvent::Take, of + 49, [0, stamp, 1]), (at, RosEvent::CallbackStart, of, start)];
    rows.extend(inside);
    rows.push((at + MS, RosEvent::CallbackEnd, of, [0; 3]));
    rows
}

/// /fusion publishes a set.
fn set(at: u64) -> [Row; 2] {
    [(at, RosEvent::RclPublish, 4, [0; 3]), (at, RosEvent::RmwPublish, 0, [0, at, 0])]
}

impl Robot {
    /// Two cameras: /image each 10 ms, /right 4 ms later. /fusion gives both to a filter, with callbacks of this function, and does these
    /// things after each; /planner takes its sets 1 ms later.
    fn fused(function: &str, rows: impl Fn(u64) -> Vec<Row>) -> Robot {
        let mut robot = Robot::new();
        robot.camera(4, "camera_right", "/right");
        robot.object(2, RosObjectKind::Node, 1, 0, 0, "fusion");
        for (subscription, topic) in [(2, "/image"), (12, "/right")] {
            robot.object(2, RosObjectKind::Subscription, subscription, 1, 10, topic);
            robot.object(2, RosObjectKind::SubscriptionCallback, subscription + 1, subscription, 0, "");
            robot.object(2, RosObjectKind::CallbackSymbol, subscription + 1, 0, 0, function);
        }
        robot.object(2, RosObjectKind::Publisher, 4, 1, 10, "/pair");
        robot.object(3, RosObjectKind::Node, 1, 0, 0, "planner");
        robot.object(3, RosObjectKind::Subscription, 2, 1, 10, "/pair");
        robot.object(3, RosObjectKind::SubscriptionCallback, 3, 2, 0, "");
        for n in 1..=100 {
            let at = n * 10 * MS + 4 * MS;
            robot.events(
                4,
                &[
                    (at, RosEvent::CallbackStart, 3, [0; 3]),
                    (at, RosEvent::RclPublish, 4, [0; 3]),
                    (at, RosEvent::RmwPublish, 0, [0, at, 0]),
                    (at + MS, RosEvent::CallbackEnd, 3, [0; 3]),
                ],
            );
            let rows = rows(n * 10 * MS);
            robot.events(2, &rows);
            let is_set = |two: &&[Row]| two[0].1 == RosEvent::RclPublish && two[0].2 == 4;
            for (at, _, _, [_, stamp, _]) in rows.windows(2).filter(is_set).map(|two| two[1]) {
                let at = at + MS;
                robot.events(
                    3,
                    &[
                        (at, RosEvent::Take, 52, [0, stamp, 1]),
                        (at, RosEvent::CallbackStart, 3, [0; 3]),
                        (at + 10, RosEvent::CallbackEnd, 3, [0; 3]),
                    ],
                );
            }
        }
        robot
    }

    /// For how long messages waited for a partner, in ms and sorted, by the callback that completed the set.
    fn waits(&self) -> BTreeMap<String, Vec<u64>> {
        let mut intake = Intake::default();
        self.records.iter().for_each(|record| intake.record(record));
        let linked = intake.finish(&Info::default(), None, false).linked;
        let messages: std::collections::BTreeSet<u64> = linked.passes.iter().map(|pass| pass.message).collect();
        let mut waits: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (hold, name) in messages.iter().flat_map(|message| linked.holds.within(*message, 0, u64::MAX)) {
            if hold.why == HeldBy::Partner {
                waits.entry(name.to_owned()).or_default().push((hold.to_ns - hold.from_ns) / MS);
            }
        }
        waits.values_mut().for_each(|all| all.sort_unstable());
        waits
    }
}

/// Of each two sets the left image completes one, and the right one the other.
#[test]
fn what_waits_in_a_filter_of_rclcpp_goes_on_with_the_set() {
    let robot = Robot::fused(LAMBDA, |at| {
        let (left, right) = (at, at + 4 * MS);
        match (at / (10 * MS)) % 2 {
            0 => [
                run(LEFT, at + 2 * MS, left, [0; 3], &[]),
                run(RIGHT, at + 6 * MS, right, [0; 3], &set(at + 6 * MS + 10)),
            ],
            _ => [
                run(RIGHT, at + 5 * MS, right, [0; 3], &[]),
                run(LEFT, at + 8 * MS, left, [0; 3], &set(at + 8 * MS + 10)),
            ],
        }
        .concat()
    });
    let (ends, notes) = robot.ends();
    assert_eq!(ends, BTreeMap::from([("applied".into(), 200)]), "{notes:?}");
    let (ways, _) = robot.ways();
    let way = |camera: &str, topic: &str| {
        [
            format!("/{camera} timer 10 ms"),
            format!("/{camera} publish {topic}"),
            format!("/fusion take {topic}"),
            format!("/fusion callback {topic}"),
            format!("/fusion join {topic}"),
            "/fusion publish /pair".to_owned(),
            "/planner take /pair".to_owned(),
            "/planner callback /pair".to_owned(),
            "/planner callback /pair end".to_owned(),
        ]
    };
    for (camera, topic) in [("camera", "/image"), ("camera_right", "/right")] {
        let way = way(camera, topic);
        assert_eq!(ways.iter().filter(|found| **found == way).count(), 100, "{:?}", ways[0]);
    }
    let waits = BTreeMap::from([
        ("/fusion callback /image".to_owned(), vec![2; 50]),
        ("/fusion callback /right".to_owned(), vec![3; 50]),
    ]);
    assert_eq!(robot.waits(), waits);
    assert!(!notes.iter().any(|note| note.contains("message_filters")), "{notes:?}");
}

/// Callbacks that publish now and then are no filter's.
#[test]
fn callbacks_of_the_programs_own_are_no_filter() {
    let robot = Robot::fused("Fusion::on_image(std::shared_ptr<Image const>)", |at| match (at / (10 * MS)) % 2 {
        0 => run(LEFT, at + 2 * MS, at, [0; 3], &set(at + 2 * MS + 10)),
        _ => run(RIGHT, at + 5 * MS, at + 4 * MS, [0; 3], &set(at + 5 * MS + 10)),
    });
    assert_eq!(robot.waits(), BTreeMap::new());
    assert_eq!(robot.passed("/fusion join /image") + robot.passed("/fusion join /right"), 0);
}

/// The left image is always there first: it publishes nothing, and is of the set all the same.
#[test]
fn what_is_always_first_in_a_filter_of_rclcpp_is_of_the_set() {
    let robot = Robot::fused(LAMBDA, |at| {
        let right = run(RIGHT, at + 6 * MS, at + 4 * MS, [0; 3], &set(at + 6 * MS + 10));
        [run(LEFT, at + 2 * MS, at, [0; 3], &[]), right].concat()
    });
    let (ends, notes) = robot.ends();
    assert_eq!(ends, BTreeMap::from([("applied".into(), 200)]), "{notes:?}");
    assert_eq!(robot.waits(), BTreeMap::from([("/fusion callback /right".to_owned(), vec![3; 100])]));
}

/// Two left images wait when the right one comes: nothing says which of them is in the set.
#[test]
fn which_of_several_a_filter_of_rclcpp_took_is_not_guessed() {
    let robot = Robot::fused(LAMBDA, |at| {
        let n = at / (10 * MS);
        let left = |inside: &[Row]| run(LEFT, at + 8 * MS, at, [0; 3], inside);
        let right = |inside: &[Row]| run(RIGHT, at + 6 * MS, at + 4 * MS, [0; 3], inside);
        match n {
            // The left image completes one set, so that both topics are known to be of it.
            1 => [right(&[]), left(&set(at + 8 * MS + 10))].concat(),
            _ if n.is_multiple_of(2) => left(&[]),
            _ => [run(LEFT, at + 2 * MS, at, [0; 3], &[]), right(&set(at + 6 * MS + 10))].concat(),
        }
    });
    let (_, notes) = robot.ends();
    assert_eq!(robot.passed("/fusion join /image"), 1);
    // The first of them waited, and the others came last.
    assert_eq!((robot.passed("/fusion join /right"), robot.waits().len()), (50, 1));
    assert!(notes.iter().any(|note| note.starts_with("49 times a set of message_filters was complete")), "{notes:?}");
}

/// rclpy says it: each set has the older of two left images.
#[test]
fn what_a_set_of_rclpy_has_is_what_it_says() {
    let robot = Robot::fused("message_filters.Subscriber.callback", |at| {
        let n = at / (10 * MS);
        let left = run(LEFT, at + 2 * MS, at, [FILTERED, n, 0], &[]);
        if n.is_multiple_of(2) {
            return left;
        }
        let mut inside = vec![
            (at + 6 * MS + 1, RosEvent::Joined, LEFT, [n - 1, 0, 0]),
            (at + 6 * MS + 2, RosEvent::Joined, RIGHT, [1000 + n, 0, 0]),
        ];
        inside.extend(set(at + 6 * MS + 10));
        let right = run(RIGHT, at + 6 * MS, at + 4 * MS, [FILTERED, 1000 + n, 0], &inside);
        [left, right].concat()
    });
    let (ends, notes) = robot.ends();
    // The first set has none.
    assert_eq!((robot.passed("/fusion join /image"), robot.passed("/fusion join /right")), (49, 50));
    assert_eq!(robot.waits(), BTreeMap::from([("/fusion callback /right".to_owned(), vec![13; 49])]));
    assert_eq!(ends["applied"], 99, "{ends:?}");
    assert!(!notes.iter().any(|note| note.contains("message_filters")), "{notes:?}");
}

/// The left image is in a set with the right one, and in another one with the depth image, of another topic.
#[test]
fn a_message_of_two_synchronisers_goes_on_with_the_sets_of_both() {
    const DEPTH: u64 = 23;
    let mut robot = Robot::fused("message_filters.Subscriber.callback", |at| {
        let n = at / (10 * MS);
        let left = run(LEFT, at + 2 * MS, at, [FILTERED, n, 0], &[]);
        let mut inside = vec![
            (at + 6 * MS + 1, RosEvent::Joined, LEFT, [n, 0, 0]),
            (at + 6 * MS + 2, RosEvent::Joined, RIGHT, [1000 + n, 0, 0]),
        ];
        inside.extend(set(at + 6 * MS + 10));
        let right = run(RIGHT, at + 6 * MS, at + 4 * MS, [FILTERED, 1000 + n, 0], &inside);
        let done = at + 8 * MS;
        let inside = [
            (done + 1, RosEvent::Joined, LEFT, [n, 0, 0]),
            (done + 2, RosEvent::Joined, DEPTH, [2000 + n, 0, 0]),
            (done + 10, RosEvent::RclPublish, 14, [0; 3]),
            (done + 10, RosEvent::RmwPublish, 0, [0, done + 10, 0]),
        ];
        [left, right, run(DEPTH, done, at + MS, [FILTERED, 2000 + n, 0], &inside)].concat()
    });
    robot.camera(5, "camera_depth", "/depth");
    robot.object(2, RosObjectKind::Subscription, 22, 1, 10, "/depth");
    robot.object(2, RosObjectKind::SubscriptionCallback, DEPTH, 22, 0, "");
    robot.object(2, RosObjectKind::CallbackSymbol, DEPTH, 0, 0, "message_filters.Subscriber.callback");
    robot.object(2, RosObjectKind::Publisher, 14, 1, 10, "/cloud");
    robot.object(3, RosObjectKind::Subscription, 12, 1, 10, "/cloud");
    robot.object(3, RosObjectKind::SubscriptionCallback, 13, 12, 0, "");
    for n in 1..=100 {
        let (made, at) = (n * 10 * MS + MS, n * 10 * MS + 9 * MS + 10);
        robot.events(
            5,
            &[
                (made, RosEvent::CallbackStart, 3, [0; 3]),
                (made, RosEvent::RclPublish, 4, [0; 3]),
                (made, RosEvent::RmwPublish, 0, [0, made, 0]),
                (made + 10, RosEvent::CallbackEnd, 3, [0; 3]),
            ],
        );
        robot.events(
            3,
            &[
                (at, RosEvent::Take, 62, [0, at - MS, 1]),
                (at, RosEvent::CallbackStart, 13, [0; 3]),
                (at + 10, RosEvent::CallbackEnd, 13, [0; 3]),
            ],
        );
    }
    let (ends, notes) = robot.ends();
    assert_eq!(ends, BTreeMap::from([("applied".into(), 400)]), "{notes:?}");
    let waits = BTreeMap::from([
        ("/fusion callback /depth".to_owned(), vec![5; 100]),
        ("/fusion callback /right".to_owned(), vec![3; 100]),
    ]);
    assert_eq!(robot.waits(), waits);
}
