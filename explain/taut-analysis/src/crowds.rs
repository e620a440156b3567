//! Many threads of one name, such as a build's compilers, are one party with a count: none of their numbers says anything.

use foldhash::{HashMap, HashSet};

use crate::{explained::Cause, ledger::Ledger, names::Names, walk::Walker};

/// From so many on they are a crowd.
const CROWD: usize = 5;
/// How the detail of a cause begins that names the thread which ran instead.
const BY: &str = "by ";

/// Who is one of many.
pub(crate) struct Crowds {
    /// The detail of one → that of all.
    details: HashMap<(Cause, u32), u32>,
    /// By kind of party: name without number → how many.
    parties: HashMap<(&'static str, String), usize>,
}

impl Crowds {
    /// Those in the tail of the ledger.
    pub fn of(ledger: &Ledger, walker: &mut Walker<'_>) -> Crowds {
        let mut seen: HashSet<(Cause, u32)> = HashSet::default();
        let mut counts: HashMap<(Cause, String), usize> = HashMap::default();
        let kinds = ledger.amounts_of_tail().map(|(_, kind, _)| kind);
        for kind in kinds.filter(|kind| seen.insert((kind.cause, kind.detail))) {
            if let Some(name) = one(walker.names, kind.detail) {
                *counts.entry((kind.cause, name.to_owned())).or_default() += 1;
            }
        }
        counts.retain(|_, count| *count >= CROWD);
        let mut details = HashMap::default();
        for kind in &ledger.kinds {
            let crowd = one(walker.names, kind.detail).map(|name| (kind.cause, name.to_owned()));
            if let Some((crowd, count)) = crowd.and_then(|crowd| counts.get_key_value(&crowd)) {
                let all = walker.names.of(&format!("{BY}{} ({count} threads)", crowd.1));
                details.insert((kind.cause, kind.detail), all);
            }
        }
        let mut numbers: HashMap<(&'static str, String), HashSet<String>> = HashMap::default();
        for (row, kind, _) in ledger.amounts_of_tail().filter(|(_, kind, _)| kind.other != 0) {
            let thread = walker.objects.name(kind.other, row.start_ns);
            for (what, of) in [("thread", thread.as_ref()), ("process", &walker.objects.process(kind.other))] {
                if let Some((name, number)) = split(of) {
                    numbers.entry((what, name.to_owned())).or_default().insert(number.to_owned());
                }
            }
        }
        let parties = numbers.into_iter().map(|(name, numbers)| (name, numbers.len()));
        Crowds { details, parties: parties.filter(|(_, count)| *count >= CROWD).collect() }
    }

    /// The detail of a cause: of one of many, that of all.
    pub fn detail(&self, cause: Cause, detail: u32) -> u32 {
        self.details.get(&(cause, detail)).copied().unwrap_or(detail)
    }

    /// The name of a thread or process: of one of many, that of all.
    pub fn party(&self, what: &'static str, name: String) -> String {
        let crowd = split(&name).map(|(name, _)| (what, name.to_owned()));
        let words = if what == "process" { "processes" } else { "threads" };
        match crowd.and_then(|crowd| self.parties.get_key_value(&crowd)) {
            Some(((_, name), count)) => format!("{name} ({count} {words})"),
            None => name,
        }
    }
}

/// The name without its number in a detail "by NAME/NUMBER".
fn one(names: &Names, detail: u32) -> Option<&str> {
    split(names.text(detail).strip_prefix(BY)?).map(|(name, _)| name)
}

/// "NAME/NUMBER".
fn split(name: &str) -> Option<(&str, &str)> {
    let is_number = |(_, number): &(&str, &str)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    name.rsplit_once('/').filter(is_number)
}
