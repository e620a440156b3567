//! The one sentence at the top of every view: what a busy reader needs, and no more than the data carry.

use taut_analysis::{
    Analysis, Cause, CauseShare, Chain, Contribution, Explained, Histogram, Hop, Hypothesis, Point, Selected,
    SourceKind,
};

use crate::{
    causes,
    lateness::{lateness, quoted},
    words::{count, duration, percent, quantile as quantile_word, quantity},
};

/// A stream is steady if no more than one of so many of its messages comes after a gap.
const STEADY: u64 = 10;

/// Of a chain that is not the first, a smaller share of messages lost is not in the first sentences.
const LOST_MIN: f64 = 0.01;

/// A second cause with at least this share of the excess is in the first sentences,
const ALSO_MIN: f64 = 0.1;
/// where it has at least so much of the first one's.
const ALSO_PART: f64 = 0.5;

/// A start that is later than one of so many parts of the period is late.
const LATE: u64 = 20;

/// What happened, in short sentences about the largest chain; first that the program failed, if it did.
pub fn headline(analysis: &Analysis) -> String {
    let Headline { finding, next, more } = sentences(analysis);
    finding.into_iter().chain(next).chain(more).collect::<Vec<_>>().join(" ")
}

/// The first sentences of a recording.
pub(crate) struct Headline {
    /// How late, where, why, and what was dropped.
    pub finding: Vec<String>,
    /// What to do.
    pub next: Option<String>,
    /// What else stands out.
    pub more: Vec<String>,
}

/// The same, apart.
pub(crate) fn sentences(analysis: &Analysis) -> Headline {
    let mut finding: Vec<String> = failure(analysis).into_iter().collect();
    if let Some(loops) = crate::loops::headline(analysis) {
        finding.push(loops);
        finding.extend(why_busy(analysis));
        finding.extend(crate::loops::main_chain(analysis).and_then(without_it));
        let more = otherwise_late(analysis).into_iter().chain(busy(analysis)).collect();
        return Headline { finding, next: next_of_loops(analysis), more };
    }
    let Some(chain) = analysis.chains.first() else {
        finding.push(without_chains(analysis));
        return Headline { finding, next: None, more: busy(analysis).into_iter().collect() };
    };
    let slowest_ns = chain.end_to_end.distribution.max_ns.unwrap_or(0);
    let is_later = |of: &taut_analysis::Starts| of.worst.first().is_some_and(|worst| worst.late_ns > slowest_ns);
    let mut starts = starts(chain);
    // The larger lateness is not said in passing.
    if let Some(first) = starts.take_if(|_| chain.starts.as_ref().is_some_and(is_later)) {
        finding.push(first);
    }
    finding.push(lateness(chain));
    let (why, without, ended) = (why_late(chain, ""), without_it(chain), ended(chain));
    // What never arrived is later than all else.
    let rest = if loses(chain) { [ended, why, without] } else { [why, without, ended] };
    finding.extend(rest.into_iter().flatten());
    let more = [starts, loses_more(analysis), silent(analysis), busy(analysis)].into_iter().flatten().collect();
    Headline { finding, next: next(chain), more }
}

/// That the recorded program failed: figures of a robot that fell are no figures of its loop.
pub(crate) fn failure(analysis: &Analysis) -> Option<String> {
    let how = analysis.ending.as_ref()?.failure()?;
    Some(format!("The recorded program failed: it ended {how}."))
}

