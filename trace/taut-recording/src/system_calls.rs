//! The system calls in which a thread of a control loop waits or wakes another, by name and by number.
//!
//! A recording holds the numbers of the machine that it was made on, and names it
//! ([`Info::system_calls`](crate::Info)): a board's recording is explained on a desk of another architecture.

/// Whose numbers a recording's system calls have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// 64-bit x86; what recordings hold that do not say.
    X86_64,
    /// 64-bit Arm. Its numbers are the kernel's generic ones.
    Aarch64,
}

/// A system call's number on either architecture.
struct Row(&'static str, Option<u16>, Option<u16>);

/// From the kernel's tables: arch/x86/entry/syscalls/syscall_64.tbl and scripts/syscall.tbl.
/// `taut-capture` holds them against the C library's.
const ROWS: &[Row] = &[
    Row("futex", Some(202), Some(98)),
    Row("futex_waitv", Some(449), Some(449)),
    Row("futex_wake", Some(454), Some(454)),
    Row("futex_wait", Some(455), Some(455)),
    Row("nanosleep", Some(35), Some(101)),
    Row("clock_nanosleep", Some(230), Some(115)),
    Row("read", Some(0), Some(63)),
    Row("readv", Some(19), Some(65)),
    Row("pread64", Some(17), Some(67)),
    Row("preadv", Some(295), Some(69)),
    Row("recvfrom", Some(45), Some(207)),
    Row("recvmsg", Some(47), Some(212)),
    Row("recvmmsg", Some(299), Some(243)),
    Row("accept", Some(43), Some(202)),
    Row("accept4", Some(288), Some(242)),
    Row("connect", Some(42), Some(203)),
    Row("flock", Some(73), Some(32)),
    Row("ioctl", Some(16), Some(29)),
    Row("openat", Some(257), Some(56)),
    Row("write", Some(1), Some(64)),
    Row("writev", Some(20), Some(66)),
    Row("pwrite64", Some(18), Some(68)),
    Row("pwritev", Some(296), Some(70)),
    Row("sendto", Some(44), Some(206)),
    Row("sendmsg", Some(46), Some(211)),
    Row("sendmmsg", Some(307), Some(269)),
    Row("poll", Some(7), None),
    Row("ppoll", Some(271), Some(73)),
    Row("select", Some(23), None),
    Row("pselect6", Some(270), Some(72)),
    Row("epoll_wait", Some(232), None),
    Row("epoll_pwait", Some(281), Some(22)),
    Row("epoll_pwait2", Some(441), Some(441)),
    Row("io_uring_enter", Some(426), Some(426)),
    Row("fsync", Some(74), Some(82)),
    Row("fdatasync", Some(75), Some(83)),
    Row("msync", Some(26), Some(227)),
    Row("sync", Some(162), Some(81)),
    Row("syncfs", Some(306), Some(267)),
    Row("sync_file_range", Some(277), Some(84)),
    Row("wait4", Some(61), Some(260)),
    Row("waitid", Some(247), Some(95)),
    Row("pause", Some(34), None),
    Row("rt_sigsuspend", Some(130), Some(133)),
    Row("rt_sigtimedwait", Some(128), Some(137)),
    Row("msgrcv", Some(70), Some(188)),
    Row("msgsnd", Some(69), Some(189)),
    Row("semop", Some(65), Some(193)),
    Row("semtimedop", Some(220), Some(192)),
    Row("mq_timedreceive", Some(243), Some(183)),
    Row("mq_timedsend", Some(242), Some(182)),
    Row("sched_yield", Some(24), Some(124)),
];

impl Architecture {
    /// That of this program; of a machine that taut has no numbers for, the generic ones.
    pub const HERE: Architecture =
        if cfg!(target_arch = "x86_64") { Architecture::X86_64 } else { Architecture::Aarch64 };

    /// As the recording says it, and `uname -m`.
    pub fn word(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
        }
    }

    /// The architecture of that word.
    pub fn from_word(word: &str) -> Option<Architecture> {
        [Architecture::X86_64, Architecture::Aarch64].into_iter().find(|a| a.word() == word)
    }

    /// All calls that the architecture has, with their numbers.
    pub fn system_calls(self) -> impl Iterator<Item = (&'static str, u16)> {
        ROWS.iter().filter_map(move |row| Some((row.0, self.number(row)?)))
    }

    fn number(self, row: &Row) -> Option<u16> {
        match self {
            Architecture::X86_64 => row.1,
            Architecture::Aarch64 => row.2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_one_call() {
        for architecture in [Architecture::X86_64, Architecture::Aarch64] {
            let mut numbers: Vec<u16> = architecture.system_calls().map(|(_, number)| number).collect();
            let calls = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), calls, "{architecture:?}");
            assert_eq!(Architecture::from_word(architecture.word()), Some(architecture));
        }
        assert_eq!(Architecture::from_word("riscv64"), None);
    }
}
