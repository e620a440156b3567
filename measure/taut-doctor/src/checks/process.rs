//! The process named by `--pid`: how its threads are scheduled, pinned and locked.

use crate::{
    Check, Effect, Missing, Subject, cpus,
    machine::{Machine, hidden, unreadable, value},
    seen::{Look, Seen, bad, good, not_applicable, not_visible, warn},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "loop-policy",
        subject: Subject::Process,
        title: "Scheduling of the process's threads",
        reads: &["/proc/PID/task/*/stat"],
        good: "the loop's thread is SCHED_FIFO, RR or DEADLINE",
        why: "an ordinary thread waits for others, and its sleeps have slack",
        remedy: "chrt -f -p 80 TID for the loop's thread, or pthread_setschedparam in the program",
        undo: "chrt -o -p 0 TID",
        effect: Effect::Tail,
        reboot: false,
        look: policy,
    },
    Check {
        id: "loop-affinity",
        subject: Subject::Process,
        title: "CPUs of the process's threads",
        reads: &["/proc/PID/task/*/status"],
        good: "the loop's thread on one CPU, no other thread there",
        why: "a thread that moves finds cold caches; on isolated CPUs several pile onto the first",
        remedy: "taskset -cp N TID for the loop's thread, the other CPUs for the rest",
        undo: "taskset -cp with the former list",
        effect: Effect::Tail,
        reboot: false,
        look: affinity,
    },
    Check {
        id: "loop-memory",
        subject: Subject::Process,
        title: "Memory of the process",
        reads: &["/proc/PID/status"],
        good: "locked, nothing swapped",
        why: "a page that is fetched stops the loop for µs, from disk for ms",
        remedy: "mlockall(MCL_CURRENT | MCL_FUTURE) at the program's start",
        undo: "munlockall()",
        effect: Effect::Tail,
        reboot: false,
        look: memory,
    },
];

fn folder(machine: &Machine<'_>) -> Result<String, Seen> {
    let pid = machine.asked.pid.ok_or_else(|| not_applicable("no process named; see --pid"))?;
    Ok(format!("/proc/{pid}"))
}

/// A file of each thread, by thread id; threads that ended meanwhile are left out.
fn threads(machine: &Machine<'_>, file: &str) -> Result<Vec<(String, String)>, Seen> {
    let tasks = format!("{}/task", folder(machine)?);
    let mut found = Vec::new();
    for tid in machine.root.list(&tasks).map_err(|why| hidden(&tasks, &why))? {
        let path = format!("{tasks}/{tid}/{file}");
        match machine.root.read(&path) {
            Ok(text) => found.push((tid, text)),
            Err(Missing::Absent) => {}
            Err(why) => return Err(hidden(&path, &why)),
        }
    }
    if found.is_empty() { Err(not_visible(format!("{tasks} has no thread"))) } else { Ok(found) }
}

fn policy(machine: &Machine<'_>) -> Look {
    let mut real_time = Vec::new();
    let all = threads(machine, "stat")?;
    for (tid, text) in &all {
        let (name, policy, priority) =
            scheduled(text).ok_or_else(|| unreadable(&format!("stat of thread {tid}"), text))?;
        // sched(7): 1 FIFO, 2 RR, 6 DEADLINE.
        match policy {
            1 => real_time.push(format!("{name}/{tid} FIFO {priority}")),
            2 => real_time.push(format!("{name}/{tid} RR {priority}")),
            6 => real_time.push(format!("{name}/{tid} DEADLINE")),
            _ => {}
        }
    }
    Ok(match real_time.as_slice() {
        [] => bad(format!("none of {} threads is real-time", all.len())),
        some => good(some.join(", ")),
    })
}

/// Name, policy and real-time priority of /proc/PID/stat, fields 2, 41 and 40; the name may hold spaces and brackets.
fn scheduled(text: &str) -> Option<(&str, u32, u32)> {
    let (head, rest) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    // The first word behind the name is field 3.
    let words: Vec<&str> = rest.split_whitespace().collect();
    Some((name, words.get(41 - 3)?.parse().ok()?, words.get(40 - 3)?.parse().ok()?))
}

