//! Clocks of which the truth is known: made recordings.

use predicates::prelude::*;
use serde_json::Value;
use taut_recording::{Lost, LostWhat, Record, Writer};

use crate::{
    folder::Folder,
    hop_to, made,
    made::{Clock, MESSAGES, Made},
    notes, number,
};

const DAYS_NS: i64 = 3 * 86_400_000_000_000;

fn recorded(made: Made) -> Folder {
    let folder = Folder::new();
    made.write(folder.0.path());
    folder
}

#[test]
fn clocks_that_are_days_and_200_ppm_apart_are_one_within_the_bound() {
    let made = Made::default();
    let report = recorded(made).joined("robot.mcap");
    let clock = &report["recording"]["hosts"][1]["clock"];
    let bound_ns = number(&clock["bound_max_ns"]);
    // The fastest way there and back takes 550 µs, and queueing is not rare.
    assert!((270e3..400e3).contains(&bound_ns), "{clock}");
    let truth_ns = made.robot.of(1_000_000_000) as f64 - 1e9;
    assert!((number(&clock["offset_ns"]) - truth_ns).abs() <= bound_ns, "{clock}, truth {truth_ns}");
    assert!((number(&clock["drift_ppm"]) - 200.0).abs() < 20.0, "{clock}");
    // Each level is right to the bound: the true medians are 0.33 and 0.28 ms.
    for (to, truth_ns) in [("robot:setpoint.received", 328e3), ("desk:state.received", 278e3)] {
        let hop = hop_to(&report, to);
        let between = &hop["between_hosts"];
        assert!((number(&hop["p50_ns"]) - truth_ns).abs() < number(&between["bound_ns"]), "{hop}");
        assert_eq!(hop["n"], MESSAGES);
    }
    assert_eq!(hop_to(&report, "robot:setpoint.applied")["between_hosts"], Value::Null);
    // Whatever the offset, both ways together are what they are.
    let p50 = |to| number(&hop_to(&report, to)["p50_ns"]);
    let sum = p50("robot:setpoint.received") + p50("desk:state.received");
    assert!((sum - 606e3).abs() < 30e3, "{sum}");
    let said = notes(&report);
    assert!(said.contains("desk ↔ robot: the clocks' offset is 259200.0"), "{said}");
    // The middle of the bound moves between the fastest messages.
    assert!(said.contains("at most twice that, and by less while the fastest way takes the same time"), "{said}");
}

#[test]
fn a_third_host_is_reached_through_the_second_and_its_bound_is_the_sum() {
    let arm = Clock { ahead_ns: 2 * DAYS_NS, ppm: -150, step: None };
    let made = Made { arm: Some(arm), ..Made::default() };
    let folder = recorded(made);
    let files = ["desk.mcap", "robot.mcap", "arm.mcap"];
    let report = folder.json(&[&["report"], &files[..], &["--join"]].concat());
    let clock = |host: usize| &report["recording"]["hosts"][host]["clock"];
    let bound_ns = |host: usize| number(&clock(host)["bound_max_ns"]);
    // What the way to the arm and back adds, 50 µs and queueing, is half of what both take.
    let more_ns = bound_ns(2) - bound_ns(1);
    assert!((50e3..100e3).contains(&more_ns), "{more_ns}");
    for (host, of) in [(1, made.robot), (2, arm)] {
        let truth_ns = of.of(1_000_000_000) as f64 - 1e9;
        let error_ns = (number(&clock(host)["offset_ns"]) - truth_ns).abs();
        assert!(error_ns <= bound_ns(host), "{}, truth {truth_ns}", clock(host));
    }
    // Hops between two hosts of which neither is the first have the bound of those two.
    for (to, truth_ns) in [("arm:command.received", 88e3), ("robot:feedback.received", 68e3)] {
        let hop = hop_to(&report, to);
        let between_ns = number(&hop["between_hosts"]["bound_ns"]);
        assert!((50e3..100e3).contains(&between_ns), "{hop}");
        assert!((number(&hop["p50_ns"]) - truth_ns).abs() < between_ns, "{hop}");
    }
    let said = notes(&report);
    assert!(said.contains("desk ↔ arm: ") && said.contains("by messages through robot; drift -150."), "{said}");

    folder.taut(&[&["merge"], &files[..], &["-o", "run.mcap"]].concat()).success();
    let merged = folder.json(&["report", "run.mcap"]);
    for part in ["chains", "notes"] {
        assert_eq!(report[part], merged[part], "{part}");
    }
    let sidecar: Value = serde_json::from_str(&folder.read("run.alignment.json")).unwrap();
    assert_eq!(sidecar["clocks"][1]["through"], serde_json::json!(["robot"]));
    folder.taut(&["export", "perfetto", "run.mcap", "-o", "run.pftrace"]).success();
    // The arm has no message to the desk.
    folder.refuses(&["report", "desk.mcap", "arm.mcap", "--join"], "no message was stamped on both hosts");
    folder
        .refuses(&["merge", "robot.mcap", "arm.mcap", "run.mcap", "-o", "all.mcap"], "run.mcap: is a joined recording");
}

