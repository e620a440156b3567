//! The ledger's functions for C: 64 setpoints in flight.

use super::{Handle, NO_HANDLE, code, open, place};
use crate::ledger::{Fate, Ledger, Reason};

pub type LedgerHandle = Handle<511>;
type Books = Ledger<64, u64>;

/// `taut_balance_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CBalance {
    produced: u64,
    acknowledged: u64,
    superseded: u64,
    rejected: u64,
    in_flight: u64,
    silent: u64,
    /// NaN if nothing ended in the last 10 s.
    delivered_share: f64,
    is_alarmed: u32,
    is_saturated: u32,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_ledger_init(handle: *mut LedgerHandle) -> i32 {
    if handle.is_null() {
        return NO_HANDLE;
    }
    // SAFETY: valid, as the header asks.
    unsafe { place(handle, Books::new()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_ledger_produce(handle: *mut LedgerHandle, id: u64, now_ns: u64) -> i32 {
    // SAFETY: null or valid.
    let Some(books) = (unsafe { open::<Books, _>(handle) }) else { return NO_HANDLE };
    books.produce(id, now_ns).map_or_else(code, |()| 0)
}

/// Fates: 0 passed, 1 modified, 2 held, 3 superseded, 4 rejected, 5 lost. -12: no such fate or reason.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_ledger_end(
    handle: *mut LedgerHandle,
    id: u64,
    fate: u32,
    reason: u32,
    now_ns: u64,
) -> i32 {
    // SAFETY: null or valid.
    let Some(books) = (unsafe { open::<Books, _>(handle) }) else { return NO_HANDLE };
    let Some(fate) = self::fate(fate, reason) else { return NO_SUCH_FATE };
    books.end(id, fate, now_ns).map_or_else(code, |_| 0)
}

const NO_SUCH_FATE: i32 = -12;

fn fate(fate: u32, reason: u32) -> Option<Fate> {
    let reason = Reason::ALL.into_iter().find(|known| *known as u32 == reason);
    Some(match (fate, reason) {
        (0, _) => Fate::Passed,
        (1, Some(reason)) => Fate::Modified(reason),
        (2, Some(reason)) => Fate::Held(reason),
        (3, Some(reason)) => Fate::Superseded(reason),
        (4, Some(reason)) => Fate::Rejected(reason),
        (5, Some(reason)) => Fate::Lost(reason),
        _ => return None,
    })
}

/// How many were ended, or an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_ledger_end_older(
    handle: *mut LedgerHandle,
    before_ns: u64,
    fate: u32,
    reason: u32,
    now_ns: u64,
) -> i64 {
    // SAFETY: null or valid.
    let Some(books) = (unsafe { open::<Books, _>(handle) }) else { return NO_HANDLE.into() };
    let Some(fate) = self::fate(fate, reason) else { return NO_SUCH_FATE.into() };
    books.end_older(before_ns, fate, now_ns).map_or_else(|error| code(error).into(), |ended| ended as i64)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_ledger_share(handle: *mut LedgerHandle, reason: u32) -> f64 {
    // SAFETY: null or valid.
    let Some(books) = (unsafe { open::<Books, _>(handle) }) else { return 0.0 };
    Reason::ALL.into_iter().find(|known| *known as u32 == reason).map_or(0.0, |reason| books.share(reason))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_ledger_age_max_ns(handle: *mut LedgerHandle) -> u64 {
    // SAFETY: null or valid.
    unsafe { open::<Books, _>(handle) }.map_or(0, |books| books.age_max_ns())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_ledger_count(handle: *mut LedgerHandle, reason: u32) -> u64 {
    // SAFETY: null or valid.
    let Some(books) = (unsafe { open::<Books, _>(handle) }) else { return 0 };
    Reason::ALL.into_iter().find(|known| *known as u32 == reason).map_or(0, |reason| books.count(reason))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_ledger_balance(handle: *mut LedgerHandle, now_ns: u64, balance: *mut CBalance) -> i32 {
    // SAFETY: null or valid.
    let (Some(books), false) = (unsafe { open::<Books, _>(handle) }, balance.is_null()) else { return NO_HANDLE };
    match books.balance(now_ns) {
        Ok(b) => {
            let c = CBalance {
                produced: b.produced,
                acknowledged: b.acknowledged,
                superseded: b.superseded,
                rejected: b.rejected,
                in_flight: b.in_flight,
                silent: b.silent,
                delivered_share: b.delivered_share.unwrap_or(f64::NAN),
                is_alarmed: b.is_alarmed.into(),
                is_saturated: b.is_saturated.into(),
            };
            // SAFETY: valid, checked above.
            unsafe { balance.write(c) };
            0
        }
        Err(error) => code(error),
    }
}
