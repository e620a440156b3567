//! `docs/reference/cli.md`: what clap knows of every command, as a page.

use clap::CommandFactory;
use clap_markdown::{MarkdownOptions, help_markdown_command_custom};

const INTRODUCTION: &str = "# Commands and options

Every command with every option, as in `--help`. [README](../../README.md#commands) lists them by purpose. \
A test writes this page (`cargo test -p taut reference`, with `TAUT_UPDATE=1`).

`--format` is the form of a result: `terminal` is text with tables, `markdown` is for a pull request or an issue, \
`json` is for scripts (versioned, [schemas](schemas.md)), `html` is one self-contained page, `csv` has a row for each trial.
";

fn page() -> String {
    let options = MarkdownOptions::new().show_footer(false).show_table_of_contents(false);
    let text = help_markdown_command_custom(&crate::Cli::command(), &options);
    // Its own title and greeting make room for ours.
    let commands = text.split_once("\n## ").expect("a heading for each command").1;
    format!("{INTRODUCTION}\n## {}", tidied(commands))
}

/// Examples become blocks, the tables' headings plain lines, and the forms of a result, which are always the same, names alone.
fn tidied(text: &str) -> String {
    let mut page = String::new();
    let (mut is_example, mut is_form) = (false, false);
    for line in text.lines().map(|line| line.replace("###### **", "**")) {
        if line.starts_with("* `") {
            is_form = line.contains("`--format");
        }
        if is_form && line.starts_with("    ") {
            continue;
        }
        let line = match line.strip_suffix(':') {
            Some(form) if is_form && form.ends_with('`') => form.to_owned(),
            _ => line,
        };
        let begins = line == "Example:" || line == "Examples:";
        if is_example && !line.starts_with("  ") {
            page += "```\n";
            is_example = false;
        }
        let empty = line.is_empty() && page.ends_with("\n\n");
        if !empty {
            page += if is_example { &line[2..] } else { &line };
            page.push('\n');
        }
        if begins {
            page += "\n```text\n";
            is_example = true;
        }
    }
    page.trim_end().to_owned() + "\n"
}

#[test]
fn the_reference_of_commands_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
    let wanted = page();
    if std::env::var_os("TAUT_UPDATE").is_some() {
        std::fs::write(path, wanted).unwrap();
    } else {
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == wanted, "docs/reference/cli.md is out of date: run this test with TAUT_UPDATE=1");
    }
}

/// The rows of `docs/reference/README.md`.
fn exit_codes() -> String {
    crate::exit::TABLE.map(|(code, _, meaning)| format!("| {code} | {meaning} |\n")).concat()
}

#[test]
fn the_reference_has_every_exit_code() {
    const BEFORE: &str = "## Exit codes\n\n| | |\n|---|---|\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/README.md");
    let kept = std::fs::read_to_string(path).unwrap();
    let (head, rest) = kept.split_once(BEFORE).expect("a table of exit codes");
    let end = rest.find("\n\n").map_or(rest.len(), |at| at + 1);
    let wanted = format!("{head}{BEFORE}{}{}", exit_codes(), &rest[end..]);
    if std::env::var_os("TAUT_UPDATE").is_some() {
        std::fs::write(path, wanted).unwrap();
    } else {
        assert!(kept == wanted, "docs/reference/README.md is out of date: run this test with TAUT_UPDATE=1");
    }
}

#[test]
fn every_command_has_two_examples() {
    fn examine(command: &clap::Command, name: &str) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
            let name = format!("{name} {}", inner.get_name());
            let help = inner.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = help.split("Examples:").nth(1).unwrap_or_default().matches("taut ").count();
            assert!(examples >= 2, "`{name} --help` has {examples} examples");
            examine(inner, &name);
        }
    }
    examine(&crate::Cli::command(), "taut");
}
