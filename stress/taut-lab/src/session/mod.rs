//! A lab at work on this machine: starts the system afresh, loads it, runs trials, watches every thread, cleans up.

mod attempt;
mod limits;
mod recorder;
mod stack;
mod watch;
mod witness;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ffi::OsString,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use rustix::process::{getpid, set_child_subreaper};

use crate::{
    Error, Id, Isolation, Lab, Report, Scenario, Trial, Watch,
    isolation::{Cgroups, Keeper, Mine, Namespace, SESSION, Switches, kill_descendants, remove_stale},
    ros2::in_the_way,
};
use stack::Stack;
use witness::Witness;

/// How often the trial's end and the system's health are asked for.
const STEP: Duration = Duration::from_millis(10);

/// A lab at work. One at a time in a process: it is the reaper of all orphans, and kills all that descends from it.
pub(crate) struct Session<'a> {
    lab: &'a Lab,
    /// The command that makes loads.
    worker: &'a [OsString],
    /// The command that records.
    recorder: &'a [OsString],
    folder: &'a Path,
    stop: &'a AtomicBool,
    cgroups: Option<Cgroups>,
    /// The scheduler's events, where threads are watched by them.
    switches: Option<Switches>,
    mine: Mine,
    /// Cleans up if this process is killed.
    _keeper: Keeper,
    witness: RefCell<Witness>,
    /// Starts of the system so far.
    starts: Cell<u32>,
    /// What confines threads and watches them, and why not better.
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
    pub fn open(order: &crate::Order<'a>) -> Result<Self, Error> {
        let crate::Order { lab, worker, keeper, recorder, folder, stop, .. } = *order;
        set_child_subreaper(Some(getpid())).map_err(|error| Error::system("prctl")(error.into()))?;
        let removed = remove_stale()?;
        if let Some(problem) = in_the_way(lab).into_iter().next() {
            let (place, problem) = problem.split_once(": ").unwrap_or(("domains", &problem));
            return Err(Error::Start { place: place.into(), problem: problem.into() });
        }
        let mine = Mine::new()?;
        let keeper = Keeper::start(keeper, mine.mark())?;
        let (cgroups, confinement) = confined(lab, mine.mark())?;
        let (switches, watched) = watched(lab)?;
        let confinement =
            [confinement, watched].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("; ");
        Ok(Session {
            lab,
            worker,
            recorder,
            folder,
            stop,
            cgroups,
            switches,
            mine,
            _keeper: keeper,
            witness: RefCell::new(Witness::new()),
            starts: Cell::new(0),
            confinement,
            removed,
        })
    }

    /// Runs the trials of a block, on as many starts of the system as it takes, and hands each over as it ends.
    pub fn block(&self, block: &Block, each: &mut dyn FnMut(Trial) -> Result<(), Error>) -> Result<(), Error> {
        let mut left = block.trials.as_slice();
        while let Some(first) = left.first() {
            let varied = block.varied.map_or(String::new(), |value| format!("-{}", crate::load::plain(value)));
            let mut name = format!("logs/r{:04}-{}{varied}-t{first}", block.round, block.scenario.name);
            // What an invalid trial left stays beside what is run in its place.
            while self.folder.join(&name).exists() {
                name.push_str("-again");
            }
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

    /// What the next start of the system, its trials and its loads find in their environment.
    fn environment(&self, scenario: &Scenario) -> Result<BTreeMap<String, String>, Error> {
        let mut environment = self.lab.environment.clone();
        environment.extend(scenario.environment.clone());
        let start = self.starts.replace(self.starts.get() + 1);
        if let Some([first, last]) = self.lab.domains {
            environment.insert("ROS_DOMAIN_ID".into(), (first + start % (last - first + 1)).to_string());
        }
        if self.lab.trial.report == Report::Stamps {
            environment.insert(SESSION.into(), self.mine.fresh_session()?.display().to_string());
        }
        Ok(environment)
    }

    /// The network of the next start.
    fn network(&self, scenario: &Scenario) -> Result<Option<Namespace>, Error> {
        let needed = self.lab.has_own_network(scenario);
        needed.then(Namespace::new).transpose().map_err(|error| {
            let problem = format!("no network of its own ({error}); run as root");
            Error::Start { place: "network".into(), problem }
        })
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

/// What confines threads, also in words; `name` tells the groups of this lab from those of others.
pub(crate) fn confined(lab: &Lab, name: &str) -> Result<(Option<Cgroups>, String), Error> {
    let of_time = lab.scenarios.iter().any(|scenario| lab.has_own_group(scenario));
    if lab.isolation == Isolation::Affinity {
        return Ok((None, "affinity".to_owned()));
    }
    match Cgroups::new(&format!("{}{name}", crate::isolation::PREFIX), of_time) {
        Ok(groups) => {
            let word = groups.word();
            Ok((Some(groups), word))
        }
        Err(why) if lab.isolation == Isolation::Cgroup => {
            let problem = format!("no control group ({why}); run as root, or write \"auto\"");
            Err(Error::Start { place: "isolation".into(), problem })
        }
        Err(why) => Ok((None, format!("affinity, which a thread may undo: {why}"))),
    }
}

/// The scheduler's events, and what watches in words.
fn watched(lab: &Lab) -> Result<(Option<Switches>, String), Error> {
    let looks = "looked at in /proc ten times a second";
    if lab.watch == Watch::Proc || lab.watch == Watch::Auto && !lab.is_confined() {
        return Ok((None, if lab.is_confined() { format!("threads {looks}") } else { String::new() }));
    }
    match Switches::listen() {
        Ok(switches) => {
            let word = format!("threads watched by the scheduler's events ({})", switches.name());
            Ok((Some(switches), word))
        }
        Err(why) if lab.watch == Watch::Events => {
            let problem = format!("no scheduler events ({why}); run as root, or write \"auto\"");
            Err(Error::Start { place: "watch".into(), problem })
        }
        Err(why) => Ok((None, format!("threads {looks}: no scheduler events ({why})"))),
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
