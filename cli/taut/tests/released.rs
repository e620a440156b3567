//! Files of every released format, opened with this build: what was said of them then is said now (`released/README.md`).
//! And formats to come: refused, in one line that names them.

use std::path::{Path, PathBuf};

use assert_cmd::cargo::cargo_bin;
use serde_json::{Map, Value};
use taut_recording::FORMAT_VERSION;

fn released(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/released").join(name)
}

/// Exit code, stdout and stderr.
fn taut(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let output = assert_cmd::Command::new(cargo_bin!("taut")).args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(arguments: &[&str]) -> Value {
    let (code, out, said) = taut(arguments, &released(""));
    assert_eq!(code, 0, "taut {arguments:?}: {said}");
    serde_json::from_str(&out).unwrap()
}

/// Whether all that was said is said still, where it was said; fields may have come.
fn holds(was: &Value, is: &Value, place: &str) {
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            for (key, was) in was {
                let is = is.get(key).unwrap_or_else(|| panic!("{place}.{key} is gone"));
                holds(was, is, &format!("{place}.{key}"));
            }
        }
        (Value::Array(was), Value::Array(is)) => {
            assert_eq!(was.len(), is.len(), "{place}: as many as were");
            for (at, (was, is)) in was.iter().zip(is).enumerate() {
                holds(was, is, &format!("{place}[{at}]"));
            }
        }
        (Value::Number(was), Value::Number(is)) => {
            let (was, is) = (was.as_f64().unwrap(), is.as_f64().unwrap());
            assert!((was - is).abs() <= was.abs() * 1e-9, "{place}: was {was}, is {is}");
        }
        _ => assert_eq!(was, is, "{place}"),
    }
}

/// Holds what is said now against what was; with TAUT_UPDATE=1 the newest format's is written anew.
fn held(name: &str, is: &Value) {
    let path = released(name);
    if std::env::var_os("TAUT_UPDATE").is_some() {
        std::fs::write(&path, serde_json::to_string_pretty(is).unwrap() + "\n").unwrap();
    }
    holds(&serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(), is, name);
}

/// Those of the fields that are the recording's: not what is concluded from them, which may get better.
fn only(value: &Value, fields: &[&str]) -> Value {
    let kept = fields.iter().map(|field| ((*field).to_owned(), value[field].clone()));
    Value::Object(kept.collect::<Map<_, _>>())
}

#[test]
fn recordings_of_every_format_say_what_they_said() {
    for version in 1..=FORMAT_VERSION {
        let run = format!("format-{version}.mcap");
        let report = json(&["report", &run, "--format", "json"]);
        let chains = report["chains"].as_array().unwrap().iter();
        let chains = chains.map(|chain| only(chain, &["name", "messages", "end_to_end", "hops", "outcomes"])).collect();
        let mut is = only(&report, &["schema_version", "recording", "signals", "telemetry", "profile", "damage"]);
        is["chains"] = chains;
        held(&format!("format-{version}.json"), &is);
        // Kernel events and locks are not only counted.
        let (code, out, said) =
            taut(&["explain", &run, "--hypothesis", "lock:map_lock", "--worst", "1"], &released(""));
        assert!(code == 0 && out.contains("map_lock") && out.contains(" contributes "), "{run}: {out}{said}");
        let (code, out, said) = taut(&["telemetry", &run, "--channel", "/telemetry/arm", "--last", "1"], &released(""));
        assert!(code == 0 && out.contains("\"position\":2.49"), "{run}: {out}{said}");
        let (code, out, said) = taut(&["flamegraph", &run, "-o", "-"], &released(""));
        assert!(code == 0 && out.contains("<svg"), "{run}: {said}");
    }
}

/// What a report says of an imported trace of ROS 2, without the single buckets and values, and without causes.
fn ctf_report(run: &Path) -> Value {
    fn leave_out(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|key, _| !["histogram", "percentiles", "buckets", "causes"].contains(&key.as_str()));
                fields.values_mut().for_each(leave_out);
            }
            Value::Array(all) => all.iter_mut().for_each(leave_out),
            _ => {}
        }
    }
    let report = json(&["report", run.to_str().unwrap(), "--format", "json"]);
    let chains = report["chains"].as_array().unwrap().iter();
    let chains = chains.map(|chain| only(chain, &["name", "messages", "end_to_end", "hops", "outcomes"])).collect();
    let mut is = only(&report, &["recording", "signals", "histograms", "damage", "notes"]);
    is["chains"] = chains;
    leave_out(&mut is);
    is
}

/// Imports of a CTF trace had finished stamps in them.
#[test]
fn an_import_with_finished_stamps_says_what_it_said() {
    held("ctf-1.json", &ctf_report(&released("ctf-1.mcap")));
}

