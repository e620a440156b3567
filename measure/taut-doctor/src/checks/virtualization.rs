//! Hypervisor and firmware.

use crate::{
    Check, Effect, Subject,
    machine::{Machine, unreadable, value},
    seen::{Look, bad, good, not_applicable, not_visible, warn},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "hypervisor",
        subject: Subject::Virtualization,
        title: "Hypervisor",
        reads: &[
            "/proc/cpuinfo",
            "/sys/class/dmi/id/sys_vendor",
            "/sys/class/dmi/id/product_name",
            "/sys/hypervisor/type",
        ],
        good: "none",
        why: "the host can stop all virtual CPUs for ms, and the guest cannot see why",
        remedy: "measure stalls with taut wakeup --pair; use dedicated CPUs or bare metal",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: hypervisor,
    },
    Check {
        id: "steal",
        subject: Subject::Virtualization,
        title: "Time stolen by the hypervisor",
        reads: &["/proc/stat"],
        good: "under 0.1 % since boot; a low figure proves nothing",
        why: "the loop stands still while the host runs another guest; much of that is not counted",
        remedy: "measure stalls with taut wakeup --pair; ask for dedicated CPUs",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: steal,
    },
    Check {
        id: "system-management",
        subject: Subject::Virtualization,
        title: "System management interrupts (Intel)",
        reads: &["/proc/cpuinfo", "call:read /dev/cpu/0/msr", "/proc/uptime"],
        good: "fewer than one an hour",
        why: "the firmware stops all CPUs for 0.1 to 100 ms; no kernel prevents it",
        remedy: "firmware setup: legacy USB, power management and ECC scrubbing off; or another board",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: system_management,
    },
];

fn hypervisor(machine: &Machine<'_>) -> Look {
    if let Some(name) = machine.hypervisor()? {
        return Ok(warn(name));
    }
    let info = machine.text("/proc/cpuinfo")?;
    let tells =
        info.contains("flags") || machine.maybe("/proc/device-tree/model").is_some_and(|model| !model.is_empty());
    // Arm's processors have no flag for it: a board that names itself is one.
    Ok(if tells { good("none") } else { return Err(not_visible("neither processor nor board tells")) })
}

fn steal(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/proc/stat";
    if machine.hypervisor()?.is_none() {
        return Err(not_applicable("no hypervisor"));
    }
    let text = machine.text(FILE)?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).ok_or_else(|| unreadable(FILE, &text))?;
    let ticks: Vec<f64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest times are part of user and nice.
    let all: f64 = ticks.iter().sum();
    let Some(stolen) = ticks.get(7).filter(|_| all > 0.0).map(|ticks| ticks / all) else {
        return Err(unreadable(FILE, &text));
    };
    let text = format!("{:.2} % since boot", stolen * 100.0);
    Ok(match stolen {
        s if s < 0.001 => good(text),
        s if s < 0.01 => warn(text),
        _ => bad(text),
    })
}

fn system_management(machine: &Machine<'_>) -> Look {
    let info = machine.text("/proc/cpuinfo")?;
    if value(&info, "vendor_id") != Some("GenuineIntel") {
        return Err(match info.is_empty() {
            true => unreadable("/proc/cpuinfo", &info),
            false => not_applicable("only Intel processors count them"),
        });
    }
    if machine.hypervisor()?.is_some() {
        return Err(not_applicable("in a virtual machine they are the host's"));
    }
    let Ok(n) = machine.number::<u64>("call:read /dev/cpu/0/msr") else {
        return Err(not_visible("the processor's counter shows only to root, with the msr module"));
    };
    let uptime = machine.text("/proc/uptime")?;
    let hours = uptime.split(' ').next().and_then(|s| s.parse::<f64>().ok()).filter(|s| *s > 0.0).map(|s| s / 3600.0);
    let an_hour = n as f64 / hours.ok_or_else(|| unreadable("/proc/uptime", &uptime))?;
    let text = format!("{n} since boot, {an_hour:.1} an hour");
    Ok(match an_hour {
        rate if rate < 1.0 => good(text),
        rate if rate < 60.0 => warn(text),
        _ => bad(text),
    })
}

#[cfg(test)]
mod tests {
    use crate::{State::*, checks::sees};

    const GUEST: &str = "== /proc/cpuinfo ==\nprocessor : 0\nvendor_id : AuthenticAMD\nflags : fpu tsc hypervisor\n";
    const METAL: &str = "== /proc/cpuinfo ==\nprocessor : 0\nvendor_id : GenuineIntel\nflags : fpu tsc\n";

    #[test]
    fn a_guest_is_known_by_its_processor_or_its_board() {
        assert_eq!(sees("hypervisor", GUEST).value, "yes, of unknown kind");
        assert_eq!(sees("hypervisor", METAL).state, Good);
        let board = "== /proc/cpuinfo ==\nprocessor : 0\nCPU implementer : 0x41\n== /sys/class/dmi/id/sys_vendor ==\nAmazon EC2\n";
        assert_eq!(sees("hypervisor", board).state, Warn);
        assert_eq!(
            sees("hypervisor", &(board.to_owned() + "== /sys/class/dmi/id/product_name ==\nc7g.metal\n")).state,
            NotVisible
        );
        let pi = "== /proc/cpuinfo ==\nprocessor : 0\n== /proc/device-tree/model ==\nRaspberry Pi 5\n";
        assert_eq!(sees("hypervisor", pi).state, Good);
    }

    #[test]
    fn steal_is_a_share_of_all_time() {
        let stat = |steal: u32| format!("{GUEST}== /proc/stat ==\ncpu  500 0 0 9000 0 0 0 {steal} 0 0\n");
        assert_eq!(sees("steal", &stat(500)).value, "5.00 % since boot");
        assert_eq!(sees("steal", &stat(500)).state, Bad);
        assert_eq!(sees("steal", &stat(0)).state, Good);
        assert_eq!(sees("steal", METAL).state, NotApplicable);
        assert_eq!(sees("steal", &(GUEST.to_owned() + "== /proc/stat ==\ncpu 1 2\n")).state, NotVisible);
    }

    #[test]
    fn firmware_interrupts_are_told_as_a_rate() {
        let machine = |n: u32| format!("{METAL}== call:read /dev/cpu/0/msr ==\n{n}\n== /proc/uptime ==\n36000.5 1.0\n");
        assert_eq!(sees("system-management", &machine(5)).state, Good);
        assert_eq!(sees("system-management", &machine(72_001)).value, "72001 since boot, 7200.0 an hour");
        assert_eq!(sees("system-management", METAL).state, NotVisible);
        assert_eq!(sees("system-management", GUEST).state, NotApplicable);
    }
}
