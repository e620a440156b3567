//! Interrupts and what serves them.

use crate::{
    Check, Effect, Remedy, Setting, Subject, cpus,
    machine::{Machine, hidden, unreadable},
    seen::{Look, good, not_visible, warn},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "irq-affinity",
        subject: Subject::Interrupts,
        title: "Device interrupts on the loop's CPUs",
        reads: &["/proc/interrupts", "/proc/irq/*/smp_affinity_list", "/proc/irq/*/effective_affinity_list"],
        good: "only the one that the loop waits for",
        why: "each takes 1 to 50 µs from whatever runs there",
        remedy: "kernel command line: irqaffinity=OTHERS, or write the other CPUs into /proc/irq/N/smp_affinity_list",
        undo: "write the former list",
        effect: Effect::Tail,
        reboot: false,
        look: affinity,
    },
    Check {
        id: "default-irq-affinity",
        subject: Subject::Interrupts,
        title: "Where new interrupts go",
        reads: &["/proc/irq/default_smp_affinity"],
        good: "not to the loop's CPUs",
        why: "a device plugged in later interrupts the loop",
        remedy: "kernel command line: irqaffinity=OTHERS, or write a mask into /proc/irq/default_smp_affinity",
        undo: "write the former mask",
        effect: Effect::Tail,
        reboot: false,
        look: default_affinity,
    },
    Check {
        id: "irqbalance",
        subject: Subject::Interrupts,
        title: "irqbalance",
        reads: &["call:processes", "/etc/default/irqbalance"],
        good: "not running, or banned from the loop's CPUs",
        why: "it moves interrupts to quiet CPUs, such as the loop's",
        remedy: "systemctl disable --now irqbalance, or IRQBALANCE_BANNED_CPULIST in /etc/default/irqbalance",
        undo: "systemctl enable --now irqbalance",
        effect: Effect::Tail,
        reboot: false,
        look: irqbalance,
    },
];

/// One that came fewer times since boot belongs to the boot.
const OFTEN: u64 = 100;

fn affinity(machine: &Machine<'_>) -> Look {
    let ours = machine.needs_loop_cpus()?;
    let elsewhere: Vec<u32> = machine.online().iter().copied().filter(|cpu| !ours.contains(cpu)).collect();
    let table = machine.text("/proc/interrupts")?;
    let counted = Counted::of(&table).ok_or_else(|| not_visible("/proc/interrupts is no table"))?;
    let numbers = machine.root.list("/proc/irq").map_err(|why| hidden("/proc/irq", &why))?;
    let (mut here, mut movable) = (Vec::new(), Vec::new());
    for number in numbers.iter().filter(|name| name.parse::<u32>().is_ok()) {
        let path = format!("/proc/irq/{number}/smp_affinity_list");
        let Some(list) = machine.maybe(&path) else { continue };
        let effective = machine.maybe(&format!("/proc/irq/{number}/effective_affinity_list"));
        let Some(served) =
            effective.filter(|list| !list.is_empty()).or(Some(list.clone())).and_then(|l| cpus::list(&l))
        else {
            continue;
        };
        let times = counted.on(number, ours);
        if served.iter().any(|cpu| ours.contains(cpu)) && times >= OFTEN {
            here.push((times, counted.name(number)));
            if !elsewhere.is_empty() {
                movable.push(Setting { path, new: cpus::text(&elsewhere), old: list });
            }
        }
    }
    here.sort_by_key(|(times, _)| std::cmp::Reverse(*times));
    Ok(match here.len() {
        0 => good(format!("none on CPU {}", cpus::text(ours))),
        n => {
            let names: Vec<&str> = here.iter().map(|(_, name)| name.as_str()).collect();
            let finding = warn(format!("{n} on CPU {}: {}", cpus::text(ours), names.join(", ")));
            if movable.is_empty() { finding } else { finding.remedy(Remedy::Write(movable)) }
        }
    })
}

