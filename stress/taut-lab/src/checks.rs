//! What TOML's types do not check in a lab: equal names, numbers out of range. Called once, after reading.

use std::collections::BTreeSet;

use crate::{Breaking, Command, Flood, Isolation, Lab, Load, Ready, Report, Scenario, lab::TRIAL};

/// DDS domains whose ports stay below those that Linux gives out by itself.
const LAST_DOMAIN: u32 = 101;

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
    // What stands in tables and headlines, beside what taut says.
    let texts = lab.metrics.iter().flat_map(|(name, metric)| {
        let objective = metric.objective.as_deref().unwrap_or_default();
        [("metrics", name.as_str()), ("about", &metric.about), ("unit", &metric.unit), ("objective", objective)]
    });
    for (key, text) in [("title", lab.title.as_str())].into_iter().chain(texts) {
        require(taut_recording::printable(text.to_owned()) == text, key, || {
            format!("{text:?} has a line break or another control character; write one line of text")
        })?;
    }
    require(lab.trials <= 100_000, "trials", || format!("{} are too many; at most 100000", lab.trials))?;
    seconds("settle_s", lab.settle_s, true)?;
    seconds("cool_down_s", lab.cool_down_s, true)?;
    seconds("trial.timeout_s", lab.trial.timeout_s, false)?;
    require((0.1..=1.0).contains(&lab.applied), "applied", || format!("{} is not within 0.1 … 1", lab.applied))?;
    command("trial.command", &lab.trial.command)?;
    names("host", lab.hosts.iter().map(|host| host.name.as_str()))?;
    let far = lab.files.iter().find(|path| path.is_absolute() || path.starts_with(".."));
    let problem = far.map(|path| ("files".to_owned(), format!("{} is not below this folder", path.display())));
    problem.map_or(Ok(()), Err)?;
    let tier = lab.trial.tier.as_deref().unwrap_or("full");
    require(["full", "self", "stamps"].contains(&tier), "trial.tier", || {
        format!("{tier:?} is none of full, self, stamps")
    })?;
    if let Some([first, last]) = lab.domains {
        require(first <= last && last <= LAST_DOMAIN, "domains", || {
            format!("[{first}, {last}] is no range; write first and last, up to {LAST_DOMAIN}")
        })?;
    }
    let scenario_names = lab.scenarios.iter().map(|s| s.name.as_str());
    names("scenario", scenario_names.clone())?;
    names("process", lab.processes.iter().map(|p| p.name.as_str()))?;
    require(!lab.processes.iter().any(|p| p.name == TRIAL), "process.name", || {
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
        let wrong = match &process.ready {
            Some(Ready::Ros2(name)) => crate::ros2::wrong_name(name),
            _ => None,
        };
        wrong.map_or(Ok(()), |problem| Err((key("ready.ros2"), problem)))?;
        seconds(&key("stop_timeout_s"), process.stop_timeout_s, true)?;
    }
    let grouped = lab.scenarios.iter().find(|scenario| lab.has_own_group(scenario));
    let grouped = grouped.filter(|_| lab.isolation == Isolation::Affinity);
    let key = |scenario: &Scenario| match lab.own_group {
        true => "own_group".into(),
        false => format!("scenario {:?}.system_quota", scenario.name),
    };
    let problem = "needs a control group; write isolation = \"auto\" or \"cgroup\"";
    grouped.map_or(Ok(()), |scenario| Err((key(scenario), problem.into())))?;
    for scenario in &lab.scenarios {
        limits(scenario).map_err(|(key, problem)| (format!("scenario {:?}.{key}", scenario.name), problem))?;
        for (at, one) in scenario.loads.iter().enumerate() {
            load(one).map_err(|(key, problem)| (format!("scenario {:?}.load[{at}].{key}", scenario.name), problem))?;
        }
    }
    for (name, metric) in &lab.metrics {
        let fine = metric.deadline.is_none_or(|deadline| deadline > 0.0 && deadline.is_finite());
        require(fine, &format!("metrics.{name}.deadline"), || {
            "is not above 0; a limit that may be negative is success_from or success_to".into()
        })?;
        for (keys, from, to) in
            [("success", metric.success_from, metric.success_to), ("valid", metric.valid_from, metric.valid_to)]
        {
            let key = format!("metrics.{name}.{keys}_from");
            let finite = [from, to].into_iter().flatten().all(f64::is_finite);
            require(finite, &key, || format!("write finite numbers for {keys}_from and {keys}_to"))?;
            let fine = from.zip(to).is_none_or(|(from, to)| from <= to);
            require(fine, &key, || format!("is above {keys}_to: no trial could be within"))?;
        }
        let decides = metric.success_from.or(metric.success_to).is_some();
        let is_reported = lab.trial.report != Report::Exit || name == "wall_s";
        require(!decides || is_reported, &format!("metrics.{name}.success_to"), || {
            "needs trials that report numbers: [trial] report = \"json\" or \"stamps\"".into()
        })?;
        require(
            metric.stamps.is_none() || lab.trial.report == Report::Stamps,
            &format!("metrics.{name}.stamps"),
            || "needs [trial] report = \"stamps\"".into(),
        )?;
        let wrong = crate::stamps::wrong(metric);
        wrong.map_or(Ok(()), |(key, problem)| Err((format!("metrics.{name}.{key}"), problem)))?;
        let weight = metric.weight.unwrap_or(1.0);
        let fine = weight > 0.0 && weight.is_finite();
        require(fine, &format!("metrics.{name}.weight"), || format!("{weight} is not above 0"))?;
    }
    crate::objectives::wrong(lab).map_or(Ok(()), Err)?;
    names("path", lab.paths.iter().map(|path| path.name.as_str()))?;
    for path in &lab.paths {
        let key = format!("path {:?}", path.name);
        let fine = path.deadline > 0.0 && path.deadline.is_finite();
        require(fine, &format!("{key}.deadline"), || format!("{} is not above 0", path.deadline))?;
        let unknown = path.metrics.iter().find(|name| !lab.metrics.contains_key(*name) && *name != "wall_s");
        let problem = unknown.map(|name| format!("{name} is no metric; add [metrics.{name}]"));
        let problem = problem.or_else(|| path.metrics.is_empty().then(|| "at least one is needed".into()));
        problem.map_or(Ok(()), |problem| Err((format!("{key}.metrics"), problem)))?;
    }
    require(lab.isolation != Isolation::Cgroup || lab.is_confined(), "isolation", || {
        "\"cgroup\" confines nothing here: no process has cpus; add them, or write \"auto\"".into()
    })?;
    lab.breaking.as_ref().map_or(Ok(()), |breaking| check_breaking(breaking, lab))
}

