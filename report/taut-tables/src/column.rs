//! A column: its name, its meaning, and its values.

use std::collections::HashMap;

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// With the unit last.
    pub name: &'static str,
    /// One sentence for people; docs/reference/export.md has the same.
    pub says: &'static str,
    /// Row after row.
    pub values: Values,
}

/// A column's values by their kind.
#[derive(Clone, Debug)]
pub enum Values {
    /// Moments and durations. With a sign, so that differences of them are what one expects.
    Int(Vec<i64>),
    /// The same, where it may not be known.
    Maybe(Vec<Option<i64>>),
    /// Message ids.
    Id(Vec<u64>),
    /// Small numbers.
    Number(Vec<i32>),
    /// Yes or no.
    Flag(Vec<bool>),
    /// Words out of few; nothing to say is null.
    Text(Texts),
    /// The same, where the empty word is a word, too.
    Word(Texts),
    /// Days since 1970-01-01.
    Day(Vec<i32>),
}

/// Texts that repeat: each is kept once.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// Index in `words`.
    pub keys: Vec<Option<i32>>,
    /// In the order of their first row.
    pub words: Vec<String>,
    by_word: HashMap<String, i32>,
}

/// One cell.
pub(crate) enum Value<'a> {
    Int(u64),
    Maybe(Option<u64>),
    Id(u64),
    Number(u64),
    Signed(i32),
    Flag(bool),
    Text(&'a str),
    Word(&'a str),
    Day(i32),
}

impl Texts {
    fn push(&mut self, word: &str) {
        if word.is_empty() {
            return self.keys.push(None);
        }
        self.push_word(word);
    }

    fn push_word(&mut self, word: &str) {
        let key = self.by_word.get(word).copied().unwrap_or_else(|| {
            let key = self.words.len() as i32;
            self.words.push(word.to_owned());
            self.by_word.insert(word.to_owned(), key);
            key
        });
        self.keys.push(Some(key));
    }
}

impl Column {
    pub(crate) fn new(name: &'static str, values: Values, says: &'static str) -> Column {
        Column { name, says, values }
    }

    /// The kind's name in Arrow.
    pub fn arrow_type(&self) -> &'static str {
        match self.values {
            Values::Int(_) | Values::Maybe(_) => "int64",
            Values::Id(_) => "uint64",
            Values::Number(_) => "int32",
            Values::Flag(_) => "bool",
            Values::Text(_) | Values::Word(_) => "dictionary",
            Values::Day(_) => "date32",
        }
    }

    /// Its type and name in Parquet's schema language.
    pub(crate) fn parquet_field(&self) -> String {
        let (kind, annotation) = match self.values {
            Values::Int(_) => ("REQUIRED INT64", ""),
            Values::Maybe(_) => ("OPTIONAL INT64", ""),
            Values::Id(_) => ("REQUIRED INT64", " (INTEGER(64, false))"),
            Values::Number(_) => ("REQUIRED INT32", ""),
            Values::Flag(_) => ("REQUIRED BOOLEAN", ""),
            Values::Text(_) => ("OPTIONAL BYTE_ARRAY", " (STRING)"),
            Values::Word(_) => ("REQUIRED BYTE_ARRAY", " (STRING)"),
            Values::Day(_) => ("REQUIRED INT32", " (DATE)"),
        };
        format!("{kind} {}{annotation};", self.name)
    }

    pub(crate) fn push(&mut self, value: Value<'_>) {
        match (&mut self.values, value) {
            (Values::Int(all), Value::Int(one)) => all.push(one as i64),
            (Values::Maybe(all), Value::Maybe(one)) => all.push(one.map(|one| one as i64)),
            (Values::Id(all), Value::Id(one)) => all.push(one),
            (Values::Number(all), Value::Number(one)) => all.push(i32::try_from(one).unwrap_or(i32::MAX)),
            (Values::Number(all), Value::Signed(one)) => all.push(one),
            (Values::Flag(all), Value::Flag(one)) => all.push(one),
            (Values::Text(all), Value::Text(one)) => all.push(one),
            (Values::Word(all), Value::Word(one)) => all.push_word(one),
            (Values::Day(all), Value::Day(one)) => all.push(one),
            _ => unreachable!("column {:?} is of another kind", self.name),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        match &self.values {
            Values::Int(all) => all.len(),
            Values::Maybe(all) => all.len(),
            Values::Id(all) => all.len(),
            Values::Number(all) | Values::Day(all) => all.len(),
            Values::Flag(all) => all.len(),
            Values::Text(all) | Values::Word(all) => all.keys.len(),
        }
    }

    /// Forgets the rows; the words stay.
    pub(crate) fn clear(&mut self) {
        match &mut self.values {
            Values::Int(all) => all.clear(),
            Values::Maybe(all) => all.clear(),
            Values::Id(all) => all.clear(),
            Values::Number(all) | Values::Day(all) => all.clear(),
            Values::Flag(all) => all.clear(),
            Values::Text(all) | Values::Word(all) => all.keys.clear(),
        }
    }
}
