//! The table of remedies: the causes that each answers, what it changes, how it is applied, verified and undone, what it costs, what it needs.

use schemars::JsonSchema;
use serde::Serialize;
use taut_analysis::Cause;

use crate::Plan;

/// What a remedy needs beyond what every user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Nothing.
    None,
    /// Priorities above the ordinary: CAP_SYS_NICE, or a limit that allows it.
    Priority,
    /// To change other processes or the machine; asked for with `--allow-changes`.
    Outside,
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub id: &'static str,
    /// The causes that it answers.
    pub answers: &'static [Cause],
    /// What it is.
    pub title: &'static str,
    /// What it changes, and by what where its name does not say that.
    pub applied: &'static str,
    /// How it is verified.
    pub verified: &'static str,
    /// How it is undone.
    pub undone: &'static str,
    /// What it costs, and what it risks.
    pub cost: &'static str,
    /// What it needs.
    pub permission: Permission,
    /// Of two remedies with the same effect, the one with the lower rank is better.
    pub rank: u8,
    /// Checks of `taut doctor` that see whether it is still in force.
    pub checks: &'static [&'static str],
}

const WITH_PROCESS: &str = "ends with the program";
const JOURNAL: &str = "old value journaled, written back after each trial";
const ENVIRONMENT: &str = "the environment of each process";
const INTERPRETER: &str = "a file that the module writes once it has set it";
const EVENTS: &str = "policy in /proc, priority in kernel events";

