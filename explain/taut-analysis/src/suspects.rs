//! Hypotheses: what may delay messages, and whether it contributes to the excess of those that are explained.

use taut_stats::Distribution;

use crate::{
    Cause, Chain, Contribution, Error, Explained, Verdict, Wanted,
    kind::Kind,
    ledger::Ledger,
    predictions::Predictor,
    replay::Replay,
    resample,
    suspect::{self, Suspect},
    walk::Walker,
};

/// From this share of the excess on a hypothesis contributes.
const LIMIT: f64 = 0.05;
/// Shares below this get no prediction of their own.
const PREDICTED_SHARE: f64 = 0.01;

/// Fills in verdicts and what-ifs; returns an error for each suspect that this chain does not know.
pub(crate) fn judge(
    explained: &mut Explained,
    chain: &Chain,
    ledger: &Ledger,
    replay: Option<&Replay>,
    walker: &Walker<'_>,
    wanted: &Wanted,
) -> Vec<Error> {
    let mut suspects = unasked(explained, walker);
    let mut refused = Vec::new();
    let mut asked = Vec::new();
    for word in &wanted.suspects {
        match Suspect::parse(word, chain, walker) {
            Ok(suspect) => {
                asked.push(suspect.word());
                if !suspects.contains(&suspect) {
                    suspects.push(suspect);
                }
            }
            Err(error) => refused.push(error),
        }
    }
    let excess = ledger.groups(|kind| (kind.cause, kind.detail)).excess;
    let predictor = Predictor::new(chain, ledger, replay, walker, explained.tail_quantile);
    for suspect in &suspects {
        let is_asked = asked.contains(&suspect.word());
        let verdict = verdict(suspect, is_asked, ledger, walker, &excess, chain);
        let may_gain = verdict.tail_share >= PREDICTED_SHARE && *suspect != Suspect::Cause(Cause::Unknown);
        explained.verdicts.push(verdict);
        if may_gain {
            explained.what_if.push(predictor.without(&[suspect]));
        }
    }
    for words in &wanted.without {
        match words.iter().map(|word| Suspect::parse(word, chain, walker)).collect::<Result<Vec<_>, _>>() {
            Ok(all) if suspect::word(&all).is_some_and(|word| explained.what_if.iter().all(|w| w.without != word)) => {
                explained.what_if.push(predictor.without(&all.iter().collect::<Vec<_>>()));
            }
            Ok(_) => {}
            Err(error) => refused.push(error),
        }
    }
    explained.verdicts.sort_by(|a, b| b.is_asked.cmp(&a.is_asked).then(b.tail_share.total_cmp(&a.tail_share)));
    explained.what_if.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    refused
}

/// Every registered lock, and every cause with time in the explained messages. What the recording cannot see is not judged:
/// that no wait was seen then says nothing.
fn unasked(explained: &Explained, walker: &Walker<'_>) -> Vec<Suspect> {
    let locks = walker.objects.lock_names().into_iter().map(|n| Suspect::Lock(n.to_owned()));
    let mut suspects: Vec<Suspect> = locks.filter(|lock| lock.is_seen(walker)).collect();
    for share in explained.causes.iter().filter(|share| share.time_ns > 0) {
        let suspect = match share.cause {
            Cause::Unknown => continue,
            Cause::Lock => Suspect::Lock(share.detail.clone()),
            cause => Suspect::Cause(cause),
        };
        if !suspects.contains(&suspect) {
            suspects.push(suspect);
        }
    }
    suspects
}

