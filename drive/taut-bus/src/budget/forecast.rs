//! Forward: from a budget to its cycle, by mean terms and by Monte-Carlo over their jitter.

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::Distribution;

use super::{
    draw::{draw, nanoseconds},
    file::CycleBudget,
    load::{Lane, Load, lanes},
    sampling::{Sampling, cycle},
};

/// What a budget comes to.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// Every lane at its mean.
    pub lanes: Vec<Lane>,
    /// Per lane: how busy.
    pub usage: Vec<Usage>,
    /// Index of the parallel lane that decides the cycle, if there is a parallel one.
    pub critical: Option<usize>,
    /// The cycle with every term at its mean: serial lanes and the longest parallel one, µs.
    pub cycle_us: f64,
    /// Terms with what they add to the cycle, most first.
    pub costs: Vec<Cost>,
    /// Drawn cycles.
    pub distribution: Distribution,
    /// Drawn cycles as bars: (from ns, to ns, cycles).
    pub histogram: Vec<(u64, u64, u64)>,
    /// How the cycles were drawn.
    pub sampling: Sampling,
    /// Drawn cycles that were longer than the target's period.
    pub misses: Option<Misses>,
    /// Whether anything varies; if not, every drawn cycle is the mean.
    pub varies: bool,
}

/// How busy a lane is.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// When it begins, µs into the cycle: serial lanes one after the other, then the parallel ones together.
    pub start_us: f64,
    /// Mean a cycle, µs.
    pub busy_us: f64,
    /// 99th percentile over the drawn cycles, µs.
    pub busy_p99_us: Option<f64>,
    /// Share of the period (without a target: of the cycle).
    pub utilisation: f64,
    /// How much longer it may work, on average, before the period (without a target: the cycle) grows, µs; below 0 it
    /// is already too long.
    pub slack_us: f64,
}

/// What a term adds to the cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Index of the term.
    pub term: usize,
    /// Times a cycle, on the lane that decides.
    pub count: u32,
    /// Mean each time, µs.
    pub each_us: f64,
    /// On the lane that decides, µs a cycle.
    pub total_us: f64,
    /// Whether another lane hides it.
    pub hidden: bool,
}

/// Cycles longer than the period.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Misses {
    /// The period, µs.
    pub period_us: f64,
    /// Drawn cycles beyond it.
    pub missed: u64,
    /// Drawn cycles.
    pub of: u64,
    /// Upper end of the 95 % interval of the probability (Wilson 1927; without a miss 3/n, Hanley & Lippman-Hand 1983).
    pub probability_at_most: f64,
}

/// The cycle of a budget.
pub fn forecast(budget: &CycleBudget, sampling: Sampling) -> Forecast {
    let lanes = lanes(budget);
    let busy: Vec<f64> = lanes.iter().map(Lane::busy_us).collect();
    let cycle_us = cycle(&lanes, &busy);
    let critical = critical(&lanes, &busy);
    let drawn = draw(budget, &lanes, sampling);
    let window_us = budget.period_us().unwrap_or(cycle_us);
    let serial_us: f64 = lanes.iter().zip(&busy).filter(|(lane, _)| !lane.parallel).map(|(_, us)| us).sum();
    let mut serial_before_us = 0.0;
    let mut start_us = |lane: &Lane, busy_us: f64| {
        let ends_us: f64 = serial_before_us + busy_us;
        if lane.parallel { serial_us } else { std::mem::replace(&mut serial_before_us, ends_us) }
    };
    let usage = lanes.iter().zip(&busy).enumerate().map(|(at, (lane, busy_us))| Usage {
        start_us: start_us(lane, *busy_us),
        busy_us: *busy_us,
        busy_p99_us: p99(&drawn.lanes[at]),
        utilisation: if window_us > 0.0 { busy_us / window_us } else { 0.0 },
        slack_us: if lane.parallel { window_us - serial_us - busy_us } else { window_us - cycle_us },
    });
    let mut sorted = drawn.cycles.clone();
    sorted.sort_unstable();
    Forecast {
        usage: usage.collect(),
        costs: costs(budget, &lanes, critical),
        distribution: Distribution::of(&drawn.cycles, &sorted),
        histogram: taut_stats::histogram(&sorted),
        misses: budget.period_us().map(|period_us| misses(&sorted, period_us)),
        varies: sorted.first() != sorted.last(),
        lanes,
        critical,
        cycle_us,
        sampling,
    }
}

/// The cycle with every term at its mean, µs.
pub(crate) fn mean_cycle_us(budget: &CycleBudget) -> f64 {
    let lanes = lanes(budget);
    let busy: Vec<f64> = lanes.iter().map(Lane::busy_us).collect();
    cycle(&lanes, &busy)
}

