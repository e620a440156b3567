//! The sentences at the top of every view of a probe: may a loop of this rate run here, and which way of
//! waking is best?

use taut_stats::Distribution;
use taut_wakeup::{Compared, Findings, Variant};

use super::sentences;
use crate::words::{count, duration, hertz, maybe, percent, quantity};

/// Below this share of missed cycles a loop may be content, if a missed cycle does it no harm.
const MISSED_NOW_AND_THEN: f64 = 1e-3;
/// Variants that a sentence names.
const NAMED_MAX: usize = 3;
/// No event in n trials: at 95 % its rate lies below 3/n (Hanley & Lippman-Hand, JAMA 1983).
const RULE_OF_THREE: u64 = 3;

/// Two to four sentences.
pub(super) fn headline(findings: &Findings) -> String {
    if let Some(answer) = sentences::slack(findings) {
        return answer;
    }
    let Some(first) = findings.variants.first() else { return "Nothing was measured.".to_owned() };
    let mut text = expectation(first);
    if let Some(comparison) = comparison(&findings.variants) {
        text += &format!(" {comparison}");
    }
    text
}

/// Whether a loop at the variant's rate may be expected to hold, from its cycles.
pub(super) fn expectation(variant: &Variant) -> String {
    let cycles = variant.all.cycles.distribution();
    let with = if variant.label.is_empty() { String::new() } else { format!(" with {}", variant.label) };
    if variant.interval_ns == 0 || cycles.n == 0 {
        let wakeups = variant.all.wakeups.distribution();
        return format!("{} wakeups{with}: {}.", count(wakeups.n), lateness(&wakeups, 0));
    }
    format!(
        "{} from this machine{with}: {}. {} {}.",
        hertz(variant.interval_ns),
        answer(variant, &cycles),
        misses(variant, cycles.n),
        crate::headline::capital(&lateness(&cycles, variant.interval_ns)),
    )
}

fn answer(variant: &Variant, cycles: &Distribution) -> String {
    let (missed, latest, interval) = (variant.all.missed, cycles.max_ns.unwrap_or(0), variant.interval_ns);
    let tells = format!("as far as {} can tell", duration(loop_time_ns(variant, cycles.n)));
    match missed as f64 / cycles.n as f64 {
        0.0 if cycles.p90_ns.is_none() => "too few cycles to say".into(),
        0.0 if latest <= interval / 10 => format!("yes, with room to spare, {tells}"),
        0.0 if latest <= interval / 2 => format!("yes, {tells}"),
        0.0 => format!("barely, {tells}"),
        share if share < MISSED_NOW_AND_THEN => "only if a missed cycle now and then does no harm".into(),
        _ => "no".into(),
    }
}

/// How often a cycle was missed, and what that means when none was.
fn misses(variant: &Variant, n: u64) -> String {
    match variant.all.missed {
        0 => {
            let expect = unseen(variant, n).map(|bound| format!(": expect less than one per {bound}"));
            format!("None of {} cycles was missed{}.", count(n), expect.unwrap_or_default())
        }
        missed => format!(
            "{} of {} cycles {} missed, on average one per {} of such a loop.",
            count(missed),
            count(n),
            if missed == 1 { "was" } else { "were" },
            duration((n as f64 * variant.interval_ns as f64 / missed as f64) as u64)
        ),
    }
}

/// Of a loop that missed no cycle, the time in which it may miss one: "4.00 s of such a loop (95 %)"; `None` of so few cycles that each may be
/// missed.
fn unseen(variant: &Variant, n: u64) -> Option<String> {
    let bound_ns = loop_time_ns(variant, n) / RULE_OF_THREE;
    (bound_ns >= variant.interval_ns).then(|| format!("{} of such a loop (95 %)", duration(bound_ns)))
}

/// How long one loop ran: stalls hit all CPUs at once, so that cycles of several CPUs are no more time than one's.
fn loop_time_ns(variant: &Variant, n: u64) -> u64 {
    (n / variant.cpus.len().max(1) as u64).saturating_mul(variant.interval_ns)
}

/// "half began at most 54 µs late, one in 100 over 287 µs, …, the latest 303 µs (30 % of the interval)".
fn lateness(d: &Distribution, interval_ns: u64) -> String {
    let mut parts = Vec::new();
    parts.extend(d.p50_ns.map(|p50| format!("half began at most {} late", duration(p50))));
    parts.extend(d.p99_ns.map(|p99| format!("one in 100 over {}", duration(p99))));
    parts.extend(d.p999_ns.map(|p999| format!("one in 1000 over {}", duration(p999))));
    if d.p99_ns.is_none() {
        parts.extend(d.p90_ns.map(|p90| format!("one in 10 over {}", duration(p90))));
    }
    let late = if parts.is_empty() { " late" } else { "" };
    let of_interval = match (d.max_ns, interval_ns) {
        (None, _) | (_, 0) => String::new(),
        (Some(max), interval) if max < interval => {
            format!(" ({} of the interval)", percent(max as f64 / interval as f64))
        }
        (Some(max), interval) => format!(" ({:.1} intervals)", max as f64 / interval as f64),
    };
    parts.push(format!("the latest {}{late}{of_interval}", maybe(d.max_ns)));
    parts.join(", ")
}

