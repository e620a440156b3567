//! Times on the command line, for every option that takes one: `90` and `90s`, `250ms`, `10m`, `2h`.

use std::time::Duration;

/// Three years: longer is a slip of the unit.
const MOST: Duration = Duration::from_secs(100_000_000);
const HINT: &str = "such as 90, 90s, 250ms, 10m or 2h (a number alone is seconds)";

/// A length: more than nothing.
pub fn length(text: &str) -> Result<Duration, String> {
    moment(text).ok().filter(|time| !time.is_zero()).ok_or_else(|| format!("give a time above 0, {HINT}"))
}

/// A moment after some start, or a length that may be 0.
pub fn moment(text: &str) -> Result<Duration, String> {
    taut_probe::duration(text).filter(|time| *time <= MOST).ok_or_else(|| format!("give a time, {HINT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_with_a_unit_or_seconds() {
        for (text, ms) in
            [("90", 90_000), ("90s", 90_000), ("250ms", 250), ("10m", 600_000), ("2h", 7_200_000), ("0.5", 500)]
        {
            assert_eq!(length(text), Ok(Duration::from_millis(ms)), "{text}");
            assert_eq!(moment(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(moment("0"), Ok(Duration::ZERO));
        for text in ["0", "-1", "1 parsec", "nan", "inf", "1e3", "3000d", ""] {
            assert!(length(text).unwrap_err().contains("90s, 250ms"), "{text}");
        }
    }
}
