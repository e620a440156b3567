//! One controller's state stream, from asking for it to its states.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::{
    clock::Clock,
    cnde::{self, Counts, Frame, MESSAGE, OUTPUT_CONFIG, OUTPUT_DATA, OUTPUT_START, READ_BYTES, Receiver, STATE_BYTES},
};

pub const STATE_PERIOD_MS: u16 = 10;
pub const STATE_PERIOD_NS: u64 = STATE_PERIOD_MS as u64 * 1_000_000;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    Sdk,
    Framed,
}

/// One frame of the stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub values: cnde::State,
    pub count: u8,
    /// The robot's own calendar time, in whole milliseconds.
    pub source_ns: u64,
    pub arrived_ns: u64,
    pub frames_in_read: u16,
}

pub struct StateStream {
    socket: TcpStream,
    receiver: Receiver,
    is_open: bool,
}

impl StateStream {
    /// Asks for the fields and for the stream of them.
    pub fn start(host: &str, port: u16, how: How) -> Result<StateStream> {
        let mut socket = TcpStream::connect((host, port)).context("the state stream")?;
        socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        socket.write_all(
            &Frame { count: 0, kind: OUTPUT_CONFIG, data: cnde::output_config(STATE_PERIOD_MS) }.encoded(),
        )?;
        let (mut answers, mut bytes) = (Receiver::framed(None), [0; READ_BYTES]);
        let answer = loop {
            let count = socket.read(&mut bytes).context("the controller does not answer")?;
            ensure!(count > 0, "the controller hung up instead of answering");
            if let Some(answer) = answers.feed(&bytes[..count]).into_iter().find(|frame| frame.kind == MESSAGE) {
                break answer.data;
            }
        };
        if answer.first() != Some(&0) {
            bail!("the controller refused: {}", String::from_utf8_lossy(answer.get(1..).unwrap_or_default()));
        }
        socket.write_all(&Frame { count: 1, kind: OUTPUT_START, data: Vec::new() }.encoded())?;
        socket.set_nonblocking(true)?;
        let receiver = match how {
            How::Sdk => Receiver::sdk(),
            How::Framed => Receiver::framed(Some(STATE_BYTES)),
        };
        Ok(StateStream { socket, receiver, is_open: true })
    }

    /// To wait on, while it is there.
    pub fn source(&self) -> Option<BorrowedFd<'_>> {
        self.is_open.then(|| self.socket.as_fd())
    }

    pub fn counts(&self) -> Counts {
        self.receiver.counts
    }

    /// The states that one read brings, oldest first; false at the stream's end.
    pub fn read(&mut self, clock: &Clock, into: &mut Vec<State>) -> bool {
        let mut bytes = [0; READ_BYTES];
        let count = match self.socket.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return true,
            Err(_) => 0,
        };
        self.is_open = count > 0;
        let arrived_ns = clock.now_ns();
        let mut frames = self.receiver.feed(&bytes[..count]);
        frames.retain(|frame| frame.kind == OUTPUT_DATA);
        let frames_in_read = u16::try_from(frames.len()).unwrap_or(u16::MAX);
        into.extend(frames.iter().filter_map(|frame| {
            let values = cnde::State::parse(&frame.data)?;
            let source_ns = values.calendar_ns;
            Some(State { values, count: frame.count, source_ns, arrived_ns, frames_in_read })
        }));
        self.is_open
    }
}
