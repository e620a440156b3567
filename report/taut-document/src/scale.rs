//! An axis on paper: from values to places, and where its ticks are.

use crate::{
    Axis, AxisScale, Quantity,
    units::{self, trimmed},
};

/// How many ticks a linear axis has about.
const TICKS: f64 = 5.0;
/// Nines that an axis of quantiles shows at most.
const NINES_MAX: f64 = 9.0;

/// From values of an axis to 0..1 along it.
pub(crate) struct Scale<'a> {
    axis: &'a Axis,
    low: f64,
    high: f64,
}

impl<'a> Scale<'a> {
    /// `None` where nothing can be laid out on it. `from_zero`: bars stand on it.
    pub fn of(axis: &'a Axis, values: impl Iterator<Item = f64>, from_zero: bool) -> Option<Scale<'a>> {
        let mut scale = Scale { axis, low: 0.0, high: 1.0 };
        if !axis.names.is_empty() {
            (scale.low, scale.high) = (-0.5, axis.names.len() as f64 - 0.5);
            return Some(scale);
        }
        let flat = values.filter_map(|value| scale.flat(value));
        let (low, high) = flat.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let given = axis.range.map(|(low, high)| (scale.flat(low), scale.flat(high)));
        (scale.low, scale.high) = match (given, axis.scale) {
            (Some((Some(low), Some(high))), _) => (low, high),
            _ if low > high => return None,
            // A steady figure is a line in the middle.
            (_, AxisScale::Log) if high - low < 0.5 => (low - 0.12, high + 0.12),
            (_, AxisScale::Log | AxisScale::Nines) => (low, high),
            (..) if matches!(axis.quantity, Quantity::Day | Quantity::Instant) => (low, high),
            (..) if from_zero => (low.min(0.0), high.max(0.0) + 0.05 * (high.max(0.0) - low.min(0.0))),
            (..) => (low - 0.05 * (high - low), high + 0.05 * (high - low)),
        };
        if scale.high - scale.low <= f64::EPSILON * scale.high.abs() {
            let room = (scale.low.abs() * 0.1).max(0.5);
            (scale.low, scale.high) = (scale.low - room, scale.high + room);
        }
        (scale.low.is_finite() && scale.high.is_finite()).then_some(scale)
    }

    /// The value where equal steps are equal; `None` where it has no place.
    fn flat(&self, value: f64) -> Option<f64> {
        let flat = match self.axis.scale {
            AxisScale::Linear => value,
            AxisScale::Log => value.log10(),
            AxisScale::Nines => (-(1.0 - value).log10()).min(NINES_MAX),
        };
        flat.is_finite().then_some(flat)
    }

    /// 0 at its lower end, 1 at its upper one; `None` for what is not on it.
    pub fn at(&self, value: f64) -> Option<f64> {
        let share = (self.flat(value)? - self.low) / (self.high - self.low);
        (-1e-9..=1.0 + 1e-9).contains(&share).then_some(share.clamp(0.0, 1.0))
    }

    /// As [`Scale::at`], held at its ends.
    pub fn held(&self, value: f64) -> f64 {
        let end = if value > 0.0 { 1.0 } else { 0.0 };
        self.flat(value).map_or(end, |flat| ((flat - self.low) / (self.high - self.low)).clamp(0.0, 1.0))
    }

    /// Values with their names, what matters most first; `own` are the data's.
    pub fn ticks(&self, own: impl Iterator<Item = f64>) -> Vec<(f64, String)> {
        let named = |value: f64| (value, tick(self.axis.quantity, value));
        if !self.axis.ticks.is_empty() {
            return self.axis.ticks.clone();
        }
        if !self.axis.names.is_empty() {
            return self.axis.names.iter().enumerate().map(|(at, name)| (at as f64, name.clone())).collect();
        }
        match (self.axis.scale, self.axis.quantity) {
            (AxisScale::Nines, _) => self.nines(),
            (AxisScale::Log, Quantity::Ratio) => {
                let factors = [1.0, 0.5, 2.0, 0.1, 10.0, 0.8, 1.25, 0.2, 5.0, 0.9, 1.1, 0.95, 1.05];
                factors.into_iter().map(named).collect()
            }
            (AxisScale::Log, _) if self.high - self.low < 0.7 => {
                steps(10f64.powf(self.low), 10f64.powf(self.high), self.axis.quantity).into_iter().map(named).collect()
            }
            (AxisScale::Log, _) => self.decades().into_iter().map(named).collect(),
            (AxisScale::Linear, Quantity::Day) => {
                let mut days: Vec<f64> = own.filter(|day| day.is_finite()).collect();
                days.sort_by(f64::total_cmp);
                days.dedup();
                days.into_iter().map(named).collect()
            }
            (AxisScale::Linear, _) => steps(self.low, self.high, self.axis.quantity).into_iter().map(named).collect(),
        }
    }

    /// "all", p90, p99 …
    fn nines(&self) -> Vec<(f64, String)> {
        let name = |nines: i32| match nines {
            0 => "p0".to_owned(),
            1 | 2 => units::quantile(1.0 - 10f64.powi(-nines)),
            _ => format!("p99.{}", "9".repeat(nines as usize - 2)),
        };
        (0..=NINES_MAX as i32).map(|nines| (1.0 - 10f64.powi(-nines), name(nines))).collect()
    }

    /// 1, 2, 5 of each decade; fewer where these would be crowded.
    fn decades(&self) -> Vec<f64> {
        let (first, last) = (self.low.floor().max(-300.0) as i32, self.high.ceil().min(300.0) as i32);
        let steps: &[f64] = match last - first {
            ..=4 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        steps.iter().flat_map(|step| (first..=last).map(move |decade| step * 10f64.powi(decade))).collect()
    }
}

/// Equal steps of 1, 2 or 5.
fn steps(low: f64, high: f64, quantity: Quantity) -> Vec<f64> {
    let rough = (high - low) / TICKS;
    let decade = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|of| of * decade).find(|step| *step >= rough).unwrap_or(rough);
    let step = if quantity == Quantity::Count { step.max(1.0) } else { step };
    let first = (low / step).ceil();
    (0..20).map(|n| (first + f64::from(n)) * step).take_while(|value| *value <= high + step * 1e-9).collect()
}

/// A value at an axis.
pub(crate) fn tick(quantity: Quantity, value: f64) -> String {
    // What is 0 but for the last bits of a double.
    let value = if value.abs() < 1e-12 && quantity != Quantity::Share { 0.0 } else { value };
    match quantity {
        Quantity::Time | Quantity::Instant if value == 0.0 => "0".into(),
        Quantity::Time | Quantity::Instant => trimmed(units::scaled(value)),
        Quantity::Count => units::count(value.max(0.0).round() as u64),
        Quantity::Share => trimmed(format!("{} %", units::figure(value * 100.0))),
        Quantity::Ratio => units::ratio(value),
        Quantity::Rate => units::rate(value),
        Quantity::Bytes => trimmed(units::bytes(value.max(0.0) as u64)),
        Quantity::Plain => trimmed(units::figure(value)),
        Quantity::Day => units::day(value as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(quantity: Quantity, scale: AxisScale, low: f64, high: f64) -> Vec<String> {
        let axis = Axis { range: Some((low, high)), ..Axis::new(quantity, scale) };
        let scale = Scale::of(&axis, std::iter::empty(), false).unwrap();
        let shown = |(value, name)| scale.at(value).map(|_| name);
        scale.ticks([low, high].into_iter()).into_iter().filter_map(shown).collect()
    }

    #[test]
    fn ticks_are_round_figures_with_their_units() {
        assert_eq!(
            ticks(Quantity::Time, AxisScale::Log, 0.4e6, 30e6),
            ["1 ms", "10 ms", "2 ms", "20 ms", "500 µs", "5 ms"]
        );
        assert_eq!(
            ticks(Quantity::Share, AxisScale::Log, 1e-3, 1.0),
            ["0.1 %", "1 %", "10 %", "100 %", "0.2 %", "2 %", "20 %", "0.5 %", "5 %", "50 %"]
        );
        assert_eq!(ticks(Quantity::Instant, AxisScale::Linear, 0.0, 43e9), ["0", "10 s", "20 s", "30 s", "40 s"]);
        assert_eq!(ticks(Quantity::Count, AxisScale::Linear, 0.0, 2.0), ["0", "1", "2"]);
        assert_eq!(ticks(Quantity::Time, AxisScale::Nines, 0.0, 0.9999), ["p0", "p90", "p99", "p99.9", "p99.99"]);
        assert_eq!(ticks(Quantity::Day, AxisScale::Linear, 20_782.0, 20_789.0), ["2026-11-25", "2026-12-02"]);
        assert_eq!(ticks(Quantity::Plain, AxisScale::Linear, -1.0, 1.0), ["-1", "-0.5", "0", "0.5", "1"]);
    }

    #[test]
    fn what_has_no_place_on_an_axis_is_not_drawn() {
        let axis = Axis::new(Quantity::Time, AxisScale::Log);
        let scale = Scale::of(&axis, [0.0, -1.0, f64::NAN, 10.0, 1000.0].into_iter(), false).unwrap();
        assert_eq!([0.0, 10.0, 100.0, 1e9].map(|value| scale.at(value)), [None, Some(0.0), Some(0.5), None]);
        assert!(Scale::of(&axis, [0.0, f64::INFINITY].into_iter(), false).is_none());
    }
}
