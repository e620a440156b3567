//! Recommendations: a table of rules from cause to remedy, ranked by what the what-if expects of them.

use crate::{Cause, CauseShare, Explained, Recommendation};

/// A cause below this share of the tail gets no advice.
const SHARE_MIN: f64 = 0.05;

/// One rule.
struct Rule {
    cause: Cause,
    /// The detail must contain this.
    detail: &'static str,
    remedy: &'static str,
}

const fn rule(cause: Cause, detail: &'static str, remedy: &'static str) -> Rule {
    Rule { cause, detail, remedy }
}

/// The first rule that fits counts: special ones stand before general ones.
const RULES: &[Rule] = &[
    rule(
        Cause::Gil,
        "",
        "give the loop a process of its own (multiprocessing, or one process per node); if that cannot be, move the \
         holder's work into calls that release the GIL, or shorten sys.setswitchinterval",
    ),
    rule(
        Cause::Lock,
        "",
        "hold the lock for less: copy the data under it and do the work, the I/O and the sleep outside; where one side \
         must never wait, use a priority-inheritance mutex or a depth-1 mailbox",
    ),
    rule(
        Cause::Preempted,
        "",
        "give the loop's thread a real-time priority (chrt -f 50) or a CPU of its own (taskset, cpuset, isolcpus), and \
         move the thread that ran instead to another CPU",
    ),
    rule(
        Cause::Wakeup,
        "by ",
        "give the loop's thread a real-time priority (chrt -f 50), so that it runs as soon as it is woken, or keep the \
         thread that held its CPU off that CPU",
    ),
    rule(
        Cause::Wakeup,
        "",
        "keep the CPU from deep idle states: hold /dev/cpu_dma_latency at 0, or boot with idle=poll on the loop's CPU",
    ),
    rule(
        Cause::Throttled,
        "",
        "raise the cgroup's CPU quota (cpu.max) or its period's share, or take the loop out of the limited cgroup",
    ),
    rule(
        Cause::Io,
        "not recorded",
        "record the peer too (start it under the same taut record): the time is spent in a process that this recording \
         does not see",
    ),
    rule(
        Cause::Io,
        "",
        "take the waiting out of the loop: a reader thread of its own, a time-out, or the newest value",
    ),
    rule(
        Cause::Queued,
        "",
        "let only the newest message wait (a mailbox of depth 1), or give the slow handler a thread of its own",
    ),
    rule(
        Cause::TimerSlack,
        "late",
        "the timer interrupt came late: hold /dev/cpu_dma_latency at 0, and look for a busy host",
    ),
    rule(
        Cause::TimerSlack,
        "",
        "set the thread's timer slack to 1 ns (prctl PR_SET_TIMERSLACK), or give it a real-time policy, which has none",
    ),
    rule(
        Cause::Sleep,
        "",
        "wait for the event itself (a condition, a descriptor) instead of sleeping and looking again",
    ),
    rule(
        Cause::PageFault,
        "major",
        "lock the process's memory (mlockall(MCL_CURRENT|MCL_FUTURE)) after reading every file and page once at start",
    ),
    rule(
        Cause::PageFault,
        "",
        "touch the memory once at start and lock it (mlockall), and allocate nothing in the loop",
    ),
    rule(Cause::Disk, "", "write files from a thread of its own, and never fsync in the loop"),
    rule(
        Cause::Irq,
        "",
        "steer interrupts off the loop's CPU (/proc/irq/*/smp_affinity, rps_cpus of network devices, irqaffinity=)",
    ),
    rule(Cause::Stopped, "", "something stopped the process (SIGSTOP, a debugger, a frozen cgroup): find who sends it"),
    rule(Cause::Hypervisor, "", "the host took the CPU away: pin the virtual CPUs, or measure on the machine itself"),
    rule(Cause::Syscall, "", "make the call less often, or in another thread"),
    rule(Cause::Work, " in ", "the awaited thread computes: make its work shorter, or do not wait for it"),
    rule(Cause::Work, "", "the loop's own work is what is late: look at it with a CPU profiler (perf, py-spy)"),
    rule(
        Cause::Unknown,
        "",
        "record kernel events (taut record as root or with CAP_PERFMON) and look at the recording's notes for lost ones",
    ),
];

/// One recommendation for each cause of weight, most gain first.
pub(crate) fn recommend(explained: &Explained) -> Vec<Recommendation> {
    let mut found: Vec<Recommendation> = Vec::new();
    for share in weighty(&explained.causes) {
        let Some(rule) = RULES.iter().find(|r| r.cause == share.cause && share.detail.contains(r.detail)) else {
            continue;
        };
        let against = match share.cause {
            Cause::Lock => format!("lock:{}", share.detail),
            cause => cause.word().to_owned(),
        };
        if found.iter().any(|known| known.against == against) {
            continue;
        }
        let gain = explained.what_if.iter().find(|w| w.without == against).map_or(0.0, |w| w.gain);
        found.push(Recommendation {
            evidence: evidence(share, explained.tail_messages),
            remedy: rule.remedy.to_owned(),
            gain,
            verify: format!(
                "record again with the change and compare: the share of {against} must go, and p99 with it"
            ),
            against,
        });
    }
    found.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    found
}

/// Causes by their share over all details; of each, its largest detail.
fn weighty(causes: &[CauseShare]) -> Vec<&CauseShare> {
    let sum = |share: &CauseShare| -> f64 {
        let same =
            causes.iter().filter(|c| c.cause == share.cause && (c.cause != Cause::Lock || c.detail == share.detail));
        same.map(|c| c.tail_share).sum()
    };
    causes.iter().filter(|share| sum(share) >= SHARE_MIN && share.tail_share > 0.0).collect()
}

fn evidence(share: &CauseShare, tail: u64) -> String {
    let detail = if share.detail.is_empty() { String::new() } else { format!(" ({})", share.detail) };
    format!(
        "{}{detail} is {:.0} % of the tail: {:.3} ms in {tail} messages",
        share.cause.word(),
        100.0 * share.tail_share,
        share.time_ns as f64 / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cause: Cause, detail: &str) -> Vec<Recommendation> {
        let share = CauseShare { cause, detail: detail.into(), tail_share: 0.9, time_ns: 1, usual_ns: 0 };
        recommend(&Explained { causes: vec![share], tail_messages: 1, ..Explained::default() })
    }

    #[test]
    fn every_cause_has_a_remedy() {
        for cause in Cause::ALL {
            assert_eq!(of(cause, "").len(), 1, "{}", cause.word());
        }
    }

    #[test]
    fn every_rule_can_be_reached() {
        for (at, rule) in RULES.iter().enumerate() {
            let found = of(rule.cause, rule.detail);
            assert_eq!(found[0].remedy, rule.remedy, "rule {at} is hidden by an earlier one");
        }
    }

    #[test]
    fn what_gains_most_stands_first() {
        let share = |cause, tail_share| CauseShare { cause, tail_share, ..CauseShare::default() };
        let what_if = |without: &str, gain| crate::WhatIf { without: without.into(), gain, ..Default::default() };
        let explained = Explained {
            causes: vec![share(Cause::Work, 0.5), share(Cause::Gil, 0.46), share(Cause::Irq, 0.04)],
            what_if: vec![what_if("work", 0.1), what_if("gil", 0.4)],
            ..Explained::default()
        };
        let order: Vec<_> = recommend(&explained).into_iter().map(|r| (r.against, r.gain)).collect();
        assert_eq!(order, [("gil".into(), 0.4), ("work".into(), 0.1)]);
    }
}
