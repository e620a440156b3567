//! What is said of a probe's figures beside its headline: each form shows these sentences, none makes its own.

use taut_wakeup::{ExplainedWakeups, Findings, IdleState, LatePiece, LateWake, Stalls, Throttling, Tracers, Variant};

use super::{Sweep, sweeps};
use crate::words::{count, duration, maybe, percent, quantity};

/// What the two series are; beneath every table that has them.
pub(super) const SERIES: &str = "wakeups: each wake that happened (as cyclictest counts). cycles: every intended \
    cycle; one that a late wake ran over counts with the time until that wake (as jitterdebugger counts). both: no cycle \
    was run over, and they are the same. missed: cycles run over.";

/// Growth of what no slack explains that is more than the noise of a median: by this factor, and by this much.
const REST_GROWS_BY: f64 = 1.3;
const REST_GROWS_BY_NS: i64 = 3_000;

/// Less than so often what independent CPUs would show is no evidence.
const CHANCE: u64 = 3;

/// Stalls of all CPUs at once are the best witness of a hypervisor or firmware at work.
pub(super) fn stalls(stalls: &Stalls) -> String {
    let from = duration(stalls.threshold_ns);
    let all = if stalls.cpus == 2 { "both CPUs".to_owned() } else { format!("all {} CPUs", stalls.cpus) };
    let mut text = match (stalls.together, stalls.single) {
        (0, 0) => format!("No wake on {} CPUs was {from} late or later.", stalls.cpus),
        (0, single) => format!("No stall of {from} or more hit {all} at once; {}.", alone(single, stalls)),
        (together, single) => format!(
            "{} of {from} or more hit {all} at once, {} in all, the longest {}: {}; {}.",
            quantity(together, "stall"),
            duration(stalls.together_ns),
            duration(stalls.together_max_ns),
            together_by(stalls),
            alone(single, stalls),
        ),
    };
    text += &format!(" Meanwhile the kernel counted {} of steal time", duration(stalls.steal_ns));
    if stalls.together_ns > 2 * stalls.steal_ns.max(1) {
        text += ", which is weak evidence: it sees only part of what the CPUs lost";
    }
    text + "."
}

/// Whose doing it is that CPUs stall together.
fn together_by(stalls: &Stalls) -> String {
    if stalls.together_ns < CHANCE * stalls.by_chance_ns {
        return format!("about what chance gives CPUs that stall so often ({})", duration(stalls.by_chance_ns));
    }
    if !stalls.real_time {
        return "caused by the hypervisor, the firmware, or threads that keep all CPUs busy; `--policy fifo` \
                separates them"
            .into();
    }
    "that is the hypervisor's or the firmware's doing, not this system's".into()
}

fn alone(single: u64, stalls: &Stalls) -> String {
    match single {
        0 => "none hit a CPU alone".into(),
        n => format!("{n} hit one CPU alone ({} in all)", duration(stalls.single_ns)),
    }
}

/// What timerlat and osnoise say, each in a sentence.
pub(super) fn tracers(found: &Tracers) -> Vec<String> {
    let seconds = duration((found.watched_s * 1e9) as u64);
    let timerlat = found.timerlat.map(|t| {
        format!(
            "timerlat, {seconds}, {}: the timer's interrupt came {} late in the middle, {} at most; its SCHED_FIFO thread {} and \
             {}.",
            quantity(t.n, "timer"),
            duration(t.irq_p50_ns),
            duration(t.irq_max_ns),
            duration(t.thread_p50_ns),
            duration(t.thread_max_ns),
        )
    });
    let osnoise = found.osnoise.map(|o| {
        format!(
            "osnoise, {} of CPU time: {} taken ({}), {} at most at once; {} times by hardware or a hypervisor, {} by NMIs, {} by \
             interrupts, {} by softirqs, {} by threads.",
            duration(o.runtime_us * 1000),
            duration(o.noise_us * 1000),
            percent(o.noise_us as f64 / o.runtime_us.max(1) as f64),
            duration(o.max_us * 1000),
            count(o.hardware),
            count(o.nmi),
            count(o.irq),
            count(o.softirq),
            count(o.thread),
        )
    });
    [timerlat, osnoise].into_iter().flatten().chain(found.missing.iter().map(|why| format!("{why}."))).collect()
}

