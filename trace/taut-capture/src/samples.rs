//! Figures that the kernel keeps anyway, read once a second: steal, pressure, throttling,
//! frequency, temperature.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
};

use taut_recording::{Record, Sample};

/// What there is to sample on this machine for this process.
pub struct Sampler {
    pid: i32,
    quotas: Quotas,
    /// Of other processes of its tree, by number, that have been in other control groups than its own.
    apart: BTreeMap<i32, Quotas>,
    frequencies: Vec<(String, PathBuf)>,
    temperatures: Vec<(String, PathBuf)>,
    /// Clock ticks a second, the unit of /proc/stat.
    ticks_per_s: f64,
}

impl Sampler {
    /// Looks once for the files there are.
    pub fn new(pid: i32) -> Sampler {
        let numbered = |folder: &str, prefix: &str, file: &str| -> Vec<(String, PathBuf)> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let mut found: Vec<_> = entries
                .filter_map(|e| Some((e.file_name().to_str()?.to_owned(), e.path().join(file))))
                .filter(|(name, path)| name.starts_with(prefix) && path.exists())
                .collect();
            found.sort();
            found
        };
        // SAFETY: sysconf has no preconditions.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
        Sampler {
            pid,
            quotas: Quotas::default(),
            apart: BTreeMap::new(),
            frequencies: numbered("/sys/devices/system/cpu", "cpu", "cpufreq/scaling_cur_freq"),
            temperatures: numbered("/sys/class/thermal", "thermal_zone", "temp"),
            ticks_per_s,
        }
    }

    /// What CPU quotas did, if they did something: to be read more often than the rest, since it says which waits were theirs. `tree`: the
    /// processes that may be in control groups of their own.
    pub fn sample_quotas(&mut self, tree: &[i32], time_ns: u64) -> Vec<Record> {
        let mut records = self.quotas.sample(cgroup_cpu_stat(self.pid), "", time_ns);
        for pid in tree.iter().filter(|pid| **pid != self.pid) {
            let files = cgroup_cpu_stat(*pid);
            if self.apart.contains_key(pid) || !files.is_empty() && files != self.quotas.files {
                let of = self.apart.entry(*pid).or_default();
                records.extend(of.sample(files, &format!("process{pid}."), time_ns));
            }
        }
        self.apart.retain(|pid, _| tree.contains(pid));
        records
    }

    /// All other figures now.
    pub fn sample(&self, time_ns: u64) -> Vec<Record> {
        let mut records = Vec::new();
        let mut push = |name: String, value: f64| records.push(Record::Sample(Sample { time_ns, name, value }));
        for line in crate::proc::line("/proc/stat").lines().filter(|l| l.starts_with("cpu") && !l.starts_with("cpu ")) {
            let mut fields = line.split_whitespace();
            let cpu = fields.next().unwrap_or_default().to_owned();
            // proc(5): user nice system idle iowait irq softirq steal.
            if let Some(steal) = fields.nth(7).and_then(|f| f.parse::<f64>().ok()) {
                push(format!("{cpu}.steal_s"), steal / self.ticks_per_s);
            }
        }
        for resource in ["cpu", "io", "memory"] {
            for line in crate::proc::line(format!("/proc/pressure/{resource}")).lines() {
                let kind = line.split(' ').next().unwrap_or_default();
                if let Some(total) = value_after(line, "total=") {
                    push(format!("psi.{resource}.{kind}_total_us"), total);
                }
            }
        }
        for (cpu, path) in &self.frequencies {
            if let Ok(khz) = crate::proc::line(path).parse() {
                push(format!("{cpu}.frequency_khz"), khz);
            }
        }
        for (zone, path) in &self.temperatures {
            if let Ok(milli) = crate::proc::line(path).parse::<f64>() {
                push(format!("{zone}.temperature_c"), milli / 1000.0);
            }
        }
        records
    }
}

/// What the CPU quotas of a process's control groups did, added up over the groups that it is moved to.
#[derive(Default)]
struct Quotas {
    /// Of its groups, by v1 and v2.
    files: Vec<PathBuf>,
    /// By file and line: as read last.
    last: HashMap<(PathBuf, String), f64>,
    /// By line: as when first read, and what came since.
    sums: BTreeMap<String, f64>,
}

