//! A lab as a document: of its trials, and of the load that breaks it.

use taut_document::{
    Axis, AxisScale, Band, Block, Cell, Chart, Column, Curve, Document, Finding, Mark, Quantity, Section, Show, Table,
    Text, Tone,
};
use taut_lab::{Bound, Broken, MetricFigures, Misfortune, Results, Status, Trial};
use taut_recording::Shown;

use super::{
    LabShown,
    words::{broken, criticality, difference, ends, failed, headline, number, proportion, shares},
};

const SCORE: &str = "The sum is of weight × median over the weights: its longest term rules it. The ratio is the weighted \
                     geometric mean of the metrics' ratios to the baseline. Neither makes up for what stands under \
                     \"but\".";
const INTERVALS: &str = "Intervals are 95 %, each by itself. A trial that failed counts as worse than every number. Against the baseline: \
                         Hodges and Lehmann's estimate over rounds, in which scenarios ran beside each other. Success: Clopper and \
                         Pearson's interval, McNemar's exact test.";
/// Reasons that are shown of each scenario; the manifest has them all.
const REASONS: usize = 4;

/// What `taut lab run` and `taut lab sweep` show; a page has a dot for each of the trials.
pub fn lab_document(shown: &LabShown<'_>, results: &Results, trials: &[Trial]) -> Document {
    let mut sections = vec![Section::new(1, "Trials", vec![Block::Table(how_they_ended(results))])];
    let tables = [("What the loads reached", loads(results)), ("CPUs that processes kept busy", processes(results))];
    sections.extend(tables.into_iter().filter(|(_, table)| !table.rows.is_empty()).map(only));
    let metrics = results.scenarios.first().map_or(0, |scenario| scenario.metrics.len());
    sections.extend((0..metrics).flat_map(|at| metric(results, trials, at)));
    let paths = paths(results);
    if !paths.rows.is_empty() {
        sections.push(only(("Paths and their deadlines", paths)));
    }
    let score = score(results);
    if !score.rows.is_empty() {
        sections.push(Section::new(1, "Weighted score", vec![Block::Table(score), Block::Text(SCORE.into())]));
    }
    let troubles = results.scenarios.iter().flat_map(|one| misfortunes(&one.name, &one.misfortunes));
    sections.extend(troubled(troubles.collect()));
    let notes = results.notes.iter().map(String::as_str).chain([INTERVALS]);
    Document {
        notes: notes.map(Text::from).collect(),
        ..head(shown, &results.confinement, headline(results), sections)
    }
}

/// What `taut lab break` shows.
pub fn lab_break_document(shown: &LabShown<'_>, found: &Broken) -> Document {
    let confinement = format!("{} · {}", found.confinement, found.placement);
    let unit = format!("{} (median)", found.unit);
    let mut table = Table::new([&found.asked.vary, &unit, "CPUs wanted", "success", "proven"]);
    for probe in &found.probes {
        let row = table.row([
            Cell::Number(probe.value),
            maybe(probe.achieved),
            maybe(probe.cpus_wanted),
            Cell::text(proportion(&probe.success)),
            Cell::text(probe.proven.unwrap_or("open")),
        ]);
        row.tone = match probe.proven {
            Some("fine") => Tone::Good,
            Some("broken") => Tone::Bad,
            _ => Tone::Plain,
        };
    }
    let charts = [Some(success(found)), reached(found)];
    let mut sections = vec![
        Section::new(1, "Success against load", charts.into_iter().flatten().map(Block::from).collect())
            .shown(Show::Page),
        only(("What was tried", table)),
    ];
    sections.extend(troubled(misfortunes("broken", &found.misfortunes)));
    head(shown, &confinement, broken(found), sections)
}

fn head(shown: &LabShown<'_>, confinement: &str, said: String, sections: Vec<Section>) -> Document {
    let file = shown.file.shown();
    Document {
        title: if shown.title.is_empty() { file.clone() } else { shown.title.to_owned() },
        measured: format!("{file} · seed {} · {confinement} · {}", shown.seed, shown.folder.shown()).into(),
        headline: said.into(),
        sections,
        notes: Vec::new(),
        reproduce: vec![format!("taut lab {} {} -o again", shown.verb, crate::words::shell(&[file]))],
    }
}

