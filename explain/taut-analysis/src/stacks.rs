//! The sampled stacks of a recording, folded: how many samples each path of calls has.

use std::collections::BTreeMap;

use foldhash::HashMap;
use taut_recording::{Frame, LostWhat, ProfileBatch, Record};

/// Where CPU time went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Samples taken.
    pub samples: u64,
    /// Samples that the kernel could not keep, of all processes.
    pub lost: u64,
    /// Frames in the stacks of all samples.
    pub frames: u64,
    /// Those of them whose function is unknown.
    pub unnamed: u64,
    /// Samples by path: process, thread where it is called otherwise, functions from the outermost on, with `;` between. Frames without
    /// a name that follow each other in one file are one.
    pub folded: BTreeMap<String, u64>,
}

/// Collects a recording's profile record by record.
#[derive(Default)]
pub struct Stacks {
    frames: HashMap<u32, Frame>,
    /// By process, thread and frames from the innermost on.
    samples: HashMap<(i32, i32, Vec<u32>), u64>,
    /// By tid.
    comms: HashMap<i32, String>,
    lost: u64,
}

impl Stacks {
    /// Takes in one record; those of other kinds say nothing here.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Profile(batch) => self.batch(batch),
            // The name comes at the end, and supersedes the place alone.
            Record::Frame(frame) => drop(self.frames.insert(frame.id, frame.clone())),
            Record::Thread(thread) => drop(self.comms.insert(thread.tid, thread.comm.clone())),
            Record::Lost(lost) if lost.what == LostWhat::Samples => self.lost += lost.count,
            _ => {}
        }
    }

    fn batch(&mut self, batch: &ProfileBatch) {
        let mut frames = batch.frame.as_slice();
        for (at, depth) in batch.depth.iter().enumerate() {
            let Some((stack, rest)) = frames.split_at_checked(usize::from(*depth)) else { return };
            frames = rest;
            *self.samples.entry((batch.pid[at], batch.tid[at], stack.to_vec())).or_default() += 1;
        }
    }

    /// Names of the processes that have samples, each once.
    pub fn processes(&self) -> Vec<String> {
        let mut names: Vec<String> = self.samples.keys().map(|(pid, ..)| self.comm(*pid)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The stacks, folded; only those of processes of that name, where one is given.
    pub fn profile(&self, process: Option<&str>) -> Profile {
        let mut profile = Profile { lost: self.lost, ..Profile::default() };
        for ((pid, tid, stack), count) in &self.samples {
            let (of_process, of_thread) = (self.comm(*pid), self.comm(*tid));
            if process.is_some_and(|wanted| wanted != of_process) {
                continue;
            }
            let is_named = |id: &&u32| self.frames.get(id).is_some_and(|frame| !frame.name.is_empty());
            profile.samples += count;
            profile.frames += stack.len() as u64 * count;
            profile.unnamed += stack.iter().filter(|id| !is_named(id)).count() as u64 * count;
            let mut path = vec![of_process.clone()];
            path.extend((of_thread != of_process).then_some(of_thread));
            for id in stack.iter().rev() {
                let function = self.function(*id);
                // Where frame pointers are missing, stacks go astray in one file for a hundred frames. That says it once.
                if is_named(&id) || path.last() != Some(&function) {
                    path.push(function);
                }
            }
            *profile.folded.entry(path.join(";")).or_default() += count;
        }
        profile
    }

    fn comm(&self, tid: i32) -> String {
        plain(&self.comms.get(&tid).cloned().unwrap_or_else(|| format!("thread {tid}")))
    }

    /// The function's name; the file's, where it has no symbols. The kernel's functions end in `_[k]`, as flame graphs colour them.
    fn function(&self, id: u32) -> String {
        let Some(frame) = self.frames.get(&id) else { return "[unknown]".to_owned() };
        let is_kernel = frame.module == "[kernel]";
        match (frame.name.is_empty(), is_kernel) {
            (false, true) => plain(&frame.name) + "_[k]",
            (false, false) => plain(&frame.name),
            // Another run's process has another number: a difference needs one word for both.
            (true, _) if frame.module.starts_with("[memory of") => "[unknown]".to_owned(),
            (true, _) if frame.module.starts_with('[') => plain(&frame.module),
            (true, _) => format!("[{}]", plain(frame.module.rsplit('/').next().unwrap_or_default())),
        }
    }
}

/// Without the characters that part a folded line, and never empty.
fn plain(name: &str) -> String {
    let name = name.replace(';', ":").replace(char::is_control, " ");
    if name.trim().is_empty() { "[no name]".to_owned() } else { name.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut_recording::Thread;

    fn frame(id: u32, module: &str, name: &str) -> Record {
        Record::Frame(Frame { id, address: 0, module: module.to_owned(), name: name.to_owned() })
    }

    fn stacks() -> Stacks {
        let mut stacks = Stacks::default();
        let batch = ProfileBatch {
            time_ns: vec![1, 2, 3],
            cpu: vec![0; 3],
            pid: vec![7, 7, 9],
            tid: vec![8, 8, 9],
            depth: vec![2, 2, 1],
            frame: vec![1, 2, 1, 2, 3],
        };
        stacks.record(&frame(1, "/bin/robot", ""));
        stacks.record(&Record::Profile(batch));
        for (tid, comm) in [(7, "robot"), (8, "control")] {
            stacks.record(&Record::Thread(Thread { tid, comm: comm.to_owned(), ..Thread::default() }));
        }
        stacks.record(&frame(1, "/bin/robot", "solve<a;b>"));
        stacks.record(&frame(2, "/bin/robot", "main"));
        stacks.record(&frame(3, "[kernel]", "schedule"));
        stacks
    }

    #[test]
    fn stacks_are_folded_from_the_outermost_call_on() {
        let profile = stacks().profile(None);
        let expected = [("robot;control;main;solve<a:b>", 2), ("thread 9;schedule_[k]", 1)];
        assert_eq!(profile.folded, expected.map(|(path, count)| (path.to_owned(), count)).into());
        assert_eq!((profile.samples, profile.frames, profile.unnamed), (3, 5, 0));
        assert_eq!(stacks().profile(Some("robot")).samples, 2);
    }

    #[test]
    fn a_frame_without_a_name_is_its_file_and_is_counted() {
        let mut stacks = stacks();
        stacks.record(&frame(1, "/usr/lib/libddsc.so.0", ""));
        stacks.record(&frame(2, "[memory of 7]", ""));
        let profile = stacks.profile(None);
        assert!(profile.folded.contains_key("robot;control;[unknown];[libddsc.so.0]"));
        assert_eq!((profile.frames, profile.unnamed), (5, 4));
    }

    #[test]
    fn a_stack_that_went_astray_says_so_once_and_recursion_stays() {
        let mut stacks = stacks();
        let frame_of = vec![2, 2, 1, 1, 1, 2];
        let batch = ProfileBatch { depth: vec![6], pid: vec![9], tid: vec![9], frame: frame_of, ..Default::default() };
        stacks.record(&Record::Profile(batch));
        stacks.record(&frame(1, "/usr/bin/python3.11", ""));
        let profile = stacks.profile(None);
        assert!(profile.folded.contains_key("thread 9;main;[python3.11];main;main"), "{:?}", profile.folded);
        assert_eq!(profile.frames, 11);
    }

    #[test]
    fn lines_stay_lines_whatever_a_thread_calls_itself() {
        let mut stacks = stacks();
        for (tid, comm) in [(7, "a;b\n\u{1}"), (8, " \t")] {
            stacks.record(&Record::Thread(Thread { tid, comm: comm.to_owned(), ..Thread::default() }));
        }
        assert!(stacks.profile(None).folded.contains_key("a:b;[no name];main;solve<a:b>"));
    }

    #[test]
    fn a_batch_that_ends_within_a_stack_gives_the_whole_ones() {
        let mut stacks = Stacks::default();
        let batch = ProfileBatch {
            depth: vec![1, 9],
            pid: vec![1, 1],
            tid: vec![1, 1],
            frame: vec![5, 6],
            ..Default::default()
        };
        stacks.record(&Record::Profile(batch));
        assert_eq!(stacks.profile(None).samples, 1);
    }
}
