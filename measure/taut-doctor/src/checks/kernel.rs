//! How the kernel was built and booted.

use crate::{
    Check, Effect, Subject,
    machine::{Machine, hidden, value},
    seen::{Look, bad, good, not_applicable, not_visible, warn},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "preemption",
        subject: Subject::Kernel,
        title: "Preemption model",
        reads: &[
            "/sys/kernel/realtime",
            "/proc/sys/kernel/version",
            "/sys/kernel/debug/sched/preempt",
            "/proc/cmdline",
            "/proc/config.gz",
            "/boot/config-RELEASE",
        ],
        good: "PREEMPT_RT",
        why: "without it system calls and drivers delay any loop while they run",
        remedy: "install a PREEMPT_RT kernel (in mainline since 6.12); until then boot with preempt=full",
        undo: "boot the former kernel",
        effect: Effect::Tail,
        reboot: true,
        look: preemption,
    },
    Check {
        id: "high-resolution-timers",
        subject: Subject::Kernel,
        title: "Timers",
        reads: &["call:clock_getres"],
        good: "1 ns",
        why: "without them every sleep ends on a tick of 1 to 10 ms",
        remedy: "boot without highres=off and nohz=off, or a kernel built with CONFIG_HIGH_RES_TIMERS",
        undo: "boot the former kernel",
        effect: Effect::Tail,
        reboot: true,
        look: high_resolution,
    },
    Check {
        id: "threaded-interrupts",
        subject: Subject::Kernel,
        title: "Interrupt threads",
        reads: &["/proc/cmdline", "/sys/kernel/realtime", "/proc/sys/kernel/version"],
        good: "PREEMPT_RT, or threadirqs",
        why: "a handler that is a thread can have a lower priority than the loop",
        remedy: "kernel command line: threadirqs",
        undo: "take threadirqs off the kernel's command line again",
        effect: Effect::Tail,
        reboot: true,
        look: threaded_interrupts,
    },
    Check {
        id: "mitigations",
        subject: Subject::Kernel,
        title: "CPU vulnerability mitigations",
        reads: &["/proc/cmdline", "/sys/devices/system/cpu/vulnerabilities/*"],
        good: "off where only your own code runs, else on",
        why: "each system call and interrupt costs up to several µs more",
        remedy: GIVE_UP_MITIGATIONS,
        undo: "take mitigations=off off the kernel's command line again",
        effect: Effect::Throughput,
        reboot: true,
        look: mitigations,
    },
    Check {
        id: "kernel-debugging",
        subject: Subject::Kernel,
        title: "Debugging built into the kernel",
        reads: &["/proc/config.gz", "/boot/config-RELEASE"],
        good: "none of lock proving, sanitizers, latency tracers",
        why: "each makes locks, allocations or interrupts many times slower",
        remedy: "use the distribution's kernel, or build without these options",
        undo: "boot the former kernel",
        effect: Effect::Tail,
        reboot: true,
        look: debugging,
    },
    Check {
        id: "tracing",
        subject: Subject::Kernel,
        title: "Tracers left on",
        reads: &["/sys/kernel/tracing/current_tracer", "/sys/kernel/tracing/set_event"],
        good: "tracer nop, no events",
        why: "each traced function and event takes time",
        remedy: "echo nop > /sys/kernel/tracing/current_tracer; echo > /sys/kernel/tracing/set_event",
        undo: "turn the tracer on again with the tool that did",
        effect: Effect::Throughput,
        reboot: false,
        look: tracing,
    },
    Check {
        id: "audit",
        subject: Subject::Kernel,
        title: "System call audit",
        reads: &["call:audit_get", "/proc/cmdline"],
        good: "off",
        why: "audited system calls are slower, and are logged to disk",
        remedy: "auditctl -e 0, or kernel command line: audit=0",
        undo: "auditctl -e 1",
        effect: Effect::Throughput,
        reboot: false,
        look: audit,
    },
];

