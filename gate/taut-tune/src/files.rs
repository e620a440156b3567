//! Files that apply a remedy for good: a shell prefix, a systemd drop-in, a ROS 2 launch snippet, a profile of `taut doctor`.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use taut_doctor::quoted;
use taut_recording::printable;

use crate::{Outside, Plan, Policy, Remedy, Setting, ThreadRule, Threads, python};

/// A file to write, with what it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "File")]
pub struct Written {
    /// Its name.
    pub name: &'static str,
    /// How to use it, in one line.
    pub usage: &'static str,
    /// Its text.
    pub text: String,
    /// Whether it is a program.
    #[serde(skip)]
    pub is_program: bool,
}

const PROFILE: &str = "tuned.checks";
/// The name of the shell prefix.
pub const PREFIX: &str = "tuned.sh";

/// All files for these remedies; none where they change nothing. `measured`: lines about what was measured, for their heads.
pub fn files(remedies: &[&Remedy], plan: &Plan, measured: &[String]) -> Vec<Written> {
    if plan.is_empty() {
        return Vec::new();
    }
    // A command may have line breaks: what follows one would be a command of these files. Other control characters would be obeyed by a
    // terminal that shows them.
    let lines = measured.iter().flat_map(|text| text.split(['\n', '\r']));
    let measured: String = lines.map(|line| format!("# {}\n", printable(line.to_owned()))).collect();
    let measured = measured.as_str();
    let written = |name, usage, text, is_program| Written { name, usage, text, is_program };
    let mut all = vec![
        written(PREFIX, "put it before the command: ./tuned.sh COMMAND", shell(plan, measured), true),
        written("tuned.conf", "copy it to /etc/systemd/system/NAME.service.d/", systemd(plan, measured), false),
        written(
            "tuned.launch.py",
            "its prefix in a ROS 2 launch file; keep it beside tuned.sh",
            launch(measured),
            false,
        ),
    ];
    let profile = profile(remedies, measured);
    if !profile.is_empty() {
        all.push(written(
            PROFILE,
            "check the same settings later: taut doctor --profile FILE --pid PID",
            profile,
            false,
        ));
    }
    if let Some(module) = python::module(&plan.settings, false) {
        all.push(written("sitecustomize.py", "keep it beside tuned.sh", module, false));
    }
    all
}

/// The checks of `taut doctor` that are about these remedies, one a line.
fn profile(remedies: &[&Remedy], measured: &str) -> String {
    let mut checks: Vec<&str> = remedies.iter().flat_map(|remedy| remedy.row.checks.iter().copied()).collect();
    checks.extend(remedies.iter().filter_map(|remedy| remedy.id.strip_prefix("machine:")));
    checks.dedup();
    if checks.is_empty() {
        String::new()
    } else {
        format!("{measured}# taut doctor --profile {PROFILE} --pid PID\n{}\n", checks.join("\n"))
    }
}

/// Runs the command in the end: it has this process's number, and its signals and exit code are its own.
fn shell(plan: &Plan, measured: &str) -> String {
    let mut text = format!("#!/bin/sh\n{measured}# Usage: {PREFIX} COMMAND [ARGUMENT…]\n");
    if plan.settings.iter().any(Setting::is_of_module) {
        text += "here=$(CDPATH= cd -- \"$(dirname -- \"$0\")\" && pwd)\n";
        text += "export PYTHONPATH=\"$here${PYTHONPATH:+:$PYTHONPATH}\"\n";
    }
    for outside in &plan.outside {
        text += &format!("{}\n", outside.command());
    }
    if !plan.threads.is_empty() {
        text += &watcher(&plan.threads);
    }
    for setting in &plan.settings {
        match setting {
            Setting::Variable(name, value) => text += &format!("export {name}={}\n", quoted(value)),
            Setting::TimerSlack(ns) => {
                text += &format!("echo {ns} > /proc/self/timerslack_ns # /proc/self is this shell\n");
            }
            Setting::Nice(nice) => text += &or_say(&format!("renice -n {nice} -p $$ > /dev/null"), "-e"),
            Setting::Fifo(priority) => text += &or_say(&format!("chrt -f -p {priority} $$"), "-r"),
            // A launch file gives the node's script as the first word.
            Setting::Interpreter(path) => {
                text += "case \"${1##*/}\" in python | python[0-9]*) shift ;; esac\n";
                text += &format!("set -- {} \"$@\"\n", quoted(path));
            }
            _ => {}
        }
    }
    match plan.settings.contains(&Setting::NoHugePages) {
        // No common program sets PR_SET_THP_DISABLE.
        true => {
            text + "exec python3 -c 'import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0); \
                    os.execvp(sys.argv[1], sys.argv[1:])' \"$@\"\n"
        }
        false => text + "exec \"$@\"\n",
    }
}

