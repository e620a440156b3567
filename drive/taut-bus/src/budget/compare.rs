//! A recording's phases against the model: what is left unexplained, phase by phase and term by term.

use super::{
    error::Error,
    file::CycleBudget,
    forecast::{Cost, Forecast},
    term::Price,
};

/// The time of one phase, or of a whole cycle, in a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredPhase {
    /// As in the point `bus.<phase>` that begins it.
    pub phase: String,
    /// Cycles.
    pub n: u64,
    /// Mean, µs: only means add up to the cycle's.
    pub mean_us: f64,
    /// Median, µs.
    pub p50_us: Option<f64>,
    /// 99th percentile, µs.
    pub p99_us: Option<f64>,
}

/// Model and recording side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// In the recording's order, then what was not stamped.
    pub phases: Vec<PhaseResidual>,
    /// Of all phases that were stamped and are in the model or not.
    pub cycle: PhaseResidual,
    /// In the order of the forecast's costs.
    pub terms: Vec<TermResidual>,
}

/// One phase, model against recording.
#[derive(Clone, Debug)]
pub struct PhaseResidual {
    /// Its name.
    pub phase: String,
    /// Mean of the model's terms in it, µs; 0 when the model has none.
    pub model_us: f64,
    /// `None` when it was not stamped.
    pub measured: Option<MeasuredPhase>,
    /// What the model does not explain; `None` when it was not stamped.
    pub residual: Option<Residual>,
}

/// Measured mean less the model's, in two parts that ask for different remedies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Residual {
    /// Measured median less the model's mean, µs: what the typical cycle has beyond the model, and a better model would
    /// have too.
    pub typical_us: f64,
    /// Measured mean less the median, µs: what slow cycles add to the mean. No budget explains it; causes do.
    pub tail_us: f64,
}

/// One term, model against recording.
#[derive(Clone, Debug)]
pub struct TermResidual {
    /// Index of the term.
    pub term: usize,
    /// What the model says, µs a cycle.
    pub model_us: f64,
    /// Between the term's own points, where it has them.
    pub measured: Option<MeasuredPhase>,
    /// Its own, or its phase's, a cycle.
    pub residual: Option<Residual>,
    /// Whether the residual is this term's alone: by its own points, or as the only term of its phase.
    pub alone: bool,
    /// What the term would have to cost each time to explain the typical residual alone, µs; only for fixed times.
    pub needed_each_us: Option<f64>,
}

impl Residual {
    fn of(measured: &MeasuredPhase, model_us: f64) -> Residual {
        // Without a median the mean is the best there is.
        let typical_us = measured.p50_us.unwrap_or(measured.mean_us);
        Residual { typical_us: typical_us - model_us, tail_us: measured.mean_us - typical_us }
    }

    /// Both parts: measured mean less the model's, µs. Only means add up: the phases' sum to the cycle's.
    pub fn total_us(&self) -> f64 {
        self.typical_us + self.tail_us
    }
}

/// Sets the phases of a recording, and the terms that have points of their own, against the model.
///
/// # Errors
/// When nothing that the model has was stamped.
pub fn compare(
    budget: &CycleBudget,
    forecast: &Forecast,
    phases: &[MeasuredPhase],
    terms: &[(usize, MeasuredPhase)],
) -> Result<Comparison, Error> {
    let shown: Vec<&Cost> = forecast.costs.iter().filter(|cost| !cost.hidden).collect();
    let of =
        |phase: &str| shown.iter().filter(|c| budget.terms[c.term].phase == phase).map(|c| c.total_us).sum::<f64>();
    let in_model = |phase: &str| shown.iter().any(|cost| budget.terms[cost.term].phase == phase);
    if terms.is_empty() && !phases.iter().any(|phase| in_model(&phase.phase)) {
        return Err(not_stamped(budget));
    }
    let mut rows: Vec<PhaseResidual> = phases
        .iter()
        .map(|measured| {
            let model_us = of(&measured.phase);
            PhaseResidual {
                phase: measured.phase.clone(),
                model_us,
                residual: Some(Residual::of(measured, model_us)),
                measured: Some(measured.clone()),
            }
        })
        .collect();
    for cost in &shown {
        let phase = &budget.terms[cost.term].phase;
        if !rows.iter().any(|row| row.phase == *phase) {
            rows.push(PhaseResidual { phase: phase.clone(), model_us: of(phase), measured: None, residual: None });
        }
    }
    let terms = forecast.costs.iter().map(|cost| term(budget, cost, &shown, &rows, terms)).collect();
    Ok(Comparison { cycle: whole(&rows), phases: rows, terms })
}

fn whole(rows: &[PhaseResidual]) -> PhaseResidual {
    let stamped = || rows.iter().filter_map(|row| Some((row, row.measured.as_ref()?)));
    let model_us = stamped().map(|(row, _)| row.model_us).sum();
    let mean_us: f64 = stamped().map(|(_, measured)| measured.mean_us).sum();
    let n = stamped().map(|(_, measured)| measured.n).min().unwrap_or(0);
    let measured = MeasuredPhase { phase: "cycle".into(), n, mean_us, p50_us: None, p99_us: None };
    let parts = || rows.iter().filter_map(|row| row.residual);
    let residual =
        Residual { typical_us: parts().map(|r| r.typical_us).sum(), tail_us: parts().map(|r| r.tail_us).sum() };
    PhaseResidual { phase: "cycle".into(), model_us, residual: Some(residual), measured: Some(measured) }
}

