//! What a thread does in a system call, as far as waiting goes; by the numbers of the recording's machine.

use taut_recording::Architecture;

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Waits for a futex, or wakes a waiter.
    Futex,
    /// Waits for the lock of the file behind the descriptor in its first argument.
    FileLock,
    /// Sleeps for a time asked for.
    Sleep,
    /// Waits for, or moves, data of the descriptor in its first argument.
    Data,
    /// Sends data: a softirq that runs meanwhile delivers it.
    Send,
    /// Waits for one of several descriptors, or for a time.
    Poll,
    /// Makes a file durable.
    Sync,
    /// Waits for a child.
    Child,
    /// Any other.
    Other,
}

/// What a call does with the socket in its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Gives it bytes, or one datagram; the result says how many bytes.
    Sends,
    /// Takes bytes, or one datagram, from it.
    Receives,
    /// Gives it several messages: the result says how many, and of no bytes.
    SendsSeveral,
    /// Takes several messages from it.
    ReceivesSeveral,
    /// Connects it.
    Connects,
    /// Makes a new one, which the result is.
    Accepts,
    /// Makes a descriptor of a file, which the result is: it is no socket any more.
    Opens,
}

/// Those of the calls below that move something over a socket.
const TRANSFERS: &[(&str, Transfer)] = &[
    ("sendto", Transfer::Sends),
    ("sendmsg", Transfer::Sends),
    ("write", Transfer::Sends),
    ("writev", Transfer::Sends),
    ("recvfrom", Transfer::Receives),
    ("recvmsg", Transfer::Receives),
    ("read", Transfer::Receives),
    ("readv", Transfer::Receives),
    ("sendmmsg", Transfer::SendsSeveral),
    ("recvmmsg", Transfer::ReceivesSeveral),
    ("connect", Transfer::Connects),
    ("accept", Transfer::Accepts),
    ("accept4", Transfer::Accepts),
    ("openat", Transfer::Opens),
];

/// Calls in which a thread of a control loop waits.
const CALLS: &[(&str, Call)] = &[
    ("futex", Call::Futex),
    ("futex_waitv", Call::Futex),
    ("futex_wake", Call::Futex),
    ("futex_wait", Call::Futex),
    ("nanosleep", Call::Sleep),
    ("clock_nanosleep", Call::Sleep),
    ("read", Call::Data),
    ("readv", Call::Data),
    ("pread64", Call::Data),
    ("preadv", Call::Data),
    ("recvfrom", Call::Data),
    ("recvmsg", Call::Data),
    ("recvmmsg", Call::Data),
    ("accept", Call::Data),
    ("accept4", Call::Data),
    ("connect", Call::Send),
    ("flock", Call::FileLock),
    ("ioctl", Call::Data),
    ("openat", Call::Other),
    ("write", Call::Send),
    ("writev", Call::Send),
    ("pwrite64", Call::Send),
    ("pwritev", Call::Send),
    ("sendto", Call::Send),
    ("sendmsg", Call::Send),
    ("sendmmsg", Call::Send),
    ("poll", Call::Poll),
    ("ppoll", Call::Poll),
    ("select", Call::Poll),
    ("pselect6", Call::Poll),
    ("epoll_wait", Call::Poll),
    ("epoll_pwait", Call::Poll),
    ("epoll_pwait2", Call::Poll),
    ("io_uring_enter", Call::Poll),
    ("fsync", Call::Sync),
    ("fdatasync", Call::Sync),
    ("msync", Call::Sync),
    ("sync", Call::Sync),
    ("syncfs", Call::Sync),
    ("sync_file_range", Call::Sync),
    ("wait4", Call::Child),
    ("waitid", Call::Child),
    ("pause", Call::Poll),
    ("rt_sigsuspend", Call::Poll),
    ("rt_sigtimedwait", Call::Poll),
    ("msgrcv", Call::Poll),
    ("msgsnd", Call::Other),
    ("semop", Call::Poll),
    ("semtimedop", Call::Poll),
    ("mq_timedreceive", Call::Poll),
    ("mq_timedsend", Call::Other),
    // Of SCHED_DEADLINE: until the next period. Other threads only let others run first.
    ("sched_yield", Call::Sleep),
];

/// Which system call: its place in [`CALLS`], or the complement of the number of one that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(i32);

impl CallId {
    /// The call of that name.
    pub(crate) fn named(name: &str) -> Option<CallId> {
        CALLS.iter().position(|(known, _)| *known == name).map(|place| CallId(place as i32))
    }

    /// What it is for.
    pub fn kind(self) -> Call {
        self.known().map_or(Call::Other, |(_, kind)| *kind)
    }

    /// What it does with a socket; `None`: nothing.
    pub fn transfer(self) -> Option<Transfer> {
        let (name, _) = self.known()?;
        TRANSFERS.iter().find(|(known, _)| known == name).map(|(_, transfer)| *transfer)
    }

    /// The call's name, or its number.
    pub fn name(self) -> String {
        self.known().map_or_else(|| format!("system call {}", !self.0), |(name, _)| (*name).to_owned())
    }

    /// The name of one that is known here.
    pub fn known_name(self) -> Option<&'static str> {
        self.known().map(|(name, _)| *name)
    }

    fn known(self) -> Option<&'static (&'static str, Call)> {
        CALLS.get(usize::try_from(self.0).ok()?)
    }
}

/// What each number means.
#[derive(Default)]
pub struct CallNumbers(Vec<CallId>);

impl CallNumbers {
    /// `None`: of an unknown machine; each call then goes by its number.
    pub fn of(architecture: Option<Architecture>) -> CallNumbers {
        let mut ids = Vec::new();
        for (name, number) in architecture.iter().flat_map(|a| a.system_calls()) {
            let Some(id) = CallId::named(name) else { continue };
            let number = usize::from(number);
            ids.extend((ids.len()..=number).map(|number| CallId(!(number as i32))));
            ids[number] = id;
        }
        CallNumbers(ids)
    }

    /// The call of that number.
    pub fn id(&self, number: i64) -> CallId {
        let known = usize::try_from(number).ok().and_then(|number| self.0.get(number));
        known.copied().unwrap_or(CallId(!(number as i32).max(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_what_it_means_on_its_machine() {
        let x86 = CallNumbers::of(Some(Architecture::X86_64));
        let arm = CallNumbers::of(Some(Architecture::Aarch64));
        assert_eq!((x86.id(202).kind(), x86.id(202).name()), (Call::Futex, "futex".into()));
        assert_eq!((arm.id(98).kind(), arm.id(98).name()), (Call::Futex, "futex".into()));
        assert_eq!((arm.id(202).kind(), arm.id(202).name()), (Call::Data, "accept".into()));
        assert_eq!((arm.id(7).kind(), arm.id(7).name()), (Call::Other, "system call 7".into()));
        assert_eq!(CallNumbers::of(None).id(202).name(), "system call 202");
        assert_eq!(x86.id(-1), x86.id(i64::MIN));
    }

    #[test]
    fn all_that_is_recorded_is_known_here() {
        for architecture in [Architecture::X86_64, Architecture::Aarch64] {
            let numbers = CallNumbers::of(Some(architecture));
            for (name, number) in architecture.system_calls() {
                assert_eq!(numbers.id(number.into()).name(), name);
            }
        }
    }
}
