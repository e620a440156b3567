//! A probe's findings as a document, and as JSON. As everywhere in this crate nothing is measured here; what is said of the figures
//! is said once (`headline`, `sentences`).

mod document;
mod headline;
mod json;
mod sentences;

#[cfg(test)]
pub(crate) mod sample;

pub use document::wakeup_document;
pub use json::wakeup_json;

use taut_wakeup::{CpuSeries, Findings, SlackFit, Variant};

/// With more rows of CPUs than this, only the latest ones are shown one by one.
const CPUS_MAX: usize = 16;
/// So many of them.
const CPUS_SHOWN: usize = 8;
/// With more variants than this, their CPUs are not told apart.
const VARIANTS_MAX: usize = 6;

/// The CPUs of a variant that are shown one by one, and how many of those that might be are not. One that is all there
/// is needs no row beside "all".
fn shown_cpus(variant: &Variant, variants: usize) -> (Vec<&CpuSeries>, usize) {
    if variant.cpus.len() < 2 || variants > VARIANTS_MAX {
        return (Vec::new(), 0);
    }
    let mut cpus: Vec<&CpuSeries> = variant.cpus.iter().collect();
    if cpus.len() > CPUS_MAX {
        cpus.sort_by_key(|cpu| std::cmp::Reverse(cpu.series.wakeups.max()));
        cpus.truncate(CPUS_SHOWN);
        cpus.sort_by_key(|cpu| cpu.cpu);
    }
    let hidden = variant.cpus.len() - cpus.len();
    (cpus, hidden)
}

/// "CPU 1", or what a thread that was not pinned is called.
fn cpu_name(cpu: Option<u32>) -> String {
    cpu.map_or("not pinned".into(), |cpu| format!("CPU {cpu}"))
}

/// Whether it comes from a file, which knows neither the interval nor the probe's own doings.
fn is_read_back(variant: &Variant) -> bool {
    variant.interval_ns == 0
}

/// One way to sleep at several lengths, shortest first.
struct Sweep<'a> {
    /// "select", or "select, load cpu=30" where that tells it from others.
    way: String,
    fits: Vec<&'a SlackFit>,
}

/// The ways to sleep, in the order of first sight; none where no way was tried at several lengths.
fn sweeps(findings: &Findings) -> Vec<Sweep<'_>> {
    let mut sweeps: Vec<Sweep<'_>> = Vec::new();
    for (at, fit) in findings.slack.iter().enumerate() {
        let way = way(findings, at);
        match sweeps.iter_mut().find(|sweep| sweep.way == way) {
            Some(sweep) => sweep.fits.push(fit),
            None => sweeps.push(Sweep { way, fits: vec![fit] }),
        }
    }
    sweeps.iter_mut().for_each(|sweep| sweep.fits.sort_by_key(|fit| fit.sleep_ns));
    sweeps.retain(|sweep| sweep.fits.len() > 1);
    sweeps
}

/// The call, and what else tells its variant from others; each fit stands where its variant stands.
fn way(findings: &Findings, at: usize) -> String {
    let mut way = findings.slack[at].wake.clone();
    let Some(variant) = findings.variants.get(at) else { return way };
    for (key, value) in &variant.settings {
        let differs = findings.variants.iter().any(|other| other.settings.get(key) != Some(value));
        if differs && !["wake", "interval"].contains(&key.as_str()) {
            way += &format!(", {key} {value}");
        }
    }
    way
}
