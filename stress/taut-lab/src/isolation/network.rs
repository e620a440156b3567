//! A network of the lab's own: a namespace with nothing in it but loopback, in which the system runs, and in which
//! delay and loss affect no other packets. It ends with its last process.

use std::{
    fs::File,
    io,
    net::UdpSocket,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use serde::{Deserialize, Serialize};

/// Packets that measure a network.
const PACKETS: usize = 200;
/// Between two of them.
const GAP: Duration = Duration::from_millis(1);
/// What comes later than this after the last was sent counts as lost.
const LATE: Duration = Duration::from_millis(500);

/// What a scenario does to every packet between processes of the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// One way.
    #[serde(default)]
    pub delay_ms: f64,
    /// By how much the delay varies, up and down.
    #[serde(default)]
    pub jitter_ms: f64,
    /// Of packets, each by itself.
    #[serde(default)]
    pub loss_percent: f64,
}

/// A network with loopback only.
#[derive(Debug)]
pub(crate) struct Namespace(OwnedFd);

/// What packets through it met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Met {
    pub sent: usize,
    pub lost: usize,
    /// Median of one way.
    pub delay_ms: f64,
    /// Between the 10th and the 90th of a hundred.
    pub spread_ms: f64,
}

impl Namespace {
    /// # Errors
    /// What the kernel said; only the superuser may have one.
    pub fn new() -> io::Result<Namespace> {
        // A namespace is a thread's: this one takes it, opens it for good, and goes.
        let made = std::thread::spawn(|| {
            // SAFETY: a fresh thread without anything that relies on what it shared with the others.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
            raise_loopback()?;
            File::open("/proc/thread-self/ns/net").map(|file| Namespace(file.into()))
        });
        made.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Does it in the namespace; threads and processes that are started meanwhile are in it, too.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(self.fd(), Some(LinkNameSpaceType::Network))?;
                work()
            });
            inside.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
        })
    }

    /// Lays delay and loss on loopback, which every packet passes once.
    ///
    /// # Errors
    /// No `tc`, or a kernel without netem, with the remedy.
    pub fn shape(&self, network: &Network) -> io::Result<()> {
        let arguments = network.netem();
        let done = self.inside(|| Command::new("tc").args(&arguments).stdin(Stdio::null()).output());
        let output = done.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::other("tc is not here; install iproute2"),
            _ => error,
        })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason").to_owned();
        let remedy = "the kernel must have netem: modprobe sch_netem, or a kernel with CONFIG_NET_SCH_NETEM";
        Err(io::Error::other(format!("tc says: {said}; {remedy}")))
    }

    /// Sends packets over loopback and says what they met.
    pub fn measure(&self) -> io::Result<Met> {
        self.inside(|| {
            let reader = UdpSocket::bind("127.0.0.1:0")?;
            let writer = UdpSocket::bind("127.0.0.1:0")?;
            writer.connect(reader.local_addr()?)?;
            reader.set_read_timeout(Some(Duration::from_millis(20)))?;
            let began = Instant::now();
            let end = GAP * PACKETS as u32 + LATE;
            let sender = std::thread::spawn(move || {
                for at in 0..PACKETS {
                    std::thread::sleep((GAP * at as u32).saturating_sub(began.elapsed()));
                    writer.send(&(began.elapsed().as_nanos() as u64).to_le_bytes())?;
                }
                io::Result::Ok(())
            });
            let mut delays = Vec::new();
            let mut packet = [0; 8];
            while began.elapsed() < end && delays.len() < PACKETS {
                if let Ok(8) = reader.recv(&mut packet) {
                    let sent = Duration::from_nanos(u64::from_le_bytes(packet));
                    delays.push(began.elapsed().saturating_sub(sent).as_secs_f64() * 1e3);
                }
            }
            sender.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))?;
            Ok(Met::of(PACKETS, delays))
        })
    }
}

