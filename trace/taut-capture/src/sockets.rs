//! Looks at sockets of other processes: whom they are connected to, and how many bytes went over a TCP connection by now.
//!
//! A socket is looked at through a descriptor of it that the recorder holds for some microseconds. That needs no table of all sockets
//! of the machine, and works in every network namespace. It is refused where the process may not be traced. For as long the socket
//! stays open if the process closes it: its FIN goes out some microseconds later.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::{
    fs::fstat,
    io::ioctl_fionread,
    net::{SocketType, getpeername, getsockname, sockopt},
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};
use taut_clock::monotonic_ns;

/// A process whose sockets are looked at.
pub(crate) struct Owner(OwnedFd);

/// One of them.
pub(crate) struct Socket(OwnedFd);

/// What went over a TCP connection since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Bytes that the process has written, and read.
    pub written: u64,
    pub read: u64,
}

/// Places of fields of the kernel's `struct tcp_info` (include/uapi/linux/tcp.h), which only grows. The last one is of Linux 4.19.
const BYTES_RECEIVED: usize = 128;
const NOT_SENT_BYTES: usize = 144;
const BYTES_SENT: usize = 200;
const BYTES_RETRANSMITTED: usize = 208;
/// The first field: the connection's state.
const ESTABLISHED: u8 = 1;
const TCP_INFO_BYTES: usize = 216;
/// A connection of which bytes go all the time is asked so often for counts that hold at one moment.
const TRIES: usize = 2;

impl Owner {
    /// `None`: it is gone, or the kernel is older than 5.6.
    pub fn of(pid: i32) -> Option<Owner> {
        pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok().map(Owner)
    }

    /// The socket of that inode, if its descriptor still has this number and the process may be looked into.
    pub fn socket(&self, descriptor: i32, inode: u64) -> Option<Socket> {
        let socket = pidfd_getfd(&self.0, descriptor, PidfdGetfdFlags::empty()).ok()?;
        fstat(&socket).is_ok_and(|of| of.st_ino == inode).then_some(Socket(socket))
    }
}

impl Socket {
    /// As the tables of sockets in /proc have it: "tcp 10.0.0.1:80→10.0.0.2:5123"; `None` where it is none of the internet, or has no
    /// address yet.
    pub fn what(&self) -> Option<String> {
        let kind = match sockopt::socket_type(&self.0).ok()? {
            SocketType::STREAM => "tcp",
            SocketType::DGRAM => "udp",
            _ => return None,
        };
        let local = self.local().filter(|local| local.port() != 0)?;
        let remote = getpeername(&self.0).ok().flatten().and_then(|remote| SocketAddr::try_from(remote).ok());
        let nobody = if local.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        let remote = remote.unwrap_or(SocketAddr::new(nobody, 0));
        Some(format!("{kind} {local}→{remote}"))
    }

    /// Whether it is one of the internet without an address: it gets one when it is bound, or sends for the first time.
    pub fn has_no_address(&self) -> bool {
        self.local().is_some_and(|local| local.port() == 0)
    }

    fn local(&self) -> Option<SocketAddr> {
        SocketAddr::try_from(getsockname(&self.0).ok()?).ok()
    }

    /// `None`: it is no TCP connection, or bytes went each time that it was asked.
    pub fn place(&self) -> Option<Place> {
        if sockopt::socket_type(&self.0).ok()? != SocketType::STREAM {
            return None;
        }
        (0..TRIES).find_map(|_| {
            let before = self.counts()?;
            let time_ns = monotonic_ns();
            let (written, read) = before;
            (self.counts()? == before).then_some(Place { time_ns, written, read })
        })
    }

    fn counts(&self) -> Option<(u64, u64)> {
        // One that only listens has counts of something else.
        getpeername(&self.0).ok()??;
        let mut info = [0_u8; TCP_INFO_BYTES];
        let mut length = TCP_INFO_BYTES as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which the array has.
        let failed = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if failed != 0 || (length as usize) < TCP_INFO_BYTES {
            return None;
        }
        // Of a connection that begins or ends the kernel counts what is no byte: SYN and FIN.
        if info[0] != ESTABLISHED {
            return None;
        }
        let long = |at: usize| info[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        let short = |at: usize| info[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
        let written = (long(BYTES_SENT) + u64::from(short(NOT_SENT_BYTES))).checked_sub(long(BYTES_RETRANSMITTED))?;
        let read = long(BYTES_RECEIVED).checked_sub(ioctl_fionread(&self.0).ok()?)?;
        Some((written, read))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream, UdpSocket},
        os::{fd::AsFd, unix::net::UnixDatagram},
    };

    use rustix::net::{AddressFamily, socket};

    use super::*;

    fn of(own: &(impl AsFd + AsRawFd)) -> Socket {
        let inode = fstat(own).unwrap().st_ino;
        Owner::of(std::process::id() as i32).unwrap().socket(own.as_raw_fd(), inode).unwrap()
    }

    #[test]
    fn a_connection_says_what_went_over_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        one.write_all(&[1; 1_000]).unwrap();
        other.read_exact(&mut [0; 400]).unwrap();
        other.write_all(&[2; 30]).unwrap();
        let (of_one, of_other) = (of(&one), of(&other));
        let counts = |socket: &Socket| socket.place().map(|place| (place.written, place.read));
        assert_eq!((counts(&of_one), counts(&of_other)), (Some((1_000, 0)), Some((30, 400))));
        let (local, of_listener) = (one.local_addr().unwrap(), listener.local_addr().unwrap());
        assert_eq!(of_one.what(), Some(format!("tcp {local}→{of_listener}")));
        one.shutdown(std::net::Shutdown::Write).unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(600);
        while counts(&of_other).is_some() {
            assert!(std::time::Instant::now() < until, "a connection that ends still has counts");
        }
        let listener = of(&listener);
        assert_eq!((listener.what(), listener.place()), (Some(format!("tcp {of_listener}→0.0.0.0:0")), None));
    }

    #[test]
    fn a_datagram_socket_has_ends_as_it_gets_them() {
        let own = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (local, looked) = (own.local_addr().unwrap(), of(&own));
        assert_eq!((looked.what(), looked.place()), (Some(format!("udp {local}→0.0.0.0:0")), None));
        own.connect("127.0.0.1:9").unwrap();
        assert_eq!(looked.what(), Some(format!("udp {local}→127.0.0.1:9")));
        assert!(Owner::of(std::process::id() as i32).unwrap().socket(own.as_raw_fd(), 1).is_none(), "another one");
        let (of_path, _) = UnixDatagram::pair().unwrap();
        assert_eq!((of(&of_path).what(), of(&of_path).has_no_address()), (None, false));
        let unbound = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        assert_eq!((of(&unbound).what(), of(&unbound).has_no_address()), (None, true));
    }
}
