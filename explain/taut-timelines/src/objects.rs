//! What numbers mean: threads' names and processes, registered locks, CPython's runtime, descriptors.

use std::borrow::Cow;

use foldhash::HashMap;
use taut_recording::{
    Info, Object, ObjectKind, RECORDER_FACT, Thread,
    host_numbers::{own_number, thread_of},
};

/// Stands for a thread that is not known.
pub const NO_THREAD: i32 = -1;

/// Collected from the recording's records, asked by tid, pid and address.
#[derive(Default)]
pub struct Objects {
    /// Processes that recorded this, by host.
    recorders: Vec<i32>,
    /// Names of the hosts, where they are several.
    hosts: Vec<String>,
    threads: HashMap<i32, Vec<Named>>,
    locks: Vec<Lock>,
    runtimes: Vec<Object>,
    /// Variables with locks, by process and address of the lock's word.
    variables: HashMap<(i32, u64), String>,
    /// The same by name: two files may have a static variable of one name, and a program may run twice.
    same_names: HashMap<String, Vec<(i32, u64)>>,
    descriptors: HashMap<(i32, u64), Vec<Object>>,
    /// How many bytes went over the descriptor's connection by then, each way.
    places: HashMap<(i32, u64), Vec<Object>>,
    /// The process that forked a process.
    parents: HashMap<i32, i32>,
    invented: Invented,
    /// Whether records of threads may be missing: what is not here may have been recorded.
    pub is_damaged: bool,
}

/// Which threads of a recording the import made up, since each stamp needs one: they are never shown.
#[derive(Clone, Copy, Default, PartialEq)]
enum Invented {
    #[default]
    None,
    /// Those without a name: of an import.
    Unnamed,
    /// All: a bag has no threads, and those of older imports have the names of their points.
    All,
}

/// A thread under one of its names.
struct Named {
    thread: Thread,
    /// "comm/tid".
    name: String,
}

struct Lock {
    pid: i32,
    address: u64,
    size: u64,
    name: String,
}

impl Objects {
    /// What is known of the recording's origin.
    pub fn origin(&mut self, info: &Info) {
        self.hosts = info.hosts().into_iter().map(str::to_owned).collect();
        let others = info.hosts().into_iter().skip(1).map(|host| info.fact_of_host(host, RECORDER_FACT));
        let recorders = (0..).zip(std::iter::once(info.fact(RECORDER_FACT)).chain(others));
        self.recorders = recorders.filter_map(|(host, pid)| Some(thread_of(host, pid.parse().ok()?))).collect();
        let imported = info.facts.iter().find(|(key, _)| key == "imported_from");
        self.invented = match imported.map(|(_, kind)| kind.as_str()) {
            None => Invented::None,
            Some("bag") => Invented::All,
            Some(_) => Invented::Unnamed,
        };
    }

    /// A thread was seen, or changed its name.
    pub fn thread(&mut self, thread: &Thread) {
        let name = format!("{}/{}", thread.comm, own_number(thread.tid));
        self.threads.entry(thread.tid).or_default().push(Named { thread: thread.clone(), name });
    }

    /// An address range or a descriptor of a process.
    pub fn object(&mut self, object: &Object) {
        match object.kind {
            ObjectKind::Gil => self.runtimes.push(object.clone()),
            ObjectKind::Descriptor => {
                self.descriptors.entry((object.pid, object.start)).or_default().push(object.clone());
            }
            ObjectKind::Variable => {
                if self.variables.insert((object.pid, object.start), object.name.clone()).is_none() {
                    self.same_names.entry(object.name.clone()).or_default().push((object.pid, object.start));
                }
            }
            ObjectKind::Written | ObjectKind::Read => {
                self.places.entry((object.pid, object.start)).or_default().push(object.clone());
            }
        }
    }

    /// A lock of a process, with its address and bytes.
    pub fn lock(&mut self, pid: i32, address: u64, size: u64, name: String) {
        self.locks.push(Lock { pid, address, size: size.max(4), name });
    }

    /// A thread forked a process or a thread.
    pub fn fork(&mut self, tid: i32, child: i32) {
        self.parents.insert(child, tid);
    }

    /// The process of the thread.
    pub fn pid(&self, tid: i32) -> Option<i32> {
        self.threads.get(&tid)?.last().map(|named| named.thread.pid)
    }

