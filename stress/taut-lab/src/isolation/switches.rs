//! Which thread ran on which CPU and for how long, from scheduler events: between two looks at /proc a thread can
//! leave its CPUs and come back, between two switches it cannot.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Duration,
};

use taut_capture::kernel::{Depth, Source, Wanted, start};
use taut_recording::{KernelBatch, KernelEvent, Tier};

use super::tree::now_ns;

/// How often the kernel's rings are emptied.
const EMPTIED: Duration = Duration::from_millis(20);
/// Naps after which a source that works has shown this very thread.
const NAPS: u32 = 5;
const NAP: Duration = Duration::from_millis(2);

/// Events of all switches, emptied by a thread of its own as long as this lives.
pub(crate) struct Switches {
    inside: Arc<Mutex<Inside>>,
    end: Arc<AtomicBool>,
    emptier: Option<JoinHandle<()>>,
    name: String,
}

struct Inside {
    source: Box<dyn Source>,
    account: Account,
    lost: u64,
}

/// The CPU time of one thread on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub tid: i32,
    pub cpu: u32,
    pub ran_ns: u64,
}

/// Which thread ran where between [`Switches::begin`] and [`Switches::end`].
#[derive(Debug, Default)]
pub(crate) struct Stays {
    pub all: Vec<Stay>,
    /// Threads born meanwhile, with whom they were born of.
    pub born: HashMap<i32, i32>,
    /// Events lost meanwhile.
    pub lost: u64,
}

impl Switches {
    /// Begins to listen: to everybody where that is permitted, else to this process and all that it will start.
    ///
    /// # Errors
    /// Why there are no events, in words.
    pub fn listen() -> Result<Switches, String> {
        let mut refusals = Vec::new();
        for tier in [Tier::Full, Tier::SelfOnly] {
            let pid = std::process::id() as i32;
            let wanted = Wanted { tier: Some(tier), pid, depth: Depth::Sched, ..Wanted::default() };
            // What grants more is the recorder's to say.
            let plain = |error: taut_capture::kernel::Error| {
                error.to_string().split("; for more").next().unwrap_or_default().to_owned()
            };
            let started = start(&wanted).map_err(plain);
            match started.and_then(|chosen| chosen.source.ok_or_else(|| "no source".into())).and_then(Switches::proven)
            {
                Ok(switches) => return Ok(switches),
                Err(why) => refusals.push(why),
            }
        }
        Err(refusals.join("; "))
    }

    /// What it hears: "ftrace", "perf".
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A source that shows this thread as it sleeps: in a pid namespace the kernel's numbers are other ones.
    fn proven(source: Box<dyn Source>) -> Result<Switches, String> {
        let name = source.name().to_owned();
        let mut inside = Inside { source, account: Account::default(), lost: 0 };
        let me = rustix::thread::gettid().as_raw_nonzero().get();
        inside.account.begin(now_ns());
        (0..NAPS).for_each(|_| std::thread::sleep(NAP));
        inside.empty().map_err(|error| format!("{name}: {error}"))?;
        if !inside.account.ran.keys().any(|(tid, _)| *tid == me) {
            return Err(format!("{name} knows this thread under another number, as in a container"));
        }
        inside.account.is_open = false;
        let (inside, end) = (Arc::new(Mutex::new(inside)), Arc::new(AtomicBool::new(false)));
        let emptier = {
            let (inside, end) = (Arc::clone(&inside), Arc::clone(&end));
            std::thread::Builder::new().name("taut-switches".into()).spawn(move || {
                while !end.load(Relaxed) && held(&inside).empty().is_ok() {
                    std::thread::sleep(EMPTIED);
                }
            })
        };
        let emptier = emptier.map_err(|error| error.to_string())?;
        Ok(Switches { inside, end, emptier: Some(emptier), name })
    }

    /// From now on it is recorded which thread runs where.
    pub fn begin(&self) -> io::Result<()> {
        let mut inside = held(&self.inside);
        inside.empty()?;
        inside.lost = 0;
        inside.account.begin(now_ns());
        Ok(())
    }

    /// Forgets what a thread did: before its program it was a copy of the lab, on the lab's CPUs.
    pub fn forget(&self, tid: i32) -> io::Result<()> {
        let mut inside = held(&self.inside);
        inside.empty()?;
        inside.account.forget(tid, now_ns());
        Ok(())
    }

    /// What was written down since the beginning.
    pub fn end(&self) -> io::Result<Stays> {
        let mut inside = held(&self.inside);
        inside.empty()?;
        let lost = std::mem::take(&mut inside.lost);
        Ok(Stays { lost, ..inside.account.end(now_ns()) })
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        self.end.store(true, Relaxed);
        let _ = self.emptier.take().map(JoinHandle::join);
        let _ = held(&self.inside).source.stop();
    }
}

