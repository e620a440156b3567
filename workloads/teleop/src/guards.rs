//! Speed guards on an arm's state stream.
//!
//! The naive one is the source's: the way between two frames over the time between their *arrivals*, and one sample over a limit stops
//! the robot. A frame that was held up makes the next one look fast. Ours is the guard crate's with this stream's parameters: speed is
//! what the robot's own stamps prove.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use taut_guard::{Cause, Error, Frame, MAX_JOINTS, Parameters, SpeedGuard, State as Verdict, heartbeat};
use taut_stamp::Point;

use crate::{
    arms::{distance, largest_turn_deg},
    safety::LIMITS,
    stream::{STATE_PERIOD_NS, State},
    wire,
};

/// After a trip an operator presses reset a second later: one trip a second is counted at most.
pub const REARM_NS: u64 = 1_000_000_000;
const STALE_PERIODS: u64 = 5;
/// On the heavy wire frames are held up for 200 ms and more, by intent: silence is stale later there.
pub const HEAVY_STALE_NS: u64 = 500_000_000;
/// A stream that was silent for no longer has only paused: the frames around the silence are within one window of the guard's (150 ms), so
/// its bound holds for the time between them as for any lost frames. Either it proves an overspeed, which takes the place of STALE, or
/// nothing happened that it would have stopped. So the arrangement calls reset itself, and the guard's own conditions for that hold.
const PAUSE_MOST_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Naive,
    Taut,
}

/// What the guard knows of this stream. Stamps are cut to a millisecond, and the servo moves in steps of one.
pub fn parameters(wire: wire::Kind) -> Parameters {
    let stale_ns = if wire == wire::Kind::Heavy { HEAVY_STALE_NS } else { STALE_PERIODS * STATE_PERIOD_NS };
    let mut joint_limits_rad_s = [0.0; MAX_JOINTS];
    joint_limits_rad_s[..6].fill(LIMITS.joint_deg_s.to_radians());
    Parameters {
        joint_count: 6,
        joint_limits_rad_s,
        joint_error_rad: 1e-4,
        tick_ns: 5_000_000,
        stale_ns,
        age_max_ns: stale_ns,
        ..Parameters::for_tcp(STATE_PERIOD_NS, 1000.0 * LIMITS.tool_m_s)
    }
}

