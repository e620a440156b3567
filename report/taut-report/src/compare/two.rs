//! Two recordings: their figures side by side, then what changed by hop and cause. `taut compare A B` and `taut report A B` show it.

use serde_json::Value;

use super::{comparison_markdown, comparison_terminal};
use crate::{GateShown, Named, Style, gate_json, gate_markdown, gate_terminal, html::page_of, json};

/// Two recordings, with what is to be said about them.
#[derive(Clone, Copy, Debug)]
pub struct TwoShown<'a> {
    /// A and B.
    pub recordings: [Named<'a>; 2],
    /// What changed in the chain that both have.
    pub changes: Option<GateShown<'a>>,
    /// Why nothing is said of changes; else empty.
    pub without: &'a str,
}

/// In tables that fit 100 columns.
pub fn two_terminal(shown: &TwoShown<'_>, style: Style) -> String {
    let changes = match &shown.changes {
        Some(changes) => gate_terminal(changes, style),
        None => format!("{} {}\n", style.dim("note:"), shown.without),
    };
    format!("{}\n{changes}", comparison_terminal(&shown.recordings, style))
}

/// To paste in a pull request.
pub fn two_markdown(shown: &TwoShown<'_>) -> String {
    let changes = shown.changes.as_ref().map_or_else(
        || format!("> {}\n", crate::escape::escaped(shown.without, crate::escape::Form::Markdown)),
        gate_markdown,
    );
    format!("{}\n{changes}", comparison_markdown(&shown.recordings))
}

/// For scripts: the figures side by side, both reports, and what changed.
pub fn two_json(shown: &TwoShown<'_>) -> Value {
    let mut all = json(&shown.recordings);
    let changes = shown.changes.as_ref().map(|changes| gate_json(changes, "compare"));
    if let (Value::Object(all), Some(Value::Object(changes))) = (&mut all, changes) {
        all.extend(changes);
    }
    all
}

/// One page: side by side, each by itself, and what changed.
pub fn two_html(shown: &TwoShown<'_>) -> String {
    let (style, markup) = shown.changes.as_ref().map(crate::gate::changes_markup).unwrap_or_default();
    page_of(&shown.recordings, &style, &markup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gate, sample};

    /// Both recordings, and what changed between them, in each form.
    #[test]
    fn every_form_has_the_figures_and_the_changes() {
        let analysis = sample::teleop();
        let named = |name| Named { name, analysis: &analysis };
        let (_, outcome) = gate::sample::outcomes().remove(0);
        let changes = Some(gate::sample::shown(&outcome));
        let shown = TwoShown { recordings: [named("a.mcap"), named("b.mcap")], changes, without: "" };
        let value = two_json(&shown);
        assert_eq!((&value["schema_version"], &value["kind"]), (&2.into(), &"compare".into()));
        assert_eq!(
            (value["reports"].as_array().unwrap().len(), value["comparison"]["runs"].as_array().unwrap().len()),
            (2, 2)
        );
        assert!(value["hops"][0]["causes"].is_array());
        for text in [two_terminal(&shown, Style::default()), two_markdown(&shown), two_html(&shown)] {
            assert!(text.contains("a.mcap") && text.contains("read → plan"), "{text}");
        }
        let without = TwoShown { changes: None, without: "they have no chain in common", ..shown };
        assert!(two_json(&without)["hops"].is_null());
        assert!(two_terminal(&without, Style::default()).ends_with("note: they have no chain in common\n"));
    }
}
