//! The four tables and their columns.

use taut_analysis::{CauseRow, HopRow, MessageRow, Row, StateRow};

use crate::column::{Column, Texts, Value, Values};

/// A table by columns of equal length.
#[derive(Clone, Debug)]
pub struct Table {
    /// "messages", "hops", "causes" or "thread_states"; "fleet" of [`crate::Histograms`].
    pub name: &'static str,
    /// In the order of docs/reference/export.md or docs/reference/fleet.md.
    pub columns: Vec<Column>,
}

/// All tables of a recording.
#[derive(Clone, Debug)]
pub struct Tables([Table; 4]);

impl Table {
    pub(crate) fn new(name: &'static str, columns: Vec<Column>) -> Table {
        Table { name, columns }
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::rows)
    }

    /// Forgets the rows.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Column::clear);
    }

    pub(crate) fn push<'v>(&mut self, values: impl IntoIterator<Item = Value<'v>>) {
        let mut columns = self.columns.iter_mut();
        values.into_iter().for_each(|value| columns.next().expect("a column for each value").push(value));
        debug_assert!(columns.next().is_none(), "a value for each column");
    }
}

impl Tables {
    /// Messages, hops, causes, thread states.
    pub fn all(&self) -> &[Table; 4] {
        &self.0
    }

    /// The same, to keep.
    pub fn into_all(self) -> [Table; 4] {
        self.0
    }

    /// Takes in a row; gives the table that it went to, and its place among all.
    pub fn take(&mut self, row: Row<'_>) -> (usize, &mut Table) {
        let at = match row {
            Row::Message(_) => 0,
            Row::Hop(_) => 1,
            Row::Cause(_) => 2,
            Row::State(_) => 3,
        };
        let table = &mut self.0[at];
        match row {
            Row::Message(row) => message(table, &row),
            Row::Hop(row) => hop(table, &row),
            Row::Cause(row) => cause(table, &row),
            Row::State(row) => state(table, &row),
        }
        (at, table)
    }
}

impl Default for Tables {
    fn default() -> Tables {
        use Values::{Flag, Id, Int, Maybe, Number, Text};
        // Of what kind, and yet without a value.
        let (text, int, number) = (Text(Texts::default()), Int(Vec::new()), Number(Vec::new()));
        let (flag, id, maybe) = (Flag(Vec::new()), Id(Vec::new()), Maybe(Vec::new()));
        let column = |name, values: &Values, says| Column::new(name, values.clone(), says);
        let chain = || column("chain", &text, "the chain's name");
        let nth = || column("nth", &number, "the message's number in its chain, by start, from 0; a key with `chain`");
        let message = || column("message", &id, "the message's id as stamped");
        let hop = || column("hop", &number, "the hop's number, from 1; after missed points that of the last hop");
        let from = || column("from", &text, "the point that the message left");
        let to = || column("to", &text, "the next point that it passed");
        let start = |says| column("start_ns", &int, says);
        let duration = |says| column("duration_ns", &int, says);
        let of_hop = |rest| [vec![chain(), nth(), message(), hop(), from(), to()], rest].concat();
        let startup = || column("startup", &flag, "during start-up: not in the report's delays");
        Tables([
            Table::new(
                "messages",
                vec![
                    chain(),
                    nth(),
                    message(),
                    start("its first stamp, CLOCK_MONOTONIC"),
                    column("end_ns", &int, "its last stamp or its outcome, CLOCK_MONOTONIC"),
                    column("way_ns", &maybe, "from the chain's first to its last point; null if it did not pass both"),
                    column("outcome", &text, "applied, ended_early, the reason of a drop, in_flight, or unexplained"),
                    startup(),
                ],
            ),
            Table::new(
                "hops",
                of_hop(vec![
                    start("when it passed `from`, CLOCK_MONOTONIC"),
                    duration("until it passed `to`"),
                    column("from_thread", &text, "the thread that stamped at `from`, comm/tid"),
                    column("to_thread", &text, "the thread that stamped at `to`"),
                    startup(),
                ]),
            ),
            Table::new(
                "causes",
                of_hop(vec![
                    start("when the stretch begins, CLOCK_MONOTONIC"),
                    duration("the stretches of a hop sum to its duration"),
                    column("cause", &text, "what the time was spent on, a word of causes.md"),
                    column("detail", &text, "which lock, descriptor, interrupt …, or null"),
                    column("thread", &text, "the thread on the path, comm/tid"),
                    column(
                        "by",
                        &text,
                        "responsible thread: lock holder, preempting thread or awaited peer; null: unknown",
                    ),
                    startup(),
                ]),
            ),
            Table::new(
                "thread_states",
                vec![
                    column("tid", &number, "the thread's number on the host"),
                    column("pid", &maybe, "its process's; null if not known"),
                    column("thread", &text, "its name then, comm/tid"),
                    column("recorded", &flag, "it is of the recorded process tree"),
                    start("when the state begins, CLOCK_MONOTONIC"),
                    duration("how long it lasts"),
                    column(
                        "state",
                        &text,
                        "running, preempted, woken (not yet running), blocked, uninterruptible, stopped, or unknown",
                    ),
                    column("cpu", &number, "where it runs, ran last, or was woken for"),
                    column("by", &text, "woken: the waking thread; preempted: the thread given the CPU"),
                ],
            ),
        ])
    }
}

