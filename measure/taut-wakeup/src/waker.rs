//! Ways to wait until a moment of CLOCK_MONOTONIC.

use std::{
    os::fd::OwnedFd,
    sync::{Condvar, Mutex},
    time::Duration,
};

use rustix::{
    event::epoll,
    io::Errno,
    thread::{NanosleepRelativeResult, clock_nanosleep_absolute, clock_nanosleep_relative},
    time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    },
};
use taut_clock::monotonic_ns;

use crate::{Error, Wake};

/// One thread's way to wait, with the descriptors that it needs.
pub(crate) enum Waker {
    Nanosleep,
    Relative { interval: Timespec },
    Timerfd(OwnedFd),
    Epoll { epoll: OwnedFd, timer: OwnedFd },
    Select,
    Condvar(Box<(Mutex<()>, Condvar)>),
    Spin,
}

impl Waker {
    pub fn new(wake: Wake, interval: Duration) -> Result<Waker, Error> {
        let system = |what: &str| {
            let what = what.to_owned();
            move |errno: Errno| Error::System { what, source: errno.into() }
        };
        let timer = |flags| timerfd_create(TimerfdClockId::Monotonic, flags).map_err(system("timerfd_create"));
        Ok(match wake {
            Wake::Nanosleep => Waker::Nanosleep,
            Wake::Relative => Waker::Relative { interval: timespec(interval.as_nanos() as u64) },
            Wake::Timerfd => Waker::Timerfd(timer(TimerfdFlags::CLOEXEC)?),
            Wake::Epoll => {
                let timer = timer(TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
                let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("epoll_create"))?;
                epoll::add(&epoll, &timer, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
                    .map_err(system("epoll_ctl"))?;
                Waker::Epoll { epoll, timer }
            }
            Wake::Select => Waker::Select,
            Wake::Condvar => Waker::Condvar(Box::default()),
            Wake::Spin => Waker::Spin,
        })
    }

    /// Returns once it is `due_ns`, or for a relative wait once its length is over; a signal or a spurious wake
    /// makes it wait on.
    pub fn wait(&self, due_ns: u64) {
        match self {
            Waker::Nanosleep => while clock_nanosleep_absolute(ClockId::Monotonic, &timespec(due_ns)).is_err() {},
            Waker::Relative { interval } => {
                let mut rest = *interval;
                while let NanosleepRelativeResult::Interrupted(left) =
                    clock_nanosleep_relative(ClockId::Monotonic, &rest)
                {
                    rest = left;
                }
            }
            Waker::Timerfd(timer) => {
                arm(timer, due_ns);
                let mut expirations = [0; 8];
                while rustix::io::read(timer, &mut expirations) == Err(Errno::INTR) {}
            }
            Waker::Epoll { epoll, timer } => {
                // Arming anew takes the last expiration away, so nothing needs to be read.
                arm(timer, due_ns);
                let mut events = [const { std::mem::MaybeUninit::uninit() }; 1];
                while epoll::wait(epoll, &mut events, None).is_err() {}
            }
            Waker::Select => select(due_ns),
            Waker::Condvar(pair) => {
                let mut guard = pair.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                loop {
                    let now = monotonic_ns();
                    if now >= due_ns {
                        break;
                    }
                    let left = Duration::from_nanos(due_ns - now);
                    guard = pair.1.wait_timeout(guard, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0;
                }
            }
            Waker::Spin => {
                while monotonic_ns() < due_ns {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

fn arm(timer: &OwnedFd, due_ns: u64) {
    let at = Itimerspec { it_interval: timespec(0), it_value: timespec(due_ns) };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &at).expect("a timer of our own, a time above zero");
}

/// As Python's `time.sleep` before 3.11: no descriptors, only the time-out.
fn select(due_ns: u64) {
    loop {
        let now = monotonic_ns();
        if now >= due_ns {
            return;
        }
        let left = due_ns - now;
        let left = libc::timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        // SAFETY: no descriptor sets, no signal mask; the time-out is only read.
        unsafe {
            libc::pselect(0, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut(), &left, std::ptr::null());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_wakes_early() {
        for wake in Wake::ALL {
            let interval = Duration::from_millis(2);
            let waker = Waker::new(*wake, interval).unwrap();
            for _ in 0..3 {
                let due = monotonic_ns() + interval.as_nanos() as u64;
                waker.wait(due);
                assert!(monotonic_ns() >= due, "{wake}");
            }
        }
    }
}
