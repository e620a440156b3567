//! Heat and mains.

use crate::{
    Check, Effect, Subject,
    machine::{Machine, hidden},
    seen::{Look, bad, good, not_applicable, not_visible, warn},
};

const CPUS: &str = "/sys/devices/system/cpu";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "thermal-throttling",
        subject: Subject::Power,
        title: "Throttled by heat",
        reads: &[
            "/sys/devices/system/cpu/*/thermal_throttle/core_throttle_count",
            "/sys/devices/system/cpu/*/thermal_throttle/package_throttle_count",
        ],
        good: "never since boot",
        why: "heat stops the clock for ms at a time",
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
        why: "above the passive trip point the clock is lowered",
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
        remedy: "use a supply for the board's full current, and a short cable",
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
        good: "mains, or a battery that does not discharge",
        why: "firmware and desktop lower clocks on battery",
        remedy: "plug in the mains",
        undo: "",
        effect: Effect::Throughput,
        reboot: false,
        look: mains,
    },
];

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
    let board = machine.maybe("/proc/device-tree/model");
    Err(match board.as_deref().unwrap_or_default() {
        pi if pi.contains("Raspberry Pi") => {
            not_visible("the firmware's get_throttled is not there; ask `vcgencmd get_throttled`")
        }
        "" if !machine.maybe("/proc/cpuinfo").is_some_and(|info| info.contains("vendor_id")) => {
            not_visible("nothing tells the board")
        }
        _ => not_applicable("not a Raspberry Pi"),
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
        (None, false) => return Err(not_applicable("no battery and no mains supply is listed")),
    })
}

#[cfg(test)]
mod tests {
    use crate::{State::*, checks::sees};

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
