//! `taut bus budget`: what a control cycle over servo buses costs, and what a rate allows.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use taut_analysis::{Analysis, Config, DeclaredChain, Delay};
use taut_bus::budget::{
    self, Comparison, CycleBudget, Forecast, MeasuredPhase, PRESETS, Sampling, Solve, compare, forecast, polled,
    sensitivity, solve,
};
use taut_recording::{Kind, Record, Shown};
use taut_report::Budgeted;

use crate::{
    analyse::analyse,
    exit::Done,
    format::{self, Format},
    input, output,
};

/// Calculate the cost of a servo bus cycle, and what a rate allows.
///
/// A budget is a TOML file (docs/reference/bus-budget.md) or a preset of a published system.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut bus budget --list-presets\n  taut bus budget --preset pi3hat --set servos.count=16\n  taut bus budget --preset rs485-3500us --target-hz 300 --solve servos\n  taut bus budget --preset pi3hat --format toml -o mine.toml"
)]
pub struct Args {
    /// A budget as TOML.
    #[arg(value_name = "FILE", required_unless_present_any = ["preset", "list_presets"], conflicts_with = "preset")]
    file: Option<PathBuf>,
    /// A published system.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// List the presets with published and modelled figures.
    #[arg(long, conflicts_with_all = ["preset", "file"])]
    list_presets: bool,
    /// Change a figure, e.g. servos.count=6, "term.servo turn-around.us=75"; repeatable.
    #[arg(long, value_name = "KEY=VALUE", value_parser = change)]
    set: Vec<(String, String)>,
    /// Target rate; prints what it allows.
    #[arg(long, value_name = "HZ")]
    target_hz: Option<f64>,
    /// What to solve for at the target rate [default: all].
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    solve: Vec<Asked>,
    /// Cycles to draw.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    samples: u32,
    /// Seed of the drawn cycles.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Compare with a recording stamped at bus.PHASE.
    #[arg(long, value_name = "RUN")]
    against: Option<PathBuf>,
    /// Form of the result.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Json, Format::Html, Format::Toml]))]
    format: Format,
    /// Output file [default: stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Asked {
    /// Most servos.
    Servos,
    /// Most payload bytes.
    Payload,
    /// Fewest bits a second.
    Bitrate,
}

/// The value that says how many servos a cycle asks.
const SERVOS: &str = "bus.servos";
/// The point that ends a cycle; the prefix of all its points.
const DONE: &str = "bus.done";
const PREFIX: &str = "bus.";

/// Reads, works out, prints.
pub fn run(args: &Args) -> Result<Done> {
    let (name, text) = match (&args.preset, &args.file) {
        _ if args.list_presets => return list(args),
        (Some(name), _) => (name.clone(), budget::preset(name)?.toml.to_owned()),
        (None, Some(path)) => {
            let name = path.shown();
            (name.clone(), std::fs::read_to_string(path).with_context(|| name)?)
        }
        // Clap has asked for one of the two.
        (None, None) => bail!("name a budget FILE, or --preset NAME"),
    };
    args.format.check_place(args.output.as_deref(), "-o budget.html")?;
    if args.format == Format::Toml {
        CycleBudget::parse(&text, &[]).with_context(|| name)?;
        return written(&text, args);
    }
    let mut budget = CycleBudget::parse(&text, &args.set).with_context(|| name.clone())?;
    budget.target_hz = args.target_hz.or(budget.target_hz);
    let sampling = Sampling { cycles: args.samples, seed: args.seed };
    let solved = match (budget.target_hz, args.target_hz.is_some() || !args.solve.is_empty()) {
        (Some(hz), true) => Some(solve(&budget, hz, &questions(args), sampling).with_context(|| name.clone())?),
        (None, true) => bail!("{name}: --solve needs a rate: add --target-hz HZ, or target_hz to the budget"),
        (_, false) => None,
    };
    let forecast = forecast(&budget, sampling);
    let (comparison, done) = match &args.against {
        Some(path) => {
            let (comparison, done) = against(&budget, &forecast, path).with_context(|| path.shown())?;
            (Some((path.shown(), comparison)), done)
        }
        None => (None, Done::Fine),
    };
    let typed: Vec<String> = std::iter::once("taut".to_owned()).chain(std::env::args().skip(1)).collect();
    let command = taut_report::words::shell(&typed);
    let polled = polled(&budget, sampling);
    let shown = Budgeted {
        name: &name,
        command: &command,
        budget: &budget,
        forecast: &forecast,
        polled: polled.as_ref(),
        gradients: &sensitivity(&budget),
        solved: solved.as_ref(),
        against: comparison.as_ref().map(|(run, comparison)| (run.as_str(), comparison)),
    };
    let text = match args.format {
        Format::Json => format!("{:#}\n", taut_report::budget_json(&shown)),
        form => output::interactive(&taut_report::budget_document(&shown), form, args.output.as_deref()),
    };
    written(&text, args)?;
    Ok(done)
}

fn written(text: &str, args: &Args) -> Result<Done> {
    output::write(text, args.output.as_deref())?;
    if let Some(path) = &args.output {
        say!("wrote {}", path.shown());
    }
    Ok(Done::Fine)
}

fn questions(args: &Args) -> Vec<Solve> {
    let of = |asked: &Asked| match asked {
        Asked::Servos => Solve::Servos,
        Asked::Payload => Solve::Payload,
        Asked::Bitrate => Solve::Bitrate,
    };
    match args.solve.as_slice() {
        [] => vec![Solve::Servos, Solve::Payload, Solve::Bitrate],
        some => some.iter().map(of).collect(),
    }
}

