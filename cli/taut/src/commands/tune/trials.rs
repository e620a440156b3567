//! Trials of the command with and without remedies: each a run of its own, recorded, watched, and put back.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use taut_analysis::{Analysis, Analyzer, Config, Loop};
use taut_gate::{Failure, Statistic, Trial, TrialOptions, Void};
use taut_stats::{
    Distribution,
    compare::{Margin, Rule, Scale},
    rank,
};
use taut_tune::{
    CONFIRMING_TRIALS, Checked, FEWEST_TRIALS, Guard, Journal, Measured, Outside, Plan, Problem, Seen, Stage, Tuned,
    expected_trials,
};

use super::{
    super::gate::live::{Live, Program},
    Args,
    pace::{Other, Pace, START_S},
};
use crate::{exit::Interrupted, input, scratch::Scratch};

/// Figures of the tail, the rarest first, with the messages that a trial needs for each.
const TAILS: [(Statistic, f64); 3] = [(Statistic::P99, 1_500.0), (Statistic::P95, 300.0), (Statistic::P90, 150.0)];
/// Messages beyond a trial's figure of the tail, at least.
const BEYOND_MIN: f64 = 10.0;
/// Trials may have so much fewer messages than the first.
const TO_SPARE: f64 = 0.7;
/// Steps in which the messages are looked for that carry a figure.
const LONGER: f64 = 1.25;
/// A trial is so many times longer, so that none falls short.
const LONG_ENOUGH: f64 = 1.1;
/// A stage may take this share of the search's time.
const SHARES: [(Stage, f64); 3] = [(Stage::Singles, 0.4), (Stage::Pairs, 0.5), (Stage::Confirm, 1.0)];
/// A search that lacked time is given its expected one with this to spare.
const SPARE: f64 = 1.25;
/// Of the start's messages, fewer than this share is a failure of the run.
const TOO_FEW: f64 = 0.5;
/// The start fails so often: it is not fit to be compared with.
const FAILURES_MAX: usize = 3;
/// A remedy under which it fails so often is out. Once may be the program's own failure, or the machine's.
const FAILURES_OF_REMEDY: usize = 2;
/// How a recording says that the recorder ended the program.
const STOPPED: &str = "duration";
const DROPPED: &str = "messages dropped";
/// Names of threads that a plan must be in force for; beyond that it must be for all.
const NAMES_MAX: usize = 16;

/// Runs trials.
pub struct Trials {
    live: Live,
    config: Config,
    command: Vec<std::ffi::OsString>,
    seed: u64,
    began: Instant,
    /// When the search began, since then.
    searching: Duration,
    max_time: Duration,
    scratch: Scratch,
    journal: Option<Journal>,
    duration: Option<Duration>,
    /// What a trial takes, by what is known.
    trial_s: f64,
    tail: Statistic,
    chain: String,
    /// Share of a trial for which the probe may stall.
    stalled_max: f64,
    names: Vec<String>,
    protected: Vec<Other>,
    /// Of each of them, the figure that is judged.
    figures: BTreeMap<String, Statistic>,
    /// Messages of each run of the start.
    messages: Vec<u64>,
    ran: u64,
    start_failures: usize,
    /// The program does not end well when it is stopped, as it is.
    fails_at_stop: bool,
    /// Changes that the kernel refuses: remedies go without them.
    refused: Vec<(Outside, String)>,
    /// Of each plan.
    failures: BTreeMap<String, usize>,
    not_restored: Option<String>,
    signal: Option<i32>,
    notes: Vec<String>,
    /// Why trials say nothing, the first of each kind, and how many there were.
    voids: Vec<(Void, usize)>,
}

/// One run, before its recording is read.
pub struct Ran {
    pub void: Option<Void>,
    pub checked: Checked,
}

/// What is to be said at the end.
pub struct End {
    pub figure: String,
    pub trial_s: Option<f64>,
    pub notes: Vec<String>,
    pub is_restored: bool,
    pub signal: Option<i32>,
}

