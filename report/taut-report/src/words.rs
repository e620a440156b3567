//! How figures become text: one place, so that every view says the same.

/// A duration with three significant digits and the unit that suits it: "740 ns", "1.06 ms".
pub fn duration(ns: u64) -> String {
    scaled(ns as f64)
}

/// As [`duration`], for a figure with a fraction; "0.8 ns".
pub fn scaled(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        a if a < 1e3 => (ns, "ns"),
        a if a < 999.5e3 => (ns / 1e3, "µs"),
        a if a < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = match value.abs() {
        _ if unit == "ns" && value.fract() == 0.0 => 0,
        a if a >= 99.95 => 0,
        a if a >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

/// A duration in milliseconds for a column headed "ms"; "–" where the data do not carry it.
/// Below 10 µs a figure has its own unit: a lock of 30 ns is neither "0.000" nor "0.0000".
pub fn milliseconds(ns: Option<u64>) -> String {
    match ns {
        None => "–".into(),
        Some(0) => "0".into(),
        Some(ns) if ns < 10_000 => duration(ns),
        Some(ns) if ns < 100_000_000 => format!("{:.3}", ns as f64 / 1e6),
        Some(ns) => format!("{:.1}", ns as f64 / 1e6),
    }
}

/// A sum over messages in milliseconds, in three digits: more of them the data do not carry.
pub fn sum_of_milliseconds(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    match ms {
        _ if ns == 0 => "0".into(),
        ms if ms < 9.995 => format!("{ms:.2}"),
        ms if ms < 99.95 => format!("{ms:.1}"),
        ms => count(ms.round() as u64),
    }
}

/// A duration in microseconds for a column headed "µs"; "–" where the data do not carry it.
pub fn microseconds(ns: Option<u64>) -> String {
    match ns {
        None => "–".into(),
        Some(0) => "0".into(),
        Some(ns) if ns < 100 => duration(ns),
        Some(ns) if ns < 9_995 => format!("{:.2}", ns as f64 / 1e3),
        Some(ns) if ns < 999_950 => format!("{:.1}", ns as f64 / 1e3),
        Some(ns) => count((ns + 500) / 1000),
    }
}

/// The rate of something that happens at this interval: "1 kHz", "2.5 kHz", "50 Hz"; "–" for an interval of 0.
pub fn hertz(interval_ns: u64) -> String {
    let (value, unit) = match 1e9 / interval_ns as f64 {
        _ if interval_ns == 0 => return "–".into(),
        hz if hz >= 999.5e3 => (hz / 1e6, "MHz"),
        hz if hz >= 999.5 => (hz / 1e3, "kHz"),
        hz => (hz, "Hz"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    let number = format!("{value:.digits$}");
    let number = if digits > 0 { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {unit}")
}

/// A factor between two figures: "×0.47".
pub fn ratio(factor: f64) -> String {
    let digits = if factor < 9.995 { 2 } else { usize::from(factor < 99.95) };
    format!("×{factor:.digits$}")
}

/// A number of things by name: "1 stall", "12 stalls".
pub fn quantity(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(n), if n == 1 { "" } else { "s" })
}

/// What a profile is made of, its gaps too: "4 950 samples, 12 LOST, 2.1 % of their frames without a name".
pub fn profile(profile: &taut_analysis::Profile) -> String {
    let lost = if profile.lost == 0 { String::new() } else { format!(", {} LOST", count(profile.lost)) };
    let unnamed = match profile.unnamed {
        0 => String::new(),
        n => format!(", {} of their frames without a name", percent(n as f64 / profile.frames.max(1) as f64)),
    };
    format!("{}{lost}{unnamed}", quantity(profile.samples, "sample"))
}

/// The kind of file that a recording was imported from, if it was.
pub fn imported_from(info: &taut_recording::Info) -> Option<&str> {
    info.facts.iter().find(|(key, _)| key == "imported_from").map(|(_, kind)| kind.as_str())
}

/// "p99", "p99.9".
pub fn quantile(q: f64) -> String {
    format!("p{}", (q * 1e4).round() / 100.0)
}

/// "–" or the duration.
pub fn maybe(ns: Option<u64>) -> String {
    ns.map_or("–".into(), duration)
}

/// A whole number with thin spaces between thousands: "12 345".
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A share as per cent: "71.2 %", "<0.1 %", "0 %".
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".into(),
        p if p > 0.0 && p < 0.1 => "<0.1 %".into(),
        p => format!("{p:.1} %"),
    }
}

/// A predicted gain as the change it is: "−55 %", "+2 %", "±0 %".
pub fn change(gain: f64) -> String {
    match (gain * 100.0).round() {
        0.0 => "±0 %".into(),
        p if p > 0.0 => format!("−{p} %"),
        p => format!("+{} %", -p),
    }
}

/// Bytes in the unit that suits them: "4.2 MB".
pub fn bytes(n: u64) -> String {
    match n as f64 {
        n if n < 1e3 => format!("{n:.0} B"),
        n if n < 1e6 => format!("{:.1} kB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.2} GB", n / 1e9),
    }
}

/// A command line that a shell reads back as the same words.
pub fn shell(words: &[String]) -> String {
    let plain = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_alphanumeric() || "-_./=:,@%+".contains(c));
    let quote = |w: &String| if plain(w) { w.clone() } else { format!("'{}'", w.replace('\'', r"'\''")) };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// What a channel lacks: by the holes in its sequence, or by what the recorder counted.
pub fn missing(telemetry: &taut_analysis::Telemetry) -> String {
    match telemetry.gaps {
        Some(gaps) if gaps.count > 0 => format!("{} in {}", count(gaps.messages), quantity(gaps.count, "gap")),
        _ => count(telemetry.lost),
    }
}

/// A value of no known unit, to four digits.
pub fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if (1e-3..1e5).contains(&size) => {
            let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{value:.digits$}")
        }
        _ => format!("{value:.3e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_a_unit() {
        let cases = [
            (0, "0 ns"),
            (740, "740 ns"),
            (1_060, "1.06 µs"),
            (999_400, "999 µs"),
            (999_600, "1.00 ms"),
            (12_345_678, "12.3 ms"),
            (123_456_789, "123 ms"),
            (2_500_000_000, "2.50 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn a_missing_figure_is_a_dash_and_a_small_one_is_not_zero() {
        let figures = [None, Some(0), Some(30), Some(1_234), Some(10_000), Some(1_234_567)];
        assert_eq!(figures.map(milliseconds), ["–", "0", "30 ns", "1.23 µs", "0.010", "1.235"]);
    }

    #[test]
    fn microseconds_keep_three_digits_and_group_thousands() {
        let cases = [None, Some(0), Some(4), Some(300), Some(9_996), Some(287_440), Some(999_960), Some(5_761_400)];
        assert_eq!(
            cases.map(microseconds),
            ["–", "0", "4 ns", "0.30", "10.0", "287.4", "1\u{202f}000", "5\u{202f}761"]
        );
    }

    #[test]
    fn rates_and_factors_are_short() {
        let rates = [1_000_000, 400_000, 20_000_000, 1_000_000_000, 10_000_000_000, 500, 3_000_000, 0].map(hertz);
        assert_eq!(rates, ["1 kHz", "2.5 kHz", "50 Hz", "1 Hz", "0.1 Hz", "2 MHz", "333 Hz", "–"]);
        assert_eq!([0.468, 1.0, 17.04, 250.2].map(ratio), ["×0.47", "×1.00", "×17.0", "×250"]);
        assert_eq!([quantity(1, "gap"), quantity(2, "gap")], ["1 gap", "2 gaps"]);
    }

    #[test]
    fn shares_never_round_to_nothing() {
        assert_eq!([0.0, 0.0001, 0.712, 1.0].map(percent), ["0 %", "<0.1 %", "71.2 %", "100.0 %"]);
    }

    #[test]
    fn a_gain_is_a_change_downwards() {
        assert_eq!([0.554, -0.02, 0.001].map(change), ["−55 %", "+2 %", "±0 %"]);
    }

    #[test]
    fn shell_words_survive() {
        let words = ["python", "-m", "x y", "it's"].map(String::from);
        assert_eq!(shell(&words), r"python -m 'x y' 'it'\''s'");
    }
}
