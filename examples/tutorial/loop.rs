//! A loop of one's own. 200 times a second a state is read, a command planned on a map and sent; now and
//! then it is late. `loop [--fixed]`

use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

use taut_stamp::{Point, applied, monotonic_ns, name_lock, prepare_thread, stamp, stamp_at};

const PERIOD_NS: u64 = 5_000_000;
static OBSTACLES: Mutex<[f64; 3]> = Mutex::new([0.1, 0.2, 0.3]);
static MAP_LOCK: Point = Point::new("map_lock");
static DONE: AtomicBool = AtomicBool::new(false);

/// Both ends of each wait are marked, so that it is seen without root, too.
fn lock_map() -> MutexGuard<'static, [f64; 3]> {
    MAP_LOCK.lock_wait();
    let held = OBSTACLES.lock().unwrap();
    MAP_LOCK.lock_acquired();
    held
}

fn sense(inbox: Sender<u64>) {
    prepare_thread(); // the one slow step, before real time begins
    let mut due_ns = monotonic_ns();
    for number in 0..1000 {
        due_ns += PERIOD_NS;
        thread::sleep(Duration::from_nanos(due_ns.saturating_sub(monotonic_ns())));
        stamp_at!("sense.read", number, due_ns); // the message with this number was here, and due then
        inbox.send(number).unwrap();
    }
}

fn control(inbox: Receiver<u64>) {
    prepare_thread();
    for number in inbox {
        stamp!("control.taken", number);
        let command: f64 = lock_map().iter().sum();
        stamp!("control.planned", number);
        send(command);
        stamp!("drive.sent", number);
        applied(number); // every message ends once: applied, or outcome(number, "reason")
    }
}

fn send(_command: f64) {
    thread::sleep(Duration::from_micros(200)); // stands for the drive
}

fn look() -> [f64; 3] {
    thread::sleep(Duration::from_millis(12)); // stands for the camera
    [0.1, 0.2, 0.3]
}

fn update_map(fixed: bool) {
    while !DONE.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(100));
        if fixed {
            let seen = look();
            *lock_map() = seen;
        } else {
            let mut held = lock_map();
            *held = look();
        }
    }
}

fn main() {
    name_lock("map_lock", &OBSTACLES); // what the kernel sees of it has the name, too
    let fixed = std::env::args().any(|argument| argument == "--fixed");
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        scope.spawn(move || update_map(fixed));
        let controller = scope.spawn(move || control(receiver));
        scope.spawn(move || sense(sender));
        controller.join().unwrap();
        DONE.store(true, Ordering::Relaxed);
    });
}
