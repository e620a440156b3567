//! Time.

use crate::{
    Check, Effect, Subject,
    machine::{Machine, unreadable, words_of},
    seen::{Look, bad, good, not_applicable, warn},
};

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "clocksource",
        subject: Subject::Clock,
        title: "Clock source",
        reads: &["/sys/devices/system/clocksource/clocksource0/current_clocksource"],
        good: "tsc or arch_sys_counter; in a VM also kvm-clock or hyperv_clocksource_tsc_page",
        why: "others take µs a read, through the bus or the hypervisor",
        remedy: "find in dmesg why tsc was dropped; tsc=reliable only where it is known to be",
        undo: "",
        effect: Effect::Throughput,
        reboot: true,
        look: clocksource,
    },
    Check {
        id: "tsc",
        subject: Subject::Clock,
        title: "Time stamp counter",
        reads: &["/proc/cpuinfo", "/sys/devices/system/clocksource/clocksource0/available_clocksource"],
        good: "constant, never stops, not dropped by the kernel",
        why: "one that changes its rate or stops makes clocks slow or wrong",
        remedy: "find in dmesg why tsc was dropped; in a VM ask for an invariant TSC",
        undo: "",
        effect: Effect::Safety,
        reboot: false,
        look: tsc,
    },
    Check {
        id: "clock-cost",
        subject: Subject::Clock,
        title: "Cost of reading the clock",
        reads: &["call:clock_gettime"],
        good: "under 200 ns",
        why: "loops, loggers and stamps read it many times a cycle",
        remedy: "see clocksource; a tracer of system calls (strace, seccomp) costs as much",
        undo: "",
        effect: Effect::Throughput,
        reboot: false,
        look: clock_cost,
    },
    Check {
        id: "timer-slack",
        subject: Subject::Clock,
        title: "Timer slack",
        reads: &["/proc/PID/timerslack_ns"],
        good: "1 ns, or a real-time policy, or timerfd",
        why: "an ordinary thread's sleep may end that much later",
        remedy: "prctl(PR_SET_TIMERSLACK, 1) in the loop, or wait with a timerfd, or run SCHED_FIFO",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: timer_slack,
    },
    Check {
        id: "time-sync",
        subject: Subject::Clock,
        title: "Wall clock follows another (NTP, PTP)",
        reads: &["call:adjtimex", "call:processes", "/sys/class/ptp/*/clock_name"],
        good: "synchronized",
        why: "stamps of two machines cannot be compared otherwise",
        remedy: "run chrony, or ptp4l with phc2sys where the network card has a clock",
        undo: "stop it again",
        effect: Effect::Safety,
        reboot: false,
        look: time_sync,
    },
];

fn clocksource(machine: &Machine<'_>) -> Look {
    let path = format!("{FOLDER}/current_clocksource");
    let name = machine.text(&path)?;
    Ok(match name.as_str() {
        "" => return Err(unreadable(&path, &name)),
        "tsc" | "arch_sys_counter" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "timebase" | "riscv_clocksource" => {
            good(name)
        }
        "xen" => warn(name),
        _ => bad(name),
    })
}

fn tsc(machine: &Machine<'_>) -> Look {
    let info = machine.text("/proc/cpuinfo")?;
    let flags = words_of(&info, "flags");
    if !flags.contains(&"tsc") {
        return Err(match info.contains("CPU implementer") || info.contains("processor") {
            true => not_applicable("not an x86 processor"),
            false => unreadable("/proc/cpuinfo", &info),
        });
    }
    let dropped = machine
        .maybe(&format!("{FOLDER}/available_clocksource"))
        .is_some_and(|all| !all.split(' ').any(|name| name == "tsc"));
    let lacks: Vec<&str> = ["constant_tsc", "nonstop_tsc"].into_iter().filter(|flag| !flags.contains(flag)).collect();
    Ok(match (dropped, lacks.is_empty()) {
        (true, _) => bad("the kernel found it unstable and dropped it"),
        (false, false) => warn(format!("without {}", lacks.join(" and "))),
        (false, true) => good("constant, does not stop"),
    })
}

