//! The whole result of a tuning, as it is serialised: what was found, in the names and words of the remedies.

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::compare::ChangeFigures;

use crate::{Attempt, Found, Left, Plan, Remedy, Standing, Tried, Within, Written, files::files};

/// The result.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Tuned {
    /// The command, as words.
    pub command: Vec<String>,
    /// Options that a further tuning of it needs, too, as words.
    #[serde(skip)]
    pub options: Vec<String>,
    /// The chain's name.
    pub chain: String,
    /// Its points in order.
    pub points: Vec<String>,
    /// Its deadline; null without one.
    pub deadline_ns: Option<u64>,
    /// Messages of the first recording.
    pub messages: u64,
    /// The figure that was to become smaller: "p99", "p95", "p90"; empty where nothing was tried.
    pub figure: String,
    /// Causes of the tail in the first recording, largest first.
    pub causes: Vec<TailCause>,
    /// What is recommended; null where nothing is.
    pub recommended: Option<Recommended>,
    /// All sets of remedies of the selection. Their figures are no gains.
    pub tried: Vec<Set>,
    /// Remedies that were not tried.
    #[serde(rename = "not_tried")]
    pub left: Vec<Left>,
    /// What only the program can change.
    #[serde(rename = "program")]
    pub within: Vec<Within>,
    /// Trials in all.
    pub trials: usize,
    /// Length of a trial; null where the command ends by itself.
    pub trial_s: Option<f64>,
    /// Since the start.
    pub elapsed_s: f64,
    /// What the order of trials was drawn from.
    pub seed: u64,
    /// Everything that was changed is as it was.
    #[serde(rename = "restored")]
    pub is_restored: bool,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// What can be tried; the search knows them by their numbers.
    #[serde(skip)]
    pub remedies: Vec<Remedy>,
    /// The time, or the trials, did not suffice.
    #[serde(skip)]
    pub is_out: bool,
    /// Then: what looked best.
    #[serde(skip)]
    pub promising: Option<Promising>,
    /// And how much time probably suffices.
    #[serde(skip)]
    pub needed_s: Option<f64>,
    /// A signal ended it.
    #[serde(skip)]
    pub is_interrupted: bool,
    /// Where the files were written.
    #[serde(skip)]
    pub folder: Option<String>,
}

/// A cause of the tail.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cause")]
pub struct TailCause {
    /// Its word.
    pub cause: String,
    /// Which lock, by whom.
    pub detail: String,
    /// Share of the excess of the tail (0..1).
    pub tail_share: f64,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// A set of remedies is recommended.
    Recommended,
    /// Nothing that was tried helps, or there was nothing to try.
    #[serde(rename = "nothing helps")]
    NothingHelps,
    /// Remedies exist, and none may be tried.
    #[serde(rename = "not permitted")]
    NotPermitted,
    /// The time, or the trials, did not suffice.
    #[serde(rename = "not enough evidence")]
    NotEnough,
    /// A signal ended it.
    Interrupted,
}

/// A set of remedies that fresh pairs have confirmed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Recommended {
    /// Their numbers.
    #[serde(skip)]
    pub set: Vec<usize>,
    /// Names of the remedies.
    pub remedies: Vec<String>,
    /// In words.
    pub text: String,
    /// The changes, as `taut tune --apply` reads them.
    #[schemars(with = "serde_json::Value")]
    pub changes: Plan,
    /// What it costs, one sentence each.
    pub costs: Vec<String>,
    /// Fresh pairs.
    pub pairs: usize,
    /// The tail.
    pub tail: Option<Change>,
    /// The median.
    pub p50: Option<Change>,
    /// The share of messages over the deadline; of a loop without one, of activations that were not done at the next release; null where neither is
    /// known.
    pub missed: Option<Change>,
    /// What was guarded, and did not get worse.
    pub guards: Vec<Guarded>,
    /// Files that apply it: name and text.
    pub files: Vec<Written>,
}

/// Before and after, on fresh pairs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Change {
    /// Median over trials of the command as it is, in ns or as a share.
    pub before: f64,
    /// The same with the remedy.
    pub after: f64,
    /// −0.5 is half the time; of shares, a difference.
    pub change: f64,
    /// Bounds of the change; null where so few pairs give none.
    pub interval: Option<[f64; 2]>,
    /// Confidence of the interval; null without one.
    pub confidence: Option<f64>,
}

