//! A lab at work on this machine: starts the system afresh, loads it, runs trials, watches every thread, cleans up.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::process::{Signal, getpid, set_child_subreaper};

use crate::{
    Command, Cpus, Error, Id, Isolation, Lab, Pressure, Process, Ready, Report, Scenario, Status, StopSignal, Trial,
    load::RunningLoad,
    machine::{Cgroups, Child, Mine, Place, Tree, ended, kill_descendants, reap, remove_stale},
    ready,
    trial::reported,
};

/// How often the trial's end and the system's health are asked for.
const STEP: Duration = Duration::from_millis(10);
/// How often every thread is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// A load is measured over at least this long: its count is written every 20 ms.
const LOAD_WINDOW: Duration = Duration::from_millis(250);
/// How long workers of a load may take to begin.
const LOAD_START: Duration = Duration::from_secs(10);
/// A system that fell while a trial failed may be seen only after the trial's own end.
const FALL: Duration = Duration::from_millis(100);

/// A lab at work. One at a time in a process: it is the reaper of all orphans, and kills all that descends from it.
pub(crate) struct Session<'a> {
    lab: &'a Lab,
    /// The command that makes loads.
    worker: &'a [OsString],
    folder: &'a Path,
    stop: &'a AtomicBool,
    cgroups: Option<Cgroups>,
    mine: Mine,
    /// What confines threads, and why not better.
    pub confinement: String,
    /// What a lab that died had left.
    pub removed: Vec<String>,
}

/// Trials on one start of the system.
pub(crate) struct Block {
    pub round: u32,
    pub scenario: Scenario,
    pub varied: Option<f64>,
    /// Which are to be run.
    pub trials: Vec<u32>,
}

impl<'a> Session<'a> {
    pub fn open(lab: &'a Lab, worker: &'a [OsString], folder: &'a Path, stop: &'a AtomicBool) -> Result<Self, Error> {
        set_child_subreaper(Some(getpid())).map_err(|error| Error::system("prctl")(error.into()))?;
        let removed = remove_stale()?;
        let mine = Mine::new()?;
        let (cgroups, confinement) = match lab.isolation {
            Isolation::Affinity => (None, "affinity".to_owned()),
            wish => match Cgroups::new(&format!("{}{}", crate::machine::PREFIX, mine.mark())) {
                Ok(groups) => {
                    let word = groups.word();
                    (Some(groups), word)
                }
                Err(why) if wish == Isolation::Cgroup => {
                    let problem = format!("no control group ({why}); run as root, or write \"auto\"");
                    return Err(Error::Start { place: "isolation".into(), problem });
                }
                Err(why) => (None, format!("affinity, which a thread may undo: {why}")),
            },
        };
        Ok(Session { lab, worker, folder, stop, cgroups, mine, confinement, removed })
    }

    /// Runs the trials of a block, on as many starts of the system as it takes, and hands each over as it ends.
    pub fn block(&self, block: &Block, each: &mut dyn FnMut(Trial) -> Result<(), Error>) -> Result<(), Error> {
        let mut left = block.trials.as_slice();
        while let Some(first) = left.first() {
            let varied = block.varied.map_or(String::new(), |value| format!("-{value:.6}"));
            let name = format!("logs/r{:04}-{}{varied}-t{first}", block.round, block.scenario.name);
            let mut stack = Stack::start(self, block, name)?;
            for warm_up in 0..self.lab.warm_up {
                stack.trial(block.id(warm_up), &format!("warm-up-{warm_up}"))?;
            }
            while let Some((index, rest)) = left.split_first() {
                each(stack.trial(block.id(*index), &format!("trial-{index}"))?)?;
                left = rest;
                if stack.fallen().is_some() {
                    break;
                }
            }
            stack.stop()?;
            self.rest(self.lab.cool_down_s)?;
        }
        Ok(())
    }