/// /proc/interrupts: a column for each CPU, then the controller, the trigger and the device.
struct Counted<'a> {
    cpus: Vec<u32>,
    rows: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> Counted<'a> {
    fn of(text: &'a str) -> Option<Counted<'a>> {
        let mut lines = text.lines();
        let cpus: Vec<u32> = lines
            .next()?
            .split_whitespace()
            .map(|word| word.strip_prefix("CPU")?.parse().ok())
            .collect::<Option<_>>()?;
        let row = |line: &'a str| {
            Some((line.split_once(':')?.0.trim(), line.split_once(':')?.1.split_whitespace().collect()))
        };
        Some(Counted { cpus, rows: lines.filter_map(row).collect() })
    }

    fn row(&self, number: &str) -> Option<&[&'a str]> {
        self.rows.iter().find(|(name, _)| *name == number).map(|(_, words)| words.as_slice())
    }

    fn on(&self, number: &str, wanted: &[u32]) -> u64 {
        let words = self.row(number).unwrap_or_default();
        let counts = self.cpus.iter().zip(words).filter(|(cpu, _)| wanted.contains(cpu));
        counts.filter_map(|(_, count)| count.parse::<u64>().ok()).fold(0, u64::saturating_add)
    }

    /// "24 (eth0-rx)".
    fn name(&self, number: &str) -> String {
        let device = self.row(number).and_then(|words| words.get(self.cpus.len()..)?.last().copied());
        device.map_or(number.to_owned(), |device| format!("{number} ({device})"))
    }
}

fn default_affinity(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/proc/irq/default_smp_affinity";
    let ours = machine.needs_loop_cpus()?;
    let text = machine.text(FILE)?;
    let allowed = cpus::mask(&text).ok_or_else(|| unreadable(FILE, &text))?;
    let (shared, rest): (Vec<u32>, Vec<u32>) = allowed.iter().partition(|cpu| ours.contains(cpu));
    Ok(match (shared.is_empty(), rest.is_empty()) {
        (true, _) => good("not to the loop's CPUs"),
        (false, true) => warn(format!("CPU {}", cpus::text(&shared))),
        (false, false) => warn(format!("CPU {}", cpus::text(&allowed))).write(FILE, cpus::mask_text(&rest), text),
    })
}

fn irqbalance(machine: &Machine<'_>) -> Look {
    match machine.runs("irqbalance") {
        None => Err(not_visible("the machine's programs do not show here")),
        Some(false) => Ok(good("not running")),
        Some(true) => {
            let settings = machine.maybe("/etc/default/irqbalance").unwrap_or_default();
            let banned = settings
                .lines()
                .find_map(|line| line.trim().strip_prefix("IRQBALANCE_BANNED_CPULIST="))
                .and_then(|list| cpus::list(list.trim_matches('"')))
                .unwrap_or_default();
            let ours = machine.loop_cpus();
            Ok(match !ours.is_empty() && ours.iter().all(|cpu| banned.contains(cpu)) {
                true => good("running, banned from the loop's CPUs"),
                false => warn("running").run("systemctl disable --now irqbalance", "systemctl enable --now irqbalance"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Asked,
        State::*,
        checks::{sees, sees_asked},
    };

    const MACHINE: &str = "== /sys/devices/system/cpu/online ==\n0-1\n\
        == /proc/interrupts ==\n           CPU0       CPU1\n 24:  5   700  PCI-MSI 1-edge   eth0-rx-0\n 25:  9   99  PCI-MSI 2-edge  nvme0q1\nNMI:  1  1 Non-maskable\n\
        == /proc/irq/24/smp_affinity_list ==\n0-1\n== /proc/irq/24/effective_affinity_list ==\n1\n\
        == /proc/irq/25/smp_affinity_list ==\n0-1\n== /proc/irq/default_smp_affinity ==\n3\n";

    #[test]
    fn interrupts_that_came_to_the_loop_are_named() {
        let finding = sees_asked("irq-affinity", MACHINE, &Asked { cpus: vec![1], ..Asked::default() });
        assert_eq!((finding.state, finding.value.as_str()), (Warn, "1 on CPU 1: 24 (eth0-rx-0)"));
        assert_eq!(finding.remedy.unwrap().text(), "echo 0 > /proc/irq/24/smp_affinity_list");
        assert_eq!(finding.undo.unwrap(), "echo 0-1 > /proc/irq/24/smp_affinity_list");
        assert_eq!(sees("irq-affinity", MACHINE).state, NotApplicable);
    }

    #[test]
    fn new_interrupts_go_to_the_rest() {
        let finding = sees_asked("default-irq-affinity", MACHINE, &Asked { cpus: vec![1], ..Asked::default() });
        assert_eq!(finding.remedy.unwrap().text(), "echo 1 > /proc/irq/default_smp_affinity");
    }

    #[test]
    fn irqbalance_may_run_where_it_is_banned() {
        let machine = "== call:processes ==\nirqbalance\nkthreadd\n== /etc/default/irqbalance ==\nIRQBALANCE_BANNED_CPULIST=\"1\"\n";
        assert_eq!(sees("irqbalance", machine).state, Warn);
        assert_eq!(sees_asked("irqbalance", machine, &Asked { cpus: vec![1], ..Asked::default() }).state, Good);
        assert_eq!(sees("irqbalance", "== /proc/version ==\n\n").state, NotVisible);
    }
}
