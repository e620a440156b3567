//! A run's delays as histograms: the rows that a fleet's figures are made of. Counts of whole buckets add up without a loss, which no
//! percentile does.

use std::collections::{BTreeMap, HashMap};

use taut_analysis::{Analysis, Cause, Chain, HopRow, MessageRow, Row};
use taut_stats::Exponential;

use crate::{
    Table,
    column::{Column, Texts, Value, Values},
};

/// 64 buckets an octave: neighbouring bounds are 1.09 % apart.
const BUCKETS: Exponential = Exponential::new(6);
/// Of durations of 0, which no exponential bucket holds.
const ZERO: i32 = i32::MIN;

/// Whose run it was.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Days since 1970-01-01.
    pub day: i32,
    /// The robot's name.
    pub robot: &'a str,
    /// What tells this run from every other.
    pub run: &'a str,
    /// What ran.
    pub revision: &'a str,
}

/// Counts delays of chains, hops and causes while a recording is analysed. Like the report's delays they leave the start-up out.
#[derive(Debug, Default)]
pub struct Histograms {
    /// Names of chains and of points.
    names: Vec<String>,
    by_name: HashMap<String, usize>,
    counts: HashMap<Place, BTreeMap<i32, u64>>,
    /// The message whose rows are coming, if it went all the way; and its hop.
    open: [Option<Spent>; 2],
}

/// What is counted together: a chain, a hop by its place and by where it begins, a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    chain: usize,
    /// From 1; 0 is the whole way.
    hop: u32,
    from: usize,
    cause: Option<Cause>,
}

/// Time by cause, of one message in one place; it has few.
#[derive(Debug)]
struct Spent(Place, Vec<(Cause, u64)>);

const MESSAGE: usize = 0;
const HOP: usize = 1;

impl Histograms {
    /// Takes in a row; those of threads it passes over.
    pub fn row(&mut self, row: &Row<'_>) {
        match row {
            Row::Message(row) => self.message(row),
            Row::Hop(row) => self.hop(row),
            Row::Cause(row) if !row.hop.is_startup => {
                for Spent(_, causes) in self.open.iter_mut().flatten() {
                    match causes.iter_mut().find(|(cause, _)| *cause == row.cause) {
                        Some((_, ns)) => *ns += row.duration_ns,
                        None => causes.push((row.cause, row.duration_ns)),
                    }
                }
            }
            Row::Cause(_) | Row::State(_) => {}
        }
    }

    /// The rows of a run, in the order of chain, hop, cause and bucket; and how many hops were left out, because their messages had
    /// missed a point.
    pub fn table(mut self, analysis: &Analysis, of: &Origin<'_>) -> (Table, u64) {
        self.close(HOP);
        self.close(MESSAGE);
        let mut places: Vec<(&Chain, &str, Place, BTreeMap<i32, u64>)> = Vec::new();
        let mut left_out = 0;
        for (place, counts) in self.counts {
            let chain = analysis.chains.iter().find(|chain| chain.name == self.names[place.chain]);
            let hop =
                |chain: &Chain| chain.hops.get(place.hop as usize - 1).map(|hop| (hop.from.clone(), hop.to.clone()));
            let Some(chain) = chain else { continue };
            let is_whole = place.hop == 0 || hop(chain).is_some_and(|(from, _)| from == self.names[place.from]);
            match (is_whole, place.cause) {
                (true, _) => places.push((chain, place.cause.map_or("", Cause::word), place, counts)),
                (false, None) => left_out += counts.values().sum::<u64>(),
                (false, Some(_)) => {}
            }
        }
        places.sort_by(|a, b| (&a.0.name, a.2.hop, a.1).cmp(&(&b.0.name, b.2.hop, b.1)));
        let mut table = table();
        for (chain, cause, place, counts) in &places {
            let hop = place.hop.checked_sub(1).map(|at| &chain.hops[at as usize]);
            let hop = hop.map_or(String::new(), |hop| format!("{} → {}", hop.from, hop.to));
            for (bucket, count) in counts {
                let (low, high) = if *bucket == ZERO { (0, 0) } else { BUCKETS.whole_bounds(*bucket) };
                // Years are far below 2^63 ns; what a torn recording says may not be.
                let [low, high] = [low, high].map(|ns| ns.min(i64::MAX as u64));
                table.push([
                    Value::Day(of.day),
                    Value::Word(of.robot),
                    Value::Word(of.run),
                    Value::Word(of.revision),
                    Value::Word(&chain.name),
                    Value::Number(u64::from(place.hop)),
                    Value::Word(&hop),
                    Value::Word(cause),
                    Value::Signed(*bucket),
                    Value::Int(low),
                    Value::Int(high),
                    Value::Int(*count),
                ]);
            }
        }
        (table, left_out)
    }

