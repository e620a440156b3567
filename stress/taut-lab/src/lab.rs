//! What `lab.toml` holds: the system under test, the trial, the scenarios. The reference is `docs/reference/lab.md`.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cpus, Load, Network, Sweep};

/// The part that the trial's command is.
pub(crate) const TRIAL: &str = "trial";

/// A lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// Decides the order of the blocks.
    #[serde(default = "one")]
    pub seed: u64,
    /// Measured trials of each scenario.
    pub trials: u32,
    /// Measured trials on one start of the system. More than one makes the start the unit of every interval.
    #[serde(default = "one_u32")]
    pub trials_per_start: u32,
    /// Trials after each start whose results are thrown away.
    #[serde(default)]
    pub warm_up: u32,
    /// How long a load runs before the first trial under it, s.
    #[serde(default = "half")]
    pub settle_s: f64,
    /// Rest after each start's trials, s.
    #[serde(default)]
    pub cool_down_s: f64,
    /// The scenario that the others are compared with; without it the first.
    pub baseline: Option<String>,
    /// What keeps threads on their CPUs.
    #[serde(default)]
    pub isolation: Isolation,
    /// How it is verified that they stay there.
    #[serde(default)]
    pub watch: Watch,
    /// The least part of a load's target that counts as applied.
    #[serde(default = "nine_tenths")]
    pub applied: f64,
    /// Added to the environment of the system, the trials and the loads.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// First and last of the DDS domains that starts take in turns, as `ROS_DOMAIN_ID`: what an earlier start left
    /// behind speaks on another one.
    pub domains: Option<[u32; 2]>,
    /// Whether every start is in a network of its own with nothing but loopback. Without it only those of a scenario
    /// that has `network`.
    #[serde(default)]
    pub own_network: bool,
    /// Whether the system is in a control group of CPU time of its own on every start. Without it only on those of a
    /// scenario that has `system_quota`.
    #[serde(default)]
    pub own_group: bool,
    /// The interpreter of the floods' helper program, with their packages.
    pub python: Option<PathBuf>,
    /// Other machines that run the rounds; without them this one.
    #[serde(default, rename = "host")]
    pub hosts: Vec<crate::Host>,
    /// A cluster whose hosts run the rounds.
    pub ray: Option<crate::Ray>,
    /// Files and folders that a host needs besides those that commands name.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// The system under test, in the order of its start.
    #[serde(default, rename = "process")]
    pub processes: Vec<Process>,
    /// What is repeated.
    pub trial: TrialCommand,
    /// Weights of the objectives that metrics name.
    pub weights: Option<crate::Weights>,
    /// What is judged, by the name under which the trial reports it.
    #[serde(default)]
    pub metrics: BTreeMap<String, Metric>,
    /// Deadlines of several metrics together.
    #[serde(default, rename = "path")]
    pub paths: Vec<crate::Path>,
    /// Under what it is repeated.
    #[serde(rename = "scenario")]
    pub scenarios: Vec<Scenario>,
    /// What `taut lab sweep` goes over.
    pub sweep: Option<Sweep>,
    /// What `taut lab break` looks for.
    #[serde(rename = "break")]
    pub breaking: Option<Breaking>,
}

/// What keeps threads on their CPUs. Either way every thread is looked at while trials run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Control groups where they can be had, else affinity.
    #[default]
    Auto,
    /// sched_setaffinity: a thread may undo it.
    Affinity,
    /// A cpuset control group, or an error.
    Cgroup,
}

/// How it is verified that threads stay on their CPUs. Looks at /proc there are always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Watch {
    /// By the scheduler's events as well, where something is confined and they can be had.
    #[default]
    Auto,
    /// By the scheduler's events, or an error.
    Events,
    /// By looks only: events cost the system as much as it switches.
    Proc,
}

/// One process of the system under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Unique; names its logs.
    pub name: String,
    /// How it is started.
    pub command: Command,
    /// Its own; wins over the scenario's and the lab's.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The only CPUs it may use; without it those of the lab.
    pub cpus: Option<Cpus>,
    /// What says that it is ready; without it, it is at once.
    pub ready: Option<Ready>,
    /// How long that may take, s.
    #[serde(default = "half_a_minute")]
    pub ready_timeout_s: f64,
    /// What ends it.
    #[serde(default)]
    pub stop_signal: StopSignal,
    /// After that, SIGKILL, s.
    #[serde(default = "five")]
    pub stop_timeout_s: f64,
}

/// A shell's line, or a program and its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a line for the shell, or a list of a program and its arguments")]
pub enum Command {
    /// For `sh -c`.
    Line(String),
    /// Without a shell.
    Words(Vec<String>),
}

