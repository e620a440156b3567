//! How a budget's figures become text.

use taut_bus::budget::Knob;

use crate::words;

/// A time for a sentence: "736 µs".
pub(super) fn time(us: f64) -> String {
    words::scaled(us * 1e3).replace('-', "−")
}

/// A time for a column headed "µs", with its sign where it has one.
pub(super) fn column(us: f64) -> String {
    let ns = (us.abs() * 1e3).round() as u64;
    let sign = if us < 0.0 && ns > 0 { "−" } else { "" };
    format!("{sign}{}", words::microseconds(Some(ns)))
}

/// A difference for a column headed "µs": always with a sign.
pub(super) fn signed(us: f64) -> String {
    let text = column(us);
    if us > 0.0 && text != "0" { format!("+{text}") } else { text }
}

/// The rate of a cycle: "1.36 kHz".
pub(super) fn rate(cycle_us: f64) -> String {
    words::hertz((cycle_us * 1e3).round() as u64)
}

/// A figure of the budget with its unit: "12", "16 B", "3 Mbaud", "10.4 MHz", "140 µs".
pub(super) fn value(knob: &Knob, value: f64) -> String {
    match knob.unit() {
        "" => probability(value),
        "servos" => words::count(value.round() as u64),
        "B" => format!("{value:.0} B"),
        "µs" if value == 0.0 => "0 µs".into(),
        "µs" => time(value),
        unit => scaled_rate(value, unit),
    }
}

/// What one unit more does to the cycle: "61.4 µs a servo", "−29 µs per Mbit/s", "12 µs a µs".
pub(super) fn slope(knob: &Knob, per_unit_us: f64) -> String {
    match knob.unit() {
        "" => format!("{} per 1 % lost", time(per_unit_us / 100.0)),
        "servos" => format!("{} a servo", time(per_unit_us)),
        "B" => format!("{} a byte", time(per_unit_us)),
        "µs" => format!("{} µs a µs", column(per_unit_us)),
        unit => format!("{} per M{}", time(per_unit_us * 1e6), unit),
    }
}

/// "0.003 %", with a digit that counts.
pub(super) fn probability(p: f64) -> String {
    let percent = p * 100.0;
    if percent == 0.0 {
        return "0 %".into();
    }
    let digits = if percent >= 1.0 { 1 } else { (-percent.log10().floor()) as usize };
    format!("{percent:.digits$} %")
}

fn scaled_rate(value: f64, unit: &str) -> String {
    let (value, prefix) = match value {
        v if v < 999.5 => (v, ""),
        v if v < 999.5e3 => (v / 1e3, "k"),
        v if v < 999.5e6 => (v / 1e6, "M"),
        v => (v / 1e9, "G"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    let number = format!("{value:.digits$}");
    let number = if digits > 0 { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_unit_of_their_knob() {
        assert_eq!(value(&Knob::Baud, 3e6), "3 Mbaud");
        assert_eq!(value(&Knob::CanData, 5.5e6), "5.5 Mbit/s");
        assert_eq!(value(&Knob::SpiClock, 10.417e6), "10.4 MHz");
        assert_eq!(value(&Knob::Term(0), 140.0), "140 µs");
        assert_eq!(value(&Knob::Loss(0), 0.0), "0 %");
        assert_eq!(slope(&Knob::CanData, -29e-6), "−29.0 µs per Mbit/s");
        assert_eq!(slope(&Knob::Term(0), 1.0), "1.00 µs a µs");
        assert_eq!(slope(&Knob::Loss(0), 12_000.0), "120 µs per 1 % lost");
    }

    #[test]
    fn differences_have_signs() {
        assert_eq!([signed(12.34), signed(-0.5), signed(0.0), column(-12.0)], ["+12.3", "−0.50", "0", "−12.0"]);
    }

    #[test]
    fn probabilities_keep_a_digit_that_counts() {
        assert_eq!([0.0, 0.00003, 0.001, 0.12, 1.0].map(probability), ["0 %", "0.003 %", "0.1 %", "12.0 %", "100.0 %"]);
    }
}
