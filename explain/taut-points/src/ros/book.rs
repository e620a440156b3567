//! What an address of a process was at a time: addresses are used again.

use foldhash::HashMap;

/// Of each process and address: what it was, since when.
#[derive(Clone, Debug)]
pub(super) struct Book<T> {
    entries: HashMap<(i32, u64), Vec<(u64, T)>>,
}

impl<T> Default for Book<T> {
    fn default() -> Book<T> {
        Book { entries: HashMap::default() }
    }
}

impl<T: Clone> Book<T> {
    /// Most facts come in order of time.
    pub fn add(&mut self, key: (i32, u64), time_ns: u64, what: T) {
        let entries = self.entries.entry(key).or_default();
        let at = entries.partition_point(|(since, _)| *since <= time_ns);
        entries.insert(at, (time_ns, what));
    }

    /// The last that was there by then, or the first that came later.
    #[inline]
    pub fn at(&self, key: (i32, u64), time_ns: u64) -> Option<&T> {
        let entries = self.entries.get(&key)?;
        if let [(_, only)] = entries.as_slice() {
            return Some(only);
        }
        let before = entries.partition_point(|(since, _)| *since <= time_ns);
        entries.get(before.saturating_sub(1)).map(|(_, what)| what)
    }

    /// Since when that was there.
    pub fn since(&self, key: (i32, u64), time_ns: u64) -> Option<u64> {
        let entries = self.entries.get(&key)?;
        let before = entries.partition_point(|(since, _)| *since <= time_ns);
        entries.get(before.saturating_sub(1)).map(|(since, _)| *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_what_it_was_then() {
        let mut book = Book::default();
        book.add((0, 1), 20, "b");
        book.add((0, 1), 10, "a");
        let at = |time_ns| book.at((0, 1), time_ns).copied();
        assert_eq!([at(5), at(10), at(19), at(20), at(99)], [Some("a"), Some("a"), Some("a"), Some("b"), Some("b")]);
        assert_eq!([5, 10, 99].map(|time_ns| book.since((0, 1), time_ns)), [Some(10), Some(10), Some(20)]);
        assert_eq!(book.at((1, 1), 10), None);
    }
}
