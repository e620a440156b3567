//! The open loop of loop.cpp in Rust: a source sends at its own times over a channel, a server takes the messages one by one
//! and has a helper thread do half of the work. Kinds: condvar and mpsc (the helper is asked over one, and now and then computes
//! longer), lock (another thread holds a `Mutex`). With --log, a line of each message as loop.cpp writes it. Part of bench/causes.

use std::{
    fmt::Write,
    fs,
    sync::{Arc, Condvar, Mutex, mpsc},
    thread,
    time::Duration,
};

use taut_stamp::{applied, monotonic_ns, name_lock, prepare_thread, stamp, stamp_at};

static LOCK: Mutex<()> = Mutex::new(());

struct Options {
    messages: u64,
    period_ns: f64,
    work_ns: u64,
    size_ns: u64,
    every_ns: f64,
    kind: String,
    poisson: bool,
    off: bool,
    seed: u64,
    cpu: usize,
    priority: i32,
    log: Option<String>,
}

fn main() {
    let options = Arc::new(parse());
    name_lock("cfg_lock", &LOCK);
    let (sender, inbox) = mpsc::channel::<(u64, u64)>();
    let (serves, disturbs) = (options.clone(), options.clone());
    let server = thread::Builder::new().name("server".into()).spawn(move || serve(inbox, &serves)).unwrap();
    if options.kind == "lock" && !options.off {
        thread::Builder::new().name("holder".into()).spawn(move || hold(&disturbs)).unwrap();
    }
    prepare_thread();
    place(1 - options.cpu, options.priority);
    // SAFETY: sets the calling thread's timer slack; no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let (mut state, mut due) = (options.seed * 1_234_567 + 89, monotonic_ns() + 1_000_000_000);
    for id in 1..=options.messages {
        due += match options.poisson {
            true => (-chance(&mut state).ln() * options.period_ns) as u64,
            false => options.period_ns as u64,
        };
        thread::sleep(Duration::from_nanos(due.saturating_sub(monotonic_ns())));
        stamp_at!("source.sent", id, due);
        sender.send((id, due)).unwrap();
    }
    drop(sender);
    server.join().unwrap();
}

fn serve(inbox: mpsc::Receiver<(u64, u64)>, options: &Options) {
    prepare_thread();
    place(options.cpu, options.priority);
    let mut helper: Box<dyn FnMut(u64)> = match options.kind.as_str() {
        "condvar" => condvar(options),
        "mpsc" => channel(options),
        _ => Box::new(compute),
    };
    let (mut state, mut strike_ns) = (options.seed * 77 + 3, monotonic_ns());
    let mut logged: Vec<[u64; 5]> = Vec::with_capacity(options.messages as usize);
    let mut before_ns = thread_ns();
    for (id, due_ns) in inbox {
        stamp!("server.taken", id);
        let taken_ns = monotonic_ns();
        let strikes = monotonic_ns() > strike_ns;
        if strikes {
            strike_ns = monotonic_ns() + (options.every_ns * (0.5 + chance(&mut state))) as u64;
        }
        compute(options.work_ns / 2);
        let extra_ns = if strikes && !options.off && options.kind != "lock" { options.size_ns } else { 0 };
        let asked = (monotonic_ns(), thread_ns());
        helper(options.work_ns / 2 + extra_ns);
        let beside_ns = (monotonic_ns() - asked.0).saturating_sub(thread_ns() - asked.1);
        let asks_ns = monotonic_ns();
        drop(LOCK.lock().unwrap());
        let put_in_ns = if options.kind == "lock" { monotonic_ns() - asks_ns } else { extra_ns };
        stamp!("server.done", id);
        let (done_ns, own_ns) = (monotonic_ns(), thread_ns());
        applied(id);
        let usual_ns = own_ns - before_ns + beside_ns.saturating_sub(extra_ns);
        logged.push([due_ns, taken_ns, done_ns, usual_ns, put_in_ns]);
        before_ns = own_ns;
    }
    if let Some(path) = &options.log {
        let mut text = String::new();
        for [due_ns, taken_ns, done_ns, usual_ns, put_in_ns] in logged {
            writeln!(text, "{due_ns} {taken_ns} {done_ns} {usual_ns} {put_in_ns}").unwrap();
        }
        fs::write(path, text).unwrap();
    }
}

