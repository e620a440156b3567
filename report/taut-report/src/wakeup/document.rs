//! A probe's findings as a document.

use taut_document::{
    Axis, AxisScale, Block, Cell, Chart, Class, Curve, Document, Finding, LaneItem, LanePiece, LaneRow, Lanes,
    Quantity, Section, Show, Table, Text, Tone, units,
};
use taut_stats::Distribution;
use taut_wakeup::{ExplainedWakeups, Findings, LateWake, Series, Variant};

use super::{Sweep, VARIANTS_MAX, cpu_name, headline, is_read_back, sentences, shown_cpus, sweeps};
use crate::charts::{self, Percentiles};

/// Responsible parties and late wakes that a terminal shows.
const LINES_MAX: usize = 8;
/// Colours that tell lines apart.
const COLOURS: usize = 8;

/// What `taut wakeup` shows.
pub fn wakeup_document(findings: &Findings) -> Document {
    let mut sections = vec![Section::new(1, "How late", late(findings))];
    sections.push(Section::new(2, "", charts(findings)).shown(Show::Page));
    let ways = sweeps(findings);
    if !ways.is_empty() {
        sections.push(Section::new(1, "Slack", vec![Block::Table(slack(&ways))]));
        sections.push(Section::new(2, "", vec![slack_chart(&ways).into()]).shown(Show::Page));
    }
    let said: Vec<Finding> = findings
        .variants
        .iter()
        .filter_map(|variant| Some((name(variant), sentences::normality(variant)?)))
        .map(|(label, text)| Finding { label, text: text.into(), ..Finding::default() })
        .collect();
    if ways.is_empty() && said.len() > 1 {
        sections.push(Section::new(1, "Not a bell curve", vec![Block::Findings(said)]).shown(Show::Page));
    }
    let said = |title: &str, text: String| Section::new(1, title, vec![Block::Text(text.into())]);
    sections.extend(findings.stalls.as_ref().map(|of| said("Stalls of all CPUs at once", sentences::stalls(of))));
    let throttling = findings.throttling.as_ref().map(sentences::throttling);
    sections.extend(throttling.map(|text| said("Throttling of real-time threads", text)));
    sections.extend(findings.explained.as_ref().map(|of| Section::new(1, "What made wakes late", explained(of))));
    if let Some(found) = &findings.tracers {
        let title = "The kernel's own tracers, afterwards on the same CPUs";
        let blocks = sentences::tracers(found).into_iter().map(|text| Block::Text(text.into())).collect();
        sections.push(Section::new(1, title, blocks));
    }
    let probed: Vec<&Variant> = findings.variants.iter().filter(|variant| !is_read_back(variant)).collect();
    if !probed.is_empty() {
        sections.push(Section::new(1, "The probe itself", vec![Block::Table(itself(&probed))]));
    }
    sections.push(Section::new(1, "How this was measured", vec![Block::Table(facts(findings))]).shown(Show::Page));
    Document {
        title: "wakeup".into(),
        measured: measured(findings).into(),
        headline: headline::headline(findings).into(),
        sections,
        notes: findings.notes.iter().map(|note| Text::from(note.as_str())).collect(),
        reproduce: findings.machine.get("command").cloned().into_iter().collect(),
    }
}

/// One line on the machine and on how long it was watched.
fn measured(findings: &Findings) -> String {
    const FACTS: [&str; 3] = ["cpu", "kernel", "preemption"];
    let mut parts = vec![format!("{:.1} s", findings.measured_s)];
    if findings.variants.len() > 1 {
        parts.push(format!("{} variants in turn", findings.variants.len()));
    }
    parts.extend(FACTS.iter().filter_map(|fact| findings.machine.get(*fact).cloned()));
    if findings.machine.get("virtual machine").is_some_and(|is| is == "yes") {
        parts.push("virtual machine".into());
    }
    parts.join(" · ")
}

/// Every variant, then each of its CPUs.
fn late(findings: &Findings) -> Vec<Block> {
    let head = ["late", "counted", "n", "min", "p50", "p90", "p99", "p99.9", "max", "missed"];
    let mut table = Table::new(head).priorities([0, 0, 3, 9, 0, 4, 0, 2, 0, 0]);
    for variant in &findings.variants {
        rows(&mut table, name(variant), &variant.all, variant.interval_ns, 0);
        let (cpus, hidden) = shown_cpus(variant, findings.variants.len());
        for cpu in cpus {
            rows(&mut table, cpu_name(cpu.cpu), &cpu.series, variant.interval_ns, 1);
        }
        if hidden > 0 {
            table.add([Cell::text(format!("and {}", units::quantity(hidden as u64, "earlier CPU")))]).indent = 1;
        }
    }
    let first = findings.variants.first().filter(|_| sweeps(findings).is_empty());
    let normality = first.and_then(sentences::normality).map(|text| Block::Text(text.into()));
    let blocks = [Block::Table(table), Block::Text(sentences::SERIES.into())];
    blocks.into_iter().chain(normality).collect()
}

