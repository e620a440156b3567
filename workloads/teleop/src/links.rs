//! What goes between the processes of the loop, over SOCK_SEQPACKET pairs: packets arrive whole and in order, and the end of a
//! process is the end of its links. Nothing on the setpoint's way waits for a reader.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use anyhow::{Context, Result};
use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};
use serde_json::{Value, json};

use crate::arms::Joints;

const PACKET_BYTES_MAX: usize = 65_536;
const SETPOINT_BYTES: usize = 9 * 8;

/// Joint angles for the follower, with the robot's own time of the state that they were made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setpoint {
    pub id: u64,
    pub source_ns: u64,
    pub produced_ns: u64,
    pub joints_deg: Joints,
}

impl Setpoint {
    fn packet(&self) -> [u8; SETPOINT_BYTES] {
        let Setpoint { id, source_ns, produced_ns, joints_deg } = self;
        let words = [*id, *source_ns, *produced_ns].into_iter().chain(joints_deg.map(f64::to_bits));
        let mut packet = [0; SETPOINT_BYTES];
        packet.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        packet
    }

    fn of(packet: &[u8]) -> Option<Setpoint> {
        let packet: &[u8; SETPOINT_BYTES] = packet.try_into().ok()?;
        let word = |n: usize| u64::from_le_bytes(std::array::from_fn(|byte| packet[8 * n + byte]));
        let joints_deg = std::array::from_fn(|n| f64::from_bits(word(3 + n)));
        Some(Setpoint { id: word(0), source_ns: word(1), produced_ns: word(2), joints_deg })
    }
}

/// One end.
pub struct Link {
    end: OwnedFd,
    /// False when the other end is gone.
    pub is_open: bool,
}

impl Link {
    pub fn new(end: OwnedFd) -> Link {
        Link { end, is_open: true }
    }

    /// To wait on, while there is another end.
    pub fn source(&self) -> Option<BorrowedFd<'_>> {
        self.is_open.then(|| self.end.as_fd())
    }

    /// Whether there was room for it.
    pub fn send(&self, packet: &[u8]) -> bool {
        send(&self.end, packet, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok()
    }

    pub fn send_setpoint(&self, setpoint: &Setpoint) -> bool {
        self.send(&setpoint.packet())
    }

    /// All that wait, oldest first.
    pub fn setpoints(&mut self, into: &mut Vec<Setpoint>) {
        while let Some(packet) = self.receive::<SETPOINT_BYTES>() {
            into.extend(Setpoint::of(&packet));
        }
    }

    /// Questions and answers of the heartbeat that wait.
    pub fn numbers(&mut self, into: &mut Vec<u32>) {
        while let Some(packet) = self.receive::<4>() {
            into.push(u32::from_le_bytes(packet));
        }
    }

    fn receive<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let mut packet = [0; BYTES];
        loop {
            match recv(&self.end, &mut packet, RecvFlags::DONTWAIT) {
                Ok((_, count)) if count == BYTES => return Some(packet),
                Err(Errno::AGAIN) => return None,
                Err(Errno::INTR) => {}
                // Its end, or somebody who speaks otherwise.
                Ok(_) | Err(_) => {
                    self.is_open = false;
                    return None;
                }
            }
        }
    }
}

/// Words between the main process and a part; off the setpoint's way, so they may wait. A word is `[word, facts]` in JSON.
pub struct Control(Link);

impl Control {
    pub fn new(end: OwnedFd) -> Control {
        Control(Link::new(end))
    }

    pub fn source(&self) -> Option<BorrowedFd<'_>> {
        self.0.source()
    }

    pub fn say(&self, word: &str, facts: &Value) {
        // The main process may be gone.
        let _ = send(&self.0.end, json!([word, facts]).to_string().as_bytes(), SendFlags::NOSIGNAL);
    }

    /// The next word, waited for; `None` at the other's end.
    pub fn hear(&self) -> Option<(String, Value)> {
        let mut packet = vec![0; PACKET_BYTES_MAX];
        loop {
            match recv(&self.0.end, &mut packet[..], RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                Err(_) | Ok((_, 0)) => return None,
                Ok((_, count)) => return serde_json::from_slice(&packet[..count]).ok(),
            }
        }
    }
}

/// An inherited end, by the number that the parent gave it.
pub fn inherited(number: RawFd) -> Result<OwnedFd> {
    rustix::fs::fstat(
        // SAFETY: borrowed for this call only; a number that is not open is the error that is looked for.
        unsafe { BorrowedFd::borrow_raw(number) },
    )
    .with_context(|| format!("link {number}"))?;
    // SAFETY: open, passed on by the parent for this process alone, and taken once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
pub fn pair() -> (Link, Link) {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    pair.map(|(ours, theirs)| (Link::new(ours), Link::new(theirs))).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setpoint(id: u64) -> Setpoint {
        Setpoint {
            id,
            source_ns: 20 * id,
            produced_ns: 21 * id,
            joints_deg: [id as f64, -1.0, 0.5, 0.0, f64::MAX, 1e-300],
        }
    }

    #[test]
    fn setpoints_come_whole_and_in_order_and_a_full_link_says_so() {
        let (sender, mut receiver) = pair();
        let mut came = Vec::new();
        receiver.setpoints(&mut came);
        assert!(came.is_empty() && receiver.is_open);
        let sent = (1..).take_while(|id| sender.send_setpoint(&setpoint(*id))).count() as u64;
        receiver.setpoints(&mut came);
        assert_eq!(came, (1..=sent).map(setpoint).collect::<Vec<_>>());
        assert!(sent > 10);
        drop(sender);
        receiver.setpoints(&mut came);
        assert!(!receiver.is_open && receiver.source().is_none());
    }

    #[test]
    fn control_words_pass_and_an_end_is_heard() {
        let (ours, theirs) = pair();
        let (ours, theirs) = (Control(ours), Control(theirs));
        ours.say("go", &json!({ "produced": 3 }));
        assert_eq!(theirs.hear(), Some(("go".to_owned(), json!({ "produced": 3 }))));
        drop(ours);
        assert_eq!(theirs.hear(), None);
        theirs.say("result", &json!({}));
    }

    #[test]
    fn a_number_that_is_not_open_is_refused() {
        assert!(inherited(9999).is_err());
    }
}