fn only((title, table): (&str, Table)) -> Section {
    Section::new(1, title, vec![Block::Table(table)])
}

fn maybe(value: Option<f64>) -> Cell {
    value.map_or(Cell::Missing, Cell::Number)
}

fn bound(value: Option<Bound>) -> Cell {
    match value {
        Some(Bound::Number(value)) => Cell::Number(value),
        Some(Bound::Failed) => Cell::text("failed"),
        Some(Bound::FailedLess) => Cell::text("failed less"),
        None => Cell::Missing,
    }
}

fn how_they_ended(results: &Results) -> Table {
    let head = ["scenario", "trials", "success", "only baseline / only here"];
    let mut table = Table::new(head);
    table.columns[1].wraps = true;
    for scenario in &results.scenarios {
        let against = scenario.success_difference.map_or("baseline".into(), |d| {
            format!("{} / {} of {}, p = {:.2}", d.only_baseline, d.only_here, d.pairs, d.p)
        });
        table.row([
            Cell::text(scenario.name.as_str()),
            Cell::text(ends(&scenario.trials)),
            Cell::text(proportion(&scenario.success)),
            Cell::text(against),
        ]);
    }
    table
}

fn loads(results: &Results) -> Table {
    const NAMES: [&str; 11] = [
        "scenario",
        "load",
        "target",
        "median",
        "least",
        "unit",
        "sent",
        "CPUs busy",
        "CPUs wanted",
        "most lost in a trial",
        "of topic",
    ];
    let mut table = Table::new(NAMES).priorities([0, 0, 0, 0, 3, 0, 4, 1, 2, 0, 0]);
    [1, 5, 10].into_iter().for_each(|at| table.columns[at].wraps = true);
    for scenario in &results.scenarios {
        for load in &scenario.loads {
            // The topic that lost the largest part of its messages.
            let lost = load.topics.iter().filter_map(|topic| Some((topic.most_lost?, topic.topic.as_str())));
            let worst = lost.max_by(|one, other| one.0.total_cmp(&other.0));
            let reader = if load.matched == Some(0) { ", to no reader" } else { "" };
            table.row([
                Cell::text(scenario.name.as_str()),
                Cell::text(load.load.as_str()),
                maybe(load.target),
                Cell::Number(load.median),
                Cell::Number(load.least),
                Cell::text(format!("{}{reader}", load.unit)),
                load.sent.map_or(Cell::Empty, Cell::Number),
                Cell::Number(load.cpus_busy),
                Cell::Number(load.cpus_wanted),
                worst.map_or(Cell::Empty, |(part, _)| Cell::Share(part)),
                worst.map_or(Cell::Empty, |(_, topic)| Cell::text(topic)),
            ]);
        }
    }
    // Only publishers of ROS 2 count by topic.
    if results.scenarios.iter().flat_map(|scenario| &scenario.loads).all(|load| load.topics.is_empty()) {
        let kept = NAMES.len() - 2;
        table.columns.truncate(kept);
        table.rows.iter_mut().for_each(|row| row.cells.truncate(kept));
    }
    table
}

fn processes(results: &Results) -> Table {
    let mut table = Table::new(["scenario", "process", "median", "most", "bound to CPU", "ran on"]);
    table.columns[5].wraps = true;
    for scenario in &results.scenarios {
        for process in &scenario.processes {
            table.row([
                Cell::text(scenario.name.as_str()),
                Cell::text(process.name.as_str()),
                Cell::Number(process.median),
                Cell::Number(process.most),
                process.cpus.as_deref().map_or(Cell::Missing, Cell::text),
                Cell::text(shares(&process.shares)),
            ]);
        }
    }
    table
}

