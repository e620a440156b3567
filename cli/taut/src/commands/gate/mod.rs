//! `taut gate`: has a change made it worse? A verdict that does not fail on noise.

mod history;
pub mod interrupt;
pub mod length;
pub mod live;
mod revisions;
pub mod stored;
pub mod written;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, bail};
use clap::ValueEnum;
use taut_gate::{Gated, Limit, Most, Phase, Settings, Trial, Vote, config::Gating, gate, judge_limits, noise};
use taut_recording::Shown;
use taut_report::{GateShown, LimitsShown, Terms};
use taut_stats::compare::{InvalidReason, Verdict, fewest_pairs};

use crate::{config, exit::Done, ros_filter::RosFilter, time};
use interrupt::Interrupt;
use live::{Live, Program, Runs};
use stored::Reader;
use written::Outputs;

/// Looks of a gate against limits, in trials.
const LIMIT_LOOKS: [usize; 4] = [10, 16, 28, 48];
/// Trials that a revision adds to the history when nothing is compared.
const HISTORY_TRIALS: usize = 10;
/// Between two sessions, a change of a time below this is what sessions differ by anyway.
const BETWEEN_SESSIONS: f64 = 0.1;

/// Decide whether a change made the program worse, separate from the machine's part.
///
/// Compares two commands or git revisions in turns, stored trials, or trials with the limits of taut.toml. Stops when
/// sure; a change for the worse is confirmed on fresh pairs.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut gate --a './loop-old' --b './loop-new' --duration 2 --max-time 180\n  taut gate --revisions main..HEAD --build 'cargo build --release' --run target/release/loop --duration 2\n  taut gate --baseline trials/baseline.jsonl --candidate today/*.mcap\n  taut gate --limits --b ./loop --duration 2\n\nExit codes: 0 not worse, or not enough evidence; 1 worse, or only runs of the candidate failed; 2 bad usage or input; 4 invalid, an open limit, or not enough evidence with --inconclusive fail."
)]
pub struct Args {
    /// Baseline command, run in turns with --b.
    #[arg(long, value_name = "COMMAND", requires = "b")]
    a: Option<String>,
    /// Candidate command.
    #[arg(long, value_name = "COMMAND", conflicts_with = "candidate")]
    b: Option<String>,
    /// Compare two git revisions, checked out, built with --build, run with --run.
    #[arg(long, value_name = "OLD..NEW", requires = "run", conflicts_with_all = ["a", "b", "baseline", "candidate"])]
    revisions: Option<String>,
    /// Build command, in the revision's folder.
    #[arg(long, value_name = "COMMAND", requires = "revisions", default_value = "true", hide_default_value = true)]
    build: String,
    /// Run command, in the revision's folder.
    #[arg(long, value_name = "COMMAND", requires = "revisions")]
    run: Option<String>,
    /// Keep and reuse built revisions in this folder [default: removed at the end].
    #[arg(long, value_name = "FOLDER", value_parser = crate::folder::named(), requires = "revisions")]
    cache: Option<PathBuf>,
    /// Stored baseline: recordings, folders of them, or trials of --save.
    #[arg(long, value_name = "RUN|SET", num_args = 1.., conflicts_with = "a")]
    baseline: Vec<PathBuf>,
    /// Stored candidate, likewise.
    #[arg(long, value_name = "RUN|SET", num_args = 1..)]
    candidate: Vec<PathBuf>,
    /// Check --b or --candidate against the limits of taut.toml.
    #[arg(long, conflicts_with_all = ["a", "baseline", "revisions"])]
    limits: bool,

    /// Stop each run this long after its first stamp [default: two programs in turns: as short as the
    /// figures allow; else runs end by themselves].
    #[arg(long, value_name = "TIME", value_parser = time::length)]
    duration: Option<Duration>,
    /// End with a result within this time.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time::length)]
    max_time: Duration,
    /// Run at most this many pairs [default: 40, and fresh ones to confirm].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1000), conflicts_with = "limits")]
    pairs: Option<u16>,
    /// First run this many pairs of the baseline with itself.
    #[arg(long, value_name = "PAIRS", default_value_t = 0, conflicts_with_all = ["baseline", "limits"])]
    control: usize,
    /// Seed of the order, and of TAUT_GATE_SEED of each pair [default: random].
    #[arg(long)]
    seed: Option<u64>,
    /// Do not measure wakeup latency beside the program.
    #[arg(long)]
    no_wakeup: bool,
    /// Kernel events to record; each value includes those before it.
    #[arg(long, default_value = "irq", value_parser = ["sched", "syscalls", "irq", "all"])]
    depth: String,
    /// Keep the recordings in this folder.
    #[arg(long, value_name = "FOLDER", value_parser = crate::folder::named())]
    keep: Option<PathBuf>,
    /// Save the trials in this folder, for --baseline.
    #[arg(long, value_name = "FOLDER", value_parser = crate::folder::named(), conflicts_with = "limits")]
    save: Option<PathBuf>,

