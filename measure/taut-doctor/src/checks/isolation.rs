//! Work that the kernel keeps off the loop's CPUs.

use crate::{
    Check, Effect, Subject, cpus,
    machine::{Machine, unreadable},
    seen::{Look, Seen, bad, good, warn},
};

/// CPUs that must be left for everything else where the loop's were not named.
const LEFT: usize = 2;
const CPUS: &str = "/sys/devices/system/cpu";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "isolation",
        subject: Subject::Scheduler,
        title: "Isolated CPUs",
        reads: &["/sys/devices/system/cpu/isolated", "/sys/fs/cgroup/cpuset.cpus.isolated", "/proc/cmdline"],
        good: "the loop's CPU, with isolcpus=managed_irq,domain,N or a cpuset partition",
        why: "on a shared CPU any other thread can delay the loop",
        remedy: "kernel command line: isolcpus=managed_irq,domain,N; then pin the loop to CPU N",
        undo: "take isolcpus off the kernel's command line again",
        effect: Effect::Tail,
        reboot: true,
        look: isolation,
    },
    Check {
        id: "nohz-full",
        subject: Subject::Scheduler,
        title: "Tickless CPUs (nohz_full)",
        reads: &["/sys/devices/system/cpu/nohz_full"],
        good: "not on the CPU of a periodic loop",
        why: "only a thread that never sleeps gains; each entry to the kernel costs more",
        remedy: "take the loop's CPU out of nohz_full on the kernel's command line",
        undo: "put it back",
        effect: Effect::Throughput,
        reboot: true,
        look: nohz_full,
    },
    Check {
        id: "rcu-callbacks",
        subject: Subject::Scheduler,
        title: "RCU callbacks kept off (rcu_nocbs)",
        reads: &["/proc/cmdline"],
        good: "the loop's CPUs",
        why: "otherwise callbacks of the whole machine run on the loop's CPU",
        remedy: "kernel command line: rcu_nocbs=N",
        undo: "take rcu_nocbs off the kernel's command line again",
        effect: Effect::Tail,
        reboot: true,
        look: rcu_callbacks,
    },
    Check {
        id: "workqueues",
        subject: Subject::Scheduler,
        title: "Kernel workers",
        reads: &["/sys/devices/virtual/workqueue/cpumask"],
        good: "not on the loop's CPUs",
        why: "else unbound kernel work (write-back, drivers) runs on the loop's CPU",
        remedy: "write a mask without the loop's CPUs into /sys/devices/virtual/workqueue/cpumask",
        undo: "write the former mask",
        effect: Effect::Tail,
        reboot: false,
        look: workqueues,
    },
    Check {
        id: "timer-migration",
        subject: Subject::Scheduler,
        title: "Timer migration",
        reads: &["/proc/sys/kernel/timer_migration"],
        good: "0 with isolated CPUs",
        why: "timers of idle CPUs gather on busy ones, such as the loop's",
        remedy: "echo 0 > /proc/sys/kernel/timer_migration",
        undo: "echo 1 > /proc/sys/kernel/timer_migration",
        effect: Effect::Tail,
        reboot: false,
        look: timer_migration,
    },
];

fn isolation(machine: &Machine<'_>) -> Look {
    let path = format!("{CPUS}/isolated");
    let text = machine.text(&path)?;
    let mut isolated = cpus::list(&text).ok_or_else(|| unreadable(&path, &text))?;
    let partition = machine.maybe("/sys/fs/cgroup/cpuset.cpus.isolated").and_then(|text| cpus::list(&text));
    isolated.extend(partition.unwrap_or_default());
    isolated.sort_unstable();
    isolated.dedup();
    let asked = &machine.asked.cpus;
    let shared: Vec<u32> = asked.iter().copied().filter(|cpu| !isolated.contains(cpu)).collect();
    let wanted = |cpus: &[u32]| format!("isolcpus=managed_irq,domain,{}", cpus::text(cpus));
    let online = machine.online();
    let left = |taken: &[u32]| online.iter().filter(|cpu| !taken.contains(cpu)).count();
    if isolated.is_empty() && asked.is_empty() {
        return Ok(match online.last() {
            Some(last) if left(&[*last]) >= LEFT => warn("none").boot(wanted(&[*last])),
            _ => warn("none").advise(format!(
                "isolate none of {} CPUs: what is left would carry everything else, interrupts included; a real-time \
                 priority keeps other threads from the loop",
                online.len()
            )),
        });
    }
    if !shared.is_empty() {
        let seen = bad(format!("CPU {} not isolated", cpus::text(&shared)));
        return Ok(match left(asked) {
            0 => seen.advise("name fewer CPUs with --cpus: one at least must be left for everything else"),
            _ => seen.boot(wanted(asked)),
        });
    }
    let ours = if asked.is_empty() { &isolated } else { asked };
    Ok(match machine.boot_word("isolcpus") {
        Some(words) if !words.contains("managed_irq") => {
            warn(format!("CPU {}, except from interrupts of multi-queue devices", cpus::text(ours))).boot(wanted(ours))
        }
        _ => good(format!("CPU {}", cpus::text(ours))),
    })
}

