//! The cycle at a rate: wait for its time, run the controller, exchange frames on all buses, parse the replies.

use std::ops::ControlFlow;

use moteus_protocol::query::QueryResult;
use taut_clock::{ClockPair, Counter};
use taut_stamp::{Point, stamp};

use super::{
    clock::Clock,
    engine::Engine,
    request::{Command, Outcome, Request},
};
use crate::transport::Transport;

static WAIT: Point = Point::new("bus.wait");
/// How many servos the cycle asks: a value, once a run. `taut bus budget --against` holds it against the budget's.
static SERVOS: Point = Point::new("bus.servos");

/// When cycles are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Distance of the cycles, ns.
    pub period_ns: u64,
    /// How many cycles are intended; those missed by an overrun count. `None`: until the controller breaks.
    pub cycles: Option<u64>,
}

/// What a servo last told.
#[derive(Clone, Debug)]
pub struct State {
    /// Index of the bus.
    pub bus: usize,
    /// Its id.
    pub servo: u8,
    /// Its registers; before the first reply all NaN.
    pub told: QueryResult,
    /// Cycles since it answered: 0 is this one. A controller that goes on with old states should say how old.
    pub age_cycles: u64,
}

/// The states of all servos that the commands ask.
#[derive(Clone, Debug)]
pub struct States {
    all: Vec<State>,
}

impl States {
    /// Room for these servos, given as bus and id.
    pub fn of(servos: impl IntoIterator<Item = (usize, u8)>) -> States {
        let state = |(bus, servo)| State { bus, servo, told: QueryResult::new(), age_cycles: u64::MAX };
        States { all: servos.into_iter().map(state).collect() }
    }

    /// In the order given.
    pub fn all(&self) -> &[State] {
        &self.all
    }

    /// The worst age, cycles; `u64::MAX` while one has never answered.
    pub fn oldest_cycles(&self) -> u64 {
        self.all.iter().map(|state| state.age_cycles).max().unwrap_or(0)
    }

    fn update<T: Transport, C: Clock>(&mut self, engine: &Engine<T, C>) {
        self.all.iter_mut().for_each(|state| state.age_cycles = state.age_cycles.saturating_add(1));
        for reply in engine.replies().iter().filter(|reply| reply.expected) {
            if let Some(state) = self.all.iter_mut().find(|s| s.bus == reply.bus && s.servo == reply.servo) {
                state.told = QueryResult::parse(&reply.frame);
                state.age_cycles = 0;
            }
        }
    }
}

/// One cycle as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cycle {
    /// Which of the intended cycles, from 0.
    pub number: u64,
    /// When it was due.
    pub due_ns: u64,
    /// When the thread was awake.
    pub woke_ns: u64,
    /// When everything was done.
    pub done_ns: u64,
    /// Cycles after this one whose time has passed already: they will not run.
    pub skipped: u64,
    /// The buses' part.
    pub outcome: Outcome,
}

/// Decides what is sent.
pub trait Controller {
    /// Changes `commands` for the cycle that begins, from the commands before. Breaks the loop to end it.
    fn control(&mut self, number: u64, states: &States, commands: &mut Vec<Command>) -> ControlFlow<()>;

    /// Whether the cycle shall read the inertial unit.
    fn wants_attitude(&self) -> bool {
        false
    }

    /// Is shown each cycle after it: to keep statistics, to log.
    fn after(&mut self, _cycle: &Cycle, _states: &States) {}
}

/// Runs cycles until the schedule or the controller ends. The phases are stamped as `docs/reference/bus-budget.md` names them.
///
/// A cycle that takes longer than the period makes the next ones late or skips them; the schedule stays where it is, so that
/// lateness is against the intended start.
pub fn repeat<T: Transport, C: Clock>(
    engine: &mut Engine<T, C>,
    schedule: Schedule,
    commands: &mut Vec<Command>,
    states: &mut States,
    controller: &mut impl Controller,
) {
    let period_ns = schedule.period_ns.max(1);
    SERVOS.value(states.all.len() as f64);
    let past = Past::new();
    let first_ns = engine.clock().now_ns() + period_ns;
    let mut number = 0;
    while schedule.cycles.is_none_or(|cycles| number < cycles) {
        let due_ns = first_ns + number * period_ns;
        engine.clock().wait_until(due_ns);
        let woke_ns = engine.clock().now_ns();
        if let Some(past) = &past {
            past.stamp(&WAIT, number, woke_ns - due_ns);
        }
        stamp!("bus.control", number);
        if controller.control(number, states, commands).is_break() {
            return;
        }
        let request = Request { commands, look: &[], attitude: controller.wants_attitude() };
        let outcome = engine.cycle(number, &request);
        stamp!("bus.parse", number);
        states.update(engine);
        stamp!("bus.done", number);
        let done_ns = engine.clock().now_ns();
        // Whole periods that have passed already are lost; nobody runs after them.
        let lost = (done_ns.saturating_sub(due_ns) / period_ns).saturating_sub(1);
        let skipped = lost.min(schedule.cycles.map_or(u64::MAX, |cycles| cycles - number - 1));
        controller.after(&Cycle { number, due_ns, woke_ns, done_ns, skipped, outcome }, states);
        number += 1 + skipped;
    }
}