    /// Add the candidate's figures to this folder (Parquet), and report which revision changed them; alone: only
    /// report.
    #[arg(long, value_name = "FOLDER", value_parser = crate::folder::named(), conflicts_with = "limits")]
    history: Option<PathBuf>,
    /// Name of the candidate in the history [default: by git describe].
    #[arg(long, value_name = "NAME", requires = "history")]
    revision: Option<String>,

    /// Only this chain [default: the one with the most messages].
    #[arg(long, value_name = "NAME")]
    chain: Option<String>,
    #[command(flatten)]
    ros: RosFilter,
    /// Decide by this figure instead: hops.work.p50, chain.total.p99, missed, dropped, …; repeatable.
    #[arg(long, value_name = "METRIC")]
    metric: Vec<Vote>,
    /// Ignore smaller changes [default: 3; 10 between stored sets].
    #[arg(long, value_name = "PERCENT")]
    minimum_effect: Option<f64>,
    /// Chains, limits and metrics [default: ./taut.toml].
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
    /// Exit code without enough evidence: 0 (pass) or 4 (fail).
    #[arg(long, value_enum, default_value_t = Inconclusive::Pass)]
    inconclusive: Inconclusive,
    /// No progress.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    outputs: Outputs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Inconclusive {
    Pass,
    Fail,
}

/// Runs the gate that was asked for.
pub fn run(args: &Args) -> Result<Done> {
    let mut gating = config::load_gate(args.config.as_deref())?;
    if !args.metric.is_empty() {
        gating.settings.votes.clone_from(&args.metric);
    }
    if let Some(percent) = args.minimum_effect {
        if !(0.0..1e4).contains(&percent) {
            bail!("--minimum-effect {percent}: give per cent from 0 up");
        }
        gating.settings.minimum_effect.relative = percent / 100.0;
        let equivalence = &mut gating.settings.equivalence.relative;
        *equivalence = equivalence.max(2.0 * percent / 100.0);
        gating.has_minimum_effect = true;
    }
    if let Some(pairs) = args.pairs {
        gating.settings = gating.settings.within(usize::from(pairs));
    }
    let reader = Reader::new(&gating.analysis, args.chain.clone(), &args.ros);
    let compares = args.limits || args.revisions.is_some() || args.a.is_some() || !args.baseline.is_empty();
    if let (Some(folder), false) = (&args.history, compares) {
        return history_alone(args, &gating, reader, folder);
    }
    if args.limits {
        return against_limits(args, &gating, reader);
    }
    if let Some(range) = &args.revisions {
        let interrupt = Interrupt::listen()?;
        let trees = revisions::build(range, &args.build, args.cache.as_deref(), args.quiet, &interrupt)?;
        let run = args.run.clone().unwrap_or_default();
        let program =
            |side, tree: &(PathBuf, String)| Program { side, command: run.clone(), folder: Some(tree.0.clone()) };
        let (a, b) = (program("A", &trees.a), program("B", &trees.b));
        let name = |tree: &(PathBuf, String)| format!("{} ({run})", &tree.1[..12.min(tree.1.len())]);
        let live = Live::new(&args.runs(), reader, &interrupt)?;
        return in_turns(args, &gating.settings, live, (&a, &b), (&name(&trees.a), &name(&trees.b)));
    }
    let program = |side, command: &String| Program { side, command: command.clone(), folder: None };
    match (&args.a, &args.b) {
        (Some(a), Some(b)) => {
            let live = args.live(reader)?;
            in_turns(args, &gating.settings, live, (&program("A", a), &program("B", b)), (a, b))
        }
        (None, Some(b)) if !args.baseline.is_empty() => against_stored(args, &gating, reader, &program("B", b)),
        _ if !args.baseline.is_empty() && !args.candidate.is_empty() => stored_sets(args, &gating, &reader),
        _ => bail!(
            "nothing to compare: give --a and --b, or --revisions and --run, or --baseline with --candidate or --b, or \
             --limits with --b or --candidate"
        ),
    }
}

