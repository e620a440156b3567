//! One CAN-FD bus with its servos: which node sends next, how long it takes, when it has arrived.

use std::collections::VecDeque;

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};

use crate::{
    servo::Servo,
    transport::{Arrival, Error, Frame, ID_MASK, LARGEST_STANDARD, Transport},
    wire::canfd::{CanFd, Id, Stuffing},
};

/// What moteus pads frames with.
const PADDING: u8 = 0x50;
/// Frames that the host's adapter queues, each way.
const QUEUE: usize = 64;

/// Wires and servos' reflexes.
#[derive(Clone, Debug, PartialEq)]
pub struct Wiring {
    /// Bit rates.
    pub can: CanFd,
    /// Stuff bits: counted in each frame's own bits, or as `can.stuffing` has it, so that a frame's time depends on its
    /// length alone.
    pub exact: bool,
    /// From the end of a request to a reply that is ready to be sent, ns.
    pub turnaround_ns: u64,
    /// Share of replies that are lost on the wire, 0 to 1.
    pub loss: f64,
    /// The same seed loses the same replies.
    pub seed: u64,
}

impl Default for Wiring {
    fn default() -> Wiring {
        Wiring {
            can: CanFd { nominal_hz: 1e6, data_hz: 5e6, stuffing: Stuffing::Typical },
            exact: true,
            turnaround_ns: 40_000,
            loss: 0.0,
            seed: 1,
        }
    }
}

/// A simulated bus. Nothing happens on it but by the times given to [`Transport::send`] and [`Transport::receive`], which
/// must not run backwards.
#[derive(Debug)]
pub struct Bus {
    wiring: Wiring,
    servos: Vec<Servo>,
    random: Xoshiro256PlusPlus,
    from_host: VecDeque<Ready>,
    from_servos: Vec<Ready>,
    on_wire: Option<OnWire>,
    /// The wire is idle since then.
    free_ns: u64,
    arrived: VecDeque<Ready>,
    busy_ns: u64,
    overflowed: u64,
    cut: bool,
}

/// A frame that may be sent from a moment on.
#[derive(Clone, Debug)]
struct Ready {
    ns: u64,
    frame: Frame,
}

#[derive(Clone, Debug)]
struct OnWire {
    end_ns: u64,
    frame: Frame,
    from_host: bool,
}

impl Bus {
    /// A bus with these servos, idle.
    pub fn new(wiring: Wiring, servos: Vec<Servo>) -> Bus {
        Bus {
            random: Xoshiro256PlusPlus::seed_from_u64(wiring.seed),
            from_host: VecDeque::with_capacity(QUEUE),
            from_servos: Vec::with_capacity(QUEUE + servos.len()),
            on_wire: None,
            free_ns: 0,
            arrived: VecDeque::with_capacity(QUEUE),
            busy_ns: 0,
            overflowed: 0,
            cut: false,
            wiring,
            servos,
        }
    }

    /// The servos on it.
    pub fn servos(&self) -> &[Servo] {
        &self.servos
    }

    /// A servo by its id, to heat or load it.
    pub fn servo_mut(&mut self, id: u8) -> Option<&mut Servo> {
        self.servos.iter_mut().find(|servo| servo.id() == id)
    }

    /// Cuts the wire next to the host, or repairs it: frames go out and do not arrive.
    pub fn cut(&mut self, cut: bool) {
        self.cut = cut;
    }

    /// From now on this share of replies is lost, 0 to 1.
    pub fn set_loss(&mut self, share: f64) {
        self.wiring.loss = share;
    }

    /// How long the wire has carried bits, ns.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// Replies that found the host's queue full.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// How long this frame is on the wire, ns; intermission included.
    pub fn frame_ns(&self, frame: &Frame) -> u64 {
        let can = &self.wiring.can;
        let id = can_id(frame.arbitration_id);
        let length = Frame::round_up_dlc(usize::from(frame.size)) as u32;
        let us = match self.wiring.exact {
            true => can.exact_frame_us(id, frame.payload(), PADDING).unwrap_or(0.0),
            false => can.frame_us(id, length, can.stuffing),
        };
        (us * 1e3).round() as u64
    }

    /// Everything that happens on the wire until `now_ns`; sending and receiving do it by themselves.
    pub fn advance(&mut self, now_ns: u64) {
        loop {
            if let Some(done) = self.on_wire.take_if(|frame| frame.end_ns <= now_ns) {
                self.free_ns = done.end_ns;
                self.deliver(done);
            }
            if self.on_wire.is_some() {
                return;
            }
            let Some(start_ns) = self.next_start().filter(|start_ns| *start_ns <= now_ns) else { return };
            self.begin(start_ns);
        }
    }