/// What says that a process is ready; one of the five.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Ready {
    /// A line on its stdout that contains this.
    Stdout(String),
    /// A file that is there.
    File(PathBuf),
    /// An address that accepts connections, `127.0.0.1:7000`.
    Tcp(String),
    /// A line for the shell that succeeds; asked every 100 ms.
    Command(String),
    /// A node, a service, an action, or a topic with a publisher that ROS 2's discovery finds, by its full name.
    Ros2(String),
}

/// Signals that ask a process to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGTERM.
    #[default]
    Term,
    /// SIGINT, which ROS 2 nodes expect.
    Int,
    /// SIGHUP.
    Hup,
    /// SIGQUIT.
    Quit,
    /// SIGKILL at once.
    Kill,
}

/// The command of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialCommand {
    /// How it is started.
    pub command: Command,
    /// Added to the lab's own environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The only CPUs it may use.
    pub cpus: Option<Cpus>,
    /// After that the trial has failed as `timeout`, s.
    pub timeout_s: f64,
    /// How it tells its result.
    #[serde(default)]
    pub report: Report,
    /// Of its recording, where it reports by stamps; without it the best that this user may have.
    pub tier: Option<String>,
}

/// How a trial tells its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Report {
    /// By its exit code.
    #[default]
    Exit,
    /// By its exit code and a last line of stdout that is a JSON object of numbers, with `success` and `reason` if it
    /// likes.
    Json,
    /// By its exit code, such a line if there is one, and what all processes stamped: the trial is recorded.
    Stamps,
}

/// A number that trials report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// One line for people: "T1 planning latency".
    #[serde(default)]
    pub about: String,
    /// For people.
    #[serde(default)]
    pub unit: String,
    /// Which way is good.
    #[serde(default)]
    pub better: Better,
    /// A trial beyond it has missed, as has one without the number.
    pub deadline: Option<f64>,
    /// Its source, where trials report by stamps; without it, the JSON line.
    pub stamps: Option<crate::Stamps>,
    /// The objective that it stands for: "T1".
    pub objective: Option<String>,
    /// Its part in the score; without it that of its objective.
    pub weight: Option<f64>,
    /// A limit: a trial below it, or without the number, has failed.
    pub success_from: Option<f64>,
    /// The same from above.
    pub success_to: Option<f64>,
    /// A gate: a trial below it says nothing about the system and is invalid, as with a simulator that lags.
    pub valid_from: Option<f64>,
    /// The same from above.
    pub valid_to: Option<f64>,
}

/// Which way is good. A failed trial counts as worse than every number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better.
    #[default]
    Lower,
    /// More is better.
    Higher,
}

/// Loads that run together, and what the system may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Unique.
    pub name: String,
    /// The only CPUs that the system under test may use, all its processes together; instead of their own.
    pub system_cpus: Option<Cpus>,
    /// How many CPUs' time the system's processes may use together, in each 100 ms.
    pub system_quota: Option<f64>,
    /// What every packet between processes meets; all of the lab is in a network of its own then.
    pub network: Option<Network>,
    /// The highest frequency of all CPUs.
    pub max_frequency_mhz: Option<u32>,
    /// Added to the environment of the system, the trials and the loads.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// All at once.
    #[serde(default, rename = "load")]
    pub loads: Vec<Load>,
}

/// What `taut lab break` looks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Breaking {
    /// The scenario that is made heavier.
    pub scenario: String,
    /// The number of its load that is varied, e.g. `rate_hz`.
    pub vary: String,
    /// Which of its loads, from 0.
    #[serde(default)]
    pub load: usize,
    /// Where the search may look.
    pub from: f64,
    /// Where the search may look.
    pub to: f64,
    /// The threshold is where success falls below this.
    #[serde(default = "nine_tenths")]
    pub success: f64,
    /// Two loads are as good as one when the heavier is at most so many times the lighter.
    #[serde(default = "a_fifth_more")]
    pub resolution: f64,
    /// Chance that a load is called fine, or broken, wrongly.
    #[serde(default = "a_fiftieth")]
    pub alpha: f64,
    /// Trials of a load after which it stays open.
    #[serde(default = "six_score")]
    pub most_trials_per_load: u32,
    /// Trials of the whole search.
    #[serde(default = "four_hundred")]
    pub most_trials: u32,
}

impl Lab {
    /// Whether starts of a scenario have a network of their own. Only its own keys count: a scenario runs in the same
    /// place whatever else the file holds.
    pub(crate) fn has_own_network(&self, scenario: &Scenario) -> bool {
        self.own_network || scenario.network.is_some()
    }