impl Trials {
    pub fn new(live: Live, config: Config, args: &Args, seed: u64, began: Instant) -> Result<Trials> {
        Ok(Trials {
            live,
            config,
            command: args.command.clone(),
            seed,
            began,
            searching: Duration::ZERO,
            max_time: args.max_time,
            scratch: Scratch::new("taut-tune-")?,
            journal: None,
            duration: args.duration,
            trial_s: 0.0,
            tail: Statistic::P99,
            chain: String::new(),
            stalled_max: TrialOptions::default().stalled_max,
            names: Vec::new(),
            protected: Vec::new(),
            figures: BTreeMap::new(),
            messages: Vec::new(),
            ran: 0,
            start_failures: 0,
            fails_at_stop: false,
            refused: Vec::new(),
            failures: BTreeMap::new(),
            not_restored: None,
            signal: None,
            notes: Vec::new(),
            voids: Vec::new(),
        })
    }

    /// The command as people write it.
    pub fn words(&self) -> String {
        self.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    /// Outside changes go through this from now on.
    pub fn keep_journal(&mut self, journal: Journal) {
        self.journal = Some(journal);
    }

    /// Whether a run's duration counts from its start, as it must where nothing is stamped.
    pub fn count_from_start(&mut self, does: bool) {
        self.live.count_from_start(does);
    }

    fn path(&self) -> PathBuf {
        self.scratch.path().join("trial.mcap")
    }

    /// Runs the command once under a plan.
    pub fn record(&mut self, plan: &Plan, duration: Option<Duration>) -> Result<Ran> {
        let trial = taut_tune::Trial::new(plan, &self.scratch.path().join("launch"))?;
        let mut line = "exec".to_owned();
        let taut = std::env::current_exe().context("this program")?;
        let launch =
            [taut.as_os_str(), "tune".as_ref(), "--launch".as_ref(), trial.launch().as_os_str(), "--".as_ref()];
        for word in launch.into_iter().chain(self.command.iter().map(AsRef::as_ref)) {
            let Some(word) = word.to_str() else {
                bail!("{}: give the command as text (UTF-8)", word.to_string_lossy());
            };
            line += &format!(" '{}'", word.replace('\'', r"'\''"));
        }
        let program = Program { side: "A", command: line, folder: None };
        let watched = trial.watch();
        let seed = self.seed.wrapping_add(self.ran);
        let void = self.live.record(&program, seed, &self.path(), duration);
        let checked = watched.end();
        let void = match void? {
            Some(Void::Failed { failure }) if self.was_stopped() => self.at_its_stop(plan, failure),
            void => void,
        };
        Ok(Ran { void, checked })
    }

    /// How the program ended when it was stopped says nothing of the run, where it ends so without a remedy, too: a node of rclpy that spins until
    /// it is interrupted ends with an exception.
    fn at_its_stop(&mut self, plan: &Plan, failure: Failure) -> Option<Void> {
        if plan.is_empty() && !self.fails_at_stop {
            self.fails_at_stop = true;
            self.note(format!(
                "the program fails when it is stopped: {} (also without a remedy; not counted)",
                failure.how
            ));
        }
        (!self.fails_at_stop).then_some(Void::Failed { failure })
    }

    /// Whether the recorder ended the last run.
    fn was_stopped(&self) -> bool {
        let ending = || Some(taut_recording::read(&input::map(&self.path()).ok()?, &mut |_| {}).ok()?.ending?.reason);
        ending().is_some_and(|reason| reason == STOPPED)
    }

    /// The recording of the last run, and what kernel events say of its threads.
    pub fn analyse(&self) -> Result<(Analysis, Seen)> {
        let path = self.path();
        let read = || -> Result<(Analysis, Seen)> {
            let bytes = input::map(&path)?;
            let (mut analyzer, mut seen) = (Analyzer::new(self.config.clone()), Seen::default());
            let contents = taut_recording::read(&bytes, &mut |record| {
                seen.record(&record);
                analyzer.record(&record);
            })?;
            let damage = contents.damage.iter().map(ToString::to_string).collect();
            let length = bytes.len() as u64;
            let mut ending = contents.ending;
            // How it ended then is no failure of the run.
            if let Some(ending) = ending.as_mut().filter(|ending| self.fails_at_stop && ending.reason == STOPPED) {
                ending.exit_code = None;
            }
            Ok((analyzer.finish(contents.info, ending, damage, length)?, seen))
        };
        read().with_context(|| format!("a run of {}", self.words()))
    }

    /// Chooses the figure of the tail and the length of the trials, so that the time holds a search.
    pub fn choose(&mut self, first: &Pace, tuned: &Tuned, args: &Args) -> Result<()> {
        self.chain.clone_from(&first.chain);
        if first.is_throttled {
            self.stalled_max = 1.0;
            self.note("the CPU quota limits the probe, too: a stall of the machine looks the same".to_owned());
        }
        self.protected = protected(first, args)?;
        let mut names = first.names.clone();
        names.sort();
        names.dedup();
        self.names = if names.len() <= NAMES_MAX { names } else { Vec::new() };
        let span_s = first.span_s;
        let per_s = first.messages as f64 / span_s.max(1e-3);
        let overhead_s = (first.took.as_secs_f64() - span_s).max(0.1);
        // A second of a trial takes one to record and some to analyse.
        let each_s = 1.0 + first.analysed.as_secs_f64() / first.took.as_secs_f64().max(0.1);
        self.searching = self.began.elapsed();
        let left_s = self.max_time.saturating_sub(self.searching).as_secs_f64();
        let wanted = expected_trials(tuned.remedies.len(), usize::MAX / 2) as f64;
        let mut tails: Vec<(Statistic, f64)> = TAILS.into_iter().filter_map(|of| carrying(of, first)).collect();
        if tails.is_empty() {
            tails.push(TAILS[2]);
        }
        let last = tails[tails.len() - 1];
        let carried = |messages: f64| tails.iter().find(|(_, needed)| messages >= *needed).unwrap_or(&last).0;
        if first.is_over {
            self.duration = None;
            self.trial_s = (first.took + first.analysed).as_secs_f64();
            self.tail = carried(first.messages as f64);
        } else if let Some(duration) = args.duration {
            self.trial_s = overhead_s + duration.as_secs_f64() * each_s;
            self.tail = carried(duration.as_secs_f64() * per_s * 0.95);
        } else {
            let fits = |(_, needed): &&(Statistic, f64)| {
                (overhead_s + needed * LONG_ENOUGH / per_s * each_s) * wanted <= left_s
            };
            let (tail, needed) = tails.iter().find(fits).unwrap_or(&last);
            self.tail = *tail;
            // As long as what starting and ending it takes, where the time holds enough of such trials.
            let spare_s = (left_s / wanted - overhead_s) / each_s;
            let length_s = (needed * LONG_ENOUGH / per_s).max(overhead_s.min(spare_s));
            let start_s = if first.is_from_start { overhead_s.min(START_S) } else { 0.0 };
            self.duration = Some(Duration::from_secs_f64(((start_s + length_s) * 10.0).ceil() / 10.0));
            self.trial_s = overhead_s + length_s * each_s;
        }
        Ok(())
    }

    /// Trials that the time still holds.
    pub fn most(&self) -> usize {
        let left_s = self.max_time.saturating_sub(self.began.elapsed()).as_secs_f64();
        (left_s / self.trial_s.max(0.01)) as usize
    }

    /// What must not get worse.
    pub fn guards(&self) -> Vec<Guard> {
        let ratio = |relative, absolute| Rule {
            scale: Scale::Ratio,
            minimum_effect: Margin { relative, absolute },
            equivalence: Margin { relative: 2.0 * relative, absolute: 2.0 * absolute },
        };
        let share = Rule {
            scale: Scale::Share,
            minimum_effect: Margin { relative: 0.0, absolute: 0.002 },
            equivalence: Margin { relative: 0.0, absolute: 0.005 },
        };
        let guard = |name: String, rule| Guard { name, rule };
        let mut guards = vec![
            guard("p50".into(), ratio(0.1, 20_000.0)),
            guard("CPU time a message".into(), ratio(0.2, 0.0)),
            guard("time between messages".into(), ratio(0.05, 0.0)),
            guard(DROPPED.into(), share),
        ];
        for other in &self.protected {
            let (name, lost) = (other.name(), if matches!(other, Other::Chain(_)) { DROPPED } else { "overruns" });
            guards.push(guard(format!("{name}: latency"), ratio(0.1, 50_000.0)));
            guards.push(guard(format!("{name}: {lost}"), share));
        }
        guards
    }

    /// Whether the kernel refused a change.
    pub fn has_refused(&self, outside: &Outside) -> bool {
        self.why_refused(outside).is_some()
    }

    fn why_refused(&self, outside: &Outside) -> Option<&String> {
        self.refused.iter().find(|(of, _)| of == outside).map(|(_, why)| why)
    }

    /// Whether everything is as it was, as far as it was put back.
    pub fn is_restored(&self) -> bool {
        self.not_restored.is_none()
    }

    /// Said before the search.
    pub fn sentence(&self, remedies: usize, most: usize) -> String {
        let trials = expected_trials(remedies, most);
        let remedies = if remedies == 1 { "1 remedy".to_owned() } else { format!("{remedies} remedies") };
        let minutes = |s: f64| if s < 180.0 { format!("{s:.0} s") } else { format!("{:.0} min", s / 60.0) };
        if most < FEWEST_TRIALS {
            return format!(
                "{remedies}; a trial takes {:.1} s, {} hold {most} of them, and an answer takes at least {FEWEST_TRIALS}: none is tried",
                self.trial_s,
                minutes(self.max_time.as_secs_f64())
            );
        }
        format!(
            "{remedies}; about {trials} trials of {:.1} s by {}, {} in all; at most {}",
            self.trial_s,
            self.tail.word(),
            minutes(trials as f64 * self.trial_s + self.began.elapsed().as_secs_f64()),
            minutes(self.max_time.as_secs_f64())
        )
    }

    /// What a search over so many remedies probably takes in all, in s: more than it was given.
    pub fn needed_s(&self, remedies: usize) -> f64 {
        let trials = expected_trials(remedies, usize::MAX / 2) as f64;
        (self.searching.as_secs_f64() + trials * self.trial_s).max(self.max_time.as_secs_f64()) * SPARE
    }

    /// When a stage has to end, in s since the start. The fewest fresh pairs are kept for the confirmation, where there is time for them.
    fn limit_s(&self, stage: Stage) -> f64 {
        let share = SHARES.iter().find(|(of, _)| *of == stage).map_or(1.0, |(_, share)| *share);
        let (from_s, to_s) = (self.searching.as_secs_f64(), self.max_time.as_secs_f64());
        let limit_s = from_s + share * (to_s - from_s);
        let is_kept = stage != Stage::Confirm && to_s - from_s >= FEWEST_TRIALS as f64 * self.trial_s;
        if is_kept { limit_s.min(to_s - CONFIRMING_TRIALS as f64 * self.trial_s) } else { limit_s }
    }

    /// One trial of a set of remedies; `None` when the stage has no time for it.
    pub fn run(&mut self, stage: Stage, plan: &Plan, name: &str) -> Result<Option<Measured>> {
        let elapsed_s = self.began.elapsed().as_secs_f64();
        // What is not as it was would be part of every further trial.
        if self.signal.is_some() || !self.is_restored() || elapsed_s + self.trial_s > self.limit_s(stage) {
            return Ok(None);
        }
        let what = if name.is_empty() { "as it is" } else { name };
        let word = match stage {
            Stage::Singles => "single remedies",
            Stage::Pairs => "pairs of remedies",
            Stage::Confirm => "fresh pairs",
        };
        self.live.show(&format!("{word}: {what}"), elapsed_s as usize, self.max_time.as_secs() as usize);
        let began = Instant::now();
        let measured = self.measured(plan);
        self.ran += 1;
        // A mean of what trials took: their length is known only by running them.
        self.trial_s += (began.elapsed().as_secs_f64() - self.trial_s) / (self.ran.min(8)) as f64;
        match measured {
            Err(error) => match error.downcast_ref::<Interrupted>() {
                Some(interrupted) => {
                    self.signal = Some(interrupted.signal);
                    Ok(None)
                }
                None => Err(error),
            },
            measured => measured.map(Some),
        }
    }

    fn measured(&mut self, plan: &Plan) -> Result<Measured> {
        let (mut held, mut applied) = (Vec::new(), Vec::new());
        for outside in &plan.outside {
            if self.has_refused(outside) {
                continue;
            }
            let Some(journal) = &mut self.journal else { bail!("{outside}: there is no journal") };
            match outside.apply(journal) {
                Ok(file) => {
                    held.extend(file);
                    applied.push(outside);
                }
                Err(error) if error.is_refused() => {
                    self.note(format!("{error}; it stays as it is"));
                    self.refused.push((outside.clone(), error.to_string()));
                }
                Err(error) => {
                    self.put_back();
                    return Ok(with_problem(Problem::NotInForce(error.to_string())));
                }
            }
        }
        // Without what it changes outside the program it is another remedy.
        let why = plan.outside.iter().find_map(|outside| self.why_refused(outside)).cloned();
        if let (true, Some(why)) = (applied.is_empty(), why) {
            self.put_back();
            return Ok(with_problem(Problem::NotInForce(why)));
        }
        let ran = self.record(plan, self.duration);
        let amiss = applied.iter().find_map(|outside| Some(format!("{outside}: {}", outside.amiss()?)));
        drop(held);
        self.put_back();
        let ran = ran?;
        let is_start = plan.is_empty();
        match ran.void {
            Some(Void::Failed { failure }) if is_start => {
                self.start_failures += 1;
                if self.start_failures >= FAILURES_MAX {
                    bail!("{}: {failure}, {FAILURES_MAX} times without any remedy", self.words());
                }
                return Ok(Measured { is_void: true, ..Measured::default() });
            }
            // A command that fails by itself, too, says nothing of a remedy.
            Some(Void::Failed { .. }) if self.start_failures > 0 => {
                return Ok(Measured { is_void: true, ..Measured::default() });
            }
            Some(Void::Failed { failure }) => return Ok(self.failed(plan, failure.to_string())),
            Some(void) if is_start || !matches!(void, Void::NotRecorded { .. }) => {
                self.void(void);
                return Ok(Measured { is_void: true, ..Measured::default() });
            }
            Some(void) => return Ok(with_problem(Problem::NotInForce(void.to_string()))),
            None => {}
        }
        let (analysis, seen) = match self.analyse() {
            Err(_) if !is_start => return Ok(self.failed(plan, "it left no messages".into())),
            Err(error) if matches!(error.downcast_ref(), Some(taut_analysis::Error::Empty { .. })) => {
                return Ok(self.without_messages());
            }
            read => read?,
        };
        let stalled_max = self.stalled_max;
        let trial = |chain: &str| {
            let wanted = TrialOptions { chain: Some(chain.to_owned()), stalled_max, ..TrialOptions::default() };
            Trial::of(chain, &analysis, &wanted)
        };
        let Ok(own) = trial(&self.chain) else {
            return Ok(match is_start {
                true => self.without_messages(),
                false => self.failed(plan, "it left no message of the chain".into()),
            });
        };
        if let Some(void) = &own.void {
            self.void(void.clone());
            return Ok(Measured { is_void: true, ..Measured::default() });
        }
        if is_start {
            self.messages.push(own.messages);
        }
        let (agreed, contradiction) = seen.check(plan, &ran.checked);
        let not_in_force = amiss.or_else(|| ran.checked.problem(plan, &self.names)).or(contradiction);
        if let (None, false, Some(why)) = (&not_in_force, is_start, self.too_few(&own)) {
            return Ok(self.failed(plan, why));
        }
        let mut guards = vec![
            own.way.total.p50,
            // What a quota kept from the program is no cost of lifting it.
            (own.messages > 0 && !plan.outside.iter().any(Outside::lifts_quota))
                .then(|| ran.checked.cpu_s / own.messages as f64),
            (own.messages > 1).then(|| own.active_s / own.messages as f64),
            Some(own.dropped),
        ];
        for other in self.protected.clone() {
            guards.extend(match &other {
                Other::Chain(name) => {
                    let all = latencies(&analysis, name);
                    let figure = self.figure_of(name, all.len());
                    [tail_of(figure, &all), trial(name).ok().map(|other| other.dropped)]
                }
                Other::Loop(name) => {
                    let one = analysis.loops.iter().find(|one| one.name == *name);
                    let figure = self.figure_of(name, one.map_or(0, |one| one.response_time.n as usize));
                    [one.and_then(|one| of_distribution(figure, &one.response_time)), one.and_then(overruns_of)]
                }
            });
        }
        Ok(Measured {
            tail_ns: tail_of(self.tail, &latencies(&analysis, &self.chain)),
            p50_ns: own.way.total.p50,
            missed: own.missed.or_else(|| overruns(&analysis, &self.chain)),
            guards,
            is_void: false,
            problem: not_in_force.map(Problem::NotInForce),
            agreed,
        })
    }

    /// By which figure a protected chain or loop is judged: the rarest that its first trial carries with some to spare, the same in all of them. It
    /// may be far slower than what is tuned.
    fn figure_of(&mut self, name: &str, messages: usize) -> Statistic {
        let carries = |figure: &Statistic| {
            figure.beyond().is_some_and(|beyond| TO_SPARE * messages as f64 * beyond >= BEYOND_MIN)
        };
        let rarest = [self.tail, Statistic::P95, Statistic::P90].into_iter().find(carries).unwrap_or(Statistic::P50);
        match self.figures.get(name) {
            Some(figure) => *figure,
            None if messages == 0 => rarest,
            None => *self.figures.entry(name.to_owned()).or_insert(rarest),
        }
    }

    /// A run of the start that says nothing of the chain.
    fn without_messages(&mut self) -> Measured {
        self.note(format!("a run without remedies left no message of {}; name its points in taut.toml", self.chain));
        Measured { is_void: true, ..Measured::default() }
    }

    /// A run of a remedy that failed.
    fn failed(&mut self, plan: &Plan, why: String) -> Measured {
        let failures = self.failures.entry(plan.to_string()).or_default();
        *failures += 1;
        match *failures {
            FAILURES_OF_REMEDY.. => with_problem(Problem::Failed(why)),
            _ => Measured { is_void: true, ..Measured::default() },
        }
    }

    fn too_few(&self, trial: &Trial) -> Option<String> {
        let mut of_start = self.messages.clone();
        of_start.sort_unstable();
        let typical = *of_start.get(of_start.len() / 2)?;
        let is_few = (trial.messages as f64) < TOO_FEW * typical as f64;
        is_few.then(|| format!("{} messages, without it {typical}", trial.messages))
    }

    fn put_back(&mut self) {
        let undone = self.journal.as_mut().map_or(Ok(()), Journal::undo);
        self.not_restored = undone.err().map(|error| error.to_string());
    }

    fn void(&mut self, void: Void) {
        let kind = std::mem::discriminant(&void);
        match self.voids.iter_mut().find(|(known, _)| std::mem::discriminant(known) == kind) {
            Some((_, count)) => *count += 1,
            None => self.voids.push((void, 1)),
        }
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) && self.notes.len() < 10 {
            self.notes.push(note);
        }
    }

