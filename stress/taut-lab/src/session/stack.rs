//! The system under test with its loads: started until it is ready, stopped until nothing is left.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use rustix::process::Signal;

use super::{Block, STEP, Session, limits::Limits};
use crate::{
    Command, Cpus, Error, Process, Ready, Scenario, StopSignal,
    isolation::{CPUS, Child, Made, Namespace, Place, Tree, ended, kill_descendants},
    lab::TRIAL,
    load::{Loader, RunningLoad, interpreter},
    ready,
    ros2::Discovery,
};

/// How often every thread is looked at.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// How long workers of a load may take to begin.
const LOAD_START: Duration = Duration::from_secs(30);

/// The system under test with its loads, once started.
pub(super) struct Stack<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) system: Vec<(&'a Process, Child)>,
    pub(super) loads: Vec<RunningLoad>,
    /// Pids that the lab started, by part.
    pub(super) roots: HashMap<u32, String>,
    /// What its processes made in shared memory.
    made: Made,
    /// The only CPUs of a part.
    pub(super) wanted: BTreeMap<String, Cpus>,
    /// The only CPUs of the trial's command.
    pub(super) trial_cpus: Option<Cpus>,
    /// The network of everything on this start; without it the machine's.
    pub(super) network: Option<Namespace>,
    /// What the scenario takes from the system; lifted with it.
    pub(super) limits: Limits<'a>,
    /// Of everything on this start.
    pub(super) environment: BTreeMap<String, String>,
    pub(super) logs: PathBuf,
    /// The same below the run's folder.
    pub(super) logs_name: String,
}

