//! The JSON form of a gate: serialisable twins, made here at the edge. The schema is documented in
//! `docs/schemas/gate.schema.json`, generated from these types.

use schemars::JsonSchema;
use serde::Serialize;
use taut_gate::{CauseChange, HopChange, Noise, Outcome, Plot, SideFailures, Subject, TimeChange};
use taut_stats::compare::{ChangeFigures, Finding, Verdict};

use super::{GateShown, sentences};

/// What `taut gate --format json` and `taut compare --format json` print. `kind` is "gate" or "compare".
pub fn gate_json(shown: &GateShown<'_>, kind: &'static str) -> serde_json::Value {
    serde_json::to_value(gate(shown, kind)).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
struct Gate {
    /// Version of this schema.
    schema_version: u32,
    /// "gate" or "compare".
    kind: &'static str,
    /// "worse", "better", "no relevant difference", "not enough evidence", "invalid": on the program.
    verdict: &'static str,
    /// The verdict in one line.
    headline: String,
    /// About how many more pairs would settle it; null where it is settled, or where no number is sure to.
    more_pairs: Option<usize>,
    /// The baseline: a command, a revision, a file.
    a: String,
    /// The candidate.
    b: String,
    /// The chain's name.
    chain: String,
    /// Its points in order.
    points: Vec<String>,
    /// Pairs that were judged.
    pairs: usize,
    /// Of them, fresh ones that an accusation was held against.
    fresh_pairs: usize,
    /// Null for stored trials.
    elapsed_s: Option<f64>,
    /// What the order within pairs was drawn from; null for stored trials.
    seed: Option<u64>,
    /// Runs that failed, by side.
    failed_runs: FailedRuns,
    /// The first messages, judged by themselves: their slowest, and the deadlines that they missed.
    startup: Vec<Figure>,
    /// The hop that got worse: "from → to"; null unless the verdict is worse and a hop is to blame.
    hop: Option<String>,
    /// The figures that decide.
    decides: Vec<Figure>,
    /// Further figures, each judged by itself.
    described: Vec<Figure>,
    /// Mean time of a message in the median trial, hop by hop.
    hops: Vec<Hop>,
    /// What the machine did meanwhile; null where nothing tells it from the program.
    machine: Option<Machine>,
    /// Trials that said nothing.
    void: Vec<Void>,
    /// What a reader must know.
    notes: Vec<String>,
    /// Distributions over all trials: [from ns, to ns, messages].
    distributions: Distributions,
}

#[derive(Serialize, JsonSchema)]
struct FailedRuns {
    a: Failed,
    b: Failed,
    /// Chance of as many failures of B, if runs of both failed equally often (Fisher's exact test).
    p_worse: f64,
    /// B fails where A never did, or provably more often: then the verdict is "worse".
    is_worse: bool,
}

#[derive(Serialize, JsonSchema)]
struct Failed {
    runs: usize,
    failed: usize,
    /// How the first of them failed: exit code, signal or time; null where none did.
    how: Option<String>,
    /// The last lines of its output.
    output: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Figure {
    /// E.g. "plan → send, own p50".
    figure: String,
    /// Index of the hop; null for the whole way and for shares.
    hop: Option<usize>,
    /// "ns" or "share".
    unit: &'static str,
    /// As the whole gate's.
    verdict: &'static str,
    /// Worse, but the machine got worse with it.
    excused: bool,
    /// Median over A's trials.
    a: Option<f64>,
    /// Median over B's trials.
    b: Option<f64>,
    /// From A to B: 0.1 is +10 % of a time, or 10 points of a share.
    change: Option<f64>,
    /// Lower bound.
    change_low: Option<f64>,
    /// Upper bound.
    change_high: Option<f64>,
    /// Pairs that have this figure.
    pairs: Option<usize>,
    /// Change from which on it counts.
    minimum_effect: Option<f64>,
    /// Against "not worse", adjusted for all figures that decide.
    p_worse: Option<f64>,
    /// Noise of one pair.
    noise: Option<f64>,
    /// Noise of one pair of A with itself; null where nobody asked, or below 4 pairs.
    noise_floor: Option<f64>,
    /// Smallest change that this gate finds with a chance of 0.9; null where nobody asked, or where it finds none.
    smallest_detectable: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Hop {
    from: String,
    to: String,
    /// The program's own time.
    own: Time,
    /// Of it, on a CPU.
    work: Time,
    /// Of it, behind other messages, locks and the interpreter.
    waits: Time,
    /// The machine's part.
    machine: Time,
    /// Largest change first.
    causes: Vec<Cause>,
}

#[derive(Serialize, JsonSchema)]
struct Cause {
    cause: String,
    /// "program" or "machine".
    side: &'static str,
    #[serde(flatten)]
    time: Time,
}

#[derive(Serialize, JsonSchema)]
struct Time {
    /// Median over A's trials of the trial's mean.
    a_ns: f64,
    /// The same of B's.
    b_ns: f64,
    /// Within a pair: Hodges–Lehmann over pairs, which need not be the difference of the medians.
    change_ns: f64,
    /// Its 95 % bounds; null below 6 pairs.
    change_low_ns: Option<f64>,
    /// As above.
    change_high_ns: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Machine {
    /// Proven to have taken more of B than of A.
    is_worse: bool,
    /// Its mean part of a message's way.
    a_ns: Option<f64>,
    b_ns: Option<f64>,
    change_ns: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Void {
    trial: String,
    why: String,
}

#[derive(Serialize, JsonSchema)]
struct Distributions {
    a_total: Vec<(f64, f64, u64)>,
    b_total: Vec<(f64, f64, u64)>,
    a_own: Vec<(f64, f64, u64)>,
    b_own: Vec<(f64, f64, u64)>,
}

fn gate(shown: &GateShown<'_>, kind: &'static str) -> Gate {
    let outcome = shown.outcome;
    let more_pairs = match outcome.verdict {
        Verdict::NotEnoughEvidence { more_pairs } => more_pairs,
        _ => None,
    };
    let hop_name = |at: usize| outcome.hops.get(at).map(|hop| format!("{} → {}", hop.from, hop.to));
    let noise = |subject: Subject| shown.noise.iter().find(|noise| noise.subject == subject);
    let voted = outcome.ballots.iter().map(|b| figure(outcome, b.subject, &b.finding, b.excused, noise(b.subject)));
    let described = outcome.described.iter().map(|d| figure(outcome, d.subject, &d.finding, false, None));
    let [a_total, b_total, a_own, b_own] = &outcome.plots;
    let bins = |plot: &Plot| plot.bins().collect();
    Gate {
        schema_version: crate::SCHEMA_VERSION,
        kind,
        verdict: sentences::word(&outcome.verdict),
        headline: sentences::headline(shown),
        more_pairs,
        a: shown.a.to_owned(),
        b: shown.b.to_owned(),
        chain: outcome.chain.clone(),
        points: outcome.points.clone(),
        pairs: outcome.pairs,
        fresh_pairs: outcome.fresh,
        elapsed_s: shown.elapsed_s,
        seed: shown.seed,
        failed_runs: FailedRuns {
            a: failed(&outcome.failures.a),
            b: failed(&outcome.failures.b),
            p_worse: outcome.failures.p_worse,
            is_worse: outcome.failures.is_worse,
        },
        startup: outcome.startup.iter().map(|b| figure(outcome, b.subject, &b.finding, b.excused, None)).collect(),
        hop: outcome.blamed.and_then(hop_name),
        decides: voted.collect(),
        described: described.collect(),
        hops: outcome.hops.iter().map(hop).collect(),
        machine: outcome.machine.as_ref().map(|machine| {
            let figures = machine.finding.figures.as_ref();
            Machine {
                is_worse: machine.is_worse,
                a_ns: figures.map(|figures| figures.a.value),
                b_ns: figures.map(|figures| figures.b.value),
                change_ns: figures.map(|figures| figures.change),
            }
        }),
        void: outcome.void.iter().map(|(trial, why)| Void { trial: trial.clone(), why: why.to_string() }).collect(),
        notes: sentences::notes(shown),
        distributions: Distributions {
            a_total: bins(a_total),
            b_total: bins(b_total),
            a_own: bins(a_own),
            b_own: bins(b_own),
        },
    }
}

fn failed(side: &SideFailures) -> Failed {
    Failed {
        runs: side.runs,
        failed: side.failed,
        how: side.first.as_ref().map(|failure| failure.how.clone()),
        output: side.first.as_ref().map_or(Vec::new(), |failure| failure.said.clone()),
    }
}

fn figure(outcome: &Outcome, subject: Subject, finding: &Finding, excused: bool, noise: Option<&Noise>) -> Figure {
    let figures = finding.figures.as_ref();
    let of = |value: fn(&ChangeFigures) -> f64| figures.map(value);
    let interval = figures.and_then(|figures| figures.interval);
    Figure {
        figure: sentences::name(subject, outcome),
        hop: subject.hop(),
        unit: if subject.is_share() { "share" } else { "ns" },
        verdict: sentences::word(&finding.verdict),
        excused,
        a: of(|figures| figures.a.value),
        b: of(|figures| figures.b.value),
        change: of(|figures| figures.change),
        change_low: interval.map(|interval| interval.low),
        change_high: interval.map(|interval| interval.high),
        pairs: figures.map(|figures| figures.pairs),
        minimum_effect: of(|figures| figures.minimum_effect),
        p_worse: of(|figures| figures.p_worse),
        noise: figures.and_then(|figures| figures.noise),
        noise_floor: noise.and_then(|noise| noise.of_pair),
        smallest_detectable: noise.and_then(|noise| noise.smallest),
    }
}

fn hop(hop: &HopChange) -> Hop {
    let cause = |cause: &CauseChange| Cause {
        cause: cause.cause.clone(),
        side: if cause.is_machine { "machine" } else { "program" },
        time: time(&cause.time),
    };
    Hop {
        from: hop.from.clone(),
        to: hop.to.clone(),
        own: time(&hop.own),
        work: time(&hop.work),
        waits: time(&hop.waits),
        machine: time(&hop.machine),
        causes: hop.causes.iter().map(cause).collect(),
    }
}

fn time(time: &TimeChange) -> Time {
    Time {
        a_ns: time.a_ns,
        b_ns: time.b_ns,
        change_ns: time.change_ns,
        change_low_ns: time.bounds_ns.map(|(low, _)| low),
        change_high_ns: time.bounds_ns.map(|(_, high)| high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gate::sample, json::assert_documented};

    #[test]
    fn a_script_finds_the_verdict_the_hop_and_the_figures() {
        let (_, outcome) = sample::outcomes().remove(0);
        let value = gate_json(&sample::shown(&outcome), "gate");
        assert_eq!((&value["verdict"], &value["hop"]), (&"worse".into(), &"read → plan".into()));
        assert_eq!(value["decides"].as_array().unwrap().len(), outcome.ballots.len());
        assert!(value["distributions"]["a_total"].as_array().unwrap().len() > 2);
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        assert_documented(&schemars::schema_for!(Gate).to_value(), "schemas/gate.schema.json");
    }
}