/// A metric in every scenario, with a dot for each trial and for each round.
fn metric(results: &Results, trials: &[Trial], at: usize) -> Vec<Section> {
    let of = || results.scenarios.iter().filter_map(|scenario| Some((scenario, scenario.metrics.get(at)?)));
    let Some((_, first)) = of().next() else { return Vec::new() };
    let unit = if first.unit.is_empty() { String::new() } else { format!(", {}", first.unit) };
    let head = ["scenario", "n", "best", "median", "95 %", "p90", "worst", "missed", "against baseline"];
    let mut table = Table::new(head).priorities([0, 4, 3, 0, 1, 2, 1, 0, 0]);
    for (scenario, metric) in of() {
        let interval = metric.interval.map(|(low, high)| Cell::interval(bound(Some(low)), bound(Some(high))));
        table.row([
            Cell::text(scenario.name.as_str()),
            Cell::Count(metric.n as u64),
            bound(metric.best),
            bound(metric.median),
            interval.unwrap_or(Cell::Missing),
            bound(metric.tenth_worst),
            bound(metric.worst),
            metric.misses.map_or(Cell::Missing, |misses| Cell::text(format!("{} of {}", misses.k, misses.n))),
            metric.difference.as_ref().map_or(Cell::Missing, |d| Cell::text(difference(d, metric))),
        ]);
    }
    let mut blocks: Vec<Block> = Vec::new();
    blocks.extend((!first.about.is_empty()).then(|| Block::Text(first.about.as_str().into())));
    blocks.push(Block::Table(table));
    blocks.extend(of().filter_map(|(one, metric)| failed(&one.name, metric)).map(|text| Block::Text(text.into())));
    let shots = of().map(|(scenario, metric)| Strip {
        name: scenario.name.clone(),
        values: shots(trials, &scenario.name, metric),
        middle: metric.median,
        interval: metric.interval,
    });
    let trials = strips(
        "Each trial",
        "A dot is a trial; the median has its 95 % interval; failures stand at the right.",
        shots.collect(),
        None,
    );
    // Ratios and differences have an axis each.
    let rounds = [true, false].map(|ratio| {
        let strips_of = of().filter_map(|(scenario, metric)| {
            let of = metric.difference.as_ref().filter(|of| of.ratio == ratio)?;
            Some(Strip {
                name: scenario.name.clone(),
                values: of.each.clone(),
                middle: Some(of.estimate),
                interval: of.interval,
            })
        });
        strips(
            &format!("Against {}, round by round", results.baseline),
            "A dot is a round; Hodges and Lehmann's estimate has its 95 % interval.",
            strips_of.collect(),
            Some(ratio),
        )
    });
    let charts = [trials].into_iter().chain(rounds).flatten().map(Block::from).collect();
    vec![Section::new(1, format!("{}{unit}", first.name), blocks), Section::new(2, "", charts).shown(Show::Page)]
}

/// Every valid trial's number; a failed one has none that counts.
fn shots(trials: &[Trial], scenario: &str, metric: &MetricFigures) -> Vec<Bound> {
    let valid = trials.iter().filter(|t| t.id.scenario == scenario && t.status != Status::Invalid);
    let number = |t: &Trial| t.metrics.get(&metric.name).copied().filter(|_| t.status == Status::Success);
    valid.map(|t| number(t).map_or(Bound::Failed, Bound::Number)).collect()
}

/// Dots on one axis with others below and above it.
struct Strip {
    name: String,
    values: Vec<Bound>,
    middle: Option<Bound>,
    interval: Option<(Bound, Bound)>,
}

