//! The speed guard: one frame or tick in, one verdict out. Two parts, speed and staleness, each with a separate code.

use crate::{
    admission::{Admission, AdmissionCounters, Admitted},
    black_box::{BlackBox, BlackBoxEntry},
    bound::{Bound, Channel, Limits, Sample},
    counters::Width,
    error::Error,
    frame::Frame,
    freshness::{Freshness, Period, PeriodMonitor},
    parameters::{Parameters, TimeBase},
    reported::Reported,
    state::{Cause, Events, State, Trip, Verdict},
    window::Window,
};

/// From here on the guard warns.
const WARN_RATIO: f64 = 0.9;
/// Below this a reset is possible …
const CALM_RATIO: f64 = 0.5;
/// … after this long with fresh frames. The first enable waits as long.
const SETTLE_NS: u64 = 100_000_000;
/// No machine has been up for longer (146 years).
const LATEST_NS: u64 = u64::MAX / 4;

/// A jitter-robust speed guard. It never allocates, locks or reads a clock; every loop is bounded by its window.
///
/// Feed it with [`update`](SpeedGuard::update) for each frame and [`tick`](SpeedGuard::tick) at least every
/// [`Parameters::tick_ns`], both with CLOCK_MONOTONIC, and stop the robot unless
/// [`State::enables_motion`]. It is no safety-rated function.
#[derive(Clone, Debug)]
pub struct SpeedGuard<W: Width = u32> {
    parameters: Parameters,
    hash: u64,
    limits: Limits,
    admission: Admission,
    window: Window,
    freshness: Option<Freshness>,
    period: PeriodMonitor,
    black_box: BlackBox,
    counters: AdmissionCounters<W>,
    state: State,
    trip: Option<Trip>,
    now_ns: u64,
    unknown_since_ns: u64,
    fresh_since_ns: Option<u64>,
    calm_since_ns: Option<u64>,
    excess_ns: u64,
    ratio: f64,
    reported: Reported,
}

impl<W: Width> SpeedGuard<W> {
    /// A guard that was not tested; [`SpeedGuard::new`] is beside the test (`self_test`).
    pub(crate) fn untested(parameters: Parameters) -> SpeedGuard<W> {
        let admission = Admission::new(&parameters);
        SpeedGuard {
            hash: parameters.hash(),
            limits: Limits::new(&parameters, admission.base, admission.error_ns),
            admission,
            parameters,
            window: Window::new(),
            freshness: None,
            period: PeriodMonitor::default(),
            black_box: BlackBox::new(),
            counters: AdmissionCounters::default(),
            state: State::Init,
            trip: None,
            now_ns: 0,
            unknown_since_ns: 0,
            fresh_since_ns: None,
            calm_since_ns: None,
            excess_ns: 0,
            ratio: 0.0,
            reported: Reported::default(),
        }
    }

    /// Takes one frame. Its arrival is the host's time of the verdict.
    pub fn update(&mut self, frame: &Frame) -> Verdict {
        let mut events = Events::default();
        self.counters.frames.bump();
        if frame.is_sane() {
            self.advance(frame.arrival_ns, &mut events);
            self.take(frame, &mut events);
        } else {
            self.counters.bad_frames.bump();
            events.note(Events::BAD_FRAME);
            (self.fresh_since_ns, self.calm_since_ns) = (None, None);
            self.latch(State::Fault, Cause::NotFinite);
        }
        self.black_box.keep(BlackBoxEntry { frame: *frame, state: self.state, ratio: self.ratio, events });
        self.black_box.is_frozen = self.trip.is_some();
        self.verdict(events)
    }

    /// Lets time pass: finds silence, and checks that the parameters are still those of the start.
    pub fn tick(&mut self, now_ns: u64) -> Verdict {
        let mut events = Events::default();
        if self.is_damaged() {
            self.latch(State::Fault, Cause::Configuration);
        }
        if now_ns <= LATEST_NS {
            self.advance(now_ns, &mut events);
        } else {
            self.latch(State::Fault, Cause::Clock);
        }
        self.black_box.is_frozen = self.trip.is_some();
        self.verdict(events)
    }

