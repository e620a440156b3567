//! A budget: frames, links, resources and terms, as the file has them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::term::{Origin, Payload, Term};
use crate::wire::{canfd::CanFd, rs485::Rs485, spi::Spi};

/// What one control cycle consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct CycleBudget {
    /// One line.
    pub title: String,
    /// What it describes, and from where.
    pub about: String,
    /// What was measured of it.
    pub published: Option<Published>,
    /// Keys beside the terms whose figures are fitted.
    pub fitted: Vec<String>,
    /// Keys beside the terms whose figures are assumed.
    pub assumed: Vec<String>,
    /// How the terms' jitter is known.
    pub jitter_origin: Origin,
    /// The rate it shall have.
    pub target_hz: Option<f64>,
    /// The servos.
    pub servos: Servos,
    /// Payload bytes by name.
    pub frames: BTreeMap<String, u32>,
    /// The RS485 link.
    pub rs485: Option<Rs485>,
    /// The CAN-FD buses; all alike.
    pub can: Option<CanFd>,
    /// The SPI link.
    pub spi: Option<Spi>,
    /// What works in parallel or one after the other.
    pub resources: Vec<Resource>,
    /// What is paid.
    pub terms: Vec<Term>,
}

/// A published figure that the budget explains.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The cycle, µs.
    pub cycle_us: f64,
    /// As the source words it.
    pub wording: String,
    /// Where.
    pub source: String,
}

/// The servos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Servos {
    /// How many.
    pub count: u32,
    /// The first one's id; the others follow, bus by bus.
    #[serde(default = "one")]
    pub first_id: u32,
}

/// Something that does one thing at a time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Unique in its budget.
    pub name: String,
    /// Whether it works beside the other parallel resources; serial ones come before or after.
    #[serde(default)]
    pub parallel: bool,
    /// So many alike, the servos spread evenly.
    #[serde(default)]
    pub buses: Option<u32>,
    /// Or: servos on each.
    #[serde(default)]
    pub servos: Option<Vec<u32>>,
}

fn one() -> u32 {
    1
}

/// More servos than any bus can address.
pub(crate) const SERVOS_MAX: u32 = 1024;
/// An RS485 frame's longest payload; CAN-FD ends at 64.
pub(crate) const PAYLOAD_MAX: u32 = 4096;

impl CycleBudget {
    /// The period of the target rate, µs.
    pub fn period_us(&self) -> Option<f64> {
        self.target_hz.map(|hz| 1e6 / hz)
    }

    /// Bytes of a payload.
    pub fn bytes(&self, payload: &Payload) -> u32 {
        match payload {
            Payload::Bytes(bytes) => *bytes,
            Payload::Frame(name) => self.frames.get(name).copied().unwrap_or(0),
        }
    }
}