/// Strips below each other. Failures stand in a band at the right, those of the other side at the left. `against`: values are ratios
/// (true) or differences.
fn strips(title: &str, finding: &str, all: Vec<Strip>, against: Option<bool>) -> Option<Chart> {
    let same = against.map(|ratio| if ratio { 1.0 } else { 0.0 });
    let numbers = all.iter().flat_map(|strip| &strip.values).filter_map(|value| match value {
        Bound::Number(value) => Some(*value),
        Bound::Failed | Bound::FailedLess => None,
    });
    let numbers: Vec<f64> = numbers.collect();
    if numbers.is_empty() {
        return None;
    }
    let ends = numbers.iter().copied().chain(same);
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), of| (low.min(of), high.max(of)));
    // Logarithmic where the largest is ten times the smallest.
    let is_log = low > 0.0 && against.unwrap_or(high > 10.0 * low);
    let flat = |value: f64| if is_log { value.ln() } else { value };
    let back = |value: f64| if is_log { value.exp() } else { value };
    let room = if high > low { flat(high) - flat(low) } else { flat(high).abs().max(1.0) };
    let beyond = |share: f64| back(flat(high) + share * room);
    let below = |share: f64| back(flat(low) - share * room);
    let place = |of: Bound| match of {
        Bound::Number(value) => value,
        Bound::Failed => beyond(0.12),
        Bound::FailedLess => below(0.12),
    };
    let has =
        |of: Bound| all.iter().any(|s| s.values.contains(&of) || s.interval.is_some_and(|(a, b)| a == of || b == of));
    let (has_failed, has_less) = (has(Bound::Failed), has(Bound::FailedLess));
    let band = |from: f64, to: f64, label: &str| Band { from, to, label: label.to_owned(), vertical: false };
    let bands = [
        has_failed.then(|| band(beyond(0.07), beyond(0.17), "failed")),
        has_less.then(|| band(below(0.17), below(0.07), "failed less")),
    ];
    let range =
        (if has_less { below(0.17) } else { below(0.03) }, if has_failed { beyond(0.17) } else { beyond(0.03) });
    let mut curves = Vec::new();
    for (row, strip) in all.iter().enumerate() {
        // Beside each other where they are alike, as the golden ratio spreads them.
        let aside = |at: usize| row as f64 + ((at as f64 * 0.618_034).fract() - 0.5) / 2.0;
        let dots = strip.values.iter().enumerate().map(|(at, value)| (aside(at), place(*value)));
        curves.push(Curve { mark: Mark::Points, xy: dots.collect(), tone: Tone::Series(0), ..Curve::default() });
        if let Some(middle) = strip.middle {
            let ends = strip.interval.map_or((place(middle), place(middle)), |(a, b)| (place(a), place(b)));
            let xy = vec![(row as f64, place(middle))];
            curves.push(Curve { mark: Mark::Range(vec![ends]), xy, tone: Tone::Series(1), ..Curve::default() });
        }
    }
    let quantity = if against == Some(true) { Quantity::Ratio } else { Quantity::Plain };
    let scale = if is_log { AxisScale::Log } else { AxisScale::Linear };
    Some(Chart {
        title: title.to_owned(),
        finding: format!("{finding}{}", if is_log { " Logarithmic." } else { "" }).into(),
        x: Axis { names: all.iter().map(|strip| strip.name.clone()).collect(), ..Axis::default() },
        y: Axis { range: Some(range), ..Axis::new(quantity, scale) },
        curves,
        limits: same.map(|same| (same, "no difference".to_owned())).into_iter().collect(),
        bands: bands.into_iter().flatten().collect(),
        wide: true,
        ..Chart::default()
    })
}

fn paths(results: &Results) -> Table {
    let mut table = Table::new(["path", "scenario", "deadline", "criticality", "missed"]);
    for at in 0..results.scenarios.first().map_or(0, |scenario| scenario.paths.len()) {
        for scenario in &results.scenarios {
            let path = &scenario.paths[at];
            table.row([
                Cell::text(path.name.as_str()),
                Cell::text(scenario.name.as_str()),
                Cell::Number(path.deadline),
                Cell::text(criticality(path.criticality)),
                Cell::text(proportion(&path.misses)),
            ]);
        }
    }
    table
}

/// Each scenario's sum, its terms below it.
fn score(results: &Results) -> Table {
    let head = ["scenario, term", "sum, median", "of the sum", "ratio to baseline", "but"];
    let mut table = Table::new(head);
    table.columns[2].bar = true;
    table.columns[4].wraps = true;
    for scenario in &results.scenarios {
        let Some(score) = &scenario.score else { continue };
        table.row([
            Cell::text(scenario.name.as_str()),
            score.sum.map_or(Cell::Missing, |sum| Cell::text(format!("{} {}", number(sum), score.unit))),
            Cell::Empty,
            score.ratio.map_or(Cell::Missing, Cell::Ratio),
            Cell::text(score.vetoes.join("; ")),
        ]);
        for term in &score.terms {
            let row = table.row([
                Cell::text(format!("{} × {}", number(term.weight), term.metric)),
                bound(term.median),
                Cell::share(term.share),
                term.ratio.map_or(Cell::Missing, Cell::Ratio),
                Cell::Empty,
            ]);
            row.indent = 1;
        }
    }
    table
}

