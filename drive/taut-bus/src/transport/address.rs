//! Buses by name: `sim:1-3`, `fdcanusb:/dev/ttyACM0`, `udp:HOST:PORT`, `socketcan:can0`.

use std::{fmt, path::PathBuf, str::FromStr};

use super::{Error, Fdcanusb, SocketCan, Transport, Udp};
use crate::{
    servo::{Body, Limits, Servo},
    sim::{Bus, Wiring},
};

/// Where a bus is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A simulated one with these servos.
    Sim(Vec<u8>),
    /// A serial device that speaks fdcanusb.
    Fdcanusb(PathBuf),
    /// HOST:PORT.
    Udp(String),
    /// An interface.
    SocketCan(String),
}

impl Address {
    /// Opens it. `index` tells simulated buses, and so their servos' UUIDs, apart.
    ///
    /// # Errors
    /// The bus is not there; the message says what to do.
    pub fn open(&self, index: usize) -> Result<Box<dyn Transport + Send>, Error> {
        Ok(match self {
            Address::Sim(ids) => Box::new(simulated(ids, index)),
            Address::Fdcanusb(path) => Box::new(Fdcanusb::open(path)?),
            Address::Udp(host) => Box::new(Udp::connect(host)?),
            Address::SocketCan(interface) => Box::new(SocketCan::open(interface)?),
        })
    }

    /// A simulated bus as its servos' ids say it, else nothing.
    pub fn simulated(&self, index: usize) -> Option<Bus> {
        match self {
            Address::Sim(ids) => Some(simulated(ids, index)),
            _ => None,
        }
    }
}

fn simulated(ids: &[u8], index: usize) -> Bus {
    let servo = |id: &u8| Servo::new(*id, Body::default(), Limits::default(), index as u32);
    Bus::new(Wiring::default(), ids.iter().map(servo).collect())
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address, Error> {
        let refused = |why: &str| Error::Address { address: text.to_owned(), why: why.to_owned() };
        let (kind, rest) = text.split_once(':').ok_or_else(|| refused("names no kind of bus"))?;
        match kind {
            "sim" => ids(rest).map(Address::Sim).ok_or_else(|| refused("servo ids are 1 to 126, written 1-3 or 1,4,7")),
            _ if rest.is_empty() => Err(refused("names nothing")),
            "fdcanusb" => Ok(Address::Fdcanusb(rest.into())),
            "udp" => Ok(Address::Udp(rest.to_owned())),
            "socketcan" => Ok(Address::SocketCan(rest.to_owned())),
            _ => Err(refused("no such kind of bus")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Sim(ids) => {
                write!(f, "sim:{}", ids.iter().map(u8::to_string).collect::<Vec<_>>().join(","))
            }
            Address::Fdcanusb(path) => write!(f, "fdcanusb:{}", path.display()),
            Address::Udp(host) => write!(f, "udp:{host}"),
            Address::SocketCan(interface) => write!(f, "socketcan:{interface}"),
        }
    }
}

/// Servo ids written `1-3,7`; each once, in this order.
pub fn ids(text: &str) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u8, u8) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first == 0 || last > 126 || first > last {
            return None;
        }
        all.extend((first..=last).filter(|id| !all.contains(id)).collect::<Vec<_>>());
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (text, written) in [
            ("sim:1-3,7", "sim:1,2,3,7"),
            ("sim:", "sim:"),
            ("fdcanusb:/dev/ttyACM0", "fdcanusb:/dev/ttyACM0"),
            ("udp:localhost:20000", "udp:localhost:20000"),
            ("socketcan:can0", "socketcan:can0"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), written);
        }
    }

    #[test]
    fn what_names_no_bus_is_refused_with_the_forms_that_do() {
        for text in ["", "can0", "spi:0", "udp:", "sim:0", "sim:3-1", "sim:1-200", "sim:x", "sim:1,,2"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text}: ")) && error.contains("sim:1-3"), "{error}");
        }
    }
}