    /// Counts a frame that the parser refused (checksum, length, framing).
    pub fn count_bad_frame(&mut self) {
        self.counters.frames.bump();
        self.counters.bad_frames.bump();
    }

    /// Counts octets that the parser skipped to find the next frame.
    pub fn count_parser_resync(&mut self, octets: u64) {
        self.counters.parser_resync_octets.add(octets);
    }

    /// Leaves a latched state. The only way to, and never automatic.
    ///
    /// # Errors
    /// Unless frames have been fresh for 100 ms, with v_lb below half the limit; and for damaged parameters.
    pub fn reset(&mut self, now_ns: u64) -> Result<(), Error> {
        self.tick(now_ns);
        if !self.state.is_latched() {
            return Err(Error::ResetRefused("nothing is latched"));
        }
        if self.is_damaged() {
            return Err(Error::ResetRefused("the parameters are damaged; construct a new guard"));
        }
        if self.calm_since_ns.is_none_or(|since| self.now_ns.saturating_sub(since) < SETTLE_NS) {
            return Err(Error::ResetRefused("frames must be fresh, below half the limit, for 100 ms"));
        }
        self.window.forgive();
        self.trip = None;
        self.black_box.is_frozen = false;
        self.reported.forget();
        self.state = State::Ok;
        Ok(())
    }

    /// The state as of the last frame or tick.
    pub fn state(&self) -> State {
        self.state
    }

    /// The first trip since the last reset; an overspeed takes the place of a trip of another kind.
    pub fn trip(&self) -> Option<&Trip> {
        self.trip.as_ref()
    }

    /// The last 50 frames up to the first trip, oldest first.
    pub fn black_box(&self) -> impl Iterator<Item = &BlackBoxEntry> {
        self.black_box.entries()
    }

    /// What became of the frames.
    pub fn counters(&self) -> &AdmissionCounters<W> {
        &self.counters
    }

    /// The parameters in force.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Hash of the parameters at construction, for logs.
    pub fn parameters_hash(&self) -> u64 {
        self.hash
    }

    /// What time is made of now; worse than configured after a clock step or a wrong period.
    pub fn time_base(&self) -> TimeBase {
        self.admission.base
    }

    /// e as it stands, escalated or not.
    pub fn source_error_ns(&self) -> u64 {
        self.admission.error_ns
    }

    /// Whether the time base is the arrival: late detection, and small overspeeds unseen.
    pub fn is_degraded(&self) -> bool {
        self.admission.base == TimeBase::Arrival
    }

    /// A speed to show to people: least squares over five samples. It trips nothing.
    pub fn display_speed_mm_s(&self) -> Option<f64> {
        self.window.display_speed_mm_s()
    }

    /// When the guard was last called; a heartbeat must not be answered by a guard that is not called.
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The parameters as the inner loop wants them now.
    fn derived(&self) -> Limits {
        Limits::new(&self.parameters, self.admission.base, self.admission.error_ns)
    }

    /// Whether memory was changed behind our back: the parameters, or what was derived from them.
    fn is_damaged(&self) -> bool {
        self.parameters.hash() != self.hash || self.limits != self.derived()
    }

    fn verdict(&self, events: Events) -> Verdict {
        Verdict { state: self.state, ratio: self.ratio, events, is_degraded: self.is_degraded() }
    }

    fn advance(&mut self, now_ns: u64, events: &mut Events) {
        if now_ns < self.now_ns {
            self.counters.host_clock_back.bump();
            events.note(Events::HOST_CLOCK_BACK);
            // Reader thread and ticking thread may overtake each other; more than T_stale is no such race.
            if self.now_ns - now_ns > self.parameters.stale_ns {
                self.latch(State::Fault, Cause::Clock);
            }
        }
        self.now_ns = self.now_ns.max(now_ns);
        let Some(freshness) = &self.freshness else { return };
        let is_aged =
            self.admission.base != TimeBase::Arrival && freshness.age_ns(self.now_ns) > self.parameters.age_max_ns;
        let is_silent = freshness.silence_ns(self.now_ns) >= self.parameters.stale_ns;
        let is_unknown =
            self.state == State::Unknown && self.now_ns - self.unknown_since_ns > self.parameters.window_ns;
        if is_silent || is_aged {
            (self.fresh_since_ns, self.calm_since_ns) = (None, None);
        }
        if is_silent {
            self.latch(State::Stale, Cause::Silence);
        } else if is_aged {
            self.latch(State::Stale, Cause::LateData);
        } else if is_unknown {
            self.latch(State::Stale, Cause::StillUnknown);
        }
    }

