//! What a recording holds, as plain data: the vocabulary that the writer, the
//! readers, capture and analysis share. How it lies in the file: `schemas`.

use serde::{Deserialize, Serialize};
use taut_clock::{ClockPair, Counter};

/// One entry of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Stamps of one thread.
    Stamps(StampBatch),
    /// Kernel events of one CPU.
    Kernel(KernelBatch),
    /// A calibration of a counter against CLOCK_MONOTONIC.
    Clock(Counter, ClockPair),
    /// A point, reason or lock got its number.
    Name(Name),
    /// A thread was seen, or changed its name.
    Thread(Thread),
    /// What an address range or descriptor of a process is.
    Object(Object),
    /// Something was lost, and how much.
    Lost(Lost),
    /// One sampled figure (PSI, steal, frequency, temperature).
    Sample(Sample),
    /// A channel of plain messages: telemetry, or what was imported.
    Channel(PlainChannel),
    /// A message of one of those.
    Message(PlainMessage),
    /// Sampled stacks.
    Profile(ProfileBatch),
    /// A frame of sampled stacks got its number, or its name.
    Frame(Frame),
    /// A distribution that came without messages.
    Histogram(Histogram),
    /// Raw ROS 2 events of one thread.
    Ros(RosBatch),
    /// What a ROS 2 handle is.
    RosObject(RosObject),
}

/// A channel whose messages are `cdr` by a `ros2msg` schema of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainChannel {
    /// Its number in the file; not one of the raw channels'.
    pub number: u16,
    /// E.g. "/telemetry/leg".
    pub topic: String,
    /// E.g. "telemetry/msg/Leg".
    pub schema_name: String,
    /// `ros2msg` text.
    pub schema: String,
}

/// One message of a [`PlainChannel`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainMessage {
    /// The channel's number.
    pub channel: u16,
    /// CLOCK_REALTIME at the recording's start plus the time since, as all log times.
    pub log_time_ns: u64,
    /// Counts what was written, lost messages too: a gap is where some are missing.
    pub sequence: u32,
    /// CDR, with its 4 bytes of encapsulation.
    pub data: Vec<u8>,
}

/// Stamps of one thread in the order it wrote them, column by column.
/// All columns have equal length; `ticks` never decreases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StampBatch {
    /// Host pid of the process.
    pub pid: i32,
    /// Host tid of the thread.
    pub tid: i32,
    /// Counter of `ticks`, as [`Counter`]'s number.
    pub counter: u8,
    /// Counter reading of each stamp.
    pub ticks: Vec<u64>,
    /// Message id of each stamp.
    pub message_id: Vec<u64>,
    /// The point's number in the recording's name table.
    pub point: Vec<u32>,
    /// What the stamp means, as [`Kind`]'s number.
    pub kind: Vec<u8>,
    /// Depends on the kind: an intended time, f64 bits, a name number (reason), an address, or 0.
    pub value: Vec<u64>,
}

impl StampBatch {
    /// When the message of a plain stamp was due at its point (`stamp_at`), CLOCK_MONOTONIC of the host in nanoseconds, as the
    /// program has it: when a periodic loop was to be woken, or a source was to send. Its lateness is the stamp's own time,
    /// `ticks` on the same clock, less this; it is negative where the program was early. `None` for stamps without such a
    /// time, for other kinds, and beyond the end.
    pub fn intended_ns(&self, at: usize) -> Option<u64> {
        let is_stamp = self.kind.get(at) == Some(&(Kind::Stamp as u8));
        self.value.get(at).copied().filter(|due| is_stamp && *due != 0)
    }
}

/// What a stamp means. The numbers are part of protocol and format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The message passed the point; value = when it was due, CLOCK_MONOTONIC ns, or 0 ([`StampBatch::intended_ns`]).
    Stamp = 1,
    /// Work that is not a message's begins; the point names the work.
    Begin = 2,
    /// That work ends.
    End = 3,
    /// The message ended; point = where, value = number of the reason's name ("applied" is a reason).
    Outcome = 4,
    /// A sampled signal: value = f64 bits.
    Value = 5,
    /// About to take the lock that the point names.
    LockWait = 6,
    /// The lock that the point names is taken.
    LockAcquired = 7,
    /// From now on the point names the lock at the address in `value`, which spans as many bytes as the message id says.
    LockNamed = 8,
}

