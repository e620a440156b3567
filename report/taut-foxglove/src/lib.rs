//! A recording's plain messages (telemetry and named values) on a Foxglove websocket while they are written: Foxglove,
//! Lichtblick and PlotJuggler connect to it.
//!
//! The server of Foxglove's own SDK (0.30) is not used: when it stops it drops what its viewers have not been sent, the
//! reason too, and a viewer that reads nothing keeps it from stopping for ever.

#[doc(hidden)]
pub mod fuzzing;
mod origin;
mod protocol;
mod viewer;

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use origin::Origins;
use taut_recording::{PlainChannel, PlainMessage, Record};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::{broadcast, oneshot},
    task::{AbortHandle, JoinHandle, JoinSet},
    time::{sleep, timeout},
};

/// Between two pings to a viewer.
pub const PING: Duration = Duration::from_secs(10);
/// Events that wait for a viewer; more than a second of ten channels at 400 Hz, which come in one go.
const BACKLOG: usize = 4096;
/// How long viewers may take at the end for what waits for them.
const GRACE: Duration = Duration::from_secs(5);
/// Connections at a time; one more takes the place of the oldest that has not shaken hands, or is refused.
const MOST_CONNECTIONS: usize = 64;
/// Between two connections that are accepted, which bounds what a hostile client costs; also when descriptors have run out.
const BETWEEN: Duration = Duration::from_millis(2);

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Taken, or not ours.
    #[error("cannot serve at {address}: {source}; choose another port, e.g. --live 127.0.0.1:0 for any that is free")]
    Bind {
        /// As resolved.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// What all viewers are sent.
#[derive(Clone)]
enum Event {
    /// One more is among the shared channels.
    Channel,
    Message(Arc<PlainMessage>),
    /// The last one: why nothing more comes.
    End(Arc<str>),
}

/// What the viewers' tasks share.
struct Shared {
    name: String,
    /// Tells a viewer that connects again whether it is the same server.
    session: u64,
    /// By number, for viewers that come later.
    channels: Mutex<HashMap<u16, Arc<PlainChannel>>>,
    events: broadcast::Sender<Event>,
    /// Between two pings.
    ping: Duration,
    fell_behind: fn(),
    origins: Origins,
}

impl Shared {
    fn channels(&self) -> MutexGuard<'_, HashMap<u16, Arc<PlainChannel>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A websocket that speaks `foxglove.sdk.v1`, and what is advertised on it.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    messages: u64,
    runtime: Runtime,
    accepting: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

impl Server {
    /// Listens at `address`, in a thread of its own that gives way. Viewers see `name` as the server's name.
    /// Web pages of this host may connect, and those of `origins`.
    /// A viewer is pinged each `ping`, and closed when it has answered none of three.
    /// `fell_behind` is called once for each viewer that takes less than comes, and so misses messages.
    ///
    /// # Errors
    /// This process may not listen there.
    pub fn start(
        address: SocketAddr,
        name: &str,
        origins: &[String],
        ping: Duration,
        fell_behind: fn(),
    ) -> Result<Server, Error> {
        let bind = |source| Error::Bind { address, source };
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("taut-live").on_thread_start(taut_capture::give_way).enable_all();
        let runtime = builder.build().map_err(bind)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            session: taut_clock::realtime_ns(),
            channels: Mutex::default(),
            events: broadcast::Sender::new(BACKLOG),
            ping,
            fell_behind,
            origins: Origins::new(origins, address.ip().is_loopback()),
        });
        let (stop, stopped) = oneshot::channel();
        let accepting = runtime.spawn(accept(listener, Arc::clone(&shared), stopped));
        Ok(Server { shared, address, messages: 0, runtime, accepting, stop })
    }

    /// Where it listens; with the port that the system chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Channels that were advertised.
    pub fn channels(&self) -> usize {
        self.shared.channels().len()
    }

    /// Messages that viewers could have had.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Advertises a channel, or sends a message of one; other records are nothing for a plot.
    pub fn take(&mut self, record: Record) {
        let event = match record {
            Record::Channel(channel) => {
                self.shared.channels().insert(channel.number, Arc::new(channel));
                Event::Channel
            }
            Record::Message(message) => {
                self.messages += 1;
                Event::Message(Arc::new(message))
            }
            _ => return,
        };
        self.send(event);
    }

    /// Sends viewers what waits for them, then why nothing more comes, and closes their connections.
    /// A viewer that has not taken it after 5 s is left.
    pub fn stop(self, why: &str) {
        self.send(Event::End(why.into()));
        let _ = self.stop.send(());
        let _ = self.runtime.block_on(self.accepting);
    }

    fn send(&self, event: Event) {
        // It fails when there is no viewer.
        let _ = self.shared.events.send(event);
    }
}

/// Serves each viewer in a task of its own until the server stops, and waits for them then.
async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    let mut viewers = JoinSet::new();
    // The oldest first, and whether each has shaken hands.
    let mut open: Vec<(AbortHandle, Arc<AtomicBool>)> = Vec::new();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    open.retain(|(connection, _)| !connection.is_finished());
                    let is_waiting = |(_, has_shaken): &(AbortHandle, Arc<AtomicBool>)| !has_shaken.load(Ordering::Relaxed);
                    match open.iter().position(is_waiting).filter(|_| open.len() >= MOST_CONNECTIONS) {
                        Some(oldest) => open.remove(oldest).0.abort(),
                        // All are viewers; this one is closed.
                        None if open.len() >= MOST_CONNECTIONS => continue,
                        None => {}
                    }
                    let has_shaken = Arc::new(AtomicBool::new(false));
                    let (shared, events) = (Arc::clone(&shared), shared.events.subscribe());
                    let served = viewer::serve(stream, shared, events, Arc::clone(&has_shaken));
                    open.push((viewers.spawn(served), has_shaken));
                    sleep(BETWEEN).await;
                }
                Err(_) => sleep(BETWEEN).await,
            },
            Some(_) = viewers.join_next() => {}
        }
    }
    drop(listener);
    let _ = timeout(GRACE, async { while viewers.join_next().await.is_some() {} }).await;
}
