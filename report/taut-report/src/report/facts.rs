//! How a recording was made: in a line, as a table, and the commands that make it again.

use taut_analysis::Analysis;
use taut_document::{Cell, Table, Text, units};

use crate::{Named, json, words};

const NONE_LOST: &str = "none lost";

/// One line on how it was measured.
pub(crate) fn measured(analysis: &Analysis) -> String {
    let (totals, info) = (&analysis.totals, &analysis.info);
    // Of a program that stamps nothing it is of no use that there are none; that some were lost is.
    let has_others = totals.ros_events + totals.kernel_events > 0;
    let stamps = match (totals.stamps, lost(totals.lost_stamps, totals.lost_stamps_is_estimate)) {
        (0, lost) if has_others && lost == NONE_LOST => String::new(),
        (n, lost) => format!(" · {} stamps, {lost}", words::count(n)),
    };
    let ros = match totals.ros_events {
        0 if totals.lost_ros_events == 0 => String::new(),
        n => {
            let lost = lost(totals.lost_ros_events, totals.lost_ros_events_is_estimate);
            format!(" · {} ROS 2 events, {lost}", words::count(n))
        }
    };
    let kernel = match totals.kernel_events {
        0 if totals.lost_kernel_events == 0 => String::new(),
        n => {
            let of = match totals.lost_kernel_ns {
                0 => String::new(),
                ns => format!(" (in {} at most)", units::duration(ns)),
            };
            let lost = lost(totals.lost_kernel_events, totals.lost_kernel_events_is_estimate);
            format!(" · {} kernel events, {lost}{of}", words::count(n))
        }
    };
    let profile = analysis.profile.as_ref().map_or(String::new(), |of| format!(" · stacks: {}", words::profile(of)));
    let clock = match (words::imported_from(info), totals.clock_error_ns) {
        // Its clock was another's, and how good that was nobody said.
        (Some(kind), _) => format!("imported from {kind}"),
        (None, None) => "clock error unknown".into(),
        (None, Some(error)) => format!("clock\u{a0}±\u{a0}{error:.0}\u{a0}ns"),
    };
    format!("{:.1} s{stamps}{ros}{kernel}{profile} · {} tier · {clock}", totals.duration_s, info.tier.word(),)
}

fn lost(n: u64, is_estimate: bool) -> String {
    match (n, is_estimate) {
        (0, false) => NONE_LOST.to_owned(),
        // A chunk that is damaged, or a file that could not be opened, may have held any number.
        _ => words::lost(n, is_estimate),
    }
}

/// What is known of the recording and its hosts.
pub(super) fn table(analysis: &Analysis) -> Table {
    let (totals, info) = (&analysis.totals, &analysis.info);
    let is_imported = words::imported_from(info).is_some();
    let counted = |n: u64, lost_n: u64, is_estimate: bool| match n {
        0 if lost_n == 0 => String::new(),
        n => format!("{}, {}", words::count(n), lost(lost_n, is_estimate)),
    };
    let clock = match totals.clock_error_ns {
        _ if is_imported => String::new(),
        None => "error unknown".to_owned(),
        Some(error) => format!("stamps to CLOCK_MONOTONIC within {error:.0} ns"),
    };
    let recorder = match &analysis.ending {
        _ if is_imported => String::new(),
        None => "killed before its end, ".to_owned(),
        Some(ending) => {
            let share = ending.recorder_cpu_ns as f64 / 1e9 / totals.duration_s.max(1e-9);
            format!("{} of one core, ", words::percent(share))
        }
    };
    let tier = if info.tier_reason.is_empty() { String::new() } else { format!(": {}", info.tier_reason) };
    let kernel = counted(totals.kernel_events, totals.lost_kernel_events, totals.lost_kernel_events_is_estimate);
    let by = if info.kernel_source.is_empty() { String::new() } else { format!(", by {}", info.kernel_source) };
    let mut facts = vec![
        ("Command".to_owned(), words::shell(&info.command)),
        ("Recorded".to_owned(), recorded_at(info.start_realtime_ns)),
        ("Duration".to_owned(), format!("{:.1} s", totals.duration_s)),
        (
            "Stamps".to_owned(),
            format!("{}, {}", words::count(totals.stamps), lost(totals.lost_stamps, totals.lost_stamps_is_estimate)),
        ),
        (
            "ROS 2 events".to_owned(),
            counted(totals.ros_events, totals.lost_ros_events, totals.lost_ros_events_is_estimate),
        ),
        ("Kernel events".to_owned(), if kernel.is_empty() { "none".to_owned() } else { format!("{kernel}{by}") }),
        ("Tier".to_owned(), format!("{}{tier}", info.tier.word())),
        ("Clock".to_owned(), clock),
        (
            if is_imported { "Recording" } else { "Recorder" }.to_owned(),
            format!("{recorder}{}", units::bytes(totals.file_bytes)),
        ),
    ];
    for (at, host) in json::hosts(info).into_iter().enumerate() {
        let prefix = if at == 0 { String::new() } else { format!("{}: ", host.name) };
        let of_host =
            if host.cpus == 0 { String::new() } else { format!("{}, {} × {}", host.name, host.cpus, host.cpu) };
        facts.extend([(format!("{prefix}Host"), of_host), (format!("{prefix}Kernel"), host.kernel)]);
        facts.extend(host.facts.into_iter().map(|(key, value)| {
            let value = if key == "kernel_command_line" { timing_words(&value) } else { value };
            (format!("{prefix}{}", key.replace('_', " ")), value)
        }));
    }
    facts.extend([
        ("Git revision".to_owned(), info.git_revision.clone()),
        ("taut".to_owned(), info.taut_version.clone()),
    ]);
    let mut table = Table::new(["of the recording", "value"]);
    for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        table.row([Cell::text(name), Cell::text(Text::from(value))]);
    }
    table
}

