//! What this user may do; of the process named by `--pid`, else of this one.

use crate::{
    Check, Effect, Missing, Subject,
    machine::{Machine, number, unreadable, value},
    seen::{Look, Seen, bad, good, not_visible, warn},
};

/// Bits of CapEff (linux/capability.h).
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;
const CAP_PERFMON: u32 = 38;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "rt-priority",
        subject: Subject::Limits,
        title: "May run SCHED_FIFO",
        reads: &["call:sched_setscheduler", "/proc/PID/limits", "/proc/PID/status"],
        good: "permitted",
        why: "an ordinary thread waits for others, on a busy machine for ms",
        remedy: "`@realtime - rtprio 98` in /etc/security/limits.d, LimitRTPRIO=98 in the unit",
        undo: "delete the line",
        effect: Effect::Tail,
        reboot: false,
        look: rt_priority,
    },
    Check {
        id: "rt-time",
        subject: Subject::Limits,
        title: "Limit on real-time CPU time",
        reads: &["/proc/PID/limits"],
        good: "unlimited",
        why: "SIGXCPU kills a real-time thread that computes longer without sleeping (rtkit: 200 ms)",
        remedy: "LimitRTTIME=infinity in the unit, or `ulimit -R unlimited`",
        undo: "delete the line",
        effect: Effect::Safety,
        reboot: false,
        look: rt_time,
    },
    Check {
        id: "locked-memory",
        subject: Subject::Limits,
        title: "May lock memory",
        reads: &["/proc/PID/limits", "/proc/PID/status"],
        good: "unlimited, or CAP_IPC_LOCK",
        why: "without mlockall pages may be taken away; with a low limit allocations fail",
        remedy: "`@realtime - memlock unlimited` in /etc/security/limits.d, LimitMEMLOCK=infinity in the unit",
        undo: "delete the line",
        effect: Effect::Tail,
        reboot: false,
        look: locked_memory,
    },
    Check {
        id: "perf-access",
        subject: Subject::Limits,
        title: "May see kernel events",
        reads: &["/proc/PID/status", "/proc/sys/kernel/perf_event_paranoid"],
        good: "CAP_PERFMON, or perf_event_paranoid -1",
        why: "without it taut cannot name the thread or interrupt that took the loop's time",
        remedy: "setcap cap_perfmon+ep on the taut binary, or echo -1 > /proc/sys/kernel/perf_event_paranoid",
        undo: "setcap -r on the taut binary",
        effect: Effect::Safety,
        reboot: false,
        look: perf_access,
    },
];

