//! Two hosts that are network namespaces, joined by veth over a relay: both have one clock, so the true offset is 0. The recordings say
//! that they are of one boot; `--clocks messages` aligns them all the same.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use taut_skip::{Need, skip};

use crate::{
    aligned,
    folder::{Folder, until},
    hop_to, number, whole,
};

pub const DESK: &str = "10.98.1.1";
pub const RELAY: &str = "10.98.1.2";
pub const ROBOT: &str = "10.98.2.1";
/// The relay's port and the robot's, as /proc/net/udp has it.
const PORT: &str = ":1267 ";
const MESSAGES: u64 = 1_000;
const EVERY: u64 = 50;
const HELD_US: u64 = 8_000;

/// Three namespaces in a row, which go with it.
pub struct Net(pub [String; 3]);

impl Net {
    /// `None` where this user may not, or the kernel has none.
    pub fn new() -> Option<Net> {
        static NETS: AtomicU32 = AtomicU32::new(0);
        let own = format!("{}-{}", std::process::id(), NETS.fetch_add(1, Ordering::Relaxed));
        let net = Net(["desk", "relay", "robot"].map(|name| format!("{name}-{own}")));
        let [desk, relay, robot] = &net.0;
        let mut steps: Vec<String> = net.0.iter().map(|name| format!("netns add {name}")).collect();
        for (near, address, far, far_address) in [(desk, DESK, "rd", RELAY), (robot, ROBOT, "rr", "10.98.2.2")] {
            steps.push(format!("-n {near} link add e type veth peer name {far} netns {relay}"));
            for (name, interface, address) in [(near.as_str(), "e", address), (relay.as_str(), far, far_address)] {
                steps.push(format!("-n {name} addr add {address}/24 dev {interface}"));
                steps.push(format!("-n {name} link set {interface} up"));
            }
        }
        let is_done = steps.iter().all(|step| {
            let ip = Command::new("ip").args(step.split(' ')).stderr(Stdio::null()).status();
            ip.is_ok_and(|status| status.success())
        });
        is_done.then_some(net)
    }

    pub fn command(&self, at: usize, folder: &Folder, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[at]]).args(words);
        command.current_dir(folder.0.path()).env_remove("TAUT_SESSION").stdout(Stdio::null());
        command
    }

    /// Starts what listens, and waits until it does.
    pub fn listens(&self, at: usize, folder: &Folder, words: &[&str]) -> Child {
        let child = self.command(at, folder, words).spawn().unwrap();
        until("a socket", || {
            let sockets = self.command(at, folder, &["cat", "/proc/net/udp"]).stdout(Stdio::piped()).output().unwrap();
            String::from_utf8_lossy(&sockets.stdout).contains(PORT)
        });
        child
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
        }
    }
}

/// The program of both hosts, and of the relay.
pub fn compile_pair(folder: &Folder) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-pthread", "-o", "pair", "-I"]).arg(root.join("../../include"));
    gcc.arg(root.join("tests/hosts/pair.c")).arg("-lm").current_dir(folder.0.path());
    assert!(gcc.status().unwrap().success());
}

/// `desk.mcap` and `robot.mcap` over a relay with these delays.
fn recorded(there: &str, back: &str, every: u64) -> Option<Folder> {
    whole(|| recorded_once(there, back, every))
}

fn recorded_once(there: &str, back: &str, every: u64) -> Option<Folder> {
    let net = Net::new()?;
    let folder = Folder::new();
    compile_pair(&folder);
    let (taut, every, held) = (cargo_bin!("taut").display().to_string(), every.to_string(), HELD_US.to_string());
    let record = |host: &str, command: &[&str]| -> Vec<String> {
        let file = format!("{host}.mcap");
        let words = [taut.as_str(), "record", "-q", "--ignore-loss", "--host-name", host, "-o", &file, "--"];
        words.iter().chain(command).map(|word| (*word).to_owned()).collect()
    };
    // Above other load of this machine, which would be causes of its own.
    let robot = record("robot", &["chrt", "-f", "50", "./pair", "robot", &every, &held]);
    let robot: Vec<&str> = robot.iter().map(String::as_str).collect();
    let mut robot = net.listens(2, &folder, &robot);
    let mut relay =
        net.listens(1, &folder, &["chrt", "-f", "50", "./pair", "relay", DESK, ROBOT, there, back, &every, &held]);
    let desk =
        record("desk", &["chrt", "-f", "50", "./pair", "desk", RELAY, &MESSAGES.to_string(), "5000", &every, &held]);
    let desk: Vec<&str> = desk.iter().map(String::as_str).collect();
    let mut desk = net.command(0, &folder, &desk).spawn().unwrap();
    for child in [&mut desk, &mut relay, &mut robot] {
        assert!(child.wait().unwrap().success());
    }
    Some(folder)
}

