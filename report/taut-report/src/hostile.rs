//! Every page, with names that try to break out of it wherever a name may stand. What a browser makes of the files that are
//! written here is held by `report/web/test/hostile.test.mjs`.

use serde_json::Value;

use crate::{Named, budget, fleet, gate, guard, html, lab, probe, sample};

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
    "suspect",
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
                if ["dropped", "shots", "differences"].contains(&key.as_str()) {
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

/// A page that the front end draws, again with hostile data.
fn made_hostile(page: &str) -> String {
    let (_, rest) = page.split_once("id=\"data\">").expect("its data");
    let (data, _) = rest.split_once("</script>").expect("their end");
    let mut data: Value = serde_json::from_str(data).expect("JSON");
    hostile(&mut data, false);
    html::page(HOSTILE, "report", &data)
}

fn check(name: &str, page: &str, scripts: usize) {
    assert_eq!(page.matches("<script").count(), scripts, "{name}");
    assert_eq!(page.matches("</script").count(), scripts, "{name}");
    assert_eq!(
        (page.matches("</title").count(), page.matches("</style").count()),
        (1 + page.matches("<svg").count(), 1),
        "{name}"
    );
    assert!(!page.contains("<img"), "{name}");
    assert!(page.contains("alert(1)"), "{name}: the names are there, as text");
    std::fs::write(format!("{}/../../target/hostile-{name}.html", env!("CARGO_MANIFEST_DIR")), page).unwrap();
}

#[test]
fn no_name_breaks_out_of_any_page_that_is_drawn_in_the_browser() {
    let (before, after) = (sample::teleop(), sample::teleop_made_right());
    let named = [Named { name: "a.mcap", analysis: &before }, Named { name: "b.mcap", analysis: &after }];
    check("report", &made_hostile(&html::html(&named[..1])), 2);
    check("comparison", &made_hostile(&html::html(&named)), 2);
    check("probe", &made_hostile(&probe::probe_html(&probe::sample::two_ways())), 2);
    guard::sample::with(|shown| check("guard", &made_hostile(&guard::guard_html(shown)), 2));
    budget::sample::with_answers(|shown| check("budget", &made_hostile(&budget::budget_html(shown)), 2));
    let (shown, results) = (lab::sample::shown(), lab::sample::results());
    let page = lab::lab_html(&shown, lab::lab_json(&shown, &results), &results, &lab::sample::trials());
    check("lab", &made_hostile(&page), 2);
    let search = lab::lab_break_html(&shown, lab::lab_break_json(&shown, &lab::sample::broken()));
    check("lab-break", &made_hostile(&search), 2);
}

#[test]
fn no_name_breaks_out_of_any_page_that_is_finished_markup() {
    let (_, outcome) = gate::sample::outcomes().remove(0);
    check("gate", &gate::gate_html(&gate::GateShown { a: HOSTILE, b: HOSTILE, ..gate::sample::shown(&outcome) }), 0);
    let row = |n: u32, value: f64| taut_history::Row {
        time_unix_s: f64::from(n),
        revision: format!("r{n}{HOSTILE}"),
        machine: HOSTILE.into(),
        chain: HOSTILE.into(),
        hop: HOSTILE.into(),
        figure: "own.p50".into(),
        value,
    };
    let rows: Vec<_> = (0..40).map(|n| row(n, if n < 20 { 1e6 } else { 2e6 })).collect();
    let lines = taut_history::lines(&rows, &["own.p50".into()]);
    let shown = gate::HistoryShown { folder: HOSTILE, lines: &lines, revisions: 40 };
    check("history", &gate::history_html(&shown), 0);
    for (name, mut answer) in ["fleet-report", "fleet-worst", "fleet-compare"].into_iter().zip(fleet::sample::answers())
    {
        hostile(&mut answer, false);
        check(name, &fleet::fleet_html(&serde_json::from_value(answer).unwrap()), 0);
    }
}

#[test]
fn no_name_breaks_out_of_a_flame_graph() {
    let folded = [(format!("robot{HOSTILE};main{HOSTILE}"), 3)].into();
    let profile = taut_analysis::Profile { samples: 3, folded, ..Default::default() };
    let svg = crate::flame::flame(&profile, HOSTILE);
    assert_eq!(svg.matches("<script").count(), 1, "its own");
    assert!(!svg.contains("<img") && svg.contains("alert(1)"));
}
