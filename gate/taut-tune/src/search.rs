//! Which remedy helps most, and by how much: successive halving over single remedies (Jamieson & Talwalkar 2016), then pairs of those that
//! helped, then a confirmation on fresh pairs. Figures of the selection decide what is confirmed; only the confirmation states a gain.

use std::{collections::BTreeMap, fmt};

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};
use serde::Serialize;
use taut_stats::compare::{
    ChangeFigures, Margin, Metric, Next, Order, Pair, Plan, Rule, Scale, Verdict, judge, pair_order,
};

/// Rounds of each rung of the halving; in a round each remedy that is left runs once, and so does the start.
const RUNGS: [usize; 3] = [2, 2, 4];
/// Rounds over pairs of remedies.
const PAIR_ROUNDS: usize = 4;
/// A remedy helps in the selection from this ratio of the tail on; the confirmation has the last word.
const HELPS: f64 = 0.9;
/// Fewer rounds say nothing.
const ROUNDS_MIN: usize = 2;
/// Of remedies within this factor of the best the simplest is confirmed: a pair must be better than one alone by more than the noise of so few
/// rounds.
const AS_GOOD: f64 = 1.33;
/// Rounds for remedies of which too many trials said nothing, at most.
const ROUNDS_LEFT_OVER: usize = 6;
/// Remedies of which pairs are made.
const PAIRED: usize = 3;
/// Sets that are held against fresh pairs, at most.
const ATTEMPTS: usize = 3;
/// Pairs asked for beyond those that a look needs, to replace those in which the machine stalled.
const SPARE: usize = 2;
/// Share of all trials that the single remedies may take.
const SINGLES: f64 = 0.35;
/// The fewest fresh pairs that confirm a remedy: all of them better, at a level of 1 %.
const PAIRS_MIN: usize = 8;
/// From this ratio of the tail on, fresh pairs are ended: what they might confirm still is not worth the time. It can only refuse a remedy.
const FUTILE: f64 = 0.95;

/// What a trial was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Single remedies.
    Singles,
    /// Two together.
    Pairs,
    /// Fresh pairs of the start and the chosen set.
    Confirm,
}

/// Something that must not get worse.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// In words: "CPU time", "chain a → b, p99".
    pub name: String,
    /// From which change on it is worse.
    pub rule: Rule,
}

/// Settings of the search.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of the order of trials.
    pub seed: u64,
    /// Trials that the time holds, as far as is known.
    pub trials: usize,
    /// How the tail is judged.
    pub tail: Rule,
    /// What must not get worse.
    pub guards: Vec<Guard>,
    /// Looks and errors of the confirmation; `praise_alpha` is the chance that a remedy without effect is confirmed.
    pub confirmation: Plan,
    /// Chance that a guard is called worse wrongly, over all guards.
    pub guard_alpha: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            seed: 0,
            trials: 200,
            tail: Rule {
                scale: Scale::Ratio,
                minimum_effect: Margin { relative: 0.05, absolute: 2_000.0 },
                equivalence: Margin { relative: 0.1, absolute: 5_000.0 },
            },
            guards: Vec::new(),
            confirmation: Plan { praise_alpha: 0.01, looks: vec![8, 12, 20, 28], ..Plan::default() },
            guard_alpha: 0.05,
        }
    }
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The figure of the tail that is to become smaller, in ns.
    pub tail_ns: Option<f64>,
    /// Median latency in ns.
    pub p50_ns: Option<f64>,
    /// Share of messages over the deadline; of a loop without one, of activations that were not done at the next release.
    pub missed: Option<f64>,
    /// In the order of the guards.
    pub guards: Vec<Option<f64>>,
    /// It says nothing: the machine stalled, events were lost.
    pub is_void: bool,
    /// Why the remedy cannot be used.
    pub problem: Option<Problem>,
    /// Kernel events that agreed with the remedy.
    pub agreed: usize,
}

/// Why a remedy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The program failed under it, and did not without it.
    Failed(String),
    /// It was not in force.
    NotInForce(String),
}

/// What became of a set of remedies.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "&'static str")]
pub enum Standing {
    /// Confirmed on fresh pairs, without harm.
    Confirmed,
    /// Fresh pairs did not confirm it.
    NotConfirmed,
    /// Confirmed or not, it makes something else worse.
    Harms(Vec<String>),
    /// It helped in the selection; another set was chosen.
    Helped,
    /// It did not help in the selection.
    DidNotHelp,
    /// It cannot be used.
    Problem(Problem),
    /// The time was up before it was tried often enough.
    NotTried,
}

