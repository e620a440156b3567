//! What is known of the machine and of what this user may do, read once before the search.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use procfs::process::{LimitValue, Process};
use rustix::fs::{Access, access};
use taut_analysis::Cause;
use taut_doctor::{Finding, Remedy, State};
use taut_lab::Cpus;

use crate::{Identity, Outside, identity::status, python, scheduler, setting_file::read_setting};

/// CAP_SYS_NICE.
const SYS_NICE: u64 = 1 << 23;
/// For priorities, and for what the recorder names for kernel events.
const CAPABILITIES: &str = "cap_sys_nice,cap_sys_admin,cap_perfmon,cap_dac_override,cap_ipc_lock";
/// Of `/proc/PID/stat`'s flags: a kernel thread.
const KERNEL_THREAD: u32 = 0x0020_0000;
/// The same: its CPUs cannot be changed.
const BOUND: u32 = 0x0400_0000;
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// A CPU that has so many times its even share of the interrupts' time serves most of them.
const MOST: f64 = 1.5;
/// The first process of a machine or container.
const FIRST: i32 = 1;
/// Findings whose remedy is a value for a file, and the cause that it is against.
const CHECKS: [(&str, Cause); 10] = [
    ("governor", Cause::Wakeup),
    ("idle-states", Cause::Wakeup),
    ("halt-polling", Cause::Wakeup),
    ("workqueues", Cause::Preempted),
    ("timer-migration", Cause::TimerSlack),
    ("irq-affinity", Cause::Irq),
    ("default-irq-affinity", Cause::Irq),
    ("numa-balancing", Cause::PageFault),
    ("compaction", Cause::PageFault),
    ("same-page-merging", Cause::PageFault),
];

/// The machine and this user's permissions.
#[derive(Clone, Debug)]
pub struct Facts {
    /// CPUs that the program may run on.
    pub cpus: Cpus,
    /// Real-time policies are permitted.
    pub may_realtime: bool,
    /// Nice values below the present one are permitted.
    pub may_nice: bool,
    /// Other users' processes may be changed.
    pub may_others: bool,
    /// The kernel stops real-time threads that never sleep.
    pub is_throttled: bool,
    /// The user has permitted changes beyond the program.
    pub allows_changes: bool,
    /// `/dev/cpu_dma_latency` may be opened.
    pub may_hold_awake: bool,
    /// Files with a CPU quota of the program's control group or of one above it, and what lifts it.
    pub quotas: Vec<(PathBuf, String)>,
    /// Files with a CPU weight of the program's control group or of one above it, and the largest value.
    pub weights: Vec<(PathBuf, String)>,
    /// Settings that `taut doctor` finds bad and that are values for files: name, the cause that it is against, and the changes.
    pub settings: Vec<(String, Cause, Vec<Outside>)>,
    /// Threads named in the recording, as they are now.
    pub others: Vec<Thread>,
    /// Names of the program's threads.
    pub own: Vec<String>,
    /// The program sets a scheduling policy itself.
    pub has_own_policy: bool,
    /// The period of the chain's loop.
    pub period_ns: Option<u64>,
    /// CPUs that serve most of the devices' interrupts.
    pub interrupted: Vec<u32>,
    /// Whether the program is a Python interpreter.
    pub is_python: bool,
    /// A free-threaded interpreter that can run the command.
    pub free_threaded: Option<String>,
    /// Which programs get transparent huge pages: "always", "madvise", "never"; empty where the kernel has none.
    pub huge_pages: String,
    /// GLIBC_TUNABLES.
    pub tunables: String,
    /// AMENT_PREFIX_PATH and RMW_IMPLEMENTATION.
    pub ros2: (String, String),
    /// How to get the permissions.
    pub grant: String,
}

/// What a run of the program as it is showed.
#[derive(Clone, Debug, Default)]
pub struct FirstRun {
    /// Names of its threads.
    pub own: Vec<String>,
    /// Threads that took its CPUs, "comm/tid" each.
    pub others: Vec<String>,
    /// It sets a scheduling policy itself.
    pub has_own_policy: bool,
    /// The period of the chain's loop.
    pub period_ns: Option<u64>,
    /// By CPU: time in handlers of devices' interrupts.
    pub interrupts_ns: BTreeMap<u16, u64>,
}

/// A thread that took a CPU from the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// Its process, where that may be changed: not one of the program's own, whose trial has ended, nor the machine's first one, nor one that
    /// this process descends from, nor one that is younger than it, since such come and go. Of a kernel thread: where it may be moved.
    pub process: Option<Identity>,
    /// A kernel thread.
    pub is_kernel: bool,
    /// Its real-time priority; 0 for none.
    pub priority: u32,
    /// Where it may run.
    pub cpus: Option<Cpus>,
    /// A thread of the program.
    pub is_own: bool,
    /// Of another control group than this process, where the machine has groups.
    pub is_of_other_group: bool,
}