/// Two programs, interleaved.
fn in_turns(
    args: &Args,
    settings: &Settings,
    mut live: Live,
    (a, b): (&Program, &Program),
    names: (&str, &str),
) -> Result<Done> {
    let is_chosen = args.duration.is_none();
    live.choose_length(a, settings)?;
    let control = live.control(a, args.control)?;
    let mut left = args.pairs.map_or(usize::MAX, usize::from);
    let gated = gate(settings, &mut |asked| {
        let pair = if left > 0 { live.pair(a, b, asked)? } else { None };
        left -= usize::from(pair.is_some());
        if let (Some((a, _)), true) = (&pair, !is_chosen && asked.phase == Phase::Accuse && asked.pairs == 0) {
            live.say_what_fits(settings, a.messages);
        }
        anyhow::Ok(pair)
    })?;
    live.finish();
    let most = args.pairs.map_or(live.most(), |pairs| live.most().min(Most::of(pairs.into())));
    let (elapsed_s, seed) = (Some(live.elapsed().as_secs_f64()), Some(live.seed()));
    let ran = Ran { control, most, notes: live.notes(), elapsed_s, seed };
    finish(args, settings, gated, names, &ran)
}

/// A program that runs now against trials that are there.
fn against_stored(args: &Args, gating: &Gating, reader: Reader, b: &Program) -> Result<Done> {
    let a = reader.set(&args.baseline)?;
    let settings = between_sessions(gating).within(a.len());
    let mut live = args.live(reader)?;
    live.as_long_as(&a);
    let mut stored = a.iter();
    let mut candidates = Vec::new();
    let mut gated = gate::<anyhow::Error>(&settings, &mut |asked| {
        let Some(a) = stored.next() else { return Ok(None) };
        let Some(b) = live.one(b, asked)? else { return Ok(None) };
        candidates.push(b.clone());
        Ok(Some((a.clone(), b)))
    })?;
    live.finish();
    gated.count_failures(&a, &candidates)?;
    let fit = stored::fit(&a, &candidates);
    let mut notes = fit.notes;
    notes.extend(live.notes());
    notes.extend(few_pairs(&settings, a.len()));
    let most = live.most().min(Most::of(a.len()));
    let elapsed_s = Some(live.elapsed().as_secs_f64());
    let ran = Ran { control: Vec::new(), most, notes, elapsed_s, seed: None };
    let gated = if fit.same_machine { gated } else { other_machine(gated) };
    finish(args, &settings, gated, (&names(&args.baseline), &b.command), &ran)
}

/// Trials that are there against trials that are there.
fn stored_sets(args: &Args, gating: &Gating, reader: &Reader) -> Result<Done> {
    let (a, b) = (reader.set(&args.baseline)?, reader.set(&args.candidate)?);
    let (gated, settings, notes) = compare(gating, &a, &b)?;
    let ran = Ran { control: Vec::new(), most: Most::of(a.len().min(b.len())), notes, elapsed_s: None, seed: None };
    finish(args, &settings, gated, (&names(&args.baseline), &names(&args.candidate)), &ran)
}

/// Judges two stored sets; returns the settings that were used, and what a reader must know.
pub fn compare(gating: &Gating, a: &[Trial], b: &[Trial]) -> Result<(Gated, Settings, Vec<String>)> {
    let mut fit = stored::fit(a, b);
    let settings = if fit.interleaved { gating.settings.clone() } else { between_sessions(gating) };
    let pairs = a.len().min(b.len());
    let settings = settings.within(pairs);
    let mut stored = a.iter().cloned().zip(b.iter().cloned());
    let mut gated = gate::<anyhow::Error>(&settings, &mut |_| Ok(stored.next()))?;
    gated.count_failures(a, b)?;
    if a.len() != b.len() {
        fit.notes.push(format!("A has {} trials, B {}: {pairs} pairs are made of the first", a.len(), b.len()));
    }
    fit.notes.extend(few_pairs(&settings, pairs));
    let gated = if fit.same_machine { gated } else { other_machine(gated) };
    Ok((gated, settings, fit.notes))
}

