//! The search itself: which load next, as a pure function of the trials' results. Brackets both ends, halves the
//! bracket by single trials, then proves its two ends, and moves an end outwards where the proof fails.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};

use super::evidence::{Claim, Evidence, Judge};

/// Where and how to look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub from: f64,
    pub to: f64,
    /// Ratio of two loads that are as good as one.
    pub resolution: f64,
    /// Only whole loads differ.
    pub whole: bool,
    /// Trials of a load after which it stays open.
    pub most_per_load: u32,
    /// Trials of all loads together.
    pub most: u32,
}

pub(super) struct Search {
    range: Range,
    judge: Judge,
    loads: BTreeMap<Load, Evidence>,
    low: Side,
    high: Side,
    trials: u32,
    random: Xoshiro256PlusPlus,
    current: Option<Load>,
}

/// A load as a key: positive, so that the order of its bits is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Load(u64);

/// One end of the bracket.
#[derive(Clone, Copy, Debug)]
struct Side {
    load: Load,
    /// By how much it moves when it cannot be proven.
    step: f64,
    /// Nothing further out is left to prove.
    given_up: bool,
}

impl Search {
    pub fn new(range: Range, judge: Judge, seed: u64) -> Search {
        let side = |load: f64| Side { load: Load::of(load), step: range.resolution, given_up: false };
        Search {
            low: side(range.round(range.from)),
            high: side(range.round(range.to)),
            range,
            judge,
            loads: BTreeMap::new(),
            trials: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            current: None,
        }
    }

    /// The load of the next trial, `None` when the search is over.
    pub fn next(&mut self) -> Option<f64> {
        if self.trials >= self.range.most {
            return None;
        }
        let next = self.bracket().or_else(|| self.prove());
        self.current = next;
        next.map(Load::value)
    }

    /// What became of a trial at the load that [`Search::next`] gave.
    pub fn observe(&mut self, success: bool) {
        if let Some(load) = self.current.take() {
            self.loads.entry(load).or_default().add(success);
            self.trials += 1;
        }
    }

    /// The heaviest load proven fine and the lightest above it proven broken, where there are such.
    pub fn ends(&self) -> (Option<f64>, Option<f64>) {
        let with =
            |claim| self.loads.iter().filter(move |(_, e)| self.judge.proven(**e) == Some(claim)).map(|(l, _)| *l);
        let broken = with(Claim::Broken).min();
        let fine = with(Claim::Fine).filter(|load| broken.is_none_or(|broken| *load < broken)).max();
        (fine.map(Load::value), broken.map(Load::value))
    }

    /// What was tried, lightest first.
    pub fn tried(&self) -> impl Iterator<Item = (f64, Evidence, Option<Claim>)> {
        self.loads.iter().map(|(load, evidence)| (load.value(), *evidence, self.judge.proven(*evidence)))
    }

    pub fn trials(&self) -> u32 {
        self.trials
    }

    /// Both ends first, then the middle of the bracket, until it is narrow.
    fn bracket(&mut self) -> Option<Load> {
        let (first, last) = (Load::of(self.range.round(self.range.from)), Load::of(self.range.round(self.range.to)));
        for (load, expected) in [(first, Claim::Fine), (last, Claim::Broken)] {
            match self.look(load) {
                None => return Some(load),
                // An end that is on the wrong side is the answer: it only needs its proof.
                Some(claim) if claim != expected => {
                    (self.low.load, self.high.load) = (load, load);
                    return None;
                }
                Some(_) => {}
            }
        }
        loop {
            let (low, high) = (self.low.load.value(), self.high.load.value());
            let middle = Load::of(self.range.round((low * high).sqrt()));
            if high / low <= self.range.resolution || middle <= self.low.load || middle >= self.high.load {
                return None;
            }
            match self.look(middle) {
                None => return Some(middle),
                // A bracket that was moved outwards is not narrowed again.
                Some(_) if self.low.step > self.range.resolution || self.high.step > self.range.resolution => {
                    return None;
                }
                Some(Claim::Fine) => self.low.load = middle,
                Some(Claim::Broken) => self.high.load = middle,
            }
        }
    }

