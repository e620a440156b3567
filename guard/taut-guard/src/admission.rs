//! Which frames may be measured with, and when the robot sampled them. Every anomaly of a stream is counted here, and
//! none can appear as speed.

use crate::{
    counters::{Width, counters},
    frame::Frame,
    parameters::{Parameters, TimeBase},
    state::Events,
    window::Window,
};

counters!(
    /// What became of the frames, and what was odd about them. Counters stop at their maximum.
    AdmissionCounters {
        /// Frames handed to the guard.
        frames,
        /// Newer than all before: measured with.
        new_frames,
        /// Broken by the parser's account, without a needed stamp, or with an impossible count.
        bad_frames,
        /// Known already.
        duplicates,
        /// Out of order, but inserted at their place.
        late_inserted,
        /// Out of order and too late.
        late_discarded,
        /// Counts that never came, or came late.
        lost,
        /// Resynchronisations, all causes.
        resyncs,
        /// … because the count may have wrapped unseen in a silence.
        ambiguous_wraps,
        /// … because the count jumped.
        sequence_jumps,
        /// … because the robot's clock stepped.
        clock_steps,
        /// Stamps further than e from count × period; e was escalated.
        residuals_over_e,
        /// Octets that the frame parser skipped to find a frame again.
        parser_resync_octets,
        /// Reads with several frames, and jumps of age.
        receiver_stalls,
        /// Frames older than A_max.
        late_data,
        /// Changes of speed that the arm cannot make.
        timing_suspects,
        /// Reported speeds outside the measured bounds.
        disagreements,
        /// Steps back of the host's clock.
        host_clock_back,
    }
);

/// What a frame is good for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Admitted {
    /// The newest sample, at this place and time.
    New { sequence: i64, t_ns: i64 },
    /// An older sample that the window still has a place for.
    Late { sequence: i64, t_ns: i64 },
    /// The first sample of a window that must be cleared.
    Resync { sequence: i64, t_ns: i64 },
    /// Nothing; it is counted.
    Nothing,
    /// A clock that is never set has stepped.
    ClockFault,
}

/// The newest frame, and what time is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    newest: Option<Newest>,
    pub base: TimeBase,
    /// e as it stands, escalated or not.
    pub error_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    sequence: i64,
    count: u32,
    source_ns: Option<i64>,
    arrival_ns: u64,
}

/// A frame's distance from the newest one.
struct Step {
    counts: i64,
    source_ns: Option<i64>,
    arrival_ns: i64,
}

impl Admission {
    pub fn new(parameters: &Parameters) -> Admission {
        let base = parameters.time_base;
        Admission { newest: None, base, error_ns: parameters.error_ns(base) }
    }

    /// Starts again with the next frame, on the time base it had.
    pub fn forget(&mut self) {
        self.newest = None;
    }

    /// Goes over to arrival time.
    pub fn degrade(&mut self, parameters: &Parameters) {
        self.base = TimeBase::Arrival;
        self.error_ns = parameters.error_ns(TimeBase::Arrival);
    }

