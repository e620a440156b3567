//! `taut lab sweep`: a grid over any keys of a scenario, every combination a scenario of its own. What is left is a lab
//! as any other: the order is drawn from the seed, every point is compared with the baseline.

use std::collections::{BTreeMap, BTreeSet};

use toml::Value;

use crate::{Lab, Scenario};

/// Points that a person can wait for.
const MOST_POINTS: usize = 1000;

/// A lab of all points.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The baseline, then the points.
    pub lab: Lab,
    /// What each point's scenario is made of, by its name.
    pub points: Vec<(String, BTreeMap<String, Value>)>,
}

/// Multiplies the lab out.
///
/// # Errors
/// The key, and what is wrong with it.
pub fn grid(lab: &Lab) -> Result<Grid, (String, String)> {
    let wrong = |key: &str, problem: String| Err((format!("sweep{key}"), problem));
    let Some(sweep) = &lab.sweep else {
        return wrong("", "is missing; say what to vary (docs/reference/lab.md)".into());
    };
    let Some(scenario) = lab.scenarios.iter().find(|scenario| scenario.name == sweep.scenario) else {
        return wrong(".scenario", format!("no scenario is called {:?}", sweep.scenario));
    };
    if sweep.vary.is_empty() || sweep.vary.values().any(Vec::is_empty) {
        return wrong(".vary", "write keys with values, e.g. \"load.0.rate_hz\" = [100, 1000]".into());
    }
    let size = sweep.vary.values().map(Vec::len).try_fold(1usize, |all, n| all.checked_mul(n)).unwrap_or(usize::MAX);
    if size > MOST_POINTS {
        return wrong(".vary", format!("{size} points are too many; at most {MOST_POINTS}"));
    }
    let mut points: Vec<BTreeMap<String, Value>> = vec![BTreeMap::new()];
    for (key, values) in &sweep.vary {
        let with = |point: &BTreeMap<String, Value>, value: &Value| {
            let mut point = point.clone();
            point.insert(key.clone(), value.clone());
            point
        };
        points = points.iter().flat_map(|point| values.iter().map(move |value| with(point, value))).collect();
    }
    let mut scenarios: Vec<Scenario> = lab.scenarios.iter().filter(|s| s.name == lab.baseline()).cloned().collect();
    let mut named = Vec::new();
    for values in points {
        let point = varied(scenario, &values).map_err(|(key, problem)| (format!("sweep.vary.{key:?}"), problem))?;
        named.push((point.name.clone(), values));
        scenarios.push(point);
    }
    let names: BTreeSet<&String> = scenarios.iter().map(|scenario| &scenario.name).collect();
    if names.len() < scenarios.len() {
        return wrong(".vary", "a value is there twice".into());
    }
    let lab = Lab {
        trials: sweep.trials.unwrap_or(lab.trials),
        baseline: Some(lab.baseline().to_owned()),
        scenarios,
        breaking: None,
        sweep: None,
        ..lab.clone()
    };
    crate::checks::check(&lab).map_err(|(key, problem)| (format!("sweep: {key}"), problem))?;
    Ok(Grid { lab, points: named })
}

/// The scenario with other values, and named by them.
fn varied(scenario: &Scenario, values: &BTreeMap<String, Value>) -> Result<Scenario, (String, String)> {
    let whole = |error: String| (values.keys().next().cloned().unwrap_or_default(), error);
    let mut table = Value::try_from(scenario).map_err(|error| whole(error.to_string()))?;
    let mut name = scenario.name.clone();
    for (key, value) in values {
        place(&mut table, key, value).map_err(|problem| (key.clone(), problem))?;
        let last = key.rsplit('.').next().unwrap_or(key);
        let is_only = values.keys().filter(|other| other.rsplit('.').next() == Some(last)).count() == 1;
        let said = if is_only { last } else { key };
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        name += &format!("-{said}={}", value.chars().map(plain).collect::<String>());
    }
    let mut point: Scenario = table.try_into().map_err(|error: toml::de::Error| whole(error.message().to_owned()))?;
    point.name = name;
    Ok(point)
}

/// Puts a value at the end of a path of keys and, in lists, numbers from 0.
fn place(table: &mut Value, path: &str, value: &Value) -> Result<(), String> {
    let mut at = table;
    let mut steps = path.split('.').peekable();
    while let Some(step) = steps.next() {
        let is_last = steps.peek().is_none();
        at = match at {
            Value::Array(list) => {
                let n = list.len();
                let missing = || format!("{step:?} is none of {n} entries; count from 0");
                step.parse().ok().and_then(|at: usize| list.get_mut(at)).ok_or_else(missing)?
            }
            Value::Table(table) => {
                let new = if is_last { value.clone() } else { Value::Table(toml::Table::new()) };
                table.entry(step).or_insert(new)
            }
            _ => return Err(format!("{step:?} is below a plain value")),
        };
    }
    *at = value.clone();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(sweep: &str) -> Result<Grid, (String, String)> {
        let text = format!(
            "trials = 3\n[trial]\ncommand = \"true\"\ntimeout_s = 1\n[[scenario]]\nname = \"none\"\n[[scenario]]\n\
             name = \"flood\"\nload = [{{ kind = \"udp\", publishers = 2, rate_hz = 100 }}]\n[[scenario]]\nname = \"else\"\n\
             {sweep}"
        );
        grid(&toml::from_str(&text).unwrap())
    }

    #[test]
    fn every_combination_is_a_scenario_beside_the_baseline() {
        let grid = lab("[sweep]\nscenario = \"flood\"\ntrials = 7\n[sweep.vary]\n\"load.0.rate_hz\" = [100, 2.5]\n\
                        \"environment.DEPTH\" = [\"1\", \"a b\"]\nsystem_cpus = [\"0\"]\n")
        .unwrap();
        let names: Vec<&str> = grid.lab.scenarios.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "none",
                "flood-DEPTH=1-rate_hz=100-system_cpus=0",
                "flood-DEPTH=1-rate_hz=2.5-system_cpus=0",
                "flood-DEPTH=a-b-rate_hz=100-system_cpus=0",
                "flood-DEPTH=a-b-rate_hz=2.5-system_cpus=0",
            ]
        );
        let last = &grid.lab.scenarios[4];
        assert_eq!(last.loads[0].to_string(), "udp 2 × 2.5 Hz × 1024 B");
        assert_eq!(last.environment["DEPTH"], "a b");
        assert_eq!(last.system_cpus.as_ref().unwrap().to_string(), "0");
        assert_eq!((grid.lab.trials, grid.lab.baseline(), grid.points.len()), (7, "none", 4));
    }

    #[test]
    fn what_cannot_be_varied_is_named() {
        for (vary, key, part) in [
            ("\"load.1.rate_hz\" = [1]", "load.1.rate_hz", "none of 1 entries"),
            ("\"load.0.speed\" = [1]", "load.0.speed", "unknown field `speed`"),
            ("\"load.0.rate_hz\" = [-1]", "rate_hz", "not above 0"),
            ("\"name.x\" = [1]", "name.x", "below a plain value"),
            ("\"load.0.rate_hz\" = [1, 1]", "sweep.vary", "there twice"),
            ("\"load.0.rate_hz\" = []", "sweep.vary", "write keys with values"),
        ] {
            let (found, problem) = lab(&format!("[sweep]\nscenario = \"flood\"\n[sweep.vary]\n{vary}\n")).unwrap_err();
            assert!(found.contains(key) && problem.contains(part), "{found}: {problem}");
        }
        assert!(lab("").unwrap_err().1.contains("is missing"));
    }
}
