//! One cycle over all buses in one call. Commands go out round-robin, so that every bus carries its first frame at once;
//! the inertial unit is read while replies queue; then replies, until all expected ones are there or time is up.
//! After construction nothing here allocates.

use taut_stamp::stamp;

use super::{
    clock::Clock,
    health::{BusHealth, Record, ServoHealth},
    inertial::{Attitude, InertialUnit},
    request::{Command, Outcome, Patience, Reply, Request, Times},
};
use crate::transport::{Arrival, Error, Frame, ID_MASK, Transport};

/// Commands of one cycle, and frames that one may receive.
const MOST: usize = 512;

struct Expected {
    bus: usize,
    servo: u8,
    answered: bool,
}

/// The buses, and what it takes to go round them.
pub struct Engine<T, C> {
    clock: C,
    buses: Vec<T>,
    inertial: Option<Box<dyn InertialUnit + Send>>,
    patience: Patience,
    records: Vec<Record>,
    inertial_errors: u64,
    expected: Vec<Expected>,
    /// Replies wanted to commands that no bus took.
    unsent: usize,
    /// By bus: the next command to look at, and how many expected replies are still to come.
    cursors: Vec<usize>,
    open: Vec<usize>,
    looked_at: Vec<bool>,
    arrivals: Vec<Arrival>,
    replies: Vec<Reply>,
    frame: Frame,
}

impl<T: Transport, C: Clock> Engine<T, C> {
    /// An engine over these buses.
    pub fn new(buses: Vec<T>, clock: C, patience: Patience) -> Engine<T, C> {
        let n = buses.len();
        Engine {
            clock,
            inertial: None,
            patience,
            records: buses.iter().map(|_| Record::new()).collect(),
            inertial_errors: 0,
            expected: Vec::with_capacity(MOST),
            unsent: 0,
            cursors: vec![0; n],
            open: vec![0; n],
            looked_at: vec![false; n],
            arrivals: Vec::with_capacity(n),
            replies: Vec::with_capacity(MOST),
            frame: Frame::new(),
            buses,
        }
    }

    /// With an inertial unit.
    pub fn with_inertial(mut self, unit: impl InertialUnit + Send + 'static) -> Engine<T, C> {
        self.inertial = Some(Box::new(unit));
        self
    }

    /// One cycle. `number` is the stamps' message id. What goes wrong on a bus is counted there and holds up no other bus.
    pub fn cycle(&mut self, number: u64, request: &Request<'_>) -> Outcome {
        self.expected.clear();
        self.unsent = 0;
        self.replies.clear();
        self.drain();
        stamp!("bus.send", number);
        let mut times = Times { send_ns: self.clock.now_ns(), ..Times::default() };
        let sent = self.send(request.commands);
        stamp!("bus.imu", number);
        times.imu_ns = self.clock.now_ns();
        let attitude = if request.attitude { self.attitude(times.imu_ns) } else { None };
        stamp!("bus.receive", number);
        times.receive_ns = self.clock.now_ns();
        self.receive(times.imu_ns, request.look);
        let missing = self.settle() + self.unsent;
        times.end_ns = self.clock.now_ns();
        Outcome { sent, expected: self.expected.len() + self.unsent, missing, attitude, times }
    }

    /// The frames of the last cycle, in the order in which they were taken.
    pub fn replies(&self) -> &[Reply] {
        &self.replies
    }

    /// The buses.
    pub fn buses(&self) -> &[T] {
        &self.buses
    }

    /// The same, to disturb a simulated one.
    pub fn buses_mut(&mut self) -> &mut [T] {
        &mut self.buses
    }

    /// The clock.
    pub fn clock(&mut self) -> &mut C {
        &mut self.clock
    }

    /// Counts of a bus; panics where there is no such bus.
    pub fn bus_health(&self, bus: usize) -> &BusHealth {
        &self.records[bus].bus
    }

    /// Counts of a servo; panics where there is no such bus.
    pub fn servo_health(&self, bus: usize, servo: u8) -> ServoHealth {
        self.records[bus].servo(servo)
    }

    /// Readings of the inertial unit that failed.
    pub fn inertial_errors(&self) -> u64 {
        self.inertial_errors
    }

