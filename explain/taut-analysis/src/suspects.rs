//! Suspects: who is accused, whether they are guilty, and what the chain would be without them.

use taut_stats::Distribution;

use crate::{
    Cause, Chain, Error, Explained, Verdict, Wanted, WhatIf,
    kernel::Objects,
    ledger::{Kind, Ledger},
    names::Names,
    walk::Walker,
};

/// Guilty from this share of the tail on, by the lower bound of its interval.
const GUILTY_SHARE: f64 = 0.05;
/// What nobody asked for and nobody registered is judged from this share on.
const JUDGED_SHARE: f64 = 0.005;
/// Shares below this get no what-if of their own.
const WHAT_IF_SHARE: f64 = 0.01;
/// Resamples of the bootstrap; its interval is that of percentiles (Efron 1979).
const RESAMPLES: usize = 400;

/// Somebody accused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Suspect {
    Cause(Cause),
    Lock(String),
    /// Index of the hop, and its name.
    Hop(u16, String),
    Process(String),
    Thread(String),
}

/// Fills in verdicts and what-ifs; returns an error for each suspect that this chain does not know.
pub(crate) fn judge(
    explained: &mut Explained,
    chain: &Chain,
    ledger: &Ledger,
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
    for suspect in &suspects {
        let verdict = verdict(suspect, ledger, walker, &excess);
        let may_gain = verdict.tail_share >= WHAT_IF_SHARE && *suspect != Suspect::Cause(Cause::Unknown);
        explained.verdicts.push(verdict);
        if may_gain {
            explained.what_if.push(what_if(suspect, ledger, walker, explained.tail_quantile));
        }
    }
    let asked = |v: &Verdict| asked.contains(&v.suspect);
    explained.verdicts.sort_by(|a, b| asked(b).cmp(&asked(a)).then(b.tail_share.total_cmp(&a.tail_share)));
    explained.what_if.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    refused
}