/// The soft limit of a line of /proc/PID/limits; `None` is "unlimited".
fn limit(machine: &Machine<'_>, name: &str) -> Result<Option<u64>, Seen> {
    let path = machine.own("limits");
    let text = machine.text(&path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    match line.and_then(|rest| rest.split_whitespace().next()) {
        None => Err(not_visible(format!("{path} has no line {name:?}"))),
        Some("unlimited") => Ok(None),
        Some(n) => Ok(Some(number(&path, n)?)),
    }
}

fn has(machine: &Machine<'_>, capability: u32) -> Result<bool, Seen> {
    let path = machine.own("status");
    let text = machine.text(&path)?;
    let bits = value(&text, "CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok());
    Ok(bits.ok_or_else(|| not_visible(format!("{path} has no CapEff")))? >> capability & 1 == 1)
}

fn rt_priority(machine: &Machine<'_>) -> Look {
    let container = "docker run --cap-add sys_nice --ulimit rtprio=98";
    let refused = |text: &str| match machine.is_container() {
        true => bad(text).advise(container),
        false => bad(text),
    };
    if machine.asked.pid.is_none() {
        match machine.root.read("call:sched_setscheduler") {
            Ok(text) if text.trim() == "permitted" => return Ok(good("permitted, tried")),
            Ok(text) => return Err(unreadable("call:sched_setscheduler", &text)),
            Err(Missing::Denied) => return Ok(refused("refused when tried")),
            Err(Missing::Failed(why)) => return Err(not_visible(why)),
            Err(Missing::Absent) => {}
        }
    }
    if has(machine, CAP_SYS_NICE)? {
        return Ok(good("CAP_SYS_NICE"));
    }
    Ok(match limit(machine, "Max realtime priority")? {
        Some(0) => refused("priority limit 0, no CAP_SYS_NICE"),
        Some(n) => good(format!("up to priority {n}")),
        None => good("any priority"),
    })
}

fn rt_time(machine: &Machine<'_>) -> Look {
    Ok(match limit(machine, "Max realtime timeout")? {
        None => good("unlimited"),
        Some(us) => warn(format!("{us} µs")),
    })
}

/// A small program with its libraries and stacks has less.
const ENOUGH_BYTES: u64 = 256 << 20;

fn locked_memory(machine: &Machine<'_>) -> Look {
    let bytes = match limit(machine, "Max locked memory")? {
        None => return Ok(good("unlimited")),
        Some(bytes) => bytes,
    };
    if has(machine, CAP_IPC_LOCK)? {
        return Ok(good("CAP_IPC_LOCK: the limit does not count"));
    }
    let text = format!("{} KiB", bytes / 1024);
    let finding = if bytes < ENOUGH_BYTES { bad(text) } else { warn(text) };
    Ok(if machine.is_container() {
        finding.advise("docker run --ulimit memlock=-1, or --cap-add ipc_lock")
    } else {
        finding
    })
}

fn perf_access(machine: &Machine<'_>) -> Look {
    for (bit, name) in [(CAP_PERFMON, "CAP_PERFMON"), (CAP_SYS_ADMIN, "CAP_SYS_ADMIN")] {
        if has(machine, bit)? {
            return Ok(good(name));
        }
    }
    const FILE: &str = "/proc/sys/kernel/perf_event_paranoid";
    let level: i32 = machine.number(FILE)?;
    let text = format!("perf_event_paranoid {level}, no CAP_PERFMON");
    Ok(match level {
        ..0 => good(format!("perf_event_paranoid {level}")),
        _ if machine.is_container() => warn(text).advise("docker run --cap-add perfmon"),
        _ => warn(text).write(FILE, "-1", level.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use crate::{
        Asked,
        State::*,
        checks::{sees, sees_asked},
    };

    const LIMITS: &str = "== /proc/self/limits ==\nLimit Soft Limit Hard Limit Units\n\
        Max locked memory         8388608              8388608              bytes\n\
        Max realtime priority     0                    0                    \n\
        Max realtime timeout      200000               200000               us\n";

    fn status(capabilities: &str) -> String {
        format!("{LIMITS}== /proc/self/status ==\nName:\tx\nCapEff:\t{capabilities}\nCpus_allowed_list:\t0-3\n")
    }

    #[test]
    fn a_capability_outdoes_a_limit() {
        assert_eq!(sees("rt-priority", &status("0000000000000000")).state, Bad);
        assert_eq!(sees("rt-priority", &status("0000000000800000")).value, "CAP_SYS_NICE");
        assert_eq!(sees("locked-memory", &status("0000000000000000")).value, "8192 KiB");
        assert_eq!(sees("locked-memory", &status("0000000000004000")).state, Good);
        assert_eq!(sees("rt-time", &status("0")).value, "200000 µs");
        assert_eq!(sees("perf-access", &status("0000004000000000")).value, "CAP_PERFMON");
    }

    #[test]
    fn what_was_tried_outdoes_what_is_written() {
        let tried = status("0000000000800000") + "== call:sched_setscheduler == EPERM\n";
        assert_eq!(sees("rt-priority", &tried).state, Bad, "a container may refuse in spite of the capability");
        let other = sees_asked(
            "rt-priority",
            &tried.replace("/proc/self/", "/proc/9/"),
            &Asked { pid: Some(9), ..Asked::default() },
        );
        assert_eq!(other.state, Good, "what this process may do says nothing of another");
    }
}