impl Kind {
    /// The kind with this protocol number.
    pub fn from_number(number: u8) -> Option<Kind> {
        use Kind::*;
        [Stamp, Begin, End, Outcome, Value, LockWait, LockAcquired, LockNamed].into_iter().find(|k| *k as u8 == number)
    }
}

/// Kernel events of one CPU in time order, column by column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelBatch {
    /// The CPU they happened on.
    pub cpu: u16,
    /// CLOCK_MONOTONIC.
    pub time_ns: Vec<u64>,
    /// Which event, as [`KernelEvent`]'s number.
    pub event: Vec<u8>,
    /// The tracepoint's `common_flags` (0x08 hard irq, 0x10 softirq, 0x04 need-resched).
    pub flags: Vec<u8>,
    /// The thread that was current (host tid).
    pub tid: Vec<i32>,
    /// First argument; see [`KernelEvent`].
    pub arg0: Vec<i64>,
    /// Second argument.
    pub arg1: Vec<i64>,
    /// Third argument.
    pub arg2: Vec<i64>,
}

impl KernelBatch {
    /// Adds a row; `event` is [`KernelEvent`]'s number.
    pub fn push(&mut self, time_ns: u64, event: u8, flags: u8, tid: i32, args: [i64; 3]) {
        self.time_ns.push(time_ns);
        self.event.push(event);
        self.flags.push(flags);
        self.tid.push(tid);
        self.arg0.push(args[0]);
        self.arg1.push(args[1]);
        self.arg2.push(args[2]);
    }
}

/// The kernel events a recording may hold, with what their arguments mean.
/// An argument not named is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum KernelEvent {
    /// tid left the CPU: arg0 = next tid, arg1 = prev_state bits as the kernel gives them, arg2 = next_prio << 16 | prev_prio.
    SchedSwitch = 1,
    /// tid wakes a thread: arg0 = woken tid, arg1 = target cpu, arg2 = its prio.
    SchedWaking = 2,
    /// Like [`KernelEvent::SchedWaking`], for a new thread.
    SchedWakeupNew = 3,
    /// arg0 = tid that moves, arg1 = from cpu, arg2 = to cpu.
    SchedMigrate = 4,
    /// arg0 = child tid.
    SchedFork = 5,
    /// arg0 = tid before exec (differs from tid when a thread execs).
    SchedExec = 6,
    /// tid exits: arg0 and arg1 = its name, up to a byte 0; both 0 where it is not known.
    SchedExit = 7,
    /// arg0 = system call number, arg1 = first argument (fd or futex address), arg2 = second; of futex the low 32 bits are its operation,
    /// and the high ones the value that it expects, or how many it wakes.
    SyscallEnter = 8,
    /// arg0 = system call number, arg1 = return value.
    SyscallExit = 9,
    /// arg0 = address, arg1 = instruction pointer, arg2 = error code.
    PageFault = 10,
    /// arg0 = irq or vector number, arg1 = 0 device, 1 softirq, 2 vector.
    IrqEnter = 11,
    /// As [`KernelEvent::IrqEnter`].
    IrqExit = 12,
    /// arg0 = state, -1 on leaving idle.
    CpuIdle = 13,
    /// arg0 = kHz, arg1 = cpu.
    CpuFrequency = 14,
    /// Self tier: tid came onto the CPU.
    SwitchIn = 15,
    /// Self tier: tid left the CPU; arg0 = 1 when it was preempted.
    SwitchOut = 16,
    /// tid arms a high-resolution timer, as sleeping does: arg0 = moment asked for, arg1 = that plus the timer slack (both ns
    /// of the timer's own clock, mostly CLOCK_MONOTONIC), arg2 = the timer's address in the kernel << 8 | the kernel's mode
    /// (1: relative). Recordings of before 2026-12 have no address.
    TimerStart = 17,
    /// A high-resolution timer fires in an interrupt; what it wakes follows on this CPU: arg0 = the timer's address, arg1 = the
    /// moment at which the interrupt read the timer's own clock, arg2 = 1 if it is the one that gives a control group its CPU
    /// quota again.
    TimerExpire = 18,
    /// tid, or an interrupt, gives work to a kernel thread: arg0 = the work's address in the kernel.
    WorkQueue = 19,
    /// tid, a kernel thread, begins with work: arg0 = its address.
    WorkStart = 20,
}

