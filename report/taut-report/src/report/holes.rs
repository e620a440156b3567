//! Whether the finding stands where data were lost.

use taut_analysis::{Analysis, Cause, Chain, Explained, Loop};
use taut_document::{Finding, Tone};

use crate::{
    loops,
    words::{count, percent, quantity},
};

/// What the finding rests on; nothing where no events were lost, or there is no finding.
pub(super) fn finding(analysis: &Analysis) -> Option<Finding> {
    let totals = &analysis.totals;
    let is_whole = totals.lost_stamps + totals.lost_ros_events + totals.lost_kernel_events == 0;
    if is_whole && analysis.damage.is_empty() {
        return None;
    }
    let main = analysis.loops.first().filter(|_| loops::is_unmodified(analysis));
    let (tone, label, text) = match main {
        Some(of) => of_loop(of),
        None => of_chain(analysis.chains.first()?)?,
    };
    Some(Finding { tone, label: label.into(), text: text.into(), ..Finding::default() })
}

fn of_chain(chain: &Chain) -> Option<(Tone, &'static str, String)> {
    let explained = &chain.explained;
    let (all, hidden) = (explained.tail_messages, explained.tail_in_holes);
    if all == 0 {
        return None;
    }
    let without_end = match chain.outcomes.lost {
        0 => String::new(),
        n => format!(
            " {} of all {} messages have no known end, since stamps were lost; no latency counts them.",
            count(n),
            count(chain.messages)
        ),
    };
    let of_tail = format!("of the {} that the finding is about", quantity(all, "late message"));
    let (tone, label, text) = match hidden {
        0 => (Tone::Good, "finding stands", format!("None {of_tail} lies in or next to a hole of the recording.")),
        // Of what is left most is known.
        _ if hidden * 2 <= all => {
            let rest = count(all - hidden);
            let text = format!(
                "{} {of_tail} lie in or next to holes of the recording, and what they waited for there is `unknown`; the \
                 causes rest on the other {rest}.{}",
                count(hidden),
                open_order(explained).unwrap_or_default()
            );
            (Tone::Undecided, "finding stands in part", text)
        }
        _ => {
            let text = format!(
                "{} {of_tail} lie in or next to holes of the recording, and what they waited for there is `unknown`: too \
                 little is left for a finding on causes. Record again.",
                count(hidden)
            );
            (Tone::Bad, "no finding", text)
        }
    };
    Some((tone, label, text + &without_end))
}

/// Whether what is unknown may be enough for the second cause to be the first.
fn open_order(explained: &Explained) -> Option<String> {
    let unknown = explained.by_cause.iter().find(|of| of.cause == Cause::Unknown)?.tail_share;
    let mut known = explained.by_cause.iter().filter(|of| of.cause != Cause::Unknown);
    let (first, second) = (known.next()?, known.next()?);
    (first.tail_share - second.tail_share <= unknown).then(|| {
        format!(
            " Which of {} and {} is larger is open: {} of the excess is `unknown`.",
            first.cause.word(),
            second.cause.word(),
            percent(unknown)
        )
    })
}

fn of_loop(of: &Loop) -> (Tone, &'static str, String) {
    let all = of.activations + of.left_out;
    let of_all = format!("of the {} of {}", quantity(all, "activation"), of.name);
    if of.left_out == 0 {
        return (Tone::Good, "finding stands", format!("None {of_all} lies in or next to a hole of the recording."));
    }
    let text = format!("{} {of_all} lie in or next to holes of the recording and are left out;", count(of.left_out));
    if of.left_out <= of.activations {
        (
            Tone::Undecided,
            "finding stands in part",
            format!("{text} the figures rest on the other {}.", count(of.activations)),
        )
    } else {
        (Tone::Bad, "no finding", format!("{text} too little is left for a finding. Record again."))
    }
}

#[cfg(test)]
mod tests {
    use taut_analysis::CauseShare;

    use super::*;
    use crate::sample;

    fn said(hidden: u64, without_end: u64) -> Option<(String, String)> {
        let mut analysis = sample::teleop();
        analysis.damage = vec!["a chunk at byte 4096 fails its checksum".into()];
        analysis.chains[0].explained.tail_in_holes = hidden;
        analysis.chains[0].outcomes.lost = without_end;
        finding(&analysis).map(|found| (found.label, found.text.plain().replace('\u{202f}', " ")))
    }

    #[test]
    fn what_a_finding_rests_on_is_said_where_data_were_lost() {
        let [(whole, of_whole), (part, of_part), (none, of_none)] =
            [(0, 0), (3, 12), (8, 0)].map(|(hidden, lost)| said(hidden, lost).expect("a damaged recording"));
        assert_eq!([whole, part, none], ["finding stands", "finding stands in part", "no finding"]);
        assert!(of_whole.starts_with("None of the 9 late messages"), "{of_whole}");
        assert!(
            of_part.starts_with("3 of the 9 late messages") && of_part.contains("the causes rest on the other 6"),
            "{of_part}"
        );
        assert!(of_part.contains("12 of all 3 021 messages have no known end"), "{of_part}");
        assert!(of_none.contains("too little is left"), "{of_none}");
    }

    #[test]
    fn what_is_unknown_may_leave_the_order_of_two_causes_open() {
        let mut explained = sample::teleop().chains.remove(0).explained;
        assert_eq!(open_order(&explained), None, "nothing is unknown");
        let share = |cause, tail_share| CauseShare { cause, tail_share, ..CauseShare::default() };
        let mut of = |shares: [(Cause, f64); 3]| {
            explained.by_cause = shares.map(|(cause, part)| share(cause, part)).to_vec();
            open_order(&explained)
        };
        let open = of([(Cause::Wakeup, 0.401), (Cause::Gil, 0.383), (Cause::Unknown, 0.035)]).unwrap();
        assert_eq!(open, " Which of wakeup and gil is larger is open: 3.5 % of the excess is `unknown`.");
        assert_eq!(of([(Cause::Wakeup, 0.6), (Cause::Gil, 0.3), (Cause::Unknown, 0.1)]), None);
    }

    #[test]
    fn of_a_whole_recording_nothing_is_said() {
        let mut analysis = sample::teleop();
        analysis.damage.clear();
        (analysis.totals.lost_stamps, analysis.totals.lost_kernel_events, analysis.totals.lost_ros_events) = (0, 0, 0);
        assert_eq!(finding(&analysis), None);
    }

    #[test]
    fn activations_next_to_holes_are_counted() {
        let of = |activations, left_out| of_loop(&Loop { activations, left_out, ..Loop::default() });
        let labels = [of(10, 0), of(10, 3), of(3, 10)].map(|(_, label, _)| label);
        assert_eq!(labels, ["finding stands", "finding stands in part", "no finding"]);
        assert!(of(10, 3).2.ends_with("the figures rest on the other 10."));
    }
}
