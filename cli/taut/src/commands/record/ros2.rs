//! Whether what is recorded runs ROS 2, and then the library that reports its nodes.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use taut_capture::Preload;

/// The library that reports ROS 2 nodes.
pub const LIBRARY: Preload = Preload { file_name: taut_ros2::FILE_NAME, bytes: taut_ros2::PRELOAD };

/// What says that a command runs in a ROS 2 environment; `None` where nothing does.
pub fn environment(command: &[OsString], variable: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(release) = set("ROS_DISTRO") {
        return Some(format!("ROS 2 {}", release.to_string_lossy()));
    }
    if set("AMENT_PREFIX_PATH").is_some() {
        return Some("ROS 2 (AMENT_PREFIX_PATH is set)".to_owned());
    }
    let program = command.first().and_then(|word| Path::new(word).file_name());
    (program == Some(OsStr::new("ros2"))).then(|| "ROS 2".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ros_2_environment_is_recognised_by_its_variables_or_its_command() {
        let command = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let none = |_: &str| None;
        let kilted = |name: &str| (name == "ROS_DISTRO").then(|| OsString::from("kilted"));
        let wheels = |name: &str| (name == "AMENT_PREFIX_PATH").then(|| OsString::from("/venv"));
        let empty = |_: &str| Some(OsString::new());
        assert_eq!(environment(&command(&["./robot"]), kilted).as_deref(), Some("ROS 2 kilted"));
        assert_eq!(
            environment(&command(&["python3", "node.py"]), wheels).as_deref(),
            Some("ROS 2 (AMENT_PREFIX_PATH is set)")
        );
        assert_eq!(environment(&command(&["/opt/bin/ros2", "run"]), none).as_deref(), Some("ROS 2"));
        assert_eq!(environment(&command(&["./ros2_like"]), none), None);
        assert_eq!(environment(&command(&["./robot"]), empty), None, "an empty variable is none");
    }
}
