//! `taut lab check`: what would be done, and what cannot be done on this machine; nothing is started.

use crate::{
    Command, Cpus, Lab,
    inputs::program,
    load::{interpreter, missing},
    machine::{Namespace, no_frequency},
    run::rounds,
    runner::RAY,
};

/// What a lab would do here.
#[derive(Clone, Debug, PartialEq)]
pub struct Feasible {
    /// For each round the scenarios in their order, by name.
    pub order: Vec<Vec<String>>,
    /// What cannot be done, each with its key and a remedy.
    pub obstacles: Vec<String>,
    /// What is worth knowing before it runs.
    pub warnings: Vec<String>,
}

/// Looks at commands and CPUs.
pub fn feasible(lab: &Lab) -> Feasible {
    let online = Cpus::online();
    let mut obstacles = Vec::new();
    let mut cpus = |key: String, wanted: Option<&Cpus>| {
        if let Some(missing) = wanted.and_then(|wanted| online.without(wanted)) {
            obstacles.push(format!("{key}: CPU {missing} is not here; online are {online}"));
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
    let python = interpreter(lab.python.as_deref());
    for scenario in &lab.scenarios {
        let needed = scenario.loads.iter().enumerate().filter_map(|(at, load)| Some((at, load.package()?)));
        obstacles.extend(needed.filter_map(|(at, package)| {
            Some(format!("scenario {:?}.load[{at}]: {}", scenario.name, missing(&python, package)?))
        }));
    }
    obstacles.extend(lab.ray.as_ref().and_then(|_| Some(format!("ray: {}", missing(&python, RAY)?))));
    let names = |round: Vec<usize>| round.iter().map(|at| lab.scenarios[*at].name.clone()).collect();
    Feasible { order: rounds(lab).into_iter().map(names).collect(), obstacles, warnings: warnings(lab) }
}

/// Why there can be no network of the lab's own, or no delay in it: tried, on one that nobody is in.
fn no_network(lab: &Lab) -> Option<String> {
    let shaped = lab.scenarios.iter().find_map(|scenario| Some((scenario, scenario.network?)));
    if !lab.has_own_network() {
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