    /// What a load looks like; `None` while more trials are wanted.
    fn look(&self, load: Load) -> Option<Claim> {
        let evidence = self.loads.get(&load).copied().unwrap_or_default();
        let judge = &self.judge;
        judge
            .proven(evidence)
            .or_else(|| judge.impression(evidence))
            .or_else(|| (evidence.trials >= self.range.most_per_load).then(|| judge.guess(evidence)))
    }

    /// A trial at an end that is not yet proven, either end by a coin, so that a drift does not separate them.
    fn prove(&mut self) -> Option<Load> {
        loop {
            let low = self.wanting(self.low, Claim::Fine);
            let high = self.wanting(self.high, Claim::Broken);
            match (low, high) {
                (Wanting::Trials, Wanting::Trials) => {
                    return Some(if self.random.random() { self.low.load } else { self.high.load });
                }
                (Wanting::Nothing, Wanting::Nothing) => return None,
                (Wanting::Another, _) => self.low = self.moved(self.low, false),
                (_, Wanting::Another) => self.high = self.moved(self.high, true),
                (Wanting::Trials, _) => return Some(self.low.load),
                (_, Wanting::Trials) => return Some(self.high.load),
            }
        }
    }

    fn wanting(&self, side: Side, claim: Claim) -> Wanting {
        let evidence = self.loads.get(&side.load).copied().unwrap_or_default();
        match self.judge.proven(evidence) {
            _ if side.given_up => Wanting::Nothing,
            Some(proven) if proven == claim => Wanting::Nothing,
            Some(_) => Wanting::Another,
            None if evidence.trials >= self.range.most_per_load => Wanting::Another,
            None if self.judge.is_hopeless(evidence, claim) => Wanting::Another,
            None => Wanting::Trials,
        }
    }

    /// The end a step further out, each step the square of the last.
    fn moved(&self, side: Side, up: bool) -> Side {
        let (load, range) = (side.load.value(), &self.range);
        let (first, last) = (range.round(range.from), range.round(range.to));
        let step = if up { side.step } else { 1.0 / side.step };
        let mut next = range.round(load * step);
        if range.whole && next == load {
            next += if up { 1.0 } else { -1.0 };
        }
        let given_up = load == if up { last } else { first };
        Side { load: Load::of(next.clamp(first, last)), step: side.step * side.step, given_up }
    }
}

/// What an end of the bracket needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanting {
    Nothing,
    Trials,
    Another,
}

impl Range {
    pub fn round(&self, load: f64) -> f64 {
        if self.whole { load.round().max(1.0) } else { load }
    }
}

impl Load {
    fn of(load: f64) -> Load {
        Load(load.max(0.0).to_bits())
    }

    fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUDGE: Judge = Judge { success: 0.9, alpha: 0.02 };
    const RANGE: Range =
        Range { from: 100.0, to: 20_000.0, resolution: 1.2, whole: false, most_per_load: 120, most: 400 };
    /// Trials at each load of a grid, as many as the plainest of plans takes.
    const GRID_TRIALS: f64 = 30.0;

    /// A system whose odds of success fall with a power of the load: its chance is `success` at its threshold.
    struct Simulated {
        threshold: f64,
        steepness: f64,
    }

    impl Simulated {
        fn chance(&self, load: f64, judge: &Judge) -> f64 {
            let odds = judge.success / (1.0 - judge.success) * (self.threshold / load).powf(self.steepness);
            1.0 - 1.0 / (1.0 + odds)
        }