/// All rows.
pub const TABLE: &[Row] = &[
    Row {
        id: "timer-slack",
        answers: &[Cause::TimerSlack],
        title: "timer slack of 1 ns",
        applied: "timer slack of 1 ns (prctl)",
        verified: "/proc/TID/timerslack_ns",
        undone: WITH_PROCESS,
        cost: "a few more timer interrupts",
        permission: Permission::None,
        rank: 1,
        checks: &["timer-slack"],
    },
    Row {
        id: "malloc",
        answers: &[Cause::PageFault, Cause::Syscall],
        title: "malloc keeps freed memory",
        applied: "malloc keeps freed memory (glibc): MALLOC_TRIM_THRESHOLD_, MALLOC_TOP_PAD_, MALLOC_MMAP_THRESHOLD_",
        verified: ENVIRONMENT,
        undone: WITH_PROCESS,
        cost: "freed memory stays with the program: up to its largest use",
        permission: Permission::None,
        rank: 2,
        checks: &[],
    },
    Row {
        id: "huge-pages",
        answers: &[Cause::PageFault],
        title: "no transparent huge pages",
        applied: "no transparent huge pages (prctl)",
        verified: "THP_enabled in /proc/PID/status",
        undone: WITH_PROCESS,
        cost: "more TLB misses in programs with large working sets",
        permission: Permission::None,
        rank: 2,
        checks: &[],
    },
    Row {
        id: "huge-malloc",
        answers: &[Cause::PageFault],
        title: "malloc in transparent huge pages",
        applied: "glibc 2.35: GLIBC_TUNABLES=glibc.malloc.hugetlb=1, where the machine gives huge pages on request",
        verified: ENVIRONMENT,
        undone: WITH_PROCESS,
        cost: "memory in steps of 2 MiB; the first touch of each takes longer",
        permission: Permission::None,
        rank: 3,
        checks: &[],
    },
    Row {
        id: "arenas",
        answers: &[Cause::PageFault],
        title: "malloc with one arena for all threads",
        applied: "glibc: MALLOC_ARENA_MAX=1",
        verified: ENVIRONMENT,
        undone: WITH_PROCESS,
        cost: "threads that allocate at the same time wait for each other",
        permission: Permission::None,
        rank: 3,
        checks: &[],
    },
    Row {
        id: "lock-memory",
        answers: &[Cause::PageFault],
        title: "memory stays in RAM and is there before it is used",
        applied: "Python module: mlockall of present and future memory",
        verified: INTERPRETER,
        undone: WITH_PROCESS,
        cost: "all memory that the program maps takes RAM; thread stacks in full",
        permission: Permission::None,
        rank: 4,
        checks: &["loop-memory", "locked-memory"],
    },
    Row {
        id: "switch-interval",
        answers: &[Cause::Gil],
        title: "Python threads ask for the interpreter lock sooner",
        applied: "Python module: sys.setswitchinterval(0.0002)",
        verified: INTERPRETER,
        undone: WITH_PROCESS,
        cost: "more switches: threads that compute get less done",
        permission: Permission::None,
        rank: 3,
        checks: &[],
    },
    Row {
        id: "collect-later",
        answers: &[],
        title: "Python collects garbage later",
        applied: "Python module: gc.set_threshold(100000, 50, 100)",
        verified: INTERPRETER,
        undone: WITH_PROCESS,
        cost: "memory in reference cycles is freed later",
        permission: Permission::None,
        rank: 3,
        checks: &[],
    },
    Row {
        id: "freeze-collected",
        answers: &[],
        title: "Python's garbage collector leaves old objects alone",
        applied: "Python module: gc.freeze() after the first full collection",
        verified: INTERPRETER,
        undone: WITH_PROCESS,
        cost: "reference cycles of the start are never freed",
        permission: Permission::None,
        rank: 3,
        checks: &[],
    },
    Row {
        id: "free-threaded",
        answers: &[Cause::Gil],
        title: "a Python interpreter without the interpreter lock",
        applied: "python3.13t or later in PATH, instead of the command's Python",
        verified: "the interpreter that starts; not whether a package switches the lock on again",
        undone: WITH_PROCESS,
        cost: "a thread alone computes slower; packages must be installed for it; code that relies on the lock may break",
        permission: Permission::None,
        rank: 6,
        checks: &["python-gil"],
    },
    Row {
        id: "ros2-transport",
        answers: &[Cause::Io, Cause::Queued, Cause::Syscall],
        title: "ROS 2 through shared memory only",
        applied: "shared memory only: FASTDDS_BUILTIN_TRANSPORTS, ROS_AUTOMATIC_DISCOVERY_RANGE",
        verified: ENVIRONMENT,
        undone: WITH_PROCESS,
        cost: "nodes on other hosts are not reached",
        permission: Permission::None,
        rank: 3,
        checks: &[],
    },
    Row {
        id: "ros2-udp",
        answers: &[Cause::Io, Cause::Queued, Cause::Syscall],
        title: "ROS 2 through UDP only",
        applied: "Fast DDS: FASTDDS_BUILTIN_TRANSPORTS=UDPv4",
        verified: ENVIRONMENT,
        undone: WITH_PROCESS,
        cost: "large messages are copied and sent in parts",
        permission: Permission::None,
        rank: 4,
        checks: &[],
    },
    Row {
        id: "ros2-publication",
        answers: &[Cause::Syscall, Cause::Io],
        title: "ROS 2 publishes from a thread of its own",
        applied: "Fast DDS: RMW_FASTRTPS_PUBLICATION_MODE=ASYNCHRONOUS",
        verified: ENVIRONMENT,
        undone: WITH_PROCESS,
        cost: "one switch of threads for each message",
        permission: Permission::None,
        rank: 4,
        checks: &[],
    },
    Row {
        id: "ros2-executor",
        answers: &[],
        title: "rclpy with its events executor",
        applied: "Python module: SingleThreadedExecutor is the EventsExecutor",
        verified: INTERPRETER,
        undone: WITH_PROCESS,
        cost: "an experimental part of rclpy: with some versions timers do not run",
        permission: Permission::None,
        rank: 5,
        checks: &[],
    },
    Row {
        id: "ros2-threads",
        answers: &[Cause::Executor],
        title: "rclpy with its multi-threaded executor",
        applied: "Python module: SingleThreadedExecutor is the MultiThreadedExecutor",
        verified: INTERPRETER,
        undone: WITH_PROCESS,
        cost: "callbacks of different groups run at the same time: what they share needs locks",
        permission: Permission::None,
        rank: 6,
        checks: &[],
    },
    Row {
        id: "ros2-middleware",
        answers: &[Cause::Io, Cause::Queued, Cause::Syscall],
        title: "another ROS 2 middleware",
        applied: "another RMW_IMPLEMENTATION",
        verified: ENVIRONMENT,
        undone: WITH_PROCESS,
        cost: "all nodes that talk to each other should use it",
        permission: Permission::None,
        rank: 4,
        checks: &[],
    },
    Row {
        id: "place",
        answers: &[Cause::Preempted, Cause::Wakeup, Cause::Irq],
        title: "the chain's threads on CPUs of their own",
        applied: "the chain's threads on CPUs of their own (sched_setaffinity)",
        verified: "affinity in the kernel, CPU of each switch in kernel events",
        undone: WITH_PROCESS,
        cost: "other threads have fewer CPUs",
        permission: Permission::None,
        rank: 3,
        checks: &["loop-affinity", "cpu-set"],
    },
    Row {
        id: "nice",
        answers: &[Cause::Preempted, Cause::Wakeup],
        title: "nice -20 for the whole program",
        applied: "nice -20 for the whole program (setpriority)",
        verified: EVENTS,
        undone: WITH_PROCESS,
        cost: "other programs get less CPU time while this one computes",
        permission: Permission::Priority,
        rank: 4,
        checks: &[],
    },
    Row {
        id: "fifo-threads",
        answers: &[Cause::Preempted, Cause::Wakeup, Cause::TimerSlack],
        title: "real-time priority for the chain's threads",
        applied: "SCHED_FIFO for the chain's threads",
        verified: EVENTS,
        undone: WITH_PROCESS,
        cost: "a thread that does not sleep holds its CPU until real-time throttling",
        permission: Permission::Priority,
        rank: 5,
        checks: &["loop-policy", "rt-priority", "rt-throttling", "rt-time"],
    },
    Row {
        id: "fifo",
        answers: &[Cause::Preempted, Cause::Wakeup, Cause::TimerSlack],
        title: "real-time priority for the whole program",
        applied: "SCHED_FIFO for the whole program",
        verified: EVENTS,
        undone: WITH_PROCESS,
        cost: "every thread of the program takes precedence over everything ordinary; one that does not sleep holds its CPU",
        permission: Permission::Priority,
        rank: 6,
        checks: &["loop-policy", "rt-priority", "rt-throttling", "rt-time"],
    },
    Row {
        id: "deadline",
        answers: &[Cause::Preempted, Cause::Wakeup, Cause::TimerSlack],
        title: "SCHED_DEADLINE for the loop's thread",
        applied: "SCHED_DEADLINE for the loop's thread, runtime and period from the recording",
        verified: EVENTS,
        undone: WITH_PROCESS,
        cost: "a run that takes longer than its runtime is throttled until the next period",
        permission: Permission::Priority,
        rank: 7,
        checks: &["loop-policy", "rt-throttling"],
    },
    Row {
        id: "awake",
        answers: &[Cause::Wakeup, Cause::TimerSlack],
        title: "CPUs stay out of deep idle states",
        applied: "/dev/cpu_dma_latency held open with 0 during the trial",
        verified: "the file stays open",
        undone: "the kernel undoes it when the file is closed",
        cost: "power and heat",
        permission: Permission::Outside,
        rank: 7,
        checks: &["pm-qos", "pm-qos-access"],
    },
    Row {
        id: "lower-others",
        answers: &[Cause::Preempted, Cause::Wakeup],
        title: "nice 19 for competing processes",
        applied: "nice 19 for competing processes",
        verified: "nice value in the kernel",
        undone: JOURNAL,
        cost: "these processes become slower",
        permission: Permission::Outside,
        rank: 8,
        checks: &[],
    },
    Row {
        id: "move-others",
        answers: &[Cause::Preempted, Cause::Wakeup],
        title: "competing processes moved to other CPUs, the chain's threads to one of their own",
        applied: "competing processes moved to other CPUs, the chain's threads to one of their own",
        verified: "affinity in the kernel, CPU of each switch in kernel events",
        undone: JOURNAL,
        cost: "these processes have fewer CPUs",
        permission: Permission::Outside,
        rank: 8,
        checks: &["loop-affinity"],
    },
    Row {
        id: "move-kernel",
        answers: &[Cause::Preempted, Cause::Wakeup],
        title: "kernel threads moved to other CPUs, the chain's threads to one of their own",
        applied: "kernel threads that took the CPU moved to others, the chain's threads to one of their own",
        verified: "affinity in the kernel, CPU of each switch in kernel events",
        undone: JOURNAL,
        cost: "their work takes longer",
        permission: Permission::Outside,
        rank: 8,
        checks: &[],
    },
    Row {
        id: "weight",
        answers: &[Cause::Preempted, Cause::Wakeup],
        title: "the largest CPU weight for the program's control group",
        applied: "the largest cpu.weight (version 1: cpu.shares) for the program's control group and those above it",
        verified: "the file's value",
        undone: JOURNAL,
        cost: "other groups get less CPU time while this one computes",
        permission: Permission::Outside,
        rank: 8,
        checks: &[],
    },
    Row {
        id: "quota",
        answers: &[Cause::Throttled],
        title: "no CPU quota for the program's control group",
        applied: "no CPU quota: cpu.max (version 1: cpu.cfs_quota_us) of the program's control group",
        verified: "the file's value",
        undone: JOURNAL,
        cost: "the group may use all CPUs",
        permission: Permission::Outside,
        rank: 8,
        checks: &["cpu-quota"],
    },
    Row {
        id: "machine",
        answers: &[Cause::Irq, Cause::Preempted, Cause::Wakeup, Cause::TimerSlack, Cause::PageFault],
        title: "a setting of the machine that `taut doctor` finds bad",
        applied: "the value that `taut doctor` gives, in its file; if it concerns the loop's CPU, the chain's threads on that CPU",
        verified: "the file's value",
        undone: JOURNAL,
        cost: "as `taut doctor` says of it",
        permission: Permission::Outside,
        rank: 9,
        checks: &[],
    },
];

