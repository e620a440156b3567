//! The HTML form of a budget: the same page as every report's, with the JSON form as its data.

use super::{Budgeted, json::budget_json};
use crate::html::page;

/// A self-contained page.
pub fn budget_html(shown: &Budgeted<'_>) -> String {
    page(&format!("budget {}", shown.name), "budget", &serde_json::json!([budget_json(shown)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::sample;

    #[test]
    fn the_page_is_self_contained_and_its_data_cannot_break_out() {
        sample::with("pi3hat", |shown| {
            let page = budget_html(&Budgeted { name: "</script><b>", ..*shown });
            assert!(!page.contains("</script><b>") && page.contains("<title>taut: budget &lt;/script&gt;"));
            for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
                assert!(!page.contains(outside), "{outside}");
            }
        });
    }

    #[test]
    fn the_sample_pages_for_the_browser_tests_are_written() {
        let write = |name: &str, shown: &Budgeted<'_>| {
            let path = format!("{}/../../target/budget-{name}.html", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, budget_html(shown)).unwrap();
        };
        sample::with("pi3hat", |shown| write("parallel", shown));
        sample::with_answers(|shown| write("answers", shown));
    }
}
