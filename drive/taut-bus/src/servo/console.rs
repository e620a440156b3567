//! The diagnostic console of a servo: lines of text in the frames' stream subframes, as `moteus_tool --console` and moteus' `Stream` use it.
//!
//! Parsed here and not by `moteus_protocol`, which takes the size that a poll allows for bytes that follow.

use std::collections::VecDeque;

const CLIENT_DATA: u8 = 0x40;
const SERVER_DATA: u8 = 0x41;
const POLL: u8 = 0x42;
const SERVER_DATA_FLOW: u8 = 0x43;
const POLL_FLOW: u8 = 0x44;
/// The console; other channels are silent.
const CHANNEL: u8 = 1;
/// A line that is longer, and text beyond this that is not fetched, are lost.
const MOST: usize = 1024;
/// What fits beside a reply's head.
const MOST_DATA: usize = 60;

/// Lines that come, and text that waits to be fetched.
#[derive(Clone, Debug, Default)]
pub(super) struct Console {
    line: Vec<u8>,
    waiting: VecDeque<u8>,
    /// The packet that was sent last with flow control; it is sent again until the host acknowledges it.
    packet: u8,
    sent: Vec<u8>,
}

/// What a frame for the console was.
pub(super) enum Spoken {
    /// Lines, whole ones.
    Lines(Vec<String>),
    /// A poll: the reply's payload.
    Reply(Vec<u8>),
}

impl Console {
    /// Takes a frame's payload; `None` when it is none for a console.
    pub fn take(&mut self, payload: &[u8]) -> Option<Spoken> {
        match *payload {
            [CLIENT_DATA, CHANNEL, size, ref data @ ..] => Some(Spoken::Lines(self.lines(data.get(..size as usize)?))),
            [POLL, channel, most, ..] => {
                let data = if channel == CHANNEL { self.next(most) } else { Vec::new() };
                // A new host flushes the stream with such polls; it must not get its predecessor's last packet afterwards.
                if channel == CHANNEL {
                    self.sent.clear();
                }
                Some(Spoken::Reply([&[SERVER_DATA, channel, data.len() as u8], data.as_slice()].concat()))
            }
            [POLL_FLOW, channel, acknowledged, most, ..] => {
                if channel == CHANNEL && acknowledged == self.packet {
                    self.sent = self.next(most);
                    self.packet = self.packet.wrapping_add(1);
                }
                let data: &[u8] = if channel == CHANNEL { &self.sent } else { &[] };
                Some(Spoken::Reply([&[SERVER_DATA_FLOW, channel, self.packet, data.len() as u8], data].concat()))
            }
            _ => None,
        }
    }

    /// Queues a line for the host.
    pub fn say(&mut self, line: &str) {
        let room = MOST.saturating_sub(self.waiting.len());
        self.waiting.extend(line.bytes().chain(*b"\r\n").take(room));
    }

    fn lines(&mut self, data: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for byte in data {
            match byte {
                b'\n' | b'\r' if self.line.is_empty() => {}
                b'\n' | b'\r' => lines.push(String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned()),
                _ if self.line.len() < MOST => self.line.push(*byte),
                _ => {}
            }
        }
        lines
    }

    fn next(&mut self, most: u8) -> Vec<u8> {
        let count = self.waiting.len().min(most as usize).min(MOST_DATA);
        self.waiting.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(console: &mut Console, payload: &[u8]) -> Vec<u8> {
        match console.take(payload) {
            Some(Spoken::Reply(reply)) => reply,
            _ => panic!("no reply"),
        }
    }

    #[test]
    fn lines_may_come_in_pieces_and_answers_go_in_pieces() {
        let mut console = Console::default();
        let Some(Spoken::Lines(none)) = console.take(b"\x40\x01\x03tel\x50") else { panic!("data") };
        let Some(Spoken::Lines(lines)) = console.take(b"\x40\x01\x06 stop\n\x50") else { panic!("data") };
        assert_eq!((none.len(), lines), (0, vec!["tel stop".to_owned()]));
        console.say("OK");
        assert_eq!(reply(&mut console, &[POLL, 1, 3]), b"\x41\x01\x03OK\r");
        assert_eq!(reply(&mut console, &[POLL, 1, 48]), b"\x41\x01\x01\n");
        assert_eq!(reply(&mut console, &[POLL, 1, 48]), b"\x41\x01\x00");
        assert_eq!(reply(&mut console, &[POLL, 2, 48]), b"\x41\x02\x00");
    }

    #[test]
    fn a_packet_is_sent_again_until_it_is_acknowledged() {
        let mut console = Console::default();
        console.say("OK");
        assert_eq!(reply(&mut console, &[POLL_FLOW, 1, 0, 48]), b"\x43\x01\x01\x04OK\r\n");
        assert_eq!(reply(&mut console, &[POLL_FLOW, 1, 0, 48]), b"\x43\x01\x01\x04OK\r\n", "its reply was lost");
        assert_eq!(reply(&mut console, &[POLL_FLOW, 1, 1, 48]), b"\x43\x01\x02\x00");
    }

    #[test]
    fn a_host_that_flushes_gets_no_packet_of_the_host_before_it() {
        let mut console = Console::default();
        console.say("OK");
        assert_eq!(reply(&mut console, &[POLL_FLOW, 1, 0, 48]), b"\x43\x01\x01\x04OK\r\n");
        assert_eq!(reply(&mut console, &[POLL, 1, 48]), b"\x41\x01\x00");
        console.say("2");
        assert_eq!(reply(&mut console, &[POLL_FLOW, 1, 0, 1]), b"\x43\x01\x01\x00", "it learns the packet's number");
        assert_eq!(reply(&mut console, &[POLL_FLOW, 1, 1, 48]), b"\x43\x01\x02\x032\r\n");
    }

    #[test]
    fn other_frames_and_broken_ones_are_none_of_its() {
        let mut console = Console::default();
        for payload in [&b""[..], b"\x11\x00", b"\x40", b"\x40\x01\x09abc", b"\x42\x01"] {
            assert!(console.take(payload).is_none(), "{payload:x?}");
        }
        for _ in 0..100 {
            console.say(&"x".repeat(100));
        }
        assert_eq!(console.waiting.len(), MOST);
    }
}