impl Inside {
    fn empty(&mut self) -> io::Result<()> {
        let Inside { source, account, lost } = self;
        let mut events = Vec::new();
        source.drain(&mut |batch| events.extend(rows(&batch)))?;
        // Each CPU's are in order, but one CPU wakes what another runs.
        events.sort_by_key(|event| event.time_ns);
        events.iter().for_each(|event| account.take(event));
        *lost += source.lost().into_iter().map(|(_, n)| n).sum::<u64>();
        Ok(())
    }
}

/// What an account takes of an event.
#[derive(Clone, Copy, Debug)]
struct Event {
    time_ns: u64,
    kind: KernelEvent,
    cpu: u16,
    /// The thread that was current.
    tid: i32,
    /// The other thread, if there is one.
    other: i32,
}

fn rows(batch: &KernelBatch) -> impl Iterator<Item = Event> {
    (0..batch.time_ns.len()).filter_map(|at| {
        let kind = KernelEvent::from_number(batch.event[at])?;
        let (time_ns, tid, other) = (batch.time_ns[at], batch.tid[at], batch.arg0[at] as i32);
        Some(Event { time_ns, kind, cpu: batch.cpu, tid, other })
    })
}

fn held(inside: &Mutex<Inside>) -> MutexGuard<'_, Inside> {
    inside.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which thread ran where, out of switches.
#[derive(Debug, Default)]
struct Account {
    /// Whether it is written down.
    is_open: bool,
    began_ns: u64,
    /// By CPU the thread on it, and since when.
    on: HashMap<u16, (i32, u64)>,
    ran: BTreeMap<(i32, u16), u64>,
    born: HashMap<i32, i32>,
    /// Since when a thread could run, or could on another CPU.
    able: HashMap<i32, u64>,
}

impl Account {
    fn begin(&mut self, now_ns: u64) {
        let on = std::mem::take(&mut self.on);
        *self = Account { is_open: true, began_ns: now_ns, on, ..Account::default() };
    }

    fn take(&mut self, event: &Event) {
        use KernelEvent::*;
        let Event { time_ns, kind, cpu, tid, other } = *event;
        if !matches!(kind, SwitchIn | SwitchOut) {
            self.is_current(cpu, tid, time_ns);
        }
        match kind {
            SchedSwitch => {
                self.left(cpu, tid, time_ns);
                self.on.insert(cpu, (other, time_ns));
            }
            SwitchIn => {
                self.on.insert(cpu, (tid, time_ns));
            }
            SwitchOut => self.left(cpu, tid, time_ns),
            SchedWaking | SchedWakeupNew | SchedMigrate => {
                self.able.insert(other, time_ns);
            }
            SchedFork if self.is_open => {
                self.born.insert(other, tid);
            }
            _ => {}
        }
    }

    /// Every event names the thread that is current on its CPU. If that is not the one that came last, a switch is
    /// missing: full buffers lose them, and some kernels record none of a CPU's idle task. On an idle CPU the newcomer
    /// runs since it could; else since now for certain, and how long the other one stayed is unknown.
    fn is_current(&mut self, cpu: u16, tid: i32, time_ns: u64) {
        if let Some((expected, idle_ns)) = self.on.get(&cpu).copied().filter(|(on, _)| *on != tid) {
            let able_ns = self.able.get(&tid).copied().filter(|able_ns| expected == 0 && *able_ns >= idle_ns);
            self.on.insert(cpu, (tid, able_ns.unwrap_or(time_ns)));
        }
    }

    /// A thread that leaves came at the last switch; one that was there from the first event on, at the beginning at the latest.
    fn left(&mut self, cpu: u16, tid: i32, time_ns: u64) {
        let since_ns = match self.on.remove(&cpu) {
            Some((on, since_ns)) if on == tid => since_ns,
            Some(_) => return,
            None => self.began_ns,
        };
        self.charge(cpu, tid, since_ns, time_ns);
    }

    fn charge(&mut self, cpu: u16, tid: i32, since_ns: u64, until_ns: u64) {
        // Thread 0 is every CPU's idling.
        let ran_ns = until_ns.saturating_sub(since_ns.max(self.began_ns));
        if self.is_open && tid != 0 && ran_ns > 0 {
            *self.ran.entry((tid, cpu)).or_default() += ran_ns;
        }
    }

    fn forget(&mut self, tid: i32, now_ns: u64) {
        self.ran.retain(|(who, _), _| *who != tid);
        self.on.values_mut().filter(|(who, _)| *who == tid).for_each(|(_, since_ns)| *since_ns = now_ns);
    }

    fn end(&mut self, now_ns: u64) -> Stays {
        let running: Vec<(u16, i32, u64)> = self.on.iter().map(|(cpu, (tid, since))| (*cpu, *tid, *since)).collect();
        running.into_iter().for_each(|(cpu, tid, since_ns)| self.charge(cpu, tid, since_ns, now_ns));
        self.is_open = false;
        let all = std::mem::take(&mut self.ran);
        let all = all.into_iter().map(|((tid, cpu), ran_ns)| Stay { tid, cpu: u32::from(cpu), ran_ns }).collect();
        Stays { all, born: std::mem::take(&mut self.born), lost: 0 }
    }
}

