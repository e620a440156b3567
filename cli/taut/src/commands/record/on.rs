//! `taut record --on NAME=ssh://HOST COMMAND`: each host records for itself, and its recording is fetched at the end.
//!
//! A host's recorder is a process of its own there, which goes on if the connection ends. So is the recorder of this host: a recorder
//! takes all children of its process for the program's.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::{
    process::{Pid, Signal, getpgrp, kill_process},
    termios::tcgetpgrp,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use taut_lab::{Ended, Remote, UNREACHABLE, quoted};
use taut_recording::{Output, Shown};
use tempfile::NamedTempFile;

use super::{Args, host_name};
use crate::{
    exit::{Done, IO_FAILED, Interrupted},
    stop::{self, Stop},
};

/// Where a host keeps what it records until it is fetched: a place that outlives a reboot.
const FOLDER: &str = "/var/tmp/taut-record";
/// A host's command runs by then.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// Time between two tries to reach a host, and how many there are.
const AGAIN: Duration = Duration::from_secs(3);
const TRIES: u32 = 5;
/// How often is looked whether something ended.
const STEP: Duration = Duration::from_millis(50);
/// The code of what SIGTERM ended.
const TERMINATED: i32 = 128 + SIGTERM;

/// A host's recorder.
struct Other {
    remote: Remote,
    /// For people: as for ssh.
    place: String,
    command: String,
    /// Where its recording goes here.
    output: PathBuf,
    /// The same, which no other command writes meanwhile.
    file: Output,
    /// The program there.
    taut: String,
    /// The connection that it runs in, until it ends.
    running: Option<Child>,
    /// Whether its recorder is known to have ended.
    is_over: bool,
}

/// Starts all, waits, ends those that still run, fetches their recordings.
pub fn run(args: &Args) -> Result<Done> {
    let mut others = others(args)?;
    let stop = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    for other in &mut others {
        other.prepare(&stop)?;
        other.begin(args, &stop)?;
        if !args.quiet {
            say!("taut: recording on {}: {}", other.remote.name, other.command);
        }
    }
    let own = match args.command.is_empty() {
        true => wait(&mut others, &stop)?,
        false => own(&stop)?,
    };
    // Now a signal is for what is left to do.
    let hurry = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    let files: Vec<String> = others.iter().map(|other| quoted(&other.output.shown())).collect();
    let mut all = own;
    for other in others {
        let done = other.finish(&hurry.flag, args.ignore_loss)?;
        all = if all == Done::Fine { done } else { all };
    }
    if !args.quiet {
        let own = (!args.command.is_empty()).then(|| quoted(&args.output.shown()));
        let files: Vec<String> = own.into_iter().chain(files).collect();
        let join = if files.len() > 1 { " --join" } else { "" };
        say!("taut: next: taut report {}{join}", files.join(" "));
    }
    Ok(all)
}

/// The hosts, as the options name them.
fn others(args: &Args) -> Result<Vec<Other>> {
    let own = args
        .host_name
        .clone()
        .unwrap_or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned());
    let mut others: Vec<Other> = Vec::new();
    for pair in args.on.chunks_exact(2) {
        let [host, command] = pair else { continue };
        let Some((name, place)) = host.split_once('=').filter(|(_, place)| is_place(place)) else {
            bail!(
                "--on {host}: takes NAME=ssh://USER@HOST and a command, as in --on robot=ssh://alice@10.0.0.2 './robot'"
            );
        };
        if let Err(problem) = host_name(name) {
            bail!("--on {host}: the name {problem}");
        }
        if others.iter().any(|other| other.remote.name == name) || (name == own && !args.command.is_empty()) {
            bail!("--on {host}: another host has the name {name}; give each one of its own, this one by --host-name");
        }
        let stem = args.output.file_stem().unwrap_or_default().to_string_lossy();
        let output = args.output.with_file_name(format!("{stem}.{name}.mcap"));
        others.push(Other {
            remote: Remote::new(name, place, &[]),
            place: place.to_owned(),
            command: command.clone(),
            file: Output::open(&output)?,
            output,
            taut: String::new(),
            running: None,
            is_over: false,
        });
    }
    Ok(others)
}

