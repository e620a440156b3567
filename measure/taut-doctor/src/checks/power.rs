//! Frequencies, heat, mains.

use crate::{
    Check, Effect, Remedy, Setting, Subject,
    finding::{Look, bad, good, not_applicable, not_visible, warn},
    machine::{Machine, hidden},
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
        why: "a loop that sleeps looks idle: its CPU is clocked down and is late, and computes slower, after each wake",
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
        why: "the clock depends on heat and on what the other cores do; constant beats fast",
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
        why: "fewer cores for everything else push work onto the loop's (power modes of Jetsons switch cores off)",
        remedy: "echo 1 > /sys/devices/system/cpu/cpuN/online; on a Jetson: nvpmodel -m 0",
        undo: "echo 0 > /sys/devices/system/cpu/cpuN/online",
        effect: Effect::Throughput,
        reboot: false,
        look: offline,
    },
    Check {
        id: "thermal-throttling",
        subject: Subject::Power,
        title: "Throttled by heat",
        reads: &[
            "/sys/devices/system/cpu/*/thermal_throttle/core_throttle_count",
            "/sys/devices/system/cpu/*/thermal_throttle/package_throttle_count",
        ],
        good: "never since boot",
        why: "a hot processor stops its clock for ms at a time",
        remedy: "cool the machine, or lower its load",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: throttled,
    },
    Check {
        id: "temperature",
        subject: Subject::Power,
        title: "Distance to the next thermal limit",
        reads: &[
            "/sys/class/thermal/*/type",
            "/sys/class/thermal/*/temp",
            "/sys/class/thermal/*/trip_point_*_type",
            "/sys/class/thermal/*/trip_point_*_temp",
        ],
        good: "10 K or more",
        why: "from the passive trip point on the clock is taken down",
        remedy: "cool the machine, or lower its load",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: temperature,
    },
    Check {
        id: "under-voltage",
        subject: Subject::Power,
        title: "Supply voltage (Raspberry Pi)",
        reads: &[
            "/proc/device-tree/model",
            "/sys/devices/platform/soc/soc:firmware/get_throttled",
            "/sys/class/hwmon/*/name",
            "/sys/class/hwmon/*/in0_lcrit_alarm",
        ],
        good: "never too low, never throttled",
        why: "with too little voltage the firmware lowers the clock",
        remedy: "use a power supply for the board's full current, and a short cable",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: under_voltage,
    },
    Check {
        id: "mains",
        subject: Subject::Power,
        title: "On battery",
        reads: &[
            "/sys/class/power_supply/*/type",
            "/sys/class/power_supply/*/online",
            "/sys/class/power_supply/*/status",
        ],
        good: "mains, or a battery that is not discharging",
        why: "firmware and desktop lower clocks on battery",
        remedy: "plug in the mains",
        undo: "",
        effect: Effect::Throughput,
        reboot: false,
        look: mains,
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
        Some(first) => bad(format!("{} on {} of {} CPUs{driver}", first.old, wrong.len(), found.len()))
            .remedy(Remedy::Write(wrong)),
    })
}

fn energy_preference(machine: &Machine<'_>) -> Look {
    let found = per_cpu(machine, "energy_performance_preference")?;
    let wrong = not_yet("energy_performance_preference", "performance", &found);
    Ok(match wrong.first().map(|first| first.old.clone()) {
        None => good("performance"),
        // The processor's own registers rule where the driver runs in passive mode; there the kernel refuses words.
        Some(old) => warn(format!("{old} on {} of {} CPUs", wrong.len(), found.len())).remedy(Remedy::Write(wrong)),
    })
}