    fn rest(&self, seconds: f64) -> Result<(), Error> {
        let began = Instant::now();
        while began.elapsed().as_secs_f64() < seconds {
            self.check_stop()?;
            let left = seconds - began.elapsed().as_secs_f64();
            std::thread::sleep(STEP.min(Duration::from_secs_f64(left.max(0.0))));
        }
        self.check_stop()
    }

    fn check_stop(&self) -> Result<(), Error> {
        if self.stop.load(Relaxed) { Err(Error::Stopped { trials: 0 }) } else { Ok(()) }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let _ = kill_descendants();
    }
}

impl Block {
    pub fn id(&self, index: u32) -> Id {
        Id { round: self.round, scenario: self.scenario.name.clone(), index, varied: self.varied }
    }
}

/// The system under test with its loads, once started.
struct Stack<'a> {
    session: &'a Session<'a>,
    system: Vec<(&'a Process, Child)>,
    loads: Vec<RunningLoad>,
    /// Pids that the lab started, by part.
    roots: HashMap<u32, String>,
    /// The only CPUs of a part.
    wanted: BTreeMap<String, Cpus>,
    logs: PathBuf,
    /// The same below the run's folder.
    logs_name: String,
}

/// How the waiting for a trial ended.
enum End {
    Exit(ExitStatus),
    Fallen(String),
    LoadEnded(String),
    TimeOut,
}

