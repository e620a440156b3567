//! The JSON form of an explanation.

use schemars::JsonSchema;
use serde::Serialize;
use taut_analysis as found;

use taut_stats::Distribution;

/// What the tail's messages spent their time on beyond the typical message.
#[derive(Serialize, JsonSchema)]
pub struct CauseShare {
    /// cpu, syscall, page_fault, irq, preempted, wakeup, throttled, lock, gil, io, sleep, timer_slack, queued, executor, disk,
    /// stopped, hypervisor or unknown.
    pub cause: &'static str,
    /// Which lock, thread, descriptor …; empty when the cause says it all.
    pub detail: String,
    /// Share of the tail's excess over the typical message (0..1).
    pub tail_share: f64,
    /// Time spent so in the tail's messages altogether.
    pub time_ns: u64,
    /// Time spent so in the typical message.
    pub typical_ns: u64,
    /// Explained messages that spent any time so.
    pub messages: u64,
}

/// Which messages are the tail.
#[derive(Serialize, JsonSchema)]
pub struct Tail {
    /// Messages explained.
    pub explained: u64,
    /// Messages in the tail.
    pub messages: u64,
    /// Quantile above which the tail begins; null when there are too few messages, or where no quantile says which messages
    /// are explained.
    pub quantile: Option<f64>,
    /// Messages that took no longer were not examined.
    pub limit_ns: u64,
    /// Why these messages: "tail", "deadline" (all that missed it), "overrun" (all activations longer than their loop's period),
    /// "above" (named by the user) or "none".
    pub selected: &'static str,
}

/// Messages that stand apart above the main mode of the distribution.
#[derive(Serialize, JsonSchema)]
pub struct Mode {
    pub from_ns: u64,
    pub to_ns: u64,
    pub p50_ns: u64,
    pub messages: u64,
    /// Of all messages (0..1).
    pub share: f64,
    /// What they have beyond typical messages, largest first.
    pub causes: Vec<ModeCause>,
}

#[derive(Serialize, JsonSchema)]
pub struct ModeCause {
    pub cause: &'static str,
    /// Where one makes most of it; else empty.
    pub detail: String,
    /// Of the excess of the mode's messages (0..1).
    pub share: f64,
}

/// A party that took time from the tail's messages.
#[derive(Serialize, JsonSchema)]
pub struct Party {
    /// "thread", "process", "lock" or "irq".
    pub kind: String,
    pub name: String,
    pub time_ns: u64,
    /// Messages of the tail that it touched.
    pub messages: u64,
    pub causes: Vec<&'static str>,
}

#[derive(Serialize, JsonSchema)]
pub struct Hypothesis {
    /// "lock:sdk_lock", "gil", "hop:a → b", "process:NAME", "irq" …
    pub hypothesis: String,
    /// "contributes": the lower bound of the share is at least 5 %; "does_not_contribute": the upper bound is below;
    /// "undecided": the interval holds 5 %, or the recording does not show it.
    pub result: &'static str,
    /// What would decide an undecided one; else empty.
    pub decided_by: String,
    /// Time that each message lost to it.
    pub wait: Distribution,
    /// Messages that lost any.
    pub messages: u64,
    /// Share of the tail's excess over the typical message (0..1).
    pub tail_share: f64,
    /// 95 % interval of the share.
    pub interval: (f64, f64),
    pub sentence: String,
}

/// A prediction.
#[derive(Serialize, JsonSchema)]
pub struct Prediction {
    pub without: String,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    /// 95 % interval of the p99 of another recording of this length, made without the cause; null where p99 is.
    pub interval: Option<(u64, u64)>,
    /// p50, p95 and p99 before and after, as far as messages lie beyond them.
    pub quantiles: Vec<Predicted>,
    /// Quantile that gain is of.
    pub gain_quantile: Option<f64>,
    /// Change of that quantile, as a share of its value as measured.
    pub gain: f64,
    /// Messages that miss the deadline; null without one.
    pub missed: Option<u64>,
    /// Whether messages waited for busy threads, so that the recorded messages were replayed without the cause.
    pub replayed: bool,
    pub assumption: String,
}

/// A quantile before and after.
#[derive(Serialize, JsonSchema)]
pub struct Predicted {
    pub quantile: f64,
    /// As measured.
    pub before_ns: u64,
    /// As predicted.
    pub after_ns: u64,
    /// 95 % interval of the quantile of another recording of this length, made without the cause.
    pub interval: (u64, u64),
}

#[derive(Serialize, JsonSchema)]
pub struct Recommendation {
    pub against: String,
    pub evidence: String,
    pub remedy: String,
    pub gain: f64,
    pub verify: String,
}

/// One message; its pieces sum to total_ns.
#[derive(Serialize, JsonSchema)]
pub struct Message {
    pub id: u64,
    /// Since the recording's start.
    pub start_ns: u64,
    pub total_ns: u64,
    /// What that time was spent on, largest first.
    pub causes: Vec<TimePiece>,
}

#[derive(Serialize, JsonSchema)]
pub struct TimePiece {
    pub cause: &'static str,
    pub detail: String,
    pub time_ns: u64,
}

/// One of the worst messages with its critical path.
#[derive(Serialize, JsonSchema)]
pub struct Path {
    #[serde(flatten)]
    pub message: Message,
    /// [index of the point, since the recording's start]
    pub passes: Vec<(usize, u64)>,
    /// In order of time, without gaps.
    pub path: Vec<PathPiece>,
    pub lanes: Vec<Lane>,
}

