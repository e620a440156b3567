//! Two commands in turns on this machine: each trial is a separate recording, by a separate process.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use taut_gate::{ACCUSING, Asked, Failure, Most, Phase, Settings, Trial, Void};
use taut_recording::Shown;
use taut_stats::compare::{Order, pair_order};

use crate::{exit, input, scratch::Scratch};

use super::{
    interrupt::{Interrupt, Ran},
    length::{LEAST, LONGER, Length, PILOT, Pilot},
    stored::{self, Reader},
};

/// A baseline that fails so often from the first run on is no baseline.
const FAILURES_MAX: usize = 3;
/// A run's duration counts from its first stamp: what a program takes to start depends on the machine's load. Without a stamp it counts from here.
const START: Duration = Duration::from_secs(20);
/// What a run may take beyond its duration and its start.
const LATE: Duration = Duration::from_secs(30);
/// Lines of the output of a run that failed.
const LAST_LINES: usize = 5;
/// What the shell says of a signal, behind the program's own last words.
const OF_THE_SHELL: [&str; 6] =
    ["Aborted", "Segmentation fault", "Killed", "Terminated", "Bus error", "Floating point exception"];

/// How trials are run.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Stop each command so long after its first stamp; where two programs run in turns and it is not given, it is chosen.
    pub duration: Option<Duration>,
    /// For everything.
    pub max_time: Duration,
    /// Of the order of trials, and of the programs.
    pub seed: u64,
    /// Probe the machine beside the program.
    pub wakeup: bool,
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
    scratch: Scratch,
    began: Instant,
    bar: ProgressBar,
    interrupt: Interrupt,
    ran: usize,
    /// Runs so far of what nothing else is held against, and those that failed.
    baseline: (usize, usize),
    /// Sides of which a run could be read, for each.
    stamped: Vec<&'static str>,
    /// Runs without the chain of a side of which none could be read.
    without: usize,
    /// Processes that outlived their runs, and were ended.
    left: usize,
    /// A run's duration counts from its start, not from its first stamp.
    counts_from_start: bool,
}

impl Live {
    pub fn new(runs: &Runs, reader: Reader, interrupt: &Interrupt) -> Result<Live> {
        if let Some(keep) = &runs.keep {
            std::fs::create_dir_all(keep).with_context(|| keep.shown())?;
        }
        Ok(Live {
            runs: runs.clone(),
            reader,
            scratch: Scratch::new("taut-gate-")?,
            began: Instant::now(),
            bar: bar(runs.quiet),
            interrupt: interrupt.clone(),
            ran: 0,
            baseline: (0, 0),
            stamped: Vec::new(),
            without: 0,
            left: 0,
            counts_from_start: false,
        })
    }

    /// Runs the baseline once, and chooses how long trials are; reports it.
    pub fn choose_length(&mut self, a: &Program, settings: &Settings) -> Result<()> {
        if self.runs.duration.is_some() {
            return Ok(());
        }
        self.show("trying how fast A is", 0, 1);
        let mut pilot = self.pilot(a, PILOT)?;
        if pilot.trial.messages < LEAST && !pilot.is_over {
            pilot = self.pilot(a, LONGER)?;
        }
        if pilot.trial.messages < 2 {
            bail!(
                "A ({}): {} messages in {} s: give the length of a trial with --duration",
                a.command,
                pilot.trial.messages,
                LONGER.as_secs()
            );
        }
        let length = Length::choose(&pilot, settings, self.runs.max_time);
        self.runs.duration = length.duration;
        self.say(&length.sentence(settings, self.runs.max_time));
        Ok(())
    }

    /// Makes trials as long as stored ones, which they are compared with.
    pub fn as_long_as(&mut self, stored: &[Trial]) {
        let length = |trial: &Trial| trial.duration_s - trial.first_s;
        let mut lengths: Vec<f64> = stored.iter().map(length).filter(|s| *s > 0.0).collect();
        lengths.sort_unstable_by(f64::total_cmp);
        if let (None, Some(median)) = (self.runs.duration, lengths.get(lengths.len() / 2)) {
            self.runs.duration = Some(Duration::from_secs_f64(median * 1.05));
        }
    }

    /// What the order within pairs is drawn from.
    pub fn seed(&self) -> u64 {
        self.runs.seed
    }

