//! Passes → messages: all passes of one message, in order of time, each point once.

use std::{cmp::Reverse, ops::Range};

use foldhash::{HashMap, HashSet};
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
    /// Messages whose passes cannot be told from those of others of their id: they are left out.
    pub unclear: u64,
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
        let mut ids = passes.chunk_by(|one, next| one.message == next.message);
        let reused = ids.any(is_used_again).then(|| Reused::of(&passes));
        let (mut read, mut write) = (0, 0);
        while read < passes.len() {
            let id = passes[read].message;
            let end = read + passes[read..].iter().take_while(|pass| pass.message == id).count();
            let mut due: Option<Pass> = None;
            if let Some(reused) = reused.as_ref().filter(|_| is_used_again(&passes[read..end])) {
                let uses = reused.uses(&passes[read..end]);
                messages.split += uses.len() as u64 - 1;
                for (of_use, is_clear) in uses {
                    let of_use = read + of_use.start..read + of_use.end;
                    match is_clear {
                        true => write = messages.take(&mut passes, of_use, write, &mut due),
                        false => messages.unclear += 1,
                    }
                }
            } else {
                write = messages.take(&mut passes, read..end, write, &mut due);
            }
            read = end;
        }
        passes.truncate(write);
        messages.passes = passes;
        messages
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Message, &[Pass])> {
        self.messages.iter().map(|message| (message, &self.passes[message.start as usize..message.end as usize]))
    }

    /// Takes the passes of one message; compacts those kept to `write`, which never overtakes what is read. `due`: the last moment at
    /// which one of this id was due.
    fn take(&mut self, passes: &mut [Pass], of: Range<usize>, mut write: usize, due: &mut Option<Pass>) -> usize {
        let start = write;
        let mut message = Message { start: start as u32, end: 0, outcome: None, more_outcomes: 0, last_ns: 0 };
        for read in of {
            let pass = passes[read];
            if pass.point.is_due() {
                *due = Some(pass);
                continue;
            }
            message.last_ns = pass.time_ns;
            if let Some(reason) = pass.point.reason() {
                match message.outcome {
                    None => message.outcome = Some(reason),
                    Some(_) => message.more_outcomes += 1,
                }
                continue;
            }
            if passes[start..write].iter().any(|before| before.point == pass.point) {
                self.repeats += 1;
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

/// What is known of a recording in which ids begin again.
struct Reused {
    /// Before which point messages mostly pass each, by the first pass of each point of each id: these are of one message.
    before: HashMap<PointId, Option<PointId>>,
    /// Points that nearly all messages pass behind that one: of two ways from a point, neither end is.
    fixed: HashSet<PointId>,
    /// Whether an id ever began again while it was under way. Where none did, a message had ended when its id begins again.
    at_once: bool,
}

/// Of a point that is fixed, so many messages have that order.
const NEARLY_ALL: f64 = 0.9;
/// A message that is under way has ended by the time its id has begun so many times more.
const AT_ONCE: usize = 2;

impl Reused {
    /// Passes are in order.
    fn of(passes: &[Pass]) -> Reused {
        let ids = || passes.chunk_by(|one, next| one.message == next.message);
        let mut counts: HashMap<PointId, HashMap<Option<PointId>, u64>> = HashMap::default();
        for of_id in ids() {
            let mut seen: Vec<PointId> = Vec::new();
            for point in points(of_id) {
                if !seen.contains(&point) {
                    *counts.entry(point).or_default().entry(seen.last().copied()).or_default() += 1;
                    seen.push(point);
                }
            }
        }
        let mut reused = Reused { before: HashMap::default(), fixed: HashSet::default(), at_once: false };
        for (point, counts) in counts {
            let all: u64 = counts.values().sum();
            let most = counts.into_iter().max_by_key(|(before, n)| (*n, Reverse(*before)));
            if most.is_some_and(|(_, n)| n as f64 >= NEARLY_ALL * all as f64) {
                reused.fixed.insert(point);
            }
            reused.before.insert(point, most.and_then(|(before, _)| before));
        }
        reused.at_once = ids().filter(|of_id| is_used_again(of_id)).any(|of_id| {
            let mut between = of_id.split(|pass| reused.begins(pass.point)).skip(1);
            between.any(|passes| reused.goes_back(passes))
        });
        reused
    }

    /// Where each use of an id lies among its passes, and whether what lies there is of one message.
    fn uses(&self, of_id: &[Pass]) -> Vec<(Range<usize>, bool)> {
        let mut starts = vec![0];
        let (mut passed, mut went_on) = (false, false);
        for (at, pass) in of_id.iter().enumerate().filter(|(_, pass)| !pass.point.is_due()) {
            let begins = self.begins(pass.point);
            // At its first point again it is the next message once it went on or ended; what was under way when the recording began has
            // not begun at all.
            if begins && passed && (went_on || self.at_once) {
                starts.push(at);
                went_on = false;
            }
            went_on |= !begins;
            passed = true;
        }
        let ends = starts.iter().skip(1).copied().chain([of_id.len()]);
        let uses: Vec<Range<usize>> = starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect();
        let is_whole: Vec<bool> = uses.iter().map(|of| self.is_whole(&of_id[of.clone()])).collect();
        // What a message may have left to the next ones is not theirs.
        let is_clear = |at: usize| !self.at_once || is_whole[at.saturating_sub(AT_ONCE)..=at].iter().all(|is| *is);
        uses.into_iter().enumerate().map(|(at, of)| (of, is_clear(at))).collect()
    }

    /// Whether messages begin there.
    fn begins(&self, point: PointId) -> bool {
        self.before.get(&point).is_some_and(Option::is_none)
    }

    /// Before which point nearly all messages pass that one.
    fn surely_before(&self, point: PointId) -> Option<PointId> {
        self.before.get(&point).copied().flatten().filter(|_| self.fixed.contains(&point))
    }

    /// Whether they pass a point once, behind the one before it, as far as messages go.
    fn is_whole(&self, of_use: &[Pass]) -> bool {
        let mut seen: Vec<PointId> = Vec::new();
        for point in points(of_use) {
            let before = self.surely_before(point);
            if seen.contains(&point) || before.is_some_and(|before| !seen.contains(&before)) {
                return false;
            }
            seen.push(point);
        }
        let ended = of_use.iter().any(|pass| pass.point.reason().is_some());
        ended
            || seen.last().is_some_and(|last| self.fixed.iter().all(|point| self.surely_before(*point) != Some(*last)))
    }

    /// Whether they pass a point behind the next one: then that was another message's.
    fn goes_back(&self, passes: &[Pass]) -> bool {
        let mut seen: Vec<PointId> = Vec::new();
        points(passes).any(|point| {
            if seen.contains(&point) {
                return false;
            }
            let goes_back = seen.iter().any(|seen| self.surely_before(*seen) == Some(point));
            seen.push(point);
            goes_back
        })
    }
}

/// Points passed.
fn points(passes: &[Pass]) -> impl Iterator<Item = PointId> {
    passes.iter().map(|pass| pass.point).filter(|point| !point.is_due() && point.reason().is_none())
}

/// Whether an id is at its first point again.
fn is_used_again(of_id: &[Pass]) -> bool {
    let mut passed = points(of_id);
    let first = passed.next();
    passed.any(|point| Some(point) == first)
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

    fn numbered(numbers: &[u32]) -> Vec<PointId> {
        numbers.iter().copied().map(point).collect()
    }

    #[test]
    fn stamps_of_an_id_in_any_order_are_one_message() {
        let (paths, _) = paths(vec![stamp(2, 30, 3), stamp(1, 10, 1), stamp(2, 20, 1), stamp(1, 15, 3)]);
        assert_eq!(paths, [numbered(&[1, 3]), numbered(&[1, 3])]);
    }

    #[test]
    fn an_id_that_begins_anew_is_another_message() {
        let (paths, messages) = paths(vec![stamp(1, 1, 1), stamp(1, 2, 2), stamp(1, 1000, 1), stamp(1, 1001, 2)]);
        assert_eq!(paths, [numbered(&[1, 2]), numbered(&[1, 2])]);
        assert_eq!(messages.split, 1);
    }

    #[test]
    fn a_point_passed_again_counts_once() {
        let (paths, messages) = paths(vec![stamp(1, 1, 1), stamp(1, 2, 2), stamp(1, 3, 2), stamp(1, 4, 3)]);
        assert_eq!(paths, [numbered(&[1, 2, 3])]);
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
        assert_eq!(paths, [numbered(&[1 | DUE, 1, 2]), numbered(&[1 | DUE, 1, 2]), numbered(&[1 | DUE, 1])]);
        assert_eq!((messages.repeats, messages.split), (0, 0));
    }

    #[test]
    fn an_id_that_is_due_anew_is_another_message() {
        let one = |due: u64, at: u64| [stamp(1, due, 1 | DUE), stamp(1, at, 1), stamp(1, at + 9, 2)];
        let (paths, messages) = paths([one(10, 10), one(20, 23), one(25, 33)].concat());
        assert_eq!(paths, vec![numbered(&[1 | DUE, 1, 2]); 3]);
        assert_eq!((messages.repeats, messages.split), (0, 2));
    }

    /// Ids of `first` to `last`, each used once.
    fn plain(first: u64, last: u64) -> Vec<Pass> {
        (first..=last).flat_map(|id| [stamp(id, id, 1), stamp(id, id + 1, 2), stamp(id, id + 2, 3)]).collect()
    }

    #[test]
    fn what_was_under_way_when_the_recording_began_is_not_the_next_message_with_that_id() {
        // The id is below all others, or above them.
        for id in [1, 10] {
            let of_id = [(1, 2), (2, 3), (30, 1), (35, 2), (40, 3), (70, 1), (75, 2), (80, 3)];
            let of_id = of_id.map(|(at, point)| stamp(id, at, point)).to_vec();
            let (paths, messages) = paths([of_id, plain(2, 9)].concat());
            let first = if id == 1 { 0 } else { 8 };
            assert_eq!(paths[first..first + 3], [numbered(&[2, 3]), numbered(&[1, 2, 3]), numbered(&[1, 2, 3])]);
            assert_eq!((messages.split, messages.repeats, messages.unclear), (2, 0, 0));
        }
    }

    #[test]
    fn two_ways_from_a_point_have_no_order_by_which_messages_are_left_out() {
        // Of two consumers either may be first. One id is used several times, also while it is under way.
        let fork = |id: u64, at: u64| {
            let (one, other) = if id.is_multiple_of(5) || id % 5 == 1 { (3, 2) } else { (2, 3) };
            [stamp(id, at, 1), stamp(id, at + 1, one), stamp(id, at + 2, other)]
        };
        let plain: Vec<Pass> = (10..110).flat_map(|id| fork(id, id)).collect();
        let again: Vec<Pass> =
            (0..10).flat_map(|nth| fork(nth, 1_000 * nth).map(|pass| Pass { message: 1, ..pass })).collect();
        let messages = Messages::cut([plain, again].concat());
        assert_eq!((messages.iter().count(), messages.split, messages.unclear), (110, 9, 0));
    }

    #[test]
    fn a_point_that_is_passed_a_million_times_under_an_id_that_is_used_again_takes_no_longer_for_each() {
        let many = (0..1_000_000).map(|at| stamp(1, 100 + at, 2));
        let first = [stamp(1, 1, 2), stamp(1, 2, 1)];
        let messages = Messages::cut(first.into_iter().chain(many).chain(plain(2, 9)).collect());
        assert_eq!(messages.iter().count(), 10);
    }

    #[test]
    fn messages_of_an_id_that_is_used_twice_at_once_are_left_out() {
        // The first one is done after the second one was sent, and before that is taken.
        let both = [(10, 1), (20, 2), (30, 1), (40, 3), (50, 2), (60, 3)];
        let later = [(70, 1), (71, 2), (72, 3), (80, 1), (81, 2), (82, 3), (90, 1), (91, 2), (92, 3)];
        let of_id = both.into_iter().chain(later).map(|(at, point)| stamp(1, at, point)).collect();
        let messages = Messages::cut([of_id, plain(2, 9)].concat());
        let (_, first) = messages.iter().next().unwrap();
        assert_eq!((first[0].time_ns, messages.iter().count(), messages.unclear), (90, 9, 4));
    }

    /// A counter of 8 bits, and two stages that now and then stall for longer than it takes to come round. Some messages are dropped.
    #[test]
    fn messages_of_a_counter_of_8_bits_are_never_mixed() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state * 16_807 % 2_147_483_647;
            state % below
        };
        let (mut passes, mut truth, mut free) = (Vec::new(), HashMap::default(), [0u64; 2]);
        for nth in 0..20_000u64 {
            let mut times = vec![nth * 100];
            for stage in &mut free {
                let stall = if random(5000) == 0 { 30_000 } else { 0 };
                *stage = times[times.len() - 1].max(*stage) + 10 + random(60) + stall;
                times.push(*stage);
            }
            let kept = if random(50) == 0 { 1 + random(2) as usize } else { 3 };
            for (point, at) in (1..).zip(&times[..kept]) {
                passes.push(stamp(nth % 256, *at, point));
                truth.insert((nth % 256, *at), nth);
            }
        }
        let messages = Messages::cut(passes);
        for (_, passes) in messages.iter() {
            let of: Vec<u64> = passes.iter().map(|pass| truth[&(pass.message, pass.time_ns)]).collect();
            assert!(of.iter().all(|nth| *nth == of[0]), "{passes:?} are of {of:?}");
        }
        let (kept, left_out) = (messages.iter().count(), messages.unclear);
        assert!(kept > 15_000 && left_out > 100 && kept as u64 + left_out == 20_000, "{kept}, {left_out}");
    }
}
