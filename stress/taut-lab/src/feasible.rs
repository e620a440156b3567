//! `taut lab check`: what would be done, and what cannot be done on this machine; nothing is started.

use crate::{
    Command, Cpus, Lab, Scenario,
    inputs::program,
    isolation::{Namespace, no_frequency},
    lab::TRIAL,
    load::{interpreter, missing},
    run_order::rounds,
    runner::RAY,
    session::confined,
};

/// Units of metrics that are no slip of the pen, the first for none.
const UNITS: [&str; 33] = [
    "", "ns", "us", "µs", "ms", "s", "min", "h", "Hz", "kHz", "1/s", "%", "ppm", "B", "kB", "KiB", "MB", "MiB", "B/s",
    "MB/s", "MiB/s", "m", "cm", "mm", "m/s", "rad", "deg", "°", "rad/s", "N", "Nm", "W", "°C",
];

/// What a lab would do here.
#[derive(Clone, Debug, PartialEq)]
pub struct Feasible {
    /// For each round the scenarios in their order, by name.
    pub order: Vec<Vec<String>>,
    /// What keeps threads on their CPUs and watches them.
    pub confinement: String,
    /// For each scenario of the file where it runs.
    pub places: Vec<String>,
    /// What cannot be done, each with its key and a remedy.
    pub obstacles: Vec<String>,
    /// What is worth knowing before it runs.
    pub warnings: Vec<String>,
}

/// The keys that name CPUs which are not here, each with what to write instead.
pub(crate) fn missing_cpus(lab: &Lab) -> Vec<(String, String)> {
    let (online, permitted) = (Cpus::online(), Cpus::permitted());
    let mut found = Vec::new();
    let mut cpus = |key: String, wanted: Option<&Cpus>| {
        let Some(wanted) = wanted else { return };
        if let Some(missing) = online.without(wanted) {
            found.push((key, format!("CPU {missing} is not here; online are {online}")));
        } else if let Some(missing) = permitted.without(wanted) {
            found.push((key, format!("CPU {missing} is outside this process's cpuset; it has {permitted}")));
        }
    };
    for process in &lab.processes {
        cpus(format!("process {:?}.cpus", process.name), process.cpus.as_ref());
    }
    cpus("trial.cpus".into(), lab.trial.cpus.as_ref());
    for scenario in &lab.scenarios {
        cpus(format!("scenario {:?}.system_cpus", scenario.name), scenario.system_cpus.as_ref());
        for (at, load) in scenario.loads.iter().enumerate() {
            cpus(format!("scenario {:?}.load[{at}].cpus", scenario.name), load.cpus());
        }
    }
    found
}

/// Looks at commands and CPUs.
pub fn feasible(lab: &Lab) -> Feasible {
    let mut obstacles: Vec<String> =
        missing_cpus(lab).into_iter().map(|(key, problem)| format!("{key}: {problem}")).collect();
    let (groups, confinement) = match confined(lab, &format!("check-{}", std::process::id())) {
        Ok((groups, word)) => (groups.is_some(), word),
        Err(error) => {
            obstacles.push(error.to_string());
            (false, "nothing".into())
        }
    };
    if let Some(scenario) = lab.scenarios.iter().find(|scenario| lab.has_own_group(scenario) && !groups) {
        let key = if lab.own_group { "own_group".into() } else { format!("scenario {:?}.system_quota", scenario.name) };
        obstacles.push(format!("{key}: no control group ({confinement}); run as root"));
    }
    let commands =
        lab.processes.iter().map(|process| (format!("process {:?}.command", process.name), &process.command));
    for (key, command) in commands.chain([("trial.command".to_owned(), &lab.trial.command)]) {
        // What a shell would make of its line is for the shell to say.
        if let Command::Words(words) = command
            && let Some(word) = words.first()
            && program(word).is_none()
        {
            obstacles.push(format!("{key}: {word} is no program in PATH; install it or write its path"));
        }
    }
    for scenario in &lab.scenarios {
        if scenario.max_frequency_mhz.is_some()
            && let Some(why) = no_frequency()
        {
            obstacles.push(format!("scenario {:?}.max_frequency_mhz: {why}", scenario.name));
        }
    }
    for scenario in &lab.scenarios {
        let found = scenario.loads.iter().enumerate().filter_map(|(at, load)| Some((at, load.obstacle()?)));
        obstacles.extend(found.map(|(at, why)| format!("scenario {:?}.load[{at}].method: {why}", scenario.name)));
    }
    obstacles.extend(no_network(lab));
    obstacles.extend(crate::ros2::obstacles(lab));
    let python = interpreter(lab.python.as_deref());
    for scenario in &lab.scenarios {
        let needed = scenario.loads.iter().enumerate().filter_map(|(at, load)| Some((at, load.package()?)));
        obstacles.extend(needed.filter_map(|(at, package)| {
            Some(format!("scenario {:?}.load[{at}]: {}", scenario.name, missing(&python, package)?))
        }));
    }
    obstacles.extend(lab.ray.as_ref().and_then(|_| Some(format!("ray: {}", missing(&python, RAY)?))));
    let names = |round: Vec<usize>| round.iter().map(|at| lab.scenarios[*at].name.clone()).collect();
    Feasible {
        order: rounds(lab).into_iter().map(names).collect(),
        confinement,
        places: lab.scenarios.iter().map(|scenario| place(lab, scenario)).collect(),
        obstacles,
        warnings: warnings(lab),
    }
}

