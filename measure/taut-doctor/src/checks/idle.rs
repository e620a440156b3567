//! Idle states and what keeps CPUs out of them.

use crate::{
    Check, Effect, Remedy, Subject,
    machine::{Machine, hidden},
    seen::{Look, bad, good, not_applicable, not_visible, warn},
};

const CPUS: &str = "/sys/devices/system/cpu";
/// An exit of one per cent of a 1 ms period is not noticed; one of ten per cent spoils it.
const GOOD_US: i64 = 10;
const BAD_US: i64 = 100;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "idle-states",
        subject: Subject::Power,
        title: "Deepest idle state in use",
        reads: &[
            "/sys/devices/system/cpu/*/cpuidle/*/name",
            "/sys/devices/system/cpu/*/cpuidle/*/latency",
            "/sys/devices/system/cpu/*/cpuidle/*/disable",
            "/sys/devices/system/cpu/cpuidle/current_driver",
            "/sys/devices/system/cpu/*/power/pm_qos_resume_latency_us",
            "call:read /dev/cpu_dma_latency",
        ],
        good: "exit latency ≤ 10 µs (1 % of a 1 kHz period)",
        why: "the CPU sleeps with the loop, and needs at least its exit latency to wake",
        remedy: "hold /dev/cpu_dma_latency open with 0 while the loop runs",
        undo: "close the file",
        effect: Effect::Tail,
        reboot: false,
        look: idle_states,
    },
    Check {
        id: "pm-qos",
        subject: Subject::Power,
        title: "Wakeup latency asked for (PM QoS)",
        reads: &["call:read /dev/cpu_dma_latency"],
        good: "0 to 10 µs while the loop runs",
        why: "cyclictest asks for 0, so it measures earlier wakeups than the robot's program gets",
        remedy: "hold /dev/cpu_dma_latency open with 0 while the loop runs",
        undo: "close the file",
        effect: Effect::Tail,
        reboot: false,
        look: pm_qos,
    },
    Check {
        id: "pm-qos-access",
        subject: Subject::Power,
        title: "May this user ask for low latency",
        reads: &["call:access /dev/cpu_dma_latency"],
        good: "/dev/cpu_dma_latency is writable",
        why: "without it a loop needs root to keep its CPU awake",
        remedy: "udev rule: KERNEL==\"cpu_dma_latency\", GROUP=\"realtime\", MODE=\"0660\"; add the loop's user to the group",
        undo: "delete the rule",
        effect: Effect::Tail,
        reboot: false,
        look: pm_qos_access,
    },
    Check {
        id: "halt-polling",
        subject: Subject::Power,
        title: "Guest polls before it halts",
        reads: &[
            "/sys/devices/system/cpu/cpuidle/current_driver",
            "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
        ],
        good: "200000 ns or more, on dedicated CPUs",
        why: "a halted virtual CPU wakes through the hypervisor: tens of µs",
        remedy: "echo 200000 > /sys/module/haltpoll/parameters/guest_halt_poll_ns",
        undo: "write the former value",
        effect: Effect::Tail,
        reboot: false,
        look: halt_polling,
    },
    Check {
        id: "idle-boot-words",
        subject: Subject::Power,
        title: "Idle words on the kernel's command line",
        reads: &["/proc/cmdline"],
        good: "no idle=poll; intel_idle.max_cstate=1 or processor.max_cstate=1 at most",
        why: "idle=poll heats the CPU until it clocks down, and slows the sibling hyperthread",
        remedy: "take idle=poll off the kernel's command line; hold /dev/cpu_dma_latency instead",
        undo: "kernel command line: idle=poll",
        effect: Effect::Tail,
        reboot: true,
        look: boot_words,
    },
];

fn idle_states(machine: &Machine<'_>) -> Look {
    if machine.boot_word("idle") == Some("poll") {
        return Ok(good("none: booted with idle=poll"));
    }
    let asked_us =
        machine.maybe("call:read /dev/cpu_dma_latency").and_then(|us| us.parse::<i64>().ok()).unwrap_or(i64::MAX);
    let driver = machine.maybe(&format!("{CPUS}/cpuidle/current_driver")).unwrap_or_else(|| "unknown driver".into());
    let mut deepest: Option<(i64, String, u32)> = None;
    let mut seen = 0;
    for cpu in machine.cpus_of_interest() {
        let limit_us = asked_us.min(resume_latency_us(machine, *cpu));
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        let states = match machine.root.list(&folder) {
            Err(crate::Missing::Absent) if machine.root.list(&format!("{CPUS}/cpu{cpu}")).is_ok() => continue,
            Err(why) => return Err(hidden(&folder, &why)),
            Ok(states) => states,
        };
        for state in states.iter().filter(|name| name.starts_with("state")) {
            let latency_us: i64 = machine.number(&format!("{folder}/{state}/latency"))?;
            seen += 1;
            let enabled = machine.maybe(&format!("{folder}/{state}/disable")).as_deref() != Some("1");
            let used = enabled && latency_us <= limit_us;
            if used && deepest.as_ref().is_none_or(|(most, ..)| latency_us > *most) {
                let name = machine.maybe(&format!("{folder}/{state}/name")).unwrap_or_else(|| state.clone());
                deepest = Some((latency_us, name, *cpu));
            }
        }
    }
    match deepest {
        None if seen > 0 => Ok(good(format!("none: all {seen} are switched off"))),
        None if machine.cpus_of_interest().is_empty() => Err(not_visible(format!("{CPUS} names no CPU"))),
        None => Err(not_applicable("this machine shows no idle states")),
        Some((us, name, cpu)) => {
            let text = format!("{name}, exit {us} µs ({driver}, CPU {cpu})");
            Ok(match us {
                us if us <= GOOD_US => good(text),
                us if us <= BAD_US => warn(text).remedy(Remedy::HoldAwake),
                _ => bad(text).remedy(Remedy::HoldAwake),
            })
        }
    }
}

