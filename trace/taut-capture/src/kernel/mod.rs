//! Kernel events: one trait, three sources (ftrace, perf, own context switches).
//! First stop of kernel events: from the kernel's rings to columns, before any file.

pub(crate) mod capabilities;
mod format;
mod ftrace;
#[doc(hidden)]
pub mod fuzzing;
mod own_switches;
mod perf;
pub(crate) mod perf_ring;
mod perf_source;
mod readable;
mod rows;
mod sub_buffer;
mod tracefs;
mod tracepoints;

#[cfg(test)]
mod live_tests;

use std::io;

use taut_recording::{KernelBatch, Tier};

/// How much of the kernel a recording in the full tier holds. Each step holds the ones before it;
/// one event costs as much as 20 to 80 stamps, so the default asks only for what explains waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Scheduling of all tasks.
    Sched,
    /// Also the blocking system calls and user page faults of the recorded tree.
    #[default]
    Syscalls,
    /// Also interrupts and softirqs of all CPUs, the costliest group.
    Irq,
    /// Also idle states and frequency changes.
    All,
}

impl Depth {
    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Depth::Sched => "sched",
            Depth::Syscalls => "syscalls",
            Depth::Irq => "irq",
            Depth::All => "all",
        }
    }

    /// The depth of that word.
    pub fn from_word(word: &str) -> Option<Depth> {
        [Depth::Sched, Depth::Syscalls, Depth::Irq, Depth::All].into_iter().find(|depth| depth.word() == word)
    }
}

pub(crate) use capabilities::Arrivals;
pub(crate) use perf_source::Cpus;

/// A running source of kernel events.
///
/// The order of use is `drain` and `lost` as often as wished, `stop`, then one more `drain` and
/// `lost`: `stop` takes what is left out of the kernel, the last `drain` hands it over.
pub trait Source: Send {
    /// "ftrace" or "perf", for the recording.
    fn name(&self) -> &'static str;

    /// Events of the depth that this source cannot have here: "group:name", or "group:*" where there are none of the group.
    fn left_out(&self) -> &[String] {
        &[]
    }

    /// Whether it has the events of a CPU that has come online, which `was_there` before or not.
    fn takes_cpu(&mut self, cpu: u16, was_there: bool) -> bool;

    /// Hands over what has arrived, as batches in time order. It never blocks; call it every
    /// 5 to 50 ms. The batches of one CPU follow each other in time too, so an event may be held
    /// back until the next call.
    fn drain(&mut self, sink: &mut dyn FnMut(KernelBatch)) -> io::Result<()>;

    /// Ends the tracing and removes everything it put into the kernel. Calling it twice is fine. Where it fails all is done that can be,
    /// and what is left in the kernel is lost.
    fn stop(&mut self) -> io::Result<()>;

    /// Events lost since the last call, by ring ("cpu 1 ftrace sched"); rings without loss are not named.
    fn lost(&mut self) -> Vec<(String, u64)>;

    /// Bytes of records taken out of the kernel's rings since the start.
    fn bytes_read(&self) -> u64;
}

/// What the caller asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// This tier and no other; `None` takes the best that the system permits.
    pub tier: Option<Tier>,
    /// "ftrace" or "perf" and nothing else; `None` takes the cheaper one that works.
    pub source: Option<String>,
    /// Root of the recorded tree; children are followed by the kernel.
    pub pid: i32,
    /// Also follow the threads and descendants that exist now (for attaching to a running process).
    pub follow_existing_threads: bool,
    /// Every thread of the machine but the calling one is followed, instead of a tree.
    pub whole_system: bool,
    /// How much to record in the full tier.
    pub depth: Depth,
}

/// What the system permitted.
pub struct Chosen {
    /// `None` in the stamps tier.
    pub source: Option<Box<dyn Source>>,
    /// The tier that serves.
    pub tier: Tier,
    /// "ftrace", "perf" or "none".
    pub kernel_source: String,
    /// Why not a better tier, what that costs and what grants more; in the full tier, which events are missing.
    pub tier_reason: String,
}

/// Why a tier or source that was forced cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The forced tier is not permitted or not possible here.
    #[error("the {tier} tier is not possible here: {reason}")]
    Tier {
        /// The tier's word.
        tier: &'static str,
        /// What failed, and what would grant it.
        reason: String,
        /// Whether a permission is what is missing.
        is_denied: bool,
    },
    /// The forced source is not known.
    #[error("kernel source \"{0}\" is not known: use ftrace or perf")]
    Source(String),
}

