//! Hosts that `taut record --on` records by ssh: an sshd on loopback.

use std::{
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use assert_cmd::cargo::cargo_bin;
use rustix::process::{Pid, Signal, kill_process};
use taut_skip::{Need, skip};

use crate::{
    folder::{Folder, until},
    hop_to, is_whole, number,
    one_clock::{DESK, Net, RELAY, ROBOT, compile_pair},
    sshd::Sshd,
};

/// A host that ssh reaches without a question, and that notes which process is the connection of its recorder.
pub struct There {
    pub folder: Folder,
    sshd: Sshd,
}

impl There {
    pub fn new() -> Option<There> {
        let folder = Folder::new();
        let sshd = Sshd::start(&folder)?;
        let path = |name: &str| folder.path(name).display().to_string();
        folder.write(
            "ssh_config",
            &format!(
                "IdentityFile {}\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n",
                path("key")
            ),
        );
        std::fs::create_dir(folder.path("bin")).unwrap();
        for program in ["ssh", "sftp"] {
            let note = format!("case \"$*\" in *\"exec sh -c\"*) echo $$ > {};; esac", path("connection"));
            let own = format!("#!/bin/sh\n{note}\nexec /usr/bin/{program} -F {} \"$@\"\n", path("ssh_config"));
            let file = format!("bin/{program}");
            folder.write(&file, &own);
            std::fs::set_permissions(folder.path(&file), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Some(There { folder, sshd })
    }

    /// As for ssh.
    pub fn url(&self) -> String {
        format!("ssh://127.0.0.1:{}", self.sshd.1)
    }

    fn place(&self, name: &str) -> String {
        format!("{name}={}", self.url())
    }

    /// `taut`, which finds this host's ssh.
    pub fn taut(&self) -> Command {
        let path = format!("{}:{}", self.folder.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(cargo_bin!("taut"));
        command.current_dir(self.folder.0.path()).env("PATH", path).env_remove("TAUT_SESSION");
        command
    }

    fn record(&self, arguments: &[&str]) -> Command {
        let mut command = self.taut();
        command.args(["record", "--ignore-loss"]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Records a command there that says whose child it is once it began, and ends with this code when it is told to.
    fn waits(&self, code: u8) -> Child {
        let at = |name: &str| self.folder.path(name).display().to_string();
        let (began, go, ended) = (at("began"), at("go"), at("ended"));
        let wait = format!("while [ ! -e {go} ]; do sleep 0.05; done; touch {ended}; exit {code}");
        let command = format!("touch {began}.new; echo $PPID > {began}.new; mv {began}.new {began}; {wait}");
        let mut child = self.record(&["--on", &self.place("robot"), &command]).spawn().unwrap();
        let mut line = String::new();
        let said = BufReader::with_capacity(1, child.stderr.as_mut().unwrap()).read_line(&mut line);
        assert!(said.is_ok() && line.starts_with("taut: recording on robot: touch"), "{line}");
        until("the command there", || self.folder.path("began").exists());
        child
    }

    fn cut_the_connection(&self) {
        kill(self.folder.read("connection").trim().parse().unwrap(), Signal::KILL);
    }
}

pub fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// What it said and its code.
fn ended(child: Child) -> (String, Option<i32>) {
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

pub fn no_sshd() {
    skip(Need::Sshd, "no sshd that this user may start");
}

#[test]
fn both_hosts_are_recorded_and_their_recordings_are_one() {
    let Some(there) = There::new() else { return no_sshd() };
    let Some(net) = Net::new() else {
        return skip(Need::Namespaces, "network namespaces need the superuser and `ip`");
    };
    let folder = &there.folder;
    compile_pair(folder);
    let (robot, desk) = (&net.0[2], &net.0[0]);
    let of_robot = format!("cd {} && ip netns exec {robot} ./pair robot 0 0", folder.0.path().display());
    let of_desk = ["--", "ip", "netns", "exec", desk, "./pair", "desk", RELAY, "400", "5000", "0", "0"];
    let place = there.place("robot");
    let on = ["--host-name", "desk", "-o", "run.mcap", "--on", &place, &of_robot];
    let files = ["run.mcap", "run.robot.mcap"];
    let recorded = |_| {
        for file in files {
            let _ = std::fs::remove_file(folder.path(file));
        }
        let mut relay = net.listens(1, folder, &["./pair", "relay", DESK, ROBOT, "200:100", "200:100", "0", "0"]);
        let (said, code) = ended(there.record(&[&on[..], &of_desk[..]].concat()).spawn().unwrap());
        assert_eq!(code, Some(0), "{said}");
        assert!(relay.wait().unwrap().success());
        said
    };
    let said = (0..10).map(recorded).find(|_| is_whole(folder, files)).expect("10 recordings lost kernel events");
    assert!(
        said.contains("taut: robot: run.robot.mcap: ") && said.contains("report run.mcap run.robot.mcap --join"),
        "{said}"
    );
    let report = folder.json(&["report", "run.mcap", "run.robot.mcap", "--join"]);
    assert_eq!(report["recording"]["hosts"][1]["name"], "robot");
    assert!(number(&hop_to(&report, "robot:setpoint.received")["n"]) > 200.0);
}

#[test]
fn a_recorder_that_loses_the_connection_goes_on_and_its_recording_is_fetched() {
    let Some(there) = There::new() else { return no_sshd() };
    let taut = there.waits(0);
    there.cut_the_connection();
    there.folder.write("go", "");
    let (said, code) = ended(taut);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("taut: robot: the connection is lost; its recorder goes on"), "{said}");
    assert!(there.folder.path("ended").exists());
    let bytes = std::fs::read(there.folder.path("taut-run.robot.mcap")).unwrap();
    let contents = taut_recording::read(&bytes, &mut |_| {}).unwrap();
    assert_eq!((contents.info.host.as_str(), contents.ending.unwrap().exit_code), ("robot", Some(0)));
}

#[test]
fn how_a_recorder_without_a_connection_ended_is_passed_on() {
    let Some(there) = There::new() else { return no_sshd() };
    let taut = there.waits(5);
    there.cut_the_connection();
    there.folder.write("go", "");
    let (said, code) = ended(taut);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("taut: robot: ended with 5; its output is in taut-run.robot.log"), "{said}");
}

#[test]
fn a_recorder_that_is_killed_is_no_success() {
    let parent = |pid: i32| -> i32 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
    };
    for with_its_shell in [false, true] {
        let Some(there) = There::new() else { return no_sshd() };
        let taut = there.waits(0);
        let recorder: i32 = there.folder.read("began").trim().parse().unwrap();
        let shell = parent(recorder);
        // The shell would say how the recorder ended; without it nobody does.
        if with_its_shell {
            kill(shell, Signal::KILL);
        }
        kill(recorder, Signal::KILL);
        there.folder.write("go", "");
        let (said, code) = ended(taut);
        let (expected, says) = match with_its_shell {
            false => (137, "taut: robot: ended with 137; its output is in taut-run.robot.log"),
            true => (6, "taut: robot: how its recorder ended is not known; its output is in taut-run.robot.log"),
        };
        assert_eq!(code, Some(expected), "{said}");
        assert!(said.contains(says), "{said}");
        assert!(there.folder.path("taut-run.robot.mcap").exists(), "what there is of it is fetched");
        until("the end of the command there", || there.folder.path("ended").exists());
    }
}

#[test]
fn two_drivers_do_not_fetch_into_one_file() {
    let Some(there) = There::new() else { return no_sshd() };
    let first = there.waits(0);
    let (said, code) = ended(there.record(&["--on", &there.place("robot"), "true"]).spawn().unwrap());
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(said, "taut: taut-run.robot.mcap: another command writes it; name another file with -o\n");
    there.folder.write("go", "");
    let (said, code) = ended(first);
    assert_eq!(code, Some(0), "{said}");
    assert!(there.folder.path("taut-run.robot.mcap").exists());
}

#[test]
fn what_a_host_recorded_that_cannot_be_reached_any_more_stays_there() {
    let Some(mut there) = There::new() else { return no_sshd() };
    let taut = there.waits(0);
    there.sshd.end();
    there.cut_the_connection();
    kill(taut.id() as i32, Signal::INT);
    let (said, code) = ended(taut);
    assert_eq!(code, Some(6), "{said}");
    let rest = said.split_once("its file stays there: sftp sftp://127.0.0.1:").expect(&said).1;
    let (_, rest) = rest.split_once(':').unwrap();
    let file = PathBuf::from(rest.split_once(' ').unwrap().0);
    there.folder.write("go", "");
    until("the end of the recorder there", || file.with_file_name("code").exists());
    let contents = taut_recording::read(&std::fs::read(&file).unwrap(), &mut |_| {}).unwrap();
    assert!(contents.ending.is_some());
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn the_end_of_this_hosts_command_ends_the_others_and_their_failure_is_passed_on() {
    let Some(there) = There::new() else { return no_sshd() };
    let place = there.place("robot");
    // A shell with a program of its own, which waits for ever.
    let served = there.record(&["-q", "--on", &place, "sleep 1000; true", "--", "true"]).spawn().unwrap();
    let (said, code) = ended(served);
    assert_eq!(code, Some(0), "{said}");
    assert!(there.folder.path("taut-run.robot.mcap").exists() && there.folder.path("taut-run.mcap").exists());
    let (said, code) = ended(there.record(&["--on", &place, "exit 7"]).spawn().unwrap());
    assert_eq!(code, Some(7), "{said}");
    assert!(said.contains("taut: robot: ended with 7; its output is in taut-run.robot.log"), "{said}");
}

#[test]
fn hosts_that_cannot_be_recorded_are_one_line() {
    let folder = Folder::new();
    let refused = |hosts: &[&str], text: &str| folder.refuses(&[&["record"], hosts].concat(), text);
    refused(&["--on", "robot=10.0.0.2", "./robot"], "--on robot=10.0.0.2: takes NAME=ssh://USER@HOST and a command");
    refused(&["--on", "a:b=ssh://h", "./robot"], "--on a:b=ssh://h: the name takes up to 64 letters");
    refused(&["--on", "a=ssh://h", "x", "--on", "a=ssh://g", "y"], "another host has the name a");
    refused(&["--on", "a=ssh://-oProxyCommand=x", "y"], "takes NAME=ssh://USER@HOST");
    if std::path::Path::new("/usr/bin/ssh").exists() {
        refused(&["--on", "robot=ssh://127.0.0.1:1", "./robot"], "ssh://127.0.0.1:1: ssh: connect to host 127.0.0.1");
    }
}
