//! From the causes of a chain's tail to remedies for this program on this machine, the largest predicted gain first.

use std::path::PathBuf;

use taut_analysis::{Cause, CauseShare, Chain, Contribution, Explained};
use taut_lab::Cpus;

use crate::{
    Facts, Identity, Left, Outside, Permission, Plan, Policy, Remedy, Setting, Thread, ThreadRule, Threads, ros2,
};

/// A cause with a smaller share of the excess is not answered, unless the analysis is sure that it contributes.
const SHARE_MIN: f64 = 0.05;
/// From this share of the excess without a cause on, causes are not known.
const UNKNOWN_MIN: f64 = 0.5;
/// Causes that a tail may have on any machine.
const COMMON: [Cause; 4] = [Cause::Preempted, Cause::Wakeup, Cause::TimerSlack, Cause::PageFault];
/// Real-time priority for the program, where no other real-time thread takes its CPU.
const PRIORITY: u8 = 50;
/// Above this are the kernel's own threads.
const HIGHEST: u32 = 90;
/// Of its period, a SCHED_DEADLINE thread gets at most this.
const BANDWIDTH_MAX: f64 = 0.8;
/// Of its period, at least this.
const BANDWIDTH_MIN: f64 = 0.05;
/// More than this is no use: a thread that cannot wait 0.2 ms for the interpreter lock should not share it.
const SWITCH_INTERVAL_S: f64 = 0.0002;
const COLLECT_AFTER: u32 = 100_000;
/// What malloc keeps: more than a loop allocates, less than what a machine lacks.
const KEPT_BYTES: u64 = 256 << 20;
/// Remedies for a Python program that computes: its garbage collector may be what does.
const COLLECTING: [&str; 2] = ["collect-later", "freeze-collected"];
/// Checks of `taut doctor` that are about the loop's CPU.
pub const OF_LOOP_CPU: [&str; 4] = ["irq-affinity", "default-irq-affinity", "workqueues", "timer-migration"];
/// What ROS 2 has no setting for outside a node's code and its launch file: name, the causes that it would answer, what it is, and why it is not tried.
const IN_NODES: [(&str, &[Cause], &str, &str); 3] = [
    (
        "ros2-groups",
        &[Cause::Executor],
        "callbacks in groups of their own",
        "ROS 2 has no parameter for callback groups: they are chosen in the node's code",
    ),
    (
        "ros2-intra-process",
        &[Cause::Io, Cause::Queued, Cause::Syscall],
        "messages between nodes of one process without the middleware",
        "it is chosen where the nodes are loaded: use_intra_process_comms",
    ),
    (
        "ros2-depth",
        &[Cause::Queued],
        "a shorter queue of a subscription",
        "it only loses the messages that wait; a node that permits it has the parameter qos_overrides.TOPIC.subscription.depth",
    ),
];
/// At most so many threads are named by their own rule.
const NAMES_MAX: usize = 16;

/// What can be tried, and what cannot.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// The largest predicted gain first.
    pub remedies: Vec<Remedy>,
    /// Not tried, and why.
    pub left: Vec<Left>,
}

/// Why a remedy of a row is not tried.
enum No {
    /// It does not apply here, or changes nothing: not worth a line.
    Silent,
    /// It would, but.
    Because(String),
    /// It would, with this permission.
    Permission(&'static str),
}

type Offer = Result<Plan, No>;

struct Context<'a> {
    explained: &'a Explained,
    /// The recording does not show why the tail is late.
    is_unknown: bool,
    facts: &'a Facts,
    has_ros: bool,
    /// Names of the threads that the chain's messages pass.
    names: Vec<String>,
}

/// The remedies for a chain of a recording. `asked`: only these, by name, whatever the causes are; empty for those that answer a cause.
pub fn candidates(chain: &Chain, has_ros: bool, facts: &Facts, asked: &[String]) -> Candidates {
    let explained = &chain.explained;
    let context = Context { explained, is_unknown: is_unknown(explained), facts, has_ros, names: names(chain) };
    let mut found = Candidates::default();
    for row in crate::TABLE {
        let offers: Vec<(String, Vec<Cause>, Offer)> = match row.id {
            "machine" => context.machine(),
            id => vec![(id.to_owned(), context.answered(row.answers), context.offer(id))],
        };
        for (id, causes, offer) in offers {
            let is_computing = COLLECTING.contains(&row.id) && context.is_python_computing();
            let is_asked = asked.iter().any(|one| *one == id || one == row.id);
            let answers = asked.is_empty() && (!causes.is_empty() || is_computing);
            if !is_asked && !answers {
                continue;
            }
            let against = causes.iter().map(|cause| cause.word().to_owned()).collect();
            let gain = causes.iter().map(|cause| context.gain(*cause)).sum::<f64>().min(0.99);
            let left = |why: String, grant| Left { id: id.clone(), title: row.title.to_owned(), why, grant, gain };
            let offer = offer.and_then(|plan| context.permitted(row.permission, &plan).map(|()| plan));
            match offer {
                Ok(plan) => found.remedies.push(Remedy { row, id, plan, against, gain }),
                Err(No::Silent) if is_asked => {
                    found.left.push(left("it does not apply to this program here".into(), None));
                }
                Err(No::Silent) => {}
                Err(No::Because(why)) => found.left.push(left(why, None)),
                Err(No::Permission(why)) => {
                    let grant = match why {
                        ALLOW => ALLOW_GRANT.to_owned(),
                        _ => facts.grant.clone(),
                    };
                    found.left.push(left(why.to_owned(), Some(grant)));
                }
            }
        }
    }
    for (id, causes, title, why) in IN_NODES.into_iter().filter(|_| has_ros && asked.is_empty()) {
        let causes = context.answered(causes);
        let gain = causes.iter().map(|cause| context.gain(*cause)).sum::<f64>().min(0.99);
        if !causes.is_empty() {
            found.left.push(Left { id: id.into(), title: title.into(), why: why.into(), grant: None, gain });
        }
    }
    found.remedies.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.row.rank.cmp(&b.row.rank)));
    found.left.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    found
}

