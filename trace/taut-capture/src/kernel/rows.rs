//! Kernel events as rows until they leave as columns, one queue per CPU, in time order.
//! Between the readers of the kernel's rings and the sink of [`super::Source::drain`].

use taut_recording::{KernelBatch, KernelEvent};

use crate::time_namespace::ahead_ns;

/// Rows of one batch at most, so that a batch stays well below a file's chunk.
const ROWS_PER_BATCH: usize = 16 * 1024;

/// A timer's moment that is further from its event is of another clock.
const SAME_CLOCK_NS: u64 = 86_400_000_000_000;

/// One kernel event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// CLOCK_MONOTONIC, the kernel's: outside of any time namespace.
    pub time_ns: u64,
    /// Which event.
    pub event: KernelEvent,
    /// `common_flags` of the tracepoint.
    pub flags: u8,
    /// The thread that was current.
    pub tid: i32,
    /// As documented on [`KernelEvent`].
    pub args: [i64; 3],
}

/// Gathers rows of several rings and releases them in time order per CPU, on this process's CLOCK_MONOTONIC.
#[derive(Debug)]
pub struct Rows {
    per_cpu: Vec<Vec<Row>>,
    /// By how much that is ahead of the kernel's.
    ahead_ns: i64,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows { per_cpu: Vec::new(), ahead_ns: ahead_ns() }
    }
}

impl Rows {
    /// The queue of one CPU, for a reader to append to.
    pub fn of_cpu(&mut self, cpu: u16) -> &mut Vec<Row> {
        let cpu = usize::from(cpu);
        if self.per_cpu.len() <= cpu {
            self.per_cpu.resize_with(cpu + 1, Vec::new);
        }
        &mut self.per_cpu[cpu]
    }

    /// Hands over all rows stamped at or before `until_ns`, on this process's clock; later ones stay, because another ring of
    /// the same CPU may still deliver rows from before them.
    pub fn release(&mut self, until_ns: u64, sink: &mut dyn FnMut(KernelBatch)) {
        let (ahead_ns, until_ns) = (self.ahead_ns, until_ns.saturating_add_signed(-self.ahead_ns));
        for (cpu, rows) in self.per_cpu.iter_mut().enumerate() {
            // Two runs that are sorted already: the stable sort merges them in linear time.
            rows.sort_by_key(|row| row.time_ns);
            let ready = rows.partition_point(|row| row.time_ns <= until_ns);
            for part in rows[..ready].chunks(ROWS_PER_BATCH) {
                let mut batch = batch(cpu as u16, part);
                if ahead_ns != 0 {
                    shift(&mut batch, ahead_ns);
                }
                sink(batch);
            }
            rows.drain(..ready);
        }
    }
}

/// Times, and moments of timers that are of the same clock.
fn shift(batch: &mut KernelBatch, by_ns: i64) {
    for at in 0..batch.time_ns.len() {
        let time_ns = batch.time_ns[at];
        batch.time_ns[at] = time_ns.saturating_add_signed(by_ns);
        let moments: &mut [&mut i64] = match KernelEvent::from_number(batch.event[at]) {
            Some(KernelEvent::TimerStart) => &mut [&mut batch.arg0[at], &mut batch.arg1[at]],
            Some(KernelEvent::TimerExpire) => &mut [&mut batch.arg1[at]],
            _ => &mut [],
        };
        for moment in moments.iter_mut().filter(|moment| ***moment > 0) {
            if moment.unsigned_abs().abs_diff(time_ns) < SAME_CLOCK_NS {
                **moment = moment.saturating_add(by_ns);
            }
        }
    }
}

fn batch(cpu: u16, rows: &[Row]) -> KernelBatch {
    KernelBatch {
        cpu,
        time_ns: rows.iter().map(|row| row.time_ns).collect(),
        event: rows.iter().map(|row| row.event as u8).collect(),
        flags: rows.iter().map(|row| row.flags).collect(),
        tid: rows.iter().map(|row| row.tid).collect(),
        arg0: rows.iter().map(|row| row.args[0]).collect(),
        arg1: rows.iter().map(|row| row.args[1]).collect(),
        arg2: rows.iter().map(|row| row.args[2]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(time_ns: u64) -> Row {
        Row { time_ns, event: KernelEvent::SchedSwitch, flags: 0, tid: 1, args: [0; 3] }
    }

    #[test]
    fn rows_of_two_rings_leave_in_time_order_and_late_ones_wait() {
        let mut rows = Rows::default();
        rows.of_cpu(1).extend([row(10), row(30), row(50)]);
        rows.of_cpu(1).extend([row(20), row(40)]);
        let mut seen = Vec::new();
        rows.release(35, &mut |batch| seen.push((batch.cpu, batch.time_ns)));
        rows.of_cpu(1).push(row(36));
        rows.release(u64::MAX, &mut |batch| seen.push((batch.cpu, batch.time_ns)));
        assert_eq!(seen, [(1, vec![10, 20, 30]), (1, vec![36, 40, 50])]);
    }

    #[test]
    fn in_a_time_namespace_rows_are_on_its_clock_and_wait_by_it() {
        const AHEAD_NS: i64 = 1_000_000_000_000;
        const REALTIME_NS: i64 = 1_795_000_000_000_000_000;
        let mut rows = Rows { ahead_ns: AHEAD_NS, ..Rows::default() };
        let timer = |time_ns, asked_ns| Row {
            event: KernelEvent::TimerStart,
            args: [asked_ns, asked_ns + 50, 7],
            ..row(time_ns)
        };
        rows.of_cpu(0).extend([row(10), timer(20, 120), timer(30, REALTIME_NS), row(60)]);
        let mut seen = Vec::new();
        rows.release(AHEAD_NS as u64 + 50, &mut |batch| seen.extend(batch.time_ns.into_iter().zip(batch.arg0)));
        let on_own = |ns: i64| AHEAD_NS + ns;
        assert_eq!(seen, [(on_own(10) as u64, 0), (on_own(20) as u64, on_own(120)), (on_own(30) as u64, REALTIME_NS)]);
    }

    #[test]
    fn nothing_is_handed_over_for_a_quiet_cpu() {
        let mut rows = Rows::default();
        rows.of_cpu(3);
        rows.release(u64::MAX, &mut |_| panic!("an empty batch"));
    }
}