/// What a reader must know of a comparison of so few pairs.
fn few_pairs(settings: &Settings, pairs: usize) -> Option<String> {
    let [accuse, confirm] = [settings.plan.accuse_alpha, settings.plan.confirm_alpha].map(fewest_pairs);
    let is_enough = |pairs: usize| {
        let most = Most::of(pairs);
        most.accuse >= accuse && most.confirm >= confirm
    };
    let what = if pairs == 1 { "pair" } else { "pairs" };
    (!is_enough(pairs)).then(|| {
        let fewest = (accuse + confirm..).find(|pairs| is_enough(*pairs)).expect("both parts grow");
        format!(
            "{pairs} {what}: a verdict needs {fewest} trials of each side at least, to find a change and to confirm it; one recording only \
             describes"
        )
    })
}

/// Between two sessions a machine is not the same as within one.
fn between_sessions(gating: &Gating) -> Settings {
    let mut settings = gating.settings.clone();
    if !gating.has_minimum_effect {
        settings.minimum_effect.relative = BETWEEN_SESSIONS;
        settings.equivalence.relative = 2.0 * BETWEEN_SESSIONS;
    }
    settings
}

fn other_machine(mut gated: Gated) -> Gated {
    gated.outcome.verdict = Verdict::Invalid { reason: InvalidReason::OtherMachine };
    gated.outcome.blamed = None;
    gated
}

/// No comparison: only the history, with the candidate added if there is one.
fn history_alone(args: &Args, gating: &Gating, reader: Reader, folder: &Path) -> Result<Done> {
    let trials = match &args.b {
        Some(command) => {
            let program = Program { side: "B", command: command.clone(), folder: None };
            let mut live = args.live(reader)?;
            let runs = std::iter::from_fn(|| live.single(&program, HISTORY_TRIALS, true).transpose());
            let trials = runs.take(HISTORY_TRIALS).collect::<Result<Vec<Vec<Trial>>>>()?.concat();
            live.finish();
            trials
        }
        None => reader.set(&args.candidate)?,
    };
    if !trials.is_empty() {
        history::add(folder, args.revision.as_deref(), &trials)?;
    }
    let lines = history::Lines::of(folder, &gating.settings.votes)?;
    args.outputs.history(&lines.shown())?;
    Ok(Done::Fine)
}

fn against_limits(args: &Args, gating: &Gating, reader: Reader) -> Result<Done> {
    let is_wanted = |limit: &&Limit| args.chain.as_ref().is_none_or(|chain| limit.chain == *chain);
    let limits: Vec<Limit> = gating.limits.iter().filter(is_wanted).cloned().collect();
    if limits.is_empty() {
        let of = args.chain.as_ref().map_or(String::new(), |chain| format!(" for the chain {chain:?}"));
        bail!(
            "--limits: taut.toml has none{of}; give a [[chain]] missed_max_percent, dropped_max_percent or [[chain.limit]]"
        );
    }
    let reader = reader.of_limits(&limits);
    let (outcome, subject) = match (&args.b, args.candidate.is_empty()) {
        (Some(command), _) => (run_for_limits(args, reader, command, &limits)?, command.clone()),
        (None, false) => {
            let trials = reader.set(&args.candidate)?;
            (judge_limits(&limits, &trials, 1)?, names(&args.candidate))
        }
        (None, true) => bail!("--limits: give --b COMMAND or --candidate RUN to hold against them"),
    };
    let shown = LimitsShown { subject: &subject, outcome: &outcome, terms: args.terms(&[]) };
    args.outputs.judge_limits(&shown)?;
    Ok(match outcome.verdict {
        taut_gate::LimitResult::Broken => Done::Against,
        // Whoever sets a limit wants it held: that nobody can say is not that it is.
        taut_gate::LimitResult::Open | taut_gate::LimitResult::Silent => Done::NotEnough,
        _ => Done::Fine,
    })
}

