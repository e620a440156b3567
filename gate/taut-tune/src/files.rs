//! Files that apply a remedy for good: a shell prefix, a systemd drop-in, a ROS 2 launch snippet.

use crate::{Outside, Plan, Policy, Setting, ThreadRule, Threads, python};

/// A file to write, with what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its name.
    pub name: &'static str,
    /// How to use it, in one line.
    pub usage: &'static str,
    /// Its text.
    pub text: String,
    /// Whether it is a program.
    pub is_program: bool,
}

/// The name of the shell prefix.
pub const PREFIX: &str = "tuned.sh";

/// All files for a plan; none for an empty one. `gain` is a line about what was measured, for their heads.
pub fn files(plan: &Plan, gain: &str) -> Vec<Written> {
    if plan.is_empty() {
        return Vec::new();
    }
    let written = |name, usage, text, is_program| Written { name, usage, text, is_program };
    let mut all = vec![
        written(PREFIX, "put it before the command: ./tuned.sh COMMAND", shell(plan, gain), true),
        written("tuned.conf", "copy it to /etc/systemd/system/NAME.service.d/", systemd(plan, gain), false),
        written("tuned.launch.py", "use its prefix in a ROS 2 launch file", launch(gain), false),
    ];
    if let Some(module) = python::module(&plan.settings) {
        all.push(written("sitecustomize.py", "keep it beside tuned.sh", module, false));
    }
    all
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn shell(plan: &Plan, gain: &str) -> String {
    let mut text = format!("#!/bin/sh\n# {gain}\n# Usage: tuned.sh COMMAND [ARGUMENT…]\nset -e\n");
    if plan.settings.iter().any(|one| matches!(one, Setting::SwitchInterval(_) | Setting::CollectAfter(_))) {
        text += "here=$(CDPATH= cd -- \"$(dirname -- \"$0\")\" && pwd)\n";
        text += "export PYTHONPATH=\"$here${PYTHONPATH:+:$PYTHONPATH}\"\n";
    }
    for setting in &plan.settings {
        match setting {
            Setting::Variable(name, value) => text += &format!("export {name}={}\n", quoted(value)),
            Setting::TimerSlack(ns) => {
                text += &format!("echo {ns} > /proc/self/timerslack_ns # /proc/self is this shell\n");
            }
            Setting::Nice(nice) => text += &format!("renice -n {nice} -p $$ > /dev/null\n"),
            Setting::Fifo(priority) => text += &format!("chrt -f -p {priority} $$\n"),
            Setting::NoHugePages | Setting::SwitchInterval(_) | Setting::CollectAfter(_) => {}
        }
    }
    for outside in &plan.outside {
        text += &format!("{}\n", outside.command());
        if matches!(outside, Outside::Lower { .. } | Outside::Move { .. }) {
            text += "# These process numbers are those of the measurement; look them up again.\n";
        }
    }
    let run = match plan.settings.contains(&Setting::NoHugePages) {
        // No common program sets PR_SET_THP_DISABLE.
        true => {
            "python3 -c 'import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0); \
                 os.execvp(sys.argv[1], sys.argv[1:])' \"$@\""
        }
        false => "\"$@\"",
    };
    if plan.threads.is_empty() {
        return text + &format!("exec {run}\n");
    }
    text += &format!("{run} &\npid=$!\ntrap 'kill -TERM $pid' TERM INT HUP\n");
    text += "# Threads appear as the program starts: look for 10 s.\n";
    text += "for look in $(seq 100); do\n  for task in /proc/$pid/task/*; do\n    tid=${task##*/}\n";
    text += "    read -r name < \"$task/comm\" 2> /dev/null || continue\n    case \"$name\" in\n";
    for rule in &plan.threads {
        text += &rule_lines(rule);
    }
    text += "    esac\n  done\n  kill -0 $pid 2> /dev/null || break\n  sleep 0.1\ndone\nwait $pid\n";
    text
}

fn rule_lines(rule: &ThreadRule) -> String {
    let pattern = match &rule.threads {
        Threads::All => "*".to_owned(),
        Threads::Named(names) => names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(" | "),
    };
    let mut lines = format!("    {pattern})\n");
    if let Some(cpus) = &rule.cpus {
        lines += &format!("      taskset -cp {cpus} \"$tid\" > /dev/null || true\n");
    }
    match rule.policy {
        Some(Policy::Fifo(priority)) => lines += &format!("      chrt -f -p {priority} \"$tid\" || true\n"),
        Some(Policy::Deadline { runtime_ns, period_ns }) => {
            lines += &format!(
                "      chrt -d -R --sched-runtime {runtime_ns} --sched-deadline {period_ns} --sched-period {period_ns} -p 0 \"$tid\" || true\n"
            );
        }
        None => {}
    }
    lines + "      ;;\n"
}

fn systemd(plan: &Plan, gain: &str) -> String {
    let mut text = format!("# {gain}\n[Service]\n");
    for setting in &plan.settings {
        text += &match setting {
            Setting::Fifo(priority) => {
                format!("CPUSchedulingPolicy=fifo\nCPUSchedulingPriority={priority}\nLimitRTPRIO={priority}\n")
            }
            Setting::Nice(nice) => format!("Nice={nice}\n"),
            Setting::TimerSlack(ns) => format!("TimerSlackNSec={ns}\n"),
            Setting::Variable(name, value) => format!("Environment=\"{name}={value}\"\n"),
            Setting::NoHugePages => "# no transparent huge pages: start the command with tuned.sh\n".to_owned(),
            Setting::SwitchInterval(_) | Setting::CollectAfter(_) => {
                "# Python: Environment=\"PYTHONPATH=FOLDER\", with the folder of sitecustomize.py\n".to_owned()
            }
        };
    }
    for rule in &plan.threads {
        match (&rule.threads, &rule.cpus, rule.policy) {
            (Threads::All, Some(cpus), None) => text += &format!("CPUAffinity={cpus}\n"),
            _ => text += &format!("# {rule}: start the command with tuned.sh in ExecStart=\n"),
        }
    }
    for outside in &plan.outside {
        match outside {
            Outside::Write { path, .. } if path.to_string_lossy().contains("cpu.") => text += "CPUQuota=\n",
            outside => text += &format!("# as root, before the start: {}\n", outside.command()),
        }
    }
    text
}

fn launch(gain: &str) -> String {
    format!(
        "# {gain}\nimport os\n\nfrom launch import LaunchDescription\nfrom launch_ros.actions import Node\n\n\
         TUNED = os.path.join(os.path.dirname(os.path.abspath(__file__)), \"{PREFIX}\")\n\n\n\
         def generate_launch_description():\n    return LaunchDescription([\n        \
         Node(package=\"PACKAGE\", executable=\"NODE\", prefix=[TUNED]),\n    ])\n"
    )
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt, process::Command};

    use super::*;
    use crate::scheduler;

    #[test]
    fn the_shell_prefix_applies_what_a_program_inherits() {
        let folder = tempfile::tempdir().unwrap();
        let own = scheduler::scheduling(0).unwrap().nice;
        let settings = vec![
            Setting::Variable("TAUT_TEST_IT".into(), "it's set".into()),
            Setting::Nice(own.max(0) + 3),
            Setting::TimerSlack(4321),
        ];
        let all = files(&Plan { settings, ..Plan::default() }, "a gain");
        let path = folder.path().join(all[0].name);
        std::fs::write(&path, &all[0].text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let said = Command::new(&path)
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
        let text = shell(&Plan { threads, ..Plan::default() }, "a gain");
        let path = folder.path().join("tuned.sh");
        std::fs::write(&path, text).unwrap();
        let mut child = Command::new("sh").arg(&path).args(["sleep", "1000"]).spawn().unwrap();
        let sleeper = loop {
            let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
            let named = |pid: &i32| {
                std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == "sleep")
            };
            let found = children
                .split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .find(|pid: &i32| named(pid) && scheduler::cpus(*pid).is_ok_and(|cpus| cpus == one));
            match found {
                Some(pid) => break pid,
                None => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        let pid = rustix::process::Pid::from_raw(sleeper).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(137));
    }

    #[test]
    fn systemd_gets_what_it_has_words_for() {
        let plan = Plan {
            settings: vec![Setting::Fifo(50), Setting::Variable("A".into(), "1".into())],
            threads: vec![ThreadRule { threads: Threads::All, cpus: Some(vec![0, 1].into()), policy: None }],
            outside: vec![Outside::Write { path: "/sys/fs/cgroup/x/cpu.max".into(), value: "max".into() }],
        };
        let text = systemd(&plan, "a gain");
        for line in [
            "CPUSchedulingPolicy=fifo",
            "CPUSchedulingPriority=50",
            "Environment=\"A=1\"",
            "CPUAffinity=0-1",
            "CPUQuota=",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        assert!(files(&Plan::default(), "").is_empty());
    }
}
