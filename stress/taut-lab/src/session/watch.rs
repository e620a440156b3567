//! Watches threads during a trial: /proc ten times a second, and scheduler events where there are any. Reports threads
//! that ran where they must not, and where every thread ran.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
};

use crate::{
    Cpus,
    isolation::{Stays, Tree},
};

/// A thread that was seen.
struct Who {
    part: String,
    pid: i32,
    name: String,
}

/// What was seen of the threads during a trial.
#[derive(Default)]
pub(super) struct Watch {
    pub looks: u32,
    /// Why the trial is none, if a thread was elsewhere.
    pub elsewhere: Option<String>,
    threads: HashMap<i32, Who>,
}

/// Where every thread ran.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// Seconds by part and CPU.
    pub by_part: BTreeMap<String, BTreeMap<String, f64>>,
    /// A line for each thread.
    pub listing: String,
}

impl Watch {
    /// Remembers whose the threads are.
    pub fn know(&mut self, tree: &Tree) {
        for thread in tree.all() {
            let (part, pid, name) = (thread.part.clone(), thread.pid, thread.name.clone());
            self.threads.insert(thread.tid, Who { part, pid, name });
        }
    }

    /// A look: also whether all are where they belong.
    pub fn see(&mut self, tree: &Tree, wanted: &BTreeMap<String, Cpus>) {
        self.looks += 1;
        self.know(tree);
        if self.elsewhere.is_none() {
            self.elsewhere = tree.elsewhere(wanted);
        }
    }

    /// What the scheduler says of threads of the lab; `roots`: the pids that the lab started, by part. How long one was
    /// elsewhere is a better reason than that it was seen there.
    pub fn hear(&mut self, stays: &Stays, roots: &HashMap<u32, String>, wanted: &BTreeMap<String, Cpus>) -> Ran {
        let mut threads: BTreeMap<(&str, i32), BTreeMap<u32, u64>> = BTreeMap::new();
        for stay in &stays.all {
            if let Some(part) = self.part(stay.tid, stays, roots) {
                *threads.entry((part, stay.tid)).or_default().entry(stay.cpu).or_default() += stay.ran_ns;
            }
        }
        let mut ran = Ran::default();
        let mut elsewhere = None;
        for ((part, tid), on) in &threads {
            let who = self.threads.get(tid);
            let (pid, name) = who.map_or((*tid, "gone before it was seen"), |who| (who.pid, who.name.as_str()));
            let of_part = ran.by_part.entry((*part).to_owned()).or_default();
            let mut line = format!("{part:<16} {pid:>8} {tid:>8} {name:<16}");
            for (cpu, ran_ns) in on {
                *of_part.entry(cpu.to_string()).or_default() += *ran_ns as f64 / 1e9;
                let _ = write!(line, " CPU {cpu}: {} ms", ms(*ran_ns));
                if let Some(cpus) = wanted.get(*part).filter(|cpus| !cpus.has(*cpu)) {
                    elsewhere.get_or_insert_with(|| {
                        format!(
                            "thread {tid} ({name}) of {part} ran on CPU {cpu} for {} ms, not only on {cpus}",
                            ms(*ran_ns)
                        )
                    });
                }
            }
            ran.listing += &line;
            ran.listing.push('\n');
        }
        self.elsewhere = elsewhere.or(self.elsewhere.take());
        ran
    }

    /// Of a thread that was seen, else of the one it descends from; `None` of one that is nothing to the lab.
    fn part<'a>(&'a self, tid: i32, stays: &Stays, roots: &'a HashMap<u32, String>) -> Option<&'a str> {
        let line = std::iter::successors(Some(tid), |tid| stays.born.get(tid).copied()).take(1000);
        let known = |tid: i32| {
            let seen = self.threads.get(&tid).map(|who| who.part.as_str());
            seen.or_else(|| roots.get(&(tid as u32)).map(String::as_str))
        };
        line.into_iter().find_map(known)
    }
}

fn ms(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    if ms < 1.0 { format!("{ms:.3}") } else { format!("{ms:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::Stay;

    #[test]
    fn a_thread_that_nobody_saw_is_told_by_whom_it_descends_from() {
        let roots = HashMap::from([(10, "server".to_owned())]);
        let wanted = BTreeMap::from([("server".to_owned(), Cpus::from(vec![1]))]);
        let stays = Stays {
            all: [(10, 1, 5_000_000), (12, 1, 1_000), (12, 0, 250_000), (99, 0, 7_000_000)]
                .map(|(tid, cpu, ran_ns)| Stay { tid, cpu, ran_ns })
                .into(),
            born: HashMap::from([(11, 10), (12, 11), (99, 98)]),
            lost: 0,
        };
        let mut watch = Watch::default();
        let ran = watch.hear(&stays, &roots, &wanted);
        assert_eq!(
            watch.elsewhere.unwrap(),
            "thread 12 (gone before it was seen) of server ran on CPU 0 for 0.250 ms, not only on 1"
        );
        let server = &ran.by_part["server"];
        assert_eq!(ran.by_part.len(), 1, "99 is a stranger");
        assert!((server["1"] - 0.005001).abs() < 1e-9 && (server["0"] - 0.00025).abs() < 1e-9, "{server:?}");
        assert_eq!(ran.listing.lines().count(), 2);
        assert!(ran.listing.contains("CPU 0: 0.250 ms CPU 1: 0.001 ms"), "{}", ran.listing);
    }

    #[test]
    fn who_stays_at_home_is_no_reason() {
        let wanted = BTreeMap::from([("server".to_owned(), Cpus::from(vec![1]))]);
        let stays = Stays { all: vec![Stay { tid: 10, cpu: 1, ran_ns: 9 }], ..Stays::default() };
        let mut watch = Watch::default();
        watch.hear(&stays, &HashMap::from([(10, "server".to_owned())]), &wanted);
        assert_eq!(watch.elsewhere, None);
    }
}