/// One line a preset: name, the model's cycle, what the source says.
fn list(args: &Args) -> Result<Done> {
    let sampling = Sampling { cycles: 1, seed: args.seed };
    let mut text = String::new();
    for preset in &PRESETS {
        let budget = preset.budget(&[])?;
        let cycle_us = forecast(&budget, sampling).cycle_us;
        let by_events = polled(&budget, sampling).and_then(|polled| polled.cycles.p50_ns);
        let by_events = by_events.map_or(String::new(), |ns| format!(", event by event {:.1} µs", ns as f64 / 1e3));
        let says = budget.published.as_ref().map_or_else(String::new, |published| format!("\"{}\"", published.wording));
        text += &format!(
            "{:<20}  model {cycle_us:>7.1} µs{by_events}  source {says}\n{:<20}  {}\n",
            preset.name, "", budget.title
        );
    }
    written(&text, args)
}

fn change(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, e.g. servos.count=6")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// The recording's phases against the model, and whether the recording is whole.
fn against(budget: &CycleBudget, forecast: &Forecast, path: &Path) -> Result<(Comparison, Done)> {
    let recorded = servos(path)?;
    let of = budget.servos.count;
    if let Some(n) = recorded.filter(|n| *n != of) {
        bail!("asks {n} servos a cycle, and the budget {of}: add --set servos.count={n}");
    }
    // First which points there are and in which order, then the time between neighbours.
    let seen = analyse(path, &quiet(Vec::new()))?;
    let phases = cycle_points(&seen);
    let known = |point: &String| seen.chains.iter().flat_map(points_of).any(|seen| seen == point);
    let own: Vec<(usize, Vec<String>)> = budget
        .terms
        .iter()
        .enumerate()
        .filter_map(|(at, term)| Some((at, term.points.as_ref().filter(|points| points.iter().all(known))?.to_vec())))
        .collect();
    let mut chains: Vec<DeclaredChain> = own.iter().map(|(at, points)| chain(format!("term {at}"), points)).collect();
    if phases.len() > 1 {
        chains.push(chain("cycle".into(), &phases));
    }
    let analysis = analyse(path, &quiet(chains))?;
    let named = |name: &str| analysis.chains.iter().find(|chain| chain.declared && chain.name == name);
    let measured = named("cycle").map_or_else(Vec::new, |chain| {
        chain.hops.iter().map(|hop| phase(hop.from.trim_start_matches(PREFIX), &hop.delay)).collect()
    });
    let terms: Vec<(usize, MeasuredPhase)> = own
        .iter()
        .filter_map(|(at, _)| Some((*at, phase(&budget.terms[*at].name, &named(&format!("term {at}"))?.end_to_end))))
        .collect();
    let comparison = compare(budget, forecast, &measured, &terms)?;
    // Only beside figures: an error stays one line.
    if recorded.is_none() {
        say!("note: {} does not say how many servos a cycle asks; the budget has {of}", path.shown());
    }
    Ok((comparison, if analysis.has_loss() { Done::DataLost } else { Done::Fine }))
}

/// How many servos the recording's cycles ask, where it has it, as those of `taut bus --rate` do.
fn servos(path: &Path) -> Result<Option<u32>> {
    let bytes = input::map(path)?;
    let (mut names, mut values) = (HashMap::new(), HashMap::new());
    taut_recording::read(&bytes, &mut |record| match record {
        Record::Name(name) => drop(names.insert(name.id, name.name)),
        Record::Stamps(batch) => {
            let rows = batch.kind.iter().zip(&batch.point).zip(&batch.value);
            let of_kind = rows.filter(|((kind, _), _)| **kind == Kind::Value as u8);
            values.extend(of_kind.map(|((_, point), value)| (*point, f64::from_bits(*value))));
        }
        _ => {}
    })?;
    let said = values.into_iter().find(|(point, _)| names.get(point).is_some_and(|name| name == SERVOS));
    Ok(said.map(|(_, n)| n as u32))
}

/// The points of a bus cycle in the recording, in their order.
fn cycle_points(analysis: &Analysis) -> Vec<String> {
    let is_phase = |point: &&String| point.starts_with(PREFIX);
    let longest = analysis.chains.iter().max_by_key(|chain| points_of(chain).filter(is_phase).count());
    let mut points: Vec<String> =
        longest.into_iter().flat_map(|chain| chain.points.iter().map(|p| &p.name)).filter(is_phase).cloned().collect();
    // What comes after the end belongs to the next cycle.
    if let Some(end) = points.iter().position(|point| point == DONE) {
        points.truncate(end + 1);
    }
    points
}

fn points_of(chain: &taut_analysis::Chain) -> impl Iterator<Item = &String> {
    chain.points.iter().map(|point| &point.name).chain(chain.branches.iter().map(|branch| &branch.point))
}

fn quiet(chains: Vec<DeclaredChain>) -> Config {
    let mut config = Config { chains, ..Config::default() };
    config.explain.worst = 0;
    config
}

fn chain(name: String, points: &[String]) -> DeclaredChain {
    DeclaredChain { name, points: points.to_vec(), deadline_ns: None }
}

fn phase(name: &str, delay: &Delay) -> MeasuredPhase {
    let d = &delay.distribution;
    let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
    MeasuredPhase {
        phase: name.to_owned(),
        n: d.n,
        mean_us: d.mean_ns.unwrap_or(0.0) / 1e3,
        p50_us: us(d.p50_ns),
        p99_us: us(d.p99_ns),
    }
}
