//! Where a gate's result goes: to stdout in one form, and to as many files as are wanted.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use taut_report::{
    BudgetsShown, GateShown, HistoryShown, budgets_json, budgets_junit, budgets_markdown, budgets_terminal, gate_html,
    gate_json, gate_junit, gate_markdown, gate_terminal, history_html, history_json, history_terminal,
};

use crate::output;

/// Forms of the result.
#[derive(clap::Args)]
pub struct Outputs {
    /// Form of what is printed.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables that fit 100 columns.
    Terminal,
    /// To paste in a pull request.
    Markdown,
    /// For scripts; the schema is versioned and documented.
    Json,
    /// One self-contained page.
    Html,
}

impl Outputs {
    /// Writes an outcome; `kind` is "gate" or "diff".
    pub fn gate(&self, shown: &GateShown<'_>, kind: &'static str) -> Result<()> {
        let json = || format!("{:#}\n", gate_json(shown, kind));
        let text = match self.format {
            Format::Terminal => gate_terminal(shown, output::style(None)),
            Format::Markdown => gate_markdown(shown),
            Format::Json => json(),
            Format::Html => gate_html(shown),
        };
        // The files first: whoever reads the verdict may read them at once.
        self.files(|| gate_markdown(shown), json, || gate_junit(shown), Some(&|| gate_html(shown)))?;
        output::write(&text, None)
    }

    /// Writes what became of budgets.
    pub fn budgets(&self, shown: &BudgetsShown<'_>) -> Result<()> {
        let json = || format!("{:#}\n", budgets_json(shown));
        let text = match self.format {
            Format::Terminal => budgets_terminal(shown, output::style(None)),
            Format::Markdown => budgets_markdown(shown),
            Format::Json => json(),
            Format::Html => bail!("budgets have no page: use --format markdown or terminal"),
        };
        self.files(|| budgets_markdown(shown), json, || budgets_junit(shown), None)?;
        output::write(&text, None)
    }

    /// Writes a history.
    pub fn history(&self, shown: &HistoryShown<'_>) -> Result<()> {
        let json = || format!("{:#}\n", history_json(shown));
        let text = match self.format {
            Format::Terminal => history_terminal(shown, output::style(None)),
            Format::Json => json(),
            Format::Html => history_html(shown),
            Format::Markdown => bail!("a history has no Markdown: use --format terminal, json or html"),
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
            (Some(_), None) => bail!("--html: budgets have no page"),
            (None, _) => Ok(()),
        }
    }
}