    fn take(&mut self, frame: &Frame, events: &mut Events) {
        let (base, error_ns) = (self.admission.base, self.admission.error_ns);
        let admitted = self.admission.admit(frame, &self.parameters, &self.window, &mut self.counters, events);
        if (base, error_ns) != (self.admission.base, self.admission.error_ns) {
            self.limits = self.derived();
        }
        if frame.frames_in_read > 1 {
            events.note(Events::RECEIVER_STALL);
        }
        match admitted {
            Admitted::New { sequence, t_ns } => {
                if !self.hear(frame, t_ns, events) {
                    return;
                }
                let bound = self.window.insert(Sample::new(sequence, t_ns, frame), &self.limits);
                self.ratio = bound.ratio;
                self.judge(bound);
                self.judge_reported(frame, events);
                self.proceed();
            }
            Admitted::Late { sequence, t_ns } => {
                let bound = self.window.insert(Sample::new(sequence, t_ns, frame), &self.limits);
                self.judge(bound);
            }
            Admitted::Resync { sequence, t_ns } => {
                self.restart(frame.arrival_ns, t_ns);
                self.window.insert(Sample::new(sequence, t_ns, frame), &self.limits);
            }
            Admitted::ClockFault => self.latch(State::Fault, Cause::Clock),
            Admitted::Nothing => {}
        }
        if events.contains(Events::RECEIVER_STALL) {
            self.counters.receiver_stalls.bump();
        }
    }

    /// Keeps the books of age for a new frame. `false`: its time is by a base that was just given up, and must not meet
    /// times by the next.
    fn hear(&mut self, frame: &Frame, t_ns: i64, events: &mut Events) -> bool {
        let freshness = self.freshness.get_or_insert_with(|| Freshness::new(&self.parameters, frame.arrival_ns, t_ns));
        let excess_ns = freshness.hear(frame.arrival_ns, t_ns);
        if self.admission.base != TimeBase::Arrival {
            if excess_ns > self.excess_ns + 2 * self.parameters.period_ns {
                events.note(Events::RECEIVER_STALL);
            }
            if excess_ns > self.parameters.age_max_ns {
                self.counters.late_data.bump();
                events.note(Events::LATE_DATA);
            }
        }
        self.excess_ns = excess_ns;
        let counts_alone = self.admission.base == TimeBase::Sequence && frame.source_ns.is_none();
        if counts_alone && self.period.hear(&self.parameters, frame.arrival_ns, t_ns) == Period::Wrong {
            self.admission.degrade(&self.parameters);
            self.admission.forget();
            self.limits = self.derived();
            self.counters.resyncs.bump();
            events.note(Events::DEGRADED);
            events.note(Events::RESYNC);
            self.restart(frame.arrival_ns, frame.arrival_ns as i64);
            return false;
        }
        true
    }

    /// After a resynchronisation nothing is known until two frames agree.
    fn restart(&mut self, arrival_ns: u64, t_ns: i64) {
        self.window.clear();
        self.freshness = Some(Freshness::new(&self.parameters, arrival_ns, t_ns));
        self.period.restart();
        (self.excess_ns, self.ratio) = (0, 0.0);
        self.reported.forget();
        (self.fresh_since_ns, self.calm_since_ns) = (None, None);
        if matches!(self.state, State::Ok | State::Warn) {
            self.state = State::Unknown;
            self.unknown_since_ns = self.now_ns;
        }
    }

    fn judge(&mut self, bound: Bound) {
        if self.window.is_tripped(self.parameters.trip_count, self.parameters.trip_of) {
            let proof = self.window.proof(&bound, &self.limits);
            self.latch_speed(Cause::Speed, bound.ratio, proof);
        }
    }

