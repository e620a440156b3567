//! The terminal form of a probe: sentences first, then tables that fit 100 columns.

use comfy_table::{CellAlignment, Table};
use taut_wakeup::{ExplainedWakeups, Findings, LateWake, Series, Variant};

use super::{Sweep, VARIANTS_MAX, cpu_name, headline, is_read_back, sentences, shown_cpus, sweeps};
use crate::{
    Style,
    console::{bar, indent, table, wrap},
    words::{self, count, duration, microseconds, percent},
};

/// Columns of the page, and of a sentence on it.
const WIDTH: usize = 98;
/// Longest piece of a variant's name; the shorter ones where the figures are long.
const NAME_WIDTHS: [usize; 3] = [26, 20, 10];
/// Late wakes shown one by one, and responsible parties.
const LINES_MAX: usize = 8;

/// What `taut wakeup` prints.
pub fn wakeup_terminal(findings: &Findings, style: Style) -> String {
    let mut out = format!("{}\n\n", style.dim(&wrap(&measured(findings), WIDTH)));
    out += &format!("{}\n\n", style.bold(&wrap(&headline::headline(findings), WIDTH)));
    out += &lateness(findings);
    out += &paragraph(&style.dim(&wrap(sentences::SERIES, WIDTH - 2)));
    match (sweeps(findings).as_slice(), findings.variants.first()) {
        ([], Some(first)) => out += &sentences::normality(first).map_or(String::new(), |text| said(&text)),
        ([], None) => {}
        (sweeps, _) => out += &format!("{}{}", section("Slack", style), indent(&slack(sweeps))),
    }
    if let Some(stalls) = &findings.stalls {
        out += &section("Stalls of all CPUs at once", style);
        out += &said(&sentences::stalls(stalls));
    }
    if let Some(throttling) = &findings.throttling {
        out += &section("Throttling of real-time threads", style);
        out += &said(&sentences::throttling(throttling));
    }
    if let Some(found) = &findings.explained {
        out += &section("What made wakes late", style);
        out += &explained(found);
    }
    if let Some(found) = &findings.tracers {
        out += &section("The kernel's own tracers, afterwards on the same CPUs", style);
        sentences::tracers(found).iter().for_each(|sentence| out += &said(sentence));
    }
    if !findings.variants.iter().all(is_read_back) {
        out += &section("The probe itself", style);
        out += &indent(&itself(&findings.variants));
    }
    for note in &findings.notes {
        out += &format!("\n{} {}\n", style.dim("note:"), wrap(note, 92).replace('\n', "\n      "));
    }
    out
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

/// Every variant, then each of its CPUs; names as long as there is room for.
fn lateness(findings: &Findings) -> String {
    let fits = |text: &String| text.lines().all(|line| line.chars().count() <= WIDTH);
    let texts: Vec<String> = NAME_WIDTHS.iter().map(|width| indent(&lateness_table(findings, *width))).collect();
    texts.iter().find(|text| fits(text)).or(texts.last()).cloned().unwrap_or_default()
}

fn lateness_table(findings: &Findings, name_width: usize) -> Table {
    let mut table = table(&["late (µs)", "", "n", "p50", "p90", "p99", "p99.9", "max", "missed"]);
    left(&mut table, 1);
    for variant in &findings.variants {
        rows(&mut table, &name(variant, name_width), &variant.all, variant.interval_ns);
        let (cpus, hidden) = shown_cpus(variant, findings.variants.len());
        for cpu in cpus {
            rows(&mut table, &format!("  {}", cpu_name(cpu.cpu)), &cpu.series, variant.interval_ns);
        }
        if hidden > 0 {
            table.add_row([format!("  and {}", words::quantity(hidden as u64, "earlier CPU"))]);
        }
    }
    table
}

/// One row where both series are the same, else one each.
fn rows(table: &mut Table, name: &str, series: &Series, interval_ns: u64) {
    let mut row = |name: &str, kind: &str, d: taut_stats::Distribution, missed: String| {
        let figures = [d.p50_ns, d.p90_ns, d.p99_ns, d.p999_ns, d.max_ns].map(microseconds);
        let mut cells = vec![name.to_owned(), kind.to_owned(), count(d.n)];
        cells.extend(figures);
        cells.push(missed);
        table.add_row(cells);
    };
    let wakeups = series.wakeups.distribution();
    match (interval_ns, series.missed) {
        (0, _) => row(name, "wakeups", wakeups, "–".into()),
        (_, 0) => row(name, "both", wakeups, "0".into()),
        (_, missed) => {
            row(name, "wakeups", wakeups, String::new());
            row("", "cycles", series.cycles.distribution(), count(missed));
        }
    }
}

/// A variant's label, broken at its spaces; the CPUs' when it is the only one.
fn name(variant: &Variant, width: usize) -> String {
    let name = match (variant.label.as_str(), variant.cpus.as_slice()) {
        ("", [one]) => cpu_name(one.cpu),
        ("", _) => "all CPUs".to_owned(),
        (label, _) => label.to_owned(),
    };
    let pieces = |line: &str| {
        let characters: Vec<char> = line.chars().collect();
        characters.chunks(width).map(|piece| piece.iter().collect::<String>()).collect::<Vec<_>>()
    };
    wrap(&name, width).lines().flat_map(pieces).collect::<Vec<_>>().join("\n ")
}

fn slack(sweeps: &[Sweep<'_>]) -> Table {
    let mut table = table(&["sleeping by", "asked for", "median late (µs)", "slack by the rule (µs)", "rest (µs)"]);
    for sweep in sweeps {
        for (at, fit) in sweep.fits.iter().enumerate() {
            let rest = fit.rest_ns.map_or("–".into(), |rest| {
                let sign = if rest < 0 { "−" } else { "" };
                format!("{sign}{}", microseconds(Some(rest.unsigned_abs())))
            });
            table.add_row([
                if at == 0 { sweep.way.clone() } else { String::new() },
                sentences::length(fit.sleep_ns),
                microseconds(fit.p50_ns),
                microseconds(Some(fit.slack_ns)),
                rest,
            ]);
        }
    }
    table
}

fn explained(found: &ExplainedWakeups) -> String {
    let mut out = said(&sentences::explained(found));
    let all_ns: u64 = found.parts.iter().map(|part| part.ns).sum();
    let share = |ns: u64| ns as f64 / all_ns.max(1) as f64;
    if !found.parts.is_empty() {
        let mut parts = table(&["what it was", "share", "", "ms", "wakes"]);
        left(&mut parts, 2);
        for part in &found.parts {
            let share = share(part.ns);
            parts.add_row([
                part.what.clone(),
                percent(share),
                bar(share),
                words::milliseconds(Some(part.ns)),
                count(part.wakes),
            ]);
        }
        out += &format!("\n{}", indent(&parts));
    }
    if !found.responsible.is_empty() {
        let mut responsible = table(&["responsible", "share", "ms", "wakes"]);
        for party in found.responsible.iter().take(LINES_MAX) {
            let who = sentences::named(&party.kind, &party.name);
            responsible.add_row([
                who,
                percent(share(party.ns)),
                words::milliseconds(Some(party.ns)),
                count(party.wakes),
            ]);
        }
        out += &format!("\n{}", indent(&responsible));
    }
    if !found.worst.is_empty() {
        out += "\n  The latest:\n";
        out += &found.worst.iter().take(LINES_MAX).map(late_wake).collect::<String>();
    }
    out
}

/// "12.0 ms late at 4.200 s on CPU 1: timer late 11.9 ms (hypervisor or firmware), interrupt 90.0 µs (local_timer)".
fn late_wake(wake: &LateWake) -> String {
    let text = format!(
        "{} late at {:.3} s{}: {}",
        duration(wake.late_ns),
        wake.due_ns as f64 / 1e9,
        wake.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}")),
        sentences::pieces(wake)
    );
    format!("  {}\n", wrap(&text, WIDTH - 4).replace('\n', "\n    "))
}

/// What the probe took itself, and what the machine showed meanwhile.
fn itself(variants: &[Variant]) -> Table {
    let mut table = table(&["", "own CPU", "page faults", "wakes lost", "clock", "idle states"]);
    left(&mut table, 5);
    let probed: Vec<&Variant> = variants.iter().filter(|variant| !is_read_back(variant)).collect();
    if probed.len() > VARIANTS_MAX {
        let most = |of: fn(&Variant) -> u64| count(probed.iter().map(|variant| of(variant)).max().unwrap_or(0));
        let own_cpu = probed.iter().map(|variant| variant.own_cpu).fold(0.0, f64::max);
        let name = format!("most of {} variants", probed.len());
        table.add_row([name, percent(own_cpu), most(|v| v.page_faults), most(|v| v.all.lost), "–".into(), "–".into()]);
        return table;
    }
    for variant in probed {
        let clock = variant.frequency_khz.map_or("not visible".into(), |khz| format!("{} MHz", count(khz / 1000)));
        table.add_row([
            name(variant, NAME_WIDTHS[1]),
            percent(variant.own_cpu),
            count(variant.page_faults),
            count(variant.all.lost),
            clock,
            wrap(&sentences::idle(variant), 28),
        ]);
    }
    table
}

fn left(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_cell_alignment(CellAlignment::Left);
    }
}

