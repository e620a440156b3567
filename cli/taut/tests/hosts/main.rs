//! Recordings of two hosts as one: `taut record --on`, `taut top`, `taut report --join` and `taut merge` as processes.

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use serde_json::Value;

mod by_ssh;
#[path = "../folder/mod.rs"]
mod folder;
mod known_clocks;
mod live;
mod made;
mod one_clock;
mod ros_pair;
#[path = "../screen/mod.rs"]
mod screen;
mod sockets;
#[path = "../sshd/mod.rs"]
mod sshd;

use folder::Folder;

impl Folder {
    fn taut(&self, arguments: &[&str]) -> assert_cmd::assert::Assert {
        let mut command = assert_cmd::Command::new(cargo_bin!("taut"));
        command.args(arguments).current_dir(self.0.path()).env_remove("TAUT_SESSION").assert()
    }

    fn text(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.taut(arguments).success().get_output().stdout.clone()).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[arguments, &["--format", "json"]].concat())).unwrap()
    }

    /// The report of desk.mcap and this recording of the robot.
    fn joined(&self, robot: &str) -> Value {
        self.json(&["report", "desk.mcap", robot, "--join"])
    }

    /// One line on stderr that holds `text`, nothing on stdout, exit code 2.
    fn refuses(&self, arguments: &[&str], text: &str) {
        self.taut(arguments).code(2).stdout("").stderr(
            predicate::str::contains(text.to_owned()).and(predicate::function(|e: &str| e.lines().count() == 1)),
        );
    }
}

/// Whether no recorder lost kernel events, as one does whose ring is full on a busy machine.
fn is_whole(folder: &Folder, files: [&str; 2]) -> bool {
    files.iter().all(|file| {
        let contents = taut_recording::read(&std::fs::read(folder.path(file)).unwrap(), &mut |_| {}).unwrap();
        contents.ending.unwrap().lost_kernel_events == 0
    })
}

/// Records `desk.mcap` and `robot.mcap` until both are whole.
fn whole(mut record: impl FnMut() -> Option<Folder>) -> Option<Folder> {
    for _ in 0..10 {
        let folder = record()?;
        if is_whole(&folder, ["desk.mcap", "robot.mcap"]) {
            return Some(folder);
        }
    }
    panic!("kernel events were lost in each of 10 recordings");
}

/// The report of desk.mcap and robot.mcap, with the clocks aligned by the messages though both are of one machine.
fn aligned(folder: &Folder) -> Value {
    folder.json(&["report", "desk.mcap", "robot.mcap", "--join", "--clocks", "messages"])
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The hop that ends at this point, of any chain.
fn hop_to<'a>(report: &'a Value, point: &str) -> &'a Value {
    let chains = report["chains"].as_array().unwrap().iter();
    let mut hops = chains.flat_map(|chain| chain["hops"].as_array().unwrap());
    hops.find(|hop| hop["to"] == point).unwrap_or_else(|| panic!("no hop to {point}"))
}

fn notes(report: &Value) -> String {
    report["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}