fn preemption(machine: &Machine<'_>) -> Look {
    if machine.is_preempt_rt() {
        return Ok(good("PREEMPT_RT"));
    }
    let version = machine.text("/proc/sys/kernel/version")?;
    let dynamic = version.contains("PREEMPT_DYNAMIC");
    let in_force = machine
        .maybe("/sys/kernel/debug/sched/preempt")
        .and_then(|modes| Some(modes.split_once('(')?.1.split_once(')')?.0.to_owned()));
    let model = in_force.or_else(|| if dynamic { dynamic_model(machine) } else { Some(built_model(&version).into()) });
    Ok(match model.as_deref() {
        Some("full") => warn("full, without PREEMPT_RT"),
        Some("lazy") => warn("lazy: ordinary threads wait for a tick").boot("preempt=full"),
        Some(model @ ("none" | "voluntary")) if dynamic => bad(model).boot("preempt=full"),
        Some(model @ ("none" | "voluntary")) => bad(model),
        Some(model) => return Err(not_visible(format!("{model:?}, which taut does not know"))),
        None => return Err(not_visible("PREEMPT_DYNAMIC: the mode in force shows only in debugfs or the build")),
    })
}

/// What a kernel that can choose has chosen: the command line, else the build's default.
fn dynamic_model(machine: &Machine<'_>) -> Option<String> {
    const BUILT: [(&str, &str); 4] = [
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
    ];
    let built = || BUILT.iter().find(|(option, _)| machine.built_with(option) == Some(true)).map(|(_, model)| *model);
    machine.boot_word("preempt").or_else(built).map(str::to_owned)
}

/// What /proc/version says of a kernel that cannot choose.
fn built_model(version: &str) -> &'static str {
    if version.contains("PREEMPT") { "full" } else { "none" }
}

fn high_resolution(machine: &Machine<'_>) -> Look {
    let ns: u64 = machine.number("call:clock_getres")?;
    Ok(if ns == 1 { good("1 ns") } else { bad(format!("ticks of {} µs", ns / 1000)) })
}

fn threaded_interrupts(machine: &Machine<'_>) -> Look {
    if machine.is_preempt_rt() {
        return Ok(good("PREEMPT_RT: all are threads"));
    }
    machine.needs_command_line()?;
    Ok(match machine.boot_word("threadirqs") {
        Some(_) => good("threadirqs"),
        None => warn("handlers run before any thread").boot("threadirqs"),
    })
}

/// Advice and no boot word: a script that offers it beside others would be followed without reading why not.
const GIVE_UP_MITIGATIONS: &str = "leave them on where others' code runs; a closed machine may give up the \
     protection of memory between programs: mitigations=off on the kernel's command line";

fn mitigations(machine: &Machine<'_>) -> Look {
    const FOLDER: &str = "/sys/devices/system/cpu/vulnerabilities";
    if machine.boot_word("mitigations") == Some("off") {
        return Ok(good("off"));
    }
    let names = machine.root.list(FOLDER).map_err(|why| hidden(FOLDER, &why))?;
    let told: Vec<(&String, String)> = names
        .iter()
        .filter_map(|name| Some((name, machine.maybe(&format!("{FOLDER}/{name}"))?)))
        .filter(|(_, state)| !state.is_empty())
        .collect();
    if told.is_empty() {
        return Err(not_visible(format!("{FOLDER} says nothing")));
    }
    let active = told.iter().filter(|(_, state)| state.contains("Mitigation"));
    let active: Vec<&str> = active.map(|(name, _)| name.as_str()).collect();
    Ok(match active.as_slice() {
        [] => good(format!("none active of {} known", told.len())),
        some => warn(format!("{} active: {}", some.len(), some.join(", "))).advise(GIVE_UP_MITIGATIONS),
    })
}

fn debugging(machine: &Machine<'_>) -> Look {
    const OPTIONS: [&str; 10] = [
        "CONFIG_PROVE_LOCKING",
        "CONFIG_LOCK_STAT",
        "CONFIG_KASAN",
        "CONFIG_KCSAN",
        "CONFIG_DEBUG_ATOMIC_SLEEP",
        "CONFIG_DEBUG_KMEMLEAK",
        "CONFIG_DEBUG_OBJECTS",
        "CONFIG_SLUB_DEBUG_ON",
        "CONFIG_IRQSOFF_TRACER",
        "CONFIG_PREEMPT_TRACER",
    ];
    let Some(config) = machine.config() else {
        return Err(not_visible("neither /proc/config.gz nor /boot/config-* can be read"));
    };
    if !config.contains("CONFIG_") {
        return Err(not_visible("the kernel's build options are empty here"));
    }
    let on: Vec<&str> = OPTIONS.into_iter().filter(|option| machine.built_with(option) == Some(true)).collect();
    Ok(if on.is_empty() { good("none") } else { bad(on.join(", ")) })
}