/// Every registered lock, every other lock and cause with a share of the tail that is worth a sentence. Whom
/// the recording cannot see is not judged: that no wait was seen then clears nobody.
fn unasked(explained: &Explained, walker: &Walker<'_>) -> Vec<Suspect> {
    let locks = walker.objects.lock_names().into_iter().map(|n| Suspect::Lock(n.to_owned()));
    let mut suspects: Vec<Suspect> = locks.filter(|lock| lock.is_seen(walker)).collect();
    for share in explained.causes.iter().filter(|share| share.tail_share >= JUDGED_SHARE) {
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

impl Suspect {
    fn parse(word: &str, chain: &Chain, walker: &Walker<'_>) -> Result<Suspect, Error> {
        let unknown = |hint: String| Error::UnknownSuspect { suspect: word.to_owned(), hint };
        if let Some(cause) = Cause::from_word(word) {
            return Ok(Suspect::Cause(cause));
        }
        let words = || Cause::ALL.map(Cause::word).join(", ");
        match word.split_once(':') {
            Some(("lock", name)) => {
                let locks = walker.objects.lock_names();
                if locks.contains(&name) || walker.names.texts().any(|text| text == name) {
                    return Ok(Suspect::Lock(name.to_owned()));
                }
                let known = if locks.is_empty() { "none".to_owned() } else { locks.join(", ") };
                Err(unknown(format!("registered locks: {known}")))
            }
            Some(("hop", name)) => {
                let names: Vec<String> = chain.hops.iter().map(|hop| format!("{} → {}", hop.from, hop.to)).collect();
                let is = |at: &usize| names[*at] == name || chain.hops[*at].to == name || chain.hops[*at].from == name;
                match (0..names.len()).find(is) {
                    Some(at) => Ok(Suspect::Hop(at as u16, names[at].clone())),
                    None => Err(unknown(format!("hops: {}", names.join(", ")))),
                }
            }
            Some(("process", name)) if walker.objects.has_thread(name) => Ok(Suspect::Process(name.to_owned())),
            Some(("thread", name)) if walker.objects.has_thread(name) => Ok(Suspect::Thread(name.to_owned())),
            Some(("process" | "thread", _)) => Err(unknown("no thread of that name or number was seen".into())),
            _ => Err(unknown(format!("say {}, lock:NAME, hop:NAME, process:NAME or thread:NAME", words()))),
        }
    }

    /// Whether this recording would show the suspect at work.
    fn is_seen(&self, walker: &Walker<'_>) -> bool {
        match self {
            Suspect::Hop(..) | Suspect::Cause(Cause::Unknown) => true,
            Suspect::Cause(Cause::Queued) => walker.marks.has_stamps(),
            Suspect::Cause(Cause::Work | Cause::Preempted) | Suspect::Thread(_) | Suspect::Process(_) => {
                !walker.machine.threads.is_empty()
            }
            Suspect::Lock(name) if walker.marks.has_lock(name) => true,
            Suspect::Lock(_) | Suspect::Cause(_) => walker.machine.saw_calls,
        }
    }

    fn word(&self) -> String {
        match self {
            Suspect::Cause(cause) => cause.word().to_owned(),
            Suspect::Lock(name) => format!("lock:{name}"),
            Suspect::Hop(_, name) => format!("hop:{name}"),
            Suspect::Process(name) => format!("process:{name}"),
            Suspect::Thread(name) => format!("thread:{name}"),
        }
    }

    /// Whether a piece of this kind is the suspect's time.
    fn owns(&self, kind: &Kind, objects: &Objects, names: &Names) -> bool {
        let parties = || [kind.tid, kind.other].into_iter().filter(|tid| *tid != 0);
        match self {
            Suspect::Cause(cause) => kind.cause == *cause,
            Suspect::Lock(name) => kind.cause == Cause::Lock && names.text(kind.detail) == name,
            Suspect::Hop(hop, _) => kind.hop == *hop,
            Suspect::Process(name) => parties().any(|tid| objects.process_is(tid, name)),
            Suspect::Thread(name) => parties().any(|tid| objects.thread_is(tid, name)),
        }
    }

    /// Whether it would go with the suspect though it is not its own: the wait to run after its wait, mostly.
    fn draws(&self, kind: &Kind, names: &Names) -> bool {
        // A call that makes a file durable goes as a whole: its time on the CPU is the disk's doing too.
        let syncs = |(cause, detail): (Cause, u32)| cause == Cause::Syscall && is_sync(names.text(detail));
        if *self == Suspect::Cause(Cause::Disk) && (syncs((kind.cause, kind.detail)) || kind.after.is_some_and(syncs)) {
            return true;
        }
        match (self, kind.after) {
            (Suspect::Cause(cause), Some((after, _))) => after == *cause,
            (Suspect::Lock(name), Some((Cause::Lock, detail))) => names.text(detail) == name,
            _ => false,
        }
    }

    /// Time that every message has and that cannot be had away is only brought down to the usual.
    fn is_part_of_the_job(&self) -> bool {
        use Cause::*;
        match self {
            Suspect::Cause(cause) => matches!(cause, Work | Syscall | Io | Sleep | Queued | PageFault | Disk | Unknown),
            Suspect::Lock(_) => false,
            Suspect::Hop(..) | Suspect::Process(_) | Suspect::Thread(_) => true,
        }
    }
}

fn is_sync(call: &str) -> bool {
    let name = call.split(' ').next().unwrap_or_default();
    matches!(name, "fsync" | "fdatasync" | "sync" | "syncfs" | "msync" | "sync_file_range")
}

fn verdict(suspect: &Suspect, ledger: &Ledger, walker: &Walker<'_>, excess: &[f64]) -> Verdict {
    let owns = |kind: &Kind| suspect.owns(kind, walker.objects, walker.names);
    let waits = ledger.amounts(owns);
    let usual = ledger.usual_ns(owns);
    let beyond: Vec<f64> = ledger.tail.iter().map(|at| (waits[*at] as f64 - usual).max(0.0)).collect();
    let pairs: Vec<(f64, f64)> = beyond.into_iter().zip(excess.iter().copied()).collect();
    let (tail_share, tail_share_interval) = share_with_interval(&pairs);
    let mut sorted = waits.clone();
    sorted.sort_unstable();
    let touched = waits.iter().filter(|ns| **ns > 0).count() as u64;
    let contended = tail_share_interval.0 >= GUILTY_SHARE;
    let mut verdict = Verdict {
        suspect: suspect.word(),
        contended,
        wait: Distribution::of(&waits, &sorted),
        touched,
        tail_share,
        tail_share_interval,
        sentence: String::new(),
    };
    verdict.sentence = match suspect.is_seen(walker) {
        true => sentence(suspect, &verdict, waits.len(), ledger.tail.len()),
        false => {
            format!(
                "{} cannot be judged: this recording does not see it; only kernel events show it (the full tier of taut record)",
                verdict.suspect
            )
        }
    };
    verdict
}

/// The ratio of the sums, and its 95 % interval by resampling the tail's messages.
fn share_with_interval(pairs: &[(f64, f64)]) -> (f64, (f64, f64)) {
    let ratio = |part: f64, whole: f64| if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 };
    let sum = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    if pairs.is_empty() {
        return (0.0, (0.0, 0.0));
    }
    // xorshift64 (Marsaglia 2003) with a fixed seed: the same recording gives the same interval.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut shares: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let (mut part, mut whole) = (0.0, 0.0);
            for _ in 0..pairs.len() {
                let pair = pairs[(next() % pairs.len() as u64) as usize];
                part += pair.0;
                whole += pair.1;
            }
            ratio(part, whole)
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    let at = |q: f64| shares[((RESAMPLES - 1) as f64 * q).round() as usize];
    (ratio(sum.0, sum.1), (at(0.025), at(0.975)))
}

fn sentence(suspect: &Suspect, verdict: &Verdict, messages: usize, tail: usize) -> String {
    if tail == 0 {
        return "there are too few messages to speak of a tail".into();
    }
    let ms = |ns: Option<u64>| match ns {
        None => "too rare to say".to_owned(),
        Some(0) => "0".to_owned(),
        Some(ns) if ns < 1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        Some(ns) => format!("{:.3} ms", ns as f64 / 1e6),
    };
    let wait = &verdict.wait;
    let figures = format!(
        "{} of {messages} messages spent time on it (per message: p50 {}, p99 {}, max {}), {:.0} % of the tail \
         [{:.0}, {:.0}]",
        verdict.touched,
        ms(wait.p50_ns),
        ms(wait.p99_ns),
        ms(wait.max_ns),
        100.0 * verdict.tail_share,
        100.0 * verdict.tail_share_interval.0,
        100.0 * verdict.tail_share_interval.1,
    );
    let name = suspect.word();
    match (suspect, verdict.contended) {
        (Suspect::Lock(_), _) if verdict.touched == 0 => {
            format!("{name} is not contended: no message waited for it")
        }
        (Suspect::Lock(_), false) => format!("{name} does not make the tail: {figures}"),
        (Suspect::Lock(_), true) => format!("{name} is contended: {figures}"),
        (_, false) => format!("{name} does not make the tail: {figures}"),
        (_, true) => format!("{name} makes the tail: {figures}"),
    }
}

/// The chain with the suspect's time brought down: to nothing, or to the usual where it is part of the job. What it
/// draws with it goes in the same proportion: the wait to run after a wait, the interrupts of a computation.
fn what_if(suspect: &Suspect, ledger: &Ledger, walker: &Walker<'_>, quantile: Option<f64>) -> WhatIf {
    let owns = |kind: &Kind| suspect.owns(kind, walker.objects, walker.names);
    let own = ledger.amounts(owns);
    let drawn = ledger.amounts(|kind| !owns(kind) && suspect.draws(kind, walker.names));
    let kept = if suspect.is_part_of_the_job() { ledger.usual_ns(owns) as u64 } else { 0 };
    let totals: Vec<u64> = ledger.rows.iter().map(|row| row.total_ns).collect();
    let left = |((total, own), drawn): ((&u64, &u64), &u64)| {
        let beyond = own.saturating_sub(kept);
        let share = if *own > 0 { beyond as f64 / *own as f64 } else { 0.0 };
        total.saturating_sub(beyond + (share * *drawn as f64) as u64)
    };
    let left: Vec<u64> = totals.iter().zip(&own).zip(&drawn).map(left).collect();
    let sorted = |values: &[u64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted
    };
    let (before, after) = (sorted(&totals), sorted(&left));
    let distribution = Distribution::of(&left, &after);
    let at = |values: &[u64]| quantile.and_then(|q| taut_stats::rank(values, q)).unwrap_or(0);
    let (was, is) = (at(&before), at(&after));
    let what = suspect.word();
    let alone = "; what waited behind it or interrupted it goes with it, and nothing else takes its place";
    WhatIf {
        without: what.clone(),
        p50_ns: distribution.p50_ns,
        p99_ns: distribution.p99_ns,
        gain: if was > 0 { 1.0 - is as f64 / was as f64 } else { 0.0 },
        assumption: if kept > 0 {
            format!("{what} never takes longer than in the usual message{alone}")
        } else {
            format!("no message spends time on {what}{alone}")
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_lies_in_its_interval() {
        let pairs: Vec<(f64, f64)> = (0..200).map(|i| (f64::from(i % 5), 4.0)).collect();
        let (share, (low, high)) = share_with_interval(&pairs);
        assert!((share - 0.5).abs() < 1e-9 && low < share && share < high && high - low < 0.15, "{share} {low} {high}");
        assert_eq!(share_with_interval(&[]), (0.0, (0.0, 0.0)));
    }
}
