//! Others that the message waits for: recorded ones, two steps away, and one that is not recorded.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    net::TcpStream,
    os::fd::{FromRawFd, IntoRawFd},
    os::unix::net::UnixStream,
};

use crate::{
    agent::{fork, pipe},
    clock::{Progress, monotonic_ns, sleep_ns},
    kinds::Kind,
    options::Options,
};

/// A question goes to process `near`, which asks process `far`, which computes (asked by pipes) or sleeps (asked by
/// sockets) for as long as the question says, and answers with how long that was.
pub struct Chain {
    works: bool,
    ask: File,
    answer: File,
    peers: [libc::pid_t; 2],
    taken_ns: u64,
}

impl Chain {
    pub fn new(works: bool, options: &Options) -> Chain {
        let link = || if works { two_pipes() } else { socket_pair() };
        let ((our_in, our_out), (near_in, near_out)) = link();
        let ((ask_in, ask_out), (far_in, far_out)) = link();
        let far = fork("far", options.other_cpu, || {
            let (mut questions, mut answers) = (far_in, far_out);
            while let Some(ns) = read_number(&mut questions) {
                let taken_ns = if works {
                    let mut progress = Progress::default();
                    progress.work(ns);
                    progress.done_ns()
                } else {
                    sleep_ns(ns);
                    ns
                };
                write_number(&mut answers, taken_ns);
            }
        });
        // Beside the message, which waits: were it on the other's CPU, that one's first turn would take the CPU from
        // it before it waits, and both answers, preempted by it and waiting for it, would be right.
        let near = fork("near", options.cpu, || {
            let (mut questions, mut answers, mut ask, mut reply) = (near_in, near_out, ask_out, ask_in);
            while let Some(ns) = read_number(&mut questions) {
                write_number(&mut ask, ns);
                let Some(taken_ns) = read_number(&mut reply) else { break };
                write_number(&mut answers, taken_ns);
            }
        });
        Chain { works, ask: our_out, answer: our_in, peers: [far, near], taken_ns: 0 }
    }
}

impl Kind for Chain {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        if self.works { ("io_work", "cpu", "far") } else { ("io_sleep", "sleep", "far") }
    }
    fn strike(&mut self, ns: u64) {
        write_number(&mut self.ask, ns);
        self.taken_ns = read_number(&mut self.answer).unwrap_or(0);
    }
    /// Asks as well, for nothing.
    fn usual(&mut self) {
        self.strike(0);
    }
    fn helpers(&self) -> Vec<libc::pid_t> {
        self.peers.to_vec()
    }
    fn settle(&mut self) -> u64 {
        self.taken_ns
    }
}

/// A server outside the recording, which answers after the time asked for with the moment of its answer.
pub struct Outside {
    socket: bool,
    ask: Box<dyn Write>,
    answer: Box<dyn Read>,
    asked_ns: u64,
    answered_ns: u64,
    /// How long it takes when nothing is to be waited for.
    usually_ns: Vec<u64>,
}

impl Outside {
    pub fn socket(options: &Options) -> Result<Outside, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", options.outside);
        let stream = TcpStream::connect(&options.outside).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let ask = Box::new(stream.try_clone().map_err(failed)?);
        Ok(Outside { socket: true, ask, answer: Box::new(stream), asked_ns: 0, answered_ns: 0, usually_ns: Vec::new() })
    }

    pub fn pipe(options: &Options) -> Result<Outside, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", options.fifo);
        let ask = OpenOptions::new().write(true).open(format!("{}.in", options.fifo)).map_err(failed)?;
        let answer = File::open(format!("{}.out", options.fifo)).map_err(failed)?;
        Ok(Outside {
            socket: false,
            ask: Box::new(ask),
            answer: Box::new(answer),
            asked_ns: 0,
            answered_ns: 0,
            usually_ns: Vec::new(),
        })
    }
}

impl Kind for Outside {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        if self.socket { ("io_outside_socket", "io", "socket") } else { ("io_outside_pipe", "io", "pipe") }
    }
    fn strike(&mut self, ns: u64) {
        write_number(&mut self.ask, ns);
        self.asked_ns = monotonic_ns();
        self.answered_ns = read_number(&mut self.answer).unwrap_or(0);
    }
    /// Asks as well, for nothing.
    fn usual(&mut self) {
        self.strike(0);
        self.usually_ns.push(self.answered_ns.saturating_sub(self.asked_ns));
    }
    fn settle(&mut self) -> u64 {
        self.usually_ns.sort_unstable();
        let usually_ns = self.usually_ns.get(self.usually_ns.len() / 2).copied().unwrap_or(0);
        self.answered_ns.saturating_sub(self.asked_ns + usually_ns)
    }
}

type Ends = (File, File);

/// ((in, out) of one side, (in, out) of the other).
fn two_pipes() -> (Ends, Ends) {
    let (there, back) = (pipe(), pipe());
    // SAFETY: fresh descriptors that nobody else owns.
    unsafe {
        let own = |fd| File::from_raw_fd(fd);
        ((own(back.0), own(there.1)), (own(there.0), own(back.1)))
    }
}

fn socket_pair() -> (Ends, Ends) {
    let (one, other) = UnixStream::pair().expect("no socket pair to be had");
    let both = |stream: UnixStream| {
        let copy = stream.try_clone().expect("no descriptor to be had");
        // SAFETY: descriptors that were just given up by their owners.
        unsafe { (File::from_raw_fd(stream.into_raw_fd()), File::from_raw_fd(copy.into_raw_fd())) }
    };
    (both(one), both(other))
}

fn read_number(from: &mut impl Read) -> Option<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes).ok().map(|()| u64::from_le_bytes(bytes))
}

fn write_number(to: &mut impl Write, number: u64) {
    let _ = to.write_all(&number.to_le_bytes());
}