impl From<Standing> for &'static str {
    fn from(standing: Standing) -> &'static str {
        match standing {
            Standing::Confirmed => "confirmed",
            Standing::NotConfirmed => "not confirmed",
            Standing::Harms(_) => "harms",
            Standing::Helped => "helped",
            Standing::DidNotHelp => "did not help",
            Standing::Problem(Problem::Failed(_)) => "fails",
            Standing::Problem(Problem::NotInForce(_)) => "not in force",
            Standing::NotTried => "not tried",
        }
    }
}

/// With what it harms, and why it cannot be used.
impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Harms(what) => write!(f, "harms {}", what.join(", ")),
            Standing::Problem(Problem::Failed(why)) => write!(f, "the program fails: {why}"),
            Standing::Problem(Problem::NotInForce(why)) => write!(f, "not in force: {why}"),
            Standing::NotTried => f.write_str("no time"),
            other => f.write_str(other.clone().into()),
        }
    }
}

/// A set of remedies in the selection.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// Numbers of the remedies, ascending.
    pub set: Vec<usize>,
    /// Rounds with it.
    pub rounds: usize,
    /// Median over rounds of the tail with it ÷ that of the start; of the selection, no gain.
    pub ratio: Option<f64>,
    /// Medians over trials: (start, with it) of the tail, of p50, of the share over the deadline.
    pub tail_ns: Option<(f64, f64)>,
    /// As above.
    pub p50_ns: Option<(f64, f64)>,
    /// As above.
    pub missed: Option<(f64, f64)>,
    /// Kernel events that agreed with it.
    pub agreed: usize,
    /// Trials in which it was found in force.
    pub verified: usize,
    /// What became of it.
    pub standing: Standing,
}

/// A set of remedies that was held against fresh pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Numbers of the remedies.
    pub set: Vec<usize>,
    /// On the tail.
    pub verdict: Verdict,
    /// Of the tail.
    pub tail: Option<ChangeFigures>,
    /// Of p50.
    pub p50: Option<ChangeFigures>,
    /// Of the share over the deadline.
    pub missed: Option<ChangeFigures>,
    /// Each guard's figures.
    pub guards: Vec<(String, Option<ChangeFigures>)>,
    /// Guards that got worse.
    pub harmed: Vec<String>,
    /// It failed on fresh pairs.
    pub problem: Option<Problem>,
    /// Fresh pairs.
    pub pairs: usize,
}

/// The set that is recommended.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmed {
    /// Which attempt.
    pub attempt: usize,
}

/// The search's result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// All sets, the best ratio first.
    pub tried: Vec<Tried>,
    /// Those that were held against fresh pairs.
    pub attempts: Vec<Attempt>,
    /// The recommendation.
    pub confirmed: Option<Confirmed>,
    /// Trials in all.
    pub trials: usize,
    /// The time was up before an answer.
    pub is_out: bool,
}

impl Found {
    /// The fresh pairs of a set; `None` where it was held against none.
    pub fn attempt_of(&self, set: &[usize]) -> Option<&Attempt> {
        attempt_of(&self.attempts, set)
    }
}

fn attempt_of<'a>(attempts: &'a [Attempt], set: &[usize]) -> Option<&'a Attempt> {
    attempts.iter().find(|one| one.set == set && (one.pairs > 0 || one.problem.is_some()))
}

/// What a search knows of a remedy.
#[derive(Clone, Copy, Debug)]
struct Known {
    rank: u8,
}

/// Runs one trial of a set, the empty one for the start; `None` when the time of the stage is up.
type Run<'a, E> = dyn FnMut(Stage, &[usize]) -> Result<Option<Measured>, E> + 'a;

