//! Recordings, which may be foreign files: read whole, followed, by channel, and all that reports make of them.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Cursor,
    ops::ControlFlow,
    time::{Duration, SystemTime},
};

use taut_analysis::{Analyzer, Config, Row};
use taut_points::hosts::{ClocksFrom, Host, Renumber, Survey, join, joined_info};
use taut_recording::{
    Ending, GrowingRecording, Info, Record, Writer, channel_numbers, log::Log, read, recover, ros2msg::Schema,
    telemetry::StructLayout,
};
use taut_report::{
    Asked, Named, Style, explain_document,
    export::{IntervalLog, Latencies, Perfetto, csv},
    hosts_sentences, interactive, report_document,
};

use crate::{file, halves};

/// As a whole file, and as the records inside a chunk whose length, compression and checksum are right, since no fuzzer
/// guesses a checksum.
pub fn whole(bytes: &[u8]) {
    check(bytes);
    check(&in_a_chunk(bytes));
}

fn check(bytes: &[u8]) {
    let (mut stamps, mut kernel_events, mut ros_events) = (0, 0, 0);
    let contents = read(bytes, &mut |record| match record {
        Record::Stamps(batch) => {
            let lengths = [batch.message_id.len(), batch.point.len(), batch.kind.len(), batch.value.len()];
            assert_eq!(lengths, [batch.ticks.len(); 4]);
            stamps += batch.ticks.len() as u64;
        }
        Record::Kernel(batch) => {
            assert_eq!([batch.event.len(), batch.tid.len(), batch.arg2.len()], [batch.time_ns.len(); 3]);
            kernel_events += batch.time_ns.len() as u64;
        }
        Record::Ros(batch) => {
            let lengths = [batch.event.len(), batch.handle.len(), batch.arg0.len(), batch.arg1.len(), batch.arg2.len()];
            assert_eq!(lengths, [batch.ticks.len(); 5]);
            ros_events += batch.ticks.len() as u64;
        }
        Record::RosObject(object) => assert!(!(object.name + &object.text).contains(char::is_control)),
        Record::Name(name) => assert!(!name.name.contains(char::is_control)),
        Record::Thread(thread) => assert!(!(thread.comm + &thread.cmdline).contains(char::is_control)),
        Record::Channel(channel) => assert!(!channel.topic.contains(char::is_control)),
        _ => {}
    });
    let Ok(contents) = contents else { return };
    assert_eq!((contents.stamps, contents.kernel_events, contents.ros_events), (stamps, kernel_events, ros_events));
    contents.damage.iter().for_each(|damage| assert!(!damage.to_string().is_empty()));
    recovers(bytes, stamps, kernel_events);
}

/// What is recovered is whole, and all that could be read. One file in 64, because it goes by the disk.
fn recovers(bytes: &[u8], stamps: u64, kernel_events: u64) {
    if !crc32fast::hash(bytes).is_multiple_of(64) {
        return;
    }
    let to = file("recovered.mcap");
    let recovered = recover(bytes, &to).expect("what reads recovers");
    assert_eq!((recovered.stamps, recovered.kernel_events), (stamps, kernel_events));
    let clean = read(&std::fs::read(&to).expect("the clean file"), &mut |_| {}).expect("a recording");
    std::fs::remove_file(&to).expect("the clean file is ours");
    assert_eq!((clean.stamps, clean.kernel_events, clean.damage.len()), (stamps, kernel_events, 0));
}

fn in_a_chunk(records: &[u8]) -> Vec<u8> {
    let compressed = zstd::bulk::compress(records, 1).expect("compresses");
    let mut file = b"\x89MCAP0\r\n".to_vec();
    file.push(0x06);
    file.extend((44 + compressed.len() as u64).to_le_bytes());
    file.extend([0; 16]);
    file.extend((records.len() as u64).to_le_bytes());
    file.extend(crc32fast::hash(records).to_le_bytes());
    file.extend(b"\x04\0\0\0zstd");
    file.extend((compressed.len() as u64).to_le_bytes());
    file.extend(compressed);
    file
}

