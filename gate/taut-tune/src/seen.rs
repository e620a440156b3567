//! A trial in its recording: with which priority, and on which CPUs, its threads ran, which of them set that themselves, which CPUs served the
//! machine's interrupts, and which threads were the recorder's. `/proc` has the settings; events show their effect.

use std::collections::{BTreeMap, BTreeSet};

use taut_lab::Cpus;
use taut_recording::{Info, KernelBatch, KernelEvent, RECORDER_FACT, Record};

use crate::{Checked, Plan, Policy, Setting};

/// Priorities below this are real-time in the kernel's numbers.
const REAL_TIME: i16 = 100;
/// A nice value of 0.
const NICE_0: i32 = 120;
/// Events so soon after a thread got its rules may be of the time before.
const SETTLED_NS: u64 = 20_000_000;
/// Kinds of interrupt handlers, as `KernelEvent::IrqEnter` numbers them: devices and softirqs. The others are each CPU's own.
const DEVICE: i64 = 0;
const SOFTIRQ: i64 = 1;
/// Softirqs that are for devices, by their numbers in the kernel: NET_TX, NET_RX, BLOCK, IRQ_POLL.
const OF_DEVICES: std::ops::RangeInclusive<i64> = 2..=5;

/// Calls by which a thread's policy is set, in this machine's numbers: a trial is recorded here.
const SCHEDULING: [i64; 3] = [libc::SYS_sched_setscheduler, libc::SYS_sched_setattr, libc::SYS_sched_setparam];

/// Where and how threads ran, switch by switch.
#[derive(Debug, Default)]
pub struct Seen {
    /// By thread: (moment, CPU, kernel priority) of each time that it left a CPU.
    left: BTreeMap<i32, Vec<(u64, u16, i16)>>,
    /// The process of each thread.
    processes: BTreeMap<i32, i32>,
    /// Threads that set a scheduling policy.
    schedule: BTreeSet<i32>,
    /// By CPU: time in handlers of devices' interrupts.
    interrupts_ns: BTreeMap<u16, u64>,
    /// By CPU and kind: since when a handler runs. A device's interrupt may come during a softirq.
    handling: BTreeMap<(u16, i64), u64>,
}

impl Seen {
    /// Takes a record.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Kernel(batch) => self.batch(batch),
            Record::Thread(thread) => {
                self.processes.insert(thread.tid, thread.pid);
            }
            _ => {}
        }
    }

    /// The threads of the process that made the recording.
    pub fn recorder(&self, info: &Info) -> BTreeSet<i32> {
        let Ok(pid) = info.fact(RECORDER_FACT).parse() else { return BTreeSet::new() };
        let threads = self.processes.iter().filter(|(_, process)| **process == pid).map(|(tid, _)| *tid);
        threads.chain([pid]).collect()
    }

    /// Time in handlers of devices' interrupts, by CPU.
    pub fn interrupts_ns(&self) -> &BTreeMap<u16, u64> {
        &self.interrupts_ns
    }

    /// Whether one of a program's threads sets a scheduling policy: then what it inherits may not last.
    pub fn has_own_policy(&self, checked: &Checked) -> bool {
        checked.threads.keys().any(|tid| self.schedule.contains(tid))
    }

    fn batch(&mut self, batch: &KernelBatch) {
        for at in 0..batch.event.len() {
            let (event, time_ns) = (batch.event[at], batch.time_ns[at]);
            if event == KernelEvent::SchedSwitch as u8 && batch.tid[at] != 0 {
                let left = (time_ns, batch.cpu, batch.arg2[at] as u16 as i16);
                self.left.entry(batch.tid[at]).or_default().push(left);
            }
            let (number, kind) = (batch.arg0[at], batch.arg1[at]);
            if event == KernelEvent::SyscallEnter as u8 && SCHEDULING.contains(&number) {
                self.schedule.insert(batch.tid[at]);
            }
            // Softirqs are never in each other: the exit of the one before was lost.
            if event == KernelEvent::IrqEnter as u8 && kind == SOFTIRQ {
                self.handling.remove(&(batch.cpu, SOFTIRQ));
            }
            if kind == DEVICE || kind == SOFTIRQ && OF_DEVICES.contains(&number) {
                if event == KernelEvent::IrqEnter as u8 {
                    self.handling.insert((batch.cpu, kind), time_ns);
                } else if event == KernelEvent::IrqExit as u8
                    && let Some(since_ns) = self.handling.remove(&(batch.cpu, kind))
                    // Else it is part of that softirq's time.
                    && !self.handling.contains_key(&(batch.cpu, SOFTIRQ))
                {
                    *self.interrupts_ns.entry(batch.cpu).or_default() += time_ns.saturating_sub(since_ns);
                }
            }
        }
    }

    /// How many times threads that a plan is for left a CPU as it says, and the first that did not.
    pub fn check(&self, plan: &Plan, checked: &Checked) -> (usize, Option<String>) {
        let mut agreed = 0;
        for (tid, since_ns) in &checked.since_ns {
            let name = checked.threads.get(tid).map_or("", String::as_str);
            let Some(expected) = Expected::of(plan, name) else { continue };
            for (at_ns, cpu, priority) in self.left.get(tid).into_iter().flatten() {
                if *at_ns < since_ns + SETTLED_NS {
                    continue;
                }
                match expected.amiss(*cpu, *priority) {
                    None => agreed += 1,
                    Some(why) => return (agreed, Some(format!("thread {name} ({tid}) {why}, by kernel events"))),
                }
            }
        }
        (agreed, None)
    }

    /// Whether kernel events can say anything of this plan.
    pub fn is_witness(plan: &Plan) -> bool {
        !plan.threads.is_empty() || plan.settings.iter().any(|one| matches!(one, Setting::Fifo(_) | Setting::Nice(_)))
    }
}

