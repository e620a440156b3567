//! Published systems as budgets, to compare with and to start from.

use super::{error::Error, file::CycleBudget};

/// A budget that comes with taut.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// As on the command line.
    pub name: &'static str,
    /// Its TOML, to copy and change.
    pub toml: &'static str,
}

/// In the order of their story.
pub const PRESETS: [Preset; 12] = [
    Preset { name: "rs485-80hz", toml: include_str!("presets/rs485-80hz.toml") },
    Preset { name: "rs485-80hz-51-46", toml: include_str!("presets/rs485-80hz-51-46.toml") },
    Preset { name: "rs485-80hz-25-21", toml: include_str!("presets/rs485-80hz-25-21.toml") },
    Preset { name: "rs485-6727us", toml: include_str!("presets/rs485-6727us.toml") },
    Preset { name: "rs485-6727us-51-46", toml: include_str!("presets/rs485-6727us-51-46.toml") },
    Preset { name: "rs485-6727us-25-21", toml: include_str!("presets/rs485-6727us-25-21.toml") },
    Preset { name: "rs485-3500us", toml: include_str!("presets/rs485-3500us.toml") },
    Preset { name: "rs485-3500us-30-23", toml: include_str!("presets/rs485-3500us-30-23.toml") },
    Preset { name: "rs485-150hz", toml: include_str!("presets/rs485-150hz.toml") },
    Preset { name: "pi3hat", toml: include_str!("presets/pi3hat.toml") },
    Preset { name: "pi3hat-pi4", toml: include_str!("presets/pi3hat-pi4.toml") },
    Preset { name: "pi3hat-1-servo", toml: include_str!("presets/pi3hat-1-servo.toml") },
];

/// The preset of that name.
///
/// # Errors
/// None has this name; the nearest name is given.
pub fn preset(name: &str) -> Result<&'static Preset, Error> {
    PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let near = |preset: &&Preset| strsim::jaro_winkler(name, preset.name);
        let nearest = PRESETS.iter().max_by(|a, b| near(a).total_cmp(&near(b))).map_or("", |preset| preset.name);
        Error::Preset { name: name.to_owned(), hint: format!("did you mean {nearest:?}? --list-presets shows all") }
    })
}

