//! `taut --help`: the commands in groups, in the order in which they are needed.

/// Every command, under the heading of its group.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Record and watch", &["record", "top"]),
    ("Understand", &["report", "explain", "flamegraph"]),
    ("Compare", &["compare", "gate", "fleet"]),
    ("Check and improve the machine", &["doctor", "wakeup", "tune"]),
    ("Experiments", &["lab"]),
    ("Data", &["import", "export", "merge", "recover", "telemetry"]),
    ("Robot parts", &["bus", "guard"]),
    ("First steps", &["demo", "ros2", "completions", "help"]),
];

/// The command line with the groups in its help. clap has headings for options only.
pub fn grouped(plain: clap::Command) -> clap::Command {
    let mut command = plain.clone();
    command.build();
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let width = command.get_subcommands().map(|inner| inner.get_name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text += &format!("{header}{heading}:{header:#}\n");
        for inner in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
            text += &format!("  {literal}{:width$}{literal:#}  {about}\n", inner.get_name());
        }
        text.push('\n');
    }
    plain.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}{header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    fn command() -> clap::Command {
        grouped(crate::Cli::command())
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut all = crate::Cli::command();
        all.build();
        let there: BTreeSet<&str> =
            all.get_subcommands().filter(|inner| !inner.is_hide_set()).map(clap::Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), there);
        assert_eq!(grouped.len(), there.len(), "a command is in two groups");
    }

    #[test]
    fn the_help_has_every_group_and_the_options() {
        let help = command().render_help().to_string();
        for (heading, names) in GROUPS {
            assert!(help.contains(&format!("\n{heading}:\n")), "{help}");
            names.iter().for_each(|name| assert!(help.contains(&format!("\n  {name} ")), "{name}: {help}"));
        }
        assert!(help.contains("\nOptions:\n") && help.contains("--verbose") && help.contains("Exit codes:"), "{help}");
        assert!(!help.contains("\nCommands:"), "{help}");
    }

    #[test]
    fn a_misspelt_command_gets_the_nearest_one() {
        for (typed, meant) in [("explian", "explain"), ("flame", "flamegraph"), ("wakup", "wakeup")] {
            let error = command().try_get_matches_from(["taut", typed]).unwrap_err().to_string();
            assert!(error.contains("similar subcommand") && error.contains(&format!("'{meant}'")), "{typed}: {error}");
        }
    }
}
