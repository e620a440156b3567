//! Kernel events are removed from a real recording, silently or as damage: what they said may become `unknown`, and
//! nothing may become another cause by more than the hole that they leave. `data/README.md` says what was recorded.

use std::collections::HashMap;

use proptest::prelude::*;
use taut_analysis::{Analysis, Analyzer, Cause, Config, ExplainOptions};
use taut_recording::{Contents, KernelBatch, Lost, LostWhat, Record};

const RECORDING: &[u8] = include_bytes!("data/mixed.mcap");
/// Hardware and kernel order events of two CPUs no better than this.
const TOLERANCE_NS: u64 = 5_000;

/// A stretch of a path: from, to, cause, and whether the message waited behind another.
type Piece = (u64, u64, Cause, bool);
/// Of each message: what its time was spent on, in order of time.
type Paths = HashMap<u64, Vec<Piece>>;

fn analysed(records: impl Iterator<Item = Record>, contents: &Contents) -> Analysis {
    let explain = ExplainOptions { worst: 0, from_ns: Some(0), ..ExplainOptions::default() };
    let mut analyzer = Analyzer::new(Config { explain, ..Config::default() });
    records.for_each(|record| analyzer.record(&record));
    let damage = contents.damage.iter().map(ToString::to_string).collect();
    analyzer.finish(contents.info.clone(), contents.ending.clone(), damage, 0).unwrap()
}

fn read(bytes: &[u8]) -> (Vec<Record>, Contents) {
    let mut records = Vec::new();
    let contents = taut_recording::read(bytes, &mut |record| records.push(record)).unwrap();
    (records, contents)
}

fn paths(analysis: &Analysis) -> Paths {
    let start_ns = analysis.totals.start_monotonic_ns;
    let pieces = |path: &taut_analysis::MessagePath| {
        let piece =
            |p: &taut_analysis::PathPiece| (start_ns + p.from_ns, start_ns + p.to_ns, p.cause, p.behind.is_some());
        path.path.iter().map(piece).collect()
    };
    analysis.chains.iter().flat_map(|c| &c.explained.paths).map(|path| (path.time.id, pieces(path))).collect()
}

/// What a message owes to a backlog depends on what earlier ones took beyond the typical, and so on events long before: one
/// part in so many may go to another cause of the same backlog.
const DIVIDED: u64 = 4;

/// For how long the second says another cause than the first and not `unknown`; and the first such stretch. A backlog is
/// divided among its causes in proportion, so there it counts how much each has and not where it lies.
fn changed(whole: &[Piece], part: &[Piece]) -> (u64, String) {
    let (mut sum, mut first) = (0, String::new());
    // By cause: time behind others, in the first and in the second.
    let mut behind: HashMap<Cause, (u64, u64)> = HashMap::new();
    for (from, to, cause, is_behind) in part {
        for (start, end, was, was_behind) in whole {
            let (start, end) = (*start.max(from), *end.min(to));
            if start >= end {
            } else if *is_behind || *was_behind {
                behind.entry(*was).or_default().0 += end - start;
                behind.entry(*cause).or_default().1 += end - start;
            } else if was != cause && *was != Cause::Unknown && *cause != Cause::Unknown {
                sum += end - start;
                if first.is_empty() {
                    first = format!("{} µs from {start}: {was:?} became {cause:?}", (end - start) / 1000);
                }
            }
        }
    }
    let all: u64 = behind.values().map(|(was, _)| was).sum();
    let unknown = behind.remove(&Cause::Unknown).map_or(0, |(was, _)| was);
    let more: u64 = behind.values().map(|(was, is)| is.saturating_sub(*was)).sum();
    if more > unknown + all / DIVIDED {
        sum += more - unknown - all / DIVIDED;
        first += &format!(" behind others {behind:?}");
    }
    (sum, first)
}

/// The recording as it is, and its kernel events in order, by CPU.
struct Real {
    rest: Vec<Record>,
    events: Vec<KernelBatch>,
    contents: Contents,
    paths: Paths,
}

fn real() -> Real {
    let (records, contents) = read(RECORDING);
    let paths = paths(&analysed(records.clone().into_iter(), &contents));
    assert!(paths.len() > 200, "{}", paths.len());
    let mut events: Vec<KernelBatch> = Vec::new();
    let mut rest = Vec::new();
    for record in records {
        let Record::Kernel(batch) = record else {
            rest.push(record);
            continue;
        };
        let cpu = usize::from(batch.cpu);
        events.resize_with(events.len().max(cpu + 1), KernelBatch::default);
        let all = &mut events[cpu];
        all.cpu = batch.cpu;
        all.time_ns.extend(batch.time_ns);
        all.event.extend(batch.event);
        all.flags.extend(batch.flags);
        all.tid.extend(batch.tid);
        all.arg0.extend(batch.arg0);
        all.arg1.extend(batch.arg1);
        all.arg2.extend(batch.arg2);
    }
    Real { rest, events, contents, paths }
}

fn without(batch: &KernelBatch, from: usize, to: usize) -> KernelBatch {
    let kept: Vec<usize> = (0..from).chain(to..batch.time_ns.len()).collect();
    KernelBatch {
        cpu: batch.cpu,
        time_ns: kept.iter().map(|at| batch.time_ns[*at]).collect(),
        event: kept.iter().map(|at| batch.event[*at]).collect(),
        flags: kept.iter().map(|at| batch.flags[*at]).collect(),
        tid: kept.iter().map(|at| batch.tid[*at]).collect(),
        arg0: kept.iter().map(|at| batch.arg0[*at]).collect(),
        arg1: kept.iter().map(|at| batch.arg1[*at]).collect(),
        arg2: kept.iter().map(|at| batch.arg2[*at]).collect(),
    }
}

