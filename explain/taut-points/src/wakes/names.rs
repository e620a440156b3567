//! Names of loops and of what threads wait for. Nothing in them differs between two runs of one program: no thread's number,
//! no descriptor's, no port that the system chose.

use taut_timelines::{Call, CallId, Objects, Timeline};

use super::{found::Found, waits::Site, worker::Worker};
use crate::route::LoopEvidence;

/// Ports from here on are chosen by the system (Linux: net.ipv4.ip_local_port_range).
const CHOSEN_PORTS: u16 = 32_768;
/// So many runs are looked at for what is read after a poll.
const LOOKED_AT: usize = 200;

/// Threads of an interpreter have its name unless they set one: they are named for the file that it runs.
struct Interpreter {
    /// Without its version.
    names: &'static [&'static str],
    /// Letters of options that have a value, in the same word or the next one.
    valued: &'static str,
    /// Options that have the program as their value: no file follows.
    text: &'static str,
    /// The option that runs a module.
    module: &'static str,
}

const INTERPRETERS: [Interpreter; 6] = [
    Interpreter { names: &["python", "pypy"], valued: "WX", text: "c", module: "m" },
    Interpreter { names: &["node"], valued: "rC", text: "ep", module: "" },
    Interpreter { names: &["ruby"], valued: "rICE", text: "e", module: "" },
    Interpreter { names: &["perl"], valued: "I", text: "eE", module: "" },
    Interpreter { names: &["lua"], valued: "l", text: "e", module: "" },
    Interpreter { names: &["bash", "dash", "sh"], valued: "oO", text: "c", module: "" },
];
/// Long options that the next word belongs to.
const WITH_WORD: [&str; 3] = ["--require", "--import", "--check-hash-based-pycs"];

/// The thread's own name. Of a thread with the name of an interpreter it is what that one runs: "teleop.py", "robot.teleop" of
/// `python -m robot.teleop`.
pub(super) fn of_thread(tid: i32, time_ns: u64, objects: &Objects) -> &str {
    let comm = objects.comm(tid, time_ns).filter(|comm| !comm.is_empty()).unwrap_or("thread");
    let script = |of: &Interpreter| of.script(objects.command_line(tid, time_ns));
    Interpreter::of(comm).and_then(script).unwrap_or(comm)
}

impl Interpreter {
    /// Whatever its version: "python3.11".
    fn of(comm: &str) -> Option<&'static Interpreter> {
        let name = comm.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        INTERPRETERS.iter().find(|one| one.names.contains(&name))
    }

    /// The name of the file, or of the module, that it runs; `None` if it reads its program from elsewhere.
    fn script<'a>(&self, command_line: &'a str) -> Option<&'a str> {
        let mut words = command_line.split(' ').skip(1);
        while let Some(word) = words.next() {
            match word.strip_prefix('-') {
                None => return word.rsplit('/').next().filter(|name| !name.is_empty()),
                // Its program comes by its input, or it is a C++ node of that name.
                Some("" | "-ros-args") => return None,
                Some(_) if WITH_WORD.contains(&word) => _ = words.next(),
                Some(letters) if letters.starts_with('-') => {}
                Some(letters) => {
                    let has_value = |c: char| [self.valued, self.text, self.module].iter().any(|all| all.contains(c));
                    let Some(at) = letters.find(has_value) else { continue };
                    let (option, value) =
                        (&letters[at..at + 1], Some(&letters[at + 1..]).filter(|rest| !rest.is_empty()));
                    if self.text.contains(option) {
                        return None;
                    }
                    let value = value.or_else(|| words.next());
                    if self.module.contains(option) {
                        return value;
                    }
                }
            }
        }
        None
    }
}

/// The timer of a loop that has one: "timer 20 ms".
pub(super) fn of_timer(found: &Found) -> Option<String> {
    match found.evidence {
        LoopEvidence::AbsoluteTimer => Some(format!("timer {}", period(found.period_ns))),
        LoopEvidence::RelativeTimer { asked_ns } => Some(format!("sleep {}", period(asked_ns))),
        LoopEvidence::RestOfPeriod { asked_ns } => Some(format!("sleep to {}", about(asked_ns))),
        LoopEvidence::WokenBy { .. } | LoopEvidence::Guessed { .. } => None,
    }
}

