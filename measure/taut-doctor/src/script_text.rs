//! Which characters may go into a script.

/// A character that ends or rewrites a line, or turns the direction in which it is shown: of a script that root is to run, what is read must be
/// what is run.
pub(crate) fn leaves_its_line(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}