/// What ssh takes as an address, and not as an option.
fn is_place(text: &str) -> bool {
    let host = text.strip_prefix("ssh://").unwrap_or_default();
    !host.is_empty() && !host.starts_with('-') && host.chars().all(|c| c.is_ascii_graphic() && !"'\"\\/".contains(c))
}

/// Records this host's command in a process of its own, with the options that are not of other hosts.
fn own(stop: &Stop) -> Result<Done> {
    let mut words = std::env::args_os().skip(1);
    let mut kept: Vec<OsString> = Vec::new();
    while let Some(word) = words.next() {
        let is_on = word == "--on" || word.to_string_lossy().starts_with("--on=");
        if word == "--" {
            kept.push(word);
            kept.extend(words.by_ref());
        } else if is_on {
            // Its values.
            words.nth(usize::from(word == "--on"));
        } else {
            kept.push(word);
        }
    }
    let program = std::env::current_exe()?;
    let mut child = Command::new(&program).args(kept).spawn().with_context(|| program.shown())?;
    let mut is_told = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if let Some(signal) = stop.signal().filter(|_| !is_told) {
            is_told = true;
            // What a terminal sends reaches both by itself.
            let is_terminals = tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == getpgrp());
            if let Some(signal) = Signal::from_named_raw(signal).filter(|_| !is_terminals) {
                kill_process(Pid::from_child(&child), signal)?;
            }
        }
        std::thread::sleep(STEP);
    };
    Ok(match status.code() {
        Some(0) => Done::Fine,
        code => Done::Forwarded(code.map_or(IO_FAILED, |code| code.clamp(1, 255) as u8)),
    })
}

/// Until every host's command has ended, or a signal asks for the end.
fn wait(others: &mut [Other], stop: &Stop) -> Result<Done> {
    let mut again = Instant::now();
    while !stop.flag.load(Relaxed) {
        let is_time = Instant::now() >= again;
        let mut is_over = true;
        for other in others.iter_mut() {
            is_over &= other.has_ended()? || (is_time && other.is_gone(&stop.flag).unwrap_or(false));
        }
        if is_over {
            break;
        }
        again = if is_time { Instant::now() + AGAIN } else { again };
        std::thread::sleep(STEP);
    }
    Ok(Done::Fine)
}

impl Other {
    /// A folder there, and a program that runs there.
    fn prepare(&mut self, stop: &Stop) -> Result<()> {
        let made = self.remote.make_folder(FOLDER, "$(uname -m) $(command -v taut)", &stop.flag);
        let said = reached(made, stop)?.map_err(|why| self.failed(&why))?;
        let (machine, installed) = said.split_once(' ').unwrap_or((&said, ""));
        if machine == std::env::consts::ARCH {
            let folder = self.folder();
            let program = std::env::current_exe()?;
            let put = format!("put {} {folder}/taut\nchmod 755 {folder}/taut\n", local(&program));
            let sent = reached(self.remote.sftp(&put, &stop.flag), stop)?;
            if sent.code != Some(0) {
                return Err(self.failed(&sent.said));
            }
            self.taut = format!("{folder}/taut");
        } else if installed.is_empty() {
            bail!("{}: is {machine}, and this taut is for {}; install taut there", self.place, std::env::consts::ARCH);
        } else {
            self.taut = installed.to_owned();
        }
        Ok(())
    }

