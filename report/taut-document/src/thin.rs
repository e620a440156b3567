//! Long curves thinned for a page; extremes and the slowest points are kept.

/// At most about so many of the points: the lowest and the highest of each stretch, and the highest hundredth of all, so that no tail
/// message is missing from a picture. Points stay in their order; a gap stays a gap.
pub fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let buckets = (most / 4).max(1);
    let mut kept = vec![false; points.len()];
    let numbers = |at: &usize| !points[*at].1.is_nan();
    let mut by_height: Vec<usize> = (0..points.len()).filter(numbers).collect();
    by_height.sort_by(|a, b| points[*b].1.total_cmp(&points[*a].1));
    by_height.iter().take((points.len() / 100).min(buckets)).for_each(|at| kept[*at] = true);
    let all: Vec<usize> = (0..points.len()).collect();
    for bucket in all.chunks(points.len().div_ceil(buckets)) {
        let by_value = |a: &&usize, b: &&usize| points[**a].1.total_cmp(&points[**b].1);
        let inside = || bucket.iter().filter(|at| numbers(at));
        let gap = bucket.iter().find(|at| !numbers(at));
        [inside().min_by(by_value), inside().max_by(by_value), gap]
            .into_iter()
            .flatten()
            .for_each(|at| kept[*at] = true);
    }
    points.iter().zip(kept).filter(|(_, kept)| *kept).map(|(point, _)| *point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_curve_keeps_its_extremes_its_order_and_its_slowest() {
        let mut points: Vec<(f64, f64)> =
            (0..1_000_000).map(|i| (f64::from(i), f64::from(1000 + i * 79 % 997))).collect();
        points[500_000].1 = 99_999_999.0;
        points[700_007].1 = -9.0;
        points[300_000].1 = f64::NAN;
        let kept = thinned(&points, 20_000);
        assert!(kept.len() <= 20_000, "{}", kept.len());
        assert!(kept.contains(&(500_000.0, 99_999_999.0)) && kept.contains(&(700_007.0, -9.0)));
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0) && kept.iter().any(|(_, y)| y.is_nan()));
        assert_eq!(thinned(&points[..100], 100), points[..100]);
    }

    #[test]
    fn a_few_slow_points_side_by_side_are_all_kept() {
        let slow = 4_000..4_100;
        let points: Vec<(f64, f64)> =
            (0..50_000).map(|i| (f64::from(i), if slow.contains(&i) { 9.0 } else { 1.0 })).collect();
        assert_eq!(thinned(&points, 20_000).iter().filter(|(_, y)| *y == 9.0).count(), 100);
    }
}
