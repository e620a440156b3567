//! The terminal form: the count first, then each subject, worst first, with what to do. 100 columns.

use taut_doctor::{Diagnosis, Effect, Finding, State, Subject};

use super::{asked, elsewhere, machine, summary};
use crate::{Style, console::wrap};

/// Columns of a line.
const WIDTH: usize = 99;
/// Where texts begin, behind the state.
const INDENT: usize = 8;

/// What `taut doctor` prints.
pub fn doctor_terminal(diagnosis: &Diagnosis, style: Style) -> String {
    let mut out = format!("{}\n{}\n", style.bold(&summary(diagnosis)), style.dim(&fit(&machine(diagnosis), 0)));
    if let Some(asked) = asked(diagnosis) {
        out += &format!("{}\n", style.dim(&fit(&asked, 0)));
    }
    for subject in Subject::ALL {
        out += &section(diagnosis, subject, style);
    }
    for text in elsewhere(diagnosis).map(str::to_owned).into_iter().chain([next(diagnosis)]) {
        out += &format!("\n{}\n", style.dim(&fit(&text, 0)));
    }
    out
}

fn section(diagnosis: &Diagnosis, subject: Subject, style: Style) -> String {
    let in_state = |state| diagnosis.findings.iter().filter(move |f| f.subject == subject && f.state == state);
    let mut out = String::new();
    for finding in in_state(State::Bad).chain(in_state(State::Warn)) {
        out += &with_remedy(finding, style);
    }
    for finding in in_state(State::NotVisible).chain(in_state(State::Good)) {
        out += &line(finding, style);
    }
    // What has no answer here takes few lines: by reason, since one reason often stands for many.
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for finding in in_state(State::NotApplicable) {
        match reasons.iter_mut().find(|(reason, _)| *reason == finding.value) {
            Some((_, titles)) => titles.push(finding.title),
            None => reasons.push((&finding.value, vec![finding.title])),
        }
    }
    for (reason, titles) in reasons {
        out += &style.dim(&paragraph("–", &format!("{}: {reason}", titles.join(", "))));
    }
    format!("\n{}\n{out}", style.bold(subject.word()))
}

fn with_remedy(finding: &Finding, style: Style) -> String {
    let mut out = line(finding, style);
    out += &labelled("want", finding.good);
    out += &labelled("why", finding.why);
    out += &finding.remedy.as_ref().map_or(String::new(), |remedy| labelled("do", &remedy.text()));
    out + &finding.undo.as_ref().map_or(String::new(), |undo| style.dim(&labelled("undo", undo)))
}

/// "        want PREEMPT_RT", wrapped under itself.
fn labelled(label: &str, text: &str) -> String {
    hanging(&format!("{:INDENT$}{label:<5}", ""), text)
}

/// "  bad   Preemption model: none (preemption, tail, reboot)".
fn line(finding: &Finding, style: Style) -> String {
    let mut tags = vec![finding.id];
    if matches!(finding.state, State::Bad | State::Warn) {
        tags.push(finding.effect.word());
        tags.extend(finding.reboot.then_some("reboot"));
    }
    let tags = format!("({})", tags.join(", "));
    let word = word(finding.state);
    let lines = paragraph(word, &format!("{}: {} {tags}", finding.title, finding.value));
    // Unless they are broken over two lines.
    let lines = lines.replace(&tags, &style.dim(&tags));
    // The state stands alone in its column, so that colouring it moves nothing.
    match lines.split_once(word) {
        Some((before, after)) => format!("{before}{}{after}", coloured(style, word, finding.state)),
        None => lines,
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Bad => "bad",
        State::Warn => "warn",
        State::Good => "good",
        State::NotVisible => "?",
        State::NotApplicable => "–",
    }
}

/// A text behind a word in the margin.
fn paragraph(margin: &str, text: &str) -> String {
    hanging(&format!("  {margin:<6}"), text)
}

/// A text behind its beginning, wrapped so that it hangs from there.
fn hanging(beginning: &str, text: &str) -> String {
    let indent = beginning.chars().count();
    let fitted = fit(text, indent);
    let lines = fitted.lines().enumerate().map(|(i, line)| match i {
        0 => format!("{beginning}{line}\n"),
        _ => format!("{:indent$}{line}\n", ""),
    });
    lines.collect()
}

/// Wrapped to what is left of a line behind `indent`; a word that is longer loses its middle.
fn fit(text: &str, indent: usize) -> String {
    let width = WIDTH - indent;
    let shorten = |word: &str| {
        let characters: Vec<char> = word.chars().collect();
        if characters.len() <= width {
            return word.to_owned();
        }
        let half = width / 2 - 1;
        let part = |part: &[char]| part.iter().collect::<String>();
        format!("{}…{}", part(&characters[..half]), part(&characters[characters.len() - half..]))
    };
    let words: Vec<String> = text.split_whitespace().map(shorten).collect();
    wrap(&words.join(" "), width)
}

/// What else the doctor could look at.
fn next(diagnosis: &Diagnosis) -> String {
    let asked = &diagnosis.asked;
    let mut more = Vec::new();
    let options = [
        (asked.cpus.is_empty(), "--cpus"),
        (asked.interface.is_none(), "--interface"),
        (asked.tty.is_none(), "--tty"),
        (asked.pid.is_none(), "--pid"),
    ];
    more.extend(options.iter().filter(|(missing, _)| *missing).map(|(_, option)| *option));
    let mut text = "Next: --fix prints the remedies as a script; --measure ID --allow-changes tries one.".to_owned();
    if !more.is_empty() {
        text += &format!(" More to see with {}.", more.join(", "));
    }
    let tail = diagnosis.findings.iter().filter(|f| f.state == State::Bad && f.effect == Effect::Tail).count();
    if tail > 0 { text } else { format!("{text} What the machine does in spite of it: taut wakeup.") }
}

/// A state's word in its colour.
fn coloured(style: Style, word: &str, state: State) -> String {
    match state {
        State::Bad => style.ansi(31, &style.bold(word)),
        State::Warn => style.ansi(33, word),
        State::Good => style.ansi(32, word),
        State::NotVisible => style.ansi(36, word),
        State::NotApplicable => style.dim(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn the_terminal_form() {
        insta::assert_snapshot!(doctor_terminal(&sample::laptop(), Style::default()));
    }

    #[test]
    fn it_fits_100_columns_whatever_the_machine_says() {
        let mut diagnosis = sample::laptop();
        for finding in &mut diagnosis.findings {
            finding.value = "/sys/fs/cgroup/".to_owned() + &"x".repeat(300);
        }
        diagnosis.facts.push(("board", "y".repeat(200)));
        for text in
            [doctor_terminal(&diagnosis, Style::default()), doctor_terminal(&sample::laptop(), Style::default())]
        {
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
            }
        }
    }

    #[test]
    fn colour_changes_no_column() {
        let plain = doctor_terminal(&sample::laptop(), Style::default());
        let coloured = doctor_terminal(&sample::laptop(), Style { color: true, ..Style::default() });
        assert_ne!(plain, coloured);
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once('\x1b') {
            stripped += before;
            rest = after.split_once('m').unwrap().1;
        }
        assert_eq!(stripped + rest, plain);
    }
}