/// Stamps moments that have passed, in the counter of the session.
struct Past {
    counter: Counter,
    from: ClockPair,
}

impl Past {
    fn new() -> Option<Past> {
        taut_stamp::counter().map(|counter| Past { counter, from: ClockPair::take(counter) })
    }

    fn stamp(&self, point: &Point, message_id: u64, ago_ns: u64) {
        let (ticks, now_ns) = (self.counter.now().0, taut_clock::monotonic_ns());
        let ticks_per_ns = (ticks - self.from.ticks.0) as f64 / (now_ns - self.from.monotonic_ns).max(1) as f64;
        point.stamp_with_ticks(message_id, ticks - (ago_ns as f64 * ticks_per_ns) as u64);
    }
}

#[cfg(test)]
mod tests {
    use moteus_protocol::query::QueryFormat;

    use super::*;
    use crate::{
        cycle::{Patience, Virtual},
        servo::{Body, Limits, Servo},
        sim::{Bus, Wiring},
        transport::Frame,
    };

    const MS: u64 = 1_000_000;

    #[derive(Default)]
    struct Watch {
        cycles: Vec<Cycle>,
        ages: Vec<u64>,
        ends_at: Option<u64>,
    }

    impl Controller for Watch {
        fn control(&mut self, number: u64, _: &States, _: &mut Vec<Command>) -> ControlFlow<()> {
            if self.ends_at == Some(number) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }

        fn after(&mut self, cycle: &Cycle, states: &States) {
            self.cycles.push(*cycle);
            self.ages.push(states.oldest_cycles());
        }
    }

    fn watched(deadline_ns: u64, cut: bool, cycles: Option<u64>, ends_at: Option<u64>) -> Watch {
        let mut bus = Bus::new(Wiring::default(), vec![Servo::new(1, Body::default(), Limits::default(), 0)]);
        bus.cut(cut);
        let patience = Patience { min_wait_ns: 0, deadline_ns };
        let mut engine = Engine::new(vec![bus], Virtual::default(), patience);
        let mut frame = Frame::new();
        frame.arbitration_id = 0x8001;
        QueryFormat::default().serialize(&mut frame);
        let mut watch = Watch { ends_at, ..Watch::default() };
        let mut states = States::of([(0, 1)]);
        let schedule = Schedule { period_ns: MS, cycles };
        repeat(&mut engine, schedule, &mut vec![Command::new(0, frame)], &mut states, &mut watch);
        watch
    }

    #[test]
    fn cycles_begin_on_their_schedule_and_states_are_fresh() {
        let watch = watched(MS / 2, false, Some(100), None);
        assert_eq!(watch.cycles.len(), 100);
        assert!(
            watch.cycles.iter().all(|c| c.woke_ns == c.due_ns && c.due_ns == (c.number + 1) * MS && c.skipped == 0)
        );
        assert!(watch.ages.iter().all(|age| *age == 0));
    }

    #[test]
    fn a_cycle_longer_than_its_period_skips_others_and_moves_none() {
        let watch = watched(2 * MS + MS / 2, true, Some(100), None);
        assert!(watch.cycles.iter().all(|c| c.due_ns == (c.number + 1) * MS));
        let told: u64 = watch.cycles.iter().map(|c| 1 + c.skipped).sum();
        assert_eq!(told, 100);
        let late = watch.cycles.iter().map(|c| c.woke_ns - c.due_ns).max().unwrap();
        assert!(late < 2 * MS, "{late}");
    }

    #[test]
    fn a_silent_servo_was_never_known() {
        let watch = watched(MS / 2, true, Some(5), None);
        assert_eq!(watch.ages, [u64::MAX; 5]);
    }

    #[test]
    fn the_controller_ends_it() {
        assert_eq!(watched(MS / 2, false, None, Some(7)).cycles.len(), 7);
    }
}
