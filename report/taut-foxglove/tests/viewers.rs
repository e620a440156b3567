//! What a viewer receives, over a real socket: all messages in order, and the reason before the connection closes.

use std::{
    fs,
    io::Read,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use taut_foxglove::{PING, Server};
use taut_recording::{PlainChannel, PlainMessage, Record};
use tungstenite::{Message, WebSocket, client::IntoClientRequest};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// More than the kernel's buffers of both ends take, with 1,000 of them.
const PAYLOAD: usize = 20_000;

fn served(fell_behind: fn()) -> Server {
    served_with(PING, fell_behind)
}

fn served_with(ping: Duration, fell_behind: fn()) -> Server {
    let mut server = Server::start(ANY, "taut: run.mcap", &[], ping, fell_behind).unwrap();
    let channel = PlainChannel {
        number: 7,
        topic: "/telemetry/leg".to_owned(),
        schema_name: "telemetry/msg/Leg".to_owned(),
        schema: "uint8[] data\n".to_owned(),
    };
    server.take(Record::Channel(channel));
    server
}

fn message(sequence: u64) -> Record {
    let mut data = vec![0; PAYLOAD];
    data[..8].copy_from_slice(&sequence.to_le_bytes());
    Record::Message(PlainMessage { channel: 7, log_time_ns: 1_000 + sequence, sequence: sequence as u32, data })
}

struct Viewer(WebSocket<TcpStream>);

impl Viewer {
    /// Connected, unless all places are taken.
    fn try_of(server: &Server) -> Option<Viewer> {
        let mut request = format!("ws://{}", server.address()).into_client_request().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", "foxglove.sdk.v1".parse().unwrap());
        let stream = TcpStream::connect(server.address()).unwrap();
        tungstenite::client(request, stream).ok().map(|(viewer, _)| Viewer(viewer))
    }

    /// Connected, and subscribed to the one channel as 3.
    fn of(server: &Server) -> Viewer {
        let mut viewer = Viewer::try_of(server).expect("a place");
        assert_eq!(viewer.json()["op"], "serverInfo");
        let advertised = viewer.json();
        assert_eq!(advertised["channels"][0]["topic"], "/telemetry/leg");
        viewer.say(
            &json!({"op": "subscribe", "subscriptions": [{"id": 3, "channelId": advertised["channels"][0]["id"]}]}),
        );
        // Refused in order, so the answer says that the first one holds.
        viewer.say(&json!({"op": "subscribe", "subscriptions": [{"id": 4, "channelId": 4_000_000}]}));
        assert_eq!(viewer.json()["op"], "status");
        viewer
    }

    fn say(&mut self, words: &Value) {
        self.0.send(Message::text(words.to_string())).unwrap();
    }

    fn json(&mut self) -> Value {
        loop {
            match self.0.read().unwrap() {
                Message::Ping(_) => {}
                words => return serde_json::from_str(words.to_text().unwrap()).unwrap(),
            }
        }
    }

    /// The messages until the server closes, and the statuses behind them.
    fn rest(mut self) -> (Vec<u64>, Vec<String>) {
        let (mut sequences, mut statuses) = (Vec::new(), Vec::new());
        loop {
            match self.0.read().expect("a close frame before the end of the connection") {
                Message::Binary(bytes) => {
                    assert!(statuses.is_empty(), "a message behind the reason");
                    assert_eq!((bytes[0], &bytes[1..5], bytes.len()), (1, &3u32.to_le_bytes()[..], 13 + PAYLOAD));
                    let sequence = u64::from_le_bytes(bytes[13..21].try_into().unwrap());
                    assert_eq!(bytes[5..13], (1_000 + sequence).to_le_bytes());
                    sequences.push(sequence);
                }
                Message::Text(text) => {
                    let status: Value = serde_json::from_str(&text).unwrap();
                    assert_eq!((&status["op"], &status["level"]), (&"status".into(), &0.into()));
                    statuses.push(status["message"].as_str().unwrap().to_owned());
                }
                Message::Close(_) => return (sequences, statuses),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_viewer_has_every_message_and_the_reason_before_the_close() {
    let mut server = served(|| panic!("fell behind"));
    let viewer = Viewer::of(&server);
    (0..1_000).for_each(|n| server.take(message(n)));
    let stopping = std::thread::spawn(|| server.stop("the recording has ended"));
    assert_eq!(viewer.rest(), ((0..1_000).collect(), vec!["the recording has ended".to_owned()]));
    stopping.join().unwrap();
}

#[test]
fn a_viewer_that_takes_less_than_comes_is_reported_and_misses_the_oldest() {
    static BEHIND: AtomicU64 = AtomicU64::new(0);
    let mut server = served(|| {
        BEHIND.fetch_add(1, Ordering::Relaxed);
    });
    let viewer = Viewer::of(&server);
    (0..10_000).for_each(|n| server.take(message(n)));
    let stopping = std::thread::spawn(|| server.stop("the recording has ended"));
    let (sequences, statuses) = viewer.rest();
    assert!(sequences.is_sorted_by(|a, b| a < b));
    assert!(sequences.len() >= 4_096 && sequences.len() < 10_000, "{}", sequences.len());
    assert_eq!((sequences.last(), statuses.as_slice()), (Some(&9_999), &["the recording has ended".to_owned()][..]));
    assert_eq!(BEHIND.load(Ordering::Relaxed), 1);
    stopping.join().unwrap();
}

#[test]
fn a_viewer_that_stops_reading_is_reported() {
    static BEHIND: AtomicU64 = AtomicU64::new(0);
    let mut server = served(|| {
        BEHIND.fetch_add(1, Ordering::Relaxed);
    });
    let viewer = Viewer::of(&server);
    // Slowly at first, so that the connection is full before the queue is.
    for n in 0..10_000 {
        server.take(message(n));
        if n < 1_000 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    // Ends with the report; without one it does not end.
    while BEHIND.load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    server.stop("the recording has ended");
    drop(viewer);
}

#[test]
fn a_viewer_that_reads_nothing_does_not_keep_the_server() {
    let mut server = served(|| {});
    let viewer = Viewer::of(&server);
    (0..4_000).for_each(|n| server.take(message(n)));
    server.stop("the recording has ended");
    drop(viewer);
}

/// The status of a handshake with this header, of a page of that origin.
fn handshake(server: &Server, header: &'static str, value: &str) -> u16 {
    let mut request = format!("ws://{}", server.address()).into_client_request().unwrap();
    request.headers_mut().insert("Sec-WebSocket-Protocol", "foxglove.sdk.v1".parse().unwrap());
    request.headers_mut().insert(header, value.parse().unwrap());
    match tungstenite::client(request, TcpStream::connect(server.address()).unwrap()) {
        Ok(_) => 101,
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(answer))) => answer.status().as_u16(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_web_page_of_another_host_reads_nothing() {
    let server = served(|| {});
    let answer = |origin| handshake(&server, "Origin", origin);
    assert_eq!(["https://evil.example", "null", "http://localhost:8080"].map(answer), [403, 403, 101]);
    // DNS rebinding: the page's own name leads here.
    let by_name = |host| handshake(&server, "Host", host);
    assert_eq!(["evil.example:8765", "localhost:8765"].map(by_name), [403, 101]);
}

#[test]
fn a_web_page_that_is_allowed_reads_and_no_other() {
    let allowed = ["https://app.foxglove.dev".to_owned()];
    let server = Server::start(ANY, "taut: run.mcap", &allowed, PING, || {}).unwrap();
    let answer = |origin| handshake(&server, "Origin", origin);
    let origins = ["https://app.foxglove.dev", "http://app.foxglove.dev", "https://app.foxglove.dev.evil.example"];
    assert_eq!(origins.map(answer), [101, 403, 403]);
}

#[test]
fn connections_that_do_nothing_keep_no_viewer_out() {
    let server = served(|| {});
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let viewer = Viewer::of(&server);
    drop(idle);
    let stopping = std::thread::spawn(|| server.stop("the end"));
    assert_eq!(viewer.rest().1, ["the end"]);
    stopping.join().unwrap();
}

#[test]
fn viewers_that_answer_no_ping_keep_no_viewer_out_for_ever() {
    let server = served_with(Duration::from_millis(500), || {});
    // As many as there are places.
    let silent: Vec<Viewer> = (0..64).map(|_| Viewer::try_of(&server).expect("a place")).collect();
    for viewer in silent {
        // Its bytes are read, and its pings are not answered. Without an end this fails here.
        let mut stream = viewer.0.into_inner();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("it is closed");
        // A ping without a payload (RFC 6455 section 5.2) was the last frame.
        assert!(bytes.ends_with(&[0x89, 0]), "{bytes:?}");
    }
    let viewer = Viewer::of(&server);
    let stopping = std::thread::spawn(|| server.stop("the end"));
    assert_eq!(viewer.rest().1, ["the end"]);
    stopping.join().unwrap();
}

/// The policies of this process's threads that serve viewers (proc(5), field 41 of stat).
fn policies() -> Vec<String> {
    let policy = |task: std::io::Result<fs::DirEntry>| {
        let stat = fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        let (name, fields) = stat.rsplit_once(") ")?;
        name.ends_with("(taut-live").then(|| fields.split(' ').nth(38).unwrap_or_default().to_owned())
    };
    fs::read_dir("/proc/self/task").unwrap().filter_map(policy).collect()
}

#[test]
fn a_server_s_thread_gives_way_to_the_loop_beside_it() {
    let server = served(|| {});
    let viewer = Viewer::of(&server);
    // Servers of other tests may just begin. 3 is SCHED_BATCH (linux/sched.h).
    let is_so = |_: u32| {
        let policies = policies();
        let all = !policies.is_empty() && policies.iter().all(|policy| policy == "3");
        if !all {
            std::thread::sleep(Duration::from_millis(10));
        }
        all
    };
    assert!((0..30_000).any(is_so), "{:?}", policies());
    drop(viewer);
}