impl<'a> Stack<'a> {
    pub(super) fn start(session: &'a Session<'a>, block: &Block, logs_name: String) -> Result<Stack<'a>, Error> {
        let logs = session.folder.join(&logs_name);
        let network = session.network(&block.scenario)?;
        let limits = Limits::set(session, &block.scenario, network.as_ref())?;
        let mut stack = Stack {
            session,
            system: Vec::new(),
            loads: Vec::new(),
            roots: HashMap::new(),
            made: Made::new(&session.mine, SystemTime::now()),
            wanted: BTreeMap::new(),
            trial_cpus: session.lab.cpus_of(&block.scenario, TRIAL).cloned(),
            network,
            limits,
            environment: session.environment(&block.scenario)?,
            logs,
            logs_name,
        };
        std::fs::create_dir_all(&stack.logs).map_err(Error::file(&stack.logs))?;
        for process in &session.lab.processes {
            stack.start_process(process, session.lab.cpus_of(&block.scenario, &process.name).cloned())?;
        }
        if let Some(cpus) = &block.scenario.system_cpus {
            stack.wanted.insert("stray".into(), cpus.clone());
        }
        stack.start_loads(&block.scenario)?;
        Ok(stack)
    }

    fn start_process(&mut self, process: &'a Process, cpus: Option<Cpus>) -> Result<(), Error> {
        let place = |key: &str| format!("process {:?}.{key}", process.name);
        if let Some(Ready::Tcp(address)) = &process.ready
            && self.inside(|| ready::answers(address))
        {
            // Every trial would talk to a stranger: a server of an earlier experiment is what ruins the next.
            let problem = format!("another program answers at {address} before the start; end it");
            return Err(Error::Start { place: place("ready"), problem });
        }
        let started = SystemTime::now();
        let logs = self.logs.clone();
        let child = self.child(&process.name, &process.command, &process.environment, cpus.as_ref(), &logs);
        let mut child = child.map_err(|error| relocate(error, place("command")))?;
        let (began, mut looked) = (Instant::now(), Instant::now());
        let environment = self.environment_of(&process.environment);
        let discovery =
            Discovery { python: interpreter(self.session.lab.python.as_deref()), environment: &environment };
        while let Some(ready) = &process.ready {
            if looked.elapsed() > LOOK {
                self.look()?;
                looked = Instant::now();
            }
            if let Some(status) = child.ended() {
                let problem = format!("{} before it was ready{}", ended(status), quoted(&child));
                return Err(Error::Start { place: place("command"), problem });
            }
            if self.inside(|| ready::is_ready(ready, child.stdout(), started, &discovery)) {
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
        let place = place(self.session, &self.logs, false, self.network.as_ref());
        let loader = Loader {
            worker: self.session.worker,
            python: interpreter(self.session.lab.python.as_deref()),
            environment: &self.environment,
        };
        for (at, load) in scenario.loads.iter().enumerate() {
            let name = format!("load-{at}");
            let key = || format!("scenario {:?}.load[{at}]", scenario.name);
            let running = RunningLoad::start(load, &name, &loader, &place);
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

    pub(super) fn child(
        &mut self,
        name: &str,
        command: &Command,
        environment: &BTreeMap<String, String>,
        cpus: Option<&Cpus>,
        logs: &Path,
    ) -> Result<Child, Error> {
        let place = self.place(logs, self.session.lab.is_system(name));
        let words: Vec<OsString> = command.words().into_iter().map(Into::into).collect();
        let all = self.environment_of(environment);
        let child = Child::start(name, &words, &all, cpus, &place)?;
        if let Some(switches) = &self.session.switches {
            switches.forget(child.pid() as i32).map_err(Error::system("scheduler events"))?;
        }
        self.roots.insert(child.pid(), name.to_owned());
        self.wanted.extend(child.cpus().map(|cpus| (name.to_owned(), cpus.clone())));
        Ok(child)
    }

    /// That of everything on this start, with a part's own.
    fn environment_of(&self, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        self.environment.iter().chain(own).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Asks in the system's network.
    fn inside(&self, ask: impl FnOnce() -> bool + Send) -> bool {
        match &self.network {
            Some(network) => network.inside(|| Ok(ask())).unwrap_or(false),
            None => ask(),
        }
    }

    /// The system's threads must be where they were put before the first trial begins.
    fn check_places(&mut self) -> Result<(), Error> {
        match self.look()?.elsewhere(&self.wanted) {
            Some(problem) => Err(Error::Start { place: "cpus".into(), problem }),
            None => Ok(()),
        }
    }

    pub(super) fn place<'b>(&'b self, logs: &'b Path, of_system: bool) -> Place<'b> {
        place(self.session, logs, of_system, self.network.as_ref())
    }

    pub(super) fn look(&mut self) -> Result<Tree, Error> {
        let tree = Tree::look(&self.roots)?;
        self.made.look(tree.pids().into_iter()).map_err(Error::file(self.session.mine.folder()))?;
        Ok(tree)
    }

    /// A process of the system that has ended.
    pub(super) fn fallen(&mut self) -> Option<String> {
        self.system.iter_mut().find_map(|(process, child)| {
            let status = child.ended()?;
            Some(format!("process {:?} ended: {}{}", process.name, ended(status), quoted(child)))
        })
    }

    /// Asks the processes to end, last started first, and makes sure that nothing is left.
    pub(super) fn stop(mut self) -> Result<(), Error> {
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
        kill_descendants()?;
        self.session.mine.all_ended().map_err(Error::file(self.session.mine.folder()))?;
        let removed = self.made.remove();
        if !removed.is_empty() {
            let text: String = removed.iter().map(|file| format!("{}\n", file.display())).collect();
            let path = self.logs.join("removed.txt");
            std::fs::write(&path, text).map_err(Error::file(&path))?;
        }
        Ok(())
    }
}

fn place<'a>(session: &'a Session<'_>, logs: &'a Path, of_system: bool, network: Option<&'a Namespace>) -> Place<'a> {
    Place { mine: &session.mine, logs, cgroups: session.cgroups.as_ref(), of_system, network }
}

impl Drop for Stack<'_> {
    fn drop(&mut self) {
        let _ = kill_descendants();
        let _ = self.made.remove();
    }
}

/// The key of the file instead of the child's name: that of its command, or of its CPUs where those failed.
pub(super) fn relocate(error: Error, key: String) -> Error {
    match error {
        Error::Start { place, problem } if place == CPUS => {
            Error::Start { place: format!("{}.cpus", key.trim_end_matches(".command")), problem }
        }
        Error::Start { problem, .. } => Error::Start { place: key, problem },
        other => other,
    }
}

pub(super) fn quoted(child: &Child) -> String {
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