#[test]
fn a_cause_is_named_with_its_host_and_the_way_between_is_the_network() {
    let report = recorded(Made::default()).joined("robot.mcap");
    let chain = |point: &str| {
        let chains = report["chains"].as_array().unwrap().iter();
        let mut of =
            chains.filter(|chain| chain["points"].as_array().unwrap().iter().any(|known| known["name"] == point));
        of.next().unwrap_or_else(|| panic!("no chain with {point}"))
    };
    let causes = chain("robot:setpoint.applied")["causes"].as_array().unwrap();
    let share = |cause: &str, detail: &str| -> f64 {
        let of =
            causes.iter().filter(|share| share["cause"] == cause && share["detail"].as_str().unwrap().contains(detail));
        of.map(|share| number(&share["tail_share"])).sum()
    };
    // Of 10 messages of the tail five took 5 ms more on the way, and the hog held five for 4 ms.
    assert!((share("network", "recvfrom fd 3") - 0.56).abs() < 0.02, "{causes:?}");
    // 2 of the 5 ms were in the robot's kernel.
    assert!((share("network", "in the receiver's kernel") - 0.22).abs() < 0.02, "{causes:?}");
    assert!((share("preempted", "by robot:hog/30") - 0.44).abs() < 0.02, "{causes:?}");
    // The robot's system calls have the numbers of its architecture.
    assert!(!notes(&report).contains("system calls have the numbers"), "{}", notes(&report));
}

#[test]
fn a_step_of_a_clock_is_cut_and_said() {
    let step = (1_000_000_000 + 500 * made::PERIOD_NS + 5_000_000, 2_000_000_000);
    let robot = Clock { ahead_ns: DAYS_NS, ppm: 200, step: Some(step) };
    let report = recorded(Made { robot, ..Made::default() }).joined("robot.mcap");
    let said = notes(&report);
    assert!(
        said.contains("a clock of desk or robot stepped by 2000.") && said.contains("after the first message"),
        "{said}"
    );
    for to in ["robot:setpoint.received", "desk:state.received"] {
        let hop = hop_to(&report, to);
        assert_eq!(hop["n"], MESSAGES);
        assert!(number(&hop["p50_ns"]) < 700e3 && number(&hop["max_ns"]) < 6e6, "{hop}");
    }
}

#[test]
fn messages_one_way_give_excess_and_no_level() {
    let report = recorded(Made { has_states: false, ..Made::default() }).joined("robot.mcap");
    let hop = hop_to(&report, "robot:setpoint.received");
    assert_eq!(hop["between_hosts"]["bound_ns"], Value::Null);
    // Above the fastest message, which took 300 µs: 28 µs at the median, and 5 ms for what was held.
    assert!((number(&hop["p50_ns"]) - 28e3).abs() < 15e3 && (number(&hop["max_ns"]) - 5e6).abs() < 0.3e6, "{hop}");
    assert!(notes(&report).contains("One direction gives no bound"), "{}", notes(&report));
}

#[test]
fn the_order_of_points_follows_from_the_system_calls_around_them() {
    let made = Made { has_states: false, ..Made::default() };
    let said = |made: Made| notes(&recorded(made).joined("robot.mcap"));
    let assumed = "which of desk and robot a message left first";
    assert!(said(Made { has_kernel: false, ..made }).contains(assumed));
    assert!(!said(made).contains(assumed));
}