/// Whether the kernel takes time from real-time threads.
pub(super) fn throttling(found: &Throttling) -> String {
    let lost_ns: u64 = found.gaps_ns.iter().sum();
    let setting = match found.rt_runtime_us {
        Some(us) => format!("; sched_rt_runtime_us says {us}"),
        None => String::new(),
    };
    let gaps = match found.gaps_ns.iter().max() {
        None => "no gap of a millisecond".to_owned(),
        Some(longest) => format!(
            "{}, {} in all, the longest {}, of which the ordinary thread got {}",
            quantity(found.gaps_ns.len() as u64, "gap"),
            duration(lost_ns),
            duration(*longest),
            duration(found.hog_ns)
        ),
    };
    let said = crate::headline::capital(&found.sentence());
    format!("{said}. In {} of spinning: {gaps}{setting}.", duration(found.watched_ns))
}

/// Why longer sleeps wake later; `None` without a sweep over sleep lengths.
pub(super) fn slack(findings: &Findings) -> Option<String> {
    let sweeps = sweeps(findings);
    let grows = |sweep: &&Sweep<'_>| sweep.fits[sweep.fits.len() - 1].slack_ns > sweep.fits[0].slack_ns;
    let mut sentences = Vec::new();
    for sweep in sweeps.iter().filter(grows) {
        let longest = sweep.fits[sweep.fits.len() - 1];
        let of_sleep = (longest.slack_ns as f64 / longest.sleep_ns.max(1) as f64 * 1e4).round() / 1e4;
        sentences.push(format!(
            "Longer sleeps wake later with {} because the kernel gives it a slack that grows with the sleep: {} of it, which \
             at {} is {} of the {} measured.",
            sweep.way,
            percent(of_sleep),
            length(longest.sleep_ns),
            duration(longest.slack_ns),
            maybe(longest.p50_ns),
        ));
    }
    let steady: Vec<String> = sweeps
        .iter()
        .filter(|sweep| !grows(sweep))
        .map(|sweep| {
            let longest = sweep.fits[sweep.fits.len() - 1];
            let slack = if longest.slack_ns == 0 { "none".into() } else { duration(longest.slack_ns) };
            let late = maybe(longest.p50_ns);
            format!("{} (slack {slack}) was {late} late at {}", sweep.way, length(longest.sleep_ns))
        })
        .collect();
    if !steady.is_empty() {
        sentences.push(format!("The slack of these does not grow: {}.", steady.join(", ")));
    }
    sentences.extend(rest(&sweeps));
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Whether what is left without slack grows too: told by the way to sleep that has least of it.
fn rest(sweeps: &[Sweep<'_>]) -> Option<String> {
    let purest = sweeps.iter().min_by_key(|sweep| sweep.fits.iter().map(|fit| fit.slack_ns).sum::<u64>())?;
    let known: Vec<(u64, i64)> = purest.fits.iter().filter_map(|fit| Some((fit.sleep_ns, fit.rest_ns?))).collect();
    let ((shortest, from), (longest, to)) = (*known.first()?, *known.last()?);
    if shortest == longest {
        return None;
    }
    let (wake, span) = (&purest.way, format!("{} to {}", length(shortest), length(longest)));
    let (from_said, to_said) = (signed(from), signed(to));
    Some(if to - from > REST_GROWS_BY_NS && to as f64 > REST_GROWS_BY * from as f64 {
        format!(
            "What no slack explains grows as well, from {from_said} to {to_said} ({wake}, sleeps of {span}): \
             leaving deeper idle states and finding cold caches cost more the longer the CPU slept."
        )
    } else {
        format!(
            "What no slack explains does not grow: {from_said} and {to_said} ({wake}, sleeps of {span}), \
             so that a deeper sleep of the CPU is not the reason here."
        )
    })
}

/// A duration that may be negative: a timer that fired before its slack was used up leaves less than nothing.
pub(super) fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "−" } else { "" };
    format!("{sign}{}", duration(ns.unsigned_abs()))
}