    /// Puts everything back.
    pub fn end(mut self) -> End {
        self.put_back();
        self.live.finish();
        let is_restored = self.is_restored();
        let mut notes: Vec<String> =
            self.not_restored.take().into_iter().chain(std::mem::take(&mut self.notes)).collect();
        notes.extend(self.voids.iter().map(|(void, count)| match count {
            1 => format!("1 of {} trials does not count: {void}", self.ran),
            _ => format!("{count} of {} trials do not count; of the first, {void}", self.ran),
        }));
        notes.extend(self.live.notes());
        End {
            figure: self.tail.word().to_owned(),
            trial_s: self.duration.map(|duration| duration.as_secs_f64()),
            notes,
            is_restored,
            signal: self.signal,
        }
    }
}

fn with_problem(problem: Problem) -> Measured {
    Measured { problem: Some(problem), ..Measured::default() }
}

/// With the messages that a trial needs for it by the first recording: more where many are late together. `None` where that does not carry it.
fn carrying((tail, least): (Statistic, f64), first: &Pace) -> Option<(Statistic, f64)> {
    let messages = std::iter::successors(Some(least), |messages| Some(messages * LONGER));
    let mut messages = messages.take_while(|messages| *messages <= first.latencies_ns.len() as f64);
    let needed = messages.find(|messages| of_distribution(tail, &first.of_messages(*messages)).is_some())?;
    Some((tail, needed))
}

