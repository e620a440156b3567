//! A table: figures with their quantities, not yet text; and how its cells become text, the same for every renderer.

use crate::{
    Text, Tone,
    units::{self, MISSING, TimeUnit},
};

/// Rows of figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it shows; none when empty.
    pub caption: Text,
    /// From left to right; the first names the row.
    pub columns: Vec<Column>,
    /// From top to bottom.
    pub rows: Vec<TableRow>,
    /// Rows that a terminal and Markdown show at most.
    pub shown: usize,
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its head. A unit of time is added.
    pub name: String,
    /// Where there is not enough room, columns of the highest go first; 0 never goes.
    pub priority: u8,
    /// Its text may take several lines.
    pub wraps: bool,
    /// A bar shows the figures' size beside them: a share's own, of others that of the largest.
    pub bar: bool,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableRow {
    /// One for each column.
    pub cells: Vec<Cell>,
    /// How it is coloured.
    pub tone: Tone,
    /// How far it stands to the right: a part of the row above.
    pub indent: u8,
}

/// A figure or a text. Times are in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// Nothing belongs here.
    #[default]
    Empty,
    /// The data do not carry it: "–".
    Missing,
    /// A name or words.
    Text(Text),
    /// A figure in the form in which another program prints it.
    Printed(String),
    /// How many.
    Count(u64),
    /// How long.
    Time(u64),
    /// How much longer.
    SignedTime(i64),
    /// 0..1.
    Share(f64),
    /// 0..1, of what is rare: "0.02 %".
    RareShare(f64),
    /// A relative change; 0.142 is "+14.2 %".
    Change(f64),
    /// A change of a share in percentage points; 0.0048 is "+0.48 pp".
    Points(f64),
    /// So many of so many: "869 (28.8 %)".
    Of(u64, u64),
    /// A factor.
    Ratio(f64),
    /// 1/s.
    Rate(f64),
    /// Bytes.
    Bytes(u64),
    /// Of no unit that is known.
    Number(f64),
    /// A time that is known so far only: "1.9 (1.3–6.0)".
    Estimate {
        /// Lower end of its interval.
        low: u64,
        /// The time.
        value: u64,
        /// Upper end.
        high: u64,
    },
    /// A bucket of times in which the time lies: "7.208–7.287".
    Bucket {
        /// It is above this.
        above: u64,
        /// And at most this.
        up_to: u64,
    },
    /// At least this time.
    AtLeast(u64),
    /// At most this time.
    AtMost(u64),
    /// From the one to the other: "×1.06 … ×1.10".
    Interval(Box<[Cell; 2]>),
    /// Before and after: "41.9 → 50.3".
    Step(Box<[Cell; 2]>),
}

impl Default for Table {
    fn default() -> Table {
        Table { caption: Text::default(), columns: Vec::new(), rows: Vec::new(), shown: usize::MAX }
    }
}

impl Table {
    /// A table whose first column holds names, which may wrap; the others are figures that stay.
    pub fn new<const N: usize>(head: [&str; N]) -> Table {
        let column = |(at, name): (usize, &str)| Column { name: name.to_owned(), wraps: at == 0, ..Column::default() };
        Table { columns: head.into_iter().enumerate().map(column).collect(), ..Table::default() }
    }

    /// The same, whose columns go in this order where there is not enough room.
    pub fn priorities<const N: usize>(mut self, priorities: [u8; N]) -> Table {
        self.columns.iter_mut().zip(priorities).for_each(|(column, priority)| column.priority = priority);
        self
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) -> &mut TableRow {
        self.add(cells)
    }

    /// Adds a row of as many cells as there are columns.
    pub fn add(&mut self, cells: impl IntoIterator<Item = Cell>) -> &mut TableRow {
        self.rows.push(TableRow { cells: cells.into_iter().collect(), ..TableRow::default() });
        self.rows.last_mut().expect("a row was added above")
    }

    /// Takes out the columns that the data carry in no row, and says whether there were any.
    pub fn without_missing(&mut self) -> bool {
        let is_missing = |at: usize| {
            let cells = || self.rows.iter().filter_map(|row| row.cells.get(at));
            cells().any(|cell| *cell == Cell::Missing)
                && cells().all(|cell| matches!(cell, Cell::Missing | Cell::Empty))
        };
        let missing: Vec<usize> = (1..self.columns.len()).filter(|at| is_missing(*at)).collect();
        for at in missing.iter().rev() {
            self.columns.remove(*at);
            self.rows.iter_mut().for_each(|row| drop(row.cells.remove(*at)));
        }
        !missing.is_empty()
    }

