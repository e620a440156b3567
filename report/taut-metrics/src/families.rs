//! The metrics: names, labels, values. One list for all forms.

use taut_live::{Chain, Hop, Spread, State};

/// One metric with all its series.
#[derive(Clone, Debug)]
pub struct Family {
    /// As Prometheus has it, without `_total`; OTLP has dots for the underscores, and no unit.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// "nanoseconds", or nothing.
    pub unit: &'static str,
    /// What it is, with its series.
    pub values: Values,
}

/// Labels of a series.
pub type Labels = Vec<(&'static str, String)>;

/// The series of a metric.
#[derive(Clone, Debug)]
pub enum Values {
    /// Only ever grows.
    Counter(Vec<(Labels, u64)>),
    /// Goes up and down.
    Gauge(Vec<(Labels, f64)>),
    /// Durations in nanoseconds.
    Histogram(Vec<(Labels, Spread)>),
}

impl Values {
    fn is_empty(&self) -> bool {
        match self {
            Values::Counter(series) => series.is_empty(),
            Values::Gauge(series) => series.is_empty(),
            Values::Histogram(series) => series.is_empty(),
        }
    }
}

/// All metrics of now. None while nothing is known yet.
pub fn families(state: &State) -> Vec<Family> {
    let Some(info) = &state.info else { return Vec::new() };
    let alone = |value: u64| Values::Counter(vec![(Vec::new(), value)]);
    let gauge = |value: f64| Values::Gauge(vec![(Vec::new(), value)]);
    let chains = || state.chains.iter();
    let per_chain = |value: &dyn Fn(&Chain) -> Option<u64>| {
        Values::Counter(chains().filter_map(|chain| Some((of_chain(chain), value(chain)?))).collect())
    };
    let lost = &state.lost;
    let lost = [
        ("stamps", lost.stamps),
        ("ros_events", lost.ros_events),
        ("kernel_events", lost.kernel_events),
        ("telemetry", lost.telemetry),
        ("stack_samples", lost.samples),
    ];
    let guard = state.guard.is_armed;
    let family = |name, unit, help, values| Family { name, help, unit, values };
    let mut families = vec![
        family(
            "taut_chain_latency_nanoseconds",
            "nanoseconds",
            "From a chain's first to its last point, of messages that passed both.",
            Values::Histogram(chains().map(|chain| (of_chain(chain), chain.total.way.clone())).collect()),
        ),
        family(
            "taut_hop_latency_nanoseconds",
            "nanoseconds",
            "From one point of a chain to the next, of messages that passed both.",
            Values::Histogram(chains().flat_map(hops).map(|(labels, hop)| (labels, hop.delay.clone())).collect()),
        ),
        family(
            "taut_hop_cause_nanoseconds",
            "nanoseconds",
            "Of a message's time on a hop, what it spent so; messages that spent none are not counted.",
            Values::Histogram(chains().flat_map(hops).flat_map(causes).collect()),
        ),
        family(
            "taut_messages",
            "",
            "Messages that ended, by outcome: applied, the reason of a drop, or unexplained.",
            Values::Counter(chains().flat_map(outcomes).collect()),
        ),
        family(
            "taut_deadline_missed",
            "",
            "Messages over the deadline that taut.toml declares.",
            per_chain(&|chain| chain.deadline_ns.map(|_| chain.total.missed)),
        ),
        family(
            "taut_partial_messages",
            "",
            "Applied messages that were not seen at both ends of their chain, and have no latency.",
            per_chain(&|chain| Some(chain.total.partial)),
        ),
        family("taut_stamps", "", "Stamps read.", alone(state.stamps)),
        family("taut_ros_events", "", "ROS 2 events read.", alone(state.ros_events)),
        family("taut_kernel_events", "", "Kernel events read.", alone(state.kernel_events)),
        family(
            "taut_lost",
            "",
            "What rings and kernel could not keep.",
            Values::Counter(lost.map(|(what, count)| (vec![("what", what.to_owned())], count)).into()),
        ),
        family(
            "taut_damaged_chunks",
            "",
            "Chunks of the recording that failed their checksum.",
            alone(state.damaged_chunks),
        ),
        family(
            "taut_guard_armed",
            "",
            "1 where a speed guard in the robot said that it is armed.",
            gauge(f64::from(u8::from(guard))),
        ),
        family(
            "taut_guard_trips",
            "",
            "How often the guard stopped the robot, or would have.",
            Values::Counter(guard.then(|| (Vec::new(), state.guard.trips)).into_iter().collect()),
        ),
        family(
            "taut_guard_false_trips",
            "",
            "Trips that the robot's true speed does not justify, where a simulation knows it.",
            Values::Counter(guard.then(|| (Vec::new(), state.guard.false_trips)).into_iter().collect()),
        ),
        family(
            "taut_recording_info",
            "",
            "Always 1; what is recorded how.",
            Values::Gauge(vec![(
                vec![
                    ("host", info.host.clone()),
                    ("kernel_source", info.kernel_source.clone()),
                    ("tier", info.tier.word().to_owned()),
                    ("version", info.taut_version.clone()),
                ],
                1.0,
            )]),
        ),
    ];
    families.retain(|family| !family.values.is_empty());
    families
}

fn of_chain(chain: &Chain) -> Labels {
    vec![("chain", chain.name.clone())]
}

fn hops(chain: &Chain) -> impl Iterator<Item = (Labels, &Hop)> {
    let ends = chain.points.windows(2).zip(&chain.total.hops);
    ends.map(|(ends, hop)| {
        (vec![("chain", chain.name.clone()), ("from", ends[0].clone()), ("to", ends[1].clone())], hop)
    })
}

fn causes((labels, hop): (Labels, &Hop)) -> impl Iterator<Item = (Labels, Spread)> {
    hop.causes.iter().map(move |(cause, spread)| {
        let labels = labels.iter().cloned().chain([("cause", cause.word().to_owned())]).collect();
        (labels, spread.clone())
    })
}

fn outcomes(chain: &Chain) -> impl Iterator<Item = (Labels, u64)> {
    chain
        .total
        .outcomes
        .iter()
        .map(|(outcome, count)| (vec![("chain", chain.name.clone()), ("outcome", outcome.clone())], *count))
}
