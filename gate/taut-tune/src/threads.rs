//! One trial from outside: its threads get what a plan has for them, and are checked until the trial ends.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Duration,
};

use procfs::process::Process;
use rustix::time::{ClockId, clock_gettime};
use taut_lab::Cpus;

use crate::{
    Error, Identity, Plan, Policy, Setting, ThreadRule,
    family::family,
    launch::Launch,
    python,
    scheduler::{self, Scheduling},
};

/// Between two looks at first, when threads appear, and later.
const LOOKS: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(50)];
/// How many looks are of the first kind.
const SOON: usize = 100;
/// A rule is applied to a thread again where something has changed it, so often.
const TRIES: usize = 5;

/// A trial that is to run.
pub struct Trial {
    plan: Plan,
    launch: PathBuf,
    pid_file: PathBuf,
    /// Of the module that an interpreter loads.
    python: PathBuf,
}

/// A trial that runs.
pub struct Watched {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Checked>,
}

/// What was seen of a trial.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// CPU time of the program and of what it started.
    pub cpu_s: f64,
    /// The program's first process; `None` where it never ran.
    pub pid: Option<i32>,
    /// Its threads by number, with their last name.
    pub threads: BTreeMap<i32, String>,
    /// CLOCK_MONOTONIC in ns at which a thread had everything that the plan has for it.
    pub since_ns: BTreeMap<i32, u64>,
    /// Why the plan is not in force, by thread.
    pub amiss: BTreeMap<i32, String>,
    /// What the system refused, once each.
    pub refused: BTreeSet<String>,
    /// Interpreters that have set what a module sets for them.
    pub set: usize,
}

impl Trial {
    /// Writes what the program is to be started with into a folder of the trial's own.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn new(plan: &Plan, folder: &Path) -> Result<Trial, Error> {
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let [launch, pid_file, python] = ["launch.json", "pid", "python"].map(|name| folder.join(name));
        let trial = Trial { plan: plan.clone(), launch, pid_file, python };
        let _ = std::fs::remove_file(&trial.pid_file);
        let _ = std::fs::remove_dir_all(&trial.python);
        let launch = Launch { plan: plan.clone(), pid_file: trial.pid_file.clone(), folder: trial.python.clone() };
        let text =
            serde_json::to_string(&launch).map_err(|source| Error::Format { path: trial.launch.clone(), source })?;
        std::fs::write(&trial.launch, text).map_err(Error::file(&trial.launch))?;
        Ok(trial)
    }

    /// The file that [`launch`](crate::launch()) is to be started with.
    pub fn launch(&self) -> &Path {
        &self.launch
    }

    /// Looks at the program from its start on, in a thread of its own.
    pub fn watch(self) -> Watched {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut look = Look {
                trial: self,
                first: None,
                foreign: BTreeSet::new(),
                checked: Checked::default(),
                tries: BTreeMap::new(),
                spent: BTreeMap::new(),
            };
            let mut nth = 0;
            while !flag.load(Relaxed) {
                look.once();
                nth += 1;
                std::thread::sleep(LOOKS[usize::from(nth > SOON)]);
            }
            look.once();
            look.finish()
        });
        Watched { stop, thread }
    }
}