fn clock_cost(machine: &Machine<'_>) -> Look {
    let ns: u64 = machine.number("call:clock_gettime")?;
    let text = format!("{ns} ns");
    Ok(match ns {
        0..200 => good(text),
        200..1000 => warn(text),
        _ => bad(text),
    })
}

fn timer_slack(machine: &Machine<'_>) -> Look {
    let ns: u64 = machine.number(&machine.named("/proc/PID/timerslack_ns"))?;
    Ok(match ns {
        0 => good("0: a real-time thread"),
        1..=1000 => good(format!("{ns} ns")),
        ns => warn(format!("{} µs for ordinary threads", ns / 1000)),
    })
}

fn time_sync(machine: &Machine<'_>) -> Look {
    let text = machine.text("call:adjtimex")?;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<i64>().ok());
    let synchronized = number("synchronized=").ok_or_else(|| unreadable("call:adjtimex", &text))?;
    const DAEMONS: [&str; 6] = ["chronyd", "ptp4l", "phc2sys", "ntpd", "systemd-timesyn", "timemaster"];
    let running: Vec<&str> = DAEMONS.into_iter().filter(|name| machine.runs(name) == Some(true)).collect();
    let by = if running.is_empty() { String::new() } else { format!(" ({})", running.join(", ")) };
    let hardware: Vec<String> = machine
        .names("/sys/class/ptp")
        .iter()
        .filter_map(|name| machine.maybe(&format!("/sys/class/ptp/{name}/clock_name")))
        .collect();
    let hardware =
        if hardware.is_empty() { String::new() } else { format!("; hardware clock {}", hardware.join(", ")) };
    Ok(match synchronized {
        1 => {
            let most =
                number("maxerror_us=").map_or(String::new(), |us| format!(", at most {:.1} ms off", us as f64 / 1e3));
            good(format!("synchronized{by}{most}{hardware}"))
        }
        _ => warn(format!("not synchronized{by}{hardware}")),
    })
}

#[cfg(test)]
mod tests {
    use crate::{State::*, checks::sees};

    #[test]
    fn a_dropped_tsc_is_worse_than_one_without_promises() {
        let info = |flags: &str| format!("== /proc/cpuinfo ==\nprocessor\t: 0\nflags\t\t: fpu {flags}\n");
        let available = |names: &str| {
            format!("== /sys/devices/system/clocksource/clocksource0/available_clocksource ==\n{names}\n")
        };
        assert_eq!(sees("tsc", &(info("tsc constant_tsc nonstop_tsc") + &available("tsc hpet"))).state, Good);
        assert_eq!(sees("tsc", &(info("tsc constant_tsc nonstop_tsc") + &available("hpet acpi_pm"))).state, Bad);
        assert_eq!(sees("tsc", &info("tsc constant_tsc")).value, "without nonstop_tsc");
        assert_eq!(sees("tsc", "== /proc/cpuinfo ==\nprocessor : 0\nCPU implementer : 0x41\n").state, NotApplicable);
        assert_eq!(sees("tsc", "== /proc/cpuinfo ==\n\n").state, NotVisible);
    }

    #[test]
    fn the_clocksource_is_known_by_name() {
        let machine =
            |name: &str| format!("== /sys/devices/system/clocksource/clocksource0/current_clocksource ==\n{name}\n");
        assert_eq!(sees("clocksource", &machine("hpet")).state, Bad);
        assert_eq!(sees("clocksource", &machine("arch_sys_counter")).state, Good);
        assert_eq!(sees("clocksource", &machine("")).state, NotVisible);
    }

    #[test]
    fn the_wall_clock_is_asked_not_its_daemon() {
        let machine = |yes: u8| {
            format!("== call:adjtimex ==\nsynchronized={yes}\nmaxerror_us=1500\n== call:processes ==\nchronyd\n")
        };
        assert_eq!(sees("time-sync", &machine(1)).value, "synchronized (chronyd), at most 1.5 ms off");
        assert_eq!(sees("time-sync", &machine(0)).state, Warn);
    }
}
