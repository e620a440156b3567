//! The HTML form: one self-contained page. The front end (`report/web`) is bundled at build time; here
//! it meets the data.

use taut_analysis::Chain;

use crate::{Named, flame, json, words};

const SCRIPT: &str = include_str!("../../web/dist/report.js");
pub(crate) const STYLE: &str = include_str!("../../web/dist/report.css");

/// Beyond this many points the plot over time is thinned.
const POINTS_MAX: usize = 20_000;
/// Buckets of a thinned plot; each keeps its smallest and largest message.
const BUCKETS: usize = 4_000;

/// The page of one or several recordings.
pub fn html(recordings: &[Named<'_>]) -> String {
    let reports = recordings.iter().map(|named| {
        let mut page = json(std::slice::from_ref(named));
        for (at, chain) in named.analysis.chains.iter().enumerate() {
            page["chains"][at]["series"] = serde_json::json!(thinned(chain));
        }
        if let Some(profile) = &named.analysis.profile {
            page["profile"]["svg"] = flame::flame(profile, named.name).into();
            page["profile"]["sentence"] = words::profile(profile).into();
        }
        page
    });
    let comparison = (recordings.len() > 1).then(|| {
        let mut page = crate::comparison_json(recordings);
        page["kind"] = "comparison".into();
        page
    });
    let pages: Vec<serde_json::Value> = comparison.into_iter().chain(reports).collect();
    let names = recordings.iter().map(|named| named.name).collect::<Vec<_>>().join(", ");
    page(&names, "report", &pages.into())
}

/// A page of data that the front end draws; `verb` of the command shows the same without it.
pub(crate) fn page(title: &str, verb: &str, data: &serde_json::Value) -> String {
    // "</script>" inside a string must not end the element.
    let data = data.to_string().replace('<', "\\u003c");
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>taut: {title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style>\n</head>\n<body>\n<main id=\"report\"></main>\n\
         <noscript>This page draws itself with JavaScript; `taut {verb}` in a terminal does without.</noscript>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_page_is_self_contained_and_its_data_cannot_break_out() {
        let mut analysis = sample::teleop();
        analysis.info.command = vec!["</script><b>".into()];
        let page = html(&[Named { name: "a<b.mcap", analysis: &analysis }]);
        assert!(!page.contains("</script><b>") && page.contains("<title>taut: a&lt;b.mcap</title>"));
        for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_sample_pages_for_the_browser_tests_are_written() {
        let page = html(&[Named { name: "sample.mcap", analysis: &sample::teleop() }]);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/sample-report.html");
        std::fs::write(path, page).unwrap();
        let (before, after) = (sample::teleop(), sample::teleop_made_right());
        let named = [Named { name: "source.mcap", analysis: &before }, Named { name: "right.mcap", analysis: &after }];
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/comparison-report.html");
        std::fs::write(path, html(&named)).unwrap();
        let page = html(&[Named { name: "edges.mcap", analysis: &sample::edges() }]);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/edges-report.html");
        std::fs::write(path, page).unwrap();
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