/// One row where both series are the same, else one each.
fn rows(table: &mut Table, name: String, series: &Series, interval_ns: u64, indent: u8) {
    let mut row = |name: String, kind: &str, d: &Distribution, missed: Cell| {
        let times = [d.min_ns, d.p50_ns, d.p90_ns, d.p99_ns, d.p999_ns, d.max_ns].map(Cell::time);
        let cells = [Cell::text(name), Cell::text(kind), Cell::Count(d.n)].into_iter().chain(times).chain([missed]);
        table.add(cells).indent = indent;
    };
    let wakeups = series.wakeups.distribution();
    match (interval_ns, series.missed) {
        (0, _) => row(name, "wakeups", &wakeups, Cell::Missing),
        (_, 0) => row(name, "both", &wakeups, Cell::Count(0)),
        (_, missed) => {
            row(name, "wakeups", &wakeups, Cell::Empty);
            row(String::new(), "cycles", &series.cycles.distribution(), Cell::Count(missed));
        }
    }
}

/// A variant's label; the CPUs' when it is the only one.
fn name(variant: &Variant) -> String {
    match (variant.label.as_str(), variant.cpus.as_slice()) {
        ("", [one]) => cpu_name(one.cpu),
        ("", _) => "all CPUs".to_owned(),
        (label, _) => label.to_owned(),
    }
}

fn slack(sweeps: &[Sweep<'_>]) -> Table {
    let mut table = Table::new(["sleeping by", "asked for", "median late", "slack by the rule", "rest"]);
    for sweep in sweeps {
        for (at, fit) in sweep.fits.iter().enumerate() {
            table.row([
                Cell::text(if at == 0 { sweep.way.as_str() } else { "" }),
                Cell::text(sentences::length(fit.sleep_ns)),
                Cell::time(fit.p50_ns),
                Cell::Time(fit.slack_ns),
                fit.rest_ns.map_or(Cell::Missing, |ns| u64::try_from(ns).map_or(Cell::SignedTime(ns), Cell::Time)),
            ]);
        }
    }
    table
}

/// Lateness against the length of the sleep, each way to sleep beside the slack that the kernel's rule gives it.
fn slack_chart(sweeps: &[Sweep<'_>]) -> Chart {
    let curve = |(at, sweep): (usize, &Sweep<'_>)| {
        let late = sweep.fits.iter().filter_map(|fit| Some((fit.sleep_ns as f64, fit.p50_ns?.max(1) as f64)));
        let rule = sweep.fits.iter().filter(|fit| fit.slack_ns > 0);
        let rule = rule.map(|fit| (fit.sleep_ns as f64, fit.slack_ns as f64)).collect();
        let tone = Tone::Series((at % COLOURS) as u8);
        let measured = Curve { name: sweep.way.clone(), xy: late.collect(), tone, ..Curve::default() };
        let name = format!("{}: rule", sweep.way);
        [measured, Curve { name, xy: rule, tone, dashed: true, quiet: true, ..Curve::default() }]
    };
    let lengths = sweeps.iter().flat_map(|sweep| sweep.fits.iter().map(|fit| fit.sleep_ns));
    let lengths: std::collections::BTreeSet<u64> = lengths.collect();
    Chart {
        title: "Median lateness by the length of the sleep".into(),
        finding:
            "Solid: measured. Dashed: the slack that the kernel's rule gives this way to sleep; what has none has no \
                  dashed line."
                .into(),
        x: Axis {
            label: "sleep asked for".into(),
            ticks: lengths.into_iter().map(|ns| (ns as f64, sentences::length(ns))).collect(),
            ..Axis::new(Quantity::Time, AxisScale::Log)
        },
        y: Axis { label: "late".into(), ..Axis::new(Quantity::Time, AxisScale::Log) },
        curves: sweeps.iter().enumerate().flat_map(curve).collect(),
        wide: true,
        ..Chart::default()
    }
}

/// A line of a chart: a variant as a whole, or one of its CPUs.
struct Line<'a> {
    name: String,
    series: &'a Series,
    /// Number of its variant.
    at: usize,
    is_cpu: bool,
}

/// Each variant with wakes, followed by its CPUs.
fn lines(findings: &Findings) -> Vec<Line<'_>> {
    let mut all = Vec::new();
    for (at, variant) in findings.variants.iter().enumerate() {
        let name = name(variant);
        all.push(Line { name: name.clone(), series: &variant.all, at, is_cpu: false });
        for cpu in shown_cpus(variant, findings.variants.len()).0 {
            let cpu_name = cpu_name(cpu.cpu);
            let name = if findings.variants.len() > 1 { format!("{name}, {cpu_name}") } else { cpu_name };
            all.push(Line { name, series: &cpu.series, at, is_cpu: true });
        }
    }
    all.retain(|line| line.series.wakeups.distribution().n > 0);
    all
}