/// What asker and guard agree on.
pub fn agreed_hash(kind: Kind, wire: wire::Kind) -> u64 {
    if kind == Kind::Naive { 0 } else { parameters(wire).hash() }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trip {
    pub at_ns: u64,
    pub state: &'static str,
    pub cause: &'static str,
    pub ratio: f64,
    /// The robot's own stamps say that it was within the limits of late.
    pub is_false: bool,
    /// The stream had only paused, and the guard was reset without anybody's help.
    pub is_pause: bool,
}

impl Trip {
    /// For the recording.
    fn say(&self) {
        static TRIP: Point = Point::new("guard.trip");
        static FALSE_TRIP: Point = Point::new("guard.false_trip");
        TRIP.value(self.ratio);
        if self.is_false {
            FALSE_TRIP.value(self.ratio);
        }
    }
}

/// Whether the arm truly was too fast, frame by frame, by its own exact positions and stamps. A simulation's frames have no other error.
#[derive(Default)]
struct Truth {
    last: Option<State>,
    ratios: VecDeque<f64>,
    ratio_max: f64,
}

impl Truth {
    const FRAMES: usize = 20;

    fn hear(&mut self, state: &State) {
        if let Some(last) = self.last.replace(state.clone())
            && state.source_ns > last.source_ns
        {
            let ratio = ratio(&last, state, state.source_ns - last.source_ns);
            if self.ratios.len() == Self::FRAMES {
                self.ratios.pop_front();
            }
            self.ratios.push_back(ratio);
            self.ratio_max = self.ratio_max.max(ratio);
        }
    }

    /// Whether the last frames all were within the limits.
    fn is_within(&self) -> bool {
        self.ratios.iter().all(|ratio| *ratio <= 1.0)
    }
}

/// Speed between two frames, as a share of the limit that is nearest.
fn ratio(before: &State, after: &State, elapsed_ns: u64) -> f64 {
    let (a, b) = (&before.values, &after.values);
    let [from, to] = [a, b].map(|values| [values.tool_mm_deg[0], values.tool_mm_deg[1], values.tool_mm_deg[2]]);
    let turned = largest_turn_deg(&a.joints_deg, &b.joints_deg) / LIMITS.joint_deg_s;
    turned.max(distance(&from, &to) / 1000.0 / LIMITS.tool_m_s) / (elapsed_ns as f64 / 1e9)
}

/// Its trips are counted, not obeyed: the run would end with the first.
#[derive(Default)]
struct Naive {
    last: Option<State>,
    truth: Truth,
    rearmed_ns: u64,
    trips: Vec<Trip>,
}

impl Naive {
    fn judge(&mut self, state: &State) {
        self.truth.hear(state);
        let Some(last) = self.last.replace(state.clone()) else { return };
        // Frames of one read arrive at once; a microsecond stands for no time at all.
        let ratio = ratio(&last, state, (state.arrived_ns - last.arrived_ns).max(1000));
        let at_ns = state.arrived_ns;
        if ratio > 1.0 && at_ns >= self.rearmed_ns {
            let is_false = self.truth.is_within();
            let (state, cause) = ("overspeed", "arrival_speed");
            self.trips.push(Trip { at_ns, state, cause, ratio, is_false, is_pause: false });
            self.rearmed_ns = at_ns + REARM_NS;
        }
    }
}

/// The guard that has its say, if that is ours, and the naive one beside it.
pub struct Guard {
    ours: Option<SpeedGuard>,
    naive: Naive,
    recorded: Recorded,
    ratio_max: f64,
    trips: Vec<Trip>,
    is_tripped: bool,
    has_operator: bool,
    /// Least arrival − source of all frames.
    floor_ns: i64,
    /// When the newest frame came.
    heard_ns: u64,
    turned_ns: u64,
}

impl Guard {
    /// # Errors
    /// The guard's own test at its start.
    pub fn new(kind: Kind, wire: wire::Kind, has_operator: bool) -> Result<Guard, Error> {
        static ARMED: Point = Point::new("guard.armed");
        ARMED.value(1.0);
        Ok(Guard {
            ours: (kind == Kind::Taut).then(|| SpeedGuard::new(parameters(wire))).transpose()?,
            naive: Naive::default(),
            recorded: Recorded::new("follower"),
            ratio_max: 0.0,
            trips: Vec::new(),
            is_tripped: false,
            has_operator,
            floor_ns: i64::MAX,
            heard_ns: 0,
            turned_ns: 0,
        })
    }

    /// Frames that came, and that time has come to `now_ns`.
    pub fn turn(&mut self, states: &[State], now_ns: u64) {
        // One that was not run for longer than a frame has not heard when frames came, and silence that it slept through is none.
        let was_away = now_ns.saturating_sub(self.turned_ns) > STATE_PERIOD_NS;
        for state in states {
            self.floor_ns = self.floor_ns.min(state.arrived_ns as i64 - state.source_ns as i64);
            let soonest_ns = (state.source_ns as i64 + self.floor_ns).max(0) as u64;
            // At the soonest when the robot sent it, at the latest now: by the former it is the older.
            let arrival_ns =
                if was_away { soonest_ns.clamp(self.turned_ns.min(now_ns), now_ns) } else { state.arrived_ns };
            self.hear(state, arrival_ns);
        }
        if let Some(ours) = &mut self.ours {
            ours.tick(now_ns);
        }
        self.note();
        self.reset(now_ns);
        self.turned_ns = now_ns;
    }

    fn hear(&mut self, state: &State, arrival_ns: u64) {
        let frame = frame_of(state, arrival_ns);
        self.recorded.write(&frame, state.values.tool_speed[0]);
        let before = self.naive.trips.len();
        self.naive.judge(state);
        match &mut self.ours {
            None => self.naive.trips[before..].iter().for_each(Trip::say),
            Some(ours) => {
                let verdict = ours.update(&frame);
                self.ratio_max = self.ratio_max.max(verdict.ratio);
                self.note();
                // The first frame after a silence says how long that was.
                if let Some(trip) = self.trips.last_mut()
                    && self.is_tripped
                    && trip.at_ns >= self.heard_ns
                {
                    let is_silence = trip.cause == Cause::Silence.name();
                    trip.is_pause = is_silence && arrival_ns.saturating_sub(self.heard_ns) <= PAUSE_MOST_NS;
                }
            }
        }
        self.heard_ns = self.heard_ns.max(arrival_ns);
    }

    fn note(&mut self) {
        let Some(trip) = self.ours.as_ref().and_then(SpeedGuard::trip) else { return };
        let (state, cause) = (trip.state.name(), trip.cause.name());
        // An overspeed takes the place of a trip of another kind.
        let is_known =
            self.is_tripped && self.trips.last().is_some_and(|last| (last.state, last.cause) == (state, cause));
        if !is_known {
            self.is_tripped = true;
            let is_false = trip.state == Verdict::Overspeed && self.naive.truth.is_within();
            let trip = Trip { at_ns: trip.at_ns, state, cause, ratio: trip.ratio, is_false, is_pause: false };
            trip.say();
            self.trips.push(trip);
        }
    }

    /// After a pause of the stream, or by an operator who presses reset a second after a trip. The guard refuses it until frames
    /// were fresh and slow for long enough.
    fn reset(&mut self, now_ns: u64) {
        let (Some(ours), Some(trip)) = (&mut self.ours, self.trips.last()) else { return };
        let is_looked_after = self.has_operator && now_ns.saturating_sub(trip.at_ns) >= REARM_NS;
        if self.is_tripped && (trip.is_pause || is_looked_after) && ours.reset(now_ns).is_ok() {
            self.is_tripped = false;
        }
    }

    pub fn answer(&self, challenge: u32, now_ns: u64) -> Option<u32> {
        match &self.ours {
            Some(ours) => heartbeat::answer(ours, challenge, now_ns),
            None => Some(heartbeat::expected(0, challenge)),
        }
    }

    pub fn summary(&self) -> Value {
        let ratio_max = round(self.naive.truth.ratio_max);
        let Some(ours) = &self.ours else {
            return json!({ "kind": "naive", "trips": self.naive.trips, "true_ratio_max": ratio_max });
        };
        let counters = taut_guard::AdmissionCounters::<u32>::NAMES.iter().zip(ours.counters().values());
        let counted = counters.filter(|(_, count)| *count > 0).map(|(name, count)| ((*name).to_owned(), count.into()));
        json!({
            "kind": "taut",
            "state": ours.state().name(),
            "trips": self.trips,
            "ratio_max": round(self.ratio_max),
            "time_base": ours.time_base().name(),
            "stale_ms": ours.parameters().stale_ns / 1_000_000,
            "age_max_ms": ours.parameters().age_max_ns / 1_000_000,
            "parameters_hash": format!("{:016x}", ours.parameters_hash()),
            "counters": counted.collect::<Map<_, _>>(),
            "true_ratio_max": ratio_max,
            "naive_trips": self.naive.trips.len(),
        })
    }
}

fn round(ratio: f64) -> f64 {
    (1e4 * ratio).round() / 1e4
}

fn frame_of(state: &State, arrival_ns: u64) -> Frame {
    let mut joints_rad = [0.0; MAX_JOINTS];
    joints_rad[..6].copy_from_slice(&state.values.joints_deg.map(f64::to_radians));
    let [x, y, z, ..] = state.values.tool_mm_deg;
    Frame {
        sequence: state.count.into(),
        source_ns: Some(state.source_ns as i64),
        arrival_ns,
        tcp_mm: [x, y, z],
        joints_rad,
        reported_mm_s: None,
        frames_in_read: state.frames_in_read,
    }
}

/// Writes frames to the recording, as values that `taut guard replay` reads; nothing without a session.
struct Recorded {
    stream: &'static str,
    /// The values' names that were looked up.
    names: Vec<(&'static str, u32)>,
}

impl Recorded {
    fn new(stream: &'static str) -> Recorded {
        Recorded { stream, names: Vec::new() }
    }

    fn write(&mut self, frame: &Frame, truth_mm_s: f64) {
        const VALUE: u32 = 5;
        if taut_stamp::is_off() {
            return;
        }
        let fields = || [("truth_mm_s", truth_mm_s)].into_iter().chain(frame.fields());
        // How many follow, so that a frame with a lost value is known as one.
        for (field, value) in [("fields", fields().count() as f64)].into_iter().chain(fields()) {
            let name = self.names.iter().find(|(known, _)| *known == field).map(|(_, name)| *name).or_else(|| {
                let name = taut_stamp::intern(&format!("{}.{field}", self.stream))?;
                self.names.push((field, name));
                Some(name)
            });
            if let Some(name) = name {
                taut_stamp::write(name, VALUE, 0, value.to_bits());
            }
        }
    }
}

/// The asker's side of the heartbeat: whether a guard with the agreed parameters answered of late.
pub struct Heartbeat {
    hash: u64,
    lapse_ns: u64,
    challenge: u32,
    asked_ns: Option<u64>,
    /// Since when a question waits for a good answer. An asker that did not run has not asked, and so is not without an answer.
    waits_ns: Option<u64>,
    has_begun: bool,
}

impl Heartbeat {
    const PERIOD_NS: u64 = 10_000_000;
    /// Without a good answer for so long motion ends: ten questions unanswered.
    const LAPSE_NS: u64 = 100_000_000;

    pub fn new(kind: Kind, wire: wire::Kind) -> Heartbeat {
        let lapse_ns = if wire == wire::Kind::Heavy { HEAVY_STALE_NS } else { Self::LAPSE_NS };
        Heartbeat {
            hash: agreed_hash(kind, wire),
            lapse_ns,
            challenge: 0,
            asked_ns: None,
            waits_ns: None,
            has_begun: false,
        }
    }

    pub fn lapse_ns(&self) -> u64 {
        self.lapse_ns
    }

    /// A new challenge when one is due.
    pub fn question(&mut self, now_ns: u64) -> Option<u32> {
        if self.asked_ns.is_some_and(|asked_ns| now_ns - asked_ns < Self::PERIOD_NS) {
            return None;
        }
        self.asked_ns = Some(now_ns);
        self.waits_ns.get_or_insert(now_ns);
        self.challenge = self.challenge.wrapping_add(1);
        Some(self.challenge)
    }

    pub fn hear(&mut self, answer: u32) {
        if answer == heartbeat::expected(self.hash, self.challenge) {
            (self.waits_ns, self.has_begun) = (None, true);
        }
    }

    /// How much longer than it may there was no good answer; `None`: there was.
    pub fn overdue_ns(&self, now_ns: u64) -> Option<u64> {
        if !self.has_begun {
            return Some(u64::MAX);
        }
        let waited_ns = self.waits_ns.map_or(0, |since_ns| now_ns - since_ns);
        (waited_ns > self.lapse_ns).then(|| waited_ns - self.lapse_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cnde;

    const MS: u64 = 1_000_000;

    /// Frame `n` of a stream every 10 ms, sampled at `n`, that comes at `at_ms`; the tool moves by so much a millisecond.
    fn frame(n: u64, at_ms: f64, mm_per_ms: f64) -> State {
        let values = cnde::State {
            tool_mm_deg: [10.0 * n as f64 * mm_per_ms, 0.0, 0.0, 0.0, 0.0, 0.0],
            tool_speed: [1000.0 * mm_per_ms, 0.0],
            ..cnde::State::default()
        };
        let (source_ns, arrived_ns) = (10 * n * MS, (at_ms * MS as f64) as u64);
        State { values, count: n as u8, source_ns, arrived_ns, frames_in_read: 1 }
    }

    fn guard(kind: Kind) -> Guard {
        Guard::new(kind, wire::Kind::Plain, false).unwrap()
    }

    fn hear(guard: &mut Guard, state: State) {
        let now_ns = state.arrived_ns;
        guard.turn(&[state], now_ns);
    }

    fn answers(guard: &Guard, now_ns: u64) -> bool {
        guard.answer(1, now_ns).is_some()
    }

    #[test]
    fn bunched_frames_trip_the_naive_guard_falsely_and_ours_not_at_all() {
        let (mut naive, mut ours) = (guard(Kind::Naive), guard(Kind::Taut));
        for n in 0..30 {
            // One is held up; the next one follows after 2 ms.
            let at_ms = 10.0 * n as f64 + if n == 20 { 8.0 } else { 0.0 };
            hear(&mut naive, frame(n, at_ms, 0.6));
            hear(&mut ours, frame(n, at_ms, 0.6));
        }
        let trips = &naive.summary()["trips"];
        assert!(trips.as_array().unwrap().len() == 1 && trips[0]["is_false"] == true, "{trips}");
        let summary = ours.summary();
        assert!(answers(&ours, 290 * MS) && summary["trips"] == json!([]) && summary["naive_trips"] == 1, "{summary}");
    }

    #[test]
    fn a_true_overspeed_trips_ours_is_not_called_false_and_stays() {
        let mut ours = guard(Kind::Taut);
        (0..30).for_each(|n| hear(&mut ours, frame(n, 10.0 * n as f64, 0.5)));
        assert!(answers(&ours, 290 * MS));
        (30..60).for_each(|n| hear(&mut ours, frame(n, 10.0 * n as f64, 1.5)));
        (60..200).for_each(|n| hear(&mut ours, frame(n, 10.0 * n as f64, 0.0)));
        let trips = &ours.summary()["trips"];
        assert!(trips[0]["state"] == "overspeed" && trips[0]["is_false"] == false, "{trips}");
        assert!(!answers(&ours, 1990 * MS));
    }

    /// Motion, then silence, then frames of an arm that stands.
    fn after_a_silence_of(ms: u64) -> (Guard, Vec<u64>) {
        let (mut ours, mut enabled_ms) = (guard(Kind::Taut), Vec::new());
        for at_ms in 0..1000 {
            let (n, is_silent) = (at_ms / 10, (300..300 + ms).contains(&at_ms));
            let mut frames = Vec::new();
            if at_ms % 10 == 0 && !is_silent {
                let mut state = frame(n, at_ms as f64, 0.9);
                state.values.tool_mm_deg[0] = 9.0 * n.min(33) as f64;
                frames.push(state);
            }
            if at_ms % 4 == 0 || !frames.is_empty() {
                ours.turn(&frames, at_ms * MS);
            }
            if answers(&ours, at_ms * MS) {
                enabled_ms.push(at_ms);
            }
        }
        (ours, enabled_ms)
    }

    #[test]
    fn a_stream_that_paused_stops_motion_and_the_guard_goes_on_once_the_arm_stood() {
        let (ours, enabled_ms) = after_a_silence_of(80);
        let trips = &ours.summary()["trips"];
        assert!(trips[0]["state"] == "stale" && trips[0]["is_pause"] == true, "{trips}");
        assert!(!enabled_ms.contains(&360) && enabled_ms.contains(&700), "{enabled_ms:?}");
        // 100 ms of frames below half the limit, of a window that still holds the motion at first.
        assert!(!enabled_ms.contains(&480), "not before the guard's own conditions for a reset hold");
    }

    #[test]
    fn a_longer_silence_stays_latched() {
        let (ours, enabled_ms) = after_a_silence_of(130);
        let trips = &ours.summary()["trips"];
        assert!(trips[0]["state"] == "stale" && trips[0]["is_pause"] == false, "{trips}");
        assert_eq!(enabled_ms.last().map(|ms| ms / 10), Some(33));
    }

    #[test]
    fn an_overspeed_over_a_pause_is_proven_and_stays_latched() {
        let mut ours = guard(Kind::Taut);
        (0..30).for_each(|n| hear(&mut ours, frame(n, 10.0 * n as f64, 0.5)));
        // Silent for 80 ms, and 150 mm further on.
        ours.turn(&[], 345 * MS);
        ours.turn(&[], 349 * MS);
        let mut far = frame(37, 370.0, 0.0);
        far.values.tool_mm_deg[0] = 145.0 + 150.0;
        ours.turn(&[far.clone()], 370 * MS);
        for n in 38..150 {
            let mut state = far.clone();
            (state.count, state.source_ns, state.arrived_ns) = (n as u8, 10 * n * MS, 10 * n * MS);
            hear(&mut ours, state);
        }
        let trips = &ours.summary()["trips"];
        assert!(trips[1]["state"] == "overspeed" && !answers(&ours, 1490 * MS), "{trips}");
    }

    #[test]
    fn a_guard_that_was_not_run_finds_no_silence_in_frames_that_waited() {
        let mut ours = guard(Kind::Taut);
        (0..30).for_each(|n| hear(&mut ours, frame(n, 10.0 * n as f64, 0.6)));
        // Away for 95 ms: nine frames wait.
        let waiting: Vec<State> =
            (30..39).map(|n| State { arrived_ns: 385 * MS, frames_in_read: 9, ..frame(n, 0.0, 0.6) }).collect();
        ours.turn(&waiting, 385 * MS);
        assert!(answers(&ours, 385 * MS) && ours.summary()["trips"] == json!([]));
        // But one whose stream is silent, too, finds that.
        ours.turn(&[], 490 * MS);
        assert!(!answers(&ours, 490 * MS));
    }

    #[test]
    fn only_the_agreed_guards_newest_answer_keeps_the_heart_beating() {
        let mut asker = Heartbeat { hash: 7, lapse_ns: 50 * MS, ..Heartbeat::new(Kind::Naive, wire::Kind::Plain) };
        assert!(asker.overdue_ns(0).is_some());
        let question = asker.question(100 * MS).unwrap();
        assert_eq!(asker.question(101 * MS), None);
        asker.hear(heartbeat::expected(8, question));
        assert!(asker.overdue_ns(101 * MS).is_some(), "another guard's parameters");
        asker.hear(heartbeat::expected(7, question));
        assert_eq!(asker.overdue_ns(300 * MS), None, "nothing was asked since");
        assert_eq!(asker.question(300 * MS), Some(question + 1));
        asker.hear(heartbeat::expected(7, question));
        assert_eq!(asker.question(320 * MS), Some(question + 2));
        assert_eq!((asker.overdue_ns(350 * MS), asker.overdue_ns(351 * MS)), (None, Some(MS)), "an old answer");
    }
}
