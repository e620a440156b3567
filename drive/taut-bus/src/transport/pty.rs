//! The adapter's end of the fdcanusb protocol on a pty: what a client opens instead of a device.

use std::path::{Path, PathBuf};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use super::{
    Arrival, Error, Frame, Transport,
    lines::{Line, Told, told},
    tty::{Tty, make_raw},
};

/// An fdcanusb that is not there. Frames that a client sends are received here; frames sent here arrive at the client.
#[derive(Debug)]
pub struct Pty {
    tty: Tty,
    path: PathBuf,
    /// The last line had one, so ours have, as moteus' UART does.
    checksum: bool,
    /// Held open: with no client at all the pty would report an error for good.
    _client_side: std::os::fd::OwnedFd,
}

impl Pty {
    /// A fresh pty, raw as a serial adapter is.
    ///
    /// # Errors
    /// The system has no ptys left.
    pub fn open() -> Result<Pty, Error> {
        let system = |what| Error::system(what);
        let fd =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).map_err(system("opening a pty"))?;
        grantpt(&fd).map_err(system("opening a pty"))?;
        unlockpt(&fd).map_err(system("opening a pty"))?;
        let name = ptsname(&fd, Vec::new()).map_err(system("the name of a pty"))?;
        let path = PathBuf::from(name.to_string_lossy().into_owned());
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let client_side = open(&path, flags, Mode::empty()).map_err(system("opening a pty's other end"))?;
        make_raw(&client_side).map_err(system("settings of a pty"))?;
        let tty = Tty::new(fd).map_err(system("settings of a pty"))?;
        Ok(Pty { tty, path, checksum: false, _client_side: client_side })
    }

    /// What a client opens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn say(&mut self, words: &[u8]) -> Result<(), Error> {
        match Line::of(&[words], self.checksum) {
            Some(line) => self.tty.write(&line),
            None => Ok(()),
        }
    }
}

impl Transport for Pty {
    fn send(&mut self, _now_ns: u64, frame: &Frame) -> Result<(), Error> {
        let refused = || Error::Frame { id: frame.arbitration_id, bytes: usize::from(frame.size) };
        self.tty.write(&Line::received(frame, self.checksum).ok_or_else(refused)?)
    }

    fn receive(&mut self, _now_ns: u64, frame: &mut Frame) -> Result<bool, Error> {
        loop {
            while let Some(line) = self.tty.lines.next() {
                let (told, checksum) = told(line);
                self.checksum = checksum;
                match told {
                    Told::Send(sent) => {
                        self.say(b"OK")?;
                        *frame = sent;
                        return Ok(true);
                    }
                    Told::Damaged => self.say(b"ERR checksum mismatch")?,
                    Told::Unknown => self.say(b"ERR unknown command")?,
                }
            }
            if !self.tty.read()? {
                return Ok(false);
            }
        }
    }

    fn next_arrival(&self) -> Arrival {
        Arrival::Readable(self.tty.raw_fd())
    }
}
