//! All checks over one machine: the doctor's result.

use crate::{
    Asked, Check, Finding, Remedy, Root, State, checks, machine::Machine, script_text::leaves_its_line, seen::Seen,
    surroundings::Facts,
};

/// What the doctor found.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// What the machine is.
    pub facts: Vec<(&'static str, String)>,
    /// What was asked about.
    pub asked: Asked,
    /// One for each check, in the table's order.
    pub findings: Vec<Finding>,
}

/// Runs all checks.
pub fn examine(root: &Root, asked: &Asked) -> Diagnosis {
    let machine = Machine::new(root, asked);
    let findings = checks::all().map(|check| finding(check, &machine)).collect();
    Diagnosis { facts: Facts::of(&machine), asked: asked.clone(), findings }
}

/// Runs one check.
pub fn examine_one(check: &Check, root: &Root, asked: &Asked) -> Finding {
    finding(check, &Machine::new(root, asked))
}

impl Diagnosis {
    /// Findings in that state.
    pub fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|finding| finding.state == state).count()
    }
}

fn finding(check: &Check, machine: &Machine<'_>) -> Finding {
    let seen = (check.look)(machine).unwrap_or_else(|seen| seen);
    let remedy = remedy(check, &seen);
    // The table's undo goes with the table's remedy.
    let table_undo = || Some(check.undo.to_owned()).filter(|undo| seen.remedy.is_none() && !undo.is_empty());
    Finding {
        id: check.id,
        subject: check.subject,
        title: check.title,
        read: check.reads.iter().map(|pattern| machine.named(pattern)).collect(),
        state: seen.state,
        value: one_line(&seen.value),
        good: check.good,
        why: check.why,
        undo: remedy.as_ref().and_then(|remedy| remedy.undo().or_else(table_undo)),
        reboot: match &remedy {
            Some(Remedy::Boot(_)) => true,
            Some(Remedy::Advise(_)) => check.reboot,
            _ => false,
        },
        remedy,
        effect: check.effect,
    }
}

/// A setting that is not visible gets none: what is not known is not changed.
fn remedy(check: &Check, seen: &Seen) -> Option<Remedy> {
    matches!(seen.state, State::Bad | State::Warn).then(|| {
        let closer = seen.remedy.clone().filter(|remedy| remedy.texts().iter().all(|text| is_for_a_script(text)));
        closer.unwrap_or_else(|| Remedy::Advise(check.remedy.to_owned()))
    })
}

/// What a machine's files say may go into a script: no line break may end a comment early, and nothing that a file
/// cannot really have held is written back.
fn is_for_a_script(text: &str) -> bool {
    text.len() < 1000 && !text.contains(leaves_its_line)
}

/// Longest value shown; a file with more is not what the check took it for.
const LONGEST: usize = 200;

fn one_line(text: &str) -> String {
    let text: String = text.trim().chars().map(|c| if leaves_its_line(c) { ' ' } else { c }).collect();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
