//! The list of tracepoints a depth asks for, and how a raw record becomes a row.
//! A table: one line per tracepoint says which event it is and which fields are its arguments.

use std::{
    fs::File,
    io::{BufRead, BufReader, ErrorKind},
};

use taut_recording::{Architecture, KernelEvent};

use super::Depth;
use super::format::{self, Format};
use super::rows::Row;
use super::tracefs::Tracefs;

/// Where an argument of a row comes from.
#[derive(Clone, Copy, Debug)]
enum Argument {
    None,
    Constant(i64),
    Field(&'static str),
    /// A 32-bit field whose all-ones value means -1 though the kernel declares it unsigned.
    Signed(&'static str),
    /// `first << 16 | second`, of which either may be negative.
    Pair(&'static str, &'static str),
    /// `first << 8 | second`: an address of the kernel, of which all else is known, and a number of one byte.
    Address(&'static str, &'static str),
    /// Whether a field is the address of this function of the kernel: 1 or 0. 0 too where addresses may not be read.
    Is(&'static str, &'static str),
    /// Number of a named system call.
    CallNumber,
    /// Parameter of a named system call, by place.
    CallParameter(usize),
    /// Element of the array of the raw system call event.
    Element(&'static str, usize),
    /// Eight bytes of a text of fixed length, by place; 0 where the kernel has it in another way.
    Text(&'static str, usize),
    /// Second parameter of a system call; of futex the low half is that one, its operation, and the high half the third,
    /// the value that it expects or the number of threads that it wakes.
    Second,
}

/// A tracepoint, and what its records mean.
#[derive(Clone, Debug)]
pub struct Tracepoint {
    /// Folder under `events/`.
    pub group: String,
    /// Its name.
    pub name: String,
    event: KernelEvent,
    arguments: [Argument; 3],
    /// Filters of its records; the first that the kernel knows is used, and without one all of them are recorded.
    pub filters: &'static [&'static str],
}

impl Tracepoint {
    /// What the tracepoint is of: the same for entry and exit of one interrupt, or of one system call.
    pub fn subject(&self) -> &str {
        if let Some(call) = ["sys_enter_", "sys_exit_"].iter().find_map(|begin| self.name.strip_prefix(begin)) {
            return call;
        }
        let ends = ["_entry", "_enter", "_exit"];
        ends.iter().find_map(|end| self.name.strip_suffix(end)).unwrap_or(&self.name)
    }
}

use Argument::*;
use KernelEvent::*;

const SCHEDULING: &[(&str, KernelEvent, [Argument; 3])] = &[
    ("sched_switch", SchedSwitch, [Field("next_pid"), Field("prev_state"), Pair("next_prio", "prev_prio")]),
    // Waking, not wakeup: the latter may fire on the target's CPU after an interrupt and so name an innocent.
    ("sched_waking", SchedWaking, [Field("pid"), Field("target_cpu"), Field("prio")]),
    ("sched_wakeup_new", SchedWakeupNew, [Field("pid"), Field("target_cpu"), Field("prio")]),
    ("sched_migrate_task", SchedMigrate, [Field("pid"), Field("orig_cpu"), Field("dest_cpu")]),
    ("sched_process_fork", SchedFork, [Field("child_pid"), None, None]),
    ("sched_process_exec", SchedExec, [Field("old_pid"), None, None]),
    ("sched_process_exit", SchedExit, [Text("comm", 0), Text("comm", 1), None]),
];

const INTERRUPTS: &[(&str, KernelEvent, [Argument; 3])] = &[
    ("irq_handler_entry", IrqEnter, [Field("irq"), Constant(0), None]),
    ("irq_handler_exit", IrqExit, [Field("irq"), Constant(0), None]),
    ("softirq_entry", IrqEnter, [Field("vec"), Constant(1), None]),
    ("softirq_exit", IrqExit, [Field("vec"), Constant(1), None]),
];

/// Timers of threads; the others, of which the tick is the most frequent, wake no thread that is waited for.
const TIMERS_OF_THREADS: &str = "function.function == hrtimer_wakeup || function.function == timerfd_tmrproc || \
    function.function == posix_timer_fn || function.function == dl_task_timer";
/// The same, and those at which a control group gets its CPU quota again, where the kernel has quotas.
const TIMERS_AND_QUOTAS: &str = "function.function == hrtimer_wakeup || function.function == timerfd_tmrproc || \
    function.function == posix_timer_fn || function.function == dl_task_timer || function.function == sched_cfs_period_timer";

/// A terminal's bytes, and those of a serial port, reach their reader by a kernel thread that works for many writers.
const WORK: &[(&str, KernelEvent, [Argument; 3])] = &[
    ("workqueue_queue_work", WorkQueue, [Field("work"), None, None]),
    ("workqueue_execute_start", WorkStart, [Field("work"), None, None]),
];

const POWER: &[(&str, KernelEvent, [Argument; 3])] = &[
    ("cpu_idle", CpuIdle, [Signed("state"), None, None]),
    ("cpu_frequency", CpuFrequency, [Field("state"), Field("cpu_id"), None]),
];

/// Those that are asked for by name, because every other call then leaves no record. Those that a kernel lacks are passed
/// over; a thread that spins with `sched_yield` would fill the buffers.
fn system_calls() -> impl Iterator<Item = (&'static str, u16)> {
    Architecture::HERE.system_calls().filter(|(name, _)| *name != "sched_yield")
}

/// Tracepoints of all tasks that `depth` asks for. Those of x86 vectors are as many as the kernel has; where it cannot be asked for them
/// they are `left_out`.
pub fn of_all_tasks(tracefs: &Tracefs, depth: Depth, left_out: &mut Vec<String>) -> Vec<Tracepoint> {
    let mut wanted = table("sched", SCHEDULING);
    if depth >= Depth::Syscalls {
        wanted.push(timer_expires());
        wanted.extend(table("workqueue", WORK));
    }
    if depth >= Depth::Irq {
        wanted.extend(table("irq", INTERRUPTS));
        match tracefs.list("events/irq_vectors") {
            Ok(names) => wanted.extend(vectors(&names)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => left_out.push("irq_vectors:*".to_owned()),
        }
    }
    if depth >= Depth::All {
        wanted.extend(table("power", POWER));
    }
    wanted
}

/// x86 interrupts that never pass `irq_handler_entry`: timers, calls between CPUs, rescheduling.
/// Other tracepoints of the group (vector_alloc …) are no interrupts.
fn vectors(names: &[String]) -> Vec<Tracepoint> {
    let point = |name: &String| {
        let event = match name.rsplit_once('_')?.1 {
            "entry" => IrqEnter,
            "exit" => IrqExit,
            _ => return Option::None,
        };
        let arguments = [Field("vector"), Constant(2), None];
        Some(Tracepoint { group: "irq_vectors".into(), name: name.clone(), event, arguments, filters: &[] })
    };
    names.iter().filter_map(point).collect()
}

/// Named system calls and page faults, for the recorded tree.
pub fn of_tree_by_name(depth: Depth) -> Vec<Tracepoint> {
    if depth < Depth::Syscalls {
        return Vec::new();
    }
    let call = |kind: &str, name: &str, event, arguments| Tracepoint {
        group: "syscalls".into(),
        name: format!("sys_{kind}_{name}"),
        event,
        arguments,
        filters: &[],
    };
    let calls = system_calls().flat_map(|(name, _)| {
        [
            call("enter", name, SyscallEnter, [CallNumber, CallParameter(0), Second]),
            call("exit", name, SyscallExit, [CallNumber, Field("ret"), None]),
        ]
    });
    calls.chain([page_fault(), timer()]).collect()
}

/// The same through the two raw tracepoints. For perf, where each event per thread costs at every
/// context switch, so that two with a filter are cheaper than sixty without.
pub fn of_tree_raw(depth: Depth) -> Vec<Tracepoint> {
    if depth < Depth::Syscalls {
        return Vec::new();
    }
    let raw = |name: &str, event, arguments| Tracepoint {
        group: "raw_syscalls".into(),
        name: name.into(),
        event,
        arguments,
        filters: &[],
    };
    vec![
        raw("sys_enter", SyscallEnter, [Field("id"), Element("args", 0), Second]),
        raw("sys_exit", SyscallExit, [Field("id"), Field("ret"), None]),
        page_fault(),
        timer(),
    ]
}

/// The kernel's filter that lets only the wanted system calls through the raw tracepoints.
pub fn raw_filter() -> String {
    system_calls().map(|(_, number)| format!("id=={number}")).collect::<Vec<_>>().join("||")
}

fn page_fault() -> Tracepoint {
    let arguments = [Field("address"), Field("ip"), Field("error_code")];
    let (group, name) = ("exceptions".into(), "page_fault_user".into());
    Tracepoint { group, name, event: PageFault, arguments, filters: &[] }
}

/// How long a sleep was asked for is behind a pointer in the call's arguments; the timer's event has it.
fn timer() -> Tracepoint {
    let arguments = [Field("softexpires"), Field("expires"), Address("hrtimer", "mode")];
    let (group, name) = ("timer".into(), "hrtimer_start".into());
    Tracepoint { group, name, event: TimerStart, arguments, filters: &[] }
}

/// It happens in an interrupt of any thread, so that it is recorded of all. By the timer's address it is known whose it was.
fn timer_expires() -> Tracepoint {
    let arguments = [Field("hrtimer"), Field("now"), Is("function", "sched_cfs_period_timer")];
    let (group, name) = ("timer".into(), "hrtimer_expire_entry".into());
    Tracepoint { group, name, event: TimerExpire, arguments, filters: &[TIMERS_AND_QUOTAS, TIMERS_OF_THREADS] }
}

/// Where a function of the kernel lies; `None` where that may not be known, or it has none of this name. The list is read only as
/// far as the function: the kernel takes some 70 ms of CPU time to print all of it.
fn function_address(name: &str) -> Option<i64> {
    let symbols = BufReader::with_capacity(1 << 16, File::open("/proc/kallsyms").ok()?);
    let mut lines = symbols.lines().map_while(Result::ok);
    // "ffffffff813c4ef0 t sched_cfs_period_timer"; a module's function has the module's name behind it.
    let line = lines.find(|line| line.splitn(3, ' ').nth(2) == Some(name))?;
    let address = u64::from_str_radix(line.split(' ').next()?, 16).ok()?;
    (address != 0).then_some(address as i64)
}

fn table(group: &str, lines: &[(&str, KernelEvent, [Argument; 3])]) -> Vec<Tracepoint> {
    let point = |&(name, event, arguments): &(&str, KernelEvent, [Argument; 3])| Tracepoint {
        group: group.into(),
        name: name.into(),
        event,
        arguments,
        filters: &[],
    };
    lines.iter().map(point).collect()
}

/// Turns raw records into rows, by the number in their first field.
#[derive(Debug, Default)]
pub struct Decoder {
    by_id: Vec<Option<Bound>>,
}

/// A tracepoint bound to where its fields lie in this kernel.
#[derive(Clone, Debug)]
struct Bound {
    event: KernelEvent,
    flags: format::Field,
    tid: format::Field,
    arguments: [BoundArgument; 3],
}

#[derive(Clone, Debug)]
enum BoundArgument {
    Constant(i64),
    Field(format::Field),
    Pair(format::Field, format::Field),
    Address(format::Field, format::Field),
    Equals(format::Field, i64),
    /// The call's number, its second parameter and its third.
    Second(format::Field, format::Field, format::Field),
}

impl Decoder {
    /// Makes the records of a tracepoint readable; false when its format lacks a field.
    pub fn add(&mut self, tracepoint: &Tracepoint, format: &Format) -> bool {
        let Some(bound) = Bound::new(tracepoint, format) else { return false };
        let id = usize::from(format.id);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, Option::None);
        }
        self.by_id[id] = Some(bound);
        true
    }

    /// The row of a raw record; `None` for tracepoints that were not added and for records that are too short.
    #[inline]
    pub fn row(&self, time_ns: u64, record: &[u8]) -> Option<Row> {
        let id = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
        let bound = self.by_id.get(usize::from(id))?.as_ref()?;
        let [first, second, third] = &bound.arguments;
        Some(Row {
            time_ns,
            event: bound.event,
            flags: bound.flags.read(record)? as u8,
            tid: bound.tid.read(record)? as i32,
            args: [first.read(record)?, second.read(record)?, third.read(record)?],
        })
    }
}

impl Bound {
    fn new(tracepoint: &Tracepoint, format: &Format) -> Option<Bound> {
        let [first, second, third] = tracepoint.arguments;
        Some(Bound {
            event: tracepoint.event,
            flags: format.field("common_flags")?.clone(),
            tid: format.field("common_pid")?.clone(),
            arguments: [first.bind(format)?, second.bind(format)?, third.bind(format)?],
        })
    }
}

impl Argument {
    /// A named system call may have fewer arguments than a row: those are 0.
    fn bind(self, format: &Format) -> Option<BoundArgument> {
        let field = |name: &str| format.field(name).cloned();
        let bound = match self {
            None => BoundArgument::Constant(0),
            Constant(value) => BoundArgument::Constant(value),
            Argument::Field(name) => BoundArgument::Field(field(name)?),
            Signed(name) => BoundArgument::Field(format::Field { signed: true, ..field(name)? }),
            Pair(first, second) => BoundArgument::Pair(field(first)?, field(second)?),
            Address(first, second) => BoundArgument::Address(field(first)?, field(second)?),
            Is(name, function) => match function_address(function) {
                Some(address) => BoundArgument::Equals(field(name)?, address),
                Option::None => BoundArgument::Constant(0),
            },
            CallNumber => BoundArgument::Field(format.system_call_number()?.clone()),
            CallParameter(index) => match format.system_call_argument(index) {
                Some(field) => BoundArgument::Field(field.clone()),
                Option::None => BoundArgument::Constant(0),
            },
            Element(name, index) => BoundArgument::Field(field(name)?.element(index)?),
            Text(name, index) => match field(name).and_then(|text| text.element(index)) {
                Some(part) => BoundArgument::Field(part),
                Option::None => BoundArgument::Constant(0),
            },
            Second => match (field("args"), format.system_call_argument(1), format.system_call_argument(2)) {
                (Some(args), ..) => BoundArgument::Second(field("id")?, args.element(1)?, args.element(2)?),
                (_, Some(second), Some(third)) => {
                    BoundArgument::Second(format.system_call_number()?.clone(), second.clone(), third.clone())
                }
                (_, Some(second), _) => BoundArgument::Field(second.clone()),
                _ => BoundArgument::Constant(0),
            },
        };
        Some(bound)
    }
}

impl BoundArgument {
    #[inline]
    fn read(&self, record: &[u8]) -> Option<i64> {
        match self {
            BoundArgument::Constant(value) => Some(*value),
            BoundArgument::Field(field) => field.read(record),
            BoundArgument::Pair(first, second) => Some(first.read(record)? << 16 | second.read(record)? & 0xffff),
            BoundArgument::Address(first, second) => Some(first.read(record)? << 8 | second.read(record)? & 0xff),
            BoundArgument::Equals(field, value) => Some(i64::from(field.read(record)? == *value)),
            BoundArgument::Second(number, second, third) => {
                let value = second.read(record)?;
                let is_futex = number.read(record)? == libc::SYS_futex;
                Some(if is_futex { third.read(record)? << 32 | value & 0xffff_ffff } else { value })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
        \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n";

    #[test]
    fn system_calls_have_the_numbers_of_the_c_library() {
        let theirs = [
            ("futex", libc::SYS_futex),
            ("nanosleep", libc::SYS_nanosleep),
            ("clock_nanosleep", libc::SYS_clock_nanosleep),
            ("read", libc::SYS_read),
            ("readv", libc::SYS_readv),
            ("pread64", libc::SYS_pread64),
            ("preadv", libc::SYS_preadv),
            ("recvfrom", libc::SYS_recvfrom),
            ("recvmsg", libc::SYS_recvmsg),
            ("recvmmsg", libc::SYS_recvmmsg),
            ("accept", libc::SYS_accept),
            ("accept4", libc::SYS_accept4),
            ("connect", libc::SYS_connect),
            ("flock", libc::SYS_flock),
            ("ioctl", libc::SYS_ioctl),
            ("openat", libc::SYS_openat),
            ("write", libc::SYS_write),
            ("writev", libc::SYS_writev),
            ("pwrite64", libc::SYS_pwrite64),
            ("pwritev", libc::SYS_pwritev),
            ("sendto", libc::SYS_sendto),
            ("sendmsg", libc::SYS_sendmsg),
            ("sendmmsg", libc::SYS_sendmmsg),
            #[cfg(target_arch = "x86_64")]
            ("poll", libc::SYS_poll),
            ("ppoll", libc::SYS_ppoll),
            #[cfg(target_arch = "x86_64")]
            ("select", libc::SYS_select),
            ("pselect6", libc::SYS_pselect6),
            #[cfg(target_arch = "x86_64")]
            ("epoll_wait", libc::SYS_epoll_wait),
            ("epoll_pwait", libc::SYS_epoll_pwait),
            ("epoll_pwait2", libc::SYS_epoll_pwait2),
            ("io_uring_enter", libc::SYS_io_uring_enter),
            ("fsync", libc::SYS_fsync),
            ("fdatasync", libc::SYS_fdatasync),
            ("msync", libc::SYS_msync),
            ("sync", libc::SYS_sync),
            ("syncfs", libc::SYS_syncfs),
            ("sync_file_range", libc::SYS_sync_file_range),
            ("wait4", libc::SYS_wait4),
            ("waitid", libc::SYS_waitid),
            #[cfg(target_arch = "x86_64")]
            ("pause", libc::SYS_pause),
            ("rt_sigsuspend", libc::SYS_rt_sigsuspend),
            ("rt_sigtimedwait", libc::SYS_rt_sigtimedwait),
            ("msgrcv", libc::SYS_msgrcv),
            ("msgsnd", libc::SYS_msgsnd),
            ("semop", libc::SYS_semop),
            ("semtimedop", libc::SYS_semtimedop),
            ("mq_timedreceive", libc::SYS_mq_timedreceive),
            ("mq_timedsend", libc::SYS_mq_timedsend),
            ("sched_yield", libc::SYS_sched_yield),
            ("futex_waitv", libc::SYS_futex_waitv),
        ];
        // Younger than the C library's list.
        let ours = Architecture::HERE.system_calls().filter(|(name, _)| !["futex_wake", "futex_wait"].contains(name));
        let ours: BTreeMap<_, _> = ours.map(|(name, number)| (name, i64::from(number))).collect();
        assert_eq!(ours, BTreeMap::from(theirs));
    }

    fn decoder() -> Decoder {
        let mut decoder = Decoder::default();
        assert!(decoder.add(&table("sched", SCHEDULING)[0], &Format::parse(SWITCH).unwrap()));
        decoder
    }

    #[test]
    fn a_switch_record_becomes_a_row() {
        let mut record = vec![0; 64];
        record[..2].copy_from_slice(&372u16.to_le_bytes());
        record[2] = 0x08;
        record[4..8].copy_from_slice(&41i32.to_le_bytes());
        record[28..32].copy_from_slice(&120i32.to_le_bytes());
        record[32..40].copy_from_slice(&0x100i64.to_le_bytes());
        record[56..60].copy_from_slice(&42i32.to_le_bytes());
        record[60..64].copy_from_slice(&98i32.to_le_bytes());
        let row = decoder().row(5, &record).unwrap();
        // Of a thread of SCHED_DEADLINE.
        record[28..32].copy_from_slice(&(-1i32).to_le_bytes());
        assert_eq!(decoder().row(5, &record).unwrap().args[2], 98 << 16 | 0xffff);
        let expected = Row { time_ns: 5, event: SchedSwitch, flags: 0x08, tid: 41, args: [42, 0x100, 98 << 16 | 120] };
        assert_eq!(row, expected);
    }

    #[test]
    fn a_format_without_a_needed_field_is_refused() {
        let text = SWITCH.replace("next_pid", "renamed");
        assert!(!Decoder::default().add(&table("sched", SCHEDULING)[0], &Format::parse(&text).unwrap()));
    }

    #[test]
    fn only_entries_and_exits_of_vectors_are_interrupts() {
        let names = ["enable", "vector_alloc", "local_timer_entry", "local_timer_exit"].map(String::from);
        let found: Vec<_> = vectors(&names).into_iter().map(|point| (point.name, point.event)).collect();
        assert_eq!(found, [("local_timer_entry".into(), IrqEnter), ("local_timer_exit".into(), IrqExit)]);
    }

    #[test]
    fn the_depth_decides_about_the_tree() {
        assert!(of_tree_by_name(Depth::Sched).is_empty());
        assert!(of_tree_raw(Depth::Sched).is_empty());
        assert!(of_tree_by_name(Depth::Syscalls).iter().any(|point| point.name == "sys_exit_clock_nanosleep"));
        assert!(raw_filter().starts_with("id=="));
    }

    proptest! {
        #[test]
        fn any_record_is_survived(mut record in proptest::collection::vec(any::<u8>(), 0..80), known: bool) {
            if known && record.len() >= 2 {
                record[..2].copy_from_slice(&372u16.to_le_bytes());
            }
            decoder().row(0, &record);
        }
    }
}