/// What a thread waits for there: "recv udp:5005", "futex".
pub(super) fn of_site(site: Site, pid: i32, time_ns: u64, objects: &Objects) -> String {
    let Some(call) = site.call else { return "wait".to_owned() };
    let name = call.name();
    let word = word(&name);
    let object = match site.kind() {
        Some(Call::Data) => behind(word, site.object, pid, time_ns, objects),
        _ => String::new(),
    };
    with(word, object)
}

/// What is behind a descriptor that this call reads. Descriptors are looked up now and then: one that is no socket was another's.
fn behind(word: &str, descriptor: u64, pid: i32, time_ns: u64, objects: &Objects) -> String {
    let name = objects.behind(pid, descriptor, time_ns).map(stable).unwrap_or_default();
    let is_socket = ["udp", "tcp", "unix", "socket"].iter().any(|kind| name.split(':').next() == Some(*kind));
    if is_socket || !matches!(word, "recv" | "accept") { name } else { String::new() }
}

/// The same of a thread with its runs: what is behind a poll is what it reads then.
pub(super) fn of_worker(worker: &Worker, pid: i32, timeline: &Timeline, objects: &Objects) -> String {
    let last_ns = worker.runs.last().map_or(0, |run| run.start_ns);
    let name = of_site(worker.site, pid, last_ns, objects);
    if worker.site.kind() != Some(Call::Poll) {
        return name;
    }
    let mut read: Vec<((u64, CallId), usize)> = Vec::new();
    for run in worker.runs.iter().take(LOOKED_AT) {
        let first = timeline.calls.partition_point(|call| call.start_ns < run.start_ns);
        let within = timeline.calls[first..].iter().take_while(|call| call.start_ns < run.done_ns);
        let Some(call) = within.into_iter().find(|call| call.id.kind() == Call::Data) else { continue };
        match read.iter_mut().find(|(known, _)| *known == (call.arg0, call.id)) {
            Some((_, count)) => *count += 1,
            None => read.push(((call.arg0, call.id), 1)),
        }
    }
    let looked = worker.runs.len().min(LOOKED_AT);
    let most = read.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| 2 * count > looked);
    let object = most.map(|((descriptor, call), _)| behind(word(&call.name()), descriptor, pid, last_ns, objects));
    with(&name, object.unwrap_or_default())
}

fn with(word: &str, object: String) -> String {
    if object.is_empty() { word.to_owned() } else { format!("{word} {object}") }
}

fn word(call: &str) -> &str {
    match call {
        "recvfrom" | "recvmsg" | "recvmmsg" => "recv",
        "readv" | "pread64" | "preadv" => "read",
        "accept4" => "accept",
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => "epoll",
        "ppoll" => "poll",
        "pselect6" => "select",
        "io_uring_enter" => "io_uring",
        "rt_sigtimedwait" | "rt_sigsuspend" | "pause" => "signal",
        "semtimedop" | "semop" => "semaphore",
        "mq_timedreceive" => "mqueue",
        "nanosleep" | "clock_nanosleep" => "sleep",
        "futex_waitv" | "futex_wait" => "futex",
        "wait4" | "waitid" => "child",
        other => other,
    }
}

/// What is behind a descriptor, without what differs between runs.
fn stable(behind: &str) -> String {
    let (kind, rest) = behind.split_once([' ', ':']).unwrap_or((behind, ""));
    match kind {
        "udp" | "tcp" => {
            let mut ends = rest.split(' ').next().unwrap_or_default().split('→');
            let port = |end: &str| end.rsplit(':').next()?.parse::<u16>().ok();
            let (local, remote) = (ends.next().and_then(port), ends.next().and_then(port));
            let fixed = [local, remote].into_iter().flatten().find(|port| (1..CHOSEN_PORTS).contains(port));
            fixed.map_or_else(|| kind.to_owned(), |port| format!("{kind}:{port}"))
        }
        "unix" => match rest.split(" [").next().filter(|path| path.starts_with('/')) {
            Some(path) => format!("unix:{path}"),
            None => "unix".to_owned(),
        },
        "pipe" | "socket" => kind.to_owned(),
        _ if behind.starts_with("/dev/pts/") || behind == "/dev/ptmx" => "pty".to_owned(),
        _ => behind.to_owned(),
    }
}