/// Of a loop's activations, the share that was not done at the next release.
fn overruns(analysis: &Analysis, chain: &str) -> Option<f64> {
    let is_its = |one: &&Loop| one.name == chain || one.chain.as_deref() == Some(chain);
    analysis.loops.iter().find(is_its).and_then(overruns_of)
}

/// Of the messages that a trial judges, those of the start-up left out.
fn latencies(analysis: &Analysis, chain: &str) -> Vec<u64> {
    let sides = analysis.chains.iter().find(|one| one.name == chain).and_then(|one| one.explained.sides.as_ref());
    sides.map_or_else(Vec::new, taut_analysis::Sides::totals_ns)
}

/// A trial's figure of the tail: its nearest rank, with enough messages beyond it.
///
/// A recording's p99 needs ten separate bursts beyond it. A trial's is one observation of many, and what a remedy leaves of a tail may be two
/// stalls: without a figure the best remedy would be the one that is never judged.
fn tail_of(tail: Statistic, latencies_ns: &[u64]) -> Option<f64> {
    let beyond = tail.beyond()?;
    let mut sorted = latencies_ns.to_vec();
    sorted.sort_unstable();
    let ns = rank(&sorted, 1.0 - beyond)?;
    (sorted.len() as f64 * beyond >= BEYOND_MIN).then_some(ns as f64)
}