fn term(
    budget: &CycleBudget,
    cost: &Cost,
    shown: &[&Cost],
    rows: &[PhaseResidual],
    own: &[(usize, MeasuredPhase)],
) -> TermResidual {
    let term = &budget.terms[cost.term];
    let measured = own.iter().find(|(at, _)| *at == cost.term).map(|(_, measured)| measured.clone());
    let companions = shown.iter().filter(|other| budget.terms[other.term].phase == term.phase).count();
    let (residual, alone) = match &measured {
        Some(measured) => (Some(Residual::of(measured, cost.total_us)), true),
        // What another lane hides takes no time of the cycle, so the phase says nothing of it.
        None if cost.hidden => (None, false),
        None => (rows.iter().find(|row| row.phase == term.phase).and_then(|row| row.residual), companions == 1),
    };
    let alone = alone && residual.is_some();
    let fixed = matches!(term.price, Price::Us(_)) && cost.count > 0;
    let needed = residual.map(|residual| cost.each_us + residual.typical_us / f64::from(cost.count.max(1)));
    TermResidual {
        term: cost.term,
        model_us: cost.total_us,
        measured,
        residual,
        alone,
        needed_each_us: needed.filter(|each| fixed && *each >= 0.0),
    }
}

fn not_stamped(budget: &CycleBudget) -> Error {
    let mut phases: Vec<&str> = Vec::new();
    for term in &budget.terms {
        if !phases.contains(&term.phase.as_str()) {
            phases.push(&term.phase);
        }
    }
    let points: Vec<String> = phases.iter().map(|phase| format!("bus.{phase}")).collect();
    Error::NotStamped {
        remedy: format!(
            "stamp {} where each begins, and bus.done at the end, with the cycle's number as the message",
            points.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Sampling, forecast};

    const TEXT: &str = "title = 't'\n[servos]\ncount = 4\n[[resource]]\nname = 'host'\n\
        [[term]]\nname = 'encode'\nstage = 'encode'\nphase = 'send'\nper = 'servo'\nus = 5\n\
        [[term]]\nname = 'write'\nstage = 'syscall'\nphase = 'send'\nus = 10\n\
        [[term]]\nname = 'wake'\nstage = 'rx-wake'\nphase = 'receive'\nper = 'servo'\nus = 20\npoints = ['rx.idle', 'rx.awake']\n\
        [[term]]\nname = 'gait'\nstage = 'control-compute'\nus = 100\n";

    fn measured(phase: &str, mean_us: f64) -> MeasuredPhase {
        MeasuredPhase { phase: phase.into(), n: 100, mean_us, ..MeasuredPhase::default() }
    }

    fn compared(phases: &[MeasuredPhase], terms: &[(usize, MeasuredPhase)]) -> Result<Comparison, Error> {
        let budget = CycleBudget::parse(TEXT, &[]).unwrap();
        let forecast = forecast(&budget, Sampling { cycles: 10, seed: 1 });
        compare(&budget, &forecast, phases, terms)
    }

    #[test]
    fn residuals_of_phases_sum_to_the_cycles() {
        let found =
            compared(&[measured("send", 50.0), measured("receive", 90.0), measured("logging", 7.0)], &[]).unwrap();
        let residuals: Vec<Option<f64>> = found.phases.iter().map(|row| row.residual.map(|r| r.total_us())).collect();
        // The model: send 30, receive 80, control 100 but not stamped, logging unknown to it.
        assert_eq!(residuals, [Some(20.0), Some(10.0), Some(7.0), None]);
        assert_eq!(found.cycle.residual.unwrap().total_us(), 37.0);
    }

    #[test]
    fn a_residual_is_shared_unless_the_term_is_alone() {
        let found = compared(&[measured("send", 50.0), measured("receive", 90.0)], &[]).unwrap();
        let budget = CycleBudget::parse(TEXT, &[]).unwrap();
        let row = |name: &str| found.terms.iter().find(|row| budget.terms[row.term].name == name).unwrap();
        // 20 µs too many in the phase: 4 × (5 + 5), or 1 × (10 + 20), whichever it was.
        assert_eq!((row("encode").alone, row("encode").needed_each_us), (false, Some(10.0)));
        assert_eq!((row("write").alone, row("write").needed_each_us), (false, Some(30.0)));
        assert_eq!((row("wake").alone, row("wake").needed_each_us), (true, Some(22.5)));
        assert_eq!(row("gait").residual, None);
    }

    #[test]
    fn a_terms_own_points_come_before_its_phase() {
        let found = compared(&[measured("receive", 90.0)], &[(2, measured("wake", 84.0))]).unwrap();
        let row = found.terms.iter().find(|row| row.term == 2).unwrap();
        assert_eq!((row.residual.map(|r| r.total_us()), row.alone, row.needed_each_us), (Some(4.0), true, Some(21.0)));
    }

    #[test]
    fn slow_cycles_are_told_from_what_every_cycle_has() {
        let send = MeasuredPhase { p50_us: Some(34.0), ..measured("send", 90.0) };
        let found = compared(&[send, measured("receive", 90.0)], &[]).unwrap();
        // The model says 30: the typical cycle has 4 more, and slow ones bring the mean another 56 up.
        assert_eq!(found.phases[0].residual, Some(Residual { typical_us: 4.0, tail_us: 56.0 }));
        assert_eq!(found.cycle.residual, Some(Residual { typical_us: 14.0, tail_us: 56.0 }));
        assert_eq!(found.terms.iter().find(|row| row.term == 0).unwrap().needed_each_us, Some(6.0));
    }

    #[test]
    fn a_recording_of_something_else_says_what_to_stamp() {
        let error = compared(&[measured("publish", 1.0)], &[]).unwrap_err().to_string();
        assert!(error.contains("bus.send, bus.receive, bus.control"), "{error}");
    }
}