/// A file that grows: its first half, then all of it.
pub fn followed(bytes: &[u8]) {
    let head = in_a_chunk(bytes);
    // Whoever follows wants a kilobyte before it believes a head.
    let grown = [&head[..], &[0; 1024], bytes].concat();
    for whole in [bytes, &grown] {
        let path = file("followed.mcap");
        std::fs::write(&path, halves(whole).0).expect("the folder is ours");
        let mut tail =
            GrowingRecording::new(File::open(&path).expect("it was written"), u64::from(bytes.len() as u32 % 2));
        let mut after = 0;
        for part in [halves(whole).0, whole] {
            std::fs::write(&path, part).expect("the file is ours");
            let read = tail.read(&mut |_, _| {});
            assert!(tail.position() >= after && tail.position() <= part.len() as u64);
            after = tail.position();
            if let Err(error) = read {
                assert!(!error.to_string().contains('\n'), "{error}");
                break;
            }
        }
        std::fs::remove_file(&path).expect("the file is ours");
    }
}

/// One channel, one moment.
pub fn log(bytes: &[u8]) {
    for whole in [bytes, &in_a_chunk(bytes)] {
        let Ok(mut log) = Log::open(Cursor::new(whole)) else { continue };
        let span = log.span();
        let numbers: Vec<u16> = log.channels().iter().map(|channel| channel.number).collect();
        for number in numbers.into_iter().take(16) {
            let mut count = 0;
            let mut each = |message: taut_recording::log::Message<'_>| {
                assert!(message.channel == number && span.contains(&message.log_time_ns));
                count += 1;
                if count < 1000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let _ = log.read(number, span.clone(), &mut each);
            let _ = log.read_back(number, span.clone(), &mut |_| ControlFlow::Break(()));
        }
        let _ = log.state_at(span.end, &mut |_| {});
    }
}

/// All that reports make of it.
pub fn reported(bytes: &[u8]) {
    for whole in [bytes, &in_a_chunk(bytes)] {
        let mut analyzer = Analyzer::new(Config::default());
        let Ok(contents) = read(whole, &mut |record| analyzer.record(&record)) else { continue };
        let damage = contents.damage.iter().map(ToString::to_string).collect();
        let Ok(analysis) = analyzer.finish(contents.info, contents.ending, damage, whole.len() as u64) else {
            continue;
        };
        let named = Named { name: "run.mcap", analysis: &analysis };
        let report = report_document(named);
        let page = interactive(&report);
        let data = page.matches("<script type=\"application/json\"").count();
        assert_eq!(page.matches("</script").count(), data + 1, "its data and its program, and nothing foreign");
        for document in [report, explain_document(named, Asked::default())] {
            taut_document::terminal(&document, Style::default());
            taut_document::markdown(&document);
        }
        assert!(taut_report::json(&[named]).is_object());
    }
}

/// What other tools are given of it: all forms that `taut export` has but tables.
pub fn exported(bytes: &[u8]) {
    for whole in [bytes, &in_a_chunk(bytes)] {
        let mut config = Config::default();
        // Every message with its path.
        (config.explain.worst, config.explain.from_ns) = (0, Some(0));
        let (mut analyzer, mut threads) = (Analyzer::new(config), BTreeMap::new());
        let contents = read(whole, &mut |record| {
            if let Record::Thread(thread) = &record {
                threads.insert(thread.tid, thread.clone());
            }
            analyzer.record(&record);
        });
        let Ok(contents) = contents else { continue };
        let info = contents.info;
        let (mut log, mut latencies) = (IntervalLog::new(info.start_monotonic_ns), Latencies::default());
        let mut each = |row: Row<'_>| {
            log.row(&row);
            latencies.row(&row);
        };
        let bytes = whole.len() as u64;
        let analysis = analyzer.finish_by_row(info.clone(), contents.ending, Vec::new(), bytes, &mut each);
        let Ok(analysis) = analysis else { continue };
        csv(&mut Vec::<u8>::new(), &analysis).expect("memory takes it");
        let _ = log.write(&mut Vec::<u8>::new(), SystemTime::UNIX_EPOCH + Duration::from_nanos(info.start_realtime_ns));
        let mut trace = Perfetto::start(Vec::<u8>::new(), &info, &threads).expect("memory takes it");
        read(whole, &mut |record| trace.record(&record).expect("memory takes it")).expect("it was read before");
        trace.chains(&analysis).expect("memory takes it");
        let to = file("latencies.mcap");
        let mut writer = Writer::create(&to, &Info::default()).expect("a file of ours");
        // More channels than a recording may have are an error.
        let _ = latencies.write(&mut writer);
        writer.finish(&Ending::default()).expect("a file of ours");
        std::fs::remove_file(&to).expect("the file is ours");
    }
}

