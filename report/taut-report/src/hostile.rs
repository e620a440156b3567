//! Every form, with names that try to break out of it wherever a name may stand. What a browser makes of the pages that are
//! written here is held by `report/web/test/hostile.test.mjs`.

use serde_json::Value;

use crate::{
    Named, budget, explain_document, fleet, gate, guard, interactive, lab, report_document, sample, tune, wakeup,
};

/// Ends what it may stand in (a script, a style, an attribute, a comment, a title, a template) and then runs something.
const HOSTILE: &str =
    "</script></style></title>--><script>alert(1)</script>\"'><img src=x onerror=alert(2)>${alert(3)}";

/// Keys under which stand names that users, programs and machines gave, or sentences that repeat them.
const NAMES: &[&str] = &[
    "about",
    "after_name",
    "before_name",
    "cause",
    "chain",
    "command",
    "comm",
    "cpu",
    "detail",
    "file",
    "folder",
    "from",
    "git_revision",
    "headline",
    "hop",
    "host",
    "kernel",
    "label",
    "last_seen",
    "metric",
    "name",
    "note",
    "notes",
    "place",
    "point",
    "points",
    "process",
    "reason",
    "robot",
    "revision",
    "scenario",
    "sentence",
    "hypothesis",
    "thread",
    "title",
    "to",
];

/// The same data with hostile names: equal names stay equal.
fn hostile(value: &mut Value, is_name: bool) {
    match value {
        Value::String(text) if is_name => text.push_str(HOSTILE),
        Value::Array(values) => values.iter_mut().for_each(|value| hostile(value, is_name)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                hostile(value, NAMES.contains(&key.as_str()));
                if key == "dropped" {
                    rename(value);
                }
            }
        }
        _ => {}
    }
}

/// Names that are keys, at every level.
fn rename(value: &mut Value) {
    let Value::Object(named) = value else { return };
    named.values_mut().for_each(rename);
    *named = std::mem::take(named).into_iter().map(|(key, value)| (key + HOSTILE, value)).collect();
}

/// A page without scripts but for its own: `is_drawn` by ours, which finds data beside each still.
fn check(name: &str, page: &str, is_drawn: bool) {
    let count = |of: &str| page.matches(of).count();
    let data = count("<script type=\"application/json\"");
    assert_eq!(count("<script"), data + usize::from(is_drawn), "{name}");
    assert_eq!(count("</script"), count("<script"), "{name}");
    assert!(is_drawn || data == 0, "{name}");
    assert_eq!((count("</title"), count("</style")), (count("<title"), 1), "{name}");
    assert!(
        page.matches("<img").count() <= page.matches("src=\"data:image/svg+xml,").count(),
        "{name}: flame graphs alone"
    );
    assert!(page.contains("alert(1)"), "{name}: the names are there, as text");
    std::fs::write(format!("{}/../../target/hostile-{name}.html", env!("CARGO_MANIFEST_DIR")), page).unwrap();
}

#[test]
fn no_name_breaks_out_of_any_page_that_is_drawn_in_the_browser() {
    let (name, analysis) = (format!("{TRICKS}{HOSTILE}"), hostile_analysis());
    let named = Named { name: &name, analysis: &analysis };
    check("report", &interactive(&report_document(named)), true);
    check("comparison", &crate::comparison_html(&[named; 2]), true);
    let mut findings = wakeup::sample::two_ways();
    findings.variants.iter_mut().for_each(|variant| variant.label.push_str(HOSTILE));
    findings.machine.insert("cpu".into(), HOSTILE.into());
    check("wakeup", &interactive(&wakeup::wakeup_document(&findings)), true);
    guard::sample::with(|shown| {
        let shown = guard::GuardShown { run: HOSTILE, command: HOSTILE, ..*shown };
        check("guard", &interactive(&guard::guard_document(&shown)), true);
    });
    budget::sample::with_answers(|shown| {
        let shown = budget::Budgeted { command: HOSTILE, against: Some((HOSTILE, shown.against.unwrap().1)), ..*shown };
        check("budget", &interactive(&budget::budget_document(&shown)), true);
    });
    let shown = lab::LabShown { title: HOSTILE, ..lab::sample::shown() };
    let mut results = lab::sample::results();
    results.scenarios.iter_mut().for_each(|scenario| scenario.name.push_str(HOSTILE));
    let document = lab::lab_document(&shown, &results, &lab::sample::trials());
    check("lab", &interactive(&document), true);
    let mut broken = lab::sample::broken();
    broken.unit.push_str(HOSTILE);
    check("lab-break", &interactive(&lab::lab_break_document(&shown, &broken)), true);
}