/// How late the loop starts, if that is more than a few per cent of its period.
fn starts(chain: &Chain) -> Option<String> {
    let starts = chain.starts.as_ref()?;
    let worst = starts.worst.first()?;
    if starts.missing == 0 && worst.late_ns * LATE < starts.period_ns {
        return None;
    }
    let missing = match starts.missing {
        0 => String::new(),
        n => format!(", and {} of its periods {} no {}", count(n), if n == 1 { "has" } else { "have" }, sign(chain)),
    };
    let known = worst.pieces.first().filter(|piece| piece.cause != Cause::Unknown);
    let cause = known.map_or(String::new(), |piece| {
        format!(", because of {}", causes::phrase(piece.cause, &chain.explained.named(&piece.detail)))
    });
    let of = chain.points.iter().find(|point| !point.is_due).or(chain.points.first());
    let of = of.map_or("the chain", |point| point.name.as_str());
    Some(format!(
        "{of} is due every {} and comes up to {} late (at {:.3} s{cause}){missing}.",
        duration(starts.period_ns),
        duration(worst.late_ns),
        worst.intended_ns as f64 / 1e9,
    ))
}

/// By what a chain's messages are counted: a thread's skipped releases, by kernel events, may be others.
fn sign(chain: &Chain) -> &'static str {
    match chain.source {
        SourceKind::Stamps => "stamp",
        SourceKind::Ros => "ROS 2 event",
        SourceKind::Wakes => "activation",
    }
}

/// That the machine had too few CPUs for all that ran on it.
fn busy(analysis: &Analysis) -> Option<String> {
    let share = analysis.totals.cpu_pressure?;
    let cpus = match analysis.info.cpus {
        0 => "a CPU of this machine".to_owned(),
        1 => "this machine's only CPU".to_owned(),
        n => format!("one of this machine's {n} CPUs"),
    };
    Some(format!(
        "For {:.0} % of the time some thread waited for {cpus}, of this program or of another.",
        100.0 * share
    ))
}

/// The gap of a steady stream in which most messages are missing, where a chain begins or at a point of no chain.
fn silent(analysis: &Analysis) -> Option<String> {
    // Of a loop whose start is known its missing periods are.
    let is_told = |chain: &&Chain| chain.starts.as_ref().is_some_and(|starts| starts.missing > 0);
    let firsts = analysis.chains.iter().filter(|chain| !is_told(chain)).filter_map(|chain| chain.points.first());
    let steady = firsts.chain(&analysis.points).filter(|point| point.gaps * STEADY < point.messages);
    let worst = |point: &Point| point.longest_gaps.iter().map(|gap| gap.missing).max().unwrap_or(0);
    let point = steady.filter(|point| point.missing > 0).max_by_key(|point| worst(point))?;
    let gap = point.longest_gaps.iter().max_by_key(|gap| gap.missing)?;
    let all = match point.gaps {
        1 => String::new(),
        n => format!("; {} are missing in its {} gaps", count(point.missing), count(n)),
    };
    Some(format!(
        "Nothing passed {} for {} from {:.3} s on, where its median period would have had {}{all}.",
        quoted(&point.name),
        duration(gap.ns),
        gap.from_ns as f64 / 1e9,
        quantity(gap.missing, "message"),
    ))
}

/// Of a recording in which no message can be followed: how much came, and where it was silent.
fn without_chains(analysis: &Analysis) -> String {
    let totals = &analysis.totals;
    let has_events = totals.stamps + totals.ros_events > 0;
    let no_chain =
        if has_events { "No chain was found: no message passed two points." } else { "Nothing was stamped." };
    let mut text = no_chain.to_owned();
    if !has_events && analysis.telemetry.is_empty() && analysis.histograms.is_empty() {
        text += &format!(
            " The {} kernel events show what threads and CPUs did, and no message.",
            count(totals.kernel_events)
        );
    }
    text += &distributions(&analysis.histograms);
    let channels = &analysis.telemetry;
    if !channels.is_empty() {
        text += &format!(
            " {} of telemetry brought {} in {:.1} s; {} lost.",
            quantity(channels.len() as u64, "channel"),
            quantity(channels.iter().map(|channel| channel.messages).sum(), "message"),
            analysis.totals.duration_s,
            if analysis.totals.lost_telemetry == 0 {
                "none were".into()
            } else {
                count(analysis.totals.lost_telemetry)
            },
        );
    }
    // By how many of its typical periods.
    text.extend(silent(analysis).map(|sentence| format!(" {sentence}")));
    let channels = channels.iter().map(|channel| (&channel.period, &channel.topic));
    let points = analysis.points.iter().map(|point| (&point.period, &point.name));
    let longest = channels.chain(points).filter_map(|(period, name)| {
        let (typical, longest) = (period.p50_ns?, period.max_ns?);
        Some((longest as f64 / typical.max(1) as f64, typical, longest, name))
    });
    if let Some((_, typical, longest, name)) = longest.max_by(|a, b| a.0.total_cmp(&b.0)) {
        text += &format!(
            " The longest silence was {} on {name}, where {} is typical.",
            duration(longest),
            duration(typical)
        );
    }
    text
}

