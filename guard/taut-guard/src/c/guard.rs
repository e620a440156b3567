//! The speed guard's functions for C.

use super::{Handle, NO_HANDLE, fail, open, place};
use crate::{
    AdmissionCounters, BLACK_BOX_FRAMES, BlackBoxEntry, Channel, Frame, MAX_JOINTS, Parameters, Sample, SpeedGuard,
    State, TimeBase, Trip, Verdict, heartbeat,
};

pub type GuardHandle = Handle<2047>;

/// `taut_guard_parameters_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CParameters {
    period_ns: u64,
    sequence_modulus: u64,
    source_error_ns: u64,
    source_error_max_ns: u64,
    window_ns: u64,
    stale_ns: u64,
    age_max_ns: u64,
    tick_ns: u64,
    transport_max_ns: u64,
    arrival_jitter_ns: u64,
    tcp_limit_mm_s: f64,
    tcp_error_mm: f64,
    joint_limits_rad_s: [f64; MAX_JOINTS],
    joint_error_rad: f64,
    acceleration_max_mm_s2: f64,
    reported_tolerance_mm_s: f64,
    time_base: u32,
    drift_ppm: u32,
    joint_count: u32,
    trip_count: u32,
    trip_of: u32,
    lost_max: u32,
    source_is_monotonic: u32,
    has_tcp_limit: u32,
    path_length: u32,
    reserved: u32,
}

impl From<Parameters> for CParameters {
    fn from(p: Parameters) -> CParameters {
        CParameters {
            period_ns: p.period_ns,
            sequence_modulus: p.sequence_modulus,
            source_error_ns: p.source_error_ns,
            source_error_max_ns: p.source_error_max_ns,
            window_ns: p.window_ns,
            stale_ns: p.stale_ns,
            age_max_ns: p.age_max_ns,
            tick_ns: p.tick_ns,
            transport_max_ns: p.transport_max_ns,
            arrival_jitter_ns: p.arrival_jitter_ns,
            tcp_limit_mm_s: p.tcp_limit_mm_s.unwrap_or(0.0),
            tcp_error_mm: p.tcp_error_mm,
            joint_limits_rad_s: p.joint_limits_rad_s,
            joint_error_rad: p.joint_error_rad,
            acceleration_max_mm_s2: p.acceleration_max_mm_s2,
            reported_tolerance_mm_s: p.reported_tolerance_mm_s,
            time_base: p.time_base as u32,
            drift_ppm: p.drift_ppm,
            joint_count: p.joint_count as u32,
            trip_count: p.trip_count,
            trip_of: p.trip_of,
            lost_max: p.lost_max,
            source_is_monotonic: p.source_is_monotonic.into(),
            has_tcp_limit: p.tcp_limit_mm_s.is_some().into(),
            path_length: p.path_length.into(),
            reserved: 0,
        }
    }
}

impl From<CParameters> for Parameters {
    fn from(c: CParameters) -> Parameters {
        Parameters {
            period_ns: c.period_ns,
            sequence_modulus: c.sequence_modulus,
            // An unknown number is the worst base, whose degraded mode says so.
            time_base: match c.time_base {
                0 => TimeBase::Source,
                1 => TimeBase::Sequence,
                _ => TimeBase::Arrival,
            },
            source_is_monotonic: c.source_is_monotonic != 0,
            source_error_ns: c.source_error_ns,
            source_error_max_ns: c.source_error_max_ns,
            drift_ppm: c.drift_ppm,
            tcp_limit_mm_s: (c.has_tcp_limit != 0).then_some(c.tcp_limit_mm_s),
            tcp_error_mm: c.tcp_error_mm,
            joint_count: c.joint_count as usize,
            joint_limits_rad_s: c.joint_limits_rad_s,
            joint_error_rad: c.joint_error_rad,
            path_length: c.path_length != 0,
            window_ns: c.window_ns,
            trip_count: c.trip_count,
            trip_of: c.trip_of,
            stale_ns: c.stale_ns,
            age_max_ns: c.age_max_ns,
            tick_ns: c.tick_ns,
            lost_max: c.lost_max,
            transport_max_ns: c.transport_max_ns,
            arrival_jitter_ns: c.arrival_jitter_ns,
            acceleration_max_mm_s2: c.acceleration_max_mm_s2,
            reported_tolerance_mm_s: c.reported_tolerance_mm_s,
        }
    }
}

/// `taut_guard_frame_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CFrame {
    arrival_ns: u64,
    source_ns: i64,
    tcp_mm: [f64; 3],
    joints_rad: [f64; MAX_JOINTS],
    reported_mm_s: f64,
    sequence: u32,
    frames_in_read: u16,
    has_source: u8,
    has_reported: u8,
}