impl<'a> Stack<'a> {
    fn start(session: &'a Session<'a>, block: &Block, logs_name: String) -> Result<Stack<'a>, Error> {
        let logs = session.folder.join(&logs_name);
        let mut stack = Stack {
            session,
            system: Vec::new(),
            loads: Vec::new(),
            roots: HashMap::new(),
            wanted: BTreeMap::new(),
            logs,
            logs_name,
        };
        std::fs::create_dir_all(&stack.logs).map_err(Error::file(&stack.logs))?;
        for process in &session.lab.processes {
            stack.start_process(process, block.scenario.system_cpus.as_ref())?;
        }
        if let Some(cpus) = &block.scenario.system_cpus {
            stack.wanted.insert("stray".into(), cpus.clone());
        }
        stack.start_loads(&block.scenario)?;
        Ok(stack)
    }

    fn start_process(&mut self, process: &'a Process, limit: Option<&Cpus>) -> Result<(), Error> {
        let cpus = limit.or(process.cpus.as_ref());
        let place = |key: &str| format!("process {:?}.{key}", process.name);
        if let Some(Ready::Tcp(address)) = &process.ready
            && ready::answers(address)
        {
            // Every trial would talk to a stranger: a server of an earlier experiment is what ruins the next.
            let problem = format!("somebody else answers at {address} before the start; end it");
            return Err(Error::Start { place: place("ready"), problem });
        }
        let started = SystemTime::now();
        let child = self.child(&process.name, &process.command, &process.environment, cpus, None);
        let mut child = child.map_err(|error| relocate(error, place("command")))?;
        let began = Instant::now();
        while let Some(ready) = &process.ready {
            if let Some(status) = child.ended() {
                let problem = format!("{} before it was ready{}", ended(status), quoted(&child));
                return Err(Error::Start { place: place("command"), problem });
            }
            if ready::is_ready(ready, child.stdout(), started) {
                break;
            }
            if began.elapsed().as_secs_f64() > process.ready_timeout_s {
                let problem = format!("did not come within {} s{}", process.ready_timeout_s, quoted(&child));
                return Err(Error::Start { place: place("ready"), problem });
            }
            self.session.rest(0.02)?;
        }
        self.system.push((process, child));
        self.check_places()
    }

    fn start_loads(&mut self, scenario: &Scenario) -> Result<(), Error> {
        let place = Place { mine: &self.session.mine, logs: &self.logs, cgroups: self.session.cgroups.as_ref() };
        for (at, load) in scenario.loads.iter().enumerate() {
            let name = format!("load-{at}");
            let key = || format!("scenario {:?}.load[{at}]", scenario.name);
            let running = RunningLoad::start(load, &name, self.session.worker, &place, self.session.mine.folder());
            let mut running = running.map_err(|error| relocate(error, key()))?;
            self.roots.insert(running.child().pid(), name.clone());
            self.wanted.extend(load.cpus().map(|cpus| (name, cpus.clone())));
            let began = Instant::now();
            while !running.is_counting() {
                let problem = match running.child().ended() {
                    Some(status) => format!("{}{}", ended(status), quoted(running.child())),
                    None if began.elapsed() > LOAD_START => format!("did not begin within {} s", LOAD_START.as_secs()),
                    None => {
                        self.session.rest(0.01)?;
                        continue;
                    }
                };
                return Err(Error::Start { place: key(), problem });
            }
            self.loads.push(running);
        }
        if self.loads.is_empty() { Ok(()) } else { self.session.rest(self.session.lab.settle_s) }
    }

    fn child(
        &mut self,
        name: &str,
        command: &Command,
        environment: &BTreeMap<String, String>,
        cpus: Option<&Cpus>,
        logs: Option<&Path>,
    ) -> Result<Child, Error> {
        let logs = logs.unwrap_or(&self.logs);
        let place = Place { mine: &self.session.mine, logs, cgroups: self.session.cgroups.as_ref() };
        let words: Vec<OsString> = command.words().into_iter().map(Into::into).collect();
        let child = Child::start(name, &words, environment, cpus, &place)?;
        self.roots.insert(child.pid(), name.to_owned());
        self.wanted.extend(child.cpus().map(|cpus| (name.to_owned(), cpus.clone())));
        Ok(child)
    }

    /// The system's threads must be where they were put before the first trial begins.
    fn check_places(&self) -> Result<(), Error> {
        match self.look()?.elsewhere(&self.wanted) {
            Some(problem) => Err(Error::Start { place: "cpus".into(), problem }),
            None => Ok(()),
        }
    }

    fn look(&self) -> Result<Tree, Error> {
        Tree::look(&self.roots)
    }

    /// A process of the system that has ended.
    fn fallen(&mut self) -> Option<String> {
        self.system.iter_mut().find_map(|(process, child)| {
            let status = child.ended()?;
            Some(format!("process {:?} ended: {}{}", process.name, ended(status), quoted(child)))
        })
    }

    fn trial(&mut self, id: Id, name: &str) -> Result<Trial, Error> {
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
        let first = self.look()?;
        let marks: Vec<_> = self.loads.iter().map(|load| load.mark(&first)).collect();
        let before = Pressure::now();
        let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let began = Instant::now();
        let child = self.child("trial", &lab.trial.command, &environment, lab.trial.cpus.as_ref(), Some(&logs));
        let mut child = child.map_err(|error| relocate(error, "trial.command".into()))?;
        let mut watch = Watch { looks: 0, elsewhere: None };
        let end = self.wait(&mut child, began, &mut watch)?;
        let wall_s = began.elapsed().as_secs_f64();
        let end = self.settle_end(end)?;
        while !self.loads.is_empty() && began.elapsed() < LOAD_WINDOW {
            self.session.rest(STEP.as_secs_f64())?;
        }
        let last = self.look()?;
        watch.see(&last, &self.wanted);
        let pressure = Pressure::now().since(&before);
        let achieved: Vec<_> = self
            .loads
            .iter()
            .zip(marks)
            .map(|(load, mark)| load.achieved(mark, load.mark(&last), lab.applied))
            .collect();
        child.signal(Signal::KILL);
        reap(&self.roots)?;
        let exit = match &end {
            End::Exit(status) => Some(*status),
            _ => None,
        };
        let stdout = String::from_utf8_lossy(&std::fs::read(child.stdout()).unwrap_or_default()).into_owned();
        let report = match lab.trial.report {
            Report::Json => reported(&stdout),
            Report::Exit => Ok(Default::default()),
        };
        let (mut status, mut reason) = verdict(&end, &report, lab, &child);
        let short = achieved.iter().find(|achieved| !achieved.applied).map(|achieved| achieved.shortfall());
        if let Some(why) = watch.elsewhere.or(short) {
            reason = Some(reason.map_or(why.clone(), |reason| format!("{why} (besides: {}, {reason})", status.word())));
            status = Status::Invalid;
        }
        let mut metrics = report.map(|report| report.metrics).unwrap_or_default();
        metrics.insert("wall_s".into(), wall_s);
        let wall_ns = last.at_ns.saturating_sub(first.at_ns).max(1) as f64;
        let busy = |(part, usage): (&String, &crate::machine::Usage)| {
            (part.clone(), usage.ran_ns.saturating_sub(first.usage(part).ran_ns) as f64 / wall_ns)
        };
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
            looks: watch.looks,
            threads: last.threads() as u32,
            pressure,
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
                watch.see(&self.look()?, &self.wanted);
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

    /// Asks the processes to end, last started first, and makes sure that nothing is left.
    fn stop(mut self) -> Result<(), Error> {
        for load in &mut self.loads {
            load.child().signal(Signal::KILL);
        }
        for (process, child) in self.system.iter_mut().rev() {
            child.signal(signal(process.stop_signal));
            let began = Instant::now();
            while child.ended().is_none() && began.elapsed().as_secs_f64() < process.stop_timeout_s {
                child.wait_a_little(STEP);
            }
        }
        kill_descendants()
    }
}

