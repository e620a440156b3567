//! Counters that stop at their maximum and never wrap to healthy. Generic over width, so that tests can walk
//! every value of a narrow one.

/// An unsigned width that a counter may have.
pub trait Width: Copy + Default + Into<u64> {
    /// The largest value; a counter that shows it means "this many or more".
    const MAX: Self;

    /// Adds and stops at [`Width::MAX`].
    fn plus(self, more: u64) -> Self;
}

macro_rules! widths {
    ($($width:ty),*) => {$(
        impl Width for $width {
            const MAX: $width = <$width>::MAX;

            fn plus(self, more: u64) -> $width {
                self.saturating_add(<$width>::try_from(more).unwrap_or(<$width>::MAX))
            }
        }
    )*};
}
widths!(u8, u16, u32, u64);

/// One saturating count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter<W: Width = u64>(W);

impl<W: Width> Counter<W> {
    /// Counts one.
    pub fn bump(&mut self) {
        self.add(1);
    }

    /// Counts several.
    pub fn add(&mut self, more: u64) {
        self.0 = self.0.plus(more);
    }

    /// Counts what happens in a row.
    pub(crate) fn bump_or_reset(&mut self, happened: bool) {
        *self = Counter(if happened { self.0.plus(1) } else { W::default() });
    }

    /// How many, or the width's maximum when there were more.
    pub fn get(self) -> u64 {
        self.0.into()
    }

    /// Whether the count is saturated: a larger one looks the same.
    pub fn is_saturated(self) -> bool {
        self.get() == W::MAX.into()
    }
}

/// Declares a struct of counters, with the names and values of all of them for logs and reports.
macro_rules! counters {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name<W: $crate::counters::Width = u64> {
            $($(#[$of])* pub $field: $crate::counters::Counter<W>,)*
        }

        impl<W: $crate::counters::Width> $name<W> {
            /// The counters' names, in the order of [`Self::values`].
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            /// Every count, in the order of [`Self::NAMES`].
            pub fn values(&self) -> impl Iterator<Item = u64> {
                [$(self.$field.get()),*].into_iter()
            }

            /// Whether one of them has reached its maximum.
            pub fn any_saturated(&self) -> bool {
                $(self.$field.is_saturated())||*
            }
        }
    };
}
pub(crate) use counters;

#[cfg(test)]
mod tests {
    use super::*;

    counters!(
        /// Two counts.
        Pair {
            /// One.
            left,
            /// The other.
            right,
        }
    );

    #[test]
    fn every_sum_of_a_narrow_counter_stops_at_its_maximum() {
        for held in 0..=255u64 {
            for more in 0..=300u64 {
                let mut counter = Counter::<u8>::default();
                counter.add(held);
                counter.add(more);
                assert_eq!(counter.get(), (held + more).min(255));
                assert_eq!(counter.is_saturated(), held + more >= 255);
            }
        }
    }

    #[test]
    fn every_sum_of_a_wider_counter_near_its_maximum_stops_there() {
        for below in 0..=300u64 {
            for more in (0..=300).chain([u64::MAX, u64::MAX - 1]) {
                let mut counters = (Counter::<u16>::default(), Counter::<u32>::default(), Counter::<u64>::default());
                counters.0.add(u64::from(u16::MAX) - below);
                counters.1.add(u64::from(u32::MAX) - below);
                counters.2.add(u64::MAX - below);
                counters.0.add(more);
                counters.1.add(more);
                counters.2.add(more);
                assert_eq!(counters.0.get(), (u64::from(u16::MAX) - below).saturating_add(more).min(u16::MAX.into()));
                assert_eq!(counters.1.get(), (u64::from(u32::MAX) - below).saturating_add(more).min(u32::MAX.into()));
                assert_eq!(counters.2.get(), (u64::MAX - below).saturating_add(more));
            }
        }
    }

    #[test]
    fn a_row_that_never_ends_stays_full_and_ends_at_once() {
        let mut row = Counter::<u8>::default();
        for n in 1..=300u64 {
            row.bump_or_reset(true);
            assert_eq!(row.get(), n.min(255));
        }
        row.bump_or_reset(false);
        assert_eq!(row.get(), 0);
    }

    #[test]
    fn a_set_names_each_counter_and_says_when_one_is_full() {
        let mut pair = Pair::<u8>::default();
        pair.right.add(254);
        assert!(!pair.any_saturated());
        pair.right.bump();
        assert!(pair.any_saturated());
        assert_eq!(Pair::<u8>::NAMES, ["left", "right"]);
        assert!(pair.values().eq([0, 255]));
    }
}
