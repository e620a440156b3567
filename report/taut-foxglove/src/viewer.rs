//! One viewer: what it subscribed to, and what it is sent.

use std::{
    collections::{HashMap, HashSet},
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
    time::timeout,
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

struct Viewer<S> {
    socket: WebSocketStream<S>,
    shared: Arc<Shared>,
    /// Channels that it knows of.
    advertised: HashSet<u16>,
    /// Its number of a channel's subscription.
    subscriptions: HashMap<u16, u32>,
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
    let mut viewer = Viewer { socket, shared, advertised, subscriptions, fell_behind: false };
    // A connection that broke off is the viewer's affair.
    let _ = viewer.run(&mut events).await;
}

/// Reports a viewer that takes less than comes, at the first time.
fn report_once(fell_behind: &mut bool, shared: &Shared) {
    if !std::mem::replace(fell_behind, true) {
        (shared.fell_behind)();
    }
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
        loop {
            tokio::select! {
                request = self.socket.next() => match request {
                    Some(request) => self.answer(request?).await?,
                    None => return Ok(()),
                },
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

    /// Sends a message. Of a viewer that reads nothing this does not end, so the messages that wait behind it are counted meanwhile.
    async fn deliver(&mut self, message: Message, events: &Receiver<Event>) -> Result<(), Error> {
        let Viewer { socket, shared, fell_behind, .. } = self;
        let mut sent = pin!(socket.send(message));
        loop {
            match timeout(LOOK, &mut sent).await {
                Ok(sent) => return sent,
                Err(_) if events.len() > BACKLOG => report_once(fell_behind, shared),
                Err(_) => {}
            }
        }
    }

    async fn say(&mut self, words: Value) -> Result<(), Error> {
        self.socket.send(Message::text(words.to_string())).await
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
