//! A text file line by line, of which none may ask for more memory than a line needs.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use crate::{Error, error::Trouble, writing::Import};

/// A longer line is no line of a log.
const MOST_BYTES: u64 = 8 << 20;
/// How often progress is reported.
const TOLD_BYTES: u64 = 1 << 20;

/// Sentences of damage that are kept of what precedes the first row.
const MOST_EARLY: usize = 10;

/// A format that has one thing a line.
pub(crate) trait Format {
    /// Takes a line that is not empty.
    fn line(&mut self, text: &[u8], number: u64) -> Result<(), Trouble>;
    /// Where what it takes goes to.
    fn filling(&mut self) -> &mut Filling;
}

/// Hands a file's lines to their format. What is wrong with one is damage, said with its number.
///
/// # Errors
/// The file cannot be read, or a line makes the whole of it useless.
pub(crate) fn read(source: impl Read, progress: &mut dyn FnMut(u64), format: &mut impl Format) -> Result<(), Error> {
    let mut lines = Lines::new(source, progress);
    while let Some(Line { number, text, is_ended }) = lines.next()? {
        let taken = match text {
            Some([]) => continue,
            Some(text) => format.line(text, number),
            None => Err(Trouble::Damage("is too long".to_owned())),
        };
        match taken {
            Ok(()) => {}
            Err(Trouble::Fatal(error)) => return Err(error),
            Err(Trouble::Damage(_)) if !is_ended => {
                format.filling().damage(format!("line {number}, the last, is truncated"));
            }
            Err(Trouble::Damage(why)) => format.filling().damage(format!("line {number} {why}")),
        }
    }
    Ok(())
}

/// A recording that begins with the first row, whose time is its start.
pub(crate) struct Filling {
    to: PathBuf,
    kind: &'static str,
    import: Option<Import>,
    /// Damage from before the first row: with the wrong file the error shows its first lines.
    early: Vec<String>,
}

impl Filling {
    pub fn new(to: &Path, kind: &'static str) -> Filling {
        Filling { to: to.to_owned(), kind, import: None, early: Vec::new() }
    }

    /// The recording, begun at `start_ns` if it is not yet.
    pub fn at(&mut self, start_ns: u64) -> Result<&mut Import, Error> {
        Ok(match &mut self.import {
            Some(import) => import,
            none => {
                let import = none.insert(Import::begin(&self.to, self.kind, start_ns)?);
                self.early.drain(..).for_each(|damage| import.damage(damage));
                import
            }
        })
    }

    pub fn damage(&mut self, sentence: String) {
        match &mut self.import {
            Some(import) => import.damage(sentence),
            None if self.early.len() < MOST_EARLY => self.early.push(sentence),
            None => {}
        }
    }

    /// The recording, or, of one that never began, the first that was wrong.
    pub fn end(self) -> Result<Import, Option<String>> {
        self.import.ok_or_else(|| self.early.into_iter().next())
    }
}

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
