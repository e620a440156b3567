//! The terminal form of a lab: the sentence first, then tables that fit 100 columns, then what went wrong.

use comfy_table::Table;
use taut_lab::{Broken, Misfortune, Results};
use taut_recording::Shown;

use super::{
    LabShown,
    words::{bound, broken, criticality, difference, ends, failed, headline, number, proportion, shares},
};
use crate::{
    Style,
    console::{indent, table, wrap},
};

/// Columns of a sentence.
const WIDTH: usize = 98;
/// Columns of how trials ended.
const ENDS: usize = 32;
const SCORE: &str = "The sum is of weight × median over the weights: its longest term rules it. The ratio is the weighted \
                     geometric mean of the metrics' ratios to the baseline. Neither makes up for what stands under \
                     \"but\".";
/// Reasons that are shown of each scenario; the manifest has them all.
const REASONS: usize = 4;

/// What `taut lab run` prints.
pub fn lab_terminal(shown: &LabShown<'_>, results: &Results, style: Style) -> String {
    let mut out = head(shown, &results.confinement, &headline(results), style);
    out += &section("Trials", style, &trials(results));
    let loads = loads(results);
    if loads.row_count() > 0 {
        out += &section("What the loads reached", style, &loads);
    }
    let processes = processes(results);
    if processes.row_count() > 0 {
        out += &section("CPUs that processes kept busy", style, &processes);
    }
    let first = results.scenarios.first();
    for at in 0..first.map_or(0, |scenario| scenario.metrics.len()) {
        let metric = &results.scenarios[0].metrics[at];
        let unit = if metric.unit.is_empty() { String::new() } else { format!(", {}", metric.unit) };
        let about = if metric.about.is_empty() { String::new() } else { format!(" · {}", metric.about) };
        out += &section(&format!("{}{unit}{about}", metric.name), style, &metric_table(results, at));
        let failed = results.scenarios.iter().filter_map(|one| failed(&one.name, one.metrics.get(at)?));
        failed.for_each(|line| out += &format!("{}\n", style.dim(&wrap(&line, WIDTH))));
    }
    let paths = paths(results);
    if paths.row_count() > 0 {
        out += &section("Paths and their deadlines", style, &paths);
    }
    let score = score(results);
    if score.row_count() > 0 {
        out += &section("Weighted score", style, &score);
        out += &format!("{}\n", style.dim(&wrap(SCORE, WIDTH)));
    }
    out += &format!("\n{}\n", style.dim(&wrap("Intervals are 95 %. A trial that failed counts as worse than every number. Against the baseline: Hodges and Lehmann's estimate over rounds.", WIDTH)));
    for scenario in &results.scenarios {
        out += &misfortunes(&scenario.name, &scenario.misfortunes, style);
    }
    for note in &results.notes {
        out += &format!("{} {}\n", style.dim("note:"), wrap(note, 92).replace('\n', "\n      "));
    }
    out
}

/// What `taut lab break` prints.
pub fn lab_break_terminal(shown: &LabShown<'_>, found: &Broken, style: Style) -> String {
    let confinement = format!("{} · {}", found.confinement, found.placement);
    let mut out = head(shown, &confinement, &broken(found), style);
    let unit = format!("{} (median)", found.unit);
    let mut rows = table(&[&found.asked.vary, &unit, "CPUs wanted", "success", "proven"]);
    for probe in &found.probes {
        rows.add_row(vec![
            number(probe.value),
            probe.achieved.map_or("–".into(), number),
            probe.cpus_wanted.map_or("–".into(), number),
            proportion(&probe.success),
            probe.proven.unwrap_or("open").to_owned(),
        ]);
    }
    out += &section("What was tried", style, &rows);
    out += &misfortunes("broken", &found.misfortunes, style);
    out
}

fn head(shown: &LabShown<'_>, confinement: &str, sentence: &str, style: Style) -> String {
    let file = shown.file.shown();
    let title = if shown.title.is_empty() { &file } else { shown.title };
    let below = format!("{file} · seed {} · {confinement} · {}", shown.seed, shown.folder.shown());
    format!("{}\n{}\n\n{}\n", style.bold(title), style.dim(&wrap(&below, WIDTH)), style.bold(&wrap(sentence, WIDTH)))
}

fn trials(results: &Results) -> Table {
    let mut rows = table(&["scenario", "trials", "success", "only baseline / only here"]);
    for scenario in &results.scenarios {
        let against = scenario.success_difference.map_or("baseline".into(), |d| {
            format!("{} / {} of {}, p = {:.2}", d.only_baseline, d.only_here, d.pairs, d.p)
        });
        let ends = wrap(&ends(&scenario.trials), ENDS);
        rows.add_row(vec![scenario.name.clone(), ends, proportion(&scenario.success), against]);
    }
    rows
}