/// A helper that is asked and answers by a condition variable.
fn condvar(options: &Options) -> Box<dyn FnMut(u64)> {
    let slot = Arc::new((Mutex::new(0u64), Condvar::new()));
    let (cpu, priority, shared) = (options.cpu, options.priority, slot.clone());
    let help = move || {
        place(cpu, priority);
        loop {
            let mut job = shared.0.lock().unwrap();
            while *job == 0 {
                job = shared.1.wait(job).unwrap();
            }
            let ns = *job;
            drop(job);
            compute(ns);
            *shared.0.lock().unwrap() = 0;
            shared.1.notify_all();
        }
    };
    thread::Builder::new().name("helper".into()).spawn(help).unwrap();
    Box::new(move |ns| {
        let mut job = slot.0.lock().unwrap();
        *job = ns;
        slot.1.notify_all();
        while *job != 0 {
            job = slot.1.wait(job).unwrap();
        }
    })
}

/// A helper that is asked and answers over channels.
fn channel(options: &Options) -> Box<dyn FnMut(u64)> {
    let ((ask, jobs), (answer, answers)) = (mpsc::channel::<u64>(), mpsc::channel::<()>());
    let (cpu, priority) = (options.cpu, options.priority);
    let help = move || {
        place(cpu, priority);
        for ns in jobs {
            compute(ns);
            answer.send(()).unwrap();
        }
    };
    thread::Builder::new().name("helper".into()).spawn(help).unwrap();
    Box::new(move |ns| {
        ask.send(ns).unwrap();
        answers.recv().unwrap();
    })
}

fn hold(options: &Options) {
    place(1 - options.cpu, options.priority);
    let mut state = options.seed * 55 + 7;
    loop {
        thread::sleep(Duration::from_nanos((options.every_ns * (0.5 + chance(&mut state))) as u64));
        let held = LOCK.lock().unwrap();
        thread::sleep(Duration::from_nanos(options.size_ns));
        drop(held);
    }
}

/// Computes for so long by the thread's own clock.
fn compute(ns: u64) {
    let until = thread_ns() + ns;
    while thread_ns() < until {}
}

fn thread_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to the timespec that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Where the calling thread runs, and before which others.
fn place(cpu: usize, priority: i32) {
    // SAFETY: both calls read what they are given, of the calling thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        let param = libc::sched_param { sched_priority: priority };
        assert!(priority == 0 || libc::sched_setscheduler(0, libc::SCHED_FIFO, &param) == 0, "SCHED_FIFO is refused");
    }
}

fn chance(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    ((*state >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
}

fn parse() -> Options {
    let mut options = Options {
        messages: 5000,
        period_ns: 1e6,
        work_ns: 200_000,
        size_ns: 6_000_000,
        every_ns: 46e6,
        kind: "condvar".into(),
        poisson: false,
        off: false,
        seed: 1,
        cpu: 1,
        priority: 0,
        log: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--poisson" => options.poisson = true,
            "--off" => options.off = true,
            _ => {
                let value = words.next().unwrap_or_default();
                let number = || value.parse::<f64>().unwrap();
                match word.as_str() {
                    "--messages" => options.messages = number() as u64,
                    "--period-us" => options.period_ns = number() * 1e3,
                    "--work-us" => options.work_ns = number() as u64 * 1000,
                    "--size-us" => options.size_ns = number() as u64 * 1000,
                    "--every-us" => options.every_ns = number() * 1e3,
                    "--kind" => options.kind = value,
                    "--log" => options.log = Some(value),
                    "--seed" => options.seed = number() as u64,
                    "--cpu" => options.cpu = number() as usize,
                    "--priority" => options.priority = number() as i32,
                    _ => panic!("unknown option {word}"),
                }
            }
        }
    }
    options
}