fn section(title: &str, style: Style) -> String {
    format!("\n{}\n\n", style.bold(title))
}

fn said(text: &str) -> String {
    paragraph(&wrap(text, WIDTH - 2))
}

fn paragraph(lines: &str) -> String {
    lines.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wakeup::sample;

    fn plain(findings: &Findings) -> String {
        wakeup_terminal(findings, Style::default())
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
    fn it_fits_100_columns_whatever_the_names_and_figures() {
        let mut findings = sample::two_ways();
        findings.variants[0].label = format!("load={} policy=fifo", "x".repeat(80));
        findings.notes.push("many words ".repeat(40));
        findings.machine.insert("cpu".into(), "AMD EPYC 9R14 ".repeat(9));
        findings.explained.as_mut().unwrap().responsible[0].name = "a long thread's name ".repeat(3);
        let slow = (0..20_000).map(|at| if at % 50 == 0 { 9_000_000_000 } else { 90_000_000 + at }).collect();
        findings.variants.push(sample::variant("slow", &[], 1_000_000, vec![slow]));
        for text in [plain(&findings), plain(&sample::sweep()), plain(&sample::edges())] {
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
            }
        }
    }

    #[test]
    fn of_many_cpus_the_latest_are_shown() {
        let wakes = (0..40).map(|cpu| vec![1_000 * (cpu + 1); 50]).collect();
        let variants = vec![sample::variant("", &[], 1_000_000, wakes)];
        let text = plain(&Findings { variants, ..Findings::default() });
        assert!(text.contains("CPU 39 ") && text.contains("CPU 32 ") && !text.contains("CPU 31 "), "{text}");
        assert!(text.contains("and 32 earlier CPUs"), "{text}");
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
}