fn verdict(
    suspect: &Suspect,
    is_asked: bool,
    ledger: &Ledger,
    walker: &Walker<'_>,
    excess: &[f64],
    chain: &Chain,
) -> Verdict {
    let owns = |kind: &Kind| suspect.owns(kind, walker.objects, walker.names);
    let waits = ledger.amounts(owns);
    let usual = ledger.usual_ns(owns);
    let beyond = ledger.tail.iter().map(|at| (waits[*at] as f64 - usual).max(0.0));
    let bursts = bursts(&ledger.tail, beyond.zip(excess.iter().copied()));
    let (tail_share, tail_share_interval) = resample::share(&bursts);
    let mut sorted = waits.clone();
    sorted.sort_unstable();
    let touched = waits.iter().filter(|ns| **ns > 0).count() as u64;
    let is_seen = suspect.is_seen(walker);
    let result = match tail_share_interval {
        _ if !is_seen => Contribution::Undecided,
        _ if touched == 0 => Contribution::DoesNotContribute,
        _ if ledger.tail.is_empty() => Contribution::Undecided,
        (low, _) if low >= LIMIT => Contribution::Contributes,
        (_, high) if high < LIMIT => Contribution::DoesNotContribute,
        _ => Contribution::Undecided,
    };
    let mut verdict = Verdict {
        suspect: suspect.word(),
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
        verdict.decided_by = "kernel events (the full tier of taut record)".into();
        verdict.sentence = format!(
            "{} cannot be judged: this recording does not show it; only kernel events do (the full tier of taut record)",
            verdict.suspect
        );
    } else {
        if result == Contribution::Undecided {
            verdict.decided_by = decided_by(&verdict, bursts.len(), chain);
        }
        verdict.sentence = sentence(suspect, &verdict, waits.len(), ledger.tail.len());
    }
    verdict
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
fn decided_by(verdict: &Verdict, bursts: usize, chain: &Chain) -> String {
    if bursts < 3 {
        return format!("more bursts of late messages than {bursts}: a longer recording");
    }
    let (low, high) = verdict.tail_share_interval;
    let distance = (verdict.tail_share - LIMIT).abs().max(0.002);
    let reach = if verdict.tail_share > LIMIT { verdict.tail_share - low } else { high - verdict.tail_share };
    let times = (reach / distance).powi(2).ceil().clamp(2.0, 1000.0);
    let seconds =
        chain.series.last().zip(chain.series.first()).map_or(0.0, |(last, first)| (last.0 - first.0) as f64 / 1e9);
    match seconds * times {
        seconds if seconds < 120.0 => format!("a recording about {times:.0} times as long ({seconds:.0} s)"),
        seconds => format!("a recording about {times:.0} times as long ({:.0} min)", seconds / 60.0),
    }
}

fn sentence(suspect: &Suspect, verdict: &Verdict, messages: usize, tail: usize) -> String {
    let ms = |ns: Option<u64>| match ns {
        None => "–".to_owned(),
        Some(0) => "0".to_owned(),
        Some(ns) if ns < 1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        Some(ns) => format!("{:.3} ms", ns as f64 / 1e6),
    };
    let wait = &verdict.wait;
    let name = suspect.word();
    if verdict.touched == 0 {
        return match suspect {
            Suspect::Lock(_) => format!("{name} does not contribute: none of {messages} messages waited for it"),
            _ => format!("{name} does not contribute: none of {messages} messages spent time on it"),
        };
    }
    if tail == 0 {
        return "there are too few messages to speak of a tail".into();
    }
    let share = format!(
        "{:.0} % of the excess, 95 % interval {:.0} to {:.0}",
        100.0 * verdict.tail_share,
        100.0 * verdict.tail_share_interval.0,
        100.0 * verdict.tail_share_interval.1,
    );
    let figures = format!(
        "{} of {messages} messages spent time on it (per message: p50 {}, p99 {}, max {})",
        verdict.touched,
        ms(wait.p50_ns),
        ms(wait.p99_ns),
        ms(wait.max_ns),
    );
    match verdict.result {
        Contribution::Contributes => format!("{name} contributes {share}; {figures}"),
        Contribution::DoesNotContribute => format!("{name} does not contribute: {share}; {figures}"),
        Contribution::Undecided => {
            format!("{name} is undecided: {share}; {} would decide it; {figures}", verdict.decided_by)
        }
    }
}
