//! `taut record` and `taut ros2 env` where the environment is ROS 2's: which processes load libtaut_ros2.so. What it records is
//! tested in trace/taut-ros2.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use assert_cmd::cargo::cargo_bin;
use taut_skip::{Need, skip};

/// A folder with a program that calls one tracepoint, linked to a libtracetools that does nothing.
struct Bench {
    folder: tempfile::TempDir,
}

const NODE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void ros_trace_rcl_init(const void *);
void ros_trace_callback_end(const void *);
int main(int argc, char **argv) {
  int n;
  ros_trace_rcl_init((void *)1);
  printf("started\n");
  fflush(stdout);
  if (argc > 1) getchar();
  for (n = 0; n < 100; n++) ros_trace_callback_end((void *)2);
  if (argc > 1) getchar();
  return 0;
}
"#;

/// Those that all releases have but two, and one that none has.
const TRACEPOINTS: [&str; 8] = [
    "rcl_init",
    "rcl_node_init",
    "rcl_publish",
    "rcl_publisher_init",
    "rcl_subscription_init",
    "callback_start",
    "callback_end",
    "rcl_dream",
];
const RCL: &str = "void ros_trace_rcl_init(const void *); void rcl_init(void) { ros_trace_rcl_init(0); }";

impl Bench {
    fn new() -> Bench {
        Bench::of_rcl(RCL)
    }

    /// With this as librcl.
    fn of_rcl(rcl: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let compile = |arguments: &[&str]| {
            let built = Command::new("gcc").args(arguments).current_dir(folder.path()).status();
            assert!(built.unwrap().success());
        };
        let define = |name: &&str| format!("void ros_trace_{name}(const void *p) {{ (void)p; }}\n");
        fs::write(folder.path().join("tracetools.c"), TRACEPOINTS.iter().map(define).collect::<String>()).unwrap();
        fs::write(folder.path().join("node.c"), NODE).unwrap();
        fs::write(folder.path().join("rcl.c"), rcl).unwrap();
        compile(&["-shared", "-fPIC", "tracetools.c", "-o", "libtracetools.so"]);
        compile(&["-shared", "-fPIC", "rcl.c", "-o", "librcl.so"]);
        let libraries = ["-L.", "-Wl,--no-as-needed", "-ltracetools", "-lrcl", "-Wl,-rpath,$ORIGIN"];
        compile(&[&["node.c"], &libraries[..], &["-o", "node"]].concat());
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// taut in an environment without ROS 2, with a cache of its own.
    fn taut(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin!("taut"));
        command.args(arguments).current_dir(self.folder.path()).env("XDG_CACHE_HOME", self.path("cache"));
        for name in ["TAUT_SESSION", "LD_PRELOAD", "ROS_DISTRO", "AMENT_PREFIX_PATH"] {
            command.env_remove(name);
        }
        command
    }

    fn record(&self, options: &[&str], words: &[&str]) -> Command {
        let recorded = [&["record", "--tier", "stamps", "-o", "run.mcap"], options, &["--"], words].concat();
        self.taut(&recorded)
    }