/// The fastest messages of the hops between the hosts, in ns: a busy machine may leave too few bursts for a median.
fn fastest(report: &Value) -> [f64; 2] {
    ["robot:setpoint.received", "desk:state.received"].map(|to| {
        let hop = hop_to(report, to);
        // Start-up is apart.
        assert!(number(&hop["n"]) > MESSAGES as f64 / 2.0, "{}", hop["n"]);
        number(&hop["min_ns"])
    })
}

/// The bound, after it was held against the truth: the offset, and each hop's level as one clock has it.
fn bound_that_holds(folder: &Folder) -> f64 {
    let truth = folder.joined("robot.mcap");
    assert_eq!(truth["recording"]["hosts"][1]["clock"]["from"], "one machine");
    let found = aligned(folder);
    let clock = &found["recording"]["hosts"][1]["clock"];
    assert_eq!(clock["from"], "messages", "{}", found["notes"]);
    // The two recorders' own readings of the counter differ by less than a microsecond.
    let bound_ns = number(&clock["bound_max_ns"]) + 1e3;
    assert!(number(&clock["offset_ns"]).abs() <= bound_ns, "{clock}");
    for (level, truth) in fastest(&found).into_iter().zip(fastest(&truth)) {
        assert!((level - truth).abs() <= bound_ns, "{level} of {truth}, {clock}");
    }
    bound_ns
}

#[test]
fn the_offset_of_one_clock_is_0_within_the_bound_and_delays_are_named_where_they_are() {
    let Some(folder) = recorded("200:100", "200:100", EVERY) else {
        return skip(Need::Namespaces, "network namespaces need the superuser and `ip`");
    };
    let bound_ns = bound_that_holds(&folder);
    assert!(bound_ns >= 200e3, "the relay alone takes 400 µs both ways: {bound_ns}");
    folder.text(&["merge", "desk.mcap", "robot.mcap", "--clocks", "messages", "-o", "run.mcap"]);
    let kernel_events = number(&aligned(&folder)["recording"]["kernel_events"]);
    if kernel_events == 0.0 {
        return skip(Need::Perf, "without kernel events there are no causes");
    }
    let csv = folder.text(&["export", "csv", "run.mcap", "-o", "-"]);
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let header = rows.next().unwrap();
    let column = |name: &str| header.iter().position(|known| *known == name).unwrap_or_else(|| panic!("{header:?}"));
    let (message, to) = (column("message"), column("to"));
    let (duration, network) = (column("duration_ns"), column("network_ns"));
    let mut held = [0, 0];
    for row in rows.filter(|row| row[to] == "robot:setpoint.received") {
        let ns = |at: usize| row[at].parse::<f64>().unwrap_or(0.0) / 1e3;
        match row[message].parse::<u64>().unwrap() % EVERY {
            // It was at the relay, which is on neither host; then at the desk, which computed before it sent.
            0 => held[0] += u64::from(ns(network) >= 0.9 * HELD_US as f64),
            id if id == EVERY / 4 => held[1] += u64::from(ns(duration) - ns(network) >= 0.9 * HELD_US as f64),
            _ => {}
        }
    }
    let least = MESSAGES / EVERY * 8 / 10;
    assert!(held.iter().all(|held| *held >= least), "{held:?} of {}", MESSAGES / EVERY);
}

#[test]
fn behind_a_way_that_takes_5_ms_there_and_none_back_the_bound_holds_the_error() {
    let Some(folder) = recorded("5000:0", "0:0", 0) else {
        return skip(Need::Namespaces, "network namespaces need the superuser and `ip`");
    };
    // A message each 5 ms over a relay that takes as long: on a busy machine they queue, and the spread of such delays does not say the
    // order. System calls do.
    if number(&folder.joined("robot.mcap")["recording"]["kernel_events"]) == 0.0 {
        return skip(Need::Perf, "without kernel events the order of the points is assumed");
    }
    let bound_ns = bound_that_holds(&folder);
    assert!(bound_ns >= 2.5e6, "{bound_ns}");
}
