//! Passes → messages: all passes of one message, in order of time, each point once.

use taut_points::{Pass, PointId};

/// All messages of a recording, in one flat table.
#[derive(Default)]
pub(crate) struct Messages {
    /// Sorted by message; within one, by time; without outcomes and repeats.
    passes: Vec<Pass>,
    /// Of each message: where its passes end, and its outcomes.
    messages: Vec<Message>,
    /// Stamps at a point their message had passed before.
    pub repeats: u64,
    /// Ids that began again.
    pub split: u64,
    /// Messages with an outcome and no pass.
    pub outcomes_only: u64,
}

/// One message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    start: u32,
    end: u32,
    /// The first outcome's reason.
    pub outcome: Option<PointId>,
    /// Outcomes beyond the first.
    pub more_outcomes: u32,
    /// Of its last pass, outcome included.
    pub last_ns: u64,
}

impl Messages {
    /// Cuts passes (in any order) into messages.
    pub fn cut(mut passes: Vec<Pass>) -> Messages {
        // The point settles equal times, so that the order of batches does not matter.
        passes.sort_unstable_by_key(|pass| (pass.message, pass.time_ns, pass.point.order()));
        let mut messages = Messages::default();
        let mut write = 0;
        let mut read = 0;
        while read < passes.len() {
            let id = passes[read].message;
            let length = passes[read..].iter().take_while(|pass| pass.message == id).count();
            write = messages.cut_id(&mut passes, read..read + length, write);
            read += length;
        }
        passes.truncate(write);
        messages.passes = passes;
        messages
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Message, &[Pass])> {
        self.messages.iter().map(|message| (message, &self.passes[message.start as usize..message.end as usize]))
    }

    /// Cuts the passes of one id; compacts those kept to `write`, which never overtakes what is read.
    fn cut_id(&mut self, passes: &mut [Pass], of_id: std::ops::Range<usize>, mut write: usize) -> usize {
        let mut start = write;
        let mut message = Message { start: write as u32, end: 0, outcome: None, more_outcomes: 0, last_ns: 0 };
        let mut due: Option<Pass> = None;
        for read in of_id {
            let pass = passes[read];
            if pass.point.is_due() {
                due = Some(pass);
                continue;
            }
            if let Some(reason) = pass.point.reason() {
                match message.outcome {
                    None => message.outcome = Some(reason),
                    Some(_) => message.more_outcomes += 1,
                }
            } else {
                let is_first = write > start && passes[start].point.without_due() == pass.point.without_due();
                let point = pass.point.without_due();
                let went_on = |passes: &[Pass]| passes.iter().any(|pass| pass.point.without_due() != point);
                if is_first && (message.outcome.is_some() || went_on(&passes[start..write])) {
                    self.push(message, write);
                    self.split += 1;
                    start = write;
                    message = Message { start: write as u32, end: 0, outcome: None, more_outcomes: 0, last_ns: 0 };
                } else if passes[start..write].iter().any(|before| before.point == pass.point) {
                    self.repeats += 1;
                    message.last_ns = pass.time_ns;
                    continue;
                }
                // A message begins when it is due. At later points it is due when it comes.
                if let Some(due) = due.filter(|due| write == start && due.point == pass.point.as_due()) {
                    passes[write] = due;
                    write += 1;
                }
                passes[write] = pass;
                write += 1;
            }
            message.last_ns = pass.time_ns;
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

    const OUTCOME: u32 = 1 << 31;
    const DUE: u32 = 1 << 30;

    fn point(number: u32) -> PointId {
        let point = PointId::of_name(number & !(OUTCOME | DUE));
        match number & (OUTCOME | DUE) {
            0 => point,
            DUE => point.as_due(),
            _ => point.as_outcome(),
        }
    }

    fn stamp(message: u64, time_ns: u64, number: u32) -> Pass {
        Pass { message, time_ns, point: point(number), thread: 0 }
    }

    fn paths(stamps: Vec<Pass>) -> (Vec<Vec<PointId>>, Messages) {
        let messages = Messages::cut(stamps);
        (messages.iter().map(|(_, passes)| passes.iter().map(|pass| pass.point).collect()).collect(), messages)
    }

    fn points(numbers: &[u32]) -> Vec<PointId> {
        numbers.iter().copied().map(point).collect()
    }

    #[test]
    fn stamps_of_an_id_in_any_order_are_one_message() {
        let (paths, _) = paths(vec![stamp(2, 30, 3), stamp(1, 10, 1), stamp(2, 20, 1), stamp(1, 15, 3)]);
        assert_eq!(paths, [points(&[1, 3]), points(&[1, 3])]);
    }

    #[test]
    fn an_id_that_begins_anew_is_another_message() {
        let (paths, messages) = paths(vec![stamp(1, 1, 1), stamp(1, 2, 2), stamp(1, 1000, 1), stamp(1, 1001, 2)]);
        assert_eq!(paths, [points(&[1, 2]), points(&[1, 2])]);
        assert_eq!(messages.split, 1);
    }

    #[test]
    fn a_point_passed_again_counts_once() {
        let (paths, messages) = paths(vec![stamp(1, 1, 1), stamp(1, 2, 2), stamp(1, 3, 2), stamp(1, 4, 3)]);
        assert_eq!(paths, [points(&[1, 2, 3])]);
        assert_eq!(messages.repeats, 1);
    }

    #[test]
    fn the_first_outcome_counts_and_the_second_is_told() {
        let (_, messages) =
            paths(vec![stamp(1, 1, 1), stamp(1, 2, OUTCOME | 7), stamp(1, 3, OUTCOME | 8), stamp(9, 1, OUTCOME | 7)]);
        let (message, _) = messages.iter().next().unwrap();
        assert_eq!((message.outcome, message.more_outcomes), (Some(point(7)), 1));
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
        assert_eq!(paths, [points(&[1 | DUE, 1, 2]), points(&[1 | DUE, 1, 2]), points(&[1 | DUE, 1])]);
        assert_eq!((messages.repeats, messages.split), (0, 0));
    }

    #[test]
    fn an_id_that_is_due_anew_is_another_message() {
        let one = |due: u64, at: u64| [stamp(1, due, 1 | DUE), stamp(1, at, 1), stamp(1, at + 9, 2)];
        let (paths, messages) = paths([one(10, 10), one(20, 23), one(25, 33)].concat());
        assert_eq!(paths, vec![points(&[1 | DUE, 1, 2]); 3]);
        assert_eq!((messages.repeats, messages.split), (0, 2));
    }
}