    fn message(&mut self, row: &MessageRow<'_>) {
        self.close(HOP);
        self.close(MESSAGE);
        if let Some(ns) = row.way_ns.filter(|_| !row.is_startup) {
            let chain = self.name(row.chain);
            self.begin(MESSAGE, Place { chain, hop: 0, from: chain, cause: None }, ns);
        }
    }

    fn hop(&mut self, row: &HopRow<'_>) {
        self.close(HOP);
        if !row.is_startup {
            let (chain, from) = (self.name(row.chain), self.name(row.from));
            self.begin(HOP, Place { chain, hop: row.hop, from, cause: None }, row.duration_ns);
        }
    }

    fn begin(&mut self, what: usize, place: Place, ns: u64) {
        self.count(place, ns);
        self.open[what] = Some(Spent(place, Vec::new()));
    }

    /// A cause counts once a message, with all of its stretches.
    fn close(&mut self, what: usize) {
        if let Some(Spent(place, causes)) = self.open[what].take() {
            for (cause, ns) in causes {
                self.count(Place { cause: Some(cause), ..place }, ns);
            }
        }
    }

    fn count(&mut self, place: Place, ns: u64) {
        *self.counts.entry(place).or_default().entry(BUCKETS.index(ns).unwrap_or(ZERO)).or_default() += 1;
    }

    fn name(&mut self, name: &str) -> usize {
        self.by_name.get(name).copied().unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.by_name.insert(name.to_owned(), self.names.len() - 1);
            self.names.len() - 1
        })
    }
}

