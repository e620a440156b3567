//! The limiter's functions for C: up to 8 axes.

use super::{Handle, NO_HANDLE, code, fail, open, place};
use crate::{
    ledger::{Fate, Reason},
    setpoint::{Limiter, Limits, Policy},
};

const AXES: usize = 8;

pub type LimiterHandle = Handle<63>;
type Axes = Limiter<AXES>;

/// `taut_limits_t`. Axes that are not used stay 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CLimits {
    period_ns: u64,
    margin: f64,
    position_min: [f64; AXES],
    position_max: [f64; AXES],
    velocity_max: [f64; AXES],
    axes: u32,
    scales: u32,
}

/// `taut_shaped_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CShaped {
    setpoint: [f64; AXES],
    amount: f64,
    /// 0 passed, 1 modified, 2 held.
    fate: u32,
    reason: u32,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_limiter_init(
    handle: *mut LimiterHandle,
    limits: *const CLimits,
    measured: *const [f64; AXES],
    message: *mut u8,
    capacity: usize,
) -> i32 {
    // SAFETY: null or valid.
    unsafe {
        let (false, Some(c), Some(measured)) = (handle.is_null(), limits.as_ref(), measured.as_ref()) else {
            return NO_HANDLE;
        };
        (*handle).magic = 0;
        // An axis that is not used stands still at 0, within any limits.
        let of = |axis: usize, used: f64, unused: f64| if axis < c.axes as usize { used } else { unused };
        let limits = Limits {
            period_ns: c.period_ns,
            position_min: core::array::from_fn(|axis| of(axis, c.position_min[axis], -1e9)),
            position_max: core::array::from_fn(|axis| of(axis, c.position_max[axis], 1e9)),
            margin: c.margin,
            velocity_max: core::array::from_fn(|axis| of(axis, c.velocity_max[axis], 1.0)),
            position_reason: Reason::PositionLimit,
        };
        let policy = if c.scales != 0 { Policy::Scale } else { Policy::Clamp };
        match Axes::new(limits, policy, *measured) {
            Ok(limiter) => place(handle, limiter),
            Err(error) => return fail(error, message, capacity),
        }
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_limiter_shape(
    handle: *mut LimiterHandle,
    target: *const [f64; AXES],
    shaped: *mut CShaped,
) -> i32 {
    // SAFETY: passed on.
    unsafe { taut_limiter_shape_near(handle, target, 1.0, shaped) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_limiter_shape_near(
    handle: *mut LimiterHandle,
    target: *const [f64; AXES],
    share: f64,
    shaped: *mut CShaped,
) -> i32 {
    // SAFETY: null or valid.
    unsafe {
        let (Some(limiter), Some(target), false) = (open::<Axes, _>(handle), target.as_ref(), shaped.is_null()) else {
            return NO_HANDLE;
        };
        match limiter.shape_near(target, share) {
            Ok(s) => {
                let (fate, reason) = match s.fate {
                    Fate::Passed => (0, 0),
                    Fate::Held(reason) => (2, reason as u32),
                    other => (1, other.reason().map_or(0, |reason| reason as u32)),
                };
                shaped.write(CShaped { setpoint: s.setpoint, amount: s.amount, fate, reason });
                0
            }
            Err(error) => code(error),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_limiter_rehome(handle: *mut LimiterHandle, measured: *const [f64; AXES]) -> i32 {
    // SAFETY: null or valid.
    let (Some(limiter), Some(measured)) = (unsafe { (open::<Axes, _>(handle), measured.as_ref()) }) else {
        return NO_HANDLE;
    };
    limiter.rehome(*measured).map_or_else(code, |()| 0)
}