pub(crate) fn critical(lanes: &[Lane], busy: &[f64]) -> Option<usize> {
    (0..lanes.len()).filter(|at| lanes[*at].parallel).max_by(|a, b| busy[*a].total_cmp(&busy[*b]))
}

/// Each term on the lane that decides; one on no such lane on the lane where it costs most.
fn costs(budget: &CycleBudget, lanes: &[Lane], critical: Option<usize>) -> Vec<Cost> {
    let decides = |at: usize| !lanes[at].parallel || critical == Some(at);
    let mut costs = Vec::new();
    for term in 0..budget.terms.len() {
        let on = |at: usize| lanes[at].loads.iter().filter(|load| load.term == term).map(Load::total_us).sum::<f64>();
        let carries = |at: &usize| lanes[*at].loads.iter().any(|load| load.term == term);
        let heaviest = (0..lanes.len()).filter(carries).max_by(|a, b| {
            (decides(*a), on(*a)).partial_cmp(&(decides(*b), on(*b))).unwrap_or(std::cmp::Ordering::Equal)
        });
        let Some(at) = heaviest else { continue };
        let count: u32 = lanes[at].loads.iter().filter(|load| load.term == term).map(|load| load.count).sum();
        let total_us = on(at);
        costs.push(Cost { term, count, each_us: total_us / f64::from(count.max(1)), total_us, hidden: !decides(at) });
    }
    costs.sort_by(|a, b| a.hidden.cmp(&b.hidden).then(b.total_us.total_cmp(&a.total_us)));
    costs
}

fn p99(ns: &[u64]) -> Option<f64> {
    let mut sorted = ns.to_vec();
    sorted.sort_unstable();
    Distribution::of(ns, &sorted).p99_ns.map(|ns| ns as f64 / 1e3)
}

fn misses(sorted: &[u64], period_us: f64) -> Misses {
    let period_ns = nanoseconds(period_us);
    let missed = (sorted.len() - sorted.partition_point(|ns| *ns <= period_ns)) as u64;
    Misses { period_us, missed, of: sorted.len() as u64, probability_at_most: at_most(missed, sorted.len() as u64) }
}

