//! Samples of the machine once a second: stolen time, pressure, quotas, frequency, temperature. Evidence for causes
//! that no event shows, and sentences on what changed when.

use std::collections::BTreeMap;

use taut_recording::{
    Sample,
    host_numbers::{host_and_cpu, host_of, own_number},
};
use taut_stats::rank;

/// Below this share of all time stolen time and pressure are not reported.
const SAID_SHARE: f64 = 0.01;
/// From this share of the time on in which some thread waited for a CPU the machine is busy.
const PRESSED: f64 = 0.5;
/// A CPU below this share of its median frequency is slowed down.
const SLOW_SHARE: f64 = 0.8;
/// Fewer messages have no p99 to compare.
const MESSAGES_LEAST: usize = 100;

/// What each host said.
#[derive(Default)]
pub(crate) struct Environment {
    hosts: Vec<Host>,
}

/// Samples of one host by name, in order of time.
#[derive(Default)]
struct Host {
    samples: BTreeMap<String, Vec<(u64, f64)>>,
}

impl Environment {
    pub fn take(&mut self, sample: &Sample) {
        self.host(0).add(sample.name.clone(), sample.time_ns, sample.value);
    }

    /// A CPU's new frequency.
    pub fn frequency(&mut self, cpu: i64, time_ns: u64, khz: i64) {
        let (host, cpu) = host_and_cpu(u16::try_from(cpu).unwrap_or(0));
        self.host(host).add(format!("cpu{cpu}.frequency_khz"), time_ns, khz as f64);
    }

    /// All are taken: events and samples come one after the other. `hosts`: names of the hosts of a joined recording, with which the
    /// names of the samples of all but the first begin.
    pub fn settle(&mut self, hosts: &[&str]) {
        for (number, name) in (0..).zip(hosts).skip(1) {
            let all = std::mem::take(&mut self.host(0).samples);
            for (sample, values) in all {
                match sample.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')) {
                    Some(own) => self.host(number).samples.entry(own.to_owned()).or_default().extend(values),
                    None => drop(self.host(0).samples.insert(sample, values)),
                }
            }
        }
        let all = self.hosts.iter_mut().flat_map(|host| host.samples.values_mut());
        all.for_each(|all| all.sort_by_key(|(time, _)| *time));
    }

    /// Seconds that the hypervisor took from the CPU between the samples around that stretch.
    pub fn stolen_s(&self, cpu: u16, from_ns: u64, to_ns: u64) -> f64 {
        let (host, cpu) = host_and_cpu(cpu);
        let host = self.hosts.get(usize::from(host));
        let all = host.and_then(|host| host.samples.get(&format!("cpu{cpu}.steal_s")));
        all.map_or(0.0, |all| grown_around(all, from_ns, to_ns))
    }

    /// For how long the control group of the process was out of its CPU quota between the samples around that stretch; of several CPUs
    /// the sum. Who has no samples of its own is in the group of the program.
    pub fn throttled_ns(&self, pid: i32, from_ns: u64, to_ns: u64) -> f64 {
        let Some(host) = self.hosts.get(usize::from(host_of(pid))) else { return 0.0 };
        let own = format!("process{}.", own_number(pid));
        // cgroup v2 counts µs, v1 ns.
        let scales = [("cgroup.throttled_usec", 1e3), ("cgroup.throttled_time", 1.0)];
        let grown = |(name, scale): (&str, f64)| {
            let all = host.samples.get(&format!("{own}{name}")).or_else(|| host.samples.get(name));
            scale * all.map_or(0.0, |all| grown_around(all, from_ns, to_ns))
        };
        scales.into_iter().map(grown).sum()
    }

    /// Share of the time in which some thread of the machine waited for a CPU, if it is half of the time or more; of several hosts
    /// each has a note.
    pub fn cpu_pressure(&self) -> Option<f64> {
        let [host] = &self.hosts[..] else { return None };
        host.pressed("cpu").filter(|share| *share >= PRESSED)
    }

    /// What a reader must know of the machines, a sentence each. `start_ns` is the recording's start; `ways` are (start
    /// since then, latency) of the messages of its largest chain; `hosts` as in [`Environment::settle`].
    pub fn notes(&self, start_ns: u64, ways: &[(u64, u64)], hosts: &[&str]) -> Vec<String> {
        let pressures: &[&str] =
            if self.cpu_pressure().is_some() { &["io", "memory"] } else { &["cpu", "io", "memory"] };
        let of_host = |(number, host): (usize, &Host)| {
            let name = hosts.get(number).map_or(String::new(), |name| format!("{name}: "));
            let notes = host.notes(start_ns, ways, pressures).into_iter();
            notes.map(|note| format!("{name}{note}")).collect::<Vec<String>>()
        };
        self.hosts.iter().enumerate().flat_map(of_host).collect()
    }

    fn host(&mut self, number: u16) -> &mut Host {
        let number = usize::from(number);
        if self.hosts.len() <= number {
            self.hosts.resize_with(number + 1, Host::default);
        }
        &mut self.hosts[number]
    }
}

