//! How figures become text: one place, so that every view says the same. A figure that is not zero never prints as 0. First single
//! figures, which carry their unit; then those of a table, which share one.

/// Stands for a figure that the data do not carry.
pub const MISSING: &str = "–";

/// A duration with three significant digits and the unit that suits it: "740 ns", "1.06 ms".
pub fn duration(ns: u64) -> String {
    scaled(ns as f64)
}

/// As [`duration`], for a figure with a fraction; "0.8 ns".
pub fn scaled(ns: f64) -> String {
    if !ns.is_finite() {
        return MISSING.into();
    }
    let unit = TimeUnit::suiting(ns);
    let value = ns / unit.ns();
    let digits = match value.abs() {
        _ if unit == TimeUnit::Ns && value.fract() == 0.0 => 0,
        a if a > 0.0 && a < 0.095 => return format!("{} {}", figure(value), unit.word()),
        a if a >= 99.95 => 0,
        a if a >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {}", unit.word())
}

/// "–" or the duration.
pub fn maybe(ns: Option<u64>) -> String {
    ns.map_or(MISSING.into(), duration)
}

/// The rate of something that happens at this interval: "1 kHz", "2.5 kHz", "50 Hz"; "–" for an interval of 0.
pub fn hertz(interval_ns: u64) -> String {
    rate(1e9 / interval_ns as f64)
}

/// A rate in 1/s: "1 kHz", "2.5 kHz", "50 Hz".
pub fn rate(hz: f64) -> String {
    let (value, unit) = match hz {
        hz if !hz.is_finite() => return MISSING.into(),
        hz if hz != 0.0 && hz.abs() < 0.0095 => return format!("{} Hz", figure(hz)),
        hz if hz >= 999.5e3 => (hz / 1e6, "MHz"),
        hz if hz >= 999.5 => (hz / 1e3, "kHz"),
        hz => (hz, "Hz"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{} {unit}", trimmed(format!("{value:.digits$}")))
}

/// A factor between two figures: "×0.47".
pub fn ratio(factor: f64) -> String {
    match factor {
        f if !f.is_finite() => MISSING.into(),
        f if f > 0.0 && f < 0.095 => format!("×{}", significant(f, 2, 12)),
        f => format!("×{f:.*}", if f < 9.995 { 2 } else { usize::from(f < 99.95) }),
    }
}

/// A relative change: "+14.2 %", "−3.1 %", "±0 %".
pub fn change(change: f64) -> String {
    let size = percent(change.abs());
    match change {
        c if !c.is_finite() => MISSING.into(),
        0.0 => "±0 %".into(),
        c if c > 0.0 => format!("+{size}"),
        _ => format!("−{size}"),
    }
}

/// A number of things by name: "1 stall", "12 stalls".
pub fn quantity(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(n), if n == 1 { "" } else { "s" })
}

/// "p99", "p99.9".
pub fn quantile(q: f64) -> String {
    format!("p{}", (q * 1e4).round() / 100.0)
}

/// A whole number with thin spaces between thousands: "12 345".
pub fn count(n: u64) -> String {
    grouped(&n.to_string())
}

/// A share as per cent: "71.2 %", "<0.1 %", "0 %".
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => MISSING.into(),
        0.0 => "0 %".into(),
        p if p > 0.0 && p < 0.1 => "<0.1 %".into(),
        p if p < 0.0 => format!("−{}", percent(-share)),
        p => format!("{p:.1} %"),
    }
}

/// A share of what is rare, with all digits that matter: "13.66 %", "0.02 %", "0.0042 %".
pub fn rare(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => MISSING.into(),
        0.0 => "0 %".into(),
        p if p.abs() < 0.01 => format!("{} %", significant(p, 2, 12)),
        p => format!("{p:.2} %").replace('-', "−"),
    }
}

/// A change of a share in percentage points: "+0.48 pp", "±0 pp".
pub fn points(change: f64) -> String {
    match rare(change.abs()).trim_end_matches(" %") {
        _ if !change.is_finite() => MISSING.into(),
        // What is left of a difference of equal shares.
        _ if change.abs() < 1e-13 => "±0 pp".into(),
        size => format!("{}{size} pp", if change < 0.0 { "−" } else { "+" }),
    }
}

/// A share (0..1) as a bar of up to so many characters, an eighth fine.
pub fn bar(share: f64, characters: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * characters as f64 * 8.0).round() as usize;
    let rest = Some(EIGHTHS[eighths % 8]).filter(|_| !eighths.is_multiple_of(8));
    std::iter::repeat_n('█', eighths / 8).chain(rest).collect()
}

