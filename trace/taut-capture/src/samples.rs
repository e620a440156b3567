//! Figures that the kernel keeps anyway, read once a second: steal, pressure, throttling,
//! frequency, temperature.

use std::{fs, path::PathBuf};

use taut_recording::{Record, Sample};

/// What there is to sample on this machine for this process.
pub struct Sampler {
    cpu_stat: Vec<PathBuf>,
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
            cpu_stat: cgroup_cpu_stat(pid),
            frequencies: numbered("/sys/devices/system/cpu", "cpu", "cpufreq/scaling_cur_freq"),
            temperatures: numbered("/sys/class/thermal", "thermal_zone", "temp"),
            ticks_per_s,
        }
    }

    /// All figures now.
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
        for line in self.cpu_stat.iter().flat_map(crate::proc::text).flat_map(|t| lines(&t)) {
            if let Some((key, value)) = line.split_once(' ').filter(|(key, _)| key.contains("throttled")) {
                push(format!("cgroup.{key}"), value.trim().parse().unwrap_or(0.0));
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

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
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
