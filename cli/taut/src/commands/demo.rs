//! `taut demo`: a robot's loop, recorded and reported. What there is to show is `taut.demo`, in Python, as the robots are.

use std::{os::unix::process::CommandExt, path::PathBuf, process::Command, time::Duration};

use anyhow::{Result, anyhow};
use taut_recording::Shown;

use crate::{exit::Done, time};

/// Record a robot that comes with taut, and report.
///
/// The robots are simulated, their control loops real. Needs the wheel with its packages: pip install 'taut-….whl[demo]'.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  taut demo\n  taut demo quad --duration 30")]
pub struct Args {
    /// Which robot.
    #[arg(value_enum, default_value = "teleop")]
    robot: Robot,
    /// How long to record.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = length)]
    duration: Duration,
    /// Recording to write [default: taut-demo-ROBOT.mcap].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Robot {
    /// A small arm leads a large one; threads of one interpreter.
    Teleop,
    /// A quadruped trots; twelve servos on four buses.
    Quad,
    /// An arm reaches over a wall; four processes over DDS.
    Reach,
    /// Unmodified ROS 2 nodes: camera, detector, planner and controller.
    Ros2,
}

/// Says how to get the module where there is none.
const START: &str = "
import sys
try:
    from taut.demo import main
except ModuleNotFoundError as missing:
    print(f\"taut: demo: {sys.executable} has no module {missing.name}; pip install 'taut-….whl[demo]'\", file=sys.stderr)
    sys.exit(2)
main()
";

/// Becomes the interpreter that shows the robot.
pub fn run(args: &Args) -> Result<Done> {
    let robot = match args.robot {
        Robot::Teleop => "teleop",
        Robot::Quad => "quad",
        Robot::Reach => "reach",
        Robot::Ros2 => "ros2",
    };
    let python = taut_lab::interpreter(None);
    let mut command = Command::new(&python);
    command.args(["-c", START, robot]).arg(format!("--duration={}", args.duration.as_secs_f64()));
    if let Some(output) = &args.output {
        command.arg("--output").arg(output);
    }
    let error = command.arg("--taut").arg(std::env::current_exe()?).exec();
    Err(anyhow!("demo: {}: {error}; install Python 3.11 or later, and pip install 'taut-….whl[demo]'", python.shown()))
}

fn length(text: &str) -> Result<Duration, String> {
    let within = |time: &Duration| (Duration::from_secs(1)..=Duration::from_secs(3600)).contains(time);
    time::length(text).and_then(|time| Some(time).filter(within).ok_or("give a time from 1s to 1h".to_owned()))
}
