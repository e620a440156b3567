//! What was recorded where: the facts that make a recording comparable with another.

use std::{path::Path, process::Command, time::Duration};

use taut_clock::{monotonic_ns, realtime_ns};
use taut_recording::{Architecture, Info, RECORDER_FACT};

use crate::{first_line::first_line_of, kernel::Chosen, proc::line, realtime, time_namespace};

/// The command is held meanwhile; a large repository may take longer than that is worth.
const GIT_PATIENCE: Duration = Duration::from_millis(500);

/// What other programs say, each of which takes a while.
#[derive(Debug, Default)]
pub struct Asked {
    git_revision: String,
    realtime: Option<realtime::Stated>,
}

/// Asks git and chronyd.
pub fn ask() -> Asked {
    Asked { git_revision: git_revision(), realtime: realtime::stated() }
}

/// CLOCK_MONOTONIC and CLOCK_REALTIME, ns.
pub fn now() -> (u64, u64) {
    (monotonic_ns(), realtime_ns())
}

/// Facts of this machine and this run, which began at that moment of [`now`].
pub fn gather(
    command: Vec<String>,
    taut_version: &str,
    kernel: &Chosen,
    asked: Asked,
    (start_monotonic_ns, start_realtime_ns): (u64, u64),
) -> Info {
    let cpuinfo = line("/proc/cpuinfo");
    let of_cpuinfo = |key: &str| {
        let found = cpuinfo.lines().find(|l| l.starts_with(key)).and_then(|l| l.split_once(':'));
        found.map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    // SAFETY: sysconf has no preconditions.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as u32;
    let mut facts: Vec<(String, String)> = [
        ("clocksource", line("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("governor", line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ("perf_event_paranoid", line("/proc/sys/kernel/perf_event_paranoid")),
        ("sched_rt_runtime_us", line("/proc/sys/kernel/sched_rt_runtime_us")),
        ("kernel_command_line", line("/proc/cmdline")),
        ("realtime_kernel", line("/sys/kernel/realtime")),
        (
            "hypervisor",
            if of_cpuinfo("flags").split(' ').any(|f| f == "hypervisor") { "yes".into() } else { String::new() },
        ),
        ("container", container()),
        (RECORDER_FACT, std::process::id().to_string()),
        ("boot_id", line("/proc/sys/kernel/random/boot_id")),
        ("realtime_max_error_us", realtime_max_error_us()),
        ("realtime_bound_ns", asked.realtime.map_or(String::new(), |of| of.at(start_monotonic_ns).to_string())),
        ("time_namespace", time_namespace::fact()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .filter(|(_, value)| !value.is_empty())
    .collect();
    facts.sort();
    Info {
        taut_version: taut_version.to_owned(),
        command,
        directory: std::env::current_dir().map_or(String::new(), |d| d.display().to_string()),
        host: line("/proc/sys/kernel/hostname"),
        kernel: format!("{} {}", line("/proc/sys/kernel/osrelease"), line("/proc/sys/kernel/version")),
        system_calls: Architecture::HERE.word().to_owned(),
        // The kernel names no model of an Arm CPU; its board's device tree names the board.
        cpu: [of_cpuinfo("model name"), of_cpuinfo("Model"), line("/proc/device-tree/model").replace('\0', "")]
            .into_iter()
            .find(|m| !m.is_empty())
            .unwrap_or_default(),
        cpus,
        git_revision: asked.git_revision,
        tier: kernel.tier,
        kernel_source: kernel.kernel_source.clone(),
        tier_reason: kernel.tier_reason.clone(),
        start_monotonic_ns,
        start_realtime_ns,
        facts,
    }
}

/// `git describe --always --dirty`; empty outside a repository, without git, or when git takes too long.
fn git_revision() -> String {
    let mut git = Command::new("git");
    // Without optional locks: another git in the same repository must not fail because of us.
    git.args(["--no-optional-locks", "describe", "--always", "--dirty", "--tags"]);
    first_line_of(git, GIT_PATIENCE).unwrap_or_default()
}

/// By how much CLOCK_REALTIME is wrong at most, in µs, as the NTP or PTP daemon left it in the kernel; empty where none keeps it. A
/// statement, not a measurement.
fn realtime_max_error_us() -> String {
    // SAFETY: all zero is a valid timex; with `modes` 0 the call only writes to it.
    let (state, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut timex), timex)
    };
    let is_kept = state >= 0 && timex.status & libc::STA_UNSYNC == 0;
    if is_kept { timex.maxerror.to_string() } else { String::new() }
}

fn container() -> String {
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    marks.into_iter().find(|(mark, _)| Path::new(mark).exists()).map_or(String::new(), |(_, name)| name.to_owned())
}
