//! Progress on stderr while probing: a line for each CPU on a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use taut_report::words;
use taut_wakeup::Event;

/// With more CPUs than this, those that were latest.
const CPUS_MAX: usize = 8;

/// Live figures.
pub struct Live {
    bar: ProgressBar,
}

/// Whether anybody looks.
pub fn is_wanted(quiet: bool) -> bool {
    !quiet && std::io::stderr().is_terminal()
}

impl Live {
    pub fn new(quiet: bool) -> Live {
        let target = if is_wanted(quiet) { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        bar.set_style(ProgressStyle::with_template("{bar:30} {msg}").expect("a fixed template"));
        Live { bar }
    }

    pub fn show(&self, event: &Event<'_>) {
        let Event::Live(live) = event else { return };
        let seconds = |time: std::time::Duration| format!("{:.0}", time.as_secs_f64());
        let mut text = format!("{} of {} s {}", seconds(live.done), seconds(live.all), live.label);
        let mut cpus: Vec<_> = live.cpus.iter().collect();
        if cpus.len() > CPUS_MAX {
            cpus.sort_by_key(|(_, _, d, _)| std::cmp::Reverse(d.max_ns));
            cpus.truncate(CPUS_MAX);
        }
        for (cpu, last_ns, d, missed) in cpus {
            let name = cpu.map_or("not pinned".into(), |cpu| format!("CPU {cpu}"));
            text += &format!(
                "\n{name:>10} µs: now {:>7} p50 {:>7} p99 {:>7} p99.9 {:>7} max {:>7} missed {missed}",
                words::microseconds(Some(*last_ns)),
                words::microseconds(d.p50_ns),
                words::microseconds(d.p99_ns),
                words::microseconds(d.p999_ns),
                words::microseconds(d.max_ns),
            );
        }
        let share = live.done.as_secs_f64() / live.all.as_secs_f64().max(1e-9);
        self.bar.set_position((share * 1000.0) as u64);
        self.bar.set_message(text);
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
