//! What texts for a terminal without a document are made of: tables, bars, lines of a width.

use comfy_table::{CellAlignment, Table, presets};
use taut_analysis::Cause;
use taut_document::Style;

/// Cells of the longest bar.
const BAR_WIDTH: f64 = 10.0;

/// The longest hop or reason name that still leaves room for the figures in 100 columns.
const NAME_WIDTH: usize = 32;

/// A letter on its cause's colour: reds for what was taken, blues for waits, none for the thread's own work.
pub(crate) fn on_cause(style: Style, letter: char, cause: Option<Cause>) -> String {
    use Cause::*;
    let background = match cause {
        None | Some(Cpu | Syscall) => return letter.to_string(),
        Some(Lock | Gil) => 45,
        Some(Preempted | Throttled | Stopped | Hypervisor | Irq) => 41,
        Some(Wakeup | TimerSlack | PageFault) => 43,
        Some(Io | Network | Sleep | Disk | Queued | Executor) => 44,
        Some(Unknown) => 100,
    };
    style.ansi(background, &letter.to_string())
}

pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    align_right(&mut table, 1..header.len());
    table
}

pub(crate) fn align_right(table: &mut Table, columns: std::ops::Range<usize>) {
    for i in columns {
        if let Some(column) = table.column_mut(i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

pub(crate) fn bar(share: f64) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * BAR_WIDTH * 8.0).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(EIGHTHS[eighths % 8]);
    }
    text
}

pub(crate) fn indent(table: &Table) -> String {
    table.trim_fmt().lines().map(|line| format!(" {line}\n")).collect()
}

/// The words of a text; a figure and its unit are one, and so is what a no-break space holds together.
fn glued(text: &str) -> Vec<String> {
    const UNITS: [&str; 6] = ["ns", "µs", "ms", "s", "kHz", "%"];
    let is_unit = |word: &str| UNITS.contains(&word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%'));
    let mut words: Vec<String> = Vec::new();
    for word in text.split_ascii_whitespace() {
        match words.last_mut() {
            Some(figure) if is_unit(word) && figure.ends_with(|c: char| c.is_ascii_digit()) => {
                *figure += &format!(" {word}")
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Lines of at most so many columns; a word that is longer than one is cut.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    let fitting = |word: String| -> Vec<String> {
        let characters: Vec<char> = word.chars().collect();
        characters.chunks(width).map(|part| part.iter().collect()).collect()
    };
    for word in glued(text).into_iter().flat_map(fitting) {
        let line = lines.last_mut().expect("starts with one line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word);
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines.join("\n")
}

/// "a.b → a.c" as "b → c" where both share the prefix, cut in the middle of long names.
pub(crate) fn hop_name(from: &str, to: &str) -> String {
    let (from, to) = match (from.split_once('.'), to.split_once('.')) {
        (Some((a, _)), Some((b, rest))) if a == b => (from.to_owned(), rest.to_owned()),
        _ => (from.to_owned(), to.to_owned()),
    };
    let whole = format!("{from} → {to}");
    if whole.chars().count() <= NAME_WIDTH { whole } else { cut(&format!("{from}\n  → {to}")) }
}

/// Breaks lines longer than a name may be.
pub(crate) fn cut(text: &str) -> String {
    cut_at(text, NAME_WIDTH)
}

pub(crate) fn cut_at(text: &str, width: usize) -> String {
    let pieces = |line: &str| {
        let characters: Vec<char> = line.chars().collect();
        let mut rest = characters.as_slice();
        let mut pieces: Vec<String> = Vec::new();
        while rest.len() > width {
            // Best before a word or a part of a name, if that is not near the beginning.
            let is_joint =
                |at: usize| rest[at] == '/' && rest[at - 1] != ' ' || matches!(rest[at - 1], '_' | '.' | ':');
            let is_break = |at: &usize| rest[*at] == ' ' || is_joint(*at);
            let at = (width / 2..=width).rev().find(is_break).unwrap_or(width);
            let (piece, after) = rest.split_at(at);
            pieces.push(piece.iter().collect());
            rest = if after[0] == ' ' { &after[1..] } else { after };
        }
        pieces.push(rest.iter().collect());
        pieces.join("\n    ")
    };
    text.lines().map(pieces).collect::<Vec<_>>().join("\n")
}