impl From<CFrame> for Frame {
    fn from(c: CFrame) -> Frame {
        Frame {
            sequence: c.sequence,
            source_ns: (c.has_source != 0).then_some(c.source_ns),
            arrival_ns: c.arrival_ns,
            tcp_mm: c.tcp_mm,
            joints_rad: c.joints_rad,
            reported_mm_s: (c.has_reported != 0).then_some(c.reported_mm_s),
            frames_in_read: c.frames_in_read,
        }
    }
}

impl From<Frame> for CFrame {
    fn from(f: Frame) -> CFrame {
        CFrame {
            arrival_ns: f.arrival_ns,
            source_ns: f.source_ns.unwrap_or(0),
            tcp_mm: f.tcp_mm,
            joints_rad: f.joints_rad,
            reported_mm_s: f.reported_mm_s.unwrap_or(0.0),
            sequence: f.sequence,
            frames_in_read: f.frames_in_read,
            has_source: f.source_ns.is_some().into(),
            has_reported: f.reported_mm_s.is_some().into(),
        }
    }
}

/// `taut_guard_verdict_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CVerdict {
    ratio: f64,
    state: u32,
    events: u32,
    enables_motion: u32,
    is_degraded: u32,
}

impl From<Verdict> for CVerdict {
    fn from(verdict: Verdict) -> CVerdict {
        CVerdict {
            ratio: verdict.ratio,
            state: verdict.state as u32,
            events: verdict.events.0,
            enables_motion: verdict.state.enables_motion().into(),
            is_degraded: verdict.is_degraded.into(),
        }
    }
}

#[cfg(test)]
impl CVerdict {
    pub fn enables_motion(&self) -> u32 {
        self.enables_motion
    }
}

/// What a guard that is none says: stop.
const NONE: CVerdict =
    CVerdict { ratio: 0.0, state: State::Fault as u32, events: 0, enables_motion: 0, is_degraded: 0 };

/// `taut_guard_trip_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CTrip {
    at_ns: u64,
    parameters_hash: u64,
    span_ns: i64,
    ratio: f64,
    state: u32,
    cause: u32,
    /// 0 the tool, 1 … 8 a joint, 255 the reported speed.
    channel: u32,
    has_proof: u32,
    time_base: u32,
    reserved: u32,
    proof: [CSample; 2],
}

/// `taut_guard_sample_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CSample {
    sequence: i64,
    t_ns: i64,
    tcp_mm: [f64; 3],
    joints_rad: [f64; MAX_JOINTS],
}

impl From<Sample> for CSample {
    fn from(sample: Sample) -> CSample {
        let Sample { sequence, t_ns, tcp_mm, joints_rad, .. } = sample;
        CSample { sequence, t_ns, tcp_mm, joints_rad }
    }
}

impl From<Trip> for CTrip {
    fn from(trip: Trip) -> CTrip {
        CTrip {
            at_ns: trip.at_ns,
            parameters_hash: trip.parameters_hash,
            span_ns: trip.span_ns(),
            ratio: trip.ratio,
            state: trip.state as u32,
            cause: trip.cause as u32,
            channel: match trip.channel {
                Channel::Tcp => 0,
                Channel::Joint(joint) => u32::from(joint) + 1,
                Channel::Reported => 255,
            },
            has_proof: trip.proof.is_some().into(),
            time_base: trip.time_base as u32,
            reserved: 0,
            proof: trip.proof.map_or_else(Default::default, |samples| samples.map(CSample::from)),
        }
    }
}

/// `taut_guard_black_box_entry_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CBlackBoxEntry {
    frame: CFrame,
    ratio: f64,
    state: u32,
    events: u32,
}

impl From<&BlackBoxEntry> for CBlackBoxEntry {
    fn from(entry: &BlackBoxEntry) -> CBlackBoxEntry {
        CBlackBoxEntry {
            frame: entry.frame.into(),
            ratio: entry.ratio,
            state: entry.state as u32,
            events: entry.events.0,
        }
    }
}

