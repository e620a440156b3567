//! Limits that a scenario sets besides its load: CPU time, network, frequency. Set before the system starts, measured
//! with every trial, lifted with the system.

use super::Session;
use crate::{
    Achieved, Error, Network, Scenario,
    isolation::{Cap, Cgroups, Namespace},
};

/// How far above a quota or a cap a reading may be: clocks and periods are coarse.
const GRAIN: f64 = 1.1;
/// In each of these a quota may be used; and how coarse the CPU time of ended processes is.
const PERIOD_S: f64 = 0.1;
const TICK_S: f64 = 0.01;

/// The limits of a scenario that are in force.
pub(super) struct Limits<'a> {
    quota: Option<(f64, &'a Cgroups)>,
    /// With what packets met when it was laid on.
    network: Option<(Network, crate::isolation::Met)>,
    cap: Option<(u32, Cap)>,
}

impl<'a> Limits<'a> {
    pub fn set(
        session: &'a Session<'a>,
        scenario: &Scenario,
        namespace: Option<&Namespace>,
    ) -> Result<Limits<'a>, Error> {
        let failed = |key: &str, problem: String| {
            let place = format!("scenario {:?}.{key}", scenario.name);
            Error::Start { place, problem }
        };
        let mut limits = Limits { quota: None, network: None, cap: None };
        let is_grouped = session.lab.has_own_group(scenario);
        let key = if session.lab.own_group { "own_group" } else { "system_quota" };
        let no_group = |why: String| failed(key, format!("no control group ({why}); run as root"));
        match &session.cgroups {
            Some(groups) => groups.set_timed(is_grouped).map_err(|error| no_group(error.to_string()))?,
            None if is_grouped => return Err(no_group(session.confinement.clone())),
            None => {}
        }
        if let (Some(cpus), Some(groups)) = (scenario.system_quota, &session.cgroups) {
            groups.set_quota(Some(cpus)).map_err(|error| no_group(error.to_string()))?;
            limits.quota = Some((cpus, groups));
        }
        if let (Some(network), Some(namespace)) = (scenario.network, namespace) {
            let met = namespace.shape(&network).and_then(|()| namespace.measure());
            limits.network = Some((network, met.map_err(|error| failed("network", error.to_string()))?));
        }
        if let Some(mhz) = scenario.max_frequency_mhz {
            let cap = Cap::set(mhz, session.mine.folder());
            limits.cap = Some((mhz, cap.map_err(|error| failed("max_frequency_mhz", error.to_string()))?));
        }
        Ok(limits)
    }

    /// What each limit came to in a trial of so many seconds; `used`: CPUs that the system kept busy.
    pub fn achieved(&self, used: f64, wall_s: f64, enough: f64) -> Vec<Achieved> {
        let one = |load: String, unit: &str, target: f64, achieved: f64, applied: bool| Achieved {
            load,
            unit: unit.into(),
            target: Some(target),
            achieved,
            sent: None,
            matched: None,
            topics: Vec::new(),
            cpus_busy: 0.0,
            cpus_wanted: 0.0,
            applied,
        };
        let mut all = Vec::new();
        if let Some((cpus, _)) = self.quota {
            // A short trial may have the time of one period more than its length says, and a tick of the clock.
            let most = cpus * (GRAIN + PERIOD_S / wall_s) + 0.05 + TICK_S / wall_s;
            all.push(one(format!("quota {cpus} CPUs"), "CPUs used", cpus, used, used <= most));
        }
        if let Some((network, met)) = &self.network {
            if network.delay_ms > 0.0 {
                let fine = met.delay_ms >= enough * network.delay_ms;
                all.push(one(network.to_string(), "ms one way", network.delay_ms, met.delay_ms, fine));
            }
            if network.loss_percent > 0.0 {
                let lost = 100.0 * met.lost as f64 / met.sent.max(1) as f64;
                let fine = network.lost_enough(met);
                all.push(one(network.to_string(), "% lost", network.loss_percent, lost, fine));
            }
        }
        if let Some((mhz, cap)) = &self.cap {
            let fastest = cap.fastest_mhz().unwrap_or(f64::from(*mhz));
            let fine = fastest <= f64::from(*mhz) * GRAIN;
            all.push(one(format!("at most {mhz} MHz"), "MHz", f64::from(*mhz), fastest, fine));
        }
        all
    }
}

impl Drop for Limits<'_> {
    fn drop(&mut self) {
        if let Some((_, groups)) = self.quota {
            let _ = groups.set_quota(None);
        }
    }
}
