//! Two commands in turns on this machine: each trial a recording of its own, by a process of its own.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use taut_gate::{ACCUSING, Asked, Most, Phase, Trial, Void};
use taut_stats::compare::{Order, pair_order};

use super::{interrupt::Interrupt, stored::Reader};

/// Pairs in a row in which the command fails before it is given up.
const FAILURES_MAX: usize = 3;

/// How trials are run.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Stop each command after so long.
    pub duration: Option<Duration>,
    /// For everything.
    pub max_time: Duration,
    /// Of the order of trials, and of the programs.
    pub seed: u64,
    /// Probe the machine beside the program.
    pub probe: bool,
    /// Which kernel events.
    pub depth: String,
    /// Keep the recordings here.
    pub keep: Option<PathBuf>,
    /// No progress.
    pub quiet: bool,
}

/// A side: its command, and the folder that it runs in.
#[derive(Clone, Debug)]
pub struct Program {
    /// "A" or "B".
    pub side: &'static str,
    /// For a shell.
    pub command: String,
    /// Where it runs; here if none.
    pub folder: Option<PathBuf>,
}

/// Runs trials and says how far it is.
pub struct Live {
    runs: Runs,
    reader: Reader,
    scratch: tempfile::TempDir,
    began: Instant,
    bar: ProgressBar,
    interrupt: Interrupt,
    ran: usize,
    failures: usize,
}

impl Live {
    pub fn new(runs: &Runs, reader: Reader, interrupt: &Interrupt) -> Result<Live> {
        if let Some(keep) = &runs.keep {
            std::fs::create_dir_all(keep).with_context(|| keep.display().to_string())?;
        }
        Ok(Live {
            runs: runs.clone(),
            reader,
            scratch: tempfile::Builder::new().prefix("taut-gate-").tempdir().context("scratch folder")?,
            began: Instant::now(),
            bar: bar(runs.quiet),
            interrupt: interrupt.clone(),
            ran: 0,
            failures: 0,
        })
    }

    /// The next pair; `None` when there is no time for it.
    pub fn pair(&mut self, a: &Program, b: &Program, asked: Asked) -> Result<Option<(Trial, Trial)>> {
        let share = if asked.phase == Phase::Accuse { ACCUSING } else { 1.0 };
        if self.is_over(share) {
            return Ok(None);
        }
        let what = if asked.phase == Phase::Accuse { "pair" } else { "fresh pair" };
        self.show(&format!("{what} {} of at most {}", asked.pairs + 1, asked.most), asked.pairs, asked.most);
        let order = pair_order(self.runs.seed, self.ran + 1)[self.ran];
        let seed = self.runs.seed.wrapping_add(self.ran as u64);
        let (a, b) = match order {
            Order::AB => {
                let a = self.trial(a, seed)?;
                (a, self.trial(b, seed)?)
            }
            Order::BA => {
                let b = self.trial(b, seed)?;
                (self.trial(a, seed)?, b)
            }
        };
        self.ran += 1;
        Ok(Some((a, b)))
    }

    /// The first pairs: a program with itself.
    pub fn control(&mut self, a: &Program, pairs: usize) -> Result<Vec<(Trial, Trial)>> {
        let asked = |at| Asked { phase: Phase::Accuse, pairs: at, until: pairs, most: pairs };
        // A name of its own, for recordings that are kept.
        let again = Program { side: "A2", ..a.clone() };
        let pairs = (0..pairs).map(|at| self.pair(a, &again, asked(at)));
        pairs.filter_map(Result::transpose).collect()
    }

    /// The candidate's trial of a pair whose other trial is stored.
    pub fn one(&mut self, program: &Program, asked: Asked) -> Result<Option<Trial>> {
        let share = if asked.phase == Phase::Accuse { ACCUSING } else { 1.0 };
        if self.is_over(share) {
            return Ok(None);
        }
        self.single(program, asked.most)
    }