unsafe fn guard<'a>(handle: *mut GuardHandle) -> Option<&'a mut SpeedGuard> {
    // SAFETY: passed on.
    unsafe { open(handle) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_parameters_for_tcp(period_ns: u64, limit_mm_s: f64) -> CParameters {
    Parameters::for_tcp(period_ns, limit_mm_s).into()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_parameters_hash(parameters: *const CParameters) -> u64 {
    // SAFETY: null or valid.
    unsafe { parameters.as_ref() }.map_or(0, |parameters| Parameters::from(*parameters).hash())
}

/// -1 if no window can prove it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_detection_bound_ns(
    parameters: *const CParameters,
    ratio: f64,
    lost: u32,
    delay_ns: u64,
) -> i64 {
    // SAFETY: null or valid.
    let Some(parameters) = (unsafe { parameters.as_ref() }) else { return NO_HANDLE.into() };
    let parameters = Parameters::from(*parameters);
    if parameters.check().is_err() {
        return -1;
    }
    parameters.detection_bound_ns(ratio, lost, delay_ns).map_or(-1, |ns| ns as i64)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_init(
    handle: *mut GuardHandle,
    parameters: *const CParameters,
    message: *mut u8,
    capacity: usize,
) -> i32 {
    // SAFETY: null or valid, as the header asks.
    unsafe {
        let (false, Some(parameters)) = (handle.is_null(), parameters.as_ref()) else { return NO_HANDLE };
        (*handle).magic = 0;
        match SpeedGuard::<u32>::new((*parameters).into()) {
            Ok(guard) => place(handle, guard),
            Err(error) => return fail(error, message, capacity),
        }
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_update(handle: *mut GuardHandle, frame: *const CFrame) -> CVerdict {
    // SAFETY: null or valid.
    match unsafe { (guard(handle), frame.as_ref()) } {
        (Some(guard), Some(frame)) => guard.update(&(*frame).into()).into(),
        _ => NONE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_tick(handle: *mut GuardHandle, now_ns: u64) -> CVerdict {
    // SAFETY: null or valid.
    unsafe { guard(handle) }.map_or(NONE, |guard| guard.tick(now_ns).into())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_reset(
    handle: *mut GuardHandle,
    now_ns: u64,
    message: *mut u8,
    capacity: usize,
) -> i32 {
    // SAFETY: null or valid.
    unsafe {
        let Some(guard) = guard(handle) else { return NO_HANDLE };
        guard.reset(now_ns).map_or_else(|error| fail(error, message, capacity), |()| 0)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_state(handle: *mut GuardHandle) -> u32 {
    // SAFETY: null or valid.
    unsafe { guard(handle) }.map_or(State::Fault, |guard| guard.state()) as u32
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_count_bad_frame(handle: *mut GuardHandle) {
    // SAFETY: null or valid.
    if let Some(guard) = unsafe { guard(handle) } {
        guard.count_bad_frame();
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_count_parser_resync(handle: *mut GuardHandle, octets: u64) {
    // SAFETY: null or valid.
    if let Some(guard) = unsafe { guard(handle) } {
        guard.count_parser_resync(octets);
    }
}

/// 1 and the trip, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_trip(handle: *mut GuardHandle, trip: *mut CTrip) -> i32 {
    // SAFETY: null or valid.
    unsafe {
        let Some(guard) = guard(handle) else { return NO_HANDLE };
        let (Some(tripped), false) = (guard.trip(), trip.is_null()) else { return 0 };
        trip.write((*tripped).into());
    }
    1
}

/// How many entries were written, oldest first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_black_box(
    handle: *mut GuardHandle,
    entries: *mut CBlackBoxEntry,
    capacity: usize,
) -> usize {
    // SAFETY: null or valid for `capacity` entries.
    let (Some(guard), false) = (unsafe { guard(handle) }, entries.is_null()) else { return 0 };
    let mut written = 0;
    for entry in guard.black_box().take(capacity.min(BLACK_BOX_FRAMES)) {
        // SAFETY: below the capacity.
        unsafe { entries.add(written).write(entry.into()) };
        written += 1;
    }
    written
}

#[unsafe(no_mangle)]
pub extern "C" fn taut_guard_counter_count() -> usize {
    AdmissionCounters::<u32>::NAMES.len()
}

/// The name, not NUL-terminated, with its length; null beyond the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_counter_name(index: usize, length: *mut usize) -> *const u8 {
    let name = AdmissionCounters::<u32>::NAMES.get(index).copied();
    // SAFETY: null or valid.
    if let Some(length) = unsafe { length.as_mut() } {
        *length = name.map_or(0, str::len);
    }
    name.map_or(core::ptr::null(), str::as_ptr)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_counter(handle: *mut GuardHandle, index: usize) -> u64 {
    // SAFETY: null or valid.
    unsafe { guard(handle) }.and_then(|guard| guard.counters().values().nth(index)).unwrap_or(0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_time_base(handle: *mut GuardHandle) -> u32 {
    // SAFETY: null or valid.
    unsafe { guard(handle) }.map_or(TimeBase::Arrival, |guard| guard.time_base()) as u32
}

/// Negative if there are not yet five samples.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_display_speed_mm_s(handle: *mut GuardHandle) -> f64 {
    // SAFETY: null or valid.
    unsafe { guard(handle) }.and_then(|guard| guard.display_speed_mm_s()).unwrap_or(-1.0)
}

/// 1 and the answer, or 0: stop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_guard_heartbeat(
    handle: *mut GuardHandle,
    challenge: u32,
    now_ns: u64,
    answer: *mut u32,
) -> i32 {
    // SAFETY: null or valid.
    let (Some(guard), Some(answer)) = (unsafe { (guard(handle), answer.as_mut()) }) else { return NO_HANDLE };
    match heartbeat::answer(guard, challenge, now_ns) {
        Some(response) => {
            *answer = response;
            1
        }
        None => 0,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn taut_guard_heartbeat_expected(parameters_hash: u64, challenge: u32) -> u32 {
    heartbeat::expected(parameters_hash, challenge)
}
