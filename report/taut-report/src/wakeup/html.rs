//! The HTML form of a probe: the same page as every report's, with the JSON form as its data.

use taut_wakeup::Findings;

use super::{headline, json::wakeup_json, sentences, shown_cpus};
use crate::html::page;

/// A self-contained page.
pub fn wakeup_html(findings: &Findings) -> String {
    let mut shown = findings.clone();
    for (variant, all) in shown.variants.iter_mut().zip(&findings.variants) {
        let (cpus, _) = shown_cpus(all, findings.variants.len());
        variant.cpus = cpus.into_iter().cloned().collect();
    }
    let mut data = wakeup_json(&shown);
    // What the page does not show must not change what it says.
    data["headline"] = headline::headline(findings).into();
    data["series"] = sentences::SERIES.into();
    page("wakeup", "wakeup", &serde_json::json!([data]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wakeup::sample;

    #[test]
    fn the_page_is_self_contained_and_its_data_cannot_break_out() {
        let mut findings = sample::two_ways();
        findings.variants[0].label = "</script><b>".into();
        let page = wakeup_html(&findings);
        assert!(!page.contains("</script><b>") && page.contains("<title>taut: wakeup</title>"));
        for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_sample_pages_for_the_browser_tests_are_written() {
        for (name, findings) in [("ways", sample::two_ways()), ("sweep", sample::sweep()), ("edges", sample::edges())] {
            let path = format!("{}/../../target/probe-{name}.html", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, wakeup_html(&findings)).unwrap();
        }
    }

    #[test]
    fn of_many_cpus_the_page_carries_few() {
        let wakes = (0..200).map(|cpu| vec![1_000 * (cpu + 1); 50]).collect();
        let variants = vec![sample::variant("", &[], 1_000_000, wakes)];
        let page = wakeup_html(&Findings { variants, ..Findings::default() });
        assert!(page.contains(r#""cpu":199"#) && !page.contains(r#""cpu":0,"#));
    }
}
