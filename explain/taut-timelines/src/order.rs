//! The recorded kernel events of all CPUs in one order, compact: ten million of them must fit.

use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

use taut_recording::{KernelBatch, KernelEvent};

/// As many as take 40 MB: an allocation of this size is the system's again as soon as it is free.
const BLOCK: usize = 1 << 20;

/// All kernel events of a recording, in the order of the file.
#[derive(Default)]
pub(crate) struct Events {
    blocks: Vec<Vec<Event>>,
    /// Stretches that each are in order of time: a batch is one.
    runs: Vec<Run>,
}

/// A stretch of a block.
struct Run {
    block: usize,
    events: Range<usize>,
}

/// One event, as [`KernelBatch`] has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub time_ns: u64,
    pub arg0: i64,
    pub arg1: i64,
    pub tid: i32,
    /// The low 32 bits: priorities, modes, error codes and operations fit.
    pub arg2: i32,
    /// The high ones: a futex's expected value.
    pub arg2_high: u32,
    pub cpu: u16,
    pub event: u8,
    pub flags: u8,
}

impl Events {
    pub fn add(&mut self, batch: &KernelBatch) {
        let length = batch.time_ns.len();
        if self.blocks.last().is_none_or(|block| block.len() + length > BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK.max(length)));
        }
        let number = self.blocks.len() - 1;
        let block = &mut self.blocks[number];
        let start = block.len();
        block.extend((0..length).map(|at| Event {
            time_ns: batch.time_ns[at],
            arg0: batch.arg0[at],
            arg1: batch.arg1[at],
            tid: batch.tid[at],
            arg2: batch.arg2[at] as i32,
            arg2_high: (batch.arg2[at] >> 32) as u32,
            cpu: batch.cpu,
            event: batch.event[at],
            flags: batch.flags[at],
        }));
        // Mostly it is.
        block[start..].sort_by_key(|event| event.time_ns);
        self.runs.push(Run { block: number, events: start..start + length });
    }

    /// The times of the first and the last one.
    pub fn span(&self) -> Option<(u64, u64)> {
        let runs = || self.runs.iter().map(|run| &self.blocks[run.block][run.events.clone()]);
        let first = runs().filter_map(|run| run.first()).map(|event| event.time_ns).min()?;
        let last = runs().filter_map(|run| run.last()).map(|event| event.time_ns).max()?;
        Some((first, last))
    }

    /// Gives all of them in order of time. Blocks of which all is given are freed: what is made of the events takes their place.
    pub fn in_order(self, take: &mut dyn FnMut(&Event)) {
        let mut at_once: Vec<Event> = Vec::new();
        self.by_time(|event, next_ns| {
            let is_last = next_ns != Some(event.time_ns);
            if is_last && at_once.is_empty() {
                return take(event);
            }
            at_once.push(*event);
            if is_last {
                if at_once.iter().any(|event| event.cpu != at_once[0].cpu) {
                    merge(&mut at_once);
                }
                at_once.drain(..).for_each(|event| take(&event));
            }
        });
    }

    /// Merges the runs; those of one time in the order of the file. Gives each event with the time of the next one.
    fn by_time(mut self, mut take: impl FnMut(&Event, Option<u64>)) {
        let mut left: Vec<usize> = self.blocks.iter().map(Vec::len).collect();
        let time_ns = |blocks: &[Vec<Event>], run: &Run| Some(blocks[run.block][run.events.clone()].first()?.time_ns);
        let first = |(place, run)| Some(Reverse((time_ns(&self.blocks, run)?, place)));
        let mut next: BinaryHeap<Reverse<(u64, usize)>> = self.runs.iter().enumerate().filter_map(first).collect();
        while let Some(Reverse((_, place))) = next.peek().copied() {
            // Behind the earliest run comes one of the two right below it in the heap.
            let other = next.as_slice()[1..].iter().take(2).map(|Reverse(other)| *other).min();
            let run = &mut self.runs[place];
            let events = &self.blocks[run.block][run.events.clone()];
            let is_later = |event: &Event| other.is_some_and(|other| (event.time_ns, place) > other);
            let length = events.iter().position(is_later).unwrap_or(events.len());
            let (now, later) = events.split_at(length);
            let (other_ns, later_ns) = (other.map(|(time_ns, _)| time_ns), later.first().map(|event| event.time_ns));
            for (at, event) in now.iter().enumerate() {
                let next_ns = match now.get(at + 1) {
                    Some(next) => Some(next.time_ns),
                    None => other_ns.into_iter().chain(later_ns).min(),
                };
                take(event, next_ns);
            }
            match later_ns {
                Some(time_ns) => next.peek_mut().into_iter().for_each(|mut earliest| earliest.0.0 = time_ns),
                None => drop(next.pop()),
            }
            run.events.start += length;
            left[run.block] -= length;
            if left[run.block] == 0 {
                self.blocks[run.block] = Vec::new();
            }
        }
    }
}

/// Puts events of several CPUs at one moment in order: each CPU's stay in theirs, and a switch comes when nothing else is left,
/// so that no wake comes after the switch that it leads to. Who is woken before it is switched out is known to the replay.
fn merge(at_once: &mut [Event]) {
    let mut left = at_once.to_vec();
    let is_switch = |event: &Event| event.event == KernelEvent::SchedSwitch as u8;
    for place in at_once {
        let is_next = |at: &usize| left[..*at].iter().all(|before| before.cpu != left[*at].cpu);
        let mut next = (0..left.len()).filter(is_next);
        let first = next.clone().next().unwrap_or(0);
        *place = left.remove(next.find(|at| !is_switch(&left[*at])).unwrap_or(first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(cpu: u16, times_ns: &[u64], event: KernelEvent) -> KernelBatch {
        let mut batch = KernelBatch { cpu, ..KernelBatch::default() };
        times_ns.iter().for_each(|time_ns| batch.push(*time_ns, event as u8, 0, 0, [0; 3]));
        batch
    }

    fn in_order(batches: &[KernelBatch]) -> Vec<(u64, u16)> {
        let mut events = Events::default();
        batches.iter().for_each(|batch| events.add(batch));
        let (span, mut order) = (events.span(), Vec::new());
        events.in_order(&mut |event| order.push((event.time_ns, event.cpu)));
        assert_eq!(span, order.first().zip(order.last()).map(|(first, last)| (first.0, last.0)));
        order
    }

    #[test]
    fn batches_are_merged_whatever_their_order_in_the_file() {
        use KernelEvent::SchedWaking;
        let batches = [
            batch(1, &[30, 50, 70], SchedWaking),
            batch(0, &[10, 60], SchedWaking),
            batch(0, &[], SchedWaking),
            batch(1, &[20, 5], SchedWaking),
        ];
        assert_eq!(in_order(&batches), [(5, 1), (10, 0), (20, 1), (30, 1), (50, 1), (60, 0), (70, 1)]);
        assert_eq!(in_order(&[]), []);
    }

    #[test]
    fn of_one_moment_the_wake_comes_before_another_cpus_switch() {
        let batches = [
            batch(0, &[10], KernelEvent::SchedSwitch),
            batch(1, &[10], KernelEvent::SchedWaking),
            batch(1, &[10], KernelEvent::SchedExit),
        ];
        assert_eq!(in_order(&batches), [(10, 1), (10, 1), (10, 0)]);
    }
}
