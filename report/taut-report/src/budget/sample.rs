//! Budgets for the tests of all forms.

use taut_bus::budget::{
    CycleBudget, MeasuredPhase, Sampling, Solve, compare, forecast, polled, preset, sensitivity, solve,
};

use super::Budgeted;

const SAMPLING: Sampling = Sampling { cycles: 20_000, seed: 1 };

/// A preset as the command shows it.
pub(crate) fn with(name: &str, show: impl Fn(&Budgeted<'_>)) {
    let budget = preset(name).unwrap().budget(&[]).unwrap();
    let (forecast, gradients) = (forecast(&budget, SAMPLING), sensitivity(&budget));
    let command = format!("taut bus budget --preset {name}");
    show(&Budgeted {
        name,
        command: &command,
        budget: &budget,
        forecast: &forecast,
        polled: polled(&budget, SAMPLING).as_ref(),
        gradients: &gradients,
        solved: None,
        against: None,
    });
}

/// One with everything: a target that is missed now and then, answers of each kind, and a recording.
pub(crate) fn with_answers(show: impl Fn(&Budgeted<'_>)) {
    let changes = [("target_hz".to_owned(), "200".to_owned())];
    let budget: CycleBudget = preset("rs485-150hz").unwrap().budget(&changes).unwrap();
    let forecast = forecast(&budget, SAMPLING);
    let solved = solve(&budget, 200.0, &[Solve::Servos, Solve::Payload, Solve::Bitrate], SAMPLING).unwrap();
    let phase = |name: &str, mean_us: f64| MeasuredPhase {
        phase: name.into(),
        n: 3000,
        mean_us,
        p50_us: Some(mean_us - 4.0),
        p99_us: Some(mean_us + 90.5),
    };
    let phases = [phase("control", 1310.2), phase("exchange", 3641.0), phase("logging", 12.25)];
    let comparison = compare(&budget, &forecast, &phases, &[]).unwrap();
    show(&Budgeted {
        name: "rs485-150hz",
        command: "taut bus budget --preset rs485-150hz --set target_hz=200 --target-hz 200 --against run.mcap",
        budget: &budget,
        forecast: &forecast,
        polled: None,
        gradients: &sensitivity(&budget),
        solved: Some(&solved),
        against: Some(("run.mcap", &comparison)),
    });
}
