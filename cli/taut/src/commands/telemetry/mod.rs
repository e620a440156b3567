//! `taut telemetry`: the channels of a recording and their messages, one channel and one stretch of time without the rest; or
//! what is being logged, live.

mod live;

use std::{
    collections::VecDeque,
    fs::File,
    io::{BufWriter, Write},
    ops::{ControlFlow, Range},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use taut_recording::{
    LostWhat, PlainChannel, Shown,
    log::{Log, Message},
    ros2msg::Schema,
};
use taut_report::{
    layouts::{self, ChannelPaths},
    log_channels_json, log_line_json, words,
};

use crate::{
    exit::Done,
    format::{self, Format},
    losses::Losses,
    output, time,
};

/// The type of the channels that `taut export foxglove` adds.
const LATENCY: &str = taut_report::export::LATENCY;
/// Paths of a channel that a layout looks at; more than that no plot shows.
const MOST_PATHS: usize = 2000;

/// List, print or serve a recording's telemetry, or write layouts for plotting tools.
///
/// Messages are JSON lines on stdout.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut telemetry run.mcap\n  taut telemetry run.mcap --channel /telemetry/leg --from 12.5 --to 13\n  taut telemetry run.mcap --at 12.5\n  taut telemetry run.mcap --live"
)]
pub struct Args {
    /// A recording.
    recording: PathBuf,
    /// Print the messages of this channel.
    #[arg(long, value_name = "TOPIC")]
    channel: Option<String>,
    /// From this time after the start on.
    #[arg(long, value_name = "TIME", requires = "channel", value_parser = time::moment)]
    from: Option<Duration>,
    /// Until this time after the start.
    #[arg(long, value_name = "TIME", requires = "channel", value_parser = time::moment)]
    to: Option<Duration>,
    /// Only the last N messages.
    #[arg(long, value_name = "N", requires = "channel")]
    last: Option<usize>,
    /// Print each channel's last message up to this time after the start.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["channel", "layouts"], value_parser = time::moment)]
    at: Option<Duration>,
    /// Write plot layouts: RUN.foxglove.json, RUN.plotjuggler.xml.
    #[arg(long, conflicts_with = "channel")]
    layouts: bool,
    /// Serve what is being recorded to Foxglove, without authentication [default: 127.0.0.1:8765].
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = live::ADDRESS)]
    #[arg(conflicts_with_all = ["channel", "from", "to", "last", "at", "layouts", "format"])]
    live: Option<String>,
    /// With --live: also let web pages of this origin connect, e.g. https://app.foxglove.dev; repeatable.
    #[arg(long, value_name = "ORIGIN", requires = "live")]
    allow_origin: Vec<String>,
    /// Form of the list of channels.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Json]))]
    format: Format,
}

/// Reads what was asked for.
pub fn run(args: &Args) -> Result<Done> {
    let subject = || args.recording.shown();
    let file = File::open(&args.recording).with_context(subject)?;
    if file.metadata()?.is_dir() {
        bail!("{}: is a folder; name a recording (.mcap)", subject());
    }
    if let Some(address) = &args.live {
        return live::serve(&args.recording, file, address, &args.allow_origin);
    }
    let mut log = Log::open(file).with_context(subject)?;
    let start = log.span().start;
    let moment = |after: Duration| start.saturating_add(after.as_nanos() as u64);
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        bail!("--from {} is not before --to {}", taut_wakeup::length(from), taut_wakeup::length(to));
    }
    if let Some(topic) = &args.channel {
        let times = args.from.map_or(0, moment)..args.to.map_or(u64::MAX, moment);
        let printed = messages(&mut log, topic, times, args.last, start).with_context(subject)?;
        if printed == 0 && args.last != Some(0) {
            say!("taut: note: {topic} has no message{}; {}", stretch(args), lasts(&log));
        }
    } else if let Some(at) = args.at {
        if state(&mut log, moment(at), start).with_context(subject)? == 0 {
            say!("taut: note: no channel has a message until {}; {}", taut_wakeup::length(at), lasts(&log));
        }
    } else if args.layouts {
        write_layouts(&log, &args.recording).with_context(subject)?;
    } else {
        output::write(&list(&log, args.format), None)?;
    }
    let lost = log.lost().with_context(subject)?;
    let losses: Losses = lost.iter().filter(|lost| lost.what == LostWhat::Telemetry).collect();
    if !losses.is_none() {
        say!("taut: warning: {}{losses}", subject());
    }
    log.damage().iter().for_each(|damage| say!("taut: warning: {damage}"));
    Ok(if log.damage().is_empty() && losses.is_none() { Done::Fine } else { Done::DataLost })
}