/// Whether a recording does not show why most of a tail is late, as without kernel events: then remedies for common causes are offered.
pub fn is_unknown(explained: &Explained) -> bool {
    let shares = explained.by_cause.iter().filter(|share| share.cause == Cause::Unknown);
    explained.sides.as_ref().is_some_and(|sides| sides.is_blind)
        || shares.map(|share| share.tail_share).sum::<f64>() >= UNKNOWN_MIN
}

const ALLOW: &str = "changes beyond the program, put back after each trial";
const ALLOW_GRANT: &str = "add --allow-changes";
const NICE: &str = "CAP_SYS_NICE is missing";
const LOCK_WITHIN: &str = "mlockall acts on the calling process only: call mlockall(MCL_CURRENT | MCL_FUTURE) in the program, and touch \
                           what it will use before the loop starts";

const CONTAINER: &str = "a C++ node's executor is chosen in its main, or by the container that loads it: try component_container_mt or \
                         component_container_isolated in the launch file";

/// Names of the threads that stamp a chain, or that its loop runs in.
fn names(chain: &Chain) -> Vec<String> {
    let mut names: Vec<String> = chain
        .points
        .iter()
        .flat_map(|point| &point.threads)
        .filter_map(|thread| Some(thread.rsplit_once('/')?.0.to_owned()))
        .collect();
    names.sort();
    names.dedup();
    names
}