    /// All that its renderers print, as text.
    pub(crate) fn printed(&self) -> Printed<'_> {
        let times: Vec<Vec<f64>> =
            self.rows.iter().map(|row| row.cells.iter().flat_map(Cell::times).collect()).collect();
        let unit = TimeUnit::of_table(&times.concat());
        let mut head: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        if let Some(unit) = unit {
            let holds_times =
                |at: &usize| self.rows.iter().any(|row| row.cells.get(*at).is_some_and(|c| !c.times().is_empty()));
            let mut columns = (0..head.len()).filter(holds_times);
            // The only column of times says so itself; of several the first column says it for all.
            let at = match (columns.next(), columns.next()) {
                (Some(only), None) => only,
                _ => 0,
            };
            if let Some(name) = head.get_mut(at) {
                *name = if name.is_empty() { unit.word().into() } else { format!("{name} ({})", unit.word()) };
            }
        }
        let printed = self.rows.iter().zip(&times).map(|(row, times)| {
            let how = Unit { of_table: unit, of_row: TimeUnit::of_row(times) };
            (0..head.len()).map(|at| PrintedCell::of(row.cells.get(at).unwrap_or(&Cell::Empty), how)).collect()
        });
        let rows: Vec<Vec<PrintedCell<'_>>> = printed.collect();
        let is_text = |at: usize| {
            let cells = || rows.iter().filter_map(|row| row.get(at));
            let is_word = |cell: &PrintedCell<'_>| matches!(cell, PrintedCell::Text(text) if !text.is_empty());
            let is_figure = |cell: &PrintedCell<'_>| matches!(cell, PrintedCell::Figure(text) if !text.is_empty() && text != MISSING);
            // A word among figures ("failed") stands as they do.
            at == 0 || cells().any(is_word) && !cells().any(is_figure)
        };
        Printed { is_text: (0..head.len()).map(is_text).collect(), head, rows }
    }

    /// The sizes of a column's figures beside the largest (0..1), for bars.
    pub(crate) fn sizes(&self, column: usize) -> Vec<Option<f64>> {
        let size = |row: &TableRow| row.cells.get(column).and_then(Cell::size);
        let of_itself = |row: &TableRow| matches!(row.cells.get(column), Some(Cell::Share(_) | Cell::Of(..)));
        let largest = self.rows.iter().filter(|row| !of_itself(row)).filter_map(size).fold(0.0, f64::max);
        let share = |row: &TableRow| {
            let size = size(row)?;
            Some(if of_itself(row) { size } else { size / largest.max(f64::MIN_POSITIVE) }.clamp(0.0, 1.0))
        };
        self.rows.iter().map(share).collect()
    }
}

/// A table's texts.
pub(crate) struct Printed<'a> {
    pub head: Vec<String>,
    pub rows: Vec<Vec<PrintedCell<'a>>>,
    /// Columns of words, which begin at their left.
    pub is_text: Vec<bool>,
}

/// A cell as text.
pub(crate) enum PrintedCell<'a> {
    /// Of others: to be escaped.
    Text(&'a Text),
    /// Ours.
    Figure(String),
}

impl<'a> PrintedCell<'a> {
    fn of(cell: &'a Cell, unit: Unit) -> PrintedCell<'a> {
        match cell {
            Cell::Text(text) => PrintedCell::Text(text),
            _ => PrintedCell::Figure(cell.figure(unit)),
        }
    }
}

/// In which unit a cell's times are printed.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    /// It stands in the head.
    of_table: Option<TimeUnit>,
    /// It stands in the cell.
    of_row: TimeUnit,
}

impl Unit {
    /// Times, in the digits that their cell has; `text` sets them together.
    fn print<const N: usize>(self, times: [f64; N], digits: usize, text: impl Fn([String; N]) -> String) -> String {
        if let Some(unit) = self.of_table {
            return text(times.map(|ns| unit.figure(ns, digits)));
        }
        let is_zero = times.iter().all(|ns| *ns == 0.0);
        let fits = times.iter().all(|ns| self.of_row.fits(*ns));
        let smallest = times.iter().map(|ns| ns.abs()).filter(|ns| *ns > 0.0).fold(f64::INFINITY, f64::min);
        let unit = if fits { self.of_row } else { TimeUnit::suiting(smallest) };
        let figures = text(times.map(|ns| unit.figure(ns, digits)));
        if is_zero { figures } else { format!("{figures} {}", unit.word()) }
    }
}

