//! guard.toml: the parameters of the guard under test, the estimators beside it, and the source of the frames.

use std::collections::BTreeMap;

use serde::Deserialize;
use taut_guard::{MAX_JOINTS, Parameters, TimeBase};

use crate::{
    against::{Against, Source, Time},
    error::Error,
};

/// A whole guard.toml.
#[derive(Clone, Debug)]
pub struct Config {
    /// Ours.
    pub parameters: Parameters,
    /// What it is held against, in this order.
    pub against: Vec<Against>,
    /// Which frames.
    pub stream: StreamConfig,
}

/// Where frames come from: values of a taut recording, or a channel of any MCAP file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamConfig {
    /// The values' common name, as given to `record_frame`.
    pub name: Option<String>,
    /// A channel of an MCAP file instead, with `fields`.
    pub topic: Option<String>,
    /// From the frame's field to that of the channel's messages.
    #[serde(default)]
    pub fields: BTreeMap<String, Mapping>,
}

/// Where in a message a number stands: `"pose.position.x"`, or with a factor to the frame's unit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Mapping {
    /// In the frame's unit already.
    Plain(String),
    /// Times a factor.
    Scaled {
        /// The path in the message.
        field: String,
        /// From the message's unit to the frame's.
        times: f64,
    },
}

impl Mapping {
    /// The path in the message.
    pub fn field(&self) -> &str {
        match self {
            Mapping::Plain(field) | Mapping::Scaled { field, .. } => field,
        }
    }

    /// From the message's unit to the frame's.
    pub fn times(&self) -> f64 {
        match self {
            Mapping::Plain(_) => 1.0,
            Mapping::Scaled { times, .. } => *times,
        }
    }
}

impl Config {
    /// Reads a guard.toml. Without `[[against]]` the guard is held against what people use ([`usual`]).
    ///
    /// # Errors
    /// Names the table, the key and the value.
    pub fn parse(text: &str) -> Result<Config, Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            guard: toml::Table,
            against: Option<Vec<Against>>,
            #[serde(default)]
            stream: StreamConfig,
        }
        let file: File = toml::from_str(text).map_err(|error| Error::Toml(one_line(&error)))?;
        let parameters = parameters(&file.guard, None)?;
        let config = Config { parameters, against: file.against.unwrap_or_else(usual), stream: file.stream };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), Error> {
        for against in &self.against {
            against.check(&self.parameters)?;
        }
        let stream = &self.stream;
        if stream.topic.is_some() && stream.name.is_some() {
            return Err(Error::Toml("[stream]: name and topic exclude each other: values, or a channel".into()));
        }
        if stream.topic.is_some() == stream.fields.is_empty() {
            return Err(Error::Toml("[stream]: topic and [stream.fields] belong together".into()));
        }
        for (field, mapping) in &stream.fields {
            if !crate::stream::Recorded::default().set(field, 0.0) {
                return Err(Error::Toml(format!("[stream.fields]: no field of a frame is called {field:?}")));
            }
            if !mapping.times().is_finite() {
                return Err(Error::Toml(format!("[stream.fields] {field}: times must be a finite number")));
            }
        }
        Ok(())
    }
}

/// The estimators that people use: differences of arrival, plain and smoothed, a parabola, a Kalman filter.
pub fn usual() -> Vec<Against> {
    let of = |estimator| Against {
        estimator,
        name: None,
        time: Time::Arrival,
        debounce: 1,
        points: None,
        alpha: None,
        beta: None,
        set: toml::Table::new(),
    };
    vec![
        of(Source::Difference),
        Against { debounce: 3, ..of(Source::Difference) },
        of(Source::Median),
        of(Source::Ema),
        of(Source::SavitzkyGolay),
        of(Source::Kalman),
    ]
}

impl Against {
    /// What reports call it.
    pub fn title(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let time = self.time.word();
        let base = match self.estimator {
            Source::Difference => format!("Δp/Δt, {time}"),
            Source::Floored => format!("Δp/Δt, {time}, dt at least T"),
            Source::Median => format!("median of {}, {time}", self.points()),
            Source::Ema => format!("EMA {}, {time}", self.alpha()),
            Source::SavitzkyGolay => format!("Savitzky–Golay {}/2, nominal T", self.points()),
            Source::LeastSquares => format!("LS-{}, {time}", self.points()),
            Source::Kalman => format!("Kalman, {time}"),
            Source::AlphaBeta => format!("α-β {}/{}, {time}", self.alpha(), self.beta()),
            Source::Guard => {
                let set: Vec<String> = self.set.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                format!("guard, {}", if set.is_empty() { "the same".into() } else { set.join(", ") })
            }
        };
        let debounce = format!(", {0}/{0}", self.debounce);
        if self.debounce > 1 || self.estimator == Source::Difference { base + &debounce } else { base }
    }

    pub(crate) fn points(&self) -> usize {
        self.points.unwrap_or(match self.estimator {
            Source::SavitzkyGolay => 7,
            _ => 5,
        })
    }

