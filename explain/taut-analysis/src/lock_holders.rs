//! Locks that the program does not name have an address, or a variable: who holds them says more.

use std::collections::BTreeMap;

use crate::{Cause, Explained, ledger::Ledger, walk::Walker};

/// A thread that holds a lock for less than this part of the time that others wait for it is one of several.
const ALONE: f64 = 0.9;

/// By address or variable of a lock: the thread that held it for most of the time that the tail waited for it.
pub(crate) fn of(ledger: &Ledger, walker: &Walker<'_>) -> BTreeMap<String, String> {
    let mut held: BTreeMap<u32, BTreeMap<String, u64>> = BTreeMap::new();
    let registered = walker.objects.lock_names();
    // Of a lock that is marked it is not known who holds it.
    let is_named = |name: &str| registered.contains(&name) || walker.spans.has_lock(name);
    let is_unnamed = |detail| !is_named(walker.names.text(detail));
    for (row, kind, ns) in ledger.amounts_of_tail() {
        if kind.cause == Cause::Lock && kind.other != 0 && is_unnamed(kind.detail) {
            let holder = walker.objects.name(kind.other, row.start_ns).into_owned();
            *held.entry(kind.detail).or_default().entry(holder).or_default() += ns;
        }
    }
    let most = |(lock, holders): (u32, BTreeMap<String, u64>)| {
        let all: u64 = holders.values().sum();
        let (holder, ns) = holders.into_iter().max_by_key(|(_, ns)| *ns)?;
        let mostly = if ns as f64 >= ALONE * all as f64 { "" } else { "mostly " };
        Some((walker.names.text(lock).to_owned(), format!("{mostly}by {holder}")))
    };
    held.into_iter().filter_map(most).collect()
}

impl Explained {
    /// The name of a cause's detail, a factor or a party; of a lock without a name with its holder:
    /// "lock:0x55c7fe4bd0c0 (held by logger/15384)".
    pub fn named(&self, name: &str) -> String {
        let address = name.strip_prefix("lock:").unwrap_or(name);
        self.lock_holders.get(address).map_or_else(|| name.to_owned(), |by| format!("{name} (held {by})"))
    }

    /// Sentences with the names of their locks.
    pub(crate) fn name_locks(&mut self) {
        let mut hypotheses = std::mem::take(&mut self.hypotheses);
        for of in &mut hypotheses {
            of.sentence = of.sentence.replacen(&of.hypothesis, &self.named(&of.hypothesis), 1);
        }
        let mut recommendations = std::mem::take(&mut self.recommendations);
        for of in &mut recommendations {
            of.evidence = of.evidence.replacen(&of.against, &self.named(&of.against), 1);
        }
        (self.hypotheses, self.recommendations) = (hypotheses, recommendations);
    }
}