impl KernelEvent {
    /// All events, in the order of their numbers.
    pub const ALL: [KernelEvent; 20] = {
        use KernelEvent::*;
        [
            SchedSwitch,
            SchedWaking,
            SchedWakeupNew,
            SchedMigrate,
            SchedFork,
            SchedExec,
            SchedExit,
            SyscallEnter,
            SyscallExit,
            PageFault,
            IrqEnter,
            IrqExit,
            CpuIdle,
            CpuFrequency,
            SwitchIn,
            SwitchOut,
            TimerStart,
            TimerExpire,
            WorkQueue,
            WorkStart,
        ]
    };

    /// The event with this format number.
    pub fn from_number(number: u8) -> Option<KernelEvent> {
        Self::ALL.get((number as usize).checked_sub(1)?).copied()
    }
}

/// One entry of the recording's name table: points, reasons, locks share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// Its number, from 1; 0 is "no name".
    pub id: u32,
    /// UTF-8, at most 119 bytes.
    pub name: String,
}

/// A thread of the recorded tree, or one that took its CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// CLOCK_MONOTONIC when this was known; later entries supersede.
    pub time_ns: u64,
    /// Host pid (thread group).
    pub pid: i32,
    /// Host tid.
    pub tid: i32,
    /// Start time in clock ticks since boot (field 22 of /proc/PID/stat), so that a reused tid is another thread.
    pub start_time: u64,
    /// 15 bytes of name.
    pub comm: String,
    /// Command line joined by spaces, for the main thread of a recorded process; else empty.
    pub cmdline: String,
    /// True when it belongs to the recorded tree.
    pub recorded: bool,
}

/// What an address range or a descriptor of a recorded process is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// CLOCK_MONOTONIC when this was known; later entries of the same place supersede.
    pub time_ns: u64,
    /// Host pid of the process.
    pub pid: i32,
    /// What it is.
    pub kind: ObjectKind,
    /// First address, or the descriptor's number.
    pub start: u64,
    /// Bytes; 0 for a descriptor, and the count of bytes for a place in a stream.
    pub size: u64,
    /// E.g. "CPython 3.11", "pipe:[77]", "bus_lock", "state+0x28", "tcp 127.0.0.1:4000→127.0.0.1:5123".
    pub name: String,
}

/// Kinds of [`Object`]; the numbers are part of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// CPython's runtime state (`_PyRuntime`), in which the GIL lies.
    #[default]
    Gil = 1,
    /// A file descriptor.
    Descriptor = 2,
    /// So many bytes were written to the descriptor's TCP connection since it began.
    Written = 3,
    /// So many bytes were read from it.
    Read = 4,
    /// The word of a lock without a registered name lies in this variable of the program or of a library.
    Variable = 5,
}

impl ObjectKind {
    /// The kind with this format number.
    pub fn from_number(number: u8) -> Option<ObjectKind> {
        use ObjectKind::*;
        [Gil, Descriptor, Written, Read, Variable].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Sampled stacks in time order, column by column; all columns but `frame` have equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileBatch {
    /// CLOCK_MONOTONIC.
    pub time_ns: Vec<u64>,
    /// CPU it ran on.
    pub cpu: Vec<u16>,
    /// Host pid.
    pub pid: Vec<i32>,
    /// Host tid.
    pub tid: Vec<i32>,
    /// How many of `frame` are this sample's.
    pub depth: Vec<u16>,
    /// Numbers of frames, the samples' one after the other, each from its innermost on.
    pub frame: Vec<u32>,
}

/// One place in code; a later entry of the same number supersedes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its number, from 1.
    pub id: u32,
    /// Offset in the file, or the address where it is in none.
    pub address: u64,
    /// The file's path, "[kernel]", or "[memory of PID]".
    pub module: String,
    /// The function; empty while it is not known, or unknown.
    pub name: String,
}

/// A distribution of durations without its messages: of another tool, imported. Several of one name add up. A
/// bucket holds what lies from its `from` up to its `to`, both included; buckets ascend and do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Of what, e.g. "thread 0".
    pub name: String,
    /// Of all figures here: "ns" for durations, else what the source counts in.
    pub unit: String,
    /// Smallest value of each bucket.
    pub from: Vec<u64>,
    /// Largest value of each bucket.
    pub to: Vec<u64>,
    /// How many values it holds.
    pub count: Vec<u64>,
    /// Smallest value of all, overflow included; `None` where the source does not say.
    pub min: Option<u64>,
    /// Largest value of all, overflow included.
    pub max: Option<u64>,
    /// Values that were beyond the last bucket: known to be at least `overflow_from`, no more.
    pub overflow: u64,
    /// What the source's buckets reach up to.
    pub overflow_from: u64,
}

