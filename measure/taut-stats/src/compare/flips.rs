//! Signs exchanged within pairs: is the sum of differences more than chance makes it?

/// The sum of all sizes is counted in so many steps: finer ones change no verdict.
const STEPS: f64 = 1024.0;

/// The chance of a sum of differences as large as this one or larger, if A and B of each pair were as likely the other way round.
///
/// Fisher (1935, section 21), Pitman (1937): exact whatever the sizes are, and however many pairs have none. The sizes are rounded to steps, which
/// is symmetric, so that the test of the rounded ones is exact. The sum of the positive ones is a sum of independent terms that are 0
/// or a size; its distribution is their convolution.
pub(super) fn p_sum_at_least(differences: impl Iterator<Item = f64> + Clone) -> f64 {
    let all: f64 = differences.clone().map(f64::abs).sum();
    if all == 0.0 || !all.is_finite() {
        return 1.0;
    }
    let (mut sum, mut positive) = (0, 0);
    let mut chance = vec![1.0];
    for difference in differences {
        let size = (difference.abs() / all * STEPS).round() as usize;
        positive += if difference > 0.0 { size } else { 0 };
        sum += size;
        chance.resize(sum + 1, 0.0);
        for steps in (0..=sum).rev() {
            let with = if steps >= size { chance[steps - size] } else { 0.0 };
            chance[steps] = (chance[steps] + with) / 2.0;
        }
    }
    chance[positive..].iter().sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn p(differences: &[f64]) -> f64 {
        p_sum_at_least(differences.iter().copied())
    }

    /// All 2ⁿ sign patterns of whole numbers.
    fn enumerated(differences: &[i32]) -> f64 {
        let observed: i32 = differences.iter().sum();
        let signed = |at: usize, d: &i32, signs: u32| if signs >> at & 1 == 1 { d.abs() } else { -d.abs() };
        let sum = |signs: u32| differences.iter().enumerate().map(|(at, d)| signed(at, d, signs)).sum::<i32>();
        (0..1u32 << differences.len()).filter(|signs| sum(*signs) >= observed).count() as f64
            / f64::from(1u32 << differences.len())
    }

    /// Darwin's maize (Fisher 1935, section 21): of 32,768 sums 863 are as large as 314 or larger.
    #[test]
    fn fishers_example() {
        let eighths_of_an_inch = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48];
        let differences: Vec<f64> = eighths_of_an_inch.iter().map(|d| f64::from(*d)).collect();
        assert!((enumerated(&eighths_of_an_inch) - 863.0 / 32_768.0).abs() < 1e-12);
        // 544 eighths are 1,024 steps: rounding moves a few of the sums that tie with it.
        assert!((p(&differences) - 863.0 / 32_768.0).abs() < 1e-3, "{}", p(&differences));
    }

    #[test]
    fn pairs_without_a_difference_say_nothing_and_few_cannot_be_sure() {
        assert_eq!(p(&[1.0; 8]), 1.0 / 256.0);
        assert_eq!(p(&[&[1.0; 8][..], &[0.0; 30]].concat()), 1.0 / 256.0);
        assert_eq!((p(&[]), p(&[0.0; 5]), p(&[f64::NAN])), (1.0, 1.0, 1.0));
    }

    proptest! {
        #[test]
        fn equals_the_enumeration(d in prop::collection::vec(-8i32..=8, 1..11)) {
            // Sizes that are whole numbers of steps are not rounded: one more makes them that.
            let all: u32 = d.iter().map(|d| d.unsigned_abs()).sum();
            let d = [&d[..], &[(all + 1).next_power_of_two() as i32 - all as i32]].concat();
            let differences: Vec<f64> = d.iter().map(|d| f64::from(*d)).collect();
            prop_assert!((p(&differences) - enumerated(&d)).abs() < 1e-12);
        }
    }
}
