//! What TOML's types cannot say of a lab: names that meet, numbers in range. Called once, after reading.

use std::collections::BTreeSet;

use crate::{Breaking, Command, Isolation, Lab, Load};

/// A key, and what is wrong with it.
type Wrong = (String, String);

pub(crate) fn check(lab: &Lab) -> Result<(), Wrong> {
    let at_least_one = [
        ("trials", u64::from(lab.trials)),
        ("trials_per_start", u64::from(lab.trials_per_start)),
        ("scenario", lab.scenarios.len() as u64),
    ];
    for (key, value) in at_least_one {
        require(value > 0, key, || "at least 1 is needed".into())?;
    }
    require(lab.trials <= 100_000, "trials", || format!("{} are too many; at most 100000", lab.trials))?;
    seconds("settle_s", lab.settle_s, true)?;
    seconds("cool_down_s", lab.cool_down_s, true)?;
    seconds("trial.timeout_s", lab.trial.timeout_s, false)?;
    require((0.1..=1.0).contains(&lab.applied), "applied", || format!("{} is not within 0.1 … 1", lab.applied))?;
    command("trial.command", &lab.trial.command)?;
    let scenario_names = lab.scenarios.iter().map(|s| s.name.as_str());
    names("scenario", scenario_names.clone())?;
    names("process", lab.processes.iter().map(|p| p.name.as_str()))?;
    require(!lab.processes.iter().any(|p| p.name == "trial"), "process.name", || {
        "\"trial\" is the trial command's; choose another name".into()
    })?;
    let known = |name: &str| lab.scenarios.iter().any(|s| s.name == name);
    let list = || scenario_names.collect::<Vec<_>>().join(", ");
    require(known(lab.baseline()), "baseline", || {
        format!("no scenario is called {:?}; there are {}", lab.baseline(), list())
    })?;
    for process in &lab.processes {
        let key = |key: &str| format!("process {:?}.{key}", process.name);
        command(&key("command"), &process.command)?;
        seconds(&key("ready_timeout_s"), process.ready_timeout_s, false)?;
        seconds(&key("stop_timeout_s"), process.stop_timeout_s, true)?;
    }
    for scenario in &lab.scenarios {
        for (at, one) in scenario.loads.iter().enumerate() {
            load(one).map_err(|(key, problem)| (format!("scenario {:?}.load[{at}].{key}", scenario.name), problem))?;
        }
    }
    for (name, metric) in &lab.metrics {
        let fine = metric.deadline.is_none_or(f64::is_finite);
        require(fine, &format!("metrics.{name}.deadline"), || "write a finite number".into())?;
    }
    require(
        lab.isolation != Isolation::Cgroup
            || lab.processes.iter().any(|p| p.cpus.is_some())
            || lab.trial.cpus.is_some()
            || lab.scenarios.iter().any(|s| s.system_cpus.is_some()),
        "isolation",
        || "\"cgroup\" confines nothing here: no process has cpus; add them, or write \"auto\"".into(),
    )?;
    lab.breaking.as_ref().map_or(Ok(()), |breaking| check_breaking(breaking, lab))
}

pub(crate) fn load(load: &Load) -> Result<(), Wrong> {
    if let Some(workers) = load.workers() {
        let key = if matches!(load, Load::Udp { .. }) { "publishers" } else { "workers" };
        require((1..=1000).contains(&workers), key, || format!("{workers} is not within 1 … 1000"))?;
    }
    match load {
        Load::Cpu { percent, .. } => require(*percent > 0.0 && *percent <= 100.0, "percent", || {
            format!("{percent} is not above 0 and up to 100")
        }),
        Load::Forks { rate_hz: Some(rate), .. } | Load::Udp { rate_hz: rate, .. } if !(*rate > 0.0 && *rate <= 1e7) => {
            Err(("rate_hz".into(), format!("{rate} is not above 0 and up to 10 million")))
        }
        Load::Udp { payload_bytes, .. } => require((8..=65_000).contains(payload_bytes), "payload_bytes", || {
            format!("{payload_bytes} is not within 8 … 65000")
        }),
        Load::Command { command, .. } => require(!command.trim().is_empty(), "command", || "is empty".into()),
        _ => Ok(()),
    }
}

fn check_breaking(breaking: &Breaking, lab: &Lab) -> Result<(), Wrong> {
    let scenario = lab.scenarios.iter().find(|s| s.name == breaking.scenario);
    let scenario =
        scenario.ok_or_else(|| ("break.scenario".into(), format!("no scenario is called {:?}", breaking.scenario)))?;
    let one = scenario.loads.get(breaking.load).ok_or_else(|| {
        ("break.load".into(), format!("{:?} has {} loads; count from 0", scenario.name, scenario.loads.len()))
    })?;
    let range = breaking.from > 0.0 && breaking.from < breaking.to && breaking.to.is_finite();
    require(range, "break.from", || format!("0 < from < to is needed, not {} and {}", breaking.from, breaking.to))?;
    for (key, value) in [("break.from", breaking.from), ("break.to", breaking.to)] {
        let heavier = one.with(&breaking.vary, value).map_err(|problem| ("break.vary".into(), problem))?;
        load(&heavier).map_err(|(_, problem)| (key.into(), problem))?;
    }
    let inside = |key: &str, value: f64, low: f64, high: f64| {
        require((low..=high).contains(&value), key, || format!("{value} is not within {low} … {high}"))
    };
    inside("break.success", breaking.success, 0.05, 0.95)?;
    inside("break.alpha", breaking.alpha, 0.001, 0.2)?;
    inside("break.resolution", breaking.resolution, 1.01, 100.0)?;
    require(breaking.most_trials_per_load > 0, "break.most_trials_per_load", || "at least 1 is needed".into())?;
    require(breaking.most_trials > 0, "break.most_trials", || "at least 1 is needed".into())
}