/// Raw ROS 2 events of one thread in the order it wrote them, column by column. All columns have equal length; `ticks`
/// never decreases. Linking them into messages is the analysis' part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RosBatch {
    /// Host pid of the process.
    pub pid: i32,
    /// Host tid of the thread.
    pub tid: i32,
    /// Counter of `ticks`, as [`Counter`]'s number.
    pub counter: u8,
    /// Counter reading of each event.
    pub ticks: Vec<u64>,
    /// Which event, as [`RosEvent`]'s number.
    pub event: Vec<u8>,
    /// Of what: an address in the process, which [`RosObject`]s explain.
    pub handle: Vec<u64>,
    /// First argument; see [`RosEvent`].
    pub arg0: Vec<u64>,
    /// Second argument.
    pub arg1: Vec<u64>,
    /// Third argument.
    pub arg2: Vec<u64>,
}

impl RosBatch {
    /// Adds a row; `event` is [`RosEvent`]'s number.
    pub fn push(&mut self, ticks: u64, event: u8, handle: u64, args: [u64; 3]) {
        self.ticks.push(ticks);
        self.event.push(event);
        self.handle.push(handle);
        self.arg0.push(args[0]);
        self.arg1.push(args[1]);
        self.arg2.push(args[2]);
    }
}

/// The ROS 2 events a recording may hold: which handle they are of, and what their arguments mean. An argument not named
/// is 0. Times are nanoseconds; a source timestamp is the middleware's, CLOCK_REALTIME. A gid is folded to 64 bits: the
/// exclusive or of its two little-endian halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RosEvent {
    /// A callback begins: arg0 = 1 if its message came intra-process; 2 if it goes on after it was suspended, with arg1 = which
    /// coroutine it is; 4 if it was scheduled, with arg1 = which run it is; 8 if it is a coroutine, which may run after other takes; 16 if
    /// it hands its message to a filter (message_filters), with arg1 = which run it is.
    CallbackStart = 1,
    /// It ends: arg0 = 1 if it is suspended, with arg1 = which coroutine it is.
    CallbackEnd = 2,
    /// A publisher publishes (rclcpp; its handle is 0 in C++): arg0 = the message's address.
    RclcppPublish = 3,
    /// The same in rcl, on the same thread.
    RclPublish = 4,
    /// The same in the middleware, by its handle (0 before Jazzy): arg0 = message, arg1 = source timestamp (0 before Jazzy).
    RmwPublish = 5,
    /// A publisher publishes intra-process: arg0 = message.
    IntraPublish = 6,
    /// arg1 = source timestamp of the publish that the thread is in. No handle.
    SourceStamp = 7,
    /// The middleware's subscription was asked for a message: arg0 = message, arg1 = source timestamp, arg2 = 1 if there was one.
    Take = 8,
    /// CARET: a taken message goes to a callback: arg1 = source timestamp.
    Dispatch = 9,
    /// A message comes into a ring buffer: arg0 = index, arg1 = 1 if it overwrote one.
    Enqueue = 10,
    /// A message leaves a ring buffer: arg0 = index.
    Dequeue = 11,
    /// A ring buffer was emptied.
    BufferClear = 12,
    /// rcl took a message: arg0 = message. No handle.
    RclTake = 13,
    /// rclcpp took a message: arg0 = message. No handle.
    RclcppTake = 14,
    /// The thread's executor looks for what is ready. No handle.
    NextReady = 15,
    /// The thread's executor is about to wait: arg0 = for how long at most, -1 for ever. No handle.
    WaitForWork = 16,
    /// The thread's executor executes what rcl's handle is ready for.
    Execute = 17,
    /// The middleware's client sends a request: arg0 = sequence number.
    SendRequest = 18,
    /// The middleware's service was asked for a request: arg0 = sequence number, arg1 = gid of the client, arg2 = 1 if there was one.
    TakeRequest = 19,
    /// The middleware's service answers: arg0 = sequence number, arg1 = gid of the client, arg2 = source timestamp.
    SendResponse = 20,
    /// The middleware's client was asked for an answer: arg0 = sequence number, arg1 = source timestamp, arg2 = 1 if there was one.
    TakeResponse = 21,
    /// What the middleware knows of the message that the thread took just before: arg0 = when it was received, arg1 = its
    /// publisher's sequence number, arg2 = gid of the publisher.
    TakeInfo = 22,
    /// A timer is called: arg0 = when it was due, arg1 = when it was called, on the timer's own clock.
    TimerCall = 23,
    /// rcl waits on a wait set: arg0 = for how long at most, negative for ever.
    Wait = 24,
    /// It has waited: arg0 = what rcl_wait returned.
    WaitEnd = 25,
    /// rcl's handle is gone; its address may be another's from now on.
    Gone = 26,
    /// A callback is to run later, as a task of its own: arg0 = which run of it, arg1 = 1 if the program itself created the task.
    Schedule = 27,
    /// The callback that runs completes a set of a filter, which has the message of this callback, too: arg0 = which run of it.
    Joined = 28,
}