/// A CPU's own limit: 0 is none, "n/a" is no latency at all (Documentation/ABI/testing/sysfs-devices-power).
fn resume_latency_us(machine: &Machine<'_>, cpu: u32) -> i64 {
    match machine.maybe(&format!("{CPUS}/cpu{cpu}/power/pm_qos_resume_latency_us")).as_deref() {
        Some("n/a") => 0,
        Some(text) => text.parse().ok().filter(|us| *us > 0).unwrap_or(i64::MAX),
        None => i64::MAX,
    }
}

fn pm_qos(machine: &Machine<'_>) -> Look {
    let us: i64 = machine.number("call:read /dev/cpu_dma_latency")?;
    Ok(match us {
        ..=GOOD_US => good(format!("{us} µs")),
        // PM_QOS_CPU_LATENCY_DEFAULT_VALUE, 2000 s.
        2_000_000_000.. => warn("no limit is set").remedy(Remedy::HoldAwake),
        us => warn(format!("{us} µs")).remedy(Remedy::HoldAwake),
    })
}

fn pm_qos_access(machine: &Machine<'_>) -> Look {
    match machine.root.read("call:access /dev/cpu_dma_latency") {
        Ok(text) if text.trim() == "writable" => Ok(good("writable")),
        Err(crate::Missing::Denied) => Ok(warn("not writable")),
        Err(crate::Missing::Absent) => Err(not_visible("/dev/cpu_dma_latency is not there")),
        Err(why) => Err(hidden("call:access /dev/cpu_dma_latency", &why)),
        Ok(text) => Err(crate::machine::unreadable("call:access /dev/cpu_dma_latency", &text)),
    }
}

fn halt_polling(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
    let driver =
        machine.feature(&format!("{CPUS}/cpuidle/current_driver"), CPUS, "this machine shows no idle driver")?;
    if driver != "haltpoll" {
        return Err(not_applicable(format!("the idle driver is {driver}")));
    }
    let ns: u64 = machine.number(FILE)?;
    Ok(match ns {
        200_000.. => good(format!("{ns} ns")),
        _ => warn(format!("{ns} ns")).write(FILE, "200000", ns.to_string()),
    })
}

fn boot_words(machine: &Machine<'_>) -> Look {
    machine.needs_command_line()?;
    let words: Vec<String> = ["idle", "intel_idle.max_cstate", "processor.max_cstate", "cpuidle.off"]
        .iter()
        .filter_map(|name| machine.boot_word(name).map(|value| format!("{name}={value}")))
        .collect();
    Ok(match machine.boot_word("idle") {
        Some("poll") => warn("idle=poll"),
        _ if words.is_empty() => good("none"),
        _ => good(words.join(" ")),
    })
}

#[cfg(test)]
mod tests {
    use crate::{
        Asked,
        State::*,
        checks::{sees, sees_asked},
    };

    fn states(more: &str) -> String {
        let mut text = "== /sys/devices/system/cpu/online ==\n0-1\n".to_owned();
        for (cpu, state, name, us) in [(0, 0, "POLL", 0), (0, 1, "C1", 2), (0, 2, "C10", 890), (1, 1, "C1", 2)] {
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
            text += &format!("== {folder}/name ==\n{name}\n== {folder}/latency ==\n{us}\n");
        }
        text + more
    }

    #[test]
    fn the_deepest_state_is_what_may_be_entered() {
        assert_eq!(sees("idle-states", &states("")).value, "C10, exit 890 µs (unknown driver, CPU 0)");
        let disabled = "== /sys/devices/system/cpu/cpu0/cpuidle/state2/disable ==\n1\n";
        assert_eq!(sees("idle-states", &states(disabled)).state, Good);
        let held = sees("idle-states", &states("== call:read /dev/cpu_dma_latency ==\n0\n"));
        assert_eq!((held.state, held.value.as_str()), (Good, "POLL, exit 0 µs (unknown driver, CPU 0)"));
        let one = "== /sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us ==\nn/a\n";
        assert_eq!(sees("idle-states", &states(one)).value, "C1, exit 2 µs (unknown driver, CPU 1)");
        let other = sees_asked("idle-states", &states(""), &Asked { cpus: vec![1], ..Asked::default() });
        assert_eq!(other.state, Good, "the loop's CPU does not sleep deep");
    }

    #[test]
    fn a_guest_that_halts_at_once_is_told_what_to_write() {
        let machine = "== /sys/devices/system/cpu/cpuidle/current_driver ==\nhaltpoll\n\
            == /sys/module/haltpoll/parameters/guest_halt_poll_ns ==\n0\n";
        let finding = sees("halt-polling", machine);
        assert_eq!(finding.remedy.unwrap().text(), "echo 200000 > /sys/module/haltpoll/parameters/guest_halt_poll_ns");
        assert_eq!(finding.undo.unwrap(), "echo 0 > /sys/module/haltpoll/parameters/guest_halt_poll_ns");
    }

    #[test]
    fn who_may_not_write_is_told_apart_from_what_is_not_there() {
        let machine = |why: &str| format!("== call:access /dev/cpu_dma_latency == {why}\n");
        assert_eq!(sees("pm-qos-access", &machine("EACCES")).state, Warn);
        assert_eq!(sees("pm-qos-access", &machine("ENOENT")).state, NotVisible);
    }
}