impl Context<'_> {
    /// Of these causes, those that have a part in the tail.
    fn answered(&self, causes: &[Cause]) -> Vec<Cause> {
        causes.iter().copied().filter(|cause| self.matters(*cause)).collect()
    }

    fn matters(&self, cause: Cause) -> bool {
        let word = cause.word();
        let result = self.explained.hypotheses.iter().find(|one| one.hypothesis == word).map(|one| one.result);
        let share = self.explained.by_cause.iter().find(|one| one.cause == cause).map_or(0.0, |one| one.tail_share);
        match result {
            Some(Contribution::Contributes) => true,
            Some(Contribution::DoesNotContribute) => false,
            _ => share >= SHARE_MIN || self.is_unknown && self.is_common(cause),
        }
    }

    fn is_common(&self, cause: Cause) -> bool {
        COMMON.contains(&cause) || cause == Cause::Gil && self.facts.is_python
    }

    /// Predicted change of the tail without a cause; without a prediction, its share of the excess.
    fn gain(&self, cause: Cause) -> f64 {
        let word = cause.word();
        let predicted = self.explained.predictions.iter().find(|one| one.without == word).map(|one| one.gain);
        let share = || self.explained.by_cause.iter().find(|one| one.cause == cause).map_or(0.0, |one| one.tail_share);
        predicted.unwrap_or_else(share).clamp(0.0, 0.99)
    }

    fn details(&self, cause: Cause) -> impl Iterator<Item = &CauseShare> {
        self.explained.causes.iter().filter(move |share| share.cause == cause && share.tail_share > 0.0)
    }

    fn permitted(&self, permission: Permission, plan: &Plan) -> Result<(), No> {
        let facts = self.facts;
        let is_realtime = plan.settings.iter().any(|one| matches!(one, Setting::Fifo(_)))
            || plan.threads.iter().any(|rule| rule.policy.is_some());
        if is_realtime && !facts.is_throttled {
            let why = "real-time throttling is off: a thread that never sleeps would hold its CPU for good";
            return Err(No::Because(format!("{why} (/proc/sys/kernel/sched_rt_runtime_us)")));
        }
        match permission {
            Permission::None => Ok(()),
            Permission::Priority if is_realtime && !facts.may_realtime => Err(No::Permission(NICE)),
            Permission::Priority if !is_realtime && !facts.may_nice => Err(No::Permission(NICE)),
            Permission::Priority => Ok(()),
            Permission::Outside if !facts.allows_changes => Err(No::Permission(ALLOW)),
            Permission::Outside => Ok(()),
        }
    }

    fn offer(&self, id: &str) -> Offer {
        let setting = |setting| Ok(Plan { settings: vec![setting], ..Plan::default() });
        match id {
            "timer-slack" => setting(Setting::TimerSlack(1)),
            "malloc" => Ok(malloc()),
            "huge-pages" if ["always", "madvise"].contains(&&*self.facts.huge_pages) => setting(Setting::NoHugePages),
            "huge-malloc" if self.facts.huge_pages == "madvise" => Ok(huge_malloc(&self.facts.tunables)),
            "arenas" if self.facts.own.len() > 1 => {
                setting(Setting::Variable("MALLOC_ARENA_MAX".to_owned(), "1".to_owned()))
            }
            "lock-memory" if self.facts.is_python => setting(Setting::LockMemory),
            "lock-memory" => Err(No::Because(LOCK_WITHIN.to_owned())),
            "switch-interval" => setting(Setting::SwitchInterval(SWITCH_INTERVAL_S)),
            "collect-later" if self.is_python_computing() => setting(Setting::CollectAfter(COLLECT_AFTER)),
            "freeze-collected" if self.is_python_computing() => setting(Setting::FreezeCollected),
            "free-threaded" => {
                let interpreter = self.facts.free_threaded.clone().ok_or(No::Silent)?;
                setting(Setting::Interpreter(interpreter))
            }
            "ros2-transport" if self.has_fast_dds() => Ok(ros2::shared_memory()),
            "ros2-udp" if self.has_fast_dds() => Ok(ros2::udp()),
            "ros2-publication" if self.has_fast_dds() => Ok(ros2::asynchronous()),
            "ros2-executor" if self.has_ros && self.facts.is_python => setting(Setting::EventsExecutor),
            "ros2-threads" if self.has_ros && self.facts.is_python => setting(Setting::ThreadedExecutor),
            "ros2-threads" if self.has_ros => Err(No::Because(CONTAINER.to_owned())),
            "ros2-middleware" if self.has_ros => {
                let (prefixes, used) = &self.facts.ros2;
                ros2::other_middleware(prefixes, used).ok_or(No::Silent)
            }
            "place" => self.place(),
            "nice" => match self.facts.others.iter().all(|other| other.priority == 0 || other.is_kernel) {
                true => setting(Setting::Nice(-20)),
                // A nice value is nothing to a real-time thread.
                false => Err(No::Silent),
            },
            "fifo-threads" => self.fifo_threads(),
            "fifo" => self.fifo(),
            "deadline" => self.deadline(),
            "awake" => self.awake(),
            "lower-others" => self.lower_others(),
            "move-others" => self.move_others(),
            "move-kernel" => self.move_kernel(),
            "weight" => self.weight(),
            "quota" => self.quota(),
            _ => Err(No::Silent),
        }
    }

    fn has_fast_dds(&self) -> bool {
        self.has_ros && ros2::is_fast_dds(&self.facts.ros2.1)
    }

    /// Processes beyond the program that took its CPUs, or kernel threads that did.
    fn processes(&self, of_kernel: bool) -> Vec<Identity> {
        let mut found: Vec<Identity> = Vec::new();
        let others = self.facts.others.iter().filter(|other| other.is_kernel == of_kernel);
        for process in others.filter_map(|other| other.process.clone()) {
            if !found.iter().any(|known| known.number == process.number) {
                found.push(process);
            }
        }
        found
    }

    /// Above every real-time thread that takes the CPU, below the kernel's own.
    fn priority(&self) -> Result<u8, No> {
        let highest =
            self.facts.others.iter().filter(|other| !other.is_kernel).map(|other| other.priority).max().unwrap_or(0);
        if highest >= HIGHEST {
            let why = format!(
                "a thread with real-time priority {highest} takes the CPU, and kernel threads need those above {HIGHEST}"
            );
            return Err(No::Because(why));
        }
        Ok(PRIORITY.max(highest as u8 + 1))
    }

    /// The chain's threads; `None` where a rule for them would be one for all threads.
    fn chain_threads(&self) -> Option<Threads> {
        let has_others = self.facts.own.iter().any(|name| !self.names.contains(name));
        let is_named = !self.names.is_empty() && self.names.len() <= NAMES_MAX;
        (has_others && is_named).then(|| Threads::Named(self.names.clone()))
    }

    fn fifo_threads(&self) -> Offer {
        let threads = self.chain_threads().ok_or(No::Silent)?;
        let policy = Some(Policy::Fifo(self.priority()?));
        Ok(Plan { threads: vec![ThreadRule { threads, cpus: None, policy }], ..Plan::default() })
    }

    /// Every thread: by inheritance, or where the program sets a policy itself, as cyclictest does and what starts with `chrt`, once it has.
    fn fifo(&self) -> Offer {
        let priority = self.priority()?;
        Ok(match self.facts.has_own_policy {
            false => Plan { settings: vec![Setting::Fifo(priority)], ..Plan::default() },
            true => {
                let rule = ThreadRule { threads: Threads::All, cpus: None, policy: Some(Policy::Fifo(priority)) };
                Plan { threads: vec![rule], ..Plan::default() }
            }
        })
    }

    fn one_cpu_is_too_few(&self) -> Result<(), No> {
        match self.facts.cpus.count() {
            1 => Err(No::Because(format!("only CPU {} is permitted (cpuset)", self.facts.cpus))),
            _ => Ok(()),
        }
    }

    /// Away from processes that are bound to some of the CPUs, and from the CPUs that serve interrupts, where these are a cause; and the chain's
    /// threads apart from the program's other ones.
    fn place(&self) -> Offer {
        let all = &self.facts.cpus;
        let bound = |other: &Thread| other.cpus.clone().filter(|cpus| !cpus.contain(all) && !other.is_kernel);
        let mut bound: Vec<u32> =
            self.facts.others.iter().filter_map(bound).flat_map(|cpus| cpus.iter().collect::<Vec<_>>()).collect();
        if self.matters(Cause::Irq) {
            bound.extend(&self.facts.interrupted);
        }
        let free: Vec<u32> = all.iter().filter(|cpu| !bound.contains(cpu)).collect();
        let own: Vec<String> =
            self.facts.others.iter().filter(|other| other.is_own).map(|other| other.name.clone()).collect();
        let is_apart = own.iter().any(|name| !self.names.contains(name)) && self.chain_threads().is_some();
        if (!bound.is_empty() && !free.is_empty()) || is_apart {
            self.one_cpu_is_too_few()?;
        }
        if is_apart {
            let rest: Vec<String> =
                self.facts.own.iter().filter(|name| !self.names.contains(name)).take(NAMES_MAX).cloned().collect();
            return Ok(self.split(free.last().copied(), Threads::Named(rest)));
        }
        if bound.is_empty() || free.is_empty() {
            return Err(No::Silent);
        }
        let threads = self.chain_threads().unwrap_or(Threads::All);
        Ok(Plan { threads: vec![ThreadRule { threads, cpus: Some(free.into()), policy: None }], ..Plan::default() })
    }

    /// The chain's threads on one CPU, the others on the rest.
    fn split(&self, cpu: Option<u32>, rest: Threads) -> Plan {
        let all = &self.facts.cpus;
        let last = || all.iter().last().unwrap_or(0);
        let own = Cpus::from(vec![cpu.unwrap_or_else(last)]);
        let others = own.without(all);
        let rule = |threads, cpus| ThreadRule { threads, cpus, policy: None };
        let chain = self.chain_threads().unwrap_or(Threads::All);
        Plan { threads: vec![rule(chain, Some(own)), rule(rest, others)], ..Plan::default() }
    }

    fn deadline(&self) -> Offer {
        let period_ns = self.facts.period_ns.ok_or(No::Silent)?;
        let sides = self.explained.sides.as_ref().filter(|sides| sides.hops > 0 && !sides.spent.is_empty());
        let sides = sides.ok_or(No::Silent)?;
        let [_] = &self.names[..] else { return Err(No::Silent) };
        let work = |row: &[taut_analysis::Spent]| row.iter().map(|spent| spent.work_ns).sum::<u64>();
        let longest = sides.messages().map(work).max().unwrap_or(0);
        let share = 2.0 * longest as f64 / period_ns.max(1) as f64;
        if share > BANDWIDTH_MAX || period_ns < 100_000 {
            return Err(No::Silent);
        }
        let runtime_ns = (share.max(BANDWIDTH_MIN) * period_ns as f64) as u64;
        let threads = Threads::Named(self.names.clone());
        let policy = Some(Policy::Deadline { runtime_ns, period_ns });
        Ok(Plan { threads: vec![ThreadRule { threads, cpus: None, policy }], ..Plan::default() })
    }

    /// Wakes are late on CPUs that nothing else had.
    fn is_from_idle(&self) -> bool {
        self.details(Cause::Wakeup).any(|share| !share.detail.starts_with("by "))
    }

    fn awake(&self) -> Offer {
        let from_idle = self.is_from_idle();
        let is_late = self.details(Cause::TimerSlack).any(|share| share.detail.contains("late"));
        if !from_idle && !is_late {
            return Err(No::Silent);
        }
        if self.facts.allows_changes && !self.facts.may_hold_awake {
            return Err(No::Permission("/dev/cpu_dma_latency may not be written"));
        }
        Ok(Plan { outside: vec![Outside::Awake], ..Plan::default() })
    }

    fn may_change(&self, of_kernel: bool) -> Result<Vec<Identity>, No> {
        let processes = self.processes(of_kernel);
        match () {
            () if processes.is_empty() => Err(No::Silent),
            () if self.facts.allows_changes && !self.facts.may_others => Err(No::Permission(NICE)),
            () => Ok(processes),
        }
    }

    fn lower_others(&self) -> Offer {
        let processes = self.may_change(false)?;
        // A nice value is nothing to a real-time thread.
        if self.facts.others.iter().any(|other| other.priority > 0 && !other.is_own && !other.is_kernel) {
            return Err(No::Silent);
        }
        Ok(Plan { outside: vec![Outside::Lower { processes, nice: 19 }], ..Plan::default() })
    }

    fn move_others(&self) -> Offer {
        self.moved(self.may_change(false)?)
    }

    fn move_kernel(&self) -> Offer {
        self.moved(self.may_change(true)?)
    }

    /// These on all CPUs but the last, the chain's threads on the last.
    fn moved(&self, processes: Vec<Identity>) -> Offer {
        self.one_cpu_is_too_few()?;
        let cpus = self.loop_cpu().without(&self.facts.cpus).ok_or(No::Silent)?;
        let outside = vec![Outside::Move { processes, cpus }];
        Ok(Plan { threads: vec![self.on_loop_cpu()], outside, ..Plan::default() })
    }

    fn loop_cpu(&self) -> Cpus {
        Cpus::from(vec![self.facts.cpus.iter().last().unwrap_or(0)])
    }

    /// The chain's threads on the last CPU.
    fn on_loop_cpu(&self) -> ThreadRule {
        let threads = self.chain_threads().unwrap_or(Threads::All);
        ThreadRule { threads, cpus: Some(self.loop_cpu()), policy: None }
    }

    fn weight(&self) -> Offer {
        let is_of_other_group = |other: &Thread| other.is_of_other_group && !other.is_kernel && other.priority == 0;
        if !self.facts.others.iter().any(is_of_other_group) || self.facts.weights.is_empty() {
            return Err(No::Silent);
        }
        Ok(Plan { outside: self.facts.weights.iter().map(write).collect(), ..Plan::default() })
    }

    fn quota(&self) -> Offer {
        let outside: Vec<Outside> = self.facts.quotas.iter().map(write).collect();
        if outside.is_empty() {
            return Err(No::Because(
                "no CPU quota is visible from here: look on the host, outside the container".into(),
            ));
        }
        Ok(Plan { outside, ..Plan::default() })
    }

    /// One offer for each setting that `taut doctor` finds bad.
    fn machine(&self) -> Vec<(String, Vec<Cause>, Offer)> {
        let has_worker = || self.facts.others.iter().any(|other| other.is_kernel && other.name.starts_with("kworker"));
        let settings = self.facts.settings.iter().filter(|(id, ..)| match id.as_str() {
            "workqueues" => has_worker(),
            "governor" | "idle-states" | "halt-polling" => self.is_from_idle(),
            _ => true,
        });
        settings
            .map(|(id, cause, outside)| {
                let is_of_loop_cpu = OF_LOOP_CPU.contains(&id.as_str());
                let threads = is_of_loop_cpu.then(|| self.on_loop_cpu()).into_iter().collect();
                let plan = Plan { threads, outside: outside.clone(), ..Plan::default() };
                (format!("machine:{id}"), self.answered(&[*cause]), Ok(plan))
            })
            .collect()
    }

    /// A Python program whose own computing makes its tail: its garbage collector may be what computes.
    fn is_python_computing(&self) -> bool {
        self.facts.is_python && self.matters(Cause::Cpu)
    }
}

