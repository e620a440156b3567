//! A load that runs, and what it reached between two marks: the proof that it was applied.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    Load, helper, plain,
    worker::{Count, count},
};
use crate::{
    Error,
    isolation::{Child, Place, Tree, Usage},
};

pub(crate) struct RunningLoad {
    load: Load,
    child: Child,
    counter: PathBuf,
}

/// A load at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    at_ns: u64,
    usage: Usage,
    count: Option<Count>,
}

/// What a load reached over a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Achieved {
    /// The load, in words.
    pub load: String,
    /// Of `target` and `achieved`.
    pub unit: String,
    /// `None` where it goes as far as it can.
    pub target: Option<f64>,
    /// In its unit, over all workers.
    pub achieved: f64,
    /// Messages a second that were sent, of a flood.
    pub sent: Option<f64>,
    /// Pairs of a writer and a reader that found each other, of a flood. 0: nothing left the writers.
    #[serde(default)]
    pub matched: Option<u64>,
    /// What became of the messages of each topic, of a flood over a middleware.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<TopicRate>,
    /// CPUs that its threads kept busy.
    pub cpus_busy: f64,
    /// CPUs that its threads wanted: running, or waiting for others to stop.
    pub cpus_wanted: f64,
    /// Whether that is enough of the target.
    pub applied: bool,
}

/// What became of a flood's messages on one topic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicRate {
    /// Its name.
    pub topic: String,
    /// Messages a second that its writers sent.
    pub sent: f64,
    /// Messages a second that all readers of the load received together.
    pub received: f64,
    /// The part of the messages that they should have received and did not; `None` without readers, or where nothing was sent.
    pub lost: Option<f64>,
}

/// How loads are started.
pub(crate) struct Loader<'a> {
    /// The command that runs [`super::worker::go`].
    pub worker: &'a [OsString],
    /// The interpreter of helper programs.
    pub python: PathBuf,
    /// Added to the lab's own.
    pub environment: &'a BTreeMap<String, String>,
}

impl RunningLoad {
    pub fn start(load: &Load, name: &str, loader: &Loader<'_>, place: &Place<'_>) -> Result<RunningLoad, Error> {
        let folder = place.mine.folder();
        let counter = folder.join(format!("{name}.count"));
        // The count of the block before would be the start of this one's.
        let _ = std::fs::remove_file(&counter);
        let words = match load {
            Load::Command { command, .. } => vec!["sh".into(), "-c".into(), command.into()],
            Load::Cpu { workers, percent, method: Some(method), .. } => {
                if let Some(problem) = load.obstacle() {
                    return Err(Error::Start { place: name.to_owned(), problem });
                }
                method.words(*workers, *percent)
            }
            _ => {
                let program = match load.package() {
                    Some(_) => helper(&loader.python, folder).map_err(Error::file(folder))?,
                    None => loader.worker.to_vec(),
                };
                let spec = serde_json::to_string(load).unwrap_or_default();
                program.into_iter().chain([spec.into(), counter.clone().into()]).collect()
            }
        };
        let child = Child::start(name, &words, loader.environment, load.cpus(), place)?;
        Ok(RunningLoad { load: load.clone(), child, counter })
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether its workers have begun to count.
    pub fn is_counting(&self) -> bool {
        // Programs of others do not count.
        let foreign = matches!(self.load, Load::Command { .. } | Load::Cpu { method: Some(_), .. });
        foreign || count(&self.counter).is_some()
    }

    pub fn mark(&self, tree: &Tree) -> Mark {
        Mark { at_ns: tree.at_ns, usage: tree.usage(self.child.name()), count: count(&self.counter) }
    }

    /// What happened between two marks; `enough` is the part of the target that counts as applied.
    pub fn achieved(&self, from: &Mark, to: &Mark, enough: f64) -> Achieved {
        let wall = (to.at_ns.saturating_sub(from.at_ns)) as f64;
        let cpus = |from: u64, to: u64| if wall > 0.0 { to.saturating_sub(from) as f64 / wall } else { 0.0 };
        let busy = cpus(from.usage.ran_ns, to.usage.ran_ns);
        let wanted = busy + cpus(from.usage.waited_ns, to.usage.waited_ns);
        let (unit, each) = self.load.unit();
        let rate = |of: &dyn Fn(&Count) -> u64| match (&from.count, &to.count) {
            (Some(from), Some(to)) if to.at_ns > from.at_ns => {
                of(to).saturating_sub(of(from)) as f64 * 1e9 / (to.at_ns - from.at_ns) as f64 / each
            }
            _ => 0.0,
        };
        let readers = self.load.readers();
        let to_nobody = readers == Some(0);
        let of_topic = |(at, topic): (usize, String)| {
            let of = |count: &Count| count.topics.get(at).copied().unwrap_or_default();
            let (sent, received) = (rate(&|count| of(count).0), rate(&|count| of(count).1));
            let due = sent * f64::from(readers.unwrap_or(0));
            // What was under way at the first mark may arrive after it.
            let lost = (due > 0.0).then(|| (1.0 - received / due).max(0.0));
            TopicRate { topic, sent, received, lost }
        };
        let achieved = match &self.load {
            Load::Cpu { .. } | Load::Command { .. } => busy,
            _ if to_nobody => rate(&|c| c.sent),
            _ => rate(&|c| c.done),
        };
        let target = self.load.target();
        let applied = match (&self.load, target) {
            // Threads that stand in the queue press as much as those that run: both are what was asked for.
            (Load::Cpu { .. }, Some(target)) => wanted.max(busy) >= enough * target,
            (_, Some(target)) => achieved >= enough * target,
            (Load::Command { .. }, None) => true,
            (_, None) => achieved > 0.0,
        };
        Achieved {
            load: self.load.to_string(),
            unit: unit.to_owned(),
            target,
            achieved,
            sent: self.load.is_flood().then(|| rate(&|c| c.sent)),
            matched: self.load.is_flood().then(|| to.count.as_ref().map_or(0, |count| count.matched)),
            topics: self.load.topics().into_iter().enumerate().map(of_topic).collect(),
            cpus_busy: busy,
            cpus_wanted: wanted,
            applied,
        }
    }
}

impl Achieved {
    /// What is missing, in words.
    pub fn shortfall(&self) -> String {
        let target = self.target.map_or("anything".into(), |target| format!("{} {}", plain(target), self.unit));
        format!("load {} reached {} {} of {target}", self.load, plain(self.achieved), self.unit)
    }
}
