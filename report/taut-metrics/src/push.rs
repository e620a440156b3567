//! Pushes OTLP over HTTP to a collector. Sums are since the start, so the next push has what a failed one lacked.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::Duration,
};

use taut_live::State;

use crate::otlp;

const TIMEOUT_S: u64 = 5;

/// Why nothing can be pushed there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a URL that we can push to.
    #[error(
        "{url:?}: metrics are pushed over plain http; give e.g. http://127.0.0.1:4318/v1/metrics (a collector passes them on with TLS)"
    )]
    Scheme {
        /// As given.
        url: String,
    },
    /// No thread.
    #[error("cannot push: {0}")]
    Thread(std::io::Error),
}

/// Pushes until it is dropped, and then once more.
pub struct Pusher {
    stop: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Pusher {
    /// Pushes to `url` once every `period`; a URL without a path gets OTLP's usual one, `/v1/metrics`. Hands a sentence to `say` when pushes begin to
    /// fail, and when they succeed again.
    ///
    /// # Errors
    /// The URL is not one of plain http, or there can be no thread.
    pub fn start(
        url: &str,
        period: Duration,
        state: Arc<Mutex<State>>,
        mut say: impl FnMut(String) + Send + 'static,
    ) -> Result<Pusher, Error> {
        let rest = url.strip_prefix("http://").filter(|rest| !rest.is_empty());
        let rest = rest.ok_or_else(|| Error::Scheme { url: url.to_owned() })?;
        let url = match rest.split_once('/') {
            None | Some((_, "")) => format!("http://{}/v1/metrics", rest.trim_end_matches('/')),
            Some(_) => url.to_owned(),
        };
        let (stop, stopped) = mpsc::channel::<()>();
        let body = move || {
            let mut fails = false;
            loop {
                let is_last = stopped.recv_timeout(period) != Err(RecvTimeoutError::Timeout);
                let body = otlp(&state.lock().unwrap_or_else(PoisonError::into_inner));
                let pushed = body.map_or(Ok(()), |body| push(&url, body));
                match (&pushed, fails) {
                    (Err(why), false) => say(format!("metrics do not get to {url}: {why}; they are tried again")),
                    (Ok(()), true) => say(format!("metrics get to {url} again")),
                    _ => {}
                }
                fails = pushed.is_err();
                if is_last {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("taut-push".to_owned()).spawn(body).map_err(Error::Thread)?;
        Ok(Pusher { stop, thread: Some(thread) })
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn push(url: &str, body: Vec<u8>) -> Result<(), String> {
    let request = minreq::post(url)
        .with_header("Content-Type", "application/x-protobuf")
        .with_header("User-Agent", concat!("taut/", env!("CARGO_PKG_VERSION")))
        .with_timeout(TIMEOUT_S)
        .with_body(body);
    let answer = request.send().map_err(|error| error.to_string())?;
    match answer.status_code {
        200..300 => Ok(()),
        code => Err(format!("it answers {code} {}", answer.reason_phrase)),
    }
}