    pub(crate) fn alpha(&self) -> f64 {
        self.alpha.unwrap_or(if self.estimator == Source::AlphaBeta { 0.5 } else { 0.2 })
    }

    pub(crate) fn beta(&self) -> f64 {
        self.beta.unwrap_or(0.1)
    }

    /// The parameters of another guard.
    pub(crate) fn parameters(&self, ours: &Parameters) -> Result<Parameters, Error> {
        parameters(&self.set, Some(ours))
    }

    fn check(&self, ours: &Parameters) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Against { name: self.title(), what });
        if !(1..=1000).contains(&self.debounce) {
            return wrong(format!("debounce is {}; it must lie within 1 and 1000", self.debounce));
        }
        let least = if self.estimator == Source::SavitzkyGolay { 3 } else { 2 };
        if !(least..=101).contains(&self.points()) {
            return wrong(format!("points is {}; it must lie within {least} and 101", self.points()));
        }
        if !(self.alpha() > 0.0 && self.alpha() <= 1.0 && self.beta() > 0.0 && self.beta() <= 1.0) {
            return wrong("alpha and beta must lie above 0 and not above 1".into());
        }
        if self.estimator == Source::Guard {
            return self.parameters(ours).map(drop).or_else(|error| wrong(error.to_string()));
        }
        if !self.set.is_empty() {
            return wrong("set is for estimator = \"guard\" only".into());
        }
        Ok(())
    }
}

