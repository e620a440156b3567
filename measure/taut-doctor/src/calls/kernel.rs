//! System calls for this process's rights and for the kernel's clocks.

use std::{fs::File, io::Read, os::unix::fs::FileExt};

use rustix::{
    fs::{Access, access},
    time::{ClockId, clock_getres, clock_gettime},
};

use crate::{Answer, Missing, missing::missing};

/// "permitted" when a thread of this process may become SCHED_FIFO.
pub fn may_run_fifo() -> Answer {
    let tried = std::thread::spawn(|| {
        let parameters = libc::sched_param { sched_priority: 1 };
        // SAFETY: the structure outlives the call, and 0 means the calling thread, which ends right after.
        match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
            0 => Ok("permitted".to_owned()),
            _ => Err(missing(std::io::Error::last_os_error())),
        }
    });
    tried.join().unwrap_or_else(|_| Err(Missing::Failed("the thread that tried it died".into())))
}

/// Resolution of CLOCK_MONOTONIC: 1 with high-resolution timers, a tick without.
pub fn clock_resolution_ns() -> Answer {
    let resolution = clock_getres(ClockId::Monotonic);
    Ok((resolution.tv_sec as u64 * 1_000_000_000 + resolution.tv_nsec as u64).to_string())
}

/// What one reading of CLOCK_MONOTONIC costs: the median of rounds, so that an interruption does not count.
pub fn clock_cost_ns() -> Answer {
    const CALLS: u32 = 64;
    let mut rounds: Vec<u64> = (0..101)
        .map(|_| {
            let before = std::time::Instant::now();
            (0..CALLS).for_each(|_| _ = std::hint::black_box(clock_gettime(ClockId::Monotonic)));
            before.elapsed().as_nanos() as u64 / u64::from(CALLS)
        })
        .collect();
    rounds.sort_unstable();
    Ok(rounds[rounds.len() / 2].to_string())
}

/// Whether the wall clock follows another, and how far off it may be, of adjtimex(2).
pub fn time_state() -> Answer {
    // SAFETY: timex is plain numbers, for which zero is a value; with modes 0 the call only reads.
    let (state, time) = unsafe {
        let mut time: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut time), time)
    };
    if state < 0 {
        return Err(missing(std::io::Error::last_os_error()));
    }
    let synchronized = state != libc::TIME_ERROR && time.status & libc::STA_UNSYNC == 0;
    Ok(format!("synchronized={}\nmaxerror_us={}\nesterror_us={}", synchronized as u8, time.maxerror, time.esterror))
}

/// "writable" when this user may write the file.
pub fn writable(path: &str) -> Answer {
    access(path, Access::WRITE_OK).map(|()| "writable".to_owned()).map_err(|errno| missing(errno.into()))
}

/// The limit that a process holds open, in µs (Documentation/power/pm_qos_interface.rst).
pub fn dma_latency_us() -> Answer {
    let mut bytes = [0; 4];
    File::open("/dev/cpu_dma_latency").and_then(|mut file| file.read_exact(&mut bytes)).map_err(missing)?;
    Ok(i32::from_ne_bytes(bytes).to_string())
}

/// System management interrupts since boot: MSR_SMI_COUNT of Intel's Software Developer's Manual, volume 4.
pub fn smi_count() -> Answer {
    const MSR_SMI_COUNT: u64 = 0x34;
    let mut bytes = [0; 8];
    File::open("/dev/cpu/0/msr").and_then(|file| file.read_exact_at(&mut bytes, MSR_SMI_COUNT)).map_err(missing)?;
    Ok((u64::from_le_bytes(bytes) & 0xffff_ffff).to_string())
}
