//! What takes the CPU: own work, hogs, quotas, interrupts, stops.

use std::{
    cell::Cell,
    fs,
    net::{Ipv4Addr, UdpSocket},
    os::fd::AsRawFd,
    path::PathBuf,
};

use crate::{
    agent::{Agent, Mailbox},
    clock::{Progress, monotonic_ns, process_cpu_ns, sleep_ns, thread_cpu_ns},
    kinds::Kind,
    options::Options,
};

#[derive(Default)]
pub struct Work {
    done_ns: u64,
}

impl Kind for Work {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("work", "cpu", "")
    }
    fn strike(&mut self, ns: u64) {
        let mut progress = Progress::default();
        progress.work(ns);
        self.done_ns = progress.done_ns();
    }
    fn settle(&mut self) -> u64 {
        self.done_ns
    }
}

/// A process on the message's CPU that computes: at real-time priority it runs at once, at equal priority in turns.
pub struct Hog {
    realtime: bool,
    agent: Agent,
    cpu_before_ns: u64,
}

/// Sharing a CPU needs something to share: with equal priority every message has this much work more.
const SHARED_WORK_NS: u64 = 6_000_000;

impl Hog {
    pub fn new(realtime: bool, options: &Options) -> Hog {
        let name = if realtime { "hog_fifo" } else { "hog_equal" };
        let mut prepared = false;
        let agent = Agent::process(name, options.cpu, move |ns: u64, mailbox: &Mailbox| {
            if realtime && !prepared {
                let parameters = libc::sched_param { sched_priority: 10 };
                // SAFETY: reads the parameters only.
                let refused = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } != 0;
                assert!(!refused, "SCHED_FIFO needs CAP_SYS_NICE");
                prepared = true;
            }
            let until = thread_cpu_ns() + ns;
            mailbox.ready();
            while !mailbox.is_enough() && thread_cpu_ns() < until {}
            mailbox.ended();
        });
        // Its first, slow steps belong to no message.
        agent.ring(1);
        agent.wait_ended();
        Hog { realtime, agent, cpu_before_ns: 0 }
    }
}

impl Kind for Hog {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        if self.realtime {
            ("preempted_fifo", "preempted", "hog_fifo")
        } else {
            ("preempted_equal", "preempted", "hog_equal")
        }
    }
    fn strike(&mut self, ns: u64) {
        self.cpu_before_ns = process_cpu_ns(self.agent.pid);
        self.agent.ring(ns);
        self.usual();
    }
    fn usual(&mut self) {
        if !self.realtime {
            Progress::default().work(SHARED_WORK_NS);
        }
    }
    fn settle(&mut self) -> u64 {
        let taken_ns = process_cpu_ns(self.agent.pid) - self.cpu_before_ns;
        self.agent.enough();
        self.agent.wait_ended();
        taken_ns
    }
}

/// A CPU quota of 1 ms that some work uses up: it stands still until the drawn period is over.
pub struct Throttle {
    cgroup: PathBuf,
    progress: Progress,
    taken_ns: u64,
}

const QUOTA_NS: u64 = 1_000_000;
/// So much more than the quota that it is used up.
const WORK_OVER_QUOTA_NS: u64 = 1_500_000;
const STEP_NS: u64 = 50_000;

impl Throttle {
    pub fn new(options: &Options) -> Result<Throttle, String> {
        let throttle = Throttle { cgroup: options.cgroup.clone(), progress: Progress::default(), taken_ns: 0 };
        let members = if throttle.is_v2() { "cgroup.procs" } else { "tasks" };
        let members = throttle.cgroup.join(members);
        fs::write(&members, std::process::id().to_string()).map_err(|e| format!("{}: {e}", members.display()))?;
        Ok(throttle)
    }

    fn is_v2(&self) -> bool {
        self.cgroup.join("cpu.max").exists()
    }

    /// For how long the group was out of its quota so far, by the kernel's own count. A wait for the CPU that others have is none of it.
    fn throttled_ns(&self) -> u64 {
        let counts = fs::read_to_string(self.cgroup.join("cpu.stat")).unwrap_or_default();
        let count = |name: &str| {
            let line = counts.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            line.trim().parse::<u64>().ok()
        };
        count("throttled_time").or_else(|| Some(count("throttled_usec")? * 1000)).unwrap_or(0)
    }

    fn limit(&self, period_ns: Option<u64>) {
        let period_us = period_ns.map(|ns| (ns / 1000).clamp(1000, 1_000_000));
        let write = |file: &str, text: &str| {
            fs::write(self.cgroup.join(file), text).unwrap_or_else(|e| panic!("{file} takes no {text}: {e}"));
        };
        match (self.is_v2(), period_us) {
            (true, None) => write("cpu.max", "max 100000"),
            (true, Some(us)) => write("cpu.max", &format!("{} {us}", QUOTA_NS / 1000)),
            (false, None) => write("cpu.cfs_quota_us", "-1"),
            (false, Some(us)) => {
                write("cpu.cfs_period_us", &us.to_string());
                write("cpu.cfs_quota_us", &(QUOTA_NS / 1000).to_string());
            }
        }
    }
}

impl Kind for Throttle {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("throttled", "throttled", "")
    }
    fn strike(&mut self, ns: u64) {
        // Here, not before the message: its other work would use the quota up.
        let before_ns = self.throttled_ns();
        self.limit(Some(ns + QUOTA_NS));
        self.usual();
        self.limit(None);
        self.taken_ns = self.throttled_ns() - before_ns;
    }
    fn usual(&mut self) {
        self.progress = Progress::default();
        for step in 1..=WORK_OVER_QUOTA_NS / STEP_NS {
            self.progress.work(step * STEP_NS);
            // The kernel looks at the quota at its tick (4 ms apart here), and when it is asked for the next task.
            // SAFETY: touches nothing.
            unsafe { libc::sched_yield() };
        }
    }
    fn settle(&mut self) -> u64 {
        self.taken_ns
    }
}