impl Cell {
    /// A name or words.
    pub fn text(text: impl Into<Text>) -> Cell {
        Cell::Text(text.into())
    }

    /// A time that may be missing.
    pub fn time(ns: Option<u64>) -> Cell {
        ns.map_or(Cell::Missing, Cell::Time)
    }

    /// A share that may be missing.
    pub fn share(share: Option<f64>) -> Cell {
        share.map_or(Cell::Missing, Cell::Share)
    }

    /// From the one to the other.
    pub fn interval(low: Cell, high: Cell) -> Cell {
        Cell::Interval(Box::new([low, high]))
    }

    /// As in a sentence, with the unit that suits it.
    pub fn alone(&self) -> String {
        match self {
            Cell::Text(text) => text.plain(),
            _ => self.figure(Unit { of_table: None, of_row: TimeUnit::of_row(&self.times()) }),
        }
    }

    /// Before and after.
    pub fn step(before: Cell, after: Cell) -> Cell {
        Cell::Step(Box::new([before, after]))
    }

    fn figure(&self, unit: Unit) -> String {
        let one = |[text]: [String; 1]| text;
        match self {
            Cell::Empty => String::new(),
            Cell::Missing => MISSING.into(),
            Cell::Text(text) => text.plain(),
            Cell::Printed(text) => text.clone(),
            Cell::Count(n) => units::count(*n),
            Cell::Time(ns) => unit.print([*ns as f64], 3, one),
            Cell::SignedTime(ns) => {
                let sign = if *ns > 0 { "+" } else { "" };
                unit.print([*ns as f64], 3, |[text]| format!("{sign}{text}"))
            }
            Cell::Share(share) => units::percent(*share),
            Cell::RareShare(share) => units::rare(*share),
            Cell::Change(change) => units::change(*change),
            Cell::Points(change) => units::points(*change),
            Cell::Of(n, of) => format!("{} ({})", units::count(*n), units::percent(*n as f64 / (*of).max(1) as f64)),
            Cell::Ratio(factor) => units::ratio(*factor),
            Cell::Rate(hz) => units::rate(*hz),
            Cell::Bytes(n) => units::bytes(*n),
            Cell::Number(value) => units::trimmed(units::figure(*value)),
            Cell::Estimate { low, value, high } => {
                unit.print([*value as f64, *low as f64, *high as f64], 2, |[value, low, high]| {
                    format!("{value} ({low}–{high})")
                })
            }
            // Four digits show that the bounds are 1.1 % apart.
            Cell::Bucket { above, up_to } => {
                unit.print([*above as f64, *up_to as f64], 4, |[above, up_to]| format!("{above}–{up_to}"))
            }
            Cell::AtLeast(ns) => unit.print([*ns as f64], 3, |[text]| format!("≥ {text}")),
            Cell::AtMost(ns) => unit.print([*ns as f64], 3, |[text]| format!("≤ {text}")),
            Cell::Interval(ends) => {
                let [low, high] = ends.as_ref();
                format!("{} … {}", low.figure(unit), high.figure(unit))
            }
            Cell::Step(ends) => {
                let [before, after] = ends.as_ref();
                format!("{} → {}", before.figure(unit), after.figure(unit))
            }
        }
    }

    /// Its times in ns.
    fn times(&self) -> Vec<f64> {
        match self {
            Cell::Time(ns) | Cell::AtLeast(ns) | Cell::AtMost(ns) => vec![*ns as f64],
            Cell::SignedTime(ns) => vec![*ns as f64],
            Cell::Estimate { low, value, high } => [*low, *value, *high].map(|ns| ns as f64).into(),
            Cell::Bucket { above, up_to } => [*above, *up_to].map(|ns| ns as f64).into(),
            Cell::Interval(ends) | Cell::Step(ends) => ends.iter().flat_map(Cell::times).collect(),
            _ => Vec::new(),
        }
    }