/// A length as one would type it: "1 s", "100 µs".
pub(super) fn length(ns: u64) -> String {
    let text = duration(ns);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// What the lateness of the late ones was.
pub(super) fn explained(found: &ExplainedWakeups) -> String {
    let (late, recorded, over) = (found.late, count(found.recorded), duration(found.threshold_ns));
    let mut text = match late {
        0 => format!("None of {recorded} recorded wakes was {over} late or later."),
        _ => format!("{} of {recorded} recorded wakes came {over} late or later.", count(late)),
    };
    let all_ns: u64 = found.parts.iter().map(|part| part.ns).sum();
    let shares = found.parts.iter().map(|part| (part, part.ns as f64 / all_ns.max(1) as f64));
    let shares: Vec<String> = shares
        .filter(|(_, share)| *share >= 0.005)
        .take(4)
        .map(|(part, s)| format!("{} {}", part.what, percent(s)))
        .collect();
    if !shares.is_empty() {
        text += &format!(" Their lateness was {}.", shares.join(", "));
    }
    if let Some(party) = found.responsible.first() {
        let share = percent(party.ns as f64 / all_ns.max(1) as f64);
        let who = named(&party.kind, &party.name);
        text += &format!(" The largest part, {share}, went to {who}, in {}.", quantity(party.wakes, "wake"));
    }
    if found.lost_kernel_events > 0 {
        text += &format!(
            " {} were lost: what fell in those stretches is unknown.",
            quantity(found.lost_kernel_events, "kernel event")
        );
    }
    text
}

/// "timer late 11.9 ms (hypervisor or firmware), interrupt 90.0 µs (local_timer)", in order of time.
pub(super) fn pieces(wake: &LateWake) -> String {
    let piece = |LatePiece { what, who, ns }: &LatePiece| match who.as_str() {
        "" => format!("{what} {}", duration(*ns)),
        who => format!("{what} {} ({who})", duration(*ns)),
    };
    wake.parts.iter().map(piece).collect::<Vec<_>>().join(", ")
}

/// "HALT 17.9 s in 41 000 sleeps", most time first.
pub(super) fn idle(variant: &Variant) -> String {
    let mut states: Vec<&IdleState> = variant.idle_states.iter().filter(|state| state.entered > 0).collect();
    states.sort_by_key(|state| std::cmp::Reverse(state.ns));
    let words = |IdleState { name, entered, ns }: &&IdleState| {
        let name = name.split_once(' ').map_or(name.as_str(), |(_, name)| name);
        format!("{name} {} in {}", duration(*ns), quantity(*entered, "sleep"))
    };
    if states.is_empty() { "not visible".into() } else { states.iter().map(words).collect::<Vec<_>>().join(", ") }
}

/// "thread hog/1234"; an interrupt's name says itself what it is.
pub(super) fn named(kind: &str, name: &str) -> String {
    if kind == "irq" || name.starts_with(kind) { name.to_owned() } else { format!("{kind} {name}") }
}

/// How far the wakeups are from a normal distribution; `None` where there is too little to say.
pub(super) fn normality(variant: &Variant) -> Option<String> {
    let d = variant.all.wakeups.distribution();
    let (Some(mean), Some(sd), Some(max)) = (d.mean_ns, d.sd_ns, d.max_ns) else { return None };
    d.p50_ns?;
    if sd <= 0.0 {
        return None;
    }
    let away = (max as f64 - mean) / sd;
    // The largest of n normal samples lies below this (Cramér 1946, section 28.6).
    let normal = (2.0 * (d.n as f64).ln()).sqrt();
    let digits = usize::from(away < 10.0);
    let mut text = format!(
        "Mean {} and standard deviation {} do not say it: the latest wake lies {away:.digits$} standard deviations above \
         the mean, where {} normal samples would stay below {normal:.1}.",
        duration(mean.max(0.0) as u64),
        duration(sd as u64),
        count(d.n),
    );
    if away <= normal {
        text = format!(
            "The latest wake lies {away:.1} standard deviations above the mean, no further than {} normal samples would.",
            count(d.n)
        );
    }
    let modes = taut_stats::modes(&variant.all.wakeups.histogram());
    if modes.len() > 1 {
        text += &format!(" {}.", several_modes(&modes));
    }
    Some(text)
}

/// "The histogram has 3 modes, at 14.0 µs, 22.0 µs and 61.0 µs, 8.00 µs and 39.0 µs apart".
fn several_modes(modes: &[u64]) -> String {
    const NAMED: usize = 5;
    let gaps: Vec<u64> = modes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (least, most) = (gaps.iter().min().unwrap_or(&0), gaps.iter().max().unwrap_or(&0));
    let apart = if gaps.len() > 1 && *most as f64 <= 1.2 * *least as f64 {
        format!("about {} apart each, as if something ticked", duration(gaps.iter().sum::<u64>() / gaps.len() as u64))
    } else {
        format!("{} apart", listed(&gaps, NAMED - 1))
    };
    format!("The histogram has {} modes, at {}, {apart}", modes.len(), listed(modes, NAMED))
}

fn listed(values: &[u64], most: usize) -> String {
    let words: Vec<String> = values.iter().take(most).map(|ns| duration(*ns)).collect();
    match words.split_last() {
        _ if values.len() > most => format!("{} …", words.join(", ")),
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wakeup::sample;

    fn plain(text: &str) -> String {
        text.replace('\u{202f}', " ")
    }

    #[test]
    fn stalls_of_all_cpus_are_the_hypervisors_and_steal_is_weak_evidence() {
        let found = sample::two_ways().stalls.unwrap();
        assert_eq!(
            stalls(&found),
            "8 stalls of 300 µs or more hit both CPUs at once, 49.0 ms in all, the longest 12.0 ms: that is the hypervisor's \
             or the firmware's doing, not this system's; 26 hit one CPU alone (26.0 ms in all). Meanwhile the kernel counted \
             10.0 ms of steal time, which is weak evidence: it sees only part of what the CPUs lost."
        );
        let none = Stalls { threshold_ns: 300_000, cpus: 4, ..Stalls::default() };
        assert!(stalls(&none).starts_with("No wake on 4 CPUs was 300 µs late or later."));
        let single = Stalls { single: 1, single_ns: 400_000, ..none };
        assert!(stalls(&single).contains("hit all 4 CPUs at once; 1 hit one CPU alone (400 µs in all)"));
    }

    #[test]
    fn busy_cpus_and_chance_are_not_the_hypervisor() {
        let found = sample::two_ways().stalls.unwrap();
        assert!(stalls(&Stalls { real_time: false, ..found.clone() }).contains("`--policy fifo` separates them"));
        let often = Stalls { by_chance_ns: 20_000_000, ..found };
        assert!(stalls(&often).contains("about what chance gives CPUs that stall so often (20.0 ms)"));
    }

    #[test]
    fn throttling_is_told_by_gaps() {
        let text = throttling(&sample::two_ways().throttling.unwrap());
        assert!(text.ends_with("In 4.00 s of spinning: 4 gaps, 216 ms in all, the longest 54.0 ms, of which the ordinary thread got 212 ms; sched_rt_runtime_us says -1."), "{text}");
        let none = Throttling { watched_ns: 1_200_000_000, ..Throttling::default() };
        assert!(throttling(&none).ends_with(". In 1.20 s of spinning: no gap of a millisecond."));
    }

    #[test]
    fn the_kernels_tracers_have_a_sentence_each() {
        let timerlat = taut_wakeup::Timerlat {
            n: 5000,
            irq_p50_ns: 932,
            irq_max_ns: 2833,
            thread_p50_ns: 3070,
            thread_max_ns: 11_700,
        };
        let osnoise = taut_wakeup::Osnoise {
            runtime_us: 2_000_000,
            noise_us: 84_000,
            max_us: 74,
            hardware: 41,
            nmi: 0,
            irq: 2013,
            softirq: 34,
            thread: 4,
        };
        let both = Tracers { watched_s: 5.0, timerlat: Some(timerlat), osnoise: Some(osnoise), missing: Vec::new() };
        assert_eq!(
            tracers(&both).iter().map(|text| plain(text)).collect::<Vec<_>>(),
            [
                "timerlat, 5.00 s, 5 000 timers: the timer's interrupt came 932 ns late in the middle, 2.83 µs at most; its \
                 SCHED_FIFO thread 3.07 µs and 11.7 µs.",
                "osnoise, 2.00 s of CPU time: 84.0 ms taken (4.2 %), 74.0 µs at most at once; 41 times by hardware or a \
                 hypervisor, 0 by NMIs, 2 013 by interrupts, 34 by softirqs, 4 by threads.",
            ]
        );
        let missing = vec!["timerlat: not in this kernel (CONFIG_TIMERLAT_TRACER)".to_owned()];
        let none = Tracers { watched_s: 5.0, missing, ..Tracers::default() };
        assert_eq!(tracers(&none), ["timerlat: not in this kernel (CONFIG_TIMERLAT_TRACER)."]);
    }

    #[test]
    fn the_open_question_is_answered() {
        let text = slack(&sample::sweep()).unwrap();
        assert_eq!(
            text,
            "Longer sleeps wake later with select because the kernel gives it a slack that grows with the sleep: 0.1 % of it, \
             which at 1 s is 1.00 ms of the 1.04 ms measured. The slack of these does not grow: nanosleep (slack 50.0 µs) was \
             93.0 µs late at 1 s, timerfd (slack none) was 43.0 µs late at 1 s. What no slack explains grows as well, from 17.0 µs \
             to 43.0 µs (timerfd, sleeps of 100 µs to 1 s): leaving deeper idle states and finding cold caches cost more the \
             longer the CPU slept."
        );
        assert_eq!(slack(&sample::two_ways()), None, "ways side by side are no sweep");
    }

    #[test]
    fn a_rest_that_does_not_grow_clears_the_idle_states() {
        let mut findings = sample::sweep();
        findings.slack.iter_mut().for_each(|fit| fit.rest_ns = Some(20_000));
        assert!(slack(&findings).unwrap().ends_with("so that a deeper sleep of the CPU is not the reason here."));
        findings.slack.iter_mut().for_each(|fit| (fit.rest_ns, fit.p50_ns) = (None, None));
        assert!(slack(&findings).unwrap().contains("1.00 ms of the – measured"));
    }

    #[test]
    fn late_wakes_have_shares_and_a_responsible_party() {
        let text = plain(&explained(&sample::two_ways().explained.unwrap()));
        assert_eq!(
            text,
            "34 of 20 000 recorded wakes came 300 µs late or later. Their lateness was timer late 61.3 %, run queue 28.0 %, \
             interrupt 8.0 %, return to user 2.7 %. The largest part, 26.7 %, went to thread hog/1234, in 11 wakes."
        );
        let none = ExplainedWakeups { threshold_ns: 100_000, recorded: 5, lost_kernel_events: 2, ..Default::default() };
        let text = explained(&none);
        assert!(
            text.starts_with("None of 5 recorded wakes was 100 µs late or later. 2 kernel events were lost"),
            "{text}"
        );
    }

    #[test]
    fn a_far_maximum_and_two_modes_are_not_normal() {
        let late =
            (0..10_000).map(|i| if i == 5_000 { 9_000_000 } else { [20_000, 60_000][i % 2] + (i as u64 * 37) % 2_000 });
        let variant = sample::variant("", &[], 1_000_000_000, vec![late.collect()]);
        let text = plain(&normality(&variant).unwrap());
        assert!(
            text.contains("the latest wake lies 97 standard deviations") || text.contains("standard deviations above"),
            "{text}"
        );
        assert!(text.contains("10 000 normal samples would stay below 4.3. The histogram has 2 modes, at 2"), "{text}");
        assert_eq!(normality(&sample::variant("", &[], 1_000_000, vec![vec![5; 9]])), None);
    }

    #[test]
    fn modes_a_tick_apart_are_said_to_tick() {
        assert!(
            several_modes(&[1_000_000, 2_010_000, 3_000_000])
                .ends_with("about 1.00 ms apart each, as if something ticked")
        );
        assert!(
            several_modes(&[14_000, 22_000, 61_000])
                .ends_with("at 14.0 µs, 22.0 µs and 61.0 µs, 8.00 µs and 39.0 µs apart")
        );
        assert_eq!(listed(&[1, 2, 3], 2), "1 ns, 2 ns …");
    }

    #[test]
    fn lengths_are_as_typed() {
        assert_eq!([100_000, 1_500_000, 1_000_000_000].map(length), ["100 µs", "1.5 ms", "1 s"]);
    }
}
