//! `docs/reference/cli.md`: what clap knows of every command, as a page. Options of several commands are described once.

use clap::{Arg, Command, CommandFactory};

const INTRODUCTION: &str = "# Commands and options

As in `taut COMMAND --help`, which has more examples; by purpose in the [README](../../README.md#commands).
[Exit codes](README.md#exit-codes). `TAUT_UPDATE=1 cargo test -p taut reference` writes this page.

## Shared options

What a line *Shared* names is described at the command above the subcommand, else here.

Forms of a result (`--format`): `terminal` is text with tables, `markdown` is for a pull request, `json` for scripts (versioned,
[schemas](schemas.md)), `html` is one self-contained page, `csv` has a row for each trial.

";

/// An option is described once where at least so many commands have it with the same text. Of two each has it nearer at hand.
const SEVERAL: usize = 3;

/// A command as the page has it.
struct Section {
    /// "taut import ctf".
    path: String,
    about: String,
    examples: String,
    /// What the help ends with: exit codes, keys.
    end: String,
    entries: Vec<Entry>,
}

impl Section {
    /// "taut import" of "taut import ctf", and of itself.
    fn family(&self) -> &str {
        self.path.match_indices(' ').nth(1).map_or(self.path.as_str(), |(at, _)| &self.path[..at])
    }

    fn is_subcommand(&self) -> bool {
        self.family() != self.path
    }
}

/// An argument or an option.
struct Entry {
    /// "-o, --output", or "<RUN>..." of an argument.
    name: String,
    /// The same with the option's value.
    head: String,
    text: String,
    /// The values that it takes, where they are listed in its line.
    values: String,
}

impl Entry {
    fn of(arg: &Arg) -> Entry {
        // Of an option the long name and the value.
        let plain = arg.to_string();
        let (name, head) = match (arg.get_short(), arg.get_long()) {
            (Some(short), Some(long)) => (format!("-{short}, --{long}"), format!("-{short}, {plain}")),
            (None, Some(long)) => (format!("--{long}"), plain),
            _ if arg.is_last_set() => (format!("-- {plain}"), format!("-- {plain}")),
            _ => (plain.clone(), plain),
        };
        let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let takes_value = arg.get_action().takes_values();
        for value in arg.get_default_values().iter().filter(|_| takes_value && !arg.is_hide_default_value_set()) {
            text += &format!(" [default: {}]", value.to_string_lossy());
        }
        if arg.is_required_set() && !arg.is_positional() {
            text += " [required]";
        }
        let mut values = Vec::new();
        for value in arg.get_possible_values() {
            // The introduction describes the forms of a result.
            match value.get_help().filter(|_| arg.get_long() != Some("format")) {
                Some(help) => text += &format!("\n  - `{}`: {help}", value.get_name()),
                None => values.push(format!("`{}`", value.get_name())),
            }
        }
        Entry { name, head, text, values: values.join(", ") }
    }

    fn is_option(&self) -> bool {
        self.name.starts_with('-') && !self.name.starts_with("-- ")
    }

    fn line(&self, values: &str) -> String {
        let values = if values.is_empty() { String::new() } else { format!(" [{values}]") };
        format!("- `{}`: {}{values}\n", self.head, self.text)
    }
}

/// The same entry of several commands.
struct Group<'a>(Vec<(&'a Section, &'a Entry)>);

impl Group<'_> {
    fn has(&self, entry: &Entry) -> bool {
        self.0[0].1.head == entry.head && self.0[0].1.text == entry.text
    }

    /// Commands may take other values of a shared option; then each names its own.
    fn has_same_values(&self) -> bool {
        self.0.iter().all(|(_, entry)| entry.values == self.0[0].1.values)
    }

    fn line(&self) -> String {
        let entry = self.0[0].1;
        entry.line(if self.has_same_values() { &entry.values } else { "" })
    }
}

/// The entries that several of these commands have, in the order in which they first come.
fn groups<'a>(sections: impl Iterator<Item = &'a Section>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for section in sections {
        for entry in &section.entries {
            match groups.iter_mut().find(|group| group.has(entry)) {
                Some(group) => group.0.push((section, entry)),
                None => groups.push(Group(vec![(section, entry)])),
            }
        }
    }
    groups.retain(|group| group.0.len() >= SEVERAL);
    groups
}