    /// What came since the last cycle answers nothing that is asked now.
    fn drain(&mut self) {
        let now_ns = self.clock.now_ns();
        for (bus, record) in self.buses.iter_mut().zip(&mut self.records) {
            for _ in 0..MOST {
                match bus.receive(now_ns, &mut self.frame) {
                    Ok(true) => {
                        record.bus.received += 1;
                        record.bus.late += 1;
                    }
                    Ok(false) => break,
                    Err(error) => {
                        record.failed(error);
                        break;
                    }
                }
            }
        }
    }

    fn send(&mut self, commands: &[Command]) -> usize {
        self.cursors.fill(0);
        self.open.fill(0);
        let mut sent = 0;
        loop {
            let mut all_done = true;
            for bus in 0..self.buses.len() {
                let from = self.cursors[bus];
                let Some(at) = commands[from..].iter().position(|command| command.bus == bus) else {
                    self.cursors[bus] = commands.len();
                    continue;
                };
                self.cursors[bus] = from + at + 1;
                all_done = false;
                sent += usize::from(self.send_one(&commands[from + at]));
            }
            if all_done {
                return sent;
            }
        }
    }

    /// Whether the bus took it.
    fn send_one(&mut self, command: &Command) -> bool {
        let now_ns = self.clock.now_ns();
        let result = match command.frame.arbitration_id <= ID_MASK {
            true => self.buses[command.bus].send(now_ns, &command.frame),
            false => Err(Error::Frame { id: command.frame.arbitration_id, bytes: usize::from(command.frame.size) }),
        };
        let record = &mut self.records[command.bus];
        let is_sent = match result {
            Ok(()) => {
                record.bus.sent += 1;
                true
            }
            Err(error) => {
                record.failed(error);
                false
            }
        };
        match command.expects {
            // No reply will come to what was not sent, so nobody waits; it is missing all the same.
            Some(servo) if !is_sent => {
                record.asked(servo, false);
                self.unsent += 1;
            }
            Some(servo) if self.expected.len() < MOST => {
                self.expected.push(Expected { bus: command.bus, servo, answered: false });
                self.open[command.bus] += 1;
            }
            _ => {}
        }
        is_sent
    }

    fn attitude(&mut self, now_ns: u64) -> Option<Attitude> {
        let read = self.inertial.as_mut().map(|unit| unit.read(now_ns));
        match read {
            Some(Ok((attitude, done_ns))) => {
                self.clock.wait_until(done_ns);
                Some(attitude)
            }
            _ => {
                self.inertial_errors += 1;
                None
            }
        }
    }

    fn receive(&mut self, sent_ns: u64, look: &[usize]) {
        self.looked_at.fill(false);
        for bus in look {
            if let Some(looked_at) = self.looked_at.get_mut(*bus) {
                *looked_at = true;
            }
        }
        let enough_ns = sent_ns.saturating_add(self.patience.min_wait_ns);
        let deadline_ns = sent_ns.saturating_add(self.patience.deadline_ns.max(self.patience.min_wait_ns));
        loop {
            let now_ns = self.clock.now_ns();
            self.arrivals.clear();
            for bus in 0..self.buses.len() {
                if self.open[bus] > 0 || self.looked_at[bus] {
                    self.take(bus, now_ns);
                    self.arrivals.push(self.buses[bus].next_arrival());
                }
            }
            let complete = self.open.iter().all(|open| *open == 0);
            if now_ns >= deadline_ns || (complete && now_ns >= enough_ns) {
                return;
            }
            self.clock.wait(&self.arrivals, if complete { enough_ns } else { deadline_ns });
        }
    }

    /// Everything that the bus has now.
    fn take(&mut self, bus: usize, now_ns: u64) {
        for _ in 0..MOST {
            match self.buses[bus].receive(now_ns, &mut self.frame) {
                Ok(true) => self.note(bus, now_ns),
                Ok(false) => return,
                Err(error) => {
                    // A bus that fails has nothing more to say in this cycle; the others go on.
                    self.records[bus].failed(error);
                    self.open[bus] = 0;
                    self.looked_at[bus] = false;
                    return;
                }
            }
        }
    }

