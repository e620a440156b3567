//! All arguments of all commands, for tests that hold each of a kind to one form.

use clap::{Arg, Command, CommandFactory, error::ErrorKind};

/// Each command with its path, and each of its arguments that take a value.
pub fn all() -> Vec<(Vec<String>, Arg)> {
    let mut found = Vec::new();
    collect(&crate::Cli::command(), &["taut".to_owned()], &mut found);
    found
}

fn collect(command: &Command, path: &[String], found: &mut Vec<(Vec<String>, Arg)>) {
    let of = command.get_arguments().filter(|arg| arg.get_action().takes_values());
    found.extend(of.map(|arg| (path.to_vec(), arg.clone())));
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        collect(inner, &[path, &[inner.get_name().to_owned()]].concat(), found);
    }
}

/// What help calls its value.
pub fn value_name(arg: &Arg) -> String {
    let names = arg.get_value_names().map(|names| names.join(" "));
    names.unwrap_or_else(|| arg.get_id().to_string()).to_uppercase()
}

/// What clap says to one value of an argument. Others may be missing; values are read before that is seen.
pub fn refused(path: &[String], arg: &Arg, value: &str) -> Option<String> {
    let word = arg.get_long().map_or_else(|| value.to_owned(), |long| format!("--{long}={value}"));
    let error = crate::Cli::command().try_get_matches_from([path, &[word]].concat()).err()?;
    (error.kind() == ErrorKind::ValueValidation).then(|| error.to_string())
}
