//! A text file line by line, of which none may ask for more memory than a line needs.

use std::io::{BufRead, BufReader, Read};

/// A longer line is no line of a log.
const MOST_BYTES: u64 = 8 << 20;
/// How often progress is told.
const TOLD_BYTES: u64 = 1 << 20;

/// The lines of a file.
pub(crate) struct Lines<'a, R> {
    source: BufReader<R>,
    progress: &'a mut dyn FnMut(u64),
    line: Vec<u8>,
    number: u64,
    at: u64,
    told: u64,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Counted from 1.
    pub number: u64,
    /// Without its end; `None` when it was too long.
    pub text: Option<&'a [u8]>,
    /// False for the last line of a file that was cut.
    pub is_ended: bool,
}

impl<'a, R: Read> Lines<'a, R> {
    pub fn new(source: R, progress: &'a mut dyn FnMut(u64)) -> Lines<'a, R> {
        let source = BufReader::with_capacity(1 << 18, source);
        Lines { source, progress, line: Vec::new(), number: 0, at: 0, told: 0 }
    }

    /// The next line, `None` at the file's end.
    pub fn next(&mut self) -> std::io::Result<Option<Line<'_>>> {
        self.line.clear();
        let mut length = (&mut self.source).take(MOST_BYTES).read_until(b'\n', &mut self.line)? as u64;
        if length == 0 {
            return Ok(None);
        }
        let is_too_long = length == MOST_BYTES && self.line.last() != Some(&b'\n');
        if is_too_long {
            length += self.skip_line()?;
        }
        self.number += 1;
        self.at += length;
        if self.at >= self.told + TOLD_BYTES {
            self.told = self.at;
            (self.progress)(self.at);
        }
        let is_ended = is_too_long || self.line.last() == Some(&b'\n');
        let text = (!is_too_long).then(|| self.line.trim_ascii());
        Ok(Some(Line { number: self.number, text, is_ended }))
    }

    fn skip_line(&mut self) -> std::io::Result<u64> {
        let mut skipped = 0;
        loop {
            let buffered = self.source.fill_buf()?;
            let end = buffered.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(buffered.len(), |at| at + 1);
            self.source.consume(length);
            skipped += length as u64;
            if end.is_some() || length == 0 {
                return Ok(skipped);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_with_their_numbers_and_a_torn_one_says_so() {
        let mut told = |_: u64| {};
        let mut lines = Lines::new(&b"one\r\n\n two \nthr"[..], &mut told);
        let mut found = Vec::new();
        while let Some(Line { number, text, is_ended }) = lines.next().unwrap() {
            found.push((number, text.unwrap().to_vec(), is_ended));
        }
        let expected = [(1, &b"one"[..], true), (2, b"", true), (3, b"two", true), (4, b"thr", false)];
        assert_eq!(found, expected.map(|(number, text, is_ended)| (number, text.to_vec(), is_ended)));
    }

    #[test]
    fn a_line_without_end_costs_no_memory() {
        let endless = std::io::repeat(b'x').take(3 * MOST_BYTES).chain(&b"\nnext\n"[..]);
        let mut told = |_: u64| {};
        let mut lines = Lines::new(endless, &mut told);
        assert_eq!(lines.next().unwrap(), Some(Line { number: 1, text: None, is_ended: true }));
        assert_eq!(lines.next().unwrap().unwrap().text, Some(&b"next"[..]));
    }
}