fn message(table: &mut Table, row: &MessageRow<'_>) {
    use Value::{Flag, Id, Int, Maybe, Number, Text};
    table.push([
        Text(row.chain),
        Number(row.nth),
        Id(row.id),
        Int(row.start_ns),
        Int(row.end_ns),
        Maybe(row.way_ns),
        Text(row.outcome),
        Flag(row.is_startup),
    ]);
}

/// What the rows of a hop begin with.
fn of_hop<'v>(row: &HopRow<'v>) -> [Value<'v>; 6] {
    use Value::{Id, Number, Text};
    [Text(row.chain), Number(row.nth), Id(row.id), Number(u64::from(row.hop)), Text(row.from), Text(row.to)]
}

fn hop(table: &mut Table, row: &HopRow<'_>) {
    use Value::{Flag, Int, Text};
    table.push(of_hop(row).into_iter().chain([
        Int(row.start_ns),
        Int(row.duration_ns),
        Text(row.from_thread),
        Text(row.to_thread),
        Flag(row.is_startup),
    ]));
}

fn cause(table: &mut Table, row: &CauseRow<'_>) {
    use Value::{Flag, Int, Text};
    table.push(of_hop(&row.hop).into_iter().chain([
        Int(row.start_ns),
        Int(row.duration_ns),
        Text(row.cause.word()),
        Text(row.detail),
        Text(row.thread),
        Text(row.by),
        Flag(row.hop.is_startup),
    ]));
}

fn state(table: &mut Table, row: &StateRow<'_>) {
    use Value::{Flag, Int, Maybe, Number, Text};
    table.push([
        Number(row.tid as u64),
        Maybe(row.pid.map(|pid| pid as u64)),
        Text(row.thread),
        Flag(row.is_recorded),
        Int(row.start_ns),
        Int(row.duration_ns),
        Text(row.state),
        Number(u64::from(row.cpu)),
        Text(row.by),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of each kind.
    pub(crate) fn rows() -> [Row<'static>; 4] {
        let hop = HopRow { chain: "arm", nth: 3, id: 9, hop: 1, from: "a", to: "b", ..HopRow::default() };
        [
            Row::Message(MessageRow { chain: "arm", nth: 3, id: u64::MAX, outcome: "stale", ..MessageRow::default() }),
            Row::Hop(hop),
            Row::Cause(CauseRow { hop, duration_ns: 5, by: "python3/7", ..CauseRow::default() }),
            Row::State(StateRow { tid: 7, state: "running", ..StateRow::default() }),
        ]
    }

    #[test]
    fn a_row_fills_every_column_of_its_own_table() {
        let mut tables = Tables::default();
        for (place, row) in rows().into_iter().enumerate() {
            let (at, table) = tables.take(row);
            assert_eq!(at, place);
            assert!(table.columns.iter().all(|column| column.rows() == 1), "{}", table.name);
        }
    }

    #[test]
    fn a_text_is_kept_once_and_an_empty_one_is_null() {
        let mut tables = Tables::default();
        for by in ["x/1", "", "x/1", "y/2"] {
            tables.take(Row::State(StateRow { by, ..StateRow::default() }));
        }
        let by = tables.all()[3].columns.last().unwrap();
        let Values::Text(texts) = &by.values else { panic!("{by:?}") };
        assert_eq!(texts.keys, [Some(0), None, Some(0), Some(1)]);
        assert_eq!(texts.words, ["x/1", "y/2"]);
    }

    #[test]
    fn the_documentation_has_every_column() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/export.md");
        let text = std::fs::read_to_string(path).unwrap();
        // A row that an earlier table has is not repeated.
        let mut listed: Vec<String> = Vec::new();
        for table in Tables::default().all() {
            let (_, section) = text.split_once(&format!("### {}\n", table.name)).expect(table.name);
            let section = section.split("\n#").next().unwrap();
            let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
            let row = |column: &Column| format!("| `{}` | {} | {} |", column.name, column.arrow_type(), column.says);
            let expected: Vec<String> = table.columns.iter().map(row).filter(|row| !listed.contains(row)).collect();
            assert_eq!(rows, expected, "{}", table.name);
            listed.extend(expected);
        }
    }
}
