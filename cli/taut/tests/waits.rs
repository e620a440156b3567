//! Waits on futexes, recorded for real: a mutex is a lock; a semaphore, an atomic's wait and a condition hand over from a thread.

use std::{
    env,
    ffi::OsString,
    path::Path,
    process::Command,
    sync::{Arc, Barrier, Condvar, Mutex, PoisonError, RwLock, atomic::AtomicBool, atomic::Ordering::Relaxed, mpsc},
    thread,
    time::{Duration, Instant},
};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use taut_skip::{Need, skip};
use taut_stamp::{name_lock, stamp};

/// Of each message that is handed over, also in waits.cpp.
const WORK: Duration = Duration::from_millis(2);
/// Messages of a program.
const ROUNDS: u64 = 120;
/// By which means the threads of this test's own program wait for each other; none: it is the test.
const MEANS: &str = "TAUT_TEST_MEANS";

/// Over all messages of a recorded run.
#[derive(Debug)]
struct Spent {
    messages: u64,
    lock_ns: u64,
    other_ns: u64,
}

/// Of all messages together: on a busy machine a single one waits for a CPU above all. `None` where the kernel is not recorded. `within`:
/// words in front of the recorder's.
fn spent(program: &[OsString], means: &str, within: &[&str]) -> Option<Spent> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{means}.mcap"));
    let recorded = Command::new("env")
        .args(within)
        .arg(cargo_bin("taut"))
        .args(["record", "-q", "-o"])
        .arg(&file)
        .arg("--")
        .args(program)
        .env(MEANS, means)
        .output()
        .unwrap();
    // 5: events were lost on a busy machine.
    assert!(matches!(recorded.status.code(), Some(0 | 5)), "{means}: {}", String::from_utf8_lossy(&recorded.stderr));
    let taut = |arguments: &[&str]| {
        let output = Command::new(cargo_bin("taut")).args(arguments).arg(&file).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{means}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let report: Value = serde_json::from_slice(&taut(&["report", "--format", "json"])).unwrap();
    if report["recording"]["tier"] == "stamps" {
        return None;
    }
    let table = String::from_utf8(taut(&["export", "csv", "-o", "-"])).unwrap();
    let mut rows = table.lines().map(|row| row.split(',').collect::<Vec<&str>>());
    let head = rows.next().unwrap();
    let [lock, all] = ["lock_ns", "duration_ns"].map(|name| head.iter().position(|column| *column == name).unwrap());
    let mut spent = Spent { messages: 0, lock_ns: 0, other_ns: 0 };
    for row in rows {
        let [lock_ns, all_ns] = [lock, all].map(|column| row[column].parse::<u64>().unwrap());
        spent.messages += 1;
        spent.lock_ns += lock_ns;
        spent.other_ns += all_ns - lock_ns;
    }
    assert!(spent.messages >= 100, "{means}: {spent:?}");
    Some(spent)
}

/// Recorded again until it is as it must be, or for the tenth time: on a busy machine events are lost, and threads wait for a CPU above all.
fn spent_well(program: &[OsString], means: &str, within: &[&str], is_well: impl Fn(&Spent) -> bool) -> Option<Spent> {
    for _ in 0..9 {
        let spent = spent(program, means, within)?;
        if is_well(&spent) {
            return Some(spent);
        }
    }
    spent(program, means, within)
}

/// The rest is waiting for a CPU.
fn is_of_a_lock(spent: &Spent) -> bool {
    10 * spent.lock_ns > spent.lock_ns + spent.other_ns
}

/// They have a mutex of their own: whoever is woken with it held waits for that, too.
const WITH_MUTEX: [&str; 3] = ["condition", "channel", "condition_barrier"];

/// The work that is waited for is no lock's.
fn is_of_a_hand_over(spent: &Spent, means: &str) -> bool {
    let has_mutex = WITH_MUTEX.contains(&means);
    spent.other_ns >= spent.messages * WORK.as_nanos() as u64 && (spent.lock_ns == 0 || has_mutex)
}

/// A folder with the program of waits.cpp.
fn built() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++20", "-O2", "-I"]).arg(root.join("../../include"));
    compiler.arg(root.join("tests/waits/waits.cpp")).arg("-o").arg(folder.path().join("waits")).arg("-lpthread");
    let compiled = compiler.output().expect("a C++ compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    folder
}

/// The words that run it.
fn waits(folder: &Path, means: &str) -> [OsString; 2] {
    [folder.join("waits").into(), means.into()]
}

/// Whether each of these means of a program is a lock, as it is said to be. `false`: it cannot be tested here.
fn all_are(means: &[(&str, bool)], program: impl Fn(&str) -> Vec<OsString>) -> bool {
    for (means, is_lock) in means {
        let is_well = |spent: &Spent| if *is_lock { is_of_a_lock(spent) } else { is_of_a_hand_over(spent, means) };
        let Some(spent) = spent_well(&program(means), means, &[], is_well) else { return false };
        assert!(is_well(&spent), "{means}: {spent:?}");
    }
    true
}

#[test]
fn in_a_time_namespace_kernel_events_are_on_the_clock_of_the_stamps() {
    let folder = built();
    for ahead_s in ["1000", "-1000"] {
        let within = ["unshare", "--time", "--monotonic", ahead_s, "--fork"];
        let can = Command::new(within[0]).args(&within[1..]).arg("true").output();
        if !can.is_ok_and(|done| done.status.success()) {
            return skip(Need::Namespaces, "time namespaces need the superuser, `unshare` and Linux 5.6");
        }
        let Some(spent) = spent_well(&waits(folder.path(), "mutex"), "mutex", &within, is_of_a_lock) else {
            return skip(Need::Perf, "only stamps were recorded");
        };
        assert!(is_of_a_lock(&spent), "{ahead_s}: {spent:?}");
    }
}

