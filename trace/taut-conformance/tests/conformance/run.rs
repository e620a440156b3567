//! One producer at its script, and what the consumer got of it.
//!
//! The script's lines are `THREAD WORD …`. Threads are numbers: 0 is the first, others are made by
//! `N thread` and end by `N join`. After `fork` and `clone` the lines go to the child until `exit`.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use taut_capture::rings::{Drained, Session};
use tempfile::TempDir;

use crate::build::Producer;

pub const STAMP: u8 = 1;
pub const BEGIN: u8 = 2;
pub const END: u8 = 3;
pub const OUTCOME: u8 = 4;
pub const VALUE: u8 = 5;
pub const LOCK_WAIT: u8 = 6;
pub const LOCK_ACQUIRED: u8 = 7;
pub const LOCK_NAMED: u8 = 8;

/// A stamp without its time: kind, name ("" for none), message id, value (the reason's name for an outcome).
pub type Seen = (u8, String, u64, String);

/// Who answered a line, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub pid: i32,
    pub tid: i32,
    pub result: i64,
}

pub struct Run {
    child: Child,
    script: ChildStdin,
    answers: BufReader<ChildStdout>,
    directory: TempDir,
    session: Option<Session>,
    names: BTreeMap<u32, String>,
    got: BTreeMap<(i32, i32), Vec<Seen>>,
    expected: BTreeMap<(i32, i32), Vec<Seen>>,
    lost: BTreeMap<String, u64>,
    pub counters: Vec<u8>,
    pub ticks: Vec<u64>,
}

impl Run {
    /// Starts the producer with a session that a consumer watches.
    pub fn new(producer: &Producer, environment: &[(&str, &str)]) -> Run {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut command = Command::new(&producer.program);
        command.env("TAUT_SESSION", directory.path()).env("TAUT_RING_RECORDS", "64").env_remove("TAUT_CLOCK");
        command.envs(environment.iter().copied());
        let session = Session::open(directory.path()).unwrap();
        let mut run = Run::start(command, directory);
        run.session = Some(session);
        run
    }

    /// Starts the producer with a session that no consumer watches yet.
    pub fn unwatched(producer: &Producer) -> Run {
        let mut run = Run::new(producer, &[]);
        run.session = None;
        run
    }

    /// Starts the producer where no consumer is; its environment is the command's.
    pub fn alone(command: Command) -> Run {
        Run::start(command, tempfile::tempdir_in("/dev/shm").unwrap())
    }