/// A command that needs a permission: a robot that starts without it is better than one that does not start. `limit`: of ulimit.
fn or_say(command: &str, limit: &str) -> String {
    let why = format!("{PREFIX}: {command}: failed; without CAP_SYS_NICE it needs a higher limit (ulimit {limit})");
    format!("{command} || echo {} >&2\n", quoted(&why))
}

/// A process beside the program that gives its threads what their names have. It is nobody's child, so that the program need not wait for it.
fn watcher(rules: &[ThreadRule]) -> String {
    let mut text =
        "family() {\n  echo \"$1\"\n  for child in $(cat /proc/\"$1\"/task/*/children 2> /dev/null); do\n".to_owned();
    text += "    (family \"$child\")\n  done\n}\n";
    text += "# Threads appear as the program starts: look for 10 s. The first failure is reported.\n";
    text += "( (\n  failed=\n  say() {\n    [ -n \"$failed\" ] || [ ! -e \"$task\" ] || ";
    text += &format!("echo \"{PREFIX}: $1: failed for thread $name; see CAP_SYS_NICE\" >&3\n    failed=1\n  }}\n");
    text += "  for look in $(seq 100); do\n    kill -0 $$ 2> /dev/null || exit 0\n";
    text += "    for process in $(family $$); do\n      for task in /proc/\"$process\"/task/*; do\n";
    text += "        tid=${task##*/}\n        read -r name < \"$task/comm\" || continue\n";
    text += "        case \"$name\" in\n";
    for rule in rules {
        text += &rule_lines(rule);
    }
    text + "        esac\n      done\n    done\n    sleep 0.1\n  done\n) 3>&2 > /dev/null 2>&1 < /dev/null & )\n"
}

fn rule_lines(rule: &ThreadRule) -> String {
    let pattern = match &rule.threads {
        Threads::All => "*".to_owned(),
        Threads::Named(names) => names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(" | "),
    };
    // With a parenthesis before it "esac" is a name, too.
    let mut lines = format!("        ({pattern})\n");
    if let Some(cpus) = &rule.cpus {
        lines += &format!("          taskset -cp {cpus} \"$tid\" || say \"taskset -cp {cpus}\"\n");
    }
    match rule.policy {
        // A thread that has a higher one keeps it.
        Some(Policy::Fifo(priority)) => {
            lines += "          now=$(chrt -p \"$tid\" | sed -n 's/.*priority: //p')\n";
            lines += &format!("          [ \"${{now:-0}}\" -ge {priority} ] || ");
            lines += &format!("chrt -f -p {priority} \"$tid\" || say \"chrt -f -p {priority}\"\n");
        }
        Some(Policy::Deadline { runtime_ns, period_ns }) => {
            lines += &format!(
                "          chrt -d -R --sched-runtime {runtime_ns} --sched-deadline {period_ns} --sched-period {period_ns} -p 0 \"$tid\" || say \"chrt -d\"\n"
            );
        }
        None => {}
    }
    lines + "          ;;\n"
}

