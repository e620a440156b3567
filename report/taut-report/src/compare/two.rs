//! Two recordings: their figures side by side, then what changed by hop and cause. `taut compare A B` and `taut report A B` show it.

use serde_json::Value;
use taut_document::{Block, Document, Section, Text};

use super::{comparison_document, document::page_of};
use crate::{GateShown, Named, gate_document, gate_json, json};

/// Two recordings, with what is to be said about them.
#[derive(Clone, Copy, Debug)]
pub struct TwoShown<'a> {
    /// A and B.
    pub recordings: [Named<'a>; 2],
    /// What changed in the chain that both have.
    pub changes: Option<GateShown<'a>>,
    /// Why nothing is said of changes; else empty.
    pub without: &'a str,
    /// What limits the whole comparison; else empty.
    pub caveat: &'a str,
}

/// Side by side, then what changed.
pub fn two_document(shown: &TwoShown<'_>) -> Document {
    let mut document = comparison_document(&shown.recordings);
    if !shown.caveat.is_empty() {
        document.sections.insert(0, Section::new(1, "", vec![Block::Text(shown.caveat.into())]));
    }
    let Some(changes) = &shown.changes else {
        document.notes.push(shown.without.into());
        return document;
    };
    let changes = gate_document(changes);
    let headline = Text::default().strong(changes.headline.plain());
    document.sections.push(Section::new(1, "What changed", vec![Block::Text(headline), Block::Text(changes.measured)]));
    let below = |section: Section| Section { level: section.level + 1, ..section };
    document.sections.extend(changes.sections.into_iter().map(below));
    document.notes.extend(changes.notes);
    document
}

/// For scripts: the figures side by side, both reports, and what changed.
pub fn two_json(shown: &TwoShown<'_>) -> Value {
    let mut all = json(&shown.recordings);
    let changes = shown.changes.as_ref().map(gate_json);
    if let (Value::Object(all), Some(Value::Object(changes))) = (&mut all, changes) {
        all.extend(changes);
        if let Some(Value::Array(notes)) = all.get_mut("notes").filter(|_| !shown.caveat.is_empty()) {
            notes.insert(0, shown.caveat.into());
        }
    }
    all
}

/// One page: side by side, what changed, and each by itself.
pub fn two_html(shown: &TwoShown<'_>) -> String {
    page_of(&two_document(shown), &shown.recordings)
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, markdown, terminal};

    use super::*;
    use crate::{gate, sample};

    /// Both recordings, and what changed between them, in each form.
    #[test]
    fn every_form_has_the_figures_and_the_changes() {
        let analysis = sample::teleop();
        let named = |name| Named { name, analysis: &analysis };
        let (_, outcome) = gate::sample::outcomes().remove(0);
        let changes = Some(GateShown { kind: "compare", ..gate::sample::shown(&outcome) });
        let shown = TwoShown {
            recordings: [named("a.mcap"), named("b.mcap")],
            changes,
            without: "",
            caveat: "they differ in their points",
        };
        let value = two_json(&shown);
        assert_eq!((&value["schema_version"], &value["kind"]), (&2.into(), &"compare".into()));
        assert_eq!(
            (value["reports"].as_array().unwrap().len(), value["comparison"]["runs"].as_array().unwrap().len()),
            (2, 2)
        );
        assert!(value["hops"][0]["causes"].is_array());
        let document = two_document(&shown);
        for text in [terminal(&document, Style::default()), markdown(&document), two_html(&shown)] {
            assert!(text.contains("a.mcap") && text.contains("read → plan"), "{text}");
            assert!(text.contains("they differ in their points"), "{text}");
        }
        let without = TwoShown { changes: None, without: "they have no chain in common", ..shown };
        assert!(two_json(&without)["hops"].is_null());
        let text = terminal(&two_document(&without), Style::default());
        assert!(text.ends_with("note: they have no chain in common\n"));
    }
}
