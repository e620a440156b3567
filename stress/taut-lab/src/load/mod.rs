//! Loads beside the system under test: what they are, what they shall reach, how they are started and what they reached.

mod flood;
mod running;
mod stress_ng;
pub mod worker;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Cpus;

pub use flood::{Flood, History, Reliability, interpreter};
pub(crate) use flood::{Package, ROS2, helper, missing};
pub use running::{Achieved, TopicRate};
pub(crate) use running::{Loader, RunningLoad};
pub use stress_ng::Method;

/// One load. Rates and percentages are of each worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Load {
    /// Computes for a part of every 10 ms.
    Cpu {
        /// Threads.
        workers: u32,
        /// Of a CPU, each.
        #[serde(default = "all")]
        percent: f64,
        /// What computes; without it this program's own.
        method: Option<Method>,
        /// The only CPUs for it.
        cpus: Option<Cpus>,
    },
    /// Copies 32 MiB to and fro.
    Memory {
        /// Threads.
        workers: u32,
        /// The only CPUs for it.
        cpus: Option<Cpus>,
    },
    /// Writes 1 MiB to a file and syncs it.
    Io {
        /// Threads.
        workers: u32,
        /// The only CPUs for it.
        cpus: Option<Cpus>,
    },
    /// Sleeps for 50 µs at a time: timer interrupts.
    Timers {
        /// Threads.
        workers: u32,
        /// The only CPUs for it.
        cpus: Option<Cpus>,
    },
    /// Forks processes that end at once.
    Forks {
        /// Threads that fork.
        workers: u32,
        /// Forks a second, each; without it as many as go.
        rate_hz: Option<f64>,
        /// The only CPUs for it.
        cpus: Option<Cpus>,
    },
    /// UDP messages over loopback to a reader of its own.
    Udp {
        /// Sending threads, each with a reader.
        publishers: u32,
        /// Messages a second, each.
        rate_hz: f64,
        /// Of a message.
        #[serde(default = "a_kilobyte")]
        payload_bytes: u32,
        /// The only CPUs for it.
        cpus: Option<Cpus>,
    },
    /// Messages of ROS 2 nodes (`std_msgs/String`).
    Ros2(Flood),
    /// DDS messages with ROS 2's names and encoding (`std_msgs/String`).
    Dds(Flood),
    /// zenoh messages between peers.
    Zenoh(Flood),
    /// A line for the shell that runs as long as the trials do.
    Command {
        /// The line.
        command: String,
        /// The only CPUs for it.
        cpus: Option<Cpus>,
    },
}