    fn note(&mut self, bus: usize, at_ns: u64) {
        let servo = (self.frame.arbitration_id >> 8 & 0x7f) as u8;
        let awaited = self.expected.iter_mut().find(|e| !e.answered && e.bus == bus && e.servo == servo);
        let expected = awaited.is_some();
        if let Some(awaited) = awaited {
            awaited.answered = true;
            self.open[bus] = self.open[bus].saturating_sub(1);
        }
        let record = &mut self.records[bus].bus;
        record.received += 1;
        record.unexpected += u64::from(!expected);
        match self.replies.len() < MOST {
            true => self.replies.push(Reply { bus, servo, at_ns, expected, frame: self.frame.clone() }),
            false => record.dropped += 1,
        }
    }

    fn settle(&mut self) -> usize {
        for e in &self.expected {
            self.records[e.bus].asked(e.servo, e.answered);
        }
        self.expected.iter().filter(|e| !e.answered).count()
    }
}

#[cfg(test)]
mod tests {
    use moteus_protocol::query::QueryFormat;

    use super::*;
    use crate::{
        cycle::{SimulatedInertialUnit, Virtual},
        servo::{Body, Limits, Servo},
        sim::{Bus, Wiring},
    };

    const MS: u64 = 1_000_000;

    /// The quadruped's layout: servos 1 to 3 on bus 0, and so on.
    fn quadruped() -> Engine<Bus, Virtual> {
        let servos =
            |bus: u8| (1..=3).map(|n| Servo::new(3 * bus + n, Body::default(), Limits::default(), 0)).collect();
        let buses = (0..4).map(|bus| Bus::new(Wiring::default(), servos(bus))).collect();
        Engine::new(buses, Virtual::default(), Patience::default()).with_inertial(SimulatedInertialUnit::default())
    }

    fn query(bus: usize, servo: u8) -> Command {
        let mut frame = Frame::new();
        frame.arbitration_id = 0x8000 | u32::from(servo);
        QueryFormat::default().serialize(&mut frame);
        Command::new(bus, frame)
    }

    fn all() -> Vec<Command> {
        (0..12).map(|n| query(usize::from(n / 3), n + 1)).collect()
    }

    /// Remembers what happens in which order.
    #[derive(Default)]
    struct Diary {
        taken: Vec<(usize, u32)>,
        calls: Vec<&'static str>,
    }
    struct Written(usize, std::rc::Rc<std::cell::RefCell<Diary>>);
    impl Transport for Written {
        fn send(&mut self, _: u64, frame: &Frame) -> Result<(), Error> {
            self.1.borrow_mut().taken.push((self.0, frame.arbitration_id));
            self.1.borrow_mut().calls.push("send");
            Ok(())
        }
        fn receive(&mut self, _: u64, _: &mut Frame) -> Result<bool, Error> {
            self.1.borrow_mut().calls.push("receive");
            Ok(false)
        }
        fn next_arrival(&self) -> Arrival {
            Arrival::Never
        }
    }

