//! The scenarios, each for every producer. A scenario's expectation is written where its step is.

use std::{path::Path, process::Command};

use crate::{build::Producer, run::*};
use taut_skip::{Need, skip};

macro_rules! for_every_producer {
    ($($scenario:ident)*) => {
        mod c11 { $(#[test] fn $scenario() { super::$scenario(&crate::build::c()); })* }
        mod cpp17 { $(#[test] fn $scenario() { super::$scenario(&crate::build::cpp()); })* }
        mod rust { $(#[test] fn $scenario() { super::$scenario(&crate::build::rust()); })* }
        mod c11_sanitized { $(#[test] fn $scenario() { super::$scenario(&crate::build::sanitized()); })* }
    };
}

for_every_producer! {
    every_kind_of_record_arrives_as_written
    a_stamp_carries_the_time_that_it_was_due
    a_named_lock_arrives_with_its_place_and_its_size
    time_is_of_the_counter_that_was_asked_for
    threads_keep_their_order_and_their_tids
    a_thread_that_ends_leaves_its_slot_to_the_next
    a_full_ring_drops_the_newest_and_counts
    names_are_cut_at_a_character_and_refused_when_the_table_is_full
    names_refused_four_billion_times_leave_the_table_as_it_is
    a_fork_stamps_into_its_own_file_with_the_ids_it_knew
    a_fork_of_a_fork_and_a_fork_by_a_thread_do_too
    a_raw_clone_stamps_after_it_said_so
    exec_attaches_anew
    a_killed_producer_loses_nothing_it_wrote
    without_a_session_nothing_is_stamped_or_lost
    a_missing_session_is_counted_until_one_is_given
    a_session_that_could_not_be_had_is_tried_again
    a_session_that_cannot_be_written_is_counted
    a_session_without_space_for_a_header_is_counted
    a_session_without_space_for_a_ring_is_counted
    threads_beyond_the_slots_are_counted
    threads_that_ended_before_a_recorder_came_leave_their_slots
    a_thread_without_a_slot_looks_again
    names_of_locks_outlive_the_thread_that_gave_them
    threads_come_and_go_while_recorders_come_and_go
    a_limit_on_file_sizes_is_counted
    signals_do_not_keep_a_thread_from_its_ring
    locked_memory_costs_only_the_rings_in_use
    a_daemon_that_closes_all_files_keeps_its_own_whole
    errno_outlives_a_first_stamp
}

/// What C and C++ alone can do.
macro_rules! for_c_and_cpp {
    ($($scenario:ident)*) => {
        mod c11_only { $(#[test] fn $scenario() { super::$scenario(&crate::build::c()); })* }
        mod cpp17_only { $(#[test] fn $scenario() { super::$scenario(&crate::build::cpp()); })* }
        mod c11_sanitized_only { $(#[test] fn $scenario() { super::$scenario(&crate::build::sanitized()); })* }
    };
}

for_c_and_cpp! {
    all_translation_units_and_linked_objects_share_one_file
    a_plugin_may_stamp_and_be_closed
    no_directory_is_that_of_the_environment
    a_child_whose_thread_ends_does_not_close_its_parents_slot
}

fn every_kind_of_record_arrives_as_written(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    run.stamp(0, "leader.read", 1);
    run.stamp(0, "größe→Σ", u64::MAX);
    for id in [0, 7] {
        run.stamps(0, &format!("site {id}"), STAMP, "site", id, "0");
        run.stamps(0, &format!("drop {id}"), OUTCOME, "", id, "site.reason");
        run.stamps(0, &format!("outcome {id} speed_limit"), OUTCOME, "", id, "speed_limit");
        run.stamps(0, &format!("applied {id}"), OUTCOME, "", id, "applied");
        run.stamps(0, "begin", BEGIN, "work", 0, "0");
        run.stamps(0, "end", END, "work", 0, "0");
        run.stamps(0, "lock_wait", LOCK_WAIT, "lock", 0, "0");
        run.stamps(0, "lock_acquired", LOCK_ACQUIRED, "lock", 0, "0");
    }
    for value in [0.0, -0.0, 1.5, -2.25e-300, f64::INFINITY] {
        run.stamps(0, &format!("value {value}"), VALUE, "signal", 0, &value.to_bits().to_string());
    }
    assert_eq!(run.tell(0, "attached").result, 1);
    run.finish();
    assert_eq!(run.lost_in_all(), 0);
}

fn a_stamp_carries_the_time_that_it_was_due(producer: &Producer) {
    // Producers write for the usual counter in another way than for the others.
    for environment in [&[][..], &[("TAUT_CLOCK", "monotonic")]] {
        let mut run = Run::new(producer, environment);
        let now = monotonic_ns();
        for due in [now, now + 1_000_000, 1, u64::MAX, 0] {
            run.stamps(0, &format!("stamp_at loop.released 7 {due}"), STAMP, "loop.released", 7, &due.to_string());
            run.stamps(0, &format!("site_at 8 {due}"), STAMP, "site", 8, &due.to_string());
            run.stamps(0, "site 9", STAMP, "site", 9, "0");
        }
        let after = monotonic_ns();
        run.finish();
        assert_eq!(run.lost_in_all(), 0);
        // The stamp's own time is when it was made, whatever was intended.
        if !environment.is_empty() {
            assert!(run.ticks.iter().all(|ticks| (now..=after).contains(ticks)), "{now} {:?} {after}", run.ticks);
        }
    }
}

fn a_named_lock_arrives_with_its_place_and_its_size(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    let bytes = run.tell(0, "mutex_bytes").result as u64;
    run.must(1, "thread");
    for (thread, words, name, bytes) in [
        (0, "name_mutex sdk_lock", "sdk_lock", bytes),
        (1, "name_word a.futex", "a.futex", 4),
        (0, "name_mutex sdk_lock→2", "sdk_lock→2", bytes),
    ] {
        let named = run.tell(thread, words);
        // Not 0, and not on one of the first pages: a place in the process.
        assert!(named.result > 4096, "{words} answered {}", named.result);
        run.expect(named, LOCK_NAMED, name, bytes, &named.result.to_string());
    }
    // A child has the same lock at the same place, and tells it under the id that its parent knew.
    run.must(0, "fork");
    let named = run.tell(0, "name_mutex sdk_lock");
    run.expect(named, LOCK_NAMED, "sdk_lock", bytes, &named.result.to_string());
    run.must(0, "exit");
    run.returned_to_parent();
    run.finish();
    assert_eq!(run.lost_in_all(), 0);
}

fn time_is_of_the_counter_that_was_asked_for(producer: &Producer) {
    let mut run = Run::new(producer, &[("TAUT_CLOCK", "monotonic")]);
    let before = monotonic_ns();
    run.stamp(0, "a", 1);
    run.stamp(0, "a", 2);
    let after = monotonic_ns();
    run.finish();
    assert_eq!(run.counters, [2]);
    assert!(
        before < run.ticks[0] && run.ticks[0] <= run.ticks[1] && run.ticks[1] < after,
        "{before} {:?} {after}",
        run.ticks
    );

    #[cfg(target_arch = "x86_64")]
    {
        let mut run = Run::new(producer, &[("TAUT_CLOCK", "tsc")]);
        // SAFETY: RDTSC reads a register. Other cores' counters agree with this one within a round trip.
        let now = || unsafe { std::arch::x86_64::_rdtsc() };
        let before = now();
        run.stamp(0, "a", 1);
        let after = now();
        run.finish();
        assert_eq!(run.counters, [1]);
        assert!(before < run.ticks[0] && run.ticks[0] < after, "{before} {:?} {after}", run.ticks);
    }
}

fn threads_keep_their_order_and_their_tids(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    let mut tids = vec![run.stamp(0, "a", 0).tid];
    for thread in 1..=8 {
        run.must(thread, "thread");
        assert_eq!(run.tell(thread, "prepare").result, 1);
    }
    for id in 0..30 {
        for thread in [3, 1, 4, 8, 5, 2, 6, 7, 0] {
            let by = run.stamp(thread, "a", id);
            tids.push(by.tid);
        }
        if id % 7 == 0 {
            run.drain();
        }
    }
    tids.sort_unstable();
    tids.dedup();
    assert_eq!(tids.len(), 9);
    run.finish();
    assert_eq!(run.lost_in_all(), 0);
}

fn a_thread_that_ends_leaves_its_slot_to_the_next(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    // Three times as many threads as there are slots, one after the other; what each wrote must arrive.
    for n in 0..192 {
        run.must(1, "thread");
        run.stamp(1, "short.life", n);
        run.must(1, "join");
        if n % 20 == 0 {
            run.drain();
        }
    }
    run.finish();
    assert_eq!(run.lost_in_all(), 0);
}

fn threads_beyond_the_slots_are_counted(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    for thread in 1..=64 {
        run.must(thread, "thread");
        run.stamp(thread, "has.slot", thread as u64);
    }
    run.must(65, "thread");
    assert_eq!(run.tell(65, "prepare").result, 0);
    run.must(65, "many no.slot 0 10");
    run.must(0, "stamp no.slot 99");
    assert_eq!(run.tell(0, "lost").result, 11);
    let pid = run.pid();
    run.drain();
    assert_eq!(run.lost_at(&format!("process {pid}, no ring")), 11);
    // A thread that ends makes room for a new thread.
    run.must(64, "join");
    run.drain();
    run.must(66, "thread");
    run.stamp(66, "has.slot", 66);
    run.must(65, "stamp no.slot 100");
    run.finish();
    assert_eq!(run.lost_in_all(), 12);
}

fn a_thread_without_a_slot_looks_again(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    for thread in 1..=64 {
        run.must(thread, "thread");
        run.stamp(thread, "has.slot", thread as u64);
    }
    run.must(0, "many no.slot 0 100");
    // Closed, and the consumer has not been there: that is the consumer's to free.
    run.must(64, "join");
    run.must(0, "many no.slot 100 27");
    assert_eq!(run.tell(0, "lost").result, 127);
    run.drain();
    // The 128th try is one that looks.
    run.many(0, "has.slot", 127, 50, 50);
    run.finish();
    assert_eq!(run.lost_in_all(), 127);
}

/// As in the issue: a hundred short threads stamped before a recorder attached, and then comes the control thread.
fn threads_that_ended_before_a_recorder_came_leave_their_slots(producer: &Producer) {
    let mut run = Run::unwatched(producer);
    for id in 0..100 {
        run.must(1, "thread");
        run.must(1, &format!("many short.life {id} 3"));
        run.must(1, "join");
    }
    run.must(2, "thread");
    assert_eq!(run.tell(2, "prepare").result, 1);
    // 100 threads and this one had 64 slots: what 37 of them wrote gave way.
    assert_eq!(run.tell(0, "lost").result, 37 * 3);
    run.watch_late();
    run.many(2, "control", 0, 40, 40);
    run.finish();
    assert_eq!(run.lost_in_all(), 0, "a recorder that comes late counts from then on");
}

fn names_of_locks_outlive_the_thread_that_gave_them(producer: &Producer) {
    let mut run = Run::unwatched(producer);
    run.must(1, "thread");
    run.must(1, "many short.life 0 5");
    let (named, word) = (run.tell(1, "name_mutex sdk_lock"), run.tell(1, "name_word a.futex"));
    let bytes = run.tell(1, "mutex_bytes").result as u64;
    run.must(1, "many short.life 5 5");
    run.must(1, "join");
    // So that the first slot is taken again.
    for thread in 2..=64 {
        run.must(thread, "thread");
        run.must(thread, "stamp has.slot 1");
    }
    let by = run.must(0, "stamp has.slot 1");
    assert_eq!(run.tell(0, "lost").result, 10);
    run.watch_late();
    run.drain();
    run.expect(by, LOCK_NAMED, "sdk_lock", bytes, &named.result.to_string());
    run.expect(by, LOCK_NAMED, "a.futex", 4, &word.result.to_string());
    run.many(0, "has.slot", 2, 60, 60);
    run.finish();
}

/// A reclaim may meet a recorder that attaches at that moment, drains, or leaves: each stamp arrives once or is counted.
fn threads_come_and_go_while_recorders_come_and_go(producer: &Producer) {
    let mut run = Run::unwatched(producer);
    // Of 64 slots 62 are taken for good.
    for thread in 1..=62 {
        run.must(thread, "thread");
        run.must(thread, "stamp stays 0");
    }
    run.begin(0, "churn 4 300 20");
    let mut arrived = 0;
    let mut visits = 0;
    while !run.has_answered() {
        arrived += run.visit();
        visits += 1;
    }
    assert_eq!(run.answer_to("churn").result, 0);
    let lost = run.tell(0, "lost").result as u64;
    run.must(0, "exit");
    arrived += run.visit();
    assert!(visits > 0);
    assert_eq!(arrived + lost, 62 + 4 * 300 * 20);
}

fn a_full_ring_drops_the_newest_and_counts(producer: &Producer) {
    // Producers write for the usual counter in another way than for the others.
    for environment in [&[][..], &[("TAUT_CLOCK", "monotonic")]] {
        fill_a_ring(Run::new(producer, environment));
    }
}

fn fill_a_ring(mut run: Run) {
    let by = run.many(0, "a", 0, 100, 64);
    assert_eq!(run.tell(0, "lost").result, 36);
    run.drain();
    run.assert_equal();
    run.many(0, "a", 1000, 63, 63);
    run.drain();
    run.many(0, "a", 2000, 65, 64);
    run.drain();
    assert_eq!(run.tell(0, "lost").result, 37);
    assert_eq!(run.lost_at(&format!("{}/{}", by.pid, by.tid)), 37);
    run.finish();
    assert_eq!(run.lost_in_all(), 37);
}

fn names_are_cut_at_a_character_and_refused_when_the_table_is_full(producer: &Producer) {
    let mut run = Run::new(producer, &[("TAUT_RING_RECORDS", "4096")]);
    let (fits, long, in_character) = ("x".repeat(119), "y".repeat(130), format!("{}€€", "z".repeat(117)));
    run.stamp(0, &fits, 1);
    run.stamps(0, &format!("stamp {long} 2"), STAMP, &long[..119], 2, "0");
    run.stamps(0, &format!("stamp {in_character} 3"), STAMP, &in_character[..117], 3, "0");
    // Three names are there; 2045 fit beside them, then they are refused, and known ones still go.
    for n in 0..2045 {
        run.stamp(0, &format!("name{n}"), n);
    }
    for n in 0..5 {
        run.stamps(0, &format!("stamp refused{n} {n}"), STAMP, "", n, "0");
    }
    // A call site asks once: its next stamps do not look through the table again.
    for id in 0..3 {
        run.stamps(0, &format!("site {id}"), STAMP, "", id, "0");
    }
    run.stamp(0, "name2044", 1);
    let pid = run.pid();
    run.finish();
    assert_eq!(run.lost_at(&format!("process {pid}, name table full")), 6);
    assert_eq!(run.lost_in_all(), 6);
}

fn names_refused_four_billion_times_leave_the_table_as_it_is(producer: &Producer) {
    use std::os::unix::fs::FileExt;
    let mut run = Run::new(producer, &[]);
    run.stamp(0, "first", 1);
    // As after many reasons that were made at run time.
    let file = std::fs::File::options().write(true).open(&run.ring_files()[0]).unwrap();
    file.write_all_at(&u32::MAX.to_le_bytes(), 128).unwrap();
    for n in 0..3 {
        run.stamps(0, &format!("stamp refused{n} {n}"), STAMP, "", n, "0");
    }
    run.stamp(0, "first", 2);
    let pid = run.pid();
    run.finish();
    assert_eq!(run.lost_at(&format!("process {pid}, name table full")), 3);
}

fn a_fork_stamps_into_its_own_file_with_the_ids_it_knew(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    run.stamps(0, "site 1", STAMP, "site", 1, "0");
    run.stamps(0, "drop 1", OUTCOME, "", 1, "site.reason");
    let parent = run.stamps(0, "begin", BEGIN, "work", 0, "0");
    let child = run.must(0, "fork");
    assert_ne!(parent.pid, child.pid);
    assert_eq!(run.tell(0, "lost").result, 0);
    assert_eq!(run.ring_files().len(), 2, "asking for losses made the child's file");
    // The call sites kept their ids over the fork; new names come after the copied ones.
    run.stamps(0, "drop 2", OUTCOME, "", 2, "site.reason");
    run.stamps(0, "site 2", STAMP, "site", 2, "0");
    run.stamp(0, "child.only", 3);
    run.must(1, "thread");
    run.stamps(1, "site 4", STAMP, "site", 4, "0");
    run.stamps(0, "end", END, "work", 0, "0");
    assert_eq!(run.must(0, "exit").pid, child.pid);
    assert_eq!(run.returned_to_parent().pid, parent.pid);
    run.stamps(0, "site 5", STAMP, "site", 5, "0");
    run.stamp(0, "parent.only", 6);
    run.finish();
    assert_eq!(run.lost_in_all(), 0);
}

fn a_fork_of_a_fork_and_a_fork_by_a_thread_do_too(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    run.stamp(0, "a", 1);
    run.must(0, "fork");
    // This one does not stamp, and its child does: names come from the grandparent's table.
    run.must(0, "fork");
    run.stamp(0, "a", 2);
    run.must(0, "exit");
    run.returned_to_parent();
    run.must(0, "exit");
    run.returned_to_parent();
    run.must(5, "thread");
    run.stamp(5, "b", 3);
    let child = run.must(5, "fork");
    run.stamp(5, "b", 4);
    assert_eq!(run.must(5, "exit").pid, child.pid);
    run.returned_to_parent();
    run.stamp(5, "b", 5);
    run.must(5, "join");
    run.finish();
    assert_eq!(run.lost_in_all(), 0);
}

fn a_raw_clone_stamps_after_it_said_so(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    run.stamps(0, "site 1", STAMP, "site", 1, "0");
    run.must(0, "clone");
    run.stamps(0, "site 2", STAMP, "site", 2, "0");
    run.must(0, "exit");
    run.returned_to_parent();
    run.stamps(0, "site 3", STAMP, "site", 3, "0");
    run.finish();
    assert_eq!(run.lost_in_all(), 0);
}

fn exec_attaches_anew(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    run.stamps(0, "site 1", STAMP, "site", 1, "0");
    run.stamp(0, "before", 2);
    run.drain(); // One thread, two files: taken in the order they were written.
    run.must(0, "exec");
    run.stamp(0, "after", 3);
    run.stamps(0, "site 4", STAMP, "site", 4, "0");
    let mut files: Vec<String> =
        run.ring_files().iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    files.sort();
    assert_eq!(files, [format!("{}-0.taut", run.pid()), format!("{}-1.taut", run.pid())]);
    run.finish();
    assert_eq!(run.lost_in_all(), 0);
}

fn a_killed_producer_loses_nothing_it_wrote(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    run.many(0, "a", 0, 50, 50);
    run.must(1, "thread");
    run.stamp(1, "b", 1);
    run.kill();
    run.assert_equal();
    assert!(run.ring_files().is_empty());
    assert_eq!(run.lost_in_all(), 0);
}

fn without_a_session_nothing_is_stamped_or_lost(producer: &Producer) {
    for session in [None, Some("")] {
        let mut command = Command::new(&producer.program);
        command.env_remove("TAUT_SESSION");
        if let Some(session) = session {
            command.env("TAUT_SESSION", session);
        }
        let mut run = Run::alone(command);
        run.must(0, "site 1");
        run.must(0, "many a 0 100");
        assert_eq!(run.tell(0, "prepare").result, 0);
        assert_eq!(run.tell(0, "attached").result, 0);
        assert_eq!(run.tell(0, "lost").result, 0);
        run.finish_alone();
    }
}

fn a_missing_session_is_counted_until_one_is_given(producer: &Producer) {
    let mut command = Command::new(&producer.program);
    command.env("TAUT_SESSION", "/dev/shm/there is no such session");
    let mut run = Run::alone(command);
    run.must(0, "site 1");
    run.must(0, "many a 2 9");
    assert_eq!(run.tell(0, "attached").result, 0);
    assert_eq!(run.tell(0, "lost").result, 10);
    let directory = run.directory().to_owned();
    assert_eq!(run.tell(0, &format!("attach {}", directory.display())).result, 1);
    run.watch(&directory);
    // The call site asked before there was a table; it must ask again.
    run.stamps(0, "site 11", STAMP, "site", 11, "0");
    assert_eq!(run.tell(0, "lost").result, 10);
    run.finish();
    assert_eq!(run.lost_in_all(), 10);
}

/// What keeps a process from its ring file may be over soon: no descriptor left, no room, a directory that comes a moment later.
fn a_session_that_could_not_be_had_is_tried_again(producer: &Producer) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let session = folder.path().join("session");
    let mut command = Command::new(&producer.program);
    command.env("TAUT_SESSION", &session);
    let mut run = Run::alone(command);
    run.must(0, "many a 0 5");
    std::fs::create_dir(&session).unwrap();
    run.must(0, "many a 5 2");
    assert_eq!(run.tell(0, "attached").result, 0);
    // The 8th that is lost is one that tries.
    run.must(0, "many a 7 1");
    assert_eq!(run.tell(0, "attached").result, 1);
    run.watch(&session);
    run.many(0, "a", 8, 50, 50);
    run.must(1, "thread");
    run.stamp(1, "b", 1);
    assert_eq!(run.tell(0, "lost").result, 8);
    run.finish();
    assert_eq!(run.lost_in_all(), 8);
}

fn a_session_that_cannot_be_written_is_counted(producer: &Producer) {
    fails_to_attach(producer, "ro");
}

fn a_session_without_space_for_a_header_is_counted(producer: &Producer) {
    fails_to_attach(producer, "size=64k");
}

fn fails_to_attach(producer: &Producer, mount_options: &str) {
    let Some(command) = on_a_file_system(producer, mount_options) else { return };
    let mut run = Run::alone(command);
    run.must(0, "site 1");
    run.must(1, "thread");
    run.must(1, "many a 2 9");
    assert_eq!(run.tell(1, "attached").result, 0);
    assert_eq!(run.tell(0, "lost").result, 10);
    assert_eq!(
        std::fs::read_dir(format!("/proc/{}/root/mnt", run.pid())).unwrap().count(),
        0,
        "nothing is left behind"
    );
    run.finish_alone();
}

fn a_session_without_space_for_a_ring_is_counted(producer: &Producer) {
    let Some(mut command) = on_a_file_system(producer, "size=512k") else { return };
    command.env("TAUT_RING_RECORDS", "4096"); // a ring is 128 KiB, the fixed part 276: one fits
    let mut run = Run::alone(command);
    run.stamp(0, "fits", 1);
    run.must(1, "thread");
    run.must(1, "many no.space 0 10");
    run.must(1, "many no.space 0 10");
    assert_eq!(run.tell(0, "lost").result, 20);
    let directory = format!("/proc/{}/root/mnt", run.pid());
    run.watch(Path::new(&directory));
    run.stamp(0, "fits", 2);
    run.drain();
    run.assert_equal();
    assert_eq!(run.lost_at(&format!("process {}, no ring", run.pid())), 20);
    run.finish_alone();
}

/// The producer in a mount namespace of its own whose session is a tmpfs mounted with these options.
fn on_a_file_system(producer: &Producer, mount_options: &str) -> Option<Command> {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount"]);
        command
    };
    if !unshare().arg("true").status().is_ok_and(|status| status.success()) {
        skip(Need::Namespaces, "no user and mount namespaces (unshare --user --mount)");
        return None;
    }
    let mut command = unshare();
    let script = format!("mount -t tmpfs -o {mount_options} taut /mnt && exec \"$0\"");
    command.args(["sh", "-c", &script]).arg(&producer.program).env("TAUT_SESSION", "/mnt");
    Some(command)
}

fn a_limit_on_file_sizes_is_counted(producer: &Producer) {
    let mut run = Run::new(producer, &[("TAUT_RING_RECORDS", "131072")]);
    run.must(0, "limit_files 1048576");
    run.must(0, "site 1");
    assert_eq!(run.tell(0, "attached").result, 0);
    assert_eq!(run.tell(0, "lost").result, 1);
    run.finish();
}

fn signals_do_not_keep_a_thread_from_its_ring(producer: &Producer) {
    // 32 MiB take the kernel much longer than a signal is away.
    let mut run = Run::new(producer, &[("TAUT_RING_RECORDS", "1048576")]);
    run.must(0, "alarm_each 50");
    run.stamp(0, "a", 1);
    run.must(1, "thread");
    run.stamp(1, "a", 2);
    run.must(0, "alarm_each 0");
    run.finish();
    assert_eq!(run.lost_in_all(), 0);
}

fn locked_memory_costs_only_the_rings_in_use(producer: &Producer) {
    let mut run = Run::new(producer, &[("TAUT_RING_RECORDS", "1024")]);
    if run.tell(0, "lock_memory").result != 0 {
        return skip(Need::Memlock, "this user may not lock memory");
    }
    run.stamp(0, "a", 1);
    let used: u64 = run.ring_files().iter().map(|path| blocks(path) * 512).sum();
    // The fixed part and one ring of 32 KiB, not 64 of them (2 MiB).
    assert!(used < 512 << 10, "{used} bytes of memory are taken");
    run.finish();
}

fn a_daemon_that_closes_all_files_keeps_its_own_whole(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    run.stamp(0, "a", 1);
    let own_file = run.directory().join("robot.log");
    assert!(run.tell(0, &format!("close_all {}", own_file.display())).result >= 3);
    run.stamp(0, "a", 2);
    run.must(1, "thread");
    run.must(1, "stamp a 3"); // It needs a ring, and there is no descriptor to make it with.
    assert_eq!(std::fs::metadata(&own_file).unwrap().len(), 0, "nothing was written to the robot's file");
    assert_eq!(run.tell(0, "lost").result, 1);
    run.must(0, "fork");
    run.stamp(0, "a", 4);
    run.must(0, "exit");
    run.returned_to_parent();
    assert_eq!(std::fs::metadata(&own_file).unwrap().len(), 0);
    std::fs::remove_file(own_file).unwrap();
    run.finish();
}

fn all_translation_units_and_linked_objects_share_one_file(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    run.stamps(0, "elsewhere 1", STAMP, "elsewhere", 1, "0");
    run.stamps(0, "linked 2", STAMP, "linked", 2, "0");
    run.stamps(0, "site 3", STAMP, "site", 3, "0");
    assert_eq!(run.ring_files().len(), 1);
    run.must(0, "fork");
    run.stamps(0, "linked 4", STAMP, "linked", 4, "0");
    run.stamps(0, "site 5", STAMP, "site", 5, "0");
    run.must(0, "exit");
    run.returned_to_parent();
    run.finish();
}

fn a_plugin_may_stamp_and_be_closed(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    let plugin = producer.plugin.as_ref().unwrap().display().to_string();
    run.must(1, "thread");
    run.stamps(1, &format!("plugin {plugin} 1"), STAMP, "plugin", 1, "0");
    // Handlers at thread exit and fork must still be there though the plugin was closed.
    run.must(1, "join");
    run.must(0, "fork");
    run.must(0, "exit");
    run.returned_to_parent();
    run.finish();
}

fn no_directory_is_that_of_the_environment(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    assert_eq!(run.tell(0, "attach ").result, 1);
    run.stamp(0, "a", 1);
    run.finish();
}

fn errno_outlives_a_first_stamp(producer: &Producer) {
    let mut run = Run::new(producer, &[("TAUT_SESSION", "/dev/shm/there is no such session")]);
    assert_eq!(run.tell(0, "errno 1").result, 77);
    run.must(0, "exit");
}

fn a_child_whose_thread_ends_does_not_close_its_parents_slot(producer: &Producer) {
    let mut run = Run::new(producer, &[]);
    run.stamp(0, "a", 1);
    run.must(0, "fork_and_end_thread");
    run.drain(); // A slot wrongly closed would be freed here, and then be the next thread's too.
    run.must(1, "thread");
    run.stamp(1, "b", 2);
    run.stamp(0, "a", 3);
    run.finish();
}

fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn blocks(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).unwrap().blocks()
}
