//! Where a gate's result goes: to stdout in one form, and to as many files as are wanted.

use std::path::PathBuf;

use anyhow::{Result, bail};
use taut_report::{
    GateShown, HistoryShown, LimitsShown, TwoShown, gate_html, gate_json, gate_junit, gate_markdown, gate_terminal,
    history_html, history_json, history_terminal, limits_json, limits_junit, limits_markdown, limits_terminal,
    two_html, two_json, two_markdown, two_terminal,
};

use crate::{
    format::{self, Format},
    output,
};

/// Forms of the result.
#[derive(clap::Args)]
pub struct Outputs {
    /// Form of what is printed.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Markdown, Format::Json, Format::Html]))]
    format: Format,
    /// Write a comment for a pull request besides.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write JSON besides; its schema is docs/schemas/gate.schema.json.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write JUnit XML besides.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a page with both distributions besides.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Outputs {
    /// Writes an outcome; `kind` is "gate" or "compare".
    pub fn gate(&self, shown: &GateShown<'_>, kind: &'static str) -> Result<()> {
        let json = || format!("{:#}\n", gate_json(shown, kind));
        let text = match self.format {
            Format::Markdown => gate_markdown(shown),
            Format::Json => json(),
            Format::Html => gate_html(shown),
            _ => gate_terminal(shown, output::style(None)),
        };
        // The files first: whoever reads the verdict may read them at once.
        self.files(|| gate_markdown(shown), json, || gate_junit(shown), Some(&|| gate_html(shown)))?;
        output::write(&text, None)
    }

    /// Whether a page is among what is written.
    pub fn has_page(&self) -> bool {
        self.format == Format::Html || self.html.is_some()
    }

    /// Writes two recordings, side by side and what changed.
    pub fn two(&self, shown: &TwoShown<'_>) -> Result<()> {
        let json = || format!("{:#}\n", two_json(shown));
        let text = match self.format {
            Format::Markdown => two_markdown(shown),
            Format::Json => json(),
            Format::Html => two_html(shown),
            _ => two_terminal(shown, output::style(None)),
        };
        let junit = || shown.changes.as_ref().map_or_else(String::new, gate_junit);
        self.files(|| two_markdown(shown), json, junit, Some(&|| two_html(shown)))?;
        output::write(&text, None)
    }

    /// Writes what became of limits.
    pub fn judge_limits(&self, shown: &LimitsShown<'_>) -> Result<()> {
        let json = || format!("{:#}\n", limits_json(shown));
        let text = match self.format {
            Format::Markdown => limits_markdown(shown),
            Format::Json => json(),
            Format::Html => bail!("limits have no page: use --format markdown or terminal"),
            _ => limits_terminal(shown, output::style(None)),
        };
        self.files(|| limits_markdown(shown), json, || limits_junit(shown), None)?;
        output::write(&text, None)
    }

    /// Writes a history.
    pub fn history(&self, shown: &HistoryShown<'_>) -> Result<()> {
        let json = || format!("{:#}\n", history_json(shown));
        let text = match self.format {
            Format::Json => json(),
            Format::Html => history_html(shown),
            Format::Markdown => bail!("a history has no Markdown: use --format terminal, json or html"),
            _ => history_terminal(shown, output::style(None)),
        };
        if self.markdown.is_some() || self.junit.is_some() {
            bail!("--markdown and --junit are for verdicts; a history has --json and --html");
        }
        if let Some(path) = &self.json {
            output::write(&json(), Some(path))?;
        }
        if let Some(path) = &self.html {
            output::write(&history_html(shown), Some(path))?;
        }
        output::write(&text, None)
    }

    fn files(
        &self,
        markdown: impl Fn() -> String,
        json: impl Fn() -> String,
        junit: impl Fn() -> String,
        html: Option<&dyn Fn() -> String>,
    ) -> Result<()> {
        for (path, text) in
            [(&self.markdown, &markdown as &dyn Fn() -> String), (&self.json, &json), (&self.junit, &junit)]
        {
            if let Some(path) = path {
                output::write(&text(), Some(path))?;
            }
        }
        match (&self.html, html) {
            (Some(path), Some(html)) => output::write(&html(), Some(path)),
            (Some(_), None) => bail!("--html: limits have no page"),
            (None, _) => Ok(()),
        }
    }
}