fn limits(scenario: &Scenario) -> Result<(), Wrong> {
    if let Some(quota) = scenario.system_quota {
        require((0.01..=1024.0).contains(&quota), "system_quota", || {
            format!("{quota} is not within 0.01 … 1024 CPUs")
        })?;
    }
    if let Some(network) = &scenario.network {
        let inside = |key: &str, value: f64, high: f64| {
            let fine = (0.0..=high).contains(&value);
            require(fine, &format!("network.{key}"), || format!("{value} is not within 0 … {high}"))
        };
        inside("delay_ms", network.delay_ms, 10_000.0)?;
        inside("jitter_ms", network.jitter_ms, network.delay_ms)?;
        inside("loss_percent", network.loss_percent, 90.0)?;
        require(network.delay_ms + network.loss_percent > 0.0, "network", || "write delay_ms or loss_percent".into())?;
    }
    let mhz = scenario.max_frequency_mhz.unwrap_or(1000);
    require((50..=10_000).contains(&mhz), "max_frequency_mhz", || format!("{mhz} is not within 50 … 10000"))
}

pub(crate) fn load(load: &Load) -> Result<(), Wrong> {
    if let Some(workers) = load.workers() {
        let key = if load.is_flood() { "publishers" } else { "workers" };
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
        Load::Ros2(flood) | Load::Dds(flood) => check_flood(flood),
        Load::Zenoh(flood) => {
            let dds = [
                ("history", flood.history.is_some()),
                ("depth", flood.depth.is_some()),
                ("domain", flood.domain.is_some()),
            ];
            let of_dds = dds.into_iter().find(|(_, there)| *there);
            of_dds.map_or(Ok(()), |(key, _)| Err((key.into(), "is not zenoh's; leave it out".into())))?;
            check_flood(flood)
        }
        Load::Command { command, .. } => require(!command.trim().is_empty(), "command", || "is empty".into()),
        _ => Ok(()),
    }
}

fn check_flood(flood: &Flood) -> Result<(), Wrong> {
    let inside = |key: &str, value: u32, low: u32, high: u32| {
        require((low..=high).contains(&value), key, || format!("{value} is not within {low} … {high}"))
    };
    let rate = flood.rate_hz.unwrap_or(1.0);
    require(rate > 0.0 && rate <= 1e7, "rate_hz", || format!("{rate} is not above 0 and up to 10 million"))?;
    inside("payload_bytes", flood.payload_bytes, 1, 16 << 20)?;
    inside("readers", flood.readers, 0, 100)?;
    inside("depth", flood.depth.unwrap_or(1), 1, 1_000_000)?;
    inside("domain", flood.domain.unwrap_or(0), 0, LAST_DOMAIN)?;
    let topic = flood.topic.as_deref().unwrap_or("x");
    require(!topic.trim().is_empty(), "topic", || "is empty".into())
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
        let plain = !name.is_empty()
            && name.len() <= 128
            && !name.starts_with('.')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.=".contains(c));
        let key = format!("{what}.name");
        require(plain, &key, || format!("{name:?} names files: write letters, digits, -, _, . and ="))?;
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
            (change("udp", "tcp"), ["line", "unknown variant `tcp`, expected one of"]),
            (format!("{LAB}[metrics.t]\ndeadline = -3").pipe(refused_owned), ["metrics.t.deadline", "not above 0"]),
            (
                format!("{LAB}[metrics.t]\nsuccess_from = 3\nsuccess_to = 2").pipe(refused_owned),
                ["metrics.t.success_from", "above success_to"],
            ),
            (
                format!("{LAB}[metrics.t]\nsuccess_to = 2").pipe(refused_owned),
                ["metrics.t.success_to", "report = \"json\" or \"stamps\""],
            ),
            (
                LAB.replace("trials = 3", "trials = 3\nown_group = true\nisolation = \"affinity\"").pipe(refused_owned),
                ["own_group", "needs a control group"],
            ),
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