/// What came as distributions, and how far the farthest reaches.
fn distributions(all: &[Histogram]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let n: u64 = all.iter().fold(0, |sum, of| sum.saturating_add(of.n));
    let (many, values) = (quantity(all.len() as u64, "distribution"), quantity(n, "value"));
    let farthest = all.iter().filter(|of| of.unit == "ns").max_by_key(|of| of.max);
    let farthest = farthest.and_then(|of| Some(format!(", up to {} in {}", duration(of.max?), of.name)));
    format!(" {many} without messages: {values}{}.", farthest.unwrap_or_default())
}

/// The sentence with a capital letter.
pub(crate) fn capital(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

/// Why: the causes with the largest parts of the excess, each with its largest party and the hop in which most of it is spent.
/// `of_what`: " of its response time", where the chain is a loop's and another excess was the subject.
fn why_late(chain: &Chain, of_what: &str) -> Option<String> {
    let explained = &chain.explained;
    let beyond = format!(" (time beyond typical {})", if chain.is_loop { "activations" } else { "messages" });
    let above = match explained.selected {
        Selected::Nothing => return where_late(chain, &format!("excess of the tail{beyond}")),
        Selected::Tail(quantile) | Selected::AboveQuantile(quantile) => {
            format!("excess{of_what} above {}{beyond}", quantile_word(quantile))
        }
        Selected::Missed => format!("excess of the messages that missed the deadline{beyond}"),
        Selected::Overran => format!("excess of the activations that overran{beyond}"),
        Selected::AboveTime => format!("excess{of_what} above {}{beyond}", duration(explained.tail_limit_ns)),
    };
    let known = explained.by_cause.first().filter(|share| share.cause != Cause::Unknown && share.tail_share > 0.0);
    let Some(top) = known else {
        return where_late(chain, &above);
    };
    let also = explained.by_cause.get(1).filter(|share| {
        share.cause != Cause::Unknown && share.tail_share >= ALSO_MIN && share.tail_share >= top.tail_share * ALSO_PART
    });
    let hops = [Some(top), also].map(|of| of.and_then(|of| mostly_in(chain, of)));
    let is_placed = hops.iter().any(Option::is_some);
    let [hop, hop_of_also] = hops.map(|hop| hop.map_or(String::new(), |place| format!(", {place}")));
    let first = format!("{}{}{hop}", causes::with_party(explained, top), concentration(explained, top.cause));
    let second = also.map_or(String::new(), |of| {
        format!("; {} is {}{hop_of_also}", percent(of.tail_share), causes::with_party(explained, of))
    });
    let all = most_of_the_tail(chain).filter(|_| !is_placed);
    let rest = all.map_or(String::new(), |(hop, share)| {
        format!(" Of the same excess {} is spent {}.", percent(share), place(hop))
    });
    Some(format!("{} of the {above} is {first}{second}.{rest}", percent(top.tail_share)))
}

/// In which hop more than half of a cause's excess is spent: that of all causes may be another.
fn mostly_in(chain: &Chain, of: &CauseShare) -> Option<String> {
    let in_hop = |shares: &Vec<CauseShare>| -> f64 {
        shares.iter().filter(|share| share.cause == of.cause).map(|share| share.tail_share).sum()
    };
    // Of one hop it is known where.
    let hops = chain.hops.iter().zip(&chain.explained.hops).filter(|_| chain.hops.len() > 1);
    let shares = hops.map(|(hop, shares)| (hop, in_hop(shares)));
    let (hop, share) = shares.max_by(|a, b| a.1.total_cmp(&b.1))?;
    match share / of.tail_share {
        0.95.. => Some(place(hop)),
        0.5.. => Some(format!("most of it {}", place(hop))),
        _ => None,
    }
}

/// Where a few messages have most of a cause's time: what befell them is no habit of the loop.
fn concentration(explained: &Explained, cause: Cause) -> String {
    /// Half of it in at most this part of the late messages.
    const FEW: u64 = 10;
    let of_cause = explained.predictions.iter().find(|found| found.without == cause.word());
    match of_cause.map(|found| found.half_in) {
        Some(half_in) if half_in > 0 && half_in * FEW <= explained.tail_messages => {
            format!(", half of it in {} of the {}", count(half_in), quantity(explained.tail_messages, "late message"))
        }
        _ => String::new(),
    }
}

/// What the activations of the first loop are spent on, where that is another cause than that of its late starts: what to do is against it.
fn why_busy(analysis: &Analysis) -> Option<String> {
    let (main, chain) = (analysis.loops.first()?, crate::loops::main_chain(analysis)?);
    let top = chain.explained.by_cause.first().filter(|share| share.cause != Cause::Unknown)?;
    let is_said = main.late_by.first().is_some_and(|late| late.cause == top.cause);
    // Why activations overran is said beside how many did.
    if is_said || crate::loops::why_overran(analysis).is_some() {
        None
    } else {
        why_late(chain, " of its response time")
    }
}

/// How late the first chain of several threads is and why, where that is another cause than that of the first loop's late starts.
fn otherwise_late(analysis: &Analysis) -> Option<String> {
    let of_loop = analysis.loops.first()?.late_by.first().map(|of| of.cause);
    let chain = analysis.chains.iter().find(|chain| chain.source == SourceKind::Wakes && !chain.is_loop)?;
    let top = chain.explained.by_cause.first()?;
    if top.cause == Cause::Unknown || Some(top.cause) == of_loop {
        return None;
    }
    Some(format!("{} {}", lateness(chain), why_late(chain, "")?))
}

/// The chain that lost the largest share of its messages, where that is not the first one.
fn loses_more(analysis: &Analysis) -> Option<String> {
    let lost = |chain: &Chain| chain.outcomes.not_arrived();
    let share = |chain: &Chain| lost(chain) as f64 / chain.messages.max(1) as f64;
    let (first, others) = analysis.chains.split_first()?;
    let most = others.iter().filter(|chain| !chain.is_loop).max_by(|a, b| share(a).total_cmp(&share(b)))?;
    if share(most) < LOST_MIN || share(most) <= share(first) {
        return None;
    }
    Some(format!(
        "{} lost a larger share: {} of {} messages ({}).",
        quoted(&most.name),
        count(lost(most)),
        count(most.messages),
        percent(share(most))
    ))
}

/// Where most of it is spent, for recordings that tell no causes.
fn where_late(chain: &Chain, excess: &str) -> Option<String> {
    let (hop, share) = most_of_the_tail(chain)?;
    Some(format!("{} of the {excess} is spent {}.", percent(share), place(hop)))
}

/// Where a hop is.
fn place(hop: &Hop) -> String {
    match hop.from.strip_suffix(" due") {
        Some(point) if point == hop.to => format!("before {}, after it was due", quoted(point)),
        _ => format!("from {} to {}", quoted(&hop.from), quoted(&hop.to)),
    }
}

fn most_of_the_tail(chain: &Chain) -> Option<(&Hop, f64)> {
    // Of one hop it is known where.
    let hops = Some(&chain.hops).filter(|hops| hops.len() > 1)?;
    let shares = hops.iter().filter_map(|hop| Some((hop, hop.tail_share?)));
    shares.filter(|(_, share)| *share > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// What is predicted without the cause that the first recommendation is against, where it is known to contribute and to gain.
fn without_it(chain: &Chain) -> Option<String> {
    let explained = &chain.explained;
    let contributes = |against: &String| {
        let is_it = |found: &Hypothesis| found.hypothesis == *against && found.result == Contribution::Contributes;
        explained.hypotheses.iter().any(is_it)
    };
    let against = explained.recommendations.iter().map(|of| &of.against).find(|against| contributes(against))?;
    let prediction = explained.sure_prediction(against)?;
    let of = prediction.gain_quantile?;
    let figure = prediction.quantiles.iter().find(|figure| figure.quantile == of)?;
    Some(format!(
        "Without {}, {}{} is predicted at {} (95 % interval {} to {}) instead of {}.",
        causes::without(against, explained),
        quantile_word(of),
        if chain.is_loop { " of its response time" } else { "" },
        duration(figure.after_ns),
        duration(figure.interval_ns.0),
        duration(figure.interval_ns.1),
        duration(figure.before_ns)
    ))
}

/// What to do first: what the first recommendation begins with.
fn next(chain: &Chain) -> Option<String> {
    let first = chain.explained.recommendations.first()?;
    let explained = &chain.explained;
    let Some(reason) = first.against.strip_prefix("dropped:") else {
        // The surest gain may be that of another cause than the one that the sentences before name.
        let of = first.against.split(':').next().and_then(Cause::from_word);
        let is_said = explained.by_cause.first().is_none_or(|top| Some(top.cause) == of);
        let gains = explained.sure_prediction(&first.against).is_some_and(|found| found.gain > 0.0);
        let why = if gains { " (largest gain at the worse end of its interval)" } else { "" };
        let against = match is_said {
            true => String::new(),
            false => format!(", against {}{why}", causes::without(&first.against, explained)),
        };
        return Some(format!("Next{against}: {}.", beginning(&first.remedy)));
    };
    // What is late has a remedy of its own.
    let late = explained.recommendations.iter().find(|of| !of.against.starts_with("dropped:"));
    let late = late.map_or(String::new(), |of| {
        format!(" Against {}: {}.", causes::without(&of.against, explained), beginning(&of.remedy))
    });
    Some(format!("Next, against the drops for {reason}: {}.{late}", beginning(&first.remedy)))
}

/// The same of a program as it is: for the loop that the headline is about; else for another chain, which is named.
fn next_of_loops(analysis: &Analysis) -> Option<String> {
    let main = analysis.loops.first().and_then(|main| main.chain.as_ref());
    let mut of_main = analysis.chains.iter().filter(|chain| Some(&chain.name) == main);
    of_main.find_map(next).or_else(|| {
        let named =
            |chain: &Chain| Some(next(chain)?.replacen("Next", &format!("Next, for {}", quoted(&chain.name)), 1));
        analysis.chains.iter().find_map(named)
    })
}

/// Whether the first thing to do is against drops.
fn loses(chain: &Chain) -> bool {
    chain.explained.recommendations.first().is_some_and(|first| first.against.starts_with("dropped:"))
}

/// Up to what a remedy goes on with: reasons, alternatives, details.
fn beginning(remedy: &str) -> &str {
    let mut depth = 0;
    let ends = |(at, c): &(usize, char)| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        // A colon amid a word is a name's.
        depth == 0 && matches!(c, ',' | ':' | ';') && remedy[at + 1..].starts_with(' ')
    };
    remedy.char_indices().find(ends).map_or(remedy, |(at, _)| &remedy[..at])
}

fn ended(chain: &Chain) -> Option<String> {
    let outcomes = &chain.outcomes;
    let dropped = outcomes.all_dropped();
    let vanished = match outcomes.unexplained {
        0 => None,
        n => Some(format!("{} of {} messages vanished without a reason.", count(n), count(chain.messages))),
    };
    let Some((reason, of_reason)) = outcomes.dropped.first() else { return vanished };
    let place = outcomes.last_seen.iter().filter(|of| of.reason == *reason && of.messages * 2 > *of_reason);
    let place = place.map(|of| format!(" after {}", quoted(&of.point))).next().unwrap_or_default();
    let share = percent(dropped as f64 / chain.messages.max(1) as f64);
    let most = match (dropped, outcomes.dropped.len()) {
        (1, _) => "",
        (_, 1) => "all ",
        _ => "most ",
    };
    let dropped = format!(
        "{} of {} messages {} dropped ({share}), {most}for {reason}{place}.",
        count(dropped),
        count(chain.messages),
        if dropped == 1 { "was" } else { "were" },
    );
    Some(std::iter::once(dropped).chain(vanished).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_remedy_begins_with_what_is_to_be_done() {
        let remedies = [
            (
                "steer interrupts (irqaffinity=, rps_cpus) off the CPU, or none",
                "steer interrupts (irqaffinity=, rps_cpus) off the CPU",
            ),
            ("hold the lock for a shorter time: copy the data", "hold the lock for a shorter time"),
            ("make the call less often", "make the call less often"),
            (
                "give the thread robot:ctrl/7 a real-time priority, so that it runs",
                "give the thread robot:ctrl/7 a real-time priority",
            ),
        ];
        for (remedy, begins) in remedies {
            assert_eq!(beginning(remedy), begins);
        }
    }

    #[test]
    fn without_a_chain_it_says_what_telemetry_came() {
        let mut analysis = sample::teleop();
        analysis.chains.clear();
        analysis.totals.stamps = 0;
        assert_eq!(
            headline(&analysis).replace('\u{202f}', " "),
            "Nothing was stamped. 1 distribution without messages: 2 000 values, up to 173 ms in thread 0. 1 channel of \
             telemetry brought 23 997 messages in 60.3 s; 3 lost. Nothing passed camera.frame for 133 ms from 12.400 s on, where its \
             median period would have had 3 messages; 5 are missing in its 4 gaps. The longest silence was \
             12.5 ms on /telemetry/leg, where 2.50 ms is typical."
        );
        analysis.telemetry.clear();
        assert_eq!(
            headline(&analysis).replace('\u{202f}', " "),
            "Nothing was stamped. 1 distribution without messages: 2 000 values, up to 173 ms in thread 0. Nothing passed \
             camera.frame for 133 ms from 12.400 s on, where its \
             median period would have had 3 messages; 5 are missing in its 4 gaps. The longest silence was 133 ms on camera.frame, where 33.3 ms is typical."
        );
    }

    #[test]
    fn of_kernel_events_alone_it_says_what_they_show() {
        let mut analysis = sample::teleop();
        analysis.chains.clear();
        analysis.telemetry.clear();
        analysis.histograms.clear();
        analysis.points.clear();
        analysis.totals.stamps = 0;
        assert_eq!(
            headline(&analysis).replace('\u{202f}', " "),
            "Nothing was stamped. The 900 000 kernel events show what threads and CPUs did, and no message."
        );
    }

    #[test]
    fn a_remedy_against_another_cause_than_the_first_names_it() {
        let mut analysis = sample::teleop();
        assert!(headline(&analysis).contains("Next: give the loop"), "{}", headline(&analysis));
        analysis.chains[0].explained.recommendations[0].against = "irq".into();
        assert!(headline(&analysis).contains("Next, against interrupts: give the loop"), "{}", headline(&analysis));
        analysis.chains[0].explained.predictions[0].without = "irq".into();
        let why = "Next, against interrupts (largest gain at the worse end of its interval): give the loop";
        assert!(headline(&analysis).contains(why), "{}", headline(&analysis));
    }

    #[test]
    fn what_is_late_has_its_remedy_beside_that_of_the_drops() {
        let mut analysis = sample::teleop();
        let drops = taut_analysis::Recommendation {
            against: "dropped:stale".into(),
            remedy: "look at the rule, and why".into(),
            ..taut_analysis::Recommendation::default()
        };
        analysis.chains[0].explained.recommendations.insert(0, drops);
        let text = headline(&analysis);
        let next = "Next, against the drops for stale: look at the rule. Against waiting for the GIL: give the loop a process of its own.";
        assert!(text.contains(next), "{text}");
    }

    #[test]
    fn a_chain_that_loses_more_than_the_first_is_named() {
        let mut analysis = sample::teleop();
        let mut other = analysis.chains[0].clone();
        other.name = "b → c".into();
        analysis.chains.push(other);
        let says = |analysis: &Analysis| headline(analysis).contains("a larger share");
        assert!(!says(&analysis), "it loses the same share");
        analysis.chains[0].messages *= 2;
        assert!(
            headline(&analysis)
                .contains("`b → c` lost a larger share: 2\u{202f}151 of 3\u{202f}021 messages (71.2 %)."),
            "{}",
            headline(&analysis)
        );
    }

    #[test]
    fn a_program_that_failed_is_named_first() {
        let mut analysis = sample::teleop();
        let of = |analysis: &mut Analysis, exit_code, reason: &str| {
            analysis.ending.as_mut().unwrap().exit_code = exit_code;
            analysis.ending.as_mut().unwrap().reason = reason.to_owned();
            headline(analysis).split(". ").next().unwrap().to_owned()
        };
        let exited = "command exited";
        let failed = |how: &str| format!("The recorded program failed: it ended {how}");
        assert_eq!(of(&mut analysis, Some(1), exited), failed("with exit code 1"));
        assert_eq!(of(&mut analysis, Some(139), exited), failed("by signal 11 (SIGSEGV)"));
        assert_eq!(of(&mut analysis, Some(137), exited), failed("by signal 9"));
        assert_eq!(of(&mut analysis, Some(134), "signal"), failed("by signal 6 (SIGABRT)"), "after a signal it heeded");
        let saved = "saved by the flight recorder: a signal; the program ended with exit code 3";
        assert_eq!(of(&mut analysis, Some(3), saved), failed("with exit code 3"));
        for (exit_code, reason) in [
            (None, "process exited"),
            (Some(0), exited),
            (Some(143), exited),
            (Some(143), "duration"),
            (Some(137), "duration"),
            (Some(1), "signal"),
        ] {
            assert!(of(&mut analysis, exit_code, reason).starts_with("Half of"), "{exit_code:?} {reason}");
        }
        analysis.chains.clear();
        assert_eq!(of(&mut analysis, Some(2), exited), failed("with exit code 2"));
    }

    #[test]
    fn two_causes_of_like_weight_are_named_each_with_its_place() {
        let mut analysis = sample::teleop();
        let explained = &mut analysis.chains[0].explained;
        explained.by_cause[1].tail_share = 0.4;
        explained.causes[1].tail_share = 0.4;
        let mut in_two = [explained.causes[1].clone(), explained.causes[1].clone()];
        (in_two[0].tail_share, in_two[1].tail_share) = (0.3, 0.1);
        (explained.hops[2], explained.hops[3]) = (vec![in_two[0].clone()], vec![in_two[1].clone()]);
        let text = headline(&analysis);
        let why = "is waiting for the GIL (held by python/4243), from sysstate.pre_callback to orch.cb_enter; 40.0 % is waiting for a \
                   CPU after a wakeup (while python/4243 ran), most of it from orch.cb_enter to";
        assert!(text.contains(why) && !text.contains("Of the same excess"), "{text}");
        // Where neither has a place, that of all is told.
        let explained = &mut analysis.chains[0].explained;
        explained.hops.iter_mut().for_each(Vec::clear);
        assert!(headline(&analysis).contains("Of the same excess 52.0 % is spent"), "{}", headline(&analysis));
    }

    #[test]
    fn what_a_loop_is_busy_with_is_named_where_its_starts_are_late_for_another_reason() {
        let mut analysis = sample::teleop();
        let name = analysis.chains[0].name.clone();
        (analysis.chains[0].is_loop, analysis.chains[0].source) = (true, SourceKind::Wakes);
        analysis.loops = vec![taut_analysis::Loop { chain: Some(name), ..Default::default() }];
        assert!(
            headline(&analysis)
                .contains("Without waiting for the GIL, p99 of its response time is predicted at 4.90 ms"),
            "{}",
            headline(&analysis)
        );
        let text = why_busy(&analysis).unwrap();
        assert!(
            text.starts_with(
                "61.0 % of the excess of its response time above p99 (time beyond typical activations) is waiting"
            ),
            "{text}"
        );
        analysis.loops[0].late_by = vec![analysis.chains[0].explained.by_cause[0].clone()];
        assert_eq!(why_busy(&analysis), None);
    }

    #[test]
    fn what_to_do_is_for_the_loop_of_the_headline_or_names_its_chain() {
        let mut analysis = sample::teleop();
        let name = analysis.chains[0].name.clone();
        analysis.loops = vec![taut_analysis::Loop { chain: Some(name.clone()), ..Default::default() }];
        assert_eq!(next_of_loops(&analysis).unwrap(), "Next: give the loop a process of its own.");
        analysis.loops[0].chain = None;
        assert_eq!(
            next_of_loops(&analysis).unwrap(),
            format!("Next, for `{name}`: give the loop a process of its own.")
        );
    }

    #[test]
    fn a_cause_that_befell_few_messages_is_no_habit() {
        let mut explained = sample::teleop().chains.remove(0).explained;
        assert_eq!(concentration(&explained, Cause::Gil), "");
        (explained.tail_messages, explained.predictions[0].half_in) = (28, 2);
        assert_eq!(concentration(&explained, Cause::Gil), ", half of it in 2 of the 28 late messages");
        assert_eq!(concentration(&explained, Cause::Lock), "", "nothing is predicted without it");
    }

    #[test]
    fn nothing_is_over_the_slowest() {
        let mut chain = sample::teleop().chains.remove(0);
        let of = |p50: u64, chain: &mut taut_analysis::Chain| {
            let d = &mut chain.end_to_end.distribution;
            (d.p50_ns, d.p90_ns, d.p95_ns, d.p99_ns, d.max_ns) = (Some(p50), None, None, Some(300_000), Some(300_000));
            lateness(chain).replace('\u{202f}', " ")
        };
        let ends = "from publish.pre_read to follower.command_applied";
        assert_eq!(of(300_000, &mut chain), format!("Each of 868 messages took at most 300 µs {ends}."));
        assert_eq!(
            of(200_000, &mut chain),
            format!("Half of 868 messages took 200 µs or less {ends}, the slowest 300 µs.")
        );
    }

    #[test]
    fn the_headline_says_how_late_where_and_what_was_lost() {
        let text = headline(&sample::teleop());
        assert_eq!(
            text.replace('\u{202f}', " "),
            "Half of 868 messages took 2.43 ms or less from publish.pre_read to follower.command_applied, one in 100 over \
             11.0 ms. 61.0 % of the excess above p99 (time beyond typical messages) is waiting for the GIL (held by python/4243), \
             from sysstate.pre_callback to orch.cb_enter. Without waiting for the GIL, p99 is predicted at 4.90 ms (95 % interval 4.41 ms to 5.88 ms) instead of 11.0 ms. \
             2 151 of 3 021 messages were dropped (71.2 %), most for validator_timing_bug after \
             follower.command_pre_hardware_write. Next: give the loop a process of its own. Nothing passed camera.frame for \
             133 ms from 12.400 s on, where its median period would have had 3 messages; 5 are missing in its 4 gaps."
        );
    }
}