    #[test]
    fn commands_go_round_the_buses_and_keep_their_order_on_each() {
        let diary = std::rc::Rc::new(std::cell::RefCell::new(Diary::default()));
        let buses = (0..3).map(|bus| Written(bus, diary.clone())).collect();
        let mut engine = Engine::new(buses, Virtual::default(), Patience::default());
        let commands = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (2, 6)].map(|(bus, servo)| query(bus, servo));
        engine.cycle(0, &Request { commands: &commands, ..Request::default() });
        let expected = [(0, 1), (1, 4), (2, 5), (0, 2), (2, 6), (0, 3)].map(|(bus, id)| (bus, 0x8000 | id));
        assert_eq!(diary.borrow().taken, expected);
        let calls = diary.borrow().calls.clone();
        let last_send = calls.iter().rposition(|call| *call == "send").unwrap();
        assert!(calls[3..=last_send].iter().all(|call| *call == "send"), "{calls:?}");
    }

    #[test]
    fn twelve_servos_on_four_buses_answer_within_the_wire_time() {
        let mut engine = quadruped();
        let outcome = engine.cycle(0, &Request { commands: &all(), look: &[], attitude: true });
        assert_eq!((outcome.sent, outcome.expected, outcome.missing), (12, 12, 0));
        assert_eq!(outcome.attitude.unwrap().quaternion, [1.0, 0.0, 0.0, 0.0]);
        let t = outcome.times;
        assert_eq!(t.receive_ns - t.imu_ns, 44_800);
        // The engine itself takes no virtual time: the end is when the busiest wire falls silent. From servo 8 on replies
        // have ids of 29 bits that win over requests, so that the last request goes last and its turn-around shows.
        let busiest = engine.buses().iter().map(Bus::busy_ns).max().unwrap();
        assert_eq!(t.end_ns - t.send_ns, busiest + Wiring::default().turnaround_ns);
        assert!((400_000..700_000).contains(&busiest), "{busiest}");
    }

    #[test]
    fn a_cut_bus_costs_the_deadline_and_is_counted_by_servo() {
        let mut engine = quadruped();
        engine.buses_mut()[2].cut(true);
        for cycle in 0..5 {
            let outcome = engine.cycle(cycle, &Request { commands: &all(), ..Request::default() });
            assert_eq!((outcome.expected, outcome.missing), (12, 3));
            assert_eq!(outcome.times.end_ns - outcome.times.imu_ns, MS);
            assert_eq!(engine.replies().len(), 9);
        }
        let lost = ServoHealth { asked: 5, missing: 5, silent_cycles: 5 };
        assert_eq!([7, 8, 9].map(|servo| engine.servo_health(2, servo)), [lost; 3]);
        assert_eq!(engine.servo_health(0, 1), ServoHealth { asked: 5, ..ServoHealth::default() });
        engine.buses_mut()[2].cut(false);
        engine.cycle(5, &Request { commands: &all(), ..Request::default() });
        assert_eq!(engine.servo_health(2, 7), ServoHealth { asked: 6, missing: 5, silent_cycles: 0 });
    }

    #[test]
    fn replies_that_come_after_their_cycle_are_late_and_answer_nothing() {
        let mut engine = quadruped();
        engine.patience.deadline_ns = 100_000;
        let first = engine.cycle(0, &Request { commands: &[query(0, 1)], ..Request::default() });
        assert_eq!(first.missing, 1);
        engine.clock().wait_until(10 * MS);
        engine.patience.deadline_ns = MS;
        let second = engine.cycle(1, &Request { commands: &[query(0, 2)], ..Request::default() });
        assert_eq!((second.missing, engine.replies().len()), (0, 1));
        let health = engine.bus_health(0);
        assert_eq!((health.received, health.late, health.unexpected), (2, 1, 0));
    }

    #[test]
    fn whatever_is_queued_is_taken_where_one_looks_for_at_least_the_minimum() {
        let mut engine = quadruped();
        engine.patience.min_wait_ns = 900_000;
        // All servos answer a broadcast; nobody can say how many.
        let request = Request { commands: &[query(1, 0x7f)], look: &[1], attitude: false };
        let outcome = engine.cycle(0, &request);
        assert_eq!((outcome.expected, engine.replies().len()), (0, 3));
        assert!(engine.replies().iter().all(|reply| !reply.expected && reply.bus == 1));
        assert_eq!(outcome.times.end_ns - outcome.times.imu_ns, 900_000);
    }

    #[test]
    fn a_bus_that_fails_holds_up_no_other() {
        struct Broken;
        impl Transport for Broken {
            fn send(&mut self, _: u64, _: &Frame) -> Result<(), Error> {
                Err(Error::Closed)
            }
            fn receive(&mut self, _: u64, _: &mut Frame) -> Result<bool, Error> {
                Err(Error::Closed)
            }
            fn next_arrival(&self) -> Arrival {
                Arrival::Never
            }
        }
        let good = Bus::new(Wiring::default(), vec![Servo::new(1, Body::default(), Limits::default(), 0)]);
        let buses: Vec<Box<dyn Transport>> = vec![Box::new(Broken), Box::new(good)];
        let mut engine = Engine::new(buses, Virtual::default(), Patience::default());
        let outcome = engine.cycle(0, &Request { commands: &[query(0, 9), query(1, 1)], ..Request::default() });
        assert_eq!((outcome.sent, outcome.expected, outcome.missing), (1, 2, 1));
        assert!(outcome.times.end_ns - outcome.times.imu_ns < MS);
        assert_eq!(engine.servo_health(0, 9).missing, 1);
        assert!(matches!(engine.bus_health(0).last_error, Some(Error::Closed)));
    }

    #[test]
    fn a_cycle_without_an_inertial_unit_says_so() {
        let mut engine = Engine::new(Vec::<Bus>::new(), Virtual::default(), Patience::default());
        let outcome = engine.cycle(0, &Request { attitude: true, ..Request::default() });
        assert_eq!((outcome.attitude, engine.inertial_errors()), (None, 1));
    }
}
