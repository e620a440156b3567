//! Changes that only the program itself can make: named with their predicted gain, and not tried.

use schemars::JsonSchema;
use serde::Serialize;
use taut_analysis::{Cause, Chain};

/// Causes that settings outside the program do not answer.
const WITHIN: [&str; 9] = ["cpu", "lock", "gil", "io", "queued", "executor", "partner", "sleep", "disk"];
/// A hop or cause with a smaller share of the excess is not named.
const SHARE_MIN: f64 = 0.05;

/// Where the time is that only the program can change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Within {
    /// The cause, as in predictions: "lock:sdk_lock", "io".
    pub against: String,
    /// The hop that has most of it: "from → to"; empty where the recording does not say.
    pub hop: String,
    /// Share of the excess of the tail.
    #[serde(rename = "tail_share")]
    pub share: f64,
    /// What was seen.
    pub evidence: String,
    /// What to do.
    pub advice: String,
    /// Predicted change of the tail.
    #[serde(rename = "predicted_gain")]
    pub gain: f64,
}

/// The largest predicted gain first.
pub fn within(chain: &Chain) -> Vec<Within> {
    let explained = &chain.explained;
    let mut found: Vec<Within> = Vec::new();
    for recommendation in &explained.recommendations {
        let word = recommendation.against.split(':').next().unwrap_or_default();
        if !WITHIN.contains(&word) {
            continue;
        }
        let Some(cause) = Cause::from_word(word) else { continue };
        let share = explained.by_cause.iter().find(|one| one.cause == cause).map_or(0.0, |one| one.tail_share);
        found.push(Within {
            against: recommendation.against.clone(),
            hop: hop(chain, cause),
            share,
            evidence: recommendation.evidence.clone(),
            advice: recommendation.remedy.clone(),
            gain: recommendation.gain,
        });
    }
    let is_known = |one: &taut_analysis::CauseShare| one.cause != Cause::Unknown && one.tail_share >= SHARE_MIN;
    if found.is_empty() && !explained.by_cause.iter().any(is_known) {
        found.extend(largest_hop(chain));
    }
    found
}

/// The hop in which most of a cause's excess lies.
fn hop(chain: &Chain, cause: Cause) -> String {
    let of = |shares: &Vec<taut_analysis::CauseShare>| -> f64 {
        shares.iter().filter(|share| share.cause == cause).map(|share| share.tail_share).sum()
    };
    let most = chain.explained.hops.iter().enumerate().max_by(|a, b| of(a.1).total_cmp(&of(b.1)));
    let at = most.filter(|(_, shares)| of(shares) > 0.0).map(|(at, _)| at);
    at.and_then(|at| chain.hops.get(at)).map_or(String::new(), |hop| format!("{} → {}", hop.from, hop.to))
}

/// Where no cause can be named: the hop that the tail's excess lies in.
fn largest_hop(chain: &Chain) -> Option<Within> {
    let share = |hop: &&taut_analysis::Hop| hop.tail_share.unwrap_or(0.0);
    let hop = chain.hops.iter().max_by(|a, b| share(a).total_cmp(&share(b))).filter(|hop| share(hop) >= SHARE_MIN)?;
    Some(Within { hop: format!("{} → {}", hop.from, hop.to), share: share(&hop), ..Within::default() })
}

#[cfg(test)]
mod tests {
    use taut_analysis::{CauseShare, Explained, Hop, Recommendation};

    use super::*;

    #[test]
    fn a_lock_is_named_with_its_hop_and_a_quota_is_not() {
        let share = |cause, tail_share| CauseShare { cause, tail_share, ..CauseShare::default() };
        let recommendation =
            |against: &str, gain| Recommendation { against: against.into(), gain, ..Recommendation::default() };
        let hop = |from: &str, to: &str, tail_share| Hop {
            from: from.into(),
            to: to.into(),
            tail_share: Some(tail_share),
            ..Hop::default()
        };
        let explained = Explained {
            recommendations: vec![recommendation("throttled", 0.5), recommendation("lock:sdk", 0.3)],
            by_cause: vec![share(Cause::Lock, 0.4)],
            hops: vec![vec![], vec![share(Cause::Lock, 0.4)]],
            ..Explained::default()
        };
        let hops = vec![hop("a", "b", 0.9), hop("b", "c", 0.1)];
        let mut chain = Chain { hops, explained, ..Chain::default() };
        let found = within(&chain);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].against.as_str(), found[0].hop.as_str(), found[0].gain), ("lock:sdk", "b → c", 0.3));
        chain.explained.recommendations.clear();
        assert!(within(&chain).is_empty(), "a cause is known, and it is not the program's");
        chain.explained.by_cause.clear();
        assert_eq!(within(&chain)[0].hop, "a → b");
    }
}
