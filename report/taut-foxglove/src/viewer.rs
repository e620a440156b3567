//! One viewer: what it subscribed to, and what it is sent.

use std::{
    collections::{HashMap, HashSet},
    io::ErrorKind,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use taut_recording::PlainChannel;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::broadcast::{Receiver, error::RecvError},
    time::{Instant, MissedTickBehavior, interval_at, timeout},
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async_with_config,
    tungstenite::{
        Error, Message,
        handshake::server::{ErrorResponse, Request as Handshake, Response},
        http::{HeaderValue, StatusCode, header::SEC_WEBSOCKET_PROTOCOL},
        protocol::WebSocketConfig,
    },
};

use crate::{
    BACKLOG, Event, Shared,
    origin::Origins,
    protocol::{self, Level, Request},
};

/// A request for many thousand channels.
const LONGEST_REQUEST_BYTES: usize = 1 << 20;
/// So often a message that the viewer does not take is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// From the connection to the end of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Pings that a viewer may leave unanswered; when the next one is due, its place is for another.
const UNANSWERED: u32 = 3;

struct Viewer<S> {
    socket: WebSocketStream<S>,
    shared: Arc<Shared>,
    /// Channels that it knows of.
    advertised: HashSet<u16>,
    /// Its number of a channel's subscription.
    subscriptions: HashMap<u16, u32>,
    /// Pings since it last sent anything.
    unanswered: u32,
    fell_behind: bool,
}

/// Serves a connection until the viewer leaves or the last event was sent. `events` begins with the connection, so that
/// no viewer waits for an end that has been. `has_shaken` is set when it turned out to be a viewer.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    shared: Arc<Shared>,
    mut events: Receiver<Event>,
    has_shaken: Arc<AtomicBool>,
) {
    let limits = WebSocketConfig::default()
        .max_message_size(Some(LONGEST_REQUEST_BYTES))
        .max_frame_size(Some(LONGEST_REQUEST_BYTES));
    #[expect(clippy::result_large_err, reason = "the type of the handshake's callback")]
    let agree = |request: &Handshake, response| agree(request, response, &shared.origins);
    let handshake = timeout(HANDSHAKE, accept_hdr_async_with_config(stream, agree, Some(limits)));
    let Ok(Ok(socket)) = handshake.await else { return };
    has_shaken.store(true, Ordering::Relaxed);
    let (advertised, subscriptions) = Default::default();
    let mut viewer = Viewer { socket, shared, advertised, subscriptions, unanswered: 0, fell_behind: false };
    // A connection that broke off is the viewer's affair.
    let _ = viewer.run(&mut events).await;
}

/// Reports a viewer that takes less than comes, at the first time.
fn report_once(fell_behind: &mut bool, shared: &Shared) {
    if !std::mem::replace(fell_behind, true) {
        (shared.fell_behind)();
    }
}

/// Why a viewer is left that neither sends nor takes anything.
fn silent() -> Error {
    Error::Io(ErrorKind::TimedOut.into())
}

/// Answers the websocket's handshake with the one protocol that is spoken here.
#[expect(clippy::result_large_err, reason = "the type of the handshake's callback")]
fn agree(request: &Handshake, mut response: Response, origins: &Origins) -> Result<Response, ErrorResponse> {
    if let Err(why) = origins.check(request.headers()) {
        let mut refused = ErrorResponse::new(Some(format!("{why}\n")));
        *refused.status_mut() = StatusCode::FORBIDDEN;
        return Err(refused);
    }
    let offered = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    if !offered.flat_map(|value| value.split(',')).any(|name| name.trim() == protocol::SUBPROTOCOL) {
        let mut refused = ErrorResponse::new(Some(format!("the subprotocol is {}\n", protocol::SUBPROTOCOL)));
        *refused.status_mut() = StatusCode::BAD_REQUEST;
        return Err(refused);
    }
    response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol::SUBPROTOCOL));
    Ok(response)
}