fn of_distribution(tail: Statistic, of: &Distribution) -> Option<f64> {
    let ns = match tail {
        Statistic::P99 => of.p99_ns,
        Statistic::P95 => of.p95_ns,
        Statistic::P90 => of.p90_ns,
        _ => of.p50_ns,
    };
    ns.map(|ns| ns as f64)
}

fn overruns_of(one: &Loop) -> Option<f64> {
    Some(one.overruns? as f64 / one.activations.max(1) as f64)
}

/// Chains and loops that must not get slower.
fn protected(first: &Pace, args: &Args) -> Result<Vec<Other>> {
    let others = first.others.clone();
    if args.protect.is_empty() {
        return Ok(others);
    }
    let of = |word: &String| match others.iter().find(|other| other.word() == *word || other.name() == word) {
        Some(other) => Ok(other.clone()),
        None if others.is_empty() => bail!("--protect {word}: there is no such chain or loop; there is no other one"),
        None => {
            let known: Vec<String> = others.iter().map(Other::word).collect();
            bail!("--protect {word}: there is no such chain or loop; there are {}", known.join(", "))
        }
    };
    args.protect.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_whose_tail_is_two_stalls_has_a_figure() {
        let mut latencies = vec![100; 1_500];
        latencies[200..220].fill(9_000);
        latencies[900..910].fill(8_000);
        assert_eq!(tail_of(Statistic::P99, &latencies), Some(9_000.0));
        assert_eq!(tail_of(Statistic::P95, &latencies), Some(100.0));
        let mut sorted = latencies.clone();
        sorted.sort_unstable();
        assert_eq!(
            of_distribution(Statistic::P99, &Distribution::of(&latencies, &sorted)),
            None,
            "a recording has none"
        );
    }

    #[test]
    fn a_trial_that_was_cut_short_has_no_tail() {
        assert_eq!(tail_of(Statistic::P99, &[100; 900]), None);
        assert_eq!(tail_of(Statistic::P95, &[]), None);
    }
}
