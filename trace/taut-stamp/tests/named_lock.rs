//! That what `name_lock` names is what the kernel sees: a thread that waits for a `Mutex` waits in futex
//! on a word inside the object.

use std::{
    sync::{Mutex, mpsc::channel},
    time::{Duration, Instant},
};

#[test]
fn a_wait_for_a_mutex_is_on_a_word_inside_it() {
    let lock = Mutex::new([0u8; 24]);
    let place = (&raw const lock).addr();
    let inside = place..place + size_of_val(&lock);
    let held = lock.lock().unwrap();
    let seen = std::thread::scope(|scope| {
        let (tell, tid) = channel();
        let lock = &lock;
        scope.spawn(move || {
            // SAFETY: gettid has no preconditions.
            tell.send(unsafe { libc::gettid() }).unwrap();
            drop(lock.lock().unwrap());
        });
        let seen = futex_address_of(tid.recv().unwrap(), &inside);
        drop(held);
        seen
    });
    assert!(seen.is_some_and(|address| inside.contains(&address)), "{seen:x?} is not in {inside:x?}");
}

/// The first argument of the futex call that a thread of this process is in; polls until it is in one on
/// `wanted`, at most ten minutes, and then tells the last seen.
fn futex_address_of(tid: i32, wanted: &std::ops::Range<usize>) -> Option<usize> {
    let mut last = None;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(600) {
        // "NUMBER 0xARGUMENT …", or "running".
        let call = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).unwrap();
        let mut words = call.split_whitespace();
        if words.next() == Some(&libc::SYS_futex.to_string()) {
            let address = words.next().and_then(|word| usize::from_str_radix(word.strip_prefix("0x")?, 16).ok());
            last = address.or(last);
            if address.is_some_and(|address| wanted.contains(&address)) {
                break;
            }
        }
        std::thread::yield_now();
    }
    last
}