/// Datagrams to a group with many members: one that is sent on the other CPU costs this one a long softirq, where
/// receive packet steering (`/sys/class/net/lo/queues/rx-0/rps_cpus`, set by `../run`) says so.
pub struct Flood {
    agent: Agent,
    stolen_ns: u64,
}

/// (port, members): some 150 and 400 µs of softirq a datagram. What an interrupt costs outside of its handler, 10 µs on
/// a virtual machine, shall be little beside it.
const SMALL: (u16, usize) = (36_666, 2000);
const LARGE: (u16, usize) = (36_667, 5000);
const LARGE_FROM_NS: u64 = 700_000;
/// After this long a datagram did not arrive.
const LOST_NS: u64 = 1_000_000;
/// The last one is through by then.
const AFTER_NS: u64 = 30_000;
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 66, 66, 66);
/// A flood that does not come is given up.
const PATIENCE_NS: u64 = 100_000_000;

impl Flood {
    pub fn new(options: &Options) -> Result<Flood, String> {
        let failed = |e: std::io::Error| format!("no multicast on the loopback: {e}");
        let many = libc::rlimit { rlim_cur: 8192, rlim_max: 8192 };
        // SAFETY: reads the limits only.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &many) };
        // A datagram to a port goes to all that have bound it.
        let ports = [SMALL, LARGE].into_iter().flat_map(|(port, members)| std::iter::repeat_n(port, members));
        let members: Vec<UdpSocket> = ports.map(member).collect::<Result<_, _>>().map_err(failed)?;
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let loopback = libc::in_addr { s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be() };
        // SAFETY: the option's value is an in_addr that outlives the call.
        unsafe {
            let value = (&raw const loopback).cast();
            libc::setsockopt(sender.as_raw_fd(), libc::IPPROTO_IP, libc::IP_MULTICAST_IF, value, 4);
        }
        let agent = Agent::process("flooder", options.other_cpu, move |ns: u64, mailbox: &Mailbox| {
            let _members = &members;
            let (port, _) = if ns < LARGE_FROM_NS { SMALL } else { LARGE };
            mailbox.ready();
            let until = monotonic_ns() + PATIENCE_NS;
            while !mailbox.is_enough() && monotonic_ns() < until {
                let (felt, sent_ns) = (mailbox.felt(), monotonic_ns());
                let _ = sender.send_to(&[0; 8], (GROUP, port));
                // The next one as soon as the other CPU is through with this one.
                while mailbox.felt() == felt && !mailbox.is_enough() && monotonic_ns() - sent_ns < LOST_NS {}
            }
            mailbox.ended();
        });
        Ok(Flood { agent, stolen_ns: 0 })
    }
}

fn member(port: u16) -> std::io::Result<UdpSocket> {
    // SAFETY: plain system calls on a descriptor of ours; the address is complete.
    unsafe {
        use std::os::fd::FromRawFd;
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let socket = UdpSocket::from_raw_fd(fd);
        let (one, small) = (1i32, 1i32);
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, (&raw const one).cast(), 4);
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, (&raw const small).cast(), 4);
        let address = libc::sockaddr_in {
            sin_family: libc::AF_INET as u16,
            sin_port: port.to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from(GROUP).to_be() },
            sin_zero: [0; 8],
        };
        if libc::bind(fd, (&raw const address).cast(), size_of_val(&address) as u32) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        socket.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)?;
        Ok(socket)
    }
}

impl Kind for Flood {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("irq", "irq", "")
    }
    fn strike(&mut self, ns: u64) {
        let mut progress = Progress::default();
        let until = monotonic_ns() + PATIENCE_NS;
        self.agent.ring(ns);
        let felt = Cell::new(0);
        progress.work_until(|p, now| {
            if p.stolen_ns != felt.replace(p.stolen_ns) {
                self.agent.mailbox.feel();
            }
            p.stolen_ns >= ns || now > until
        });
        self.agent.enough();
        progress.work_until(|_, _| self.agent.has_ended());
        let after = monotonic_ns();
        progress.work_until(|_, now| now > after + AFTER_NS);
        self.stolen_ns = progress.stolen_ns;
    }
    fn settle(&mut self) -> u64 {
        self.agent.wait_ended();
        self.stolen_ns
    }
}

/// SIGSTOP and SIGCONT from another process.
pub struct Stop {
    agent: Agent,
}

impl Stop {
    pub fn new(options: &Options) -> Stop {
        // SAFETY: asks for nothing but a number.
        let victim = unsafe { libc::getpid() };
        let agent = Agent::process("stopper", options.other_cpu, move |ns: u64, mailbox: &Mailbox| {
            // SAFETY: signals to the parent, which outlives its children.
            unsafe {
                libc::kill(victim, libc::SIGSTOP);
                mailbox.ready();
                sleep_ns(ns);
                mailbox.ended();
                libc::kill(victim, libc::SIGCONT);
            }
        });
        Stop { agent }
    }
}

impl Kind for Stop {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("stopped", "stopped", "")
    }
    fn strike(&mut self, ns: u64) {
        self.agent.ring(ns);
        // Computes until it was stopped: the signal takes its way.
        Progress::default().work_until(|_, _| self.agent.is_ready());
    }
    fn settle(&mut self) -> u64 {
        self.agent.wait_ended() - self.agent.wait_ready()
    }
}
