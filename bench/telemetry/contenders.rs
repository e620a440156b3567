//! The ways to log, each as its documentation shows it first.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    sync::{Arc, Condvar, Mutex},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use taut_stamp::telemetry::Channel;

use crate::signal::{All, Of, Paced, RATE_HZ, VALUES, cpu_ns, paced, quantiles};

const SCHEMA: &str = "float64[2000] value\n";

pub fn run(kind: &str, seconds: f64, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let (began, before) = (Instant::now(), cpu_ns(Of::Process));
    let Paced { calls, between_ns } = match kind {
        "none" => paced(seconds, |signals| {
            std::hint::black_box(&signals.all);
        }),
        "taut" => {
            let mut channel = Channel::<All>::new("all", RATE_HZ);
            paced(seconds, |signals| channel.write(&signals.all))
        }
        "mcap" => {
            let (mut writer, channel) = mcap_writer(file)?;
            let mut message = Vec::new();
            let done = paced(seconds, |signals| write(&mut writer, channel, &mut message, &signals.all.value));
            writer.finish()?;
            done
        }
        "mutex" => mutex(seconds, file)?,
        "jsonl" => {
            let mut out = BufWriter::new(File::create(file)?);
            let done = paced(seconds, |signals| {
                let line = serde_json::json!({ "time_ns": now_ns(), "value": &signals.all.value[..] });
                serde_json::to_writer(&mut out, &line).expect("the disk takes it");
                out.write_all(b"\n").expect("the disk takes it");
            });
            out.flush()?;
            done
        }
        other => return Err(format!("no contender {other:?}").into()),
    };
    let n = calls.len();
    let [p50, p99, p999, max] = quantiles(calls);
    println!(
        "{}",
        serde_json::json!({
            "cpu_ns": cpu_ns(Of::Process) - before - between_ns, "wall_ns": began.elapsed().as_nanos() as u64,
            "p50": p50, "p99": p99, "p999": p999, "max": max, "n": n,
        })
    );
    Ok(())
}

type Mcap = mcap::Writer<BufWriter<File>>;

fn mcap_writer(file: &Path) -> Result<(Mcap, u16), Box<dyn std::error::Error>> {
    let mut writer = mcap::Writer::new(BufWriter::new(File::create(file)?))?;
    let schema = writer.add_schema("bench/msg/All", "ros2msg", SCHEMA.as_bytes())?;
    let channel = writer.add_channel(schema, "/all", "cdr", &BTreeMap::new())?;
    Ok((writer, channel))
}

fn write(writer: &mut Mcap, channel_id: u16, message: &mut Vec<u8>, values: &[f64; VALUES]) {
    message.clear();
    message.extend([0, 1, 0, 0]);
    values.iter().for_each(|value| message.extend(value.to_le_bytes()));
    let now = now_ns();
    let header = mcap::records::MessageHeader { channel_id, sequence: 0, log_time: now, publish_time: now };
    writer.write_to_known_channel(&header, message).expect("the disk takes it");
}

/// What the loop and the writer's thread share: filled snapshots, empty ones, and whether it is over.
#[derive(Default)]
struct Shared {
    filled: Vec<Box<[f64; VALUES]>>,
    empty: Vec<Box<[f64; VALUES]>>,
    is_over: bool,
}

fn mutex(seconds: f64, file: &Path) -> Result<Paced, Box<dyn std::error::Error>> {
    let (mut writer, channel) = mcap_writer(file)?;
    let empty = (0..64).map(|_| Box::new([0.0; VALUES])).collect();
    let shared = Arc::new((Mutex::new(Shared { empty, ..Shared::default() }), Condvar::new()));
    let sink = shared.clone();
    let thread = std::thread::spawn(move || {
        let mut message = Vec::new();
        loop {
            let mut state = sink.0.lock().expect("nobody panics");
            while state.filled.is_empty() && !state.is_over {
                state = sink.1.wait(state).expect("nobody panics");
            }
            let snapshots = std::mem::take(&mut state.filled);
            let is_over = state.is_over && snapshots.is_empty();
            drop(state);
            if is_over {
                return writer.finish().map(drop);
            }
            for snapshot in snapshots {
                write(&mut writer, channel, &mut message, &snapshot);
                sink.0.lock().expect("nobody panics").empty.push(snapshot);
            }
        }
    });
    let done = paced(seconds, |signals| {
        let mut state = shared.0.lock().expect("nobody panics");
        if let Some(mut snapshot) = state.empty.pop() {
            *snapshot = signals.all.value;
            state.filled.push(snapshot);
        }
        drop(state);
        shared.1.notify_one();
    });
    shared.0.lock().expect("nobody panics").is_over = true;
    shared.1.notify_one();
    thread.join().expect("nobody panics")?;
    Ok(done)
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
