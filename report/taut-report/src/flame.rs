//! Flame graphs: sampled stacks as a picture, one recording's or the difference between two.

use std::collections::{BTreeMap, BTreeSet};

use inferno::flamegraph::{self, Options};

/// Samples by path, as `taut_analysis::Stacks` folds them.
pub type Folded = BTreeMap<String, u64>;

/// Folded stacks as text, one a line: what other flame graph tools read.
pub fn folded(stacks: &Folded) -> String {
    stacks.iter().map(|(path, count)| format!("{path} {count}\n")).collect()
}

/// One recording's flame graph as SVG.
pub fn flame(stacks: &Folded, title: &str, subtitle: &str) -> String {
    let lines: Vec<String> = stacks.iter().map(|(path, count)| format!("{path} {count}")).collect();
    draw(&lines, title, subtitle)
}

/// The flame graph of `after`, red where a function has a larger part of the samples than in `before`, blue where a smaller.
pub fn difference(before: &Folded, after: &Folded, title: &str, subtitle: &str) -> String {
    let total = |of: &Folded| of.values().sum::<u64>().max(1) as f64;
    // Both are brought to the later one's number of samples: a longer recording is no more of everything.
    let scale = total(after) / total(before);
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let count = |of: &Folded, path: &String| of.get(path).copied().unwrap_or(0);
    let line = |path: &&String| {
        let scaled = (count(before, path) as f64 * scale).round() as u64;
        format!("{path} {scaled} {}", count(after, path))
    };
    draw(&paths.iter().map(line).collect::<Vec<_>>(), title, subtitle)
}

fn draw(lines: &[String], title: &str, subtitle: &str) -> String {
    let mut options = Options::default();
    title.clone_into(&mut options.title);
    options.subtitle = Some(subtitle.to_owned());
    "samples".clone_into(&mut options.count_name);
    let mut svg = Vec::new();
    // It fails only where a line has no count.
    let drawn = flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg);
    debug_assert!(drawn.is_ok(), "{drawn:?}");
    String::from_utf8_lossy(&svg).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(of: &[(&str, u64)]) -> Folded {
        of.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect()
    }

    #[test]
    fn names_are_escaped_and_widths_are_shares() {
        let svg = flame(&stacks(&[("robot;vec<T>&", 3), ("robot;main", 1)]), "a <run>", "4 samples");
        assert!(svg.contains("vec&lt;T&gt;&amp; (3 samples, 75.00%)"), "{svg}");
        assert!(svg.contains("a &lt;run&gt;") && !svg.contains("vec<T>"));
    }

    #[test]
    fn a_difference_is_of_shares_and_not_of_lengths() {
        let before = stacks(&[("robot;plan", 10), ("robot;wait", 10)]);
        let after = stacks(&[("robot;plan", 300), ("robot;wait", 100)]);
        let svg = difference(&before, &after, "", "");
        assert!(svg.contains("plan (300 samples, 75.00%; +25.00%)"), "{svg}");
        assert!(svg.contains("wait (100 samples, 25.00%; -25.00%)"), "{svg}");
    }

    #[test]
    fn folded_lines_are_path_and_count() {
        assert_eq!(folded(&stacks(&[("a;b", 2), ("a", 1)])), "a 1\na;b 2\n");
    }
}
