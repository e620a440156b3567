//! A chain's figures: delays of hops and of the whole way, periods at points, the tail.

use foldhash::HashMap;
use taut_points::{Pass, PointId, RouteKind};
use taut_stats::{Distribution, histogram, percentile_curve};

use crate::{
    context::Context,
    line::ChainLine,
    messages::{Message, Messages},
    outcomes::{Account, Fates},
    result::{Bin, Branch, Chain, Delay, Gap, Hop, Point, Startup},
    startup,
};

/// "The message did not pass this point."
const NEVER: u64 = u64::MAX;

/// One chain's messages as a table: a row of times for each message, a column for each point.
struct Table<'a> {
    columns: usize,
    /// Row after row; [`NEVER`] where a message did not pass.
    times: Vec<u64>,
    rows: Vec<(&'a Message, &'a [Pass])>,
    /// For each column: messages that seem to reach it before the one ahead of it, and the largest step back.
    inverted: Vec<(u64, u64)>,
}

/// Smaller steps back are the clocks' and the CPU's reordering of reads.
const INVERSION_NS: u64 = 1_000;

impl<'a> Table<'a> {
    fn of(messages: &'a Messages, line: &ChainLine) -> Table<'a> {
        let columns = line.points.len();
        let rows = line.messages(messages);
        let column = line.columns();
        let mut times = vec![NEVER; rows.len() * columns];
        let mut inverted = vec![(0, 0); columns];
        for (row, (_, passes)) in rows.iter().enumerate() {
            for stamp in *passes {
                if let Some(at) = column.get(&stamp.point) {
                    times[row * columns + at] = stamp.time_ns;
                }
            }
            // A message that seems to reach a point before the one ahead of it took no time: the inversion
            // is the clock's error, and hops still add up to the whole way.
            let mut latest = 0u64;
            for (column, time) in times[row * columns..][..columns].iter_mut().enumerate() {
                if *time == NEVER {
                    continue;
                }
                let back = latest.saturating_sub(*time);
                if back > INVERSION_NS {
                    inverted[column] = (inverted[column].0 + 1, inverted[column].1.max(back));
                }
                latest = latest.max(*time);
                *time = latest;
            }
        }
        Table { columns, times, rows, inverted }
    }

    fn row(&self, row: usize) -> &[u64] {
        &self.times[row * self.columns..][..self.columns]
    }

    /// The delay between two columns, for a message that passed both.
    fn delay(&self, row: usize, from: usize, to: usize) -> Option<u64> {
        let times = self.row(row);
        (times[from] != NEVER && times[to] != NEVER).then(|| times[to].saturating_sub(times[from]))
    }

    fn delays(&self, rows: std::ops::Range<usize>, from: usize, to: usize) -> Vec<u64> {
        rows.filter_map(|row| self.delay(row, from, to)).collect()
    }
}

/// All figures of one chain.
pub(crate) fn chain(messages: &Messages, line: &ChainLine, context: &Context<'_>) -> Chain {
    let table = Table::of(messages, line);
    let n = table.rows.len();
    let last = table.columns - 1;
    let lives: Vec<u64> =
        table.rows.iter().map(|(message, passes)| message.last_ns.saturating_sub(passes[0].time_ns)).collect();
    let warm = startup::length(&lives);
    let ways = table.delays(warm..n, 0, last);
    let missed = line.deadline_ns.map(|deadline| ways.iter().filter(|way| **way > deadline).count() as u64);
    let end_to_end = delay(&ways);
    let whole_life = delay(&lives[warm..]);
    let fates = Fates::new(context, line, &table.rows, &end_to_end.distribution, &whole_life.distribution);
    let mut account = Account::new(fates);
    table.rows.iter().for_each(|(message, passes)| account.add(message, passes));
    Chain {
        name: line.name.clone(),
        source: line.points.first().map_or_else(Default::default, |point| context.points.source(*point)),
        declared: line.declared,
        is_loop: matches!(line.kind, Some(RouteKind::Loop(_))),
        deadline_ns: line.deadline_ns,
        missed,
        points: points(&table, line, context),
        messages: n as u64,
        hops: hops(&table, line, context, warm, &end_to_end.distribution),
        end_to_end,
        whole_life,
        startup: (warm > 0).then(|| transient(&table, &lives, warm, context)),
        outcomes: account.finish(),
        branches: branches(&table, line, context),
        series: (0..n)
            .filter_map(|row| Some((table.row(row)[0].checked_sub(context.start_ns)?, table.delay(row, 0, last)?)))
            .collect(),
        starts: None,
        explained: Default::default(),
    }
}

fn delay(in_time_order: &[u64]) -> Delay {
    let mut sorted = in_time_order.to_vec();
    sorted.sort_unstable();
    let bin = |(from_ns, to_ns, count)| Bin { from_ns, to_ns, count };
    Delay {
        distribution: Distribution::of(in_time_order, &sorted),
        histogram: histogram(&sorted).into_iter().map(bin).collect(),
        percentiles: percentile_curve(&sorted),
    }
}

fn hops(table: &Table<'_>, line: &ChainLine, context: &Context<'_>, warm: usize, way: &Distribution) -> Vec<Hop> {
    let n = table.rows.len();
    // Each hop sorts its own delays: the machine's cores may share that work.
    let delays: Vec<Delay> = std::thread::scope(|scope| {
        let work: Vec<_> =
            (1..table.columns).map(|to| scope.spawn(move || delay(&table.delays(warm..n, to - 1, to)))).collect();
        work.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let shares = tail_shares(table, &delays, warm, way);
    let crossing = crossings(table, line, context);
    delays
        .into_iter()
        .enumerate()
        .map(|(at, delay)| {
            let Distribution { min_ns, p99_ns, .. } = delay.distribution;
            Hop {
                from: context.name(line.points[at]),
                to: context.name(line.points[at + 1]),
                // RFC 5481 section 4.2: PDV = delay − minimum delay.
                pdv_p99_ns: p99_ns.zip(min_ns).map(|(p99, min)| p99 - min),
                tail_share: shares.as_ref().map(|shares| shares[at]),
                inverted: table.inverted[at + 1].0,
                inverted_max_ns: table.inverted[at + 1].1,
                crosses_threads: crossing[at],
                delay,
            }
        })
        .collect()
}

/// Over the messages above the highest carried quantile: each hop's time beyond its own median, as a
/// share of all hops'. What is normal for every message is thereby no excess.
fn tail_shares(table: &Table<'_>, delays: &[Delay], warm: usize, way: &Distribution) -> Option<Vec<f64>> {
    let (_, limit) = way.highest_to_p99()?;
    let medians: Vec<u64> =
        delays.iter().map(|d| d.distribution.p50_ns.unwrap_or(d.distribution.min_ns.unwrap_or(0))).collect();
    let mut excess = vec![0u64; delays.len()];
    for row in warm..table.rows.len() {
        if table.delay(row, 0, table.columns - 1).is_some_and(|way| way > limit) {
            for (at, sum) in excess.iter_mut().enumerate() {
                *sum += table.delay(row, at, at + 1).unwrap_or(0).saturating_sub(medians[at]);
            }
        }
    }
    let total: u64 = excess.iter().sum();
    (total > 0).then(|| excess.iter().map(|e| *e as f64 / total as f64).collect())
}

/// For each hop, whether most messages change threads on it.
fn crossings(table: &Table<'_>, line: &ChainLine, context: &Context<'_>) -> Vec<bool> {
    let mut balance = vec![0i64; table.columns - 1];
    let column = line.columns();
    let is_unknown = |tid: i32| context.objects.is_invented(tid);
    for (_, passes) in &table.rows {
        for pair in passes.windows(2) {
            if let (Some(from), Some(to)) = (column.get(&pair[0].point), column.get(&pair[1].point))
                && from + 1 == *to
                && !is_unknown(pair[0].thread)
            {
                balance[*from] += if pair[0].thread == pair[1].thread { -1 } else { 1 };
            }
        }
    }
    balance.into_iter().map(|balance| balance > 0).collect()
}

/// The points of a line, and nothing else of it: for one that is no chain.
pub(crate) fn points_of(messages: &Messages, line: &ChainLine, context: &Context<'_>) -> Vec<Point> {
    points(&Table::of(messages, line), line, context)
}

/// So many of a point's gaps are listed.
const GAPS_MOST: usize = 20;
/// Periods above this multiple of their median, as a fraction, are gaps.
const GAP: (u64, u64) = (3, 2);

fn points(table: &Table<'_>, line: &ChainLine, context: &Context<'_>) -> Vec<Point> {
    let mut threads: HashMap<PointId, HashMap<i32, u64>> = HashMap::default();
    for stamp in table.rows.iter().flat_map(|(_, passes)| passes.iter()) {
        *threads.entry(stamp.point).or_default().entry(stamp.thread).or_default() += 1;
    }
    let one = |column: usize| {
        let id = line.points[column];
        let mut times: Vec<u64> =
            (0..table.rows.len()).map(|row| table.row(row)[column]).filter(|time| *time != NEVER).collect();
        times.sort_unstable();
        // What a hole of the recording lies in is no period.
        let whole = times.windows(2).filter(|pair| !context.may_lack(id, pair[0], pair[1]));
        let (begins, periods): (Vec<u64>, Vec<u64>) = whole.map(|pair| (pair[0], pair[1] - pair[0])).unzip();
        let mut sorted = periods.clone();
        sorted.sort_unstable();
        let median = taut_stats::rank(&sorted, 0.5).unwrap_or(0);
        let jitter: Vec<u64> = periods.iter().map(|period| period.abs_diff(median)).collect();
        let mut sorted_jitter = jitter.clone();
        sorted_jitter.sort_unstable();
        let active_ns: u64 = periods.iter().sum();
        let longest_typical = median.saturating_mul(GAP.0) / GAP.1;
        let gap = |(from, ns): (&u64, &u64)| Gap {
            from_ns: from.saturating_sub(context.start_ns),
            ns: *ns,
            missing: ((*ns as f64 / median.max(1) as f64).round() as u64).saturating_sub(1),
        };
        let mut gaps: Vec<Gap> =
            begins.iter().zip(&periods).filter(|(_, period)| **period > longest_typical).map(gap).collect();
        let (number, missing) = (gaps.len() as u64, gaps.iter().map(|gap| gap.missing).sum());
        gaps.sort_by_key(|gap| (std::cmp::Reverse(gap.ns), gap.from_ns));
        gaps.truncate(GAPS_MOST);
        Point {
            name: context.name(id),
            is_due: id.is_due(),
            messages: times.len() as u64,
            rate_hz: (active_ns > 0).then(|| periods.len() as f64 * 1e9 / active_ns as f64),
            period: Distribution::of(&periods, &sorted),
            period_jitter: Distribution::of(&jitter, &sorted_jitter),
            gaps: number,
            missing,
            longest_gaps: gaps,
            threads: thread_names(threads.get(&id), context),
        }
    };
    std::thread::scope(|scope| {
        let work: Vec<_> = (0..table.columns).map(|column| scope.spawn(move || one(column))).collect();
        work.into_iter().map(|point| point.join().unwrap_or_default()).collect()
    })
}

/// "comm/tid", most stamps first; equally many by name, since numbers follow the order of the file.
fn thread_names(counts: Option<&HashMap<i32, u64>>, context: &Context<'_>) -> Vec<String> {
    let name = |(tid, n): (&i32, &u64)| (std::cmp::Reverse(*n), context.thread(*tid).into_owned());
    let mut names: Vec<_> = counts.into_iter().flatten().map(name).collect();
    names.sort();
    names.into_iter().map(|(_, name)| name).filter(|name| !name.is_empty()).collect()
}

fn branches(table: &Table<'_>, line: &ChainLine, context: &Context<'_>) -> Vec<Branch> {
    // By point: after which point of the line, `None` for the start, and how often.
    let mut seen: HashMap<PointId, HashMap<Option<PointId>, u64>> = HashMap::default();
    for (_, passes) in &table.rows {
        let mut after = None;
        for stamp in *passes {
            if line.points.contains(&stamp.point) {
                after = Some(stamp.point);
            } else {
                *seen.entry(stamp.point).or_default().entry(after).or_default() += 1;
            }
        }
    }
    let branch = |(point, after): (&PointId, &HashMap<Option<PointId>, u64>)| {
        let most = after.iter().min_by_key(|(key, n)| (std::cmp::Reverse(**n), **key)).and_then(|(key, _)| *key);
        Branch {
            point: context.name(*point),
            after: most.map_or("the start".to_owned(), |id| context.name(id)),
            messages: after.values().sum(),
        }
    };
    let mut branches: Vec<Branch> = seen.iter().map(branch).collect();
    branches.sort_by(|a, b| b.messages.cmp(&a.messages).then(a.point.cmp(&b.point)));
    branches
}

fn transient(table: &Table<'_>, lives: &[u64], warm: usize, context: &Context<'_>) -> Startup {
    let max_ns = lives[..warm].iter().copied().max().unwrap_or(0);
    let mut later = lives[warm..].to_vec();
    later.sort_unstable();
    let median = taut_stats::rank(&later, 0.5).unwrap_or(0).max(1);
    let first = if warm == 1 { "the first message".to_owned() } else { format!("the first {warm} messages") };
    Startup {
        messages: warm as u64,
        until_ns: table.rows[warm - 1].0.last_ns.saturating_sub(context.start_ns),
        max_ns,
        sentence: format!(
            "{first} took up to {:.1} ms, {:.0} times the median of those after; not in these delays, but in the \
             outcomes and the plot over time",
            max_ns as f64 / 1e6,
            max_ns as f64 / median as f64
        ),
    }
}
