//! Weights of objectives by name, as harnesses publish them: a metric names its objective, the lab the set of weights.

use crate::{Lab, Metric, Weights};

impl Weights {
    /// Objectives, each with its weight.
    fn all(self) -> &'static [(&'static str, f64)] {
        match self {
            // Planning latency, execution latency, the control loop's jitter, end to end, the simulator's step.
            Weights::Manipulation => &[("T1", 1.0), ("T2", 1.0), ("T3", 0.5), ("T4", 1.5), ("T5", 0.3)],
        }
    }

    fn of(self, objective: &str) -> Option<f64> {
        self.all().iter().find(|(name, _)| *name == objective).map(|(_, weight)| *weight)
    }
}

/// A metric's weight: its own, else that of its objective; `None` of one that is in no score.
pub(crate) fn weight(lab: &Lab, metric: &Metric) -> Option<f64> {
    metric.weight.or_else(|| lab.weights?.of(metric.objective.as_deref()?))
}

/// What is wrong with the objectives of a lab: the key, and what to write.
pub(crate) fn wrong(lab: &Lab) -> Option<(String, String)> {
    let named = || lab.metrics.iter().filter_map(|(name, metric)| Some((name, metric.objective.as_deref()?)));
    let Some(weights) = lab.weights else {
        return named().next().map(|(name, _)| {
            (format!("metrics.{name}.objective"), "has no weight; write weights = \"manipulation\" at the top".into())
        });
    };
    let words = || weights.all().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if named().next().is_none() {
        return Some(("weights".into(), format!("no metric has an objective; there are {}", words())));
    }
    let unknown = named().find(|(_, objective)| weights.of(objective).is_none());
    unknown
        .map(|(name, objective)| (format!("metrics.{name}.objective"), format!("{objective:?} is none of {}", words())))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const LAB: &str = "trials = 1\nweights = \"manipulation\"\n[trial]\ncommand = \"true\"\ntimeout_s = 1\n\
                       [metrics.plan]\nobjective = \"T1\"\n[metrics.late]\nobjective = \"T3\"\n[metrics.own]\n\
                       objective = \"T4\"\nweight = 9\n[metrics.other]\n[[scenario]]\nname = \"none\"\n";

    #[test]
    fn a_metric_has_its_own_weight_or_its_objectives() {
        let lab = Lab::parse(LAB, Path::new("lab.toml")).unwrap();
        let of = |name: &str| weight(&lab, &lab.metrics[name]);
        assert_eq!([of("plan"), of("late"), of("own"), of("other")], [Some(1.0), Some(0.5), Some(9.0), None]);
    }

    #[test]
    fn objectives_without_weights_and_the_other_way_round_are_refused() {
        let said = |text: &str| Lab::parse(text, Path::new("lab.toml")).unwrap_err().to_string();
        let without = LAB.replace("weights = \"manipulation\"\n", "");
        assert!(said(&without).contains("write weights = \"manipulation\""), "{}", said(&without));
        let unknown = said(&LAB.replace("\"T3\"", "\"T9\""));
        assert!(unknown.contains("metrics.late.objective: \"T9\" is none of T1, T2, T3, T4, T5"), "{unknown}");
        let none = said(
            &LAB.replace("objective = \"T1\"\n", "")
                .replace("objective = \"T3\"\n", "")
                .replace("objective = \"T4\"\n", ""),
        );
        assert!(none.contains("weights: no metric has an objective"), "{none}");
        assert!(said(&LAB.replace("manipulation", "mine")).contains("expected `manipulation`"));
    }
}