/// Searches. `ranks`: of the remedies, the largest predicted gain first; a lower rank is simpler. `fits`: whether two can be used together.
///
/// When `run` has no more must not depend on figures. Its errors end the search.
///
/// # Errors
/// Those of `run`.
pub fn search<E>(
    settings: &Settings,
    ranks: &[u8],
    fits: &dyn Fn(usize, usize) -> bool,
    run: &mut Run<'_, E>,
) -> Result<Found, E> {
    let known: Vec<Known> = ranks.iter().map(|rank| Known { rank: *rank }).collect();
    let mut search = Search {
        settings,
        known,
        random: Xoshiro256PlusPlus::seed_from_u64(settings.seed),
        rounds: BTreeMap::new(),
        problems: BTreeMap::new(),
        trials: 0,
        run,
    };
    search.singles()?;
    search.pairs(fits)?;
    search.left_over()?;
    let mut attempts: Vec<Attempt> = Vec::new();
    let (mut is_out, mut confirmed) = (false, None);
    while attempts.len() < ATTEMPTS && confirmed.is_none() && !is_out {
        let Some(set) = search.choice(&attempts) else { break };
        let (attempt, was_out) = search.confirm(&set, attempts.len())?;
        let is_better = attempt.verdict == Verdict::Better && attempt.harmed.is_empty() && attempt.problem.is_none();
        confirmed = is_better.then_some(Confirmed { attempt: attempts.len() });
        is_out = was_out && !is_better && attempt.problem.is_none() && attempt.harmed.is_empty();
        attempts.push(attempt);
    }
    let tried = search.tried(&attempts);
    // Those of the first round, which the time was to hold.
    let planned = affordable(ranks.len(), settings.trials);
    let is_left = |one: &Tried| one.set.len() == 1 && one.set[0] < planned && one.standing == Standing::NotTried;
    let never = confirmed.is_none() && tried.iter().any(is_left);
    Ok(Found { tried, attempts, confirmed, trials: search.trials, is_out: is_out || never })
}

/// Trials that a confirmation takes at least.
pub const CONFIRMING_TRIALS: usize = 2 * PAIRS_MIN;

/// Fewer trials lead to no answer: two rounds of one remedy, and the fewest fresh pairs.
pub const FEWEST_TRIALS: usize = 2 * ROUNDS_MIN + CONFIRMING_TRIALS;

/// About how many trials a search over so many remedies takes, within those that its time holds.
pub fn expected_trials(remedies: usize, trials: usize) -> usize {
    let mut left = affordable(remedies, trials);
    let mut sum = 0;
    for rounds in RUNGS {
        sum += rounds * (left + 1);
        if left <= 2 && sum >= 4 * (left + 1) {
            break;
        }
        left = left.div_ceil(2).max(2.min(left));
    }
    let pairs = if remedies > 1 { PAIR_ROUNDS * 4 } else { 0 };
    (sum + pairs + 2 * 12).min(trials.max(1))
}

/// Remedies that can be tried: each needs two rounds at least, and what the fewest fresh pairs need is kept for them.
fn affordable(remedies: usize, trials: usize) -> usize {
    let share = (SINGLES * trials as f64) as usize;
    let most = trials.saturating_sub(2 * (PAIRS_MIN + SPARE));
    let fitting = share.min(most) / ROUNDS_MIN;
    remedies.min(fitting.saturating_sub(1).max(1))
}

struct Search<'a, 'b, E> {
    settings: &'a Settings,
    known: Vec<Known>,
    random: Xoshiro256PlusPlus,
    /// By set: each round's trials, of the start and of the set.
    rounds: BTreeMap<Vec<usize>, Vec<(Measured, Measured)>>,
    problems: BTreeMap<Vec<usize>, Problem>,
    trials: usize,
    run: &'a mut Run<'b, E>,
}

impl<E> Search<'_, '_, E> {
    fn trial(&mut self, stage: Stage, set: &[usize]) -> Result<Option<Measured>, E> {
        let measured = (self.run)(stage, set)?;
        self.trials += usize::from(measured.is_some());
        Ok(measured)
    }

    fn singles(&mut self) -> Result<(), E> {
        let mut left: Vec<Vec<usize>> =
            (0..affordable(self.known.len(), self.settings.trials)).map(|at| vec![at]).collect();
        let mut done = 0;
        for rounds in RUNGS {
            for _ in 0..rounds {
                if left.is_empty() || !self.round(Stage::Singles, &left)? {
                    return Ok(());
                }
                left.retain(|set| !self.problems.contains_key(set));
            }
            done += rounds;
            if left.len() <= 2 && done >= 4 {
                return Ok(());
            }
            left.sort_by(|a, b| self.ratio(a).unwrap_or(1.0).total_cmp(&self.ratio(b).unwrap_or(1.0)));
            left.truncate(left.len().div_ceil(2).max(2));
        }
        Ok(())
    }