#[test]
fn the_order_of_points_can_be_declared() {
    let folder = recorded(Made { has_states: false, has_kernel: false, ..Made::default() });
    let chain = |points: &str| folder.write("taut.toml", &format!("[[chain]]\npoints = [{points}]\n"));
    chain(r#""desk:setpoint.sent", "robot:setpoint.received", "robot:setpoint.applied""#);
    assert!(!notes(&folder.joined("robot.mcap")).contains("a message left first"));
    chain(r#""robot:setpoint.received", "robot:setpoint.applied", "desk:setpoint.sent""#);
    assert!(notes(&folder.joined("robot.mcap")).contains("robot:setpoint.applied → desk:setpoint.sent: "));
}

#[test]
fn a_merged_recording_is_one_for_every_command_and_the_two_stay_as_they_were() {
    let folder = recorded(Made::default());
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    let before = [bytes("desk.mcap"), bytes("robot.mcap")];
    folder.taut(&["merge", "desk.mcap", "robot.mcap", "-o", "run.mcap"]).success();
    let piped = folder.taut(&["merge", "desk.mcap", "robot.mcap", "-o", "-"]).success();
    assert!(
        piped.get_output().stdout == std::fs::read(folder.path("run.mcap")).unwrap(),
        "stdout has another recording"
    );
    assert!(!folder.path("-").exists() && !folder.path("-.alignment.json").exists());
    assert_eq!([bytes("desk.mcap"), bytes("robot.mcap")], before);
    let sidecar: Value = serde_json::from_str(&folder.read("run.alignment.json")).unwrap();
    assert_eq!(sidecar["hosts"], serde_json::json!(["desk", "robot"]));
    assert_eq!(sidecar["pairs"][0]["messages"]["common"], 2 * MESSAGES);
    assert!(sidecar["clocks"][0]["pieces"][0]["knots"].as_array().unwrap().len() > 100);

    let [joined, merged] = [folder.joined("robot.mcap"), folder.json(&["report", "run.mcap"])];
    for part in ["chains", "notes"] {
        assert_eq!(joined[part], merged[part], "{part}");
    }
    assert_eq!(joined["recording"]["hosts"], merged["recording"]["hosts"]);
    for form in ["terminal", "markdown", "html"] {
        let text = folder.text(&["report", "run.mcap", "--format", form]);
        assert!(text.contains("known to ±") && text.contains("robot:setpoint.applied"), "{form}");
    }
    let explained = folder.text(&["explain", "run.mcap"]);
    assert!(
        explained.contains("recvfrom fd 3, in the receiver") && explained.contains("by robot:hog/30"),
        "{explained}"
    );
    let compared = folder.json(&["compare", "run.mcap", "run.mcap"]);
    assert_eq!(compared["kind"], "compare");
    folder.taut(&["recover", "run.mcap", "-o", "again.mcap"]).success();
    folder.taut(&["export", "perfetto", "run.mcap", "-o", "run.pftrace"]).success();
}

#[test]
fn a_merged_recording_is_held_against_limits_and_goes_into_a_fleet() {
    let folder = recorded(Made::default());
    folder.taut(&["merge", "desk.mcap", "robot.mcap", "-o", "run.mcap"]).success();
    let held = |max_ms: &str| {
        let points = r#""desk:setpoint.sent", "robot:setpoint.received", "robot:setpoint.applied""#;
        let limit = format!("deadline_ms = {max_ms}\nmissed_max_percent = 5\n");
        folder.write("taut.toml", &format!("[[chain]]\nname = \"setpoint\"\npoints = [{points}]\n{limit}"));
        folder.taut(&["gate", "--limits", "--candidate", "run.mcap"])
    };
    // 1 % of the messages are held, for 4 ms and more; each takes half a millisecond.
    held("3").success().stdout(predicate::str::contains("\nWITHIN LIMITS: all 1 limit kept"));
    held("0.1").code(1).stdout(predicate::str::contains("\nOVER THE LIMIT: setpoint: missed deadlines 100.00 %"));

    let add = ["fleet", "add", "run.mcap", "--into", "fleet", "--robot", "arm-7", "--revision", "v1"];
    folder.taut(&add).success().stderr(predicate::str::contains("messages of 2 chains"));
}

#[test]
fn what_a_host_lost_its_merged_recording_lacks() {
    let folder = recorded(Made::default());
    let bytes = std::fs::read(folder.path("robot.mcap")).unwrap();
    let time_ns = taut_recording::read(&bytes, &mut |_| {}).unwrap().ending.unwrap().end_monotonic_ns;
    let lost = Lost { time_ns, what: LostWhat::Telemetry, place: "10/arm".into(), count: 9, ..Lost::default() };
    let more = |writer: &mut Writer| writer.write(&Record::Lost(lost));
    taut_recording::copy(&bytes, &folder.path("lossy.mcap"), more).unwrap();
    let merged = folder.taut(&["merge", "desk.mcap", "lossy.mcap", "-o", "run.mcap"]).code(5);
    merged.stderr(predicate::str::contains(", 9 telemetry messages LOST\n"));
}

#[test]
fn without_alignment_both_hosts_realtime_is_one_clock() {
    let folder = recorded(Made::default());
    let report = folder.json(&["report", "desk.mcap", "robot.mcap", "--join", "--clocks", "realtime"]);
    assert_eq!(report["recording"]["hosts"][1]["clock"]["from"], "CLOCK_REALTIME");
    // The robot's is 2 ms ahead, and what its clock drifts from there on is not taken out.
    let late_ns = number(&hop_to(&report, "robot:setpoint.received")["p50_ns"]);
    assert!(late_ns > 2e6, "{late_ns}");
    assert!(notes(&report).contains("CLOCK_REALTIME of both is taken for one clock"), "{}", notes(&report));
}

/// The bound, and the error of the offset at the first message.
fn bound_and_error(made: Made, report: &Value) -> (f64, f64) {
    let clock = &report["recording"]["hosts"][1]["clock"];
    let truth_ns = made.robot.of(1_000_000_000) as f64 - 1e9;
    (number(&clock["bound_max_ns"]), (number(&clock["offset_ns"]) - truth_ns).abs())
}

#[test]
fn what_chronyd_states_on_both_hosts_narrows_the_bound() {
    let made = Made { realtime: (30_000, Some(50_000)), ..Made::default() };
    let folder = recorded(made);
    let report = folder.joined("robot.mcap");
    let (_, error_ns) = bound_and_error(made, &report);
    // What is stated holds when the recordings begin; from then on the bound grows to that of the messages.
    folder.taut(&["merge", "desk.mcap", "robot.mcap", "-o", "run.mcap"]).success();
    let sidecar: Value = serde_json::from_str(&folder.read("run.alignment.json")).unwrap();
    assert_eq!(sidecar["pairs"][0]["stated"]["used"], "narrows");
    let knot = &sidecar["clocks"][0]["pieces"][0]["knots"][0];
    let bound_ns = (number(&knot[2]) - number(&knot[1])) / 2.0;
    // Messages alone: 275 µs and more.
    assert!((90e3..120e3).contains(&bound_ns) && error_ns <= bound_ns, "{bound_ns}, {error_ns}");
    assert!(notes(&report).contains("the clocks' bound is from that and from the messages"), "{}", notes(&report));
}

#[test]
fn with_messages_one_way_what_chronyd_states_gives_the_bound() {
    let made = Made { realtime: (30_000, Some(50_000)), has_states: false, ..Made::default() };
    let report = recorded(made).joined("robot.mcap");
    let (bound_ns, error_ns) = bound_and_error(made, &report);
    assert!(bound_ns >= 50e3 && error_ns <= bound_ns, "{bound_ns}, {error_ns}");
    // One moment is stated, so the rate is known from one side only.
    assert_eq!(report["recording"]["hosts"][1]["clock"]["from"], "messages");
}

#[test]
fn what_chronyd_states_wrongly_is_named_and_not_used() {
    let made = Made { realtime: (2_000_000, Some(50_000)), ..Made::default() };
    let folder = recorded(made);
    let report = folder.joined("robot.mcap");
    let (bound_ns, error_ns) = bound_and_error(made, &report);
    assert!(bound_ns >= 270e3 && error_ns <= bound_ns, "{bound_ns}, {error_ns}");
    let notes = notes(&report);
    assert!(notes.contains("and the messages contradict that by 1.64 ms: they were used"), "{notes}");
    folder.taut(&["merge", "desk.mcap", "robot.mcap", "-o", "run.mcap"]).success();
    let sidecar: Value = serde_json::from_str(&folder.read("run.alignment.json")).unwrap();
    assert_eq!(sidecar["pairs"][0]["stated"]["used"], "contradicted");
}

#[test]
fn what_ptp4l_states_is_used_with_the_same_grandmaster_and_software_time_stamps() {
    const GRANDMASTER: &str = "56678f.fffe.ba9269";
    let report = |ahead_ns, chronyd_ns, of_robot| {
        let ptp = Some([(GRANDMASTER, "20000"), of_robot]);
        notes(&recorded(Made { realtime: (ahead_ns, chronyd_ns), ptp, ..Made::default() }).joined("robot.mcap"))
    };
    let narrows = "is right, together to ± 50.0 µs: the clocks' bound is from that";
    let notes = report(30_000, None, (GRANDMASTER, "30000"));
    assert!(notes.contains(&format!("ptp4l on both states that CLOCK_REALTIME {narrows}")), "{notes}");
    // Of what chronyd states beside it, the least is taken.
    let notes = report(30_000, Some(100_000), (GRANDMASTER, "30000"));
    assert!(notes.contains(&format!("ptp4l on both states that CLOCK_REALTIME {narrows}")), "{notes}");
    let notes = report(30_000, Some(25_000), (GRANDMASTER, "30001"));
    assert!(notes.contains(&format!("chronyd on both states that CLOCK_REALTIME {narrows}")), "{notes}");
    let notes = report(2_000_000, None, (GRANDMASTER, "30000"));
    assert!(notes.contains("ptp4l on both states that") && notes.contains("and the messages contradict"), "{notes}");
    let notes = report(30_000, None, ("56678f.fffe.ba9270", "30000"));
    assert!(!notes.contains("ptp4l"), "{notes}");
    let notes = report(30_000, None, (GRANDMASTER, ""));
    let unused =
        "ptp4l on robot bounds no error of CLOCK_REALTIME, and is not used for the clocks: its time stamps (hardware)";
    assert!(notes.contains(unused) && !notes.contains("ptp4l on both"), "{notes}");
}

#[test]
fn a_file_that_another_command_writes_is_not_merged_into_and_a_link_stays_one() {
    let folder = recorded(Made::default());
    let merge = ["merge", "desk.mcap", "robot.mcap", "-o", "link.mcap"];
    std::os::unix::fs::symlink("run.mcap", folder.path("link.mcap")).unwrap();
    folder.taut(&merge).success();
    assert!(folder.path("link.mcap").is_symlink());
    let merged = std::fs::read(folder.path("run.mcap")).unwrap();
    let first = taut_recording::Output::open(&folder.path("run.mcap")).unwrap();
    folder.refuses(&merge, "link.mcap: another command writes it; name another file with -o");
    drop(first);
    assert_eq!(std::fs::read(folder.path("run.mcap")).unwrap(), merged);
}

#[test]
fn input_that_cannot_be_joined_is_one_line() {
    let folder = recorded(Made::default());
    let report = |a: &'static str, b: &'static str| ["report", a, b, "--join"];
    folder.refuses(&report("desk.mcap", "desk.mcap"), "desk.mcap: is given twice");
    std::fs::copy(folder.path("desk.mcap"), folder.path("copy.mcap")).unwrap();
    folder.refuses(&report("desk.mcap", "copy.mcap"), "have the same content");
    folder.refuses(&["report", "desk.mcap", "--join"], "takes 2 to 8 recordings, one of each host; 1 given");
    folder.refuses(&["report", "desk.mcap", "--clocks", "messages"], "are for --join");
    folder.refuses(&["merge", "desk.mcap", "robot.mcap", "-o", "desk.mcap"], "cannot be merged onto itself");
    folder.refuses(&[&report("desk.mcap", "robot.mcap")[..], &["--hosts", "a,a"]].concat(), "takes different names");
    folder.refuses(&[&report("desk.mcap", "robot.mcap")[..], &["--hosts", "a"]].concat(), "takes 2 names");
    folder.write("text.mcap", "no recording");
    folder.refuses(&report("desk.mcap", "text.mcap"), "text.mcap");

    let other = recorded(Made { has_states: false, first_id: 1 << 40, ..Made::default() });
    other.refuses(&["report", "desk.mcap", "robot.mcap", "--join"], "no message was stamped on both hosts");
    other.refuses(&["merge", "desk.mcap", "robot.mcap", "-o", "run.mcap"], "no message was stamped on both hosts");
    let left = std::fs::read_dir(other.0.path()).unwrap().flatten();
    let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().contains("run.mcap")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn hosts_of_one_name_and_a_host_that_rebooted_are_named() {
    let folder = recorded(Made::default());
    // A name and a boot are what a recording says of itself.
    let renamed = |to: &str, boot: &str| {
        let bytes = std::fs::read(folder.path("robot.mcap")).unwrap();
        let mut writer = None;
        let info = taut_recording::info(&bytes).unwrap();
        let facts = vec![("boot_id".to_owned(), boot.to_owned())];
        let info = taut_recording::Info { host: "desk".into(), facts, ..info };
        let contents = taut_recording::read(&bytes, &mut |record| {
            let create = || taut_recording::Writer::create(&folder.path(to), &info).unwrap();
            writer.get_or_insert_with(create).write(&record).unwrap();
        });
        writer.unwrap().finish(&contents.unwrap().ending.unwrap()).unwrap();
    };
    renamed("later.mcap", "another boot");
    folder.refuses(&["report", "desk.mcap", "later.mcap", "--join"], "of host \"desk\", which rebooted in between");
    renamed("same.mcap", "boot of desk");
    folder
        .refuses(&["merge", "desk.mcap", "same.mcap", "-o", "run.mcap"], "two recordings are of a host named \"desk\"");
    let named = ["report", "desk.mcap", "later.mcap", "--join", "--hosts", "desk,robot"];
    assert!(notes(&folder.json(&named)).contains("desk ↔ robot"));
}
