//! Items in order of time, and searches among them. Questions about a recording come in order of time themselves, mostly: a search
//! begins where the one before ended, which among millions of items is a few steps instead of twenty misses of the cache.

use std::{
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// A list in order of time.
#[derive(Debug)]
pub struct Sequence<T> {
    all: Vec<T>,
    /// Where the last search ended. Every value is right, so threads need not agree on it.
    near: AtomicUsize,
}

impl<T> Sequence<T> {
    /// As [`slice::partition_point`].
    pub fn partition_point(&self, holds: impl Fn(&T) -> bool) -> usize {
        let near = self.near.load(Relaxed).min(self.all.len());
        let at = match self.all.get(near).is_some_and(&holds) {
            true => partition_from(&self.all, near, holds),
            false => partition_to(&self.all, near, holds),
        };
        self.near.store(at, Relaxed);
        at
    }
}

impl<T> Default for Sequence<T> {
    fn default() -> Sequence<T> {
        Vec::new().into()
    }
}

impl<T> From<Vec<T>> for Sequence<T> {
    fn from(all: Vec<T>) -> Sequence<T> {
        Sequence { all, near: AtomicUsize::new(0) }
    }
}

impl<T> Deref for Sequence<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.all
    }
}

impl<T> DerefMut for Sequence<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.all
    }
}

impl<'a, T> IntoIterator for &'a Sequence<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

/// [`slice::partition_point`] of what begins at `from`, for a point that is near it.
pub fn partition_from<T>(all: &[T], from: usize, holds: impl Fn(&T) -> bool) -> usize {
    let mut step = 1;
    while all.get(from + step - 1).is_some_and(&holds) {
        step *= 2;
    }
    // It holds for the first half of the last step.
    let (known, end) = (from + step / 2, all.len().min(from + step - 1));
    known + all[known..end.max(known)].partition_point(holds)
}

/// [`slice::partition_point`] of what ends at `to`, for a point that is near it.
fn partition_to<T>(all: &[T], to: usize, holds: impl Fn(&T) -> bool) -> usize {
    let mut step = 1;
    while to.checked_sub(step).is_some_and(|at| !holds(&all[at])) {
        step *= 2;
    }
    // It does not hold for the second half of the last step.
    let (start, known) = ((to + 1).saturating_sub(step), to - step / 2);
    start + all[start..known].partition_point(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_the_same_from_wherever_it_is_searched() {
        for length in 0..20 {
            let all = Sequence::from((0..length).collect::<Vec<u32>>());
            for point in 0..=length {
                for from in 0..=point as usize {
                    assert_eq!(partition_from(&all, from, |value| *value < point), point as usize);
                }
                for before in 0..=length {
                    assert_eq!(all.partition_point(|value| *value < before), before as usize);
                    assert_eq!(all.partition_point(|value| *value < point), point as usize);
                }
            }
        }
    }
}
