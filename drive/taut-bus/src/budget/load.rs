//! What each resource has to do in one cycle: terms become loads on lanes, one lane for each bus.

use super::{
    file::{CycleBudget, Resource},
    term::{IdKind, Per, Price},
};
use crate::wire::canfd::{self, Id, Stuffing};

/// One resource, or one of its buses, in one cycle.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Index of the resource.
    pub resource: usize,
    /// "can 2" for the second bus of several.
    pub name: String,
    /// Whether it works beside other parallel lanes.
    pub parallel: bool,
    /// Servos it serves.
    pub servos: u32,
    /// What it does.
    pub loads: Vec<Load>,
}

/// A term paid on a lane.
#[derive(Clone, Debug)]
pub struct Load {
    /// Index of the term.
    pub term: usize,
    /// How many times.
    pub count: u32,
    /// Mean each time, jitter included, µs.
    pub each_us: f64,
    /// Mean each time without jitter and without what chance decides, µs.
    pub fixed_us: f64,
    /// The CAN frame whose stuff bits chance decides.
    pub(crate) random: Option<(Id, u32)>,
}

impl Lane {
    /// Mean time it works in a cycle, µs.
    pub fn busy_us(&self) -> f64 {
        self.loads.iter().map(|load| load.total_us()).sum()
    }
}

impl Load {
    /// Mean over a cycle, µs.
    pub fn total_us(&self) -> f64 {
        f64::from(self.count) * self.each_us
    }
}

/// Every lane with its loads, in the file's order.
pub fn lanes(budget: &CycleBudget) -> Vec<Lane> {
    let mut lanes = Vec::new();
    for (at, resource) in budget.resources.iter().enumerate() {
        let layout = layout(resource, budget.servos.count);
        let mut id = budget.servos.first_id;
        for (bus, servos) in layout.iter().enumerate() {
            let name = if layout.len() == 1 { resource.name.clone() } else { format!("{} {}", resource.name, bus + 1) };
            let ids = id..id.saturating_add(*servos);
            id = ids.end;
            let loads = (0..budget.terms.len()).filter(|term| budget.terms[*term].resource == at);
            let loads = loads.flat_map(|term| loads_of(budget, term, &ids)).collect();
            lanes.push(Lane { resource: at, name, parallel: resource.parallel, servos: *servos, loads });
        }
    }
    lanes
}

/// Servos on each bus: as evenly as can be, or as said, with more going to the emptiest and fewer leaving the fullest.
pub(crate) fn layout(resource: &Resource, count: u32) -> Vec<u32> {
    let mut buses = match &resource.servos {
        Some(servos) => servos.clone(),
        None => vec![0; resource.buses.unwrap_or(1) as usize],
    };
    loop {
        let sum: u32 = buses.iter().sum();
        let changed = match sum.cmp(&count) {
            std::cmp::Ordering::Less => buses.iter_mut().min_by_key(|n| **n).map(|n| *n += 1),
            std::cmp::Ordering::Greater => buses.iter_mut().max_by_key(|n| **n).map(|n| *n -= 1),
            std::cmp::Ordering::Equal => None,
        };
        if changed.is_none() {
            return buses;
        }
    }
}

/// A term's loads on a lane: one, or several where its frames' identifiers differ in length or stuff bits.
fn loads_of(budget: &CycleBudget, term: usize, ids: &std::ops::Range<u32>) -> Vec<Load> {
    let paid = &budget.terms[term];
    let (each, servos) = match paid.per {
        Per::Cycle => (1, ids.start..ids.start + 1),
        Per::Servo => (ids.len() as u32, ids.clone()),
    };
    let jitter_us = paid.jitter.as_ref().map_or(0.0, super::Jitter::mean_us);
    let load = |count: u32, mean_us: f64, fixed_us: f64, random: Option<(Id, u32)>| Load {
        term,
        count: count * paid.times,
        each_us: mean_us + jitter_us,
        fixed_us,
        random,
    };
    let Price::Can(payload, kind) = &paid.price else {
        let mean_us = price_us(budget, &paid.price);
        let fixed_us = if matches!(paid.price, Price::Timeout(..)) { 0.0 } else { mean_us };
        return vec![load(each, mean_us, fixed_us, None)];
    };
    let (Some(bus), Some(data)) = (&budget.can, canfd::data_length(budget.bytes(payload))) else { return Vec::new() };
    let alike = |a: Id, b: Id| bus.frame_us(a, data, bus.stuffing) == bus.frame_us(b, data, bus.stuffing);
    let mut loads: Vec<(Id, u32)> = Vec::new();
    for servo in servos {
        let id = id_of(*kind, servo);
        match loads.iter_mut().find(|(other, _)| alike(*other, id)) {
            Some((_, count)) => *count += 1,
            None => loads.push((id, 1)),
        }
    }
    let made = |(id, count): (Id, u32)| {
        let mean_us = bus.frame_us(id, data, bus.stuffing);
        match bus.stuffing {
            Stuffing::Random => load(count, mean_us, bus.frame_us(id, data, Stuffing::None), Some((id, data))),
            _ => load(count, mean_us, mean_us, None),
        }
    };
    loads.into_iter().map(made).collect()
}

fn id_of(kind: IdKind, servo: u32) -> Id {
    let servo = servo.min(0xff) as u8;
    match kind {
        IdKind::Standard => Id::Standard(u16::from(servo)),
        IdKind::Extended => Id::Extended(0x8000 | u32::from(servo)),
        IdKind::Request => Id::request(servo),
        IdKind::Reply => Id::reply(servo),
    }
}

/// Mean of every price that does not depend on the servo, µs.
fn price_us(budget: &CycleBudget, price: &Price) -> f64 {
    match price {
        Price::Us(us) | Price::CanExact(us) => *us,
        Price::PerByte(us, payload) => us * f64::from(budget.bytes(payload)),
        Price::Rs485(payload, hops) => {
            budget.rs485.as_ref().map_or(0.0, |link| hops * link.frame_us(budget.bytes(payload)))
        }
        Price::Spi(payload, extra) => {
            budget.spi.as_ref().map_or(0.0, |link| link.transaction_us(budget.bytes(payload) + extra))
        }
        Price::Timeout(us, loss) => us * loss,
        // Priced by servo, above.
        Price::Can(..) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servos_spread_evenly_and_extras_go_where_room_is() {
        let resource = |buses: Option<u32>, servos: Option<Vec<u32>>| Resource {
            name: "can".into(),
            parallel: true,
            buses,
            servos,
        };
        assert_eq!(layout(&resource(Some(4), None), 12), [3, 3, 3, 3]);
        assert_eq!(layout(&resource(Some(4), None), 13).iter().max(), Some(&4));
        assert_eq!(layout(&resource(None, Some(vec![9, 1])), 12), [9, 3]);
        assert_eq!(layout(&resource(None, Some(vec![9, 3])), 10), [7, 3]);
        assert_eq!(layout(&resource(None, None), 5), [5]);
    }
}
