//! Threads and CPUs of several hosts in one number space: those of the first host keep their numbers.

/// Thread and process numbers of another host are this much apart; the kernel's own stay below 2²².
const THREADS: i32 = 1 << 23;
/// CPU numbers of another host are this much apart.
const CPUS: u16 = 512;
/// Hosts that have numbers.
pub const MOST_HOSTS: u16 = 127;

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