impl RosEvent {
    /// All events, in the order of their numbers.
    pub const ALL: [RosEvent; 28] = {
        use RosEvent::*;
        [
            CallbackStart,
            CallbackEnd,
            RclcppPublish,
            RclPublish,
            RmwPublish,
            IntraPublish,
            SourceStamp,
            Take,
            Dispatch,
            Enqueue,
            Dequeue,
            BufferClear,
            RclTake,
            RclcppTake,
            NextReady,
            WaitForWork,
            Execute,
            SendRequest,
            TakeRequest,
            SendResponse,
            TakeResponse,
            TakeInfo,
            TimerCall,
            Wait,
            WaitEnd,
            Gone,
            Schedule,
            Joined,
        ]
    };

    /// The event with this format number.
    pub fn from_number(number: u8) -> Option<RosEvent> {
        Self::ALL.get((number as usize).checked_sub(1)?).copied()
    }
}

/// What a ROS 2 handle is, or what it belongs to. An address may be used again: the latest entry of (pid, kind, handle)
/// before a moment counts; of a [`RosObjectKind::Link`] that of each owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RosObject {
    /// CLOCK_MONOTONIC when this was said.
    pub time_ns: u64,
    /// Host pid of the process.
    pub pid: i32,
    /// What it is, and so what the other fields mean.
    pub kind: RosObjectKind,
    /// Its address in the process.
    pub handle: u64,
    /// The address of what it belongs to.
    pub owner: u64,
    /// Another address of it.
    pub other: u64,
    /// A depth, a period, …
    pub number: u64,
    /// E.g. a topic.
    pub name: String,
    /// More text.
    pub text: String,
}

/// Kinds of [`RosObject`]: what the handle is; what owner, other, number, name and text are. What is not named is 0 or
/// empty. The numbers are part of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RosObjectKind {
    /// A kind that this taut does not know.
    #[default]
    Unknown = 0,
    /// rcl's context; text = version of tracetools.
    Context = 1,
    /// rcl's node; other = the middleware's, name, text = namespace.
    Node = 2,
    /// rcl's publisher; owner = node, other = the middleware's, number = depth asked for, name = topic.
    Publisher = 3,
    /// rcl's subscription; owner = node, other = the middleware's, number = depth asked for, name = topic.
    Subscription = 4,
    /// rclcpp's subscription; owner = rcl's.
    SubscriptionObject = 5,
    /// A callback; owner = rclcpp's subscription.
    SubscriptionCallback = 6,
    /// rcl's service; owner = node, other = the middleware's, name.
    Service = 7,
    /// A callback; owner = rcl's service.
    ServiceCallback = 8,
    /// rcl's client; owner = node, other = the middleware's, name.
    Client = 9,
    /// rcl's timer; number = period, ns.
    Timer = 10,
    /// A callback; owner = rcl's timer.
    TimerCallback = 11,
    /// rcl's timer; owner = node.
    TimerNode = 12,
    /// A callback; name = its function or type.
    CallbackSymbol = 13,
    /// A ring buffer; owner = the intra-process buffer that it is in.
    BufferOfIpb = 14,
    /// An intra-process buffer; owner = rclcpp's subscription.
    IpbOfSubscription = 15,
    /// A ring buffer; number = how many messages it holds.
    RingBuffer = 16,
    /// rcl's timer; owner = callback group (CARET, rclpy, rclcpp), of which one callback runs at a time.
    GroupOfTimer = 17,
    /// rcl's subscription, service or client; owner = callback group (CARET, rclpy, rclcpp).
    GroupOfSubscription = 18,
    /// The middleware's publisher; number = its gid, folded as in [`RosEvent`].
    RmwPublisher = 19,
    /// The middleware's subscription; number = its gid.
    RmwSubscription = 20,
    /// The middleware's client; number = its gid.
    RmwClient = 21,
    /// rcl's state machine of a lifecycle node; owner = node.
    StateMachine = 22,
    /// rcl's state machine goes from the state name to the state text.
    Transition = 23,
    /// rcl's publisher, whose messages follow from those of owner, rcl's subscription, as the program says; number = 1 if
    /// each follows from one that came, 2 if they are sent by themselves.
    Link = 24,
    /// A callback of an action, or of something else that has no handle of rcl; owner = node, or 0; name = what it is, e.g.
    /// "action /turn execute".
    NodeCallback = 25,
}