fn misfortunes(name: &str, all: &[Misfortune]) -> Vec<Finding> {
    let finding =
        |text: String| Finding { tone: Tone::Bad, label: name.to_owned(), text: text.into(), ..Finding::default() };
    let shown = all.iter().take(REASONS);
    let shown =
        shown.map(|one| finding(format!("{} × {}: {} ({})", one.trials, one.status.word(), one.reason, one.logs)));
    let rest =
        (all.len() > REASONS).then(|| finding(format!("{} more reasons are in the manifest", all.len() - REASONS)));
    shown.chain(rest).collect()
}

fn troubled(all: Vec<Finding>) -> Option<Section> {
    (!all.is_empty()).then(|| Section::new(1, "What went wrong", vec![Block::Findings(all)]))
}

fn load_axis(found: &Broken) -> Axis {
    Axis { label: found.asked.vary.clone(), ..Axis::new(Quantity::Plain, AxisScale::Log) }
}

fn success(found: &Broken) -> Chart {
    let of = |value: fn(&taut_lab::Probe) -> f64| -> Vec<(f64, f64)> {
        found.probes.iter().map(|probe| (probe.value, value(probe))).collect()
    };
    let edge =
        |xy| Curve { name: "95 %".into(), xy, tone: Tone::Series(0), dashed: true, quiet: true, ..Curve::default() };
    let finding = match (&found.fine, &found.broken) {
        (Some(fine), Some(broken)) => {
            format!("Proven fine up to {}, proven broken from {}.", number(fine.value), number(broken.value))
        }
        _ => "An end of the answer stays open.".into(),
    };
    let column = |name: &str| Column { name: name.to_owned(), ..Column::default() };
    let mut table = Table { columns: [&found.asked.vary, "success"].map(column).into(), ..Table::default() };
    for probe in &found.probes {
        table.row([Cell::Number(probe.value), Cell::text(proportion(&probe.success))]);
    }
    Chart {
        title: "Success by load".into(),
        finding: finding.into(),
        x: load_axis(found),
        y: Axis { range: Some((0.0, 1.0)), ..Axis::new(Quantity::Share, AxisScale::Linear) },
        curves: vec![
            Curve {
                name: "share".into(),
                xy: of(|probe| f64::from(probe.success.k) / f64::from(probe.success.n.max(1))),
                tone: Tone::Series(0),
                ..Curve::default()
            },
            edge(of(|probe| probe.success.low)),
            edge(of(|probe| probe.success.high)),
        ],
        limits: vec![(found.asked.success, "asked:".into())],
        table: Some(table),
        wide: true,
        ..Chart::default()
    }
}

/// What the load came to where it was asked for: the answer is no better than its load.
fn reached(found: &Broken) -> Option<Chart> {
    let reached = found.probes.iter().filter_map(|probe| Some((probe.value, probe.achieved.filter(|of| *of > 0.0)?)));
    let xy: Vec<(f64, f64)> = reached.collect();
    (xy.len() > 1).then(|| Chart {
        title: format!("Load reached ({})", found.unit),
        finding: "Where the curve bends away from a straight line the machine, and not the system, is at its end."
            .into(),
        x: load_axis(found),
        y: Axis::new(Quantity::Plain, AxisScale::Log),
        curves: vec![Curve { name: "median".into(), xy, tone: Tone::Series(1), ..Curve::default() }],
        wide: true,
        ..Chart::default()
    })
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, terminal};

    use super::*;
    use crate::lab::sample;

    #[test]
    fn the_terminal_lab() {
        let document = lab_document(&sample::shown(), &sample::results(), &sample::trials());
        insta::assert_snapshot!(terminal(&document, Style::default()));
    }

    #[test]
    fn the_terminal_search() {
        let document = lab_break_document(&sample::shown(), &sample::broken());
        insta::assert_snapshot!(terminal(&document, Style::default()));
    }

    #[test]
    fn the_sample_pages_for_the_browser_tests_are_written() {
        let run = lab_document(&sample::shown(), &sample::results(), &sample::trials());
        let search = lab_break_document(&sample::shown(), &sample::broken());
        for (name, document) in [("lab", run), ("lab-break", search)] {
            let path = format!("{}/../../target/{name}.html", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, crate::interactive(&document)).unwrap();
        }
    }
}
