//! What is said of a budget: each form shows these sentences, none makes its own.

use taut_bus::budget::{Answer, Comparison, Forecast, Origin, Polled, Price, Solve, knobs};

use super::{
    Budgeted,
    figures::{probability, rate, signed, time, value},
};
use crate::words::{count, duration, hertz, percent};

/// Beneath the table of terms.
pub(super) const HIDDEN: &str =
    "hidden: on a resource that works meanwhile and is done earlier; it costs the cycle nothing.";
/// Beneath the table of resources.
pub(super) const SLACK: &str =
    "slack: how much more work, on average, before the period (without a target: the cycle) grows.";
/// Beneath the residuals of terms.
pub(super) const RESIDUAL: &str = "typical: measured median less the model; slow: what slow cycles add to the mean. A phase's \
    residual is shown at each of its terms, with what that term would have to cost each time to explain the typical part \
    alone; \"alone\" marks terms that no other shares it with.";

/// What a busy reader needs.
pub(super) fn headline(shown: &Budgeted<'_>) -> String {
    let forecast = shown.forecast;
    let terms_us = forecast.cycle_us;
    // Where the host polls, waiting for its questions is time that no term has.
    let (mut text, cycle_us) = match polled_us(shown) {
        Some(us) => (format!("{} a cycle by its terms, {} event by event, {}", time(terms_us), time(us), rate(us)), us),
        None => (format!("{} a cycle, {}", time(terms_us), rate(terms_us)), terms_us),
    };
    if let Some(at) = forecast.critical {
        text += &format!("; {} decides", forecast.lanes[at].name);
    }
    text += ".";
    if let Some(misses) = &forecast.misses {
        let hz = hertz((misses.period_us * 1e3).round() as u64);
        let spare_us = misses.period_us - cycle_us;
        text += &match spare_us {
            us if us >= 0.0 => format!(" At {hz} {} are to spare ({})", time(us), percent(us / misses.period_us)),
            us => format!(" {hz} is out of reach: {} too long", time(-us)),
        };
        text += &match misses.missed {
            0 if forecast.varies => format!(
                "; none of {} drawn cycles misses it, a probability of at most {} as far as the model goes.",
                count(misses.of),
                probability(misses.probability_at_most)
            ),
            0 => "; nothing in the budget varies, so none misses it.".to_owned(),
            missed if missed == misses.of => "; every drawn cycle misses it.".to_owned(),
            missed => format!("; {} of {} drawn cycles miss it.", count(missed), count(misses.of)),
        };
    }
    text
}

/// Model and source.
pub(super) fn published(shown: &Budgeted<'_>) -> Option<String> {
    let published = shown.budget.published.as_ref()?;
    let off = |who: &str, us: f64| match us / published.cycle_us - 1.0 {
        off if off.abs() < 0.0005 => format!("{who} says the same"),
        off => format!("{who} is {} {}", percent(off.abs()), if off > 0.0 { "above" } else { "below" }),
    };
    let mut said = off("the model", shown.forecast.cycle_us);
    if let Some(us) = polled_us(shown) {
        said = format!("{}, {}", off("the sum of terms", shown.forecast.cycle_us), off("the cycle event by event", us));
    }
    Some(format!("The source says \"{}\" ({}): {said}.", published.wording, published.source))
}

/// Median of the cycle event by event, where the host polls.
fn polled_us(shown: &Budgeted<'_>) -> Option<f64> {
    shown.polled.and_then(|polled| polled.cycles.p50_ns).map(|ns| ns as f64 / 1e3)
}

/// What is fitted and what is assumed, or that nothing is.
pub(super) fn honesty(shown: &Budgeted<'_>) -> Vec<String> {
    let (fitted, assumed) = (named(shown, Origin::Fitted), named(shown, Origin::Assumed));
    let mut sentences = Vec::new();
    sentences.push(match fitted.as_slice() {
        [] => "Nothing is fitted.".to_owned(),
        fitted => format!(
            "Fitted, so that the total comes out: {}. The total alone bears out no term that was fitted to it.",
            fitted.join("; ")
        ),
    });
    if !assumed.is_empty() {
        sentences.push(format!("Assumed, from no source: {}.", assumed.join("; ")));
    }
    if shown.forecast.varies && shown.budget.jitter_origin == Origin::Assumed {
        sentences.push(
            "How much each term varies is assumed: the spread is an illustration, the mean is the model's.".into(),
        );
    }
    sentences
}