impl Host {
    fn add(&mut self, name: String, time_ns: u64, value: f64) {
        if value.is_finite() {
            self.samples.entry(name).or_default().push((time_ns, value));
        }
    }

    fn notes(&self, start_ns: u64, ways: &[(u64, u64)], pressures: &[&str]) -> Vec<String> {
        let since = |ns: u64| ns.saturating_sub(start_ns) as f64 / 1e9;
        let mut notes = Vec::new();
        notes.extend(self.stolen(&since));
        notes.extend(pressures.iter().filter_map(|what| self.pressure(what, &since)));
        notes.extend(self.throttled());
        notes.extend(self.slowed(start_ns, ways));
        notes
    }

    fn stolen(&self, since: &dyn Fn(u64) -> f64) -> Option<String> {
        let by_cpu: Vec<_> = self.samples.iter().filter(|(name, _)| name.ends_with(".steal_s")).collect();
        let spans: f64 = by_cpu.iter().map(|(_, all)| span_s(all)).sum();
        let share = by_cpu.iter().map(|(_, all)| grown(all)).sum::<f64>() / spans.max(1e-9);
        let (name, (at_ns, most)) =
            by_cpu.iter().map(|(name, all)| (name, steepest(all))).max_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
        (share >= SAID_SHARE).then(|| {
            format!(
                "the hypervisor took {:.1} % of the CPUs' time (steal), most from {} around {:.0} s: {:.0} %",
                100.0 * share,
                name.trim_end_matches(".steal_s"),
                since(at_ns),
                100.0 * most
            )
        })
    }

    /// Share of the time in which some thread waited for it.
    fn pressed(&self, what: &str) -> Option<f64> {
        let all = self.samples.get(&format!("psi.{what}.some_total_us"))?;
        Some(grown(all) / 1e6 / span_s(all).max(1e-9))
    }

    fn pressure(&self, what: &str, since: &dyn Fn(u64) -> f64) -> Option<String> {
        let share = self.pressed(what)?;
        let (at_ns, most) = steepest(&self.samples[&format!("psi.{what}.some_total_us")]);
        let waited_for = if what == "cpu" { "a CPU" } else { what };
        (share >= 10.0 * SAID_SHARE).then(|| {
            let all = format!(
                "for {:.0} % of the time some thread of this machine waited for {waited_for} (pressure)",
                100.0 * share
            );
            // Of a load that stays the same there is no worst moment.
            if most / 1e6 < 1.2 * share {
                return all;
            }
            format!("{all}, most around {:.0} s: {:.0} %", since(at_ns), most / 1e4)
        })
    }

    /// Of the program, and of processes that were in groups of their own.
    fn throttled(&self) -> impl Iterator<Item = String> {
        let counts = self.samples.keys().filter_map(|name| name.strip_suffix("cgroup.nr_throttled"));
        counts.filter_map(|whose| {
            let grown = |name: &str| self.samples.get(&format!("{whose}cgroup.{name}")).map_or(0.0, |all| grown(all));
            let times = grown("nr_throttled");
            // cgroup v2 counts µs, v1 ns.
            let ms = grown("throttled_usec") / 1e3 + grown("throttled_time") / 1e6;
            let of = whose.strip_prefix("process").map(|pid| format!("process {}", pid.trim_end_matches('.')));
            let of = of.unwrap_or_else(|| "the program".into());
            (times > 0.0)
                .then(|| format!("the CPU quota of its cgroup held {of} back {times:.0} times, {ms:.0} ms in all"))
        })
    }

