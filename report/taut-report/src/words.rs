//! What reports say beside the figures of `taut_document::units`, and the forms of figures that tables without documents still have.

pub use taut_document::units::{
    bar, bytes, count, duration, figure, hertz, maybe, percent, quantile, quantity, ratio, scaled,
};

/// A duration in microseconds for a column headed "µs"; "–" where the data do not carry it.
pub fn microseconds(ns: Option<u64>) -> String {
    match ns {
        None => "–".into(),
        Some(0) => "0".into(),
        Some(ns) if ns < 100 => duration(ns),
        Some(ns) if ns < 9_995 => format!("{:.2}", ns as f64 / 1e3),
        Some(ns) if ns < 999_950 => format!("{:.1}", ns as f64 / 1e3),
        Some(ns) => count((ns + 500) / 1000),
    }
}

/// How much of something was lost: "12 LOST"; of what was not counted "about 12 LOST", or "some LOST" where one stands for any number.
pub fn lost(n: u64, is_estimate: bool) -> String {
    match (n, is_estimate) {
        (0 | 1, true) => "some LOST".to_owned(),
        (n, true) => format!("about {} LOST", count(n)),
        (n, false) => format!("{} LOST", count(n)),
    }
}

/// The same with its name: "12 stamps LOST", "some stamps LOST".
pub fn lost_things(n: u64, thing: &str, is_estimate: bool) -> String {
    match (n, is_estimate) {
        (0 | 1, true) => format!("some {thing}s LOST"),
        (n, true) => format!("about {} LOST", quantity(n, thing)),
        (n, false) => format!("{} LOST", quantity(n, thing)),
    }
}

/// What a profile is made of, its gaps too: "4 950 samples, 12 LOST, 2.1 % of their frames without a name".
pub fn profile(profile: &taut_analysis::Profile) -> String {
    let lost = if profile.lost == 0 { String::new() } else { format!(", {} LOST", count(profile.lost)) };
    let unnamed = match profile.unnamed {
        0 => String::new(),
        n => format!(", {} of their frames without a name", percent(n as f64 / profile.frames.max(1) as f64)),
    };
    format!("{}{lost}{unnamed}", quantity(profile.samples, "sample"))
}

/// The kind of file that a recording was imported from, if it was.
pub fn imported_from(info: &taut_recording::Info) -> Option<&str> {
    info.facts.iter().find(|(key, _)| key == "imported_from").map(|(_, kind)| kind.as_str())
}

/// A predicted gain as the change it is: "−55 %", "+2 %", "±0 %".
pub fn change(gain: f64) -> String {
    match (gain * 100.0).round() {
        0.0 => "±0 %".into(),
        p if p > 0.0 => format!("−{p} %"),
        p => format!("+{} %", -p),
    }
}

/// A command line that a shell reads back as the same words.
pub fn shell(words: &[String]) -> String {
    let plain = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_alphanumeric() || "-_./=:,@%+".contains(c));
    let quote = |w: &String| if plain(w) { w.clone() } else { format!("'{}'", w.replace('\'', r"'\''")) };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_keep_three_digits_and_group_thousands() {
        let cases = [None, Some(0), Some(4), Some(300), Some(9_996), Some(287_440), Some(999_960), Some(5_761_400)];
        assert_eq!(
            cases.map(microseconds),
            ["–", "0", "4 ns", "0.30", "10.0", "287.4", "1\u{202f}000", "5\u{202f}761"]
        );
    }

    #[test]
    fn what_was_not_counted_is_some_or_about_so_much() {
        let of = |n, is_estimate| [lost(n, is_estimate), lost_things(n, "stamp", is_estimate)];
        assert_eq!(of(1, false), ["1 LOST", "1 stamp LOST"]);
        assert_eq!(of(9, false), ["9 LOST", "9 stamps LOST"]);
        assert_eq!(of(1, true), ["some LOST", "some stamps LOST"]);
        assert_eq!(of(9, true), ["about 9 LOST", "about 9 stamps LOST"]);
    }

    #[test]
    fn a_gain_is_a_change_downwards() {
        assert_eq!([0.554, -0.02, 0.001].map(change), ["−55 %", "+2 %", "±0 %"]);
    }

    #[test]
    fn shell_words_survive() {
        let words = ["python", "-m", "x y", "it's"].map(String::from);
        assert_eq!(shell(&words), r"python -m 'x y' 'it'\''s'");
    }
}