/// Removes the events `from..to` of a CPU and says what that changed by more than the hole.
fn wrong(real: &Real, cpu: usize, from: usize, to: usize, is_told: bool) -> Option<String> {
    let all = &real.events[cpu];
    let (start, end) = (all.time_ns[from.saturating_sub(1)], all.time_ns[to.min(all.time_ns.len() - 1)]);
    let lost = Lost {
        since_ns: start,
        time_ns: end,
        what: LostWhat::KernelEvents,
        place: format!("cpu {cpu} test"),
        count: (to - from) as u64,
        is_estimate: false,
    };
    let others = real.events.iter().filter(|batch| usize::from(batch.cpu) != cpu).cloned();
    let records =
        real.rest.iter().cloned().chain([without(all, from, to)].into_iter().chain(others).map(Record::Kernel));
    let analysis = analysed(records.chain(is_told.then_some(Record::Lost(lost))), &real.contents);
    let removed = (from..to).take(3).map(|at| (all.event[at], all.tid[at], all.arg0[at], all.time_ns[at]));
    let removed =
        format!("cpu {cpu}, events {from}..{to} {:?}, hole {} µs", removed.collect::<Vec<_>>(), (end - start) / 1000);
    let paths = paths(&analysis);
    if paths.len() != real.paths.len() {
        return Some(format!("{removed}: {} messages of {}", paths.len(), real.paths.len()));
    }
    let wrong = paths.iter().find_map(|(id, part)| {
        let (ns, first) = changed(&real.paths[id], part);
        (ns > end - start + TOLERANCE_NS).then(|| format!("message {id}: {} µs, first {first}", ns / 1000))
    });
    wrong.map(|wrong| format!("{removed}: {wrong}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn missing_events_make_no_other_cause(
        cpu in any::<prop::sample::Index>(),
        from in any::<prop::sample::Index>(),
        length in prop_oneof![3 => Just(1), 1 => 2..40usize, 1 => 40..2000usize],
        is_told in any::<bool>(),
    ) {
        thread_local!(static REAL: Real = real());
        REAL.with(|real| {
            let cpu = cpu.index(real.events.len());
            let from = from.index(real.events[cpu].time_ns.len());
            let to = (from + length).min(real.events[cpu].time_ns.len());
            let wrong = wrong(real, cpu, from, to, is_told);
            prop_assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
            Ok(())
        })?;
    }
}

/// Where each chunk of compressed records begins and ends.
fn chunks(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut at = 8;
    let mut chunks = Vec::new();
    while at + 9 <= bytes.len() - 8 {
        let end = at + 9 + u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap()) as usize;
        if bytes[at] == 6 {
            chunks.push((at + 53, end));
        }
        at = end;
    }
    chunks
}

#[test]
fn a_damaged_chunk_is_a_loss_and_makes_no_other_cause() {
    let real = real();
    let (mut kernel, mut stamps) = (0, 0);
    for (start, end) in chunks(RECORDING) {
        let mut bytes = RECORDING.to_vec();
        bytes[start + (end - start) / 2] ^= 0x10;
        let (records, contents) = read(&bytes);
        assert_eq!(contents.damage.len(), 1, "{:?}", contents.damage);
        let analysis = analysed(records.iter().cloned(), &contents);
        let totals = &analysis.totals;
        let (stamps_gone, events_gone) =
            (real.contents.stamps - contents.stamps, real.contents.kernel_events - contents.kernel_events);
        kernel += u32::from(events_gone > 0);
        stamps += u32::from(stamps_gone > 0);
        for (gone, lost, is_estimate) in [
            (stamps_gone, totals.lost_stamps, totals.lost_stamps_is_estimate),
            (events_gone, totals.lost_kernel_events, totals.lost_kernel_events_is_estimate),
        ] {
            assert_eq!(is_estimate, gone > 0);
            assert!(lost <= 2 * gone + 10 && gone <= 2 * lost + 10, "{gone} are gone, {lost} are said to be lost");
        }
        assert!(analysis.has_loss());
        let unexplained: u64 = analysis.chains.iter().map(|chain| chain.outcomes.unexplained).sum();
        assert_eq!(unexplained, 0, "messages vanish with the chunk at {start}");
        // Stamps say what is a message at all: only where none are gone the paths can be compared.
        for (id, part) in paths(&analysis).iter().filter(|_| stamps_gone == 0) {
            let (ns, first) = changed(&real.paths[id], part);
            assert!(ns <= TOLERANCE_NS, "chunk at {start}, message {id}: {first}");
        }
        // What is recovered says the same.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recovered.mcap");
        taut_recording::recover(&bytes, &path).unwrap();
        let (records, recovered) = read(&std::fs::read(path).unwrap());
        assert_eq!(recovered.damage, []);
        let again = analysed(records.into_iter(), &recovered);
        assert!(again.notes.iter().any(|note| note.contains("recovered from")), "{:?}", again.notes);
        assert_eq!(again.has_loss(), stamps_gone + events_gone > 0);
        assert_eq!(again.totals.lost_kernel_events, totals.lost_kernel_events);
        assert_eq!(again.totals.lost_stamps, totals.lost_stamps);
        assert_eq!(paths(&again), paths(&analysis));
    }
    assert!(kernel > 2 && stamps > 2, "{kernel} {stamps}");
}
