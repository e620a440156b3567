//! What `taut lab check` prints.

use taut_document::{Block, Document, Finding, Section, Text, Tone};
use taut_lab::{Command, Feasible, Lab, Ready};

use crate::words::quantity;

/// Rounds of the order that are shown; the manifest has them all.
const ROUNDS: usize = 3;

/// What would be done, and what cannot be done here.
pub fn lab_check(name: &str, lab: &Lab, feasible: &Feasible) -> Document {
    let title = if lab.title.is_empty() { name } else { &lab.title };
    let starts = lab.trials.div_ceil(lab.trials_per_start) as usize * lab.scenarios.len();
    let total = u64::from(lab.trials) * lab.scenarios.len() as u64;
    let headline = format!(
        "{} in {}, each on a fresh system after {}; {} against {:?}; seed {}",
        quantity(total, "trial"),
        quantity(starts as u64, "block"),
        quantity(u64::from(lab.warm_up), "warm-up trial"),
        quantity(lab.scenarios.len() as u64, "scenario"),
        lab.baseline(),
        lab.seed,
    );
    let against = |tone, label: &str, texts: &[String]| -> Vec<Finding> {
        let one = |text: &String| Finding { tone, ..said(label, text.as_str()) };
        texts.iter().map(one).collect()
    };
    let mut findings = [plan(lab, feasible), against(Tone::Undecided, "warning", &feasible.warnings)].concat();
    findings.extend(against(Tone::Bad, "cannot", &feasible.obstacles));
    let mut blocks = vec![Block::Findings(findings)];
    if feasible.obstacles.is_empty() {
        blocks.push(Block::Text("Nothing stands in its way.".into()));
    }
    Document {
        title: title.to_owned(),
        headline: headline.into(),
        sections: vec![Section::new(1, "", blocks)],
        ..Document::default()
    }
}

fn said(label: &str, text: impl Into<Text>) -> Finding {
    Finding { label: label.into(), text: text.into(), ..Finding::default() }
}

fn plan(lab: &Lab, feasible: &Feasible) -> Vec<Finding> {
    let process = |process: &taut_lab::Process| {
        let cpus = process.cpus.as_ref().map_or(String::new(), |cpus| format!(" on CPU {cpus}"));
        let details = process.ready.as_ref().map(|ready| ("ready when".to_owned(), readiness(ready).into()));
        let text = format!("{}{cpus}: {}", process.name, line(&process.command));
        Finding { details: details.into_iter().collect(), ..said("process", text) }
    };
    let mut findings: Vec<Finding> = lab.processes.iter().map(process).collect();
    let trial = format!("{} (at most {} s)", line(&lab.trial.command), lab.trial.timeout_s);
    findings.push(said("trial", trial));
    for (scenario, place) in lab.scenarios.iter().zip(&feasible.places) {
        let mut parts: Vec<String> = scenario.loads.iter().map(ToString::to_string).collect();
        parts.extend(scenario.limits());
        parts.extend(scenario.environment.iter().map(|(key, value)| format!("{key}={value}")));
        let parts = if parts.is_empty() { "no load".into() } else { parts.join(" + ") };
        let details = vec![("where".to_owned(), place.as_str().into())];
        findings.push(Finding { details, ..said("scenario", format!("{}: {parts}", scenario.name)) });
    }
    if let Some([first, last]) = lab.domains {
        let text = format!("{first} to {last}: each start gets the next as ROS_DOMAIN_ID");
        findings.push(said("domains", text));
    }
    findings.push(said("confined by", feasible.confinement.as_str()));
    if let Some(sweep) = &lab.sweep {
        let lists = sweep.vary.iter().map(|(key, values)| {
            format!("{key} in {}", values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        });
        let points: usize = sweep.vary.values().map(Vec::len).product();
        let lists = lists.collect::<Vec<_>>().join("; ");
        let points = quantity(points as u64, "point");
        findings.push(said("sweep", format!("{points} of {}: {lists}", sweep.scenario)));
    }
    if let Some(of) = &lab.breaking {
        let until = format!("until success falls below {:.0} %", of.success * 100.0);
        findings.push(said("break", format!("{} of {}, {} … {}, {until}", of.vary, of.scenario, of.from, of.to)));
    }
    let rounds: Vec<String> = feasible.order.iter().take(ROUNDS).map(|round| round.join(" ")).collect();
    let more = if feasible.order.len() > ROUNDS { " | …" } else { "" };
    findings.push(said("order", format!("{}{more}", rounds.join(" | "))));
    findings
}

fn readiness(ready: &Ready) -> String {
    match ready {
        Ready::Stdout(said) => format!("it prints a line with {said:?}"),
        Ready::File(path) => format!("{} is there", path.display()),
        Ready::Tcp(address) => format!("{address} accepts connections"),
        Ready::Command(command) => format!("{command} succeeds"),
        Ready::Ros2(name) => format!("ROS 2's discovery finds {name}"),
    }
}

fn line(command: &Command) -> String {
    command.words().join(" ")
}