fn systemd(plan: &Plan, measured: &str) -> String {
    let mut text = format!(
        "{measured}# Then: systemctl daemon-reload && systemctl restart NAME. To undo, remove this file and do the same.\n[Service]\n"
    );
    for setting in &plan.settings {
        text += &match setting {
            Setting::Fifo(priority) => {
                format!("CPUSchedulingPolicy=fifo\nCPUSchedulingPriority={priority}\nLimitRTPRIO={priority}\n")
            }
            Setting::Nice(nice) => format!("Nice={nice}\n"),
            Setting::TimerSlack(ns) => format!("TimerSlackNSec={ns}\n"),
            Setting::Variable(name, value) => format!("Environment=\"{name}={value}\"\n"),
            Setting::NoHugePages => "# no transparent huge pages: start the command with tuned.sh\n".to_owned(),
            Setting::Interpreter(path) => format!("# in ExecStart=, {path} in place of the interpreter\n"),
            _ => "# Python: Environment=\"PYTHONPATH=FOLDER\", with the folder of sitecustomize.py\n".to_owned(),
        };
    }
    for rule in &plan.threads {
        match (&rule.threads, &rule.cpus, rule.policy) {
            (Threads::All, Some(cpus), None) => text += &format!("CPUAffinity={cpus}\n"),
            _ => text += &format!("# {rule}: start the command with tuned.sh in ExecStart=\n"),
        }
    }
    for outside in &plan.outside {
        let of_group = match outside {
            Outside::Write { path, .. } => of_group(path),
            _ => None,
        };
        match of_group {
            // The innermost group comes first, which is the unit's own; those above it are other units'.
            Some((_, line)) if !text.contains(line) => text += &format!("{line}\n"),
            Some((group, line)) => text += &format!("# as root, once: systemctl set-property {group} {line}\n"),
            None => text.extend(outside.command().lines().map(|line| format!("# as root, before the start: {line}\n"))),
        }
    }
    text
}

/// A file of a control group: the group's name, and the line of a unit that says the same.
fn of_group(path: &Path) -> Option<(&str, &'static str)> {
    let line = match path.file_name()?.to_str()? {
        "cpu.max" | "cpu.cfs_quota_us" => "CPUQuota=",
        "cpu.weight" | "cpu.shares" => "CPUWeight=10000",
        _ => return None,
    };
    Some((path.parent()?.file_name()?.to_str()?, line))
}

