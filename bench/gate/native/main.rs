//! A native control loop to be gated: four pieces of work on four threads of two processes, joined by sockets and a queue.
//!
//! `gate_loop --seconds 1.5 --seed 7 [--slow 0.1 | --tail] [--measure]`
//!
//! ```text
//! first process     sense ──┐                       ┌──▶ drive
//! second process            └─▶ estimate ──▶ control ─┘
//! ```
//!
//! A cycle begins at 250 Hz on absolute deadlines. The work of each message is drawn from the seed, so that two runs with
//! equal seeds have the same to do. `--slow` and `--tail` give the estimate more of it: those are what a gate is to find. `--measure` slows every
//! second message, takes the thread's CPU time of the estimate without taut, and prints both medians as JSON.

mod cpu_time;
mod options;
mod work;

use std::{
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixDatagram,
    },
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use cpu_time::CpuTimes;
use options::Options;
use taut_stamp::{applied, prepare_thread, stamp};
use work::Work;

const PERIOD: Duration = Duration::from_millis(4);
/// Caches and clocks settle before the first message.
const WARM_UP: Duration = Duration::from_millis(50);
/// Says that no message follows.
const END: u64 = 0;

fn main() {
    let options = Options::from_arguments();
    let done = if options.is_second { second(&options) } else { first(&options) };
    if let Err(error) = done {
        eprintln!("gate_loop: {error}");
        std::process::exit(2);
    }
}

fn first(options: &Options) -> std::io::Result<()> {
    let (ours, theirs) = UnixDatagram::pair()?;
    let mut second = Command::new(std::env::current_exe()?)
        .args(std::env::args().skip(1))
        .arg("--second")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    let driver = thread::Builder::new().name("drive".into()).spawn({
        let (from, work) = (ours.try_clone()?, Work::new(options));
        move || drive(&from, work)
    })?;
    sense(options, &ours)?;
    driver.join().expect("the driver only computes")?;
    let ended = second.wait()?;
    if ended.success() { Ok(()) } else { Err(std::io::Error::other(format!("the second process ended with {ended}"))) }
}

fn sense(options: &Options, to: &UnixDatagram) -> std::io::Result<()> {
    let mut work = Work::new(options);
    prepare_thread();
    work.warm_up(WARM_UP);
    let began = Instant::now();
    for id in 1..=(options.seconds / PERIOD.as_secs_f64()) as u64 {
        thread::sleep((began + PERIOD * id as u32).saturating_duration_since(Instant::now()));
        stamp!("sense.begin", id);
        work.sense(id);
        stamp!("sense.end", id);
        to.send(&id.to_ne_bytes())?;
    }
    to.send(&END.to_ne_bytes()).map(|_| ())
}

fn second(options: &Options) -> std::io::Result<()> {
    let link = UnixDatagram::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let (queue, taken) = mpsc::channel();
    let controller = thread::Builder::new().name("control".into()).spawn({
        let (to, work) = (link.try_clone()?, Work::new(options));
        move || control(&taken, &to, work)
    })?;
    let mut work = Work::new(options);
    prepare_thread();
    work.warm_up(WARM_UP / 2);
    let mut times = CpuTimes::default();
    loop {
        let id = receive(&link)?;
        if id != END {
            stamp!("estimate.begin", id);
            times.of(id % 2 == 1, || work.estimate(id));
            stamp!("estimate.end", id);
        } else if options.measure {
            println!("{}", times.json());
        }
        let is_over = queue.send(id).is_err();
        if id == END || is_over {
            return controller.join().expect("the controller only computes");
        }
    }
}

fn control(from: &mpsc::Receiver<u64>, to: &UnixDatagram, mut work: Work) -> std::io::Result<()> {
    prepare_thread();
    for id in from.iter().take_while(|id| *id != END) {
        stamp!("control.begin", id);
        work.control(id);
        stamp!("control.end", id);
        to.send(&id.to_ne_bytes())?;
    }
    to.send(&END.to_ne_bytes()).map(|_| ())
}

fn drive(from: &UnixDatagram, mut work: Work) -> std::io::Result<()> {
    prepare_thread();
    loop {
        let id = receive(from)?;
        if id == END {
            return Ok(());
        }
        stamp!("drive.begin", id);
        work.drive(id);
        stamp!("drive.end", id);
        applied(id);
    }
}

fn receive(from: &UnixDatagram) -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    from.recv(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