fn write((path, value): &(PathBuf, String)) -> Outside {
    Outside::Write { path: path.clone(), value: value.clone() }
}

/// `tunables`: those that are set already.
fn huge_malloc(tunables: &str) -> Plan {
    let separator = if tunables.is_empty() { "" } else { ":" };
    let value = format!("{tunables}{separator}glibc.malloc.hugetlb=1");
    Plan { settings: vec![Setting::Variable("GLIBC_TUNABLES".to_owned(), value)], ..Plan::default() }
}

fn malloc() -> Plan {
    let kept = KEPT_BYTES.to_string();
    // glibc takes no more than 32 MiB for this one.
    let largest = (32u64 << 20).to_string();
    let variables = [
        ("MALLOC_TRIM_THRESHOLD_", kept.clone()),
        ("MALLOC_TOP_PAD_", (16u64 << 20).to_string()),
        ("MALLOC_MMAP_THRESHOLD_", largest),
    ];
    let settings = variables.into_iter().map(|(name, value)| Setting::Variable(name.to_owned(), value)).collect();
    Plan { settings, ..Plan::default() }
}

#[cfg(test)]
mod tests {
    use taut_analysis::{Hypothesis, Point, Prediction};

    use super::*;

    fn facts() -> Facts {
        Facts {
            cpus: Cpus::from(vec![0, 1]),
            may_realtime: true,
            may_nice: true,
            may_others: true,
            is_throttled: true,
            allows_changes: true,
            may_hold_awake: true,
            quotas: Vec::new(),
            weights: Vec::new(),
            settings: Vec::new(),
            others: Vec::new(),
            own: vec!["loop".into()],
            has_own_policy: false,
            period_ns: None,
            interrupted: Vec::new(),
            is_python: false,
            free_threaded: None,
            huge_pages: String::new(),
            tunables: String::new(),
            ros2: Default::default(),
            grant: "sudo setcap …".into(),
        }
    }