    fn pairs(&mut self, fits: &dyn Fn(usize, usize) -> bool) -> Result<(), E> {
        let helped = self.helped();
        let best: Vec<usize> = helped.iter().take(PAIRED).map(|(set, _)| set[0]).collect();
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for (at, one) in best.iter().enumerate() {
            for two in &best[at + 1..] {
                if fits(*one, *two) {
                    sets.push(vec![*one.min(two), *one.max(two)]);
                }
            }
        }
        if sets.is_empty() {
            return Ok(());
        }
        // The best alone runs with them: a pair must be better than it.
        sets.push(vec![best[0]]);
        for _ in 0..PAIR_ROUNDS {
            if !self.round(Stage::Pairs, &sets)? {
                break;
            }
            sets.retain(|set| !self.problems.contains_key(set));
        }
        Ok(())
    }

    /// Where nothing is to be confirmed, the time of the fresh pairs goes to remedies of which too many trials said nothing.
    fn left_over(&mut self) -> Result<(), E> {
        let planned = affordable(self.known.len(), self.settings.trials);
        for _ in 0..ROUNDS_LEFT_OVER {
            let is_open = |set: &Vec<usize>| !self.problems.contains_key(set) && self.ratio(set).is_none();
            let open: Vec<Vec<usize>> = (0..planned).map(|at| vec![at]).filter(is_open).collect();
            if open.is_empty() || !self.helped().is_empty() || !self.round(Stage::Confirm, &open)? {
                break;
            }
        }
        Ok(())
    }

    /// The start and each of these sets once, in random order. False: the time is up.
    fn round(&mut self, stage: Stage, sets: &[Vec<usize>]) -> Result<bool, E> {
        let mut order: Vec<&[usize]> = sets.iter().map(Vec::as_slice).chain([&[][..]]).collect();
        order.shuffle(&mut self.random);
        let mut start = None;
        let mut all: Vec<(Vec<usize>, Measured)> = Vec::new();
        let mut is_whole = true;
        for set in order {
            let Some(measured) = self.trial(stage, set)? else {
                is_whole = false;
                break;
            };
            match set.is_empty() {
                true => start = Some(measured),
                false => all.push((set.to_vec(), measured)),
            }
        }
        for (set, measured) in all {
            if let Some(problem) = &measured.problem {
                self.problems.entry(set.clone()).or_insert_with(|| problem.clone());
            }
            if let Some(start) = &start {
                self.rounds.entry(set).or_default().push((start.clone(), measured));
            }
        }
        Ok(is_whole)
    }

    /// Median over rounds; `None` where too few carry the figure.
    fn ratio(&self, set: &[usize]) -> Option<f64> {
        let rounds = self.rounds.get(set)?;
        let tail = |one: &Measured| one.tail_ns.filter(|_| !one.is_void && one.problem.is_none());
        // Where a round's start says nothing, that of the others stands for it.
        let of_starts = median(rounds.iter().filter_map(|(start, _)| tail(start)).collect())?;
        let ratio = |(start, with): &(Measured, Measured)| {
            let ratio = tail(with)? / tail(start).unwrap_or(of_starts);
            (ratio.is_finite() && ratio > 0.0).then_some(ratio)
        };
        let ratios: Vec<f64> = rounds.iter().filter_map(ratio).collect();
        (ratios.len() >= ROUNDS_MIN).then(|| median(ratios)).flatten()
    }

    /// Sets without a problem that helped, the best first.
    fn helped(&self) -> Vec<(Vec<usize>, f64)> {
        let all = self.rounds.keys().filter(|set| !self.problems.contains_key(*set));
        let mut helped: Vec<(Vec<usize>, f64)> =
            all.filter_map(|set| Some((set.clone(), self.ratio(set)?))).filter(|(_, ratio)| *ratio <= HELPS).collect();
        helped.sort_by(|a, b| a.1.total_cmp(&b.1));
        helped
    }

