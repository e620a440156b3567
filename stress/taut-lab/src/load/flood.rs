//! Message floods over ROS 2 or a middleware: what the file says of them, and the helper program that makes them. The
//! middleware is that of the system under test, from its own Python package, in processes of its own; nothing of it is
//! in this binary.

use std::{
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde::{Deserialize, Serialize};

use super::plain;
use crate::Cpus;

/// The helper program; its first argument is the load as JSON, its second the file for its count.
const PROGRAM: &str = include_str!("flood.py");

/// Publishers at a rate, and readers that count what arrives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flood {
    /// Processes that write.
    pub publishers: u32,
    /// Messages a second, each; without it as many as go.
    pub rate_hz: Option<f64>,
    /// Of a message.
    #[serde(default = "super::a_kilobyte")]
    pub payload_bytes: u32,
    /// Processes that read all topics and count. 0: no reader of the load's own, and unless the system has one,
    /// nothing leaves the writers.
    #[serde(default = "one")]
    pub readers: u32,
    /// `*` stands for the publisher's number from 1; without it all write to one topic. ROS 2's name for ROS 2 and DDS, a
    /// key expression for zenoh.
    pub topic: Option<String>,
    /// Whether what is lost is sent again (ROS 2, DDS), or waited for (zenoh).
    #[serde(default)]
    pub reliability: Reliability,
    /// Not zenoh: what writers and readers keep.
    pub history: Option<History>,
    /// Not zenoh: how many of each, where they keep the last.
    pub depth: Option<u32>,
    /// Not zenoh: the domain; without it `ROS_DOMAIN_ID`, or 0.
    pub domain: Option<u32>,
    /// The only CPUs for it.
    pub cpus: Option<Cpus>,
}

/// Whether what is lost is sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reliability {
    /// No.
    #[default]
    BestEffort,
    /// Yes, and a writer waits for a slow reader.
    Reliable,
}

/// What is kept for readers that are slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum History {
    /// The last `depth` messages.
    #[default]
    Last,
    /// Everything.
    All,
}

impl Flood {
    /// What all readers together shall receive a second, or all writers write where there are no readers.
    pub fn target(&self) -> Option<f64> {
        self.rate_hz.map(|rate| f64::from(self.publishers) * rate * f64::from(self.readers.max(1)))
    }

    /// Its topics, in the order of their names; `usual` is what its kind calls them.
    pub(crate) fn topics(&self, usual: &str) -> Vec<String> {
        let name = self.topic.as_deref().unwrap_or(usual);
        let mut names: Vec<String> =
            (1..=self.publishers).map(|number| name.replace('*', &number.to_string())).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What is counted.
    pub fn unit(&self) -> &'static str {
        if self.readers == 0 { "messages/s written" } else { "messages/s received" }
    }
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.rate_hz.map_or("full rate".into(), |rate| format!("{} Hz", plain(rate)));
        write!(f, "{} × {rate} × {} B", self.publishers, self.payload_bytes)?;
        if self.reliability == Reliability::Reliable {
            f.write_str(" reliable")?;
        }
        match (self.history, self.depth) {
            (Some(History::All), _) => f.write_str(" keep all")?,
            (_, Some(depth)) => write!(f, " keep {depth}")?,
            _ => {}
        }
        match self.readers {
            0 => f.write_str(" to no reader"),
            1 => Ok(()),
            n => write!(f, " to {n} readers"),
        }
    }
}

/// A package that a flood needs, by its name for `import` and for `pip install`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub module: &'static str,
    pub pip: &'static str,
}

pub(crate) const ROS2: Package =
    Package { module: "rclpy, std_msgs.msg", pip: "ros-rclpy ros-std-msgs ros-rmw-fastrtps-cpp" };
pub(crate) const DDS: Package = Package { module: "cyclonedds", pip: "cyclonedds" };
pub(crate) const ZENOH: Package = Package { module: "zenoh", pip: "eclipse-zenoh" };

/// The interpreter for a Python program of taut's: the one that was asked for, else the one beside this program (as in a
/// virtual environment), else `python3`.
pub fn interpreter(asked: Option<&Path>) -> PathBuf {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.join("python")).filter(|path| path.exists());
    asked.map(Path::to_owned).or_else(beside).unwrap_or_else(|| "python3".into())
}

/// Why the package cannot be had, and how to get it.
pub(crate) fn missing(python: &Path, package: Package) -> Option<String> {
    let imports = std::process::Command::new(python)
        .args(["-c", &format!("import {}", package.module)])
        .stdin(Stdio::null())
        .output();
    let (python, remedy) = (python.display(), format!("{} -m pip install {}", python.display(), package.pip));
    match imports {
        Err(error) => Some(format!("{python} does not start ({error}); write python = \"…\" at the top of the lab")),
        Ok(output) if !output.status.success() => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason").to_owned();
            Some(format!(
                "needs the Python package {} ({last}); get it with `{remedy}`, or write python = \"…\" at the top",
                package.pip
            ))
        }
        Ok(_) => None,
    }
}

/// The command that runs the helper, written to this folder.
pub(crate) fn helper(python: &Path, folder: &Path) -> io::Result<Vec<OsString>> {
    let program = folder.join("flood.py");
    std::fs::write(&program, PROGRAM)?;
    Ok(vec![python.into(), program.into()])
}

fn one() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_in_the_order_of_their_names() {
        let flood = |topic: &str, publishers: u32| -> Flood {
            serde_json::from_value(serde_json::json!({ "publishers": publishers, "rate_hz": 1.0, "topic": topic }))
                .unwrap()
        };
        assert_eq!(flood("/t_*", 2).topics("/usual"), ["/t_1", "/t_2"]);
        assert_eq!(flood("/t_*", 10).topics("/usual")[..3], ["/t_1", "/t_10", "/t_2"], "as Python sorts them");
        assert_eq!(flood("/one", 3).topics("/usual"), ["/one"]);
    }
}
