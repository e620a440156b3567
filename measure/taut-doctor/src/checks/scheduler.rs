//! What shares a core or a CPU with the loop.

use crate::{
    Check, Effect, Subject, cpus,
    machine::{Machine, hidden, unreadable},
    seen::{Look, bad, good, not_visible, warn},
};

const CPUS: &str = "/sys/devices/system/cpu";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "hyperthreads",
        subject: Subject::Scheduler,
        title: "Hyperthreads (SMT)",
        reads: &["/sys/devices/system/cpu/smt/active", "/sys/devices/system/cpu/*/topology/thread_siblings_list"],
        good: "off, or the sibling of the loop's CPU is off or also the loop's",
        why: "work on the sibling halves the loop's speed",
        remedy: "kernel command line: nosmt, or switch off the sibling: echo 0 > /sys/devices/system/cpu/cpuN/online",
        undo: "echo 1 > /sys/devices/system/cpu/cpuN/online",
        effect: Effect::Tail,
        reboot: false,
        look: hyperthreads,
    },
    Check {
        id: "cpu-pressure",
        subject: Subject::Scheduler,
        title: "Threads that wait for a CPU",
        reads: &["/proc/pressure/cpu", "/proc/loadavg"],
        good: "under 10 % of the last minute",
        why: "an ordinary thread waits ms, not µs, for a busy CPU",
        remedy: "find what runs (top), raise its nice value or keep it on other CPUs",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: cpu_pressure,
    },
];

fn hyperthreads(machine: &Machine<'_>) -> Look {
    let active = machine.feature(&format!("{CPUS}/smt/active"), CPUS, "this processor has none")?;
    match active.as_str() {
        "0" => return Ok(good("off")),
        "1" => {}
        _ => return Err(unreadable(&format!("{CPUS}/smt/active"), &active)),
    }
    let ours = machine.loop_cpus();
    if ours.is_empty() {
        return Ok(warn("on").boot("nosmt"));
    }
    let mut foreign = Vec::new();
    for cpu in ours {
        let path = format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list");
        let text = machine.text(&path)?;
        let siblings = cpus::list(&text).ok_or_else(|| unreadable(&path, &text))?;
        foreign.extend(siblings.into_iter().filter(|sibling| !ours.contains(sibling)));
    }
    foreign.sort_unstable();
    foreign.dedup();
    if foreign.is_empty() {
        return Ok(good("on; the loop has its cores to itself"));
    }
    let setting =
        |cpu: &u32| crate::Setting { path: format!("{CPUS}/cpu{cpu}/online"), new: "0".into(), old: "1".into() };
    Ok(bad(format!("the loop's cores also run CPU {}", cpus::text(&foreign)))
        .remedy(crate::Remedy::Write(foreign.iter().map(setting).collect())))
}

fn cpu_pressure(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/proc/pressure/cpu";
    match machine.root.read(FILE) {
        Ok(text) => {
            let percent = stalled(&text).ok_or_else(|| unreadable(FILE, &text))?;
            let text = format!("{percent:.1} % of the last minute");
            Ok(if percent < 10.0 { good(text) } else { warn(text) })
        }
        Err(why) => {
            let text = machine.maybe("/proc/loadavg").ok_or_else(|| hidden(FILE, &why))?;
            let load: f64 = text
                .split(' ')
                .next()
                .and_then(|n| n.parse().ok())
                .ok_or_else(|| unreadable("/proc/loadavg", &text))?;
            match machine.online().len() {
                0 => Err(not_visible(format!("{load} threads want to run, on how many CPUs is not visible"))),
                cpus if load < cpus as f64 => Ok(good(format!("{load} threads want to run on {cpus} CPUs"))),
                cpus => Ok(warn(format!("{load} threads want to run on {cpus} CPUs"))),
            }
        }
    }
}

/// avg60 of the line "some avg10=0.00 avg60=0.12 …" (Documentation/accounting/psi.rst).
fn stalled(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some"))?;
    line.split(' ')
        .find_map(|word| word.strip_prefix("avg60="))?
        .parse()
        .ok()
        .filter(|percent: &f64| percent.is_finite())
}

#[cfg(test)]
mod tests {
    use crate::{
        Asked,
        State::*,
        checks::{sees, sees_asked},
    };

    fn two() -> Asked {
        Asked { cpus: vec![2, 3], ..Asked::default() }
    }

    #[test]
    fn a_sibling_of_the_loop_is_switched_off() {
        let machine = "== /sys/devices/system/cpu/smt/active ==\n1\n\
            == /sys/devices/system/cpu/cpu2/topology/thread_siblings_list ==\n2,6\n\
            == /sys/devices/system/cpu/cpu3/topology/thread_siblings_list ==\n2-3\n";
        let finding = sees_asked("hyperthreads", machine, &two());
        assert_eq!((finding.state, finding.value.as_str()), (Bad, "the loop's cores also run CPU 6"));
        assert_eq!(finding.undo.unwrap(), "echo 1 > /sys/devices/system/cpu/cpu6/online");
    }

    #[test]
    fn pressure_is_of_the_last_minute() {
        let psi =
            |percent: &str| format!("== /proc/pressure/cpu ==\nsome avg10=99.00 avg60={percent} avg300=0.00 total=1\n");
        assert_eq!(sees("cpu-pressure", &psi("0.12")).value, "0.1 % of the last minute");
        assert_eq!(sees("cpu-pressure", &psi("12")).state, Warn);
        assert_eq!(sees("cpu-pressure", &psi("NaN")).state, NotVisible);
        let load = "== /proc/loadavg ==\n5.5 1 1 1/200 1\n== /sys/devices/system/cpu/online ==\n0-3\n";
        assert_eq!(sees("cpu-pressure", load).state, Warn);
    }
}
