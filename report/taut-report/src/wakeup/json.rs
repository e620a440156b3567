//! The JSON form of a probe: its findings, with their sentences and with figures for distributions. The schema is
//! `docs/schemas/wakeup.schema.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::Distribution;
use taut_wakeup::{
    Compared, ExplainedWakeups, Findings, IdleState, Series, SlackFit, Stalls, Throttling, Tracers, Variant, compared,
};

use super::{headline, sentences, way};
use crate::envelope::{self, Said};

/// What `taut wakeup --format json` prints.
pub fn wakeup_json(findings: &Findings) -> serde_json::Value {
    let against = std::iter::once(None).chain(compared(&findings.variants));
    let wakeup = Wakeup {
        machine: &findings.machine,
        started_s: findings.started_s,
        measured_s: findings.measured_s,
        notes: &findings.notes,
        variants: findings
            .variants
            .iter()
            .zip(against)
            .map(|(one, against)| MeasuredVariant::of(one, against))
            .collect(),
        stalls: Said::of(findings.stalls.as_ref(), sentences::stalls),
        throttling: Said::of(findings.throttling.as_ref(), sentences::throttling),
        slack: findings.slack.iter().enumerate().map(|(at, fit)| WayFit { way: way(findings, at), fit }).collect(),
        explained: Said::of(findings.explained.as_ref(), sentences::explained),
        tracers: findings.tracers.as_ref(),
    };
    envelope::json("wakeup", headline::headline(findings), wakeup)
}

#[derive(Serialize, JsonSchema)]
struct Wakeup<'a> {
    /// Facts of the machine by name, and the command that measures the same again.
    machine: &'a BTreeMap<String, String>,
    /// Seconds since 1970.
    started_s: f64,
    /// All variants together.
    measured_s: f64,
    /// What one must know to trust the figures.
    notes: &'a [String],
    /// In the order asked for; they ran in turn.
    variants: Vec<MeasuredVariant<'a>>,
    /// Null with fewer than two CPUs.
    stalls: Option<Said<&'a Stalls>>,
    /// Null unless asked for.
    throttling: Option<Said<&'a Throttling>>,
    /// Each way to sleep at each length, beside the kernel's rule for its slack; empty unless there were several.
    slack: Vec<WayFit<'a>>,
    /// Null unless asked for.
    explained: Option<Said<&'a ExplainedWakeups>>,
    /// What the kernel's own tracers say beside it; null unless asked for.
    tracers: Option<&'a Tracers>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SlackFit")]
struct WayFit<'a> {
    /// The call, and what else tells its variant from the others but the length.
    way: String,
    #[serde(flatten)]
    fit: &'a SlackFit,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Variant")]
struct MeasuredVariant<'a> {
    /// What tells it from the others; "" when it is the only one.
    label: &'a str,
    settings: &'a BTreeMap<String, String>,
    /// Intended distance of cycles; 0 when read from a file.
    interval_ns: u64,
    /// CPU time of the probe's own threads over measured time; 1.0 is one core.
    own_cpu: f64,
    /// Of the probe, while it measured.
    page_faults: u64,
    /// Median; null where the machine shows none.
    frequency_khz: Option<u64>,
    idle_states: &'a [IdleState],
    /// How far it is from a normal distribution; null where there is too little to say.
    normality: Option<String>,
    /// Against the first variant, over the rounds in which they took turns; null of the first, and of what was read from a
    /// file.
    against_first: Option<Compared>,
    /// All CPUs together.
    all: SeriesFigures,
    cpus: Vec<CpuFigures>,
}

impl<'a> MeasuredVariant<'a> {
    fn of(variant: &'a Variant, against_first: Option<Compared>) -> MeasuredVariant<'a> {
        let Variant {
            label, settings, interval_ns, cpus, all, own_cpu, page_faults, frequency_khz, idle_states, ..
        } = variant;
        MeasuredVariant {
            label,
            settings,
            interval_ns: *interval_ns,
            own_cpu: *own_cpu,
            page_faults: *page_faults,
            frequency_khz: *frequency_khz,
            idle_states,
            normality: sentences::normality(variant),
            against_first,
            all: SeriesFigures::of(all),
            cpus: cpus.iter().map(|of| CpuFigures { cpu: of.cpu, series: SeriesFigures::of(&of.series) }).collect(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Cpu")]
struct CpuFigures {
    /// Null when the thread was not pinned.
    cpu: Option<u32>,
    #[serde(flatten)]
    series: SeriesFigures,
}

/// A [`Series`], whose sketches say nothing to a reader.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Series")]
struct SeriesFigures {
    /// Each wake that happened.
    wakeups: Distribution,
    /// Every intended cycle; one that a late wake ran over counts with the time until that wake.
    cycles: Distribution,
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

impl SeriesFigures {
    fn of(series: &Series) -> SeriesFigures {
        SeriesFigures {
            wakeups: series.wakeups.distribution(),
            cycles: series.cycles.distribution(),
            missed: series.missed,
            lost: series.lost,
            curve: series.wakeups.percentile_curve(),
            cycles_curve: series.cycles.percentile_curve(),
            histogram: series.wakeups.histogram(),
            worst: series.worst.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{envelope::Envelope, json::assert_documented, wakeup::sample};

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
        let mut findings = Findings { variants: vec![Variant::default()], ..Default::default() };
        findings.variants[0].cpus.push(taut_wakeup::CpuSeries::default());
        let value = wakeup_json(&findings);
        for field in
            ["/stalls", "/throttling", "/explained", "/variants/0/cpus/0/cpu", "/variants/0/all/wakeups/p50_ns"]
        {
            assert!(value.pointer(field).is_some_and(serde_json::Value::is_null), "{field}");
        }
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        assert_documented(&schemars::schema_for!(Envelope<Wakeup<'_>>).to_value(), "schemas/wakeup.schema.json");
    }
}
