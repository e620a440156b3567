//! Answers scrapes: GET /metrics. One thread, which gives way, for all connections; connections, bytes and time are bounded, so that
//! a client that does nothing, or too much, changes nothing for what is recorded beside it.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use taut_live::State;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    runtime::Builder,
    sync::oneshot,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

use crate::{Form, families, native, text};

/// Connections at a time; one more takes the place of the oldest.
const MOST_CONNECTIONS: usize = 16;
/// Between two connections that are accepted: a thousand that wait keep a scrape waiting for 2 s, and cost a few per cent of a core.
const BETWEEN: Duration = Duration::from_millis(2);
/// From the connection to the end of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Of a request's head.
const MOST_HEAD_BYTES: usize = 8192;
/// In a request's head.
const MOST_HEADERS: usize = 64;

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Taken, or not ours.
    #[error("cannot serve at {address}: {source}; choose another port, e.g. --serve 127.0.0.1:0 for any that is free")]
    Bind {
        /// As resolved.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Serves until it is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `address` and answers in a thread of its own.
    ///
    /// # Errors
    /// This process may not listen there.
    pub fn start(address: SocketAddr, state: Arc<Mutex<State>>) -> Result<Server, Error> {
        let bind = |source| Error::Bind { address, source };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(bind)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let (stop, stopped) = oneshot::channel();
        let site = Arc::new(Site { state, is_local: address.ip().is_loopback(), rendered: Mutex::default() });
        let body = move || {
            taut_live::give_way();
            runtime.block_on(async {
                tokio::select! {
                    () = accept(&listener, site) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("taut-serve".to_owned()).spawn(body).map_err(bind)?;
        Ok(Server { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens; with the port that the system chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What is served.
struct Site {
    state: Arc<Mutex<State>>,
    /// Whether this host alone is served: then other hosts' names are a web page's attempt to read it.
    is_local: bool,
    /// Bodies by form, of this turn of the state.
    rendered: Mutex<Rendered>,
}

/// Of a turn, its number and its bodies.
type Rendered = (u64, HashMap<Form, Arc<[u8]>>);

async fn accept(listener: &TcpListener, site: Arc<Site>) {
    let mut connections = JoinSet::new();
    // The oldest first.
    let mut open: Vec<AbortHandle> = Vec::new();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            open.retain(|connection| !connection.is_finished());
            if open.len() == MOST_CONNECTIONS {
                open.remove(0).abort();
            }
            let site = Arc::clone(&site);
            open.push(connections.spawn(async move {
                // A client that is slow or gone is its own affair.
                let _ = timeout(PATIENCE, serve(stream, &site)).await;
            }));
        }
        while connections.try_join_next().is_some() {}
        // Also when descriptors have run out.
        sleep(BETWEEN).await;
    }
}

/// One request, one answer.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, site: &Site) -> std::io::Result<()> {
    let mut head = Vec::with_capacity(1024);
    let answer = loop {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => break answer(&request, site),
            Ok(httparse::Status::Partial) if head.len() < MOST_HEAD_BYTES => {
                if (&mut stream).take((MOST_HEAD_BYTES - head.len()) as u64).read_buf(&mut head).await? == 0 {
                    return Ok(());
                }
            }
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                break Answer::line("431 Request Header Fields Too Large", "the request's head is too long");
            }
            Err(_) => break Answer::line("400 Bad Request", "no HTTP request"),
        }
    };
    let bodiless = head.starts_with(b"HEAD ");
    let length = answer.body.len();
    let text = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n",
        answer.status, answer.kind
    );
    stream.write_all(text.as_bytes()).await?;
    if !bodiless {
        stream.write_all(&answer.body).await?;
    }
    stream.shutdown().await?;
    // Closing with unread bytes resets the connection, and the client may lose the answer.
    let mut rest = [0; 1024];
    for _ in 0..MOST_HEAD_BYTES / rest.len() {
        if stream.read(&mut rest).await? == 0 {
            break;
        }
    }
    Ok(())
}

struct Answer {
    status: &'static str,
    kind: &'static str,
    body: Arc<[u8]>,
}

impl Answer {
    fn line(status: &'static str, line: &str) -> Answer {
        Answer { status, kind: "text/plain", body: format!("{line}\n").into_bytes().into() }
    }
}

fn answer(request: &httparse::Request<'_, '_>, site: &Site) -> Answer {
    let values = |name: &'static str| {
        let headers = request.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        headers.filter_map(|header| std::str::from_utf8(header.value).ok())
    };
    if site.is_local && values("host").any(|host| !is_local(host)) {
        return Answer::line(
            "421 Misdirected Request",
            "metrics of this host are served to it alone: name it localhost",
        );
    }
    // A browser says so which page's script asks; those who scrape say nothing.
    if values("origin").any(|origin| !origin.split_once("://").is_some_and(|(_, host)| is_local(host))) {
        return Answer::line("403 Forbidden", "metrics are not for web pages of other hosts");
    }
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
    match (request.method, path) {
        (Some("GET" | "HEAD"), "/metrics") => {
            let form = Form::of(&values("accept").collect::<Vec<_>>().join(","));
            Answer { status: "200 OK", kind: form.content_type(), body: site.rendered(form) }
        }
        (Some("GET" | "HEAD"), "/") => Answer::line("200 OK", "taut: metrics are at /metrics"),
        (Some("GET" | "HEAD"), _) => Answer::line("404 Not Found", "metrics are at /metrics"),
        _ => Answer::line("405 Method Not Allowed", "only GET"),
    }
}

impl Site {
    /// Made once a turn, however often it is asked for.
    fn rendered(&self, form: Form) -> Arc<[u8]> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        // What ends a recording comes without a turn.
        let turn = state.turns << 1 | u64::from(state.ending.is_some() || state.failure.is_some());
        if rendered.0 != turn {
            *rendered = (turn, HashMap::new());
        }
        let body = rendered.1.entry(form).or_insert_with(|| {
            let families = families(&state);
            match form {
                Form::Protobuf => native(&families).into(),
                Form::OpenMetrics => text(&families, true).into_bytes().into(),
                Form::Text => text(&families, false).into_bytes().into(),
            }
        });
        Arc::clone(body)
    }
}