/// Where the parts of a scenario run, in words: by its own keys and the lab's, whatever other scenarios ask for.
pub(crate) fn place(lab: &Lab, scenario: &Scenario) -> String {
    let processes = lab.processes.iter().map(|process| process.name.as_str());
    let parts = processes.chain([TRIAL]).map(|part| match lab.cpus_of(scenario, part) {
        Some(cpus) => format!("{part} on CPU {cpus}"),
        None => format!("{part} on any CPU"),
    });
    let group = match lab.has_own_group(scenario) {
        true => "the system in a control group of CPU time of its own",
        false => "the system in no control group of CPU time",
    };
    let network = match lab.has_own_network(scenario) {
        true => "a network of its own, with loopback only",
        false => "this machine's network",
    };
    parts.chain([group.to_owned(), network.to_owned()]).collect::<Vec<_>>().join(" · ")
}

/// In what a scenario's place differs from that of the baseline beside what it is about, each with the key that puts all
/// scenarios into the same.
pub(crate) fn differing_places(lab: &Lab) -> Vec<String> {
    let Some(baseline) = lab.scenarios.iter().find(|scenario| scenario.name == lab.baseline()) else {
        return Vec::new();
    };
    let differs = |is: &dyn Fn(&Scenario) -> bool| -> Vec<&str> {
        let others = lab.scenarios.iter().filter(|scenario| is(scenario) != is(baseline));
        others.map(|scenario| scenario.name.as_str()).collect()
    };
    let network = differs(&|scenario| lab.has_own_network(scenario));
    let group = differs(&|scenario| lab.has_own_group(scenario));
    let all = [(group, "group of CPU time", "own_group"), (network, "network", "own_network")];
    let one = |(names, what, key): &(Vec<&str>, &str, &str)| {
        format!(
            "{}: not in the same {what} as the baseline {}, which is part of every difference; {key} = true puts all \
             scenarios into one of their own",
            names.join(", "),
            baseline.name
        )
    };
    all.iter().filter(|(names, ..)| !names.is_empty()).map(one).collect()
}

/// Why there can be no network of the lab's own, or no delay in it: tried, on an empty one.
fn no_network(lab: &Lab) -> Option<String> {
    let shaped = lab.scenarios.iter().find_map(|scenario| Some((scenario, scenario.network?)));
    if !lab.scenarios.iter().any(|scenario| lab.has_own_network(scenario)) {
        return None;
    }
    let place = shaped.map_or("own_network".into(), |(scenario, _)| format!("scenario {:?}.network", scenario.name));
    match Namespace::new() {
        Err(error) => Some(format!("{place}: no network of its own ({error}); run as root")),
        Ok(namespace) => Some(format!("{place}: {}", namespace.shape(&shaped?.1).err()?)),
    }
}

fn warnings(lab: &Lab) -> Vec<String> {
    let mut warnings = Vec::new();
    let starts = lab.trials.div_ceil(lab.trials_per_start);
    if starts < 6 {
        warnings.push(format!(
            "trials: {starts} starts of each scenario carry no interval; at least 6 do, and 29 successes of 29 trials \
             are needed to prove 90 %"
        ));
    }
    if lab.scenarios.iter().all(|scenario| scenario.is_plain()) {
        warnings.push("scenario: none has a load; this repeats and compares nothing".into());
    }
    warnings.extend(differing_places(lab));
    for (name, metric) in &lab.metrics {
        if !UNITS.contains(&metric.unit.as_str()) {
            warnings.push(format!(
                "metrics.{name}.unit: {:?} is none of {}; it is printed as it stands and converts nothing",
                metric.unit,
                UNITS[1..].join(", ")
            ));
        }
    }
    for scenario in &lab.scenarios {
        for (at, load) in scenario.loads.iter().enumerate() {
            let count = load.cpus().map_or_else(|| Cpus::online().count(), Cpus::count);
            if load.kind() == "cpu" && load.workers().is_some_and(|workers| workers as usize > count) {
                warnings.push(format!(
                    "scenario {:?}.load[{at}]: more workers than its {count} CPUs; what they want is counted as load, \
                     not only what they get",
                    scenario.name
                ));
            }
        }
    }
    warnings
}
