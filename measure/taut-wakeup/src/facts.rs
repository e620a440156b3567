//! Facts of the machine: for the head of a result, and what changed while a variant ran.

use std::{collections::BTreeMap, fs, path::Path};

use procfs::{Current, CurrentSI};

/// Facts by name; what cannot be read is left out.
pub fn facts() -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.insert(key.to_owned(), value);
        }
    };
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    put("kernel", Some(text(uname.release())));
    put("architecture", Some(text(uname.machine())));
    put("preemption", Some(preemption(&text(uname.version()))));
    let cpuinfo = procfs::CpuInfo::current().ok();
    put("cpu", cpuinfo.as_ref().and_then(|info| info.model_name(0)).map(str::to_owned));
    put("cpus", cpuinfo.as_ref().map(|info| info.num_cores().to_string()));
    let hypervisor = cpuinfo.as_ref().and_then(|info| info.flags(0)).map(|flags| flags.contains(&"hypervisor"));
    put("virtual machine", hypervisor.map(|is| if is { "yes".into() } else { "no".into() }));
    put("governor", line(cpu_path(0, "cpufreq/scaling_governor")).or(Some("not visible".into())));
    put("idle driver", line("/sys/devices/system/cpu/cpuidle/current_driver").or(Some("not visible".into())));
    put("clocksource", line("/sys/devices/system/clocksource/clocksource0/current_clocksource"));
    facts
}

/// "PREEMPT_RT", "PREEMPT", "PREEMPT_DYNAMIC (mode not visible)" or what it is without either.
fn preemption(version: &str) -> String {
    if line("/sys/kernel/realtime").as_deref() == Some("1") || version.contains("PREEMPT_RT") {
        return "PREEMPT_RT".into();
    }
    // "none voluntary (full)": the mode in brackets.
    let modes = line("/sys/kernel/debug/sched/preempt");
    let mode = modes.as_deref().and_then(|m| m.split_once('(')?.1.split_once(')')).map(|(mode, _)| mode.to_owned());
    match mode {
        Some(mode) => format!("dynamic, {mode}"),
        None if version.contains("PREEMPT_DYNAMIC") => "dynamic, mode not visible".into(),
        None if version.contains("PREEMPT") => "PREEMPT".into(),
        None => "none or voluntary".into(),
    }
}

/// Steal time of all CPUs since boot.
pub(crate) fn steal_ns() -> u64 {
    let stat = procfs::KernelStats::current();
    let ticks = stat.ok().and_then(|stat| stat.total.steal).unwrap_or(0);
    ticks * (1_000_000_000 / procfs::ticks_per_second().max(1))
}

/// Idle states of some CPUs: name → (times entered, time in it in ns), summed.
pub(crate) fn idle_states(cpus: &[u32]) -> BTreeMap<String, (u64, u64)> {
    let mut states: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for cpu in cpus {
        for state in 0..20 {
            let folder = cpu_path(*cpu, &format!("cpuidle/state{state}"));
            let Some(name) = line(format!("{folder}/name")) else { break };
            let number = |file: &str| line(format!("{folder}/{file}")).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            let entry = states.entry(format!("{state} {name}")).or_default();
            entry.0 += number("usage");
            entry.1 += number("time") * 1000;
        }
    }
    states
}

/// Present clock frequency of a CPU; `None` where the machine does not show it.
pub(crate) fn frequency_khz(cpu: u32) -> Option<u64> {
    line(cpu_path(cpu, "cpufreq/scaling_cur_freq"))?.parse().ok()
}

/// /proc/sys/kernel/sched_rt_runtime_us.
pub(crate) fn rt_runtime_us() -> Option<i64> {
    line("/proc/sys/kernel/sched_rt_runtime_us")?.parse().ok()
}

fn cpu_path(cpu: u32, rest: &str) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/{rest}")
}

fn line(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