    /// Its recorder records.
    fn begin(&mut self, args: &Args, stop: &Stop) -> Result<()> {
        let folder = self.folder();
        let file = format!("{folder}/run.mcap");
        let mut words = vec![self.taut.clone(), "record".into(), "-o".into(), file.clone()];
        words.extend(["--host-name".into(), self.remote.name.clone()]);
        words.extend(args.for_other_hosts());
        words.extend(["--", "sh", "-c", &self.command].map(String::from));
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        // The shell outlives what is sent to its group, to say how its recorder ended.
        let script = format!(
            "trap : HUP INT TERM; echo $$ > {folder}/pid; {} > {folder}/log 2>&1; echo $? > {folder}/code.new; \
             mv {folder}/code.new {folder}/code",
            words.join(" ")
        );
        self.running = Some(self.remote.start(&format!("exec sh -c {}", quoted(&script)))?);
        let until = Instant::now() + STARTS_WITHIN;
        let is_there = format!("test -s {file}");
        loop {
            let ended = self.has_ended()?;
            if reached(self.remote.ssh(&[], &is_there, &stop.flag), stop)?.code == Some(0) {
                return Ok(());
            }
            if ended || Instant::now() > until {
                let log = reached(self.remote.ssh(&[], &format!("tail -n 1 {folder}/log"), &stop.flag), stop)?;
                return Err(self.failed(&format!("the recorder there does not start: {}", log.said)));
            }
            std::thread::sleep(STEP);
        }
    }

    /// Whether its recorder is known to have ended. Where the connection ended, nothing is known of it.
    fn has_ended(&mut self) -> Result<bool> {
        if let Some(child) = &mut self.running
            && let Some(status) = child.try_wait()?
        {
            self.running = None;
            self.is_over = status.code().is_some_and(|code| code != UNREACHABLE);
            if !self.is_over {
                say!("taut: {}: the connection is lost; its recorder goes on", self.remote.name);
            }
        }
        Ok(self.is_over)
    }

    /// Asks a host to which the connection was lost whether its recorder has ended.
    fn is_gone(&mut self, stop: &AtomicBool) -> Result<bool> {
        if self.running.is_some() {
            return Ok(false);
        }
        let folder = self.folder();
        let asked = format!("test -s {folder}/code || ! kill -0 $(cat {folder}/pid)");
        self.is_over = self.remote.ssh(&[], &asked, stop)?.code == Some(0);
        Ok(self.is_over)
    }

    /// Its recorder has ended, or is ended now; the recording is fetched.
    fn finish(mut self, hurry: &AtomicBool, ignores_loss: bool) -> Result<Done> {
        let folder = self.folder();
        let had_ended = self.has_ended()?;
        if !had_ended {
            // The whole group: the command may be a shell, and the program its child.
            let end = format!(
                "pid=$(cat {folder}/pid); kill -TERM -- -$pid 2> /dev/null; i=0; while kill -0 $pid 2> /dev/null && [ $i -lt 100 ]; do \
                 sleep 0.2; i=$((i+1)); done; kill -KILL -- -$pid 2> /dev/null; true"
            );
            if let Err(why) = self.patiently(hurry, |remote| remote.ssh(&[], &end, hurry)) {
                return Ok(self.leave(&why));
            }
        }
        let (log, code) = (self.output.with_extension("log"), NamedTempFile::new()?);
        // There is no code where the shell there was killed, or the host started again.
        let files =
            [("get", "run.mcap", self.file.path()), ("get", "log", log.as_path()), ("-get", "code", code.path())];
        let get = files.map(|(get, there, here)| format!("{get} {folder}/{there} {}\n", local(here))).concat();
        if let Err(why) = self.patiently(hurry, |remote| remote.sftp(&get, hurry)) {
            return Ok(self.leave(&why));
        }
        if let Err(error) = self.file.put_in_place() {
            self.file.keep();
            let place = self.file.path().shown();
            return Err(error).with_context(|| format!("{}: the recording is in {place}", self.output.shown()));
        }
        // Its own words, with the file's name here.
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let there = format!("taut: {folder}/run.mcap");
        for line in said.lines().filter(|line| line.starts_with(&there) || line.starts_with("taut: warning: ")) {
            let name = &self.remote.name;
            say!("{}", line.replace(&there, &format!("taut: {name}: {}", self.output.shown())).trim_end());
        }
        let has_lost = said.lines().any(|line| line.starts_with(&there) && line.contains(" LOST"));
        if let Some(mut child) = self.running.take() {
            child.wait()?;
        }
        if let Err(what) = self.remote.remove_folder() {
            say!("taut: {}: {what}", self.remote.name);
        }
        let code = std::fs::read_to_string(code.path()).ok().and_then(|code| code.trim().parse::<i32>().ok());
        let (name, log) = (&self.remote.name, log.shown());
        Ok(match code {
            Some(0) => Done::Fine,
            Some(TERMINATED) if !had_ended && has_lost && !ignores_loss => Done::DataLost,
            Some(TERMINATED) if !had_ended => Done::Fine,
            Some(code) => {
                say!("taut: {name}: ended with {code}; its output is in {log}");
                Done::Forwarded(code.clamp(1, 255) as u8)
            }
            None => {
                say!("taut: {name}: how its recorder ended is not known; its output is in {log}");
                Done::Forwarded(IO_FAILED)
            }
        })
    }