fn launch(measured: &str) -> String {
    format!(
        "{measured}# The folder of this file has {PREFIX}.\nimport os\n\nfrom launch import LaunchDescription\nfrom launch_ros.actions import Node\n\n\
         TUNED = os.path.join(os.path.dirname(os.path.abspath(__file__)), \"{PREFIX}\")\n\n\n\
         def generate_launch_description():\n    return LaunchDescription([\n        \
         Node(package=\"PACKAGE\", executable=\"NODE\", prefix=[TUNED]),\n    ])\n"
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::{Identity, scheduler};

    #[test]
    fn the_shell_prefix_applies_what_a_program_inherits() {
        let folder = tempfile::tempdir().unwrap();
        let own = scheduler::scheduling(0).unwrap().nice;
        let settings = vec![
            Setting::Variable("TAUT_TEST_IT".into(), "it's set".into()),
            Setting::Nice(own.max(0) + 3),
            Setting::TimerSlack(4321),
        ];
        let all = files(&[], &Plan { settings, ..Plan::default() }, &["a gain".to_owned()]);
        let path = folder.path().join(all[0].name);
        std::fs::write(&path, &all[0].text).unwrap();
        // Not by itself: a child that another test forks meanwhile has the file open for writing until it executes.
        let said = Command::new("sh")
            .arg(&path)
            .args(["sh", "-c", "echo \"$TAUT_TEST_IT\"; cat /proc/$$/timerslack_ns; nice"])
            .output()
            .unwrap();
        let wanted = format!("it's set\n4321\n{}\n", own.max(0) + 3);
        assert_eq!(String::from_utf8_lossy(&said.stdout), wanted, "{said:?}");
    }

    #[test]
    fn the_shell_prefix_finds_threads_by_name_and_passes_the_exit_code_on() {
        let folder = tempfile::tempdir().unwrap();
        let cpus = scheduler::cpus(0).unwrap();
        let one = taut_lab::Cpus::from(vec![cpus.iter().next().unwrap()]);
        let threads =
            vec![ThreadRule { threads: Threads::Named(vec!["sleep".into()]), cpus: Some(one.clone()), policy: None }];
        let text = shell(&Plan { threads, ..Plan::default() }, "# a gain\n");
        let path = folder.path().join("tuned.sh");
        std::fs::write(&path, text).unwrap();
        let mut child = Command::new("sh").arg(&path).args(["sleep", "1000"]).spawn().unwrap();
        let pid = child.id() as i32;
        // The program has become the process that was started, so that signals and its exit code are its own.
        while scheduler::cpus(pid).unwrap() != one {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap(), "sleep\n");
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().code(), None);
    }

    #[test]
    fn the_shell_prefix_reaches_what_the_program_starts_and_does_not_outlive_it() {
        let folder = tempfile::tempdir().unwrap();
        let one = taut_lab::Cpus::from(vec![scheduler::cpus(0).unwrap().iter().next().unwrap()]);
        let rule = ThreadRule { threads: Threads::Named(vec!["sleep".into()]), cpus: Some(one.clone()), policy: None };
        let path = folder.path().join("tuned.sh");
        std::fs::write(&path, shell(&Plan { threads: vec![rule], ..Plan::default() }, "# a gain\n")).unwrap();
        // It ends once its child has one CPU; with the pipe closed by all of them there is an output.
        let wait =
            format!("sleep 1000 & until taskset -cp $! | grep -q ': {one}$'; do :; done; kill $!; echo done; exit 7");
        let said = Command::new("sh").arg(&path).args(["sh", "-c", &wait]).output().unwrap();
        assert_eq!(
            (said.status.code(), String::from_utf8_lossy(&said.stdout).as_ref()),
            (Some(7), "done\n"),
            "{said:?}"
        );
    }

    #[test]
    fn the_profile_has_the_checks_of_the_remedies() {
        let remedy = |row: &str, id: &str| {
            let row = crate::TABLE.iter().find(|one| one.id == row).unwrap();
            Remedy { row, id: id.into(), plan: Plan::default(), against: Vec::new(), gain: 0.0 }
        };
        let (awake, governor) = (remedy("awake", "awake"), remedy("machine", "machine:governor"));
        assert_eq!(
            profile(&[&awake, &governor], "# a gain\n"),
            "# a gain\n# taut doctor --profile tuned.checks --pid PID\npm-qos\npm-qos-access\ngovernor\n"
        );
    }

    #[test]
    fn systemd_gets_the_group_of_the_unit_and_comments_for_the_rest() {
        let write = |path: &str| Outside::Write { path: path.into(), value: "10000".into() };
        let other = |name: &str| Identity { name: name.into(), ..Identity::of(std::process::id() as i32).unwrap() };
        let processes = vec![other("stress"), other("ffmpeg"), other("stress"), other("python3")];
        let groups = ["/sys/fs/cgroup/user.slice/robot.scope/cpu.weight", "/sys/fs/cgroup/user.slice/cpu.weight"];
        let mut outside: Vec<Outside> = groups.into_iter().map(write).collect();
        outside.push(Outside::Lower { processes, nice: 19 });
        let text = systemd(&Plan { outside, ..Plan::default() }, "# a gain\n");
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(
            lines[..2],
            ["CPUWeight=10000", "# as root, once: systemctl set-property user.slice CPUWeight=10000"]
        );
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[2..].iter().all(|line| line.starts_with("# as root, before the start: ")), "{text}");
        assert!(lines[3].contains("# python3 is the name of many programs"), "{text}");
    }

    /// A competitor that ends between two commands, or belongs to another user.
    #[test]
    fn the_shell_prefix_starts_the_command_whatever_it_may_not_change() {
        let folder = tempfile::tempdir().unwrap();
        let me = Identity { name: "taut-none".into(), ..Identity::of(std::process::id() as i32).unwrap() };
        let lower = Outside::Lower { processes: vec![me], nice: 19 };
        let text = shell(&Plan { outside: vec![lower], ..Plan::default() }, "# a gain\n");
        let text = text.replace("$(pgrep -x 'taut-none')", "4194304").replace("$(ls /proc/$pid/task)", "$pid");
        assert!(text.contains("for pid in 4194304; do"), "{text}");
        let path = folder.path().join("tuned.sh");
        std::fs::write(&path, text).unwrap();
        let said = Command::new("sh").arg(&path).args(["echo", "started"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "started\n", "{said:?}");
        assert!(String::from_utf8_lossy(&said.stderr).contains("process 4194304 is as it was"), "{said:?}");
    }

    /// In a launch file the first word is the node, not its interpreter.
    #[test]
    fn another_interpreter_takes_the_place_of_one_and_drops_no_script() {
        let folder = tempfile::tempdir().unwrap();
        let settings = vec![Setting::Interpreter("echo".into())];
        let path = folder.path().join("tuned.sh");
        std::fs::write(&path, shell(&Plan { settings, ..Plan::default() }, "# a gain\n")).unwrap();
        for (words, said) in [(&["/usr/bin/python3.12", "a.py"][..], "a.py\n"), (&["./a.py", "-x"], "./a.py -x\n")] {
            let output = Command::new("sh").arg(&path).args(words).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), said, "{output:?}");
        }
    }

    #[test]
    fn a_command_of_several_lines_is_a_comment_of_several_lines() {
        let settings = vec![Setting::Variable("A".into(), "1".into())];
        let plan = Plan { settings, ..Plan::default() };
        for file in files(&[], &plan, &["a gain".into(), "Measured: sh -c '\u{1b}[8mone\nrm -r x\rexit 3'".into()]) {
            let at = file.text.find("rm -r x").unwrap();
            assert!(file.text[..at].ends_with("# ") && !file.text.contains("\rexit"), "{}", file.text);
            assert!(file.text.contains(r"\u{1b}[8mone") && !file.text.contains('\u{1b}'), "{}", file.text);
        }
    }

    #[test]
    fn what_a_thread_may_not_get_is_said_once_and_the_program_runs() {
        let folder = tempfile::tempdir().unwrap();
        // No thread may have what no kernel has.
        let rule = ThreadRule { threads: Threads::All, cpus: Some(vec![4095].into()), policy: None };
        let path = folder.path().join("tuned.sh");
        std::fs::write(&path, shell(&Plan { threads: vec![rule], ..Plan::default() }, "")).unwrap();
        let said = folder.path().join("said");
        let mut shell = Command::new("sh");
        shell.arg(&path).args(["sh", "-c", "until [ -s said ]; do :; done; exit 7"]).current_dir(folder.path());
        let status = shell.stderr(std::fs::File::create(&said).unwrap()).status().unwrap();
        let words = std::fs::read_to_string(&said).unwrap();
        assert_eq!((status.code(), words.lines().count()), (Some(7), 1), "{words}");
        assert!(words.starts_with("tuned.sh: taskset -cp 4095: failed for thread "), "{words}");
    }

    #[test]
    fn systemd_gets_what_it_has_words_for() {
        let plan = Plan {
            settings: vec![Setting::Fifo(50), Setting::Variable("A".into(), "1".into())],
            threads: vec![ThreadRule { threads: Threads::All, cpus: Some(vec![0, 1].into()), policy: None }],
            outside: vec![Outside::Write { path: "/sys/fs/cgroup/x/cpu.max".into(), value: "max".into() }],
        };
        let text = systemd(&plan, "# a gain\n");
        for line in [
            "CPUSchedulingPolicy=fifo",
            "CPUSchedulingPriority=50",
            "Environment=\"A=1\"",
            "CPUAffinity=0-1",
            "CPUQuota=",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        assert!(files(&[], &Plan::default(), &[]).is_empty());
    }
}