/// Whether a Host header names this host. A web page whose own name leads here (DNS rebinding) has another.
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_loopback = |address: std::net::IpAddr| address.is_loopback();
    name.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(is_loopback)
}

/// For the fuzzer.
pub(crate) fn answered(request: &[u8]) -> Vec<u8> {
    static SITE: std::sync::LazyLock<Site> =
        std::sync::LazyLock::new(|| Site { state: Arc::default(), is_local: true, rendered: Mutex::default() });
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime without sockets");
    // What is written before the other end reads must fit.
    let (mut client, server) = tokio::io::duplex(request.len() + (1 << 20));
    runtime.block_on(async {
        let mut answer = Vec::new();
        client.write_all(request).await.expect("it fits");
        client.shutdown().await.expect("a pipe in memory");
        // A request that breaks off has no answer.
        let _ = timeout(PATIENCE, serve(server, &SITE)).await.expect("it does not wait for one who has left");
        client.read_to_end(&mut answer).await.expect("a pipe in memory");
        answer
    })
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{Shutdown, TcpStream},
    };

    use super::*;

    fn start() -> Server {
        Server::start("127.0.0.1:0".parse().unwrap(), Arc::default()).unwrap()
    }

    fn asked(server: &Server, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_host_header_names_this_host() {
        for host in ["localhost", "LOCALHOST:9464", "127.0.0.1:9464", "127.0.0.2", "[::1]:9464", "[::1]"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:9464", "10.0.0.1", "", "[::2]:1", "127.0.0.1.evil.example"]
        {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn a_page_whose_name_leads_here_reads_nothing() {
        let server = start();
        let answer = asked(&server, b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 421 ") && !answer.contains("taut_"), "{answer}");
        assert!(asked(&server, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 200 "));
    }

    #[test]
    fn a_page_of_another_host_reads_nothing() {
        let server = start();
        for (origin, status) in [
            ("https://evil.example", "403 "),
            ("null", "403 "),
            ("http://localhost.evil.example:80", "403 "),
            ("http://localhost:3000", "200 "),
        ] {
            let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n\r\n");
            let answer = asked(&server, request.as_bytes());
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{origin}: {answer}");
        }
    }

    #[test]
    fn what_is_no_request_is_answered_or_closed() {
        let server = start();
        for (request, status) in [
            (&b"POST /metrics HTTP/1.1\r\n\r\n"[..], "405"),
            (b"GET /other HTTP/1.1\r\n\r\n", "404"),
            (b"\x16\x03\x01\x02\x00 no HTTP\r\n\r\n", "400"),
        ] {
            let answer = asked(&server, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        }
        let endless = [b"GET / HTTP/1.1\r\n".as_slice(), &b"x: y\r\n".repeat(2 * MOST_HEAD_BYTES)].concat();
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // It may be cut off while it still talks.
        let _ = stream.write_all(&endless).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
        let head = asked(&server, b"HEAD /metrics HTTP/1.0\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    }

    #[test]
    fn a_client_that_asks_nothing_is_not_waited_for_for_ever() {
        let server = start();
        let connect = |begun: &[u8]| {
            let mut client = TcpStream::connect(server.address()).unwrap();
            client.write_all(begun).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
            client
        };
        for mut client in [connect(b""), connect(b"GET /metrics HTTP/1.1\r\nx: ")] {
            let mut answer = Vec::new();
            // What the server has not read by then resets the connection.
            let is_closed = match client.read_to_end(&mut answer) {
                Ok(_) => true,
                Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
            };
            assert!(is_closed && answer.is_empty(), "{answer:?}");
        }
    }

    #[test]
    fn idle_connections_keep_nobody_out() {
        let server = start();
        let idle: Vec<TcpStream> =
            (0..5 * MOST_CONNECTIONS).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        let answer = asked(&server, b"GET / HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        drop(idle);
    }
}
