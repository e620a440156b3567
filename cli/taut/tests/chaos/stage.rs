//! A round's folder: a session that is recorded, robots that stamp into it, and their account.

use std::{
    fs::File,
    io::Read,
    os::unix::fs::{DirBuilderExt, FileExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::LazyLock,
    time::{Duration, Instant},
};

use assert_cmd::cargo::cargo_bin;
use taut_recording::{Contents, LostWhat, Record};

/// Of one round, robots' threads together.
pub const THREADS: u64 = 4096;
/// Bytes of one thread's entry in the account.
const ENTRY: u64 = 24;
/// No wait is longer; none has to be that long.
const PATIENCE: Duration = Duration::from_secs(600);

/// The robot and what is preloaded, built once.
static BUILT: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    for (source, out, options) in [
        ("robot.c", "robot", &["-O2", "-pthread"][..]),
        ("step.c", "step.so", &["-O2", "-shared", "-fPIC"]),
        ("short.c", "short.so", &["-O2", "-shared", "-fPIC"]),
    ] {
        let mut gcc = Command::new("gcc");
        gcc.arg("-I").arg(here.join("../../include")).args(options).arg(here.join("tests/chaos").join(source));
        assert!(gcc.arg("-o").arg(folder.path().join(out)).arg("-ldl").status().unwrap().success());
    }
    folder
});

/// Where robot and clock lie.
pub fn built() -> &'static Path {
    BUILT.path()
}

/// One recording of one session.
pub struct Stage {
    folder: tempfile::TempDir,
    account: File,
    threads: u64,
    robots: Vec<Robot>,
    recorder: Option<Child>,
    /// A small file system that is to be unmounted.
    mounted: Option<PathBuf>,
    output: PathBuf,
    ring_records: u32,
    has_clock: bool,
}

/// A process that stamps.
pub struct Robot {
    pub first: u64,
    pub threads: u64,
    child: Child,
    status: Option<ExitStatus>,
}

/// How a recorder is started.
#[derive(Default)]
pub struct Recorder {
    /// "best": the best that is permitted.
    pub tier: &'static str,
    /// Records in each robot's rings; 0: as many as usual.
    pub ring_records: u32,
    /// Bytes that its file may have; 0: any number.
    pub file_bytes: u64,
    /// Whether those are a file system's and not a limit of the process.
    pub on_small_disk: bool,
    /// Whether the clock can be set.
    pub has_clock: bool,
}

impl Stage {
    /// Starts to record; returns when it does.
    pub fn new(how: &Recorder) -> Stage {
        let folder = tempfile::Builder::new().prefix("taut-chaos-").tempdir().unwrap();
        std::fs::DirBuilder::new().mode(0o700).create(folder.path().join("session")).unwrap();
        let account = File::options().read(true).write(true).create_new(true).open(folder.path().join("account"));
        let account = account.unwrap();
        account.set_len(THREADS * ENTRY).unwrap();
        std::fs::write(folder.path().join("clock"), 0_i64.to_ne_bytes()).unwrap();
        let mut stage = Stage {
            output: folder.path().join("run.mcap"),
            folder,
            account,
            threads: 0,
            robots: Vec::new(),
            recorder: None,
            mounted: None,
            ring_records: how.ring_records,
            has_clock: how.has_clock,
        };
        if how.on_small_disk {
            stage.mount(how.file_bytes);
        }
        stage.record(how);
        stage
    }

    fn record(&mut self, how: &Recorder) {
        // Ends when it is told to, by the end of its input.
        let mut words = vec![cargo_bin!("taut").as_os_str().to_owned(), "record".into()];
        if how.tier != "best" {
            words.extend(["--tier".into(), how.tier.into()]);
        }
        words.extend(["--session".into(), self.path("session").into(), "-o".into()]);
        words.extend([self.output.clone().into(), "--".into(), "cat".into()]);
        let mut command = match how.file_bytes > 0 && !how.on_small_disk {
            true => {
                let mut shell = Command::new("bash");
                shell.args(["-c", &format!("ulimit -f {}; exec \"$@\"", how.file_bytes.div_ceil(1024)), "bash"]);
                shell.args(words);
                shell
            }
            false => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
        };
        self.prepare(&mut command);
        command.stdin(Stdio::piped()).stderr(File::create(self.path("said")).unwrap());
        self.recorder = Some(command.spawn().unwrap());
        self.wait_for("a recorder", |stage| stage.said().contains("recording process"));
    }

    fn prepare(&self, command: &mut Command) {
        command.current_dir(self.folder.path()).env_remove("TAUT_SESSION").env_remove("TAUT_RING_RECORDS");
        if self.ring_records > 0 {
            command.env("TAUT_RING_RECORDS", self.ring_records.to_string());
        }
        if self.has_clock {
            command.env("LD_PRELOAD", BUILT.path().join("step.so")).env("CHAOS_CLOCK", self.path("clock"));
        }
    }

    fn mount(&mut self, bytes: u64) {
        let small = self.path("small");
        std::fs::create_dir(&small).unwrap();
        let size = format!("size={bytes}");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&small).status();
        assert!(done.unwrap().success());
        self.output = small.join("run.mcap");
        self.mounted = Some(small);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a robot; returns its number.
    pub fn robot(&mut self, threads: u64, stamps: u64, pause_us: u32) -> usize {
        let first = self.threads;
        self.threads += threads;
        assert!(self.threads <= THREADS, "the account is too small");
        let mut command = Command::new(BUILT.path().join("robot"));
        self.prepare(&mut command);
        command.arg(self.path("account")).args([first, threads, stamps, u64::from(pause_us)].map(|n| n.to_string()));
        let child = command.env("TAUT_SESSION", self.path("session")).spawn().unwrap();
        self.robots.push(Robot { first, threads, child, status: None });
        self.robots.len() - 1
    }