    /// Seconds in which a CPU was slowed down, with the latency then and else.
    fn slowed(&self, start_ns: u64, ways: &[(u64, u64)]) -> Option<String> {
        let slow = |(name, all): (&String, &Vec<(u64, f64)>)| {
            let typical = median(all)?;
            let (at, (time_ns, khz)) =
                all.iter().enumerate().find(|(_, (_, khz))| *khz < SLOW_SHARE * typical && typical > 0.0)?;
            let until_ns =
                all[at..].iter().find(|(_, khz)| *khz >= SLOW_SHARE * typical).map_or(u64::MAX, |(time, _)| *time);
            Some((*time_ns, until_ns, name.trim_end_matches(".frequency_khz").to_owned(), *khz, typical))
        };
        let of_cpus = self.samples.iter().filter(|(name, _)| name.ends_with(".frequency_khz"));
        let (from_ns, until_ns, cpu, khz, typical) = of_cpus.filter_map(slow).min_by_key(|(from, ..)| *from)?;
        let hottest = self.samples.iter().filter(|(name, _)| name.ends_with(".temperature_c"));
        let hottest = hottest.flat_map(|(_, all)| all).filter(|(time, _)| (from_ns..until_ns).contains(time));
        let hottest = hottest.map(|(_, celsius)| *celsius).max_by(f64::total_cmp);
        let at = hottest.map_or(String::new(), |celsius| format!(" at {celsius:.0} °C"));
        let mut sentence = format!(
            "{cpu} ran at {:.2} instead of {:.2} GHz from {:.0} s on{at}",
            khz / 1e6,
            typical / 1e6,
            from_ns.saturating_sub(start_ns) as f64 / 1e9
        );
        let is_then = |(start, _): &&(u64, u64)| (from_ns..until_ns).contains(&(start + start_ns));
        let (then, else_): (Vec<&(u64, u64)>, Vec<_>) = ways.iter().partition(|way| is_then(way));
        if then.len() >= MESSAGES_LEAST && else_.len() >= MESSAGES_LEAST {
            let p99 = |ways: Vec<&(u64, u64)>| {
                let mut all: Vec<u64> = ways.iter().map(|(_, ns)| *ns).collect();
                all.sort_unstable();
                rank(&all, 0.99).unwrap_or(0) as f64 / 1e6
            };
            sentence += &format!(": p99 then is {:.3} ms, and {:.3} ms else", p99(then), p99(else_));
        }
        Some(sentence)
    }
}

/// By how much it grew between the samples around that stretch.
fn grown_around(all: &[(u64, f64)], from_ns: u64, to_ns: u64) -> f64 {
    let before = all.partition_point(|(time, _)| *time <= from_ns).saturating_sub(1);
    let after = all.partition_point(|(time, _)| *time < to_ns).min(all.len() - 1);
    all[after].1 - all[before].1
}

fn grown(all: &[(u64, f64)]) -> f64 {
    all.first().zip(all.last()).map_or(0.0, |(first, last)| last.1 - first.1)
}

fn span_s(all: &[(u64, f64)]) -> f64 {
    all.first().zip(all.last()).map_or(0.0, |(first, last)| (last.0 - first.0) as f64 / 1e9)
}

/// When a counter grew fastest, and by how much a second.
fn steepest(all: &[(u64, f64)]) -> (u64, f64) {
    let rates =
        all.windows(2).map(|pair| (pair[0].0, (pair[1].1 - pair[0].1) * 1e9 / (pair[1].0 - pair[0].0).max(1) as f64));
    rates.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default()
}

