//! By how much CLOCK_MONOTONIC of this process is ahead of the kernel's: in a time namespace, as a container or a restored program may
//! have one. Kernel events and samples are on the kernel's. Its boot is another moment, too: /proc gives each reader start times by the
//! reader's own.

use std::fs;

/// Of the start times in /proc, on every architecture.
const TICK_NS: i128 = 10_000_000;

/// 0 outside a time namespace; negative where it is behind.
pub(crate) fn ahead_ns() -> i64 {
    fs::read_to_string("/proc/self/timens_offsets").map_or(0, |offsets| offset_ns(&offsets, "monotonic"))
}

/// Whether a process that read `started` as its own start time may be the one whose start time is `now` for us, though these differ:
/// by what its time namespace differs from ours. One that cannot be asked for the moment may be.
pub(crate) fn may_be_the_same(pid: i32, started: u64, now: u64) -> bool {
    let boot_ns = |process: &str| match fs::read_to_string(format!("/proc/{process}/timens_offsets")) {
        Ok(offsets) => Ok(offset_ns(&offsets, "boottime")),
        // The kernel has no such namespaces, or the process is gone.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => Ok(0),
        Err(error) => Err(error),
    };
    match (boot_ns(&pid.to_string()), boot_ns("self")) {
        (Ok(theirs_ns), Ok(ours_ns)) => is_apart_by(started, now, i128::from(theirs_ns) - i128::from(ours_ns)),
        _ => true,
    }
}

/// Whether two start times, in whole ticks, are so far apart.
fn is_apart_by(one: u64, other: u64, by_ns: i128) -> bool {
    let apart_ns = (i128::from(one) - i128::from(other)) * TICK_NS;
    apart_ns == by_ns || (by_ns != 0 && (apart_ns - by_ns).abs() < TICK_NS)
}

/// The same as a fact of the recording; empty outside.
pub(crate) fn fact() -> String {
    match ahead_ns() {
        0 => String::new(),
        ns => format!("monotonic {} s + {} ns", ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000)),
    }
}

/// "monotonic  1000  0": seconds and nanoseconds.
fn offset_ns(offsets: &str, clock: &str) -> i64 {
    let of_clock = offsets.lines().find_map(|line| line.strip_prefix(clock));
    let mut parts = of_clock.unwrap_or_default().split_whitespace().map(|part| part.parse::<i64>().unwrap_or(0));
    let (s, ns) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    s.saturating_mul(1_000_000_000).saturating_add(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_each_clock_is_read() {
        let offsets = "monotonic           1000         5\nboottime            2000         0\n";
        assert_eq!(
            (offset_ns(offsets, "monotonic"), offset_ns(offsets, "boottime")),
            (1_000_000_000_005, 2_000_000_000_000)
        );
        assert_eq!(offset_ns("boottime 7 0\nmonotonic -3 0\n", "monotonic"), -3_000_000_000);
        assert_eq!(offset_ns("", "monotonic"), 0);
    }

    #[test]
    fn start_times_of_two_namespaces_are_one_where_the_offsets_say_so() {
        // Without an offset nothing but the same tick.
        assert!(is_apart_by(500, 500, 0) && !is_apart_by(501, 500, 0));
        // 10 s and half a tick: the ticks may differ by either number.
        let by_ns = 10_005_000_000;
        assert_eq!([1499, 1500, 1501, 1502].map(|one| is_apart_by(one, 500, by_ns)), [false, true, true, false]);
        assert_eq!([1499, 1500, 1501, 1502].map(|other| is_apart_by(500, other, -by_ns)), [false, true, true, false]);
        // Whatever is in the file.
        assert!(!is_apart_by(u64::MAX, 0, i128::from(i64::MIN) - i128::from(i64::MAX)));
    }
}
