//! One trial on a running system: from the marks before it to the verdict after it.

use std::{
    ffi::OsString,
    path::Path,
    process::ExitStatus,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::process::Signal;

use super::{
    STEP,
    recorder::{RECORDING, Recorder},
    stack::{LOOK, Stack, quoted, relocate},
    watch::{Ran, Watch},
};
use crate::{
    Command, Error, Id, Lab, Pressure, Report, Status, Trial,
    isolation::{Child, Switches, Tree, ended, reap},
    lab::TRIAL,
    stamps::{self, Told},
    trial::{Reported, reported},
};

/// A load is measured over at least this long: its count is written every 20 ms.
const LOAD_WINDOW: Duration = Duration::from_millis(250);
/// A system that fell while a trial failed may be seen only after the trial's own end.
const FALL: Duration = Duration::from_millis(100);

/// Where every thread ran, in the folder of a trial.
const RAN: &str = "ran.txt";

/// How the waiting for a trial ended.
enum End {
    Exit(ExitStatus),
    Fallen(String),
    LoadEnded(String),
    TimeOut,
}

impl Stack<'_> {
    pub(super) fn trial(&mut self, id: Id, name: &str) -> Result<Trial, Error> {
        let lab = self.session.lab;
        let logs = self.logs.join(name);
        std::fs::create_dir_all(&logs).map_err(Error::file(&logs))?;
        let mut environment = lab.trial.environment.clone();
        environment.extend([
            ("TAUT_LAB_SCENARIO".into(), id.scenario.clone()),
            ("TAUT_LAB_TRIAL".into(), id.index.to_string()),
            // The same in all scenarios of a round, so that their trials differ by the load only.
            ("TAUT_LAB_SEED".into(), lab.seed.wrapping_add(u64::from(id.round)).to_string()),
        ]);
        let recorder = match (lab.trial.report, self.system.first()) {
            (Report::Stamps, Some((_, child))) => Some(child.pid()),
            _ => None,
        };
        let recorder = recorder.map(|pid| Recorder::start(self, pid, &logs)).transpose()?;
        let is_recorded_command = lab.trial.report == Report::Stamps && recorder.is_none();
        let events = Error::system("scheduler events");
        self.session.switches.as_ref().map_or(Ok(()), Switches::begin).map_err(events)?;
        let first = self.look()?;
        let marks: Vec<_> = self.loads.iter().map(|load| load.mark(&first)).collect();
        let before = Pressure::now();
        let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let began = Instant::now();
        let command = match recorder {
            None if is_recorded_command => recorded(self.session.recorder, &lab.trial.command, &logs),
            _ => lab.trial.command.clone(),
        };
        let waited_ns = waited_for_ns();
        let child = self.child(TRIAL, &command, &environment, self.trial_cpus.clone().as_ref(), &logs);
        let mut child = child.map_err(|error| relocate(error, "trial.command".into()))?;
        let mut watch = Watch::default();
        watch.know(&first);
        let end = self.wait(&mut child, began, &mut watch)?;
        let wall_s = began.elapsed().as_secs_f64();
        let end = self.settle_end(end)?;
        while !self.loads.is_empty() && began.elapsed() < LOAD_WINDOW {
            self.session.rest(STEP.as_secs_f64())?;
        }
        let last = self.look()?;
        watch.see(&last, &self.wanted);
        let heard = self.session.switches.as_ref().map(Switches::end).transpose();
        let heard = heard.map_err(Error::system("scheduler events"))?;
        let ran_where = heard.as_ref().map_or_else(Ran::default, |stays| watch.hear(stays, &self.roots, &self.wanted));
        if heard.is_some() {
            let path = logs.join(RAN);
            std::fs::write(&path, &ran_where.listing).map_err(Error::file(&path))?;
        }
        let pressure = Pressure::now().since(&before);
        let mut achieved: Vec<_> = self
            .loads
            .iter()
            .zip(marks)
            .map(|(load, mark)| load.achieved(&mark, &load.mark(&last), lab.applied))
            .collect();
        let parts = last.parts().map(|(part, _)| part.as_str()).filter(|part| lab.is_system(part));
        let mut used: u64 = parts.map(|part| ran(&first, &last, part)).sum();
        if lab.is_system(TRIAL) {
            // It is gone at the last look, and was waited for.
            let on = ran_where.by_part.get(TRIAL);
            let heard_ns = on.map_or(0.0, |on| on.values().sum::<f64>() * 1e9) as u64;
            used = used.max(waited_for_ns().saturating_sub(waited_ns)).max(heard_ns);
        }
        let wall_ns = last.at_ns.saturating_sub(first.at_ns).max(1) as f64;
        achieved.extend(self.limits.achieved(used as f64 / wall_ns, wall_ns / 1e9, lab.applied));
        child.signal(Signal::KILL);
        reap(&self.roots)?;
        let of_recorder = recorder.map(|recorder| recorder.finish(self)).transpose()?.flatten();
        let exit = match &end {
            End::Exit(status) => Some(*status),
            _ => None,
        };
        let mut told = match lab.trial.report {
            // A recorded command that did not end by itself was killed with its recorder.
            Report::Stamps => stamps::told(lab, &logs.join(RECORDING), is_recorded_command && exit.is_none()),
            Report::Json | Report::Exit => Told::default(),
        };
        let own_code = told.exit_code.map(|code| code.clamp(0, 255));
        let is_recorders =
            is_recorded_command && exit.is_some_and(|exit| own_code.is_none() || exit.code() != own_code);
        let of_command = || exit.map(|exit| format!("the recorder ended with {}{}", ended(exit), quoted(&child)));
        let flaw = of_recorder.or(told.flaw.take()).or_else(|| of_command().filter(|_| is_recorders));
        let stdout = String::from_utf8_lossy(&std::fs::read(child.stdout()).unwrap_or_default()).into_owned();
        let report = match lab.trial.report {
            Report::Json => reported(&stdout),
            Report::Exit => Ok(Default::default()),
            // The line is welcome, the stamps are what counts.
            Report::Stamps => {
                let line = reported(&stdout).unwrap_or_default();
                let metrics = line.metrics.clone().into_iter().chain(told.metrics).collect();
                Ok(Reported { metrics, ..line })
            }
        };
        let (mut status, mut reason) = verdict(&end, &report, lab, &child);
        // A crash, a hang and what a command says of itself are known without its recording, unless the code is the recorder's.
        let flaw = flaw.filter(|_| status == Status::Success || is_recorders);
        let short = achieved.iter().find(|achieved| !achieved.applied).map(|achieved| achieved.shortfall());
        let mut metrics = report.map(|report| report.metrics).unwrap_or_default();
        metrics.insert("wall_s".into(), wall_s);
        let failure = || lab.metrics.iter().find_map(|(name, one)| one.failure(name, metrics.get(name).copied()));
        if status == Status::Success
            && flaw.is_none()
            && let Some(why) = failure()
        {
            (status, reason) = (Status::Failed, Some(why));
        }
        let gate = || metrics.iter().find_map(|(name, value)| lab.metrics.get(name)?.gate(name, *value));
        if let Some(why) = watch.elsewhere.or(short).or(flaw).or_else(gate) {
            reason = Some(reason.map_or(why.clone(), |reason| format!("{why} (besides: {}, {reason})", status.word())));
            status = Status::Invalid;
        }
        let mut witness = self.session.witness.borrow_mut();
        match status {
            Status::Success => witness.forget(),
            _ => witness.keep(&last, &logs).map_err(Error::file(&logs))?,
        }
        drop(witness);
        let busy =
            |(part, _): (&String, &crate::isolation::Usage)| (part.clone(), ran(&first, &last, part) as f64 / wall_ns);
        self.roots.remove(&child.pid());
        Ok(Trial {
            id,
            status,
            reason,
            started_unix_s,
            wall_s,
            exit_code: exit.and_then(|exit| exit.code()),
            signal: exit.and_then(|exit| signal_of(exit, &lab.trial.command)),
            metrics,
            achieved,
            cpus_busy: last.parts().map(busy).collect(),
            ran_s: ran_where.by_part,
            events_lost: heard.map(|stays| stays.lost),
            looks: watch.looks,
            threads: last.threads() as u32,
            pressure,
            host: None,
            logs: format!("{}/{name}", self.logs_name),
        })
    }

    fn wait(&mut self, child: &mut Child, began: Instant, watch: &mut Watch) -> Result<End, Error> {
        let timeout_s = self.session.lab.trial.timeout_s;
        let mut looked = Instant::now();
        loop {
            if let Some(status) = child.ended() {
                return Ok(End::Exit(status));
            }
            if let Some(fallen) = self.fallen() {
                return Ok(End::Fallen(fallen));
            }
            for load in &mut self.loads {
                let child = load.child();
                if let Some(status) = child.ended() {
                    return Ok(End::LoadEnded(format!("{} ended: {}{}", child.name(), ended(status), quoted(child))));
                }
            }
            if began.elapsed().as_secs_f64() > timeout_s {
                return Ok(End::TimeOut);
            }
            if watch.looks == 0 || looked.elapsed() > LOOK {
                let tree = self.look()?;
                watch.see(&tree, &self.wanted);
                reap(&self.roots)?;
                looked = Instant::now();
            }
            self.session.check_stop()?;
            child.wait_a_little(STEP);
        }
    }

    /// A trial that failed because the system fell has crashed; one whose load ended is seen as such, too.
    fn settle_end(&mut self, end: End) -> Result<End, Error> {
        let End::Exit(status) = end else { return Ok(end) };
        let began = Instant::now();
        loop {
            if let Some(fallen) = self.fallen() {
                return Ok(End::Fallen(fallen));
            }
            if status.success() || began.elapsed() > FALL {
                return Ok(end);
            }
            self.session.rest(STEP.as_secs_f64())?;
        }
    }
}

