//! The ethtool ioctl (linux/ethtool.h): every driver answers it, and no interface has to be up.

use std::os::{fd::AsRawFd, unix::net::UnixDatagram};

use crate::{Answer, Missing, missing::missing};

/// From linux/sockios.h and linux/ethtool.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GCOALESCE: u32 = 0x0e;
const ETHTOOL_GEEE: u32 = 0x44;

/// How long the card gathers packets before it interrupts.
pub fn coalescing(interface: &str) -> Answer {
    // struct ethtool_coalesce: the words behind the command, in order.
    let words = ethtool(interface, ETHTOOL_GCOALESCE)?;
    let named = [
        ("rx_usecs", 1),
        ("rx_frames", 2),
        ("tx_usecs", 5),
        ("tx_frames", 6),
        ("adaptive_rx", 10),
        ("adaptive_tx", 11),
    ];
    Ok(named.map(|(name, at)| format!("{name}={}", words[at])).join("\n"))
}

/// Whether the link may go to sleep between packets (IEEE 802.3az).
pub fn energy_efficient(interface: &str) -> Answer {
    // struct ethtool_eee.
    let words = ethtool(interface, ETHTOOL_GEEE)?;
    Ok(format!("active={}\nenabled={}", words[4], words[5]))
}

/// Fills a structure of the kernel that begins with its command; the longest asked for has 23 words.
fn ethtool(interface: &str, command: u32) -> Result<[u32; 32], Missing> {
    let mut words = [0u32; 32];
    words[0] = command;
    // SAFETY: ifreq is plain numbers and a pointer, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(Missing::Absent);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // Any socket will do.
    let socket = UnixDatagram::unbound().map_err(missing)?;
    // SAFETY: the kernel fills the structure of the command, which is shorter than `words`, which outlives the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut request) } < 0 {
        let error = std::io::Error::last_os_error();
        return Err(match error.raw_os_error() {
            Some(libc::ENODEV) => Missing::Absent,
            Some(libc::EOPNOTSUPP) => Missing::Failed("the driver has no such setting".into()),
            _ => missing(error),
        });
    }
    Ok(words)
}