impl Network {
    fn netem(&self) -> Vec<String> {
        let mut words: Vec<String> = ["qdisc", "replace", "dev", "lo", "root", "netem"].map(String::from).into();
        if self.delay_ms > 0.0 {
            words.extend(["delay".into(), format!("{}ms", self.delay_ms)]);
            words.extend((self.jitter_ms > 0.0).then(|| format!("{}ms", self.jitter_ms)));
        }
        if self.loss_percent > 0.0 {
            words.extend(["loss".into(), format!("{}%", self.loss_percent)]);
        }
        // A delay holds packets: a queue of the default 1000 would add loss of its own under a flood.
        words.extend(["limit".into(), "100000".into()]);
        words
    }

    /// Losses so far below what is asked for that chance does not explain them (4 standard deviations).
    pub(crate) fn lost_enough(&self, met: &Met) -> bool {
        let (n, p) = (met.sent as f64, self.loss_percent / 100.0);
        met.lost as f64 >= n * p - 4.0 * (n * p * (1.0 - p)).sqrt() - 0.5
    }
}

impl Met {
    fn of(sent: usize, mut delays: Vec<f64>) -> Met {
        delays.sort_unstable_by(f64::total_cmp);
        let at = |q: f64| delays.get((q * delays.len() as f64) as usize).copied().unwrap_or(0.0);
        Met { sent, lost: sent - delays.len(), delay_ms: at(0.5), spread_ms: at(0.9) - at(0.1) }
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "network {} ms", self.delay_ms)?;
        if self.jitter_ms > 0.0 {
            write!(f, " ± {} ms", self.jitter_ms)?;
        }
        if self.loss_percent > 0.0 {
            write!(f, ", {} % lost", self.loss_percent)?;
        }
        Ok(())
    }
}

/// Loopback of a new namespace is down.
fn raise_loopback() -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo\0") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: an ifreq of this frame, which the kernel reads.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use taut_skip::{Need, skip};

    use super::*;

    #[test]
    fn netem_is_told_what_the_file_says() {
        let network = Network { delay_ms: 20.0, jitter_ms: 2.5, loss_percent: 1.0 };
        let said = network.netem().join(" ");
        assert_eq!(said, "qdisc replace dev lo root netem delay 20ms 2.5ms loss 1% limit 100000");
        assert_eq!(network.to_string(), "network 20 ms ± 2.5 ms, 1 % lost");
    }

    #[test]
    fn a_loss_is_there_when_chance_explains_what_is_missing() {
        let network = Network { loss_percent: 10.0, ..Network::default() };
        let met = |lost| Met { sent: 200, lost, delay_ms: 0.1, spread_ms: 0.0 };
        assert!(network.lost_enough(&met(20)) && network.lost_enough(&met(8)));
        assert!(!network.lost_enough(&met(2)));
        assert!(Network { loss_percent: 0.5, ..network }.lost_enough(&met(0)));
    }

    #[test]
    fn packets_pass_a_network_that_nobody_else_hears() {
        let network = match Namespace::new() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return skip(Need::Namespaces, "only the superuser may have a network namespace");
            }
            network => network.unwrap(),
        };
        let outside = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = outside.local_addr().unwrap();
        // The same address is free in there: it is another network.
        let heard = network.inside(|| UdpSocket::bind(address)?.send_to(b"x", address)).unwrap();
        assert_eq!(heard, 1);
        outside.set_nonblocking(true).unwrap();
        assert!(outside.recv(&mut [0; 8]).is_err());
        let met = network.measure().unwrap();
        assert_eq!((met.sent, met.lost), (PACKETS, 0), "{met:?}");
        // Delayed where the kernel can, and else said what it lacks.
        match network.shape(&Network { delay_ms: 30.0, jitter_ms: 0.0, loss_percent: 20.0 }) {
            Ok(()) => {
                let met = network.measure().unwrap();
                assert!(met.delay_ms >= 29.0 && (10..=80).contains(&met.lost), "{met:?}");
            }
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains("modprobe sch_netem") || said.contains("install iproute2"), "{said}");
                skip(Need::Netem, said);
            }
        }
    }
}