fn affinity(machine: &Machine<'_>) -> Look {
    let mut by_cpus: Vec<(Vec<u32>, Vec<String>)> = Vec::new();
    for (tid, text) in threads(machine, "status")? {
        let path = format!("status of thread {tid}");
        let list = value(&text, "Cpus_allowed_list").ok_or_else(|| unreadable(&path, &text))?;
        let list = cpus::list(list).filter(|cpus| !cpus.is_empty()).ok_or_else(|| unreadable(&path, list))?;
        let thread = format!("{}/{tid}", value(&text, "Name").unwrap_or_default());
        match by_cpus.iter_mut().find(|(cpus, _)| *cpus == list) {
            Some((_, threads)) => threads.push(thread),
            None => by_cpus.push((list, vec![thread])),
        }
    }
    let isolated = machine.isolated();
    let piled = by_cpus
        .iter()
        .find(|(cpus, threads)| cpus.len() > 1 && threads.len() > 1 && cpus.iter().all(|cpu| isolated.contains(cpu)));
    if let Some((list, threads)) = piled {
        return Ok(bad(format!(
            "{} threads share isolated CPUs {}, where the kernel balances no load",
            threads.len(),
            cpus::text(list)
        )));
    }
    let pinned: Vec<&(Vec<u32>, Vec<String>)> = by_cpus.iter().filter(|(cpus, _)| cpus.len() == 1).collect();
    let text =
        |(list, threads): &(Vec<u32>, Vec<String>)| format!("{} on CPU {}", threads.join(", "), cpus::text(list));
    Ok(match pinned.as_slice() {
        [] => warn("no thread is pinned"),
        some if some.iter().any(|(_, threads)| threads.len() > 1) => {
            warn(some.iter().map(|one| text(one)).collect::<Vec<_>>().join("; "))
        }
        some => good(some.iter().map(|one| text(one)).collect::<Vec<_>>().join("; ")),
    })
}

fn memory(machine: &Machine<'_>) -> Look {
    let path = format!("{}/status", folder(machine)?);
    let text = machine.text(&path)?;
    let kib = |name: &str| value(&text, name)?.split_whitespace().next()?.parse::<u64>().ok();
    let (Some(locked), Some(resident)) = (kib("VmLck"), kib("VmRSS")) else {
        return Err(not_visible(format!("{path} has no VmLck or VmRSS")));
    };
    let told = format!("{} of {} MiB locked", locked / 1024, resident / 1024);
    Ok(match (kib("VmSwap").unwrap_or(0), locked) {
        (0, 0) => warn(told),
        (0, _) => good(told),
        (swapped, _) => bad(format!("{told}, {} MiB swapped out", swapped / 1024)),
    })
}

#[cfg(test)]
mod tests {
    use crate::{Asked, Finding, State::*, checks::sees_asked};

    fn sees(id: &str, machine: &str) -> Finding {
        sees_asked(id, machine, &Asked { pid: Some(7), ..Asked::default() })
    }

    fn stat(policy: u32) -> String {
        let zeros = "0 ".repeat(36);
        format!("7 (arm) (loop) S {zeros}80 {policy} 0 0\n")
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let machine = |policy| format!("== /proc/7/task/8/stat ==\n{}", stat(policy));
        assert_eq!(sees("loop-policy", &machine(1)).value, "arm) (loop/8 FIFO 80");
        assert_eq!(sees("loop-policy", &machine(0)).value, "none of 1 threads is real-time");
        assert_eq!(sees("loop-policy", "== /proc/7/task/8/stat ==\n7 (x\n").state, NotVisible);
    }

    #[test]
    fn threads_that_pile_onto_isolated_cpus_are_told() {
        let thread =
            |tid: u32, list: &str| format!("== /proc/7/task/{tid}/status ==\nName:\tarm\nCpus_allowed_list:\t{list}\n");
        let isolated = "== /sys/devices/system/cpu/isolated ==\n2-3\n";
        let piled = format!("{isolated}{}{}", thread(8, "2-3"), thread(9, "2-3"));
        assert_eq!(sees("loop-affinity", &piled).state, Bad);
        let pinned = format!("{isolated}{}{}", thread(8, "2"), thread(9, "0-1"));
        assert_eq!(sees("loop-affinity", &pinned).value, "arm/8 on CPU 2");
        assert_eq!(sees("loop-affinity", &(thread(8, "0-3") + &thread(9, "0-3"))).state, Warn);
    }

    #[test]
    fn swapped_memory_is_worse_than_unlocked() {
        let machine = |locked: u32, swapped: u32| {
            format!("== /proc/7/status ==\nVmLck:\t{locked} kB\nVmRSS:\t40960 kB\nVmSwap:\t{swapped} kB\n")
        };
        assert_eq!(sees("loop-memory", &machine(40960, 0)).value, "40 of 40 MiB locked");
        assert_eq!(sees("loop-memory", &machine(0, 0)).state, Warn);
        assert_eq!(sees("loop-memory", &machine(4096, 2048)).state, Bad);
    }
}