/// Of the same trace, imported with this build: the same messages, whatever the recording holds of them. That an executor was busy
/// was a point then, and is a cause now; what ended early counted as applied.
#[test]
fn the_same_trace_imported_today_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let sample = "../../trace/taut-import/tests/data/ros2-caret-sample/end_to_end_sample";
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join(sample);
    let (code, _, said) = taut(&["import", "ctf", sample.to_str().unwrap(), "-o", "run.mcap"], folder.path());
    assert_eq!(code, 0, "{said}");
    let mut was: Value = serde_json::from_str(&std::fs::read_to_string(released("ctf-1.json")).unwrap()).unwrap();
    let mut is = ctf_report(&folder.path().join("run.mcap"));
    without_free_points(&mut was, &mut is);
    is["chains"].as_array_mut().unwrap().iter_mut().for_each(|chain| early_as_applied(&mut chain["outcomes"]));
    for what in ["chains", "signals", "histograms", "damage", "notes"] {
        holds(&was[what], &is[what], what);
    }
    for what in ["duration_s", "kernel_events", "start_realtime_ns", "tier", "tier_reason"] {
        holds(&was["recording"][what], &is["recording"][what], what);
    }
}

/// As outcomes were counted.
fn early_as_applied(outcomes: &mut Value) {
    let [applied, early] = ["applied", "ended_early"].map(|of| outcomes[of].as_u64().unwrap());
    outcomes["applied"] = (applied + early).into();
    outcomes["last_seen"].as_array_mut().unwrap().retain(|of| of["reason"] != "ended early");
}

/// Leaves out the hops to and from points that only the older one has.
fn without_free_points(was: &mut Value, is: &mut Value) {
    let ends = |hop: &Value| ["from", "to"].map(|end| hop[end].as_str().unwrap().to_owned());
    let is_free = |name: &String| name.contains(" free for ");
    for (was, is) in was["chains"].as_array_mut().unwrap().iter_mut().zip(is["chains"].as_array_mut().unwrap()) {
        let (was, is) = (was["hops"].as_array_mut().unwrap(), is["hops"].as_array_mut().unwrap());
        let all = was.len();
        was.retain(|hop| !ends(hop).iter().any(is_free));
        let left: Vec<_> = was.iter().map(ends).collect();
        // One hop stands for the two that met at such a point.
        let joined = (all - was.len()) / 2;
        let before = is.len();
        is.retain(|hop| left.contains(&ends(hop)));
        assert_eq!(before - is.len(), joined);
    }
}

#[test]
fn a_probes_log_says_what_it_said() {
    let is = json(&["wakeup", "--read", "probe-1.hlog", "--format", "json"]);
    held("probe-1.json", &only(&is, &["schema_version", "kind", "variants"]));
}

#[test]
fn a_gates_history_says_what_it_said() {
    let is = json(&["gate", "--history", "history-1", "--format", "json"]);
    held("history-1.json", &only(&is, &["schema_version", "kind", "lines", "revisions"]));
}

#[test]
fn a_recording_of_a_format_to_come_is_refused_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let newest = std::fs::read(released(&format!("format-{FORMAT_VERSION}.mcap"))).unwrap();
    // Both say 1 in as many bytes.
    let said = |field: &str, value: &str| {
        let text = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
        [text(field), text(value)].concat()
    };
    let (old, new) = (said("version", &FORMAT_VERSION.to_string()), said("version", "9"));
    let mut changed = newest.clone();
    let at: Vec<usize> = (0..newest.len() - old.len()).filter(|at| newest[*at..].starts_with(&old)).collect();
    assert!(at.len() >= 2, "the format is said twice before the first chunk");
    at.into_iter().for_each(|at| changed[at..at + new.len()].copy_from_slice(&new));
    std::fs::write(folder.path().join("run.mcap"), changed).unwrap();
    for command in ["report", "explain", "telemetry", "recover", "flamegraph"] {
        let (code, out, said) = taut(&[command, "run.mcap"], folder.path());
        assert_eq!((code, out.as_str()), (2, ""), "{command}");
        assert!(
            said.contains("run.mcap") && said.contains("format version 9") && said.contains("update taut"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{command}: {said}");
    }
}

/// A process writes rings that say they are of another protocol; what it stamps is not guessed at.
#[test]
fn rings_of_a_protocol_to_come_are_refused_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        ring() { (printf "$1\\$2\\0\\0\\0"; head -c 65524 /dev/zero) > "$TAUT_SESSION/.tmp"; mv "$TAUT_SESSION/.tmp" "$TAUT_SESSION/$3"; }
        ring TAUTRING 011 $$-0.taut
        ring TAUTTELE 011 $$-0.telemetry
        sleep 0.3
    "#;
    let record = ["record", "--tier", "stamps", "-o", "run.mcap", "--", "sh", "-c", script];
    let (code, _, said) = taut(&record, folder.path());
    assert_eq!(code, 5, "what is in them is lost: {said}");
    for why in
        ["-0.taut: protocol version 9, this taut knows 1 and 2", "telemetry protocol version 9, this taut knows 1"]
    {
        let lines = said.lines().filter(|line| line.contains(why)).count();
        assert_eq!(lines, 1, "{why}: {said}");
    }
}