fn median(all: &[(u64, f64)]) -> Option<f64> {
    let mut values: Vec<f64> = all.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn environment(name: &str, values: &[f64]) -> Environment {
        let mut environment = Environment::default();
        for (second, value) in (0..).zip(values) {
            environment.take(&Sample { time_ns: second * S, name: name.into(), value: *value });
        }
        environment
    }

    #[test]
    fn stolen_time_is_that_of_the_samples_around() {
        let environment = environment("cpu1.steal_s", &[5.0, 5.0, 5.3, 5.3]);
        let stolen = |from, to| (environment.stolen_s(1, from, to) * 10.0).round();
        assert_eq!([stolen(S / 2, S / 2 + 9), stolen(S + S / 2, S + S / 2 + 9), stolen(3 * S, 4 * S)], [0.0, 3.0, 0.0]);
        assert_eq!(environment.stolen_s(0, 0, S), 0.0);
        let notes = environment.notes(0, &[], &[]);
        assert_eq!(notes, ["the hypervisor took 10.0 % of the CPUs' time (steal), most from cpu1 around 1 s: 30 %"]);
    }

    #[test]
    fn a_slow_cpu_is_said_with_what_it_did_to_the_messages() {
        let mut environment = environment("cpu0.frequency_khz", &[3.4e6, 3.4e6, 3.4e6, 1.2e6, 1.2e6]);
        environment.take(&Sample { time_ns: 3 * S, name: "thermal_zone0.temperature_c".into(), value: 97.0 });
        environment.settle(&[]);
        let ways: Vec<(u64, u64)> =
            (0..500).map(|n| (n * S / 100, if n < 300 { 1_000_000 } else { 3_000_000 })).collect();
        let expected =
            "cpu0 ran at 1.20 instead of 3.40 GHz from 3 s on at 97 °C: p99 then is 3.000 ms, and 1.000 ms else";
        assert_eq!(environment.notes(0, &ways, &[]), [expected]);
    }

    #[test]
    fn pressure_and_quotas_are_said_and_a_quiet_machine_is_not() {
        let pressure = environment("psi.cpu.some_total_us", &[0.0, 100_000.0, 900_000.0]);
        let expected =
            "for 45 % of the time some thread of this machine waited for a CPU (pressure), most around 1 s: 80 %";
        assert_eq!(pressure.notes(0, &[], &[]), [expected]);
        let steady = environment("psi.cpu.some_total_us", &[0.0, 400_000.0, 800_000.0]);
        assert_eq!(
            steady.notes(0, &[], &[]),
            ["for 40 % of the time some thread of this machine waited for a CPU (pressure)"]
        );
        let busy = environment("psi.cpu.some_total_us", &[0.0, 600_000.0, 1_000_000.0]);
        assert_eq!((busy.cpu_pressure(), steady.cpu_pressure()), (Some(0.5), None));
        assert_eq!(busy.notes(0, &[], &[]), [""; 0], "it is in the headline");
        let mut quota = environment("cgroup.nr_throttled", &[3.0, 10.0]);
        quota.take(&Sample { time_ns: 0, name: "cgroup.throttled_usec".into(), value: 1e6 });
        quota.take(&Sample { time_ns: S, name: "cgroup.throttled_usec".into(), value: 1.25e6 });
        assert_eq!(
            quota.notes(0, &[], &[]),
            ["the CPU quota of its cgroup held the program back 7 times, 250 ms in all"]
        );
        for (name, values) in [("nr_throttled", [0.0, 3.0]), ("throttled_time", [0.0, 5e6])] {
            for (second, value) in (0..).zip(values) {
                let name = format!("process12.cgroup.{name}");
                quota.take(&Sample { time_ns: second * S, name, value });
            }
        }
        assert_eq!(
            quota.notes(0, &[], &[])[1..],
            ["the CPU quota of its cgroup held process 12 back 3 times, 5 ms in all"]
        );
        let quiet = environment("psi.cpu.some_total_us", &[0.0, 1_000.0, 2_000.0]);
        assert_eq!(quiet.notes(0, &[], &[]), [""; 0]);
    }

    #[test]
    fn the_samples_of_another_host_are_its_own() {
        let mut environment = environment("cpu1.steal_s", &[5.0, 5.0]);
        for (second, value) in [(0, 1.0), (1, 1.5)] {
            environment.take(&Sample { time_ns: second * S, name: "robot:cpu1.steal_s".into(), value });
        }
        let hosts = ["desk", "robot"];
        environment.settle(&hosts);
        assert_eq!((environment.stolen_s(1, 0, S), environment.stolen_s(513, 0, S)), (0.0, 0.5));
        let expected = "robot: the hypervisor took 50.0 % of the CPUs' time (steal), most from cpu1 around 0 s: 50 %";
        assert_eq!(environment.notes(0, &[], &hosts), [expected]);
    }
}