    fn pilot(&mut self, a: &Program, length: Duration) -> Result<Pilot> {
        let path = self.scratch.path().join("pilot.mcap");
        let mut began = Instant::now();
        let mut failures = 0;
        while let Some(void) = self.record(a, self.runs.seed, &path, Some(length))? {
            failures += 1;
            match void {
                Void::Failed { failure } if failures == FAILURES_MAX || failure.is_not_found() => {
                    bail!("A ({}): {failure}", a.command)
                }
                void if failures == FAILURES_MAX => bail!("A ({}): {void}", a.command),
                _ => {}
            }
            began = Instant::now();
        }
        let read = self.reader.trials(&path, &format!("the first run of A ({})", a.command));
        let trial = match read {
            // Of a slow program the longer run says more.
            Err(error) if stored::is_too_short(&error) && length < LONGER => {
                stored::without(&a.command, error)?.remove(0)
            }
            read => read?.remove(0),
        };
        let _ = std::fs::remove_file(&path);
        Ok(Pilot { took: began.elapsed(), is_over: trial.is_stopped == Some(false), trial })
    }

    /// On stderr, above the bar.
    fn say(&self, text: &str) {
        if !self.runs.quiet {
            self.bar.suspend(|| say!("taut: {text}"));
        }
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
                let a = self.trial(a, seed, true)?;
                (a, self.trial(b, seed, false)?)
            }
            Order::BA => {
                let b = self.trial(b, seed, false)?;
                (self.trial(a, seed, true)?, b)
            }
        };
        self.ran += 1;
        Ok(Some((a, b)))
    }

    /// Says what the time holds, once it is known what a pair takes.
    pub fn say_what_fits(&self, settings: &Settings, messages: u64) {
        let pair = self.began.elapsed() / self.ran.max(1) as u32;
        let length = Length { duration: self.runs.duration, pair, messages };
        self.say(&length.sentence(settings, self.runs.max_time));
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
        Ok(self.next(program, asked.most, false)?.map(|mut trials| trials.remove(0)))
    }

    /// One run more of a single program, as a trial of each chain that is wanted; `None` when there is no time for it.
    ///
    /// # Errors
    /// The program is a baseline, and fails again and again from its first run on.
    pub fn single(&mut self, program: &Program, most: usize, is_baseline: bool) -> Result<Option<Vec<Trial>>> {
        self.next(program, most, is_baseline)
    }

    fn next(&mut self, program: &Program, most: usize, is_baseline: bool) -> Result<Option<Vec<Trial>>> {
        if self.is_over(1.0) {
            return Ok(None);
        }
        self.show(&format!("trial {} of at most {most}", self.ran + 1), self.ran, most);
        let trials = self.trials(program, self.runs.seed.wrapping_add(self.ran as u64), is_baseline)?;
        self.ran += 1;
        Ok(Some(trials))
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

    /// For programs that do not stamp: nothing is waited for.
    pub fn count_from_start(&mut self, does: bool) {
        self.counts_from_start = does;
    }

    /// What a reader must know of the runs.
    pub fn notes(&self) -> Vec<String> {
        let note =
            |left: usize| format!("runs that ended by themselves left {left} processes running, which the gate ended");
        (self.left > 0).then(|| note(self.left)).into_iter().collect()
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

    fn trial(&mut self, program: &Program, seed: u64, is_baseline: bool) -> Result<Trial> {
        Ok(self.trials(program, seed, is_baseline)?.remove(0))
    }

    fn trials(&mut self, program: &Program, seed: u64, is_baseline: bool) -> Result<Vec<Trial>> {
        let name = format!("{:04}-{}.mcap", self.ran, program.side.to_lowercase());
        let folder = self.runs.keep.as_deref().unwrap_or(self.scratch.path());
        let path = folder.join(name);
        let name = format!("trial {} of {} ({})", self.ran + 1, program.side, program.command);
        let failed = self.record(program, seed, &path, self.runs.duration)?;
        if is_baseline {
            let failures = usize::from(matches!(failed, Some(Void::Failed { .. })));
            self.baseline = (self.baseline.0 + 1, self.baseline.1 + failures);
        }
        let trials = match failed {
            None => self.read(program.side, &path, &name),
            Some(Void::Failed { failure }) => {
                let (runs, failures) = self.baseline;
                let is_hopeless = is_baseline && runs == failures && runs >= FAILURES_MAX;
                if is_hopeless || failure.is_not_found() {
                    bail!("{} ({}): {failure}", program.side, program.command);
                }
                Ok(vec![Trial::failed(&name, failure)])
            }
            Some(void) => Ok(vec![Trial { name, void: Some(void), ..Trial::default() }]),
        };
        if self.runs.keep.is_none() {
            let _ = std::fs::remove_file(&path);
        }
        trials
    }

    /// A run without stamps, or without the chain, is a trial where the side has had them before. Of a side that has not, a first run may have been
    /// too short.
    fn read(&mut self, side: &'static str, path: &Path, name: &str) -> Result<Vec<Trial>> {
        let read = self.reader.trials(path, name);
        match read {
            Err(error) if self.stamped.contains(&side) => stored::without(name, error),
            Err(error) if stored::is_without_chain(&error) && self.without + 1 < FAILURES_MAX => {
                self.without += 1;
                stored::without(name, error)
            }
            Ok(trials) => {
                self.stamped.push(side);
                Ok(trials)
            }
            error => error,
        }
    }

    /// Records one run; returns how it, or its recorder, failed.
    pub fn record(
        &mut self,
        program: &Program,
        seed: u64,
        path: &Path,
        duration: Option<Duration>,
    ) -> Result<Option<Void>> {
        let log = self.scratch.path().join("output");
        let output = std::fs::File::create(&log).with_context(|| log.shown())?;
        let mut taut = Command::new(std::env::current_exe().context("this program")?);
        taut.args(["record", "--quiet", "--ignore-loss", "--depth", &self.runs.depth, "--output"])
            .arg(std::path::absolute(path)?);
        if self.runs.wakeup {
            taut.arg("--wakeup");
        }
        if let Some(duration) = duration {
            let [duration, start] = [duration, START].map(|time| time.as_secs_f64().to_string());
            taut.args(["--duration", &duration]);
            if !self.counts_from_start {
                taut.args(["--first-stamp-within", &start]);
            }
        }
        if let Some(folder) = &program.folder {
            taut.current_dir(folder);
        }
        taut.args(["--", "sh", "-c", &program.command]).env("TAUT_GATE_SEED", seed.to_string());
        taut.env_remove("TAUT_SESSION").stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let limit = duration.map_or(self.runs.max_time, |duration| START + duration) + LATE;
        let Ran { status, is_late, left } = self.interrupt.run_trial(&mut taut, limit)?;
        self.left += left;
        if status.success() && !is_late {
            return Ok(None);
        }
        let is_own = |line: &&str| !line.is_empty() && !OF_THE_SHELL.iter().any(|word| line.starts_with(word));
        let said = String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned();
        let (of_recorder, lines): (Vec<&str>, Vec<&str>) =
            said.lines().map(str::trim).filter(is_own).partition(|line| line.starts_with("taut: "));
        let is_the_programs = || ended_with(path).is_some_and(|code| Some(code) == status.code());
        if let (Some(exit::RECORD_FAILED | exit::IO_FAILED), Some(line)) =
            (status.code().and_then(|code| u8::try_from(code).ok()), of_recorder.last())
            && !is_the_programs()
        {
            return Ok(Some(Void::NotRecorded { what: line.trim_start_matches("taut: ").to_owned() }));
        }
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].iter();
        let said = last.map(|line| line.chars().take(200).collect()).collect();
        let failure = match status.code() {
            _ if is_late => Failure { how: format!("still running after {} s", limit.as_secs()), said },
            Some(code) => Failure::by_code(code, said),
            None => return Ok(Some(Void::NotRecorded { what: "a signal ended the recorder".into() })),
        };
        Ok(Some(Void::Failed { failure }))
    }

    /// How far it is, on the bar.
    pub fn show(&self, what: &str, at: usize, most: usize) {
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

/// The exit code of the recorded program, by the end of its recording.
fn ended_with(path: &Path) -> Option<i32> {
    let bytes = input::map(path).ok()?;
    taut_recording::read(&bytes, &mut |_| {}).ok()?.ending?.exit_code
}