/// A file of each CPU's frequency control, of the loop's CPUs or of all.
fn per_cpu(machine: &Machine<'_>, file: &str) -> Result<Vec<(u32, String)>, crate::finding::Seen> {
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

fn throttled(machine: &Machine<'_>) -> Look {
    let mut most: Option<u64> = None;
    for cpu in machine.online() {
        for kind in ["core", "package"] {
            let folder = format!("{CPUS}/cpu{cpu}");
            let path = format!("{folder}/thermal_throttle/{kind}_throttle_count");
            let text = machine.feature(&path, &folder, "this processor does not count it")?;
            most = most.max(Some(crate::machine::number(&path, &text)?));
        }
    }
    match most {
        None => Err(not_visible(format!("{CPUS} names no CPU"))),
        Some(0) => Ok(good("never since boot")),
        Some(n) => Ok(bad(format!("{n} times since boot"))),
    }
}

fn temperature(machine: &Machine<'_>) -> Look {
    const FOLDER: &str = "/sys/class/thermal";
    let zones = machine.root.list(FOLDER).map_err(|why| hidden(FOLDER, &why))?;
    let mut nearest: Option<(i64, String)> = None;
    for zone in zones.iter().filter(|name| name.starts_with("thermal_zone")) {
        let milli = |file: &str| machine.maybe(&format!("{FOLDER}/{zone}/{file}"))?.parse::<i64>().ok();
        let Some(now) = milli("temp") else { continue };
        for trip in 0..10 {
            let Some(kind) = machine.maybe(&format!("{FOLDER}/{zone}/trip_point_{trip}_type")) else { break };
            let limit = milli(&format!("trip_point_{trip}_temp")).filter(|limit| *limit > 0);
            // "active" trip points only start fans.
            let (Some(limit), "passive" | "hot" | "critical") = (limit, kind.as_str()) else { continue };
            let rest = limit.saturating_sub(now);
            if nearest.as_ref().is_none_or(|(least, _)| rest < *least) {
                let name = machine.maybe(&format!("{FOLDER}/{zone}/type")).unwrap_or_else(|| zone.clone());
                nearest = Some((rest, format!("{name} {} °C, {kind} from {} °C on", now / 1000, limit / 1000)));
            }
        }
    }
    match nearest {
        None => Err(not_applicable("no thermal zone with a limit")),
        Some((rest, text)) if rest < 0 => Ok(bad(text)),
        Some((rest, text)) if rest < 10_000 => Ok(warn(text)),
        Some((_, text)) => Ok(good(text)),
    }
}

fn under_voltage(machine: &Machine<'_>) -> Look {
    const THROTTLED: &str = "/sys/devices/platform/soc/soc:firmware/get_throttled";
    const HWMON: &str = "/sys/class/hwmon";
    if let Some(bits) = machine.maybe(THROTTLED) {
        let digits = bits.trim_start_matches("0x");
        return match u32::from_str_radix(digits, 16) {
            Ok(0) => Ok(good("never since boot")),
            // Raspberry Pi documentation, vcgencmd get_throttled: bits 0..3 now, 16..19 since boot.
            Ok(bits) if bits & 0xf != 0 => Ok(bad(format!("throttled now ({bits:#x})"))),
            Ok(bits) => Ok(warn(format!("was throttled since boot ({bits:#x})"))),
            Err(_) => Err(not_visible(format!("{THROTTLED} is no number"))),
        };
    }
    for sensor in machine.names(HWMON) {
        if machine.maybe(&format!("{HWMON}/{sensor}/name")).as_deref() == Some("rpi_volt") {
            return match machine.text(&format!("{HWMON}/{sensor}/in0_lcrit_alarm"))?.as_str() {
                "0" => Ok(good("enough now")),
                "1" => Ok(bad("too low")),
                other => Err(not_visible(format!("in0_lcrit_alarm is {other:?}"))),
            };
        }
    }
    let board = machine.maybe("/proc/device-tree/model").unwrap_or_default();
    Err(match board.contains("Raspberry Pi") {
        true => not_visible("the firmware's get_throttled is not there; ask `vcgencmd get_throttled`"),
        false => not_applicable("not a Raspberry Pi"),
    })
}

fn mains(machine: &Machine<'_>) -> Look {
    const FOLDER: &str = "/sys/class/power_supply";
    let (mut mains, mut discharging) = (None, false);
    for name in machine.root.list(FOLDER).map_err(|why| hidden(FOLDER, &why))? {
        let read = |file: &str| machine.maybe(&format!("{FOLDER}/{name}/{file}"));
        match read("type").as_deref() {
            Some("Mains" | "USB") => mains = mains.max(read("online").map(|online| online == "1")),
            Some("Battery") => discharging |= read("status").as_deref() == Some("Discharging"),
            _ => {}
        }
    }
    Ok(match (mains, discharging) {
        (_, true) => warn("battery, discharging"),
        (Some(true), false) => good("mains"),
        (Some(false), false) => warn("no mains"),
        (None, false) => return Err(not_applicable("no battery and no mains that the machine knows of")),
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

    #[test]
    fn heat_is_told_by_the_nearest_limit_that_slows() {
        let zone = |now: u32| {
            format!(
                "== /sys/class/thermal/thermal_zone0/temp ==\n{now}\n\
                == /sys/class/thermal/thermal_zone0/type ==\ncpu-thermal\n\
                == /sys/class/thermal/thermal_zone0/trip_point_0_type ==\nactive\n\
                == /sys/class/thermal/thermal_zone0/trip_point_0_temp ==\n50000\n\
                == /sys/class/thermal/thermal_zone0/trip_point_1_type ==\npassive\n\
                == /sys/class/thermal/thermal_zone0/trip_point_1_temp ==\n80000\n"
            )
        };
        assert_eq!(sees("temperature", &zone(60_000)).state, Good);
        assert_eq!(sees("temperature", &zone(75_000)).value, "cpu-thermal 75 °C, passive from 80 °C on");
        assert_eq!(sees("temperature", &zone(81_000)).state, Bad);
    }

    #[test]
    fn the_pi_says_when_it_starved() {
        let file = "/sys/devices/platform/soc/soc:firmware/get_throttled";
        assert_eq!(sees("under-voltage", &format!("== {file} ==\n50005\n")).state, Bad);
        assert_eq!(sees("under-voltage", &format!("== {file} ==\n0x50000\n")).state, Warn);
        assert_eq!(sees("under-voltage", &format!("== {file} ==\n0\n")).state, Good);
    }
}
