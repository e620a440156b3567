//! Recommendations: a table of rules from cause to remedy, ranked by the gain that is sure.

use std::collections::BTreeMap;

use crate::{
    Cause, CauseShare, Chain, Contribution, Explained, Recommendation, SourceKind, ledger::Ledger, walk::Walker,
};

/// Unknown time below this share of the excess gets no recommendation.
const SHARE_MIN: f64 = 0.05;
/// The scheduler's priorities from here on are normal ones.
const NORMAL_MIN: i16 = 100;
/// A reason that drops less than this share of the messages is no finding.
const DROPPED_MIN: f64 = 0.01;

/// In a remedy: the thread that the cause made late, which has a name where that is known.
const LOOPS_THREAD: &str = "the loop's thread";

/// One rule.
struct Rule {
    cause: Cause,
    /// The detail must contain this.
    detail: &'static str,
    when: When,
    remedy: &'static str,
}

/// What else a rule needs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Always,
    /// The thread that the cause made late has a real-time priority, or a deadline.
    IsRealTime,
    /// The executor was busy with the callback that the message waited for: with an earlier message.
    IsOwnCallback,
}

const fn rule(cause: Cause, detail: &'static str, remedy: &'static str) -> Rule {
    Rule { cause, detail, when: When::Always, remedy }
}

const fn rule_when(cause: Cause, when: When, remedy: &'static str) -> Rule {
    Rule { cause, detail: "", when, remedy }
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
        "hold the lock for a shorter time: copy the data under it and do the work, the I/O and the sleep outside; where a \
         less urgent thread holds it, use a priority-inheritance mutex; where one side must never wait, a depth-1 mailbox",
    ),
    rule_when(
        Cause::Preempted,
        When::IsRealTime,
        "give the loop's thread a CPU of its own (taskset, cpuset, isolcpus), or move what took its CPU to another one; or give it a \
         higher priority than that has: it has a real-time one already",
    ),
    rule(
        Cause::Preempted,
        "",
        "give the loop's thread a real-time priority (chrt -f 50) or a CPU of its own (taskset, cpuset, isolcpus), and \
         move the thread that took its CPU to another one",
    ),
    Rule {
        cause: Cause::Wakeup,
        detail: "by ",
        when: When::IsRealTime,
        remedy: "keep what held its CPU off that CPU (taskset, cpuset, isolcpus), or give the loop's thread a higher priority than that has: it \
                 has a real-time one already. A thread without one was inside the kernel then, or had the 5 % that the kernel keeps for such \
                 threads where others with real-time priorities fill a CPU (sched_rt_runtime_us)",
    },
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
        " was busy with ",
        "give that work a thread or a process of its own (what an event loop runs: asyncio.to_thread), or divide it: messages \
         wait until it is done",
    ),
    rule(
        Cause::Queued,
        "",
        "make what the thread does for every message shorter, spread it over threads, send less often, or let only the newest \
         message wait (a mailbox of depth 1): it is too much load",
    ),
    rule_when(
        Cause::Executor,
        When::IsOwnCallback,
        "make that callback shorter, or remove what delays it, or let fewer messages come: it was still busy with the message before",
    ),
    rule(
        Cause::Executor,
        "",
        "make the callback that it is busy with shorter, or give one of them a callback group and a thread of its own (a multi-threaded \
         executor, or an executor for that node): the callback was ready and its executor was busy",
    ),
    rule(
        Cause::Partner,
        "",
        "let the topic that comes last come sooner: make its way shorter, or publish it more often. The message waited in \
         message_filters for that topic",
    ),
    rule(
        Cause::Network,
        "in the sender's kernel",
        "send less at once, or from a thread of its own: the system call that sends took the time",
    ),
    rule(
        Cause::Network,
        "",
        "look at the link's load, at other traffic in its queues, at retransmissions and at Wi-Fi power saving; send less at once, \
         or use a link of its own: the message was between the hosts",
    ),
    rule(
        Cause::TimerSlack,
        "late",
        "hold /dev/cpu_dma_latency at 0, and look for a busy host: the timer interrupt came late",
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
    rule(Cause::Stopped, "", "find what stopped the process: SIGSTOP, a debugger, or a frozen cgroup"),
    rule(Cause::Hypervisor, "", "pin the virtual CPUs, or measure on the machine itself: the host took the CPU away"),
    rule(Cause::Syscall, "", "make the call less often, or in another thread"),
    rule(Cause::Cpu, " in ", "make the awaited thread's work shorter, or do not wait for it"),
    rule(Cause::Cpu, "", "look at the loop's own work with a CPU profiler (perf, py-spy): it is what is late"),
    rule(
        Cause::Unknown,
        "were lost",
        "record again: what happened then is missing from this recording, and its notes say why",
    ),
    rule(
        Cause::Unknown,
        "",
        "record the running program with kernel events: taut record as root or with CAP_PERFMON, or another tool's trace with its kernel \
         part (a bag has none); where some were lost, a note of the recording names them",
    ),
];