    pub fn signal_robot(&mut self, robot: usize, signal: i32) {
        let robot = &mut self.robots[robot];
        if robot.status.is_none() {
            send(robot.child.id(), signal);
        }
    }

    pub fn signal_recorder(&mut self, signal: i32) {
        if let Some(recorder) = &self.recorder {
            send(recorder.id(), signal);
        }
    }

    /// Kills the recorder, and lets go what it recorded.
    pub fn kill_recorder(&mut self) {
        let mut recorder = self.recorder.take().expect("a recorder");
        recorder.kill().unwrap();
        recorder.wait().unwrap();
    }

    /// Sets the clock that they see.
    pub fn step_clock(&self, seconds: i64) {
        let file = File::options().write(true).open(self.path("clock")).unwrap();
        file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }

    /// Stamps that robots with a number from this to that have made.
    pub fn stamped(&self, thread: u64) -> u64 {
        self.word(thread, 0)
    }

    /// Lost where no recorder could see it, by that robot's own account.
    pub fn unannounced(&self, robot: &Robot) -> u64 {
        self.word(robot.first, 2)
    }

    fn word(&self, thread: u64, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.account.read_exact_at(&mut bytes, thread * ENTRY + at * 8).unwrap();
        u64::from_ne_bytes(bytes)
    }

    pub fn robots(&self) -> &[Robot] {
        &self.robots
    }

    pub fn threads(&self) -> u64 {
        self.threads
    }

    /// Waits until every thread of the robot has stamped.
    pub fn wait_until_it_stamps(&mut self, robot: usize) {
        let Robot { first, threads, .. } = self.robots[robot];
        self.wait_for("stamps", |stage| (first..first + threads).all(|thread| stage.stamped(thread) > 0));
    }

    /// Waits until the file holds stamps of every robot so far.
    pub fn wait_until_all_are_seen(&mut self) {
        self.wait_for("stamps in the file", |stage| {
            let seen = stage.look().1;
            stage.robots.iter().all(|robot| !seen[robot.first as usize].is_empty())
        });
    }

    /// Ends or waits for all robots; those that were killed are dead.
    pub fn end_robots(&mut self) {
        for robot in &mut self.robots {
            let began = Instant::now();
            while robot.status.is_none() {
                robot.status = robot.child.try_wait().unwrap();
                assert!(began.elapsed() < PATIENCE, "a robot does not end");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Whether a robot did not end by itself.
    pub fn was_killed(robot: &Robot) -> bool {
        robot.status.is_some_and(|status| !status.success())
    }

    /// Ends the recording in the ordinary way; its exit code.
    pub fn end_recording(&mut self) -> Option<i32> {
        let mut recorder = self.recorder.take()?;
        drop(recorder.stdin.take());
        let began = Instant::now();
        loop {
            if let Some(status) = recorder.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "the recorder does not end; it said: {}", self.said());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// What the recorder said so far.
    pub fn said(&self) -> String {
        let mut text = String::new();
        let _ = File::open(self.path("said")).and_then(|mut file| file.read_to_string(&mut text));
        text
    }

    /// What anybody finds in the file now: the recording, and the numbers of each thread in their order.
    pub fn look(&self) -> (Contents, Vec<Vec<u64>>) {
        let bytes = std::fs::read(&self.output).unwrap();
        let (mut point, mut batches) = (None, Vec::new());
        let contents = taut_recording::read(&bytes, &mut |record| match record {
            Record::Name(name) if name.name == "chaos.tick" => point = Some(name.id),
            Record::Stamps(batch) => batches.push(batch),
            _ => {}
        });
        let mut numbers = vec![Vec::new(); THREADS as usize];
        for batch in batches {
            for (id, at) in batch.message_id.iter().zip(&batch.point) {
                assert!(Some(*at) == point && id >> 32 < self.threads, "a stamp that nobody made: {id:x} at {at}");
                numbers[(id >> 32) as usize].push(id & 0xffff_ffff);
            }
        }
        (contents.unwrap(), numbers)
    }

    /// How often the file says that stamps were lost whose number nobody knows.
    pub fn uncounted(&self) -> u64 {
        let mut count = 0;
        let contents = taut_recording::read(&std::fs::read(&self.output).unwrap(), &mut |record| {
            if let Record::Lost(lost) = record
                && lost.is_estimate
                && lost.what == LostWhat::Stamps
            {
                count += lost.count;
            }
        });
        contents.unwrap();
        count
    }

    fn wait_for(&mut self, what: &str, mut is: impl FnMut(&Stage) -> bool) {
        let began = Instant::now();
        while !is(self) {
            assert!(began.elapsed() < PATIENCE, "{what} did not come; the recorder said: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for child in self.robots.iter_mut().map(|robot| &mut robot.child).chain(&mut self.recorder) {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(mounted) = &self.mounted {
            let _ = Command::new("umount").arg(mounted).status();
        }
    }
}

fn send(pid: u32, signal: i32) {
    // SAFETY: a child of ours that was not waited for.
    unsafe { libc::kill(pid as i32, signal) };
}
