//! `taut wakeup` as a process.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

fn taut(folder: &Path, arguments: &str) -> std::process::Output {
    let mut command = Command::new(cargo_bin!("taut"));
    command.args(arguments.split_whitespace()).current_dir(folder).env_remove("TAUT_SESSION").output().unwrap()
}

fn json(folder: &Path, arguments: &str) -> Value {
    let output = taut(folder, &format!("{arguments} --format json"));
    assert!(matches!(output.status.code(), Some(0 | 5)), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The only line that a refusal prints, and its exit code.
fn refusal(folder: &Path, arguments: &str) -> (String, i32) {
    let output = taut(folder, arguments);
    assert!(output.stdout.is_empty());
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    (line, output.status.code().unwrap())
}

fn n(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

#[test]
fn every_cycle_is_in_one_series_and_the_log_has_every_wake() {
    let folder = tempfile::tempdir().unwrap();
    let found = json(folder.path(), "wakeup --duration 500ms --hlog run.hlog --quiet");
    assert_eq!((found["kind"].as_str(), found["schema_version"].as_u64()), (Some("wakeup"), Some(2)));
    let all = &found["variants"][0]["all"];
    let (wakeups, cycles) = (n(&all["wakeups"]["n"]), n(&all["cycles"]["n"]));
    assert!(wakeups > 0);
    assert_eq!(cycles - wakeups, n(&all["missed"]));
    let read = json(folder.path(), "wakeup --read run.hlog");
    let logged = &read["variants"][0]["all"]["wakeups"];
    assert_eq!(n(&logged["n"]), wakeups);
    // To the resolution of the log's histograms.
    let (exact, logged) = (n(&all["wakeups"]["max_ns"]) as f64, n(&logged["max_ns"]) as f64);
    assert!((logged / exact - 1.0).abs() < 0.001, "{logged} {exact}");
}

#[test]
fn logs_of_hdrhistograms_own_writers_are_read_as_import_reads_them() {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../trace/taut-import/tests/data/hdrhistogram");
    // Totals and maxima of the first three are published: see trace/taut-import/tests/hdrhistogram.rs. The doubles' maximum is 48919.99…; as
    // integers they fall into buckets anew, to 0.1 %.
    for (name, tags, wakeups, max_ns) in [
        ("jHiccup-2.0.1.logV0.hlog", 1, 61_256, 1_569_718_271),
        ("jHiccup-2.0.6.logV1.hlog", 1, 65_964, 1_888_485_375),
        ("jHiccup-2.0.7S.logV2.hlog", 1, 48_761, 1_796_210_687),
        ("doubles.hlog", 3, 36_000, 48_917),
    ] {
        let read = json(&logs, &format!("wakeup --read {name}"));
        let variant = &read["variants"][0];
        let all = &variant["all"]["wakeups"];
        assert_eq!((n(&all["n"]), n(&all["max_ns"])), (wakeups, max_ns), "{name}");
        assert_eq!(variant["cpus"].as_array().map(Vec::len), Some(tags), "{name}");
    }
    // A time that no clock shows ends nothing.
    let folder = tempfile::tempdir().unwrap();
    let far = std::fs::read_to_string(logs.join("jHiccup-2.0.7S.logV2.hlog")).unwrap();
    std::fs::write(folder.path().join("far.hlog"), far.replace("\n0.127,", "\n18446744073709551615.9,")).unwrap();
    assert_eq!(n(&json(folder.path(), "wakeup --read far.hlog")["variants"][0]["all"]["wakeups"]["n"]), 48_761);
    // The second of these has each interval twice: without a tag, and with tag A.
    let read = json(&logs, "wakeup --read jHiccup-2.0.7S.logV2.hlog tagged-Log.logV2.hlog");
    assert_eq!(read["variants"].as_array().map(Vec::len), Some(2));
    assert_eq!(n(&read["variants"][1]["all"]["wakeups"]["n"]), 32_290);
}

#[test]
fn ways_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let found = json(
        folder.path(),
        "wakeup --duration 100ms --rounds 2 --cpus any --vary wake=timerfd,condvar,spin --vary slack=1us,50us",
    );
    let labels: Vec<&str> =
        found["variants"].as_array().unwrap().iter().map(|v| v["label"].as_str().unwrap()).collect();
    assert_eq!(labels.len(), 6);
    assert_eq!(labels[1], "wake=timerfd slack=50us");
    assert!(found["variants"].as_array().unwrap().iter().all(|v| n(&v["all"]["wakeups"]["n"]) > 0));
}

#[test]
fn a_load_runs_beside_and_ends_with_the_probe() {
    let folder = tempfile::tempdir().unwrap();
    let found = json(folder.path(), "wakeup --duration 100ms --rounds 1 --load timer=1");
    let loads: Vec<&str> =
        found["variants"].as_array().unwrap().iter().map(|v| v["settings"]["load"].as_str().unwrap()).collect();
    assert_eq!(loads, ["none", "timer=1"]);
    let (line, code) = refusal(folder.path(), "wakeup --duration 1s --load command=true");
    assert!(code == 2 && line.contains("ended before the probe did"), "{line}");
}

#[test]
fn refusals_name_the_value_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("no.hlog"), "hello\n").unwrap();
    let cases = [
        ("wakeup --interval 0", "above 0"),
        ("wakeup --interval 1us", "give 10us to 1h"),
        ("wakeup --cpus 4095", "CPU 4095 is offline or not allowed to this process"),
        ("wakeup --cpus 1-", "such as 1,3-5"),
        ("wakeup --wake shouting", "nanosleep"),
        ("wakeup --above 1ms", "--explain"),
        ("wakeup --polcy fifo", "--policy"),
        ("wakeup --vary colour=red", "dma-latency"),
        ("wakeup --vary governor=../x", "give a name such as performance"),
        ("wakeup --dma-latency 20", "up to 1s, such as 0 or 20us"),
        ("wakeup --vary dma-latency=none,20", "up to 1s, such as 0 or 20us"),
        ("wakeup --read no.hlog", "no.hlog: line 1 is neither a comment nor an interval"),
        ("wakeup --read absent.hlog", "absent.hlog"),
        ("wakeup --duration 1s --hlog -", "name a file"),
        ("wakeup --pair --cpus any", "two CPUs"),
        ("wakeup --load gpu=1", "give cpu=N"),
    ];
    for (arguments, said) in cases {
        let (line, code) = refusal(folder.path(), arguments);
        assert!(code == 2 && line.contains(said), "{arguments}: {code} {line}");
    }
    // Where there are governors, the lines before say how they are put back.
    let output = taut(folder.path(), "wakeup --vary governor=warp --duration 100ms");
    let said = String::from_utf8(output.stderr).unwrap();
    let last = said.lines().last().unwrap_or_default();
    assert!(output.status.code() == Some(2) && last.contains("governor warp: this machine "), "{said}");
}

