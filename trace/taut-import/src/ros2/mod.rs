//! CTF traces of ROS 2 → recordings: messages followed from timer or publish to callback over all processes.
//!
//! Two readings of the trace. The first finds out who there is (`census`): nodes, topics, callbacks, by name, and which
//! callback publishes what; from that come the chains (`chains`). The second follows messages (`flow`): through the
//! queues of topics (`queues`) by their source timestamps, and stamps them with an id of their own at each point. A
//! datum that comes to several callbacks is a message of several chains, with an id in each.
//! `docs/import.md` says it in words.

mod census;
mod chains;
mod events;
mod flow;
mod kernel;
mod queues;
mod sheets;
mod threads;

use std::path::Path;

use taut_recording::{Info, Lost, LostWhat, Record, Tier};

use self::{
    census::{Census, System},
    chains::Chains,
    events::Events,
    flow::{Counts, Flow},
};
use crate::{
    Error, Imported,
    ctf::{Loss, Reading, Traces},
    histogram,
    writing::Import,
};

/// Imports the traces at or below the folder `from` into a recording at `to`. `progress` is told bytes done, of those in
/// all files below the folder.
///
/// # Errors
/// There is no CTF 1.8 trace, nothing of ROS 2 is in it, or the recording cannot be written. Then there is no recording.
pub fn import(from: &Path, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<Imported, Error> {
    let traces = Traces::find(from, &Events)?;
    let offset_ns = traces.offset_ns();
    let mut census = Census::default();
    // Both readings are half of the work.
    let read = traces.read(
        &mut |source, event| {
            census.take(source, event, offset_ns);
            Ok(())
        },
        &mut |done| progress(done / 2),
    );
    let reading = read?;
    let (Some(start_ns), end_ns) = (census.first_ns, census.last_ns) else {
        return Err(Error::Empty("no event that ros2_tracing, CARET or LTTng's kernel tracer knows".to_owned()));
    };
    let (ros_events, nobodys) = (census.ros_events, census.nobodys);
    if ros_events == nobodys {
        let why = match ros_events {
            0 => "no event of ros2_tracing or CARET",
            _ => "its events do not tell their thread: record with the contexts vpid, vtid and procname",
        };
        return Err(Error::Empty(why.to_owned()));
    }
    let (system, threads) = census.finish();
    let mut import = Import::begin_with(to, &info(&traces, &system, start_ns))?;
    let mut flow = Flow::new(&system, threads);
    traces.read(&mut |source, event| flow.take(source, event, offset_ns, &mut import), &mut |done| {
        progress(traces.bytes / 2 + done / 2);
    })?;
    let (counts, chains) = flow.finish(end_ns, &mut import)?;
    import.until(end_ns)?;
    for (chain, ages) in &counts.ages {
        let name = flow::age_name(&chains.all[*chain as usize].name);
        import.histogram(histogram::durations(&name, &ages.of_ns))?;
    }
    tell(&reading, &mut import)?;
    if nobodys > 0 {
        import.note(format!("{nobodys} events do not tell their thread and were left out"));
    }
    notes(&system, &counts, &chains, &traces).into_iter().for_each(|note| import.note(note));
    import.finish()
}

fn info(traces: &Traces, system: &System, start_ns: u64) -> Info {
    let realtime_ns = i128::from(start_ns) + traces.offset_ns();
    let (tier, source, reason) = match (system.has_switches, system.has_calls) {
        (true, true) => (Tier::Full, "lttng", ""),
        (true, false) => {
            let reason = "the trace has no system calls: what a thread waits for is seen only by who wakes it; record with \
                          `ros2 trace --syscall futex …`";
            (Tier::Full, "lttng", reason)
        }
        (false, _) => {
            let reason = "the trace has no kernel events, so causes are not seen: record with `ros2 trace -k sched_switch \
                          sched_waking irq_handler_entry irq_handler_exit irq_softirq_entry irq_softirq_exit`";
            (Tier::Stamps, "none", reason)
        }
    };
    let mut facts = vec![("imported_from".to_owned(), "ctf".to_owned())];
    if !system.version.is_empty() {
        facts.push(("ros2_tracing".to_owned(), system.version.clone()));
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
        let (what, from) = if *is_kernel { (LostWhat::KernelEvents, "kernel") } else { (LostWhat::Stamps, "ust") };
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

/// What one must know to trust the figures.
fn notes(system: &System, counts: &Counts, chains: &Chains, traces: &Traces) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            notes.push(format!("{count} {what}"));
        }
    };
    note(
        system.unknown,
        "callbacks or publishers were made before the trace began and cannot be named: start tracing before the nodes",
    );
    note(
        counts.by_order,
        "messages were told apart by the order of their queue alone, because these versions do not record what is taken: \
         where some are lost, others look later than they were",
    );
    note(
        counts.by_time,
        "messages were told apart by the moment of their source timestamp, because these versions do not record it with the \
         publish",
    );
    note(counts.unmatched, "messages were taken whose publish is not in the trace, or led nowhere");
    note(chains.cut, "places begin more chains than can be followed: some ways through kept data were left out");
    if traces.hosts() > 1 {
        notes.push(format!(
            "the traces are of {} machines: times between them are as exact as their clocks were set alike",
            traces.hosts()
        ));
    }
    notes
}