/// What several variants side by side say.
fn comparison(variants: &[Variant]) -> Option<String> {
    let (first, others) = variants.split_first()?;
    if others.is_empty() {
        return None;
    }
    if is_same_thing(variants) {
        return same_thing(variants);
    }
    if others.iter().any(|other| other.interval_ns != first.interval_ns) {
        return shortest_without_a_miss(variants);
    }
    let compared = taut_wakeup::compared(variants);
    let known: Vec<(&Variant, Compared)> = others.iter().zip(compared).filter_map(|(v, c)| Some((v, c?))).collect();
    let Some((_, any)) = known.first() else {
        return Some(format!("No difference from {} is shown: without rounds there is no interval.", first.label));
    };
    if known.iter().all(|(_, compared)| compared.interval.is_none()) {
        return Some(format!(
            "No difference from {} is shown: {} carry no interval; --rounds 10 does.",
            first.label,
            quantity(any.rounds as u64, "round")
        ));
    }
    type Is = fn(&Compared) -> bool;
    let sentences: [(&str, Is); 3] = [
        ("Earlier than", Compared::is_earlier),
        ("Later than", Compared::is_later),
        ("No difference is shown from", |compared| !compared.is_earlier() && !compared.is_later()),
    ];
    let sentence = |(words, is): &(&str, Is)| {
        let mut those: Vec<_> = known.iter().filter(|(_, compared)| is(compared)).collect();
        those.sort_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
        let named: Vec<String> =
            those.iter().take(NAMED_MAX).map(|(v, c)| format!("{} {}", v.label, interval(c))).collect();
        let more =
            if those.len() > NAMED_MAX { format!(", and {} more", those.len() - NAMED_MAX) } else { String::new() };
        let (figure, rounds) = (any.figure, any.rounds);
        (!named.is_empty())
            .then(|| format!("{words} {} at {figure} over {rounds} rounds: {}{more}.", first.label, named.join(", ")))
    };
    Some(sentences.iter().filter_map(sentence).collect::<Vec<_>>().join(" "))
}

/// "× 0.40 (0.38 to 0.43)".
fn interval(compared: &Compared) -> String {
    let interval = compared.interval.map_or("no interval".into(), |(low, high)| format!("{low:.2} to {high:.2}"));
    format!("× {:.2} ({interval})", compared.ratio)
}

/// Whether the variants are the same settings measured again.
pub(super) fn is_same_thing(variants: &[Variant]) -> bool {
    variants.len() > 1
        && variants.windows(2).all(|pair| pair[0].settings == pair[1].settings && pair[0].interval_ns > 0)
}

fn same_thing(variants: &[Variant]) -> Option<String> {
    let factor = |of: fn(&Distribution) -> Option<u64>| {
        let values: Option<Vec<u64>> = variants.iter().map(|v| of(&v.all.wakeups.distribution())).collect();
        let values = values?;
        Some(*values.iter().max()? as f64 / (*values.iter().min()?).max(1) as f64)
    };
    let mut factors = Vec::new();
    factors.extend(factor(|d| d.p50_ns).map(|f| format!("{f:.2} at p50")));
    factors.extend(factor(|d| d.p90_ns).map(|f| format!("{f:.2} at p90")));
    factors.extend(factor(|d| d.p99_ns).map(|f| format!("{f:.2} at p99")));
    factors.extend(factor(|d| d.max_ns).map(|f| format!("{f:.2} at the maximum")));
    (!factors.is_empty()).then(|| {
        format!(
            "The same thing measured again differs by a factor of {} here: a smaller difference between two runs is no news.",
            factors.join(", ")
        )
    })
}

