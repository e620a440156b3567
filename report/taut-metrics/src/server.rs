//! Answers scrapes: GET /metrics.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

use taut_live::State;
use tiny_http::{Header, Method, Request, Response};

use crate::{Form, families, native, text};

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Taken, or not ours.
    #[error("cannot serve at {address}: {message}; choose another port, e.g. --serve 127.0.0.1:0 for any that is free")]
    Bind {
        /// As resolved.
        address: SocketAddr,
        /// What the system said.
        message: String,
    },
}

/// Serves until it is dropped.
pub struct Server {
    http: Arc<tiny_http::Server>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `address` and answers in threads of its own.
    ///
    /// # Errors
    /// Nobody may listen there.
    pub fn start(address: SocketAddr, state: Arc<Mutex<State>>) -> Result<Server, Error> {
        let bind = |message: String| Error::Bind { address, message };
        let http = Arc::new(tiny_http::Server::http(address).map_err(|error| bind(error.to_string()))?);
        let answering = Arc::clone(&http);
        let answer = move || {
            for request in answering.incoming_requests() {
                answer(request, &state);
            }
        };
        let thread = std::thread::Builder::new().name("taut-serve".to_owned()).spawn(answer);
        Ok(Server { http, thread: Some(thread.map_err(|error| bind(error.to_string()))?) })
    }

    /// Where it listens; with the port that the system chose for port 0.
    pub fn address(&self) -> Option<SocketAddr> {
        self.http.server_addr().to_ip()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.http.unblock();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn answer(request: Request, state: &Mutex<State>) {
    let path = request.url().split('?').next().unwrap_or_default();
    let (status, kind, body) = match (request.method(), path) {
        (Method::Get | Method::Head, "/metrics") => {
            let accept = request.headers().iter().filter(|header| header.field.equiv("accept"));
            let accept = accept.map(|header| header.value.as_str()).collect::<Vec<_>>().join(",");
            let form = Form::of(&accept);
            let families = families(&state.lock().unwrap_or_else(PoisonError::into_inner));
            let body = match form {
                Form::Protobuf => native(&families),
                Form::OpenMetrics => text(&families, true).into_bytes(),
                Form::Text => text(&families, false).into_bytes(),
            };
            (200, form.content_type(), body)
        }
        (Method::Get | Method::Head, "/") => (200, "text/plain", b"taut: metrics are at /metrics\n".to_vec()),
        (Method::Get | Method::Head, _) => (404, "text/plain", b"metrics are at /metrics\n".to_vec()),
        _ => (405, "text/plain", b"only GET\n".to_vec()),
    };
    let kind = Header::from_bytes("Content-Type", kind).expect("a fixed header");
    // Whoever asked may have gone.
    let _ = request.respond(Response::from_data(body).with_status_code(status).with_header(kind));
}
