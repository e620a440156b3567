//! Hypotheses: what may delay messages, and whether it contributes to the excess of those that are explained.

use taut_stats::Distribution;

use crate::{
    Cause, Chain, Contribution, Error, ExplainOptions, Explained, Hypothesis,
    factor::{self, Factor},
    kind::Kind,
    ledger::Ledger,
    predictions::Predictor,
    replay::Replay,
    resample,
    walk::Walker,
};

/// From this share of the excess on a hypothesis contributes.
const LIMIT: f64 = 0.05;
/// Shares below this get no prediction of their own.
const PREDICTED_SHARE: f64 = 0.01;

/// Fills in hypotheses and predictions; returns an error for each factor that this chain does not have. `totals`: those of the rows,
/// ascending.
pub(crate) fn judge(
    explained: &mut Explained,
    chain: &Chain,
    ledger: &Ledger,
    totals: Vec<u64>,
    replay: Option<&Replay>,
    walker: &Walker<'_>,
    wanted: &ExplainOptions,
) -> Vec<Error> {
    let mut factors = unasked(explained, walker);
    let mut refused = Vec::new();
    let mut asked = Vec::new();
    for word in &wanted.hypotheses {
        match Factor::parse(word, chain, walker) {
            Ok(factor) => {
                asked.push(factor.word());
                if !factors.contains(&factor) {
                    factors.push(factor);
                }
            }
            Err(error) => refused.push(error),
        }
    }
    let excess = ledger.groups(|kind| kind.cause).excess;
    let unknown = resample::share(&beyond(ledger, &excess, |kind| kind.cause == Cause::Unknown)).0;
    let predictor = Predictor::new(chain, ledger, totals, replay, walker, explained.tail_quantile);
    for factor in &factors {
        let is_asked = asked.contains(&factor.word());
        let hypothesis = hypothesis(factor, is_asked, ledger, walker, (&excess, unknown), chain);
        let may_gain = hypothesis.tail_share >= PREDICTED_SHARE && *factor != Factor::Cause(Cause::Unknown);
        explained.hypotheses.push(hypothesis);
        if may_gain {
            explained.predictions.push(predictor.without(&[factor]));
        }
    }
    for words in &wanted.without {
        match words.iter().map(|word| Factor::parse(word, chain, walker)).collect::<Result<Vec<_>, _>>() {
            Ok(all)
                if factor::word(&all).is_some_and(|word| explained.predictions.iter().all(|w| w.without != word)) =>
            {
                explained.predictions.push(predictor.without(&all.iter().collect::<Vec<_>>()));
            }
            Ok(_) => {}
            Err(error) => refused.push(error),
        }
    }
    explained.hypotheses.sort_by(|a, b| b.is_asked.cmp(&a.is_asked).then(b.tail_share.total_cmp(&a.tail_share)));
    explained.predictions.sort_by(|a, b| b.sure_gain().total_cmp(&a.sure_gain()));
    refused
}

/// Every registered lock, and every cause with time in the explained messages. What the recording cannot see is not judged:
/// that no wait was seen then says nothing.
fn unasked(explained: &Explained, walker: &Walker<'_>) -> Vec<Factor> {
    let locks = walker.objects.lock_names().into_iter().map(|n| Factor::Lock(n.to_owned()));
    let mut factors: Vec<Factor> = locks.filter(|lock| lock.is_seen(walker)).collect();
    for share in explained.causes.iter().filter(|share| share.time_ns > 0) {
        let factor = match share.cause {
            Cause::Unknown => continue,
            Cause::Lock => Factor::Lock(share.detail.clone()),
            cause => Factor::Cause(cause),
        };
        if !factors.contains(&factor) {
            factors.push(factor);
        }
    }
    factors
}

/// By burst: what late messages have more of some kinds than the typical one, and what they exceed it by in all.
fn beyond(ledger: &Ledger, excess: &[f64], owns: impl Fn(&Kind) -> bool + Copy) -> Vec<(f64, f64)> {
    let (amounts, typical) = (ledger.amounts(owns), ledger.typical_ns(owns));
    let beyond = ledger.tail.iter().map(|at| (amounts[*at] as f64 - typical).max(0.0));
    bursts(&ledger.tail, beyond.zip(excess.iter().copied()))
}

