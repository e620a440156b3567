//! Sets of trials on disk: recordings, folders of recordings, and files of trials that a gate has saved.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use taut_analysis::{Analysis, Config, ExplainOptions};
use taut_gate::{Failure, Limit, Trial};
use taut_recording::Shown;

use crate::{analyse::analyse, output, ros_filter::RosFilter};

/// Reads recordings as trials.
#[derive(Clone, Debug)]
pub struct Reader {
    config: Config,
    ros: RosFilter,
    wanted: taut_gate::TrialOptions,
}

impl Reader {
    /// With the declared chains; `chain` names the one to judge, and `ros` says among which.
    pub fn new(config: &Config, chain: Option<String>, ros: &RosFilter) -> Reader {
        let explain = ExplainOptions { worst: 0, sides: true, ..ExplainOptions::default() };
        let wanted = taut_gate::TrialOptions { chain, ..taut_gate::TrialOptions::default() };
        Reader { config: Config { explain, ..config.clone() }, ros: ros.clone(), wanted }
    }

    /// How recordings are analysed.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// An analysis as a trial of the chain to judge.
    pub fn trial_of(&self, name: &str, analysis: &Analysis) -> Result<Trial> {
        Ok(Trial::of(name, analysis, &self.wanted)?)
    }

    /// For limits: each recording becomes a trial of every chain that has any.
    pub fn of_limits(mut self, limits: &[Limit]) -> Reader {
        self.wanted.limits = limits.to_vec();
        self
    }

    /// One recording: a trial of the chain to judge, or of each that has limits.
    ///
    /// # Errors
    /// It cannot be read, or is [`WithoutChain`].
    pub fn trials(&self, path: &Path, name: &str) -> Result<Vec<Trial>> {
        let mut config = self.config.clone();
        let mut missing = None;
        let mut analysis = loop {
            match analyse(path, &config) {
                Ok(analysis) => break analysis,
                Err(error) => {
                    let Some(taut_analysis::Error::UnknownPoint { chain, .. }) = error.downcast_ref() else {
                        return Err(error.context(name.to_owned()));
                    };
                    config.chains.retain(|declared| declared.name != *chain);
                    missing.get_or_insert(error.context(name.to_owned()));
                }
            }
        };
        let known = analysis.chains.iter().map(|chain| chain.name.as_str()).collect::<Vec<_>>().join(", ");
        self.ros.retain(&mut analysis.chains);
        if analysis.chains.is_empty() && !known.is_empty() && !self.ros.is_empty() {
            let chain = self.ros.words().trim_start().to_owned();
            let error = taut_gate::Error::NoChain { recording: name.to_owned(), chain, known: known.clone() };
            missing.get_or_insert(error.into());
        }
        // Limits of one chain need not stand together in taut.toml.
        let mut chains: Vec<Option<&String>> = Vec::new();
        for limit in &self.wanted.limits {
            if !chains.contains(&Some(&limit.chain)) {
                chains.push(Some(&limit.chain));
            }
        }
        if chains.is_empty() {
            chains.push(self.wanted.chain.as_ref());
        }
        let mut trials = Vec::new();
        for chain in chains {
            let wanted = taut_gate::TrialOptions { chain: chain.cloned(), ..self.wanted.clone() };
            trials.push(Trial::of(name, &analysis, &wanted).unwrap_or_else(|error| {
                missing.get_or_insert(error.into());
                Trial::without(name, &analysis, &wanted)
            }));
        }
        // A run that failed is one run, whatever chains it has.
        if let Some(failure) = trials.iter().find_map(|trial| trial.failure().cloned()) {
            trials = vec![Trial::failed(name, failure)];
        }
        match missing {
            None => Ok(trials),
            Some(error) => bail!(WithoutChain { error: format!("{error:#}"), is_empty: known.is_empty(), trials }),
        }
    }

    fn recording(&self, path: &Path) -> Result<Vec<Trial>> {
        self.trials(path, &path.shown())
    }

    /// All trials of some recordings, folders of them, and files of trials, in order.
    pub fn set(&self, paths: &[PathBuf]) -> Result<Vec<Trial>> {
        let mut runs = Vec::new();
        let mut run = |path: &Path| runs.push((path.shown(), self.recording(path)));
        let mut saved_ones = Vec::new();
        for path in paths {
            if path.is_dir() {
                recordings_in(path)?.iter().for_each(|path| run(path));
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                if !self.ros.is_empty() {
                    bail!(
                        "{}: holds trials of one chain; --topic and --node choose among those of recordings",
                        path.shown()
                    );
                }
                saved_ones.extend(saved(path)?);
            } else {
                run(path);
            }
        }
        let is_known = !saved_ones.is_empty() || runs.iter().any(|(_, read)| read.is_ok());
        let mut trials = saved_ones;
        for (name, read) in runs {
            match read {
                Err(error) if is_known => trials.extend(without(&name, error)?),
                read => trials.extend(read?),
            }
        }
        Ok(trials)
    }
}

