//! One message's way along its chain, and the pieces of that way.

use foldhash::HashMap;
use taut_points::{Pass, PointId};

use crate::walk::{Moment, Piece, Walker};

/// A message's passes of the chain's points: (column, pass), in order.
#[derive(Clone)]
pub(crate) struct Passage {
    pub id: u64,
    pub passes: Vec<(usize, Moment)>,
}

impl Passage {
    /// `None` for a message that did not pass both the first and the last point.
    pub fn of(stamps: &[Pass], columns: &HashMap<PointId, usize>) -> Option<Passage> {
        Some(Passage::partly(stamps, columns)).filter(|passage| passage.is_whole(columns.len()))
    }

    /// Of a message that may have passed some of the points only.
    pub fn partly(stamps: &[Pass], columns: &HashMap<PointId, usize>) -> Passage {
        let of_column = |s: &Pass| {
            let moment = Moment::of(s.thread, s.time_ns);
            Some((*columns.get(&s.point)?, Moment { is_due: s.point.is_due(), ..moment }))
        };
        let mut passes: Vec<(usize, Moment)> = stamps.iter().filter_map(of_column).collect();
        passes.sort_by_key(|(column, _)| *column);
        // As in the figures: who seems to reach a point before the one ahead of it took no time.
        let mut latest = 0;
        for (_, pass) in &mut passes {
            latest = latest.max(pass.time_ns);
            pass.time_ns = latest;
        }
        Passage { id: stamps[0].message, passes }
    }

    /// Whether it goes from the first to the last of so many points.
    pub fn is_whole(&self, points: usize) -> bool {
        let ends = self.passes.first().zip(self.passes.last());
        ends.is_some_and(|((first, _), (last, _))| *first == 0 && *last == points - 1)
    }

    /// Its hop of that index: its number in the chain, that which ends at the point passed, and where it begins and ends.
    pub fn hop(&self, index: usize) -> Option<(u16, Moment, Moment)> {
        let ((_, from), (column, to)) = (*self.passes.get(index)?, *self.passes.get(index + 1)?);
        Some((column as u16 - 1, from, to))
    }

    /// One piece for all, when nothing can be known.
    pub fn unknown(&self) -> Vec<(u16, Piece)> {
        let (_, first) = self.passes[0];
        vec![(0, Piece::unknown(first.time_ns, first.time_ns + self.total_ns(), first.tid))]
    }

    pub fn start_ns(&self) -> u64 {
        self.passes[0].1.time_ns
    }

    pub fn total_ns(&self) -> u64 {
        self.passes[self.passes.len() - 1].1.time_ns - self.start_ns()
    }

    /// The pieces of the whole way, each with its hop.
    pub fn pieces(&self, walker: &mut Walker<'_>) -> Vec<(u16, Piece)> {
        let mut pieces = Vec::new();
        for (hop, from, to) in (0..).map_while(|index| self.hop(index)) {
            walker.at_hop = hop;
            pieces.extend(walker.hop(self.id, from, to).into_iter().map(|piece| (hop, piece)));
        }
        pieces
    }
}
