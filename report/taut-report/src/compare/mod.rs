//! Several recordings side by side: the same chain in each, how late, where its messages ended, and why. Every form shows these
//! figures.

mod document;
mod two;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_analysis::{Analysis, Cause, Chain, Explained};
use taut_guard::ledger::Reason;
use taut_recording::Ending;
use taut_stats::Distribution;

use crate::{Named, cause_classes, causes, words};

pub use document::{comparison_document, comparison_html};
pub use two::{TwoShown, two_document, two_html, two_json};

/// What a comparison does not show, and where to find it.
const ONE_RUN_EACH: &str = "For a verdict repeat both alternately (taut lab run) and compare trials.";
/// Causes below this share of every run's tail are not worth a line.
const SHARE_MIN: f64 = 0.01;

/// Recordings side by side, in the order they were named. Ratios are to the first one that has the chain.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Comparison {
    /// What a busy reader needs.
    headline: String,
    runs: Vec<Run>,
    /// Chains that at least two of the recordings have.
    chains: Vec<Compared>,
    /// Chains that only one of them has.
    alone: Vec<Alone>,
    /// What one must know to trust the comparison.
    notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Run {
    /// The recording's file, as named on the command line.
    name: String,
    /// What is enough to tell it from the others.
    short: String,
    duration_s: f64,
    /// How the recorded program failed, e.g. "with exit code 1"; null where it did not.
    failure: Option<String>,
    /// Null where no speed guard was armed.
    trips: Option<u64>,
    /// Trips that the robot's true speed does not justify; known in simulations.
    false_trips: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Compared {
    name: String,
    runs: Vec<Side>,
    /// By reason, largest share in any run first: how many messages of each run ended so, in the order of `runs`.
    dropped: Vec<(String, Vec<u64>)>,
    /// By cause, largest share in any run first.
    causes: Vec<CauseRow>,
}

/// One run's figures of a chain.
#[derive(Serialize, JsonSchema)]
struct Side {
    /// Index among the comparison's runs.
    run: usize,
    messages: u64,
    end_to_end: Distribution,
    /// 99th percentile of the end-to-end latency less its minimum (RFC 5481 PDV).
    pdv_p99_ns: Option<u64>,
    /// This run's by the first run's.
    p50_ratio: Option<f64>,
    p99_ratio: Option<f64>,
    applied: u64,
    dropped: u64,
    /// Of the dropped, those that nobody but the account knows of.
    silent: u64,
    /// Before the chain's last point, and nothing was lost.
    ended_early: u64,
    in_flight: u64,
    unexplained: u64,
    tail_messages: u64,
}

#[derive(Serialize, JsonSchema)]
struct CauseRow {
    cause: String,
    /// In the order of `runs`.
    of: Vec<CauseSide>,
}

#[derive(Clone, Default, Serialize, JsonSchema)]
struct CauseSide {
    /// Of the excess of the tail's messages over the typical one.
    tail_share: f64,
    /// Of each of the tail's messages, on average.
    per_message_ns: u64,
    /// The same beyond the typical message.
    excess_per_message_ns: u64,
    /// The party with most of its time, as in "while rustc ran"; empty if none has more than half.
    party: String,
}

#[derive(Serialize, JsonSchema)]
struct Alone {
    run: usize,
    chain: String,
    messages: u64,
}

impl Comparison {
    pub fn new(recordings: &[Named<'_>]) -> Comparison {
        let shorts = short_names(recordings);
        let runs: Vec<Run> = recordings.iter().zip(shorts).map(|(named, short)| run(named, short)).collect();
        let mut chains = Vec::new();
        let mut alone = Vec::new();
        for name in chain_names(recordings) {
            let found: Vec<(usize, &Chain)> = recordings
                .iter()
                .enumerate()
                .filter_map(|(at, named)| Some((at, named.analysis.chains.iter().find(|chain| chain.name == name)?)))
                .collect();
            match found.as_slice() {
                [(run, chain)] => alone.push(Alone { run: *run, chain: name, messages: chain.messages }),
                several => chains.push(compared(name, several)),
            }
        }
        let headline = headline(&runs, &chains);
        Comparison { headline, runs, chains, alone, notes: vec![ONE_RUN_EACH.into()] }
    }

    fn short(&self, side: &Side) -> &str {
        &self.runs[side.run].short
    }
}

/// What stands under "comparison" in the JSON of several recordings; the schema is `docs/comparison.schema.json`.
pub fn comparison_json(recordings: &[Named<'_>]) -> serde_json::Value {
    serde_json::to_value(Comparison::new(recordings)).unwrap_or_default()
}

/// Names of all chains, in the order they are first seen.
fn chain_names(recordings: &[Named<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for chain in recordings.iter().flat_map(|named| &named.analysis.chains) {
        if !names.contains(&chain.name) {
            names.push(chain.name.clone());
        }
    }
    names
}

/// File names without folder and ending, where these tell the recordings apart.
fn short_names(recordings: &[Named<'_>]) -> Vec<String> {
    let stem = |name: &str| name.rsplit('/').next().unwrap_or(name).trim_end_matches(".mcap").to_owned();
    let stems: Vec<String> = recordings.iter().map(|named| stem(named.name)).collect();
    let is_clear = stems.iter().enumerate().all(|(at, stem)| !stem.is_empty() && !stems[..at].contains(stem));
    if is_clear { stems } else { (1..=recordings.len()).map(|n| format!("run {n}")).collect() }
}

fn run(named: &Named<'_>, short: String) -> Run {
    let Analysis { totals, .. } = named.analysis;
    Run {
        name: named.name.to_owned(),
        short,
        duration_s: totals.duration_s,
        failure: named.analysis.ending.as_ref().and_then(Ending::failure),
        trips: totals.trips.map(|trips| trips.all),
        false_trips: totals.trips.map(|trips| trips.false_ones),
    }
}

fn compared(name: String, found: &[(usize, &Chain)]) -> Compared {
    let first = &found[0].1.end_to_end.distribution;
    let ratio = |ours: Option<u64>, theirs: Option<u64>| match (ours, theirs) {
        (Some(ours), Some(theirs)) if theirs > 0 => Some(ours as f64 / theirs as f64),
        _ => None,
    };
    let side = |(run, chain): &(usize, &Chain)| {
        let (d, outcomes) = (&chain.end_to_end.distribution, &chain.outcomes);
        let silent = outcomes.dropped.iter().filter(|(reason, _)| is_silent(reason)).map(|(_, n)| n).sum();
        Side {
            run: *run,
            messages: chain.messages,
            end_to_end: d.clone(),
            pdv_p99_ns: d.p99_ns.zip(d.min_ns).map(|(p99, min)| p99.saturating_sub(min)),
            p50_ratio: ratio(d.p50_ns, first.p50_ns),
            p99_ratio: ratio(d.p99_ns, first.p99_ns),
            applied: outcomes.applied,
            dropped: outcomes.all_dropped(),
            silent,
            ended_early: outcomes.ended_early,
            in_flight: outcomes.in_flight,
            unexplained: outcomes.unexplained,
            tail_messages: chain.explained.tail_messages,
        }
    };
    Compared { name, runs: found.iter().map(side).collect(), dropped: dropped(found), causes: causes(found) }
}

/// Whether a drop of this reason is told to nobody: those of the setpoint ledger by its rule.
fn is_silent(reason: &str) -> bool {
    Reason::ALL.into_iter().any(|known| known.name() == reason && known.is_silent())
}

fn dropped(found: &[(usize, &Chain)]) -> Vec<(String, Vec<u64>)> {
    let mut rows: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (at, (_, chain)) in found.iter().enumerate() {
        for (reason, n) in &chain.outcomes.dropped {
            rows.entry(reason).or_insert_with(|| vec![0; found.len()])[at] = *n;
        }
    }
    let mut rows: Vec<(String, Vec<u64>)> = rows.into_iter().map(|(reason, of)| (reason.to_owned(), of)).collect();
    rows.sort_by_key(|(_, of)| std::cmp::Reverse(of.iter().copied().max()));
    rows
}

fn causes(found: &[(usize, &Chain)]) -> Vec<CauseRow> {
    let mut rows: BTreeMap<&str, Vec<CauseSide>> = BTreeMap::new();
    for (at, (_, chain)) in found.iter().enumerate() {
        let messages = chain.explained.tail_messages.max(1);
        for share in &chain.explained.causes {
            let of = rows.entry(share.cause.word()).or_insert_with(|| vec![CauseSide::default(); found.len()]);
            of[at].tail_share += share.tail_share;
            of[at].per_message_ns += share.time_ns / messages;
            of[at].excess_per_message_ns += share.excess_ns / messages;
        }
    }
    for (cause, of) in &mut rows {
        for (side, (_, chain)) in of.iter_mut().zip(found) {
            side.party = party(&chain.explained, cause, side.tail_share);
        }
    }
    let most = |of: &[CauseSide]| of.iter().map(|side| side.tail_share).fold(0.0, f64::max);
    let mut rows: Vec<CauseRow> = rows
        .into_iter()
        .filter(|(_, of)| most(of) >= SHARE_MIN)
        .map(|(cause, of)| CauseRow { cause: cause.to_owned(), of })
        .collect();
    rows.sort_by(|a, b| most(&b.of).total_cmp(&most(&a.of)));
    rows
}

/// The party with more than half of a cause's share, if there is one.
fn party(explained: &Explained, cause: &str, share: f64) -> String {
    let parties = explained.causes.iter().filter(|of| of.cause.word() == cause && !of.detail.is_empty());
    let most = parties.max_by(|a, b| a.tail_share.total_cmp(&b.tail_share)).filter(|of| 2.0 * of.tail_share > share);
    most.map_or(String::new(), |of| of.cause.party(&explained.named(&of.detail)))
}

/// Whose program failed; then the largest shared chain in one or two sentences, the last run against the first.
fn headline(runs: &[Run], chains: &[Compared]) -> String {
    let failed = runs.iter().filter_map(|run| Some((&run.short, run.failure.as_ref()?)));
    let failed = failed.map(|(run, how)| format!("The recorded program of {run} failed: it ended {how}. "));
    failed.collect::<String>() + &figures(runs, chains)
}

fn figures(runs: &[Run], chains: &[Compared]) -> String {
    let Some(chain) = chains.first() else {
        return "The recordings have no chain in common: there is nothing to compare.".into();
    };
    let (Some(first), Some(last)) = (chain.runs.first(), chain.runs.last()) else { return String::new() };
    let name = |side: &Side| runs[side.run].short.clone();
    type Quantile = fn(&Distribution) -> Option<u64>;
    let quantiles: [(&str, Quantile); 4] =
        [("hundredth", |d| d.p99_ns), ("twentieth", |d| d.p95_ns), ("tenth", |d| d.p90_ns), ("half", |d| d.p50_ns)];
    // The rarest share that both carry.
    let found = quantiles.iter().find_map(|(share, of)| Some((share, of(&first.end_to_end)?, of(&last.end_to_end)?)));
    let mut text = match found {
        Some((share, before, after)) => format!(
            "The slowest {share} takes {} or more in {}, {} in {} ({}).",
            words::duration(before),
            name(first),
            words::duration(after),
            name(last),
            words::ratio(after as f64 / before.max(1) as f64),
        ),
        None => format!("{} and {}: too few messages for a median.", name(first), name(last)),
    };
    text.extend(why(chain, [first, last].map(name)));
    let of = |side: &Side| {
        format!("{} of {} messages in {}", words::count(side.silent), words::count(side.messages), name(side))
    };
    if first.silent + last.silent > 0 {
        text += &format!(" Dropped without telling the sender: {}, {}.", of(first), of(last));
    } else {
        let share = |side: &Side| words::percent(side.applied as f64 / side.messages.max(1) as f64);
        text += &format!(" Delivered: {} in {}, {} in {}.", share(first), name(first), share(last), name(last));
    }
    let trips = |side: &Side| {
        let (all, not_needed) = runs[side.run].trips.zip(runs[side.run].false_trips)?;
        let of_them = if not_needed > 0 { format!(" ({not_needed} false)") } else { String::new() };
        Some((all, format!("{all} in {}{of_them}", name(side))))
    };
    if let (Some((a, of_first)), Some((b, of_last))) = (trips(first), trips(last))
        && a + b > 0
    {
        text += &format!(" Trips of the speed guard: {of_first}, {of_last}.");
    }
    text + " One run of each: how much of this is chance is not known."
}

/// The largest cause of the first run's tail and of the last one's, where they are known.
fn why(chain: &Compared, [first, last]: [String; 2]) -> Option<String> {
    let most = |at: usize| {
        let share = |row: &&CauseRow| row.of[at].tail_share;
        let row = chain.causes.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
        let cause = Cause::ALL[cause_classes::number(&row.cause)];
        let party = match row.of[at].party.as_str() {
            "" => String::new(),
            party => format!(", most of it {party}"),
        };
        (cause != Cause::Unknown && share(&row) > 0.0)
            .then(|| (causes::noun(cause), words::percent(share(&row))))
            .map(|(cause, share)| format!("{cause} ({share} of the excess over typical messages{party})"))
    };
    let (before, after) = (most(0)?, most(chain.runs.len() - 1)?);
    Some(format!(" The largest cause of the tail is {before} in {first}, {after} in {last}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_headline_names_who_has_most_of_the_largest_cause() {
        let (mut before, after) = (sample::teleop(), sample::teleop());
        let of = |before: &Analysis| {
            let all = [Named { name: "before.mcap", analysis: before }, Named { name: "after.mcap", analysis: &after }];
            Comparison::new(&all).headline
        };
        let gil = "waiting for the GIL (61.0 % of the excess over typical messages";
        let most = format!("{gil}, most of it held by python/4243) in before");
        assert!(of(&before).contains(&most), "{}", of(&before));
        for share in &mut before.chains[0].explained.causes {
            share.detail = String::new();
        }
        assert!(of(&before).contains(&format!("{gil}) in before")), "{}", of(&before));
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        let schema = schemars::schema_for!(Comparison).to_value();
        crate::json::assert_documented(&schema, "comparison.schema.json");
    }

    #[test]
    fn chains_are_paired_by_name_and_ratios_are_to_the_first() {
        let (before, after) = (sample::teleop(), sample::teleop_made_right());
        let named =
            [Named { name: "a/source.mcap", analysis: &before }, Named { name: "right.mcap", analysis: &after }];
        let comparison = Comparison::new(&named);
        assert_eq!(comparison.chains.len(), 1);
        let sides = &comparison.chains[0].runs;
        assert_eq!((sides[0].p99_ratio, sides[1].p99_ratio), (Some(1.0), Some(0.125)));
        assert_eq!((sides[0].silent, sides[1].silent), (2101, 0));
        assert_eq!(comparison.short(&sides[0]), "source");
        assert!(comparison.headline.contains("(×0.12)"), "{}", comparison.headline);
    }

    #[test]
    fn names_that_do_not_tell_are_numbered() {
        let analysis = sample::teleop();
        let named = ["a/run.mcap", "b/run.mcap"].map(|name| Named { name, analysis: &analysis });
        assert_eq!(short_names(&named), ["run 1", "run 2"]);
    }

    #[test]
    fn recordings_without_a_common_chain_are_said_to_have_none() {
        let (before, mut after) = (sample::teleop(), sample::teleop());
        after.chains[0].name = "other".into();
        let named = ["a.mcap", "b.mcap"].into_iter().zip([&before, &after]);
        let named: Vec<Named<'_>> = named.map(|(name, analysis)| Named { name, analysis }).collect();
        let comparison = Comparison::new(&named);
        assert_eq!((comparison.chains.len(), comparison.alone.len()), (0, 2));
        assert!(comparison.headline.contains("no chain in common"));
    }

    #[test]
    fn a_program_that_failed_is_named_first() {
        let (before, mut after) = (sample::teleop(), sample::teleop());
        let ending = after.ending.as_mut().unwrap();
        (ending.exit_code, ending.reason) = (Some(1), "command exited".into());
        let named = [Named { name: "a.mcap", analysis: &before }, Named { name: "b.mcap", analysis: &after }];
        let headline = Comparison::new(&named).headline;
        assert!(headline.starts_with("The recorded program of b failed: it ended with exit code 1. "), "{headline}");
    }
}
