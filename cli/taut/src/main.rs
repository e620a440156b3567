//! `taut`: find out why a robot control loop jitters. Each command is one file in `commands`.

#![deny(clippy::print_stderr, clippy::print_stdout)]

#[macro_use]
mod say;

mod address;
mod analyse;
#[cfg(test)]
mod arguments;
mod commands;
mod config;
mod exit;
mod folder;
mod format;
mod groups;
mod input;
mod joined;
mod losses;
#[cfg(all(target_feature = "crt-static", target_env = "gnu"))]
mod names;
mod output;
#[cfg(test)]
mod reference;
mod ros_filter;
mod scratch;
mod stop;
mod time;

use std::{process::ExitCode, sync::LazyLock};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};
use exit::Codes;

/// What `make setup` built it from, where that is known.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    option_env!("TAUT_REVISION").map_or_else(|| version.to_owned(), |revision| format!("{version} ({revision})"))
});

/// Find out why a robot control loop is late.
///
/// Records where each message was and when; reports latency by hop, outcomes, and the causes of late messages.
#[derive(Parser)]
#[command(
    name = "taut",
    version = VERSION.as_str(),
    arg_required_else_help = true,
    after_help = format!("Example:\n  taut record -o run.mcap -- python my_robot.py\n  taut report run.mcap\n  taut explain run.mcap --worst 5\n\n{}", exit::help())
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print the whole chain of causes of an error.
    #[arg(short, long, global = true)]
    verbose: bool,
}

#[derive(Subcommand)]
enum Command {
    Record(commands::record::Args),
    Top(commands::top::Args),
    Report(commands::report::Args),
    Explain(commands::explain::Args),
    Flamegraph(commands::flamegraph::Args),
    Compare(commands::compare::Args),
    Gate(Box<commands::gate::Args>),
    Fleet(commands::fleet::Args),
    Doctor(commands::doctor::Args),
    Wakeup(commands::wakeup::Args),
    Tune(Box<commands::tune::Args>),
    Lab(commands::lab::Args),
    Import(commands::import::Args),
    Export(commands::export::Args),
    Merge(commands::merge::Args),
    Recover(commands::recover::Args),
    Telemetry(commands::telemetry::Args),
    Bus(commands::bus::Args),
    Guard(commands::guard::Args),
    Demo(commands::demo::Args),
    Ros2(commands::ros2::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
}

fn main() -> ExitCode {
    #[cfg(all(target_feature = "crt-static", target_env = "gnu"))]
    names::by_files_and_dns();
    taut_capture::heed_children();
    let cli =
        match groups::grouped(Cli::command()).try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
            Ok(cli) => cli,
            Err(error) if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                say!("taut: {}", usage_error(&error));
                return ExitCode::from(if runs_a_command() { exit::RECORD_FAILED } else { exit::BAD_INPUT });
            }
            // Help, or the version.
            Err(error) => match error.print() {
                Err(failed) if failed.kind() != std::io::ErrorKind::BrokenPipe => {
                    say!("taut: stdout: {failed}");
                    return ExitCode::from(exit::IO_FAILED);
                }
                _ => return ExitCode::from(error.exit_code() as u8),
            },
        };
    let codes = match &cli.command {
        Command::Record(args) if args.runs_a_command() => Codes::Command,
        Command::Wakeup(args) if args.becomes_a_command() => Codes::Command,
        _ => Codes::Own,
    };
    let done = match cli.command {
        Command::Record(args) => commands::record::run(&args),
        Command::Top(args) => commands::top::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Flamegraph(args) => commands::flamegraph::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Gate(args) => commands::gate::run(&args),
        Command::Fleet(args) => commands::fleet::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Wakeup(args) => commands::wakeup::run(&args),
        Command::Tune(args) => commands::tune::run(&args),
        Command::Lab(args) => commands::lab::run(&args),
        Command::Import(args) => commands::import::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Recover(args) => commands::recover::run(&args),
        Command::Telemetry(args) => commands::telemetry::run(&args),
        Command::Bus(args) => commands::bus::run(&args),
        Command::Guard(args) => commands::guard::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Ros2(args) => commands::ros2::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
    };
    match done {
        Ok(done) => done.into(),
        Err(error) => {
            // One line, whatever the name of a file or what is in it.
            let text = match cli.verbose {
                true => format!("{error:?}"),
                false => taut_recording::printable(exit::told(&error)),
            };
            say!("taut: {text}");
            ExitCode::from(exit::code_of(&error, codes))
        }
    }
}

/// Whether what could not be parsed was to run a command: its exit codes are that command's.
fn runs_a_command() -> bool {
    let mut words = std::env::args_os().skip(1).skip_while(|word| word.to_string_lossy().starts_with('-'));
    words.next().is_some_and(|word| word == "record") && words.any(|word| word == "--")
}

/// In one line: what was wrong with the command line, the nearest names, how the command is used, and where to read more.
fn usage_error(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let (what, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let what = words(what);
    let mut parts = vec![what.strip_prefix("error: ").unwrap_or(&what).to_owned()];
    parts.extend(rest.lines().map(words).filter(|line| line.starts_with("tip:") || line.starts_with("Usage:")));
    // clap shows the usage only where an argument is wrong or missing, not for a wrong value.
    let usage = parts.last().and_then(|part| part.strip_prefix("Usage: ")).unwrap_or("taut");
    let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    let command = usage.split(' ').take_while(is_name).collect::<Vec<_>>().join(" ");
    parts.push(format!("see {command} --help"));
    parts.join("; ")
}
