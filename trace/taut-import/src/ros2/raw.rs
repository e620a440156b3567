//! The trace's ROS 2 events → the recording's: other names of fields, and one row of numbers an event.

use taut_recording::{Record, RosBatch, RosEvent, RosObject, RosObjectKind};

use super::threads::Threads;
use crate::{
    Error,
    ctf::{Event, Source},
    writing::Import,
};

/// Ticks are the trace's clock, in nanoseconds.
const COUNTER: u8 = taut_clock::Counter::Monotonic as u8;
/// Events of a thread that are written at once.
const ROWS: usize = 1024;
/// Events of all threads that wait: then all are written.
const MOST_WAITING: usize = 1 << 20;
/// Longer names are cut.
const NAME_BYTES: usize = 255;

/// Events on their way into the recording.
#[derive(Default)]
pub(super) struct Raw {
    by_thread: Vec<RosBatch>,
    /// Threads that were written.
    is_known: Vec<bool>,
    waiting: usize,
}

impl Raw {
    /// Takes an event. `thread` is its thread's number.
    pub fn event(
        &mut self,
        ros: RosEvent,
        (thread, threads): (u32, &Threads),
        time_ns: u64,
        event: &Event<'_>,
        to: &mut Import,
    ) -> Result<(), Error> {
        self.name(thread, threads, time_ns, to)?;
        let of = threads.get(thread);
        let number = |field| event.number(field).unwrap_or(0);
        let (handle, args) = match ros {
            RosEvent::SourceStamp => (0, [0, number(0), 0]),
            RosEvent::Take => (number(0), [number(3), number(1), number(2)]),
            RosEvent::Dispatch => (number(0), [0, number(1), 0]),
            _ => (number(0), [number(1), number(2), 0]),
        };
        if self.by_thread.len() <= thread as usize {
            self.by_thread.resize_with(thread as usize + 1, RosBatch::default);
        }
        let batch = &mut self.by_thread[thread as usize];
        (batch.pid, batch.tid, batch.counter) = (of.pid, of.tid, COUNTER);
        batch.push(time_ns, ros as u8, handle, args);
        self.waiting += 1;
        if self.waiting >= MOST_WAITING {
            return self.write_all(to);
        }
        if self.by_thread[thread as usize].ticks.len() >= ROWS { self.write(thread, to) } else { Ok(()) }
    }

    /// Takes word that something was made. `offset_ns` is from 1970 to the zero of the trace's clock.
    pub fn object(
        &mut self,
        kind: RosObjectKind,
        (thread, threads): (u32, &Threads),
        source: Source,
        offset_ns: i128,
        event: &Event<'_>,
        to: &mut Import,
    ) -> Result<(), Error> {
        self.name(thread, threads, source.time_ns, to)?;
        let number = |field| event.number(field).unwrap_or(0);
        let text = |field| cut(event.text(field).unwrap_or_default());
        let made = event.number(1).map_or(source.time_ns, |made| made_ns(made, source.time_ns, offset_ns));
        let object =
            RosObject { time_ns: made, pid: threads.get(thread).pid, kind, handle: number(0), ..RosObject::default() };
        let object = match kind {
            RosObjectKind::Context => RosObject { text: text(2), ..object },
            RosObjectKind::Node => RosObject { name: text(2), text: text(3), other: number(4), ..object },
            RosObjectKind::Publisher | RosObjectKind::Subscription => {
                RosObject { owner: number(2), other: number(3), name: text(4), number: number(5), ..object }
            }
            RosObjectKind::Service => RosObject { owner: number(2), name: text(3), ..object },
            RosObjectKind::CallbackSymbol => RosObject { name: text(2), ..object },
            RosObjectKind::Timer => RosObject { number: number(2), ..object },
            _ => RosObject { owner: number(2), ..object },
        };
        to.record(&Record::RosObject(object))
    }

    /// Writes all that is left.
    pub fn write_all(&mut self, to: &mut Import) -> Result<(), Error> {
        (0..self.by_thread.len() as u32).try_for_each(|thread| self.write(thread, to))
    }

    fn write(&mut self, thread: u32, to: &mut Import) -> Result<(), Error> {
        let batch = std::mem::take(&mut self.by_thread[thread as usize]);
        self.waiting -= batch.ticks.len();
        if batch.ticks.is_empty() { Ok(()) } else { to.record(&Record::Ros(batch)) }
    }

    /// Says what a thread is called when it comes for the first time.
    fn name(&mut self, thread: u32, threads: &Threads, time_ns: u64, to: &mut Import) -> Result<(), Error> {
        if self.is_known.len() <= thread as usize {
            self.is_known.resize(thread as usize + 1, false);
        }
        if std::mem::replace(&mut self.is_known[thread as usize], true) {
            return Ok(());
        }
        let of = threads.get(thread);
        to.record(&Record::Thread(taut_recording::Thread {
            time_ns,
            pid: of.pid,
            tid: of.tid,
            comm: of.name.clone(),
            recorded: true,
            ..taut_recording::Thread::default()
        }))
    }
}

/// When something was made that was said only later: CARET's clock is the trace's, or counts from 1970.
fn made_ns(made: u64, said_ns: u64, offset_ns: i128) -> u64 {
    let since_1970 = i128::from(made) - offset_ns;
    match made {
        0 => said_ns,
        made if made <= said_ns => made,
        _ => u64::try_from(since_1970).ok().filter(|made| *made <= said_ns).unwrap_or(said_ns),
    }
}

pub(super) fn cut(text: &str) -> String {
    let mut end = text.len().min(NAME_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_caret_says_late_was_made_when_it_says() {
        assert_eq!(made_ns(500, 1_000, 7), 500, "by the trace's clock");
        assert_eq!(made_ns(1_000_500, 1_000, 1_000_000), 500, "since 1970");
        assert_eq!(made_ns(0, 1_000, 7), 1_000);
        assert_eq!(made_ns(u64::MAX, 1_000, 7), 1_000);
    }
}