/// "host and bridge 255 µs (closes the total)".
fn named(shown: &Budgeted<'_>, origin: Origin) -> Vec<String> {
    let budget = shown.budget;
    let keys = match origin {
        Origin::Fitted => &budget.fitted,
        _ => &budget.assumed,
    };
    let of_key = |key: &String| {
        let knob = knobs(budget).into_iter().find(|knob| knob.key(budget) == *key)?;
        Some(format!("{key} = {}", value(&knob, knob.get(budget)?)))
    };
    let terms = budget.terms.iter().filter(|term| term.origin == origin).map(|term| {
        let each = match &term.price {
            Price::Us(us) if *us > 0.0 => format!(" {}", time(*us)),
            _ => String::new(),
        };
        let why = if term.note.is_empty() { String::new() } else { format!(" ({})", term.note) };
        format!("{}{each}{why}", term.name)
    });
    terms.chain(keys.iter().filter_map(of_key)).collect()
}

/// How the drawn cycles came about.
pub(super) fn drawn(forecast: &Forecast) -> String {
    let (n, seed) = (forecast.sampling.cycles, forecast.sampling.seed);
    match forecast.varies {
        true => format!("{} cycles drawn from the terms' jitter, seed {seed}.", count(n.into())),
        false => "No term varies: every cycle is the mean.".into(),
    }
}

/// What going through the events adds to the sum of terms.
pub(super) fn polled(polled: &Polled) -> String {
    let d = &polled.cycles;
    let us = |ns: Option<u64>| time(ns.unwrap_or(0) as f64 / 1e3);
    format!(
        "Event by event the cycle takes {} ({} to {} in {} cycles): the host asks its microcontrollers {:.1} times a cycle \
         what has come, {:.1} times in vain.",
        us(d.p50_ns),
        us(d.min_ns),
        us(d.max_ns),
        count(d.n),
        polled.questions,
        polled.in_vain
    )
}

/// One answer in words.
pub(super) fn answer(answer: &Answer, target_hz: f64) -> String {
    let hz = hertz((1e9 / target_hz).round() as u64);
    let now = value(&answer.knob, answer.now);
    let Some(limit) = answer.limit else {
        return match answer.solve {
            Solve::Servos => {
                format!("{}: not even one servo makes {hz}; the cycle stays at {}.", answer.key, time(answer.cycle_us))
            }
            Solve::Payload => format!(
                "{}: not even empty frames make {hz}; the cycle stays at {}.",
                answer.key,
                time(answer.cycle_us)
            ),
            Solve::Bitrate => format!("{}: no rate makes {hz}; the rest takes {}.", answer.key, time(answer.cycle_us)),
        };
    };
    let bound = match answer.solve {
        Solve::Bitrate if answer.unbounded => {
            return format!("{}: any rate makes {hz}; it decides nothing.", answer.key);
        }
        _ if answer.unbounded => format!("{}, where the format ends,", value(&answer.knob, limit)),
        _ => value(&answer.knob, limit),
    };
    let side = if answer.solve == Solve::Bitrate { "at least" } else { "at most" };
    let nearly_always = match answer.limit_p99 {
        Some(held) if held == limit => String::new(),
        Some(held) => format!(", {} for 99 % of cycles", value(&answer.knob, held)),
        None => ", none for 99 % of cycles".into(),
    };
    let on_average = if nearly_always.is_empty() { "" } else { " on average" };
    format!("{}: {side} {bound} for {hz}{on_average}{nearly_always} (now {now}).", answer.key)
}

/// Recording and model in one sentence.
pub(super) fn against(run: &str, comparison: &Comparison) -> String {
    let cycle = &comparison.cycle;
    let (Some(measured), Some(residual)) = (&cycle.measured, cycle.residual) else { return String::new() };
    if measured.n == 0 {
        return format!("{run}: none of the cycle's phases was stamped, only single terms.");
    }
    let missing: Vec<&str> =
        comparison.phases.iter().filter(|row| row.measured.is_none()).map(|row| row.phase.as_str()).collect();
    let missing = match missing.as_slice() {
        [] => String::new(),
        names => format!(" Not stamped, and left out on both sides: {}.", names.join(", ")),
    };
    let parts = || comparison.phases.iter().filter_map(|row| Some((row.phase.as_str(), row.residual?)));
    let typical = most(parts().map(|(phase, residual)| (phase, residual.typical_us)));
    let tail = most(parts().map(|(phase, residual)| (phase, residual.tail_us)));
    format!(
        "{run}: {} cycles took {} on average where the model says {}. Of the {} µs between them, {} are in the typical \
         cycle{typical}; {} come from slow cycles{tail}, whose causes `taut explain {run}` tells.{missing}",
        count(measured.n),
        duration((measured.mean_us * 1e3).round() as u64),
        time(cycle.model_us),
        signed(residual.total_us()),
        signed(residual.typical_us),
        signed(residual.tail_us),
    )
}

/// " (most in receive, +40.1)", where anything is worth it.
fn most<'a>(parts: impl Iterator<Item = (&'a str, f64)>) -> String {
    match parts.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())) {
        Some((phase, us)) if us.abs() >= 0.05 => format!(" (most in {phase}, {})", signed(us)),
        _ => String::new(),
    }
}
