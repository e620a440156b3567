//! Sensitivity: by how much each figure of a budget changes the cycle.

use super::{
    file::CycleBudget,
    forecast::mean_cycle_us,
    knob::{Knob, knobs},
};
use schemars::JsonSchema;
use serde::Serialize;

/// The cycle's answer to one figure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Gradient {
    /// The figure.
    #[serde(skip)]
    pub knob: Knob,
    /// Its key, as `--set` takes it.
    pub key: String,
    /// Its value now.
    pub value: f64,
    /// µs of cycle for one unit more, at the present value (∂cycle/∂value); where only steps exist, the mean over the
    /// step to the next value below.
    pub per_unit_us: f64,
    /// The value after a step that makes the cycle shorter: one servo or one frame size less, 10 % less time, 10 % more
    /// bits a second, no losses.
    pub better: f64,
    /// What the cycle is shorter by after that step, µs; 0 where another resource decides.
    pub gain_us: f64,
}

/// A step of a figure that has no natural one.
const STEP: f64 = 0.1;
/// One reply lost in a hundred.
const LOSS_STEP: f64 = 0.01;
/// Relative width of a derivative's difference.
const WIDTH: f64 = 1e-4;

/// Every figure with what it is worth, most first.
pub fn sensitivity(budget: &CycleBudget) -> Vec<Gradient> {
    let now_us = mean_cycle_us(budget);
    let mut gradients: Vec<Gradient> =
        knobs(budget).into_iter().filter_map(|knob| gradient(budget, knob, now_us)).collect();
    gradients.sort_by(|a, b| b.gain_us.total_cmp(&a.gain_us));
    gradients
}

fn gradient(budget: &CycleBudget, knob: Knob, now_us: f64) -> Option<Gradient> {
    let value = knob.get(budget)?;
    let cycle_us = |value: f64| mean_cycle_us(&knob.with(budget, value));
    let (better, per_unit_us) = match &knob {
        Knob::Servos | Knob::Frame(_) => {
            let better = match &knob {
                Knob::Servos => (value > 1.0).then_some(value - 1.0)?,
                _ => f64::from(knob.shorter(budget, value as u32)?),
            };
            (better, (now_us - cycle_us(better)) / (value - better))
        }
        // From no losses the cycle cannot get shorter; what losses would cost is the news.
        Knob::Loss(_) => (0.0, (cycle_us(value + LOSS_STEP) - now_us) / LOSS_STEP),
        _ if value == 0.0 => return None,
        rate if rate.is_rate() => (value * (1.0 + STEP), slope(&cycle_us, value)),
        _ => (value * (1.0 - STEP), slope(&cycle_us, value)),
    };
    Some(Gradient { key: knob.key(budget), gain_us: now_us - cycle_us(better), knob, value, per_unit_us, better })
}

fn slope(cycle_us: &impl Fn(f64) -> f64, value: f64) -> f64 {
    let width = value * WIDTH;
    (cycle_us(value + width) - cycle_us(value - width)) / (2.0 * width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_its_worth() {
        let text = "title = 't'\n[servos]\ncount = 10\n[frames]\ncommand = 17\n[rs485]\nbaud = 3e6\n\
            [[resource]]\nname = 'bus'\n[[term]]\nname = 'wire'\nstage = 'host-wire'\nper = 'servo'\nrs485 = 'command'\n\
            [[term]]\nname = 'turn'\nstage = 'servo-turnaround'\nper = 'servo'\nus = 20\n\
            [[term]]\nname = 'lost'\nstage = 'retry'\ntimeout_us = 500\nloss = 0\n";
        let found = sensitivity(&CycleBudget::parse(text, &[]).unwrap());
        let row = |key: &str| found.iter().find(|g| g.key == key).unwrap();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-3 * b.abs().max(1.0), "{a} for {b}");
        // 24 bytes of 3.333 µs and 20 µs: 100 µs a servo.
        near(row("servos.count").per_unit_us, 100.0);
        near(row("frames.command").per_unit_us, 33.333);
        near(row("rs485.baud").per_unit_us * 1e6, -266.667);
        near(row("rs485.baud").gain_us, 800.0 * (1.0 - 1.0 / 1.1));
        near(row("term.turn.us").per_unit_us, 10.0);
        near(row("term.turn.us").gain_us, 20.0);
        near(row("term.lost.loss").per_unit_us, 500.0);
        assert!(found.windows(2).all(|pair| pair[0].gain_us >= pair[1].gain_us));
    }
}