    /// The set to confirm next: of those about as good as the best the simplest.
    fn choice(&self, attempts: &[Attempt]) -> Option<Vec<usize>> {
        let open: Vec<(Vec<usize>, f64)> = self
            .helped()
            .into_iter()
            .filter(|(set, _)| {
                // What was refused alone is not tried again with something else.
                attempts.iter().all(|attempt| !attempt.set.iter().all(|one| set.contains(one)))
            })
            .collect();
        let best = open.first()?.1;
        let cost = |set: &[usize]| (set.len(), set.iter().map(|at| u32::from(self.known[*at].rank)).sum::<u32>());
        open.into_iter()
            .filter(|(_, ratio)| *ratio <= best * AS_GOOD)
            .min_by(|a, b| cost(&a.0).cmp(&cost(&b.0)).then(a.1.total_cmp(&b.1)))
            .map(|(set, _)| set)
    }

    /// Fresh pairs of the start and the set until the judgement is sure. True besides: the time was up before that.
    fn confirm(&mut self, set: &[usize], nth: usize) -> Result<(Attempt, bool), E> {
        let plan = &self.settings.confirmation.clone();
        let last = plan.looks.iter().copied().max().unwrap_or(8);
        let seed = self.settings.seed.wrapping_add(1 + nth as u64);
        let order = pair_order(seed, last * (SPARE + 1));
        let mut pairs: Vec<(Measured, Measured)> = Vec::new();
        let (mut before, mut is_out, mut problem) = (Vec::new(), false, None);
        let mut ran = 0;
        for look in plan.looks.clone() {
            while sound(&pairs) < look && ran < order.len() && !is_out && problem.is_none() {
                let sets: [&[usize]; 2] = if order[ran] == Order::AB { [&[], set] } else { [set, &[]] };
                let mut both: [Option<Measured>; 2] = [None, None];
                for one in sets {
                    let Some(measured) = self.trial(Stage::Confirm, one)? else {
                        is_out = true;
                        break;
                    };
                    problem = problem.or_else(|| measured.problem.clone().filter(|_| !one.is_empty()));
                    both[usize::from(!one.is_empty())] = Some(measured);
                }
                ran += 1;
                if let [Some(a), Some(b)] = both {
                    pairs.push((a, b));
                }
            }
            let is_last = is_out || problem.is_some() || look == last || ran == order.len();
            let attempt = self.judged(set, &pairs, &before, is_last, problem.clone());
            let is_futile = ratio_of(&pairs).is_some_and(|ratio| ratio >= FUTILE);
            let goes_on = matches!(attempt.1, Next::Continue { .. }) && attempt.0.harmed.is_empty() && !is_futile;
            if is_last || !goes_on {
                let is_open = matches!(attempt.0.verdict, Verdict::NotEnoughEvidence { .. } | Verdict::Invalid { .. });
                return Ok((attempt.0, is_out && is_open && !(is_futile && sound(&pairs) >= PAIRS_MIN)));
            }
            before.push(sound(&pairs));
        }
        let attempt = self.judged(set, &pairs, &before, true, problem).0;
        Ok((attempt, is_out))
    }

    fn judged(
        &self,
        set: &[usize],
        pairs: &[(Measured, Measured)],
        before: &[usize],
        is_last: bool,
        problem: Option<Problem>,
    ) -> (Attempt, Next) {
        let settings = self.settings;
        let metric = |rule: Rule, of: &dyn Fn(&Measured) -> Option<f64>| Metric {
            rule,
            pairs: pairs
                .iter()
                .filter(|pair| is_sound(pair))
                .map(|(a, b)| Some(Pair { a: of(a)?, b: of(b)? }))
                .collect(),
        };
        let alone = |rule: Rule, of: &dyn Fn(&Measured) -> Option<f64>| {
            let judged = judge(&settings.confirmation, &[metric(rule, of)], before, is_last);
            (judged.findings.into_iter().next(), judged.next)
        };
        let (tail, next) = alone(settings.tail, &|one| one.tail_ns);
        let (p50, _) = alone(settings.tail, &|one| one.p50_ns);
        let share = Rule {
            scale: Scale::Share,
            minimum_effect: Margin { relative: 0.0, absolute: 0.001 },
            equivalence: Margin { relative: 0.0, absolute: 0.003 },
        };
        let has_deadline = pairs.iter().any(|(a, _)| a.missed.is_some());
        let missed = if has_deadline { alone(share, &|one| one.missed).0 } else { None };
        let guarding = Plan { accuse_alpha: settings.guard_alpha, ..settings.confirmation.clone() };
        let metrics: Vec<Metric> = settings
            .guards
            .iter()
            .enumerate()
            .map(|(at, guard)| metric(guard.rule, &|one| one.guards.get(at).copied().flatten()))
            .collect();
        let findings =
            if metrics.is_empty() { Vec::new() } else { judge(&guarding, &metrics, before, is_last).findings };
        let named = settings.guards.iter().zip(findings);
        let mut harmed = Vec::new();
        let guards = named
            .map(|(guard, finding)| {
                if finding.verdict == Verdict::Worse {
                    harmed.push(guard.name.clone());
                }
                (guard.name.clone(), finding.figures)
            })
            .collect();
        let verdict = tail.as_ref().map_or(Verdict::NotEnoughEvidence { more_pairs: None }, |one| one.verdict);
        let attempt = Attempt {
            set: set.to_vec(),
            verdict,
            tail: tail.and_then(|one| one.figures),
            p50: p50.and_then(|one| one.figures),
            missed: missed.and_then(|one| one.figures),
            guards,
            harmed,
            problem,
            pairs: sound(pairs),
        };
        (attempt, next)
    }