    pub fn admit<W: Width>(
        &mut self,
        frame: &Frame,
        parameters: &Parameters,
        window: &Window,
        counters: &mut AdmissionCounters<W>,
        events: &mut Events,
    ) -> Admitted {
        let misses_stamp = parameters.time_base == TimeBase::Source && frame.source_ns.is_none();
        let modulus = parameters.sequence_modulus;
        if misses_stamp || modulus != 0 && u64::from(frame.sequence) >= modulus {
            counters.bad_frames.bump();
            events.note(Events::BAD_FRAME);
            return Admitted::Nothing;
        }
        let Some(newest) = self.newest else {
            let (sequence, t_ns) = self.begin(frame, parameters, 0);
            counters.new_frames.bump();
            return Admitted::New { sequence, t_ns };
        };
        let step = self.step(&newest, frame, parameters);
        let period = parameters.period_ns as i64;
        let bound = parameters.transport_max_ns as i64 + period;

        if modulus != 0 && step.arrival_ns > (modulus as i64 / 2 - 1) * period {
            counters.ambiguous_wraps.bump();
            return self.resync(frame, parameters, &newest, counters, events);
        }
        if step.counts == 0 && !(modulus == 0 && self.steps_back(&step, bound)) {
            counters.duplicates.bump();
            events.note(Events::DUPLICATE);
            return Admitted::Nothing;
        }
        let count_is_plausible = (step.counts * period - step.arrival_ns).abs() <= bound || modulus == 0;
        match step.source_ns {
            Some(source_ns) if modulus != 0 => {
                let by_count = step.counts * period;
                let drift = by_count.abs() / 1_000_000 * i64::from(parameters.drift_ppm);
                let residual = ((source_ns - by_count).abs() - drift).max(0) as u64;
                if residual > 2 * parameters.source_error_max_ns.max(self.stamp_error_ns(parameters)) {
                    if step.counts < 0 && source_ns < 0 {
                        return discard(counters, events);
                    }
                    if count_is_plausible {
                        return self.clock_step(frame, parameters, &newest, counters, events);
                    }
                    counters.sequence_jumps.bump();
                    return self.resync(frame, parameters, &newest, counters, events);
                }
                if self.base == TimeBase::Source {
                    self.watch_residual(residual, counters, events);
                }
            }
            Some(source_ns)
                if (source_ns - step.arrival_ns).abs() > bound && (source_ns > 0 || self.steps_back(&step, bound)) =>
            {
                return self.clock_step(frame, parameters, &newest, counters, events);
            }
            None if step.counts > 0 && !count_is_plausible => {
                counters.sequence_jumps.bump();
                return self.resync(frame, parameters, &newest, counters, events);
            }
            _ => {}
        }
        if step.counts < 0 {
            return self.admit_late(frame, &newest, step.counts, parameters, window, counters, events);
        }
        if step.counts > 1 {
            counters.lost.add(step.counts as u64 - 1);
            events.note(Events::GAP);
        }
        let sequence = newest.sequence + step.counts;
        let t_ns = self.time_of(frame, sequence, parameters);
        if self.drifted_in_window(sequence, t_ns, parameters, window, counters, events) {
            self.degrade(parameters);
            events.note(Events::DEGRADED);
            return self.resync(frame, parameters, &newest, counters, events);
        }
        self.remember(frame, sequence);
        counters.new_frames.bump();
        Admitted::New { sequence, t_ns }
    }

    fn step(&self, newest: &Newest, frame: &Frame, parameters: &Parameters) -> Step {
        let source_ns = frame.source_ns.zip(newest.source_ns).map(|(now, before)| now - before);
        let arrival_ns = frame.arrival_ns as i64 - newest.arrival_ns as i64;
        let period = parameters.period_ns as i64;
        let counts = match (parameters.sequence_modulus as i64, source_ns) {
            (0, Some(source_ns)) => (source_ns + period / 2).div_euclid(period),
            (0, None) => 1,
            (modulus, _) => {
                // Both are below the modulus: a sum in place of a division, the slowest thing on the path.
                let ahead = i64::from(frame.sequence) - i64::from(newest.count);
                let forward = if ahead < 0 { ahead + modulus } else { ahead };
                if forward > modulus / 2 { forward - modulus } else { forward }
            }
        };
        Step { counts, source_ns, arrival_ns }
    }

    /// Without a count: whether the stamp went back further than any transport explains.
    fn steps_back(&self, step: &Step, bound: i64) -> bool {
        step.source_ns.is_some_and(|source_ns| source_ns < -bound)
    }

    fn stamp_error_ns(&self, parameters: &Parameters) -> u64 {
        if self.base == TimeBase::Source { self.error_ns } else { parameters.source_error_ns }
    }

    /// e is larger than stated: widen it, which lowers every bound, and report it.
    fn watch_residual<W: Width>(&mut self, residual: u64, counters: &mut AdmissionCounters<W>, events: &mut Events) {
        if residual > 2 * self.error_ns {
            self.error_ns = residual.div_ceil(2);
            counters.residuals_over_e.bump();
            events.note(Events::RESIDUAL);
        }
    }

