//! What only the whole budget can tell: rates, layouts, and that each term has what it needs.

use super::{
    error::Error,
    file::{CycleBudget, PAYLOAD_MAX, Resource, SERVOS_MAX},
    forecast::mean_cycle_us,
    jitter::Jitter,
    term::{Payload, Price, Term},
};
use crate::wire::canfd;

/// More of the same belongs in a term of its own.
const TIMES_MAX: u32 = 1000;
/// A day: also far from the end of what counts nanoseconds.
const CYCLE_MAX_US: f64 = 86_400e6;

impl CycleBudget {
    /// Checks what only the whole can tell; called again after every change.
    pub(crate) fn check(&self) -> Result<(), Error> {
        positive_rates(self)?;
        if !(1..=SERVOS_MAX).contains(&self.servos.count) {
            return Err(Error::value("servos.count", self.servos.count, format!("must be 1 to {SERVOS_MAX}")));
        }
        at_most("servos.first_id", self.servos.first_id, 0xffff)?;
        if let Some((name, bytes)) = self.frames.iter().find(|(_, bytes)| **bytes > PAYLOAD_MAX) {
            return Err(Error::value(format!("frames.{name}"), bytes, format!("must be at most {PAYLOAD_MAX} bytes")));
        }
        self.resources.iter().try_for_each(|resource| layout(resource, self.servos.count))?;
        self.terms.iter().try_for_each(|term| self.check_term(term))?;
        let cycle_us = mean_cycle_us(self);
        if cycle_us > CYCLE_MAX_US {
            return Err(Error::value("the cycle", format!("{cycle_us:e} µs"), "is longer than a day; times are in µs"));
        }
        Ok(())
    }

    fn check_term(&self, term: &Term) -> Result<(), Error> {
        let key = |key: &str| format!("term.{}.{key}", term.name);
        if let Some((at, value, remedy)) = term.jitter.as_ref().and_then(Jitter::mistake) {
            return Err(Error::value(key(&format!("jitter.{at}")), value, format!("must be {remedy}")));
        }
        at_most(&key("times"), term.times, TIMES_MAX)?;
        let link = |there: bool, table: &str, example: &str| {
            if there {
                Ok(())
            } else {
                Err(Error::missing(format!("[{table}]"), format!("term {:?} needs it: {example}", term.name)))
            }
        };
        match &term.price {
            Price::Us(us) => time(&key("us"), *us)?,
            Price::PerByte(us, _) => time(&key("us_per_byte"), *us)?,
            Price::CanExact(_) => {}
            Price::Timeout(us, loss) => {
                time(&key("timeout_us"), *us)?;
                if !(0.0..=1.0).contains(loss) {
                    return Err(Error::value(key("loss"), loss, "must be a probability of 0 to 1"));
                }
            }
            Price::Rs485(_, hops) => {
                link(self.rs485.is_some(), "rs485", "baud = 3_000_000")?;
                if !(0.0..=100.0).contains(hops) {
                    return Err(Error::value(
                        key("hops"),
                        hops,
                        "must be 0 to 100; 2 for a bridge that stores and forwards",
                    ));
                }
            }
            Price::Can(payload, _) => {
                link(self.can.is_some(), "can", "nominal_hz = 1_000_000, data_hz = 5_000_000")?;
                if canfd::data_length(self.bytes(payload)).is_none() {
                    return Err(Error::value(
                        key("can"),
                        self.bytes(payload),
                        "a CAN-FD frame carries at most 64 bytes",
                    ));
                }
            }
            Price::Spi(..) => link(self.spi.is_some(), "spi", "clock_hz = 10_000_000, hold_us = 3.0")?,
        }
        if let Price::Spi(_, extra_bytes) = term.price {
            at_most(&key("extra_bytes"), extra_bytes, PAYLOAD_MAX)?;
        }
        match &term.price {
            Price::PerByte(_, payload) | Price::Rs485(payload, _) | Price::Can(payload, _) | Price::Spi(payload, _) => {
                self.known(payload, term)
            }
            _ => Ok(()),
        }
    }