    /// Whether the thread belongs to the recorded tree, so that its system calls were seen.
    pub fn is_recorded(&self, tid: i32) -> bool {
        self.threads.get(&tid).is_some_and(|all| all.iter().any(|named| named.thread.recorded))
    }

    /// Whether nothing is known of the thread because the file was damaged.
    pub fn is_lost(&self, tid: i32) -> bool {
        self.is_damaged && tid != 0 && !self.threads.contains_key(&tid)
    }

    /// Whether the thread is one of the recorder itself, on whatever host.
    pub fn is_recorder(&self, tid: i32) -> bool {
        self.recorders.contains(&self.pid(tid).unwrap_or(tid))
    }

    /// "comm/tid" by the name it had then; "" of a thread that an import invented.
    pub fn name(&self, tid: i32, time_ns: u64) -> Cow<'_, str> {
        match tid {
            0 => return "idle".into(),
            NO_THREAD => return "".into(),
            _ => {}
        }
        let Some(all) = self.threads.get(&tid) else { return format!("thread {}", own_number(tid)).into() };
        let then = all.iter().rev().find(|named| named.thread.time_ns <= time_ns).unwrap_or(&all[0]);
        match self.invented {
            Invented::All => "".into(),
            Invented::Unnamed if then.thread.comm.is_empty() => "".into(),
            _ => then.name.as_str().into(),
        }
    }

    /// Whether it is a thread that an import invented, or that is not known: it has no name.
    pub fn is_invented(&self, tid: i32) -> bool {
        tid == NO_THREAD || self.invented != Invented::None && self.name(tid, u64::MAX).is_empty()
    }

    /// Of each process: the first known name of its first known thread.
    pub fn first_names(&self) -> HashMap<i32, &str> {
        let mut first: Vec<&Thread> = self.threads.values().filter_map(|all| Some(&all.first()?.thread)).collect();
        first.sort_by_key(|thread| std::cmp::Reverse((thread.time_ns, thread.tid)));
        first.into_iter().map(|thread| (thread.pid, thread.comm.as_str())).collect()
    }

    /// Name of the process's main thread, for "process:NAME".
    pub fn process(&self, tid: i32) -> String {
        let pid = self.pid(tid).unwrap_or(tid);
        let main = self.threads.get(&pid).and_then(|all| all.last());
        main.map_or_else(|| own_number(pid).to_string(), |named| named.name.clone())
    }

    /// How the thread's process was called by then, else first: its words with blanks in between.
    pub fn command_line(&self, tid: i32, time_ns: u64) -> &str {
        let of_main = self.threads.get(&self.pid(tid).unwrap_or(tid)).map_or(&[][..], Vec::as_slice);
        let mut known = of_main.iter().filter(|named| !named.thread.cmdline.is_empty()).map(|named| &named.thread);
        let then = known.clone().rev().find(|thread| thread.time_ns <= time_ns).or_else(|| known.next());
        then.map_or("", |thread| thread.cmdline.as_str())
    }

    /// Whether any thread has that name, number, or "name/number".
    pub fn has_thread(&self, name: &str) -> bool {
        self.threads.keys().any(|tid| self.thread_is(*tid, name))
    }

    /// Whether the thread has that name, number, or "name/number".
    pub fn thread_is(&self, tid: i32, name: &str) -> bool {
        let same = |named: &Named| named.thread.comm == name || named.name == name;
        name == own_number(tid).to_string() || self.threads.get(&tid).is_some_and(|all| all.iter().any(same))
    }

    /// The same of the thread's process: its main thread, or a word of its command line.
    pub fn process_is(&self, tid: i32, name: &str) -> bool {
        let pid = self.pid(tid).unwrap_or(tid);
        let main = self.threads.get(&pid).and_then(|all| all.last());
        self.thread_is(pid, name) || main.is_some_and(|m| m.thread.cmdline.split(' ').any(|word| word == name))
    }

    /// The registered lock that holds this address; a later registration of the same place supersedes.
    pub fn lock_name(&self, pid: i32, address: u64) -> Option<&str> {
        let holds = |lock: &Lock, pid| lock.pid == pid && (lock.address..lock.address + lock.size).contains(&address);
        let find = |pid| self.locks.iter().rev().find(|lock| holds(lock, pid));
        self.lineage(pid).into_iter().find_map(find).map(|lock| lock.name.as_str())
    }

    /// The variable in which the lock at this address lies, with its process where others have one of that name. `None` where the
    /// name does not tell it from others.
    pub fn variable(&self, pid: i32, address: u64) -> Option<Cow<'_, str>> {
        let name = self.variables.get(&(pid, address))?;
        let same = &self.same_names[name];
        let is_ambiguous = same.iter().filter(|(of, _)| *of == pid).count() > 1;
        if is_ambiguous || self.locks.iter().any(|lock| lock.name == *name) {
            return None;
        }
        Some(if same.len() == 1 { name.into() } else { format!("{name} of {}", self.name(pid, u64::MAX)).into() })
    }

    /// Names of all registered locks, each once.
    pub fn lock_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.locks.iter().map(|lock| lock.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether the address lies in CPython's runtime state, where the GIL is.
    pub fn is_gil(&self, pid: i32, address: u64) -> bool {
        let holds = |r: &Object, pid| r.pid == pid && (r.start..r.start + r.size).contains(&address);
        self.lineage(pid).into_iter().any(|pid| self.runtimes.iter().any(|r| holds(r, pid)))
    }

    /// The process and those that forked it, nearest first: a child has its parent's objects at the same
    /// addresses and does not name them again.
    fn lineage(&self, pid: i32) -> Vec<i32> {
        const GENERATIONS_MAX: usize = 8;
        let parent = |pid: &i32| self.parents.get(pid).map(|tid| self.pid(*tid).unwrap_or(*tid));
        std::iter::successors(Some(pid), parent).take(GENERATIONS_MAX).collect()
    }

    /// What is behind the descriptor, as the recording has it: "pipe:[77]".
    pub fn behind(&self, pid: i32, fd: u64, time_ns: u64) -> Option<&str> {
        let all = self.descriptors.get(&(pid, fd))?;
        Some(all.iter().rev().find(|d| d.time_ns <= time_ns).unwrap_or(&all[0]).name.as_str())
    }

    /// All that was behind the descriptor, each from its time on.
    pub fn behind_descriptor(&self, pid: i32, fd: u64) -> &[Object] {
        self.descriptors.get(&(pid, fd)).map_or(&[], Vec::as_slice)
    }

    /// How many bytes went over the descriptor's connection by then, each way.
    pub fn places(&self, pid: i32, fd: u64) -> &[Object] {
        self.places.get(&(pid, fd)).map_or(&[], Vec::as_slice)
    }

    /// Names of the hosts of a joined recording, in the order of their numbers; of another recording none.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The thread's name alone, as it had it then.
    pub fn comm(&self, tid: i32, time_ns: u64) -> Option<&str> {
        let all = self.threads.get(&tid)?;
        Some(all.iter().rev().find(|named| named.thread.time_ns <= time_ns).unwrap_or(&all[0]).thread.comm.as_str())
    }

    /// "fd 5 (pipe:[77])".
    pub fn descriptor(&self, pid: i32, fd: u64, time_ns: u64) -> String {
        let Some(all) = self.descriptors.get(&(pid, fd)) else { return format!("fd {fd}") };
        let then = all.iter().rev().find(|d| d.time_ns <= time_ns).unwrap_or(&all[0]);
        format!("fd {fd} ({})", then.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(pid: i32, tid: i32) -> Thread {
        Thread { pid, tid, comm: "taut".to_owned(), cmdline: "taut record".to_owned(), ..Thread::default() }
    }

    #[test]
    fn the_recorder_is_the_process_that_the_recording_names_and_not_every_taut() {
        let fact = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let facts = vec![fact("hosts", "desk,robot"), fact("recorder_pid", "7"), fact("robot.recorder_pid", "9")];
        let mut objects = Objects::default();
        objects.origin(&Info { facts, ..Info::default() });
        let (own, other, on_robot) = (thread(7, 8), thread(20, 21), thread(thread_of(1, 9), thread_of(1, 10)));
        for thread in [&own, &other, &on_robot] {
            objects.thread(thread);
        }
        assert!(objects.is_recorder(8) && objects.is_recorder(thread_of(1, 10)));
        assert!(!objects.is_recorder(21), "another recorder on this machine");
        assert!(!objects.is_recorder(thread_of(1, 7)) && !objects.is_recorder(9), "numbers are of their host");
    }

    #[test]
    fn a_recording_that_names_no_recorder_has_none() {
        let mut objects = Objects::default();
        objects.origin(&Info::default());
        objects.thread(&thread(7, 8));
        assert!(!objects.is_recorder(8));
    }
}