impl Preset {
    /// Reads it, with keys changed.
    ///
    /// # Errors
    /// A change names no key, or makes the budget impossible.
    pub fn budget(&self, changes: &[(String, String)]) -> Result<CycleBudget, Error> {
        CycleBudget::parse(self.toml, changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Forecast, Origin, Sampling, Solve, forecast, lanes, sensitivity, solve};

    const SAMPLING: Sampling = Sampling { cycles: 4000, seed: 1 };

    fn with(name: &str, changes: &[(&str, &str)]) -> Forecast {
        let changes: Vec<(String, String)> = changes.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        forecast(&preset(name).unwrap().budget(&changes).unwrap(), SAMPLING)
    }

    fn cycle_us(name: &str, changes: &[(&str, &str)]) -> f64 {
        with(name, changes).cycle_us
    }

    #[test]
    fn every_preset_gives_its_published_figure_within_1_percent() {
        for preset in &PRESETS {
            let budget = preset.budget(&[]).unwrap();
            let published_us = budget.published.as_ref().unwrap().cycle_us;
            let cycle_us = forecast(&budget, SAMPLING).cycle_us;
            let off = (cycle_us / published_us - 1.0).abs();
            assert!(off < 0.01, "{}: {cycle_us:.1} µs for {published_us} µs", preset.name);
        }
    }

    #[test]
    fn the_four_published_figures_are_those_of_the_sources() {
        for (name, us) in
            [("rs485-80hz", 12500.0), ("rs485-6727us", 6727.0), ("rs485-3500us", 3500.0), ("pi3hat", 740.0)]
        {
            assert_eq!(preset(name).unwrap().budget(&[]).unwrap().published.unwrap().cycle_us, us);
        }
    }

    #[test]
    fn a_fit_is_owned_up_to() {
        for preset in &PRESETS {
            let budget = preset.budget(&[]).unwrap();
            let fits = budget.fitted.len() + budget.terms.iter().filter(|term| term.origin == Origin::Fitted).count();
            // Only the source's own split of the first system adds up by itself.
            assert_eq!(fits == 0, preset.name == "rs485-80hz", "{}", preset.name);
            assert!(budget.terms.iter().all(|t| t.origin != Origin::Given), "{}", preset.name);
        }
    }

    #[test]
    fn both_readings_of_a_total_leave_different_host_times() {
        let host = |name: &str| {
            let budget = preset(name).unwrap().budget(&[]).unwrap();
            let term = budget.terms.iter().find(|term| term.origin == Origin::Fitted).unwrap();
            match term.price {
                crate::budget::Price::Us(us) => us,
                _ => panic!(),
            }
        };
        assert_eq!([host("rs485-80hz-51-46"), host("rs485-80hz-25-21")], [255.0, 595.0]);
        assert_eq!([host("rs485-6727us-51-46"), host("rs485-6727us-25-21")], [86.6, 256.6]);
    }

    #[test]
    fn bytes_alone_would_take_2120_us() {
        let none = [("term.servo turn-around.us", "0"), ("term.host.us", "0"), ("term.byte-copying bridge.us", "0")];
        assert!((cycle_us("rs485-3500us-30-23", &none) - 2120.0).abs() < 0.1);
    }

    #[test]
    fn both_topologies_could_reach_250_hz() {
        let budget = preset("rs485-3500us-30-23").unwrap().budget(&[]).unwrap();
        for hz in [250.0, 300.0] {
            let turn = sensitivity(&budget).into_iter().find(|g| g.key == "term.servo turn-around.us").unwrap();
            let now = forecast(&budget, SAMPLING).cycle_us;
            // Servo and host together may take what the period leaves beside the wire.
            let may_take = 75.0 + 29.33 + (1e6 / hz - now) / turn.per_unit_us;
            assert!((89.0..147.0).contains(&may_take), "{hz} Hz leaves {may_take} µs");
        }
    }

    #[test]
    fn gait_and_bus_fit_150_hz_and_not_200() {
        let (at_150, at_200) = (with("rs485-150hz", &[]), with("rs485-150hz", &[("target_hz", "200")]));
        assert_eq!(at_150.misses.unwrap().missed, 0);
        // 3.5 ms and at worst 1.5: a quarter of 6.67 ms to spare.
        let worst_us = at_150.distribution.max_ns.unwrap() as f64 / 1e3;
        assert!((worst_us / 6666.7 - 0.75).abs() < 0.02, "{worst_us}");
        assert!(at_200.misses.unwrap().missed > 0, "200 Hz was not super reliable");
    }

    #[test]
    fn the_pi3hat_is_bound_by_spi_not_can() {
        let forecast = with("pi3hat", &[("can.stuffing", "typical"), ("term.servo turn-around.us", "0")]);
        assert!((forecast.cycle_us - 736.0).abs() < 0.5, "{}", forecast.cycle_us);
        assert_eq!(forecast.critical, Some(0));
        let buses: Vec<f64> = forecast.usage[1..].iter().map(|usage| usage.busy_us.round()).collect();
        // Servos 1 to 6 answer with short identifiers, 8 to 12 with long ones.
        assert!((buses[0] - 434.0).abs() < 2.0 && (buses[3] - 493.0).abs() < 2.0, "{buses:?}");
    }

    #[test]
    fn the_pi3hat_with_other_settings() {
        let long = ("term.replies on the bus.id", "extended");
        let bare = [("term.servo turn-around.us", "0"), ("can.stuffing", "typical"), long];
        let on = |buses: &'static str| [&bare[..], &[("resource.CAN bus.buses", buses)]].concat();
        let cases = [
            (cycle_us("pi3hat", &[("frames.command", "32")]), 892.0),
            (cycle_us("pi3hat", &[("spi.hold_us", "10")]), 1324.0),
            (cycle_us("pi3hat", &on("1")), 1970.0),
            (cycle_us("pi3hat", &on("2")), 990.0),
            (cycle_us("pi3hat-pi4", &[]), 703.0),
        ];
        for (found, expected) in cases {
            assert!((found / expected - 1.0).abs() < 0.01, "{found} for {expected}");
        }
    }

    #[test]
    fn one_servo_and_another_robot_lie_where_others_measured() {
        assert!((338.0..447.0).contains(&cycle_us("pi3hat-1-servo", &[])));
        // Six servos on two buses from C++: 0.7 ± 0.3 ms.
        let six = cycle_us("pi3hat", &[("servos.count", "6"), ("resource.CAN bus.buses", "2")]);
        assert!((400.0..1000.0).contains(&six), "{six}");
    }

    #[test]
    fn a_timing_regression_of_the_chip_select_shows() {
        // A work-around of June 2022 held the chip select 10 µs for a day: 1 kHz was gone.
        let missed = |changes| with("pi3hat", changes).misses.unwrap().missed;
        assert_eq!((missed(&[]), missed(&[("spi.hold_us", "10")])), (0, 4000));
    }

    #[test]
    fn the_pi3hat_at_1_khz_has_room_for_four_more() {
        let budget = preset("pi3hat").unwrap().budget(&[]).unwrap();
        let solved = solve(&budget, 1000.0, &[Solve::Servos], SAMPLING).unwrap();
        // (1000 − 44.8 − 46.1) / (26.1 + 27.6)
        assert_eq!(solved.answers[0].limit, Some(16.0));
        let busiest = lanes(&budget).iter().map(|lane| lane.servos).max();
        assert_eq!(busiest, Some(12));
    }

    #[test]
    fn a_name_that_is_nearly_right_is_helped() {
        assert!(preset("pi3hta").unwrap_err().to_string().contains("did you mean \"pi3hat\"?"));
    }
}