    fn known(&self, payload: &Payload, term: &Term) -> Result<(), Error> {
        match payload {
            Payload::Frame(name) if !self.frames.contains_key(name) => Err(Error::missing(
                format!("frames.{name}"),
                format!("term {:?} sends it; write its payload bytes under [frames]", term.name),
            )),
            Payload::Bytes(bytes) => at_most(&format!("bytes of term {:?}", term.name), *bytes, PAYLOAD_MAX),
            Payload::Frame(_) => Ok(()),
        }
    }
}

fn time(key: &str, us: f64) -> Result<(), Error> {
    if (0.0..=1e9).contains(&us) { Ok(()) } else { Err(Error::value(key, us, "must be a time of 0 to 1e9 µs")) }
}

fn positive_rates(budget: &CycleBudget) -> Result<(), Error> {
    let (rs485, can, spi) = (&budget.rs485, &budget.can, &budget.spi);
    let rates = [
        ("target_hz", budget.target_hz),
        ("rs485.baud", rs485.as_ref().map(|link| link.baud)),
        ("can.nominal_hz", can.as_ref().map(|bus| bus.nominal_hz)),
        ("can.data_hz", can.as_ref().map(|bus| bus.data_hz)),
        ("spi.clock_hz", spi.as_ref().map(|link| link.clock_hz)),
        ("published.cycle_us", budget.published.as_ref().map(|published| published.cycle_us)),
    ];
    for (key, value) in rates {
        if let Some(value) = value.filter(|value| !(1e-3..=1e12).contains(value)) {
            return Err(Error::value(key, value, "must be 0.001 to 1e12"));
        }
    }
    if let Some(link) = rs485 {
        at_most("rs485.overhead_bytes", link.overhead_bytes, PAYLOAD_MAX)?;
    }
    if let Some(spi) = spi {
        at_most("spi.holds", spi.holds, TIMES_MAX)?;
        at_most("spi.address_bits", spi.address_bits, PAYLOAD_MAX)?;
        time("spi.hold_us", spi.hold_us)?;
        time("spi.fifo_dead_us", spi.fifo_dead_us)?;
        time("spi.setup_us", spi.setup_us)?;
        if spi.polled_buses == Some(0) {
            return Err(Error::value("spi.polled_buses", 0, "must be at least 1"));
        }
        if spi.fifo_bytes == 0 {
            return Err(Error::value("spi.fifo_bytes", 0, "must be at least 1"));
        }
    }
    Ok(())
}

/// Keeps sums of counts far from their type's end.
fn at_most(key: &str, value: u32, most: u32) -> Result<(), Error> {
    if value <= most { Ok(()) } else { Err(Error::value(key, value, format!("must be at most {most}"))) }
}

fn layout(resource: &Resource, servos: u32) -> Result<(), Error> {
    let key = |key: &str| format!("resource.{}.{key}", resource.name);
    match (&resource.buses, &resource.servos) {
        (Some(buses), Some(each)) if each.len() != *buses as usize => {
            Err(Error::value(key("buses"), buses, format!("and servos for {} buses: say one of them", each.len())))
        }
        (Some(buses), None) if !(1..=SERVOS_MAX).contains(buses) => {
            Err(Error::value(key("buses"), buses, format!("must be 1 to {SERVOS_MAX}")))
        }
        (_, Some(each)) if each.iter().copied().map(u64::from).sum::<u64>() != u64::from(servos) => {
            let sum: u64 = each.iter().copied().map(u64::from).sum();
            Err(Error::value(
                key("servos"),
                format!("{each:?}"),
                format!("has {sum} servos, servos.count says {servos}"),
            ))
        }
        (buses, each) if !resource.parallel && (buses.is_some_and(|n| n > 1) || each.is_some()) => {
            Err(Error::missing(key("parallel"), "several buses need parallel = true"))
        }
        _ => Ok(()),
    }
}