/// A trial that is the whole system is recorded as a command.
fn recorded(recorder: &[OsString], command: &Command, logs: &Path) -> Command {
    let mut words: Vec<String> = recorder.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    words.extend(["--quiet".into(), "-o".into(), logs.join(RECORDING).display().to_string(), "--".into()]);
    words.extend(command.words());
    Command::Words(words)
}

/// CPU time of all children that have been waited for, with theirs, ns.
fn waited_for_ns() -> u64 {
    let stat = procfs::process::Process::myself().and_then(|me| me.stat());
    let ticks = stat.map_or(0, |stat| (stat.cutime + stat.cstime).max(0) as u64);
    ticks * (1_000_000_000 / procfs::ticks_per_second())
}

/// CPU time of a part between two looks, ns.
fn ran(first: &Tree, last: &Tree, part: &str) -> u64 {
    last.usage(part).ran_ns.saturating_sub(first.usage(part).ran_ns)
}

fn verdict(end: &End, report: &Result<Reported, String>, lab: &Lab, child: &Child) -> (Status, Option<String>) {
    let said = || report.as_ref().ok().and_then(|report| report.reason.clone());
    match end {
        End::Fallen(why) => (Status::Crashed, Some(why.clone())),
        End::LoadEnded(why) => (Status::Invalid, Some(why.clone())),
        End::TimeOut => (Status::Timeout, Some(format!("no end within {} s{}", lab.trial.timeout_s, quoted(child)))),
        End::Exit(status) if signal_of(*status, &lab.trial.command).is_some() => {
            let signal = signal_of(*status, &lab.trial.command).unwrap_or_default();
            (Status::Crashed, Some(format!("the trial's command: signal {signal}")))
        }
        End::Exit(status) => {
            let own = report.as_ref().ok().and_then(|report| report.status).filter(|own| *own != Status::Success);
            match (status.success(), report, own) {
                (false, _, own) => {
                    let why = said().or_else(|| Some(format!("{}{}", ended(*status), quoted(child))));
                    (own.unwrap_or(Status::Failed), why)
                }
                (true, Err(why), _) => (Status::Failed, Some(why.clone())),
                (true, Ok(_), Some(own)) => (own, said().or_else(|| Some(format!("reported {}", own.word())))),
                (true, Ok(_), None) => (Status::Success, None),
            }
        }
    }
}

/// The signal that ended a command; a shell says 128 more than that of the program it ran.
fn signal_of(status: ExitStatus, command: &Command) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    let shell = || status.code().filter(|code| matches!(command, Command::Line(_)) && (129..=192).contains(code));
    status.signal().or_else(|| shell().map(|code| code - 128))
}
