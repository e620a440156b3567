//! Where a gate's result goes: to stdout in one form, and to as many files as are wanted.

use std::path::PathBuf;

use anyhow::{Result, bail};
use taut_document::Document;
use taut_report::{
    GateShown, HistoryShown, LimitsShown, TwoShown, gate_document, gate_json, gate_junit, history_document,
    history_json, limits_document, limits_json, limits_junit, two_document, two_html, two_json,
};

use crate::{
    format::{self, Format},
    output,
};

/// Forms of the result.
#[derive(clap::Args)]
pub struct Outputs {
    /// Form of the result.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Markdown, Format::Json, Format::Html]))]
    format: Format,
    /// Also write a pull request comment.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Also write JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also write a page with charts.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Begins every comment, in the place of the mark by which a workflow finds its own again.
const MARKER: &str = "<!-- taut gate -->";

impl Outputs {
    /// Writes an outcome.
    pub fn gate(&self, shown: &GateShown<'_>) -> Result<()> {
        self.write(&gate_document(shown), &gate_json(shown), Some(&gate_junit(shown)), None)
    }

    /// Whether a page is among what is written.
    pub fn has_page(&self) -> bool {
        self.format == Format::Html || self.html.is_some()
    }

    /// Writes two recordings, side by side and what changed.
    pub fn two(&self, shown: &TwoShown<'_>) -> Result<()> {
        let junit = shown.changes.as_ref().map_or_else(String::new, gate_junit);
        self.write(&two_document(shown), &two_json(shown), Some(&junit), Some(&|| two_html(shown)))
    }

    /// Writes what became of limits.
    pub fn judge_limits(&self, shown: &LimitsShown<'_>) -> Result<()> {
        self.write(&limits_document(shown), &limits_json(shown), Some(&limits_junit(shown)), None)
    }

    /// Writes a history.
    pub fn history(&self, shown: &HistoryShown<'_>) -> Result<()> {
        self.write(&history_document(shown), &history_json(shown), None, None)
    }

    /// The files first, so that they are complete when the verdict is read. `page` has more than the document.
    fn write(
        &self,
        document: &Document,
        json: &serde_json::Value,
        junit: Option<&str>,
        page: Option<&dyn Fn() -> String>,
    ) -> Result<()> {
        let form = |form: Format| match (form, page) {
            (Format::Json, _) => format!("{json:#}\n"),
            (Format::Html, Some(page)) => page(),
            (Format::Markdown, _) => format!("{MARKER}\n{}", output::rendered(document, form, None)),
            (form, _) => output::rendered(document, form, None),
        };
        let files = [(&self.markdown, Format::Markdown), (&self.json, Format::Json), (&self.html, Format::Html)];
        for (path, of) in files {
            if let Some(path) = path {
                output::write(&form(of), Some(path))?;
            }
        }
        match (&self.junit, junit) {
            (Some(path), Some(junit)) => output::write(junit, Some(path))?,
            (Some(_), None) => bail!("--junit is for verdicts; a history has --markdown, --json and --html"),
            (None, _) => {}
        }
        output::write(&form(self.format), None)
    }
}