/// "2026-11-26 21:30:00 UTC"; what was imported may know no time of day.
fn recorded_at(realtime_ns: u64) -> String {
    if realtime_ns == 0 {
        return String::new();
    }
    let seconds = realtime_ns / 1_000_000_000;
    let (day, of_day) = (units::day((seconds / 86_400) as i64), seconds % 86_400);
    format!("{day} {:02}:{:02}:{:02} UTC", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// The commands; of a recording that was imported, its source has another name.
pub(super) fn reproduce(named: Named<'_>) -> Vec<String> {
    let info = &named.analysis.info;
    let file = words::shell(&[named.name.to_owned()]);
    let recorded = words::imported_from(info).is_none().then(|| match info.command.as_slice() {
        [] => format!("taut record -o {file} --pid PID"),
        command => format!("taut record -o {file} -- {}", words::shell(command)),
    });
    recorded.into_iter().chain([format!("taut report {file} --format html -o report.html")]).collect()
}

/// Of the kernel's command line, the words that bear on timing. The others name disks, consoles and networks, and a page is
/// passed on to others.
fn timing_words(line: &str) -> String {
    const TIMING: [&str; 22] = [
        "audit",
        "clocksource",
        "cpufreq.",
        "idle",
        "intel_idle.",
        "intel_pstate",
        "irqaffinity",
        "isolcpus",
        "kthread_cpus",
        "mce",
        "mitigations",
        "nmi_watchdog",
        "nohz",
        "nosmt",
        "nosoftlockup",
        "preempt",
        "processor.max_cstate",
        "rcu",
        "rcutree.",
        "skew_tick",
        "threadirqs",
        "tsc",
    ];
    let bears = |word: &&str| {
        let name = word.split('=').next().unwrap_or(word);
        TIMING.iter().any(|known| {
            name == *known
                || (known.ends_with('.') && name.starts_with(known))
                || (matches!(*known, "nohz" | "rcu") && name.starts_with(&format!("{known}_")))
        })
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut kept: Vec<String> = words.iter().filter(|word| bears(word)).map(|word| (*word).to_owned()).collect();
    let left_out = words.len() - kept.len();
    if left_out > 0 {
        kept.push(format!("and {} that do not bear on timing", crate::words::quantity(left_out as u64, "word")));
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use taut_document::markdown;

    use super::*;
    use crate::{comparison_html, interactive, report_document, sample};

    #[test]
    fn a_page_shows_of_the_kernels_command_line_what_bears_on_timing() {
        let line = "root=UUID=1234 console=ttyS0 isolcpus=2,3 nohz_full=2 rcu_nocbs=2 intel_idle.max_cstate=1 secret=hunter2 idle=poll";
        let shown = "isolcpus=2,3 nohz_full=2 rcu_nocbs=2 intel_idle.max_cstate=1 idle=poll and 3 words that do not bear on timing";
        assert_eq!(timing_words(line), shown);
        let mut analysis = sample::teleop();
        analysis.info.facts.retain(|(key, _)| key != "kernel_command_line");
        analysis.info.facts.push(("kernel_command_line".to_owned(), line.to_owned()));
        let recording = Named { name: "a.mcap", analysis: &analysis };
        let document = report_document(recording);
        for page in [interactive(&document), comparison_html(&[recording; 2]), markdown(&document)] {
            assert!(page.contains("idle=poll and 3 words") && !page.contains("hunter2"), "{page}");
        }
        assert!(crate::json(&[recording]).to_string().contains("hunter2"), "JSON has what the recording has");
    }

    #[test]
    fn the_time_of_day_is_that_of_the_calendar() {
        assert_eq!(recorded_at(1_795_728_601_500_000_000), "2026-11-26 21:30:01 UTC");
    }
}
