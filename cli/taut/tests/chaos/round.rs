//! What happens to a recording, one kind of mischief a function. Each ends with what the oracle says.

use std::time::{Duration, Instant};

use crate::{
    oracle::{self, Account},
    stage::{Recorder, Stage},
};

/// A random number from a range, and so on.
pub type Random = fastrand::Rng;

/// A kind of round.
pub type Kind = (&'static str, fn(&mut Random, &'static str) -> Account);

/// All kinds.
pub const KINDS: [Kind; 11] = [
    ("producers killed", producers_killed),
    ("recorder killed", recorder_killed),
    ("both killed", both_killed),
    ("disk full", disk_full),
    ("file size limited", file_limited),
    ("clock stepped", clock_stepped),
    ("recorder stopped", recorder_stopped),
    ("producers stopped", producers_stopped),
    ("200 threads", many_threads),
    ("100 processes a second", short_processes),
    ("session removed", session_removed),
];

fn recorder(tier: &'static str) -> Recorder {
    Recorder { tier, ..Recorder::default() }
}

fn rest(random: &mut Random, ms: std::ops::Range<u64>) {
    std::thread::sleep(Duration::from_millis(random.u64(ms)));
}

/// Robots of a few threads each; forever.
fn robots(stage: &mut Stage, random: &mut Random, count: usize) -> Vec<usize> {
    let robots = (0..count).map(|_| stage.robot(random.u64(1..5), 0, random.u32(20..300))).collect::<Vec<_>>();
    robots.iter().for_each(|robot| stage.wait_until_it_stamps(*robot));
    robots
}

fn kill_all(stage: &mut Stage) {
    (0..stage.robots().len()).for_each(|robot| stage.signal_robot(robot, libc::SIGKILL));
    stage.end_robots();
}

fn producers_killed(random: &mut Random, tier: &'static str) -> Account {
    let mut stage = Stage::new(&recorder(tier));
    let robots = robots(&mut stage, random, 3);
    rest(random, 1..200);
    stage.signal_robot(robots[0], libc::SIGKILL);
    let later = stage.robot(2, 500, 100);
    rest(random, 1..200);
    stage.signal_robot(robots[1], libc::SIGKILL);
    stage.wait_until_it_stamps(later);
    let seen = stage.look().1;
    stage.signal_robot(robots[2], libc::SIGKILL);
    stage.end_robots();
    assert!(matches!(stage.end_recording(), Some(0 | 5)), "{}", stage.said());
    oracle::balances(&stage, &seen)
}

fn recorder_killed(random: &mut Random, tier: &'static str) -> Account {
    let mut stage = Stage::new(&recorder(tier));
    robots(&mut stage, random, 2);
    let ends = stage.robot(2, 1000, 300);
    stage.wait_until_all_are_seen();
    rest(random, 1..500);
    let seen = stage.look().1;
    stage.kill_recorder();
    let account = oracle::is_cut_clean(&stage, &seen);
    // The robots go on as if nothing had been.
    stage.signal_robot(0, libc::SIGKILL);
    stage.signal_robot(1, libc::SIGKILL);
    stage.end_robots();
    assert!(!Stage::was_killed(&stage.robots()[ends]), "a robot came to harm by its recorder's death");
    account
}

fn both_killed(random: &mut Random, tier: &'static str) -> Account {
    let mut stage = Stage::new(&recorder(tier));
    let robots = robots(&mut stage, random, 3);
    stage.wait_until_all_are_seen();
    rest(random, 1..300);
    let seen = stage.look().1;
    let robot_first = random.bool();
    if robot_first {
        stage.signal_robot(robots[0], libc::SIGKILL);
        rest(random, 0..40);
    }
    stage.kill_recorder();
    kill_all(&mut stage);
    oracle::is_cut_clean(&stage, &seen)
}

fn disk_full(random: &mut Random, tier: &'static str) -> Account {
    // SAFETY: geteuid has no preconditions.
    let may_mount = unsafe { libc::geteuid() } == 0;
    full(random, tier, may_mount)
}

fn file_limited(random: &mut Random, tier: &'static str) -> Account {
    full(random, tier, false)
}

fn full(random: &mut Random, tier: &'static str, on_small_disk: bool) -> Account {
    let file_bytes = random.u64(48..100) << 10;
    let mut stage = Stage::new(&Recorder { file_bytes, on_small_disk, ..recorder(tier) });
    let robot = stage.robot(3, 60_000, 0);
    stage.wait_until_it_stamps(robot);
    let seen = stage.look().1;
    // More of them until the disk is full: where they come evenly a stamp takes a fifth of a byte.
    for _ in 0..50 {
        stage.end_robots();
        if stage.said().contains("the recording ends there") {
            break;
        }
        stage.robot(3, 60_000, 0);
    }
    stage.end_robots();
    assert!(stage.robots().iter().all(|robot| !Stage::was_killed(robot)), "a robot came to harm by a full disk");
    assert_eq!(stage.end_recording(), Some(6), "{}", stage.said());
    assert!(stage.said().contains("the recording ends there"), "{}", stage.said());
    oracle::is_cut_clean(&stage, &seen)
}

