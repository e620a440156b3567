//! Several metrics, one verdict: p-values adjusted so that the chance of any false one stays below alpha.

/// Holm's adjusted p-values (1979), in the order given: reject where at most alpha. Holds under any dependence.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|one, other| p_values[*one].total_cmp(&p_values[*other]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut floor = 0.0f64;
    for (step, at) in order.into_iter().enumerate() {
        floor = floor.max((p_values[at] * (p_values.len() - step) as f64).min(1.0));
        adjusted[at] = floor;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn steps_down_from_the_smallest() {
        assert_eq!(holm(&[0.25, 0.125, 0.0625]), [0.25, 0.25, 0.1875]);
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn between_the_raw_value_and_bonferroni(p in prop::collection::vec(0.0..1.0f64, 1..8)) {
            for (raw, adjusted) in p.iter().zip(holm(&p)) {
                prop_assert!(*raw <= adjusted && adjusted <= (raw * p.len() as f64).min(1.0));
            }
        }
    }
}