/// A run that has stamps, and not all the chains that are wanted or declared: a wrong name, or a run that ended before its messages got there.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct WithoutChain {
    error: String,
    /// No message went all the way of any chain.
    is_empty: bool,
    /// What the run counts as where others of its side have the chains.
    trials: Vec<Trial>,
}

/// The trials of a run that has not the chain, or has failed without a stamp.
///
/// # Errors
/// It could not be read for another reason.
pub fn without(name: &str, error: anyhow::Error) -> Result<Vec<Trial>> {
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(WithoutChain { trials, .. }), _) => Ok(trials.clone()),
        (_, Some(taut_analysis::Error::Empty { .. })) => {
            Ok(vec![Trial::failed(name, Failure { how: "it stamped nothing".into(), said: Vec::new() })])
        }
        _ => Err(error),
    }
}

/// Whether a run has no stamps, or not the chain.
pub fn is_without(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(taut_analysis::Error::Empty { .. }))
        || matches!(error.downcast_ref(), Some(taut_gate::Error::NoChain { .. } | taut_gate::Error::Empty { .. }))
        || is_without_chain(error)
}

/// Whether a run has stamps, and no message that went all the way of any chain: it may have been too short.
pub fn is_too_short(error: &anyhow::Error) -> bool {
    let is_cut = |without: &WithoutChain| without.trials.iter().all(|trial| trial.is_stopped == Some(true));
    error.downcast_ref().is_some_and(|without: &WithoutChain| without.is_empty && is_cut(without))
}

/// Whether a run has stamps, and not the chain.
pub fn is_without_chain(error: &anyhow::Error) -> bool {
    error.is::<WithoutChain>()
}

fn recordings_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.shown())?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "mcap"))
        .collect();
    found.sort();
    if found.is_empty() {
        bail!("{}: holds no recording (.mcap)", folder.shown());
    }
    Ok(found)
}

fn saved(path: &Path) -> Result<Vec<Trial>> {
    let name = || path.shown();
    let text = std::fs::read_to_string(path).with_context(name)?;
    let one = |(at, line): (usize, &str)| {
        serde_json::from_str(line).with_context(|| format!("{}: line {} is no trial of taut gate", name(), at + 1))
    };
    let trials: Vec<Trial> =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(one).collect::<Result<_>>()?;
    if trials.is_empty() {
        bail!("{}: holds no trial", name());
    }
    Ok(trials)
}

/// Writes the trials of a gate, A's and B's, for a later gate.
pub fn save<'a>(folder: &Path, pairs: impl Iterator<Item = &'a (Trial, Trial)>) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.shown())?;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for pair in pairs {
        for (file, trial) in [(&mut a, &pair.0), (&mut b, &pair.1)] {
            serde_json::to_writer(&mut *file, trial)?;
            file.write_all(b"\n")?;
        }
    }
    for (name, bytes) in [("baseline.jsonl", a), ("candidate.jsonl", b)] {
        output::write(&String::from_utf8_lossy(&bytes), Some(&folder.join(name)))?;
    }
    Ok(())
}

/// What a reader must know of two stored sets, and whether they may be compared at all.
pub struct Fit {
    /// One sentence each.
    pub notes: Vec<String>,
    /// Ran on one kind of machine.
    pub same_machine: bool,
    /// A's and B's trials ran in turns.
    pub interleaved: bool,
}

/// Looks at when and where two sets ran.
pub fn fit(a: &[Trial], b: &[Trial]) -> Fit {
    // A run that failed has no machine and no time.
    let sound = |trials: &[Trial]| trials.iter().filter(|trial| trial.was_read()).cloned().collect::<Vec<_>>();
    let (a, b) = (&sound(a)[..], &sound(b)[..]);
    let kind = |trial: &Trial| (trial.host.cpu.clone(), trial.host.cpus, trial.host.kernel.clone());
    let mut notes = Vec::new();
    let same_machine = a.iter().chain(b).map(kind).collect::<std::collections::HashSet<_>>().len() <= 1;
    if let (false, Some(a), Some(b)) = (same_machine, a.first(), b.first()) {
        let told = |trial: &Trial| format!("{} × {}, Linux {}", trial.host.cpus, trial.host.cpu, trial.host.kernel);
        notes.push(format!(
            "A and B ran on different machines ({}; {}): record the baseline again on this one",
            told(a),
            told(b)
        ));
    }
    let starts = |trials: &[Trial]| {
        let starts = trials.iter().map(|trial| trial.started_unix_s);
        starts.fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), at| (from.min(at), to.max(at)))
    };
    let (of_a, of_b) = (starts(a), starts(b));
    let shared = of_a.1.min(of_b.1) - of_a.0.max(of_b.0);
    let shorter = (of_a.1 - of_a.0).min(of_b.1 - of_b.0);
    let interleaved = a.len() > 1 && b.len() > 1 && shared > 0.8 * shorter;
    if !interleaved && a.len() > 1 && b.len() > 1 {
        notes.push(
            "A and B ran one after the other, so what drifts between two sessions (CPU frequency and quotas, memory \
             layout, neighbours) counts as a change: run them in turns with --a and --b where a small one matters"
                .into(),
        );
    }
    Fit { notes, same_machine, interleaved }
}
