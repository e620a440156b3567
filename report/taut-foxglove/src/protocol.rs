//! The part of Foxglove's websocket protocol that a server of plain messages needs.
//! <https://github.com/foxglove/ws-protocol/blob/main/docs/spec.md>

use serde::Deserialize;
use serde_json::{Value, json};
use taut_recording::{PlainChannel, PlainMessage};

/// Name of the protocol in the websocket's handshake.
pub const SUBPROTOCOL: &str = "foxglove.sdk.v1";
const MESSAGE_DATA: u8 = 1;

/// What a viewer asks for; the rest is for servers that can do more.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "camelCase")]
pub enum Request {
    Subscribe {
        subscriptions: Vec<Subscription>,
    },
    Unsubscribe {
        #[serde(rename = "subscriptionIds")]
        ids: Vec<u32>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    pub id: u32,
    pub channel_id: u64,
}

/// Level of a status.
#[derive(Clone, Copy)]
pub enum Level {
    Info = 0,
    Error = 2,
}

pub fn server_info(name: &str, session: u64) -> Value {
    json!({"op": "serverInfo", "name": name, "capabilities": [], "sessionId": session.to_string()})
}

pub fn advertise(channels: &[&PlainChannel]) -> Value {
    let one = |channel: &&PlainChannel| {
        json!({
            "id": channel.number, "topic": channel.topic, "encoding": "cdr",
            "schemaName": channel.schema_name, "schema": channel.schema, "schemaEncoding": "ros2msg",
        })
    };
    json!({"op": "advertise", "channels": channels.iter().map(one).collect::<Vec<_>>()})
}

pub fn status(level: Level, message: &str) -> Value {
    json!({"op": "status", "level": level as u8, "message": message})
}

/// A message's frame for whoever subscribed to its channel by this number.
pub fn message_data(subscription: u32, message: &PlainMessage) -> Vec<u8> {
    let mut frame = Vec::with_capacity(13 + message.data.len());
    frame.push(MESSAGE_DATA);
    frame.extend(subscription.to_le_bytes());
    frame.extend(message.log_time_ns.to_le_bytes());
    frame.extend(&message.data);
    frame
}
