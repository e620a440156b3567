//! What the machine has now: CPUs, threads of a process tree, memory for rings; from /proc and /sys.
//! Read at the start of a recording.

use std::fs;

use crate::proc;

/// CPUs that are online; CPU 0 alone when the system does not say.
pub fn online_cpus() -> Vec<u16> {
    stated_cpus().unwrap_or_else(|| vec![0])
}

/// CPUs that are online, where the system says so.
fn stated_cpus() -> Option<Vec<u16>> {
    let cpus = parse_cpu_list(&proc::line("/sys/devices/system/cpu/online"));
    // A sandbox may have no /sys.
    let cpus = if cpus.is_empty() { cpus_of_stat(&proc::line("/proc/stat")) } else { cpus };
    (!cpus.is_empty()).then_some(cpus)
}

/// Sees CPUs come online.
#[derive(Debug)]
pub struct Arrivals {
    now: Vec<u16>,
    before: Vec<u16>,
}

impl Arrivals {
    /// From now on.
    pub fn watch() -> Arrivals {
        let now = online_cpus();
        Arrivals { before: now.clone(), now }
    }

    /// CPUs that came since the last look, and whether each had been there before.
    pub fn look(&mut self) -> Vec<(u16, bool)> {
        stated_cpus().map(|now| self.look_at(now)).unwrap_or_default()
    }

    fn look_at(&mut self, now: Vec<u16>) -> Vec<(u16, bool)> {
        let came = now.iter().filter(|cpu| !self.now.contains(cpu));
        let came: Vec<(u16, bool)> = came.map(|cpu| (*cpu, self.before.contains(cpu))).collect();
        self.before.extend(came.iter().filter(|(_, was_there)| !was_there).map(|(cpu, _)| *cpu));
        self.now = now;
        came
    }
}

/// CPUs of /proc/stat, which has a line of each that is online.
fn cpus_of_stat(stat: &str) -> Vec<u16> {
    stat.lines().filter_map(|line| line.split(' ').next()?.strip_prefix("cpu")?.parse().ok()).collect()
}

/// Reads a list like "0-3,6".
fn parse_cpu_list(text: &str) -> Vec<u16> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<u16>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// The process's threads and those of all its descendants, or the pid alone when `existing` is not wanted. A recorder that
/// the process itself started is none of them: it would record its own work.
pub fn of_tree(pid: i32, existing: bool) -> Vec<i32> {
    if !existing {
        return vec![pid];
    }
    let (mut threads, mut processes) = (Vec::new(), vec![pid]);
    while let Some(process) = processes.pop() {
        let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for tid in tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse::<i32>().ok()) {
            threads.push(tid);
            let children = fs::read_to_string(format!("/proc/{process}/task/{tid}/children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|child| child.parse::<i32>().ok());
            processes.extend(children.filter(|child| *child != std::process::id() as i32));
        }
    }
    threads
}

/// Size in KiB of one ring of one CPU: 1/512 of the memory that is available, shared by the CPUs, 1 to 16 MiB.
pub fn ring_kib_by_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available_kib: u64 = line.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(1 << 20);
    let cpus = online_cpus().len() as u64;
    (available_kib / 512 / cpus).clamp(1024, 16 * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_hold_ranges_and_single_numbers() {
        assert_eq!(parse_cpu_list("0-2,5,7-8"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(parse_cpu_list("x"), [0u16; 0]);
    }

    #[test]
    fn without_sys_the_cpus_are_those_of_proc() {
        assert_eq!(cpus_of_stat("cpu  9 9\ncpu0 4 4\ncpu12 5 5\nintr 0 cpu3\n"), [0, 12]);
        assert_eq!(cpus_of_stat(&proc::line("/proc/stat")), online_cpus());
    }

    #[test]
    fn a_cpu_that_comes_is_seen_once_and_known_again() {
        let mut cpus = Arrivals { now: vec![0, 1], before: vec![0, 1] };
        assert_eq!(cpus.look_at(vec![0, 1]), []);
        assert_eq!(cpus.look_at(vec![0]), []);
        assert_eq!(cpus.look_at(vec![0, 1, 2]), [(1, true), (2, false)]);
        assert_eq!(cpus.look_at(vec![0, 1, 2]), []);
        assert_eq!((cpus.look_at(vec![0]), cpus.look_at(vec![0, 2])), (vec![], vec![(2, true)]));
    }

    #[test]
    fn own_thread_is_in_own_tree() {
        // SAFETY: gettid takes nothing and cannot fail.
        let tid = unsafe { libc::gettid() };
        assert!(of_tree(std::process::id() as i32, true).contains(&tid));
    }
}