fn charts(findings: &Findings) -> Vec<Block> {
    let lines = lines(findings);
    if lines.iter().all(|line| line.series.wakeups.distribution().n < 2) {
        return Vec::new();
    }
    let has_missed = findings.variants.iter().any(|variant| variant.all.missed > 0);
    let mut charts = vec![percentiles(findings, &lines, false)];
    // Without a missed cycle both are the same.
    charts.extend(has_missed.then(|| percentiles(findings, &lines, true)));
    charts.push(worst(findings, &lines));
    let wholes = lines.iter().filter(|line| !line.is_cpu && line.series.wakeups.distribution().n > 1);
    charts.extend(wholes.map(|line| {
        let title = format!("Histogram of the wakeups, {}", line.name);
        charts::histogram(title, "wakes", &line.series.wakeups.histogram())
    }));
    charts.into_iter().map(Block::from).collect()
}

/// Colours tell variants, or CPUs where there is one variant.
fn tone(findings: &Findings, line: &Line<'_>, place: usize) -> Tone {
    Tone::Series((if findings.variants.len() > 1 { line.at } else { place } % COLOURS) as u8)
}

/// The interval as a mark, where all have the same.
fn intervals(findings: &Findings) -> Vec<(f64, String)> {
    let all = findings.variants.iter().map(|variant| variant.interval_ns).filter(|ns| *ns > 0);
    let all: std::collections::BTreeSet<u64> = all.collect();
    if all.len() == 1 { all.into_iter().map(|ns| (ns as f64, "one interval".to_owned())).collect() } else { Vec::new() }
}