/// Recordings of two hosts, a half each, on one clock.
pub fn joined(bytes: &[u8]) {
    let (first, second) = halves(bytes);
    for files in [[first.to_vec(), second.to_vec()], [first, second].map(in_a_chunk)] {
        let surveyed = files.each_ref().map(|file| {
            let mut survey = Survey::default();
            let contents = read(file, &mut |record| survey.record(&record));
            contents.map(|contents| (survey, contents.info))
        });
        let [Ok((survey, info)), Ok((other, its_info))] = &surveyed else { continue };
        let hosts = [Host { name: "a", survey, info }, Host { name: "b", survey: other, info: its_info }];
        for by in [None, Some(ClocksFrom::Messages), Some(ClocksFrom::Realtime)] {
            let Ok(mut joined) = join(&hosts, &[], by) else { continue };
            if by == Some(ClocksFrom::Realtime) {
                joined.by_realtime();
            }
            assert!(hosts_sentences(&joined, &["a", "b"]).iter().all(|sentence| !sentence.contains('\n')));
            let mut analyzer = Analyzer::new(Config::default());
            for (number, file) in (0..).zip(&files) {
                let renumber = Renumber::new(number, &hosts, &joined);
                read(file, &mut |record| renumber.record(record).iter().for_each(|record| analyzer.record(record)))
                    .expect("it was read before");
            }
            let _ = analyzer.finish(joined_info(&hosts, &joined), None, Vec::new(), bytes.len() as u64);
        }
    }
}

/// Numbers out of a foreign file's messages, by their schema.
pub fn numbers(bytes: &[u8]) {
    for whole in [bytes, &in_a_chunk(bytes)] {
        let told = channel_numbers(whole, "/a", &["x", "a.b[2]"], &mut |_, values| assert_eq!(values.len(), 2));
        if let Err(error) = told {
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}

/// A description of a telemetry struct, a line with a zero byte behind it, and a value by it: what is accepted encodes to what
/// its schema decodes.
pub fn description(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..at]);
    let mut value = bytes[at..].get(1..).unwrap_or_default().to_vec();
    // The size that it states, so that not most inputs end there.
    let last = text.lines().rev().find_map(|line| line.strip_prefix("type\t")?.split('\t').nth(1)?.parse().ok());
    value.resize(last.unwrap_or(8).clamp(1, 1 << 16), 0x55);
    let Ok(layout) = StructLayout::parse(&text, value.len()) else { return };
    let mut message = Vec::new();
    layout.encode(&value, &mut message);
    let Ok(schema) = Schema::parse(&layout.schema) else { return };
    assert!(schema.decode(&message).is_some(), "{}", layout.schema);
    schema.numbers(1000);
}

/// A schema, and a message by it.
pub fn schema(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let Ok(schema) = Schema::parse(&String::from_utf8_lossy(&bytes[..at])) else { return };
    assert!(schema.numbers(1000).len() <= 1000);
    schema.decode(&bytes[at..]);
}
