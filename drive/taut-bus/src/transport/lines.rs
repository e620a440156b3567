//! The fdcanusb line protocol, both ends: lines out of a stream of bytes, checksums, frames as text. The words and the
//! checksum are `moteus-protocol`'s.

use moteus_protocol::fdcanusb::{
    EncodeOptions, MAX_LINE_LENGTH, compute_crc8, encode_can_send, parse_rcv, strip_checksum,
};

use super::{Frame, ID_MASK, LARGEST_STANDARD};

const SEND: &[u8] = b"can send ";
const RECEIVED: &[u8] = b"rcv ";
/// Bytes that may wait for their line's end, and that one read may bring.
const ROOM: usize = 8192;

/// A line to be written.
#[derive(Clone, Debug)]
pub(super) struct Line {
    bytes: [u8; MAX_LINE_LENGTH],
    length: usize,
}

impl Line {
    /// What a client sends to have `frame` sent.
    pub fn send(frame: &Frame, checksum: bool) -> Option<Line> {
        let mut line = Line { bytes: [0; MAX_LINE_LENGTH], length: 0 };
        let options = EncodeOptions { disable_brs: false, checksum };
        line.length = encode_can_send(frame, &options, &mut line.bytes).ok()?;
        Some(line)
    }

    /// What an adapter says when `frame` has arrived.
    pub fn received(frame: &Frame, checksum: bool) -> Option<Line> {
        let sent = Line::send(frame, false)?;
        // "can send ID DATA FLAGS": the same id and data, other words around them.
        let fields = sent.as_bytes().get(SEND.len()..)?;
        let end = fields.iter().rposition(|byte| *byte == b' ')?;
        let extended: &[u8] = if frame.arbitration_id > LARGEST_STANDARD { b" E B F" } else { b" e B F" };
        Line::of(&[RECEIVED, &fields[..end], extended], checksum)
    }

    /// A line of these words.
    pub fn of(words: &[&[u8]], checksum: bool) -> Option<Line> {
        let mut line = Line { bytes: [0; MAX_LINE_LENGTH], length: 0 };
        words.iter().try_for_each(|word| line.push(word))?;
        if checksum {
            line.push(b" ")?;
            let crc = compute_crc8(line.as_bytes());
            let hex = |nibble: u8| b"0123456789ABCDEF"[usize::from(nibble & 0xf)];
            line.push(&[b'*', hex(crc >> 4), hex(crc)])?;
        }
        line.push(b"\n")?;
        Some(line)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(&mut self, word: &[u8]) -> Option<()> {
        let end = self.length + word.len();
        self.bytes.get_mut(self.length..end)?.copy_from_slice(word);
        self.length = end;
        Some(())
    }
}

/// Commands to an adapter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Told {
    /// Send this.
    Send(Frame),
    /// The checksum does not hold.
    Damaged,
    /// Something else.
    Unknown,
}

/// Understands a client's line; the second value is whether it carried a checksum.
pub(super) fn told(line: &[u8]) -> (Told, bool) {
    let (content, had_checksum, holds) = strip_checksum(line);
    if had_checksum && !holds {
        return (Told::Damaged, true);
    }
    let mut as_received = [0; MAX_LINE_LENGTH];
    let frame = content.strip_prefix(SEND).and_then(|fields| {
        let end = RECEIVED.len() + fields.len();
        as_received[..RECEIVED.len()].copy_from_slice(RECEIVED);
        as_received.get_mut(RECEIVED.len()..end)?.copy_from_slice(fields);
        // An adapter sends what CAN can carry.
        parse_rcv(&as_received[..end]).filter(|frame| frame.arbitration_id <= ID_MASK)
    });
    (frame.map_or(Told::Unknown, Told::Send), had_checksum)
}

/// What an adapter says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// A frame arrived.
    Received(Frame),
    /// A command was understood.
    Ok,
    /// It was not, or could not be done.
    Error,
    /// A line without the checksum that is asked for, or a damaged one, or noise.
    Noise,
}

/// Understands an adapter's line.
pub(super) fn said(line: &[u8], checksum: bool) -> Said {
    use moteus_protocol::fdcanusb::Line as Theirs;
    let (content, had_checksum, holds) = strip_checksum(line);
    if (checksum && !had_checksum) || (had_checksum && !holds) {
        return Said::Noise;
    }
    match moteus_protocol::fdcanusb::parse_line(content) {
        Theirs::Rcv(mut frame) => {
            // The parser keeps the word E as a flag in the id.
            frame.arbitration_id &= ID_MASK;
            Said::Received(frame)
        }
        Theirs::Ok => Said::Ok,
        Theirs::Err(_) => Said::Error,
        _ => Said::Noise,
    }
}

/// Bytes as they come, taken out as lines.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    bytes: Box<[u8; ROOM]>,
    from: usize,
    to: usize,
}

