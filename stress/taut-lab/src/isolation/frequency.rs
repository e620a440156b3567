//! A cap on the CPUs' frequency, where the kernel has cpufreq, and its way back: what was set before is written down
//! first, so that the next lab can restore what a killed one left.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Where the kernel keeps the policies.
const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";
/// The list of what was set before, in the lab's folder.
pub(crate) const BEFORE: &str = "frequency";

/// A cap that is lifted when this is dropped.
pub(crate) struct Cap {
    before: PathBuf,
    policies: Vec<PathBuf>,
}

impl Cap {
    /// # Errors
    /// No cpufreq, or nothing that may be written.
    pub fn set(mhz: u32, folder: &Path) -> io::Result<Cap> {
        Cap::set_in(Path::new(POLICIES), mhz, folder)
    }

    fn set_in(root: &Path, mhz: u32, folder: &Path) -> io::Result<Cap> {
        let policies = policies(root);
        if policies.is_empty() {
            return Err(io::Error::other(none()));
        }
        let mut list = String::new();
        for policy in &policies {
            let file = policy.join("scaling_max_freq");
            list += &format!("{} {}\n", fs::read_to_string(&file)?.trim(), file.display());
        }
        let cap = Cap { before: folder.join(BEFORE), policies };
        fs::write(&cap.before, list)?;
        for policy in &cap.policies {
            fs::write(policy.join("scaling_max_freq"), (u64::from(mhz) * 1000).to_string())?;
        }
        Ok(cap)
    }

    /// The fastest CPU now, MHz.
    pub fn fastest_mhz(&self) -> Option<f64> {
        let one = |policy: &PathBuf| fs::read_to_string(policy.join("scaling_cur_freq")).ok()?.trim().parse().ok();
        self.policies.iter().filter_map(one).map(|khz: f64| khz / 1000.0).max_by(f64::total_cmp)
    }
}

impl Drop for Cap {
    fn drop(&mut self) {
        restore(&self.before);
    }
}

/// Why there can be no cap here, if so.
pub(crate) fn missing() -> Option<String> {
    policies(Path::new(POLICIES)).is_empty().then(none)
}

/// Puts back what the list says; says what.
pub(crate) fn restore(list: &Path) -> Vec<String> {
    let lines = fs::read_to_string(list).unwrap_or_default();
    let one = |line: &str| {
        let (before, file) = line.split_once(' ')?;
        fs::write(file, before).ok()?;
        Some(format!("cap on {file}"))
    };
    let restored = lines.lines().filter_map(one).collect();
    let _ = fs::remove_file(list);
    restored
}

fn policies(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|path| path.join("scaling_max_freq").exists()).collect()
}

fn none() -> String {
    format!("the kernel has no cpufreq here ({POLICIES} is empty): a virtual machine's host decides; leave it out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_set_and_put_back_even_after_a_kill() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("cpufreq/policy0");
        fs::create_dir_all(&policy).unwrap();
        let max = policy.join("scaling_max_freq");
        fs::write(&max, "3600000\n").unwrap();
        fs::write(policy.join("scaling_cur_freq"), "1200000\n").unwrap();
        let set = || Cap::set_in(&folder.path().join("cpufreq"), 1200, folder.path()).unwrap();
        let read = || fs::read_to_string(&max).unwrap();
        let cap = set();
        assert_eq!((read().as_str(), cap.fastest_mhz()), ("1200000", Some(1200.0)));
        drop(cap);
        assert_eq!(read(), "3600000");
        std::mem::forget(set());
        assert_eq!(restore(&folder.path().join(BEFORE)).len(), 1);
        assert_eq!(read(), "3600000");
        assert!(Cap::set_in(&folder.path().join("none"), 1, folder.path()).is_err());
    }
}
