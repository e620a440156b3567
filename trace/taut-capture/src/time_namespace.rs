//! By how much CLOCK_MONOTONIC of this process is ahead of the kernel's: in a time namespace, as a container or a restored program may
//! have one. Kernel events and samples are on the kernel's.

use std::fs;

/// 0 outside a time namespace; negative where it is behind.
pub(crate) fn ahead_ns() -> i64 {
    let (s, ns) = fs::read_to_string("/proc/self/timens_offsets").map_or((0, 0), |offsets| monotonic(&offsets));
    s.saturating_mul(1_000_000_000).saturating_add(ns)
}

/// The same as a fact of the recording; empty outside.
pub(crate) fn fact() -> String {
    match ahead_ns() {
        0 => String::new(),
        ns => format!("monotonic {} s + {} ns", ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000)),
    }
}

/// "monotonic  1000  0": seconds and nanoseconds.
fn monotonic(offsets: &str) -> (i64, i64) {
    let of_clock = offsets.lines().find_map(|line| line.strip_prefix("monotonic"));
    let mut parts = of_clock.unwrap_or_default().split_whitespace().map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_monotonic_is_read() {
        assert_eq!(monotonic("monotonic           1000         5\nboottime            2000         0\n"), (1000, 5));
        assert_eq!(monotonic("boottime 7 0\nmonotonic -3 0\n"), (-3, 0));
        assert_eq!(monotonic(""), (0, 0));
    }
}
