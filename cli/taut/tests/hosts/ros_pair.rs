//! Two real ROS 2 nodes on two hosts that are network namespaces, unmodified: no stamps. Both have one clock, so the true offset is 0.

use std::{
    path::Path,
    process::{Child, Command},
};

use assert_cmd::cargo::cargo_bin;
use taut_skip::{Need, skip};

use crate::{
    aligned,
    folder::{Folder, until},
    hop_to, notes, number, whole,
};

const MESSAGES: u64 = 300;

/// Two namespaces with a wire between them, which go with it.
struct Wire([String; 2]);

impl Wire {
    fn new() -> Option<Wire> {
        let wire = Wire(["desk", "robot"].map(|name| format!("ros-{name}-{}", std::process::id())));
        let [desk, robot] = &wire.0;
        let mut steps = vec![
            format!("netns add {desk}"),
            format!("netns add {robot}"),
            format!("-n {desk} link add e type veth peer name e netns {robot}"),
        ];
        for (name, address) in [(desk, "10.97.1.1"), (robot, "10.97.1.2")] {
            steps.push(format!("-n {name} addr add {address}/24 dev e"));
            steps.push(format!("-n {name} link set e up"));
            steps.push(format!("-n {name} link set lo up"));
            // Discovery is by multicast.
            steps.push(format!("-n {name} route add 224.0.0.0/4 dev e"));
        }
        let ip = |step: &String| Command::new("ip").args(step.split(' ')).stderr(std::process::Stdio::null()).status();
        steps.iter().all(|step| ip(step).is_ok_and(|status| status.success())).then_some(wire)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "del", name]).stderr(std::process::Stdio::null()).status();
        }
    }
}

fn ends_well(child: &mut Child) {
    let mut status = None;
    until("the end of a recorder", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.unwrap().success());
}

/// `desk.mcap` and `robot.mcap`.
fn recorded(root: &Path, ros: &str, wire: &Wire) -> Folder {
    let folder = Folder::new();
    let start = |at: usize, host: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &wire.0[at]]).arg(cargo_bin!("taut")).args(["record", "-q", "--ignore-loss"]);
        command.args(["--host-name", host, "-o", &format!("{host}.mcap"), "--", &format!("{ros}/bin/python")]);
        command.arg(root.join("tests/hosts/ros_pair.py")).args([host, &MESSAGES.to_string()]);
        command.current_dir(folder.0.path()).env_remove("TAUT_SESSION");
        command.env("AMENT_PREFIX_PATH", ros).env("LD_LIBRARY_PATH", format!("{ros}/lib"));
        // Memory would be shared by what are two hosts here.
        command.env("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4").env("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET");
        command.env("ROS_DOMAIN_ID", "77").spawn().unwrap()
    };
    let mut robot = start(1, "robot");
    let mut desk = start(0, "desk");
    for child in [&mut desk, &mut robot] {
        ends_well(child);
    }
    folder
}

#[test]
fn unmodified_nodes_of_two_hosts_are_one_chain_on_clocks_aligned_by_their_messages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = root.join("../../.venv-ros2");
    let ros = std::env::var_os("TAUT_TEST_ROS2").map_or(own, Into::into);
    let Ok(ros) = std::fs::canonicalize(ros).map(|ros| ros.display().to_string()) else {
        return skip(Need::Ros2, "no wheels of ROS 2: make ros2, or name a virtual environment with TAUT_TEST_ROS2");
    };
    let Some(wire) = Wire::new() else {
        return skip(Need::Namespaces, "network namespaces need the superuser and `ip`");
    };
    let folder = whole(|| Some(recorded(root, &ros, &wire))).unwrap();
    let report = aligned(&folder);
    let clock = &report["recording"]["hosts"][1]["clock"];
    assert_eq!(clock["from"], "messages", "{}", report["notes"]);
    // The two recorders' own readings of the counter differ by less than a microsecond.
    let bound_ns = number(&clock["bound_max_ns"]) + 1e3;
    assert!(number(&clock["offset_ns"]).abs() <= bound_ns, "{clock}");
    let said = notes(&report);
    for route in ["desk:publish /setpoint → robot:take /setpoint: ", "robot:publish /state → desk:take /state: "] {
        let count = said.split_once(route).unwrap_or_else(|| panic!("{said}")).1;
        let count: u64 = count.split(' ').next().unwrap().parse().unwrap();
        assert!(count > MESSAGES * 9 / 10, "{said}");
    }
    // One chain, there and back.
    for to in ["robot:/robot take /setpoint", "desk:/desk take /state"] {
        let hop = hop_to(&report, to);
        assert!(number(&hop["n"]) > MESSAGES as f64 * 0.9, "{hop}");
        assert!(hop["between_hosts"]["bound_ns"].is_number(), "{hop}");
    }
}