/// A time of at most three significant digits: "4 ms", "3.7 ms", "250 µs".
fn period(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => (ns as f64, "ns"),
        1_000..999_500 => (ns as f64 / 1e3, "µs"),
        999_500..999_500_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    let number = format!("{value:.digits$}");
    let number = if digits > 0 { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {unit}")
}

/// The same of two digits, for a time that holds some of the program's own: "2 ms" of 2.01 ms.
fn about(ns: u64) -> String {
    let step = 10_u64.pow(ns.max(1).ilog10().saturating_sub(1));
    period((ns + step / 2) / step * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_differ_by_little_have_one_name() {
        let times = [2_004_200, 2_012_800, 33_341_000, 998_000, 0, 7];
        assert_eq!(times.map(about), ["2 ms", "2 ms", "33 ms", "1 ms", "0 ns", "7 ns"]);
    }

    #[test]
    fn an_interpreter_is_named_for_what_it_runs() {
        for (comm, command_line, name) in [
            ("python3", "/usr/bin/python3 teleop.py --arm left", Some("teleop.py")),
            ("python", "python -u -X dev /opt/robot/teleop.py", Some("teleop.py")),
            ("python3.11", "python3.11 -Wignore teleop.py", Some("teleop.py")),
            ("python", "python -m robot.teleop --arm left", Some("robot.teleop")),
            ("python", "python -Im robot.teleop", Some("robot.teleop")),
            ("python", "python -c import time; time.sleep(9)", None),
            ("python", "python -", None),
            ("python", "python", None),
            ("python", "", None),
            ("node", "node --require ./trace.js --expose-gc robot/bridge.js", Some("bridge.js")),
            ("node", "node --ros-args --params-file arm.yaml", None),
            ("node", "node -r ./trace.js bridge.js", Some("bridge.js")),
            ("bash", "bash -e -x start.sh", Some("start.sh")),
            ("bash", "bash -eo pipefail start.sh", Some("start.sh")),
            ("bash", "bash -lc sleep 9; ./robot", None),
            ("perl", "perl -I lib -w arm.pl", Some("arm.pl")),
            ("lua", "lua -l socket bot.lua", Some("bot.lua")),
        ] {
            assert_eq!(Interpreter::of(comm).unwrap().script(command_line), name, "{command_line}");
        }
        assert!(["ctrl", "pythonic", "3", ""].iter().all(|comm| Interpreter::of(comm).is_none()));
    }

    #[test]
    fn names_hold_nothing_that_differs_between_runs() {
        for (behind, name) in [
            ("udp 127.0.0.1:5005→0.0.0.0:0 [123]", "udp:5005"),
            ("udp 0.0.0.0:47123→127.0.0.1:5005 [9]", "udp:5005"),
            ("udp [::1]:47123→[::]:0 [9]", "udp"),
            ("tcp 127.0.0.1:1883→127.0.0.1:40012 [4]", "tcp:1883"),
            ("unix /run/robot.sock [77]", "unix:/run/robot.sock"),
            ("unix [77]", "unix"),
            ("pipe:[77]", "pipe"),
            ("socket:[12]", "socket"),
            ("timerfd", "timerfd"),
            ("/dev/pts/3", "pty"),
            ("/dev/ttyACM0", "/dev/ttyACM0"),
        ] {
            assert_eq!(stable(behind), name, "{behind}");
        }
    }

    #[test]
    fn a_period_has_three_digits_at_most() {
        let all = [4_000_000, 3_700_001, 250_000, 999_800, 1_000_000_000, 33_333_333, 40].map(period);
        assert_eq!(all, ["4 ms", "3.7 ms", "250 µs", "1 ms", "1 s", "33.3 ms", "40 ns"]);
    }
}