    fn tried(&self, attempts: &[Attempt]) -> Vec<Tried> {
        let singles = (0..self.known.len()).map(|at| vec![at]);
        let sets: std::collections::BTreeSet<Vec<usize>> =
            singles.chain(self.rounds.keys().cloned()).chain(self.problems.keys().cloned()).collect();
        let mut tried: Vec<Tried> = sets.into_iter().map(|set| self.one(set, attempts)).collect();
        tried.sort_by(|a, b| {
            let order = |one: &Tried| (one.standing != Standing::Confirmed, one.ratio.unwrap_or(f64::INFINITY));
            order(a).0.cmp(&order(b).0).then(order(a).1.total_cmp(&order(b).1)).then(a.set.cmp(&b.set))
        });
        tried
    }

    fn one(&self, set: Vec<usize>, attempts: &[Attempt]) -> Tried {
        let none = Vec::new();
        let rounds = self.rounds.get(&set).unwrap_or(&none);
        let both = |of: fn(&Measured) -> Option<f64>| {
            let of_start = median(rounds.iter().filter_map(|(start, _)| of(start)).collect())?;
            Some((of_start, median(rounds.iter().filter_map(|(_, with)| of(with)).collect())?))
        };
        let ratio = self.ratio(&set);
        let attempt = attempt_of(attempts, &set);
        let problem = attempt.and_then(|attempt| attempt.problem.clone()).or_else(|| self.problems.get(&set).cloned());
        let standing = match (problem, attempt) {
            (Some(problem), _) => Standing::Problem(problem),
            (None, Some(attempt)) if !attempt.harmed.is_empty() => Standing::Harms(attempt.harmed.clone()),
            (None, Some(attempt)) if attempt.verdict == Verdict::Better => Standing::Confirmed,
            (None, Some(_)) => Standing::NotConfirmed,
            (None, None) if ratio.is_none() => Standing::NotTried,
            (None, None) if ratio.is_some_and(|ratio| ratio <= HELPS) => Standing::Helped,
            (None, None) => Standing::DidNotHelp,
        };
        Tried {
            rounds: rounds.len(),
            ratio,
            tail_ns: both(|one| one.tail_ns),
            p50_ns: both(|one| one.p50_ns),
            missed: both(|one| one.missed),
            agreed: rounds.iter().map(|(_, with)| with.agreed).sum(),
            verified: rounds.iter().filter(|(_, with)| with.problem.is_none()).count(),
            standing,
            set,
        }
    }
}

fn is_sound((a, b): &(Measured, Measured)) -> bool {
    !a.is_void && !b.is_void && a.tail_ns.is_some() && b.tail_ns.is_some()
}

fn sound(pairs: &[(Measured, Measured)]) -> usize {
    pairs.iter().filter(|pair| is_sound(pair)).count()
}

