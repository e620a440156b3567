//! Where trials run: on this machine, or round by round on others. A round never leaves its host, so that scenarios are
//! compared within a host; a round whose host is lost is run again on another.

mod ray;
mod remote;
mod run_command;
mod ssh;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    time::Duration,
};

use crate::{
    Error, Event, Host, Lab, Order, Ran, Trial,
    manifest::{Header, Kind, Manifest},
    run_order::rounds,
};
pub(crate) use ray::RAY;
pub use remote::{Remote, quoted};
pub use run_command::Ended;
use ssh::Ssh;

/// What `ssh`, `sftp` and the helper for Ray end with when it is the host that cannot be reached.
pub const UNREACHABLE: i32 = 255;
/// How often a host without work asks for some.
const STEP: Duration = Duration::from_millis(50);

/// Runs rounds on a host, one at a time, and brings their folders here.
trait Runner: Send {
    /// The host's.
    fn name(&self) -> &str;

    /// Runs a round there; its manifest and logs are then in that folder.
    fn round(&mut self, round: u32, into: &Path) -> Result<Outcome, Error>;

    /// Removes what rounds left there; or what stays, and why.
    fn leave(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// What came of a round on a host.
enum Outcome {
    /// A folder with a manifest and logs.
    Ran(PathBuf),
    /// The host cannot be reached any more; another host runs the round.
    Lost(String),
}

/// What a host's thread says.
enum Said {
    /// Of a round.
    Of(u32, Result<Outcome, Error>),
    /// What stays on the host, and why.
    Left(String),
}

/// Runs the rounds that are not yet run on the lab's hosts, one at a time on each.
///
/// # Errors
/// What [`Error`] says; all hosts lost.
pub fn run_on_hosts(
    order: &Order<'_>,
    kind: Kind,
    program: &Path,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Ran, Error> {
    let lab = order.lab;
    let all = rounds(lab);
    let names = |round: &Vec<usize>| round.iter().map(|at| lab.scenarios[*at].name.clone()).collect();
    let fetched = order.folder.join("fetched");
    fs::create_dir_all(&fetched).map_err(Error::file(&fetched))?;
    let mut runners: Vec<Box<dyn Runner + '_>> = Vec::new();
    for host in &lab.hosts {
        runners.push(Box::new(Ssh::new(host, order, program, kind)));
    }
    if let Some(cluster) = &lab.ray {
        for host in ray::hosts(cluster, order, kind, program, &fetched)? {
            runners.push(Box::new(host));
        }
    }
    let hosts: Vec<&str> = runners.iter().map(|runner| runner.name()).collect();
    let header = Header {
        confinement: format!("as on {}", hosts.join(", ")),
        order: all.iter().map(names).collect(),
        ..Header::new(kind, order.file.0, order.file.1, lab)
    };
    let (mut manifest, mut trials) = match order.resume {
        true => Manifest::resume(order.folder, &header)?,
        false => (Manifest::create(order.folder, &header)?, Vec::new()),
    };
    let total = lab.trials as usize * lab.scenarios.len();
    let queue = Queue(Mutex::new((missing(lab, &trials, all.len()), 0)));
    let lost = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for mut runner in runners {
            let (sender, queue, fetched, lost) = (sender.clone(), &queue, &fetched, &lost);
            scope.spawn(move || {
                let host = runner.name().to_owned();
                while !order.stop.load(Relaxed) && !lost.load(Relaxed) {
                    let Some(round) = queue.take() else {
                        // A round that another host still has may come back.
                        if queue.is_over() {
                            break;
                        }
                        std::thread::sleep(STEP);
                        continue;
                    };
                    let outcome = runner.round(round, &fetched.join(format!("{host}-r{round}")));
                    let is_lost = matches!(outcome, Ok(Outcome::Lost(_)));
                    queue.done(round, is_lost);
                    if sender.send((host.clone(), Said::Of(round, outcome))).is_err() || is_lost {
                        break;
                    }
                }
                if let Err(what) = runner.leave() {
                    let _ = sender.send((host, Said::Left(what)));
                }
            });
        }
        drop(sender);
        let mut lose = None;
        for (host, said) in receiver {
            let (round, outcome) = match said {
                Said::Of(round, outcome) => (round, outcome),
                Said::Left(what) => {
                    tell(Event::HostLeft(&host, &what));
                    continue;
                }
            };
            match outcome {
                Ok(Outcome::Ran(folder)) => {
                    let taken = take(&folder, &host, order.folder).and_then(|new| {
                        new.into_iter().try_for_each(|trial| {
                            manifest.trial(&trial)?;
                            tell(Event::Trial(&trial, trials.len() + 1, Some(total)));
                            trials.push(trial);
                            Ok(())
                        })
                    });
                    if let Err(error) = taken {
                        lose.get_or_insert(error);
                    }
                }
                Ok(Outcome::Lost(why)) => tell(Event::HostLost(&host, round, &why)),
                Err(error) => {
                    lose.get_or_insert(error);
                }
            }
            if lose.is_some() {
                lost.store(true, Relaxed);
            }
        }
        lose.map_or(Ok(()), Err)
    })?;
    let _ = fs::remove_dir_all(&fetched);
    if order.stop.load(Relaxed) {
        return Err(Error::Stopped { trials: trials.len() });
    }
    let left = queue.left();
    if left > 0 {
        let problem = format!("no host is left for {left} rounds; reach one and go on with --resume");
        return Err(Error::Start { place: "host".into(), problem });
    }
    Ok(Ran { confinement: header.confinement, trials })
}

/// Rounds that no runner has yet, and how many are being run.
struct Queue(Mutex<(Vec<u32>, usize)>);

impl Queue {
    fn take(&self) -> Option<u32> {
        let mut inside = self.inside();
        let round = inside.0.pop()?;
        inside.1 += 1;
        Some(round)
    }