/// By how the reason of a drop begins: reasons of ROS 2, which no rule of the program gives.
const REMEDIES_OF_DROPS: &[(&str, &str)] = &[
    (
        "overwritten",
        "free the executor from what it is busy with, or raise the depth of the subscription's QoS: newer messages pushed them out \
         of the subscription's queue before its executor took them",
    ),
    (
        "superseded",
        "run the callback that reads them more often, or publish them less often, if each one counts: a newer one replaced them before \
         it was read",
    ),
    (
        "not_taken",
        "look whether the subscription is best-effort, which may lose them, or its node ended, which leaves what is in its queue: \
         they were published and not taken",
    ),
];
const REMEDY_OF_A_RULE: &str = "check whether the rule is meant to reject them, and what makes them so";

/// The thread that a cause made late.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateThread {
    name: String,
    /// Of the tail's time in the cause, so much is the thread's (0..1).
    share: f64,
    is_real_time: bool,
}

/// A thread that has nearly all of a cause's time is the one that it is about.
const NEARLY_ALL: f64 = 0.9;

impl LateThread {
    fn shown(&self) -> String {
        match self.share {
            NEARLY_ALL.. => format!("the thread {}", self.name),
            share => {
                format!("the thread {} (it has {:.0} % of that time, other threads the rest)", self.name, 100.0 * share)
            }
        }
    }
}

/// By cause: the thread from which it took most of the tail's time. Of some causes, as of the network, that is no thread.
pub(crate) fn late_threads(ledger: &Ledger, walker: &Walker<'_>) -> BTreeMap<Cause, LateThread> {
    let mut late: BTreeMap<Cause, BTreeMap<i32, (u64, u64)>> = BTreeMap::new();
    for (row, kind, ns) in ledger.amounts_of_tail() {
        let (sum, at_ns) = late.entry(kind.cause).or_default().entry(kind.tid).or_default();
        (*sum, *at_ns) = (*sum + ns, row.start_ns);
    }
    let most = |(cause, threads): (Cause, BTreeMap<i32, (u64, u64)>)| {
        let all: u64 = threads.values().map(|(sum, _)| sum).sum();
        let (tid, (sum, at_ns)) = threads.into_iter().max_by_key(|(_, (sum, _))| *sum)?;
        let name = walker.objects.name(tid, at_ns);
        let priority = walker.timelines.threads.get(&tid).and_then(|timeline| timeline.priority);
        let is_real_time = priority.is_some_and(|priority| priority < NORMAL_MIN);
        let share = sum as f64 / all.max(1) as f64;
        (tid > 0 && !name.is_empty()).then(|| (cause, LateThread { name: name.into_owned(), share, is_real_time }))
    };
    late.into_iter().filter_map(most).collect()
}