#[cfg(test)]
mod tests {
    use taut_skip::{Need, skip};

    use super::*;

    impl Account {
        fn see(&mut self, cpu: u16, rows: &[(u64, KernelEvent, i32, i32)]) {
            rows.iter().for_each(|&(time_ns, kind, tid, other)| self.take(&Event { time_ns, kind, cpu, tid, other }));
        }
    }

    fn stays(account: &mut Account, now_ns: u64) -> Vec<(i32, u32, u64)> {
        account.end(now_ns).all.iter().map(|stay| (stay.tid, stay.cpu, stay.ran_ns)).collect()
    }

    #[test]
    fn time_is_charged_to_who_was_on_the_cpu_within_the_window() {
        use KernelEvent::SchedSwitch;
        let mut account = Account::default();
        // Before the window: 7 comes onto CPU 0.
        account.see(0, &[(50, SchedSwitch, 1, 7)]);
        account.begin(100);
        // 7 until 130, idle until 140, 7 again; 9 was on CPU 1 from before the first event there, and 7 came after it.
        account.see(0, &[(130, SchedSwitch, 7, 0), (140, SchedSwitch, 0, 7), (150, SchedSwitch, 7, 0)]);
        account.see(1, &[(120, SchedSwitch, 9, 7), (125, SchedSwitch, 7, 9)]);
        assert_eq!(stays(&mut account, 200), [(7, 0, 40), (7, 1, 5), (9, 1, 20 + 75)]);
        // The next window begins with who is there.
        account.begin(300);
        assert_eq!(stays(&mut account, 310), [(9, 1, 10)]);
    }

    #[test]
    fn own_switches_say_as_much() {
        use KernelEvent::{SwitchIn, SwitchOut};
        let mut account = Account::default();
        account.begin(100);
        account.see(0, &[(110, SwitchOut, 7, 0), (120, SwitchIn, 8, 0), (125, SwitchOut, 8, 1)]);
        assert_eq!(stays(&mut account, 200), [(7, 0, 10), (8, 0, 5)]);
    }

    #[test]
    fn what_ran_before_its_program_is_forgotten_and_a_gap_charges_nobody() {
        use KernelEvent::{SchedFork, SchedSwitch};
        let mut account = Account::default();
        account.begin(100);
        account.see(0, &[(105, SchedFork, 1, 7), (110, SchedSwitch, 1, 7)]);
        account.forget(7, 150);
        // Nobody saw 7 leave and 8 come.
        account.see(0, &[(160, SchedSwitch, 8, 0)]);
        account.see(1, &[(150, SchedSwitch, 0, 7), (170, SchedSwitch, 7, 0)]);
        let stays = account.end(200);
        let ran: Vec<_> = stays.all.iter().map(|stay| (stay.tid, stay.cpu, stay.ran_ns)).collect();
        assert_eq!(ran, [(1, 0, 10), (7, 1, 20)]);
        assert_eq!(stays.born, HashMap::from([(7, 1)]));
    }

    #[test]
    fn who_leaves_a_cpu_that_was_idle_ran_there_since_it_could() {
        use KernelEvent::{SchedMigrate, SchedSwitch, SchedWaking};
        let mut account = Account::default();
        account.begin(100);
        account.see(1, &[(110, SchedSwitch, 6, 0)]);
        // That 7 came is not recorded, as by kernels that record no switch of the idle task.
        account.see(0, &[(120, SchedMigrate, 18, 7)]);
        account.see(1, &[(150, SchedWaking, 7, 21), (152, SchedSwitch, 7, 0)]);
        // 8 was able long ago, 9 came by itself: what they did first is what is known.
        account.see(0, &[(90, SchedWaking, 5, 8)]);
        account.see(1, &[(160, SchedWaking, 8, 6), (161, SchedSwitch, 8, 0), (170, SchedSwitch, 9, 0)]);
        assert_eq!(stays(&mut account, 200), [(6, 1, 10), (7, 1, 32), (8, 1, 1)]);
    }

    #[test]
    fn the_kernel_says_where_this_thread_worked() {
        let switches = match Switches::listen() {
            Ok(switches) => switches,
            Err(why) => {
                assert!(why.to_lowercase().contains("permi") || why.contains("container"), "{why}");
                return skip(Need::Ftrace, why);
            }
        };
        let me = rustix::thread::gettid().as_raw_nonzero().get();
        switches.begin().unwrap();
        let (mut sum, began) = (0u64, now_ns());
        while now_ns() - began < 20_000_000 {
            sum = sum.wrapping_mul(31).wrapping_add(1);
        }
        std::hint::black_box(sum);
        let stays = switches.end().unwrap();
        let own: u64 = stays.all.iter().filter(|stay| stay.tid == me).map(|stay| stay.ran_ns).sum();
        assert!(own > 0, "{stays:?}");
    }
}
