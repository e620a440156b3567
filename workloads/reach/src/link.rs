//! One end of a link: a SOCK_SEQPACKET socket. Packets arrive whole and in order, the end of a process is the end of its links, and
//! nothing waits for a reader.

use anyhow::{Result, bail};
use rustix::{
    fd::BorrowedFd,
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};

use crate::packets::{MOST_BYTES, Packet};

pub struct Link {
    end: BorrowedFd<'static>,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Link {
    pub fn new(end: BorrowedFd<'static>) -> Link {
        // No packet makes them longer.
        Link { end, incoming: vec![0; MOST_BYTES + 1], outgoing: Vec::with_capacity(MOST_BYTES) }
    }

    /// To wait on.
    pub fn source(&self) -> BorrowedFd<'_> {
        self.end
    }

    /// Whether there was room for it.
    pub fn send(&mut self, packet: &impl Packet) -> bool {
        packet.pack(&mut self.outgoing);
        send(self.end, &self.outgoing, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok()
    }

    /// The next that waits.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn receive(&mut self) -> Result<Option<&[u8]>> {
        loop {
            match recv(self.end, &mut self.incoming[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => bail!("the other end of a link is gone"),
                Ok((count, _)) => return Ok(Some(&self.incoming[..count])),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