/// What was dropped in numbers, most first; then one recommendation for each cause that contributes, the most sure gain first.
/// `late`: by cause, the thread to which a remedy is to be applied.
pub(crate) fn recommend(
    explained: &Explained,
    chain: &Chain,
    late: &BTreeMap<Cause, LateThread>,
) -> Vec<Recommendation> {
    let mut found: Vec<(f64, Recommendation)> = Vec::new();
    for share in &explained.causes {
        let against = match share.cause {
            Cause::Lock => format!("lock:{}", share.detail),
            cause => cause.word().to_owned(),
        };
        let thread = late.get(&share.cause);
        let holds = |when: When| match when {
            When::Always => true,
            When::IsRealTime => thread.is_some_and(|thread| thread.is_real_time),
            When::IsOwnCallback => waits_for_its_own_callback(explained, chain, share),
        };
        let fits = |r: &&Rule| r.cause == share.cause && share.detail.contains(r.detail) && holds(r.when);
        let Some(rule) = RULES.iter().find(fits) else { continue };
        // The first detail of a cause is its largest: that decides the remedy.
        if found.iter().any(|(_, known)| known.against == against) || !contributes(explained, share, &against) {
            continue;
        }
        let prediction = explained.predictions.iter().find(|of| of.without == against);
        let recommendation = Recommendation {
            evidence: evidence(share, &against, explained),
            remedy: thread.map_or_else(
                || rule.remedy.to_owned(),
                |thread| rule.remedy.replacen(LOOPS_THREAD, &thread.shown(), 1),
            ),
            gain: prediction.map_or(0.0, |of| of.gain),
            verify: format!("record again with the change and compare: the share of {against} must go"),
            against,
        };
        found.push((prediction.map_or(f64::NEG_INFINITY, |of| of.sure_gain()), recommendation));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    dropped(chain).into_iter().chain(found.into_iter().map(|(_, recommendation)| recommendation)).collect()
}

/// Whether there is something to gain: by the result for the cause, or, where it cannot be judged (`unknown`), by its share.
fn contributes(explained: &Explained, share: &CauseShare, against: &str) -> bool {
    match explained.hypotheses.iter().find(|hypothesis| hypothesis.hypothesis == against) {
        Some(hypothesis) => hypothesis.result == Contribution::Contributes,
        None => {
            share.cause == Cause::Unknown
                && whole(explained, share.cause).map_or(0.0, |all| all.tail_share) >= SHARE_MIN
        }
    }
}

/// Whether the executor was busy with the callback to which the hop leads that waited longest for it.
fn waits_for_its_own_callback(explained: &Explained, chain: &Chain, share: &CauseShare) -> bool {
    let Some(callback) = share.detail.strip_prefix("busy with ") else { return false };
    let of_hop = |hop: &Vec<CauseShare>| {
        hop.iter()
            .filter(|of| (of.cause, &of.detail) == (share.cause, &share.detail))
            .map(|of| of.tail_share)
            .sum::<f64>()
    };
    let shares = explained.hops.iter().map(of_hop).enumerate();
    let longest = shares.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, share)| *share > 0.0);
    let Some((at, _)) = longest else { return false };
    // Between what it waited for and the callback lies at most the taking.
    chain.points.iter().skip(at + 1).take(2).any(|point| point.name == callback)
}

fn whole(explained: &Explained, cause: Cause) -> Option<&CauseShare> {
    explained.by_cause.iter().find(|all| all.cause == cause)
}

/// The evidence is of all that the recommendation is against, as the prediction is.
fn evidence(share: &CauseShare, against: &str, explained: &Explained) -> String {
    let all = match share.cause {
        Cause::Lock => share,
        cause => whole(explained, cause).unwrap_or(share),
    };
    let party = share.cause.party(&share.detail);
    let most = match party.is_empty() || share.cause == Cause::Lock {
        true => String::new(),
        false if share.tail_share > 0.95 * all.tail_share => format!(" ({party})"),
        false => format!(", {:.0} % {party}", 100.0 * share.tail_share),
    };
    let each = match all.excess_ns / explained.tail_messages.max(1) {
        ns @ ..1_000 => format!("{ns} ns"),
        ns @ ..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        ns => format!("{:.1} ms", ns as f64 / 1e6),
    };
    format!(
        "{against} is {:.0} % of the excess{most}: {each} more than is typical on average over all {} late messages, of which {} have it",
        100.0 * all.tail_share,
        explained.tail_messages,
        all.messages
    )
}

