//! A terminal line as both ends of the fdcanusb protocol use it: raw, never blocking, with what could not be written
//! yet kept for later.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    termios::{OptionalActions, tcgetattr, tcsetattr},
};

use super::{
    Error,
    lines::{Line, Lines},
};

/// Bytes that may wait to be written: some fifty lines.
const UNSENT: usize = 8192;

#[derive(Debug)]
pub(super) struct Tty {
    fd: OwnedFd,
    pub lines: Lines,
    unsent: Vec<u8>,
}

/// No echo, no translation, bytes as they are.
pub(super) fn make_raw(fd: &OwnedFd) -> Result<(), Errno> {
    let mut settings = tcgetattr(fd)?;
    settings.make_raw();
    tcsetattr(fd, OptionalActions::Now, &settings)
}

impl Tty {
    pub fn new(fd: OwnedFd) -> Result<Tty, Errno> {
        fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
        Ok(Tty { fd, lines: Lines::new(), unsent: Vec::with_capacity(UNSENT) })
    }

    /// Writes a line, or keeps the rest of it.
    pub fn write(&mut self, line: &Line) -> Result<(), Error> {
        self.write_rest()?;
        if self.unsent.len() + line.as_bytes().len() > UNSENT {
            return Err(Error::Full { what: "the queue to the adapter" });
        }
        self.unsent.extend_from_slice(line.as_bytes());
        self.write_rest()
    }

    /// Reads what is there; false when that is nothing. Closed: the other end is.
    pub fn read(&mut self) -> Result<bool, Error> {
        self.write_rest()?;
        match rustix::io::read(&self.fd, self.lines.room()) {
            Ok(0) => Err(Error::Closed),
            Ok(bytes) => {
                self.lines.filled(bytes);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(Errno::IO) => Err(Error::Closed),
            Err(errno) => Err(Error::system("reading from the adapter")(errno)),
        }
    }

    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    fn write_rest(&mut self) -> Result<(), Error> {
        while !self.unsent.is_empty() {
            match rustix::io::write(&self.fd, &self.unsent) {
                Ok(bytes) => drop(self.unsent.drain(..bytes)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::IO) => return Err(Error::Closed),
                Err(errno) => return Err(Error::system("writing to the adapter")(errno)),
            }
        }
        Ok(())
    }
}
