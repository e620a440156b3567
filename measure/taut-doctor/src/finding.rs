//! What a check is and what it finds. A [`Finding`] has everything that a report needs.

use crate::{
    Remedy,
    machine::{Machine, readable},
    seen::{Look, State},
};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// What a setting costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Late wakeups, mostly rare ones.
    Tail,
    /// Everything a little slower.
    Throughput,
    /// Data lost, a wrong clock, a loop that cannot defend itself.
    Safety,
}

/// The groups of the report, in the order of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// How the kernel was built and booted.
    Kernel,
    /// Frequencies, idle states, heat, mains.
    Power,
    /// Which core runs what.
    Scheduler,
    /// Interrupts and what serves them.
    Interrupts,
    /// Pages, swap and their background work.
    Memory,
    /// What this user, container or group of processes may do.
    Limits,
    /// Time.
    Clock,
    /// Hypervisor and firmware.
    Virtualization,
    /// Sockets and network cards.
    Network,
    /// USB, serial ports, PCIe.
    Devices,
    /// The interpreter.
    Python,
    /// The process named by `--pid`.
    Process,
}

/// One row of the doctor's table: what is looked at, and what is good.
#[derive(Clone, Copy, Serialize)]
pub struct Check {
    /// Kebab-case name, for the command line and scripts.
    pub id: &'static str,
    /// Where it is reported.
    pub subject: Subject,
    /// What the setting is.
    pub title: &'static str,
    /// Files and calls: `*` for any one name; PID, INTERFACE, TTY, RELEASE and CGROUP for the ones in question.
    #[serde(serialize_with = "as_readable")]
    pub reads: &'static [&'static str],
    /// The value a control loop wants.
    pub good: &'static str,
    /// What it does to a loop, in one line.
    pub why: &'static str,
    /// What to do where it is not good, unless the machine suggests something closer.
    pub remedy: &'static str,
    /// Takes the remedy back.
    pub undo: &'static str,
    /// What the setting costs.
    pub effect: Effect,
    /// The remedy needs a reboot.
    pub reboot: bool,
    #[serde(skip)]
    pub(crate) look: fn(&Machine<'_>) -> Look,
}

fn as_readable<S: Serializer>(reads: &&[&str], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(reads.iter().map(|read| readable(read)))
}

/// A check's answer for one machine. All texts are one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// The check's name.
    pub id: &'static str,
    /// Where it is reported.
    pub subject: Subject,
    /// What the setting is.
    pub title: &'static str,
    /// Files and calls that the answer is from.
    pub read: Vec<String>,
    /// How it stands.
    pub state: State,
    /// What was read, in words; for what is not visible or not applicable, why.
    pub value: String,
    /// The value a control loop wants.
    pub good: &'static str,
    /// What it does to a loop.
    pub why: &'static str,
    /// What to do, where something can be done.
    #[serde(skip)]
    pub remedy: Option<Remedy>,
    /// Takes the remedy back.
    pub undo: Option<String>,
    /// What the setting costs.
    pub effect: Effect,
    /// The remedy needs a reboot.
    pub reboot: bool,
}

impl State {
    /// All, worst first.
    pub const ALL: [State; 5] = [State::Bad, State::Warn, State::NotVisible, State::Good, State::NotApplicable];

    /// One word for scripts: "good", "not_visible".
    pub fn word(self) -> &'static str {
        match self {
            State::Bad => "bad",
            State::Warn => "warn",
            State::Good => "good",
            State::NotVisible => "not_visible",
            State::NotApplicable => "not_applicable",
        }
    }
}

impl Effect {
    /// "tail", "throughput", "safety".
    pub fn word(self) -> &'static str {
        match self {
            Effect::Tail => "tail",
            Effect::Throughput => "throughput",
            Effect::Safety => "safety",
        }
    }
}

impl Subject {
    /// All, in the order of reading.
    pub const ALL: [Subject; 12] = [
        Subject::Kernel,
        Subject::Power,
        Subject::Scheduler,
        Subject::Interrupts,
        Subject::Memory,
        Subject::Limits,
        Subject::Clock,
        Subject::Virtualization,
        Subject::Network,
        Subject::Devices,
        Subject::Python,
        Subject::Process,
    ];

    /// "Kernel", "Power", …
    pub fn word(self) -> &'static str {
        match self {
            Subject::Kernel => "Kernel",
            Subject::Power => "Power",
            Subject::Scheduler => "Scheduler",
            Subject::Interrupts => "Interrupts",
            Subject::Memory => "Memory",
            Subject::Limits => "Limits",
            Subject::Clock => "Clock",
            Subject::Virtualization => "Virtualization",
            Subject::Network => "Network",
            Subject::Devices => "Devices",
            Subject::Python => "Python",
            Subject::Process => "Process",
        }
    }
}