/// Bytes in the unit that suits them: "4.2 MB".
pub fn bytes(n: u64) -> String {
    match n as f64 {
        n if n < 1e3 => format!("{n:.0} B"),
        n if n < 999.95e3 => format!("{:.1} kB", n / 1e3),
        n if n < 999.95e6 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.2} GB", n / 1e9),
    }
}

/// A value of no known unit, to four digits.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => MISSING.into(),
        0.0 => "0".into(),
        size if (1e-3..1e5).contains(&size) => {
            let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{value:.digits$}")
        }
        _ => format!("{value:.3e}"),
    }
}

/// A day as 2026-11-25, from the days since 1970-01-01 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days).
pub fn day(days: i64) -> String {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The days from 1970-01-01 to a day such as "2026-11-25"; `None` for what is no day (the same source, days_from_civil).
pub fn days_since_1970(day: &str) -> Option<i64> {
    let mut parts = day.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) || year.abs() > 1_000_000 {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let year_of_era = year.rem_euclid(400);
    let from_march = (month + 9) % 12;
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(year.div_euclid(400) * 146_097 + day_of_era - 719_468)
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

/// Where a unit is too large for a figure: below this it prints fewer than two digits.
const LEAST: f64 = 0.001;
/// Where it is too small: a figure has more than six digits before the point.
const MOST: f64 = 1e6;

impl TimeUnit {
    const ALL: [TimeUnit; 4] = [TimeUnit::S, TimeUnit::Ms, TimeUnit::Us, TimeUnit::Ns];

    /// "ms".
    pub fn word(self) -> &'static str {
        ["ns", "µs", "ms", "s"][self as usize]
    }

    /// Its length.
    pub fn ns(self) -> f64 {
        [1.0, 1e3, 1e6, 1e9][self as usize]
    }

    /// The unit that suits a single figure.
    pub fn suiting(ns: f64) -> TimeUnit {
        match ns.abs() {
            a if a < 1e3 => TimeUnit::Ns,
            a if a < 999.5e3 => TimeUnit::Us,
            a if a < 999.5e6 => TimeUnit::Ms,
            _ => TimeUnit::S,
        }
    }

    /// The unit of a table: the largest in which nine of ten figures are at least 0.1, and half of them at least 1. `None` where the others
    /// would lose their digits in it: then each row has a unit of its own.
    pub fn of_table(figures: &[f64]) -> Option<TimeUnit> {
        let sizes = || figures.iter().map(|ns| ns.abs()).filter(|ns| *ns > 0.0);
        let all = sizes().count();
        let from = |least_ns: f64| sizes().filter(|ns| *ns >= least_ns).count();
        let is_large = |unit: &TimeUnit| 10 * from(0.1 * unit.ns()) >= 9 * all && 2 * from(unit.ns()) >= all;
        let unit = TimeUnit::ALL.into_iter().find(is_large)?;
        (all > 0 && sizes().all(|ns| unit.fits(ns))).then_some(unit)
    }

    /// The unit of a row, by its median.
    pub fn of_row(figures: &[f64]) -> TimeUnit {
        let mut sizes: Vec<f64> = figures.iter().map(|ns| ns.abs()).filter(|ns| *ns > 0.0).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.get(sizes.len() / 2).map_or(TimeUnit::Ns, |median| TimeUnit::suiting(*median))
    }

    /// Whether a figure keeps its digits in this unit.
    pub fn fits(self, ns: f64) -> bool {
        let value = ns.abs() / self.ns();
        value == 0.0 || (LEAST..MOST).contains(&value)
    }

    /// A figure in this unit, without its word.
    pub fn figure(self, ns: f64, digits: usize) -> String {
        // A clock counts whole nanoseconds.
        let decimals = [0, 3, 4, 4][self as usize];
        significant(ns / self.ns(), digits, decimals)
    }
}

/// So many significant digits, and at most so many decimals; thousands apart, a minus sign that is one.
fn significant(value: f64, digits: usize, decimals: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let exact = format!("{:.*e}", digits.saturating_sub(1), value.abs());
    let magnitude = exact.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok()).unwrap_or(0);
    let decimals = (digits as i32 - 1 - magnitude).clamp(0, decimals as i32) as usize;
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{}{}", grouped(whole), rest.map_or(String::new(), |rest| format!(".{rest}")))
}

fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Without the zeros at its end, for the ticks of an axis and what one would type: "1 ms".
pub(crate) fn trimmed(number: String) -> String {
    let (figure, rest) = number.split_at(number.find(' ').unwrap_or(number.len()));
    match figure.contains('.') {
        true => format!("{}{rest}", figure.trim_end_matches('0').trim_end_matches('.')),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        assert_eq!([0.8, 0.004].map(scaled), ["0.80 ns", "0.004000 ns"]);
    }

    #[test]
    fn rates_and_factors_are_short() {
        let rates = [1_000_000, 400_000, 20_000_000, 1_000_000_000, 10_000_000_000, 500, 3_000_000, 0].map(hertz);
        assert_eq!(rates, ["1 kHz", "2.5 kHz", "50 Hz", "1 Hz", "0.1 Hz", "2 MHz", "333 Hz", "–"]);
        assert_eq!([0.468, 1.0, 17.04, 250.2, 0.004].map(ratio), ["×0.47", "×1.00", "×17.0", "×250", "×0.0040"]);
        assert_eq!([quantity(1, "gap"), quantity(2, "gap")], ["1 gap", "2 gaps"]);
        assert_eq!([0.142, -0.031, 0.0, 1e-6].map(change), ["+14.2 %", "−3.1 %", "±0 %", "+<0.1 %"]);
    }

    #[test]
    fn shares_never_round_to_nothing() {
        assert_eq!([0.0, 0.0001, 0.712, 1.0].map(percent), ["0 %", "<0.1 %", "71.2 %", "100.0 %"]);
        assert_eq!(
            [0.0, 0.000_002, 0.0001, 0.1366, 1.0].map(rare),
            ["0 %", "0.00020 %", "0.01 %", "13.66 %", "100.00 %"]
        );
        assert_eq!([0.0, -0.0042, 0.00001].map(points), ["±0 pp", "−0.42 pp", "+0.0010 pp"]);
    }

    #[test]
    fn a_table_has_one_unit_where_its_figures_keep_their_digits_in_it() {
        let unit = TimeUnit::of_table;
        assert_eq!(unit(&[1.2e6, 12e6, 0.0, 95e3]), Some(TimeUnit::Us), "a third is below 0.1 ms");
        assert_eq!(unit(&[1.2e6, 12e6, 0.0, 105e3]), Some(TimeUnit::Ms));
        assert_eq!(unit(&[134e6, 134e6, 194e6]), Some(TimeUnit::Ms), "0.134 s");
        assert_eq!(unit(&[30.0, 740.0]), Some(TimeUnit::Ns));
        let mut figures = vec![1.2e6; 20];
        figures.push(30.0);
        assert_eq!(unit(&figures), None, "30 ns would be 0.0000 ms");
        assert_eq!(unit(&[1.2e6, 12e6, 3e15]), None, "3 000 000 s in ms");
        assert_eq!(unit(&[0.0]), None);
        assert_eq!(TimeUnit::of_row(&[0.0, 1.2e3, 30.0]), TimeUnit::Us);
        let ms = |ns| TimeUnit::Ms.figure(ns, 3);
        assert_eq!(
            [0.0, 96.2e3, 1.234567e6, 9.996e6, 12.34e6, 1234.5e6].map(ms),
            ["0", "0.0962", "1.23", "10.0", "12.3", "1\u{202f}234"]
        );
        assert_eq!(TimeUnit::Ms.figure(-1.5e6, 3), "−1.50");
    }

    #[test]
    fn days_are_of_the_gregorian_calendar() {
        for (days, text) in [(0, "1970-01-01"), (20_782, "2026-11-25"), (11_016, "2000-02-29"), (-1, "1969-12-31")] {
            assert_eq!((day(days).as_str(), days_since_1970(text)), (text, Some(days)));
        }
        assert_eq!(["2026-13-01", "x", "2026-11", "2026-11-25-1"].map(days_since_1970), [None; 4]);
    }

    proptest! {
        #[test]
        fn what_is_not_zero_never_prints_as_zero(exponent in 0.0f64..19.0, share in -12.0f64..0.0) {
            let ns = 10f64.powf(exponent) as u64;
            let share = 10f64.powf(share);
            let texts = [
                duration(ns), hertz(ns), count(ns), bytes(ns), figure(ns as f64), ratio(share), percent(share), change(share),
                change(-share), percent(-share), figure(share), rate(share), scaled(share), rare(share), points(-share),
            ];
            for text in texts {
                let digits = text.contains(|c: char| ('1'..='9').contains(&c));
                prop_assert!(digits, "{ns} or {share} is {text}");
            }
            for unit in TimeUnit::ALL.into_iter().filter(|unit| unit.fits(ns as f64)) {
                prop_assert!(unit.figure(ns as f64, 2).contains(|c: char| ('1'..='9').contains(&c)));
            }
        }
    }
}
