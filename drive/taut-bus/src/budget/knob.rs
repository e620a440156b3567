//! The figures of a budget that can be varied: for the sensitivity table and for solving. Their names are the keys that
//! `--set` takes.

use super::{
    file::CycleBudget,
    term::{Payload, Price},
};
use crate::wire::canfd;

/// One figure of a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Knob {
    /// `servos.count`
    Servos,
    /// `frames.NAME`, payload bytes.
    Frame(String),
    /// `rs485.baud`
    Baud,
    /// `can.nominal_hz`
    CanNominal,
    /// `can.data_hz`
    CanData,
    /// `spi.clock_hz`
    SpiClock,
    /// `spi.hold_us`
    SpiHold,
    /// `spi.fifo_dead_us`
    SpiFifoDead,
    /// `spi.setup_us`
    SpiSetup,
    /// `term.NAME.us` (or `us_per_byte`), by the term's index.
    Term(usize),
    /// `term.NAME.loss`, by the term's index.
    Loss(usize),
}

/// Every knob that the budget has.
pub fn knobs(budget: &CycleBudget) -> Vec<Knob> {
    let mut knobs = vec![Knob::Servos];
    knobs.extend(budget.frames.keys().cloned().map(Knob::Frame));
    knobs.extend([Knob::Baud, Knob::CanNominal, Knob::CanData, Knob::SpiClock, Knob::SpiHold]);
    knobs.extend([Knob::SpiFifoDead, Knob::SpiSetup]);
    knobs.extend((0..budget.terms.len()).flat_map(|term| [Knob::Term(term), Knob::Loss(term)]));
    knobs.retain(|knob| knob.get(budget).is_some());
    knobs
}

impl Knob {
    /// The key, as `--set` takes it.
    pub fn key(&self, budget: &CycleBudget) -> String {
        let term = |at: &usize, key: &str| {
            budget.terms.get(*at).map_or_else(String::new, |term| format!("term.{}.{key}", term.name))
        };
        match self {
            Knob::Servos => "servos.count".into(),
            Knob::Frame(name) => format!("frames.{name}"),
            Knob::Baud => "rs485.baud".into(),
            Knob::CanNominal => "can.nominal_hz".into(),
            Knob::CanData => "can.data_hz".into(),
            Knob::SpiClock => "spi.clock_hz".into(),
            Knob::SpiHold => "spi.hold_us".into(),
            Knob::SpiFifoDead => "spi.fifo_dead_us".into(),
            Knob::SpiSetup => "spi.setup_us".into(),
            Knob::Term(at) => match budget.terms.get(*at).map(|term| &term.price) {
                Some(Price::PerByte(..)) => term(at, "us_per_byte"),
                _ => term(at, "us"),
            },
            Knob::Loss(at) => term(at, "loss"),
        }
    }

    /// The unit of its value.
    pub fn unit(&self) -> &'static str {
        match self {
            Knob::Servos => "servos",
            Knob::Frame(_) => "B",
            Knob::Baud => "baud",
            Knob::CanNominal | Knob::CanData => "bit/s",
            Knob::SpiClock => "Hz",
            Knob::SpiHold | Knob::SpiFifoDead | Knob::SpiSetup | Knob::Term(_) => "µs",
            Knob::Loss(_) => "",
        }
    }

    /// Whether it is a rate: more of it is faster.
    pub fn is_rate(&self) -> bool {
        matches!(self, Knob::Baud | Knob::CanNominal | Knob::CanData | Knob::SpiClock)
    }

    /// Its value; `None` where the budget has no such figure.
    pub fn get(&self, budget: &CycleBudget) -> Option<f64> {
        match self {
            Knob::Servos => Some(f64::from(budget.servos.count)),
            Knob::Frame(name) => budget.frames.get(name).map(|bytes| f64::from(*bytes)),
            Knob::Baud => budget.rs485.as_ref().map(|link| link.baud),
            Knob::CanNominal => budget.can.as_ref().map(|bus| bus.nominal_hz),
            Knob::CanData => budget.can.as_ref().map(|bus| bus.data_hz),
            Knob::SpiClock => budget.spi.as_ref().map(|link| link.clock_hz),
            Knob::SpiHold => budget.spi.as_ref().map(|link| link.hold_us),
            Knob::SpiFifoDead => budget.spi.as_ref().map(|link| link.fifo_dead_us),
            Knob::SpiSetup => budget.spi.as_ref().map(|link| link.setup_us),
            Knob::Term(at) => match budget.terms.get(*at)?.price {
                Price::Us(us) | Price::PerByte(us, _) => Some(us),
                _ => None,
            },
            Knob::Loss(at) => match budget.terms.get(*at)?.price {
                Price::Timeout(_, loss) => Some(loss),
                _ => None,
            },
        }
    }

    /// The budget with another value; servos and bytes are whole.
    pub fn with(&self, budget: &CycleBudget, value: f64) -> CycleBudget {
        let mut turned = budget.clone();
        match self {
            // The layout by hand no longer adds up; `lanes` moves servos between the buses.
            Knob::Servos => turned.servos.count = value.round().max(0.0) as u32,
            Knob::Frame(name) => {
                turned.frames.insert(name.clone(), value.round().max(0.0) as u32);
            }
            Knob::Baud => turned.rs485.iter_mut().for_each(|link| link.baud = value),
            Knob::CanNominal => turned.can.iter_mut().for_each(|bus| bus.nominal_hz = value),
            Knob::CanData => turned.can.iter_mut().for_each(|bus| bus.data_hz = value),
            Knob::SpiClock => turned.spi.iter_mut().for_each(|link| link.clock_hz = value),
            Knob::SpiHold => turned.spi.iter_mut().for_each(|link| link.hold_us = value),
            Knob::SpiFifoDead => turned.spi.iter_mut().for_each(|link| link.fifo_dead_us = value),
            Knob::SpiSetup => turned.spi.iter_mut().for_each(|link| link.setup_us = value),
            Knob::Term(at) => match &mut turned.terms[*at].price {
                Price::Us(us) | Price::PerByte(us, _) => *us = value,
                _ => {}
            },
            Knob::Loss(at) => {
                if let Price::Timeout(_, loss) = &mut turned.terms[*at].price {
                    *loss = value;
                }
            }
        }
        turned
    }

    /// Whether a CAN frame carries it, which has only certain lengths.
    pub(crate) fn on_can(&self, budget: &CycleBudget) -> bool {
        let Knob::Frame(name) = self else { return false };
        let carries = |price: &Price| matches!(price, Price::Can(Payload::Frame(frame), _) if frame == name);
        budget.terms.iter().any(|term| carries(&term.price))
    }

    /// The next smaller payload that changes anything.
    pub(crate) fn shorter(&self, budget: &CycleBudget, bytes: u32) -> Option<u32> {
        if !self.on_can(budget) {
            return bytes.checked_sub(1);
        }
        (0..bytes).rev().find(|fewer| canfd::data_length(*fewer) != canfd::data_length(bytes)).map(|fewer| {
            // The largest that fits the shorter frame.
            canfd::data_length(fewer).unwrap_or(fewer)
        })
    }
}
