//! What `taut lab check` prints.

use taut_lab::{Command, Feasible, Lab, Ready};

use crate::{
    Style,
    console::wrap,
    escape::{Form, escaped},
    words::quantity,
};

/// Rounds of the order that are shown; the manifest has them all.
const ROUNDS: usize = 3;

/// What would be done, and what cannot be done here.
pub fn lab_check(name: &str, lab: &Lab, feasible: &Feasible, style: Style) -> String {
    let title = if lab.title.is_empty() { name } else { &lab.title };
    let mut out = format!("{}\n\n", style.bold(title));
    let starts = lab.trials.div_ceil(lab.trials_per_start) as usize * lab.scenarios.len();
    let total = u64::from(lab.trials) * lab.scenarios.len() as u64;
    out += &wrap(
        &format!(
            "{} in {}, each on a fresh system after {}; {} against {:?}; seed {}",
            quantity(total, "trial"),
            quantity(starts as u64, "block"),
            quantity(u64::from(lab.warm_up), "warm-up trial"),
            quantity(lab.scenarios.len() as u64, "scenario"),
            lab.baseline(),
            lab.seed,
        ),
        98,
    );
    out += "\n\n";
    for process in &lab.processes {
        let cpus = process.cpus.as_ref().map_or(String::new(), |cpus| format!(" on CPU {cpus}"));
        let ready =
            process.ready.as_ref().map_or(String::new(), |ready| format!("         ready when {}\n", readiness(ready)));
        out += &format!("process  {}{cpus}: {}\n{ready}", process.name, line(&process.command));
    }
    out += &format!("trial    {} (at most {} s)\n", line(&lab.trial.command), lab.trial.timeout_s);
    for (scenario, place) in lab.scenarios.iter().zip(&feasible.places) {
        let mut parts: Vec<String> = scenario.loads.iter().map(|load| text(&load.to_string())).collect();
        parts.extend(scenario.limits());
        parts.extend(scenario.environment.iter().map(|(key, value)| text(&format!("{key}={value}"))));
        let parts = if parts.is_empty() { "no load".into() } else { parts.join(" + ") };
        out += &format!("scenario {}: {parts}\n", scenario.name);
        out += &format!("         {}\n", wrap(place, 89).replace('\n', "\n         "));
    }
    if let Some([first, last]) = lab.domains {
        out += &format!("domains  {first} to {last}: each start gets the next as ROS_DOMAIN_ID\n");
    }
    out += &format!("confined by {}\n", wrap(&feasible.confinement, 86));
    if let Some(sweep) = &lab.sweep {
        let lists = sweep.vary.iter().map(|(key, values)| {
            format!("{key} in {}", values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        });
        let points: usize = sweep.vary.values().map(Vec::len).product();
        let lists = lists.collect::<Vec<_>>().join("; ");
        out += &format!("sweep    {} of {}: {lists}\n", quantity(points as u64, "point"), sweep.scenario);
    }
    if let Some(breaking) = &lab.breaking {
        out += &format!(
            "break    {} of {}, {} … {}, until success falls below {:.0} %\n",
            breaking.vary,
            breaking.scenario,
            breaking.from,
            breaking.to,
            breaking.success * 100.0
        );
    }
    let rounds = feasible.order.iter().take(ROUNDS).map(|round| round.join(" "));
    let more = if feasible.order.len() > ROUNDS { " | …" } else { "" };
    out += &format!("order    {}{more}\n", rounds.collect::<Vec<_>>().join(" | "));
    for warning in &feasible.warnings {
        out += &format!("{} {}\n", style.bold("warning:"), wrap(warning, 89));
    }
    for obstacle in &feasible.obstacles {
        out += &format!("{} {}\n", style.bold("cannot:"), wrap(obstacle, 90));
    }
    if feasible.obstacles.is_empty() {
        out += "Nothing stands in its way.\n";
    }
    out
}

fn readiness(ready: &Ready) -> String {
    match ready {
        Ready::Stdout(said) => format!("it prints a line with {:?}", text(said)),
        Ready::File(path) => format!("{} is there", text(&path.display().to_string())),
        Ready::Tcp(address) => format!("{} accepts connections", text(address)),
        Ready::Command(command) => format!("{} succeeds", text(command)),
        Ready::Ros2(name) => format!("ROS 2's discovery finds {}", text(name)),
    }
}

/// A command on one line, whatever is in it: a lab from elsewhere is checked before it is run.
fn line(command: &Command) -> String {
    text(&command.words().join(" "))
}

fn text(text: &str) -> String {
    escaped(text, Form::Terminal)
}
