//! Kernel events as rows until they leave as columns, one queue per CPU, in time order.
//! Between the readers of the kernel's rings and the sink of [`super::Source::drain`].

use taut_recording::{KernelBatch, KernelEvent};

/// Rows of one batch at most, so that a batch stays well below a file's chunk.
const ROWS_PER_BATCH: usize = 16 * 1024;

/// One kernel event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// CLOCK_MONOTONIC.
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

/// Gathers rows of several rings and releases them in time order per CPU.
#[derive(Debug, Default)]
pub struct Rows {
    per_cpu: Vec<Vec<Row>>,
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

    /// Hands over all rows stamped at or before `until_ns`; later ones stay, because another ring of
    /// the same CPU may still deliver rows from before them.
    pub fn release(&mut self, until_ns: u64, sink: &mut dyn FnMut(KernelBatch)) {
        for (cpu, rows) in self.per_cpu.iter_mut().enumerate() {
            // Two runs that are sorted already: the stable sort merges them in linear time.
            rows.sort_by_key(|row| row.time_ns);
            let ready = rows.partition_point(|row| row.time_ns <= until_ns);
            for part in rows[..ready].chunks(ROWS_PER_BATCH) {
                sink(batch(cpu as u16, part));
            }
            rows.drain(..ready);
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
    fn nothing_is_handed_over_for_a_quiet_cpu() {
        let mut rows = Rows::default();
        rows.of_cpu(3);
        rows.release(u64::MAX, &mut |_| panic!("an empty batch"));
    }
}