/// `hidden`: the share of the excess of which it is not known what it is, and which may be this, too.
fn result(touched: u64, has_tail: bool, (low, high): (f64, f64), hidden: f64) -> Contribution {
    match touched {
        0 if hidden < LIMIT => Contribution::DoesNotContribute,
        _ if !has_tail => Contribution::Undecided,
        _ if low >= LIMIT => Contribution::Contributes,
        _ if high + hidden < LIMIT => Contribution::DoesNotContribute,
        _ => Contribution::Undecided,
    }
}

/// `excess`: of each late message, and which share of all of it is unknown.
fn hypothesis(
    factor: &Factor,
    is_asked: bool,
    ledger: &Ledger,
    walker: &Walker<'_>,
    (excess, unknown): (&[f64], f64),
    chain: &Chain,
) -> Hypothesis {
    let owns = |kind: &Kind| factor.owns(kind, walker.objects, walker.names);
    let waits = ledger.amounts(owns);
    let bursts = beyond(ledger, excess, owns);
    let (tail_share, tail_share_interval) = resample::share(&bursts);
    // A hop has its time whatever that is.
    let hidden = if matches!(factor, Factor::Hop(..) | Factor::Cause(Cause::Unknown)) { 0.0 } else { unknown };
    let mut sorted = waits.clone();
    sorted.sort_unstable();
    let touched = waits.iter().filter(|ns| **ns > 0).count() as u64;
    let is_seen = factor.is_seen(walker);
    let result = match is_seen {
        true => result(touched, !ledger.tail.is_empty(), tail_share_interval, hidden),
        false => Contribution::Undecided,
    };
    let mut hypothesis = Hypothesis {
        hypothesis: factor.word(),
        result,
        decided_by: String::new(),
        is_asked,
        wait: Distribution::of(&waits, &sorted),
        touched,
        tail_share,
        tail_share_interval,
        sentence: String::new(),
    };
    if !is_seen {
        hypothesis.decided_by = "kernel events (the full tier of taut record)".into();
        hypothesis.sentence = format!(
            "{} cannot be judged: this recording does not show it; only kernel events do (the full tier of taut record)",
            hypothesis.hypothesis
        );
    } else {
        if result == Contribution::Undecided {
            hypothesis.decided_by = match tail_share_interval.1 < LIMIT && hidden > 0.0 {
                true => format!("a recording in which less than {:.0} % of the excess is unknown", 100.0 * hidden),
                false => decided_by(&hypothesis, bursts.len(), chain),
            };
        }
        hypothesis.sentence = sentence(factor, &hypothesis, waits.len(), ledger.tail.len());
    }
    hypothesis
}

/// Sums over messages that follow each other: one stall makes many late.
fn bursts(tail: &[usize], pairs: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    /// Messages in between that are not among the explained ones, and yet of the same burst.
    const BETWEEN: usize = 2;
    let mut bursts: Vec<(f64, f64)> = Vec::new();
    let mut before = None;
    for (at, (part, whole)) in tail.iter().zip(pairs) {
        match bursts.last_mut().filter(|_| before.is_some_and(|before| at - before <= BETWEEN)) {
            Some(burst) => *burst = (burst.0 + part, burst.1 + whole),
            None => bursts.push((part, whole)),
        }
        before = Some(*at);
    }
    bursts
}

