//! The Rust producer of the conformance tests: does what the script on stdin says, one line at a time,
//! and answers each with "PID TID RESULT". `c/producer.c` is the same in C and C++; the words are
//! listed in `tests/conformance/run.rs`.

use std::{
    ffi::CString,
    io::Write,
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::Path,
    sync::{
        Mutex,
        atomic::AtomicU32,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use taut_stamp::{Point, after_fork, applied, attach, name_lock, outcome, prepare_thread, stamp, stamp_at, status};

static WORK: Point = Point::new("work");
static SIGNAL: Point = Point::new("signal");
static LOCK: Point = Point::new("lock");
static REASON: Point = Point::new("site.reason");
static MUTEX: Mutex<u64> = Mutex::new(0);
static WORD: AtomicU32 = AtomicU32::new(0);

struct Worker {
    lines: Sender<String>,
    done: Receiver<()>,
    thread: JoinHandle<()>,
}

fn main() {
    interpret(0);
}

fn interpret(own: usize) {
    let mut workers: Vec<Option<Worker>> = (0..128).map(|_| None).collect();
    while let Some(line) = read_line() {
        let (who, words) = line.split_once(' ').expect("THREAD WORD …");
        let who: usize = who.parse().expect("a thread's number");
        match words {
            "exit" => return answer(0),
            "thread" => {
                workers[who] = Some(start(who));
                answer(0);
            }
            "join" => {
                let worker = workers[who].take().expect("a thread that was started");
                drop(worker.lines);
                answer(i64::from(worker.thread.join().is_err()));
            }
            words if who == own => {
                let result = perform(own, words);
                answer(result);
            }
            words => {
                let worker = workers[who].as_ref().expect("a thread that was started");
                worker.lines.send(words.to_owned()).expect("it still listens");
                worker.done.recv().expect("it answers");
            }
        }
    }
}

fn start(own: usize) -> Worker {
    let (lines, to_do) = channel::<String>();
    let (tell, done) = channel();
    let thread = std::thread::spawn(move || {
        for words in to_do {
            let result = perform(own, &words);
            answer(result);
            if tell.send(()).is_err() {
                break;
            }
        }
    });
    Worker { lines, done, thread }
}

fn perform(own: usize, line: &str) -> i64 {
    let words: Vec<&str> = line.split(' ').collect();
    let text = |at: usize| words.get(at).copied().unwrap_or("");
    let number = |at: usize| text(at).parse::<u64>().unwrap_or(0);
    match words[0] {
        "stamp" => named(text(1)).stamp(number(2)),
        "stamp_at" => named(text(1)).stamp_at(number(2), number(3)),
        "site_at" => stamp_at!("site", number(1), number(2)),
        "many" => {
            let point = named(text(1));
            (number(2)..number(2) + number(3)).for_each(|id| point.stamp(id));
        }
        "churn" => churn(number(1), number(2), number(3)),
        "site" => stamp!("site", number(1)),
        "begin" => WORK.begin(),
        "end" => WORK.end(),
        "value" => SIGNAL.value(text(1).parse().unwrap_or(f64::NAN)),
        "lock_wait" => LOCK.lock_wait(),
        "lock_acquired" => LOCK.lock_acquired(),
        "name_mutex" => {
            name_lock(text(1), &MUTEX);
            return &raw const MUTEX as i64;
        }
        "name_word" => {
            name_lock(text(1), &WORD);
            return &raw const WORD as i64;
        }
        "mutex_bytes" => return size_of_val(&MUTEX) as i64,
        "drop" => REASON.outcome(number(1)),
        "outcome" => outcome(number(1), text(2)),
        "applied" => applied(number(1)),
        "prepare" => return i64::from(prepare_thread()),
        "attached" => return i64::from(status().attached),
        "attach" => return i64::from(attach(Path::new(text(1)))),
        "lost" => return status().lost as i64,
        // The same stamp, and whether errno outlived it.
        // SAFETY: the C library gives a pointer to this thread's own errno.
        "errno" => unsafe {
            *libc::__errno_location() = 77;
            stamp!("site", number(1));
            return i64::from(*libc::__errno_location());
        },
        // SAFETY: the child only runs on, reading the script; its other threads were never needed by it.
        "fork" => return in_child(own, unsafe { libc::fork() }),
        "clone" => {
            // SAFETY: without CLONE_VM this is a fork, only that no handlers run: `after_fork` does their work.
            let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32;
            if child == 0 {
                after_fork();
            }
            return in_child(own, child);
        }
        // So many microseconds a signal.
        "alarm_each" => {
            extern "C" fn ignore(_: libc::c_int) {}
            let every = libc::timeval { tv_sec: 0, tv_usec: number(1) as i64 };
            let timer = libc::itimerval { it_interval: every, it_value: every };
            // SAFETY: the handler does nothing, and the pointers are to live locals.
            return unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = ignore as *const () as usize;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
                i64::from(libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &timer, 0usize) != 0)
            };
        }
        // SAFETY: plain system calls.
        "lock_memory" => return i64::from(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }),
        "limit_files" => {
            let limit = libc::rlimit { rlim_cur: number(1), rlim_max: number(1) };
            // SAFETY: the pointer is to a live local.
            return i64::from(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) });
        }
        "close_all" => {
            let path = CString::new(text(1)).expect("no NUL in a word of the script");
            // SAFETY: nothing in this program owns a descriptor above 2 but the stamps, which must bear it.
            return i64::from(unsafe {
                (3..64).for_each(|fd| {
                    libc::close(fd);
                });
                libc::open(path.as_ptr(), libc::O_CREAT | libc::O_RDWR | libc::O_TRUNC, 0o600)
            });
        }
        "exec" => {
            answer(0);
            let failed = std::process::Command::new("/proc/self/exe").exec();
            panic!("{failed}");
        }
        _ => return -2,
    }
    0
}

/// So many lines of short threads, in each one after the other.
fn churn(lines: u64, threads: u64, stamps: u64) {
    std::thread::scope(|scope| {
        for line in 0..lines {
            scope.spawn(move || {
                for n in 0..threads {
                    let first = (line << 32) + n * stamps;
                    let some = move || (first..first + stamps).for_each(|id| stamp!("churn", id));
                    std::thread::spawn(some).join().expect("a stamp does not panic");
                }
            });
        }
    });
}

/// A point by a name of the script; leaked, as a robot's points are statics.
fn named(name: &str) -> &'static Point {
    Box::leak(Box::new(Point::new(Box::leak(name.to_owned().into_boxed_str()))))
}

fn in_child(own: usize, child: i32) -> i64 {
    if child == 0 {
        answer(0);
        interpret(own);
        // SAFETY: ends the child without running what its parent registered.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the pointer is to a live local.
    unsafe { libc::waitpid(child, &mut status, 0) };
    i64::from(status)
}

fn answer(result: i64) {
    // SAFETY: gettid has no preconditions.
    let line = format!("{} {} {result}\n", std::process::id(), unsafe { libc::gettid() });
    let mut out = std::io::stdout();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).expect("stdout is open");
}

/// Byte by byte: what follows the line belongs to a child or to the next program.
fn read_line() -> Option<String> {
    let mut line = Vec::new();
    loop {
        let mut byte = 0u8;
        // SAFETY: one byte is read into a live local.
        if unsafe { libc::read(0, (&raw mut byte).cast(), 1) } != 1 {
            return None;
        }
        if byte == b'\n' {
            return Some(std::ffi::OsStr::from_bytes(&line).to_string_lossy().into_owned());
        }
        line.push(byte);
    }
}