fn loads(results: &Results) -> Table {
    let mut titles = vec!["scenario", "load", "target", "median", "least", "", "sent", "CPUs busy\n/ wanted"];
    let is_by_topic = results.scenarios.iter().flat_map(|scenario| &scenario.loads).any(|load| !load.topics.is_empty());
    if is_by_topic {
        titles.push("most lost\nin a trial");
    }
    let mut rows = table(&titles);
    for scenario in &results.scenarios {
        for load in &scenario.loads {
            let mut row = vec![
                scenario.name.clone(),
                load.load.clone(),
                load.target.map_or("–".into(), number),
                number(load.median),
                number(load.least),
                load.unit.clone(),
                load.sent.map_or(String::new(), number),
                format!("{} / {}", number(load.cpus_busy), number(load.cpus_wanted)),
            ];
            if is_by_topic {
                row.push(most_lost(load));
            }
            rows.add_row(row);
        }
    }
    rows
}

/// The topic that lost the largest part of its messages in a trial.
fn most_lost(load: &taut_lab::LoadReached) -> String {
    let lost = load.topics.iter().filter_map(|topic| Some((topic.most_lost?, &topic.topic)));
    let worst = lost.max_by(|one, other| one.0.total_cmp(&other.0));
    worst.map_or(String::new(), |(part, topic)| format!("{:.1} %\n{topic}", 100.0 * part))
}

fn processes(results: &Results) -> Table {
    let mut rows = table(&["scenario", "process", "median", "most", "bound to CPU", "ran on"]);
    for scenario in &results.scenarios {
        for process in &scenario.processes {
            rows.add_row(vec![
                scenario.name.clone(),
                process.name.clone(),
                number(process.median),
                number(process.most),
                process.cpus.clone().unwrap_or_else(|| "–".into()),
                shares(&process.shares),
            ]);
        }
    }
    rows
}

fn metric_table(results: &Results, at: usize) -> Table {
    let mut rows = table(&["scenario", "n", "best", "median", "95 %", "p90", "worst", "missed", "against baseline"]);
    for scenario in &results.scenarios {
        let Some(metric) = scenario.metrics.get(at) else { continue };
        let interval = metric.interval.map(|(low, high)| format!("{} … {}", bound(Some(low)), bound(Some(high))));
        rows.add_row(vec![
            scenario.name.clone(),
            metric.n.to_string(),
            bound(metric.best),
            bound(metric.median),
            interval.unwrap_or_else(|| "–".into()),
            bound(metric.tenth_worst),
            bound(metric.worst),
            metric.misses.map_or("–".into(), |misses| format!("{} of {}", misses.k, misses.n)),
            metric.difference.as_ref().map_or("–".into(), |d| difference(d, metric)),
        ]);
    }
    rows
}

fn paths(results: &Results) -> Table {
    let mut rows = table(&["path", "scenario", "deadline", "criticality", "missed"]);
    for at in 0..results.scenarios.first().map_or(0, |scenario| scenario.paths.len()) {
        for scenario in &results.scenarios {
            let path = &scenario.paths[at];
            rows.add_row(vec![
                path.name.clone(),
                scenario.name.clone(),
                number(path.deadline),
                criticality(path.criticality).to_owned(),
                proportion(&path.misses),
            ]);
        }
    }
    rows
}

fn score(results: &Results) -> Table {
    let mut rows = table(&["scenario", "sum", "of which", "ratio to baseline", "but"]);
    for scenario in &results.scenarios {
        let Some(score) = &scenario.score else { continue };
        let part = |term: &taut_lab::Term| {
            let share = term.share.map_or("–".into(), |share| format!("{:.0} %", 100.0 * share));
            format!("{} × {} {share}", number(term.weight), term.metric)
        };
        rows.add_row(vec![
            scenario.name.clone(),
            score.sum.map_or("–".into(), |sum| format!("{} {}", number(sum), score.unit)),
            score.terms.iter().map(part).collect::<Vec<_>>().join("\n"),
            score.ratio.map_or("–".into(), |ratio| format!("× {}", number(ratio))),
            score.vetoes.join("\n"),
        ]);
    }
    rows
}

fn misfortunes(name: &str, all: &[Misfortune], style: Style) -> String {
    let mut out = String::new();
    for one in all.iter().take(REASONS) {
        let text = format!("{} × {}: {} ({})", one.trials, one.status.word(), one.reason, one.logs);
        out += &format!("{} {}\n", style.bold(&format!("{name}:")), wrap(&text, WIDTH - name.len() - 2));
    }
    if all.len() > REASONS {
        out += &format!("{name}: {} more reasons are in the manifest\n", all.len() - REASONS);
    }
    out
}

fn section(title: &str, style: Style, rows: &Table) -> String {
    format!("\n{}\n\n{}\n", style.bold(title), indent(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::sample;

    fn fits(text: &str) {
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{widest:?} columns:\n{text}");
    }

    #[test]
    fn the_terminal_lab() {
        let text = lab_terminal(&sample::shown(), &sample::results(), Style::default());
        fits(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn the_terminal_search() {
        let text = lab_break_terminal(&sample::shown(), &sample::broken(), Style::default());
        fits(&text);
        insta::assert_snapshot!(text);
    }
}
