//! A laptop and a measurement, for the tests of the forms.

use taut_doctor::{Asked, Diagnosis, Measured, Root, Round, examine};
use taut_stats::Distribution;

/// One finding in each state and of each kind of remedy, and what else such a machine has.
pub fn laptop() -> Diagnosis {
    let text = "\
== /proc/cpuinfo ==
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Core(TM) i7-1165G7 @ 2.80GHz
flags\t\t: fpu tsc constant_tsc nonstop_tsc
== /proc/sys/kernel/osrelease ==
6.8.0-45-generic
== /proc/sys/kernel/version ==
#45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024
== /proc/cmdline ==
BOOT_IMAGE=/boot/vmlinuz-6.8.0-45-generic ro quiet splash preempt=voluntary
== /sys/kernel/mm/transparent_hugepage/enabled ==
[always] madvise never
== /sys/kernel/mm/transparent_hugepage/defrag ==
[always] defer defer+madvise madvise never
== /sys/devices/system/cpu/online ==
0-1
== /sys/devices/system/cpu/isolated ==

== /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor ==
powersave
== /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor ==
powersave
== /sys/devices/system/cpu/cpu0/cpufreq/scaling_driver ==
intel_pstate
== call:read /dev/cpu_dma_latency ==
2000000000
== call:audit_get ==
enabled=1
== call:clock_getres ==
1
== /proc/sys/kernel/sched_rt_runtime_us ==
950000
== /sys/kernel/tracing/ == EACCES
";
    let asked = Asked { interface: Some("enp3s0".into()), ..Asked::default() };
    examine(&Root::recorded(text).expect("a machine"), &asked)
}

/// Eight rounds in which the median fell to a quarter and the tail did what it liked.
pub fn measured() -> Measured {
    let round = |i: u64| Round {
        before_p50_ns: 80_000 + 4 * i,
        after_p50_ns: 20_000 + i,
        before_p99_ns: 200_000,
        after_p99_ns: if i.is_multiple_of(2) { 150_000 } else { 300_000 },
    };
    let distribution = |p50: u64| Distribution {
        n: 16_000,
        p50_ns: Some(p50),
        p90_ns: Some(p50 * 2),
        p99_ns: Some(210_000),
        max_ns: Some(4_000_000),
        ..Distribution::default()
    };
    Measured {
        id: "pm-qos",
        remedy: "hold /dev/cpu_dma_latency open with 0 while the loop runs".into(),
        cpus: vec![0, 1],
        policy: "other".into(),
        interval_ns: 1_000_000,
        rounds: (0..8).map(round).collect(),
        before: distribution(80_000),
        after: distribution(20_000),
        interrupted: false,
    }
}
