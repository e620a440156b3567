//! Tests that cannot run on every machine. Rust's test harness has no skip at run time: a test that returns early counts
//! as passed and what it printed is hidden. So a test says here what is missing, and returns:
//!
//! - `TAUT_TEST_SKIPPED` names a file that gets a line for each skipped test; `make test` prints it at its end.
//! - `TAUT_TEST_REQUIRE` lists needs that this machine must meet (`root,perf`, or `all`): a skip for one of them fails.

use std::{fmt, fs::OpenOptions, io::Write, panic::Location, thread};

/// What a machine may lack. The names are those of `TAUT_TEST_REQUIRE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To write control groups.
    Cgroups,
    /// A second CPU.
    Cpus,
    /// Kernel events through tracefs.
    Ftrace,
    /// To lock memory.
    Memlock,
    /// To mount a file system.
    Mount,
    /// The Python package mujoco in the checkout's .venv.
    Mujoco,
    /// Namespaces of processes, users or networks.
    Namespaces,
    /// The kernel's netem queue, which delays packets.
    Netem,
    /// Kernel events or samples through `perf_event_open`.
    Perf,
    /// The program ptp4l, of linuxptp.
    Ptp4l,
    /// To be the superuser.
    Root,
    /// The wheels of ROS 2, in the checkout's .venv-ros2 or where TAUT_TEST_ROS2 says.
    Ros2,
    /// An ssh server that this user may start.
    Sshd,
    /// The program strace, and to trace with it.
    Strace,
    /// A setting of the machine that this user may change.
    Settings,
    /// A counter register of the CPU that taut reads.
    Tsc,
    /// Virtual CAN: the kernel module vcan.
    Vcan,
    /// The wheel of this checkout in `.venv`.
    Wheel,
    /// The program zstd, for tar.
    Zstd,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// Reports the calling test as skipped, because this machine lacks `need`; `why` has the details. The test returns then.
///
/// # Panics
/// `TAUT_TEST_REQUIRE` says that this machine has it, or the report cannot be written.
#[track_caller]
pub fn skip(need: Need, why: impl fmt::Display) {
    let required = std::env::var("TAUT_TEST_REQUIRE").unwrap_or_default();
    assert!(!is_required(&required, need), "needs {need}, which TAUT_TEST_REQUIRE={required} promises: {why}");
    // The harness names a test's thread for it, but not with --test-threads=1.
    let (thread, file) = (thread::current(), Location::caller().file());
    let name = thread.name().filter(|name| *name != "main").unwrap_or("a test");
    let line = format!("{name} ({file}): {need}: {}\n", why.to_string().replace('\n', " "));
    eprint!("skipped: {line}");
    if let Some(path) = std::env::var_os("TAUT_TEST_SKIPPED") {
        // One write of a file that is only appended to: tests of several processes do not mix.
        let written = OpenOptions::new().append(true).create(true).open(&path);
        written.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file that TAUT_TEST_SKIPPED names");
    }
}

fn is_required(list: &str, need: Need) -> bool {
    list.split(',').map(str::trim).any(|word| word == "all" || word == need.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_promises_it_may_not_skip() {
        assert!(is_required("all", Need::Vcan) && is_required("root, perf", Need::Perf));
        assert!(!is_required("", Need::Root) && !is_required("root,perf", Need::Ftrace));
    }
}