impl RosObjectKind {
    /// All known kinds, in the order of their numbers.
    pub const ALL: [RosObjectKind; 25] = {
        use RosObjectKind::*;
        [
            Context,
            Node,
            Publisher,
            Subscription,
            SubscriptionObject,
            SubscriptionCallback,
            Service,
            ServiceCallback,
            Client,
            Timer,
            TimerCallback,
            TimerNode,
            CallbackSymbol,
            BufferOfIpb,
            IpbOfSubscription,
            RingBuffer,
            GroupOfTimer,
            GroupOfSubscription,
            RmwPublisher,
            RmwSubscription,
            RmwClient,
            StateMachine,
            Transition,
            Link,
            NodeCallback,
        ]
    };

    /// The kind with this format number.
    pub fn from_number(number: u8) -> RosObjectKind {
        let at = (number as usize).checked_sub(1);
        at.and_then(|at| Self::ALL.get(at)).copied().unwrap_or(RosObjectKind::Unknown)
    }
}

/// A count of what was lost, as an increment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// CLOCK_MONOTONIC from which on some may be missing; 0 where that is not known.
    pub since_ns: u64,
    /// CLOCK_MONOTONIC when the loss was noticed: until then some may be missing.
    pub time_ns: u64,
    /// What was lost.
    pub what: LostWhat,
    /// Where: "pid/tid" of a ring, "cpu N perf", … for people.
    pub place: String,
    /// How many more than at the last entry of this place.
    pub count: u64,
    /// Whether `count` is an estimate: of a damaged chunk only the length is known, and of a ring that could not be read nothing.
    pub is_estimate: bool,
}

/// What can be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LostWhat {
    /// Stamps: ring full, or no free thread slot.
    #[default]
    Stamps = 1,
    /// Kernel events.
    KernelEvents = 2,
    /// Telemetry: a channel's ring full, or not to be had.
    Telemetry = 3,
    /// Samples of stacks.
    Samples = 4,
    /// ROS 2 events: ring full, or no free thread slot. A taut that does not know them takes them as stamps.
    RosEvents = 5,
}

impl LostWhat {
    /// What has this format number; another's is taken as stamps.
    pub fn from_number(number: u8) -> LostWhat {
        match number {
            2 => LostWhat::KernelEvents,
            3 => LostWhat::Telemetry,
            4 => LostWhat::Samples,
            5 => LostWhat::RosEvents,
            _ => LostWhat::Stamps,
        }
    }
}

/// One sampled figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// E.g. "psi.cpu.some_avg10", "cpu0.steal_s", "cpu1.frequency_khz".
    pub name: String,
    /// In the unit the name says.
    pub value: f64,
}

/// How the kernel was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tier {
    /// All threads' scheduling and the recorded tree's system calls.
    Full,
    /// Context switches of the recorded threads only.
    SelfOnly,
    /// No kernel events.
    #[default]
    Stamps,
}

impl Tier {
    /// "full", "self" or "stamps": the word in files and reports.
    pub fn word(self) -> &'static str {
        match self {
            Tier::Full => "full",
            Tier::SelfOnly => "self",
            Tier::Stamps => "stamps",
        }
    }

    /// The tier of that word.
    pub fn from_word(word: &str) -> Option<Tier> {
        [Tier::Full, Tier::SelfOnly, Tier::Stamps].into_iter().find(|t| t.word() == word)
    }
}