impl Drop for Stack<'_> {
    fn drop(&mut self) {
        let _ = kill_descendants();
    }
}

/// What was seen of the threads during a trial.
struct Watch {
    looks: u32,
    elsewhere: Option<String>,
}

impl Watch {
    fn see(&mut self, tree: &Tree, wanted: &BTreeMap<String, Cpus>) {
        self.looks += 1;
        if self.elsewhere.is_none() {
            self.elsewhere = tree.elsewhere(wanted);
        }
    }
}

fn verdict(
    end: &End,
    report: &Result<crate::trial::Reported, String>,
    lab: &Lab,
    child: &Child,
) -> (Status, Option<String>) {
    let said = || report.as_ref().ok().and_then(|report| report.reason.clone());
    match end {
        End::Fallen(why) => (Status::Crashed, Some(why.clone())),
        End::LoadEnded(why) => (Status::Invalid, Some(why.clone())),
        End::TimeOut => (Status::Timeout, Some(format!("no end within {} s{}", lab.trial.timeout_s, quoted(child)))),
        End::Exit(status) if signal_of(*status, &lab.trial.command).is_some() => {
            let signal = signal_of(*status, &lab.trial.command).unwrap_or_default();
            (Status::Crashed, Some(format!("the trial's command: signal {signal}")))
        }
        End::Exit(status) if !status.success() => {
            (Status::Failed, said().or_else(|| Some(format!("{}{}", ended(*status), quoted(child)))))
        }
        End::Exit(_) => match report {
            Err(why) => (Status::Failed, Some(why.clone())),
            Ok(report) if report.success == Some(false) => {
                (Status::Failed, said().or_else(|| Some("reported success: false".into())))
            }
            Ok(_) => (Status::Success, None),
        },
    }
}

/// The signal that ended a command; a shell says 128 more than that of the program it ran.
fn signal_of(status: ExitStatus, command: &Command) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    let shell = || status.code().filter(|code| matches!(command, Command::Line(_)) && (129..=192).contains(code));
    status.signal().or_else(|| shell().map(|code| code - 128))
}

/// The key of the file instead of the child's name.
fn relocate(error: Error, key: String) -> Error {
    match error {
        Error::Start { problem, .. } => Error::Start { place: key, problem },
        other => other,
    }
}

fn quoted(child: &Child) -> String {
    child
        .last_words()
        .map_or(String::new(), |words| format!("; it said: {}", words.chars().take(200).collect::<String>()))
}

fn signal(signal: StopSignal) -> Signal {
    match signal {
        StopSignal::Term => Signal::TERM,
        StopSignal::Int => Signal::INT,
        StopSignal::Hup => Signal::HUP,
        StopSignal::Quit => Signal::QUIT,
        StopSignal::Kill => Signal::KILL,
    }
}