    fn done(&self, round: u32, is_lost: bool) {
        let mut inside = self.inside();
        inside.1 -= 1;
        if is_lost {
            inside.0.push(round);
        }
    }

    fn is_over(&self) -> bool {
        let inside = self.inside();
        inside.0.is_empty() && inside.1 == 0
    }

    fn left(&self) -> usize {
        self.inside().0.len()
    }

    fn inside(&self) -> std::sync::MutexGuard<'_, (Vec<u32>, usize)> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Rounds of which some trial has not run, the last one first.
fn missing(lab: &Lab, trials: &[Trial], rounds: usize) -> Vec<u32> {
    let done: BTreeSet<(&str, u32)> = trials.iter().map(|t| (t.id.scenario.as_str(), t.id.index)).collect();
    let is_whole = |round: &u32| {
        let first = round * lab.trials_per_start;
        let planned = first..(first + lab.trials_per_start).min(lab.trials);
        lab.scenarios.iter().all(|s| planned.clone().all(|index| done.contains(&(s.name.as_str(), index))))
    };
    (0..rounds as u32).rev().filter(|round| !is_whole(round)).collect()
}

/// Takes over the trials of a round, and its logs into the run's folder.
fn take(fetched: &Path, host: &str, folder: &Path) -> Result<Vec<Trial>, Error> {
    let trials = Manifest::trials_of(fetched)?;
    let logs = PathBuf::from("logs").join(host);
    let place = folder.join(&logs);
    fs::create_dir_all(&place).map_err(Error::file(&place))?;
    for entry in fs::read_dir(fetched.join("logs")).into_iter().flatten().flatten() {
        let to = place.join(entry.file_name());
        // Of a round that was lost half-way and came back.
        let _ = fs::remove_dir_all(&to);
        fs::rename(entry.path(), &to).map_err(Error::file(&to))?;
    }
    let with_host = |mut trial: Trial| {
        let below = trial.logs.strip_prefix("logs/").unwrap_or(&trial.logs).to_owned();
        trial.logs = format!("{}/{below}", logs.display());
        trial.host = Some(host.to_owned());
        trial
    };
    Ok(trials.into_iter().map(with_host).collect())
}

/// The command that runs one round on a host.
fn command(kind: Kind, round: u32, output: &str) -> Vec<OsString> {
    let verb = if kind == Kind::Sweep { "sweep" } else { "run" };
    let (round, quiet) = (round.to_string(), "--quiet");
    ["./taut", "lab", verb, "lab.toml", "-o", output, "--round", &round, quiet].map(OsString::from).into()
}