impl Facts {
    /// Of this machine. `taut`: this program, for the command that grants permissions.
    pub fn gather(taut: &Path, allows_changes: bool, findings: &[Finding]) -> Facts {
        let me = Process::myself().ok();
        let capabilities = status(std::process::id() as i32).map_or(0, |status| status.capeff);
        let limits = me.as_ref().and_then(|me| me.limits().ok());
        let at_least = |limit: Option<LimitValue>, least: u64| match limit {
            Some(LimitValue::Unlimited) => true,
            Some(LimitValue::Value(value)) => value >= least,
            None => false,
        };
        let has_capability = capabilities & SYS_NICE != 0;
        let throttle = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
        Facts {
            cpus: Cpus::permitted(),
            may_realtime: has_capability
                || at_least(limits.as_ref().map(|limits| limits.max_realtime_priority.soft_limit), 50),
            may_nice: has_capability || at_least(limits.as_ref().map(|limits| limits.max_nice_priority.soft_limit), 40),
            may_others: has_capability,
            is_throttled: throttle.trim().parse::<i64>().is_ok_and(|us| us > 0),
            allows_changes,
            may_hold_awake: access("/dev/cpu_dma_latency", Access::WRITE_OK).is_ok(),
            quotas: quotas(),
            weights: weights(),
            settings: findings.iter().filter_map(setting).collect(),
            others: Vec::new(),
            own: Vec::new(),
            has_own_policy: false,
            period_ns: None,
            interrupted: Vec::new(),
            is_python: false,
            free_threaded: None,
            huge_pages: read_setting(Path::new(HUGE_PAGES)).unwrap_or_default(),
            tunables: variable("GLIBC_TUNABLES"),
            ros2: (variable("AMENT_PREFIX_PATH"), variable("RMW_IMPLEMENTATION")),
            grant: format!("sudo setcap {CAPABILITIES}+ep {}", taut.display()),
        }
    }

    /// Adds the command's first word.
    pub fn of_command(mut self, program: &str) -> Facts {
        self.free_threaded = python::free_threaded(program, &variable("PATH"));
        self
    }