impl Lines {
    pub fn new() -> Lines {
        Lines { bytes: Box::new([0; ROOM]), from: 0, to: 0 }
    }

    /// Room for more bytes; say with [`Lines::filled`] how many came. A line longer than all room is thrown away.
    pub fn room(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        if self.to > ROOM / 2 {
            self.to = 0;
        }
        &mut self.bytes[self.to..]
    }

    pub fn filled(&mut self, bytes: usize) {
        self.to += bytes;
    }

    /// The next whole line that is not empty.
    pub fn next(&mut self) -> Option<&[u8]> {
        loop {
            let rest = &self.bytes[self.from..self.to];
            let length = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
            let from = self.from;
            self.from += length + 1;
            if length > 0 {
                return Some(&self.bytes[from..from + length]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(id: u32, data: &[u8]) -> Frame {
        let mut frame = Frame::new();
        frame.arbitration_id = id;
        frame.data[..data.len()].copy_from_slice(data);
        frame.size = data.len() as u8;
        frame
    }

    #[test]
    fn lines_as_the_adapter_writes_them() {
        let text = |line: Option<Line>| String::from_utf8(line.unwrap().as_bytes().to_vec()).unwrap();
        assert_eq!(text(Line::received(&frame(0x100, &[0x21, 0, 0x0a]), false)), "rcv 0100 21000A e B F\n");
        assert_eq!(text(Line::received(&frame(0x900, &[]), false)), "rcv 0900  E B F\n");
        assert_eq!(text(Line::of(&[b"OK"], true)), "OK *BD\n");
        assert_eq!(text(Line::send(&frame(0x8001, &[0x11]), false)), "can send 8001 11 BF\n");
    }

    #[test]
    fn damaged_lines_are_told_from_unknown_ones() {
        assert_eq!(told(b"can send 8001 11 BF *00"), (Told::Damaged, true));
        assert_eq!(told(b"can send 8001 1 BF").0, Told::Unknown);
        assert_eq!(told(b"can send ffffffff 11 BF").0, Told::Unknown);
        assert_eq!(told(b"tel list").0, Told::Unknown);
        assert_eq!(told(&[b'x'; 400]).0, Told::Unknown);
        assert_eq!(said(b"OK", true), Said::Noise);
        assert_eq!(said(b"OK *BD", true), Said::Ok);
        assert_eq!(said(b"ERR unknown command", false), Said::Error);
    }

    proptest! {
        #[test]
        fn frames_survive_both_ways(
            id in 0..=ID_MASK, data in prop::collection::vec(any::<u8>(), 0..=64), checksum: bool,
        ) {
            let sent = frame(id, &data);
            let mut padded = sent.clone();
            padded.pad_to_dlc();
            let line = Line::send(&sent, checksum).unwrap();
            let (Told::Send(heard), had) = told(line.as_bytes().trim_ascii_end()) else { panic!("not understood") };
            prop_assert_eq!((heard.arbitration_id, heard.payload(), had), (id, padded.payload(), checksum));
            let line = Line::received(&padded, checksum).unwrap();
            let Said::Received(heard) = said(line.as_bytes().trim_ascii_end(), checksum) else { panic!("not understood") };
            prop_assert_eq!((heard.arbitration_id, heard.payload()), (id, padded.payload()));
        }

        #[test]
        fn any_bytes_in_any_pieces_are_the_same_lines(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..2000),
            pieces in prop::collection::vec(1usize..300, 1..50),
        ) {
            let expected: Vec<Vec<u8>> = {
                let whole = bytes.iter().rposition(|b| matches!(b, b'\r' | b'\n')).map_or(0, |at| at + 1);
                bytes[..whole].split(|b| matches!(b, b'\r' | b'\n')).filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect()
            };
            let (mut lines, mut found, mut rest) = (Lines::new(), Vec::new(), &bytes[..]);
            for piece in pieces.iter().cycle() {
                if rest.is_empty() { break; }
                let n = (*piece).min(rest.len());
                lines.room()[..n].copy_from_slice(&rest[..n]);
                lines.filled(n);
                rest = &rest[n..];
                while let Some(line) = lines.next() {
                    found.push(line.to_vec());
                    told(line);
                    said(line, false);
                }
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn an_endless_line_is_thrown_away_and_the_next_is_understood() {
        let mut lines = Lines::new();
        for _ in 0..100 {
            let n = lines.room().len().min(1000);
            lines.room()[..n].fill(b'x');
            lines.filled(n);
            assert!(lines.next().is_none());
        }
        let end = b"\nOK\n";
        lines.room()[..end.len()].copy_from_slice(end);
        lines.filled(end.len());
        while let Some(line) = lines.next() {
            if line == b"OK" {
                return;
            }
        }
        panic!("OK was lost");
    }
}