    fn chain(causes: &[(Cause, &str, f64)]) -> Chain {
        let share = |(cause, detail, tail_share): &(Cause, &str, f64)| CauseShare {
            cause: *cause,
            detail: (*detail).to_owned(),
            tail_share: *tail_share,
            ..CauseShare::default()
        };
        let all: Vec<CauseShare> = causes.iter().map(share).collect();
        let predictions = causes.iter().map(|(cause, _, share)| Prediction {
            without: cause.word().into(),
            gain: share * 0.5,
            ..Prediction::default()
        });
        let explained = Explained {
            causes: all.clone(),
            by_cause: all,
            predictions: predictions.collect(),
            ..Explained::default()
        };
        let point = Point { threads: vec!["loop/71".into()], ..Point::default() };
        Chain { points: vec![point.clone(), point], explained, ..Chain::default() }
    }

    fn ids(chain: &Chain, facts: &Facts) -> Vec<String> {
        candidates(chain, false, facts, &[]).remedies.into_iter().map(|remedy| remedy.id).collect()
    }

    #[test]
    fn a_program_that_is_called_taut_is_a_competitor_like_any_other() {
        let chain = chain(&[(Cause::Preempted, "by taut/99", 0.9)]);
        let facts = Facts { others: vec![Thread { name: "taut".into(), ..hog(70, vec![1]) }], ..facts() };
        let found = candidates(&chain, false, &facts, &[]);
        let ids: Vec<&str> = found.remedies.iter().map(|one| one.id.as_str()).collect();
        assert!(ids.contains(&"place"), "{ids:?}");
        assert_eq!(found.remedies.iter().find(|one| one.id == "fifo").unwrap().plan.to_string(), "SCHED_FIFO 71");
    }