    /// Again while the host cannot be reached, some times.
    fn patiently(
        &self,
        hurry: &AtomicBool,
        ask: impl Fn(&Remote) -> Result<Ended, taut_lab::Error>,
    ) -> Result<(), String> {
        let mut said = String::new();
        for at in 0..TRIES {
            if at > 0 {
                std::thread::sleep(AGAIN);
            }
            match ask(&self.remote) {
                Ok(ended) if ended.code == Some(0) => return Ok(()),
                Ok(ended) => said = ended.said,
                Err(error) => said = error.to_string(),
            }
            if hurry.load(Relaxed) {
                break;
            }
        }
        Err(said)
    }

    /// Says where its recording is, and leaves it there.
    fn leave(&mut self, why: &str) -> Done {
        let (name, folder) = (&self.remote.name, self.folder());
        let from = self.place.replacen("ssh://", "sftp://", 1);
        say!(
            "taut: {name}: cannot be reached ({why}); its recorder goes on, and its file stays there: sftp {from}:{folder}/run.mcap {}",
            quoted(&self.output.shown())
        );
        self.remote.keep();
        Done::Forwarded(IO_FAILED)
    }

    fn failed(&self, why: &str) -> anyhow::Error {
        anyhow::anyhow!("{}: {why}", self.place)
    }

    fn folder(&self) -> String {
        self.remote.folder().unwrap_or_default().to_owned()
    }
}

impl Drop for Other {
    /// Where another host failed, no recorder goes on whose file is not fetched.
    fn drop(&mut self) {
        if let Some(child) = &mut self.running
            && let Some(folder) = self.remote.folder()
        {
            let end = format!("kill -TERM -- -$(cat {folder}/pid)");
            let _ = self.remote.ssh(&[], &end, &AtomicBool::new(false));
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A path of this machine in a command of sftp.
fn local(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// Without an answer where a signal asked for the end, or ssh does not start.
fn reached<T>(asked: Result<T, taut_lab::Error>, stop: &Stop) -> Result<T> {
    match stop.signal() {
        Some(signal) => bail!(Interrupted { signal, without: "no host is recorded".to_owned() }),
        None => Ok(asked?),
    }
}

impl Args {
    /// The options of a recording that hold on every host.
    fn for_other_hosts(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut with = |name: &str, value: Option<String>| words.extend(value.map(|value| format!("--{name}={value}")));
        with("depth", Some(self.depth.clone()));
        with("compression", Some(self.compression.clone()));
        with("tier", self.tier.clone());
        with("kernel-source", self.kernel_source.clone());
        with("duration", self.duration.map(taut_wakeup::length));
        with("first-stamp-within", self.first_stamp_within.map(taut_wakeup::length));
        with("ring-records", self.ring_records.map(|records| records.to_string()));
        with("profile", self.profile.map(|hz| hz.to_string()));
        let flags = [
            ("--ignore-loss", self.ignore_loss),
            ("--durable", self.durable),
            ("--profile-system", self.profile_system),
            ("--no-ros2", self.no_ros2),
            ("--wakeup", self.wakeup),
        ];
        words.extend(flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.to_owned()));
        words
    }
}
