//! What a gate can find on this machine: how far the baseline differs from itself, and the smallest change that is
//! found.

use serde::Serialize;
use taut_stats::compare::{InvalidReason, Metric, Scale, Verdict, noise_floor, smallest_detectable};

use crate::{Gated, Most, Settings, Subject, Trial, gate::metric};

/// Draws of the rehearsed gates.
const SEED: u64 = 1;

/// The noise of one figure that votes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Noise {
    /// The figure.
    #[serde(flatten)]
    pub subject: Subject,
    /// Pairs of A with itself.
    pub pairs: usize,
    /// Noise of one such pair: 0.03 is 3 % for times; in the figure's unit for shares.
    pub of_pair: Option<f64>,
    /// The smallest change for the worse that this gate finds with a chance of 0.9, confirmation included.
    pub smallest: Option<f64>,
    /// Why A cannot be compared with itself.
    pub unfit: Option<InvalidReason>,
}

/// The noise floor of every figure that voted.
///
/// `control`: pairs of the baseline with itself, run as pairs of A and B are. Without any, A's trials of neighbouring
/// pairs stand for them: these lay further apart, so they are noisier rather than quieter than pairs. `most`: what a gate
/// like this can come to, on which depends what it finds.
pub fn noise(settings: &Settings, gated: &Gated, control: &[(Trial, Trial)], most: Most) -> Vec<Noise> {
    let halves: Vec<(Trial, Trial)>;
    let pairs = if control.is_empty() {
        halves = own_halves(gated);
        halves.as_slice()
    } else {
        control
    };
    let ballots = &gated.outcome.ballots;
    let valid = ballots.iter().filter(|b| !matches!(b.finding.verdict, Verdict::Invalid { .. })).count();
    let of = |subject: Subject| {
        let with_itself = metric(settings.rule(subject), subject, pairs);
        let floor = noise_floor(&settings.plan, &with_itself, valid, SEED);
        let floor_noise = floor.as_ref().ok().and_then(|floor| floor.noise);
        Noise {
            subject,
            pairs: with_itself.pairs.iter().flatten().count(),
            of_pair: floor_noise,
            smallest: smallest(settings, gated, subject, valid, most),
            unfit: floor.err().filter(|_| !control.is_empty()),
        }
    };
    ballots.iter().map(|ballot| of(ballot.subject)).collect()
}

/// (A of one pair, A of the next), which of them is "A" by turns, so that a drift is no difference.
fn own_halves(gated: &Gated) -> Vec<(Trial, Trial)> {
    let all: Vec<&Trial> = gated.pairs.iter().chain(&gated.fresh).map(|(a, _)| a).collect();
    let two = |(at, two): (usize, &[&Trial])| match at % 2 {
        0 => (two[0].clone(), two[1].clone()),
        _ => (two[1].clone(), two[0].clone()),
    };
    all.chunks_exact(2).enumerate().map(two).collect()
}

/// From the noise of the pairs themselves, their change taken out: there are most of them.
fn smallest(settings: &Settings, gated: &Gated, subject: Subject, metrics: usize, most: Most) -> Option<f64> {
    let rule = settings.rule(subject);
    let all: Vec<(Trial, Trial)> = gated.pairs.iter().chain(&gated.fresh).cloned().collect();
    let Metric { pairs, .. } = metric(rule, subject, &all);
    let complete: Vec<_> = pairs.into_iter().flatten().collect();
    let differences: Vec<f64> = complete.iter().map(|pair| rule.scale.difference(*pair)).collect();
    let estimate = rule.scale.shift(&differences)?.estimate();
    let noise: Vec<f64> = differences.iter().map(|d| d - estimate).collect();
    let margin = rule.minimum_effect.on(rule.scale, &complete);
    let most = (most.accuse, most.confirm);
    let mut messages: Vec<u64> = all.iter().map(|(_, b)| b.messages).filter(|messages| *messages > 0).collect();
    messages.sort_unstable();
    let message = messages.get(messages.len() / 2).map(|messages| 1.0 / *messages as f64);
    let message = message.filter(|_| rule.scale == Scale::Share);
    let found = smallest_detectable(&settings.plan, most, margin, (&noise, message), metrics, SEED);
    found.map(|shift| rule.scale.change(shift))
}
