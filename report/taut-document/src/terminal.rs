//! The terminal form. No line is wider than the terminal, whatever the names are; no figure is ever cut.

use crate::{
    Block, Document, Finding, Lanes, Section, Style, Table, Text, Tone,
    lanes::{Activity, LaneItem},
    table::{Printed, PrintedCell},
    units::bar,
    wrap::{cut, line, padded, shortened, styled, width, wrapped},
};

/// Before what stands below a heading.
const INDENT: usize = 2;
/// Between columns of a table.
const GAP: usize = 2;
/// A column that wraps does so down to this before another column goes.
const WRAPS_TO: usize = 24;
/// Where no column may go, text has no less than this.
const LEAST: usize = 8;
/// Cells of the longest bar.
const BAR: usize = 10;
/// Cells of a lane, and of its name.
const LANE: usize = 72;
const LANE_NAME: usize = 32;

/// What a command prints.
pub fn terminal(document: &Document, style: Style) -> String {
    let mut out = Out { lines: Vec::new(), style };
    out.paragraph(0, &Text::from(document.title.as_str()), |text| style.bold(text));
    out.paragraph(0, &document.measured, |text| style.dim(text));
    if !document.headline.is_empty() {
        out.space();
        out.paragraph(0, &document.headline, str::to_owned);
    }
    document.sections.iter().filter(|section| section.is_in_terminal()).for_each(|section| out.section(section));
    if !document.notes.is_empty() {
        out.space();
    }
    for note in &document.notes {
        out.labelled(0, &style.dim("note:"), "note:".len(), note);
    }
    out.lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

struct Out {
    lines: Vec<String>,
    style: Style,
}

impl Out {
    fn section(&mut self, section: &Section) {
        if !section.title.is_empty() {
            self.space();
            let indent = if section.level <= 1 { 0 } else { INDENT };
            let style = self.style;
            self.paragraph(indent, &Text::from(section.title.as_str()), |text| style.bold(text));
        }
        for block in &section.blocks {
            match block {
                Block::Text(text) | Block::Image { text, .. } => self.text(text),
                Block::Findings(findings) => self.findings(findings),
                Block::Table(table) => self.table(table),
                Block::Chart(chart) => self.text(&chart.finding),
                Block::Lanes(lanes) => self.lanes(lanes),
                Block::Code(code) => self.code(code),
            }
        }
    }

    fn space(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    fn push(&mut self, indent: usize, text: &str) {
        self.lines.push(format!("{}{text}", " ".repeat(indent)));
    }

    fn room(&self, indent: usize) -> usize {
        self.style.width.saturating_sub(indent).max(1)
    }

    fn text(&mut self, text: &Text) {
        if !text.is_empty() {
            self.space();
            self.paragraph(INDENT, text, str::to_owned);
        }
    }

    fn paragraph(&mut self, indent: usize, text: &Text, show: impl Fn(&str) -> String) {
        if text.is_empty() {
            return;
        }
        for line in styled(text, self.room(indent), self.style) {
            self.push(indent, &show(&line));
        }
    }

    /// A label that takes so many columns, and text that hangs at its right.
    fn labelled(&mut self, indent: usize, label: &str, columns: usize, text: &Text) {
        // Without a label the first line stands out to the left.
        let (label, hang) = match columns {
            0 => (String::new(), indent + INDENT),
            _ => (format!("{label} "), indent + columns + 1),
        };
        for (at, line) in styled(text, self.room(hang), self.style).iter().enumerate() {
            match at {
                0 => self.push(indent, &format!("{label}{line}")),
                _ => self.push(hang, line),
            }
        }
    }

    fn findings(&mut self, findings: &[Finding]) {
        let style = self.style;
        let most = (style.width / 3).min(24);
        let labels: Vec<String> = findings.iter().map(|of| shortened(&line(&of.label), most)).collect();
        let columns = labels.iter().map(|label| width(label)).max().unwrap_or(0);
        if !findings.is_empty() {
            self.space();
        }
        for (finding, label) in findings.iter().zip(labels) {
            let mut text = finding.text.clone();
            if let Some(evidence) = &finding.evidence {
                text = text.and(format!(" ({})", evidence.sentence()));
            }
            let label = style.bold(&style.tone(finding.tone, &padded(&label, columns, true)));
            self.labelled(INDENT, &label, columns, &text);
            let indent = INDENT + if columns == 0 { INDENT } else { columns + 1 };
            let words = finding.details.iter().map(|(word, _)| shortened(&line(word), style.width / 4));
            let words: Vec<String> = words.collect();
            let columns = words.iter().map(|word| width(word)).max().unwrap_or(0);
            for (word, (_, text)) in words.iter().zip(&finding.details) {
                self.labelled(indent, &style.dim(&padded(word, columns, true)), columns, text);
            }
        }
    }

    fn code(&mut self, code: &str) {
        self.space();
        let room = self.room(2 * INDENT);
        for text in code.lines().flat_map(|text| cut(&line(text), room)) {
            self.push(2 * INDENT, &text);
        }
    }

    fn table(&mut self, table: &Table) {
        if table.rows.is_empty() {
            return;
        }
        self.space();
        let style = self.style;
        self.paragraph(INDENT, &table.caption, |text| style.dim(text));
        let printed = table.printed();
        let shown = table.rows.len().min(table.shown);
        let room = self.room(INDENT);
        let mut grid = Grid::of(table, &printed, shown, true);
        let mut layout = grid.layout(room);
        // A bar repeats its figure: it goes before any column does.
        if layout.as_ref().is_none_or(|layout| !layout.left_out.is_empty()) {
            grid = Grid::of(table, &printed, shown, false);
            layout = grid.layout(room);
        }
        match layout {
            Some(layout) => self.rows(table, &grid, &layout),
            None => self.stacked(table, &grid),
        }
        if shown < table.rows.len() {
            let more =
                format!("and {} more; --format html has all", crate::units::count((table.rows.len() - shown) as u64));
            self.paragraph(INDENT, &Text::from(more), |text| style.dim(text));
        }
    }

    fn rows(&mut self, table: &Table, grid: &Grid, layout: &Layout) {
        let style = self.style;
        for row in 0..grid.cells.len() {
            let tone = row.checked_sub(1).map_or(Tone::Plain, |row| table.rows[row].tone);
            let cells = layout.kept.iter().zip(&layout.widths);
            let cells: Vec<Vec<String>> = cells.map(|(column, columns)| grid.lines(row, *column, *columns)).collect();
            let tall = cells.iter().map(Vec::len).max().unwrap_or(1);
            for at in 0..tall {
                let mut text = String::new();
                for ((column, columns), lines) in layout.kept.iter().zip(&layout.widths).zip(&cells) {
                    if !text.is_empty() {
                        text += &" ".repeat(GAP);
                    }
                    text += &padded(lines.get(at).map_or("", String::as_str), *columns, grid.is_text[*column]);
                }
                let text = text.trim_end();
                self.push(INDENT, &if row == 0 { style.dim(text) } else { style.tone(tone, text) });
            }
        }
        if !layout.left_out.is_empty() {
            let names: Vec<String> =
                layout.left_out.iter().map(|column| grid.cells[0][*column].trim().to_owned()).collect();
            let text = Text::from(format!("no room for {}", names.join(", ")));
            self.paragraph(INDENT, &text, |text| style.dim(text));
        }
    }

    /// Where nothing else fits: each row as lines of its own.
    fn stacked(&mut self, table: &Table, grid: &Grid) {
        let style = self.style;
        for (row, cells) in grid.cells.iter().enumerate().skip(1) {
            let indent = INDENT + grid.indents[row].min(self.style.width / 4);
            let tone = table.rows[row - 1].tone;
            for (column, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.trim().is_empty()) {
                let head = grid.cells[0][column].trim();
                let text = if column == 0 || head.is_empty() {
                    cell.trim().to_owned()
                } else {
                    format!("{head} {}", cell.trim())
                };
                let indent = if column == 0 { indent } else { indent + INDENT };
                let text = Text::from(text);
                self.paragraph(indent, &text, |line| style.tone(tone, line));
            }
        }
    }

    fn lanes(&mut self, lanes: &Lanes) {
        let Some(item) = lanes.items.first() else { return };
        let style = self.style;
        self.space();
        self.paragraph(INDENT, &item.title, |text| style.bold(text));
        let names = item.rows.iter().map(|row| match row.group.as_str() {
            "" => line(&row.name),
            group => line(&format!("{group}: {}", row.name)),
        });
        let names: Vec<String> = names.collect();
        let most = (style.width / 3).min(LANE_NAME);
        let name = names.iter().map(|name| width(name)).max().unwrap_or(0).min(most);
        // Two bars, and a blank between name and lane.
        let cells = LANE.min(self.room(INDENT + name + 3));
        for (row, label) in names.iter().enumerate() {
            let text: String = drawn(lanes, item, row, cells)
                .into_iter()
                .map(|(mark, class)| match class.and_then(|class| lanes.classes.get(class)) {
                    Some(class) => style.ground(class.tone, &mark.to_string()),
                    None => mark.to_string(),
                })
                .collect();
            self.push(INDENT, &format!("{} │{text}│", padded(&shortened(label, name), name, false)));
        }
        let seen = |at: &usize| item.pieces.iter().any(|piece| piece.class == *at);
        let key = (0..lanes.classes.len()).filter(seen).map(|at| {
            let class = &lanes.classes[at];
            format!("{} {}", class.letter, line(&class.name))
        });
        let key = key.collect::<Vec<_>>().join(", ");
        for text in wrapped(&key, self.room(INDENT)) {
            self.push(INDENT, &text);
        }
        let activities = [Activity::Running, Activity::Ready, Activity::Waiting];
        let off = activities.map(|of| format!("{} {}", of.mark(), of.word())).join(", ");
        if !item.states.is_empty() {
            self.paragraph(INDENT, &Text::from(format!("else: {off}")), |text| style.dim(text));
        }
        self.table(&item.table);
    }
}

/// What a lane's cells show: a letter for a piece, else a mark for what the row did.
fn drawn(lanes: &Lanes, item: &LaneItem, row: usize, cells: usize) -> Vec<(char, Option<usize>)> {
    let length = u128::from(item.to_ns.saturating_sub(item.from_ns).max(1));
    let cell =
        |ns: u64| (u128::from(ns.saturating_sub(item.from_ns)) * cells as u128 / length).min(cells as u128) as usize;
    let mut marks = vec![(' ', None); cells];
    for state in item.states.iter().filter(|state| state.row == row) {
        let (from, to) = (cell(state.from_ns), cell(state.to_ns));
        marks[from.min(to)..to].iter_mut().for_each(|mark| mark.0 = state.activity.mark());
    }
    // Short pieces first: a cell shows the longest piece that touches it.
    let mut pieces: Vec<_> = item.pieces.iter().filter(|piece| piece.row == row).collect();
    pieces.sort_by_key(|piece| piece.to_ns.saturating_sub(piece.from_ns));
    for piece in pieces {
        let from = cell(piece.from_ns).min(cells.saturating_sub(1));
        let to = cell(piece.to_ns).max(from + 1).min(cells);
        let letter = lanes.classes.get(piece.class).map_or('?', |class| class.letter);
        // A letter that is no letter of one column would move the rest.
        let letter = if width(&letter.to_string()) == 1 && !letter.is_control() { letter } else { '?' };
        marks[from..to].fill((letter, Some(piece.class)));
    }
    marks
}

/// All texts of a table, its head as row 0, harmless and each on one line.
struct Grid {
    cells: Vec<Vec<String>>,
    indents: Vec<usize>,
    is_text: Vec<bool>,
    /// Cells that may be broken; all others are figures.
    breaks: Vec<Vec<bool>>,
    wraps: Vec<bool>,
    priority: Vec<u8>,
}

struct Layout {
    kept: Vec<usize>,
    widths: Vec<usize>,
    left_out: Vec<usize>,
}

impl Grid {
    fn of(table: &Table, printed: &Printed<'_>, shown: usize, has_bars: bool) -> Grid {
        let mut cells = vec![printed.head.iter().map(|name| line(name)).collect::<Vec<_>>()];
        let mut breaks = vec![vec![true; printed.head.len()]];
        let mut indents = vec![0];
        let bars: Vec<Bars> = (0..table.columns.len()).map(|at| Bars::of(table, printed, at, has_bars)).collect();
        for (row, printed) in printed.rows.iter().enumerate().take(shown) {
            let indent = usize::from(table.rows[row].indent) * INDENT;
            let cell = |(at, cell): (usize, &PrintedCell<'_>)| match at {
                0 => format!("{}{}", " ".repeat(indent), text_of(cell)),
                _ => bars[at].beside(row, text_of(cell)),
            };
            cells.push(printed.iter().enumerate().map(cell).collect());
            breaks.push(printed.iter().map(|cell| matches!(cell, PrintedCell::Text(_))).collect());
            indents.push(indent);
        }
        let column = |at: usize| &table.columns[at];
        Grid {
            cells,
            indents,
            breaks,
            is_text: printed.is_text.clone(),
            wraps: (0..table.columns.len()).map(|at| column(at).wraps).collect(),
            priority: (0..table.columns.len()).map(|at| column(at).priority).collect(),
        }
    }

    /// The widths of the columns and of what may not be broken in them.
    fn natural(&self, column: usize) -> usize {
        self.cells.iter().map(|row| width(&row[column])).max().unwrap_or(0)
    }

    fn unbroken(&self, column: usize) -> usize {
        let figures = self.cells.iter().zip(&self.breaks).filter(|(_, breaks)| !breaks[column]);
        figures.map(|(row, _)| width(&row[column])).max().unwrap_or(0)
    }

    /// A column's text in its width.
    fn lines(&self, row: usize, column: usize, columns: usize) -> Vec<String> {
        let text = &self.cells[row][column];
        if width(text) <= columns || !self.breaks[row][column] {
            return vec![text.clone()];
        }
        // What does not fit on the first line hangs, as far as the column has room for that.
        let indent = if column == 0 { self.indents[row].min(columns / 2) } else { 0 };
        let hang = if column == 0 && row > 0 { (self.indents[row] + INDENT).min(columns / 2) } else { 0 };
        let lines = wrapped(text.trim_start(), columns - hang.max(indent));
        let before = |at: usize| " ".repeat(if at == 0 { indent } else { hang });
        lines.into_iter().enumerate().map(|(at, line)| before(at) + &line).collect()
    }

    /// What a column needs at least: its figures, and its head word by word.
    fn body(&self, column: usize) -> usize {
        let body = self.cells[1..].iter().map(|row| width(&row[column]));
        body.chain(self.cells[0][column].split(' ').map(width)).max().unwrap_or(0)
    }

    /// First heads and text wrap, then columns go by their priority, then text wraps more; `None` where all that is not enough.
    fn layout(&self, room: usize) -> Option<Layout> {
        let all = 0..self.wraps.len();
        let natural: Vec<usize> = all.clone().map(|column| self.natural(column)).collect();
        let least = |column: &usize| match self.wraps[*column] {
            true => natural[*column].min(WRAPS_TO).max(self.unbroken(*column)),
            false => self.body(*column),
        };
        let sum = |kept: &[usize], width: &dyn Fn(&usize) -> usize| {
            kept.iter().map(width).sum::<usize>() + GAP * kept.len().saturating_sub(1)
        };
        let mut kept: Vec<usize> = all.collect();
        let mut left_out = Vec::new();
        while sum(&kept, &least) > room {
            let last = kept.iter().enumerate().max_by_key(|(_, column)| self.priority[**column]);
            match last.filter(|(_, column)| self.priority[**column] > 0).map(|(at, _)| at) {
                Some(at) => left_out.push(kept.remove(at)),
                None => break,
            }
        }
        left_out.sort_unstable();
        let mut widths: Vec<usize> = kept.iter().map(|column| natural[*column]).collect();
        let may_shrink_to = |column: usize, is_last_resort: bool| match (is_last_resort, self.wraps[column]) {
            (false, _) => least(&column),
            (true, _) => natural[column].min(LEAST).max(self.unbroken(column)),
        };
        for is_last_resort in [false, true] {
            while widths.iter().sum::<usize>() + GAP * kept.len().saturating_sub(1) > room {
                let shrinks = |at: &usize| widths[*at] > may_shrink_to(kept[*at], is_last_resort);
                let Some(widest) = (0..kept.len()).filter(shrinks).max_by_key(|at| widths[*at]) else { break };
                widths[widest] -= 1;
            }
        }
        let fits = widths.iter().sum::<usize>() + GAP * kept.len().saturating_sub(1) <= room;
        fits.then_some(Layout { kept, widths, left_out })
    }
}

fn text_of(cell: &PrintedCell<'_>) -> String {
    match cell {
        PrintedCell::Text(text) => line(&text.plain()),
        PrintedCell::Figure(text) => line(text),
    }
}

/// The bars of a column, if it has any.
struct Bars {
    shares: Vec<Option<f64>>,
    /// Of the widest figure: bars begin at one place, and figures end at one.
    figures: usize,
    /// Of the longest bar.
    longest: usize,
}

impl Bars {
    fn of(table: &Table, printed: &Printed<'_>, column: usize, is_wanted: bool) -> Bars {
        let figures = printed.rows.iter().map(|row| width(&text_of(&row[column]))).max().unwrap_or(0);
        let shares = if is_wanted && table.columns[column].bar { table.sizes(column) } else { Vec::new() };
        let longest = shares.iter().flatten().map(|share| width(&bar(*share, BAR))).max().unwrap_or(0);
        Bars { shares, figures, longest }
    }

    fn beside(&self, row: usize, figure: String) -> String {
        match self.shares.get(row).copied().flatten() {
            Some(share) => {
                format!("{} {}", padded(&bar(share, BAR), self.longest, true), padded(&figure, self.figures, false))
            }
            None => figure,
        }
    }
}
