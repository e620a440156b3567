//! What was recorded where: the facts that make a recording comparable with another.

use std::{path::Path, process::Command};

use taut_clock::{monotonic_ns, realtime_ns};
use taut_recording::Info;

use crate::{kernel::Chosen, proc::line};

/// Facts of this machine and this run.
pub fn gather(command: Vec<String>, taut_version: &str, kernel: &Chosen) -> Info {
    let cpuinfo = line("/proc/cpuinfo");
    let of_cpuinfo = |key: &str| {
        let found = cpuinfo.lines().find(|l| l.starts_with(key)).and_then(|l| l.split_once(':'));
        found.map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
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
        cpu: [of_cpuinfo("model name"), of_cpuinfo("Model")].into_iter().find(|m| !m.is_empty()).unwrap_or_default(),
        cpus,
        git_revision: git_revision(),
        tier: kernel.tier,
        kernel_source: kernel.kernel_source.clone(),
        tier_reason: kernel.tier_reason.clone(),
        start_monotonic_ns: monotonic_ns(),
        start_realtime_ns: realtime_ns(),
        facts,
    }
}

fn git_revision() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty", "--tags"]).output();
    output
        .ok()
        .filter(|o| o.status.success())
        .map_or(String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

fn container() -> String {
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    marks.into_iter().find(|(mark, _)| Path::new(mark).exists()).map_or(String::new(), |(_, name)| name.to_owned())
}