    /// For a bar.
    fn size(&self) -> Option<f64> {
        match self {
            Cell::Count(n) | Cell::Bytes(n) | Cell::Time(n) | Cell::AtLeast(n) | Cell::AtMost(n) => Some(*n as f64),
            Cell::Estimate { value, .. } => Some(*value as f64),
            Cell::Bucket { up_to, .. } => Some(*up_to as f64),
            Cell::Share(value)
            | Cell::RareShare(value)
            | Cell::Rate(value)
            | Cell::Number(value)
            | Cell::Ratio(value) => Some(value.abs()),
            Cell::Of(n, of) => Some(*n as f64 / (*of).max(1) as f64),
            Cell::SignedTime(ns) => Some(ns.unsigned_abs() as f64),
            Cell::Change(change) | Cell::Points(change) => Some(change.abs()),
            Cell::Empty | Cell::Missing | Cell::Text(_) | Cell::Printed(_) | Cell::Interval(_) | Cell::Step(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(table: &Table) -> Vec<Vec<String>> {
        let text = |cell: &PrintedCell<'_>| match cell {
            PrintedCell::Text(text) => text.plain(),
            PrintedCell::Figure(text) => text.clone(),
        };
        let printed = table.printed();
        std::iter::once(printed.head.clone())
            .chain(printed.rows.iter().map(|row| row.iter().map(text).collect()))
            .collect()
    }

    #[test]
    fn the_unit_stands_in_the_head_of_the_only_column_of_times_or_in_the_first() {
        let mut table = Table::new(["robot", "n", "p99"]);
        table.row([Cell::text("arm-7"), Cell::Count(1_234), Cell::Bucket { above: 13_509_772, up_to: 13_656_883 }]);
        assert_eq!(texts(&table), [["robot", "n", "p99 (ms)"], ["arm-7", "1\u{202f}234", "13.51–13.66"]]);
        let mut table = Table::new(["hop", "p50", "p99"]);
        table.row([Cell::text("a → b"), Cell::Time(300), Cell::Estimate { low: 1_300, value: 1_900, high: 6_000 }]);
        assert_eq!(texts(&table), [["hop (µs)", "p50", "p99"], ["a → b", "0.300", "1.9 (1.3–6.0)"]]);
    }

    #[test]
    fn the_unit_stands_in_the_cells_where_one_for_all_would_print_zeros() {
        let mut table = Table::new(["cause", "p50", "p99"]);
        for n in 1..=12 {
            table.row([Cell::text("cpu"), Cell::Time(n * 1_000_000), Cell::Time(n * 2_000_000)]);
        }
        table.row([Cell::text("lock"), Cell::Time(30), Cell::Time(0)]);
        table.row([Cell::text("disk"), Cell::Time(3), Cell::Time(4_000_000_000)]);
        let texts = texts(&table);
        assert_eq!(texts[0], ["cause", "p50", "p99"]);
        assert_eq!(texts[2], ["cpu", "2.00 ms", "4.00 ms"]);
        assert_eq!(texts[13], ["lock", "30 ns", "0"]);
        assert_eq!(texts[14], ["disk", "3 ns", "4.00 s"]);
    }

    #[test]
    fn bars_are_shares_of_themselves_or_of_the_largest() {
        let mut table = Table::new(["", "share", "n"]);
        table.row([Cell::Empty, Cell::Share(0.25), Cell::Count(1)]);
        table.row([Cell::Empty, Cell::Missing, Cell::Count(4)]);
        assert_eq!((table.sizes(1), table.sizes(2)), (vec![Some(0.25), None], vec![Some(0.25), Some(1.0)]));
    }

    proptest! {
        #[test]
        fn no_time_that_is_not_zero_prints_as_zero(exponents in prop::collection::vec(0.0f64..19.0, 1..40)) {
            let mut table = Table::new(["", "t", "pieces"]);
            for pair in exponents.chunks(2) {
                let [a, b] = [pair[0], pair[pair.len() - 1]].map(|exponent| 10f64.powf(exponent) as u64);
                table.row([Cell::Empty, Cell::Time(a), Cell::Bucket { above: a.min(b), up_to: a.max(b) }]);
            }
            for row in &texts(&table)[1..] {
                for figure in row[1..].iter().flat_map(|text| text.split('–')) {
                    prop_assert!(figure.contains(|c: char| ('1'..='9').contains(&c)), "{row:?}");
                }
            }
        }
    }
}
