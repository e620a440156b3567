//! The table of all checks: for `taut doctor --list` and for docs/reference/doctor.md.

use serde::Serialize;
use taut_doctor::{Check, Subject, checks};
use taut_document::{Block, Cell, Document, Section, Table};

use crate::escape::{Form, escaped};

/// Every check with what is good.
pub fn doctor_checks_document() -> Document {
    let section = |subject: Subject| {
        let mut table = Table::new(["check", "setting", "good"]);
        [1, 2].into_iter().for_each(|at| table.columns[at].wraps = true);
        for check in checks().filter(|check| check.subject == subject) {
            table.row([check.id, check.title, check.good].map(Cell::text));
        }
        Section::new(1, subject.word(), vec![Block::Table(table)])
    };
    Document { sections: Subject::ALL.into_iter().map(section).collect(), ..Document::default() }
}

/// What scripts read.
#[derive(Serialize)]
struct Checks {
    schema_version: u32,
    kind: &'static str,
    checks: Vec<&'static Check>,
}

/// The same for scripts.
pub fn doctor_checks_json() -> serde_json::Value {
    let checks = Checks { schema_version: crate::SCHEMA_VERSION, kind: "doctor-checks", checks: checks().collect() };
    serde_json::to_value(checks).unwrap_or_default()
}

/// What a reader of docs/reference/doctor.md chooses by, a list for each subject. The JSON form has all.
pub fn doctor_checks_markdown() -> String {
    let mut out = String::new();
    for subject in Subject::ALL {
        out += &format!("\n### {}\n\n", subject.word());
        for check in checks().filter(|check| check.subject == subject) {
            let [good, why, remedy] = [check.good, check.why, check.remedy].map(|text| escaped(text, Form::Markdown));
            out += &format!("- **`{}`** *{good}*: {why}. *{remedy}*\n", check.id);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- checks: written by the test of this table, TAUT_UPDATE=1 renews it -->\n";
    const END: &str = "\n<!-- end of checks -->";

    #[test]
    fn the_documents_table_is_the_programs() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/doctor.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("the beginning is marked");
        let (table, after) = rest.split_once(END).expect("the end is marked");
        let wanted = doctor_checks_markdown();
        if std::env::var_os("TAUT_UPDATE").is_some() {
            std::fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        } else {
            assert!(table == wanted, "docs/reference/doctor.md is out of date: run this test with TAUT_UPDATE=1");
        }
    }
}
