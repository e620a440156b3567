//! Sentences that a reader must know to trust the figures.

use taut_points::architectures;
use taut_recording::{Ending, Info};

use crate::{
    line::ChainLine,
    messages::Messages,
    result::{Chain, Hop, Totals},
};

/// Hops that messages seem to take backwards.
pub(crate) fn of_chain(chain: &Chain) -> impl Iterator<Item = String> + '_ {
    chain.hops.iter().filter(|hop| hop.inverted > 0).map(|hop| {
        format!(
            "{} messages reached {} before {}, by up to {:.3} ms, and count as 0 ns there: they took another way, two \
             chains use the same ids at once, or a clock is wrong",
            hop.inverted,
            hop.to,
            hop.from,
            hop.inverted_max_ns as f64 / 1e6
        )
    })
}

/// Of each hop between two hosts, how far its level is known.
pub(crate) fn between_hosts(info: &Info, chains: &[Chain]) -> Vec<String> {
    let us = |ns: u64| format!("{:.0} µs", ns as f64 / 1e3);
    let sentence = |hop: &Hop| {
        let (between, p50_ns) = (hop.between_hosts(info)?, hop.delay.distribution.p50_ns?);
        let known = match (between.bound_ns, info.clocks("from", &between.from, &between.to)) {
            (Some(0), _) => return None,
            (Some(bound_ns), _) => format!(
                "p50 {}, between {} and {}: the clocks' offset is known to ± {}. What a message exceeds another by is wrong by at most \
                 twice that, and by less while the fastest way takes the same time",
                us(p50_ns),
                us(p50_ns.saturating_sub(bound_ns)),
                us(p50_ns + bound_ns),
                us(bound_ns)
            ),
            (None, "CLOCK_REALTIME") => format!("p50 {}, as far as CLOCK_REALTIME of both hosts agrees", us(p50_ns)),
            (None, _) => format!("p50 {} above the fastest message; the level is not known", us(p50_ns)),
        };
        Some(format!("{} → {}: {known}", hop.from, hop.to))
    };
    let mut sentences: Vec<String> = chains.iter().flat_map(|chain| &chain.hops).filter_map(sentence).collect();
    sentences.sort();
    sentences.dedup();
    sentences
}

fn about(count: u64, is_estimate: bool) -> String {
    if is_estimate { format!("about {count}") } else { count.to_string() }
}

/// Sentences that a reader must know to trust the figures.
pub(crate) fn of_recording(
    info: &Info,
    ending: Option<&Ending>,
    totals: &Totals,
    messages: &Messages,
    lines: &[ChainLine],
) -> Vec<String> {
    let mut notes = Vec::new();
    if totals.lost_stamps > 0 {
        let lost = about(totals.lost_stamps, totals.lost_stamps_is_estimate);
        // What damage took, a larger ring would not have kept.
        let remedy = if totals.lost_stamps_is_estimate { "" } else { "; record with a larger --ring-records" };
        notes.push(format!(
            "{lost} stamps were lost: messages of which the next stamp may be among them have no known end, and what \
             their threads did then is unknown{remedy}"
        ));
    }
    if totals.lost_ros_events > 0 {
        let lost = about(totals.lost_ros_events, totals.lost_ros_events_is_estimate);
        notes.push(format!("{lost} ROS 2 events were lost: messages may look lost that were not"));
    }
    if totals.lost_kernel_events > 0 {
        let lost = about(totals.lost_kernel_events, totals.lost_kernel_events_is_estimate);
        let stretches = match totals.lost_kernel_stretches {
            0 => String::new(),
            n => format!(
                " in {n} {} of {:.1} ms at most together ({:.1} % of the recording)",
                if n == 1 { "stretch" } else { "stretches" },
                totals.lost_kernel_ns as f64 / 1e6,
                totals.lost_kernel_ns as f64 / 1e7 / totals.duration_s.max(1e-9)
            ),
        };
        notes.push(format!("{lost} kernel events were lost{stretches}: what happened then is unknown"));
    }
    if totals.lost_telemetry > 0 {
        notes.push(format!(
            "{} telemetry messages were lost: their ring was full, or could not be had or read; gaps in their sequence numbers show where",
            totals.lost_telemetry
        ));
    }
    if !info.tier_reason.is_empty() {
        notes.push(info.tier_reason.clone());
    }
    if totals.kernel_events > 0 && architectures(info).contains(&None) {
        notes.push(format!(
            "the system calls have the numbers of {:?}, which this taut does not know: waits in them are unknown",
            info.system_calls
        ));
    }
    if totals.clock_error_ns.is_none() {
        notes.push("a counter has fewer than two calibrations, so its stamps have no time and are missing".to_owned());
    }
    if ending.is_none() {
        notes.push("the recorder was killed: this is what it had written until then".to_owned());
    }
    if messages.repeats > 0 {
        notes.push(format!(
            "{} stamps repeated a point that their message had passed before; the first pass counts",
            messages.repeats
        ));
    }
    if messages.split > 0 {
        notes.push(format!(
            "{} times a message id began again at its first point: each counts as a separate message",
            messages.split
        ));
    }
    if messages.unclear > 0 {
        notes.push(format!(
            "{} messages are left out: their id was used again while it was under way, and whose passes are whose is not known",
            messages.unclear
        ));
    }
    if messages.outcomes_only > 0 {
        notes.push(format!("{} outcomes were given to messages that were never stamped", messages.outcomes_only));
    }
    if lines.is_empty() && totals.stamps + totals.ros_events > 0 {
        notes.push("no message passed two points, so there is no chain".to_owned());
    }
    notes
}
