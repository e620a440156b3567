//! The HTML form: one self-contained page. The front end (`report/web`) is bundled at build time; here
//! it meets the data.

use taut_analysis::{Analysis, Chain, Tracking};
use taut_document::{Document, Front};

use crate::{
    Named,
    escape::{Form, escaped},
    flame, json, words,
};

const SCRIPT: &str = include_str!("../bundle/report.js");
const STYLE: &str = include_str!("../bundle/report.css");

/// Beyond this many points the plot over time is thinned.
const POINTS_MAX: usize = 20_000;
/// Buckets of a thinned plot; each keeps its smallest and largest message.
const BUCKETS: usize = 4_000;
/// The same of a signal's, of which a page has several; each keeps its lowest and highest value.
const SIGNAL_BUCKETS: usize = 1_500;
/// More charts of signals than this nobody looks at; a pair of commanded and actual is one.
const SIGNAL_CHARTS_MAX: usize = 12;

/// Where the report of one recording has the kernel's command line.
const COMMAND_LINE: &str = "/recording/hosts/0/facts/kernel_command_line";

/// The page of a recording.
pub fn html(recording: Named<'_>) -> String {
    page(recording.name, "report", &reports(&[recording]).into())
}

/// A document about recordings, and below it each by itself.
pub(crate) fn page_of(document: &Document, recordings: &[Named<'_>]) -> String {
    let contents: Vec<(String, &str)> =
        recordings.iter().enumerate().map(|(at, named)| (format!("recording-{}", at + 1), named.name)).collect();
    let below = drawn_below(&reports(recordings).into());
    let front = Front { script: SCRIPT, style: STYLE, contents: &contents, below: &below };
    taut_document::html(document, Some(&front))
}

/// A document whose charts one can point at.
pub fn interactive(document: &Document) -> String {
    let front = Front { script: SCRIPT, style: STYLE, ..Front::default() };
    taut_document::html(document, Some(&front))
}

/// What the script draws of each recording.
fn reports(recordings: &[Named<'_>]) -> Vec<serde_json::Value> {
    let report = |named: &Named<'_>| {
        let mut page = json(std::slice::from_ref(named));
        if let Some(serde_json::Value::String(line)) = page.pointer_mut(COMMAND_LINE) {
            *line = timing_words(line);
        }
        for (at, chain) in named.analysis.chains.iter().enumerate() {
            page["chains"][at]["series"] = serde_json::json!(thinned(chain));
            exact_ids(&mut page["chains"][at]["worst"]);
        }
        for at in drawn_signals(named.analysis) {
            page["signals"][at]["series"] = serde_json::json!(thinned_signal(&named.analysis.signals[at].points));
        }
        page["ros_tables"] = serde_json::json!(named.analysis.ros.as_ref().map_or(Vec::new(), crate::ros::tables));
        if let Some(profile) = &named.analysis.profile {
            page["profile"]["svg"] = flame::flame(profile, named.name).into();
            page["profile"]["sentence"] = words::profile(profile).into();
        }
        page
    };
    recordings.iter().map(report).collect()
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

/// A page's script reads numbers as doubles: ids beyond 2^53 become text.
fn exact_ids(worst: &mut serde_json::Value) {
    const EXACT: u64 = 1 << 53;
    let is_long = |id: &serde_json::Value| id.as_u64().is_some_and(|id| id > EXACT);
    for message in worst.as_array_mut().into_iter().flatten() {
        if is_long(&message["id"]) {
            message["id"] = message["id"].to_string().into();
        }
    }
}

/// A page of data that the front end draws; `verb` of the command shows the same without it.
pub(crate) fn page(title: &str, verb: &str, data: &serde_json::Value) -> String {
    let below = drawn_below(data);
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>taut: {title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style>\n</head>\n<body>\n<main>{below}</main>\n\
         <noscript>This page draws itself with JavaScript; `taut {verb}` in a terminal does without.</noscript>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// Where the front end draws these data.
fn drawn_below(data: &serde_json::Value) -> String {
    // "</script>" inside a string must not end the element.
    let data = data.to_string().replace('<', "\\u003c");
    format!("<div id=\"report\"></div>\n<script type=\"application/json\" id=\"data\">{data}</script>\n")
}

pub(crate) fn escape(text: &str) -> String {
    escaped(text, Form::Markup)
}

/// (start in µs, latency in ns) of a chain's messages. A long run keeps each bucket's extremes and all
/// of the slowest hundredth, so that no tail message is missing from the picture.
fn thinned(chain: &Chain) -> Vec<(u64, u64)> {
    let series = &chain.series;
    let micro = |(start_ns, latency_ns): (u64, u64)| (start_ns / 1000, latency_ns);
    if series.len() <= POINTS_MAX {
        return series.iter().copied().map(micro).collect();
    }
    let mut latencies: Vec<u64> = series.iter().map(|p| p.1).collect();
    let rank = latencies.len() - (latencies.len() / 100).min(BUCKETS);
    let tail = *latencies.select_nth_unstable(rank.min(series.len() - 1)).1;
    let mut kept: Vec<(u64, u64)> = series.iter().copied().filter(|p| p.1 > tail).collect();
    for bucket in series.chunks(series.len().div_ceil(BUCKETS)) {
        kept.extend(bucket.iter().min_by_key(|p| p.1));
        kept.extend(bucket.iter().max_by_key(|p| p.1));
    }
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(micro).collect()
}

/// Which signals the page draws: pairs first, then others that are more than a single value.
fn drawn_signals(analysis: &Analysis) -> Vec<usize> {
    let is_pair = |name: &str, of: &Tracking| {
        name.strip_prefix(&of.name).is_some_and(|end| matches!(end, ".commanded" | ".actual"))
    };
    let pairs = &analysis.tracking[..analysis.tracking.len().min(SIGNAL_CHARTS_MAX)];
    let named = |at: &usize| analysis.signals[*at].name.as_str();
    let all = 0..analysis.signals.len();
    let mut drawn: Vec<usize> = all.clone().filter(|at| pairs.iter().any(|of| is_pair(named(at), of))).collect();
    let is_other = |at: &usize| {
        analysis.signals[*at].points.len() > 1 && !analysis.tracking.iter().any(|of| is_pair(named(at), of))
    };
    drawn.extend(all.filter(is_other).take(SIGNAL_CHARTS_MAX - pairs.len()));
    drawn
}

/// (time in µs, value) of a signal; a long one keeps each bucket's lowest and highest.
fn thinned_signal(points: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let micro = |(ns, value): &(u64, f64)| (ns / 1000, *value);
    if points.len() <= 2 * SIGNAL_BUCKETS {
        return points.iter().map(micro).collect();
    }
    let mut kept = Vec::with_capacity(2 * SIGNAL_BUCKETS);
    for bucket in points.chunks(points.len().div_ceil(SIGNAL_BUCKETS)) {
        let by_value = |a: &&(u64, f64), b: &&(u64, f64)| a.1.total_cmp(&b.1);
        let mut ends: Vec<(u64, f64)> =
            [bucket.iter().min_by(by_value), bucket.iter().max_by(by_value)].into_iter().flatten().map(micro).collect();
        ends.sort_by_key(|(us, _)| *us);
        kept.extend(ends);
    }
    kept
}

#[cfg(test)]
mod tests {
    use taut_analysis::Signal;

    use super::*;
    use crate::sample;

    #[test]
    fn a_page_shows_of_the_kernels_command_line_what_bears_on_timing() {
        let line = "root=UUID=1234 console=ttyS0 isolcpus=2,3 nohz_full=2 rcu_nocbs=2 intel_idle.max_cstate=1 secret=hunter2 idle=poll";
        let shown = "isolcpus=2,3 nohz_full=2 rcu_nocbs=2 intel_idle.max_cstate=1 idle=poll and 3 words that do not bear on timing";
        assert_eq!(timing_words(line), shown);
        let mut analysis = sample::teleop();
        analysis.info.facts.retain(|(key, _)| key != "kernel_command_line");
        analysis.info.facts.push(("kernel_command_line".to_owned(), line.to_owned()));
        let recording = Named { name: "a.mcap", analysis: &analysis };
        for page in [html(recording), page_of(&Document::default(), &[recording; 2])] {
            assert!(page.contains(shown) && !page.contains("hunter2"));
        }
        assert!(json(&[recording]).to_string().contains("hunter2"), "JSON has what the recording has");
    }

    #[test]
    fn an_id_beyond_what_a_double_holds_is_exact() {
        let mut analysis = sample::teleop();
        analysis.chains[0].explained.paths[0].time.id = u64::MAX - 1;
        let page = html(Named { name: "run.mcap", analysis: &analysis });
        assert!(page.contains("\"id\":\"18446744073709551614\""));
    }

    #[test]
    fn the_page_is_self_contained_and_its_data_cannot_break_out() {
        let mut analysis = sample::teleop();
        analysis.info.command = vec!["</script><b>".into()];
        let page = html(Named { name: "a<b.mcap", analysis: &analysis });
        assert!(!page.contains("</script><b>") && page.contains("<title>taut: a&lt;b.mcap</title>"));
        for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_sample_pages_for_the_browser_tests_are_written() {
        let page = html(Named { name: "sample.mcap", analysis: &sample::teleop() });
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/sample-report.html");
        std::fs::write(path, page).unwrap();
        let page = html(Named { name: "edges.mcap", analysis: &sample::edges() });
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/edges-report.html");
        std::fs::write(path, page).unwrap();
    }

    #[test]
    fn pairs_are_drawn_first_and_a_dozen_charts_at_most() {
        let mut analysis = sample::teleop();
        let names = |analysis: &Analysis| -> Vec<String> {
            drawn_signals(analysis).into_iter().map(|at| analysis.signals[at].name.clone()).collect()
        };
        assert_eq!(names(&analysis), ["knee.actual", "knee.commanded", "battery_v"]);
        analysis
            .signals
            .extend((0..50).map(|n| Signal { name: format!("signal {n}"), points: vec![(0, 0.0); 1 + n % 2] }));
        let drawn = names(&analysis);
        assert_eq!(drawn.len(), 2 + 11);
        assert!(!drawn.contains(&"signal 0".to_owned()), "told once: {drawn:?}");
    }

    #[test]
    fn a_thinned_signal_keeps_its_extremes_in_order() {
        let mut points: Vec<(u64, f64)> = (0..100_000).map(|i| (i * 1000, (i as f64 / 50.0).sin())).collect();
        points[70_007].1 = 9.0;
        let kept = thinned_signal(&points);
        assert!(kept.len() <= 2 * SIGNAL_BUCKETS && kept.contains(&(70_007, 9.0)));
        assert!(kept.is_sorted_by_key(|(us, _)| *us));
    }

    #[test]
    fn thinning_keeps_the_slowest_and_stays_small() {
        let series: Vec<(u64, u64)> = (0..1_000_000).map(|i| (i * 1000, 1000 + i * 7919 % 997)).collect();
        let mut chain = Chain { series, ..Chain::default() };
        chain.series[500_000].1 = 99_999_999;
        let kept = thinned(&chain);
        assert!(kept.len() <= POINTS_MAX && kept.contains(&(500_000, 99_999_999)));
    }
}
