//! A message that two sources know: stamped by the program, and carried by ROS 2.

use taut_analysis::{Analysis, Analyzer, Cause, Config, ExplainOptions, SourceKind};
use taut_clock::Counter;
use taut_recording::{
    Info, KernelBatch, KernelEvent, Kind, Name, Record, RosBatch, RosEvent, RosObject, RosObjectKind, StampBatch,
    Thread,
};

const COUNTER: u8 = Counter::Monotonic as u8;
const MS: u64 = 1_000_000;
const MESSAGES: u64 = 200;
const CAMERA: i32 = 1;
const DETECTOR: i32 = 2;

fn object(pid: i32, kind: RosObjectKind, handle: u64, owner: u64, number: u64, name: &str) -> Record {
    let (name, text) = (name.to_owned(), "/".to_owned());
    Record::RosObject(RosObject { time_ns: 1, pid, kind, handle, owner, other: handle + 50, number, name, text })
}

fn events(pid: i32, rows: impl Iterator<Item = (u64, RosEvent, u64, [u64; 3])>) -> Record {
    let mut batch = RosBatch { pid, tid: pid, counter: COUNTER, ..RosBatch::default() };
    rows.for_each(|(ticks, event, handle, args)| batch.push(ticks, event as u8, handle, args));
    Record::Ros(batch)
}

fn stamps(pid: i32, point: u32, at_ns: impl Fn(u64) -> u64) -> Record {
    let ids = 1..=MESSAGES;
    Record::Stamps(StampBatch {
        pid,
        tid: pid,
        counter: COUNTER,
        ticks: ids.clone().map(at_ns).collect(),
        message_id: ids.clone().collect(),
        point: ids.clone().map(|_| point).collect(),
        kind: ids.clone().map(|_| Kind::Stamp as u8).collect(),
        value: ids.map(|_| 0).collect(),
    })
}

/// The camera wakes the detector when it publishes; that runs half a millisecond before it takes the image, and sleeps after its callback.
fn scheduling(at: impl Fn(u64) -> u64, taken: impl Fn(u64) -> u64) -> Record {
    let mut cpu = KernelBatch { cpu: 1, ..KernelBatch::default() };
    let switch = KernelEvent::SchedSwitch as u8;
    for n in 1..=MESSAGES {
        cpu.push(at(n) + MS / 3, KernelEvent::SchedWaking as u8, 0, CAMERA, [DETECTOR.into(), 1, 0]);
        cpu.push(taken(n) - MS / 2, switch, 0, 0, [DETECTOR.into(), 0, 0]);
        cpu.push(taken(n) + MS, switch, 0, DETECTOR, [0, 1, 0]);
    }
    Record::Kernel(cpu)
}

/// A camera's timer publishes an image each 10 ms, and a detector takes it 1 ms later, or 3 in one of ten. Both stamp it in their callbacks.
fn analysis() -> Analysis {
    use RosEvent::{CallbackEnd, CallbackStart, RclPublish, RmwPublish, Take};
    let at = |n: u64| n * 10 * MS;
    let taken = |n: u64| at(n) + if n.is_multiple_of(10) { 3 * MS } else { MS };
    let camera = (1..=MESSAGES).flat_map(|n| {
        [
            (at(n), CallbackStart, 3, [0; 3]),
            (at(n) + MS / 4, RclPublish, 4, [0; 3]),
            (at(n) + MS / 4, RmwPublish, 0, [0, at(n) + MS / 4, 0]),
            (at(n) + MS / 2, CallbackEnd, 3, [0; 3]),
        ]
    });
    let detector = (1..=MESSAGES).flat_map(|n| {
        [
            (taken(n), Take, 52, [0, at(n) + MS / 4, 1]),
            (taken(n) + 2_000, CallbackStart, 3, [0; 3]),
            (taken(n) + MS, CallbackEnd, 3, [0; 3]),
        ]
    });
    let thread = |tid, comm: &str| {
        Record::Thread(Thread { pid: tid, tid, comm: comm.to_owned(), recorded: true, ..Thread::default() })
    };
    let name = |id, name: &str| Record::Name(Name { id, name: name.to_owned() });
    let records = [
        object(CAMERA, RosObjectKind::Node, 1, 0, 0, "camera"),
        object(CAMERA, RosObjectKind::Timer, 2, 0, 10 * MS, ""),
        object(CAMERA, RosObjectKind::TimerNode, 2, 1, 0, ""),
        object(CAMERA, RosObjectKind::TimerCallback, 3, 2, 0, ""),
        object(CAMERA, RosObjectKind::Publisher, 4, 1, 1, "/image"),
        events(CAMERA, camera),
        object(DETECTOR, RosObjectKind::Node, 1, 0, 0, "detector"),
        object(DETECTOR, RosObjectKind::Subscription, 2, 1, 5, "/image"),
        object(DETECTOR, RosObjectKind::SubscriptionCallback, 3, 2, 0, ""),
        events(DETECTOR, detector),
        name(1, "camera.read"),
        name(2, "detector.found"),
        stamps(CAMERA, 1, |n| at(n) + 10_000),
        stamps(DETECTOR, 2, |n| taken(n) + MS / 2),
        thread(CAMERA, "camera"),
        thread(DETECTOR, "detector"),
        scheduling(at, taken),
    ];
    let mut analyzer = Analyzer::new(Config { explain: ExplainOptions::default(), ..Config::default() });
    records.iter().for_each(|record| analyzer.record(record));
    analyzer.finish(Info::default(), None, Vec::new(), 0).unwrap()
}

#[test]
fn a_stamped_message_does_not_wait_for_itself_in_a_callback_of_ros() {
    let analysis = analysis();
    let of = |source| analysis.chains.iter().find(|chain| chain.source == source).expect("a chain of each source");
    let (stamped, ros) = (of(SourceKind::Stamps), of(SourceKind::Ros));
    assert!(ros.points.iter().any(|point| point.name == "/detector stamp detector.found"), "{:?}", ros.points);
    assert!(analysis.totals.kernel_events > 0, "without them nothing says what the detector was busy with");
    for chain in [stamped, ros] {
        let queued = chain.explained.by_cause.iter().find(|share| share.cause == Cause::Queued);
        assert!(queued.is_none_or(|share| share.time_ns == 0), "{}: {queued:?}", chain.name);
    }
}
