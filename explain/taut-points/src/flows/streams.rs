//! Bytes of one TCP connection, by their places in its stream.

use super::{
    Crossed, port,
    sockets::{Chunk, Socket},
};

/// What each receiving call got, and who had sent it; `None` where the place of either end is not known.
pub(crate) fn streams(sender: &Socket, receiver: &Socket) -> Option<Vec<Crossed>> {
    let (mut sent_until, mut received) = (sender.sent.before?, receiver.received.before?);
    let port = port(sender, receiver);
    let mut ends = Vec::with_capacity(sender.sent.chunks.len());
    for chunk in &sender.sent.chunks {
        // Results of calls are a file's: their sum may be no number.
        sent_until = sent_until.checked_add(chunk.bytes)?;
        ends.push(sent_until);
    }
    // The call that sent this byte; of those before the recording none is known.
    let call = |byte: u64| -> Option<Chunk> {
        let at = ends.partition_point(|end| *end <= byte);
        let chunk = sender.sent.chunks.get(at)?;
        (ends[at] - chunk.bytes <= byte).then_some(*chunk)
    };
    let mut crossed = Vec::new();
    for chunk in &receiver.received.chunks {
        let first = received;
        received = received.checked_add(chunk.bytes)?;
        let last = received - 1;
        if let (Some(first), Some(last)) = (call(first), call(last)) {
            crossed.push(Crossed { first, last, received: *chunk, is_tcp: true, port });
        }
    }
    Some(crossed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::sockets::Stream;

    fn stream(before: Option<u64>, bytes: &[u64]) -> Stream {
        let chunk = |(at, bytes): (usize, &u64)| Chunk {
            tid: 1,
            start_ns: 1_000 * at as u64,
            end_ns: 1_000 * at as u64 + 10,
            bytes: *bytes,
        };
        Stream { before, chunks: bytes.iter().enumerate().map(chunk).collect() }
    }

    fn socket(host: u16, sent: Stream, received: Stream) -> Socket {
        let [local, remote] =
            [host, 1 - host].map(|of| format!("10.0.0.{of}:{}", if of == 0 { 6379 } else { 40_000 }).parse().unwrap());
        Socket { host, is_tcp: true, local, remote: Some(remote), sent, received }
    }

    fn places(sent: Stream, received: Stream) -> Option<Vec<(u64, u64, u64)>> {
        let (a, b) = (socket(0, sent, Stream::default()), socket(1, Stream::default(), received));
        let of = |all: Vec<Crossed>| {
            all.iter().map(|of| (of.first.start_ns, of.last.start_ns, of.received.start_ns)).collect()
        };
        streams(&a, &b).map(of)
    }

    #[test]
    fn bytes_are_found_however_they_were_cut() {
        let found = places(stream(Some(0), &[10, 10, 10]), stream(Some(0), &[5, 5, 15, 5])).unwrap();
        assert_eq!(found, [(0, 0, 0), (0, 0, 1_000), (1_000, 2_000, 2_000), (2_000, 2_000, 3_000)]);
    }

    #[test]
    fn what_was_sent_before_the_recording_has_no_sender() {
        // The sender's recording began 10 bytes later than the receiver's.
        let found = places(stream(Some(110), &[10, 10]), stream(Some(100), &[10, 10, 10, 10])).unwrap();
        assert_eq!(found, [(0, 0, 1_000), (1_000, 1_000, 2_000)]);
        assert_eq!(places(stream(None, &[10]), stream(Some(0), &[10])), None);
    }
}