fn page() -> String {
    let mut root = crate::Cli::command();
    root.build();
    let mut sections = Vec::new();
    collect("taut", &root, &mut sections);
    let mut general = groups(sections.iter());
    general.retain(|group| {
        let (first, entry) = group.0[0];
        entry.is_option() && group.0.iter().any(|(section, _)| section.family() != first.family())
    });
    let mut names: Vec<&str> = general.iter().map(|group| group.0[0].1.name.as_str()).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|two| two[0] != two[1]), "two shared options have one name: {names:?}");

    let mut page = INTRODUCTION.to_owned();
    page.extend(root.get_arguments().filter(|arg| arg.is_global_set()).map(|arg| Entry::of(arg).line("")));
    page.extend(general.iter().map(Group::line));
    for section in &sections {
        let of_family = sections.iter().filter(|other| other.is_subcommand() && other.family() == section.family());
        let mut of_family = groups(of_family);
        of_family.retain(|group| !general.iter().any(|other| other.has(group.0[0].1)));
        let level = if section.is_subcommand() { "###" } else { "##" };
        page += &format!("\n{level} `{}`\n\n{}\n", section.path, section.about);
        if !section.examples.is_empty() && !section.is_subcommand() {
            page += &format!("\n```text\n{}```\n", section.examples);
        }
        if !section.end.is_empty() {
            page += &format!("\n{}\n", section.end);
        }
        if !of_family.is_empty() && !section.is_subcommand() {
            page += "\nShared by subcommands:\n\n";
            page.extend(of_family.iter().map(Group::line));
        }
        if !section.entries.is_empty() {
            page.push('\n');
        }
        let mut shared = Vec::new();
        for entry in &section.entries {
            let mut described = general.iter().chain(of_family.iter().filter(|_| section.is_subcommand()));
            match described.find(|group| group.has(entry)) {
                None => page += &entry.line(&entry.values),
                Some(group) if group.has_same_values() => shared.push(format!("`{}`", entry.name)),
                Some(_) => shared.push(format!("`{}` ({})", entry.name, entry.values)),
            }
        }
        if !shared.is_empty() {
            page += &format!("- *Shared*: {}\n", shared.join(", "));
        }
    }
    page
}

/// Every command below this one, each before its subcommands.
fn collect(path: &str, command: &Command, sections: &mut Vec<Section>) {
    let is_shown = |inner: &&Command| !inner.is_hide_set() && inner.get_name() != "help";
    for inner in command.get_subcommands().filter(is_shown) {
        let path = format!("{path} {}", inner.get_name());
        sections.push(section(&path, inner));
        collect(&path, inner, sections);
    }
}

fn section(path: &str, command: &Command) -> Section {
    let mut about =
        command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default();
    if !about.ends_with('.') {
        about.push('.');
    }
    for alias in command.get_visible_aliases() {
        about += &format!(" Also called `{alias}`.");
    }
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (examples, end) = match help.strip_prefix("Examples:\n") {
        Some(rest) => rest.split_once("\n\n").unwrap_or((rest, "")),
        None => ("", help.as_str()),
    };
    let is_shown = |arg: &&Arg| {
        let is_everywhere = arg.is_global_set() || ["help", "version"].contains(&arg.get_id().as_str());
        !arg.is_hide_set() && !is_everywhere
    };
    // Arguments first, as they are used without their names.
    let (arguments, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(is_shown).partition(|arg| arg.is_positional());
    Section {
        path: path.to_owned(),
        about,
        examples: examples.lines().map(|line| format!("{}\n", line.trim_start())).collect(),
        end: end.trim_end().to_owned(),
        entries: arguments.into_iter().chain(options).map(Entry::of).collect(),
    }
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
