//! What a recording lacks, by kind, and in words.

use std::fmt;

use taut_analysis::Analysis;
use taut_recording::{Ending, Lost, LostWhat};
use taut_report::words;

/// Of each kind, its name.
const KINDS: [(LostWhat, &str); 5] = [
    (LostWhat::Stamps, "stamp"),
    (LostWhat::Telemetry, "telemetry message"),
    (LostWhat::RosEvents, "ROS 2 event"),
    (LostWhat::KernelEvents, "kernel event"),
    (LostWhat::Samples, "stack sample"),
];

/// Counts of each kind, and whether that is an estimate.
#[derive(Clone, Debug, Default)]
pub struct Losses([(u64, bool); KINDS.len()]);

impl Losses {
    /// Of an ending; of these kinds some was not counted.
    pub fn of_ending(ending: &Ending, estimated: &[LostWhat]) -> Losses {
        let mut losses = Losses::default();
        for (what, count) in [
            (LostWhat::Stamps, ending.lost_stamps),
            (LostWhat::Telemetry, ending.lost_telemetry),
            (LostWhat::RosEvents, ending.lost_ros_events),
            (LostWhat::KernelEvents, ending.lost_kernel_events),
            (LostWhat::Samples, ending.lost_samples),
        ] {
            losses.add(what, count, estimated.contains(&what));
        }
        losses
    }

    /// What makes [`Analysis::has_loss`], damage apart.
    pub fn of_analysis(analysis: &Analysis) -> Losses {
        let (totals, mut losses) = (&analysis.totals, Losses::default());
        losses.add(LostWhat::Stamps, totals.lost_stamps, totals.lost_stamps_is_estimate);
        losses.add(LostWhat::Telemetry, totals.lost_telemetry, false);
        losses.add(LostWhat::RosEvents, totals.lost_ros_events, totals.lost_ros_events_is_estimate);
        losses.add(LostWhat::KernelEvents, totals.lost_kernel_events, totals.lost_kernel_events_is_estimate);
        losses.add(LostWhat::Samples, analysis.profile.as_ref().map_or(0, |profile| profile.lost), false);
        losses
    }

    /// Whether nothing was lost.
    pub fn is_none(&self) -> bool {
        self.0.iter().all(|(count, _)| *count == 0)
    }

    fn add(&mut self, what: LostWhat, count: u64, is_estimate: bool) {
        for ((kind, _), (sum, of_sum)) in KINDS.iter().zip(&mut self.0) {
            if *kind == what {
                // A counter in foreign memory may say anything.
                *sum = sum.saturating_add(count);
                *of_sum |= is_estimate;
            }
        }
    }
}

/// The sum of what recordings say.
impl<'a> FromIterator<&'a Lost> for Losses {
    fn from_iter<I: IntoIterator<Item = &'a Lost>>(all: I) -> Losses {
        let mut losses = Losses::default();
        all.into_iter().for_each(|lost| losses.add(lost.what, lost.count, lost.is_estimate));
        losses
    }
}

/// ", 5 stamps LOST" for each kind of which some was.
impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = KINDS.iter().zip(&self.0).filter(|(_, (count, _))| *count > 0);
        for ((_, thing), (count, is_estimate)) in lost {
            write!(f, ", {}", words::lost_things(*count, thing, *is_estimate))?;
        }
        Ok(())
    }
}