fn at_most(missed: u64, of: u64) -> f64 {
    /// The standard normal's 97.5th percentile.
    const Z: f64 = 1.959_963_984_540_054;
    let (k, n) = (missed as f64, of as f64);
    match (missed, of) {
        (_, 0) => 1.0,
        (0, _) => (3.0 / n).min(1.0),
        _ => {
            let p = k / n;
            let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
            ((p + Z * Z / (2.0 * n) + half) / (1.0 + Z * Z / n)).min(1.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAMPLING: Sampling = Sampling { cycles: 4000, seed: 7 };

    fn budget(text: &str) -> CycleBudget {
        CycleBudget::parse(text, &[]).unwrap()
    }

    const TWO_LANES: &str = "title = 't'\ntarget_hz = 1000\n[servos]\ncount = 4\n\
        [[resource]]\nname = 'host'\n[[resource]]\nname = 'a'\nparallel = true\n[[resource]]\nname = 'b'\nparallel = true\nbuses = 2\n\
        [[term]]\nname = 'control'\nstage = 'control-compute'\nresource = 'host'\nus = 100\n\
        [[term]]\nname = 'send'\nstage = 'spi'\nresource = 'a'\nper = 'servo'\nus = 50\n\
        [[term]]\nname = 'turn'\nstage = 'servo-turnaround'\nresource = 'b'\nper = 'servo'\nus = 70\n";

    #[test]
    fn serial_terms_add_up_and_the_longest_parallel_lane_decides() {
        let forecast = forecast(&budget(TWO_LANES), SAMPLING);
        assert_eq!(forecast.cycle_us, 100.0 + 200.0, "host, then a: 4 × 50; b has 2 × 70 on each bus");
        assert_eq!(forecast.critical, Some(1));
        assert!(!forecast.varies && forecast.distribution.max_ns == Some(300_000));
        let hidden: Vec<bool> = forecast.costs.iter().map(|cost| cost.hidden).collect();
        assert_eq!(hidden, [false, false, true]);
        let slack: Vec<f64> = forecast.usage.iter().map(|usage| usage.slack_us).collect();
        assert_eq!(slack, [700.0, 700.0, 760.0, 760.0], "to the period of 1000 µs");
        assert_eq!(forecast.usage[2].utilisation, 0.14);
        assert_eq!(forecast.misses.unwrap().missed, 0);
    }

    #[test]
    fn without_a_target_slack_is_towards_the_cycle() {
        let forecast = forecast(&budget(&TWO_LANES.replace("target_hz = 1000", "")), SAMPLING);
        let slack: Vec<f64> = forecast.usage.iter().map(|usage| usage.slack_us).collect();
        assert_eq!(slack, [0.0, 0.0, 60.0, 60.0]);
    }

    #[test]
    fn the_same_seed_draws_the_same_cycles() {
        let text = TWO_LANES.replace("us = 50", "us = 50\njitter = { normal = { sd_us = 20 } }");
        let drawn = |seed| forecast(&budget(&text), Sampling { seed, ..SAMPLING }).distribution;
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }

    #[test]
    fn drawn_cycles_agree_with_the_mean_where_one_lane_decides() {
        let text = TWO_LANES.replace("us = 50", "us = 50\njitter = { lognormal = { median_us = 5, p99_us = 30 } }");
        let forecast = forecast(&budget(&text), Sampling { cycles: 50_000, seed: 3 });
        let mean_us = forecast.distribution.mean_ns.unwrap() / 1e3;
        assert!((mean_us - forecast.cycle_us).abs() < 0.5, "{mean_us} for {}", forecast.cycle_us);
    }

    #[test]
    fn lost_replies_cost_their_timeout_with_their_probability() {
        let text = TWO_LANES.replace("us = 100", "timeout_us = 1000\nloss = 0.1");
        let forecast = forecast(&budget(&text), Sampling { cycles: 50_000, seed: 3 });
        assert_eq!(forecast.cycle_us, 300.0);
        let misses = forecast.misses.unwrap();
        let share = misses.missed as f64 / misses.of as f64;
        assert!((share - 0.1).abs() < 0.01 && misses.probability_at_most > share && misses.probability_at_most < 0.12);
    }

    #[test]
    fn the_bound_on_a_probability() {
        assert_eq!(at_most(0, 3000), 0.001);
        // Wilson's interval for 10 of 100 ends at 0.1744.
        assert!((at_most(10, 100) - 0.1744).abs() < 1e-4);
        assert_eq!(at_most(0, 0), 1.0);
    }

    #[test]
    fn random_stuffing_has_the_mean_that_is_promised() {
        let text = "title = 't'\n[servos]\ncount = 1\n[can]\nnominal_hz = 1e6\ndata_hz = 5e6\nstuffing = 'random'\n\
            [[resource]]\nname = 'can'\n[[term]]\nname = 'frame'\nstage = 'can'\ncan = 64\nid = 'extended'\n";
        let forecast = forecast(&budget(text), Sampling { cycles: 20_000, seed: 3 });
        let mean_us = forecast.distribution.mean_ns.unwrap() / 1e3;
        // 158 µs, the id's own stuff bits at 1 µs each, and one in 30 of the data at 0.2.
        assert!(forecast.varies && (mean_us - forecast.cycle_us).abs() < 0.3, "{mean_us} for {}", forecast.cycle_us);
        let worst = 192.0;
        assert!(forecast.distribution.max_ns.unwrap() as f64 / 1e3 <= worst);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn more_servos_are_never_faster(count in 1u32..60, buses in 1u32..6, us in 0.0..500.0, spi in 0u32..64) {
            let text = |count: u32| format!(
                "title = 't'\n[servos]\ncount = {count}\n[can]\nnominal_hz = 1e6\ndata_hz = 5e6\n[spi]\nclock_hz = 1e7\nhold_us = 3.0\n\
                [[resource]]\nname = 'host'\n[[resource]]\nname = 'spi'\nparallel = true\n[[resource]]\nname = 'can'\nparallel = true\nbuses = {buses}\n\
                [[term]]\nname = 'w'\nstage = 'spi'\nresource = 'spi'\nper = 'servo'\nspi = {spi}\n\
                [[term]]\nname = 'c'\nstage = 'can'\nresource = 'can'\nper = 'servo'\ncan = 16\nid = 'reply'\n\
                [[term]]\nname = 'p'\nstage = 'parse'\nresource = 'host'\nper = 'servo'\nus = {us:.3}\n");
            let cycle = |count| mean_cycle_us(&budget(&text(count)));
            prop_assert!(cycle(count + 1) >= cycle(count) - 1e-9);
        }

        #[test]
        fn more_bytes_are_never_faster_and_more_bits_a_second_never_slower(bytes in 0u32..60, baud in 1e5..1e7) {
            let text = |bytes: u32, baud: f64| format!(
                "title = 't'\n[servos]\ncount = 12\n[rs485]\nbaud = {baud:.1}\n[[resource]]\nname = 'bus'\n\
                [[term]]\nname = 'c'\nstage = 'host-wire'\nper = 'servo'\nrs485 = {bytes}\n");
            let cycle = |bytes, baud| mean_cycle_us(&budget(&text(bytes, baud)));
            prop_assert!(cycle(bytes + 1, baud) > cycle(bytes, baud));
            prop_assert!(cycle(bytes, baud * 1.1) < cycle(bytes, baud));
        }
    }
}