impl<S: AsyncRead + AsyncWrite + Unpin> Viewer<S> {
    async fn run(&mut self, events: &mut Receiver<Event>) -> Result<(), Error> {
        self.say(protocol::server_info(&self.shared.name, self.shared.session)).await?;
        self.advertise_new().await?;
        let mut pings = interval_at(Instant::now() + self.shared.ping, self.shared.ping);
        // A server that had no CPU for long does not take it for the viewer's silence.
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                request = self.socket.next() => match request {
                    Some(request) => {
                        self.unanswered = 0;
                        self.answer(request?).await?;
                    }
                    None => return Ok(()),
                },
                _ = pings.tick() => self.ping().await?,
                event = events.recv() => match event {
                    Ok(Event::Channel) => self.advertise_new().await?,
                    Ok(Event::Message(message)) => {
                        if let Some(subscription) = self.subscriptions.get(&message.channel) {
                            let bytes = protocol::message_data(*subscription, &message);
                            self.deliver(bytes.into(), events).await?;
                        }
                    }
                    Ok(Event::End(why)) => return self.close(&why).await,
                    Err(RecvError::Lagged(_)) => {
                        report_once(&mut self.fell_behind, &self.shared);
                        // A channel may be among the events that were missed.
                        self.advertise_new().await?;
                    }
                    Err(RecvError::Closed) => return Ok(()),
                },
            }
        }
    }

    /// Sends a message. Of a viewer that reads nothing this takes long, so the messages that wait behind it are counted meanwhile.
    async fn deliver(&mut self, message: Message, events: &Receiver<Event>) -> Result<(), Error> {
        let (began, patience) = (Instant::now(), self.patience());
        let Viewer { socket, shared, unanswered, fell_behind, .. } = self;
        let mut sent = pin!(socket.send(message));
        loop {
            if let Ok(sent) = timeout(LOOK, &mut sent).await {
                return sent;
            }
            if events.len() > BACKLOG {
                report_once(fell_behind, shared);
            }
            if began.elapsed() >= patience {
                return Err(silent());
            }
            // The connection is full: a viewer that takes some of it may have the pings still before it.
            *unanswered = 0;
        }
    }

    /// A viewer that is there and silent would hold its place for ever.
    async fn ping(&mut self) -> Result<(), Error> {
        if self.unanswered == UNANSWERED {
            return Err(silent());
        }
        self.unanswered += 1;
        self.send(Message::Ping(Default::default())).await
    }

    async fn say(&mut self, words: Value) -> Result<(), Error> {
        self.send(Message::text(words.to_string())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Error> {
        let patience = self.patience();
        timeout(patience, self.socket.send(message)).await.unwrap_or_else(|_| Err(silent()))
    }

    /// How long a viewer may take for one message.
    fn patience(&self) -> Duration {
        self.shared.ping * UNANSWERED
    }

    async fn advertise_new(&mut self) -> Result<(), Error> {
        let channels: Vec<Arc<PlainChannel>> = self.shared.channels().values().cloned().collect();
        let new: Vec<&PlainChannel> =
            channels.iter().map(Arc::as_ref).filter(|channel| self.advertised.insert(channel.number)).collect();
        if new.is_empty() { Ok(()) } else { self.say(protocol::advertise(&new)).await }
    }

    async fn answer(&mut self, request: Message) -> Result<(), Error> {
        let Message::Text(text) = request else { return Ok(()) };
        match serde_json::from_str(&text) {
            Ok(Request::Subscribe { subscriptions }) => {
                for one in subscriptions {
                    match u16::try_from(one.channel_id).ok().filter(|number| self.advertised.contains(number)) {
                        Some(number) => drop(self.subscriptions.insert(number, one.id)),
                        None => {
                            let refused = format!("no channel has the id {}", one.channel_id);
                            self.say(protocol::status(Level::Error, &refused)).await?;
                        }
                    }
                }
            }
            Ok(Request::Unsubscribe { ids }) => self.subscriptions.retain(|_, id| !ids.contains(id)),
            Ok(Request::Other) => {}
            Err(error) => self.say(protocol::status(Level::Error, &format!("not understood: {error}"))).await?,
        }
        Ok(())
    }

    /// Says why, then waits until the viewer has closed as well: closing a socket with unread bytes in it resets the
    /// connection, and the viewer may lose what it has not read yet.
    async fn close(&mut self, why: &str) -> Result<(), Error> {
        self.say(protocol::status(Level::Info, why)).await?;
        self.socket.close(None).await?;
        while self.socket.next().await.transpose()?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use taut_recording::PlainMessage;
    use tokio::{
        io::{AsyncWriteExt, DuplexStream, duplex},
        runtime::Builder,
    };
    use tokio_tungstenite::{client_async, tungstenite::client::IntoClientRequest};

    use super::*;
    use crate::fuzzing;

    const LONG: Duration = Duration::from_secs(24 * 3600);

    /// The clock jumps to the next timer while all wait.
    fn in_simulated_time<T>(test: impl Future<Output = T>) -> T {
        Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(test)
    }

    /// How long it was served.
    async fn served(server: DuplexStream, shared: &Arc<Shared>) -> Duration {
        let begin = Instant::now();
        let serving = serve(server, Arc::clone(shared), shared.events.subscribe(), Arc::default());
        timeout(LONG, serving).await.expect("its place is for another at some time");
        begin.elapsed()
    }

    /// Connected, and subscribed to the one channel.
    async fn connected(client: DuplexStream) -> WebSocketStream<DuplexStream> {
        let mut request = "ws://localhost/".into_client_request().unwrap();
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol::SUBPROTOCOL));
        let (mut viewer, _) = client_async(request, client).await.unwrap();
        let subscribe = r#"{"op": "subscribe", "subscriptions": [{"id": 3, "channelId": 1}]}"#;
        viewer.send(Message::text(subscribe)).await.unwrap();
        // Answered in order: the subscription holds then.
        viewer.send(Message::text("no request")).await.unwrap();
        while !viewer.next().await.unwrap().unwrap().to_text().unwrap().contains("not understood") {}
        viewer
    }

    #[test]
    fn a_viewer_that_answers_no_ping_is_closed() {
        in_simulated_time(async {
            let (shared, (mut client, server)) = (fuzzing::shared(), duplex(1 << 16));
            client.write_all(fuzzing::HANDSHAKE.as_bytes()).await.unwrap();
            let least = shared.ping * (UNANSWERED + 1);
            let lasted = served(server, &shared).await;
            assert!(lasted >= least && lasted < least + LOOK, "{lasted:?}");
        });
    }

    #[test]
    fn a_viewer_that_takes_nothing_of_a_message_is_closed() {
        in_simulated_time(async {
            let (shared, (client, server)) = (fuzzing::shared(), duplex(4096));
            let viewing = async {
                let viewer = connected(client).await;
                let message = PlainMessage { channel: 1, log_time_ns: 1, sequence: 0, data: vec![0; 100_000] };
                assert!(shared.events.send(Event::Message(Arc::new(message))).is_ok());
                viewer
            };
            let (lasted, _open) = tokio::join!(served(server, &shared), viewing);
            let least = shared.ping * UNANSWERED;
            assert!(lasted >= least && lasted < least + 2 * LOOK, "{lasted:?}");
        });
    }

    #[test]
    fn a_viewer_that_answers_pings_stays() {
        in_simulated_time(async {
            let (shared, (client, server)) = (fuzzing::shared(), duplex(1 << 16));
            let viewing = async {
                let mut viewer = connected(client).await;
                let mut pings = 0;
                while pings < 10 * UNANSWERED {
                    pings += u32::from(viewer.next().await.expect("it is not closed").unwrap().is_ping());
                }
                assert!(shared.events.send(Event::End("the end".into())).is_ok());
                let mut said = Vec::new();
                while let Some(Ok(message)) = viewer.next().await {
                    said.extend(message.to_text().ok().map(str::to_owned));
                }
                said.concat()
            };
            let (_, said) = tokio::join!(served(server, &shared), viewing);
            assert!(said.contains("the end"), "{said}");
        });
    }
}