/// What was recorded where: written first, repeated in Metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// Version of the taut that recorded.
    pub taut_version: String,
    /// The command, as typed; empty with `--pid`.
    pub command: Vec<String>,
    /// Working directory.
    pub directory: String,
    /// Host name.
    pub host: String,
    /// `uname -r -v -m`.
    pub kernel: String,
    /// Whose numbers the system calls have, an [`Architecture`](crate::Architecture)'s word; empty: x86_64's.
    pub system_calls: String,
    /// CPU model and number of CPUs.
    pub cpu: String,
    /// Number of online CPUs.
    pub cpus: u32,
    /// `git describe --always --dirty` of the working directory; empty outside a repository.
    pub git_revision: String,
    /// Tier chosen at start.
    pub tier: Tier,
    /// Which kernel source served: "ftrace", "perf", "none".
    pub kernel_source: String,
    /// Why not a better tier, and what it costs; empty in full tier.
    pub tier_reason: String,
    /// CLOCK_MONOTONIC at the start of the recording.
    pub start_monotonic_ns: u64,
    /// CLOCK_REALTIME at the same moment.
    pub start_realtime_ns: u64,
    /// Further facts, sorted by key: "governor", "clocksource", "hypervisor", "perf_event_paranoid", …
    pub facts: Vec<(String, String)>,
}

/// The further fact that is the recorder's process id, as the kernel of that host has it.
pub const RECORDER_FACT: &str = "recorder_pid";

impl Info {
    /// The value of a further fact; "" where there is none.
    pub fn fact(&self, key: &str) -> &str {
        self.facts.iter().find(|(known, _)| known == key).map_or("", |(_, value)| value.as_str())
    }

    /// A further fact of a host of a joined recording; those of other hosts than the first have its name in front.
    pub fn fact_of_host(&self, host: &str, key: &str) -> &str {
        self.fact(&format!("{host}.{key}"))
    }

    /// The same of a stretch that begins later, at that moment of CLOCK_MONOTONIC. How far CLOCK_REALTIME is right was stated of this
    /// recording's start only.
    pub fn since(&self, time_ns: u64) -> Info {
        let mut info = Info {
            start_realtime_ns: self.start_realtime_ns + time_ns.saturating_sub(self.start_monotonic_ns),
            start_monotonic_ns: time_ns,
            ..self.clone()
        };
        info.facts.retain(|(key, _)| key != "realtime_bound_ns" && key != "ptp_bound_ns");
        info
    }

    /// Names of the hosts of a joined recording, the first is the one with the clock; of another recording none.
    pub fn hosts(&self) -> Vec<&str> {
        self.fact("hosts").split(',').filter(|name| !name.is_empty()).collect()
    }

    /// The key of a fact of a joined recording on the clocks of two of its hosts, the one that comes first in [`Info::hosts`] first.
    pub fn clocks_fact(of: &str, first: &str, second: &str) -> String {
        format!("clocks_{of}:{first}:{second}")
    }

    /// What a joined recording says of the clocks of two of its hosts, in any order; "" where it says nothing.
    pub fn clocks(&self, of: &str, one: &str, other: &str) -> &str {
        match self.fact(&Info::clocks_fact(of, one, other)) {
            "" => self.fact(&Info::clocks_fact(of, other, one)),
            said => said,
        }
    }
}

/// How a recording ended; absent after a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ending {
    /// CLOCK_MONOTONIC at the end.
    pub end_monotonic_ns: u64,
    /// Exit code of the command, 128 + signal, if it was started by taut.
    pub exit_code: Option<i32>,
    /// Stamps written to the recording.
    pub stamps: u64,
    /// Stamps lost.
    pub lost_stamps: u64,
    /// Kernel events written.
    pub kernel_events: u64,
    /// Kernel events lost.
    pub lost_kernel_events: u64,
    /// Telemetry messages written.
    pub telemetry: u64,
    /// Telemetry messages lost.
    pub lost_telemetry: u64,
    /// Sampled stacks written.
    pub samples: u64,
    /// Sampled stacks lost.
    pub lost_samples: u64,
    /// ROS 2 events written.
    #[serde(skip_serializing_if = "is_zero")]
    pub ros_events: u64,
    /// ROS 2 events lost.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_ros_events: u64,
    /// CPU time the recorder itself used, in nanoseconds.
    pub recorder_cpu_ns: u64,
    /// Why it ended: "command exited", "duration", "signal".
    pub reason: String,
    /// What one must know to trust the figures, a sentence each: an importer's findings.
    pub notes: Vec<String>,
}

