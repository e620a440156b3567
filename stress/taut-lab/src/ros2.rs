//! What is ROS 2's alone: readiness by discovery, middlewares that can be loaded, and daemons that would take part in a trial.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::{
    Lab, Ready,
    load::{ROS2, interpreter, missing},
};

/// The helper program that looks for a name.
const DISCOVER: &str = include_str!("discover.py");
/// How long one search takes at most, s.
const SEARCH_S: u32 = 5;
const RMW: &str = "RMW_IMPLEMENTATION";

/// What asks for names by discovery.
pub(crate) struct Discovery<'a> {
    /// The interpreter, with rclpy.
    pub python: PathBuf,
    /// That of the system under test: its domain and its middleware.
    pub environment: &'a BTreeMap<String, String>,
}

impl Discovery<'_> {
    /// Whether a node, a service, an action, or a topic with a publisher has this name now, or within some seconds.
    pub fn finds(&self, name: &str) -> bool {
        let mut command = Command::new("timeout");
        command.args(["20"]).arg(&self.python).args(["-c", DISCOVER, name, &SEARCH_S.to_string()]);
        command.envs(self.environment).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

/// What of ROS 2 a lab cannot have here, each with its key and a remedy.
pub(crate) fn obstacles(lab: &Lab) -> Vec<String> {
    let python = interpreter(lab.python.as_deref());
    let discovered = lab.processes.iter().find(|process| matches!(process.ready, Some(Ready::Ros2(_))));
    let no_rclpy =
        discovered.and_then(|process| Some(format!("process {:?}.ready: {}", process.name, missing(&python, ROS2)?)));
    let unloadable = middlewares(lab).into_iter().filter_map(|(name, key)| {
        let why = unloadable(&python, &name)?;
        Some(format!(
            "{key}: {python} cannot load {name} ({why}); install it for that Python",
            python = python.display()
        ))
    });
    no_rclpy.into_iter().chain(unloadable).chain(in_the_way(lab)).collect()
}

/// The ROS 2 daemons of others that hear the domains of this lab, which would be part of its trials.
pub(crate) fn in_the_way(lab: &Lab) -> Vec<String> {
    let Some([first, last]) = lab.domains else { return Vec::new() };
    let processes = procfs::process::all_processes().into_iter().flatten().flatten();
    let daemons = processes.filter_map(|process| Some((process.pid, daemon_of(&process.cmdline().ok()?)?)));
    let heard = daemons.filter(|(_, domain)| (first..=last).contains(domain));
    let said = |(pid, domain)| {
        format!(
            "domains: the ROS 2 daemon {pid} is on domain {domain}; end it: ROS_DOMAIN_ID={domain} ros2 daemon stop"
        )
    };
    heard.map(said).collect()
}

/// The domain of a daemon of ros2cli, which has it among its arguments for people who look for it.
fn daemon_of(words: &[String]) -> Option<u32> {
    let is_daemon =
        |word: &String| ["ros2cli.daemon", "ros2cli/daemon", "_ros2_daemon"].iter().any(|part| word.contains(part));
    words.iter().find(|word| is_daemon(word))?;
    let at = words.iter().position(|word| word == "--ros-domain-id")?;
    words.get(at + 1)?.parse().ok()
}

/// The middlewares that the lab names, each with the key that does.
fn middlewares(lab: &Lab) -> BTreeMap<String, String> {
    let of_lab = lab.environment.get(RMW).map(|name| (name.clone(), format!("environment.{RMW}")));
    let of_scenarios = lab.scenarios.iter().filter_map(|scenario| {
        Some((scenario.environment.get(RMW)?.clone(), format!("scenario {:?}.environment.{RMW}", scenario.name)))
    });
    let varied = lab.sweep.iter().flat_map(|sweep| sweep.vary.get(&format!("environment.{RMW}"))).flatten();
    let of_sweep =
        varied.filter_map(|value| Some((value.as_str()?.to_owned(), format!("sweep.vary.\"environment.{RMW}\""))));
    of_sweep.chain(of_scenarios).chain(of_lab).collect()
}

/// Why rclpy has no node over this middleware.
fn unloadable(python: &Path, middleware: &str) -> Option<String> {
    let program = "import rclpy; rclpy.init(); rclpy.create_node('taut_lab_check')";
    let mut command = Command::new(python);
    command.args(["-c", program]).env(RMW, middleware).env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(reason(&output)),
        Err(error) => Some(error.to_string()),
    }
}

/// The last line, without what rcl puts around its messages.
fn reason(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason");
    let text = last.rsplit_once("]: ").map_or(last, |(_, text)| text);
    text.split(", at ").next().unwrap_or(text).chars().take(200).collect()
}

/// Names that discovery is asked for are absolute.
pub(crate) fn wrong_name(name: &str) -> Option<String> {
    let fine = name.len() > 1 && name.starts_with('/') && !name.contains(char::is_whitespace);
    (!fine).then(|| format!("{name:?} is no full name; write that of a node, service, action or topic, \"/planner\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_known_by_its_arguments() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let kilted = "python3 -c from|ros2cli.daemon.daemonize|import|main;|main() --name ros2-daemon --ros-domain-id 42 --rmw-implementation x";
        assert_eq!(daemon_of(&words(kilted)), Some(42));
        let foxy =
            "/usr/bin/python3 /opt/ros/foxy/bin/_ros2_daemon --rmw-implementation rmw_fastrtps_cpp --ros-domain-id 7";
        assert_eq!(daemon_of(&words(foxy)), Some(7));
        assert_eq!(daemon_of(&words("python3 robot.py --ros-domain-id 42")), None, "a robot of that domain");
        assert_eq!(daemon_of(&words("grep ros2cli.daemon")), None);
    }

    #[test]
    fn the_reason_of_rcl_is_said_without_its_place() {
        use std::os::unix::process::ExitStatusExt;
        let stderr = b"[ERROR] [179.8] [rcl]: Expected RMW implementation identifier of 'x' but instead found 'y', exiting with 102., at /a.c:1\n\n";
        let output =
            Output { status: std::process::ExitStatus::from_raw(1), stdout: Vec::new(), stderr: stderr.to_vec() };
        assert!(reason(&output).starts_with("Expected RMW implementation identifier of 'x'"));
        assert!(!reason(&output).contains("a.c"));
    }
}
