//! One process of the lab with all it starts: in a process group and on its CPUs before its first instruction, its
//! output in files, killed with the lab.

use std::{
    collections::BTreeMap,
    ffi::{CString, OsString},
    fs::File,
    io,
    os::{
        fd::{AsRawFd, BorrowedFd, RawFd},
        unix::{
            ffi::OsStrExt,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};

use super::{
    Place,
    mine::{MARK, PART},
};
use crate::{Cpus, Error};

/// Where a process finds the session that it stamps into.
pub(crate) const SESSION: &str = "TAUT_SESSION";

/// The place of an error that is about the CPUs of a child, and not about its command.
pub(crate) const CPUS: &str = "cpus";

pub(crate) struct Child {
    name: String,
    child: std::process::Child,
    stdout: PathBuf,
    stderr: PathBuf,
    cpus: Option<Cpus>,
    ended: Option<ExitStatus>,
}

impl Child {
    pub fn start(
        name: &str,
        words: &[OsString],
        environment: &BTreeMap<String, String>,
        cpus: Option<&Cpus>,
        place: &Place<'_>,
    ) -> Result<Child, Error> {
        let failed = |problem: String| Error::Start { place: name.to_owned(), problem };
        let (program, arguments) = words.split_first().ok_or_else(|| failed("has no command".into()))?;
        let log = |stream: &str| place.logs.join(format!("{name}.{stream}"));
        let (stdout, stderr) = (log("stdout"), log("stderr"));
        let open = |path: &Path| File::create(path).map_err(Error::file(path));
        let groups = place.cgroups.map(|groups| groups.part(name, cpus, place.of_system)).transpose();
        let groups = groups.map_err(|error| {
            let problem = format!("no control group of {name} for CPU {}: {error}", word(cpus));
            Error::Start { place: CPUS.to_owned(), problem }
        })?;
        let confine = Confine {
            parent: std::process::id() as i32,
            groups: groups.into_iter().flatten().map(|path| c_string(&path)).collect(),
            mask: cpus.map(Cpus::mask),
            // The descriptor stays open in the lab until the child is there.
            network: place.network.map(|network| network.fd().as_raw_fd()),
        };
        let mut command = Command::new(program);
        command.args(arguments).envs(environment).env(MARK, place.mine.mark()).env(PART, name);
        // A recorder of the lab itself is not the system's.
        if !environment.contains_key(SESSION) {
            command.env_remove(SESSION);
        }
        command.stdin(Stdio::null()).stdout(open(&stdout)?).stderr(open(&stderr)?).process_group(0);
        // SAFETY: only system calls on memory that was made before the fork.
        unsafe { command.pre_exec(move || confine.apply()) };
        let child = command.spawn().map_err(|error| {
            let on = cpus.map_or(String::new(), |cpus| format!(" on CPU {cpus}"));
            failed(format!("{} does not start{on}: {error}", program.to_string_lossy()))
        })?;
        place.mine.started(child.id()).map_err(Error::file(place.mine.folder()))?;
        Ok(Child { name: name.to_owned(), child, stdout, stderr, cpus: cpus.cloned(), ended: None })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The only CPUs it may use.
    pub fn cpus(&self) -> Option<&Cpus> {
        self.cpus.as_ref()
    }

    /// How it ended, once it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Returns when it ends, or after this time.
    pub fn wait_a_little(&self, time: Duration) {
        let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()) {
            Ok(fd) => drop(poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout))),
            // Already waited for, or a kernel without pidfds.
            Err(_) => std::thread::sleep(time.min(Duration::from_millis(1))),
        }
    }

    /// To it and all of its process group.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }

    pub fn stdout(&self) -> &Path {
        &self.stdout
    }

    pub fn stderr(&self) -> &Path {
        &self.stderr
    }

    /// The last line it said, of stderr if there is one.
    pub fn last_words(&self) -> Option<String> {
        let last = |path: &Path| {
            let text = String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned();
            text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
        };
        last(&self.stderr).or_else(|| last(&self.stdout))
    }
}

/// An end in words: "exit code 3", "killed by signal 11".
pub(crate) fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        _ => status.to_string(),
    }
}

struct Confine {
    parent: i32,
    groups: Vec<CString>,
    mask: Option<rustix::thread::CpuSet>,
    network: Option<RawFd>,
}

impl Confine {
    fn apply(&self) -> io::Result<()> {
        taut_wakeup::end_with(self.parent)?;
        if let Some(network) = self.network {
            // SAFETY: open, since the lab holds it while it starts children.
            let network = unsafe { BorrowedFd::borrow_raw(network) };
            rustix::thread::move_into_link_name_space(network, Some(rustix::thread::LinkNameSpaceType::Network))?;
        }
        for group in &self.groups {
            let file = rustix::fs::open(group.as_c_str(), rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty())?;
            rustix::io::write(&file, b"0")?;
        }
        if let Some(mask) = &self.mask {
            rustix::thread::sched_setaffinity(None, mask)?;
        }
        Ok(())
    }
}

fn c_string(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

fn word(cpus: Option<&Cpus>) -> String {
    cpus.map_or("all".into(), Cpus::to_string)
}
