//! Pages, swap and their background work.

use crate::{
    Check, Effect, Subject,
    machine::{Machine, chosen, number, unreadable, value},
    seen::{Look, Seen, bad, good, not_applicable, not_visible, warn},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "huge-pages",
        subject: Subject::Memory,
        title: "Transparent huge pages",
        reads: &["/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/mm/transparent_hugepage/defrag"],
        good: "madvise or never",
        why: "a page fault may wait for 2 MB to be cleared, and khugepaged locks the program's memory",
        remedy: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        undo: "echo always > /sys/kernel/mm/transparent_hugepage/enabled",
        effect: Effect::Tail,
        reboot: false,
        look: huge_pages,
    },
    Check {
        id: "compaction",
        subject: Subject::Memory,
        title: "Proactive compaction",
        reads: &["/proc/sys/vm/compaction_proactiveness"],
        good: "0",
        why: "a kernel thread moves pages; a program that touches one waits",
        remedy: "echo 0 > /proc/sys/vm/compaction_proactiveness",
        undo: "echo 20 > /proc/sys/vm/compaction_proactiveness",
        effect: Effect::Tail,
        reboot: false,
        look: compaction,
    },
    Check {
        id: "swap",
        subject: Subject::Memory,
        title: "Swap",
        reads: &["/proc/swaps"],
        good: "none",
        why: "a swapped page comes back after ms, from an SD card after 100 ms",
        remedy: "swapoff -a, and lock the loop's memory (mlockall)",
        undo: "swapon -a",
        effect: Effect::Tail,
        reboot: false,
        look: swap,
    },
    Check {
        id: "swappiness",
        subject: Subject::Memory,
        title: "Swappiness",
        reads: &["/proc/swaps", "/proc/sys/vm/swappiness"],
        good: "10 or less where there is swap",
        why: "a high value swaps programs out for the file cache",
        remedy: "echo 10 > /proc/sys/vm/swappiness",
        undo: "echo 60 > /proc/sys/vm/swappiness",
        effect: Effect::Tail,
        reboot: false,
        look: swappiness,
    },
    Check {
        id: "zone-reclaim",
        subject: Subject::Memory,
        title: "Zone reclaim",
        reads: &["/proc/sys/vm/zone_reclaim_mode"],
        good: "0",
        why: "an allocation first frees pages of its own memory node: ms within malloc",
        remedy: "echo 0 > /proc/sys/vm/zone_reclaim_mode",
        undo: "echo 1 > /proc/sys/vm/zone_reclaim_mode",
        effect: Effect::Tail,
        reboot: false,
        look: zone_reclaim,
    },
    Check {
        id: "same-page-merging",
        subject: Subject::Memory,
        title: "Same-page merging (KSM)",
        reads: &["/sys/kernel/mm/ksm/run"],
        good: "0",
        why: "ksmd scans memory, and a merged page faults at its next write",
        remedy: "echo 2 > /sys/kernel/mm/ksm/run, which also takes merged pages apart",
        undo: "echo 1 > /sys/kernel/mm/ksm/run",
        effect: Effect::Tail,
        reboot: false,
        look: same_page_merging,
    },
    Check {
        id: "numa-balancing",
        subject: Subject::Memory,
        title: "NUMA balancing",
        reads: &["/proc/sys/kernel/numa_balancing"],
        good: "0",
        why: "pages are unmapped now and then, so a loop has page faults",
        remedy: "echo 0 > /proc/sys/kernel/numa_balancing",
        undo: "echo 1 > /proc/sys/kernel/numa_balancing",
        effect: Effect::Tail,
        reboot: false,
        look: numa_balancing,
    },
    Check {
        id: "free-memory",
        subject: Subject::Memory,
        title: "Memory available",
        reads: &["/proc/meminfo"],
        good: "10 % or more",
        why: "an allocation may have to free memory first",
        remedy: "find what takes it (ps --sort -rss), or add memory",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: free_memory,
    },
];

fn huge_pages(machine: &Machine<'_>) -> Look {
    const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let text = machine.feature(ENABLED, "/sys/kernel/mm", "this kernel has none")?;
    match chosen(&text) {
        mode @ ("madvise" | "never") => Ok(good(mode)),
        "always" => {
            let defrag = machine.maybe(&format!("{FOLDER}/defrag")).unwrap_or_default();
            let seen =
                if chosen(&defrag) == "always" { bad("always, and page faults wait for them") } else { warn("always") };
            Ok(seen.write(ENABLED, "madvise", "always"))
        }
        _ => Err(unreadable(ENABLED, &text)),
    }
}

/// A file whose one good value is 0.
fn zero(machine: &Machine<'_>, path: &str, folder: &str, otherwise: impl Fn(String) -> Seen) -> Look {
    let text = machine.feature(path, folder, "this kernel has none")?;
    match number::<u32>(path, &text)? {
        0 => Ok(good("0")),
        n => Ok(otherwise(n.to_string()).write(path, "0", n.to_string())),
    }
}

fn compaction(machine: &Machine<'_>) -> Look {
    zero(machine, "/proc/sys/vm/compaction_proactiveness", "/proc/sys/vm", warn)
}

fn zone_reclaim(machine: &Machine<'_>) -> Look {
    zero(machine, "/proc/sys/vm/zone_reclaim_mode", "/proc/sys/vm", bad)
}

fn numa_balancing(machine: &Machine<'_>) -> Look {
    zero(machine, "/proc/sys/kernel/numa_balancing", "/proc/sys/kernel", bad)
}