fn percentiles(findings: &Findings, lines: &[Line<'_>], of_cycles: bool) -> Chart {
    let (what, of): (&str, fn(&Series) -> &taut_stats::Sketch) = match of_cycles {
        true => ("cycles", |series| &series.cycles),
        false => ("wakeups", |series| &series.wakeups),
    };
    let curves: Vec<Vec<(f64, u64)>> = lines.iter().map(|line| of(line.series).percentile_curve()).collect();
    let finding = lines.first().map_or(String::new(), |first| {
        let d = of(first.series).distribution();
        format!(
            "{}: median {}, 99th percentile {}, the latest of {} {}. A flat curve is a machine that keeps time.",
            first.name,
            units::maybe(d.p50_ns),
            units::maybe(d.p99_ns),
            units::count(d.n),
            units::maybe(d.max_ns)
        )
    });
    let drawn = lines.iter().zip(&curves).enumerate().map(|(place, (line, curve))| Percentiles {
        name: line.name.clone(),
        curve,
        tone: tone(findings, line, place),
        dashed: line.is_cpu || line.at >= COLOURS,
        quiet: line.is_cpu,
    });
    let drawn: Vec<Percentiles<'_>> = drawn.collect();
    let chart = charts::percentiles(format!("Percentiles of the lateness of {what}"), finding, &drawn);
    Chart { limits: intervals(findings), wide: true, ..chart }
}

fn worst(findings: &Findings, lines: &[Line<'_>]) -> Chart {
    // The worst of all CPUs is the highest of their lines.
    let of_cpus = findings.variants.len() == 1 && lines.len() > 1;
    let shown = lines.iter().filter(|line| line.is_cpu == of_cpus && !line.series.worst.is_empty());
    let shown: Vec<&Line<'_>> = shown.collect();
    let all = shown.iter().flat_map(|line| line.series.worst.iter().map(|(at, ns)| (line.name.as_str(), *at, *ns)));
    let mut all: Vec<(&str, f64, u64)> = all.collect();
    all.sort_by_key(|(.., ns)| std::cmp::Reverse(*ns));
    let finding = all.first().map_or(String::new(), |(name, at, ns)| {
        format!(
            "The latest wake, {}, fell into the stretch that ended at {at:.0} s ({name}). Peaks of all lines at once are the \
             machine's.",
            units::duration(*ns)
        )
    });
    let mut table = Table::new(["until", "of", "worst"]);
    for (name, at, ns) in all.into_iter().take(20) {
        table.row([Cell::text(format!("{at:.0} s")), Cell::text(name), Cell::Time(ns)]);
    }
    let curve = |(place, line): (usize, &&Line<'_>)| Curve {
        name: line.name.clone(),
        xy: line.series.worst.iter().map(|(at, ns)| (at * 1e9, (*ns).max(1) as f64)).collect(),
        tone: tone(findings, line, place),
        dashed: line.at >= COLOURS,
        ..Curve::default()
    };
    Chart {
        title: "Worst wake of each stretch of time".into(),
        finding: finding.into(),
        x: Axis { label: "measured time".into(), ..Axis::new(Quantity::Instant, AxisScale::Linear) },
        y: Axis { label: "worst".into(), ..Axis::new(Quantity::Time, AxisScale::Log) },
        curves: shown.iter().enumerate().map(curve).collect(),
        limits: intervals(findings),
        table: Some(table),
        wide: true,
        ..Chart::default()
    }
}

/// What the lateness of late wakes is made of.
fn classes() -> Vec<Class> {
    vec![
        Class::new('t', "timer late", Tone::Series(4)),
        Class::new('i', "interrupt", Tone::Series(5)),
        Class::new('q', "run queue", Tone::Series(1)),
        Class::new('u', "return to user", Tone::Series(0)),
        Class::new('?', "other", Tone::Quiet),
    ]
}

fn explained(found: &ExplainedWakeups) -> Vec<Block> {
    let mut blocks = vec![Block::Text(sentences::explained(found).into())];
    let all_ns: u64 = found.parts.iter().map(|part| part.ns).sum();
    let share = |ns: u64| Cell::Share(ns as f64 / all_ns.max(1) as f64);
    let each = |ns: u64| Cell::Time(ns / found.late.max(1));
    let mut parts = Table::new(["what it was", "share", "per late wake", "in wakes"]);
    parts.columns[1].bar = true;
    for part in &found.parts {
        parts.row([Cell::text(part.what.as_str()), share(part.ns), each(part.ns), Cell::Count(part.wakes)]);
    }
    let mut responsible =
        Table { shown: LINES_MAX, ..Table::new(["responsible", "share", "per late wake", "in wakes"]) };
    for party in &found.responsible {
        let who = sentences::named(&party.kind, &party.name);
        responsible.row([Cell::text(who), share(party.ns), each(party.ns), Cell::Count(party.wakes)]);
    }
    let mut worst = Table { shown: LINES_MAX, ..Table::new(["at", "CPU", "late", "parts in order of time"]) };
    worst.columns[3].wraps = true;
    worst.caption = "The latest".into();
    for wake in &found.worst {
        let cpu = wake.cpu.map_or(Cell::Missing, |cpu| Cell::Count(cpu.into()));
        let at = format!("{:.3} s", wake.due_ns as f64 / 1e9);
        worst.row([Cell::text(at), cpu, Cell::Time(wake.late_ns), Cell::text(sentences::pieces(wake))]);
    }
    blocks.extend([parts, responsible].map(Block::Table));
    if !found.worst.is_empty() {
        blocks.push(Block::Lanes(lanes(&found.worst[..found.worst.len().min(LINES_MAX)])));
    }
    blocks.push(Block::Table(worst));
    blocks
}

/// Late wakes from when they were due, one row each.
fn lanes(wakes: &[LateWake]) -> Lanes {
    let classes = classes();
    let mut item = LaneItem { title: "The latest, from when they were due".into(), ..LaneItem::default() };
    for (row, wake) in wakes.iter().enumerate() {
        let mut from_ns = 0;
        for part in &wake.parts {
            let class = classes.iter().position(|class| class.name == part.what).unwrap_or(classes.len() - 1);
            let to_ns = from_ns + part.ns;
            let text = format!("{} {}", part.what, units::duration(part.ns));
            item.pieces.push(LanePiece { row, from_ns, to_ns, class, text });
            from_ns = to_ns;
        }
        item.to_ns = item.to_ns.max(from_ns);
        let cpu = wake.cpu.map_or(String::new(), |cpu| format!(", CPU {cpu}"));
        item.rows.push(LaneRow { name: format!("at {:.3} s{cpu}", wake.due_ns as f64 / 1e9), ..LaneRow::default() });
    }
    Lanes { items: vec![item], classes }
}

/// What the probe took itself, and what the machine showed meanwhile.
fn itself(probed: &[&Variant]) -> Table {
    let mut table = Table::new(["probe", "own CPU", "page faults", "wakes lost", "clock", "idle states"]);
    table.columns[5].wraps = true;
    if probed.len() > VARIANTS_MAX {
        let most = |of: fn(&Variant) -> u64| Cell::Count(probed.iter().map(|variant| of(variant)).max().unwrap_or(0));
        let own_cpu = Cell::Share(probed.iter().map(|variant| variant.own_cpu).fold(0.0, f64::max));
        let name = Cell::text(format!("most of {} variants", probed.len()));
        table.row([name, own_cpu, most(|v| v.page_faults), most(|v| v.all.lost), Cell::Missing, Cell::Missing]);
        return table;
    }
    for variant in probed {
        table.row([
            Cell::text(name(variant)),
            Cell::Share(variant.own_cpu),
            Cell::Count(variant.page_faults),
            Cell::Count(variant.all.lost),
            variant.frequency_khz.map_or(Cell::text("not visible"), |khz| Cell::Rate(khz as f64 * 1e3)),
            Cell::text(sentences::idle(variant)),
        ]);
    }
    table
}

/// The machine, and the settings that all variants share: the others are in their names.
fn facts(findings: &Findings) -> Table {
    let mut table = Table::new(["fact", "value"]);
    let mut row = |name: &str, value: &str| {
        table.row([Cell::text(name), Cell::text(value)]);
    };
    if findings.started_s > 0.0 {
        let (day, second) = ((findings.started_s / 86_400.0).floor(), findings.started_s.rem_euclid(86_400.0) as u64);
        let time = format!("{:02}:{:02}:{:02} UTC", second / 3_600, second / 60 % 60, second % 60);
        row("began", &format!("{} {time}", units::day(day as i64)));
    }
    row("measured", &format!("{:.1} s, all variants together", findings.measured_s));
    if let Some((first, others)) = findings.variants.split_first() {
        let is_shared =
            |key: &str, value: &str| others.iter().all(|of| of.settings.get(key).is_some_and(|of| of == value));
        for (key, value) in first.settings.iter().filter(|(key, value)| is_shared(key, value)) {
            row(key, value);
        }
    }
    for (key, value) in findings.machine.iter().filter(|(key, _)| *key != "command") {
        row(key, value);
    }
    table
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, terminal};

    use super::*;
    use crate::wakeup::sample;

    fn plain(findings: &Findings) -> String {
        terminal(&wakeup_document(findings), Style::default())
    }

    #[test]
    fn two_ways_to_wake() {
        insta::assert_snapshot!(plain(&sample::two_ways()));
    }

    #[test]
    fn a_sweep_over_sleep_lengths() {
        insta::assert_snapshot!(plain(&sample::sweep()));
    }

    #[test]
    fn of_many_cpus_the_latest_are_shown() {
        let wakes = (0..40).map(|cpu| vec![1_000 * (cpu + 1); 50]).collect();
        let variants = vec![sample::variant("", &[], 1_000_000, wakes)];
        let findings = Findings { variants, ..Findings::default() };
        for text in [plain(&findings), crate::interactive(&wakeup_document(&findings))] {
            assert!(text.contains("CPU 39") && text.contains("CPU 32") && !text.contains("CPU 31"), "{text}");
            assert!(text.contains("and 32 earlier CPUs"), "{text}");
        }
    }

    #[test]
    fn files_read_back_have_no_cycles_and_no_probe() {
        let variants = vec![sample::variant("old.hlog", &[], 1_000_000, vec![vec![5_000; 50]])];
        let mut findings = Findings { variants, ..Findings::default() };
        findings.variants[0].interval_ns = 0;
        let text = plain(&findings);
        assert!(!text.contains("The probe itself") && !text.contains("both "), "{text}");
        assert!(plain(&Findings::default()).contains("Nothing was measured."));
    }

    #[test]
    fn the_sample_pages_for_the_browser_tests_are_written() {
        for (name, findings) in [("ways", sample::two_ways()), ("sweep", sample::sweep()), ("edges", sample::edges())] {
            let path = format!("{}/../../target/probe-{name}.html", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, crate::interactive(&wakeup_document(&findings))).unwrap();
        }
    }
}
