//! Threads and CPUs of several hosts in one number space: those of the first host keep their numbers.

/// Thread and process numbers of another host are this much apart; the kernel's own stay below 2²².
const THREADS: i32 = 1 << 23;
/// CPU numbers of another host are this much apart.
const CPUS: u16 = 512;

/// The number of a thread or process of a host; 0 is the idle task on each.
pub fn thread_of(host: u16, number: i32) -> i32 {
    if number <= 0 { number } else { number.wrapping_add(i32::from(host).wrapping_mul(THREADS)) }
}

/// The host that a thread or process of this number is on.
pub fn host_of(thread: i32) -> u16 {
    u16::try_from(thread.max(0) / THREADS).unwrap_or(0)
}

/// The number that the thread or process has on its host.
pub fn own_number(thread: i32) -> i32 {
    if thread <= 0 { thread } else { thread % THREADS }
}

/// The number of a host's CPU.
pub fn cpu_of(host: u16, cpu: u16) -> u16 {
    cpu.wrapping_add(host.wrapping_mul(CPUS))
}

/// The host that a CPU of this number is on, and its number there.
pub fn host_and_cpu(cpu: u16) -> (u16, u16) {
    (cpu / CPUS, cpu % CPUS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_tells_its_host() {
        for host in [0, 1, 2, 100] {
            let thread = thread_of(host, 4_194_303);
            assert_eq!((host_of(thread), own_number(thread)), (host, 4_194_303));
            assert_eq!(host_and_cpu(cpu_of(host, 511)), (host, 511));
        }
        assert_eq!((thread_of(1, 0), thread_of(1, -1), host_of(-1), own_number(-1)), (0, -1, 0, -1));
    }
}
