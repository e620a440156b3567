//! `taut tune` that is killed while it has moved another program. That program has a real-time priority and takes a CPU half of the time, so
//! scripts/rust-tests runs this beside no other test.

use std::process::{Child, Command, Stdio};

use taut_skip::{Need, skip};

mod folder;
mod loop_program;
use folder::{Folder, until};
use loop_program::said;

fn cpus(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
}

/// A program with a real-time priority, which must not outlive a test that fails.
struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The sample of what `bench/tune/run --kills` does fifty times.
#[test]
fn a_tuner_that_is_killed_while_a_competitor_is_moved_leaves_it_where_it_was() {
    let folder = Folder::new();
    folder.build();
    let all = cpus(std::process::id());
    let last = all.rsplit(['-', ',']).next().unwrap();
    if all == last {
        return skip(Need::Settings, "a competitor on one of several CPUs needs a second CPU");
    }
    // Above every ordinary thread of its CPU, half of the time: it is what the loop waits for.
    let busy = "while :; do i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; sleep 0.02; done";
    let hog = ["-f", "80", "taskset", "-c", last, "sh", "-c", busy];
    let mut hog = Hog(Command::new("chrt").args(hog).stderr(Stdio::null()).spawn().unwrap());
    let comm = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    until("the competitor", || comm(hog.0.id()) == "sh\n" || hog.0.try_wait().unwrap().is_some());
    if hog.0.try_wait().unwrap().is_some() {
        return skip(Need::Settings, "a competitor on one of several CPUs needs a real-time policy");
    }
    let options = ["--remedy", "move-others", "--allow-changes", "--duration", "700ms", "--max-time", "10m"];
    let command = ["--", "taskset", "-c", last, "./loop", "sound"];
    let mut tune = folder.taut(&[&["tune", "--quiet"][..], &options, &command].concat());
    let mut tune = tune.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut ended = None;
    until("the competitor's change", || {
        ended = tune.try_wait().unwrap();
        ended.is_some() || cpus(hog.0.id()) != last
    });
    tune.kill().unwrap();
    let output = tune.wait_with_output().unwrap();
    if ended.is_none() {
        until("the restored competitor", || cpus(hog.0.id()) == last && folder.journals().is_empty());
    }
    if let Some(status) = ended {
        // Without kernel events nobody knows who takes the CPU; without CAP_SYS_NICE nobody may move it; on a busy machine others take it, too.
        let result = String::from_utf8_lossy(&output.stdout);
        assert!(status.code() == Some(3) || !result.contains(" sh/"), "{result}{}", said(&output));
        skip(Need::Perf, said(&output));
    }
}