    fn start(mut command: Command, directory: TempDir) -> Run {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Run {
            script: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
            directory,
            session: None,
            names: BTreeMap::new(),
            got: BTreeMap::new(),
            expected: BTreeMap::new(),
            lost: BTreeMap::new(),
            counters: Vec::new(),
            ticks: Vec::new(),
        }
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Ring files that lie in the session now.
    pub fn ring_files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.directory()).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "taut"))
            .collect()
    }

    /// Has a thread do something, and waits until it is done.
    pub fn tell(&mut self, thread: usize, words: &str) -> Answer {
        writeln!(self.script, "{thread} {words}").unwrap();
        self.answer_to(words)
    }

    /// Has a thread begin with something.
    pub fn begin(&mut self, thread: usize, words: &str) {
        writeln!(self.script, "{thread} {words}").unwrap();
    }

    /// Whether an answer is there to be read.
    pub fn has_answered(&mut self) -> bool {
        let mut poll = libc::pollfd { fd: self.answers.get_ref().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, alive through the call.
        unsafe { libc::poll(&mut poll, 1, 0) == 1 }
    }

    /// A consumer that comes, takes what there is, and goes; how many stamps it got, in their order thread by thread.
    pub fn visit(&mut self) -> u64 {
        let mut session = Session::open(self.directory()).unwrap();
        let before: usize = self.got.values().map(Vec::len).sum();
        let mut found = Drained::default();
        session.discover(&mut found);
        // A thread that reclaims may not get a CPU for long; the next visit is as good.
        found.refused.retain(|why| !why.contains("holds its lock"));
        self.take(found, &mut session);
        let drained = session.drain();
        self.take(drained, &mut session);
        (self.got.values().map(Vec::len).sum::<usize>() - before) as u64
    }

    /// A parent answers its `fork` when the child has ended.
    pub fn returned_to_parent(&mut self) -> Answer {
        self.answer_to("exit of the child")
    }

    pub fn answer_to(&mut self, words: &str) -> Answer {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let numbers: Vec<i64> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let [pid, tid, result] = numbers[..] else { panic!("after '{words}' the producer answered '{line}'") };
        Answer { pid: pid as i32, tid: tid as i32, result }
    }

    /// As `tell` for what must succeed.
    pub fn must(&mut self, thread: usize, words: &str) -> Answer {
        let answer = self.tell(thread, words);
        assert_eq!(answer.result, 0, "{words}");
        answer
    }

    /// As `must`, and the consumer must see one more stamp of that thread.
    pub fn stamps(&mut self, thread: usize, words: &str, kind: u8, name: &str, id: u64, value: &str) -> Answer {
        let answer = self.must(thread, words);
        self.expect(answer, kind, name, id, value);
        answer
    }

    /// A plain stamp of a name.
    pub fn stamp(&mut self, thread: usize, name: &str, id: u64) -> Answer {
        self.stamps(thread, &format!("stamp {name} {id}"), STAMP, name, id, "0")
    }

    /// `count` plain stamps, of which the ring takes the first `kept`.
    pub fn many(&mut self, thread: usize, name: &str, first: u64, count: u64, kept: u64) -> Answer {
        let answer = self.must(thread, &format!("many {name} {first} {count}"));
        for id in first..first + kept {
            self.expect(answer, STAMP, name, id, "0");
        }
        answer
    }

    /// The consumer must see one more stamp of the thread that answered.
    pub fn expect(&mut self, by: Answer, kind: u8, name: &str, id: u64, value: &str) {
        self.expected.entry((by.pid, by.tid)).or_default().push((kind, name.to_owned(), id, value.to_owned()));
    }

    /// Has the consumer take what there is.
    pub fn drain(&mut self) {
        let mut session = self.session.take().expect("a session that a consumer watches");
        let mut drained = Drained::default();
        session.discover(&mut drained);
        self.take(drained, &mut session);
        let drained = session.drain();
        self.take(drained, &mut session);
        self.session = Some(session);
    }

    /// Has the consumer free what the dead left.
    pub fn reap(&mut self) {
        let mut session = self.session.take().expect("a session that a consumer watches");
        let mut drained = Drained::default();
        session.discover(&mut drained);
        self.take(drained, &mut session);
        let drained = session.reap();
        self.take(drained, &mut session);
        self.session = Some(session);
    }

    fn take(&mut self, drained: Drained, session: &mut Session) {
        assert_eq!(drained.refused, Vec::<String>::new());
        self.names.extend(session.names().take_fresh().into_iter().map(|name| (name.id, name.name)));
        for (place, count) in drained.lost {
            *self.lost.entry(place).or_default() += count;
        }
        let name = |id: u32| self.names.get(&id).cloned().unwrap_or_default();
        for batch in drained.batches {
            let seen = self.got.entry((batch.pid, batch.tid)).or_default();
            for i in 0..batch.ticks.len() {
                let value = batch.value[i];
                let value = if batch.kind[i] == OUTCOME { name(value as u32) } else { value.to_string() };
                seen.push((batch.kind[i], name(batch.point[i]), batch.message_id[i], value));
            }
            self.counters.push(batch.counter);
            self.ticks.extend(batch.ticks);
        }
    }

    /// What was lost at a place, as the consumer was told.
    pub fn lost_at(&self, place: &str) -> u64 {
        self.lost.get(place).copied().unwrap_or(0)
    }

    pub fn lost_in_all(&self) -> u64 {
        self.lost.values().sum()
    }

    /// The stamps arrived so far are the expected ones, thread by thread, in order.
    pub fn assert_equal(&self) {
        assert_eq!(self.got, self.expected);
    }

    /// Ends the producer, takes the rest, and holds it against the expectation.
    pub fn finish(&mut self) {
        self.must(0, "exit");
        self.end();
        self.assert_equal();
        assert_eq!(self.ring_files(), Vec::<PathBuf>::new(), "files of dead processes are drained and removed");
    }

    /// Ends a producer that no consumer watches; it must not have come to harm.
    pub fn finish_alone(&mut self) {
        self.must(0, "exit");
        assert!(self.child.wait().unwrap().success());
    }

    fn end(&mut self) {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the producer ended with {status}");
        self.reap();
    }

    /// `kill -9`, and takes what it left.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.reap();
    }

    /// A consumer comes to a session that was stamped into.
    pub fn watch_late(&mut self) {
        self.session = Some(Session::open_late(self.directory()).unwrap());
    }

    /// Lets the consumer look at a session elsewhere, such as in the producer's own mount namespace.
    pub fn watch(&mut self, directory: &Path) {
        self.session = Some(Session::open(directory).unwrap());
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