    /// One trial more of a single program; `None` when there is no time for it.
    pub fn single(&mut self, program: &Program, most: usize) -> Result<Option<Trial>> {
        if self.is_over(1.0) {
            return Ok(None);
        }
        self.show(&format!("trial {} of at most {most}", self.ran + 1), self.ran, most);
        let trial = self.trial(program, self.runs.seed.wrapping_add(self.ran as u64))?;
        self.ran += 1;
        Ok(Some(trial))
    }

    /// The pairs that its time would have held, in all: those that ran, and more like them.
    pub fn most(&self) -> Most {
        let pair_s = self.began.elapsed().as_secs_f64() / self.ran.max(1) as f64;
        Most::in_time(self.runs.max_time.as_secs_f64() / pair_s)
    }

    /// Since the first.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Whether one more like those before would end after its time. The first two always run.
    fn is_over(&self, share: f64) -> bool {
        let mean = self.began.elapsed().as_secs_f64() / self.ran.max(1) as f64;
        let next = if self.ran == 0 { 0.0 } else { mean };
        self.ran > 1 && self.began.elapsed().as_secs_f64() + next > share * self.runs.max_time.as_secs_f64()
    }

    fn trial(&mut self, program: &Program, seed: u64) -> Result<Trial> {
        let name = format!("{:04}-{}.mcap", self.ran, program.side.to_lowercase());
        let folder = self.runs.keep.as_deref().unwrap_or(self.scratch.path());
        let path = folder.join(name);
        let failed = self.record(program, seed, &path)?;
        let read =
            self.reader.trial(&path, &format!("trial {} of {} ({})", self.ran + 1, program.side, program.command));
        if self.runs.keep.is_none() {
            let _ = std::fs::remove_file(&path);
        }
        match failed {
            None => {
                self.failures = 0;
                read
            }
            Some(how) => {
                self.failures += 1;
                if self.ran == 0 || self.failures >= FAILURES_MAX {
                    bail!("{} ({}): {how}", program.side, program.command);
                }
                let Ok(mut trial) = read else { bail!("{} ({}): {how}", program.side, program.command) };
                trial.void = Some(Void::Failed { how });
                Ok(trial)
            }
        }
    }

    /// Records one trial; returns how the command failed.
    fn record(&self, program: &Program, seed: u64, path: &Path) -> Result<Option<String>> {
        let log = self.scratch.path().join("output");
        let output = std::fs::File::create(&log).with_context(|| log.display().to_string())?;
        let mut taut = Command::new(std::env::current_exe().context("this program")?);
        taut.args(["record", "--quiet", "--depth", &self.runs.depth, "--output"]).arg(std::path::absolute(path)?);
        if self.runs.probe {
            taut.arg("--probe");
        }
        if let Some(duration) = self.runs.duration {
            taut.args(["--duration", &duration.as_secs_f64().to_string()]);
        }
        if let Some(folder) = &program.folder {
            taut.current_dir(folder);
        }
        // exec: the program itself is what a signal at the end of the duration reaches.
        taut.args(["--", "sh", "-c", &program.command]).env("TAUT_GATE_SEED", seed.to_string());
        taut.env_remove("TAUT_SESSION").stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let status = self.interrupt.run(&mut taut)?;
        // 143: ended by the SIGTERM that its duration brings.
        let is_stopped = self.runs.duration.is_some() && status.code() == Some(143);
        if status.success() || is_stopped {
            return Ok(None);
        }
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        let code = status.code().map_or("a signal".into(), |code| format!("exit code {code}"));
        Ok(Some(format!("{code}: {}", last.trim().chars().take(200).collect::<String>())))
    }

    fn show(&self, what: &str, at: usize, most: usize) {
        let left = self.runs.max_time.saturating_sub(self.began.elapsed()).as_secs();
        self.bar.set_length(most as u64);
        self.bar.set_position(at as u64);
        self.bar.set_message(format!("{what}, at most {}:{:02} left", left / 60, left % 60));
        self.bar.tick();
    }
}

fn bar(quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::no_length().with_style(style)
}