    fn hog(priority: u32, cpus: Vec<u32>) -> Thread {
        Thread {
            name: "hog".into(),
            process: Identity::of(std::process::id() as i32),
            is_kernel: false,
            priority,
            cpus: Some(cpus.into()),
            is_own: false,
            is_of_other_group: false,
        }
    }

    #[test]
    fn a_real_time_hog_on_one_cpu_is_avoided_or_outranked() {
        let chain = chain(&[(Cause::Preempted, "by hog/99", 0.9), (Cause::Wakeup, "by hog/99", 0.05)]);
        let facts = Facts { others: vec![hog(70, vec![1])], ..facts() };
        let found = candidates(&chain, false, &facts, &[]);
        let plan = |id: &str| found.remedies.iter().find(|one| one.id == id).map(|one| one.plan.to_string());
        assert_eq!(plan("place").unwrap(), "CPU 0 for all threads");
        assert_eq!(plan("fifo").unwrap(), "SCHED_FIFO 71");
        assert_eq!((plan("nice"), plan("lower-others")), (None, None), "a nice value is nothing to it");
        let gains: Vec<f64> = found.remedies.iter().map(|one| one.gain).collect();
        assert!(gains.is_sorted_by(|a, b| a >= b), "{gains:?}");
    }

    #[test]
    fn a_program_that_sets_its_policy_gets_another_one_after_that() {
        let chain = chain(&[(Cause::Wakeup, "by hog/99", 0.9)]);
        let facts = Facts { has_own_policy: true, ..facts() };
        let found = candidates(&chain, false, &facts, &[]);
        let fifo = found.remedies.iter().find(|one| one.id == "fifo").unwrap();
        assert_eq!(fifo.plan.to_string(), "SCHED_FIFO 50 for all threads");
    }

    #[test]
    fn an_own_thread_on_the_loops_cpu_is_put_on_another() {
        let chain = chain(&[(Cause::Preempted, "by log/72", 0.9)]);
        let own = Thread { is_own: true, process: None, cpus: None, name: "log".into(), ..hog(0, vec![]) };
        let facts = Facts { others: vec![own], own: vec!["loop".into(), "log".into()], ..facts() };
        let found = candidates(&chain, false, &facts, &[]);
        let place = found.remedies.iter().find(|one| one.id == "place").unwrap();
        assert_eq!(place.plan.to_string(), "CPU 1 for thread loop; CPU 0 for thread log");
        assert!(found.remedies.iter().any(|one| one.id == "fifo-threads"));
        let single = Facts { cpus: Cpus::from(vec![1]), ..facts };
        let left = candidates(&chain, false, &single, &[]).left;
        assert!(left.iter().any(|one| one.id == "place" && one.why == "only CPU 1 is permitted (cpuset)"), "{left:?}");
    }