fn one_line(error: &toml::de::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `[guard]` as parameters: what is not given has its default for the period, or that of `base`.
fn parameters(table: &toml::Table, base: Option<&Parameters>) -> Result<Parameters, Error> {
    let wrong = |key: &str, value: &toml::Value, wanted: &str| {
        Error::Toml(format!("[guard] {key} is {value}; it must be {wanted}"))
    };
    let mut p = match (base, table.get("period_ns")) {
        (Some(base), _) => *base,
        (None, Some(period)) => {
            let ns = period.as_integer().and_then(|ns| u64::try_from(ns).ok());
            Parameters::for_tcp(ns.ok_or_else(|| wrong("period_ns", period, "a whole number of nanoseconds"))?, 0.0)
        }
        (None, None) => return Err(Error::Toml("[guard] needs period_ns, the stream's period".into())),
    };
    if base.is_none() {
        p.tcp_limit_mm_s = None;
    }
    for (key, value) in table {
        let float =
            || value.as_float().or(value.as_integer().map(|n| n as f64)).ok_or_else(|| wrong(key, value, "a number"));
        match key.as_str() {
            "tcp_limit_mm_s" => p.tcp_limit_mm_s = Some(float()?),
            "joint_limits_rad_s" => {
                let limits: Option<Vec<f64>> = value.as_array().and_then(|limits| {
                    limits.iter().map(|limit| limit.as_float().or(limit.as_integer().map(|n| n as f64))).collect()
                });
                let limits = limits.filter(|limits| limits.len() <= MAX_JOINTS);
                let limits = limits.ok_or_else(|| wrong(key, value, "a list of at most 8 numbers"))?;
                p.joint_count = limits.len();
                p.joint_limits_rad_s[..limits.len()].copy_from_slice(&limits);
            }
            "time_base" => {
                let known = TimeBase::ALL.into_iter().find(|base| value.as_str() == Some(base.name()));
                p.time_base = known.ok_or_else(|| wrong(key, value, "\"source\", \"sequence\" or \"arrival\""))?;
            }
            _ => plain(&mut p, key, value, float)?,
        }
    }
    p.check()?;
    Ok(p)
}

/// The parameters that are plain numbers, by name, in the order of docs/reference/guard.md.
macro_rules! plain {
    (whole: $($whole:ident),*; float: $($float:ident),*; flag: $($flag:ident),* $(;)?) => {
        fn plain(
            p: &mut Parameters,
            key: &str,
            value: &toml::Value,
            float: impl Fn() -> Result<f64, Error>,
        ) -> Result<(), Error> {
            let wrong = |wanted: &str| Error::Toml(format!("[guard] {key} is {value}; it must be {wanted}"));
            match key {
                $(stringify!($whole) => {
                    let whole = value.as_integer().and_then(|n| n.try_into().ok());
                    p.$whole = whole.ok_or_else(|| wrong("a whole number, 0 or more"))?;
                })*
                $(stringify!($float) => p.$float = float()?,)*
                $(stringify!($flag) => p.$flag = value.as_bool().ok_or_else(|| wrong("true or false"))?,)*
                _ => return Err(Error::Toml(format!("[guard]: no parameter is called {key:?}"))),
            }
            Ok(())
        }

        /// Every parameter as guard.toml has it; those that have their defaults are left out.
        pub(crate) fn written(p: &Parameters) -> Vec<(&'static str, String)> {
            let usual = Parameters::for_tcp(p.period_ns, 0.0);
            let mut lines = vec![("period_ns", whole(p.period_ns))];
            lines.extend(p.tcp_limit_mm_s.map(|limit| ("tcp_limit_mm_s", format!("{limit:?}"))));
            if p.joint_count > 0 {
                lines.push(("joint_limits_rad_s", format!("{:?}", &p.joint_limits_rad_s[..p.joint_count])));
            }
            if p.time_base != usual.time_base {
                lines.push(("time_base", format!("{:?}", p.time_base.name())));
            }
            $(if p.$whole != usual.$whole { lines.push((stringify!($whole), whole(p.$whole.into()))); })*
            $(if p.$float != usual.$float { lines.push((stringify!($float), format!("{:?}", p.$float))); })*
            $(if p.$flag != usual.$flag { lines.push((stringify!($flag), p.$flag.to_string())); })*
            lines
        }
    };
}
plain!(
    whole: period_ns, sequence_modulus, source_error_ns, source_error_max_ns, drift_ppm, window_ns, trip_count, trip_of,
        stale_ns, age_max_ns, tick_ns, lost_max, transport_max_ns, arrival_jitter_ns;
    float: tcp_error_mm, joint_error_rad, acceleration_max_mm_s2, reported_tolerance_mm_s;
    flag: source_is_monotonic, path_length;
);

/// A whole number with its thousands apart, as TOML allows: 10_000_000.
fn whole(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: &str = "[guard]\nperiod_ns = 10_000_000\ntcp_limit_mm_s = 1000\n";

    #[test]
    fn what_is_not_given_has_its_default() {
        let config = Config::parse(GUARD).unwrap();
        assert_eq!(config.parameters, Parameters::for_tcp(10_000_000, 1000.0));
        let titles: Vec<String> = config.against.iter().map(Against::title).collect();
        assert_eq!(titles[..3], ["Δp/Δt, arrival, 1/1", "Δp/Δt, arrival, 3/3", "median of 5, arrival"]);
        assert_eq!(titles[3..], ["EMA 0.2, arrival", "Savitzky–Golay 7/2, nominal T", "Kalman, arrival"]);
    }

    #[test]
    fn every_parameter_goes_in_and_out() {
        let mut odd = Parameters {
            sequence_modulus: 65_536,
            time_base: TimeBase::Sequence,
            source_is_monotonic: true,
            source_error_ns: 500_000,
            source_error_max_ns: 3_000_000,
            drift_ppm: 100,
            tcp_limit_mm_s: Some(250.5),
            tcp_error_mm: 0.1,
            joint_count: 2,
            joint_error_rad: 1e-4,
            path_length: true,
            window_ns: 80_000_000,
            trip_count: 2,
            trip_of: 3,
            stale_ns: 60_000_000,
            age_max_ns: 70_000_000,
            tick_ns: 2_000_000,
            lost_max: 3,
            transport_max_ns: 100_000_000,
            arrival_jitter_ns: 30_000_000,
            acceleration_max_mm_s2: 5000.0,
            reported_tolerance_mm_s: 50.0,
            ..Parameters::for_tcp(8_000_000, 0.0)
        };
        odd.joint_limits_rad_s[..2].copy_from_slice(&[1.5, 2.0]);
        for p in [odd, Parameters::for_tcp(10_000_000, 1000.0)] {
            let lines: Vec<String> = written(&p).iter().map(|(key, value)| format!("{key} = {value}")).collect();
            assert_eq!(Config::parse(&format!("[guard]\n{}\n", lines.join("\n"))).unwrap().parameters, p);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, words) in [
            ("", "missing field `guard`"),
            ("[guard]\n", "[guard] needs period_ns"),
            ("[guard]\nperiod_ns = 1.5\n", "[guard] period_ns is 1.5; it must be a whole number"),
            ("[guard]\nperiod_ns = 10_000_000\n", "neither tcp_limit_mm_s nor joint_count"),
            (&format!("{GUARD}colour = 1\n"), "no parameter is called \"colour\""),
            (&format!("{GUARD}trip_count = -1\n"), "trip_count is -1; it must be a whole number, 0 or more"),
            (&format!("{GUARD}trip_count = 9\n"), "trip_count is 9; it must lie within 1 and 1"),
            (&format!("{GUARD}[[against]]\nestimator = \"guess\"\n"), "unknown variant `guess`"),
            (&format!("{GUARD}[[against]]\nestimator = \"ema\"\nalpha = 2.0\n"), "[[against]] EMA 2, arrival: alpha"),
            (&format!("{GUARD}[[against]]\nestimator = \"guard\"\nset = {{ trip_of = 9 }}\n"), "trip_of is 9"),
            (&format!("{GUARD}[stream]\ntopic = \"/a\"\n"), "belong together"),
            (&format!("{GUARD}[stream]\ntopic = \"/a\"\nfields = {{ w_mm = \"x\" }}\n"), "called \"w_mm\""),
        ] {
            let said = Config::parse(text).unwrap_err().to_string();
            assert!(said.contains(words) && !said.contains('\n'), "{text}: {said}");
        }
    }
}
