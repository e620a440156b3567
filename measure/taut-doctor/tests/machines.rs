//! Whole machines, written down: what the doctor finds on each, and that nothing a file may say upsets it.

use std::{collections::BTreeMap, fs, path::PathBuf};

use proptest::prelude::*;
use taut_doctor::{Asked, Finding, Missing, Remedy, Root, State, checks, examine, examine_one};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(format!("{name}.txt"))).unwrap()
}

fn machine(name: &str) -> Root {
    Root::recorded(&text(name)).unwrap()
}

/// Each machine with what its owner would name.
fn machines() -> Vec<(&'static str, Asked)> {
    let cpus = |cpus: &[u32]| Asked { cpus: cpus.to_vec(), ..Asked::default() };
    let named = |interface: &str, tty: &str| Asked {
        interface: Some(interface.into()),
        tty: Some(tty.into()),
        ..Asked::default()
    };
    vec![
        ("metal-rt", Asked { cpus: vec![2, 3], pid: Some(4711), ..named("enp1s0", "/dev/ttyUSB0") }),
        ("laptop", named("wlp0s20f3", "/dev/ttyS0")),
        ("raspberry-pi-5", Asked { cpus: vec![3], ..named("eth0", "/dev/ttyUSB0") }),
        ("raspberry-pi-4", named("wlan0", "ttyAMA0")),
        ("jetson-orin", cpus(&[])),
        ("cloud-vm", cpus(&[1])),
        ("container", cpus(&[2])),
        ("empty", named("eth0", "/dev/ttyUSB0")),
    ]
}

/// One line for each finding, and what it says to do.
fn told(findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        out += &format!("{:<14} {:<26} {}\n", finding.state.word(), finding.id, finding.value);
        if let Some(remedy) = &finding.remedy {
            out += &format!("{:41} {} {}\n", "", remedy.how(), remedy.text());
            out += &finding.undo.as_ref().map_or(String::new(), |undo| format!("{:41} undo {undo}\n", ""));
        }
    }
    out
}

#[test]
fn what_is_found_on_each_machine() {
    for (name, asked) in machines() {
        let diagnosis = examine(&machine(name), &asked);
        let facts: Vec<String> = diagnosis.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        insta::assert_snapshot!(name, format!("{}\n\n{}", facts.join("\n"), told(&diagnosis.findings)));
    }
}

#[test]
fn every_machine_that_is_written_down_is_examined() {
    let mut files: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().unwrap().strip_suffix(".txt").map(str::to_owned))
        .collect();
    let mut named: Vec<String> = machines().into_iter().map(|(name, _)| name.to_owned()).collect();
    files.sort();
    named.sort();
    assert_eq!(files, named);
}

#[test]
fn each_state_and_each_kind_of_remedy_is_met() {
    let findings: Vec<Finding> =
        machines().iter().flat_map(|(name, asked)| examine(&machine(name), asked).findings).collect();
    for state in State::ALL {
        assert!(findings.iter().any(|finding| finding.state == state), "{}", state.word());
    }
    for how in ["write", "hold", "run", "boot", "advise"] {
        assert!(findings.iter().any(|f| f.remedy.as_ref().is_some_and(|remedy| remedy.how() == how)), "{how}");
    }
    // A check that no machine satisfies, or that every one does, has not been tried. No guest here polls.
    let met = |id: &str, good: bool| findings.iter().any(|f| f.id == id && (f.state == State::Good) == good);
    let untried: Vec<&str> =
        checks().map(|c| c.id).filter(|id| !met(id, false) || (!met(id, true) && *id != "halt-polling")).collect();
    assert_eq!(untried, Vec::<&str>::new(), "no machine is good, or every one is");
}

#[test]
fn what_is_missing_or_closed_or_empty_is_never_good() {
    let mut paths: Vec<String> = machines().iter().flat_map(|(name, asked)| asked_paths(name, asked)).collect();
    paths.sort();
    paths.dedup();
    let absent = examine(&machine("empty"), &Asked::default());
    let closed = |why: Missing| {
        let mut root = Root::recorded("== /none ==\n").unwrap();
        paths.iter().for_each(|path| root.tell(path, Err(why.clone())));
        examine(&root, &Asked { cpus: vec![1], ..Asked::default() })
    };
    let mut root = Root::recorded("== /none ==\n").unwrap();
    paths.iter().filter(|path| !path.ends_with('/')).for_each(|path| root.tell(path, Ok(String::new())));
    let empty = examine(&root, &Asked { cpus: vec![1], ..Asked::default() });
    for (what, diagnosis) in [
        ("absent", absent),
        ("closed", closed(Missing::Denied)),
        ("failing", closed(Missing::Failed("EIO".into()))),
        ("empty", empty),
    ] {
        let good: Vec<&str> = diagnosis.findings.iter().filter(|f| f.state == State::Good).map(|f| f.id).collect();
        // An empty list of tickless CPUs is how the kernel says "none".
        let allowed: &[&str] = if what == "empty" { &["nohz-full"] } else { &[] };
        assert_eq!(good, allowed, "{what}");
    }
}

