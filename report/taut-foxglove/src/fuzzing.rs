//! For the fuzzer: what a viewer sends.

use std::sync::{Arc, Mutex, atomic::AtomicBool};

use taut_recording::PlainChannel;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    runtime::Builder,
    sync::broadcast,
    time::timeout,
};

use crate::{GRACE, PING, Shared, origin::Origins, viewer};

/// A handshake that is answered.
pub const HANDSHAKE: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: foxglove.sdk.v1\r\n\r\n";

/// What a server with one channel on the loopback shares with its viewers.
pub(crate) fn shared() -> Arc<Shared> {
    let channel = PlainChannel { number: 1, topic: "/arm".to_owned(), ..PlainChannel::default() };
    Arc::new(Shared {
        name: "robot".to_owned(),
        session: 7,
        channels: Mutex::new([(1, Arc::new(channel))].into()),
        events: broadcast::Sender::new(4),
        ping: PING,
        fell_behind: || (),
        origins: Origins::new(&[], true),
    })
}

/// All that a viewer gets which shakes hands with `handshake`, sends `then` once it is answered, and leaves: of a server with one
/// channel on the loopback, which lets in pages of this host alone.
pub fn viewed(handshake: &[u8], then: &[u8]) -> Vec<u8> {
    let shared = shared();
    let events = shared.events.subscribe();
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime without sockets");
    // A viewer that reads nothing until it has sent everything holds nothing up: each frame may be refused in a sentence.
    let (mut client, server) = tokio::io::duplex(64 * (handshake.len() + then.len()) + (1 << 16));
    let asking = async {
        let mut answer = Vec::new();
        client.write_all(handshake).await?;
        let is_answered = |answer: &[u8]| answer.windows(4).any(|four| four == b"\r\n\r\n");
        while !then.is_empty() && !is_answered(&answer) && client.read_buf(&mut answer).await? > 0 {}
        // Refused: nobody reads any more.
        let _ = client.write_all(then).await;
        client.shutdown().await?;
        client.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let serving = viewer::serve(server, Arc::clone(&shared), events, Arc::new(AtomicBool::new(false)));
    let both = async { tokio::join!(asking, serving).0 };
    let answer = runtime.block_on(async { timeout(GRACE, both).await });
    answer.expect("it does not wait for one who has left").expect("a pipe in memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_and_leaving_ends_it() {
        let text = b"no request";
        let frame = [&[0x81, 0x80 | text.len() as u8, 0, 0, 0, 0][..], text].concat();
        let answer = String::from_utf8_lossy(&viewed(HANDSHAKE.as_bytes(), &frame)).into_owned();
        assert!(answer.starts_with("HTTP/1.1 101 ") && answer.contains("not understood"), "{answer:?}");
        let refused = HANDSHAKE.replace("foxglove.sdk.v1", "foxglove.sdk.v0");
        assert!(viewed(refused.as_bytes(), b"").starts_with(b"HTTP/1.1 400 "));
    }
}
