//! Frequencies of the CPUs, and which CPUs run at all.

use crate::{
    Check, Effect, Remedy, Setting, Subject,
    machine::Machine,
    seen::{Look, Seen, bad, good, not_visible, warn},
};

const CPUS: &str = "/sys/devices/system/cpu";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "governor",
        subject: Subject::Power,
        title: "Frequency governor",
        reads: &[
            "/sys/devices/system/cpu/*/cpufreq/scaling_governor",
            "/sys/devices/system/cpu/*/cpufreq/scaling_driver",
        ],
        good: "performance",
        why: "a sleeping loop looks idle: its CPU is clocked down, late and slow after each wake",
        remedy: "echo performance > /sys/devices/system/cpu/*/cpufreq/scaling_governor",
        undo: "write the former governor",
        effect: Effect::Tail,
        reboot: false,
        look: governor,
    },
    Check {
        id: "energy-preference",
        subject: Subject::Power,
        title: "Energy preference of the CPU",
        reads: &["/sys/devices/system/cpu/*/cpufreq/energy_performance_preference"],
        good: "performance",
        why: "the processor itself lowers the clock between cycles",
        remedy: "echo performance > /sys/devices/system/cpu/*/cpufreq/energy_performance_preference",
        undo: "write the former preference",
        effect: Effect::Tail,
        reboot: false,
        look: energy_preference,
    },
    Check {
        id: "turbo",
        subject: Subject::Power,
        title: "Turbo",
        reads: &["/sys/devices/system/cpu/intel_pstate/no_turbo", "/sys/devices/system/cpu/cpufreq/boost"],
        good: "off where runs are compared",
        why: "the clock changes with heat and the other cores' work",
        remedy: "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > /sys/devices/system/cpu/cpufreq/boost",
        undo: "write the former value",
        effect: Effect::Throughput,
        reboot: false,
        look: turbo,
    },
    Check {
        id: "offline-cpus",
        subject: Subject::Power,
        title: "CPUs switched off",
        reads: &[
            "/sys/devices/system/cpu/present",
            "/sys/devices/system/cpu/online",
            "/sys/devices/system/cpu/smt/control",
        ],
        good: "none, apart from hyperthreads",
        why: "with fewer cores more work runs on the loop's",
        remedy: "echo 1 > /sys/devices/system/cpu/cpuN/online; on a Jetson: nvpmodel -m 0",
        undo: "echo 0 > /sys/devices/system/cpu/cpuN/online",
        effect: Effect::Throughput,
        reboot: false,
        look: offline,
    },
    Check {
        id: "platform-profile",
        subject: Subject::Power,
        title: "Platform profile",
        reads: &["/sys/firmware/acpi/platform_profile"],
        good: "performance, or balanced",
        why: "the firmware's own limits on clock and power",
        remedy: "echo performance > /sys/firmware/acpi/platform_profile",
        undo: "write the former profile",
        effect: Effect::Throughput,
        reboot: false,
        look: platform_profile,
    },
];

