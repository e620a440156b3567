//! The setpoint ledger.

use std::collections::HashMap;

use pyo3::prelude::*;
use taut_guard::ledger::{self, Reason};

use super::{fate, reason, refused};

/// Setpoints that may be without a fate at once.
const IN_FLIGHT: usize = 256;

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Ledger>()?;
    module.add_class::<Balance>()?;
    module.add("REASONS", Reason::ALL.map(Reason::name).to_vec())
}

/// The sums of a ledger, as they were when asked for.
#[pyclass(module = "taut.guard", frozen, get_all)]
pub struct Balance {
    produced: u64,
    acknowledged: u64,
    superseded: u64,
    rejected: u64,
    in_flight: u64,
    silent: u64,
    delivered_share: Option<f64>,
    is_alarmed: bool,
    is_saturated: bool,
}

#[pymethods]
impl Balance {
    fn __repr__(&self) -> String {
        format!(
            "Balance(produced={}, acknowledged={}, superseded={}, rejected={}, in_flight={}, silent={}, is_alarmed={})",
            self.produced,
            self.acknowledged,
            self.superseded,
            self.rejected,
            self.in_flight,
            self.silent,
            if self.is_alarmed { "True" } else { "False" },
        )
    }
}

/// Gives each setpoint exactly one fate, and holds the sums.
#[pyclass(module = "taut.guard")]
pub struct Ledger(ledger::Ledger<IN_FLIGHT, u64>);

#[pymethods]
impl Ledger {
    #[new]
    fn new() -> Ledger {
        Ledger(ledger::Ledger::new())
    }

    /// Enters a new setpoint; at most 256 are in flight at once.
    fn produce(&mut self, id: u64, now_ns: u64) -> PyResult<()> {
        self.0.produce(id, now_ns).map_err(refused)
    }

    /// Gives a setpoint its one fate; returns its age in ns.
    #[pyo3(signature = (id, now_ns, fate = "passed", reason = None))]
    fn end(&mut self, id: u64, now_ns: u64, fate: &str, reason: Option<&str>) -> PyResult<u64> {
        self.0.end(id, super::fate(fate, reason)?, now_ns).map_err(refused)
    }

    /// Ends every setpoint that was produced before `before_ns`; returns how many.
    fn end_older(&mut self, before_ns: u64, now_ns: u64, fate: &str, reason: &str) -> PyResult<u64> {
        self.0.end_older(before_ns, self::fate(fate, Some(reason))?, now_ns).map_err(refused)
    }

    fn is_in_flight(&self, id: u64) -> bool {
        self.0.is_in_flight(id)
    }

    /// How many setpoints met a reason, whatever it did to them.
    fn count(&self, reason: &str) -> PyResult<u64> {
        Ok(self.0.count(self::reason(reason)?))
    }

    /// The share of a reason among all that were produced.
    fn share(&self, reason: &str) -> PyResult<f64> {
        Ok(self.0.share(self::reason(reason)?))
    }

    /// Every reason that was met, with its count.
    fn counts(&self) -> HashMap<&'static str, u64> {
        let met = Reason::ALL.into_iter().map(|reason| (reason.name(), self.0.count(reason)));
        met.filter(|(_, count)| *count > 0).collect()
    }

    /// The longest time from production to fate.
    #[getter]
    fn age_max_ns(&self) -> u64 {
        self.0.age_max_ns()
    }

    /// Checks the law of conservation; call it once a second. GuardError if setpoints are unexplained.
    fn balance(&mut self, now_ns: u64) -> PyResult<Balance> {
        let ledger::Balance {
            produced,
            acknowledged,
            superseded,
            rejected,
            in_flight,
            silent,
            delivered_share,
            is_alarmed,
            is_saturated,
        } = self.0.balance(now_ns).map_err(refused)?;
        Ok(Balance {
            produced,
            acknowledged,
            superseded,
            rejected,
            in_flight,
            silent,
            delivered_share,
            is_alarmed,
            is_saturated,
        })
    }
}
