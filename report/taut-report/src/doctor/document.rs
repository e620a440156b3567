//! The doctor's findings as a document: the count first, then each subject, worst first, with what to do.

use taut_doctor::{Diagnosis, Effect, Finding, State, Subject};
use taut_document::{Block, Document, Finding as Shown, Section, Text, Tone};

use super::{asked, elsewhere, machine, summary};

/// What `taut doctor` shows.
pub fn doctor_document(diagnosis: &Diagnosis) -> Document {
    let measured: Vec<String> = [machine(diagnosis)].into_iter().chain(asked(diagnosis)).collect();
    let section =
        |subject: Subject| Section::new(1, subject.word(), vec![Block::Findings(findings(diagnosis, subject))]);
    let notes = elsewhere(diagnosis).map(str::to_owned).into_iter().chain([next(diagnosis)]);
    Document {
        title: "doctor".into(),
        measured: measured.join(" · ").into(),
        headline: summary(diagnosis).into(),
        sections: Subject::ALL.into_iter().map(section).collect(),
        notes: notes.map(Text::from).collect(),
        reproduce: Vec::new(),
    }
}

fn findings(diagnosis: &Diagnosis, subject: Subject) -> Vec<Shown> {
    let in_state = |state| diagnosis.findings.iter().filter(move |f| f.subject == subject && f.state == state);
    let states = [State::Bad, State::Warn, State::NotVisible, State::Good];
    let mut shown: Vec<Shown> = states.into_iter().flat_map(in_state).map(finding).collect();
    // What has no answer here takes few lines: by reason, since one reason often stands for many.
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for finding in in_state(State::NotApplicable) {
        match reasons.iter_mut().find(|(reason, _)| *reason == finding.value) {
            Some((_, titles)) => titles.push(finding.title),
            None => reasons.push((&finding.value, vec![finding.title])),
        }
    }
    shown.extend(reasons.into_iter().map(|(reason, titles)| Shown {
        tone: Tone::Quiet,
        label: "–".into(),
        text: format!("{}: {reason}", titles.join(", ")).into(),
        ..Shown::default()
    }));
    shown
}

/// "bad  Preemption model: none (preemption, tail, reboot)", and what to do.
fn finding(finding: &Finding) -> Shown {
    let is_against = matches!(finding.state, State::Bad | State::Warn);
    let mut tags = vec![finding.id];
    if is_against {
        tags.push(finding.effect.word());
        tags.extend(finding.reboot.then_some("reboot"));
    }
    let detail = |word: &str, text: &str| (word.to_owned(), Text::from(text));
    let mut details = Vec::new();
    if is_against {
        details.extend([detail("want", finding.good), detail("why", finding.why)]);
        details.extend(finding.remedy.as_ref().map(|remedy| detail("do", &remedy.text())));
        details.extend(finding.undo.as_ref().map(|undo| detail("undo", undo)));
    }
    let (tone, label) = match finding.state {
        State::Bad => (Tone::Bad, "bad"),
        State::Warn => (Tone::Undecided, "warn"),
        State::Good => (Tone::Good, "good"),
        State::NotVisible => (Tone::Series(4), "?"),
        State::NotApplicable => (Tone::Quiet, "–"),
    };
    let text = Text::from(format!("{}: {} ({})", finding.title, finding.value, tags.join(", ")));
    Shown { tone, label: label.into(), text, details, ..Shown::default() }
}

/// What else the doctor could look at.
fn next(diagnosis: &Diagnosis) -> String {
    let asked = &diagnosis.asked;
    let options = [
        (asked.cpus.is_empty(), "--cpus"),
        (asked.interface.is_none(), "--interface"),
        (asked.tty.is_none(), "--tty"),
        (asked.pid.is_none(), "--pid"),
    ];
    let more: Vec<&str> = options.iter().filter(|(missing, _)| *missing).map(|(_, option)| *option).collect();
    let mut text = "Next: --fix prints the remedies as a script; --measure ID --allow-changes tries one.".to_owned();
    if !more.is_empty() {
        text += &format!(" More to see with {}.", more.join(", "));
    }
    let tail = diagnosis.findings.iter().filter(|f| f.state == State::Bad && f.effect == Effect::Tail).count();
    if tail > 0 { text } else { format!("{text} What the machine does in spite of it: taut wakeup.") }
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, markdown, terminal};

    use super::*;
    use crate::doctor::sample;

    #[test]
    fn the_terminal_form() {
        insta::assert_snapshot!(terminal(&doctor_document(&sample::laptop()), Style::default()));
    }

    #[test]
    fn markdown_and_the_page_have_every_remedy() {
        let diagnosis = sample::laptop();
        let document = doctor_document(&diagnosis);
        let is_against = |of: &&Finding| matches!(of.state, State::Bad | State::Warn) && of.remedy.is_some();
        let remedies = diagnosis.findings.iter().filter(is_against).count();
        for (text, remedy) in [(markdown(&document), "  - do: "), (taut_document::html(&document, None), "<dt>do</dt>")]
        {
            assert!(text.contains(&summary(&diagnosis)), "{text}");
            assert_eq!(text.matches(remedy).count(), remedies, "{text}");
        }
    }
}
