//! The HTML form of a replay: speed over time with the limit, every estimator's series, trips marked.

use taut_replay::Replay;

use super::{GuardShown, json::guard_json};
use crate::html::page;

/// Beyond this many frames the plot keeps each bucket's largest speed.
const BUCKETS: usize = 3000;

/// A self-contained page.
pub fn guard_html(shown: &GuardShown<'_>) -> String {
    let mut data = guard_json(shown);
    let (times, columns) = series(shown.replay);
    data["times_s"] = serde_json::json!(times);
    for (run, column) in columns.into_iter().enumerate() {
        data["runs"][run]["shares"] = serde_json::json!(column);
    }
    page(&format!("{}: guard replay", shown.run), "guard replay", &serde_json::json!([data]))
}

/// One time axis for all, in seconds, and for each run the largest share in each bucket of frames.
fn series(replay: &Replay) -> (Vec<f64>, Vec<Vec<Option<f64>>>) {
    let mut times: Vec<u64> = replay.runs.iter().flat_map(|run| run.series.iter().map(|point| point.at_ns)).collect();
    times.sort_unstable();
    times.dedup();
    let starts: Vec<u64> = times.chunks(times.len().div_ceil(BUCKETS).max(1)).map(|bucket| bucket[0]).collect();
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    let columns = replay.runs.iter().map(|run| {
        let mut column: Vec<Option<f64>> = vec![None; starts.len()];
        for point in &run.series {
            let bucket = starts.partition_point(|start| *start <= point.at_ns) - 1;
            let largest = column[bucket].map_or(point.share, |largest| largest.max(point.share));
            column[bucket] = Some(rounded(largest));
        }
        column
    });
    let columns = columns.collect();
    (starts.iter().map(|at_ns| rounded((at_ns - replay.start_ns) as f64 * 1e-9)).collect(), columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::sample;

    #[test]
    fn the_page_is_self_contained_and_its_data_cannot_break_out() {
        sample::with(|shown| {
            let page = guard_html(&GuardShown { run: "</script><b>.mcap", ..*shown });
            assert!(!page.contains("</script><b>"));
            for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
                assert!(!page.contains(outside), "{outside}");
            }
        });
    }

    #[test]
    fn the_sample_page_for_the_browser_tests_is_written() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/guard-replay.html");
        sample::with(|shown| std::fs::write(path, guard_html(shown)).unwrap());
    }

    #[test]
    fn a_long_series_keeps_its_largest() {
        sample::with(|shown| {
            let mut replay = shown.replay.clone();
            let of =
                |n: u64| taut_replay::Point { at_ns: replay.start_ns + n * 1_000_000, share: (n % 7) as f64 * 0.1 };
            replay.runs.truncate(1);
            replay.runs[0].series = (0..100_000).map(of).collect();
            replay.runs[0].series[70_001].share = 9.0;
            let (times, columns) = series(&replay);
            assert!(times.len() <= BUCKETS && columns[0].contains(&Some(9.0)));
        });
    }
}