    fn next_start(&self) -> Option<u64> {
        let host = self.from_host.front().map(|ready| ready.ns);
        let first = self.from_servos.iter().map(|ready| ready.ns).chain(host).min()?;
        Some(first.max(self.free_ns))
    }

    /// Of the frames that are ready, that with the dominant id goes first. A node sends its own in their order.
    fn begin(&mut self, start_ns: u64) {
        let host = self.from_host.front().filter(|ready| ready.ns <= start_ns).map(|ready| rank(&ready.frame));
        let servo = (self.from_servos.iter().enumerate())
            .filter(|(_, ready)| ready.ns <= start_ns)
            .map(|(at, ready)| (rank(&ready.frame), at))
            .min();
        let (frame, from_host) = match (host, servo) {
            (host, Some((id, at))) if host.is_none_or(|host| id < host) => (self.from_servos.remove(at).frame, false),
            (Some(_), _) => match self.from_host.pop_front() {
                Some(ready) => (ready.frame, true),
                None => return,
            },
            _ => return,
        };
        let ns = self.frame_ns(&frame);
        self.busy_ns += ns;
        self.on_wire = Some(OnWire { end_ns: start_ns + ns, frame, from_host });
    }

    fn deliver(&mut self, done: OnWire) {
        if self.cut {
            return;
        }
        if !done.from_host {
            match self.arrived.len() < QUEUE {
                true => self.arrived.push_back(Ready { ns: done.end_ns, frame: done.frame }),
                false => self.overflowed += 1,
            }
            return;
        }
        for servo in &mut self.servos {
            let Some(frame) = servo.handle(done.end_ns, &done.frame) else { continue };
            let lost = self.wiring.loss > 0.0 && self.random.random_bool(self.wiring.loss.min(1.0));
            if !lost && self.from_servos.len() < self.from_servos.capacity() {
                self.from_servos.push(Ready { ns: done.end_ns + self.wiring.turnaround_ns, frame });
            }
        }
    }
}

impl Transport for Bus {
    fn send(&mut self, now_ns: u64, frame: &Frame) -> Result<(), Error> {
        let bytes = usize::from(frame.size);
        if frame.arbitration_id > ID_MASK || bytes > frame.data.len() {
            return Err(Error::Frame { id: frame.arbitration_id, bytes });
        }
        self.advance(now_ns);
        if self.from_host.len() == QUEUE {
            return Err(Error::Full { what: "the simulated adapter's queue" });
        }
        self.from_host.push_back(Ready { ns: now_ns, frame: frame.clone() });
        self.advance(now_ns);
        Ok(())
    }

    fn receive(&mut self, now_ns: u64, frame: &mut Frame) -> Result<bool, Error> {
        self.advance(now_ns);
        let Some(ready) = self.arrived.pop_front() else { return Ok(false) };
        *frame = ready.frame;
        Ok(true)
    }

    fn next_arrival(&self) -> Arrival {
        let on_wire = self.on_wire.as_ref().map(|frame| frame.end_ns);
        let next = self.arrived.front().map(|ready| ready.ns).or(on_wire).or_else(|| self.next_start());
        next.map_or(Arrival::Never, Arrival::At)
    }
}

fn can_id(id: u32) -> Id {
    match u16::try_from(id) {
        Ok(short) if id <= LARGEST_STANDARD => Id::Standard(short),
        _ => Id::Extended(id),
    }
}

/// The order in which ids win the bus: base id, then the shorter kind, then the rest (ISO 11898-1).
fn rank(frame: &Frame) -> (u32, u32) {
    let id = frame.arbitration_id;
    match id <= LARGEST_STANDARD {
        true => (id, 0),
        false => (id >> 18, 1 + (id & 0x3_ffff)),
    }
}

#[cfg(test)]
mod tests {
    use moteus_protocol::query::QueryFormat;

    use super::*;
    use crate::servo::{Body, Limits};

    fn bus(ids: impl IntoIterator<Item = u8>) -> Bus {
        let servos = ids.into_iter().map(|id| Servo::new(id, Body::default(), Limits::default(), 0)).collect();
        Bus::new(Wiring::default(), servos)
    }