        fn search(&self, range: Range, judge: Judge, seed: u64) -> Search {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x5eed);
            let mut search = Search::new(range, judge, seed);
            while let Some(load) = search.next() {
                let chance = self.chance(load, &judge);
                search.observe(random.random::<f64>() < chance);
            }
            search
        }
    }

    /// Searches of a hundred systems: how many thresholds lie within the stated interval, how many intervals have both
    /// ends, trials of each, widths.
    fn hundred(steepness: f64, judge: Judge, range: Range) -> (usize, usize, Vec<u32>, Vec<f64>) {
        let (mut covered, mut closed, mut trials, mut widths) = (0, 0, Vec::new(), Vec::new());
        for seed in 0..100 {
            let place: f64 = Xoshiro256PlusPlus::seed_from_u64(seed).random_range(0.15..0.85);
            let threshold = range.from * (range.to / range.from).powf(place);
            let search = Simulated { threshold, steepness }.search(range, judge, seed);
            let (low, high) = search.ends();
            closed += usize::from(low.is_some() && high.is_some());
            let (low, high) = (low.unwrap_or(range.from), high.unwrap_or(range.to));
            covered += usize::from((low..=high).contains(&threshold));
            trials.push(search.trials());
            widths.push(high / low);
        }
        trials.sort_unstable();
        widths.sort_unstable_by(f64::total_cmp);
        (covered, closed, trials, widths)
    }

    #[test]
    fn a_known_threshold_is_within_the_interval_at_half_the_trials_of_a_grid() {
        for success in [0.5, 0.9] {
            let judge = Judge { success, ..JUDGE };
            for steepness in [4.0, 10.0, 30.0, 1000.0] {
                let (covered, closed, trials, widths) = hundred(steepness, judge, RANGE);
                let points = (RANGE.to / RANGE.from).ln() / RANGE.resolution.ln();
                let grid = points.ceil() * GRID_TRIALS;
                let what = format!(
                    "success {success}, steepness {steepness}: {covered} covered, {closed} closed, trials {} median {} most, \
                     width {:.2} median {:.2} most, a grid takes {grid}",
                    trials[50], trials[99], widths[50], widths[99]
                );
                println!("{what}");
                assert!(covered >= 95 && closed >= 85, "{what}");
                assert!(f64::from(trials[99]) <= grid / 2.0, "{what}");
                assert!(widths[50] < 4.0, "an interval that says nothing is no answer: {what}");
            }
        }
    }

    #[test]
    fn what_never_breaks_and_what_is_always_broken_is_said() {
        let never = Simulated { threshold: 1e9, steepness: 10.0 }.search(RANGE, JUDGE, 1);
        assert_eq!(never.ends(), (Some(20_000.0), None));
        let always = Simulated { threshold: 1.0, steepness: 10.0 }.search(RANGE, JUDGE, 1);
        assert_eq!(always.ends(), (None, Some(100.0)));
        assert!(never.trials() < 100 && always.trials() < 10, "{} {}", never.trials(), always.trials());
    }

    #[test]
    fn whole_loads_end_at_neighbours() {
        let range = Range { from: 1.0, to: 64.0, resolution: 1.01, whole: true, ..RANGE };
        for threshold in [2.5, 20.5, 50.5] {
            let search = Simulated { threshold, steepness: 1000.0 }.search(range, JUDGE, 3);
            let (low, high) = search.ends();
            assert_eq!((low, high), (Some(threshold - 0.5), Some(threshold + 0.5)));
            assert!(search.tried().all(|(load, ..)| load.fract() == 0.0));
        }
    }

    #[test]
    fn the_same_trials_ask_for_the_same_loads_again() {
        let system = Simulated { threshold: 900.0, steepness: 8.0 };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut first = Search::new(RANGE, JUDGE, 9);
        let mut said = Vec::new();
        while let Some(load) = first.next() {
            let success = random.random::<f64>() < system.chance(load, &JUDGE);
            said.push((load, success));
            first.observe(success);
        }
        let mut again = Search::new(RANGE, JUDGE, 9);
        for (load, success) in said {
            // Asking twice, as after a trial that does not count, changes nothing that is asked later.
            assert_eq!(again.next(), Some(load));
            again.observe(success);
        }
        assert_eq!(again.next(), None);
        assert_eq!(again.ends(), first.ends());
    }
}
