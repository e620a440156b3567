//! CTF traces of ROS 2 → recordings: the trace's events as they are. Linking them into messages is the analysis' part.
//!
//! Two readings of the trace: the first finds out which threads and events there are (`survey`), since a recording begins with that. The
//! second writes them: those of ROS 2 (`raw`) and the kernel's (`kernel`). `docs/reference/import.md` says it in words.

mod events;
mod kernel;
mod raw;
mod survey;
mod threads;

use std::path::Path;

use taut_recording::{Info, Lost, LostWhat, Record, Tier};

use self::{
    events::{Events, What, what},
    kernel::Kernel,
    raw::Raw,
    survey::Survey,
};
use crate::{
    Error, Imported,
    ctf::{Event, Loss, Reading, Source, Traces},
    writing::Import,
};

/// The recording's chunks are closed at least this often.
const FLUSH_NS: u64 = 10_000_000_000;

/// Imports the traces at or below the folder `from` into a recording at `to`. `progress` gets the bytes done, of those in
/// all files below the folder.
///
/// # Errors
/// There is no CTF 1.8 trace, nothing of ROS 2 is in it, or the recording cannot be written. Then there is no recording.
pub fn import(from: &Path, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<Imported, Error> {
    let traces = Traces::find(from, &Events)?;
    let offset_ns = traces.offset_ns();
    let mut survey = Survey::default();
    // Both readings are half of the work.
    let read = traces.read(
        &mut |source, event| {
            survey.take(source, event);
            Ok(())
        },
        &mut |done| progress(done / 2),
    );
    let reading = read?;
    let (Some(start_ns), end_ns) = (survey.first_ns, survey.last_ns) else {
        return Err(Error::Empty("no event that ros2_tracing, CARET or LTTng's kernel tracer knows".to_owned()));
    };
    let (ros_events, nobodys) = (survey.ros_events, survey.nobodys);
    if ros_events == nobodys {
        let why = match ros_events {
            0 => "no event of ros2_tracing or CARET",
            _ => "its events do not tell their thread: record with the contexts vpid, vtid and procname",
        };
        return Err(Error::Empty(why.to_owned()));
    }
    let mut import = Import::begin_with(to, &info(&traces, &survey, start_ns))?;
    let mut writing = Writing {
        kernel: Kernel::new(survey.has_waking, &survey.threads),
        survey,
        raw: Raw::default(),
        offset_ns,
        flushed_ns: 0,
    };
    traces.read(&mut |source, event| writing.take(source, event, &mut import), &mut |done| {
        progress(traces.bytes / 2 + done / 2);
    })?;
    writing.raw.write_all(&mut import)?;
    writing.kernel.finish(&mut import)?;
    import.until(end_ns)?;
    tell(&reading, &mut import)?;
    if nobodys > 0 {
        import.note(format!("{nobodys} events do not tell their thread and were left out"));
    }
    if traces.hosts() > 1 {
        import.note(format!(
            "the traces are of {} machines: times between them are as exact as their clocks were set alike",
            traces.hosts()
        ));
    }
    import.finish()
}

/// The second reading.
struct Writing {
    survey: Survey,
    raw: Raw,
    kernel: Kernel,
    /// From 1970 to the zero of the trace's clock.
    offset_ns: i128,
    flushed_ns: u64,
}

impl Writing {
    fn take(&mut self, source: Source, event: &Event<'_>, to: &mut Import) -> Result<(), Error> {
        if source.time_ns >= self.flushed_ns.saturating_add(FLUSH_NS) {
            self.flushed_ns = source.time_ns;
            to.until(source.time_ns)?;
        }
        let threads = &mut self.survey.threads;
        match what(event.kind) {
            What::Ros(ros) => match threads.of(source, event) {
                Some(thread) => self.raw.event(ros, (thread, &*threads), source.time_ns, event, to),
                None => Ok(()),
            },
            What::Init(kind) => match threads.of(source, event) {
                Some(thread) => self.raw.object(kind, (thread, &*threads), source, self.offset_ns, event, to),
                None => Ok(()),
            },
            kernel => self.kernel.take(kernel, source, event, to),
        }
    }
}

fn info(traces: &Traces, survey: &Survey, start_ns: u64) -> Info {
    let realtime_ns = i128::from(start_ns) + traces.offset_ns();
    let (tier, source, reason) = match (survey.has_switches, survey.has_calls) {
        (true, true) => (Tier::Full, "lttng", ""),
        (true, false) => {
            let reason = "the trace has no system calls: what a thread waits for is seen only by which thread \
                          wakes it; record with `ros2 trace --syscall futex …`";
            (Tier::Full, "lttng", reason)
        }
        (false, _) => {
            let reason = "the trace has no kernel events, so causes are not seen: record with `ros2 trace -k sched_switch \
                          sched_waking irq_handler_entry irq_handler_exit irq_softirq_entry irq_softirq_exit`";
            (Tier::Stamps, "none", reason)
        }
    };
    let mut facts = vec![("imported_from".to_owned(), "ctf".to_owned())];
    if !survey.version.is_empty() {
        facts.push(("ros2_tracing".to_owned(), survey.version.clone()));
    }
    Info {
        taut_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: traces.host().to_owned(),
        system_calls: events::NUMBERED.word().to_owned(),
        tier,
        kernel_source: source.to_owned(),
        tier_reason: reason.to_owned(),
        start_monotonic_ns: start_ns,
        start_realtime_ns: u64::try_from(realtime_ns).unwrap_or(start_ns),
        facts,
        ..Info::default()
    }
}

/// What the tracer lost, and what of its files is damaged.
fn tell(reading: &Reading, import: &mut Import) -> Result<(), Error> {
    for Loss { time_ns, is_kernel, cpu, events } in &reading.losses {
        let (what, from) = if *is_kernel { (LostWhat::KernelEvents, "kernel") } else { (LostWhat::RosEvents, "ust") };
        let place = format!("cpu {cpu} lttng {from}");
        import.record(&Record::Lost(Lost { time_ns: *time_ns, what, place, count: *events, ..Lost::default() }))?;
    }
    let lost: u64 = reading.losses.iter().filter(|loss| !loss.is_kernel).map(|loss| loss.events).sum();
    if lost > 0 {
        import.note(format!(
            "LTTng discarded {lost} events of the programs: messages may look lost that were not; record with larger \
             or more sub-buffers (subbuffer_size_ust of the Trace action, or lttng enable-channel --subbuf-size)"
        ));
    }
    if reading.missing_packets > 0 {
        import.note(format!("{} packets of the trace are missing", reading.missing_packets));
    }
    reading.damage.iter().for_each(|damage| import.damage(damage.clone()));
    Ok(())
}