/// A remedy for one program on one machine.
#[derive(Clone, Debug)]
pub struct Remedy {
    /// Its row.
    pub row: &'static Row,
    /// Names it apart from others of its row, e.g. "machine:governor".
    pub id: String,
    /// What it changes.
    pub plan: Plan,
    /// The causes of this recording that it answers.
    pub against: Vec<String>,
    /// Predicted change of the tail as a share of it (0..1), if the causes go.
    pub gain: f64,
}

/// A remedy that is not tried.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Left {
    /// Its name.
    #[serde(rename = "remedy")]
    pub id: String,
    /// What it is.
    pub title: String,
    /// Why it is not tried.
    pub why: String,
    /// The command that would permit it.
    pub grant: Option<String>,
    /// Predicted change of the tail by the first recording, as a share of it (0..1).
    #[serde(rename = "predicted_gain")]
    pub gain: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_all_of_itself() {
        let mut ids: Vec<&str> = TABLE.iter().map(|row| row.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), TABLE.len(), "ids are unique");
        for row in TABLE {
            for text in [row.title, row.applied, row.verified, row.undone, row.cost] {
                assert!(!text.is_empty() && !text.contains('\n'), "{}", row.id);
            }
            assert!(row.permission == Permission::Outside || row.undone == WITH_PROCESS, "{}", row.id);
            for check in row.checks {
                assert!(taut_doctor::find(check).is_some(), "{}: {check}", row.id);
            }
        }
    }

    /// docs/reference/tune.md has this table, written from it: what a user chooses a remedy by.
    #[test]
    fn the_documented_table_is_this_one() {
        let causes = |row: &Row| {
            let words: Vec<String> = row.answers.iter().map(|cause| format!("`{}`", cause.word())).collect();
            match row.id {
                _ if !words.is_empty() => words.join(", "),
                "ros2-executor" => "nothing: with `--remedy ros2-executor`".to_owned(),
                _ => "computing in Python".to_owned(),
            }
        };
        let needs = |row: &Row| match row.permission {
            Permission::None => "–",
            Permission::Priority => "CAP_SYS_NICE",
            Permission::Outside => "`--allow-changes`, root",
        };
        let line = |row: &Row| {
            let (applied, verified, cost) = (row.applied, row.verified, row.cost);
            format!("| `{}` | {} | {applied} | {verified} | {cost} | {} |\n", row.id, causes(row), needs(row))
        };
        let wanted: String = TABLE.iter().map(line).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/tune.md");
        let page = std::fs::read_to_string(path).unwrap();
        const BEGIN: &str = "|---|---|---|---|---|---|\n";
        let (head, rest) = page.split_once(BEGIN).expect("a table of remedies");
        let end = rest.find("\n\n").map_or(rest.len(), |at| at + 1);
        let page_wanted = format!("{head}{BEGIN}{wanted}{}", &rest[end..]);
        if std::env::var_os("TAUT_UPDATE").is_some() {
            std::fs::write(path, page_wanted).unwrap();
        } else {
            assert!(page == page_wanted, "docs/reference/tune.md is out of date: run this test with TAUT_UPDATE=1");
        }
    }
}
