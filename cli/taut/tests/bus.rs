//! `taut bus` as a process: once, at a rate, as a server, in a recording.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use serde_json::Value;

fn taut(arguments: &[&str]) -> assert_cmd::assert::Assert {
    assert_cmd::Command::new(cargo_bin!("taut")).args(arguments).env_remove("TAUT_SESSION").assert()
}

/// A loaded machine may take its time; replies have ten seconds.
const PATIENT: [&str; 4] = ["--timeout", "10s", "--format", "json"];

fn json(arguments: &[&str]) -> Value {
    let arguments = [&["bus"], arguments, &PATIENT].concat();
    serde_json::from_slice(&taut(&arguments).success().get_output().stdout).unwrap()
}

/// One line on stderr that holds `text`, nothing on stdout, exit code 2.
fn refuses(arguments: &[&str], text: &str) {
    let one_line = predicate::function(|e: &str| e.lines().count() == 1);
    taut(&[&["bus"], arguments].concat())
        .code(2)
        .stdout("")
        .stderr(predicate::str::contains(text.to_owned()).and(one_line));
}

/// `taut bus … --serve` until this is dropped.
struct Server {
    child: Child,
    places: Vec<String>,
}

impl Server {
    fn of(arguments: &[&str], buses: usize) -> Server {
        let mut child = Command::new(cargo_bin!("taut"))
            .args([&["bus"], arguments, &["--serve"]].concat())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let places = lines.take(buses).collect::<Result<_, _>>().unwrap();
        Server { child, places }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn several_things_in_one_cycle() {
    let arguments =
        ["sim:1-3", "sim:8", "--query", "1,2-3", "--hold", "2,8", "--write-can", "1,8001,1100,r", "--read-att"];
    let found = json(&arguments);
    assert_eq!((&found["schema_version"], &found["kind"]), (&2.into(), &"bus".into()));
    assert_eq!((&found["sent"], &found["expected"], &found["missing"]), (&4.into(), &4.into(), &0.into()));
    assert_eq!(found["attitude"]["acceleration_m_s2"][2], 9.80665);
    let replies = found["replies"].as_array().unwrap();
    let of = |servo: u64| replies.iter().find(|reply| reply["servo"] == servo).unwrap();
    assert_eq!((&of(8)["bus"], &of(8)["state"]["mode"]), (&2.into(), &"position".into()));
    assert_eq!(of(2)["state"]["mode"], "stopped");
    // The register that the raw frame reads: mode, one byte, stopped.
    assert_eq!((&of(1)["state"], &of(1)["data"]), (&Value::Null, &"210000".into()));
}

#[test]
fn who_does_not_answer_is_named_and_the_exit_code_says_so() {
    taut(&["bus", "sim:1", "--query", "1,1-2", "--timeout", "2s"]).code(5).stdout(
        predicate::str::contains("servo   2  no reply").and(predicate::str::contains("1 of 2 expected replies")),
    );
}

#[test]
fn a_cycle_at_a_rate_has_statistics_and_stamps() {
    let found = json(&["sim:1-3", "--hold", "1,1-3", "--rate", "200", "--duration", "0.5"]);
    assert_eq!(found["kind"], "bus-cycles");
    let (cycles, skipped) = (found["cycles"].as_u64().unwrap(), found["skipped"].as_u64().unwrap());
    assert_eq!((cycles + skipped, &found["missing"]), (100, &0.into()));
    assert_eq!(found["expected"], 3 * cycles);
    assert_eq!(found["phases"]["receive"]["n"], cycles);
}

#[test]
fn served_servos_answer_over_a_pty_and_udp() {
    for how in [vec!["sim:4-5"], vec!["sim:4-5", "--udp", "127.0.0.1:0"]] {
        let server = Server::of(&how, 1);
        let found = json(&[&server.places[0], "--hold", "1,4-5"]);
        assert_eq!((&found["expected"], &found["missing"]), (&2.into(), &0.into()), "{}", server.places[0]);
    }
}

#[test]
fn a_recorded_cycle_shows_its_phases() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run.mcap");
    let run = run.to_str().unwrap();
    let bus = [env!("CARGO_BIN_EXE_taut"), "bus", "sim:1-3", "--hold", "1,1-3", "--rate", "200", "--duration", "1"];
    let patient = ["--read-att", "--timeout", "1s"];
    taut(&[&["record", "-q", "--tier", "stamps", "-o", run, "--"][..], &bus, &patient].concat()).success();
    let report = taut(&["report", run, "--format", "json"]).success().get_output().stdout.clone();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let hops = report["chains"][0]["hops"].as_array().unwrap();
    let points: Vec<&str> = hops.iter().map(|hop| hop["to"].as_str().unwrap()).collect();
    assert_eq!(hops[0]["from"], "bus.wait");
    assert_eq!(points, ["bus.control", "bus.send", "bus.imu", "bus.receive", "bus.parse", "bus.done"]);
}

/// The library's error for a socket repeats what the system said.
#[test]
fn what_the_system_says_is_said_once() {
    let said = taut(&["bus", "socketcan:can-none", "--query", "1,1"]).code(2).stdout("").get_output().stderr.clone();
    let said = String::from_utf8(said).unwrap();
    assert!(said.starts_with("taut: can-none: ") && said.lines().count() == 1, "{said}");
    assert_eq!(said.matches("os error").count(), 1, "{said}");
}

#[test]
fn mistakes_are_one_line_with_the_remedy() {
    refuses(&["sim:1"], "nothing to do: add --query");
    refuses(&["sim:1", "--query", "2,1"], "bus 2: there are 1");
    refuses(&["fdcanusb:/dev/tty-nowhere", "--query", "1,1"], "/dev/ttyACM0");
    refuses(&["udp:localhost:1", "--serve"], "only simulated buses");
    refuses(&["udp:127.0.0.1:1", "--read-att"], "none of these buses has an inertial unit");
    refuses(&["sim:1", "--query", "1,1", "--rate", "1000", "--duration", "1000000"], "cycles; from 1 to");
    for (arguments, text) in [
        (["can0", "--query", "1,1"], "names no kind of bus"),
        (["sim:1", "--write-can", "1,8001,1"], "two digits a byte"),
        (["sim:1", "--write-can", "1,xyz,11"], "hex, at most 1fffffff"),
        (["sim:1", "--query", "1,0"], "servo ids are 1 to 126"),
    ] {
        taut(&[&["bus"][..], &arguments].concat()).code(2).stderr(predicate::str::contains(text));
    }
}