fn run_for_limits(args: &Args, reader: Reader, command: &str, limits: &[Limit]) -> Result<taut_gate::LimitsOutcome> {
    let program = Program { side: "B", command: command.to_owned(), folder: None };
    let mut live = args.live(reader)?;
    let mut trials: Vec<Trial> = Vec::new();
    let most = LIMIT_LOOKS[LIMIT_LOOKS.len() - 1];
    let mut runs = 0;
    for look in LIMIT_LOOKS {
        let mut is_out = false;
        while runs < look && !is_out {
            // One that always fails breaks its limits.
            match live.single(&program, most, false)? {
                Some(of_run) => trials.extend(of_run),
                None => is_out = true,
            }
            runs += 1;
        }
        let outcome = judge_limits(limits, &trials, LIMIT_LOOKS.len())?;
        let is_settled = !matches!(outcome.verdict, taut_gate::LimitResult::Open);
        if is_settled || is_out || look == most {
            live.finish();
            return Ok(outcome);
        }
    }
    unreachable!("the last look returns")
}

/// What there is to a gate besides its pairs.
struct Ran {
    /// Pairs of the baseline with itself.
    control: Vec<(Trial, Trial)>,
    /// What it could have come to.
    most: Most,
    notes: Vec<String>,
    /// None for stored trials.
    elapsed_s: Option<f64>,
    /// Of the order within pairs; none for stored trials.
    seed: Option<u64>,
}

/// Prints, saves, and turns the verdict into an exit code.
fn finish(args: &Args, settings: &Settings, gated: Gated, (a, b): (&str, &str), ran: &Ran) -> Result<Done> {
    let floor = noise(settings, &gated, &ran.control, ran.most);
    let mut gated = gated;
    if let Some(reason) = floor.iter().find_map(|noise| noise.unfit).filter(|_| !gated.outcome.failures.is_worse) {
        gated.outcome.verdict = Verdict::Invalid { reason };
        gated.outcome.blamed = None;
    }
    let shown = GateShown {
        kind: "gate",
        a,
        b,
        outcome: &gated.outcome,
        noise: &floor,
        elapsed_s: ran.elapsed_s,
        seed: ran.seed,
        terms: args.terms(&ran.notes),
    };
    args.outputs.gate(&shown)?;
    if let Some(folder) = &args.save {
        stored::save(folder, gated.pairs.iter().chain(&gated.fresh))?;
    }
    if let Some(folder) = &args.history {
        let trials: Vec<Trial> = gated.pairs.iter().chain(&gated.fresh).map(|(_, b)| b.clone()).collect();
        history::add(folder, args.revision.as_deref(), &trials)?;
        let lines = history::Lines::of(folder, &settings.votes)?;
        let document = taut_report::history_document(&lines.shown());
        say!("{}", taut_document::terminal(&document, taut_document::Style::default()).trim_end());
    }
    Ok(match gated.outcome.verdict {
        Verdict::Worse => Done::Against,
        Verdict::NotEnoughEvidence { .. } => args.when_open(),
        Verdict::Invalid { .. } => Done::NotEnough,
        Verdict::Better | Verdict::NoRelevantDifference => Done::Fine,
    })
}

fn names(paths: &[PathBuf]) -> String {
    match paths {
        [first, _, .., last] => format!("{} … {} ({})", first.shown(), last.shown(), paths.len()),
        _ => paths.iter().map(|path| path.shown()).collect::<Vec<_>>().join(", "),
    }
}

impl Args {
    fn runs(&self) -> Runs {
        Runs {
            duration: self.duration,
            max_time: self.max_time,
            seed: self.seed.unwrap_or_else(random_seed),
            wakeup: !self.no_wakeup,
            depth: self.depth.clone(),
            keep: self.keep.clone(),
            quiet: self.quiet,
        }
    }

    /// Ready to run trials.
    fn live(&self, reader: Reader) -> Result<Live> {
        Live::new(&self.runs(), reader, &Interrupt::listen()?)
    }

    fn terms<'a>(&self, notes: &'a [String]) -> Terms<'a> {
        Terms { notes, inconclusive_fails: self.inconclusive == Inconclusive::Fail }
    }

    fn when_open(&self) -> Done {
        if self.inconclusive == Inconclusive::Fail { Done::NotEnough } else { Done::Fine }
    }
}

/// Short enough to be typed again.
/// For runs that name none.
pub fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() & 0xffff_ffff
}
