//! Becomes the command of a trial, with the settings that a program inherits. Both sides of a comparison start so.

use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::{
    process::{getpid, setpriority_process},
    thread::set_current_timer_slack,
};
use serde::{Deserialize, Serialize};

use crate::{Error, Plan, Setting, family::children, python, scheduler};

/// What a trial is started with; written for [`launch`] by the process that runs the search.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// Only its settings are used here.
    pub plan: Plan,
    /// Where the process number goes, and behind it those of children that are not the program's: the recorder's probe is one.
    pub pid_file: PathBuf,
    /// A folder for files that the program loads.
    pub folder: PathBuf,
}

/// Reads a launch, applies its settings to this process, and becomes the command. Returns only on failure.
///
/// # Errors
/// A setting that the system refuses, a command that does not start.
pub fn launch(file: &Path, command: &[OsString]) -> Error {
    match prepared(file, command) {
        Ok(mut prepared) => {
            let source = prepared.exec();
            Error::Command { command: prepared.get_program().to_string_lossy().into_owned(), source }
        }
        Err(error) => error,
    }
}

fn prepared(file: &Path, command: &[OsString]) -> Result<Command, Error> {
    let text = std::fs::read_to_string(file).map_err(Error::file(file))?;
    let launch: Launch =
        serde_json::from_str(&text).map_err(|source| Error::Format { path: file.to_owned(), source })?;
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::Command { command: String::new(), source: io::ErrorKind::NotFound.into() });
    };
    let settings = &launch.plan.settings;
    let interpreter = settings.iter().find_map(|setting| match setting {
        Setting::Interpreter(path) => Some(OsString::from(path)),
        _ => None,
    });
    let mut prepared = Command::new(interpreter.as_ref().unwrap_or(program));
    prepared.args(arguments);
    let variables = settings.iter().filter_map(|setting| match setting {
        Setting::Variable(name, value) => Some((name.clone(), value.clone())),
        _ => None,
    });
    prepared.envs(variables).envs(python::variables(settings, &launch.folder)?);
    for setting in settings {
        apply(setting).map_err(|source| Error::Setting { what: setting.to_string(), source })?;
    }
    // Last: from here on the process is the trial's.
    let pid = getpid().as_raw_nonzero().get();
    let numbers: Vec<String> = std::iter::once(pid).chain(children(pid)).map(|pid| pid.to_string()).collect();
    let unready = launch.pid_file.with_extension("new");
    std::fs::write(&unready, numbers.join(" ")).map_err(Error::file(&unready))?;
    std::fs::rename(&unready, &launch.pid_file).map_err(Error::file(&launch.pid_file))?;
    Ok(prepared)
}

fn apply(setting: &Setting) -> io::Result<()> {
    match setting {
        Setting::Fifo(priority) => scheduler::schedule(0, &scheduler::Scheduling::fifo(*priority)),
        Setting::Nice(nice) => Ok(setpriority_process(None, *nice)?),
        Setting::TimerSlack(ns) => {
            let slack = std::num::NonZeroU64::new(*ns);
            Ok(set_current_timer_slack(slack)?)
        }
        Setting::NoHugePages => scheduler::no_huge_pages(),
        // The command's environment and first word have the others.
        _ => Ok(()),
    }
}
