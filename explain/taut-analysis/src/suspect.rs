//! What a hypothesis accuses, and which time is its.

use taut_timelines::Objects;

use crate::{error::Error, explained::Cause, kind::Kind, names::Names, result::Chain, walk::Walker};

/// Somebody accused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Suspect {
    Cause(Cause),
    Lock(String),
    /// Index of the hop, and its name.
    Hop(u16, String),
    Process(String),
    Thread(String),
}

/// "gil", "lock:a and preempted"; `None` for nothing.
pub(crate) fn word(all: &[Suspect]) -> Option<String> {
    let words: Vec<String> = all.iter().map(Suspect::word).collect();
    (!words.is_empty()).then(|| words.join(" and "))
}

impl Suspect {
    pub fn parse(word: &str, chain: &Chain, walker: &Walker<'_>) -> Result<Suspect, Error> {
        let unknown = |hint: String| Error::UnknownSuspect { suspect: word.to_owned(), hint };
        if let Some(cause) = Cause::from_word(word) {
            return Ok(Suspect::Cause(cause));
        }
        let words = || Cause::ALL.map(Cause::word).join(", ");
        match word.split_once(':') {
            Some(("lock", name)) => {
                let locks = walker.objects.lock_names();
                if locks.contains(&name) || walker.names.texts().any(|text| text == name) {
                    return Ok(Suspect::Lock(name.to_owned()));
                }
                let known = if locks.is_empty() { "none".to_owned() } else { locks.join(", ") };
                Err(unknown(format!("registered locks: {known}")))
            }
            Some(("hop", name)) => {
                let names: Vec<String> = chain.hops.iter().map(|hop| format!("{} → {}", hop.from, hop.to)).collect();
                let is = |at: &usize| names[*at] == name || chain.hops[*at].to == name || chain.hops[*at].from == name;
                match (0..names.len()).find(is) {
                    Some(at) => Ok(Suspect::Hop(at as u16, names[at].clone())),
                    None => Err(unknown(format!("hops: {}", names.join(", ")))),
                }
            }
            Some(("process", name)) if walker.objects.has_thread(name) => Ok(Suspect::Process(name.to_owned())),
            Some(("thread", name)) if walker.objects.has_thread(name) => Ok(Suspect::Thread(name.to_owned())),
            Some(("process" | "thread", _)) => Err(unknown("no thread of that name or number was seen".into())),
            _ => Err(unknown(format!("say {}, lock:NAME, hop:NAME, process:NAME or thread:NAME", words()))),
        }
    }

    /// Whether this recording would show the suspect at work.
    pub fn is_seen(&self, walker: &Walker<'_>) -> bool {
        match self {
            Suspect::Hop(..) | Suspect::Cause(Cause::Unknown) => true,
            Suspect::Cause(Cause::Queued) => walker.spans.has_stamps(),
            Suspect::Cause(Cause::Work | Cause::Preempted) | Suspect::Thread(_) | Suspect::Process(_) => {
                !walker.timelines.threads.is_empty()
            }
            Suspect::Lock(name) if walker.spans.has_lock(name) => true,
            Suspect::Lock(_) | Suspect::Cause(_) => walker.timelines.saw_calls,
        }
    }

    pub fn word(&self) -> String {
        match self {
            Suspect::Cause(cause) => cause.word().to_owned(),
            Suspect::Lock(name) => format!("lock:{name}"),
            Suspect::Hop(_, name) => format!("hop:{name}"),
            Suspect::Process(name) => format!("process:{name}"),
            Suspect::Thread(name) => format!("thread:{name}"),
        }
    }

    /// Whether a piece of this kind is the suspect's time.
    pub fn owns(&self, kind: &Kind, objects: &Objects, names: &Names) -> bool {
        let parties = || [kind.tid, kind.other].into_iter().filter(|tid| *tid != 0);
        match self {
            Suspect::Cause(cause) => kind.cause == *cause,
            Suspect::Lock(name) => kind.cause == Cause::Lock && names.text(kind.detail) == name,
            Suspect::Hop(hop, _) => kind.hop == *hop,
            Suspect::Process(name) => parties().any(|tid| objects.process_is(tid, name)),
            Suspect::Thread(name) => parties().any(|tid| objects.thread_is(tid, name)),
        }
    }

    /// Whether it would go with the suspect though it is not its own: the wait to run after its wait, mostly.
    pub fn draws(&self, kind: &Kind, names: &Names) -> bool {
        // A call that makes a file durable goes as a whole: its time on the CPU is the disk's doing too.
        let syncs = |(cause, detail): (Cause, u32)| cause == Cause::Syscall && is_sync(names.text(detail));
        if *self == Suspect::Cause(Cause::Disk) && (syncs((kind.cause, kind.detail)) || kind.after.is_some_and(syncs)) {
            return true;
        }
        match (self, kind.after) {
            (Suspect::Cause(cause), Some((after, _))) => after == *cause,
            (Suspect::Lock(name), Some((Cause::Lock, detail))) => names.text(detail) == name,
            _ => false,
        }
    }

    /// Time that every message has and that cannot be had away is only brought down to the usual.
    pub fn is_part_of_the_job(&self) -> bool {
        use Cause::*;
        match self {
            Suspect::Cause(cause) => matches!(cause, Work | Syscall | Io | Sleep | Queued | PageFault | Disk | Unknown),
            Suspect::Lock(_) => false,
            Suspect::Hop(..) | Suspect::Process(_) | Suspect::Thread(_) => true,
        }
    }
}

fn is_sync(call: &str) -> bool {
    let name = call.split(' ').next().unwrap_or_default();
    matches!(name, "fsync" | "fdatasync" | "sync" | "syncfs" | "msync" | "sync_file_range")
}