    fn query(id: u32) -> Frame {
        let mut frame = Frame::new();
        frame.arbitration_id = 0x8000 | id;
        QueryFormat::default().serialize(&mut frame);
        frame.pad_to_dlc();
        frame
    }

    fn arrivals(bus: &mut Bus) -> Vec<(u64, u32)> {
        let (mut all, mut frame) = (Vec::new(), Frame::new());
        while let Arrival::At(ns) = bus.next_arrival() {
            while bus.receive(ns, &mut frame).unwrap() {
                all.push((ns, frame.arbitration_id));
            }
        }
        all
    }

    #[test]
    fn a_reply_comes_after_exactly_two_frames_and_the_turnaround() {
        let mut bus = bus([1]);
        bus.send(1_000_000, &query(1)).unwrap();
        let (ns, id) = arrivals(&mut bus)[0];
        let mut reply = Servo::new(1, Body::default(), Limits::default(), 0).handle(0, &query(1)).unwrap();
        reply.arbitration_id = 0x100;
        let expected = 1_000_000 + bus.frame_ns(&query(1)) + 40_000 + bus.frame_ns(&reply);
        assert_eq!((ns, id), (expected, 0x100));
        // Nothing a nanosecond earlier.
        let mut bus = super::tests::bus([1]);
        bus.send(1_000_000, &query(1)).unwrap();
        let mut frame = Frame::new();
        assert!(!bus.receive(expected - 1, &mut frame).unwrap());
        assert!(bus.receive(expected, &mut frame).unwrap());
    }

    #[test]
    fn requests_go_before_replies_and_low_ids_before_high_ones() {
        let mut bus = bus([3, 1, 2]);
        for id in [3, 2, 1] {
            bus.send(0, &query(id)).unwrap();
        }
        // Requests are dominant. After them 3 and 2 are ready, and 2 wins; meanwhile 1 is, and wins over 3.
        assert_eq!(arrivals(&mut bus).iter().map(|(_, id)| *id).collect::<Vec<_>>(), [0x200, 0x100, 0x300]);
    }

    #[test]
    fn a_broadcast_is_answered_by_everybody_one_after_the_other() {
        let mut bus = bus([5, 9, 1]);
        bus.send(0, &query(0x7f)).unwrap();
        let all = arrivals(&mut bus);
        assert_eq!(all.iter().map(|(_, id)| *id).collect::<Vec<_>>(), [0x900, 0x100, 0x500]);
        let gaps: Vec<u64> = all.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(gaps.iter().all(|gap| (70_000..100_000).contains(gap)), "{gaps:?}");
    }

    #[test]
    fn the_wire_is_never_idle_while_a_frame_is_ready() {
        let mut bus = bus([1, 2, 3]);
        (1..=3).for_each(|id| bus.send(0, &query(id)).unwrap());
        let last = arrivals(&mut bus).last().unwrap().0;
        assert_eq!(bus.busy_ns(), last);
    }

    #[test]
    fn the_same_calls_give_the_same_times() {
        let run = || {
            let mut bus = Bus::new(
                Wiring { loss: 0.3, seed: 7, ..Wiring::default() },
                (1..=4).map(|id| Servo::new(id, Body::default(), Limits::default(), 0)).collect(),
            );
            (0..50)
                .flat_map(|cycle| {
                    (1..=4).for_each(|id| bus.send(cycle * 1_000_000, &query(id)).unwrap());
                    arrivals(&mut bus)
                })
                .collect::<Vec<_>>()
        };
        let all = run();
        assert_eq!(all, run());
        assert!((100..180).contains(&all.len()), "{} of 200 with 30 % lost", all.len());
    }

    #[test]
    fn nobody_hears_a_cut_bus() {
        let mut bus = bus([1]);
        bus.cut(true);
        bus.send(0, &query(1)).unwrap();
        assert_eq!(arrivals(&mut bus), []);
        bus.cut(false);
        bus.send(1_000_000, &query(1)).unwrap();
        assert_eq!(arrivals(&mut bus).len(), 1);
    }

    #[test]
    fn a_host_that_does_not_wait_is_told() {
        let mut bus = bus([1]);
        let refused = (0..=QUEUE + 1).map(|_| bus.send(0, &query(1))).filter(Result::is_err).count();
        assert_eq!(refused, 1);
        let mut frame = query(1);
        frame.arbitration_id = 0x2000_0000;
        assert!(matches!(bus.send(0, &frame), Err(Error::Frame { .. })));
    }
}
