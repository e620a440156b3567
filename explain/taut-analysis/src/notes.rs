//! Sentences that a reader must know to trust the figures.

use taut_points::architecture;
use taut_recording::{Ending, Info};

use crate::{
    line::ChainLine,
    messages::Messages,
    result::{Chain, Totals},
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
        notes.push(format!("{lost} kernel events were lost: what happened then is unknown"));
    }
    if totals.lost_telemetry > 0 {
        notes.push(format!(
            "{} telemetry messages were lost because the recorder could not keep up; gaps in their sequence numbers show where",
            totals.lost_telemetry
        ));
    }
    if !info.tier_reason.is_empty() {
        notes.push(info.tier_reason.clone());
    }
    if totals.kernel_events > 0 && architecture(info).is_none() {
        notes.push(format!(
            "the system calls have the numbers of {:?}, which this taut does not know: waits in them are unknown",
            info.system_calls
        ));
    }
    if totals.clock_error_ns.is_none() {
        notes.push(
            "the stamps' counter has fewer than two calibrations, so durations are in ticks of that counter taken as ns"
                .to_owned(),
        );
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
    if messages.outcomes_only > 0 {
        notes.push(format!("{} outcomes were given to messages that were never stamped", messages.outcomes_only));
    }
    if lines.is_empty() && totals.stamps + totals.ros_events > 0 {
        notes.push("no message passed two points, so there is no chain".to_owned());
    }
    notes
}
