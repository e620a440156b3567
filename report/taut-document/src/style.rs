//! What a terminal can show: its width, and whether it has colours.

use crate::Tone;

/// How a terminal wants it.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Bold, dim and colours; off unless stdout is a terminal.
    pub color: bool,
    /// Columns of the widest line.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style { color: false, width: 100 }
    }
}

impl Style {
    /// Stands out.
    pub fn bold(self, text: &str) -> String {
        self.ansi(1, text)
    }

    /// Less prominent.
    pub fn dim(self, text: &str) -> String {
        self.ansi(2, text)
    }

    /// In the colour of what it says.
    pub fn tone(self, tone: Tone, text: &str) -> String {
        // Of the eight colours that all terminals have; the first is too near to the ground.
        const SERIES: [u8; 6] = [34, 33, 32, 35, 36, 31];
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Good => self.ansi(32, text),
            Tone::Bad => self.ansi(31, text),
            Tone::Undecided => self.ansi(33, text),
            Tone::Quiet => self.dim(text),
            Tone::Series(n) => self.ansi(SERIES[usize::from(n) % SERIES.len()], text),
        }
    }

    /// On the colour of what it says.
    pub(crate) fn ground(self, tone: Tone, text: &str) -> String {
        const SERIES: [u8; 6] = [44, 43, 42, 45, 46, 41];
        match tone {
            Tone::Plain | Tone::Quiet => text.to_owned(),
            Tone::Good => self.ansi(42, text),
            Tone::Bad => self.ansi(41, text),
            Tone::Undecided => self.ansi(43, text),
            Tone::Series(n) => self.ansi(SERIES[usize::from(n) % SERIES.len()], text),
        }
    }

    /// Select Graphic Rendition, ECMA-48 section 8.3.117.
    pub fn ansi(self, code: u8, text: &str) -> String {
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