fn same_page_merging(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/sys/kernel/mm/ksm/run";
    let text = machine.feature(FILE, "/sys/kernel/mm", "this kernel has none")?;
    match text.as_str() {
        "0" | "2" => Ok(good("off")),
        "1" => Ok(warn("on").write(FILE, "2", "1")),
        _ => Err(unreadable(FILE, &text)),
    }
}

fn swap(machine: &Machine<'_>) -> Look {
    let areas = swap_areas(machine)?;
    Ok(match areas.as_slice() {
        [] => good("none"),
        areas => warn(areas.join(", ")).run("swapoff -a", "swapon -a"),
    })
}

fn swappiness(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/proc/sys/vm/swappiness";
    if swap_areas(machine)?.is_empty() {
        return Err(not_applicable("no swap"));
    }
    let n: u32 = machine.number(FILE)?;
    Ok(if n <= 10 { good(n.to_string()) } else { warn(n.to_string()).write(FILE, "10", n.to_string()) })
}

/// "/dev/sda2 (12 of 2048 MB used)" of each line of /proc/swaps: path, type, size and used in KiB, priority.
fn swap_areas(machine: &Machine<'_>) -> Result<Vec<String>, Seen> {
    const FILE: &str = "/proc/swaps";
    let text = machine.feature(FILE, "/proc", "this kernel has no swap")?;
    let mut lines = text.lines();
    if !lines.next().is_some_and(|header| header.starts_with("Filename")) {
        return Err(unreadable(FILE, &text));
    }
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let mib = |at: usize| Some(words.get(at)?.parse::<u64>().ok()? / 1024);
            let (Some(name), Some(size), Some(used)) = (words.first(), mib(2), mib(3)) else {
                return Err(unreadable(FILE, line));
            };
            Ok(format!("{name} ({used} of {size} MiB used)"))
        })
        .collect()
}

fn free_memory(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/proc/meminfo";
    let text = machine.text(FILE)?;
    let kib = |name| value(&text, name)?.split(' ').next()?.parse::<f64>().ok();
    let (Some(all), Some(free)) = (kib("MemTotal").filter(|all| *all > 0.0), kib("MemAvailable")) else {
        return Err(not_visible(format!("{FILE} has no MemTotal or MemAvailable")));
    };
    let share = free / all;
    let text = format!("{:.0} % of {:.1} GiB", share * 100.0, all / (1 << 20) as f64);
    match share {
        s if s >= 0.1 => Ok(good(text)),
        s if s >= 0.03 => Ok(warn(text)),
        s if s >= 0.0 => Ok(bad(text)),
        _ => Err(unreadable(FILE, &text)),
    }
}

#[cfg(test)]
mod tests {
    use crate::{State::*, checks::sees};

    #[test]
    fn huge_pages_are_worse_where_faults_wait() {
        let enabled = |word: &str| format!("== /sys/kernel/mm/transparent_hugepage/enabled ==\n{word}\n");
        assert_eq!(sees("huge-pages", &enabled("[always] madvise never")).state, Warn);
        let waits =
            enabled("[always] madvise never") + "== /sys/kernel/mm/transparent_hugepage/defrag ==\n[always] defer\n";
        let finding = sees("huge-pages", &waits);
        assert_eq!(finding.state, Bad);
        assert_eq!(finding.undo.unwrap(), "echo always > /sys/kernel/mm/transparent_hugepage/enabled");
        assert_eq!(sees("huge-pages", &enabled("always [madvise] never")).state, Good);
        assert_eq!(sees("huge-pages", &enabled("")).state, NotVisible);
    }

    #[test]
    fn swappiness_counts_only_with_swap() {
        let header = "== /proc/swaps ==\nFilename Type Size Used Priority\n";
        let swappiness = "== /proc/sys/vm/swappiness ==\n60\n";
        assert_eq!(sees("swappiness", &format!("{header}{swappiness}")).state, NotApplicable);
        let with = format!("{header}/swap.img file 2097148 1048576 -2\n{swappiness}");
        assert_eq!(sees("swappiness", &with).undo.unwrap(), "echo 60 > /proc/sys/vm/swappiness");
        assert_eq!(sees("swap", &with).value, "/swap.img (1024 of 2047 MiB used)");
        assert_eq!(sees("swap", "== /proc/swaps ==\n\n").state, NotVisible, "an empty file is not 'no swap'");
    }

    #[test]
    fn what_should_be_zero_and_is_not_is_put_back_as_it_was() {
        let finding = sees("compaction", "== /proc/sys/vm/compaction_proactiveness ==\n20\n");
        assert_eq!(finding.undo.unwrap(), "echo 20 > /proc/sys/vm/compaction_proactiveness");
        assert_eq!(sees("numa-balancing", "== /proc/sys/kernel/osrelease ==\n6.1\n").state, NotApplicable);
    }

    #[test]
    fn memory_is_what_is_available_not_what_is_free() {
        let machine =
            |kib: u32| format!("== /proc/meminfo ==\nMemTotal: 1048576 kB\nMemFree: 1 kB\nMemAvailable: {kib} kB\n");
        assert_eq!(sees("free-memory", &machine(524_288)).value, "50 % of 1.0 GiB");
        assert_eq!(sees("free-memory", &machine(50_000)).state, Warn);
        assert_eq!(sees("free-memory", &machine(0)).state, Bad);
    }
}
