//! The JSON form of an explanation: twins of `taut_analysis::Explained`.

use schemars::JsonSchema;
use serde::Serialize;
use taut_analysis as found;

use crate::json::{Figures, figures};

/// What the tail's messages spent their time on beyond the usual message.
#[derive(Serialize, JsonSchema)]
pub struct CauseShare {
    /// work, syscall, page_fault, irq, preempted, wakeup, throttled, lock, gil, io, sleep, timer_slack, queued, disk,
    /// stopped, hypervisor or unknown.
    pub cause: &'static str,
    /// Which lock, thread, descriptor …; empty when the cause says it all.
    pub detail: String,
    /// Share of the tail's excess over the usual message (0..1).
    pub tail_share: f64,
    /// Time spent so in the tail's messages altogether.
    pub time_ns: u64,
    /// Time spent so in the usual message.
    pub usual_ns: u64,
}

/// Which messages are the tail.
#[derive(Serialize, JsonSchema)]
pub struct Tail {
    /// Messages explained.
    pub explained: u64,
    /// Messages in the tail.
    pub messages: u64,
    /// Quantile above which the tail begins; null when there are too few messages.
    pub quantile: Option<f64>,
    pub limit_ns: u64,
}

/// A party that took time from the tail's messages.
#[derive(Serialize, JsonSchema)]
pub struct Culprit {
    /// "thread", "process", "lock" or "irq".
    pub kind: String,
    pub name: String,
    pub time_ns: u64,
    /// Messages of the tail that it touched.
    pub messages: u64,
    pub causes: Vec<&'static str>,
}

#[derive(Serialize, JsonSchema)]
pub struct Verdict {
    pub suspect: String,
    /// Whether it makes the tail.
    pub contended: bool,
    /// Time that each message lost to it.
    pub wait: Figures,
    /// Messages that lost any.
    pub touched: u64,
    pub tail_share: f64,
    /// 95 % interval of the share.
    pub tail_share_low: f64,
    pub tail_share_high: f64,
    pub sentence: String,
}

/// A prediction.
#[derive(Serialize, JsonSchema)]
pub struct WhatIf {
    pub without: String,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    /// Change of the highest carried quantile up to p99, as a share of it.
    pub gain: f64,
    pub assumption: String,
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
    pub budget: Vec<BudgetPiece>,
}

#[derive(Serialize, JsonSchema)]
pub struct BudgetPiece {
    pub cause: &'static str,
    pub detail: String,
    pub ns: u64,
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
    }
}

pub fn causes(found: &[found::CauseShare]) -> Vec<CauseShare> {
    let one = |share: &found::CauseShare| CauseShare {
        cause: share.cause.word(),
        detail: share.detail.clone(),
        tail_share: share.tail_share,
        time_ns: share.time_ns,
        usual_ns: share.usual_ns,
    };
    found.iter().map(one).collect()
}

pub fn culprits(found: &[found::Culprit]) -> Vec<Culprit> {
    let one = |culprit: &found::Culprit| Culprit {
        kind: culprit.kind.clone(),
        name: culprit.name.clone(),
        time_ns: culprit.time_ns,
        messages: culprit.messages,
        causes: culprit.causes.iter().map(|cause| cause.word()).collect(),
    };
    found.iter().map(one).collect()
}

pub fn verdicts(found: &[found::Verdict]) -> Vec<Verdict> {
    let one = |verdict: &found::Verdict| Verdict {
        suspect: verdict.suspect.clone(),
        contended: verdict.contended,
        wait: figures(&verdict.wait),
        touched: verdict.touched,
        tail_share: verdict.tail_share,
        tail_share_low: verdict.tail_share_interval.0,
        tail_share_high: verdict.tail_share_interval.1,
        sentence: verdict.sentence.clone(),
    };
    found.iter().map(one).collect()
}

pub fn what_if(found: &[found::WhatIf]) -> Vec<WhatIf> {
    let one = |found: &found::WhatIf| WhatIf {
        without: found.without.clone(),
        p50_ns: found.p50_ns,
        p99_ns: found.p99_ns,
        gain: found.gain,
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

pub fn pieces(found: &[found::BudgetPiece]) -> Vec<BudgetPiece> {
    let piece = |piece: &found::BudgetPiece| BudgetPiece {
        cause: piece.cause.word(),
        detail: piece.detail.clone(),
        ns: piece.ns,
    };
    found.iter().map(piece).collect()
}

pub fn message(budget: &found::Budget) -> Message {
    Message { id: budget.id, start_ns: budget.start_ns, total_ns: budget.total_ns, budget: pieces(&budget.pieces) }
}

pub fn path(found: &found::MessagePath) -> Path {
    let piece = |piece: &found::PathPiece| PathPiece {
        from_ns: piece.from_ns,
        to_ns: piece.to_ns,
        hop: piece.hop,
        lane: piece.lane,
        cause: piece.cause.word(),
        detail: piece.detail.clone(),
        note: piece.note.clone(),
    };
    let lane = |lane: &found::Lane| Lane {
        thread: lane.thread.clone(),
        states: lane.states.iter().map(|(from, to, state)| (*from, *to, state.word())).collect(),
    };
    Path {
        message: message(&found.budget),
        passes: found.passes.clone(),
        path: found.path.iter().map(piece).collect(),
        lanes: found.lanes.iter().map(lane).collect(),
    }
}
