//! Prometheus's text format 0.0.4 and OpenMetrics 1.0: classic buckets, since text has no others.

use std::fmt::Write;

use crate::{Family, Values, families::Labels};

/// Upper bounds of classic buckets: 1, 2 and 5 of each decade from 1 µs to 10 s, in ns.
pub const CLASSIC: [u64; 22] = {
    let mut bounds = [0; 22];
    let (mut at, mut decade) = (0, 1_000);
    while at < 22 {
        bounds[at] = decade * [1, 2, 5][at % 3];
        if at % 3 == 2 {
            decade *= 10;
        }
        at += 1;
    }
    bounds
};

/// The families as text; `open` is OpenMetrics.
pub fn text(families: &[Family], open: bool) -> String {
    let mut out = String::new();
    for family in families {
        write_family(&mut out, family, open);
    }
    if open {
        out += "# EOF\n";
    }
    out
}

fn write_family(out: &mut String, family: &Family, open: bool) {
    let Family { name, help, unit, values } = family;
    let kind = match values {
        Values::Counter(_) => "counter",
        Values::Gauge(_) => "gauge",
        Values::Histogram(_) => "histogram",
    };
    // OpenMetrics names the family of a counter without the suffix of its samples, the older format with it.
    let total = if kind == "counter" { "_total" } else { "" };
    let described = if open { (*name).to_owned() } else { format!("{name}{total}") };
    let _ = writeln!(out, "# HELP {described} {}", escaped(help, open));
    let _ = writeln!(out, "# TYPE {described} {kind}");
    if open && !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {described} {unit}");
    }
    match values {
        Values::Counter(series) => {
            for (labels, value) in series {
                let _ = writeln!(out, "{name}_total{} {value}", braced(labels, None));
            }
        }
        Values::Gauge(series) => {
            for (labels, value) in series {
                let _ = writeln!(out, "{name}{} {}", braced(labels, None), number(*value, open));
            }
        }
        Values::Histogram(series) => {
            for (labels, spread) in series {
                for bound in CLASSIC {
                    let le = number(bound as f64, open);
                    let _ = writeln!(out, "{name}_bucket{} {}", braced(labels, Some(&le)), spread.up_to(bound));
                }
                let _ = writeln!(out, "{name}_bucket{} {}", braced(labels, Some("+Inf")), spread.count());
                let _ = writeln!(out, "{name}_sum{} {}", braced(labels, None), spread.sum_ns());
                let _ = writeln!(out, "{name}_count{} {}", braced(labels, None), spread.count());
            }
        }
    }
}

/// OpenMetrics wants bounds in one spelling, with a point.
fn number(value: f64, open: bool) -> String {
    if open { format!("{value:?}") } else { value.to_string() }
}

fn braced(labels: &Labels, le: Option<&str>) -> String {
    let mut pairs: Vec<String> =
        labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value, true))).collect();
    pairs.extend(le.map(|le| format!("le=\"{le}\"")));
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

/// Label values, and in OpenMetrics help, too, escape quotes; help of the older format does not.
fn escaped(text: &str, quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_label_or_a_help_ends_its_line() {
        let labels = vec![("chain", "a\"b\\c\nd".to_owned())];
        let help = "one\ntwo \"three\"";
        let values = Values::Counter(vec![(labels, 7)]);
        let family = [Family { name: "taut_x", help, unit: "", values }];
        let sample = "taut_x_total{chain=\"a\\\"b\\\\c\\nd\"} 7\n";
        let head = "# HELP taut_x_total one\\ntwo \"three\"\n# TYPE taut_x_total counter\n";
        assert_eq!(text(&family, false), format!("{head}{sample}"));
        let head = "# HELP taut_x one\\ntwo \\\"three\\\"\n# TYPE taut_x counter\n";
        assert_eq!(text(&family, true), format!("{head}{sample}# EOF\n"));
    }

    #[test]
    fn classic_bounds_are_round_and_ascend() {
        assert_eq!((CLASSIC[0], CLASSIC[1], CLASSIC[2], CLASSIC[21]), (1_000, 2_000, 5_000, 10_000_000_000));
        assert!(CLASSIC.is_sorted());
    }
}
