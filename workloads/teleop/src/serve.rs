//! An arm's process: its controller behind two sockets, commands (XML-RPC) and states (TCP), on one thread. It prints its two
//! ports as one JSON line, serves until SIGTERM, and then prints how the machine held it up.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags};
use serde::Deserialize;
use serde_json::json;
use signal_hook::consts::SIGTERM;
use taut_simulated_clock::Pace;

use crate::{
    arms::ARMS,
    clock::Clock,
    cnde::{Frame, MESSAGE, OUTPUT_CONFIG, OUTPUT_DATA, OUTPUT_START, READ_BYTES, Receiver, Wish},
    controller::Controller,
    journal::Journal,
    realtime,
    servo::STEP_NS,
    wire::{self, Wire},
    xmlrpc::{self, Incoming},
};

/// The clock may go so far beyond the arm's next step, ns. States come late by as much at most, which is a tenth of their period.
const AHEAD_NS: u64 = 1_000_000;
/// What a client of the state stream has left to read is thrown away beyond this: it reads no more.
const UNREAD_MAX: usize = 1 << 20;

#[derive(Deserialize)]
pub struct Settings {
    pub arm: String,
    /// At the clock.
    pub seat: usize,
    pub clock: String,
    #[serde(default)]
    pub wire: wire::Kind,
    pub journal: Option<PathBuf>,
}

pub fn run(settings: &Settings) -> Result<()> {
    let arm = ARMS.into_iter().find(|arm| arm.name == settings.arm);
    let arm = arm.with_context(|| format!("no arm named {:?}", settings.arm))?;
    let clock = Clock::open(&settings.clock)?;
    ensure!(settings.seat < crate::clock::SEATS, "no seat {} at the clock", settings.seat);
    rustix::thread::set_name(if settings.seat == 0 { c"arm-leader" } else { c"arm-follower" })?;
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGTERM, stop.clone())?;
    realtime::ask(realtime::ARM);
    let journal = settings.journal.as_ref().map(|folder| Journal::open(folder, arm.name)).transpose()?;
    let [commands, states] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0"));
    let (commands, states) = (commands?, states?);
    for listener in [&commands, &states] {
        listener.set_nonblocking(true)?;
    }
    println!("{}", json!({ "commands": commands.local_addr()?.port(), "states": states.local_addr()?.port() }));
    let mut served = Served {
        // The clock begins at 0, and so does the arm.
        controller: Controller::new(arm, 0, calendar_ns()?, journal),
        wire: settings.wire,
        callers: Vec::new(),
        watchers: Vec::new(),
    };
    let mut pace = Pace::new(settings.seat, AHEAD_NS);
    let mut steps = 0_u64;
    while !stop.load(Relaxed) {
        steps += served.advance(clock.now_ns())?;
        let next_ns = served.controller.time_ns() + STEP_NS;
        pace.allow(clock.time(), next_ns);
        let mut polled: Vec<PollFd<'_>> =
            [&commands, &states].map(|listener| PollFd::new(listener, PollFlags::IN)).into();
        polled.extend(served.callers.iter().map(|one| PollFd::new(&one.socket, PollFlags::IN)));
        polled.extend(served.watchers.iter().map(|one| PollFd::new(&one.socket, PollFlags::IN)));
        clock.look(next_ns, &mut polled);
        if polled.iter().any(|one| !one.revents().is_empty()) {
            drop(polled);
            served.admit(&commands, &states, clock.now_ns())?;
            served.listen(clock.now_ns());
        }
    }
    clock.time().leave(settings.seat);
    served.controller.close().context("the journal")?;
    let slips = pace.slips();
    let [total_s, max_s] = [slips.total_ns, slips.max_ns].map(|ns| ns as f64 / 1e9);
    let slips = json!({ "count": slips.count, "total_s": total_s, "max_s": max_s });
    println!("{}", json!({ "steps": steps, "slips": slips, "jitter": settings.wire.jitter() }));
    Ok(())
}

/// Now, as nanoseconds since 1970.
fn calendar_ns() -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?)
}

struct Served {
    controller: Controller,
    wire: wire::Kind,
    callers: Vec<Caller>,
    watchers: Vec<Watcher>,
}

/// A client of the commands.
struct Caller {
    socket: TcpStream,
    incoming: Incoming,
}

/// A client of the state stream.
struct Watcher {
    socket: TcpStream,
    receiver: Receiver,
    wish: Option<Wish>,
    /// When the next state is due, once the stream was started.
    due_ns: Option<u64>,
    count: u8,
    wire: Wire,
    unsent: Vec<u8>,
}

