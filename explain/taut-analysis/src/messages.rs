//! Stamps → messages: all stamps of one id, in order of time, each point once.

use crate::collect::{DUE, OUTCOME, Stamp, is_due};

/// All messages of a recording, in one flat table.
#[derive(Default)]
pub(crate) struct Messages {
    /// Sorted by message; within one, by time; without outcomes and repeats.
    passes: Vec<Stamp>,
    /// Of each message: where its passes end, and its outcomes.
    messages: Vec<Message>,
    /// Stamps at a point their message had passed before.
    pub repeats: u64,
    /// Ids that began anew.
    pub split: u64,
    /// Messages with an outcome and no stamp.
    pub outcomes_only: u64,
}

/// One message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    start: u32,
    end: u32,
    /// Name id of the first outcome's reason.
    pub outcome: Option<u32>,
    /// Outcomes beyond the first.
    pub more_outcomes: u32,
    /// Of its last stamp, outcome included.
    pub last_ns: u64,
}

impl Messages {
    /// Cuts stamps (in any order) into messages.
    pub fn cut(mut stamps: Vec<Stamp>) -> Messages {
        // The point settles equal times (OUTCOME is its highest bit, and who is on time passes at the moment that is due), so
        // that the order of batches does not matter.
        stamps.sort_unstable_by_key(|s| (s.id, s.time, s.point ^ DUE));
        let mut messages = Messages::default();
        let mut write = 0;
        let mut read = 0;
        while read < stamps.len() {
            let id = stamps[read].id;
            let length = stamps[read..].iter().take_while(|s| s.id == id).count();
            write = messages.cut_id(&mut stamps, read..read + length, write);
            read += length;
        }
        stamps.truncate(write);
        messages.passes = stamps;
        messages
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Message, &[Stamp])> {
        self.messages.iter().map(|message| (message, &self.passes[message.start as usize..message.end as usize]))
    }

    /// Cuts the stamps of one id; compacts those kept to `write`, which never overtakes what is read.
    fn cut_id(&mut self, stamps: &mut [Stamp], of_id: std::ops::Range<usize>, mut write: usize) -> usize {
        let mut start = write;
        let mut message = Message { start: write as u32, end: 0, outcome: None, more_outcomes: 0, last_ns: 0 };
        let mut due: Option<Stamp> = None;
        for read in of_id {
            let stamp = stamps[read];
            if is_due(stamp.point) {
                due = Some(stamp);
                continue;
            }
            if stamp.point & OUTCOME != 0 {
                match message.outcome {
                    None => message.outcome = Some(stamp.point & !OUTCOME),
                    Some(_) => message.more_outcomes += 1,
                }
            } else {
                let is_first = write > start && stamps[start].point & !DUE == stamp.point & !DUE;
                let went_on = |stamps: &[Stamp]| stamps.iter().any(|s| s.point & !DUE != stamp.point & !DUE);
                if is_first && (message.outcome.is_some() || went_on(&stamps[start..write])) {
                    self.push(message, write);
                    self.split += 1;
                    start = write;
                    message = Message { start: write as u32, end: 0, outcome: None, more_outcomes: 0, last_ns: 0 };
                } else if stamps[start..write].iter().any(|s| s.point == stamp.point) {
                    self.repeats += 1;
                    message.last_ns = stamp.time;
                    continue;
                }
                // A message begins when it is due. At later points it is due when it comes.
                if let Some(due) = due.filter(|due| write == start && due.point == DUE | stamp.point) {
                    stamps[write] = due;
                    write += 1;
                }
                stamps[write] = stamp;
                write += 1;
            }
            message.last_ns = stamp.time;
        }
        self.push(message, write);
        write
    }

    fn push(&mut self, mut message: Message, end: usize) {
        message.end = end as u32;
        if message.start == message.end {
            self.outcomes_only += 1;
        } else {
            self.messages.push(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(id: u64, time: u64, point: u32) -> Stamp {
        Stamp { id, time, point, thread: 0 }
    }

    fn paths(stamps: Vec<Stamp>) -> (Vec<Vec<u32>>, Messages) {
        let messages = Messages::cut(stamps);
        (messages.iter().map(|(_, passes)| passes.iter().map(|s| s.point).collect()).collect(), messages)
    }

    #[test]
    fn stamps_of_an_id_in_any_order_are_one_message() {
        let (paths, _) = paths(vec![stamp(2, 30, 3), stamp(1, 10, 1), stamp(2, 20, 1), stamp(1, 15, 3)]);
        assert_eq!(paths, [vec![1, 3], vec![1, 3]]);
    }

    #[test]
    fn an_id_that_begins_anew_is_another_message() {
        let (paths, messages) = paths(vec![stamp(1, 1, 1), stamp(1, 2, 2), stamp(1, 1000, 1), stamp(1, 1001, 2)]);
        assert_eq!(paths, [vec![1, 2], vec![1, 2]]);
        assert_eq!(messages.split, 1);
    }

    #[test]
    fn a_point_passed_again_counts_once() {
        let (paths, messages) = paths(vec![stamp(1, 1, 1), stamp(1, 2, 2), stamp(1, 3, 2), stamp(1, 4, 3)]);
        assert_eq!(paths, [vec![1, 2, 3]]);
        assert_eq!(messages.repeats, 1);
    }

    #[test]
    fn the_first_outcome_counts_and_the_second_is_told() {
        let (_, messages) =
            paths(vec![stamp(1, 1, 1), stamp(1, 2, OUTCOME | 7), stamp(1, 3, OUTCOME | 8), stamp(9, 1, OUTCOME | 7)]);
        let (message, _) = messages.iter().next().unwrap();
        assert_eq!((message.outcome, message.more_outcomes), (Some(7), 1));
        assert_eq!(messages.outcomes_only, 1);
    }

    #[test]
    fn a_message_begins_when_it_is_due() {
        // The second one is late, and due before the first one is done; at a later point nothing is due before it comes.
        let (paths, messages) = paths(vec![
            stamp(1, 10, 1 | DUE),
            stamp(1, 12, 1),
            stamp(1, 5, 2 | DUE),
            stamp(1, 40, 2),
            stamp(2, 20, 1 | DUE),
            stamp(2, 41, 1),
            stamp(2, 60, 2),
            stamp(3, 70, 1 | DUE),
            stamp(3, 70, 1),
        ]);
        assert_eq!(paths, [vec![1 | DUE, 1, 2], vec![1 | DUE, 1, 2], vec![1 | DUE, 1]]);
        assert_eq!((messages.repeats, messages.split), (0, 0));
    }

    #[test]
    fn an_id_that_is_due_anew_is_another_message() {
        let one = |due: u64, at: u64| [stamp(1, due, 1 | DUE), stamp(1, at, 1), stamp(1, at + 9, 2)];
        let (paths, messages) = paths([one(10, 10), one(20, 23), one(25, 33)].concat());
        assert_eq!(paths, vec![vec![1 | DUE, 1, 2]; 3]);
        assert_eq!((messages.repeats, messages.split), (0, 2));
    }
}
