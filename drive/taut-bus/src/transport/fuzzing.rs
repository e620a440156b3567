//! For the fuzzer: foreign bytes on a transport.

use super::{
    Frame, ID_MASK,
    cannelloni::{Datagram, LARGEST},
    lines::{Lines, Said, Told, said, told},
};

/// Lines in pieces, understood by both ends.
pub fn lines(bytes: &[u8]) {
    let mut lines = Lines::new();
    for piece in bytes.chunks(usize::from(bytes.first().copied().unwrap_or(0)) + 1) {
        lines.room()[..piece.len()].copy_from_slice(piece);
        lines.filled(piece.len());
        while let Some(line) = lines.next() {
            assert!(!line.is_empty());
            if let (Told::Send(frame), _) = told(line) {
                check(&frame);
            }
            for checksum in [false, true] {
                if let Said::Received(frame) = said(line, checksum) {
                    check(&frame);
                }
            }
        }
    }
}

/// A datagram of frames.
pub fn datagrams(bytes: &[u8]) {
    let (mut datagram, mut frame, mut count) = (Datagram::new(), Frame::new(), 0);
    let length = bytes.len().min(LARGEST);
    datagram.bytes[..length].copy_from_slice(&bytes[..length]);
    datagram.filled(length);
    while datagram.next(&mut frame) {
        check(&frame);
        count += 1;
    }
    assert!(count <= length / 5);
}

fn check(frame: &Frame) {
    assert!(frame.size <= 64 && frame.payload().len() <= 64 && frame.arbitration_id <= ID_MASK);
}
