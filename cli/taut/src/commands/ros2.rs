//! `taut ros2`: what a ROS 2 installation needs so that its nodes can be recorded later.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::PathBuf,
};

use anyhow::{Context, Result};
use taut_capture::preload_folder;
use taut_recording::Shown;
use taut_report::words;

use super::record::ros2::LIBRARY;
use crate::{exit::Done, output};

/// Prepare ROS 2 nodes for recording.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  eval \"$(taut ros2 env)\"\n  taut ros2 env --format systemd")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Env(Env),
}

/// Print the environment in which ROS 2 nodes can be recorded later.
///
/// Nodes started with it load libtaut_ros2.so and write to rings, 1 MiB a thread. Nothing is recorded until `taut
/// record --pid` attaches.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  eval \"$(taut ros2 env)\"; ros2 launch my_robot bringup.launch.py\n  taut record --pid 4242 --duration 30 -o run.mcap"
)]
struct Env {
    /// Session directory, made (mode 700) if missing [default: /dev/shm/taut-ros2-UID].
    #[arg(long, value_name = "DIR", value_parser = crate::folder::named())]
    session: Option<PathBuf>,
    /// Shell lines, or the [Service] section of a systemd unit.
    #[arg(long, default_value = "sh", value_parser = ["sh", "systemd"])]
    format: String,
}

/// Does what the subcommand says.
pub fn run(args: &Args) -> Result<Done> {
    let Action::Env(env) = &args.action;
    output::write(&environment(env)?, None)?;
    Ok(Done::Fine)
}

fn environment(args: &Env) -> Result<String> {
    let session = session(args)?;
    let folders: Vec<PathBuf> = preload_folder().into_iter().chain([session.clone()]).collect();
    let library = LIBRARY.place(&folders).with_context(|| format!("cannot write {}", LIBRARY.file_name))?;
    if args.format == "systemd" {
        let line = |name: &str, value: OsString| format!("Environment=\"{name}={}\"\n", value.to_string_lossy());
        let preload = LIBRARY.variable(None, &library);
        return Ok(format!("[Service]\n{}{}", line("TAUT_SESSION", session.into()), line("LD_PRELOAD", preload)));
    }
    let existing = std::env::var_os("LD_PRELOAD");
    let line = |name: &str, value: OsString| {
        format!("export {name}={}\n", words::shell(&[value.to_string_lossy().into_owned()]))
    };
    let preload = LIBRARY.variable(existing.as_deref(), &library);
    Ok(line("TAUT_SESSION", session.into()) + &line("LD_PRELOAD", preload))
}

/// The user's directory, or one of this user's in shared memory.
fn session(args: &Env) -> Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let wanted = args.session.clone().unwrap_or_else(|| format!("/dev/shm/taut-ros2-{user}").into());
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&wanted);
    let path = made.and_then(|()| fs::canonicalize(&wanted));
    let path = path.with_context(|| format!("cannot make the session directory {}", wanted.shown()))?;
    taut_capture::check_private(&path, None)?;
    Ok(path)
}
