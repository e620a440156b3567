//! `taut bus`: frames to servo buses and back; once, or in a cycle at a rate; or simulated servos for other programs to
//! drive.

mod budget;
mod rate;
mod serve;
mod show;

use std::time::Duration;

use anyhow::{Result, bail};
use moteus_protocol::{
    command::{PositionCommand, PositionFormat},
    query::QueryFormat,
};
use taut_bus::{
    cycle::{Command, Engine, Monotonic, Patience, RealTime, Request, SimulatedInertialUnit},
    transport::{Address, Frame, Transport, ids},
};

use crate::{
    exit::Done,
    format::{self, Format},
    output, time,
};

/// Drive servo buses once or at a rate, serve simulated servos, or budget a cycle.
///
/// Buses are numbered from 1 in the order given (docs/reference/bus.md).
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  taut bus sim:1-3 --query 1,1-3\n  taut bus fdcanusb:/dev/ttyACM0 --write-can 1,8001,100400110f,r --read-att\n  taut record -o run.mcap -- taut bus sim:1-3 --hold 1,1-3 --rate 500 --duration 5\n  taut bus sim:1-3 --serve"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Buses: sim:1-3 (simulated servos of these ids), fdcanusb:/dev/ttyACM0, udp:HOST:PORT, socketcan:can0.
    #[arg(value_name = "BUS", required = true)]
    buses: Vec<Address>,
    /// Send a frame: bus, then id and data in hex; r waits for its reply; repeatable.
    #[arg(long, value_name = "BUS,ID,DATA[,r]", value_parser = written)]
    write_can: Vec<(usize, Frame, bool)>,
    /// Query servos: bus, then ids such as 1-3; repeatable.
    #[arg(long, value_name = "BUS,IDS", value_parser = servos)]
    query: Vec<(usize, Vec<u8>)>,
    /// Make servos hold their position, and query them; repeatable.
    #[arg(long, value_name = "BUS,IDS", value_parser = servos)]
    hold: Vec<(usize, Vec<u8>)>,
    /// Read queued frames of a bus without expecting any; repeatable.
    #[arg(long, value_name = "BUS")]
    read_can: Vec<usize>,
    /// Read the inertial unit.
    #[arg(long)]
    read_att: bool,
    /// Repeat the cycle at this rate and print statistics.
    #[arg(long, value_name = "HZ", value_parser = rate::hertz)]
    rate: Option<f64>,
    /// With --rate: for this long.
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "rate", value_parser = time::length)]
    duration: Duration,
    /// Longest wait for replies after the last command.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = time::moment)]
    timeout: Duration,
    /// Shortest wait for replies.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = time::moment)]
    min_wait: Duration,
    /// Poll the clock this long before each cycle.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = time::moment)]
    spin: Duration,
    /// Run on this CPU only.
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    /// Run under SCHED_FIFO with this priority, 1 to 99.
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=99))]
    priority: Option<u32>,
    /// Lock all memory.
    #[arg(long)]
    lock_memory: bool,
    /// Serve each simulated bus on a pty that speaks fdcanusb.
    #[arg(long, conflicts_with_all = ["write_can", "query", "hold", "read_can", "read_att", "rate", "format"])]
    serve: bool,
    /// With --serve: over UDP at this address instead.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "serve")]
    udp: Option<String>,
    /// Form of the result.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Json]))]
    format: Format,
}

#[derive(clap::Subcommand)]
enum Verb {
    Budget(Box<budget::Args>),
}

type Buses = Engine<Box<dyn Transport + Send>, Monotonic>;

/// What one cycle shall do, as asked on the command line.
struct Asked {
    commands: Vec<Command>,
    look: Vec<usize>,
    attitude: bool,
    /// Whose states are shown.
    servos: Vec<(usize, u8)>,
}

/// Opens the buses and does what is asked.
pub fn run(args: &Args) -> Result<Done> {
    if let Some(Verb::Budget(args)) = &args.verb {
        return budget::run(args);
    }
    if args.serve {
        return serve::run(&args.buses, args.udp.as_deref());
    }
    let asked = asked(args)?;
    if asked.commands.is_empty() && asked.look.is_empty() && !asked.attitude {
        bail!("nothing to do: add --query, --hold, --write-can, --read-can or --read-att, or --serve");
    }
    let mut engine = open(args)?;
    let real_time = RealTime { cpu: args.cpu, priority: args.priority, lock_memory: args.lock_memory };
    let mut done = Done::Fine;
    let text = match args.rate {
        Some(hz) => {
            real_time.enter()?;
            let (statistics, ended) = rate::run(&mut engine, asked, hz, args.duration)?;
            done = ended;
            match args.format {
                Format::Json => show::statistics_json(&statistics, &args.buses, &engine),
                _ => show::statistics(&statistics, &args.buses, &engine),
            }
        }
        None => {
            real_time.enter()?;
            let request = Request { commands: &asked.commands, look: &asked.look, attitude: asked.attitude };
            let outcome = engine.cycle(0, &request);
            match args.format {
                Format::Json => show::once_json(&outcome, &asked.servos, &engine),
                _ => show::once(&outcome, &asked.servos, &engine),
            }
        }
    };
    output::write(&text, None)?;
    Ok(match (done, show::is_whole(&engine, args.buses.len())) {
        (Done::Fine, false) => Done::DataLost,
        _ => done,
    })
}