/// Median over fresh pairs of the tail with the remedy ÷ that without.
fn ratio_of(pairs: &[(Measured, Measured)]) -> Option<f64> {
    let ratio = |(a, b): &(Measured, Measured)| Some(b.tail_ns? / a.tail_ns.filter(|ns| *ns > 0.0)?);
    median(pairs.iter().filter(|pair| is_sound(pair)).filter_map(ratio).collect())
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use rand::{Rng, RngExt};

    use super::*;

    /// A program whose tail is a level times a factor for each remedy, with noise of 20 % a trial.
    struct Simulated {
        random: Xoshiro256PlusPlus,
        factors: Vec<f64>,
        left: usize,
        /// The remedy under which the program fails.
        fails: Option<usize>,
        /// The remedy that takes CPU time, and how much more.
        costs: Option<(usize, f64)>,
        ran: usize,
    }

    impl Simulated {
        fn new(seed: u64, factors: &[f64]) -> Simulated {
            println!("seed {seed}");
            let random = Xoshiro256PlusPlus::seed_from_u64(seed);
            Simulated { random, factors: factors.to_vec(), left: usize::MAX, fails: None, costs: None, ran: 0 }
        }

        /// About normal.
        fn noise(random: &mut impl Rng) -> f64 {
            (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
        }

        fn trial(&mut self, set: &[usize]) -> Option<Measured> {
            self.left = self.left.checked_sub(1)?;
            self.ran += 1;
            let noise = (0.2 * Simulated::noise(&mut self.random)).exp();
            let factor: f64 = set.iter().map(|at| self.factors[*at]).product();
            let cpu = self.costs.filter(|(at, _)| set.contains(at)).map_or(1.0, |(_, more)| more);
            let cpu = 0.3 * cpu * (0.02 * Simulated::noise(&mut self.random)).exp();
            let fails = self.fails.is_some_and(|at| set.contains(&at));
            Some(Measured {
                tail_ns: Some(1e6 * factor * noise),
                p50_ns: Some(1e5),
                guards: vec![Some(cpu)],
                problem: fails.then(|| Problem::Failed("exit code 3".into())),
                ..Measured::default()
            })
        }

        fn search(&mut self, seed: u64) -> Found {
            let guard = Guard {
                name: "CPU time".into(),
                rule: Rule {
                    scale: Scale::Ratio,
                    minimum_effect: Margin { relative: 0.2, absolute: 0.0 },
                    equivalence: Margin { relative: 0.3, absolute: 0.0 },
                },
            };
            let settings = Settings { seed, guards: vec![guard], ..Settings::default() };
            let ranks: Vec<u8> = (0..self.factors.len() as u8).collect();
            let fits = |_: usize, _: usize| true;
            let found = search::<Infallible>(&settings, &ranks, &fits, &mut |_, set| Ok(self.trial(set)));
            found.unwrap()
        }
    }

    fn confirmed(found: &Found) -> Option<&[usize]> {
        found.confirmed.as_ref().map(|one| &found.attempts[one.attempt].set[..])
    }

    #[test]
    fn the_best_remedy_is_found_among_idle_ones_and_its_gain_is_of_fresh_pairs() {
        let mut alone = 0;
        for seed in 0..20 {
            let mut simulated = Simulated::new(seed, &[1.0, 0.95, 0.4, 1.1, 1.0]);
            let found = simulated.search(seed);
            let set = confirmed(&found).unwrap_or_else(|| panic!("{found:#?}"));
            assert!(set.contains(&2), "{set:?}");
            alone += usize::from(set == [2]);
            let figures = found.attempts[0].tail.as_ref().unwrap();
            let interval = figures.interval.unwrap();
            assert!(interval.low < -0.5 && interval.high > -0.7, "{interval:?}");
            assert_eq!(found.trials, simulated.ran);
            assert_eq!(found.tried[0].standing, Standing::Confirmed);
        }
        assert!(alone >= 18, "{alone} of 20");
    }

    #[test]
    fn two_that_help_together_are_chosen_together() {
        let mut both = 0;
        for seed in 0..20 {
            let found = Simulated::new(seed, &[0.5, 1.0, 0.5]).search(seed);
            both += usize::from(confirmed(&found) == Some(&[0, 2]));
            assert!(found.confirmed.is_some());
        }
        assert!(both >= 18, "{both} of 20");
    }

    #[test]
    fn where_nothing_helps_nothing_is_recommended() {
        let recommended = (0..200).filter(|seed| Simulated::new(*seed, &[1.0; 6]).search(*seed).confirmed.is_some());
        let recommended = recommended.count();
        assert!(recommended <= 4, "{recommended} of 200");
    }

    #[test]
    fn fresh_pairs_that_show_nothing_end_early_so_that_there_is_an_answer_in_the_time() {
        let most = Settings::default().trials;
        let of = |factors: &[f64], seed| Simulated { left: most, ..Simulated::new(seed, factors) }.search(seed);
        let without = (0..50).filter(|seed| of(&[1.0; 6], *seed).is_out).count();
        assert!(without <= 2, "{without} of 50 without an answer");
        let right =
            (0..50).filter(|seed| confirmed(&of(&[1.0, 0.6, 1.0, 1.0], *seed)).is_some_and(|set| set.contains(&1)));
        let right = right.count();
        assert!(right >= 48, "{right} of 50");
    }

    #[test]
    fn a_remedy_whose_first_trials_say_nothing_is_tried_in_the_time_of_the_pairs() {
        let mut simulated = Simulated::new(4, &[0.3]);
        let settings = Settings { seed: 4, ..Settings::default() };
        let mut singles = 0;
        let found = search::<Infallible>(&settings, &[0], &|_, _| false, &mut |stage, set| {
            singles += usize::from(stage == Stage::Singles);
            Ok(match stage {
                Stage::Singles if singles > 4 => None,
                Stage::Singles => simulated.trial(set).map(|one| Measured { is_void: true, ..one }),
                _ => simulated.trial(set),
            })
        });
        let found = found.unwrap();
        assert_eq!((confirmed(&found), found.is_out), (Some(&[0][..]), false), "{found:#?}");
    }

    #[test]
    fn what_a_short_time_holds_is_kept_for_fresh_pairs() {
        assert_eq!(affordable(8, FEWEST_TRIALS), 1);
        for trials in [FEWEST_TRIALS, 30, 40, 60, 100, 400] {
            let singles = ROUNDS_MIN * (affordable(8, trials) + 1);
            assert!(singles + CONFIRMING_TRIALS <= trials, "{singles} of {trials}");
        }
    }

    #[test]
    fn of_two_as_good_the_simpler_is_taken() {
        for seed in 0..20 {
            let found = Simulated::new(seed, &[0.1, 0.1]).search(seed);
            let set = confirmed(&found).unwrap();
            assert!(set == [0] || set == [0, 1], "{set:?}");
        }
    }

    #[test]
    fn a_remedy_that_makes_the_program_fail_is_out_at_once() {
        let mut simulated = Simulated { fails: Some(0), ..Simulated::new(7, &[0.1, 0.5]) };
        let found = simulated.search(7);
        assert_eq!(confirmed(&found), Some(&[1][..]));
        let first = found.tried.iter().find(|one| one.set == [0]).unwrap();
        assert_eq!((first.rounds, &first.standing), (1, &Standing::Problem(Problem::Failed("exit code 3".into()))));
    }

    #[test]
    fn a_remedy_that_costs_too_much_gives_way_to_the_next() {
        let mut simulated = Simulated { costs: Some((0, 2.0)), ..Simulated::new(3, &[0.1, 0.5]) };
        let found = simulated.search(3);
        let harmed = found.tried.iter().find(|one| one.set == [0]).unwrap();
        assert_eq!(harmed.standing, Standing::Harms(vec!["CPU time".into()]));
        assert_eq!(confirmed(&found), Some(&[1][..]), "{found:#?}");
    }

    #[test]
    fn a_search_that_is_out_of_time_says_so_and_recommends_nothing() {
        for left in [0, 1, 5, 12, 20] {
            let found = Simulated { left, ..Simulated::new(5, &[0.1, 1.0]) }.search(5);
            assert_eq!(found.confirmed, None, "{left} trials");
            assert!(found.is_out || found.attempts.is_empty(), "{left} trials: {found:#?}");
        }
        assert!(Simulated { left: 0, ..Simulated::new(5, &[0.1]) }.search(5).is_out);
    }

    #[test]
    fn the_expected_number_of_trials_is_about_what_it_takes() {
        for remedies in [1, 3, 8] {
            let mut factors = vec![1.0; remedies];
            factors[0] = 0.3;
            let mut simulated = Simulated::new(9, &factors);
            simulated.search(9);
            let (expected, took) = (expected_trials(remedies, 200), simulated.ran);
            assert!(took <= expected * 2 && expected <= took * 2, "{remedies}: {expected} expected, took {took}");
        }
        assert!(expected_trials(8, 20) <= 20);
    }
}