#[test]
fn no_name_breaks_out_of_any_page_that_is_finished_markup() {
    let (_, outcome) = gate::sample::outcomes().remove(0);
    let shown = gate::GateShown { a: HOSTILE, b: HOSTILE, ..gate::sample::shown(&outcome) };
    check("gate", &taut_document::html(&gate::gate_document(&shown), None), false);
    check("history", &taut_document::html(&history(HOSTILE), None), false);
    for (name, mut answer) in ["fleet-report", "fleet-worst", "fleet-compare"].into_iter().zip(fleet::sample::answers())
    {
        hostile(&mut answer, false);
        let document = fleet::fleet_document(&serde_json::from_value(answer).unwrap());
        check(name, &taut_document::html(&document, None), false);
    }
    let tuned = hostile_tuning(tune::sample::all().remove(0).1);
    check("tune", &taut_document::html(&tune::tune_document(&tuned), None), false);
}

/// A history with one change, in which all names are this one.
fn history(name: &str) -> taut_document::Document {
    let row = |n: u32| taut_history::Row {
        time_unix_s: f64::from(n),
        revision: format!("r{n}{name}"),
        machine: name.into(),
        chain: name.into(),
        hop: name.into(),
        figure: "own.p50".into(),
        value: if n < 20 { 1e6 } else { 2e6 },
    };
    let lines = taut_history::lines(&(0..40).map(row).collect::<Vec<_>>(), &["own.p50".into()]);
    gate::history_document(&gate::HistoryShown { folder: name, lines: &lines, revisions: 40 })
}

#[test]
fn no_name_breaks_out_of_a_flame_graph() {
    let folded = [(format!("robot{HOSTILE};main{HOSTILE}"), 3)].into();
    let profile = taut_analysis::Profile { samples: 3, folded, ..Default::default() };
    let svg = crate::flame::flame(&profile, HOSTILE);
    assert_eq!(svg.matches("<script").count(), 1, "its own");
    assert!(!svg.contains("<img") && svg.contains("alert(1)"));
}

/// Tries what Markdown, a spreadsheet and a terminal would take for their own.
const TRICKS: &str =
    "=1+1|cell [go](https://evil.example) www.evil.example `code` *x* @someone #1 <b>\u{1b}[2J\n# head";