impl Ending {
    /// Adds what a record holds, or says is lost.
    pub fn count(&mut self, record: &Record) {
        let (total, count) = match record {
            Record::Stamps(batch) => (&mut self.stamps, batch.ticks.len() as u64),
            Record::Kernel(batch) => (&mut self.kernel_events, batch.time_ns.len() as u64),
            Record::Message(_) => (&mut self.telemetry, 1),
            Record::Profile(batch) => (&mut self.samples, batch.time_ns.len() as u64),
            Record::Ros(batch) => (&mut self.ros_events, batch.ticks.len() as u64),
            Record::Lost(lost) => match lost.what {
                LostWhat::Stamps => (&mut self.lost_stamps, lost.count),
                LostWhat::KernelEvents => (&mut self.lost_kernel_events, lost.count),
                LostWhat::Telemetry => (&mut self.lost_telemetry, lost.count),
                LostWhat::Samples => (&mut self.lost_samples, lost.count),
                LostWhat::RosEvents => (&mut self.lost_ros_events, lost.count),
            },
            _ => return,
        };
        // A counter in foreign memory may say anything.
        *total = total.saturating_add(count);
    }

    /// Adds what another recording holds and lost.
    pub fn add(&mut self, other: &Ending) {
        for (sum, more) in [
            (&mut self.stamps, other.stamps),
            (&mut self.lost_stamps, other.lost_stamps),
            (&mut self.kernel_events, other.kernel_events),
            (&mut self.lost_kernel_events, other.lost_kernel_events),
            (&mut self.telemetry, other.telemetry),
            (&mut self.lost_telemetry, other.lost_telemetry),
            (&mut self.samples, other.samples),
            (&mut self.lost_samples, other.lost_samples),
            (&mut self.ros_events, other.ros_events),
            (&mut self.lost_ros_events, other.lost_ros_events),
            (&mut self.recorder_cpu_ns, other.recorder_cpu_ns),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// How the recorded program failed, if it did: "with exit code 3", "by signal 11 (SIGSEGV)".
    pub fn failure(&self) -> Option<String> {
        // A save of a flight recorder says so among its reasons.
        let is_own = self.reason == "command exited" || self.reason.contains("the program ended ");
        failure(self.exit_code?, is_own)
    }
}

/// Signals by which a program fails, and that are not sent to end one.
const FATAL: [(i32, &str); 7] =
    [(4, "SIGILL"), (5, "SIGTRAP"), (6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"), (11, "SIGSEGV"), (31, "SIGSYS")];
/// Signals that end a program from outside: SIGHUP, SIGINT, SIGTERM.
const ENDING: [i32; 3] = [1, 2, 15];

/// How a program failed that ended with this code (128 + signal); `is_own`: by itself, and not because the recording's time was
/// over or a signal passed on. The signals' numbers are those of Linux on x86-64 and Arm.
pub fn failure(exit_code: i32, is_own: bool) -> Option<String> {
    let signal = exit_code - 128;
    let fatal = FATAL.iter().find(|(number, _)| *number == signal);
    match (exit_code, fatal) {
        // It failed, also where a signal was passed on before.
        (_, Some((_, name))) => Some(format!("by signal {signal} ({name})")),
        (1..=128, _) if is_own => Some(format!("with exit code {exit_code}")),
        (129.., _) if is_own && !ENDING.contains(&signal) => Some(format!("by signal {signal}")),
        _ => None,
    }
}

/// A recording without ROS 2 says nothing of it.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_that_begins_later_has_its_own_start_and_no_bound_of_the_realtime_clock() {
        let fact = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let facts = vec![fact("boot_id", "1"), fact("ptp_bound_ns", "9"), fact("realtime_bound_ns", "50000")];
        let info = Info { start_monotonic_ns: 1_000, start_realtime_ns: 700_000, facts, ..Info::default() };
        let later = info.since(61_000);
        assert_eq!((later.start_monotonic_ns, later.start_realtime_ns), (61_000, 760_000));
        assert_eq!(later.facts, [fact("boot_id", "1")]);
    }
}