fn table() -> Table {
    let word = |name, says| Column::new(name, Values::Word(Texts::default()), says);
    let int = |name, says| Column::new(name, Values::Int(Vec::new()), says);
    let number = |name, says| Column::new(name, Values::Number(Vec::new()), says);
    Table::new(
        "fleet",
        vec![
            Column::new("date", Values::Day(Vec::new()), "the day of the run, UTC"),
            word("robot", "the robot's name"),
            word("run", "first half of the recording's SHA-256; empty if merged"),
            word("revision", "what ran"),
            word("chain", "the chain's name"),
            number("position", "the hop's place in its chain, from 1; 0 for the whole way"),
            word("hop", "`from → to`; empty for the whole way"),
            word("cause", "a word of causes.md; empty for all of it"),
            number("bucket", "index of the bucket at scale 6, as in OTLP; −2147483648 for durations of 0"),
            int("low_ns", "durations in the bucket are above this"),
            int("high_ns", "and at most this"),
            int("count", "how many messages"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use taut_analysis::{CauseRow, Hop};

    use super::*;

    fn origin() -> Origin<'static> {
        Origin { day: 20_000, robot: "arm-7", run: "c0ffee", revision: "v2" }
    }

    fn analysis() -> Analysis {
        let hop = |from: &str, to: &str| Hop { from: from.into(), to: to.into(), ..Hop::default() };
        let chain = Chain { name: "arm".into(), hops: vec![hop("a", "b"), hop("b", "c")], ..Chain::default() };
        Analysis { chains: vec![chain], ..Analysis::default() }
    }

    /// A message's rows: it passes a, b and c, and its second hop computes twice and waits once.
    fn rows(is_startup: bool) -> Vec<Row<'static>> {
        let message = MessageRow { chain: "arm", way_ns: Some(1_500), is_startup, ..MessageRow::default() };
        let hop = HopRow { chain: "arm", hop: 1, from: "a", duration_ns: 500, is_startup, ..HopRow::default() };
        let second = HopRow { hop: 2, from: "b", duration_ns: 1_000, ..hop };
        let cause = |hop, cause, duration_ns| Row::Cause(CauseRow { hop, cause, duration_ns, ..CauseRow::default() });
        vec![
            Row::Message(message),
            Row::Hop(hop),
            cause(hop, Cause::Io, 500),
            Row::Hop(second),
            cause(second, Cause::Cpu, 300),
            cause(second, Cause::Lock, 400),
            cause(second, Cause::Cpu, 300),
        ]
    }

    /// position, hop, cause, upper bound, count.
    fn told(table: &Table) -> Vec<(i32, String, String, i64, i64)> {
        let word = |at: usize, row: usize| {
            let Values::Word(texts) = &table.columns[at].values else { panic!("{at}") };
            texts.words[texts.keys[row].unwrap() as usize].clone()
        };
        let int = |at: usize, row: usize| {
            let Values::Int(all) = &table.columns[at].values else { panic!("{at}") };
            all[row]
        };
        let Values::Number(positions) = &table.columns[5].values else { panic!() };
        (0..table.rows()).map(|row| (positions[row], word(6, row), word(7, row), int(10, row), int(11, row))).collect()
    }

    #[test]
    fn a_message_counts_once_in_its_way_its_hops_and_each_of_their_causes() {
        let mut histograms = Histograms::default();
        for row in rows(false).iter().chain(&rows(false)).chain(&rows(true)) {
            histograms.row(row);
        }
        let (table, left_out) = histograms.table(&analysis(), &origin());
        let high = |ns: u64| BUCKETS.whole_bounds(BUCKETS.index(ns).unwrap()).1 as i64;
        let row = |position, hop: &str, cause: &str, ns| (position, hop.to_owned(), cause.to_owned(), high(ns), 2);
        let expected = [
            row(0, "", "", 1_500),
            row(0, "", "cpu", 600),
            row(0, "", "io", 500),
            row(0, "", "lock", 400),
            row(1, "a → b", "", 500),
            row(1, "a → b", "io", 500),
            row(2, "b → c", "", 1_000),
            row(2, "b → c", "cpu", 600),
            row(2, "b → c", "lock", 400),
        ];
        assert_eq!((told(&table), left_out), (expected.to_vec(), 0));
        assert!(table.columns.iter().all(|column| column.rows() == 9));
    }

    #[test]
    fn hops_over_a_missed_point_are_counted_apart_and_zero_has_a_bucket() {
        let mut histograms = Histograms::default();
        let hop = HopRow { chain: "arm", hop: 2, from: "a", duration_ns: 700, ..HopRow::default() };
        histograms.row(&Row::Message(MessageRow { chain: "arm", ..MessageRow::default() }));
        histograms.row(&Row::Hop(hop));
        histograms.row(&Row::Cause(CauseRow { hop, duration_ns: 700, ..CauseRow::default() }));
        histograms.row(&Row::Hop(HopRow { from: "b", duration_ns: 0, ..hop }));
        let (table, left_out) = histograms.table(&analysis(), &origin());
        assert_eq!((told(&table), left_out), (vec![(2, "b → c".into(), String::new(), 0, 1)], 1));
        let Values::Number(buckets) = &table.columns[8].values else { panic!() };
        assert_eq!(buckets, &[ZERO]);
    }

    #[test]
    fn the_documentation_has_every_column() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/fleet.md");
        let text = std::fs::read_to_string(path).unwrap();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
        for column in table().columns {
            let row = format!("| `{}` | {} | {} |", column.name, column.arrow_type(), column.says);
            assert!(rows.contains(&row.as_str()), "{row}");
        }
    }
}