/// A recording that gives each of its names and sentences to strangers.
fn hostile_analysis() -> taut_analysis::Analysis {
    let mut analysis = sample::teleop();
    let name = |text: &mut String| *text = format!("{TRICKS}{text}{HOSTILE}");
    for chain in &mut analysis.chains {
        name(&mut chain.name);
        chain.points.iter_mut().for_each(|point| name(&mut point.name));
        chain.hops.iter_mut().for_each(|hop| [&mut hop.from, &mut hop.to].into_iter().for_each(name));
        chain.startup.iter_mut().for_each(|startup| name(&mut startup.sentence));
        let dropped = std::mem::take(&mut chain.outcomes.dropped);
        chain.outcomes.dropped =
            dropped.into_iter().map(|(reason, n)| (format!("{TRICKS}{reason}{HOSTILE}"), n)).collect();
        let explained = &mut chain.explained;
        explained.causes.iter_mut().for_each(|cause| name(&mut cause.detail));
        explained.hypotheses.iter_mut().for_each(|hypothesis| name(&mut hypothesis.sentence));
        explained
            .predictions
            .iter_mut()
            .for_each(|found| [&mut found.without, &mut found.assumption].into_iter().for_each(name));
        explained
            .recommendations
            .iter_mut()
            .for_each(|advice| [&mut advice.evidence, &mut advice.remedy].into_iter().for_each(name));
        for path in &mut explained.paths {
            path.lanes.iter_mut().for_each(|lane| name(&mut lane.thread));
            path.path.iter_mut().for_each(|piece| name(&mut piece.detail));
            path.time.pieces.iter_mut().for_each(|piece| name(&mut piece.detail));
        }
    }
    analysis.points.iter_mut().for_each(|point| name(&mut point.name));
    analysis.histograms.iter_mut().for_each(|of| name(&mut of.name));
    analysis.telemetry.iter_mut().for_each(|channel| name(&mut channel.topic));
    analysis.tracking.iter_mut().for_each(|signal| name(&mut signal.name));
    analysis.damage.push(format!("{TRICKS}{HOSTILE}"));
    analysis.notes.push(format!("{TRICKS}{HOSTILE}"));
    let info = &mut analysis.info;
    info.command = vec![format!("{TRICKS}{HOSTILE}")];
    [&mut info.git_revision, &mut info.cpu, &mut info.kernel, &mut info.taut_version].into_iter().for_each(name);
    analysis
}

/// A tuning that gives each of its names and sentences to strangers.
fn hostile_tuning(mut tuned: taut_tune::Tuned) -> taut_tune::Tuned {
    let name = |text: &mut String| *text = format!("{TRICKS}{text}{HOSTILE}");
    name(&mut tuned.chain);
    tuned.command.iter_mut().chain(&mut tuned.options).chain(&mut tuned.points).chain(&mut tuned.notes).for_each(name);
    tuned.folder.iter_mut().for_each(name);
    tuned.causes.iter_mut().for_each(|cause| name(&mut cause.detail));
    // A word that this version does not know is shown as it is.
    tuned.causes.iter_mut().skip(1).for_each(|cause| name(&mut cause.cause));
    for of in &mut tuned.within {
        [&mut of.against, &mut of.hop, &mut of.evidence, &mut of.advice].into_iter().for_each(name);
    }
    for of in &mut tuned.left {
        [&mut of.id, &mut of.title, &mut of.why].into_iter().chain(&mut of.grant).for_each(name);
    }
    for set in &mut tuned.tried {
        [&mut set.text, &mut set.why].into_iter().chain(&mut set.against).for_each(name);
    }
    if let Some(of) = &mut tuned.recommended {
        name(&mut of.text);
        of.guards.iter_mut().for_each(|guard| name(&mut guard.guard));
    }
    let measured = [crate::tune_headline(&tuned), tuned.shell_command()];
    tuned.make_files(&measured);
    tuned
}

/// A fleet's answer with hostile names, in which these words stand, too.
fn hostile_answer(mut answer: Value, tricks: &str) -> fleet::Answer {
    hostile(&mut answer, false);
    let tricks = Value::from(format!("{tricks} alert(1)")).to_string();
    let text = answer.to_string().replace("alert(1)", &tricks[1..tricks.len() - 1]);
    fleet::Answer::read(text.as_bytes()).unwrap()
}

/// Bars that divide cells: those that no backslash escapes.
fn bars(line: &str) -> usize {
    line.replace("\\\\", "").replace("\\|", "").matches('|').count()
}

fn check_markdown(name: &str, text: &str) {
    assert!(text.contains("alert(1)") || text.contains("evil"), "{name}: the names are there, as text");
    let blocks: String = text.split("```").step_by(2).collect();
    // What is escaped is text.
    let prose = blocks.replace("\\]", "");
    for begins in ["<script", "<img", "<b>", "](", "https://", "www.", " `code`", " *x*", " @someone", " #1", "\u{1b}"]
    {
        assert!(!prose.contains(begins), "{name}: {begins:?} in {prose}");
    }
    assert!(!text.lines().any(|line| line == "# head" || line.starts_with("# head")), "{name}");
    let mut columns = 0;
    for line in prose.lines() {
        match line.starts_with('|') {
            true if columns == 0 => columns = bars(line),
            true => assert_eq!(bars(line), columns, "{name}: {line}"),
            false => columns = 0,
        }
    }
}