/// Something that must not get worse.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Guard")]
pub struct Guarded {
    /// What.
    pub guard: String,
    /// How it changed.
    pub change: Option<Change>,
}

/// A set of remedies in the selection.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Set {
    /// Their numbers.
    #[serde(skip)]
    pub set: Vec<usize>,
    /// Names of the remedies.
    pub remedies: Vec<String>,
    /// In words.
    pub text: String,
    /// Causes that they answer.
    pub against: Vec<String>,
    /// Predicted change of the tail by the first recording, as a share of it (0..1), of the largest.
    pub predicted_gain: f64,
    /// "confirmed", "not confirmed", "harms", "helped", "did not help", "fails", "not in force", "not tried".
    #[schemars(with = "String")]
    pub standing: Standing,
    /// The same in words.
    pub why: String,
    /// What each costs.
    pub costs: Vec<String>,
    /// Rounds with it.
    pub rounds: usize,
    /// Of them, those in which it was found in force.
    pub verified: usize,
    /// Kernel events that agreed with it.
    pub kernel_events: usize,
    /// Median over rounds of the tail with it ÷ that without.
    pub ratio: Option<f64>,
    /// [without, with], medians over rounds.
    pub tail_ns: Option<(f64, f64)>,
    /// The same of the median.
    pub p50_ns: Option<(f64, f64)>,
    /// The same of what is missed.
    pub missed: Option<(f64, f64)>,
    /// What fresh pairs said of it; null where it was held against none.
    pub fresh: Option<Fresh>,
}

/// A set of remedies on fresh pairs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Fresh {
    /// How many.
    pub pairs: usize,
    /// The tail.
    pub tail: Option<Change>,
    /// The median.
    pub p50: Option<Change>,
    /// The share of messages over the deadline; of a loop without one, of activations that were not done at the next release; null where neither is
    /// known.
    pub missed: Option<Change>,
}

/// What looked best when the time was up.
#[derive(Clone, Debug, PartialEq)]
pub struct Promising {
    /// Numbers of the remedies.
    pub set: Vec<usize>,
    /// The tail without.
    pub before_ns: f64,
    /// The tail with.
    pub after_ns: f64,
    /// Fresh pairs, too few, with the bounds of the change where they give some; `None` for figures of the selection.
    pub pairs: Option<(usize, Option<[f64; 2]>)>,
    /// Rounds of the selection.
    pub rounds: usize,
}

impl Tuned {
    /// Takes what the search has found.
    pub fn take(&mut self, found: &Found) {
        self.trials = found.trials;
        self.is_out = found.is_out;
        self.promising = promising(found);
        let confirmed = found.confirmed.as_ref().and_then(|one| found.attempts.get(one.attempt));
        self.recommended = confirmed.map(|attempt| self.recommended_by(attempt));
        self.tried = found.tried.iter().map(|tried| self.set_of(tried, found.attempt_of(&tried.set))).collect();
    }

    /// The answer.
    pub fn answer(&self) -> Answer {
        match () {
            () if self.recommended.is_some() => Answer::Recommended,
            () if self.is_interrupted => Answer::Interrupted,
            () if self.is_out => Answer::NotEnough,
            () if self.remedies.is_empty() && self.left.iter().any(|left| left.grant.is_some()) => Answer::NotPermitted,
            () => Answer::NothingHelps,
        }
    }

    /// The command as a shell takes it.
    pub fn shell_command(&self) -> String {
        shell(&self.command)
    }

    /// A further tuning with these options besides, as a shell takes it.
    pub fn again(&self, options: &[String]) -> String {
        let words =
            ["taut".to_owned(), "tune".to_owned()].into_iter().chain(self.options.iter().chain(options).cloned());
        format!("{} -- {}", shell(&words.collect::<Vec<_>>()), self.shell_command())
    }

    /// All changes of a set of remedies.
    pub fn plan(&self, set: &[usize]) -> Plan {
        self.remedies(set).fold(Plan::default(), |all, one| all.and(&one.plan).unwrap_or(all))
    }

    /// Makes the files that apply the recommendation. `measured`: lines about what was measured, for their heads.
    pub fn make_files(&mut self, measured: &[String]) {
        let Some(of) = &self.recommended else { return };
        let remedies: Vec<&Remedy> = self.remedies(&of.set).collect();
        let files = files(&remedies, &of.changes, measured);
        self.recommended.iter_mut().for_each(|of| of.files.clone_from(&files));
    }

