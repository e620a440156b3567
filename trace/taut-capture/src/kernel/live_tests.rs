//! The sources against the running kernel. Those that need privilege are skipped without it, and reported.

#![expect(clippy::zombie_processes, reason = "a failed assertion ends the test process and with it the child")]

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use taut_recording::{KernelEvent, Tier};
use taut_skip::{Need, skip};

use super::rows::Row;
use super::{Chosen, Depth, Source, Wanted, start};

const ROUNDS: usize = 200;

/// A full-tier source of that name, or nothing and a word about it.
fn full(source: &str, depth: Depth, pid: i32) -> Option<Chosen> {
    let wanted = Wanted { source: Some(source.into()), pid, depth, follow_existing_threads: true, ..Wanted::default() };
    match start(&wanted) {
        Ok(chosen) => Some(chosen),
        Err(error) => {
            not_permitted(source, &error.to_string());
            None
        }
    }
}

/// Only what is not permitted may be skipped; everything else is a failure.
#[track_caller]
fn not_permitted(source: &str, error: &str) {
    assert!(error.to_lowercase().contains("permi"), "{error}");
    skip(if source == "perf" { Need::Perf } else { Need::Ftrace }, error);
}

/// A child that copies its input to its output line by line: the other end of a ping-pong.
fn echo() -> Child {
    Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn ping_pong(child: &mut Child, rounds: usize) {
    let (input, output) = (child.stdin.as_mut().unwrap(), child.stdout.as_mut().unwrap());
    let mut byte = [b'x'];
    for _ in 0..rounds {
        input.write_all(&byte).unwrap();
        output.read_exact(&mut byte).unwrap();
    }
}

/// Everything from now to the end, CPU by CPU, each checked to be in time order.
fn finish(mut chosen: Chosen) -> (Vec<Row>, u64) {
    let source = chosen.source.as_mut().unwrap();
    let (mut rows, mut last) = (Vec::new(), HashMap::new());
    for ended in [false, true] {
        if ended {
            source.stop().unwrap();
        }
        let mut sink = |batch: taut_recording::KernelBatch| {
            for at in 0..batch.time_ns.len() {
                let time_ns = batch.time_ns[at];
                let before = last.insert(batch.cpu, time_ns).unwrap_or(0);
                assert!(before <= time_ns, "cpu {} went from {before} to {time_ns}", batch.cpu);
                let event = KernelEvent::from_number(batch.event[at]).unwrap();
                let args = [batch.arg0[at], batch.arg1[at], batch.arg2[at]];
                rows.push(Row { time_ns, event, flags: batch.flags[at], tid: batch.tid[at], args });
            }
        };
        source.drain(&mut sink).unwrap();
    }
    let lost = source.lost().into_iter().map(|(_, count)| count).sum();
    rows.sort_by_key(|row| row.time_ns);
    (rows, lost)
}

/// Records until nothing was lost, ten times at most: on a busy machine a ring may be full. What was recorded, and events lost.
fn until_whole<T>(record: impl Fn() -> Option<(T, u64)>) -> Option<(T, u64)> {
    let mut recorded = record()?;
    for _ in 1..10 {
        if recorded.1 == 0 {
            break;
        }
        recorded = record()?;
    }
    Some(recorded)
}

fn count(rows: &[Row], wanted: impl Fn(&Row) -> bool) -> usize {
    rows.iter().filter(|row| wanted(row)).count()
}

fn ping_pong_is_seen(source: &str) {
    let record = || {
        let mut child = echo();
        let tid = child.id() as i32;
        let Some(chosen) = full(source, Depth::Syscalls, tid) else {
            child.kill().unwrap();
            return None;
        };
        assert_eq!((chosen.tier, chosen.kernel_source.as_str(), chosen.tier_reason.as_str()), (Tier::Full, source, ""));
        let before_ns = taut_clock::monotonic_ns();
        ping_pong(&mut child, ROUNDS);
        let after_ns = taut_clock::monotonic_ns();
        child.kill().unwrap();
        child.wait().unwrap();
        let (rows, lost) = finish(chosen);
        Some(((tid, before_ns, after_ns, rows), lost))
    };
    let Some(((tid, before_ns, after_ns, rows), lost)) = until_whole(record) else { return };
    if source == "perf" && lost > 0 {
        // Linux 6.18 can leave perf's recursion counter of a task set for ever (docs/reference/kernel-events.md).
        return skip(Need::Perf, format!("perf drops events of some task here and counted {lost} gaps"));
    }
    assert_eq!(lost, 0);

    let inside = |row: &&Row| (before_ns..=after_ns).contains(&row.time_ns);
    let rows_inside: Vec<Row> = rows.iter().filter(inside).copied().collect();
    // SAFETY: gettid takes nothing and cannot fail.
    let players = [i64::from(tid), i64::from(unsafe { libc::gettid() })];
    let woken = count(&rows_inside, |row| row.event == KernelEvent::SchedWaking && players.contains(&row.args[0]));
    let came = count(&rows_inside, |row| row.event == KernelEvent::SchedSwitch && row.args[0] == i64::from(tid));
    let left = count(&rows_inside, |row| row.event == KernelEvent::SchedSwitch && row.tid == tid);
    // Some kernels record no switch of a CPU's idle task (docs/reference/kernel-events.md): to it, but not from it to a player.
    let switches = |wanted: fn(&Row) -> bool| count(&rows_inside, |r| r.event == KernelEvent::SchedSwitch && wanted(r));
    let unseen = switches(|row| row.args[0] == 0).saturating_sub(switches(|row| row.tid == 0));
    // A reader that is not yet asleep needs no waking: on one CPU only one of the two is woken each round.
    let enough = [woken, came + unseen, left].iter().all(|n| *n > ROUNDS / 4);
    assert!(enough, "{woken} waking, {came} in and {unseen} not recorded, {left} out");
    let reads =
        |event| count(&rows_inside, |row| row.event == event && row.tid == tid && row.args[0] == libc::SYS_read);
    // The first was entered before the clock was read, and the last may be entered after.
    assert!(reads(KernelEvent::SyscallEnter) >= ROUNDS - 1 && reads(KernelEvent::SyscallExit) >= ROUNDS);
    let strangers =
        count(&rows, |row| matches!(row.event, KernelEvent::SyscallEnter | KernelEvent::PageFault) && row.tid != tid);
    assert_eq!(strangers, 0, "system calls of threads outside the recorded tree");
    assert_eq!(count(&rows, |row| row.event == KernelEvent::SchedExit && row.tid == tid), 1);
}

#[test]
fn ftrace_sees_a_ping_pong_on_the_monotonic_clock() {
    ping_pong_is_seen("ftrace");
}

#[test]
fn perf_sees_a_ping_pong_on_the_monotonic_clock() {
    ping_pong_is_seen("perf");
}

/// A sleep's timer is armed in its thread and fires at an address that the two events share; then the thread is woken.
fn timers_are_seen(source: &str) {
    let record = || {
        let mut sleeper = Command::new("sh");
        sleeper.args(["-c", "read line; for _ in 1 2 3 4 5; do sleep 0.02; done"]).stdin(Stdio::piped());
        let mut sleeper = sleeper.spawn().unwrap();
        let Some(chosen) = full(source, Depth::Syscalls, sleeper.id() as i32) else {
            sleeper.kill().unwrap();
            return None;
        };
        sleeper.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        sleeper.wait().unwrap();
        Some(finish(chosen))
    };
    let Some((rows, lost)) = until_whole(record) else { return };
    if lost > 0 {
        return skip(Need::Perf, format!("{lost} events were lost"));
    }
    let is_sleep = |call: i64| [libc::SYS_clock_nanosleep, libc::SYS_nanosleep].contains(&call);
    let sleeps = rows.iter().filter(|row| row.event == KernelEvent::SyscallEnter && is_sleep(row.args[0]));
    let mut seen = 0;
    for enter in sleeps {
        let is_later = |row: &&Row| row.time_ns >= enter.time_ns;
        let armed =
            rows.iter().filter(is_later).find(|row| row.event == KernelEvent::TimerStart && row.tid == enter.tid);
        let armed = armed.expect("a sleep arms a timer");
        let address = armed.args[2] >> 8;
        let fires = rows.iter().find(|row| {
            row.event == KernelEvent::TimerExpire && row.time_ns > armed.time_ns && row.args[0] << 8 >> 8 == address
        });
        let fires = fires.expect("the timer fires");
        // Of CLOCK_REALTIME; how long it was asked for is known.
        assert!(armed.args[0] >= 20_000_000 && fires.args[1] >= armed.args[0], "{armed:?} {fires:?}");
        let woken = rows.iter().find(|row| {
            row.event == KernelEvent::SchedWaking && row.time_ns >= fires.time_ns && row.args[0] == i64::from(enter.tid)
        });
        assert!(woken.is_some(), "nobody was woken after {fires:?}");
        seen += 1;
    }
    assert_eq!(seen, 5);
}

#[test]
fn ftrace_sees_timers_and_whose_they_are() {
    timers_are_seen("ftrace");
}

#[test]
fn perf_sees_timers_and_whose_they_are() {
    timers_are_seen("perf");
}

/// Threads of the whole machine, the recording one apart, without being named.
/// What is written to a terminal is work for a kernel thread, by an address that the two events share.
fn work_is_seen(source: &str) {
    let record = || {
        let chosen = full(source, Depth::Syscalls, std::process::id() as i32)?;
        let (mut writer, mut reader) = (0, 0);
        let none = std::ptr::null_mut();
        // SAFETY: both are written to; name, settings and size are not asked for.
        let opened = unsafe { libc::openpty(&mut writer, &mut reader, none, std::ptr::null(), std::ptr::null()) };
        assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: both were opened just now, and are owned by nothing else.
        let [mut writer, mut reader] = unsafe { [File::from_raw_fd(writer), File::from_raw_fd(reader)] };
        writer.write_all(b"line\n").unwrap();
        reader.read_exact(&mut [0; 5]).unwrap();
        Some(finish(chosen))
    };
    // SAFETY: gettid takes nothing and cannot fail.
    let own = unsafe { libc::gettid() };
    let Some((rows, lost)) = until_whole(record) else { return };
    if lost > 0 {
        return skip(Need::Perf, format!("{lost} events were lost"));
    }
    let given: Vec<&Row> = rows.iter().filter(|row| row.event == KernelEvent::WorkQueue && row.tid == own).collect();
    let begins = |given: &&Row| {
        let mut later = rows.iter().filter(|row| row.event == KernelEvent::WorkStart && row.time_ns >= given.time_ns);
        later.any(|row| row.args[0] == given.args[0] && row.tid != own)
    };
    assert!(given.iter().any(begins), "{given:?}");
}

#[test]
fn ftrace_sees_work_and_who_gave_it() {
    work_is_seen("ftrace");
}

#[test]
fn perf_sees_work_and_who_gave_it() {
    work_is_seen("perf");
}

fn a_system_is_followed(source: &str) {
    let wanted =
        Wanted { source: Some(source.into()), whole_system: true, depth: Depth::Syscalls, ..Wanted::default() };
    let chosen = match start(&wanted) {
        Ok(chosen) => chosen,
        Err(error) => return not_permitted(source, &error.to_string()),
    };
    // perf's filters come after its events begin.
    let began_ns = taut_clock::monotonic_ns();
    let mut stranger = Command::new("sleep").arg("0.02").spawn().unwrap();
    stranger.wait().unwrap();
    let (rows, _) = finish(chosen);
    let is_call = |row: &Row| row.event == KernelEvent::SyscallEnter && row.time_ns >= began_ns;
    let calls = |tid: i32| count(&rows, |row| is_call(row) && row.tid == tid);
    // SAFETY: gettid takes nothing and cannot fail.
    let (strangers, own) = (calls(stranger.id() as i32), calls(unsafe { libc::gettid() }));
    assert!(strangers > 0 && own == 0, "{strangers} calls of a stranger, {own} of its own");
}

#[test]
fn ftrace_follows_a_system() {
    a_system_is_followed("ftrace");
}

#[test]
fn perf_follows_a_system() {
    a_system_is_followed("perf");
}

fn fork_is_followed(source: &str) {
    // The shell waits for a line, so that tracing stands before it forks.
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "read line; sh -c 'cat /proc/self/stat; exit 0'; exit 0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let root = shell.id() as i32;
    let Some(chosen) = full(source, Depth::Syscalls, root) else { return shell.kill().unwrap() };
    shell.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    let mut stat = String::new();
    shell.stdout.as_mut().unwrap().read_to_string(&mut stat).unwrap();
    shell.wait().unwrap();
    let (rows, _) = finish(chosen);
    let grandchild: i32 = stat.split(' ').next().unwrap().parse().unwrap();
    assert_ne!(grandchild, root);
    assert!(count(&rows, |row| row.event == KernelEvent::SchedFork && row.args[0] == i64::from(grandchild)) == 1);
    assert!(count(&rows, |row| row.event == KernelEvent::SchedExec && row.tid == grandchild) >= 1);
    assert!(count(&rows, |row| row.event == KernelEvent::SyscallEnter && row.tid == grandchild) > 0);
    assert!(count(&rows, |row| row.event == KernelEvent::PageFault && row.tid == grandchild) > 0);
}

#[test]
fn ftrace_follows_a_fork() {
    fork_is_followed("ftrace");
}

#[test]
fn perf_follows_a_fork() {
    fork_is_followed("perf");
}

/// Runs a ping-pong that is larger than the ring while nobody drains.
fn losses_are_counted(mut source: Box<dyn Source>) {
    let mut child = echo();
    let (deadline, mut lost) = (Instant::now() + Duration::from_secs(600), 0);
    while lost == 0 && Instant::now() < deadline {
        ping_pong(&mut child, 2000);
        // perf knows its losses only once there is room again or at the end; so it ends here.
        source.stop().unwrap();
        lost = source.lost().into_iter().map(|(_, count)| count).sum();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(lost > 0, "{} counted no loss", source.name());
    assert!(source.lost().is_empty(), "a loss is told once");
}

#[test]
fn ftrace_counts_what_a_full_ring_drops() {
    match super::ftrace::Ftrace::with_ring_kib(&Wanted { pid: std::process::id() as i32, ..Wanted::default() }, Some(8))
    {
        Ok(source) => losses_are_counted(Box::new(source)),
        Err(error) => not_permitted("ftrace", &error.to_string()),
    }
}

#[test]
fn perf_counts_what_a_full_ring_drops() {
    match super::perf::with_ring_kib(&Wanted { pid: std::process::id() as i32, ..Wanted::default() }, 8) {
        Ok(source) => losses_are_counted(Box::new(source)),
        Err(error) => not_permitted("perf", &error.to_string()),
    }
}

#[test]
fn interrupts_and_idle_come_with_the_depth() {
    let mut child = echo();
    let Some(chosen) = full("ftrace", Depth::All, child.id() as i32) else { return child.kill().unwrap() };
    ping_pong(&mut child, ROUNDS);
    // Time on a CPU, in which its timer must have ticked.
    while cpu_time_ns() < 50_000_000 {}
    // A machine that is busy never idles; so what is held is that the kernel was asked.
    let tracefs = super::tracefs::Tracefs::open().unwrap();
    let asked = |folder: &String| tracefs.read(&format!("instances/{folder}/events/power/cpu_idle/enable"));
    assert!(own_instances(&tracefs).iter().any(|folder| asked(folder).is_ok_and(|text| text.trim() == "1")));
    child.kill().unwrap();
    child.wait().unwrap();
    let (rows, _) = finish(chosen);
    let entered = count(&rows, |row| row.event == KernelEvent::IrqEnter);
    let left = count(&rows, |row| row.event == KernelEvent::IrqExit);
    assert!(entered > 0 && left > 0, "{entered} entered, {left} left");
}

/// Whether this process has CAP_SYS_ADMIN: in most containers root has not.
fn is_admin() -> bool {
    let status = crate::proc::text("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() & (1 << 21) != 0
}

/// An administrator may all that a source asks for: what is refused here is refused to everybody, and is left out and named.
#[test]
fn every_source_serves_at_every_depth() {
    let is_admin = is_admin();
    for source in ["ftrace", "perf"] {
        for depth in [Depth::Sched, Depth::Syscalls, Depth::Irq, Depth::All] {
            let record = || {
                let mut child = echo();
                let pid = child.id() as i32;
                let named = Some(source.into());
                let wanted = Wanted { source: named, pid, depth, follow_existing_threads: true, ..Wanted::default() };
                let chosen = match start(&wanted) {
                    Ok(chosen) => chosen,
                    Err(error) if !is_admin => {
                        not_permitted(source, &error.to_string());
                        child.kill().unwrap();
                        return None;
                    }
                    Err(error) => panic!("{source} at {}: {error}", depth.word()),
                };
                let reason = chosen.tier_reason.clone();
                let left_out = chosen.source.as_ref().unwrap().left_out().to_vec();
                ping_pong(&mut child, ROUNDS);
                child.kill().unwrap();
                child.wait().unwrap();
                let (rows, lost) = finish(chosen);
                Some(((reason, left_out, rows), lost))
            };
            let Some(((reason, left_out, rows), _)) = until_whole(record) else { continue };
            assert!(left_out.iter().all(|name| reason.contains(name)), "{reason}");
            assert!(!left_out.iter().any(|name| name.starts_with("sched:")), "{left_out:?}");
            let seen = |event| count(&rows, |row| row.event == event) > 0;
            assert!(seen(KernelEvent::SchedSwitch) && seen(KernelEvent::SchedWaking), "{source} at {}", depth.word());
            assert_eq!(seen(KernelEvent::SyscallEnter), depth >= Depth::Syscalls, "{source} at {}", depth.word());
            assert_eq!(seen(KernelEvent::IrqEnter), depth >= Depth::Irq, "{source} at {}", depth.word());
            // A virtual machine may have no idle states of its own.
            assert!(depth == Depth::All || !seen(KernelEvent::CpuIdle), "{source} at {}", depth.word());
        }
    }
}

#[test]
fn an_unknown_source_is_refused() {
    let wanted = Wanted { source: Some("dtrace".into()), ..Wanted::default() };
    assert!(start(&wanted).is_err_and(|error| error.to_string().contains("dtrace")));
}

/// Not a test by itself: what the next one runs as another user.
#[test]
#[ignore = "run by own_switches_need_no_privilege"]
fn self_tier_of_a_child() {
    let mut child = echo();
    let pid = child.id() as i32;
    let wanted = Wanted { pid, tier: Some(Tier::SelfOnly), follow_existing_threads: true, ..Wanted::default() };
    let chosen = start(&wanted).unwrap();
    assert_eq!(chosen.tier, Tier::SelfOnly);
    assert!(!chosen.tier_reason.is_empty());
    ping_pong(&mut child, ROUNDS);
    child.kill().unwrap();
    child.wait().unwrap();
    let (rows, lost) = finish(chosen);
    let of = |event| count(&rows, |row| row.event == event && row.tid == pid);
    assert!(of(KernelEvent::SwitchIn) > ROUNDS / 4 && of(KernelEvent::SwitchOut) > ROUNDS / 4);
    assert_eq!(count(&rows, |row| row.tid != pid), 0);
    assert_eq!((of(KernelEvent::SchedExit), lost), (1, 0));
    // SAFETY: geteuid takes nothing and cannot fail.
    println!("self tier as uid {}: {} rows", unsafe { libc::geteuid() }, rows.len());
}

#[test]
fn own_switches_need_no_privilege() {
    const NOBODY: u32 = 65534;
    // SAFETY: geteuid takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return skip(Need::Root, "only root can become nobody");
    }
    // A copy that nobody may read, since the build folder may be closed to others.
    let folder = tempfile::Builder::new().prefix("taut-nobody-").tempdir_in("/tmp").unwrap();
    let copy = folder.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    for path in [folder.path(), copy.as_path()] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let arguments = ["--exact", "kernel::live_tests::self_tier_of_a_child", "--ignored", "--nocapture"];
    let output = Command::new(&copy).args(arguments).uid(NOBODY).gid(NOBODY).current_dir("/").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("self tier as uid 65534"), "{said}");
}

#[test]
fn instances_are_removed_even_without_a_stop() {
    let Some(mut chosen) = full("ftrace", Depth::Syscalls, std::process::id() as i32) else { return };
    let tracefs = super::tracefs::Tracefs::open().unwrap();
    let folders = chosen.source.as_mut().map(|_| own_instances(&tracefs)).unwrap();
    assert!(folders.len() >= 2, "{folders:?}");
    drop(chosen);
    // Other tests of this process may have instances of their own: ours must go.
    let deadline = Instant::now() + Duration::from_secs(600);
    while own_instances(&tracefs).iter().any(|name| folders.contains(name)) {
        assert!(Instant::now() < deadline, "{folders:?} stayed");
        std::thread::yield_now();
    }
}

/// Of this thread.
fn cpu_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn own_instances(tracefs: &super::tracefs::Tracefs) -> Vec<String> {
    let prefix = format!("taut-{}-", std::process::id());
    tracefs.list("instances").unwrap().into_iter().filter(|name| name.starts_with(&prefix)).collect()
}
