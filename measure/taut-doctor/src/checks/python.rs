//! The interpreter that `python3` starts.

use crate::{
    Check, Effect, Missing, Subject,
    machine::{Machine, hidden, unreadable},
    seen::{Look, Seen, good, not_applicable, warn},
};

const CALL: &str = "call:python3";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "python-sleep",
        subject: Subject::Python,
        title: "How time.sleep sleeps",
        reads: &["call:python3"],
        good: "Python 3.11 or newer",
        why: "older ones sleep in select(), which may end late by 0.1 % of the time",
        remedy: "use Python 3.11 or newer, or wait with a timerfd",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: sleep,
    },
    Check {
        id: "python-gil",
        subject: Subject::Python,
        title: "Interpreter lock (GIL)",
        reads: &["call:python3"],
        good: "none (free-threaded build), or a loop alone in its process",
        why: "a thread may keep the lock for a switch interval (5 ms), an extension without limit",
        remedy: "give the loop its own process, lower sys.setswitchinterval, or use a free-threaded build",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: gil,
    },
];

fn python(machine: &Machine<'_>) -> Result<String, Seen> {
    match machine.root.read(CALL) {
        Err(Missing::Absent) => Err(not_applicable("no python3 on the path")),
        Err(why) => Err(hidden(CALL, &why)),
        Ok(text) => Ok(text),
    }
}

fn field<'a>(text: &'a str, name: &str) -> Result<&'a str, Seen> {
    let line = text.lines().find_map(|line| line.split_once('=').filter(|(key, _)| *key == name));
    line.map(|(_, value)| value.trim()).ok_or_else(|| unreadable(CALL, text))
}

fn sleep(machine: &Machine<'_>) -> Look {
    let text = python(machine)?;
    let version = field(&text, "version")?;
    let number = |text: &str| text.parse::<u32>().map_err(|_| unreadable(CALL, version));
    let (major, minor) = version.split_once('.').ok_or_else(|| unreadable(CALL, version))?;
    Ok(match (number(major)?, number(minor)?) >= (3, 11) {
        true => good(format!("clock_nanosleep (Python {version})")),
        false => warn(format!("select (Python {version})")),
    })
}

fn gil(machine: &Machine<'_>) -> Look {
    let text = python(machine)?;
    let switch: f64 = field(&text, "switch_s")?.parse().map_err(|_| unreadable(CALL, &text))?;
    match field(&text, "gil")? {
        "0" => Ok(good("none: free-threaded build")),
        "1" => Ok(warn(format!("yes, switch interval {:.1} ms", switch * 1e3))),
        _ => Err(unreadable(CALL, &text)),
    }
}

#[cfg(test)]
mod tests {
    use crate::{State::*, checks::sees};

    #[test]
    fn the_interpreter_tells_how_it_sleeps_and_locks() {
        let machine =
            |version: &str, gil: u8| format!("== call:python3 ==\nversion={version}\ngil={gil}\nswitch_s=0.005\n");
        assert_eq!(sees("python-sleep", &machine("3.10", 1)).value, "select (Python 3.10)");
        assert_eq!(sees("python-sleep", &machine("3.11", 1)).state, Good);
        assert_eq!(sees("python-gil", &machine("3.13", 1)).value, "yes, switch interval 5.0 ms");
        assert_eq!(sees("python-gil", &machine("3.13", 0)).state, Good);
        assert_eq!(sees("python-gil", "== call:python3 ==\nx\n").state, NotVisible);
        assert_eq!(sees("python-gil", "== /proc/version ==\n\n").state, NotApplicable);
    }
}
