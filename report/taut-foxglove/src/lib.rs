//! A recording's plain messages (telemetry and named values) on a Foxglove websocket while they are written: Foxglove,
//! Lichtblick and PlotJuggler connect to it.

use std::{collections::HashMap, net::SocketAddr, sync::Arc};

use foxglove::{
    Context, FoxgloveError, PartialMetadata, RawChannel, Schema, WebSocketServerHandle,
    websocket::{Status, StatusLevel},
};
use taut_recording::{PlainChannel, Record};

/// Messages that wait for a viewer; more than a second of ten channels at 400 Hz, which come in one go.
const BACKLOG: usize = 4096;

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Taken, or not ours.
    #[error("cannot serve at {address}: {source}; choose another port, e.g. --live 127.0.0.1:0 for any that is free")]
    Bind {
        /// As resolved.
        address: SocketAddr,
        /// What the system said.
        source: FoxgloveError,
    },
}

/// A websocket that speaks `foxglove.sdk.v1`, and what is advertised on it.
pub struct Server {
    context: Arc<Context>,
    handle: WebSocketServerHandle,
    address: SocketAddr,
    channels: HashMap<u16, Arc<RawChannel>>,
    messages: u64,
}

impl Server {
    /// Listens at `address`, in threads of its own, and tells viewers that they look at `name`.
    /// `fell_behind` is called, once in a while, when a viewer takes less than comes, and so misses messages.
    ///
    /// # Errors
    /// Nobody may listen there.
    pub fn start(mut address: SocketAddr, name: &str, fell_behind: fn()) -> Result<Server, Error> {
        slow::tell(fell_behind);
        let context = Context::new();
        let server = context.websocket_server().name(name).bind(address.ip().to_string(), address.port());
        let handle = server.message_backlog_size(BACKLOG).start_blocking();
        let handle = handle.map_err(|source| Error::Bind { address, source })?;
        address.set_port(handle.port());
        Ok(Server { context, handle, address, channels: HashMap::new(), messages: 0 })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Channels that were advertised.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Messages that viewers could have had.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Advertises a channel, or sends a message of one; other records are nothing for a plot.
    ///
    /// # Errors
    /// A channel that the SDK does not take.
    pub fn take(&mut self, record: &Record) -> Result<(), FoxgloveError> {
        match record {
            Record::Channel(channel) => {
                self.channels.insert(channel.number, self.advertise(channel)?);
            }
            Record::Message(message) => {
                if let Some(channel) = self.channels.get(&message.channel) {
                    channel.log_with_meta(&message.data, PartialMetadata { log_time: Some(message.log_time_ns) });
                    self.messages += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn advertise(&self, channel: &PlainChannel) -> Result<Arc<RawChannel>, FoxgloveError> {
        let schema = Schema::new(&channel.schema_name, "ros2msg", channel.schema.clone().into_bytes());
        self.context.channel_builder(&channel.topic).message_encoding("cdr").schema(schema).build_raw()
    }

    /// Tells the viewers why nothing more comes, and closes their connections.
    pub fn stop(self, why: &str) {
        self.handle.publish_status(Status::new(StatusLevel::Info, why));
        self.handle.stop().wait_blocking();
    }
}

/// The SDK drops a slow viewer's oldest messages and says so in its log alone.
mod slow {
    use std::sync::OnceLock;

    use log::{LevelFilter, Log, Metadata, Record};

    static TOLD: OnceLock<fn()> = OnceLock::new();

    struct Logger;

    impl Log for Logger {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target().starts_with("foxglove")
        }

        fn log(&self, record: &Record<'_>) {
            // Its words, of version 0.30; a test in report/web holds them.
            if self.enabled(record.metadata())
                && record.args().to_string().starts_with("outbox for client")
                && let Some(tell) = TOLD.get()
            {
                tell();
            }
        }

        fn flush(&self) {}
    }

    /// From now on; whoever asks first is told.
    pub fn tell(fell_behind: fn()) {
        if TOLD.set(fell_behind).is_ok() && log::set_logger(&Logger).is_ok() {
            log::set_max_level(LevelFilter::Info);
        }
    }
}