fn tracing(machine: &Machine<'_>) -> Look {
    const FOLDER: &str = "/sys/kernel/tracing";
    let tracer = machine.text(&format!("{FOLDER}/current_tracer"))?;
    let events = machine.maybe(&format!("{FOLDER}/set_event")).map_or(0, |events| events.lines().count());
    Ok(match (tracer.as_str(), events) {
        ("", _) => return Err(not_visible(format!("{FOLDER}/current_tracer is empty"))),
        ("nop", 0) => good("nop"),
        ("nop", events) => warn(format!("{events} events on")).run(format!("echo > {FOLDER}/set_event"), ""),
        (tracer, _) => bad(format!("{tracer} is on")).write(format!("{FOLDER}/current_tracer"), "nop", tracer),
    })
}

fn audit(machine: &Machine<'_>) -> Look {
    if machine.boot_word("audit") == Some("0") {
        return Ok(good("off since boot"));
    }
    match machine.root.read("call:audit_get") {
        Err(crate::Missing::Absent) if !machine.command_line().is_empty() => {
            Err(not_applicable("this kernel has no audit"))
        }
        Err(why) => Err(hidden("call:audit_get", &why)),
        Ok(status) => match value(&status.replace('=', ":"), "enabled") {
            Some("0") => Ok(good("off")),
            Some("1") => Ok(warn("on").run("auditctl -e 0", "auditctl -e 1")),
            Some("2") => Ok(warn("on, and locked until the next boot").boot("audit=0")),
            _ => Err(not_visible("the kernel's answer is not one that taut knows")),
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::{Remedy, State::*, checks::sees};

    #[test]
    fn the_preemption_model_is_what_is_in_force() {
        let version = |v: &str| format!("== /proc/sys/kernel/version ==\n#1 SMP {v} Mon Jan 1\n");
        let dynamic = version("PREEMPT_DYNAMIC");
        for (machine, state, value) in [
            (version("PREEMPT_RT"), Good, "PREEMPT_RT"),
            (version("PREEMPT"), Warn, "full, without PREEMPT_RT"),
            (version(""), Bad, "none"),
            (
                dynamic.clone() + "== /sys/kernel/debug/sched/preempt ==\nnone voluntary (full) lazy\n",
                Warn,
                "full, without PREEMPT_RT",
            ),
            (dynamic.clone() + "== /proc/cmdline ==\nquiet preempt=voluntary\n", Bad, "voluntary"),
            (dynamic.clone() + "== /proc/config.gz ==\nCONFIG_PREEMPT_NONE=y\n", Bad, "none"),
            (
                dynamic.clone() + "== /proc/config.gz ==\nCONFIG_PREEMPT_LAZY=y\n",
                Warn,
                "lazy: ordinary threads wait for a tick",
            ),
        ] {
            let finding = sees("preemption", &machine);
            assert_eq!((finding.state, finding.value.as_str()), (state, value));
        }
        assert_eq!(sees("preemption", &dynamic).state, NotVisible);
        assert!(sees("preemption", &(dynamic + "== /proc/cmdline ==\npreempt=none\n")).reboot);
    }

    #[test]
    fn audit_is_what_the_kernel_answers() {
        assert_eq!(sees("audit", "== call:audit_get ==\nenabled=1\n").remedy.unwrap().text(), "auditctl -e 0");
        assert_eq!(sees("audit", "== call:audit_get ==\nenabled=0\n").state, Good);
        assert_eq!(sees("audit", "== call:audit_get == EPERM\n").state, NotVisible);
        assert_eq!(sees("audit", "== call:audit_get ==\nenabled=\n").state, NotVisible);
    }

    #[test]
    fn a_tracer_left_on_can_be_put_back() {
        let finding = sees("tracing", "== /sys/kernel/tracing/current_tracer ==\nfunction_graph\n");
        assert_eq!(finding.state, Bad);
        assert_eq!(finding.undo.unwrap(), "echo function_graph > /sys/kernel/tracing/current_tracer");
    }

    #[test]
    fn mitigations_are_counted() {
        let folder = "/sys/devices/system/cpu/vulnerabilities";
        let machine = format!("== {folder}/meltdown ==\nNot affected\n== {folder}/spectre_v2 ==\nMitigation: IBRS\n");
        let finding = sees("mitigations", &machine);
        assert_eq!(finding.value, "1 active: spectre_v2");
        assert!(matches!(finding.remedy, Some(Remedy::Advise(text)) if text.starts_with("leave them on")));
        assert_eq!(sees("mitigations", "== /proc/cmdline ==\nmitigations=off\n").state, Good);
    }
}