impl Watched {
    /// The trial has ended.
    pub fn end(self) -> Checked {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

struct Look {
    trial: Trial,
    first: Option<Identity>,
    /// Children of its first process that are not the program's.
    foreign: BTreeSet<i32>,
    checked: Checked,
    tries: BTreeMap<i32, usize>,
    /// CPU time by process.
    spent: BTreeMap<i32, f64>,
}

impl Look {
    fn once(&mut self) {
        if self.checked.pid.is_none() {
            let text = std::fs::read_to_string(&self.trial.pid_file).unwrap_or_default();
            let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
            self.checked.pid = numbers.next();
            self.foreign = numbers.collect();
            self.first = self.checked.pid.and_then(Identity::of);
        }
        // Once it has ended, its number may be another's.
        let Some(first) = self.first.as_ref().filter(|first| first.is_alive()) else { return };
        for pid in family(first.number, &self.foreign) {
            let Ok(process) = Process::new(pid) else { continue };
            if let Ok(stat) = process.stat() {
                let ticks = stat.utime + stat.stime + (stat.cutime + stat.cstime).max(0) as u64;
                self.spent.insert(pid, ticks as f64 / procfs::ticks_per_second() as f64);
            }
            for task in process.tasks().into_iter().flatten().flatten() {
                if let Ok(stat) = task.stat()
                    && !matches!(stat.state, 'Z' | 'X')
                {
                    self.thread(pid, task.tid, stat.comm);
                }
            }
        }
    }

    fn thread(&mut self, pid: i32, tid: i32, name: String) {
        let rules: Vec<ThreadRule> =
            self.trial.plan.threads.iter().filter(|rule| rule.is_for(&name)).cloned().collect();
        let tries = self.tries.entry(tid).or_default();
        for rule in &rules {
            if *tries < TRIES && rule_amiss(rule, tid).is_some() {
                *tries += 1;
                // Until now it was not in force: a thread may have taken this name only now.
                self.checked.since_ns.remove(&tid);
                if let Err(why) = apply(rule, tid) {
                    self.checked.refused.insert(format!("{rule}: {}", refusal(rule, tid, &why)));
                }
            }
        }
        let amiss = rules.iter().find_map(|rule| rule_amiss(rule, tid)).or_else(|| {
            let has_policy = rules.iter().any(|rule| rule.policy.is_some());
            self.trial.plan.settings.iter().find_map(|setting| setting_amiss(setting, pid, tid, has_policy))
        });
        match amiss {
            Some(why) => {
                self.checked.since_ns.remove(&tid);
                self.checked.amiss.insert(tid, format!("thread {name} ({tid}) {why}"));
            }
            None => {
                self.checked.amiss.remove(&tid);
                self.checked.since_ns.entry(tid).or_insert_with(now_ns);
            }
        }
        self.checked.threads.insert(tid, name);
    }

    fn finish(mut self) -> Checked {
        self.checked.cpu_s = self.spent.values().sum();
        self.checked.set = python::set(&self.trial.python);
        self.checked
    }
}

fn apply(rule: &ThreadRule, tid: i32) -> std::io::Result<()> {
    if let Some(cpus) = &rule.cpus {
        scheduler::place(tid, cpus)?;
    }
    rule.policy.map_or(Ok(()), |policy| scheduler::schedule(tid, &Scheduling::from(policy)))
}

/// Why a rule is refused, in words where the kernel's say nothing.
fn refusal(rule: &ThreadRule, tid: i32, why: &std::io::Error) -> String {
    let is_deadline = matches!(rule.policy, Some(Policy::Deadline { .. }));
    match scheduler::cpus(tid) {
        Ok(cpus) if is_deadline && why.kind() == std::io::ErrorKind::PermissionDenied && cpus != Cpus::online() => {
            format!("the kernel admits it only for threads that may run on every CPU, and this one may on CPU {cpus}")
        }
        _ => why.to_string(),
    }
}

fn rule_amiss(rule: &ThreadRule, tid: i32) -> Option<String> {
    let cpus = rule.cpus.as_ref().and_then(|wanted| {
        let now = scheduler::cpus(tid).ok()?;
        (!wanted.contain(&now)).then(|| format!("may run on CPU {now}"))
    });
    cpus.or_else(|| {
        let wanted = Scheduling::from(rule.policy?);
        let now = scheduler::scheduling(tid).ok()?;
        let is_so = now.policy == wanted.policy && now.priority == wanted.priority && now.period_ns == wanted.period_ns;
        // The order of a program's own priorities stays.
        let is_higher = wanted.is_real_time() && now.is_real_time() && now.priority > wanted.priority;
        (!is_so && !is_higher).then(|| format!("has {}", now.word()))
    })
}

/// `has_policy`: a rule for this thread has the last word on its policy.
fn setting_amiss(setting: &Setting, pid: i32, tid: i32, has_policy: bool) -> Option<String> {
    match setting {
        Setting::Fifo(priority) if !has_policy => {
            let now = scheduler::scheduling(tid).ok()?;
            let wanted = Scheduling::fifo(*priority);
            (now.policy != wanted.policy || now.priority != wanted.priority).then(|| format!("has {}", now.word()))
        }
        Setting::Nice(nice) if !has_policy => {
            let now = scheduler::scheduling(tid).ok()?;
            (now.nice != *nice).then(|| format!("has {}", now.word()))
        }
        Setting::TimerSlack(ns) => {
            let text = std::fs::read_to_string(format!("/proc/{tid}/timerslack_ns")).ok()?;
            let now: u64 = text.trim().parse().ok()?;
            (now > *ns).then(|| format!("has a timer slack of {now} ns"))
        }
        Setting::NoHugePages => {
            // The name in it may be any bytes.
            let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
            let status = String::from_utf8_lossy(&status);
            let is_on = status.lines().any(|line| line.starts_with("THP_enabled:") && line.ends_with('1'));
            is_on.then(|| "has transparent huge pages".to_owned())
        }
        Setting::Variable(name, value) => {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            let wanted = format!("{name}={value}").into_bytes();
            // A process that is about to become another program has no environment for a moment.
            let has = environment.is_empty() || environment.split(|byte| *byte == 0).any(|one| one == wanted);
            (!has).then(|| format!("does not have {name}={value}"))
        }
        // The interpreter itself says of the others that it has them.
        _ => None,
    }
}

pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Checked {
    /// Why the plan is not in force for the threads that matter; `None` where it is. `names`: of these threads; empty for all.
    pub fn problem(&self, plan: &Plan, names: &[String]) -> Option<String> {
        if let Some(refused) = self.refused.iter().next() {
            return Some(refused.clone());
        }
        if self.set == 0 && plan.settings.iter().any(Setting::is_of_module) {
            let why =
                "no Python interpreter of the program has taken the settings: -I, -E and -S keep sitecustomize out";
            return Some(why.into());
        }
        let matters = |tid: &i32| names.is_empty() || self.threads.get(tid).is_some_and(|name| names.contains(name));
        if let Some((_, why)) = self.amiss.iter().find(|(tid, _)| matters(tid)) {
            return Some(why.clone());
        }
        let missing = |rule: &ThreadRule| !self.threads.values().any(|name| rule.is_for(name));
        plan.threads.iter().find(|rule| missing(rule)).map(|rule| format!("{}: there is none", rule.threads))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::{Threads, family::children};

    fn until(what: &str, mut is: impl FnMut() -> bool) {
        let began = Instant::now();
        while !is() {
            assert!(began.elapsed() < Duration::from_secs(600), "{what} did not come");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A process that sleeps, watched as the program of a trial.
    fn watched(plan: &Plan, folder: &Path) -> (std::process::Child, i32, Watched) {
        let child = std::process::Command::new("sleep").arg("10000").spawn().unwrap();
        let pid = child.id() as i32;
        until("its program", || {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n")
        });
        let trial = Trial::new(plan, folder).unwrap();
        std::fs::write(&trial.pid_file, pid.to_string()).unwrap();
        (child, pid, trial.watch())
    }

    fn placed(name: &str, cpu: u32) -> Plan {
        let threads = Threads::Named(vec![name.to_owned()]);
        let rule = ThreadRule { threads, cpus: Some(vec![cpu].into()), policy: None };
        Plan { threads: vec![rule], ..Plan::default() }
    }

    #[test]
    fn a_thread_gets_what_its_name_has_and_is_found_so() {
        let folder = tempfile::tempdir().unwrap();
        let cpu = scheduler::cpus(0).unwrap().iter().next().unwrap();
        let plan = placed("sleep", cpu);
        let (mut child, pid, watched) = watched(&plan, folder.path());
        until("its CPU", || scheduler::cpus(pid).unwrap() == Cpus::from(vec![cpu]));
        let checked = watched.end();
        assert_eq!(checked.problem(&plan, &["sleep".to_owned()]), None);
        assert!(checked.since_ns.contains_key(&pid) && checked.since_ns[&pid] <= now_ns());
        let other = placed("loop", cpu);
        assert_eq!(checked.problem(&other, &[]).unwrap(), "thread loop: there is none");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// As the recorder's probe is, which the program's process has from before.
    #[test]
    fn a_child_from_before_the_start_is_none_of_the_programs() {
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan::default();
        let mut shell = std::process::Command::new("sh");
        let mut shell = shell.args(["-c", "sleep 1000 & sleep 1001 & wait"]).spawn().unwrap();
        let pid = shell.id() as i32;
        until("its children", || children(pid).len() == 2);
        let both = children(pid);
        let trial = Trial::new(&plan, folder.path()).unwrap();
        std::fs::write(&trial.pid_file, format!("{pid} {}", both[0])).unwrap();
        let checked = trial.watch().end();
        assert_eq!(checked.threads.keys().copied().collect::<Vec<_>>(), [pid, both[1]]);
        for one in both {
            // SAFETY: a signal to processes that this test started.
            unsafe { libc::kill(one, libc::SIGKILL) };
        }
        shell.wait().unwrap();
    }

    /// The kernel cuts a name at 15 bytes: in the middle of a character, too.
    #[test]
    fn what_a_process_whose_name_is_no_text_lacks_is_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let sleep = ["/bin/sleep", "/usr/bin/sleep"].into_iter().find(|path| Path::new(path).exists()).unwrap();
        let amiss = ["sleep", "x로봇팔제어"].map(|name| {
            let program = folder.path().join(name);
            std::os::unix::fs::symlink(sleep, &program).unwrap();
            let mut child = std::process::Command::new(&program).arg("10000").spawn().unwrap();
            let pid = child.id() as i32;
            until("its program", || {
                std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.starts_with(&name.as_bytes()[..1]))
            });
            let amiss = setting_amiss(&Setting::NoHugePages, pid, pid, false);
            child.kill().unwrap();
            child.wait().unwrap();
            amiss
        });
        if amiss[0].is_none() {
            return taut_skip::skip(taut_skip::Need::Settings, "this kernel gives no process huge pages");
        }
        assert_eq!(amiss[1], amiss[0]);
    }

    #[test]
    fn a_deadline_for_a_thread_that_is_bound_is_refused_in_words() {
        let deadline = Policy::Deadline { runtime_ns: 1_000_000, period_ns: 10_000_000 };
        let rule = ThreadRule { threads: Threads::All, cpus: None, policy: Some(deadline) };
        let error = std::io::Error::from_raw_os_error(libc::EPERM);
        let bound = Cpus::from(vec![scheduler::cpus(0).unwrap().iter().next().unwrap()]);
        if bound == Cpus::online() {
            return taut_skip::skip(taut_skip::Need::Cpus, "one CPU is every CPU");
        }
        std::thread::spawn(move || {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            scheduler::place(tid, &bound).unwrap();
            let why = refusal(&rule, tid, &error);
            assert!(why.ends_with(&format!("every CPU, and this one may on CPU {bound}")), "{why}");
            let fifo = ThreadRule { policy: Some(Policy::Fifo(50)), ..rule };
            assert_eq!(refusal(&fifo, tid, &error), error.to_string());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_program_that_has_the_last_word_is_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let all = scheduler::cpus(0).unwrap();
        if all.count() < 2 {
            return taut_skip::skip(taut_skip::Need::Cpus, "one CPU leaves no choice");
        }
        let plan = placed("sleep", all.iter().next().unwrap());
        let (mut child, pid, watched) = watched(&plan, folder.path());
        for _ in 0..TRIES {
            until("its CPU", || scheduler::cpus(pid).unwrap().count() == 1);
            scheduler::place(pid, &all).unwrap();
        }
        // It gives up: at the last look the thread is as the program wants it.
        let why = watched.end().problem(&plan, &[]).unwrap();
        assert_eq!(why, format!("thread sleep ({pid}) may run on CPU {all}"));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