fn clock_stepped(random: &mut Random, tier: &'static str) -> Account {
    let mut stage = Stage::new(&Recorder { has_clock: true, ..recorder(tier) });
    robots(&mut stage, random, 2);
    for _ in 0..4 {
        rest(random, 50..200);
        stage.step_clock(random.i64(-100_000..100_000));
        stage.robot(1, 200, 100);
    }
    rest(random, 50..200);
    let seen = stage.look().1;
    stage.signal_robot(0, libc::SIGKILL);
    stage.signal_robot(1, libc::SIGKILL);
    stage.end_robots();
    assert!(matches!(stage.end_recording(), Some(0 | 5)), "{}", stage.said());
    oracle::balances(&stage, &seen)
}

fn recorder_stopped(random: &mut Random, tier: &'static str) -> Account {
    let mut stage = Stage::new(&Recorder { ring_records: 1 << random.u32(8..12), ..recorder(tier) });
    robots(&mut stage, random, 2);
    stage.wait_until_all_are_seen();
    for _ in 0..random.u32(1..4) {
        stage.signal_recorder(libc::SIGSTOP);
        rest(random, 20..500);
        // Some die while nobody looks.
        if random.bool() {
            stage.robot(2, 300, 20);
        }
        stage.signal_recorder(libc::SIGCONT);
        rest(random, 1..100);
    }
    let seen = stage.look().1;
    kill_all_endless(&mut stage, 2);
    assert!(matches!(stage.end_recording(), Some(0 | 5)), "{}", stage.said());
    oracle::balances(&stage, &seen)
}

/// Kills the first so many, waits for the others.
fn kill_all_endless(stage: &mut Stage, count: usize) {
    (0..count).for_each(|robot| stage.signal_robot(robot, libc::SIGKILL));
    stage.end_robots();
}

fn producers_stopped(random: &mut Random, tier: &'static str) -> Account {
    let mut stage = Stage::new(&recorder(tier));
    let robots = robots(&mut stage, random, 3);
    for robot in &robots {
        stage.signal_robot(*robot, libc::SIGSTOP);
        rest(random, 1..300);
        // One dies stopped.
        stage.signal_robot(*robot, if random.u32(0..3) == 0 { libc::SIGKILL } else { libc::SIGCONT });
    }
    rest(random, 1..300);
    let seen = stage.look().1;
    kill_all(&mut stage);
    assert!(matches!(stage.end_recording(), Some(0 | 5)), "{}", stage.said());
    oracle::balances(&stage, &seen)
}

fn many_threads(random: &mut Random, tier: &'static str) -> Account {
    // 200 of one process, of which 64 get a ring; and 200 that all do.
    let mut stage = Stage::new(&Recorder { ring_records: 1024, ..recorder(tier) });
    stage.robot(200, random.u64(100..400), random.u32(0..500));
    for _ in 0..4 {
        stage.robot(50, random.u64(100..400), random.u32(100..500));
    }
    rest(random, 1..300);
    let seen = stage.look().1;
    stage.end_robots();
    assert!(matches!(stage.end_recording(), Some(0 | 5)), "{}", stage.said());
    oracle::balances(&stage, &seen)
}

fn short_processes(random: &mut Random, tier: &'static str) -> Account {
    let mut stage = Stage::new(&recorder(tier));
    let began = Instant::now();
    for n in 1..random.u32(80..160) {
        stage.robot(1, random.u64(1..50), 0);
        std::thread::sleep((Duration::from_millis(10) * n).saturating_sub(began.elapsed()));
    }
    let seen = stage.look().1;
    stage.end_robots();
    assert!(matches!(stage.end_recording(), Some(0 | 5)), "{}", stage.said());
    let account = oracle::balances(&stage, &seen);
    assert_eq!(account.lost, 0, "no process was so short that it was missed");
    account
}

fn session_removed(random: &mut Random, tier: &'static str) -> Account {
    let mut stage = Stage::new(&recorder(tier));
    robots(&mut stage, random, 2);
    stage.wait_until_all_are_seen();
    std::fs::remove_dir_all(stage.path("session")).unwrap();
    rest(random, 50..300);
    // It finds no session, and says so in its own account.
    let late = stage.robot(2, 100, 50);
    stage.wait_until_it_stamps(late);
    let seen = stage.look().1;
    kill_all_endless(&mut stage, 2);
    assert!(!Stage::was_killed(&stage.robots()[late]), "a robot came to harm for want of a session");
    assert_eq!(stage.end_recording(), Some(5), "{}", stage.said());
    assert!(stage.said().contains("is gone: what starts now is not recorded"), "{}", stage.said());
    assert_eq!(stage.uncounted(), 1, "how much is lost for want of a session, only the robots know");
    oracle::balances(&stage, &seen)
}
