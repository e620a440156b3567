//! Evidence of the trials at one load: sequential probability ratio tests (Wald 1945) of its chance of success.

/// By how much the odds differ from those of the threshold where a load is to be proven fine, or broken.
const PROOF_ODDS: f64 = 8.0;
/// The same where a first impression decides which way to look next.
const IMPRESSION_ODDS: f64 = 4.0;
/// The chance that such an impression is wrong, at those odds.
const IMPRESSION_ERROR: f64 = 0.05;

/// How a chance of success is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    /// The chance that separates fine from broken.
    pub success: f64,
    /// The chance to call a load fine whose chance is at most that, at whatever trial one looks (Ville's inequality:
    /// the ratio of likelihoods exceeds 1/α with chance at most α, ever); the same for broken.
    pub alpha: f64,
}

/// Trials at one load.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    pub trials: u32,
    pub successes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Fine,
    Broken,
}

impl Judge {
    /// What is proven.
    pub fn proven(&self, evidence: Evidence) -> Option<Claim> {
        [Claim::Fine, Claim::Broken].into_iter().find(|claim| self.ratio(evidence, *claim) >= -self.alpha.ln())
    }

    /// Whether a claim is not worth more trials: the chance is too near the threshold, or beyond it.
    pub fn is_hopeless(&self, evidence: Evidence, claim: Claim) -> bool {
        self.ratio(evidence, claim) <= self.alpha.ln()
    }

    /// Logarithm of how much likelier the claim makes the trials than the threshold does.
    fn ratio(&self, evidence: Evidence, claim: Claim) -> f64 {
        let factor = if claim == Claim::Fine { PROOF_ODDS } else { 1.0 / PROOF_ODDS };
        evidence.log_ratio(odds_times(self.success, factor), self.success)
    }

    /// What it looks like.
    pub fn impression(&self, evidence: Evidence) -> Option<Claim> {
        let bound = ((1.0 - IMPRESSION_ERROR) / IMPRESSION_ERROR).ln();
        let (high, low) = (odds_times(self.success, IMPRESSION_ODDS), odds_times(self.success, 1.0 / IMPRESSION_ODDS));
        let ratio = evidence.log_ratio(high, low);
        (ratio.abs() >= bound).then_some(if ratio > 0.0 { Claim::Fine } else { Claim::Broken })
    }

    /// The side of the threshold on which more of the trials are.
    pub fn guess(&self, evidence: Evidence) -> Claim {
        let share = f64::from(evidence.successes) / f64::from(evidence.trials.max(1));
        if share >= self.success { Claim::Fine } else { Claim::Broken }
    }
}

impl Evidence {
    pub fn add(&mut self, success: bool) {
        self.trials += 1;
        self.successes += u32::from(success);
    }

    /// Logarithm of how much likelier one chance makes the trials than another.
    fn log_ratio(self, one: f64, other: f64) -> f64 {
        let failures = f64::from(self.trials - self.successes);
        f64::from(self.successes) * (one / other).ln() + failures * ((1.0 - one) / (1.0 - other)).ln()
    }
}

fn odds_times(chance: f64, factor: f64) -> f64 {
    let odds = chance / (1.0 - chance) * factor;
    odds / (1.0 + odds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUDGE: Judge = Judge { success: 0.9, alpha: 0.02 };

    fn all(trials: u32, success: bool) -> Evidence {
        Evidence { trials, successes: if success { trials } else { 0 } }
    }

    #[test]
    fn proofs_need_more_than_impressions() {
        assert_eq!(JUDGE.impression(all(8, true)), None);
        assert_eq!(JUDGE.impression(all(9, true)), Some(Claim::Fine));
        assert_eq!(JUDGE.proven(all(42, true)), None);
        assert_eq!(JUDGE.proven(all(43, true)), Some(Claim::Fine));
        assert_eq!(JUDGE.proven(all(2, false)), None);
        assert_eq!(JUDGE.proven(all(3, false)), Some(Claim::Broken));
    }

    #[test]
    fn nothing_is_proven_by_nothing() {
        assert_eq!((JUDGE.proven(Evidence::default()), JUDGE.impression(Evidence::default())), (None, None));
    }
}