    /// Whether the system of a scenario is in a control group of CPU time of its own.
    pub(crate) fn has_own_group(&self, scenario: &Scenario) -> bool {
        self.own_group || scenario.system_quota.is_some()
    }

    /// Whether a part belongs to the system under test, which limits hold. Without processes that is the trial's
    /// command.
    pub(crate) fn is_system(&self, part: &str) -> bool {
        match self.processes.is_empty() {
            true => part == TRIAL,
            false => self.processes.iter().any(|process| process.name == part),
        }
    }

    /// Whether the rounds run elsewhere.
    pub fn has_other_hosts(&self) -> bool {
        !self.hosts.is_empty() || self.ray.is_some()
    }

    /// Whether any thread is bound to CPUs in any scenario: all scenarios are watched alike.
    pub(crate) fn is_confined(&self) -> bool {
        self.processes.iter().any(|process| process.cpus.is_some())
            || self.trial.cpus.is_some()
            || self.scenarios.iter().any(|scenario| {
                scenario.system_cpus.is_some() || scenario.loads.iter().any(|load| load.cpus().is_some())
            })
    }

    /// The only CPUs of a part in a scenario.
    pub(crate) fn cpus_of<'a>(&'a self, scenario: &'a Scenario, part: &str) -> Option<&'a Cpus> {
        let of_process = self.processes.iter().find(|process| process.name == part);
        let of_load = || scenario.loads.get(part.strip_prefix("load-")?.parse::<usize>().ok()?)?.cpus();
        let own = match of_process {
            Some(process) => process.cpus.as_ref(),
            None if part == TRIAL => self.trial.cpus.as_ref(),
            None => of_load(),
        };
        scenario.system_cpus.as_ref().filter(|_| self.is_system(part)).or(own)
    }

    /// The scenario that the others are compared with.
    pub fn baseline(&self) -> &str {
        self.baseline.as_deref().unwrap_or_else(|| self.scenarios.first().map_or("", |first| &first.name))
    }
}

impl Metric {
    /// Why a trial with this value says nothing about the system, if so.
    pub(crate) fn gate(&self, name: &str, value: f64) -> Option<String> {
        let outside = outside(value, self.valid_from, self.valid_to)?;
        Some(format!("{name} of {value} is {outside}, which makes a trial valid"))
    }

    /// Why a trial has failed that reported this, if so.
    pub(crate) fn failure(&self, name: &str, value: Option<f64>) -> Option<String> {
        let (from, to) = (self.success_from, self.success_to);
        from.or(to)?;
        let Some(value) = value else { return Some(format!("no {name}, which decides success")) };
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        outside(value, from, to).map(|outside| format!("{name} of {value}{unit} is {outside}, its limit"))
    }
}

/// "above 5" where a value is outside a range.
fn outside(value: f64, from: Option<f64>, to: Option<f64>) -> Option<String> {
    let below = from.filter(|from| value < *from).map(|from| format!("below {from}"));
    below.or_else(|| to.filter(|to| value > *to).map(|to| format!("above {to}")))
}

impl Scenario {
    /// Whether it changes nothing.
    pub(crate) fn is_plain(&self) -> bool {
        self.loads.is_empty() && self.limits().is_empty() && self.environment.is_empty()
    }

    /// What it takes from the system, in words.
    pub fn limits(&self) -> Vec<String> {
        let cpus = self.system_cpus.as_ref().map(|cpus| format!("the system on CPU {cpus} only"));
        let quota = self.system_quota.map(|quota| format!("{quota} CPUs' time for the system"));
        let network = self.network.map(|network| network.to_string());
        let frequency = self.max_frequency_mhz.map(|mhz| format!("at most {mhz} MHz"));
        [cpus, quota, network, frequency].into_iter().flatten().collect()
    }
}

impl Command {
    /// Program and arguments.
    pub fn words(&self) -> Vec<String> {
        match self {
            Command::Line(line) => vec!["sh".into(), "-c".into(), line.clone()],
            Command::Words(words) => words.clone(),
        }
    }
}

fn one() -> u64 {
    1
}
fn one_u32() -> u32 {
    1
}
fn half() -> f64 {
    0.5
}
fn nine_tenths() -> f64 {
    0.9
}
fn half_a_minute() -> f64 {
    30.0
}
fn five() -> f64 {
    5.0
}
fn a_fifth_more() -> f64 {
    1.2
}
fn a_fiftieth() -> f64 {
    0.02
}
fn six_score() -> u32 {
    120
}
fn four_hundred() -> u32 {
    400
}
