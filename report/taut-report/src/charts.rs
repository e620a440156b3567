//! Charts that several subjects have: percentiles and histograms of times.

use std::collections::BTreeMap;

use taut_document::{Axis, AxisScale, Cell, Chart, Column, Curve, Mark, Quantity, Table, Tone, units};

/// A distribution under its name: (quantile 0..1, ns) as it is drawn.
pub(crate) struct Percentiles<'a> {
    pub name: String,
    pub curve: &'a [(f64, u64)],
    pub tone: Tone,
    pub dashed: bool,
    /// Behind the others.
    pub quiet: bool,
}

/// Percentiles over an axis on which each further nine has the same room, and the same as a table.
pub(crate) fn percentiles(title: String, finding: String, of: &[Percentiles<'_>]) -> Chart {
    let curve = |of: &Percentiles<'_>| Curve {
        name: of.name.clone(),
        // Where the axis is logarithmic and has no zero.
        xy: of.curve.iter().map(|(q, ns)| (*q, (*ns).max(1) as f64)).collect(),
        tone: of.tone,
        dashed: of.dashed,
        quiet: of.quiet,
        ..Curve::default()
    };
    let values: Vec<BTreeMap<u64, u64>> =
        of.iter().map(|of| of.curve.iter().map(|(q, ns)| (q.to_bits(), *ns)).collect()).collect();
    let quantiles: std::collections::BTreeSet<u64> = values.iter().flat_map(|of| of.keys().copied()).collect();
    let mut table = side_by_side("percentile", of.iter().map(|of| of.name.as_str()));
    for q in quantiles {
        let cells = values.iter().map(|of| Cell::time(of.get(&q).copied()));
        table.add([Cell::text(units::quantile(f64::from_bits(q)))].into_iter().chain(cells));
    }
    Chart {
        title,
        finding: finding.into(),
        x: Axis {
            label: "percentile (each step: ten times rarer)".into(),
            ..Axis::new(Quantity::Share, AxisScale::Nines)
        },
        y: Axis::new(Quantity::Time, AxisScale::Log),
        curves: of.iter().map(curve).collect(),
        table: Some(table),
        ..Chart::default()
    }
}

/// A table with a column of its own for each of several.
pub(crate) fn side_by_side<'a>(first: &'a str, names: impl Iterator<Item = &'a str>) -> Table {
    let column = |name: &str| Column { name: name.to_owned(), ..Column::default() };
    Table { columns: std::iter::once(first).chain(names).map(column).collect(), ..Table::default() }
}

/// How often each time comes: (from, to, how often); `what` is counted. Counts on a logarithmic axis, so that the rare ones show.
pub(crate) fn histogram(title: String, what: &str, bins: &[(u64, u64, u64)]) -> Chart {
    let all: u64 = bins.iter().map(|(.., n)| n).sum();
    let width = bins.iter().map(|(from, to, _)| to - from).min().unwrap_or(1).max(1);
    let name = |(from, to, _): &(u64, u64, u64)| format!("{} to {}", units::duration(*from), units::duration(*to));
    // A bar's area is how often: a bin of five widths stands a fifth as high.
    let height = |(from, to, n): &(u64, u64, u64)| *n as f64 * width as f64 / (to - from).max(1) as f64;
    let most = bins.iter().max_by(|a, b| height(a).total_cmp(&height(b)));
    let (start, end) = (bins.first().map_or(0, |bin| bin.0), bins.last().map_or(1, |bin| bin.1));
    // What lies far out shares a last, wider bin; where that would flatten the others, the axis is logarithmic.
    let outlying = bins.last().filter(|(from, to, _)| to - from > width * 3 / 2);
    let is_log = outlying.is_some_and(|(from, to, _)| to - from > 3 * (from - start) && end > 10 * start);
    let mut finding = most.map_or(String::new(), |most| {
        format!("Most often {} ({} of {} {what}).", name(most), units::count(most.2), units::count(all))
    });
    if let Some(last) = outlying {
        finding += &format!(" {} took {}: a wider bin, and as much lower.", units::count(last.2), name(last));
    }
    let edge = |at: u64| if is_log { at.max(width / 2).max(1) as f64 } else { at as f64 };
    let mut xy: Vec<(f64, f64)> = bins.iter().map(|bin| (edge(bin.0), height(bin))).collect();
    // The last bar ends here.
    xy.push((end as f64, 0.0));
    let heights = || bins.iter().map(height).filter(|height| *height > 0.0);
    let (least, highest) = (heights().fold(1.0, f64::min), heights().fold(1.0, f64::max));
    let mut table = Table::new(["time", what]);
    for bin in bins {
        table.row([Cell::text(name(bin)), Cell::Count(bin.2)]);
    }
    Chart {
        title,
        finding: finding.into(),
        x: Axis::new(Quantity::Time, if is_log { AxisScale::Log } else { AxisScale::Linear }),
        y: Axis {
            label: format!("{what} per {}", units::duration(width)),
            range: Some((10f64.powf((least.log10() - 0.3).floor()), 2.0 * highest)),
            ..Axis::new(Quantity::Plain, AxisScale::Log)
        },
        curves: vec![Curve { name: what.into(), mark: Mark::Bars, xy, tone: Tone::Series(0), ..Curve::default() }],
        table: Some(table),
        ..Chart::default()
    }
}
