//! Settings of a probe, each by its common name.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use crate::{Error, Load};

/// Words of an enum, to and from.
macro_rules! words {
    ($type:ident { $($name:ident = $word:literal),* $(,)? }) => {
        impl $type {
            /// All of them.
            pub const ALL: &'static [$type] = &[$($type::$name),*];

            /// Its word.
            pub fn word(self) -> &'static str {
                match self { $($type::$name => $word),* }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(word: &str) -> Result<$type, Error> {
                let all = || $type::ALL.iter().map(|x| x.word()).collect::<Vec<_>>().join(", ");
                $type::ALL.iter().copied().find(|x| x.word() == word).ok_or_else(|| Error::Word { word: word.to_owned(), known: all() })
            }
        }
    };
}

/// Scheduling policy of the probing threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER: what every program gets unasked.
    #[default]
    Other,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_DEADLINE; such threads cannot be pinned.
    Deadline,
}

words!(Policy { Other = "other", Batch = "batch", Fifo = "fifo", Rr = "rr", Deadline = "deadline" });

impl Policy {
    /// Whether the kernel counts it as real-time: no timer slack.
    pub fn is_real_time(self) -> bool {
        matches!(self, Policy::Fifo | Policy::Rr | Policy::Deadline)
    }
}

/// How a probing thread waits for its next cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wake {
    /// `clock_nanosleep` to an absolute time: what a control loop should use.
    #[default]
    Nanosleep,
    /// `clock_nanosleep` for a length, from now: what Python ≥ 3.11 and most scripts do; the schedule drifts.
    Relative,
    /// A read of a timerfd: no timer slack.
    Timerfd,
    /// `epoll_wait` for a timerfd: an event loop.
    Epoll,
    /// `pselect` with a time-out: what `time.sleep` of Python ≤ 3.10 does.
    Select,
    /// A condition variable with a time-out.
    Condvar,
    /// Reads the clock until it is time; never sleeps.
    Spin,
}

words!(Wake {
    Nanosleep = "nanosleep",
    Relative = "relative",
    Timerfd = "timerfd",
    Epoll = "epoll",
    Select = "select",
    Condvar = "condvar",
    Spin = "spin",
});

/// One way of probing.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// CPUs, a thread pinned on each; empty: one thread, not pinned.
    pub cpus: Vec<u32>,
    /// Scheduling policy.
    pub policy: Policy,
    /// 1 to 99, for fifo and rr.
    pub priority: u32,
    /// Distance of the cycles.
    pub interval: Duration,
    /// How to wait.
    pub wake: Wake,
    /// Timer slack of the threads; `None` leaves the default 50 µs. Real-time policies have none.
    pub slack: Option<Duration>,
    /// Hold /dev/cpu_dma_latency at so many µs, which keeps CPUs out of deeper idle states; `None`: do not touch it.
    pub dma_latency_us: Option<i32>,
    /// The governor of the probed CPUs, or of all; `None`: as it is.
    pub governor: Option<String>,
    /// Lock all memory before probing.
    pub lock_memory: bool,
    /// What runs beside.
    pub load: Option<Load>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            cpus: Vec::new(),
            policy: Policy::Other,
            priority: 80,
            interval: Duration::from_millis(1),
            wake: Wake::Nanosleep,
            slack: None,
            dma_latency_us: None,
            governor: None,
            lock_memory: true,
            load: None,
        }
    }
}

/// What may be varied, by name.
pub const KEYS: [&str; 8] = ["wake", "policy", "priority", "interval", "slack", "dma-latency", "governor", "load"];

