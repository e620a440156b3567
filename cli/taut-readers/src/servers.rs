//! What clients of the servers in `taut` send.

use taut_foxglove::fuzzing::{HANDSHAKE, viewed};

/// A scrape of `taut record --serve`: one whole answer, or none to a request that breaks off.
pub fn metrics_request(bytes: &[u8]) {
    let answer = taut_metrics::fuzzing::answered(bytes);
    if answer.is_empty() {
        return;
    }
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let (head, body) = (String::from_utf8(answer[..end].to_vec()).expect("our own words"), &answer[end + 4..]);
    assert!(head.starts_with("HTTP/1.1 "), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
    assert!(body.len().to_string() == length || body.is_empty(), "{head} {}", body.len());
}

/// A viewer of `taut telemetry --live`: with what it sends as it is, and behind a handshake that is right.
pub fn viewer_messages(bytes: &[u8]) {
    let upgraded = b"HTTP/1.1 101 ";
    let answer = viewed(bytes, b"");
    let protocol = b"foxglove.sdk.v1";
    let offers = bytes.windows(protocol.len()).any(|words| words == protocol);
    assert!(offers || !answer.starts_with(upgraded), "no such protocol was offered");
    let answer = viewed(HANDSHAKE.as_bytes(), bytes);
    assert!(answer.starts_with(upgraded), "{:?}", String::from_utf8_lossy(&answer));
}
