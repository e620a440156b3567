//! Messages under way: their hops in the order in which these end, and the messages in the order in which they started.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// Messages that have started, up to the first one whose way is not gone through yet.
pub(crate) struct UnderWay<T> {
    all: VecDeque<T>,
    /// So many were before the first.
    past: usize,
    /// (end of its next hop, which message).
    ends: BinaryHeap<Reverse<(u64, usize)>>,
}

/// More messages are not kept for one that is not through.
const MOST: usize = 16_384;

/// What has hops.
pub(crate) trait Hops {
    fn starts_ns(&self) -> u64;
    /// When its next hop ends; `None` behind the last one.
    fn next_ends_ns(&self) -> Option<u64>;
}

impl<T: Hops> UnderWay<T> {
    pub fn new() -> UnderWay<T> {
        UnderWay { all: VecDeque::new(), past: 0, ends: BinaryHeap::new() }
    }

    /// The next one, in order of the starts.
    pub fn push(&mut self, one: T) {
        self.ends.extend(one.next_ends_ns().map(|ends_ns| Reverse((ends_ns, self.past + self.all.len()))));
        self.all.push_back(one);
    }

    /// Goes through the next hop that ends by then; `false` where none is left. The first of very many messages does not keep them all: it
    /// goes through at once.
    pub fn go_on(&mut self, until_ns: u64, hop: impl FnOnce(&mut T)) -> bool {
        let at = match self.all.len() > MOST {
            true => Some(self.past),
            false => self.next(until_ns),
        };
        let Some(one) = at.and_then(|at| self.all.get_mut(at - self.past)) else { return false };
        hop(one);
        self.ends.extend(one.next_ends_ns().zip(at).map(Reverse));
        true
    }

    fn next(&mut self, until_ns: u64) -> Option<usize> {
        while let Some(Reverse((ends_ns, at))) =
            self.ends.peek().copied().filter(|Reverse((ends_ns, _))| *ends_ns <= until_ns)
        {
            self.ends.pop();
            let one = at.checked_sub(self.past).and_then(|at| self.all.get(at));
            if one.is_some_and(|one| one.next_ends_ns() == Some(ends_ns)) {
                return Some(at);
            }
        }
        None
    }

    /// When the first one started that is not through.
    pub fn since_ns(&self) -> Option<u64> {
        self.all.front().map(T::starts_ns)
    }

    /// The first one, if it is through.
    pub fn pop(&mut self) -> Option<T> {
        self.all.front().filter(|one| one.next_ends_ns().is_none())?;
        self.past += 1;
        self.all.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, start, and ends of the hops that are left.
    struct Message(char, u64, Vec<u64>);

    impl Hops for Message {
        fn starts_ns(&self) -> u64 {
            self.1
        }

        fn next_ends_ns(&self) -> Option<u64> {
            self.2.first().copied()
        }
    }

    #[test]
    fn hops_come_as_they_end_and_messages_as_they_started() {
        let mut under_way = UnderWay::new();
        let (mut hops, mut through) = (Vec::new(), String::new());
        let mut messages =
            [Message('a', 0, vec![50, 60]), Message('b', 10, vec![20, 70]), Message('c', 30, vec![40])].into_iter();
        loop {
            let next = messages.next();
            let until_ns = next.as_ref().map_or(u64::MAX, |next| next.1);
            while under_way.go_on(until_ns, |one: &mut Message| hops.push((one.0, one.2.remove(0)))) {
                through.extend(std::iter::from_fn(|| under_way.pop()).map(|one| one.0));
            }
            match next {
                Some(next) => under_way.push(next),
                None => break,
            }
        }
        assert_eq!(hops, [('b', 20), ('c', 40), ('a', 50), ('a', 60), ('b', 70)]);
        assert_eq!(through, "abc");
        assert_eq!(under_way.since_ns(), None);
    }

    #[test]
    fn one_message_does_not_keep_all_others() {
        let mut under_way = UnderWay::new();
        under_way.push(Message('a', 0, vec![u64::MAX - 1, u64::MAX]));
        for start in 1..=3 * MOST as u64 {
            while under_way.go_on(start, |one: &mut Message| _ = one.2.remove(0)) {
                while under_way.pop().is_some() {}
            }
            assert!(under_way.all.len() <= MOST);
            under_way.push(Message('b', start, vec![start]));
        }
        assert!(under_way.since_ns() > Some(0));
    }
}