/// Messages that never arrive are later than any.
fn dropped(chain: &Chain) -> Vec<Recommendation> {
    let weighty =
        chain.outcomes.dropped.iter().filter(|(_, n)| *n as f64 >= DROPPED_MIN * chain.messages as f64 && *n > 0);
    let one = |(reason, n): &(String, u64)| Recommendation {
        against: format!("dropped:{reason}"),
        evidence: format!(
            "{:.1} % of the messages ({n} of {}) were dropped for {reason}",
            100.0 * *n as f64 / chain.messages.max(1) as f64,
            chain.messages
        ),
        remedy: REMEDIES_OF_DROPS
            .iter()
            .find(|(begin, _)| chain.source == SourceKind::Ros && reason.starts_with(begin))
            .map_or(REMEDY_OF_A_RULE, |(_, remedy)| remedy)
            .into(),
        gain: 0.0,
        verify: format!("record again with the change and compare the messages dropped for {reason}"),
    };
    weighty.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hypothesis, Outcomes};

    fn judged(causes: Vec<CauseShare>) -> Explained {
        let hypothesis = |share: &CauseShare| Hypothesis {
            hypothesis: match share.cause {
                Cause::Lock => format!("lock:{}", share.detail),
                cause => cause.word().into(),
            },
            result: if share.tail_share >= 0.05 { Contribution::Contributes } else { Contribution::DoesNotContribute },
            ..Hypothesis::default()
        };
        let is_judged = |share: &&CauseShare| share.cause != Cause::Unknown;
        let hypotheses = causes.iter().filter(is_judged).map(hypothesis).collect();
        Explained { hypotheses, by_cause: causes.clone(), causes, tail_messages: 1, ..Explained::default() }
    }

    fn of(cause: Cause, detail: &str) -> Vec<Recommendation> {
        let share = CauseShare { cause, detail: detail.into(), tail_share: 0.9, time_ns: 1, ..CauseShare::default() };
        recommend(&judged(vec![share]), &Chain::default(), &BTreeMap::new())
    }

    #[test]
    fn every_cause_has_a_remedy() {
        for cause in Cause::ALL {
            assert_eq!(of(cause, "").len(), 1, "{}", cause.word());
        }
    }

    #[test]
    fn a_remedy_names_the_thread() {
        let share =
            CauseShare { cause: Cause::Preempted, detail: "by hog/9".into(), tail_share: 0.9, ..CauseShare::default() };
        let mut late = BTreeMap::from([
            (Cause::Preempted, LateThread { name: "ctrl/7".to_owned(), share: 1.0, is_real_time: false }),
            (Cause::Gil, LateThread { name: "other/8".to_owned(), share: 1.0, is_real_time: false }),
        ]);
        let mut remedy = |is_real_time| {
            late.get_mut(&Cause::Preempted).unwrap().is_real_time = is_real_time;
            recommend(&judged(vec![share.clone()]), &Chain::default(), &late).remove(0).remedy
        };
        assert!(remedy(false).starts_with("give the thread ctrl/7 a real-time priority"), "{}", remedy(false));
        assert!(remedy(true).starts_with("give the thread ctrl/7 a CPU of its own"), "{}", remedy(true));
        assert!(!remedy(true).contains("chrt"), "it has what that gives");
        let share = CauseShare { cause: Cause::Wakeup, detail: "by hog/9".into(), ..share.clone() };
        let late =
            BTreeMap::from([(Cause::Wakeup, LateThread { name: "ctrl/7".to_owned(), share: 0.6, is_real_time: true })]);
        let of_wakeup = recommend(&judged(vec![share]), &Chain::default(), &late).remove(0).remedy;
        assert!(of_wakeup.contains("sched_rt_runtime_us") && !of_wakeup.contains("chrt"), "{of_wakeup}");
    }

    #[test]
    fn an_executor_that_is_busy_with_the_message_before_has_no_other_callback() {
        let share = CauseShare {
            cause: Cause::Executor,
            detail: "busy with /a callback /x".into(),
            tail_share: 0.9,
            ..CauseShare::default()
        };
        let point = |name: &str| crate::Point { name: name.into(), ..Default::default() };
        let points = ["/s publish /x", "/a receive /x", "/a take /x", "/a callback /x", "/b callback /y"];
        let chain = Chain { points: points.map(point).into(), ..Chain::default() };
        let remedy = |hop: usize| {
            let mut hops = vec![Vec::new(); 4];
            hops[hop].push(share.clone());
            let explained = Explained { hops, ..judged(vec![share.clone()]) };
            recommend(&explained, &chain, &BTreeMap::new()).remove(0).remedy
        };
        assert!(remedy(1).contains("still busy with the message before"), "{}", remedy(1));
        assert!(remedy(3).contains("the callback that it is busy with"), "{}", remedy(3));
    }

    #[test]
    fn every_rule_can_be_reached() {
        for (at, rule) in RULES.iter().enumerate().filter(|(_, rule)| rule.when == When::Always) {
            let found = of(rule.cause, rule.detail);
            assert_eq!(found[0].remedy, rule.remedy, "rule {at} is hidden by an earlier one");
        }
    }

    #[test]
    fn what_gains_most_stands_first_and_what_does_not_contribute_nowhere() {
        let share = |cause, tail_share| CauseShare { cause, tail_share, ..CauseShare::default() };
        let predictions =
            |without: &str, gain| crate::Prediction { without: without.into(), gain, ..Default::default() };
        let explained = Explained {
            predictions: vec![predictions("cpu", 0.1), predictions("gil", 0.4), predictions("irq", 0.9)],
            ..judged(vec![share(Cause::Cpu, 0.5), share(Cause::Gil, 0.46), share(Cause::Irq, 0.04)])
        };
        let order: Vec<_> = recommend(&explained, &Chain::default(), &BTreeMap::new())
            .into_iter()
            .map(|r| (r.against, r.gain))
            .collect();
        assert_eq!(order, [("gil".into(), 0.4), ("cpu".into(), 0.1)]);
    }

    #[test]
    fn messages_that_a_rule_drops_come_first() {
        let outcomes = Outcomes { dropped: vec![("timing".into(), 249), ("rare".into(), 1)], ..Outcomes::default() };
        let chain = Chain { messages: 1000, outcomes, ..Chain::default() };
        let gil = CauseShare { cause: Cause::Gil, tail_share: 0.9, ..CauseShare::default() };
        let found = recommend(&judged(vec![gil]), &chain, &BTreeMap::new());
        assert_eq!(found[0].evidence, "24.9 % of the messages (249 of 1000) were dropped for timing");
        assert_eq!(found.iter().map(|r| r.against.as_str()).collect::<Vec<_>>(), ["dropped:timing", "gil"]);
    }

    #[test]
    fn what_a_queue_pushed_out_is_no_rule_s_work() {
        let remedy = |reason: &str, source| {
            let outcomes = Outcomes { dropped: vec![(reason.into(), 5)], ..Outcomes::default() };
            let chain = Chain { messages: 100, outcomes, source, ..Chain::default() };
            recommend(&judged(Vec::new()), &chain, &BTreeMap::new()).remove(0).remedy
        };
        let of_ros = |reason| remedy(reason, SourceKind::Ros);
        assert!(of_ros("overwritten (depth 1)").contains("depth of the subscription's QoS"));
        assert!(of_ros("superseded").starts_with("run the callback that reads them more often"));
        assert_eq!(remedy("superseded", SourceKind::Stamps), REMEDY_OF_A_RULE, "a reason of the program's own");
    }

    #[test]
    fn evidence_and_prediction_are_of_the_same_whole() {
        let share = |detail: &str, tail_share| CauseShare {
            cause: Cause::Gil,
            detail: detail.into(),
            tail_share,
            excess_ns: 4_500_000,
            messages: 4,
            ..CauseShare::default()
        };
        let mut explained = judged(vec![share("held by a", 0.3), share("held by b", 0.25)]);
        explained.by_cause = vec![CauseShare { tail_share: 0.55, messages: 7, ..share("", 0.55) }];
        explained.tail_messages = 9;
        let found = recommend(&explained, &Chain::default(), &BTreeMap::new());
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].evidence,
            "gil is 55 % of the excess, 30 % held by a: 500.0 µs more than is typical on average over all 9 late messages, of which 7 have it"
        );
        explained.by_cause[0].excess_ns = 270;
        let found = recommend(&explained, &Chain::default(), &BTreeMap::new());
        assert!(found[0].evidence.contains(": 30 ns more than is typical"), "{}", found[0].evidence);
    }
}