impl Error {
    /// Whether a permission is what is missing.
    pub fn is_not_permitted(&self) -> bool {
        matches!(self, Error::Tier { is_denied: true, .. })
    }
}

/// What the self tier cannot see, said wherever it serves.
const SELF_COSTS: &str = "only context switches of the recorded threads are seen: which thread ran instead, which \
    one woke it and which system call it waited in stay unknown";
/// The same for the stamps tier.
const STAMPS_COST: &str = "no kernel events: every wait inside a hop stays unknown";
const GRANT_FULL: &str = "for more: sudo setcap cap_sys_admin,cap_perfmon,cap_dac_override,cap_ipc_lock+ep \"$(readlink -f \"$(command -v taut)\")\", or run as root";
const GRANT_SELF: &str = "for more: sudo sysctl kernel.perf_event_paranoid=2";

/// Starts the best source that is permitted, and says in one sentence why not a better one.
///
/// # Errors
/// Only when a forced tier or source cannot serve; otherwise it falls to a lower tier.
pub fn start(wanted: &Wanted) -> Result<Chosen, Error> {
    let forced_source = wanted.source.as_deref();
    if let Some(name) = forced_source.filter(|name| !matches!(*name, "ftrace" | "perf")) {
        return Err(Error::Source(name.to_owned()));
    }
    // A source that was asked for by name is one of the full tier's, unless another tier was asked for too.
    let only = wanted.tier.or(forced_source.map(|_| Tier::Full));
    let refused = |tier: Tier, reason: String, is_denied: bool| Error::Tier { tier: tier.word(), reason, is_denied };
    let mut reason = String::new();
    if only.is_none_or(|tier| tier == Tier::Full) {
        match start_full(wanted) {
            Ok(source) => {
                let reason = match source.left_out() {
                    [] => String::new(),
                    events => {
                        format!("events are missing that {} cannot have here: {}", source.name(), events.join(", "))
                    }
                };
                return Ok(chosen(source, Tier::Full, reason));
            }
            Err((why, is_denied)) if only.is_some() => {
                return Err(refused(Tier::Full, format!("{why}; {GRANT_FULL}"), is_denied));
            }
            Err((why, _)) => reason = format!("full tier refused ({why}); "),
        }
    }
    if only.is_none_or(|tier| tier == Tier::SelfOnly) {
        match own_switches::start(wanted) {
            Ok(source) => {
                let reason = format!("{reason}{SELF_COSTS}; {GRANT_FULL}");
                return Ok(chosen(Box::new(source), Tier::SelfOnly, reason));
            }
            Err(why) if only.is_some() => {
                return Err(refused(Tier::SelfOnly, format!("{why}; {GRANT_SELF}"), is_denied(&why)));
            }
            Err(why) => reason = format!("{reason}self tier refused ({why}); "),
        }
    }
    let tier_reason = format!("{reason}{STAMPS_COST}; {GRANT_SELF}");
    Ok(Chosen { source: None, tier: Tier::Stamps, kernel_source: "none".into(), tier_reason })
}

fn chosen(source: Box<dyn Source>, tier: Tier, tier_reason: String) -> Chosen {
    let kernel_source = source.name().to_owned();
    Chosen { source: Some(source), tier, kernel_source, tier_reason }
}

/// ftrace first: its events cost less time and fewer bytes (bench/record/README.md has the figures).
/// Otherwise why not, and whether for want of a permission.
fn start_full(wanted: &Wanted) -> Result<Box<dyn Source>, (String, bool)> {
    let asked = |name: &str| wanted.source.as_deref().is_none_or(|source| source == name);
    let (mut refusals, mut denied) = (Vec::new(), false);
    if asked("ftrace") {
        match ftrace::Ftrace::start(wanted) {
            Ok(source) => return Ok(Box::new(source)),
            Err(error) => {
                denied |= is_denied(&error);
                refusals.push(format!("ftrace: {error}"));
            }
        }
    }
    if asked("perf") {
        match perf::start(wanted) {
            Ok(source) => return Ok(Box::new(source)),
            Err(error) => {
                denied |= is_denied(&error);
                refusals.push(format!("perf: {error}"));
            }
        }
    }
    Err((refusals.join("; "), denied))
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}
