//! Flame graphs: sampled stacks as a picture, one recording's or the difference between two.

use std::collections::{BTreeMap, BTreeSet};

use inferno::flamegraph::{self, Options};
use taut_analysis::Profile;

use taut_document::escape::line_of_markup;

use crate::words;

/// Folded stacks as text, one a line: what other flame graph tools read.
pub fn folded(profile: &Profile) -> String {
    profile.folded.iter().map(|(path, count)| format!("{path} {count}\n")).collect()
}

/// One recording's flame graph as SVG.
pub fn flame(profile: &Profile, title: &str) -> String {
    let lines = profile.folded.iter().map(|(path, count)| format!("{} {count}", unbroken(path)));
    draw(lines.collect(), title, &words::profile(profile))
}

/// The flame graph of `after`, red where a function has a larger part of the samples than in `before`, blue where a smaller.
pub fn difference(before: &Profile, after: &Profile, title: &str) -> String {
    // Both are brought to the later one's number of samples: a longer recording is no more of everything.
    let scale = after.samples as f64 / before.samples.max(1) as f64;
    let paths: BTreeSet<&String> = before.folded.keys().chain(after.folded.keys()).collect();
    let count = |of: &BTreeMap<String, u64>, path: &String| of.get(path).copied().unwrap_or(0);
    let line = |path: &String| {
        let scaled = (count(&before.folded, path) as f64 * scale).round() as u64;
        format!("{} {scaled} {}", unbroken(path), count(&after.folded, path))
    };
    let subtitle = format!("{}; before: {}", words::profile(after), words::profile(before));
    draw(paths.into_iter().map(line).collect(), title, &subtitle)
}

/// Stands for a space within a name while the picture is drawn.
const SPACE: char = '\u{a0}';

/// The path with other spaces: at a plain one the counts begin, and a name may end in a number.
fn unbroken(path: &str) -> String {
    path.replace(' ', &SPACE.to_string())
}

fn draw(mut lines: Vec<String>, title: &str, subtitle: &str) -> String {
    if lines.is_empty() {
        lines.push(format!("no{SPACE}samples 1"));
    }
    let mut options = Options::default();
    options.title = line_of_markup(title);
    options.subtitle = Some(line_of_markup(subtitle));
    options.count_name = "samples".to_owned();
    // The same function has the same colour in every picture.
    options.hash = true;
    let lines: Vec<String> = lines.iter().map(|line| line_of_markup(line)).collect();
    let mut svg = Vec::new();
    // It fails only where a line has no count.
    let drawn = flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg);
    debug_assert!(drawn.is_ok(), "{drawn:?}");
    String::from_utf8_lossy(&svg).replace(SPACE, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(of: &[(&str, u64)]) -> Profile {
        let folded: BTreeMap<String, u64> = of.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect();
        Profile { samples: folded.values().sum(), frames: 8, unnamed: 2, folded, ..Profile::default() }
    }

    #[test]
    fn names_are_escaped_and_widths_are_shares() {
        let svg = flame(&profile(&[("robot;vec<T>&", 3), ("robot;main", 1)]), "a <run>");
        assert!(svg.contains("vec&lt;T&gt;&amp; (3 samples, 75.00%)"), "{svg}");
        assert!(svg.contains("a &lt;run&gt;") && !svg.contains("vec<T>"));
        assert!(svg.contains("4 samples, 25.0 % of their frames without a name"), "{svg}");
    }

    #[test]
    fn no_name_breaks_out_or_breaks_the_picture() {
        let hostile = "]]></script><script>alert(1)</script>";
        let svg = flame(&profile(&[(&format!("robot\u{1}\u{ffff};{hostile};\"'onload=x"), 3)]), hostile);
        assert_eq!(svg.matches("<script").count(), 1, "the picture's own: {svg}");
        assert!(!svg.contains("<script>alert") && !svg.contains('\u{1}') && !svg.contains('\u{ffff}'));
    }

    #[test]
    fn a_name_that_ends_in_a_number_is_no_count() {
        let svg = flame(&profile(&[("robot;main;step 7 12", 3), ("robot;main;step 8", 1)]), "");
        assert!(svg.contains("step 7 12 (3 samples, 75.00%)"), "{svg}");
    }

    #[test]
    fn a_function_is_one_box_though_another_s_name_begins_with_its_name() {
        let svg = flame(&profile(&[("robot;size()", 2), ("robot;size() const", 1), ("robot;size();get", 1)]), "");
        assert!(svg.contains("<title>size() (3 samples, 75.00%)"), "{svg}");
    }

    #[test]
    fn a_difference_is_of_shares_and_not_of_lengths() {
        let before = profile(&[("robot;plan", 10), ("robot;wait", 10)]);
        let after = profile(&[("robot;plan", 300), ("robot;wait", 100)]);
        let svg = difference(&before, &after, "");
        assert!(svg.contains("plan (300 samples, 75.00%; +25.00%)"), "{svg}");
        assert!(svg.contains("wait (100 samples, 25.00%; -25.00%)"), "{svg}");
    }

    #[test]
    fn folded_lines_are_path_and_count() {
        assert_eq!(folded(&profile(&[("a;b", 2), ("a", 1)])), "a 1\na;b 2\n");
    }
}
