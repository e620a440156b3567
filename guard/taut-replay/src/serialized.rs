//! How figures of a replay are written: seconds and milliseconds for people, hashes as their digits, counts by name.

use serde::Serializer;
use taut_guard::Parameters;

pub(crate) fn seconds<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ns as f64 * 1e-9)
}

pub(crate) fn maybe_seconds<S: Serializer>(ns: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match ns {
        Some(ns) => seconds(ns, serializer),
        None => serializer.serialize_none(),
    }
}

pub(crate) fn milliseconds<S: Serializer>(all_ns: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all_ns.iter().map(|ns| *ns as f64 * 1e-6))
}

pub(crate) fn hash<S: Serializer>(parameters: &Parameters, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{:016x}", parameters.hash()))
}

pub(crate) fn by_name<S: Serializer>(counts: &[(&'static str, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().map(|(name, count)| (name, count)))
}
