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
    fn a_gain_is_a_change_downwards() {
        assert_eq!([0.554, -0.02, 0.001].map(change), ["−55 %", "+2 %", "±0 %"]);
    }

    #[test]
    fn shell_words_survive() {
        let words = ["python", "-m", "x y", "it's"].map(String::from);
        assert_eq!(shell(&words), r"python -m 'x y' 'it'\''s'");
    }
}