#[test]
fn who_may_not_be_real_time_is_told_how() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("taut");
    std::fs::copy(cargo_bin!("taut"), &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["wakeup", "--policy", "fifo", "--duration", "100ms"]).current_dir(folder.path());
    // SAFETY: getuid has no preconditions.
    if unsafe { libc::getuid() } == 0 {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{line}");
    assert!(line.contains("policy fifo") && line.contains("rtprio"), "{line}");
}

#[test]
fn whatever_ends_a_long_probe_leaves_its_log_and_ctrl_c_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("long.hlog");
    for (signal, code) in [(libc::SIGINT, Some(130)), (libc::SIGKILL, None)] {
        let mut command = Command::new(cargo_bin!("taut"));
        command.args(["wakeup", "--duration", "1h", "--quiet", "--hlog", "long.hlog"]).current_dir(folder.path());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(600);
        let logged =
            || std::fs::read_to_string(&log).is_ok_and(|text| text.lines().any(|line| line.starts_with("Tag=")));
        while !logged() {
            assert!(Instant::now() < until, "no interval in 600 s");
            std::thread::sleep(Duration::from_millis(20));
        }
        // SAFETY: signals our own child.
        unsafe { libc::kill(child.id() as i32, signal) };
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code);
        assert_eq!(!output.stdout.is_empty(), code.is_some());
        assert!(n(&json(folder.path(), "wakeup --read long.hlog")["variants"][0]["all"]["wakeups"]["n"]) > 0);
        std::fs::remove_file(&log).unwrap();
    }
}

#[test]
fn late_wakes_are_taken_apart_without_a_rest() {
    let folder = tempfile::tempdir().unwrap();
    let found = json(folder.path(), "wakeup --duration 500ms --explain --above 1us --record run.mcap --quiet");
    let explained = &found["explained"];
    let (late, recorded) = (n(&explained["late"]), n(&explained["recorded"]));
    assert!(late > 0 && late <= recorded, "{explained}");
    for wake in explained["worst"].as_array().unwrap() {
        let parts: u64 = wake["parts"].as_array().unwrap().iter().map(part_ns).sum();
        assert_eq!(parts, n(&wake["late_ns"]));
    }
    // The kernel's own tracers are used, or it is said why not.
    let tracers = &found["tracers"];
    for name in ["timerlat", "osnoise"] {
        let mut missing = tracers["missing"].as_array().unwrap().iter().filter_map(Value::as_str);
        let is_missing = missing.any(|why| why.starts_with(&format!("{name}: ")));
        assert_eq!(tracers[name].is_null(), is_missing, "{name}: {tracers}");
    }
    let report = json(folder.path(), "report run.mcap");
    assert_eq!(report["chains"][0]["name"], "probe.due → probe.woke");
}

fn part_ns(part: &Value) -> u64 {
    n(part.get("ns").unwrap_or_else(|| &part[2]))
}

#[test]
fn a_probe_beside_a_program_is_told_from_it() {
    let folder = tempfile::tempdir().unwrap();
    // A program that ends before its probe has begun leaves none behind. It ends when the kernel's signal has come, or by itself.
    let beside = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let is_here = |path: &PathBuf| std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == folder.path());
        processes.filter(is_here).count()
    };
    for _ in 0..20 {
        let output = taut(folder.path(), "record --wakeup --tier stamps -o run.mcap -- false");
        assert_eq!(output.status.code(), Some(1), "the program's own code is passed on");
    }
    let until = Instant::now() + Duration::from_secs(60);
    while beside() > 0 {
        assert!(Instant::now() < until, "{} probes go on", beside());
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = taut(folder.path(), "record --wakeup --tier stamps -o run.mcap -- sleep 0.5");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(folder.path(), "report run.mcap");
    assert_eq!(report["chains"][0]["name"], "probe.due → probe.woke");
    assert!(n(&report["chains"][0]["messages"]) > 0);
}
