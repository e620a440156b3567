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
    taut_wakeup::duration(text).filter(|time| *time <= MOST).ok_or_else(|| format!("give a time, {HINT}"))
}

#[cfg(test)]
mod tests {
    use clap::{Arg, builder::ValueParser};

    use super::*;
    use crate::arguments::{all, refused, value_name};

    /// Values of no time, although the options' words have units of time in them: rates, and names of units.
    const NO_TIMES: &[&str] = &["HZ", "UNIT", "KEY=VALUE", "TRUTH"];

    #[test]
    fn every_option_that_takes_a_time_takes_it_in_the_one_form() {
        let is_time = |arg: &Arg| arg.get_value_parser().type_id() == ValueParser::new(moment).type_id();
        let (mut times, mut others) = (0, Vec::new());
        for (path, arg) in all().iter().filter(|(_, arg)| arg.get_long().is_some()) {
            let shown = format!("{} --{}", path.join(" "), arg.get_long().unwrap());
            if is_time(arg) {
                times += 1;
                let error = refused(path, arg, "1 parsec").unwrap_or_else(|| panic!("{shown} takes 1 parsec"));
                assert!(error.contains("90, 90s, 250ms, 10m or 2h"), "{shown}: {error}");
                for text in ["90", "90s", "1500ms", "10m"] {
                    assert_eq!(refused(path, arg, text), None, "{shown} {text}");
                }
                continue;
            }
            // A time of a form of its own: its value has a unit for a name, or its words give one.
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default().to_lowercase();
            let name = value_name(arg);
            let has_unit = help
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| ["second", "seconds", "minutes", "hours", "ms", "µs", "us", "ns"].contains(&word));
            let is_unit = ["TIME", "S", "SECONDS", "MS", "US", "µS", "NS", "MINUTES"].contains(&name.as_str());
            let is_path = arg.get_value_parser().type_id() == ValueParser::path_buf().type_id();
            if is_unit || has_unit && !is_path && !NO_TIMES.contains(&name.as_str()) {
                others.push(format!("{shown} <{name}>: {help}"));
            }
        }
        assert!(others.is_empty(), "take a time, and not by time::length or time::moment:\n{}", others.join("\n"));
        assert!(times >= 15, "{times}");
    }

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
