//! `--format`: the forms of a result. Each command names those that it has.

use std::{io::IsTerminal, path::Path};

use anyhow::{Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// One form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Terminal,
    Markdown,
    Json,
    Html,
    Csv,
    Toml,
}

impl Format {
    const ALL: [Format; 6] =
        [Format::Terminal, Format::Markdown, Format::Json, Format::Html, Format::Csv, Format::Toml];

    fn word(self) -> &'static str {
        match self {
            Format::Terminal => "terminal",
            Format::Markdown => "markdown",
            Format::Json => "json",
            Format::Html => "html",
            Format::Csv => "csv",
            Format::Toml => "toml",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Format::Terminal => "Text and tables",
            Format::Markdown => "To paste in a pull request",
            Format::Json => "For scripts; the schema is versioned and documented",
            Format::Html => "One self-contained page",
            Format::Csv => "A row a trial, with its metrics",
            Format::Toml => "The file itself, to copy and change",
        }
    }

    /// A page is for a file: refuses to print it on a terminal.
    pub fn check_place(self, output: Option<&Path>, example: &str) -> Result<()> {
        if self == Format::Html && output.is_none() && std::io::stdout().is_terminal() {
            bail!("an HTML page is not for a terminal: add {example}");
        }
        Ok(())
    }
}

/// The parser of a command's `--format`, with the forms that the command has.
pub fn one_of<const N: usize>(forms: [Format; N]) -> impl TypedValueParser<Value = Format> {
    let values = forms.map(|form| PossibleValue::new(form.word()).help(form.about()));
    PossibleValuesParser::new(values)
        .try_map(|word| Format::ALL.into_iter().find(|form| form.word() == word).ok_or("no such form"))
}