#[test]
fn a_mutex_is_a_lock_and_a_hand_over_is_none() {
    let folder = built();
    let hand_overs = ["semaphore", "atomic", "state", "barrier", "latch", "condition"].map(|means| (means, false));
    let locks = ["std_mutex", "mutex", "robust_mutex", "pi_mutex", "named_readers", "named_writers"];
    let means = [&hand_overs[..], &locks.map(|means| (means, true))].concat();
    if !all_are(&means, |means| waits(folder.path(), means).to_vec()) {
        skip(Need::Perf, "only stamps were recorded");
    }
}

#[test]
fn a_mutex_of_rust_is_a_lock_and_a_hand_over_is_none() {
    if let Ok(means) = env::var(MEANS) {
        return wait_in_rust(&means);
    }
    let own = |_: &str| {
        let words = ["a_mutex_of_rust_is_a_lock_and_a_hand_over_is_none", "--exact"].map(OsString::from);
        [vec![env::current_exe().unwrap().into()], words.to_vec()].concat()
    };
    let hand_overs = ["condition", "channel", "park", "condition_barrier"].map(|means| (means, false));
    let locks = ["mutex", "named_readers", "named_writers"].map(|means| (means, true));
    if !all_are(&[&hand_overs[..], &locks].concat(), own) {
        skip(Need::Perf, "only stamps were recorded");
    }
}

/// What waits.cpp does, by what Rust's library waits with.
fn wait_in_rust(means: &str) {
    match means {
        "condition" => {
            let state = Arc::new((Mutex::new([0u64; 2]), Condvar::new()));
            let set = |state: &(Mutex<[u64; 2]>, Condvar), which: usize, id| {
                state.0.lock().unwrap()[which] = id;
                state.1.notify_all();
            };
            let until = |state: &(Mutex<[u64; 2]>, Condvar), which: usize, id| {
                drop(state.1.wait_while(state.0.lock().unwrap(), |values| values[which] != id).unwrap());
            };
            let giver = state.clone();
            hand_over(
                move |id| {
                    until(&giver, 0, id);
                    work();
                    set(&giver, 1, id);
                },
                |id| {
                    set(&state, 0, id);
                    until(&state, 1, id);
                },
            );
        }
        "channel" => {
            let ((ask, asked), (give, given)) = (mpsc::channel(), mpsc::channel());
            let work_once = move |_| {
                let id: u64 = asked.recv().unwrap();
                work();
                give.send(id).unwrap();
            };
            hand_over(work_once, |id| {
                ask.send(id).unwrap();
                given.recv().unwrap();
            });
        }
        "park" => {
            let (waiter, (ask, asked)) = (thread::current(), mpsc::channel::<Arc<AtomicBool>>());
            let work_once = move |_| {
                let is_given = asked.recv().unwrap();
                work();
                is_given.store(true, Relaxed);
                waiter.unpark();
            };
            hand_over(work_once, |_| {
                let is_given = Arc::new(AtomicBool::new(false));
                ask.send(is_given.clone()).unwrap();
                while !is_given.load(Relaxed) {
                    thread::park();
                }
            });
        }
        "condition_barrier" => {
            let both = Arc::new(Barrier::new(2));
            let giver = both.clone();
            let work_once = move |_| {
                giver.wait();
                work();
                giver.wait();
            };
            hand_over(work_once, |_| {
                both.wait();
                both.wait();
            });
        }
        "mutex" => {
            let lock = Arc::new(Mutex::new(()));
            let take = |lock: &Mutex<()>, then: fn()| {
                let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                then();
            };
            let held = lock.clone();
            contend(move || take(&held, work), || take(&lock, || ()));
        }
        // Neither waiter's words say that they are a lock's.
        "named_readers" | "named_writers" => {
            let lock = Arc::new(RwLock::new(()));
            name_lock("map_lock", &*lock);
            let write = |lock: &RwLock<()>, then: fn()| {
                let _held = lock.write().unwrap_or_else(PoisonError::into_inner);
                then();
            };
            let held = lock.clone();
            let hold = move || write(&held, work);
            match means {
                "named_readers" => contend(hold, || drop(lock.read())),
                _ => contend(hold, || write(&lock, || ())),
            }
        }
        _ => panic!("{means}"),
    }
}

/// Each round one thread asks, and the other gives.
fn hand_over(mut give: impl FnMut(u64) + Send + 'static, mut ask_and_get: impl FnMut(u64)) {
    let giver = thread::spawn(move || (1..=ROUNDS).for_each(&mut give));
    for id in 1..=ROUNDS {
        thread::sleep(Duration::from_millis(1));
        stamp!("want", id);
        ask_and_get(id);
        stamp!("got", id);
    }
    giver.join().unwrap();
}

/// The other holds the lock for 2 of each 6 ms, and never has to wait for it long.
fn contend(mut hold: impl FnMut() + Send + 'static, mut take: impl FnMut()) {
    let is_done = Arc::new(AtomicBool::new(false));
    let done = is_done.clone();
    let holder = thread::spawn(move || {
        while !done.load(Relaxed) {
            thread::sleep(Duration::from_millis(4));
            hold();
        }
    });
    for id in 1..=3 * ROUNDS {
        thread::sleep(Duration::from_millis(1));
        stamp!("want", id);
        take();
        stamp!("got", id);
    }
    is_done.store(true, Relaxed);
    holder.join().unwrap();
}

fn work() {
    let start = Instant::now();
    while start.elapsed() < WORK {}
}