fn shortest_without_a_miss(variants: &[Variant]) -> Option<String> {
    let measured = |v: &&Variant| v.interval_ns > 0 && v.all.cycles.distribution().n > 0;
    let intervals = variants.iter().filter(measured).count();
    let held = variants.iter().filter(measured).filter(|v| v.all.missed == 0).min_by_key(|v| v.interval_ns);
    match held {
        Some(variant) => {
            let n = variant.all.cycles.distribution().n;
            let expect = match unseen(variant, n) {
                Some(bound) => format!("expect less than one miss per {bound}"),
                None => "too few to expect anything of it".to_owned(),
            };
            Some(format!(
                "The shortest of {intervals} intervals without a missed cycle: {} ({}), in {}: {expect}.",
                duration(variant.interval_ns),
                hertz(variant.interval_ns),
                quantity(n, "cycle")
            ))
        }
        None if intervals > 0 => Some(format!("None of {intervals} intervals went without a missed cycle.")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wakeup::sample;

    fn plain(text: &str) -> String {
        text.replace('\u{202f}', " ")
    }

    /// Lateness in µs of cycles 1 ms apart, each a wake.
    fn loop_of(late_us: impl Iterator<Item = u64>) -> Variant {
        sample::variant("", &[("interval", "1ms")], 1_000_000, vec![late_us.map(|us| us * 1000).collect()])
    }

    #[test]
    fn no_miss_is_a_bound_and_never_zero() {
        let text = plain(&expectation(&loop_of((0..12_000).map(|i| 20 + i % 50))));
        assert_eq!(
            text,
            "1 kHz from this machine: yes, with room to spare, as far as 12.0 s can tell. None of 12 000 cycles was missed: \
             expect less than one per 4.00 s of such a loop (95 %). Half began at most 44.0 µs late, one in 100 over 69.0 µs, \
             one in 1000 over 69.0 µs, the latest 69.0 µs (6.9 % of the interval)."
        );
    }

    #[test]
    fn misses_are_counted_by_time() {
        let late = (0..10_000).map(|i| if i % 2_000 == 1_999 { 2_500 } else { 30 });
        let text = plain(&expectation(&loop_of(late)));
        assert!(
            text.starts_with("1 kHz from this machine: only if a missed cycle now and then does no harm. 10 of 10 0"),
            "{text}"
        );
        assert!(
            text.contains("on average one per 1.00 s of such a loop") && text.contains("(2.5 intervals)"),
            "{text}"
        );
        let text = expectation(&loop_of((0..10_000).map(|i| if i % 100 == 99 { 2_500 } else { 30 })));
        assert!(text.starts_with("1 kHz from this machine: no. "), "{text}");
    }

    #[test]
    fn room_decides_between_yes_and_barely() {
        let answer = |latest| expectation(&loop_of((0..5_000).map(|i| if i == 77 { latest } else { 30 })));
        assert!(answer(400).contains(": yes, as far"));
        assert!(answer(800).contains(": barely, as far"));
    }

    #[test]
    fn too_little_says_so() {
        assert!(
            expectation(&loop_of([30, 40].into_iter()))
                .contains("too few cycles to say. None of 2 cycles was missed. The latest")
        );
        assert_eq!(headline(&Findings::default()), "Nothing was measured.");
        let read = Variant { label: "old.hlog".into(), ..Variant::default() };
        assert_eq!(expectation(&read), "0 wakeups with old.hlog: the latest – late.");
    }

    #[test]
    fn cycles_of_two_cpus_are_the_time_of_one() {
        let late = || (0..6_000).map(|i| 20_000 + i % 50).collect::<Vec<u64>>();
        let text = expectation(&sample::variant("", &[], 1_000_000, vec![late(), late()]));
        assert!(text.contains("as far as 6.00 s can tell") && text.contains("less than one per 2.00 s"), "{text}");
    }

    #[test]
    fn variants_are_compared_at_p99() {
        let text = plain(&headline(&sample::two_ways()));
        assert!(text.starts_with("1 kHz from this machine with wake=nanosleep: "), "{text}");
        assert!(text.contains("Earlier than wake=nanosleep at p99 over 10 rounds: wake=timerfd × 0."), "{text}");
        let mut findings = sample::two_ways();
        // The same whole runs, but in rounds that do not agree.
        findings.variants[1].turns.iter_mut().step_by(2).for_each(|turn| turn.p99_ns = Some(900_000));
        let text = plain(&headline(&findings));
        assert!(
            text.contains("No difference is shown from wake=nanosleep at p99 over 10 rounds: wake=timerfd × "),
            "{text}"
        );
        findings.variants[0].turns.truncate(4);
        let text = plain(&headline(&findings));
        assert!(
            text.ends_with("No difference from wake=nanosleep is shown: 4 rounds carry no interval; --rounds 10 does."),
            "{text}"
        );
    }

    #[test]
    fn the_same_thing_again_is_the_machines_own_band() {
        let again = |label: &str, base: u64| {
            sample::variant(
                label,
                &[("wake", "timerfd")],
                1_000_000,
                vec![(0..4_000).map(|i| base + i * 7 % 1_000).collect()],
            )
        };
        let findings = Findings { variants: vec![again("A", 20_000), again("B", 22_000)], ..Findings::default() };
        let text = headline(&findings);
        assert!(text.contains("The same thing measured again differs by a factor of 1.10 at p50"), "{text}");
    }

    #[test]
    fn of_several_intervals_the_shortest_that_held() {
        let at = |interval, late| sample::variant("x", &[("interval", "y")], interval, vec![vec![late; 3_000]]);
        let variants = vec![at(4_000_000, 60_000), at(250_000, 300_000), at(1_000_000, 60_000)];
        let mut findings = Findings { variants, ..Findings::default() };
        findings.variants[1].settings.insert("interval".into(), "z".into());
        let text = plain(&headline(&findings));
        assert!(
            text.ends_with(
                "The shortest of 3 intervals without a missed cycle: 1.00 ms (1 kHz), in 3 000 cycles: expect less than one miss per 1.00 s of \
                 such a loop (95 %)."
            ),
            "{text}"
        );
        findings.variants[2] = sample::variant("x", &[("interval", "y")], 1_000_000, vec![vec![60_000; 2]]);
        let text = plain(&headline(&findings));
        assert!(text.ends_with(": 1.00 ms (1 kHz), in 2 cycles: too few to expect anything of it."), "{text}");
    }
}