#[test]
fn no_name_begins_anything_in_markdown() {
    let (analysis, name) = (hostile_analysis(), format!("{TRICKS}{HOSTILE}"));
    let named = Named { name: &name, analysis: &analysis };
    check_markdown("report", &taut_document::markdown(&report_document(named)));
    let explained = explain_document(named, crate::Asked::default());
    check_markdown("explain", &taut_document::markdown(&explained));
    let other = sample::teleop_made_right();
    for (at, other) in [Named { name: &name, analysis: &other }, named].into_iter().enumerate() {
        let document = crate::comparison_document(&[named, other]);
        check_markdown(&format!("compare {at}"), &taut_document::markdown(&document));
    }
    let (_, mut outcome) = gate::sample::outcomes().remove(0);
    outcome.hops.iter_mut().for_each(|hop| hop.from = name.clone());
    let shown = gate::GateShown { a: &name, b: &name, ..gate::sample::shown(&outcome) };
    check_markdown("gate", &taut_document::markdown(&gate::gate_document(&shown)));
    let xml = gate::gate_junit(&shown);
    assert!(!xml.contains("<script") && !xml.contains("<img") && !xml.contains('\u{1b}'), "{xml}");
    check_markdown("history", &taut_document::markdown(&history(&name)));
    for answer in fleet::sample::answers() {
        let document = fleet::fleet_document(&hostile_answer(answer, TRICKS));
        check_markdown("fleet", &taut_document::markdown(&document));
    }
    for (name, tuned) in tune::sample::all() {
        let document = tune::tune_document(&hostile_tuning(tuned));
        check_markdown(name, &taut_document::markdown(&document));
    }
}

/// Paragraphs are wrapped, so that any word may begin a line of one; a character that a terminal obeys stands nowhere.
#[test]
fn no_name_of_a_tuning_or_a_history_is_obeyed_by_a_terminal_or_ends_a_string_of_json() {
    let check = |name: &str, text: &str| {
        let obeyed = text.chars().find(|c| c.is_control() && *c != '\n');
        assert!(obeyed.is_none() && text.contains("evil"), "{name}: {obeyed:?} in {text}");
    };
    let terminal = |document: &taut_document::Document| taut_document::terminal(document, crate::Style::default());
    check("history", &terminal(&history(&format!("{TRICKS}{HOSTILE}"))));
    for (name, tuned) in tune::sample::all() {
        let tuned = hostile_tuning(tuned);
        check(name, &terminal(&tune::tune_document(&tuned)));
        check(name, &tune::tune_json(&tuned).to_string());
    }
}

#[test]
fn no_name_is_a_formula_or_ends_a_field_of_a_table() {
    let mut out = Vec::new();
    crate::export::csv(&mut out, &hostile_analysis()).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("evil"), "the names are there");
    assert!(!text.contains("\"=1+1") && !text.contains(",=1+1") && !text.contains("\n=1+1"), "{text}");
}

#[test]
fn no_name_of_a_fleet_leaves_its_line_of_a_terminal() {
    for answer in fleet::sample::answers() {
        let answer = hostile_answer(answer, "\u{1b}[2J\nforged");
        let shown = taut_document::terminal(&fleet::fleet_document(&answer), crate::Style::default());
        assert!(!shown.contains('\u{1b}') && !shown.lines().any(|line| line.starts_with("forged")), "{shown}");
        assert!(shown.contains("u{1b}"), "{shown}");
    }
}

#[test]
fn documents_hold_the_same_characters_for_harmful_as_recordings() {
    let apart = |c: &char| {
        let text = c.to_string();
        crate::escape::escaped(&text, crate::escape::Form::Terminal) != taut_recording::printable(text)
    };
    assert_eq!(('\0'..=char::MAX).filter(apart).collect::<Vec<_>>(), []);
}
