//! The remedies as a POSIX shell script, to be read and then run by a person.

use taut_doctor::{Diagnosis, Finding, Remedy, State, quoted};

use super::{elsewhere, machine, summary};
use crate::words::quantity;

/// What `taut doctor --fix` prints. What is bad stands as commands, what is only a warning commented out, what no
/// shell can do as a remark; behind each command the one that takes it back.
pub fn doctor_script(diagnosis: &Diagnosis) -> String {
    let mut out = format!(
        "#!/bin/sh\n# What `taut doctor` would change here. Nothing has been changed yet.\n# {}\n# {}\n{}",
        machine(diagnosis),
        summary(diagnosis),
        what_it_does(diagnosis),
    );
    out += &elsewhere(diagnosis).map_or(String::new(), |text| format!("# {text}\n"));
    let in_state = |state| diagnosis.findings.iter().filter(move |finding| finding.state == state);
    for (state, title, mark) in [(State::Bad, "Bad", ""), (State::Warn, "Warnings", "#? ")] {
        out += &format!("\n# --- {title} ---\n");
        if in_state(state).next().is_none() {
            out += "# none\n";
        }
        in_state(state).for_each(|finding| out += &block(finding, mark));
    }
    out + &boot(diagnosis)
}

/// What running it does: it may well do nothing.
fn what_it_does(diagnosis: &Diagnosis) -> String {
    let commands = |state| -> usize {
        let findings = diagnosis.findings.iter().filter(|finding| finding.state == state);
        findings.filter_map(|finding| finding.remedy.as_ref()).map(|remedy| remedy.commands().len()).sum()
    };
    let (active, off) = (commands(State::Bad), commands(State::Warn));
    let until = "# Settings last until the next boot. Undo lines take each one back.\n";
    let warnings = match off {
        0 => String::new(),
        _ => format!(
            "# {} for warnings {} commented out (`#?`): many matter only for some loops. Take the mark off those that \
             you want.\n",
            quantity(off as u64, "command"),
            if off == 1 { "is" } else { "are" }
        ),
    };
    match (active, off) {
        (0, 0) => "# There is nothing to run: what could be better is not for a shell to change.\n".into(),
        (0, _) => format!("# As it stands it changes nothing.\n{warnings}{until}"),
        (_, _) => format!(
            "# Read it, then run it as root: it runs {}.\n{warnings}{until}",
            quantity(active as u64, "command")
        ),
    }
}

fn block(finding: &Finding, mark: &str) -> String {
    let mut out = format!(
        "\n# {}: {} ({}, {})\n# want {}: {}\n",
        finding.title,
        finding.value,
        finding.id,
        finding.effect.word(),
        finding.good,
        finding.why
    );
    match &finding.remedy {
        None => {}
        Some(remedy @ (Remedy::Write(_) | Remedy::Run { .. })) => {
            remedy.commands().iter().for_each(|command| out += &format!("{mark}{command}\n"));
            remedy.undo_commands().iter().for_each(|command| out += &format!("# undo: {command}\n"));
        }
        Some(Remedy::HoldAwake) => {
            out += "# in the loop's start script; the shell holds the file until the loop has ended:\n\
                    #   exec 3> /dev/cpu_dma_latency; printf '\\0\\0\\0\\0' >&3; ./the-loop\n";
        }
        Some(Remedy::Boot(words)) => out += &format!("# at the next boot: {words} (see the end)\n"),
        Some(Remedy::Advise(text)) => {
            out += &format!("# by hand: {text}\n");
            out += &finding.undo.as_ref().map_or(String::new(), |undo| format!("# undo: {undo}\n"));
        }
    }
    out
}

/// The kernel's command line, in one place, since it is one line.
fn boot(diagnosis: &Diagnosis) -> String {
    let words = |state| {
        let words = diagnosis.findings.iter().filter(move |finding| finding.state == state);
        let words = words.filter_map(|finding| match &finding.remedy {
            Some(Remedy::Boot(words)) => Some(words.as_str()),
            _ => None,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let (bad, warn) = (words(State::Bad), words(State::Warn));
    if bad.is_empty() && warn.is_empty() {
        return String::new();
    }
    let mut out = "\n# --- Kernel command line, needs a reboot ---\n".to_owned();
    for (words, which) in [(bad, "what is bad"), (warn, "the warnings")] {
        if !words.is_empty() {
            out += &format!("# for {which}: {words}\n");
        }
    }
    out += "# Debian, Ubuntu: GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub\n\
            # Raspberry Pi: the line in /boot/firmware/cmdline.txt; Jetson: APPEND in /boot/extlinux/extlinux.conf\n\
            # undo: take the words off again, and reboot\n";
    let now = diagnosis.facts.iter().find(|(name, _)| *name == "kernel").map(|(_, release)| quoted(release));
    out + &now.map_or(String::new(), |release| format!("# running now: {release}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn the_script() {
        insta::assert_snapshot!(doctor_script(&sample::laptop()));
    }

    #[test]
    fn a_script_says_whether_it_does_anything() {
        let mut diagnosis = sample::laptop();
        assert!(doctor_script(&diagnosis).contains("then run it as root: it runs "));
        diagnosis.findings.retain(|finding| finding.state != State::Bad);
        let script = doctor_script(&diagnosis);
        assert!(
            script.contains("# As it stands it changes nothing.\n") && !script.contains("run it as root"),
            "{script}"
        );
        // Which is true: no line of it is a command.
        assert!(script.lines().all(|line| line.is_empty() || line.starts_with('#')));
        diagnosis.findings.clear();
        assert!(doctor_script(&diagnosis).contains("There is nothing to run"));
    }

    #[test]
    fn a_shell_accepts_it_and_a_comment_stays_a_comment() {
        let mut diagnosis = sample::laptop();
        for finding in &mut diagnosis.findings {
            finding.value += " 'quote' `reboot` $(reboot) \"";
        }
        for script in [doctor_script(&sample::laptop()), doctor_script(&diagnosis)] {
            let checked = std::process::Command::new("sh").args(["-n", "-c", &script]).output().unwrap();
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
            assert!(script.lines().all(|line| !line.contains("reboot)") || line.starts_with('#')));
        }
    }
}