    #[test]
    fn what_needs_a_permission_is_left_with_the_command_that_grants_it() {
        let chain = chain(&[(Cause::Preempted, "by hog/99", 0.9)]);
        let poor = Facts {
            may_realtime: false,
            may_nice: false,
            may_others: false,
            allows_changes: false,
            others: vec![hog(0, vec![0, 1])],
            ..facts()
        };
        let found = candidates(&chain, false, &poor, &[]);
        assert!(found.remedies.is_empty(), "{:?}", found.remedies);
        let grant = |id: &str| found.left.iter().find(|one| one.id == id).unwrap().grant.clone().unwrap();
        assert_eq!(grant("fifo"), "sudo setcap …");
        assert_eq!(grant("lower-others"), "add --allow-changes");
        let unthrottled = Facts { is_throttled: false, ..facts() };
        let left = candidates(&chain, false, &unthrottled, &[]).left;
        assert!(left.iter().any(|one| one.id == "fifo" && one.why.contains("throttling is off")));
    }

    #[test]
    fn causes_that_do_not_contribute_are_not_answered() {
        let mut chain = chain(&[(Cause::TimerSlack, "", 0.2), (Cause::PageFault, "", 0.01)]);
        assert_eq!(ids(&chain, &facts()), ["timer-slack", "fifo"]);
        let refuted = Hypothesis {
            hypothesis: "timer_slack".into(),
            result: Contribution::DoesNotContribute,
            ..Hypothesis::default()
        };
        chain.explained.hypotheses = vec![refuted];
        assert!(ids(&chain, &facts()).is_empty());
    }

    #[test]
    fn a_periodic_thread_gets_a_deadline_only_where_its_run_is_known_and_short() {
        let mut chain = chain(&[(Cause::Wakeup, "by hog/99", 0.9)]);
        let facts = Facts { period_ns: Some(1_000_000), ..facts() };
        let has = |chain: &Chain| ids(chain, &facts).contains(&"deadline".to_owned());
        assert!(!has(&chain));
        let sides = |work_ns| taut_analysis::Sides {
            hops: 1,
            spent: vec![taut_analysis::Spent { total_ns: 2 * work_ns, work_ns, machine_ns: 0 }],
            ..taut_analysis::Sides::default()
        };
        chain.explained.sides = Some(sides(900_000));
        assert!(!has(&chain));
        chain.explained.sides = Some(sides(100_000));
        let found = candidates(&chain, false, &facts, &[]);
        let deadline = found.remedies.iter().find(|one| one.id == "deadline").unwrap();
        assert_eq!(deadline.plan.to_string(), "SCHED_DEADLINE 0.20 of 1.00 ms for thread loop");
    }

    #[test]
    fn what_is_asked_for_is_tried_whatever_the_causes_are() {
        let chain = chain(&[(Cause::Lock, "sdk", 0.9)]);
        assert!(ids(&chain, &facts()).is_empty());
        let asked = ["timer-slack".to_owned(), "place".to_owned()];
        let found = candidates(&chain, false, &facts(), &asked);
        assert_eq!(found.remedies.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["timer-slack"]);
        assert_eq!(found.left[0].id, "place");
    }

    #[test]
    fn only_a_python_program_gets_settings_of_the_interpreter() {
        let chain = chain(&[(Cause::Cpu, "", 0.8), (Cause::Gil, "", 0.2)]);
        assert_eq!(ids(&chain, &facts()), ["switch-interval"]);
        let python = Facts { is_python: true, ..facts() };
        assert_eq!(ids(&chain, &python), ["switch-interval", "collect-later", "freeze-collected"]);
        let free = Facts { free_threaded: Some("/opt/python3.14t".into()), ..python };
        assert!(ids(&chain, &free).contains(&"free-threaded".to_owned()));
    }