fn governor(machine: &Machine<'_>) -> Look {
    let found = per_cpu(machine, "scaling_governor")?;
    let driver = found.first().and_then(|(cpu, _)| machine.maybe(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_driver")));
    let driver = driver.map_or(String::new(), |driver| format!(" ({driver})"));
    let wrong = not_yet("scaling_governor", "performance", &found);
    Ok(match wrong.first() {
        None => good(format!("performance{driver}")),
        Some(first) => bad(format!("{} on {}{driver}", first.old, on(&wrong, &found))).remedy(Remedy::Write(wrong)),
    })
}

fn energy_preference(machine: &Machine<'_>) -> Look {
    let found = per_cpu(machine, "energy_performance_preference")?;
    let wrong = not_yet("energy_performance_preference", "performance", &found);
    Ok(match wrong.first().map(|first| first.old.clone()) {
        None => good("performance"),
        // The processor's own registers rule where the driver runs in passive mode; there the kernel refuses words.
        Some(old) => warn(format!("{old} on {}", on(&wrong, &found))).remedy(Remedy::Write(wrong)),
    })
}

/// A file of each CPU's frequency control, of the loop's CPUs or of all.
fn per_cpu(machine: &Machine<'_>, file: &str) -> Result<Vec<(u32, String)>, Seen> {
    let mut found = Vec::new();
    for cpu in machine.cpus_of_interest() {
        let folder = format!("{CPUS}/cpu{cpu}");
        let why = match machine.names(&folder).iter().any(|name| name == "cpufreq") {
            true => "this frequency driver has no such setting",
            false => "this machine shows no frequency control",
        };
        found.push((*cpu, machine.feature(&format!("{folder}/cpufreq/{file}"), &folder, why)?));
    }
    if found.is_empty() { Err(not_visible(format!("{CPUS} names no CPU"))) } else { Ok(found) }
}

/// "all 8 CPUs", "1 of 8 CPUs".
fn on(wrong: &[Setting], found: &[(u32, String)]) -> String {
    match (wrong.len(), found) {
        (_, [(cpu, _)]) => format!("CPU {cpu}"),
        (n, found) if n == found.len() => format!("all {n} CPUs"),
        (n, found) => format!("{n} of {} CPUs", found.len()),
    }
}

fn not_yet(file: &str, wanted: &str, found: &[(u32, String)]) -> Vec<Setting> {
    found
        .iter()
        .filter(|(_, value)| value != wanted)
        .map(|(cpu, old)| Setting {
            path: format!("{CPUS}/cpu{cpu}/cpufreq/{file}"),
            new: wanted.into(),
            old: old.clone(),
        })
        .collect()
}

fn turbo(machine: &Machine<'_>) -> Look {
    let (intel, generic) = (format!("{CPUS}/intel_pstate/no_turbo"), format!("{CPUS}/cpufreq/boost"));
    if let Ok(no_turbo) = machine.text(&intel) {
        return match no_turbo.as_str() {
            "1" => Ok(good("off")),
            "0" => Ok(warn("on").write(intel, "1", "0")),
            other => Err(not_visible(format!("no_turbo is {other:?}"))),
        };
    }
    match machine.feature(&generic, CPUS, "this machine shows no turbo")?.as_str() {
        "0" => Ok(good("off")),
        "1" => Ok(warn("on").write(generic, "0", "1")),
        other => Err(not_visible(format!("boost is {other:?}"))),
    }
}

fn offline(machine: &Machine<'_>) -> Look {
    let path = format!("{CPUS}/present");
    let present = crate::cpus::list(&machine.text(&path)?).ok_or_else(|| not_visible(format!("{path} is no list")))?;
    if machine.online().is_empty() || present.is_empty() {
        return Err(not_visible(format!("{CPUS}/online cannot be read")));
    }
    let off: Vec<u32> = present.iter().copied().filter(|cpu| !machine.online().contains(cpu)).collect();
    let hyperthreads = machine.maybe(&format!("{CPUS}/smt/control")).is_some_and(|control| control.contains("off"));
    Ok(match (off.is_empty(), hyperthreads) {
        (true, _) => good(format!("all {} on", present.len())),
        (false, true) => good(format!("hyperthreads {} off", crate::cpus::text(&off))),
        (false, false) => {
            let setting =
                |cpu: &u32| Setting { path: format!("{CPUS}/cpu{cpu}/online"), new: "1".into(), old: "0".into() };
            warn(format!("CPU {} of {} off", crate::cpus::text(&off), present.len()))
                .remedy(Remedy::Write(off.iter().map(setting).collect()))
        }
    })
}

fn platform_profile(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/sys/firmware/acpi/platform_profile";
    let profile = machine.feature(FILE, "/sys/firmware", "this machine has no profiles")?;
    Ok(match profile.as_str() {
        "performance" | "balanced-performance" | "balanced" => good(profile),
        "" => return Err(not_visible(format!("{FILE} is empty"))),
        _ => warn(profile.clone()).write(FILE, "performance", profile),
    })
}

#[cfg(test)]
mod tests {
    use crate::{
        Asked,
        State::*,
        checks::{sees, sees_asked},
    };

    const LAPTOP: &str = "== /sys/devices/system/cpu/online ==\n0-1\n\
        == /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor ==\npowersave\n\
        == /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor ==\nperformance\n\
        == /sys/devices/system/cpu/cpu0/cpufreq/scaling_driver ==\nintel_pstate\n";

    #[test]
    fn only_the_loops_cpus_count_for_the_governor() {
        let all = sees("governor", LAPTOP);
        assert_eq!((all.state, all.value.as_str()), (Bad, "powersave on 1 of 2 CPUs (intel_pstate)"));
        assert_eq!(all.undo.unwrap(), "echo powersave > /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let named = sees_asked("governor", LAPTOP, &Asked { cpus: vec![1], ..Asked::default() });
        assert_eq!(named.state, Good);
    }

    #[test]
    fn a_machine_without_frequency_control_is_not_a_hidden_one() {
        let vm = "== /sys/devices/system/cpu/online ==\n0\n== /sys/devices/system/cpu/cpu0/topology/core_id ==\n0\n";
        assert_eq!(sees("governor", vm).state, NotApplicable);
        assert_eq!(sees("governor", "== /sys/devices/system/cpu/online ==\n0\n").state, NotVisible);
    }
}