/// The interval shrinks with the square root of the bursts.
fn decided_by(hypothesis: &Hypothesis, bursts: usize, chain: &Chain) -> String {
    if bursts < 3 {
        return format!("more bursts of late messages than {bursts}: a longer recording");
    }
    let (low, high) = hypothesis.tail_share_interval;
    let distance = (hypothesis.tail_share - LIMIT).abs().max(0.002);
    let reach = if hypothesis.tail_share > LIMIT { hypothesis.tail_share - low } else { high - hypothesis.tail_share };
    let times = (reach / distance).powi(2).ceil().clamp(2.0, 1000.0);
    let seconds =
        chain.series.last().zip(chain.series.first()).map_or(0.0, |(last, first)| (last.0 - first.0) as f64 / 1e9);
    match seconds * times {
        seconds if seconds < 120.0 => format!("a recording about {times:.0} times as long ({seconds:.0} s)"),
        seconds => format!("a recording about {times:.0} times as long ({:.0} min)", seconds / 60.0),
    }
}

fn sentence(factor: &Factor, hypothesis: &Hypothesis, messages: usize, tail: usize) -> String {
    let ms = |ns: Option<u64>| match ns {
        None => "–".to_owned(),
        Some(0) => "0".to_owned(),
        Some(ns) if ns < 1_000 => format!("{ns} ns"),
        Some(ns) if ns < 1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        Some(ns) if ns < 10_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        Some(ns) => format!("{:.1} ms", ns as f64 / 1e6),
    };
    let wait = &hypothesis.wait;
    let name = factor.word();
    if hypothesis.touched == 0 {
        let did = if matches!(factor, Factor::Lock(_)) { "waited for it" } else { "spent time on it" };
        let none = format!("none of {messages} messages {did}");
        return match hypothesis.result {
            Contribution::Undecided => {
                format!("{name} is undecided: {none} as far as is known; {} would decide it", hypothesis.decided_by)
            }
            _ => format!("{name} does not contribute: {none}"),
        };
    }
    if tail == 0 {
        return "there are too few messages to speak of a tail".into();
    }
    let share = format!(
        "{:.0} % of the excess, 95 % interval {:.0} to {:.0}",
        100.0 * hypothesis.tail_share,
        100.0 * hypothesis.tail_share_interval.0,
        100.0 * hypothesis.tail_share_interval.1,
    );
    let figures = format!(
        "{} of {messages} messages spent time on it (per message: p50 {}, p99 {}, max {})",
        hypothesis.touched,
        ms(wait.p50_ns),
        ms(wait.p99_ns),
        ms(wait.max_ns),
    );
    match hypothesis.result {
        Contribution::Contributes => format!("{name} contributes {share}; {figures}"),
        Contribution::DoesNotContribute => format!("{name} does not contribute: {share}; {figures}"),
        Contribution::Undecided => {
            format!("{name} is undecided: {share}; {} would decide it; {figures}", hypothesis.decided_by)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_digits_that_tables_have() {
        let wait = Distribution {
            p50_ns: Some(30),
            p99_ns: Some(2_109_400),
            max_ns: Some(12_078_300),
            ..Distribution::default()
        };
        let hypothesis = Hypothesis { touched: 868, wait, ..Hypothesis::default() };
        let text = sentence(&Factor::Cause(Cause::Gil), &hypothesis, 868, 9);
        assert!(text.ends_with("(per message: p50 30 ns, p99 2.11 ms, max 12.1 ms)"), "{text}");
    }

    #[test]
    fn what_may_be_in_unknown_time_is_not_cleared() {
        use Contribution::*;
        assert_eq!(result(0, true, (0.0, 0.0), 0.0), DoesNotContribute);
        assert_eq!(result(0, true, (0.0, 0.0), 0.04), DoesNotContribute);
        assert_eq!(result(0, true, (0.0, 0.0), 0.3), Undecided);
        assert_eq!(result(9, true, (0.01, 0.03), 0.01), DoesNotContribute);
        assert_eq!(result(9, true, (0.01, 0.03), 0.3), Undecided);
        // What is seen is enough.
        assert_eq!(result(9, true, (0.1, 0.2), 0.3), Contributes);
        assert_eq!(result(9, true, (0.04, 0.06), 0.0), Undecided);
        assert_eq!(result(0, false, (0.0, 0.0), 0.0), DoesNotContribute);
        assert_eq!(result(9, false, (0.0, 0.0), 0.0), Undecided);
    }
}