    #[test]
    fn where_causes_are_not_known_remedies_for_common_ones_are_tried() {
        let poor = Facts { may_realtime: false, may_nice: false, allows_changes: false, ..facts() };
        let found = candidates(&chain(&[(Cause::Unknown, "kernel events were lost", 0.9)]), false, &poor, &[]);
        let ids: Vec<&str> = found.remedies.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, ["timer-slack", "malloc"]);
        assert!(found.left.iter().any(|one| one.id == "fifo" && one.grant.is_some()), "{:?}", found.left);
        let known = chain(&[(Cause::Lock, "", 0.6), (Cause::Unknown, "", 0.4)]);
        assert!(candidates(&known, false, &poor, &[]).remedies.is_empty());
    }

    #[test]
    fn page_faults_are_answered_as_the_machine_and_the_program_allow() {
        let chain = chain(&[(Cause::PageFault, "", 0.9)]);
        assert_eq!(ids(&chain, &facts()), ["malloc"]);
        let left = candidates(&chain, false, &facts(), &[]).left;
        assert!(left.iter().any(|one| one.id == "lock-memory" && one.why.starts_with("mlockall")), "{left:?}");
        let rich = Facts {
            huge_pages: "madvise".into(),
            tunables: "a=1".into(),
            is_python: true,
            own: vec!["loop".into(), "log".into()],
            ..facts()
        };
        assert_eq!(ids(&chain, &rich), ["malloc", "huge-pages", "huge-malloc", "arenas", "lock-memory"]);
        let found = candidates(&chain, false, &rich, &[]);
        let huge = found.remedies.iter().find(|one| one.id == "huge-malloc").unwrap();
        assert_eq!(huge.plan.to_string(), "GLIBC_TUNABLES=a=1:glibc.malloc.hugetlb=1");
    }

    #[test]
    fn kernel_threads_and_interrupts_leave_the_cpu_that_the_chain_is_put_on() {
        let chain = chain(&[(Cause::Preempted, "by kcompactd0/40", 0.5), (Cause::Irq, "", 0.3)]);
        let kernel = Thread { is_kernel: true, name: "kcompactd0".into(), ..hog(0, vec![0, 1]) };
        let away = Outside::Write { path: "/proc/irq/24/smp_affinity_list".into(), value: "0".into() };
        let facts = Facts {
            others: vec![kernel.clone()],
            settings: vec![("irq-affinity".into(), Cause::Irq, vec![away])],
            ..facts()
        };
        let found = candidates(&chain, false, &facts, &[]);
        let plan = |id: &str| found.remedies.iter().find(|one| one.id == id).map(|one| one.plan.to_string());
        let pid = kernel.process.as_ref().unwrap();
        let moved = format!("CPU 1 for all threads; {}/{} moved to CPU 0", pid.name, pid.number);
        assert_eq!(plan("move-kernel"), Some(moved));
        assert_eq!(plan("move-others"), None);
        let irq = "CPU 1 for all threads; 0 in /proc/irq/24/smp_affinity_list";
        assert_eq!(plan("machine:irq-affinity").as_deref(), Some(irq));
    }

    #[test]
    fn interrupts_of_one_cpu_are_avoided_where_they_are_a_cause() {
        let interrupted = Facts { interrupted: vec![1], ..facts() };
        let found = candidates(&chain(&[(Cause::Irq, "softirq NET_RX", 0.6)]), false, &interrupted, &[]);
        assert_eq!(
            found.remedies.iter().map(|one| one.plan.to_string()).collect::<Vec<_>>(),
            ["CPU 0 for all threads"]
        );
        assert!(ids(&chain(&[(Cause::Lock, "", 0.9)]), &interrupted).is_empty());
        // Where each CPU serves its share, there is none to go to.
        assert!(ids(&chain(&[(Cause::Irq, "softirq NET_RX", 0.6)]), &facts()).is_empty());
    }

    #[test]
    fn a_groups_weight_is_raised_only_against_another_group() {
        let chain = chain(&[(Cause::Preempted, "by hog/99", 0.9)]);
        let weights = vec![("/sys/fs/cgroup/robot/cpu.weight".into(), "10000".into())];
        let inside = Facts { others: vec![hog(0, vec![0, 1])], weights, ..facts() };
        assert!(!ids(&chain, &inside).contains(&"weight".to_owned()));
        let others = vec![Thread { is_of_other_group: true, ..hog(0, vec![0, 1]) }];
        assert!(ids(&chain, &Facts { others, ..inside }).contains(&"weight".to_owned()));
    }

    #[test]
    fn ros2_nodes_get_what_their_middleware_and_their_language_have() {
        let chain = chain(&[(Cause::Queued, "", 0.9)]);
        let of = |rmw: &str, is_python| {
            let facts = Facts { ros2: (String::new(), rmw.into()), is_python, ..facts() };
            let found = candidates(&chain, true, &facts, &[]);
            found.remedies.into_iter().map(|one| one.id).collect::<Vec<_>>()
        };
        assert_eq!(of("", true), ["ros2-transport", "ros2-udp"]);
        let left = candidates(&chain, true, &facts(), &[]).left;
        let left: Vec<&str> = left.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(left, ["ros2-intra-process", "ros2-depth"]);
        let asked = candidates(&chain, true, &Facts { is_python: true, ..facts() }, &["ros2-executor".to_owned()]);
        assert_eq!(asked.remedies[0].plan.settings, [Setting::EventsExecutor], "only on request");
        let busy = self::chain(&[(Cause::Executor, "", 0.9)]);
        let python = candidates(&busy, true, &Facts { is_python: true, ..facts() }, &[]);
        assert_eq!(python.remedies[0].plan.settings, [Setting::ThreadedExecutor]);
        let left = candidates(&busy, true, &facts(), &[]).left;
        assert!(
            left.iter().any(|one| one.id == "ros2-threads" && one.why.contains("component_container_mt")),
            "{left:?}"
        );
        assert_eq!(of("rmw_fastrtps_cpp", false), ["ros2-transport", "ros2-udp"]);
        assert!(of("rmw_cyclonedds_cpp", false).is_empty());
    }
}
