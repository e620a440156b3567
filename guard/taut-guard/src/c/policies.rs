//! The policies beside the limiter for C: playout, approach, decimation, keep-alive, retry. Up to 8 axes.

use super::{Handle, NO_HANDLE, fail, open, place};
use crate::{
    error::Error,
    setpoint::{Approach, Decimate, KeepAlive, Playout, Retry, Source},
};

const AXES: usize = 8;

pub type PlayoutHandle = Handle<303>;
pub type ApproachHandle = Handle<7>;
pub type DecimateHandle = Handle<7>;
pub type KeepAliveHandle = Handle<15>;
pub type RetryHandle = Handle<7>;

/// `taut_sampled_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CSampled {
    setpoint: [f64; AXES],
    added_delay_ns: u64,
    /// 0 interpolated, 1 extrapolated, 2 slowing, 3 resting.
    source: u32,
    reserved: u32,
}

/// Puts what was constructed into its handle, or tells why it was not.
unsafe fn construct<T, const WORDS: usize>(
    handle: *mut Handle<WORDS>,
    made: Result<T, Error>,
    message: *mut u8,
    capacity: usize,
) -> i32 {
    if handle.is_null() {
        return NO_HANDLE;
    }
    // SAFETY: valid, as the header asks.
    unsafe {
        (*handle).magic = 0;
        match made {
            Ok(value) => place(handle, value),
            Err(error) => return fail(error, message, capacity),
        }
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_playout_init(
    handle: *mut PlayoutHandle,
    period_ns: u64,
    jitter_ns: u64,
    delay_most_ns: u64,
    message: *mut u8,
    capacity: usize,
) -> i32 {
    let made = Playout::<AXES>::new(period_ns, jitter_ns, delay_most_ns);
    // SAFETY: passed on.
    unsafe { construct(handle, made, message, capacity) }
}

/// 1 if it is of use; 0: out of order, or not finite.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_playout_push(
    handle: *mut PlayoutHandle,
    produced_ns: i64,
    setpoint: *const [f64; AXES],
    arrival_ns: u64,
) -> i32 {
    // SAFETY: null or valid.
    match unsafe { (open::<Playout<AXES>, _>(handle), setpoint.as_ref()) } {
        (Some(playout), Some(setpoint)) => playout.push(produced_ns, *setpoint, arrival_ns).into(),
        _ => NO_HANDLE,
    }
}

/// 1 and the position, or 0 before the first two setpoints are due.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_playout_play(handle: *mut PlayoutHandle, now_ns: u64, sampled: *mut CSampled) -> i32 {
    // SAFETY: null or valid.
    unsafe {
        let (Some(playout), false) = (open::<Playout<AXES>, _>(handle), sampled.is_null()) else { return NO_HANDLE };
        let Some(played) = playout.play(now_ns) else { return 0 };
        let source = match played.source {
            Source::Interpolated => 0,
            Source::Extrapolated => 1,
            Source::Slowing => 2,
            Source::Resting => 3,
        };
        let added_delay_ns = played.added_delay_ns;
        sampled.write(CSampled { setpoint: played.setpoint, added_delay_ns, source, reserved: 0 });
    }
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_approach_init(
    handle: *mut ApproachHandle,
    stop_at: f64,
    resume_at: f64,
    slow_at: f64,
    message: *mut u8,
    capacity: usize,
) -> i32 {
    // SAFETY: passed on.
    unsafe { construct(handle, Approach::new(stop_at, resume_at, slow_at), message, capacity) }
}

/// 0 from a handle that is none: motion is held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_approach_share(handle: *mut ApproachHandle, distance: f64, next: f64) -> f64 {
    // SAFETY: null or valid.
    unsafe { open::<Approach, _>(handle) }.map_or(0.0, |approach| approach.share(distance, next))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_decimate_init(
    handle: *mut DecimateHandle,
    period_ns: u64,
    message: *mut u8,
    capacity: usize,
) -> i32 {
    // SAFETY: passed on.
    unsafe { construct(handle, Decimate::new(period_ns), message, capacity) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_decimate_keeps(handle: *mut DecimateHandle, produced_ns: i64) -> i32 {
    // SAFETY: null or valid.
    unsafe { open::<Decimate, _>(handle) }.map_or(NO_HANDLE, |decimate| decimate.keeps(produced_ns).into())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_keep_alive_init(
    handle: *mut KeepAliveHandle,
    deadband: f64,
    watchdog_ns: u64,
    message: *mut u8,
    capacity: usize,
) -> i32 {
    // SAFETY: passed on.
    unsafe { construct(handle, KeepAlive::<AXES>::new(deadband, watchdog_ns), message, capacity) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_keep_alive_is_due(
    handle: *mut KeepAliveHandle,
    setpoint: *const [f64; AXES],
    period_ns: u64,
    now_ns: u64,
) -> i32 {
    // SAFETY: null or valid.
    match unsafe { (open::<KeepAlive<AXES>, _>(handle), setpoint.as_ref()) } {
        (Some(keep_alive), Some(setpoint)) => keep_alive.is_due(setpoint, period_ns, now_ns).into(),
        _ => NO_HANDLE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_retry_init(
    handle: *mut RetryHandle,
    period_ns: u64,
    attempts_max: u32,
    message: *mut u8,
    capacity: usize,
) -> i32 {
    // SAFETY: passed on.
    unsafe { construct(handle, Retry::new(period_ns, attempts_max), message, capacity) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_retry_begin(handle: *mut RetryHandle, now_ns: u64) {
    // SAFETY: null or valid.
    if let Some(retry) = unsafe { open::<Retry, _>(handle) } {
        retry.begin(now_ns);
    }
}

/// 1 if another attempt is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_retry_again(handle: *mut RetryHandle, now_ns: u64) -> i32 {
    // SAFETY: null or valid.
    unsafe { open::<Retry, _>(handle) }.map_or(NO_HANDLE, |retry| retry.again(now_ns).into())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_retry_left_ns(handle: *mut RetryHandle, now_ns: u64) -> u64 {
    // SAFETY: null or valid.
    unsafe { open::<Retry, _>(handle) }.map_or(0, |retry| retry.left_ns(now_ns))
}