fn list(log: &Log<File>, format: Format) -> String {
    if format == Format::Json {
        return format!("{:#}\n", log_channels_json(log));
    }
    let seconds = (log.span().end - log.span().start) as f64 / 1e9;
    let mut text = String::new();
    for channel in log.channels() {
        let messages = log.messages_of(channel.number);
        text += &format!(
            "{:<40} {:<28} {:>10} messages  {:>8.1}/s  {:>10}\n",
            channel.topic,
            channel.schema_name,
            words::count(messages),
            messages as f64 / seconds.max(1e-9),
            words::bytes(log.bytes_of(channel.number)),
        );
    }
    if text.is_empty() {
        text += "no telemetry in this recording\n";
    }
    text
}

/// " from 5 s to 9 s", of what was asked for.
fn stretch(args: &Args) -> String {
    let ends = [("from", args.from), ("to", args.to)];
    let said =
        |(word, time): (&str, Option<Duration>)| time.map(|time| format!(" {word} {}", taut_wakeup::length(time)));
    ends.into_iter().filter_map(said).collect()
}

/// How long the recording is, for a stretch of time that lies beside it.
fn lasts(log: &Log<File>) -> String {
    let span = log.span();
    format!("the recording lasts {:.3} s", span.end.saturating_sub(span.start) as f64 / 1e9)
}

/// Prints them; gives their number.
fn messages(log: &mut Log<File>, topic: &str, times: Range<u64>, last: Option<usize>, start: u64) -> Result<u64> {
    let channel = log.channels().into_iter().find(|channel| channel.topic == topic).cloned();
    let channel = channel.ok_or_else(|| {
        let known: Vec<_> = log.channels().into_iter().map(|channel| channel.topic.clone()).collect();
        anyhow!(
            "has no channel {topic:?}; it has {}",
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        )
    })?;
    let schema = schema_of(&channel)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut failed = None;
    let mut printed = 0;
    let mut print = |message: Message<'_>| {
        printed += 1;
        match line(&channel, &schema, message, start).and_then(|line| Ok(out.write_all(line.as_bytes())?)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    match last {
        None => log.read(channel.number, times, &mut print)?,
        Some(count) => {
            let mut kept: VecDeque<(u64, u32, Vec<u8>)> = VecDeque::new();
            if count > 0 {
                log.read_back(channel.number, times, &mut |message| {
                    kept.push_front((message.log_time_ns, message.sequence, message.data.to_vec()));
                    if kept.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
            }
            for (log_time_ns, sequence, data) in kept {
                let message = Message { channel: channel.number, log_time_ns, sequence, data: &data };
                if print(message).is_break() {
                    break;
                }
            }
        }
    }
    let written: Result<()> = match failed {
        Some(error) => Err(error),
        None => out.flush().map_err(Into::into),
    };
    output::as_far_as_it_is_read(written)?;
    Ok(printed)
}

/// Prints the last message of every channel at that moment; gives how many channels had one.
fn state(log: &mut Log<File>, log_time_ns: u64, start: u64) -> Result<usize> {
    let channels: Vec<PlainChannel> = log.channels().into_iter().cloned().collect();
    let mut lines = Vec::new();
    log.state_at(log_time_ns, &mut |message| {
        let channel = channels.iter().find(|channel| channel.number == message.channel);
        lines.extend(channel.map(|channel| line(channel, &schema_of(channel)?, message, start)));
    })?;
    let count = lines.len();
    output::write(&lines.into_iter().collect::<Result<String>>()?, None)?;
    Ok(count)
}

/// One message as a line of JSON.
fn line(channel: &PlainChannel, schema: &Schema, message: Message<'_>, start: u64) -> Result<String> {
    let value = schema
        .decode(message.data)
        .ok_or_else(|| anyhow!("a message of {} is not of its schema; try `taut recover`", channel.topic))?;
    Ok(log_line_json(channel, message, value, start)?)
}

fn schema_of(channel: &PlainChannel) -> Result<Schema> {
    Schema::parse(&channel.schema).map_err(|why| anyhow!("the channel {} cannot be read: {why}", channel.topic))
}

fn write_layouts(log: &Log<File>, recording: &Path) -> Result<()> {
    let mut channels = Vec::new();
    for channel in log.channels() {
        let mut paths = schema_of(channel)?.numbers(MOST_PATHS);
        // A message's id rises, and says nothing else.
        paths.retain(|path| channel.schema_name != LATENCY || path != "message");
        channels.push(ChannelPaths { topic: channel.topic.clone(), paths });
    }
    if channels.is_empty() {
        bail!("has no telemetry to lay out; `taut export foxglove` adds channels of its latencies and periods");
    }
    for (ending, text) in
        [("foxglove.json", layouts::foxglove(&channels)), ("plotjuggler.xml", layouts::plotjuggler(&channels))]
    {
        let path = recording.with_extension(ending);
        output::write(&text, Some(&path))?;
        say!("wrote {}", path.shown());
    }
    Ok(())
}