/// Where the loop's CPUs, the container and the hypervisor are told; any check may look there.
const COMMON: [&str; 14] = [
    "call:processes",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/isolated",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/sys/kernel/osrelease",
    "/sys/class/dmi/id/*",
    "/sys/hypervisor/type",
    "/proc/device-tree/model",
    "/.dockerenv",
    "/run/.containerenv",
    "/run/systemd/container",
    "/proc/1/cgroup",
    "/proc/PID/cgroup",
];

#[test]
fn the_table_says_what_is_read() {
    for (name, asked) in machines() {
        for check in checks() {
            let root = machine(name);
            examine_one(check, &root, &asked);
            for path in root.asked() {
                let declared = check.reads.iter().chain(&COMMON).any(|pattern| is_read(pattern, &path, &asked));
                assert!(declared, "{} reads {path} on {name}, which its row does not say", check.id);
            }
        }
    }
}

/// Whether a path is what a pattern of the table means; a folder is if something below it is.
fn is_read(pattern: &str, path: &str, asked: &Asked) -> bool {
    if let Some((group, file)) = pattern.split_once('/').filter(|(group, _)| *group == "CGROUP") {
        let folder = path.starts_with("/sys/fs/cgroup") && group == "CGROUP";
        return folder && (path.ends_with(&format!("/{file}")) || path.ends_with('/'));
    }
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let pattern = pattern
        .replace("/PID/", &format!("/{}/", asked.pid.map_or("self".into(), |pid| pid.to_string())))
        .replace("INTERFACE", &name(&asked.interface))
        .replace("TTY", name(&asked.tty).trim_start_matches("/dev/"));
    let (wanted, parts): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    let same = |(wanted, part): (&&str, &&str)| {
        *wanted == *part || *wanted == "*" || part.is_empty() || wildcard(wanted, part)
    };
    let is_folder = path.ends_with('/');
    (parts.len() == wanted.len() || is_folder && parts.len() <= wanted.len() + 1) && wanted.iter().zip(&parts).all(same)
}

/// "trip_point_*_type", "config-RELEASE".
fn wildcard(wanted: &str, part: &str) -> bool {
    let halves = wanted.split_once('*').or_else(|| wanted.split_once("RELEASE"));
    halves.is_some_and(|(before, after)| part.starts_with(before) && part.ends_with(after))
}

fn asked_paths(name: &str, asked: &Asked) -> Vec<String> {
    let root = machine(name);
    examine(&root, asked);
    root.asked()
}

#[test]
fn a_machine_written_down_again_is_the_same() {
    for (name, asked) in machines() {
        let root = machine(name);
        let first = examine(&root, &asked);
        let again = examine(&Root::recorded(&(root.written_down() + "== /none ==\n")).unwrap(), &asked);
        assert_eq!(first.findings, again.findings, "{name}");
    }
}

/// What the kernel writes, nearly what it writes, and anything.
fn contents() -> impl Strategy<Value = Result<String, Missing>> {
    prop_oneof![
        4 => "\\PC{0,60}".prop_map(Ok),
        2 => any::<String>().prop_map(Ok),
        2 => any::<i64>().prop_map(|n| Ok(n.to_string())),
        1 => any::<f64>().prop_map(|n| Ok(n.to_string())),
        2 => "[0-9,a-f-]{0,20}\n?".prop_map(Ok),
        2 => "([a-zA-Z_]{1,12}[:= ]{1,3}[0-9.]{0,20}\n?){0,6}".prop_map(Ok),
        1 => Just(Err(Missing::Absent)),
        1 => Just(Err(Missing::Denied)),
        1 => "\\PC{0,20}".prop_map(|why| Err(Missing::Failed(why))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_that_files_say_upsets_the_doctor(
        which in 0usize..8,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), contents()), 1..80),
    ) {
        let (name, asked) = machines().swap_remove(which);
        let paths = asked_paths(name, &asked);
        let mut root = machine(name);
        let changed: BTreeMap<&String, _> = changes.iter().map(|(at, answer)| (at.get(&paths), answer)).collect();
        for (path, answer) in changed {
            root.tell(path, answer.clone());
        }
        for finding in examine(&root, &asked).findings {
            let one_line = |text: &str| !text.contains(char::is_control);
            prop_assert!(one_line(&finding.value), "{}: {:?}", finding.id, finding.value);
            let Some(remedy) = finding.remedy else { continue };
            prop_assert!(matches!(finding.state, State::Bad | State::Warn));
            for text in remedy.commands().iter().chain(&remedy.undo_commands()).chain([&remedy.text()]) {
                prop_assert!(one_line(text), "{}: {text:?}", finding.id);
            }
            if let Remedy::Write(settings) = remedy {
                prop_assert!(settings.iter().all(|s| s.path.starts_with("/sys/") || s.path.starts_with("/proc/")));
            }
        }
    }
}
