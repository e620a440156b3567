//! The command that measures the same again, from what a probe's settings say.

use taut_probe::{Findings, Variant};

use crate::words;

/// Settings that are options of the same name.
const OPTIONS: [&str; 8] = ["interval", "policy", "priority", "wake", "slack", "dma-latency", "load", "cpus"];

/// What the machine's facts name as the command; else made up from the settings. `None` for figures read from files.
pub(super) fn command(findings: &Findings) -> Option<String> {
    if let Some(typed) = findings.machine.get("command") {
        return Some(typed.clone());
    }
    let first = findings.variants.first().filter(|variant| variant.interval_ns > 0)?;
    let mut arguments = vec!["taut".to_owned(), "probe".to_owned()];
    let seconds = findings.measured_s / findings.variants.len() as f64;
    arguments.extend(["--duration".to_owned(), format!("{seconds:.0}s")]);
    for option in OPTIONS {
        arguments.extend(argument(option, first, &findings.variants));
    }
    if super::headline::is_same_thing(&findings.variants) {
        arguments.push("--aa".to_owned());
    }
    if findings.stalls.is_some() {
        arguments.push("--pair".to_owned());
    }
    if findings.throttling.is_some() {
        arguments.push("--throttle".to_owned());
    }
    if let Some(explained) = &findings.explained {
        arguments.extend(["--explain".to_owned(), "--over".to_owned(), format!("{}us", explained.threshold_ns / 1000)]);
    }
    Some(words::shell(&arguments))
}

/// "--policy fifo" where all variants have it, "--vary policy=fifo,other" where they differ.
fn argument(option: &str, first: &Variant, variants: &[Variant]) -> Vec<String> {
    let Some(value) = first.settings.get(option).filter(|value| !value.is_empty()) else { return Vec::new() };
    let mut values: Vec<&str> = Vec::new();
    for variant in variants {
        let other = variant.settings.get(option).map_or("", String::as_str);
        if !values.contains(&other) {
            values.push(other);
        }
    }
    match values.len() {
        1 => vec![format!("--{option}"), value.clone()],
        _ => vec!["--vary".to_owned(), format!("{option}={}", values.join(","))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::sample;

    #[test]
    fn what_differs_is_varied() {
        let mut findings = sample::two_ways();
        findings.machine.remove("command");
        assert_eq!(
            command(&findings).unwrap(),
            "taut probe --duration 10s --interval 1ms --policy other --vary wake=nanosleep,timerfd --slack 50us --pair \
             --throttle --explain --over 300us"
        );
    }

    #[test]
    fn a_command_that_was_typed_is_repeated_and_files_have_none() {
        let mut findings = sample::two_ways();
        findings.machine.insert("command".into(), "taut probe --aa".into());
        assert_eq!(command(&findings).unwrap(), "taut probe --aa");
        let read = Findings { variants: vec![Variant::default()], ..Findings::default() };
        assert_eq!(command(&read), None);
    }
}