#[derive(Default)]
struct Expected {
    cpus: Option<Cpus>,
    /// The kernel's number at most: a lock may lend a thread a higher priority, which is a lower number.
    priority: Option<i32>,
}

impl Expected {
    fn of(plan: &Plan, name: &str) -> Option<Expected> {
        let mut expected = Expected::default();
        for setting in &plan.settings {
            match setting {
                Setting::Fifo(priority) => expected.priority = Some(99 - i32::from(*priority)),
                Setting::Nice(nice) => expected.priority = Some(NICE_0 + nice),
                _ => {}
            }
        }
        for rule in plan.threads.iter().filter(|rule| rule.is_for(name)) {
            expected.cpus = rule.cpus.clone().or(expected.cpus);
            expected.priority = match rule.policy {
                Some(Policy::Fifo(priority)) => Some(99 - i32::from(priority)),
                Some(Policy::Deadline { .. }) => Some(-1),
                None => expected.priority,
            };
        }
        (expected.cpus.is_some() || expected.priority.is_some()).then_some(expected)
    }

    fn amiss(&self, cpu: u16, priority: i16) -> Option<String> {
        if let Some(cpus) = self.cpus.as_ref().filter(|cpus| !cpus.has(cpu.into())) {
            return Some(format!("ran on CPU {cpu}, not on {cpus}"));
        }
        let most = self.priority?;
        (i32::from(priority) > most).then(|| match priority {
            ..REAL_TIME => format!("ran with real-time priority {}", 99 - priority),
            _ => format!("ran with nice {}", i32::from(priority) - NICE_0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ThreadRule, Threads};

    fn batch(cpu: u16, switches: &[(u64, i32, i64)]) -> Record {
        let column = |of: fn(&(u64, i32, i64)) -> i64| switches.iter().map(of).collect::<Vec<i64>>();
        Record::Kernel(KernelBatch {
            cpu,
            time_ns: switches.iter().map(|one| one.0).collect(),
            event: vec![KernelEvent::SchedSwitch as u8; switches.len()],
            flags: vec![0; switches.len()],
            tid: switches.iter().map(|one| one.1).collect(),
            arg0: column(|_| 0),
            arg1: column(|_| 0),
            arg2: column(|one| (120 << 16) | one.2),
        })
    }

    #[test]
    fn the_recorder_is_the_process_that_the_recording_names() {
        let thread = |pid, tid| {
            Record::Thread(taut_recording::Thread {
                pid,
                tid,
                comm: "taut".into(),
                ..taut_recording::Thread::default()
            })
        };
        let mut seen = Seen::default();
        for record in [thread(7, 8), thread(20, 21)] {
            seen.record(&record);
        }
        let info = Info { facts: vec![(RECORDER_FACT.into(), "7".into())], ..Info::default() };
        assert_eq!(seen.recorder(&info), BTreeSet::from([7, 8]));
        assert!(seen.recorder(&Info::default()).is_empty());
    }

    #[test]
    fn a_program_that_sets_its_policy_is_seen() {
        let call = |tid, number: i64| {
            Record::Kernel(KernelBatch {
                cpu: 0,
                time_ns: vec![1],
                event: vec![KernelEvent::SyscallEnter as u8],
                flags: vec![0],
                tid: vec![tid],
                arg0: vec![number],
                arg1: vec![0],
                arg2: vec![0],
            })
        };
        let checked = Checked { threads: BTreeMap::from([(7, "loop".into())]), ..Checked::default() };
        let mut seen = Seen::default();
        seen.record(&call(8, libc::SYS_sched_setscheduler));
        seen.record(&call(7, libc::SYS_sched_yield));
        assert!(!seen.has_own_policy(&checked), "another process does, and the program gives way");
        seen.record(&call(7, libc::SYS_sched_setattr));
        assert!(seen.has_own_policy(&checked));
    }

    #[test]
    fn interrupts_of_devices_are_their_cpus_time() {
        let mut seen = Seen::default();
        let [enter, exit] = [KernelEvent::IrqEnter, KernelEvent::IrqExit].map(|event| event as u8);
        // NET_RX with a device's interrupt in it, the timer's softirq, a device's interrupt by itself.
        let (receive, timer, device) = ((3, SOFTIRQ), (1, SOFTIRQ), (36, DEVICE));
        let events = [
            (0, enter, receive),
            (4, enter, device),
            (6, exit, device),
            (10, exit, receive),
            (20, enter, timer),
            (120, exit, timer),
            (200, enter, device),
            (205, exit, device),
            // Its exit was lost.
            (300, enter, receive),
            (310, enter, timer),
            (320, exit, timer),
            (330, enter, device),
            (333, exit, device),
        ];
        let batch = KernelBatch {
            cpu: 1,
            time_ns: events.iter().map(|event| event.0).collect(),
            event: events.iter().map(|event| event.1).collect(),
            arg0: events.iter().map(|event| event.2.0).collect(),
            arg1: events.iter().map(|event| event.2.1).collect(),
            flags: vec![0; events.len()],
            tid: vec![0; events.len()],
            arg2: vec![0; events.len()],
        };
        seen.record(&Record::Kernel(batch));
        assert_eq!(seen.interrupts_ns(), &BTreeMap::from([(1, 18)]));
    }

    #[test]
    fn switches_say_with_which_priority_and_where_a_thread_ran() {
        let mut seen = Seen::default();
        let late = SETTLED_NS + 100;
        seen.record(&batch(1, &[(50, 7, 120), (late, 7, 49), (late + 1, 8, 120)]));
        let checked = Checked {
            threads: BTreeMap::from([(7, "loop".into()), (8, "log".into())]),
            since_ns: BTreeMap::from([(7, 0), (8, 0)]),
            ..Checked::default()
        };
        let rule = |policy, cpus: Vec<u32>| Plan {
            threads: vec![ThreadRule { threads: Threads::Named(vec!["loop".into()]), cpus: Some(cpus.into()), policy }],
            ..Plan::default()
        };
        assert_eq!(seen.check(&rule(Some(Policy::Fifo(50)), vec![1]), &checked), (1, None));
        let (_, why) = seen.check(&rule(Some(Policy::Fifo(60)), vec![1]), &checked);
        assert_eq!(why.unwrap(), "thread loop (7) ran with real-time priority 50, by kernel events");
        let (_, why) = seen.check(&rule(None, vec![0]), &checked);
        assert_eq!(why.unwrap(), "thread loop (7) ran on CPU 1, not on 0, by kernel events");
        let all = Plan { settings: vec![Setting::Nice(-20)], ..Plan::default() };
        let (agreed, why) = seen.check(&all, &checked);
        assert_eq!((agreed, why.unwrap().contains("thread log (8) ran with nice 0")), (1, true));
    }
}