fn open(args: &Args) -> Result<Buses> {
    let opened: Result<Vec<_>, _> = args.buses.iter().enumerate().map(|(at, bus)| bus.open(at)).collect();
    let patience =
        Patience { min_wait_ns: args.min_wait.as_nanos() as u64, deadline_ns: args.timeout.as_nanos() as u64 };
    let clock = Monotonic::new(args.spin);
    let engine = Engine::new(opened?, clock, patience);
    let simulated = args.buses.iter().any(|bus| matches!(bus, Address::Sim(_)));
    if args.read_att && !simulated {
        bail!("--read-att: none of these buses has an inertial unit; a simulated one comes with any sim: bus");
    }
    Ok(if simulated { engine.with_inertial(SimulatedInertialUnit::default()) } else { engine })
}

fn asked(args: &Args) -> Result<Asked> {
    let index = |bus: usize| match bus {
        1.. if bus <= args.buses.len() => Ok(bus - 1),
        _ => bail!("bus {bus}: there are {}, numbered from 1 in the order given", args.buses.len()),
    };
    let mut asked = Asked {
        commands: Vec::new(),
        look: args.read_can.iter().map(|bus| index(*bus)).collect::<Result<_>>()?,
        attitude: args.read_att,
        servos: Vec::new(),
    };
    for (bus, frame, wants_reply) in &args.write_can {
        let mut command = Command::new(index(*bus)?, frame.clone());
        command.expects = command.expects.filter(|_| *wants_reply);
        asked.commands.push(command);
    }
    for (held, (bus, ids)) in args.hold.iter().map(|h| (true, h)).chain(args.query.iter().map(|q| (false, q))) {
        let bus = index(*bus)?;
        asked.commands.extend(ids.iter().map(|id| Command::new(bus, ask(*id, held))));
        asked.servos.extend(ids.iter().map(|id| (bus, *id)));
    }
    Ok(asked)
}

/// A query of state; with `held` behind a command to stay.
fn ask(servo: u8, held: bool) -> Frame {
    let mut frame = Frame::new();
    frame.arbitration_id = 0x8000 | u32::from(servo);
    if held {
        PositionCommand::new().position(f32::NAN).velocity(0.0).serialize(&mut frame, &PositionFormat::default());
    }
    QueryFormat::default().serialize(&mut frame);
    frame
}

fn written(text: &str) -> Result<(usize, Frame, bool), String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let (bus, id, data, wants_reply) = match parts[..] {
        [bus, id, data] => (bus, id, data, false),
        [bus, id, data, "r"] => (bus, id, data, true),
        _ => return Err("write BUS,ID,DATA or BUS,ID,DATA,r, e.g. 1,8001,1300,r".into()),
    };
    let bus = bus.parse().map_err(|_| format!("bus {bus}: a number from 1"))?;
    let mut frame = Frame::new();
    let number = u32::from_str_radix(id, 16).ok().filter(|id| *id <= 0x1fff_ffff);
    frame.arbitration_id = number.ok_or_else(|| format!("id {id}: hex, at most 1fffffff"))?;
    let refused = || format!("data {data}: hex, two digits a byte, at most 64 bytes");
    if !data.is_ascii() || data.len() % 2 != 0 || data.len() > 128 {
        return Err(refused());
    }
    for at in 0..data.len() / 2 {
        frame.data[at] = u8::from_str_radix(&data[2 * at..2 * at + 2], 16).map_err(|_| refused())?;
    }
    frame.size = (data.len() / 2) as u8;
    Ok((bus, frame, wants_reply))
}

fn servos(text: &str) -> Result<(usize, Vec<u8>), String> {
    let hint = || "write BUS,IDS, e.g. 1,1-3".to_owned();
    let (bus, rest) = text.split_once(',').ok_or_else(hint)?;
    let bus = bus.trim().parse().map_err(|_| hint())?;
    let ids = ids(rest)
        .filter(|ids| !ids.is_empty())
        .ok_or_else(|| "servo ids are 1 to 126, written 1-3 or 1,4".to_owned())?;
    Ok((bus, ids))
}
