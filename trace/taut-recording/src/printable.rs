//! Names come from programs and files of others, and go to terminals: one that holds a line break could forge a line of
//! a report, one with an escape sequence could rewrite the screen. So control characters in names are replaced here.

use std::{fmt::Write, path::Path};

/// The text on one line, control characters and those that turn the direction of writing as `\u{1b}`; mostly as it was.
pub fn printable(text: String) -> String {
    if !text.contains(is_harmful) {
        return text;
    }
    text.chars().fold(String::with_capacity(text.len() + 16), |mut out, c| {
        if is_harmful(c) {
            // Writing to a String does not fail.
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
        out
    })
}

/// How a path is shown to people, in place of [`Path::display`]: the name of a file from elsewhere is a name like any other.
pub trait Shown {
    /// The path as [`printable`] text.
    fn shown(&self) -> String;
}

impl Shown for Path {
    fn shown(&self) -> String {
        printable(self.display().to_string())
    }
}

/// Control characters (C0, DEL, C1), line and paragraph separators, and Unicode's overrides and isolates of direction.
pub fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_line() {
        let shown = |text: &str| printable(text.to_owned());
        assert_eq!(shown("arm.read → grün"), "arm.read → grün");
        assert_eq!(shown("a\nb\tc\r\u{1b}[2J\u{7f}\u{9b}"), r"a\nb\tc\r\u{1b}[2J\u{7f}\u{9b}");
        assert_eq!(shown("safe\u{202e}gpj.exe\u{2066}"), r"safe\u{202e}gpj.exe\u{2066}");
        assert_eq!(shown(&shown("a\nb")), shown("a\nb"), "once is enough");
    }
}
