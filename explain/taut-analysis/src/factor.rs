//! What a hypothesis is about, and which time belongs to it.

use taut_timelines::Objects;

use crate::{error::Error, explained::Cause, kind::Kind, names::Names, result::Chain, walk::Walker};

/// What a hypothesis names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Factor {
    Cause(Cause),
    Lock(String),
    /// Index of the hop, and its name.
    Hop(u16, String),
    Process(String),
    Thread(String),
}

/// "gil", "lock:a and preempted"; `None` for nothing.
pub(crate) fn word(all: &[Factor]) -> Option<String> {
    let words: Vec<String> = all.iter().map(Factor::word).collect();
    (!words.is_empty()).then(|| words.join(" and "))
}

impl Factor {
    pub fn parse(word: &str, chain: &Chain, walker: &Walker<'_>) -> Result<Factor, Error> {
        let unknown = |hint: String| Error::UnknownFactor { factor: word.to_owned(), hint };
        if let Some(cause) = Cause::from_word(word) {
            return Ok(Factor::Cause(cause));
        }
        let words = || Cause::ALL.map(Cause::word).join(", ");
        match word.split_once(':') {
            Some(("lock", name)) => {
                let locks = walker.objects.lock_names();
                if locks.contains(&name) || walker.names.texts().any(|text| text == name) {
                    return Ok(Factor::Lock(name.to_owned()));
                }
                let known = if locks.is_empty() { "none".to_owned() } else { locks.join(", ") };
                Err(unknown(format!("registered locks: {known}")))
            }
            Some(("hop", name)) => {
                let names: Vec<String> = chain.hops.iter().map(|hop| format!("{} → {}", hop.from, hop.to)).collect();
                let is = |at: &usize| names[*at] == name || chain.hops[*at].to == name || chain.hops[*at].from == name;
                match (0..names.len()).find(is) {
                    Some(at) => Ok(Factor::Hop(at as u16, names[at].clone())),
                    None => Err(unknown(format!("hops: {}", names.join(", ")))),
                }
            }
            Some(("process", name)) if walker.objects.has_thread(name) => Ok(Factor::Process(name.to_owned())),
            Some(("thread", name)) if walker.objects.has_thread(name) => Ok(Factor::Thread(name.to_owned())),
            Some(("process" | "thread", _)) => Err(unknown("no thread of that name or number was seen".into())),
            _ => Err(unknown(format!("say {}, lock:NAME, hop:NAME, process:NAME or thread:NAME", words()))),
        }
    }

    /// Whether this recording would show it.
    pub fn is_seen(&self, walker: &Walker<'_>) -> bool {
        match self {
            Factor::Hop(..) | Factor::Cause(Cause::Unknown) => true,
            Factor::Cause(Cause::Queued) => walker.spans.has_stamps(),
            Factor::Cause(Cause::Executor | Cause::Partner) => !walker.holds.is_empty(),
            Factor::Cause(Cause::Cpu | Cause::Preempted) | Factor::Thread(_) | Factor::Process(_) => {
                !walker.timelines.threads.is_empty()
            }
            Factor::Lock(name) if walker.spans.has_lock(name) => true,
            Factor::Lock(_) | Factor::Cause(_) => walker.timelines.saw_calls,
        }
    }

    pub fn word(&self) -> String {
        match self {
            Factor::Cause(cause) => cause.word().to_owned(),
            Factor::Lock(name) => format!("lock:{name}"),
            Factor::Hop(_, name) => format!("hop:{name}"),
            Factor::Process(name) => format!("process:{name}"),
            Factor::Thread(name) => format!("thread:{name}"),
        }
    }

    /// Whether a piece of this kind is its time.
    pub fn owns(&self, kind: &Kind, objects: &Objects, names: &Names) -> bool {
        let parties = || [kind.tid, kind.other].into_iter().filter(|tid| *tid != 0);
        match self {
            Factor::Cause(cause) => kind.cause == *cause,
            Factor::Lock(name) => kind.cause == Cause::Lock && names.text(kind.detail) == name,
            Factor::Hop(hop, _) => kind.hop == *hop,
            Factor::Process(name) => parties().any(|tid| objects.process_is(tid, name)),
            Factor::Thread(name) => parties().any(|tid| objects.thread_is(tid, name)),
        }
    }

    /// Whether it would go with it though it is not its own: the wait to run after its wait, mostly.
    pub fn draws(&self, kind: &Kind, names: &Names) -> bool {
        // A call that makes a file durable goes as a whole: its time on the CPU is the disk's doing too.
        let syncs = |(cause, detail): (Cause, u32)| cause == Cause::Syscall && is_sync(names.text(detail));
        if *self == Factor::Cause(Cause::Disk) && (syncs((kind.cause, kind.detail)) || kind.after.is_some_and(syncs)) {
            return true;
        }
        match (self, kind.after) {
            (Factor::Cause(cause), Some((after, _))) => after == *cause,
            (Factor::Lock(name), Some((Cause::Lock, detail))) => names.text(detail) == name,
            _ => false,
        }
    }

    /// Time that every message has and that cannot be had away is only brought down to the typical.
    pub fn is_part_of_the_job(&self) -> bool {
        use Cause::*;
        match self {
            Factor::Cause(cause) => {
                matches!(cause, Cpu | Syscall | Io | Network | Sleep | Queued | PageFault | Disk | Unknown)
            }
            Factor::Lock(_) => false,
            Factor::Hop(..) | Factor::Process(_) | Factor::Thread(_) => true,
        }
    }
}

fn is_sync(call: &str) -> bool {
    let name = call.split(' ').next().unwrap_or_default();
    matches!(name, "fsync" | "fdatasync" | "sync" | "syncfs" | "msync" | "sync_file_range")
}