#[derive(Serialize, JsonSchema)]
pub struct PathPiece {
    pub from_ns: u64,
    pub to_ns: u64,
    /// Index of the hop.
    pub hop: usize,
    /// Index of the lane whose thread's time it was.
    pub lane: usize,
    pub cause: &'static str,
    pub detail: String,
    /// The message that the thread was busy with, or had been late by, where this one waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    pub note: String,
}

/// What one thread did meanwhile.
#[derive(Serialize, JsonSchema)]
pub struct Lane {
    pub thread: String,
    /// [from_ns, to_ns, running | preempted | woken | blocked | unknown]
    pub states: Vec<(u64, u64, &'static str)>,
}

pub fn tail(found: &found::Explained) -> Tail {
    Tail {
        explained: found.messages,
        messages: found.tail_messages,
        quantile: found.tail_quantile,
        limit_ns: found.tail_limit_ns,
        selected: match found.selected {
            found::Selected::Nothing => "none",
            found::Selected::Tail(_) => "tail",
            found::Selected::Missed => "deadline",
            found::Selected::Overran => "overrun",
            found::Selected::AboveQuantile(_) | found::Selected::AboveTime => "above",
        },
    }
}

pub fn modes(found: &[found::Mode]) -> Vec<Mode> {
    let cause = |(cause, detail, share): &(found::Cause, String, f64)| ModeCause {
        cause: cause.word(),
        detail: detail.clone(),
        share: *share,
    };
    let one = |mode: &found::Mode| Mode {
        from_ns: mode.from_ns,
        to_ns: mode.to_ns,
        p50_ns: mode.p50_ns,
        messages: mode.messages,
        share: mode.share,
        causes: mode.causes.iter().map(cause).collect(),
    };
    found.iter().map(one).collect()
}

pub fn causes(found: &[found::CauseShare]) -> Vec<CauseShare> {
    let one = |share: &found::CauseShare| CauseShare {
        cause: share.cause.word(),
        detail: share.detail.clone(),
        tail_share: share.tail_share,
        time_ns: share.time_ns,
        typical_ns: share.typical_ns,
        messages: share.messages,
    };
    found.iter().map(one).collect()
}

pub fn responsible(found: &[found::Party]) -> Vec<Party> {
    let one = |party: &found::Party| Party {
        kind: party.kind.clone(),
        name: party.name.clone(),
        time_ns: party.time_ns,
        messages: party.messages,
        causes: party.causes.iter().map(|cause| cause.word()).collect(),
    };
    found.iter().map(one).collect()
}

pub fn hypotheses(found: &[found::Hypothesis]) -> Vec<Hypothesis> {
    let one = |hypothesis: &found::Hypothesis| Hypothesis {
        hypothesis: hypothesis.hypothesis.clone(),
        result: hypothesis.result.word(),
        decided_by: hypothesis.decided_by.clone(),
        wait: hypothesis.wait.clone(),
        messages: hypothesis.touched,
        tail_share: hypothesis.tail_share,
        interval: hypothesis.tail_share_interval,
        sentence: hypothesis.sentence.clone(),
    };
    found.iter().map(one).collect()
}

fn predicted(found: &found::Predicted) -> Predicted {
    let found::Predicted { quantile, before_ns, after_ns, interval_ns: interval } = *found;
    Predicted { quantile, before_ns, after_ns, interval }
}

pub fn predictions(found: &[found::Prediction]) -> Vec<Prediction> {
    let one = |found: &found::Prediction| Prediction {
        without: found.without.clone(),
        p50_ns: found.p50_ns,
        p99_ns: found.p99_ns,
        interval: found.quantiles.iter().find(|of| of.quantile == 0.99).map(|of| of.interval_ns),
        quantiles: found.quantiles.iter().map(predicted).collect(),
        gain_quantile: found.gain_quantile,
        gain: found.gain,
        missed: found.missed,
        replayed: found.is_replayed,
        assumption: found.assumption.clone(),
    };
    found.iter().map(one).collect()
}

pub fn recommendations(found: &[found::Recommendation]) -> Vec<Recommendation> {
    let one = |found: &found::Recommendation| Recommendation {
        against: found.against.clone(),
        evidence: found.evidence.clone(),
        remedy: found.remedy.clone(),
        gain: found.gain,
        verify: found.verify.clone(),
    };
    found.iter().map(one).collect()
}

pub fn pieces(found: &[found::TimePiece]) -> Vec<TimePiece> {
    let piece = |piece: &found::TimePiece| TimePiece {
        cause: piece.cause.word(),
        detail: piece.detail.clone(),
        time_ns: piece.ns,
    };
    found.iter().map(piece).collect()
}

pub fn message(time: &found::MessageTime) -> Message {
    Message { id: time.id, start_ns: time.start_ns, total_ns: time.total_ns, causes: pieces(&time.pieces) }
}

pub fn path(found: &found::MessagePath) -> Path {
    let piece = |piece: &found::PathPiece| PathPiece {
        from_ns: piece.from_ns,
        to_ns: piece.to_ns,
        hop: piece.hop,
        lane: piece.lane,
        cause: piece.cause.word(),
        detail: piece.detail.clone(),
        behind: piece.behind,
        note: piece.note.clone(),
    };
    let lane = |lane: &found::Lane| Lane {
        thread: lane.thread.clone(),
        states: lane.states.iter().map(|(from, to, state)| (*from, *to, state.word())).collect(),
    };
    Path {
        message: message(&found.time),
        passes: found.passes.clone(),
        path: found.path.iter().map(piece).collect(),
        lanes: found.lanes.iter().map(lane).collect(),
    }
}