    fn judge_reported(&mut self, frame: &Frame, events: &mut Events) {
        let error_ns = self.admission.error_ns;
        let found = self.reported.judge(frame.reported_mm_s, &self.window, &self.parameters, error_ns);
        if found.timing_is_suspect {
            self.counters.timing_suspects.bump();
            events.note(Events::TIMING_SUSPECT);
        }
        if found.disagrees {
            self.counters.disagreements.bump();
            events.note(Events::DISAGREEMENT);
        }
        if let Some(ratio) = found.over {
            self.latch_speed(Cause::ReportedSpeed, ratio, None);
        }
        if found.is_broken {
            self.latch(State::Fault, Cause::Disagreement);
        }
    }

    /// After a new frame: from INIT and UNKNOWN to OK, between OK and WARN, and towards a reset.
    fn proceed(&mut self) {
        let is_aged = self.admission.base != TimeBase::Arrival && self.excess_ns > self.parameters.age_max_ns;
        if self.window.len() < 2 || is_aged {
            return;
        }
        let fresh_since = *self.fresh_since_ns.get_or_insert(self.now_ns);
        if self.ratio < CALM_RATIO {
            self.calm_since_ns.get_or_insert(self.now_ns);
        } else {
            self.calm_since_ns = None;
        }
        let level = if self.ratio >= WARN_RATIO { State::Warn } else { State::Ok };
        let has_settled = self.now_ns.saturating_sub(fresh_since) >= SETTLE_NS;
        let counts_alone = self.admission.base == TimeBase::Sequence && self.parameters.time_base == TimeBase::Sequence;
        match self.state {
            State::Init if has_settled && (!counts_alone || self.period.is_verified()) => self.state = level,
            State::Ok | State::Warn | State::Unknown => self.state = level,
            _ => {}
        }
    }

    /// The first trip stays, but a proven overspeed replaces it.
    fn latch(&mut self, state: State, cause: Cause) {
        if self.state.is_latched() {
            return;
        }
        self.state = state;
        self.trip = Some(self.trip_of(state, cause, 0.0, Channel::Tcp, None));
    }

    fn latch_speed(&mut self, cause: Cause, ratio: f64, proof: Option<(Channel, [Sample; 2])>) {
        if self.state == State::Overspeed {
            return;
        }
        self.state = State::Overspeed;
        let channel = proof.map_or(Channel::Reported, |(channel, _)| channel);
        self.trip = Some(self.trip_of(State::Overspeed, cause, ratio, channel, proof.map(|(_, samples)| samples)));
    }

    fn trip_of(&self, state: State, cause: Cause, ratio: f64, channel: Channel, proof: Option<[Sample; 2]>) -> Trip {
        let time_base = self.admission.base;
        Trip { state, cause, at_ns: self.now_ns, ratio, channel, proof, time_base, parameters_hash: self.hash }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_parameters_are_a_fault_that_no_reset_leaves() {
        let mut guard: SpeedGuard = SpeedGuard::new(Parameters::for_tcp(10_000_000, 1000.0)).unwrap();
        let step = |guard: &mut SpeedGuard, n: u64| {
            let t = n * 10_000_000;
            guard.update(&Frame { sequence: n as u32, source_ns: Some(t as i64), arrival_ns: t, ..Frame::default() });
            guard.tick(t).state
        };
        (0..20).for_each(|n| _ = step(&mut guard, n));
        guard.parameters.tcp_limit_mm_s = Some(2000.0);
        assert_eq!(step(&mut guard, 20), State::Fault);
        assert_eq!(guard.trip().map(|trip| trip.cause), Some(Cause::Configuration));
        (21..60).for_each(|n| _ = step(&mut guard, n));
        assert!(guard.reset(591_000_000).is_err());
        guard.parameters.tcp_limit_mm_s = Some(1000.0);
        assert!(guard.reset(591_000_000).is_ok());
        // The copy that the inner loop reads: with a reach of 0 no pair is compared.
        guard.limits.reach = 0;
        assert_eq!(step(&mut guard, 60), State::Fault);
        assert_eq!(guard.trip().map(|trip| trip.cause), Some(Cause::Configuration));
    }
}
