//! A bus at the other end of a network, a datagram a frame; see `cannelloni.rs` for the bytes.

use std::{
    io::ErrorKind,
    net::{SocketAddr, UdpSocket},
    os::fd::AsRawFd,
};

use super::{
    Arrival, Error, Frame, Transport,
    cannelloni::{Datagram, encode},
};

/// The client's end.
#[derive(Debug)]
pub struct Udp(Peer);

/// The end in front of a bus: answers the last sender.
#[derive(Debug)]
pub struct UdpDoor(Peer);

#[derive(Debug)]
struct Peer {
    socket: UdpSocket,
    to: Option<SocketAddr>,
    datagram: Datagram,
    sequence: u8,
}

impl Udp {
    /// A bus at `host`, written HOST:PORT.
    ///
    /// # Errors
    /// The name does not resolve, or there is no way there.
    pub fn connect(host: &str) -> Result<Udp, Error> {
        let failed =
            |source| Error::Open { name: host.to_owned(), source, hint: "write HOST:PORT, e.g. 192.168.16.1:20000" };
        use std::net::ToSocketAddrs;
        let to = host.to_socket_addrs().map_err(failed)?.next();
        let to = to.ok_or_else(|| failed(ErrorKind::AddrNotAvailable.into()))?;
        let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any).map_err(failed)?;
        // Connected, so that others' datagrams do not come through, and an absent peer is an error.
        socket.connect(to).map_err(failed)?;
        Ok(Udp(Peer::new(socket).map_err(failed)?))
    }
}

impl UdpDoor {
    /// Listens at `address`, e.g. 127.0.0.1:20000; port 0 takes a free one.
    ///
    /// # Errors
    /// The address is not ours or taken.
    pub fn listen(address: &str) -> Result<UdpDoor, Error> {
        let failed = |source| Error::Open {
            name: address.to_owned(),
            source,
            hint: "write ADDRESS:PORT of this machine, port 0 for any",
        };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        Ok(UdpDoor(Peer::new(socket).map_err(failed)?))
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.0.socket.local_addr().map_err(|source| Error::System { what: "the address of a socket", source })
    }
}

impl Peer {
    fn new(socket: UdpSocket) -> std::io::Result<Peer> {
        socket.set_nonblocking(true)?;
        Ok(Peer { socket, to: None, datagram: Datagram::new(), sequence: 0 })
    }

    fn send(&mut self, frame: &Frame) -> Result<(), Error> {
        let (bytes, length) = encode(frame, self.sequence);
        self.sequence = self.sequence.wrapping_add(1);
        let sent = match self.to {
            Some(to) => self.socket.send_to(&bytes[..length], to),
            None => self.socket.send(&bytes[..length]),
        };
        match sent {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(Error::Full { what: "the socket's queue" }),
            Err(source) => Err(Error::System { what: "sending a datagram", source }),
        }
    }

    /// With `answer`, the sender is answered from now on.
    fn receive(&mut self, frame: &mut Frame, answer: bool) -> Result<bool, Error> {
        loop {
            if self.datagram.next(frame) {
                return Ok(true);
            }
            match self.socket.recv_from(&mut self.datagram.bytes[..]) {
                Ok((length, from)) => {
                    self.datagram.filled(length);
                    if answer {
                        self.to = Some(from);
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return Ok(false);
                }
                // A client that went away reports itself here; the door stays open for the next.
                Err(error) if answer && error.kind() == ErrorKind::ConnectionRefused => return Ok(false),
                Err(source) => return Err(Error::System { what: "receiving a datagram", source }),
            }
        }
    }
}

impl Transport for Udp {
    fn send(&mut self, _now_ns: u64, frame: &Frame) -> Result<(), Error> {
        self.0.send(frame)
    }

    fn receive(&mut self, _now_ns: u64, frame: &mut Frame) -> Result<bool, Error> {
        self.0.receive(frame, false)
    }

    fn next_arrival(&self) -> Arrival {
        Arrival::Readable(self.0.socket.as_raw_fd())
    }
}

impl Transport for UdpDoor {
    fn send(&mut self, _now_ns: u64, frame: &Frame) -> Result<(), Error> {
        // Before anybody has asked nobody is told.
        if self.0.to.is_some() { self.0.send(frame) } else { Ok(()) }
    }

    fn receive(&mut self, _now_ns: u64, frame: &mut Frame) -> Result<bool, Error> {
        self.0.receive(frame, true)
    }

    fn next_arrival(&self) -> Arrival {
        Arrival::Readable(self.0.socket.as_raw_fd())
    }
}