    fn ros_events(&self) -> u64 {
        let bytes = fs::read(self.path("run.mcap")).unwrap();
        taut_recording::read(&bytes, &mut |_| {}).unwrap().ros_events
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn nodes_are_recorded_where_the_environment_is_ros_2_s_and_it_is_said() {
    let bench = Bench::new();
    for (name, value) in [("ROS_DISTRO", "kilted"), ("AMENT_PREFIX_PATH", "/opt/ros")] {
        let output = bench.record(&[], &["./node"]).env(name, value).output().unwrap();
        let text = said(&output);
        assert!(output.status.success(), "{text}");
        let lines: Vec<_> = text.lines().filter(|line| line.contains("libtaut_ros2.so")).collect();
        assert!(lines.len() == 1 && lines[0].contains("--no-ros2 turns that off"), "{text}");
        assert!(text.contains("100 ROS 2 events"), "{text}");
        assert_eq!(bench.ros_events(), 100);
    }
}

#[test]
fn without_ros_2_or_against_the_users_will_nothing_is_preloaded() {
    let bench = Bench::new();
    let off: [(&[&str], Option<&str>); 2] = [(&[], None), (&["--no-ros2"], Some("kilted"))];
    for (options, release) in off {
        let output =
            bench.record(options, &["./node"]).envs(release.map(|release| ("ROS_DISTRO", release))).output().unwrap();
        assert!(output.status.success() && !said(&output).contains("ros2.so"), "{}", said(&output));
        assert_eq!(bench.ros_events(), 0);
    }
}

#[test]
fn what_is_preloaded_already_stays() {
    let bench = Bench::new();
    let show = ["sh", "-c", "echo $LD_PRELOAD"];
    let own = bench.path("libtracetools.so").display().to_string();
    let output = bench.record(&[], &show).env("ROS_DISTRO", "jazzy").env("LD_PRELOAD", &own).output().unwrap();
    let preload = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = preload.trim().split(':').collect();
    assert!(names.len() == 2 && names[0] == own && names[1].ends_with("/libtaut_ros2.so"), "{preload}");
    assert!(!Path::new(names[1]).exists(), "it goes with the session");
}

/// Nodes that were started by hand, and then a recorder; in one session, whose past it does not record.
#[test]
fn nodes_with_the_environment_are_recorded_later() {
    let bench = Bench::new();
    let session = bench.path("session").display().to_string();
    let output = bench.taut(&["ros2", "env", "--session", &session]).env("LD_PRELOAD", "libasan.so").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::metadata(&session).unwrap().permissions().mode() & 0o777, 0o700);
    let lines = String::from_utf8(output.stdout).unwrap();
    let cache = bench.path("cache/taut/libtaut_ros2.so").display().to_string();
    assert_eq!(lines, format!("export TAUT_SESSION={session}\nexport LD_PRELOAD=libasan.so:{cache}\n"));
    let systemd = bench.taut(&["ros2", "env", "--session", &session, "--format", "systemd"]).output().unwrap();
    let unit = format!("[Service]\nEnvironment=\"TAUT_SESSION={session}\"\nEnvironment=\"LD_PRELOAD={cache}\"\n");
    assert_eq!(String::from_utf8(systemd.stdout).unwrap(), unit);

    let mut node = Command::new(bench.path("node"));
    node.arg("wait").env("TAUT_SESSION", &session).env("LD_PRELOAD", &cache);
    let mut node = node.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut started = [0; 8];
    std::io::Read::read_exact(node.stdout.as_mut().unwrap(), &mut started).unwrap();
    let pid = node.id().to_string();
    let recorder = bench
        .taut(&["record", "--tier", "stamps", "-o", "run.mcap", "--pid", &pid])
        .stderr(std::process::Stdio::piped())
        .spawn();
    let recorder = recorder.unwrap();
    while !Path::new(&session).join("recorder").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::io::Write::write_all(node.stdin.as_mut().unwrap(), b"\n\n").unwrap();
    assert!(node.wait().unwrap().success());
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(bench.ros_events(), 100);
}

/// As the loader does for a program with file capabilities; and a program that has the library is none of them.
#[test]
fn a_node_that_does_not_load_the_library_is_named_with_the_remedy() {
    let bench = Bench::new();
    let run = |seconds: u64, words: &[&str]| {
        let mut command = bench.record(&["--duration", &seconds.to_string()], words);
        said(&command.env("ROS_DISTRO", "kilted").stdin(std::process::Stdio::piped()).output().unwrap())
    };
    let warned = |text: &str| text.contains("is a ROS 2 node without libtaut_ros2.so") && text.contains("setcap -r");
    // A busy machine looks seldom.
    let lengths = [3, 10, 60];
    assert!(
        lengths
            .iter()
            .any(|seconds| warned(&run(*seconds, &["env", "-u", "LD_PRELOAD", "sh", "-c", "sleep 600 | ./node wait"])))
    );
    assert!(!warned(&run(3, &["sh", "-c", "sleep 600 | ./node wait"])));
}

/// Of a node that runs already, and of which `taut record --pid` says what it lacks; `None` where it may not be recorded.
fn is_warned_of_attached(bench: &Bench, environment: &[(&str, &str)], warning: &str) -> Option<bool> {
    let mut node = Command::new(bench.path("node"));
    node.arg("wait").envs(environment.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().unwrap();
    std::io::Read::read_exact(node.stdout.as_mut().unwrap(), &mut [0; 8]).unwrap();
    let pid = node.id().to_string();
    let outputs = ["3", "10", "60"].into_iter().map(|seconds| {
        let record = ["record", "--ignore-loss", "-o", "run.mcap", "--pid", &pid, "--duration", seconds];
        bench.taut(&record).output().unwrap()
    });
    let last = outputs.into_iter().find(|output| !output.status.success() || said(output).contains(warning));
    node.kill().unwrap();
    node.wait().unwrap();
    match last {
        Some(output) if output.status.code() == Some(3) => None,
        Some(output) => Some(said(&output).contains(warning)),
        None => Some(false),
    }
}

#[test]
fn of_an_attached_node_it_is_said_what_it_was_started_without() {
    let bench = Bench::new();
    let without = "is a ROS 2 node that was started without libtaut_ros2.so, so its events are not recorded: start it where `taut ros2 env`";
    match is_warned_of_attached(&bench, &[], without) {
        Some(is_warned) => assert!(is_warned),
        None => skip(Need::Perf, "without stamps or kernel events nothing is recorded of it"),
    }
}

#[test]
fn of_an_attached_node_the_tracepoints_are_named_that_its_ros_2_lacks() {
    let bench = Bench::new();
    let session = bench.path("session").display().to_string();
    assert!(bench.taut(&["ros2", "env", "--session", &session]).output().unwrap().status.success());
    let library = bench.path("cache/taut/libtaut_ros2.so").display().to_string();
    let environment = [("TAUT_SESSION", session.as_str()), ("LD_PRELOAD", library.as_str())];
    let lacking =
        "lacks tracepoints of each release from Humble on: ros_trace_rmw_publish, ros_trace_rmw_take; all else";
    assert_eq!(is_warned_of_attached(&bench, &environment, lacking), Some(true));
}

/// What is found when a process has been seen a few times; a busy machine looks seldom.
fn is_warned(bench: &Bench, warnings: &[&str]) -> bool {
    [3, 10, 60].iter().any(|seconds: &u64| {
        // The node waits for the end of this, which comes after its own.
        let (input, _held) = std::io::pipe().unwrap();
        let mut command = bench.record(&["--duration", &seconds.to_string()], &["./node", "wait"]);
        let text = said(&command.env("ROS_DISTRO", "dream").stdin(input).output().unwrap());
        warnings.iter().all(|warning| text.contains(warning))
    })
}

#[test]
fn of_an_unknown_distribution_the_tracepoints_are_named_and_the_rest_is_recorded() {
    let bench = Bench::new();
    let unknown = "is a node of a ROS 2 that has tracepoints that this taut does not know: ros_trace_rcl_dream; and";
    let lacking =
        "lacks tracepoints of each release from Humble on: ros_trace_rmw_publish, ros_trace_rmw_take; all else";
    assert!(is_warned(&bench, &[unknown, lacking]));
    assert_eq!(bench.ros_events(), 0, "it waits still");
    assert!(bench.record(&[], &["./node"]).env("ROS_DISTRO", "dream").output().unwrap().status.success());
    assert_eq!(bench.ros_events(), 100);
}

#[test]
fn a_ros_2_that_was_built_without_tracepoints_is_named() {
    let bench = Bench::of_rcl("void rcl_init(void) {}");
    assert!(is_warned(&bench, &["is a ROS 2 node with a librcl.so built without tracepoints (TRACETOOLS_DISABLED)"]));
}

#[test]
fn a_session_of_others_is_refused_in_one_line() {
    let bench = Bench::new();
    fs::create_dir(bench.path("open")).unwrap();
    fs::set_permissions(bench.path("open"), fs::Permissions::from_mode(0o755)).unwrap();
    let output = bench.taut(&["ros2", "env", "--session", "open"]).output().unwrap();
    let text = said(&output);
    assert!(!output.status.success() && text.lines().count() == 1 && text.contains("chmod 700"), "{text}");
}

/// Another process of several nodes, in which timers begin three chains; /topic1 is on one of them.
#[test]
fn two_recordings_are_compared_and_gated_by_the_chains_through_a_topic_or_node() {
    let bench = Bench::new();
    let sample =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../trace/taut-import/tests/data/ros2-caret-sample/end_to_end_sample");
    let imported = bench.taut(&["import", "ctf", sample, "-o", "run.mcap"]).output().unwrap();
    assert!(imported.status.success(), "{}", said(&imported));
    let compared = |filter: &[&str]| {
        let output = bench.taut(&[&["compare", "run.mcap", "run.mcap"], filter].concat()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), said(&output))
    };
    let (code, text, _) = compared(&["--topic", "topic1"]);
    assert_eq!(code, Some(0));
    assert!(text.contains("/sensor_dummy_node timer 100 ms → /actuator_dummy_node callback /topic4 end"), "{text}");
    let (code, text, _) = compared(&["--node", "/drive_node"]);
    assert_eq!(code, Some(0));
    assert!(!text.contains("/sensor_dummy_node timer"), "{text}");
    let known =
        "run.mcap: --topic /imag: no chain passes through it; there are /drive, /topic1, /topic2, /topic3, /topic4";
    let (code, _, said_of_it) = compared(&["--topic", "/imag"]);
    assert_eq!((code, said_of_it.trim_end()), (Some(2), format!("taut: {known}").as_str()));
    let gate = ["gate", "--baseline", "run.mcap", "--candidate", "run.mcap", "--topic", "/imag"];
    let gated = bench.taut(&gate).output().unwrap();
    assert_eq!(gated.status.code(), Some(2));
    assert!(said(&gated).starts_with("taut: run.mcap has no chain \"--topic /imag\"; it has /drive_node timer"));
}