    /// Adds what a first run showed.
    pub fn of_program(mut self, program: FirstRun) -> Facts {
        let FirstRun { own, others, has_own_policy, period_ns, interrupts_ns } = program;
        // The recording has all of them, whichever this program may use.
        let even_ns = interrupts_ns.values().sum::<u64>() as f64 / Cpus::online().count().max(1) as f64;
        let is_most = |(_, ns): &(&u16, &u64)| **ns as f64 >= MOST * even_ns && **ns > 0;
        self.interrupted = interrupts_ns.iter().filter(is_most).map(|(cpu, _)| u32::from(*cpu)).collect();
        self.is_python = own.iter().any(|name| name.starts_with("python"));
        self.others = others.iter().filter_map(|name| thread(name, &own)).collect();
        self.own = own;
        self.has_own_policy = has_own_policy;
        self.period_ns = period_ns;
        self
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn setting(finding: &Finding) -> Option<(String, Cause, Vec<Outside>)> {
    let cause = CHECKS.iter().find(|(id, _)| *id == finding.id)?.1;
    let Some(Remedy::Write(settings)) = &finding.remedy else { return None };
    let is_bad = matches!(finding.state, State::Bad | State::Warn);
    let write = |one: &taut_doctor::Setting| Outside::Write { path: PathBuf::from(&one.path), value: one.new.clone() };
    is_bad.then(|| (finding.id.to_owned(), cause, settings.iter().map(write).collect()))
}

/// The name of a thread of the recording, "comm/tid"; `None` where nothing is known of it any more.
fn thread(name: &str, own: &[String]) -> Option<Thread> {
    let (comm, tid) = name.rsplit_once('/')?;
    let tid: i32 = tid.parse().ok()?;
    let alive = Process::new(tid).ok().and_then(|process| Some((process.stat().ok()?, status(tid)?)));
    let alive = alive.filter(|(stat, _)| stat.comm == comm && !matches!(stat.state, 'Z' | 'X'));
    match alive {
        Some((stat, status)) => Some(Thread {
            name: comm.to_owned(),
            process: Identity::of(status.tgid).filter(is_changeable).filter(|_| stat.flags & BOUND == 0),
            is_kernel: stat.flags & KERNEL_THREAD != 0,
            priority: stat.rt_priority.unwrap_or(0),
            cpus: scheduler::cpus(tid).ok(),
            is_own: false,
            is_of_other_group: is_of_other_group(tid),
        }),
        // The program of the recording has ended, and its threads with it.
        None if own.iter().any(|known| known == comm) => Some(Thread {
            name: comm.to_owned(),
            process: None,
            is_kernel: false,
            priority: 0,
            cpus: None,
            is_own: true,
            is_of_other_group: false,
        }),
        None => None,
    }
}

fn is_changeable(process: &Identity) -> bool {
    let me = std::process::id() as i32;
    let parent = |pid: &i32| Process::new(*pid).ok()?.stat().ok().map(|stat| stat.ppid).filter(|pid| *pid > 0);
    let is_above = std::iter::successors(Some(me), parent).take(1000).any(|pid| pid == process.number);
    let is_older = Identity::of(me).is_some_and(|me| process.started < me.started);
    process.number != FIRST && !is_above && is_older
}

fn is_of_other_group(tid: i32) -> bool {
    let of = |process: Process| process.cgroups().ok().map(|groups| groups.0);
    let paths = |groups: Vec<procfs::ProcessCGroup>| groups.into_iter().map(|one| one.pathname).collect::<Vec<_>>();
    let [me, other] = [Process::myself(), Process::new(tid)].map(|process| process.ok().and_then(of).map(paths));
    me.is_some() && other.is_some() && me != other
}

/// Quotas of this process's control group and of those above it, and what lifts them.
fn quotas() -> Vec<(PathBuf, String)> {
    let is_limited = |value: &str| !value.starts_with("max") && !value.starts_with('-');
    of_groups(("cpu.cfs_quota_us", "-1"), ("cpu.max", "max"), is_limited)
}

/// CPU weights of this process's control group and of those above it that are not the largest, and the largest.
fn weights() -> Vec<(PathBuf, String)> {
    let (old, new) = (("cpu.shares", "262144"), ("cpu.weight", "10000"));
    of_groups(old, new, |value| value != old.1 && value != new.1)
}

/// A file of this process's control group and of those above it, where its value is such, and what is to be written. The file and the value are
/// given for version 1 and version 2.
fn of_groups(old: (&str, &str), new: (&str, &str), is_such: impl Fn(&str) -> bool) -> Vec<(PathBuf, String)> {
    let Ok(me) = Process::myself() else { return Vec::new() };
    let (Ok(groups), Ok(mounts)) = (me.cgroups(), me.mountinfo()) else { return Vec::new() };
    let mut found = Vec::new();
    for mount in mounts.0 {
        let is_new = mount.fs_type == "cgroup2";
        let is_old = mount.fs_type == "cgroup" && mount.super_options.contains_key("cpu");
        if !is_new && !is_old {
            continue;
        }
        let (file, wanted) = if is_new { new } else { old };
        let of = |group: &&procfs::ProcessCGroup| match is_new {
            true => group.hierarchy == 0,
            false => group.controllers.iter().any(|name| name == "cpu"),
        };
        let Some(group) = groups.0.iter().find(of) else { continue };
        let below = Path::new(group.pathname.trim_start_matches('/'));
        for folder in below.ancestors() {
            let path = mount.mount_point.join(folder).join(file);
            let value = read_setting(&path);
            if value.is_ok_and(|value| is_such(&value)) {
                found.push((path, wanted.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{named_without_text, until_it_has_its_name};

    #[test]
    fn the_machines_first_process_and_those_above_and_below_this_one_are_left_alone() {
        let of = |pid: i32| Identity::of(pid).is_some_and(|process| is_changeable(&process));
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let parent = Process::myself().unwrap().stat().unwrap().ppid;
        assert!(!of(FIRST) && !of(parent) && !of(std::process::id() as i32) && !of(child.id() as i32));
        // Of a process of the same number that is older than this one.
        let older = Identity { started: 0, ..Identity::of(child.id() as i32).unwrap() };
        assert!(is_changeable(&older));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_thread_that_is_gone_is_the_programs_own_only_by_its_name() {
        let own = ["loop".to_owned()];
        let gone = i32::MAX - 1;
        assert!(thread(&format!("loop/{gone}"), &own).unwrap().is_own);
        assert_eq!(thread(&format!("hog/{gone}"), &own), None);
    }

    #[test]
    fn a_thread_whose_name_is_no_text_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let sleep = ["/bin/sleep", "/usr/bin/sleep"].into_iter().find(|path| Path::new(path).exists()).unwrap();
        let mut program = std::process::Command::new(named_without_text(folder.path(), sleep));
        let mut child = program.arg("1000").spawn().unwrap();
        until_it_has_its_name(child.id());
        let found = thread(&format!("x로봇팔제\u{fffd}/{}", child.id()), &[]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.is_some_and(|thread| !thread.is_own && thread.cpus.is_some()));
    }
}