impl Settings {
    /// The settings with one of [`KEYS`] set to a value written as on the command line.
    ///
    /// # Errors
    /// An unknown key, or a value that it does not take.
    pub fn with(mut self, key: &str, value: &str) -> Result<Settings, Error> {
        let bad = |hint: &str| Error::Value { key: key.to_owned(), value: value.to_owned(), hint: hint.to_owned() };
        match key {
            "wake" => self.wake = value.parse()?,
            "policy" => self.policy = value.parse()?,
            "priority" => {
                self.priority = value
                    .parse()
                    .ok()
                    .filter(|p| (1..=99).contains(p))
                    .ok_or_else(|| bad("give a number from 1 to 99"))?;
            }
            "interval" => self.interval = duration(value).ok_or_else(|| bad("give a length such as 1ms"))?,
            "slack" => self.slack = Some(duration(value).ok_or_else(|| bad("give a length such as 50us"))?),
            "dma-latency" if value == "none" => self.dma_latency_us = None,
            "dma-latency" => {
                // A number alone is seconds, as in every option: so long a latency is a slip of the unit.
                let time = duration(value).filter(|time| *time <= Duration::from_secs(1));
                let time = time.ok_or_else(|| bad("give a time up to 1s, such as 0 or 20us, or none"))?;
                self.dma_latency_us = Some(time.as_micros() as i32);
            }
            "governor" if value == "none" => self.governor = None,
            "governor" => {
                let is_name =
                    !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                self.governor =
                    Some(is_name.then(|| value.to_owned()).ok_or_else(|| bad("give a name such as performance"))?);
            }
            "load" if value == "none" => self.load = None,
            "load" => self.load = Some(value.parse()?),
            _ => return Err(Error::Word { word: key.to_owned(), known: KEYS.join(", ") }),
        }
        Ok(self)
    }

    /// Every setting by name, in the words of the command line.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let cpus: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
        let real_time = matches!(self.policy, Policy::Fifo | Policy::Rr);
        let slack = match self.slack {
            _ if self.policy.is_real_time() => "0 ns (real-time)".into(),
            Some(slack) => length(slack),
            None => "default".into(),
        };
        [
            ("cpus", if cpus.is_empty() { "not pinned".to_owned() } else { cpus.join(",") }),
            ("policy", self.policy.to_string()),
            ("priority", if real_time { self.priority.to_string() } else { "–".into() }),
            ("interval", length(self.interval)),
            ("wake", self.wake.to_string()),
            ("slack", slack),
            ("dma-latency", self.dma_latency_us.map_or("none".into(), |us| format!("{us} µs"))),
            ("governor", self.governor.clone().unwrap_or_else(|| "as it is".into())),
            ("memory", if self.lock_memory { "locked".into() } else { "not locked".into() }),
            ("load", self.load.as_ref().map_or("none".into(), Load::to_string)),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    /// What is impossible whatever the machine.
    ///
    /// # Errors
    /// The first such setting.
    pub fn check(&self) -> Result<(), Error> {
        let bad = |key: &str, value: String, hint: &str| {
            Err(Error::Value { key: key.to_owned(), value, hint: hint.to_owned() })
        };
        if !(Duration::from_micros(10)..=Duration::from_secs(3600)).contains(&self.interval) {
            return bad("interval", length(self.interval), "give 10us to 1h");
        }
        if self.wake == Wake::Relative && self.policy == Policy::Deadline {
            return bad("wake", "relative".into(), "a deadline thread has a schedule: take nanosleep");
        }
        Ok(())
    }
}

/// "100us", "1.5ms", "2 s", "10m", "1h", or plain seconds.
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..split].parse().ok()?;
    let unit_s = match text[split..].trim() {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit_s).ok()
}

/// As [`duration`] reads it: the largest unit that leaves a whole number, or seconds.
pub fn length(duration: Duration) -> String {
    let ns = duration.as_nanos();
    match ns {
        0 => "0".into(),
        _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        _ => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_they_are_written() {
        for (text, ns) in [("100us", 100_000), ("1.5ms", 1_500_000), ("1s", 1_000_000_000), ("2", 2_000_000_000)] {
            assert_eq!(duration(text), Some(Duration::from_nanos(ns)), "{text}");
            assert_eq!(duration(&length(Duration::from_nanos(ns))), Some(Duration::from_nanos(ns)));
        }
        for text in ["", "us", "1 parsec", "-1ms", "1e99h"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn every_key_can_be_varied() {
        let values = ["timerfd", "fifo", "95", "100us", "1ns", "0", "performance", "cpu=2"];
        for (key, value) in KEYS.iter().zip(values) {
            let settings = Settings::default().with(key, value).unwrap();
            assert_ne!(settings, Settings::default(), "{key}");
        }
        assert!(Settings::default().with("wake", "poke").unwrap_err().to_string().contains("nanosleep"));
        assert!(Settings::default().with("governor", "../x").unwrap_err().to_string().contains("performance"));
        assert!(Settings::default().with("colour", "red").unwrap_err().to_string().contains("dma-latency"));
    }

    #[test]
    fn the_impossible_is_refused() {
        let zero = Settings { interval: Duration::ZERO, ..Settings::default() };
        assert_eq!(zero.check().unwrap_err().to_string(), "interval 0: give 10us to 1h");
    }
}