impl Load {
    /// Its kind as the file says it.
    pub fn kind(&self) -> &'static str {
        match self {
            Load::Cpu { .. } => "cpu",
            Load::Memory { .. } => "memory",
            Load::Io { .. } => "io",
            Load::Timers { .. } => "timers",
            Load::Forks { .. } => "forks",
            Load::Udp { .. } => "udp",
            Load::Ros2(_) => "ros2",
            Load::Dds(_) => "dds",
            Load::Zenoh(_) => "zenoh",
            Load::Command { .. } => "command",
        }
    }

    /// The CPUs it was given.
    pub fn cpus(&self) -> Option<&Cpus> {
        match self {
            Load::Cpu { cpus, .. }
            | Load::Memory { cpus, .. }
            | Load::Io { cpus, .. }
            | Load::Timers { cpus, .. }
            | Load::Forks { cpus, .. }
            | Load::Udp { cpus, .. }
            | Load::Ros2(Flood { cpus, .. })
            | Load::Dds(Flood { cpus, .. })
            | Load::Zenoh(Flood { cpus, .. })
            | Load::Command { cpus, .. } => cpus.as_ref(),
        }
    }

    /// Threads or processes that make it; `None` for a command.
    pub fn workers(&self) -> Option<u32> {
        match self {
            Load::Cpu { workers, .. }
            | Load::Memory { workers, .. }
            | Load::Io { workers, .. }
            | Load::Timers { workers, .. }
            | Load::Forks { workers, .. } => Some(*workers),
            Load::Udp { publishers, .. } => Some(*publishers),
            Load::Ros2(flood) | Load::Dds(flood) | Load::Zenoh(flood) => Some(flood.publishers),
            Load::Command { .. } => None,
        }
    }

    /// What it shall reach in its unit, all workers together; `None` where it goes as far as it can.
    pub fn target(&self) -> Option<f64> {
        match self {
            Load::Cpu { workers, percent, cpus, .. } => {
                let most = cpus.as_ref().map_or_else(|| Cpus::online().count(), Cpus::count);
                Some((f64::from(*workers) * percent / 100.0).min(most as f64))
            }
            Load::Forks { workers, rate_hz, .. } => rate_hz.map(|rate| f64::from(*workers) * rate),
            Load::Udp { publishers, rate_hz, .. } => Some(f64::from(*publishers) * rate_hz),
            Load::Ros2(flood) | Load::Dds(flood) | Load::Zenoh(flood) => flood.target(),
            _ => None,
        }
    }

    /// What one of a unit is, and how many of the workers' units make one.
    pub fn unit(&self) -> (&'static str, f64) {
        match self {
            Load::Cpu { .. } | Load::Command { .. } => ("CPUs", 1.0),
            Load::Memory { .. } => ("MB/s copied", 1e6),
            Load::Io { .. } => ("MB/s synced", 1e6),
            Load::Timers { .. } => ("wakes/s", 1.0),
            Load::Forks { .. } => ("forks/s", 1.0),
            Load::Udp { .. } => ("messages/s received", 1.0),
            Load::Ros2(flood) | Load::Dds(flood) | Load::Zenoh(flood) => (flood.unit(), 1.0),
        }
    }

    /// Whether it sends messages, so that what was sent and what arrived differ.
    pub fn is_flood(&self) -> bool {
        matches!(self, Load::Udp { .. } | Load::Ros2(_) | Load::Dds(_) | Load::Zenoh(_))
    }

    /// Of a flood over a middleware: its processes that read.
    pub(crate) fn readers(&self) -> Option<u32> {
        match self {
            Load::Ros2(flood) | Load::Dds(flood) | Load::Zenoh(flood) => Some(flood.readers),
            _ => None,
        }
    }

    /// The topics of a flood that its helper program counts one by one.
    pub(crate) fn topics(&self) -> Vec<String> {
        match self {
            Load::Ros2(flood) | Load::Dds(flood) => flood.topics("/flood_topic_*"),
            Load::Zenoh(flood) => flood.topics("flood/topic_*"),
            _ => Vec::new(),
        }
    }

    /// Why it cannot be made here, with the remedy.
    pub(crate) fn obstacle(&self) -> Option<String> {
        match self {
            Load::Cpu { method: Some(method), .. } => method.missing(),
            _ => None,
        }
    }

    /// What its helper program needs.
    pub(crate) fn package(&self) -> Option<Package> {
        match self {
            Load::Ros2(_) => Some(flood::ROS2),
            Load::Dds(_) => Some(flood::DDS),
            Load::Zenoh(_) => Some(flood::ZENOH),
            _ => None,
        }
    }

    /// The same load with one of its numbers changed, whole where the number is.
    ///
    /// # Errors
    /// The numbers that it has, where this is none.
    pub fn with(&self, key: &str, value: f64) -> Result<Load, String> {
        let mut load = self.clone();
        let whole = value.round().clamp(1.0, f64::from(u32::MAX)) as u32;
        match (&mut load, key) {
            (Load::Udp { publishers, .. }, "publishers") => *publishers = whole,
            (Load::Udp { payload_bytes, .. }, "payload_bytes") => *payload_bytes = whole,
            (Load::Udp { rate_hz, .. }, "rate_hz") => *rate_hz = value,
            (Load::Ros2(flood) | Load::Dds(flood) | Load::Zenoh(flood), "publishers") => flood.publishers = whole,
            (Load::Ros2(flood) | Load::Dds(flood) | Load::Zenoh(flood), "readers") => flood.readers = whole,
            (Load::Ros2(flood) | Load::Dds(flood) | Load::Zenoh(flood), "payload_bytes") => flood.payload_bytes = whole,
            (Load::Ros2(flood) | Load::Dds(flood) | Load::Zenoh(flood), "rate_hz") => flood.rate_hz = Some(value),
            (Load::Ros2(flood) | Load::Dds(flood), "depth") => flood.depth = Some(whole),
            (Load::Forks { rate_hz, .. }, "rate_hz") => *rate_hz = Some(value),
            (Load::Cpu { percent, .. }, "percent") => *percent = value,
            (
                Load::Cpu { workers, .. }
                | Load::Memory { workers, .. }
                | Load::Io { workers, .. }
                | Load::Timers { workers, .. }
                | Load::Forks { workers, .. },
                "workers",
            ) => *workers = whole,
            _ => {
                let known = match self {
                    Load::Udp { .. } => "publishers, rate_hz or payload_bytes",
                    Load::Ros2(_) | Load::Dds(_) => "publishers, rate_hz, payload_bytes, readers or depth",
                    Load::Zenoh(_) => "publishers, rate_hz, payload_bytes or readers",
                    Load::Forks { .. } => "workers or rate_hz",
                    Load::Cpu { .. } => "workers or percent",
                    Load::Command { .. } => "nothing of a command",
                    _ => "workers",
                };
                return Err(format!("{key:?} is no number of a {} load; vary {known}", self.kind()));
            }
        }
        Ok(load)
    }

    /// The number as the load takes it: a whole one where it counts things.
    pub(crate) fn rounded(key: &str, value: f64) -> f64 {
        if Load::is_whole(key) { value.floor() } else { value }
    }

    /// Whether that number counts things, so that only whole values differ.
    pub fn is_whole(key: &str) -> bool {
        key != "rate_hz" && key != "percent"
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::Cpu { workers, percent, method, .. } => {
                write!(f, "cpu {workers} × {} %", plain(*percent))?;
                method.as_ref().map_or(Ok(()), |method| write!(f, " by {method}"))
            }
            Load::Memory { workers, .. } => write!(f, "memory × {workers}"),
            Load::Io { workers, .. } => write!(f, "io × {workers}"),
            Load::Timers { workers, .. } => write!(f, "timers × {workers}"),
            Load::Forks { workers, rate_hz: Some(rate), .. } => write!(f, "forks {workers} × {} Hz", plain(*rate)),
            Load::Forks { workers, .. } => write!(f, "forks × {workers}"),
            Load::Udp { publishers, rate_hz, payload_bytes, .. } => {
                write!(f, "udp {publishers} × {} Hz × {payload_bytes} B", plain(*rate_hz))
            }
            Load::Ros2(flood) => write!(f, "ros2 {flood}"),
            Load::Dds(flood) => write!(f, "dds {flood}"),
            Load::Zenoh(flood) => write!(f, "zenoh {flood}"),
            Load::Command { command, .. } => write!(f, "command {command}"),
        }?;
        self.cpus().map_or(Ok(()), |cpus| write!(f, " on CPU {cpus}"))
    }
}

/// For people: thousandths are enough.
pub(crate) fn plain(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn all() -> f64 {
    100.0
}
fn a_kilobyte() -> u32 {
    1024
}
