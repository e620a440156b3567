//! Words and numbers of the page.

use statrs::distribution::{Beta, ContinuousCDF};

pub fn head(less: usize) {
    let tenth = if less == 1 { String::new() } else { format!(" {less}") };
    println!("# Levels of the statistics of comparison\n");
    println!(
        "Made by `bench/gate-statistics/run{tenth}` (seed {}; the same numbers on any machine). Do not edit. [The methods](../explanation/statistics.md).\n",
        crate::SEED
    );
    println!(
        "Do intervals and verdicts of a comparison err as rarely as they state? Data are drawn with a known truth, and the results that meet it are counted. In brackets are 95 % bounds (Clopper–Pearson) of the rate."
    );
}

/// What was to hold, and whether it does.
pub struct Limit {
    pub what: &'static str,
    pub measured: String,
    pub limit: &'static str,
    pub holds: bool,
}

pub fn limits(limits: &[Limit]) {
    println!("\n## Limits\n");
    let missed: Vec<&str> = limits.iter().filter(|one| !one.holds).map(|one| one.what).collect();
    println!(
        "{}",
        if missed.is_empty() { "All hold.".to_owned() } else { format!("**Missed**: {}.", missed.join("; ")) }
    );
    table(&["", "measured", "limit", ""]);
    for one in limits {
        let holds = if one.holds { "holds" } else { "**missed**" };
        row(&[one.what.to_owned(), one.measured.clone(), one.limit.to_owned(), holds.to_owned()]);
    }
}

pub fn table(head: &[&str]) {
    println!("\n| {} |", head.join(" | "));
    println!("|{}", " --- |".repeat(head.len()));
}

pub fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A rate in percent with its bounds.
pub fn rate(hits: usize, of: usize) -> String {
    let (low, high) = bounds(hits, of);
    let digits = if hits * 50 < of { 2 } else { 1 };
    format!("{:.digits$} % ({:.digits$}–{:.digits$})", 100.0 * hits as f64 / of as f64, 100.0 * low, 100.0 * high)
}

pub fn bounds(hits: usize, of: usize) -> (f64, f64) {
    let (hits, misses) = (hits as f64, (of - hits) as f64);
    let low = if hits == 0.0 { 0.0 } else { Beta::new(hits, misses + 1.0).unwrap().inverse_cdf(0.025) };
    let high = if misses == 0.0 { 1.0 } else { Beta::new(hits + 1.0, misses).unwrap().inverse_cdf(0.975) };
    (low, high)
}

pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0), |(sum, n), value| (sum + value, n + 1));
    sum / f64::from(n)
}