impl Served {
    /// Brings the arm up to now, and what is due of its states onto the wires; gives how many steps it took. Each state is that of
    /// its time, however late it is served.
    fn advance(&mut self, now_ns: u64) -> Result<u64> {
        let mut steps = 0;
        while self.controller.step(now_ns).context("the journal")? {
            steps += 1;
            let time_ns = self.controller.time_ns();
            for watcher in &mut self.watchers {
                if let (Some(due_ns), Some(wish)) = (&mut watcher.due_ns, &watcher.wish)
                    && *due_ns <= time_ns
                {
                    *due_ns += wish.period_ns;
                    let data = wish.pack(&self.controller.state());
                    watcher.wire.put(time_ns, Frame { count: watcher.count, kind: OUTPUT_DATA, data }.encoded());
                    watcher.count = watcher.count.wrapping_add(1);
                }
            }
        }
        self.watchers.retain_mut(|watcher| watcher.send(now_ns).is_ok());
        Ok(steps)
    }

    fn admit(&mut self, commands: &TcpListener, states: &TcpListener, now_ns: u64) -> Result<()> {
        let accepted = |listener: &TcpListener| {
            let Ok((socket, _)) = listener.accept() else { return anyhow::Ok(None) };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            Ok(Some(socket))
        };
        if let Some(socket) = accepted(commands)? {
            self.callers.push(Caller { socket, incoming: Incoming::default() });
        }
        if let Some(socket) = accepted(states)? {
            self.watchers.push(Watcher {
                socket,
                receiver: Receiver::framed(None),
                wish: None,
                due_ns: None,
                count: 0,
                wire: Wire::new(self.wire, now_ns),
                unsent: Vec::new(),
            });
        }
        Ok(())
    }

    /// Takes what clients say; those that hang up or make no sense are gone.
    fn listen(&mut self, now_ns: u64) {
        let controller = &mut self.controller;
        self.callers.retain_mut(|caller| caller.listen(controller, now_ns).is_ok());
        let time_ns = controller.time_ns();
        self.watchers.retain_mut(|watcher| watcher.listen(time_ns).is_ok());
    }
}

impl Caller {
    fn listen(&mut self, controller: &mut Controller, now_ns: u64) -> Result<()> {
        read(&mut self.socket, |bytes| self.incoming.take(bytes))?;
        while let Some((_, body)) = self.incoming.message()? {
            let (name, arguments) = xmlrpc::parse(&body)?;
            let answer = match controller.call(now_ns, &name, &arguments) {
                Ok(value) => xmlrpc::answer(&value),
                Err(refusal) => xmlrpc::fault(&refusal.to_string().replace(['<', '>', '&'], "?")),
            };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n", answer.len());
            // It is short, and the client waits for it: the socket has room.
            self.socket.write_all((head + &answer).as_bytes())?;
        }
        Ok(())
    }
}

impl Watcher {
    fn listen(&mut self, time_ns: u64) -> Result<()> {
        let mut frames = Vec::new();
        read(&mut self.socket, |bytes| {
            frames.extend(self.receiver.feed(bytes));
            Ok(())
        })?;
        for frame in frames {
            let mut answer = vec![0];
            match (frame.kind, &self.wish) {
                (OUTPUT_CONFIG, _) => match Wish::parse(&frame.data) {
                    Ok(wish) => self.wish = Some(wish),
                    Err(refusal) => answer = [&[1], refusal.as_bytes()].concat(),
                },
                (OUTPUT_START, Some(wish)) => self.due_ns = Some(time_ns + wish.period_ns),
                _ => answer = vec![1],
            }
            self.unsent.extend(Frame { count: self.count, kind: MESSAGE, data: answer }.encoded());
        }
        self.flush()
    }

    /// One send a frame, where there is room.
    fn send(&mut self, now_ns: u64) -> Result<()> {
        while let Some(bytes) = self.wire.send(now_ns) {
            self.unsent.extend(bytes);
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        ensure!(self.unsent.len() <= UNREAD_MAX, "the client reads no more");
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(sent) => _ = self.unsent.drain(..sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// All that can be read now; an error at the end.
fn read(socket: &mut TcpStream, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut bytes = [0; READ_BYTES];
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => anyhow::bail!("hung up"),
            Ok(count) => take(&bytes[..count])?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}