    /// Files that apply the recommendation.
    pub fn files(&self) -> &[Written] {
        self.recommended.as_ref().map_or(&[], |of| &of.files)
    }

    /// Remedies by their numbers, as people call them: "timer-slack + nice".
    pub fn name(&self, set: &[usize]) -> String {
        self.names(set).join(" + ")
    }

    /// Remedies by their numbers.
    pub fn remedies(&self, set: &[usize]) -> impl Iterator<Item = &Remedy> {
        set.iter().filter_map(|at| self.remedies.get(*at))
    }

    fn names(&self, set: &[usize]) -> Vec<String> {
        self.remedies(set).map(|remedy| remedy.id.clone()).collect()
    }

    fn costs(&self, set: &[usize]) -> Vec<String> {
        self.remedies(set).map(|remedy| format!("{}: {}", remedy.id, remedy.row.cost)).collect()
    }

    fn recommended_by(&self, attempt: &Attempt) -> Recommended {
        let changes = self.plan(&attempt.set);
        let Fresh { pairs, tail, p50, missed } = Fresh::of(attempt);
        let guarded = |(guard, figures): &(String, Option<ChangeFigures>)| Guarded {
            guard: guard.clone(),
            change: figures.as_ref().map(Change::of),
        };
        Recommended {
            set: attempt.set.clone(),
            remedies: self.names(&attempt.set),
            text: changes.to_string(),
            changes,
            costs: self.costs(&attempt.set),
            pairs,
            tail,
            p50,
            missed,
            guards: attempt.guards.iter().map(guarded).collect(),
            files: Vec::new(),
        }
    }

    fn set_of(&self, tried: &Tried, attempt: Option<&Attempt>) -> Set {
        Set {
            set: tried.set.clone(),
            remedies: self.names(&tried.set),
            text: self.plan(&tried.set).to_string(),
            against: self.remedies(&tried.set).flat_map(|remedy| remedy.against.clone()).collect(),
            predicted_gain: self.remedies(&tried.set).map(|remedy| remedy.gain).fold(0.0, f64::max),
            why: match &tried.standing {
                Standing::NotTried if tried.rounds > 0 => "too few sound trials".into(),
                standing => standing.to_string(),
            },
            standing: tried.standing.clone(),
            costs: self.costs(&tried.set),
            rounds: tried.rounds,
            verified: tried.verified,
            kernel_events: tried.agreed,
            ratio: tried.ratio,
            tail_ns: tried.tail_ns,
            p50_ns: tried.p50_ns,
            missed: tried.missed,
            fresh: attempt.map(Fresh::of),
        }
    }
}

fn shell(words: &[String]) -> String {
    words.iter().map(|word| taut_doctor::quoted(word)).collect::<Vec<_>>().join(" ")
}

impl Fresh {
    fn of(attempt: &Attempt) -> Fresh {
        let of = |figures: &Option<ChangeFigures>| figures.as_ref().map(Change::of);
        Fresh { pairs: attempt.pairs, tail: of(&attempt.tail), p50: of(&attempt.p50), missed: of(&attempt.missed) }
    }
}

impl Change {
    fn of(figures: &ChangeFigures) -> Change {
        Change {
            before: figures.a.value,
            after: figures.b.value,
            change: figures.change,
            interval: figures.interval.map(|interval| [interval.low, interval.high]),
            confidence: figures.interval.map(|interval| interval.confidence),
        }
    }
}

/// Where the time did not suffice: the set that was under confirmation, else the best of the selection. It is no recommendation.
fn promising(found: &Found) -> Option<Promising> {
    if !found.is_out {
        return None;
    }
    let is_open = |one: &&Attempt| one.pairs > 0 && one.problem.is_none() && one.harmed.is_empty();
    let under_way = found.attempts.last().filter(is_open).and_then(|attempt| {
        let Change { before, after, interval, .. } = attempt.tail.as_ref().map(Change::of)?;
        let promising = Promising {
            set: attempt.set.clone(),
            before_ns: before,
            after_ns: after,
            pairs: Some((attempt.pairs, interval)),
            rounds: 0,
        };
        (after < before).then_some(promising)
    });
    under_way.or_else(|| {
        let tried = found.tried.iter().find(|one| one.standing == Standing::Helped)?;
        let (before_ns, after_ns) = tried.tail_ns?;
        Some(Promising { set: tried.set.clone(), before_ns, after_ns, pairs: None, rounds: tried.rounds })
    })
}
