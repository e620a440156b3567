//! Lines of a terminal: text in so many columns, by the room that its characters take (Unicode's East Asian Width).

use unicode_width::UnicodeWidthStr;

use crate::{
    Style, Text,
    escape::{Form, escaped},
    text::Part,
};

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// A text of others on one line, harmless.
pub(crate) fn line(text: &str) -> String {
    escaped(text, Form::Terminal)
}

/// Lines of at most so many columns. A figure stays with its unit; a word that is longer than a line is cut.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = vec![String::new()];
    for word in glued(text).iter().flat_map(|word| cut(word, columns)) {
        let line = lines.last_mut().expect("starts with one line");
        if !line.is_empty() && width(line) + 1 + width(&word) > columns {
            lines.push(word);
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines
}

/// As [`wrapped`], with the parts that stand out.
pub(crate) fn styled(text: &Text, columns: usize, style: Style) -> Vec<String> {
    let parts: Vec<(String, bool)> =
        text.0.iter().map(|part| (line(part.text()), matches!(part, Part::Strong(_)))).collect();
    let plain: String = parts.iter().map(|(text, _)| text.as_str()).collect();
    let lines = wrapped(&plain, columns);
    if !style.color || parts.iter().all(|(_, is_strong)| !is_strong) {
        return lines;
    }
    // Lines have the characters of the text in its order, but for the blanks between words.
    let mut source = parts.iter().flat_map(|(text, is_strong)| text.chars().map(|c| (c, *is_strong)));
    let mut strong = |c: char| source.find(|(of, _)| *of == c || (c == ' ' && of.is_ascii_whitespace()));
    let mut out = Vec::with_capacity(lines.len());
    for line in lines {
        let mut runs: Vec<(String, bool)> = Vec::new();
        for c in line.chars() {
            let is_strong = strong(c).is_some_and(|(_, is_strong)| is_strong);
            match runs.last_mut() {
                Some((run, same)) if *same == is_strong => run.push(c),
                _ => runs.push((c.to_string(), is_strong)),
            }
        }
        out.push(runs.into_iter().map(|(run, is_strong)| if is_strong { style.bold(&run) } else { run }).collect());
    }
    out
}

/// Cut to so many columns, with a sign that it was.
pub(crate) fn shortened(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if width(&out) + 1 > columns {
            out.pop();
            break;
        }
    }
    out + "…"
}

/// The text at the left or right of so many columns.
pub(crate) fn padded(text: &str, columns: usize, is_text: bool) -> String {
    let room = " ".repeat(columns.saturating_sub(width(text)));
    if is_text { format!("{text}{room}") } else { format!("{room}{text}") }
}

/// Pieces of at most so many columns, cut between the parts of a name where they are not short. A character that is wider than all of
/// them is left out.
pub(crate) fn cut(word: &str, columns: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for c in word.chars() {
        piece.push(c);
        if width(&piece) <= columns {
            continue;
        }
        piece.pop();
        let rest =
            piece.split_off(joint(&piece, c).filter(|at| width(&piece[..*at]) >= columns / 2).unwrap_or(piece.len()));
        if !piece.is_empty() {
            pieces.push(std::mem::replace(&mut piece, rest));
        }
        piece.push(c);
        if width(&piece) > columns {
            piece.clear();
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// Where the last part of a name begins: before `/`, or after `_`, `.` or `:`.
fn joint(piece: &str, next: char) -> Option<usize> {
    let ends_part = |c: char| matches!(c, '_' | '.' | ':');
    let at = piece.char_indices().rev().find_map(|(at, c)| match c {
        '/' => Some(at),
        c if ends_part(c) => Some(at + c.len_utf8()),
        _ => None,
    });
    if next == '/' { Some(piece.len()) } else { at }
}

/// The words of a text; a figure and its unit are one.
fn glued(text: &str) -> Vec<String> {
    const UNITS: [&str; 9] = ["ns", "µs", "ms", "s", "Hz", "kHz", "MHz", "%", "pp"];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_stays_with_its_unit_and_wide_characters_take_two_columns() {
        assert_eq!(wrapped("it takes 12 ms, or more", 12), ["it takes", "12 ms, or", "more"]);
        assert_eq!(wrapped("機械 機械", 6), ["機械", "機械"]);
        assert_eq!(cut("機械機", 3), ["機", "械", "機"]);
        assert_eq!((shortened("abcdef", 4), shortened("機械機", 4)), ("abc…".into(), "機…".into()));
        assert_eq!(wrapped("", 10), [""]);
    }

    #[test]
    fn a_long_name_is_cut_between_its_parts() {
        assert_eq!(cut("command_pre_hardware_write", 24), ["command_pre_hardware_", "write"]);
        assert_eq!(cut("/robot/camera/image_raw", 14), ["/robot/camera", "/image_raw"]);
        assert_eq!(cut("a.cccccccccccc", 8), ["a.cccccc", "cccccc"]);
    }

    #[test]
    fn what_stands_out_does_so_on_every_line() {
        let text = Text::from("The hop ").strong("a → b").and(" is late by ").strong("12 ms");
        let style = Style { color: true, width: 12 };
        let bold = |text: &str| format!("\x1b[1m{text}\x1b[0m");
        let expected = [format!("The hop {}", bold("a →")), format!("{} is late by", bold("b")), bold("12 ms")];
        assert_eq!(styled(&text, 12, style), expected);
    }
}
