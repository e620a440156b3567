//! What a source counts time in.

use std::str::FromStr;

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    /// How many nanoseconds it has.
    pub fn ns(self) -> u64 {
        match self {
            Unit::Seconds => 1_000_000_000,
            Unit::Milliseconds => 1_000_000,
            Unit::Microseconds => 1_000,
            Unit::Nanoseconds => 1,
        }
    }

    /// That many of it, in nanoseconds; `None` for what is no time since the beginning of something.
    pub(crate) fn of(self, value: f64) -> Option<u64> {
        let ns = (value * self.ns() as f64).round();
        // 2^63 ns are 292 years.
        (0.0..9.2e18).contains(&ns).then_some(ns as u64)
    }

    /// A whole number of it.
    pub(crate) fn of_whole(self, value: u64) -> Option<u64> {
        value.checked_mul(self.ns()).filter(|ns| i64::try_from(*ns).is_ok())
    }
}

impl FromStr for Unit {
    type Err = String;

    fn from_str(word: &str) -> Result<Unit, String> {
        match word {
            "s" => Ok(Unit::Seconds),
            "ms" => Ok(Unit::Milliseconds),
            "us" | "µs" => Ok(Unit::Microseconds),
            "ns" => Ok(Unit::Nanoseconds),
            _ => Err("name one of s, ms, us and ns".to_owned()),
        }
    }
}
