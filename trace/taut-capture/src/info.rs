//! What was recorded where: the facts that make a recording comparable with another.

use std::{path::Path, process::Command, time::Duration};

use taut_clock::{monotonic_ns, realtime_ns};
use taut_recording::{Architecture, Info, RECORDER_FACT};

use crate::{first_line::first_line_of, kernel::Chosen, proc::line, ptp, realtime, time_namespace};

/// The command is held meanwhile; a large repository may take longer than that is worth.
const GIT_PATIENCE: Duration = Duration::from_millis(500);

/// The kernel's clock source, and the fact of it.
const CLOCK_SOURCE: (&str, &str) = ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource");

/// What other programs say, each of which takes a while.
#[derive(Debug, Default)]
pub struct Asked {
    git_revision: String,
    realtime: Option<realtime::Stated>,
    ptp: Option<ptp::Stated>,
}

/// Asks git, chronyd, and ptp4l.
pub fn ask() -> Asked {
    Asked { git_revision: git_revision(), realtime: realtime::stated(), ptp: ptp::stated(Path::new(ptp::SOCKET)) }
}

/// CLOCK_MONOTONIC and CLOCK_REALTIME, ns: what several hosts' daemons state of the latter is placed by it.
pub fn now() -> (u64, u64) {
    closest((0..16).map(|_| [monotonic_ns(), realtime_ns(), monotonic_ns()]))
}

/// Of readings of CLOCK_REALTIME, each between two of CLOCK_MONOTONIC, the one whose moment is known best: a thread may lose its CPU
/// between two readings.
fn closest(readings: impl Iterator<Item = [u64; 3]>) -> (u64, u64) {
    let best = readings.min_by_key(|[before, _, after]| after.saturating_sub(*before));
    best.map_or((0, 0), |[before, realtime, after]| (before + after.saturating_sub(before) / 2, realtime))
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
        (CLOCK_SOURCE.0, line(CLOCK_SOURCE.1)),
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
    .chain(asked.ptp.iter().flat_map(|of| of.facts(start_monotonic_ns)))
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

/// What is to be known where the clock source is another one now than in these facts of the start: the kernel drops a TSC that it finds
/// unstable.
pub fn other_clock_source(facts: &[(String, String)]) -> Option<String> {
    let (fact, file) = CLOCK_SOURCE;
    let (_, before) = facts.iter().find(|(key, _)| key == fact)?;
    changed(before, &line(file))
}

fn changed(before: &str, now: &str) -> Option<String> {
    let is_other = !now.is_empty() && now != before;
    is_other.then(|| {
        format!(
            "the kernel's clock source was {before} at the start and is {now}: it may have found the counter of the stamps unstable; the \
             clock's error shows by how much"
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_the_reading_between_which_the_thread_did_not_lose_its_cpu() {
        let readings =
            [[1_000, 700_000, 5_001_000], [6_000_000, 5_700_020, 6_000_040], [7_000_000, 6_700_100, 7_000_200]];
        assert_eq!(closest(readings.into_iter()), (6_000_020, 5_700_020));
        let before = monotonic_ns();
        let (monotonic, _) = now();
        assert!((before..=monotonic_ns()).contains(&monotonic));
    }

    #[test]
    fn a_clock_source_that_the_kernel_has_dropped_meanwhile_is_told() {
        let facts =
            |source: &str| vec![("boot_id".to_owned(), "1".to_owned()), ("clocksource".to_owned(), source.to_owned())];
        assert_eq!(other_clock_source(&facts(&line(CLOCK_SOURCE.1))), None);
        assert_eq!(other_clock_source(&facts("sundial")).is_some(), Path::new(CLOCK_SOURCE.1).exists());
        assert_eq!(other_clock_source(&[]), None);
        let said = changed("tsc", "hpet").unwrap();
        assert!(said.starts_with("the kernel's clock source was tsc at the start and is hpet"), "{said}");
        assert_eq!((changed("tsc", "tsc"), changed("tsc", "")), (None, None), "also where /sys is gone");
    }
}