    /// Stamps may each keep within e of their neighbours and yet run away from count × period: then neither is known
    /// to be right. `true` if even the escalated e does not cover it.
    fn drifted_in_window<W: Width>(
        &mut self,
        sequence: i64,
        t_ns: i64,
        parameters: &Parameters,
        window: &Window,
        counters: &mut AdmissionCounters<W>,
        events: &mut Events,
    ) -> bool {
        let Some(oldest) = window.oldest() else { return false };
        if self.base != TimeBase::Source || parameters.sequence_modulus == 0 {
            return false;
        }
        let by_count = (sequence - oldest.sequence) * parameters.period_ns as i64;
        let drift = by_count / 1_000_000 * i64::from(parameters.drift_ppm);
        let residual = ((t_ns - oldest.t_ns - by_count).abs() - drift).max(0) as u64;
        if residual > 2 * parameters.source_error_max_ns {
            return true;
        }
        self.watch_residual(residual, counters, events);
        false
    }

    #[expect(clippy::too_many_arguments, reason = "one frame and its whole context")]
    fn admit_late<W: Width>(
        &mut self,
        frame: &Frame,
        newest: &Newest,
        counts: i64,
        parameters: &Parameters,
        window: &Window,
        counters: &mut AdmissionCounters<W>,
        events: &mut Events,
    ) -> Admitted {
        let sequence = newest.sequence + counts;
        if window.contains(sequence) {
            counters.duplicates.bump();
            events.note(Events::DUPLICATE);
            return Admitted::Nothing;
        }
        let t_ns = self.time_of(frame, sequence, parameters);
        let fits = window.newest().zip(window.oldest()).is_some_and(|(newest, oldest)| {
            newest.t_ns - t_ns <= parameters.window_ns as i64
                && (window.len() < crate::capacity::CAPACITY || sequence > oldest.sequence)
        });
        if self.base == TimeBase::Arrival || !fits {
            return discard(counters, events);
        }
        counters.late_inserted.bump();
        events.note(Events::LATE_INSERTED);
        Admitted::Late { sequence, t_ns }
    }

    fn clock_step<W: Width>(
        &mut self,
        frame: &Frame,
        parameters: &Parameters,
        newest: &Newest,
        counters: &mut AdmissionCounters<W>,
        events: &mut Events,
    ) -> Admitted {
        counters.clock_steps.bump();
        events.note(Events::CLOCK_STEP);
        if parameters.source_is_monotonic {
            return Admitted::ClockFault;
        }
        if self.base == TimeBase::Source && parameters.sequence_modulus != 0 {
            self.base = TimeBase::Sequence;
            self.error_ns = parameters.source_error_ns;
        }
        self.resync(frame, parameters, newest, counters, events)
    }

    fn resync<W: Width>(
        &mut self,
        frame: &Frame,
        parameters: &Parameters,
        newest: &Newest,
        counters: &mut AdmissionCounters<W>,
        events: &mut Events,
    ) -> Admitted {
        counters.resyncs.bump();
        counters.new_frames.bump();
        events.note(Events::RESYNC);
        let (sequence, t_ns) = self.begin(frame, parameters, newest.sequence + 1);
        Admitted::Resync { sequence, t_ns }
    }

    fn begin(&mut self, frame: &Frame, parameters: &Parameters, sequence: i64) -> (i64, i64) {
        self.remember(frame, sequence);
        (sequence, self.time_of(frame, sequence, parameters))
    }

    fn remember(&mut self, frame: &Frame, sequence: i64) {
        let Frame { sequence: count, source_ns, arrival_ns, .. } = *frame;
        self.newest = Some(Newest { sequence, count, source_ns, arrival_ns });
    }

    fn time_of(&self, frame: &Frame, sequence: i64, parameters: &Parameters) -> i64 {
        match (self.base, frame.source_ns) {
            (TimeBase::Source, Some(source_ns)) => source_ns,
            (TimeBase::Arrival, _) => frame.arrival_ns as i64,
            _ => sequence * parameters.period_ns as i64,
        }
    }
}

fn discard<W: Width>(counters: &mut AdmissionCounters<W>, events: &mut Events) -> Admitted {
    counters.late_discarded.bump();
    events.note(Events::LATE_DISCARDED);
    Admitted::Nothing
}
