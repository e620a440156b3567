//! Hypotheses: what may delay messages, and whether it contributes to the excess of those that are explained.

use taut_stats::Distribution;
use taut_timelines::Objects;

use crate::{
    Cause, Chain, Contribution, Error, Explained, Verdict, Wanted,
    ledger::{Kind, Ledger},
    names::Names,
    predictions::{self, Predictor},
    replay::Replay,
    resample,
    walk::Walker,
};

/// From this share of the excess on a hypothesis contributes.
const LIMIT: f64 = 0.05;
/// Shares below this get no prediction of their own.
const PREDICTED_SHARE: f64 = 0.01;

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
            Ok(all)
                if predictions::word(&all).is_some_and(|word| explained.what_if.iter().all(|w| w.without != word)) =>
            {
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
                !walker.timelines.threads.is_empty()
            }
            Suspect::Lock(name) if walker.marks.has_lock(name) => true,
            Suspect::Lock(_) | Suspect::Cause(_) => walker.timelines.saw_calls,
        }
    }

    pub fn word(&self) -> String {
        match self {
            Suspect::Cause(cause) => cause.word().to_owned(),
            Suspect::Lock(name) => format!("lock:{name}"),
            Suspect::Hop(_, name) => format!("hop:{name}"),
            Suspect::Process(name) => format!("process:{name}"),
            Suspect::Thread(name) => format!("thread:{name}"),
        }
    }

    /// Whether a piece of this kind is the suspect's time.
    pub fn owns(&self, kind: &Kind, objects: &Objects, names: &Names) -> bool {
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
    pub fn draws(&self, kind: &Kind, names: &Names) -> bool {
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
    pub fn is_part_of_the_job(&self) -> bool {
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