fn nohz_full(machine: &Machine<'_>) -> Look {
    let path = format!("{CPUS}/nohz_full");
    let text = machine.feature(&path, CPUS, "this kernel has no nohz_full")?;
    let tickless = cpus::list(&text).ok_or_else(|| unreadable(&path, &text))?;
    let ours: Vec<u32> = match machine.loop_cpus() {
        [] => tickless.clone(),
        ours => ours.iter().copied().filter(|cpu| tickless.contains(cpu)).collect(),
    };
    Ok(match (ours.is_empty(), tickless.is_empty()) {
        (true, true) => good("none"),
        (true, false) => good(format!("CPU {}, none of the loop's", cpus::text(&tickless))),
        (false, _) => warn(format!("CPU {}", cpus::text(&ours))),
    })
}

fn rcu_callbacks(machine: &Machine<'_>) -> Look {
    let ours = machine.needs_loop_cpus()?;
    machine.needs_command_line()?;
    let boot = |finding: Seen| finding.boot(format!("rcu_nocbs={}", cpus::text(ours)));
    // nohz_full implies it.
    let kept_off: Vec<u32> = ["rcu_nocbs", "nohz_full"]
        .iter()
        .filter_map(|word| machine.boot_word(word))
        .filter_map(|list| if list == "all" { Some(machine.online().to_vec()) } else { cpus::list(list) })
        .flatten()
        .collect();
    let here: Vec<u32> = ours.iter().copied().filter(|cpu| !kept_off.contains(cpu)).collect();
    Ok(match here.is_empty() {
        true => good(format!("CPU {}", cpus::text(ours))),
        false => boot(warn(format!("they run on CPU {}", cpus::text(&here)))),
    })
}

fn workqueues(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/sys/devices/virtual/workqueue/cpumask";
    let ours = machine.needs_loop_cpus()?;
    let text = machine.text(FILE)?;
    let allowed = cpus::mask(&text).ok_or_else(|| unreadable(FILE, &text))?;
    let (shared, rest): (Vec<u32>, Vec<u32>) = allowed.iter().partition(|cpu| ours.contains(cpu));
    Ok(match (shared.is_empty(), rest.is_empty()) {
        (true, _) => good("none on the loop's CPUs"),
        (false, true) => warn("allowed on all CPUs; none is left to move them to"),
        (false, false) => {
            warn(format!("allowed on CPU {}", cpus::text(&shared))).write(FILE, cpus::mask_text(&rest), text)
        }
    })
}

fn timer_migration(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/proc/sys/kernel/timer_migration";
    machine.needs_loop_cpus()?;
    let text = machine.feature(FILE, "/proc/sys/kernel", "this kernel does not migrate timers")?;
    match text.as_str() {
        "0" => Ok(good("off")),
        "1" => Ok(warn("on").write(FILE, "0", "1")),
        _ => Err(unreadable(FILE, &text)),
    }
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
    fn isolation_is_judged_by_the_loops_cpus() {
        let machine = "== /sys/devices/system/cpu/online ==\n0-3\n== /sys/devices/system/cpu/isolated ==\n";
        let none = sees("isolation", &format!("{machine}\n"));
        assert_eq!(none.remedy.unwrap().text(), "kernel command line: isolcpus=managed_irq,domain,3");
        let of_two = "== /sys/devices/system/cpu/online ==\n0-1\n== /sys/devices/system/cpu/isolated ==\n\n";
        let small = sees("isolation", of_two).remedy.unwrap();
        assert!(small.how() == "advise" && small.text().starts_with("isolate none of 2 CPUs"), "{}", small.text());
        let asked =
            |cpus: Vec<u32>| sees_asked("isolation", of_two, &Asked { cpus, ..Asked::default() }).remedy.unwrap();
        assert_eq!(asked(vec![1]).text(), "kernel command line: isolcpus=managed_irq,domain,1");
        assert_eq!(asked(vec![0, 1]).how(), "advise", "a machine without a CPU for itself does not boot");
        let half = sees_asked("isolation", &format!("{machine}3\n"), &two());
        assert_eq!((half.state, half.value.as_str()), (Bad, "CPU 2 not isolated"));
        assert_eq!(half.remedy.unwrap().text(), "kernel command line: isolcpus=managed_irq,domain,2-3");
        assert_eq!(sees_asked("isolation", &format!("{machine}2-3\n"), &two()).state, Good);
        let plain = format!("{machine}2-3\n== /proc/cmdline ==\nisolcpus=2,3\n");
        assert_eq!(sees_asked("isolation", &plain, &two()).state, Warn, "managed interrupts still come");
        let partition = format!("{machine}\n== /sys/fs/cgroup/cpuset.cpus.isolated ==\n2-3\n");
        assert_eq!(sees_asked("isolation", &partition, &two()).state, Good);
    }

    #[test]
    fn workers_are_moved_to_the_rest() {
        let machine = "== /sys/devices/virtual/workqueue/cpumask ==\nf\n";
        let finding = sees_asked("workqueues", machine, &two());
        assert_eq!(finding.remedy.unwrap().text(), "echo 3 > /sys/devices/virtual/workqueue/cpumask");
        assert_eq!(sees("workqueues", machine).state, NotApplicable);
    }
}