fn names<'a>(what: &str, all: impl Iterator<Item = &'a str>) -> Result<(), Wrong> {
    let mut seen = BTreeSet::new();
    for name in all {
        let plain =
            !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        let key = format!("{what}.name");
        require(plain, &key, || format!("{name:?} names files: write letters, digits, - and _"))?;
        require(seen.insert(name), &key, || format!("{name:?} is there twice"))?;
    }
    Ok(())
}

fn command(key: &str, command: &Command) -> Result<(), Wrong> {
    let empty = command.words().iter().all(|word| word.trim().is_empty());
    let empty = empty || matches!(command, Command::Line(line) if line.trim().is_empty());
    require(!empty, key, || "is empty".into())
}

fn seconds(key: &str, value: f64, zero: bool) -> Result<(), Wrong> {
    let fine = value.is_finite() && value <= 1e6 && (value > 0.0 || zero && value == 0.0);
    require(fine, key, || format!("{value} is no time; write seconds{}", if zero { "" } else { " above 0" }))
}

fn require(fine: bool, key: &str, problem: impl FnOnce() -> String) -> Result<(), Wrong> {
    if fine { Ok(()) } else { Err((key.to_owned(), problem())) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Lab;

    const LAB: &str = r#"
trials = 3
[trial]
command = "true"
timeout_s = 1
[[scenario]]
name = "none"
[[scenario]]
name = "flood"
[[scenario.load]]
kind = "udp"
publishers = 2
rate_hz = 100
"#;

    fn refused(text: &str) -> String {
        Lab::parse(text, Path::new("lab.toml")).unwrap_err().to_string()
    }

    #[test]
    fn a_small_lab_has_the_defaults() {
        let lab = Lab::parse(LAB, Path::new("lab.toml")).unwrap();
        assert_eq!((lab.baseline(), lab.trials_per_start, lab.applied), ("none", 1, 0.9));
        assert_eq!(lab.scenarios[1].loads[0].to_string(), "udp 2 × 100 Hz × 1024 B");
        assert_eq!(lab.scenarios[1].loads[0].target(), Some(200.0));
    }

    #[test]
    fn every_refusal_names_the_file_the_key_and_the_remedy() {
        let change = |from: &str, to: &str| refused(&LAB.replace(from, to));
        for (text, parts) in [
            (change("trials = 3", "trials = 0"), ["trials", "at least 1"]),
            (change("trials = 3", "trials = 3\nspeed = 1"), ["line 3", "unknown field `speed`, expected one of"]),
            (change("timeout_s = 1", "timeout_s = -1"), ["trial.timeout_s", "write seconds above 0"]),
            (change("\"true\"", "[]"), ["trial.command", "is empty"]),
            (change("\"flood\"", "\"none\""), ["scenario.name", "there twice"]),
            (change("\"flood\"", "\"a/b\""), ["scenario.name", "letters, digits"]),
            (change("= 100", "= 0"), ["scenario \"flood\".load[0].rate_hz", "not above 0"]),
            (change("= 100", "= 1\nburst = 2"), ["line", "unknown field `burst`, expected one of"]),
            (change("udp", "dds"), ["line", "unknown variant `dds`, expected one of"]),
            (change("= 100", "= 1\ncpus = \"x\""), ["line", "write e.g. \"0-2,5\""]),
            (
                format!("{LAB}[break]\nscenario = \"flood\"\nvary = \"rate\"\nfrom = 1\nto = 2").pipe(refused_owned),
                ["break.vary", "vary publishers, rate_hz or payload_bytes"],
            ),
            (
                format!("{LAB}[break]\nscenario = \"flood\"\nvary = \"rate_hz\"\nfrom = 3\nto = 2").pipe(refused_owned),
                ["break.from", "0 < from < to"],
            ),
        ] {
            assert!(text.starts_with("lab.toml: "), "{text}");
            for part in parts {
                assert!(text.contains(part), "{text:?} does not say {part:?}");
            }
        }
        assert!(refused(&format!("baseline = \"idle\"\n{LAB}")).contains("there are none, flood"));
    }

    fn refused_owned(text: String) -> String {
        refused(&text)
    }

    trait Pipe: Sized {
        fn pipe<T>(self, with: impl FnOnce(Self) -> T) -> T {
            with(self)
        }
    }
    impl Pipe for String {}
}
