//! A set of CPUs as people write it: "0-2,5".

use std::{collections::BTreeSet, fmt, str::FromStr};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// Numbers of CPUs, at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cpus(BTreeSet<u32>);

impl Cpus {
    /// Those that are online.
    pub fn online() -> Cpus {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let count = || std::thread::available_parallelism().map_or(1, usize::from) as u32;
        text.trim().parse().unwrap_or_else(|_| Cpus((0..count()).collect()))
    }

    /// Those that this process may give to others: online, and in its cpuset.
    pub fn permitted() -> Cpus {
        let online = Cpus::online();
        // What this process was pinned to is no limit; its cpuset is one, which the kernel cuts every mask to. A thread
        // of its own tries, so that nothing else moves.
        let cut = std::thread::spawn(move || {
            sched_setaffinity(None, &online.mask()).ok()?;
            let set = sched_getaffinity(None).ok()?;
            Some(online.0.into_iter().filter(|cpu| set.is_set(*cpu as usize)).collect::<BTreeSet<_>>())
        });
        cut.join().ok().flatten().filter(|cpus| !cpus.is_empty()).map_or_else(Cpus::online, Cpus)
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether this one is among them.
    pub fn has(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Whether all of the other are among them.
    pub fn contain(&self, other: &Cpus) -> bool {
        other.0.is_subset(&self.0)
    }

    /// Those of the other that are not among them.
    pub fn without(&self, other: &Cpus) -> Option<Cpus> {
        let rest: BTreeSet<u32> = other.0.difference(&self.0).copied().collect();
        (!rest.is_empty()).then_some(Cpus(rest))
    }

    /// Their numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// As the kernel takes them.
    pub fn mask(&self) -> CpuSet {
        let mut set = CpuSet::new();
        self.0.iter().for_each(|cpu| set.set(*cpu as usize));
        set
    }
}

impl From<Vec<u32>> for Cpus {
    fn from(cpus: Vec<u32>) -> Cpus {
        Cpus(cpus.into_iter().collect())
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Cpus, String> {
        let bad = || format!("{text:?} is no set of CPUs; write e.g. \"0-2,5\"");
        let number =
            |word: &str| word.trim().parse().ok().filter(|cpu: &u32| (*cpu as usize) < CpuSet::MAX_CPU).ok_or_else(bad);
        let mut cpus = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(bad());
            }
            cpus.extend(first..=last);
        }
        Ok(Cpus(cpus))
    }
}

impl TryFrom<String> for Cpus {
    type Error = String;

    fn try_from(text: String) -> Result<Cpus, String> {
        text.parse()
    }
}

impl From<Cpus> for String {
    fn from(cpus: Cpus) -> String {
        cpus.to_string()
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for cpu in &self.0 {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
                _ => runs.push((*cpu, *cpu)),
            }
        }
        let word =
            |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
        f.write_str(&runs.iter().map(word).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sets_as_people_write_them() {
        let set: Cpus = "0-2, 5".parse().unwrap();
        assert_eq!((set.count(), set.to_string().as_str()), (4, "0-2,5"));
        for bad in ["", "x", "2-1", "0-", "99999", "0-4294967295"] {
            assert!(bad.parse::<Cpus>().unwrap_err().contains("0-2,5"), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn read_as_written(cpus in prop::collection::btree_set(0u32..1000, 1..20)) {
            let set = Cpus(cpus);
            prop_assert_eq!(set.to_string().parse::<Cpus>().unwrap(), set);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9,\\- x]{0,12}") {
            let _ = text.parse::<Cpus>();
        }
    }
}
