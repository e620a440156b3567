//! The JSON form of a probe: serialisable twins of the findings, made here at the edge so that the findings may change
//! without breaking scripts. The schema is documented in `docs/schemas/wakeup.schema.json`, generated from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_wakeup as found;

use super::{headline, sentences};
use crate::json_figures::{Figures, figures};

/// What `taut wakeup --format json` prints.
pub fn wakeup_json(findings: &found::Findings) -> serde_json::Value {
    serde_json::to_value(probe(findings)).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
struct Wakeup {
    /// Version of this schema.
    schema_version: u32,
    /// "wakeup".
    kind: &'static str,
    /// What a busy reader needs.
    headline: String,
    /// Facts of the machine by name, and the command that measures the same again.
    machine: BTreeMap<String, String>,
    /// Seconds since 1970.
    started_s: f64,
    /// All variants together.
    measured_s: f64,
    /// What one must know to trust the figures.
    notes: Vec<String>,
    /// In the order asked for; they ran in turn.
    variants: Vec<Variant>,
    /// Null with fewer than two CPUs.
    stalls: Option<Stalls>,
    /// Null unless asked for.
    throttling: Option<Throttling>,
    /// Each way to sleep at each length, beside the kernel's rule for its slack; empty unless there were several.
    slack: Vec<SlackFit>,
    /// Null unless asked for.
    explained: Option<Explained>,
    /// What the kernel's own tracers say beside it; null unless asked for.
    tracers: Option<Tracers>,
}

#[derive(Serialize, JsonSchema)]
struct Tracers {
    /// Each.
    watched_s: f64,
    /// Null where the kernel has none, or it may not be used.
    timerlat: Option<Timerlat>,
    /// Null where the kernel has none, or it may not be used.
    osnoise: Option<Osnoise>,
    /// Why one is null.
    missing: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Timerlat {
    n: u64,
    /// Lateness of the timer's interrupt.
    irq_p50_ns: u64,
    irq_max_ns: u64,
    /// Lateness of its SCHED_FIFO thread.
    thread_p50_ns: u64,
    thread_max_ns: u64,
}

#[derive(Serialize, JsonSchema)]
struct Osnoise {
    /// All CPUs together.
    runtime_us: u64,
    noise_us: u64,
    /// At once.
    max_us: u64,
    /// How often by hardware or a hypervisor.
    hardware: u64,
    nmi: u64,
    irq: u64,
    softirq: u64,
    thread: u64,
}

#[derive(Serialize, JsonSchema)]
struct Variant {
    /// What tells it from the others; "" when it is the only one.
    label: String,
    settings: BTreeMap<String, String>,
    /// Intended distance of cycles; 0 when read from a file.
    interval_ns: u64,
    /// CPU time of the probe's own threads over measured time; 1.0 is one core.
    own_cpu: f64,
    /// Of the probe, while it measured.
    page_faults: u64,
    /// Median; null where the machine shows none.
    frequency_khz: Option<u64>,
    idle_states: Vec<IdleState>,
    /// How far it is from a normal distribution; null where there is too little to say.
    normality: Option<String>,
    /// Against the first variant, over the rounds in which they took turns; null of the first, and of what was read from a
    /// file.
    against_first: Option<Against>,
    /// All CPUs together.
    all: Series,
    cpus: Vec<Cpu>,
}

#[derive(Serialize, JsonSchema)]
struct Against {
    /// "p99", or "p50" where there is too little for that.
    figure: &'static str,
    /// This over the first, Hodges and Lehmann's estimate.
    ratio: f64,
    /// All of them hold together with 95 %; null with too few rounds. A difference is shown where it does not include 1.
    interval: Option<(f64, f64)>,
    rounds: usize,
}

#[derive(Serialize, JsonSchema)]
struct IdleState {
    name: String,
    entered: u64,
    ns: u64,
}

#[derive(Serialize, JsonSchema)]
struct Cpu {
    /// Null when the thread was not pinned.
    cpu: Option<u32>,
    #[serde(flatten)]
    series: Series,
}

#[derive(Serialize, JsonSchema)]
struct Series {
    /// Each wake that happened.
    wakeups: Figures,
    /// Every intended cycle; one that a late wake ran over counts with the time until that wake.
    cycles: Figures,
    /// Cycles that a late wake ran over.
    missed: u64,
    /// Wakes that the collector did not get.
    lost: u64,
    /// [quantile 0..1, ns] of the wakeups.
    curve: Vec<(f64, u64)>,
    /// [quantile 0..1, ns] of the cycles.
    cycles_curve: Vec<(f64, u64)>,
    /// [from_ns, to_ns, count] of the wakeups.
    histogram: Vec<(u64, u64, u64)>,
    /// [end of the stretch in s of measured time, ns]: worst wake of each stretch.
    worst: Vec<(f64, u64)>,
}

#[derive(Serialize, JsonSchema)]
struct Stalls {
    threshold_ns: u64,
    /// CPUs that watched.
    cpus: usize,
    /// Stalls of single CPUs.
    single: u64,
    single_ns: u64,
    /// Stalls that all CPUs had at once.
    together: u64,
    together_ns: u64,
    together_max_ns: u64,
    /// The same for CPUs that stall independently of each other.
    by_chance_ns: u64,
    /// Whether all probes were real-time.
    real_time: bool,
    /// That the kernel counted meanwhile.
    steal_ns: u64,
    sentence: String,
}

#[derive(Serialize, JsonSchema)]
struct Throttling {
    watched_ns: u64,
    /// Of at least a millisecond.
    gaps_ns: Vec<u64>,
    /// Time an ordinary thread got in them.
    hog_ns: u64,
    rt_runtime_us: Option<i64>,
    sentence: String,
}

#[derive(Serialize, JsonSchema)]
struct SlackFit {
    /// The call, and what else tells its variant from the others but the length.
    way: String,
    wake: String,
    sleep_ns: u64,
    /// Median lateness.
    p50_ns: Option<u64>,
    /// By the kernel's rule for this call, policy and length.
    slack_ns: u64,
    /// p50_ns without it.
    rest_ns: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
struct Explained {
    threshold_ns: u64,
    /// Wakes beyond it.
    late: u64,
    recorded: u64,
    lost_kernel_events: u64,
    /// "full", "self" or "stamps".
    tier: String,
    sentence: String,
    /// Largest first.
    parts: Vec<Part>,
    /// Largest first.
    responsible: Vec<ResponsibleParty>,
    /// Latest first.
    worst: Vec<LateWake>,
}

#[derive(Serialize, JsonSchema)]
struct Part {
    what: String,
    /// Of all late wakes together.
    ns: u64,
    wakes: u64,
}

#[derive(Serialize, JsonSchema)]
struct ResponsibleParty {
    /// "thread", "process", "irq".
    kind: String,
    name: String,
    ns: u64,
    wakes: u64,
}

#[derive(Serialize, JsonSchema)]
struct LateWake {
    /// Since the recording's start.
    due_ns: u64,
    cpu: Option<u32>,
    /// The sum of its parts.
    late_ns: u64,
    /// In order of time.
    parts: Vec<Piece>,
}

#[derive(Serialize, JsonSchema)]
struct Piece {
    what: String,
    /// Who or what exactly; "" where there is nothing to name.
    who: String,
    ns: u64,
}

fn probe(findings: &found::Findings) -> Wakeup {
    Wakeup {
        schema_version: crate::SCHEMA_VERSION,
        kind: "wakeup",
        headline: headline::headline(findings),
        machine: findings.machine.clone(),
        started_s: findings.started_s,
        measured_s: findings.measured_s,
        notes: findings.notes.clone(),
        variants: variants(findings),
        stalls: findings.stalls.as_ref().map(stalls),
        throttling: findings.throttling.as_ref().map(throttling),
        slack: findings.slack.iter().enumerate().map(|(at, fit)| slack_fit(super::way(findings, at), fit)).collect(),
        explained: findings.explained.as_ref().map(explained),
        tracers: findings.tracers.as_ref().map(tracers),
    }
}

fn tracers(found: &found::Tracers) -> Tracers {
    let timerlat = |t: found::Timerlat| {
        let found::Timerlat { n, irq_p50_ns, irq_max_ns, thread_p50_ns, thread_max_ns } = t;
        Timerlat { n, irq_p50_ns, irq_max_ns, thread_p50_ns, thread_max_ns }
    };
    let osnoise = |o: found::Osnoise| {
        let found::Osnoise { runtime_us, noise_us, max_us, hardware, nmi, irq, softirq, thread } = o;
        Osnoise { runtime_us, noise_us, max_us, hardware, nmi, irq, softirq, thread }
    };
    Tracers {
        watched_s: found.watched_s,
        timerlat: found.timerlat.map(timerlat),
        osnoise: found.osnoise.map(osnoise),
        missing: found.missing.clone(),
    }
}

fn variants(findings: &found::Findings) -> Vec<Variant> {
    let compared = found::compared(&findings.variants);
    let against = std::iter::once(None).chain(compared).map(|compared| {
        compared.map(|found::Compared { figure, ratio, interval, rounds }| Against { figure, ratio, interval, rounds })
    });
    findings
        .variants
        .iter()
        .zip(against)
        .map(|(one, against_first)| Variant { against_first, ..variant(one) })
        .collect()
}

fn variant(variant: &found::Variant) -> Variant {
    let idle_state =
        |(name, entered, ns): &(String, u64, u64)| IdleState { name: name.clone(), entered: *entered, ns: *ns };
    Variant {
        label: variant.label.clone(),
        settings: variant.settings.clone(),
        interval_ns: variant.interval_ns,
        own_cpu: variant.own_cpu,
        page_faults: variant.page_faults,
        frequency_khz: variant.frequency_khz,
        idle_states: variant.idle_states.iter().map(idle_state).collect(),
        normality: sentences::normality(variant),
        against_first: None,
        all: series(&variant.all),
        cpus: variant.cpus.iter().map(|cpu| Cpu { cpu: cpu.cpu, series: series(&cpu.series) }).collect(),
    }
}

fn series(series: &found::Series) -> Series {
    Series {
        wakeups: figures(&series.wakeups.distribution()),
        cycles: figures(&series.cycles.distribution()),
        missed: series.missed,
        lost: series.lost,
        curve: series.wakeups.percentile_curve(),
        cycles_curve: series.cycles.percentile_curve(),
        histogram: series.wakeups.histogram(),
        worst: series.worst.clone(),
    }
}

fn stalls(stalls: &found::Stalls) -> Stalls {
    let sentence = sentences::stalls(stalls);
    Stalls {
        threshold_ns: stalls.threshold_ns,
        cpus: stalls.cpus,
        single: stalls.single,
        single_ns: stalls.single_ns,
        together: stalls.together,
        together_ns: stalls.together_ns,
        together_max_ns: stalls.together_max_ns,
        by_chance_ns: stalls.by_chance_ns,
        real_time: stalls.real_time,
        steal_ns: stalls.steal_ns,
        sentence,
    }
}

fn throttling(found: &found::Throttling) -> Throttling {
    Throttling {
        watched_ns: found.watched_ns,
        gaps_ns: found.gaps_ns.clone(),
        hog_ns: found.hog_ns,
        rt_runtime_us: found.rt_runtime_us,
        sentence: sentences::throttling(found),
    }
}

fn slack_fit(way: String, fit: &found::SlackFit) -> SlackFit {
    let found::SlackFit { wake, sleep_ns, p50_ns, slack_ns, rest_ns } = fit.clone();
    SlackFit { way, wake, sleep_ns, p50_ns, slack_ns, rest_ns }
}

fn explained(found: &found::ExplainedWakeups) -> Explained {
    let part = |part: &found::Part| Part { what: part.what.clone(), ns: part.ns, wakes: part.wakes };
    let party = |found: &found::ResponsibleParty| {
        let found::ResponsibleParty { kind, name, ns, wakes } = found.clone();
        ResponsibleParty { kind, name, ns, wakes }
    };
    let piece = |(what, who, ns): &(String, String, u64)| Piece { what: what.clone(), who: who.clone(), ns: *ns };
    let late_wake = |wake: &found::LateWake| LateWake {
        due_ns: wake.due_ns,
        cpu: wake.cpu,
        late_ns: wake.late_ns,
        parts: wake.parts.iter().map(piece).collect(),
    };
    Explained {
        threshold_ns: found.threshold_ns,
        late: found.late,
        recorded: found.recorded,
        lost_kernel_events: found.lost_kernel_events,
        tier: found.tier.clone(),
        sentence: sentences::explained(found),
        parts: found.parts.iter().map(part).collect(),
        responsible: found.responsible.iter().map(party).collect(),
        worst: found.worst.iter().map(late_wake).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json::assert_documented, wakeup::sample};

    #[test]
    fn the_contract_holds() {
        let value = wakeup_json(&sample::two_ways());
        for field in [
            "/schema_version",
            "/machine/kernel",
            "/started_s",
            "/measured_s",
            "/notes/0",
            "/variants/0/label",
            "/variants/0/settings/wake",
            "/variants/0/interval_ns",
            "/variants/0/own_cpu",
            "/variants/1/against_first/interval/1",
            "/variants/0/page_faults",
            "/variants/0/frequency_khz",
            "/variants/0/idle_states/0/name",
            "/variants/0/all/wakeups/p999_ns",
            "/variants/0/all/cycles/sd_ns",
            "/variants/0/all/cycles_curve/0/1",
            "/variants/0/all/histogram/0/2",
            "/variants/0/all/worst/0/1",
            "/variants/0/all/lost",
            "/variants/0/cpus/1/cpu",
            "/variants/0/cpus/1/missed",
            "/variants/0/cpus/1/curve/0/0",
            "/stalls/together_max_ns",
            "/throttling/gaps_ns/3",
            "/slack",
            "/explained/worst/0/parts/0/ns",
        ] {
            assert!(value.pointer(field).is_some(), "{field} is missing");
        }
        assert_eq!(value["kind"], "wakeup");
        assert_eq!(wakeup_json(&sample::sweep())["slack"].as_array().unwrap().len(), 15);
    }

    #[test]
    fn what_is_not_known_is_null() {
        let mut findings = found::Findings { variants: vec![found::Variant::default()], ..Default::default() };
        findings.variants[0].cpus.push(found::CpuSeries::default());
        let value = wakeup_json(&findings);
        for field in
            ["/stalls", "/throttling", "/explained", "/variants/0/cpus/0/cpu", "/variants/0/all/wakeups/p50_ns"]
        {
            assert!(value.pointer(field).is_some_and(serde_json::Value::is_null), "{field}");
        }
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        assert_documented(&schemars::schema_for!(Wakeup).to_value(), "schemas/wakeup.schema.json");
    }
}
