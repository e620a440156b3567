//! Writes telemetry: `telemetry COUNT [fork|kill|full|refused|later]`. The same as `c/telemetry.c`, value by value.

use taut_stamp::telemetry::{Channel, Telemetry, Text};

#[derive(Clone, Copy, Telemetry)]
#[repr(u8)]
enum Mode {
    Stopped = 0,
    Position = 10,
}

// The names are those of the C program.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Telemetry)]
#[repr(C)]
struct joint_t {
    /// rad
    position: f64,
    /// N·m
    torque: f32,
    mode: Mode,
}

#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Telemetry)]
#[repr(C)]
struct leg_t {
    cycle: u64,
    /// from the hip down
    joints: [joint_t; 3],
    contact: [bool; 4],
    /// mA
    current: [i16; 2],
    state: Text<12>,
    spare: joint_t,
    gains: [[f64; 3]; 2],
    last: i8,
}

fn write_one(log: &mut Channel<leg_t>, cycle: u64) {
    let joint = |i: u8| joint_t {
        position: cycle as f64 + f64::from(i) * 0.25,
        torque: -1.5 * f32::from(i),
        mode: if i == 1 { Mode::Position } else { Mode::Stopped },
    };
    log.write(&leg_t {
        cycle,
        joints: [joint(0), joint(1), joint(2)],
        contact: [0, 1, 2, 3].map(|i| cycle >> i & 1 == 1),
        current: [-300, 300],
        state: Text::new(&format!("s{cycle}")),
        spare: joint(1),
        gains: [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
        last: -7,
    });
}

/// Values lost of one that is written to a channel of this name and rate.
fn lost_of(name: &str, rate_hz: f64) -> u64 {
    let mut log = Channel::new(name, rate_hz);
    write_one(&mut log, 9);
    log.lost()
}

/// Lets files be so long; returns how long they might be before.
fn limit_files(bytes: libc::rlim_t) -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls are given a live local.
    unsafe {
        libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit);
        let before = std::mem::replace(&mut limit.rlim_cur, bytes);
        libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
        before
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count: u64 = arguments.get(1).map_or(1, |count| count.parse().expect("COUNT is a number"));
    let what = arguments.get(2).map_or("", String::as_str);
    // The channel gets no file before its second value.
    let before = (what == "later" && taut_stamp::status().attached).then(|| limit_files(4096));
    let mut log = Channel::new("leg", if what == "full" { 1.0 } else { 1000.0 });
    for cycle in 0..count {
        if let Some(before) = before.filter(|_| cycle == 1) {
            limit_files(before);
        }
        write_one(&mut log, cycle);
    }
    let mut refused = 0;
    if what == "refused" {
        refused +=
            [0.0, -1.0, f64::NAN, f64::INFINITY, 1e12].map(|rate_hz| lost_of("none", rate_hz)).iter().sum::<u64>();
        refused += ["", " \n"].map(|name| lost_of(name, 1000.0)).iter().sum::<u64>();
    }
    if what == "fork" {
        // SAFETY: the child has one thread and ends by _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            (0..count).for_each(|cycle| write_one(&mut log, 1000 + cycle));
            // SAFETY: ends the child as it is.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: our own child; its status is not asked for.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        write_one(&mut log, count);
    }
    if what == "kill" {
        // SAFETY: ends this process, as is meant.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    println!("{}", log.lost() + refused);
}