impl Quotas {
    /// Reads the files of the groups that the process is in now. Of what counts nothing there is a first sample only.
    fn sample(&mut self, files: Vec<PathBuf>, whose: &str, time_ns: u64) -> Vec<Record> {
        let is_first = self.sums.is_empty();
        self.read(files);
        if !is_first && self.sums.values().all(|sum| *sum == 0.0) {
            return Vec::new();
        }
        let sample =
            |(key, value): (&String, &f64)| Sample { time_ns, name: format!("{whose}cgroup.{key}"), value: *value };
        self.sums.iter().map(sample).map(Record::Sample).collect()
    }

    fn read(&mut self, files: Vec<PathBuf>) {
        // A process that ended has no group; what it had may have counted on.
        if !files.is_empty() {
            self.files = files;
        }
        for file in self.files.clone() {
            self.take(&file, &crate::proc::text(&file).unwrap_or_default());
        }
    }

    fn take(&mut self, file: &Path, text: &str) {
        for (key, value) in
            text.lines().filter_map(|line| line.split_once(' ')).filter(|(key, _)| key.contains("throttled"))
        {
            let Ok(value) = value.trim().parse::<f64>() else { continue };
            let before = self.last.insert((file.to_owned(), key.to_owned()), value);
            // What a group counted before the process came to it is not the process's.
            let is_first = !self.sums.contains_key(key);
            *self.sums.entry(key.to_owned()).or_default() +=
                if is_first { value } else { value - before.unwrap_or(value) };
        }
    }
}

fn value_after(line: &str, key: &str) -> Option<f64> {
    line.split(' ').find_map(|word| word.strip_prefix(key)?.parse().ok())
}

/// The `cpu.stat` files of a process's groups, cgroup v2 and v1.
fn cgroup_cpu_stat(pid: i32) -> Vec<PathBuf> {
    let text = crate::proc::line(format!("/proc/{pid}/cgroup"));
    let candidates = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (controllers, group) = (parts.nth(1)?, parts.next()?.trim_start_matches('/'));
        if controllers.is_empty() {
            return Some(vec![
                format!("/sys/fs/cgroup/{group}/cpu.stat"),
                format!("/sys/fs/cgroup/unified/{group}/cpu.stat"),
            ]);
        }
        controllers.split(',').any(|c| c == "cpu").then(|| vec![format!("/sys/fs/cgroup/cpu/{group}/cpu.stat")])
    });
    candidates.flatten().map(PathBuf::from).filter(|path| path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_in_another_group_has_samples_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cpu.stat");
        let values = |text: &str, quotas: &mut Quotas| -> Vec<(String, f64)> {
            fs::write(&file, text).unwrap();
            let named = |record| match record {
                Record::Sample(sample) => (sample.name, sample.value),
                other => panic!("{other:?}"),
            };
            quotas.sample(vec![file.clone()], "process7.", 0).into_iter().map(named).collect()
        };
        let is = |value: f64| [("process7.cgroup.nr_throttled".to_owned(), value)];
        let mut quotas = Quotas::default();
        assert_eq!(values("nr_throttled 0\n", &mut quotas), is(0.0));
        assert_eq!(values("nr_throttled 0\n", &mut quotas), []);
        assert_eq!(values("nr_throttled 4\n", &mut quotas), is(4.0));
    }

    #[test]
    fn a_process_that_is_moved_has_what_its_groups_counted_meanwhile() {
        let mut quotas = Quotas::default();
        let (first, second) = (Path::new("first"), Path::new("second"));
        let nr = |quotas: &Quotas| quotas.sums["nr_throttled"];
        quotas.take(first, "nr_periods 9\nnr_throttled 3\nthrottled_usec 70");
        quotas.take(first, "nr_periods 9\nnr_throttled 5\nthrottled_usec 90");
        assert_eq!((nr(&quotas), quotas.sums["throttled_usec"]), (5.0, 90.0));
        quotas.take(second, "nr_throttled 1000");
        quotas.take(second, "nr_throttled 1002");
        assert_eq!(nr(&quotas), 7.0);
    }
}
