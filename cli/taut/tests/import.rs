//! `taut import` and `taut log` as processes: what is no log is one line and no file.

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;

fn taut(folder: &tempfile::TempDir, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(cargo_bin!("taut"));
    command.args(arguments).current_dir(folder.path());
    command
}

/// A schema with one number, and three values of it a second apart.
fn log() -> Vec<u8> {
    let mut log = b"TLOG0003\0".to_vec();
    let schema = [&[1, 0, 3][..], b"imu", &[16, 0, 0, 1, b'x', 0, 8, 0, 0, 0, 0, 0, 0]].concat();
    log.extend([1, schema.len() as u8]);
    log.extend(schema);
    for at in 0..3_u8 {
        let time = (1_600_000_000_i64 + i64::from(at)) * 1_000_000;
        let data = [&[1, 2][..], &time.to_le_bytes(), &f64::from(at).to_le_bytes()].concat();
        log.extend([2, data.len() as u8]);
        log.extend(data);
    }
    log
}

#[test]
fn a_log_is_imported_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("robot.log"), log()).unwrap();
    let said = predicate::str::contains("wrote robot.mcap: 3 messages of 1 channels, 2.0 s");
    taut(&folder, &["import", "mjlib", "robot.log"]).assert().success().stderr(said);
    let second = r#"{"topic":"/imu","time_s":1.0,"sequence":2,"value":{"x":1.0}}"#;
    taut(&folder, &["log", "robot.mcap", "--channel", "/imu", "--from", "0.5", "--to", "1.5"])
        .assert()
        .success()
        .stdout(format!("{second}\n"));
    taut(&folder, &["log", "robot.mcap", "--at", "1.9"]).assert().success().stdout(format!("{second}\n"));
    taut(&folder, &["log", "robot.mcap", "--layouts"]).assert().success();
    assert!(folder.path().join("robot.foxglove.json").exists() && folder.path().join("robot.plotjuggler.xml").exists());
}

#[test]
fn what_is_damaged_is_named_with_an_exit_code_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let log = log();
    std::fs::write(folder.path().join("cut.log"), &log[..log.len() - 3]).unwrap();
    taut(&folder, &["import", "mjlib", "cut.log"])
        .assert()
        .code(5)
        .stderr(predicate::str::contains("the end of the log is missing").and(predicate::str::contains("2 messages")));
}

#[test]
fn what_is_no_log_is_one_line_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("robot.log"), "not a log at all").unwrap();
    let line = |text: &str| {
        predicate::str::contains(text.to_owned()).and(predicate::function(|e: &str| e.lines().count() == 1))
    };
    taut(&folder, &["import", "mjlib", "robot.log"]).assert().code(2).stderr(line("robot.log: is no mjlib log"));
    taut(&folder, &["import", "mjlib", "missing.log"]).assert().code(2).stderr(line("missing.log"));
    taut(&folder, &["log", "robot.log"]).assert().code(2).stderr(line("is not a recording"));
    assert!(!folder.path().join("robot.mcap").exists());
}
