//! Lanes: what threads (or buses, or hosts) did over a stretch of time, one line each, with the pieces that matter on top.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Table, Text, Tone};

/// One or several stretches of time over the same classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Lanes {
    /// The first is shown; pages show the others, too.
    pub items: Vec<LaneItem>,
    /// What pieces may be.
    pub classes: Vec<Class>,
}

/// Textures that a page has.
pub const TEXTURES: u8 = 5;

/// A kind of piece, as a renderer sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Class {
    /// Stands for it where there is no colour.
    pub letter: char,
    /// What it is.
    pub name: String,
    /// Its colour.
    pub tone: Tone,
    /// Tells it from others of its colour on a page: 0 for none, up to [`TEXTURES`].
    pub texture: u8,
}

impl Class {
    /// Of these.
    pub fn new(letter: char, name: impl Into<String>, tone: Tone) -> Class {
        Class { letter, name: name.into(), tone, texture: 0 }
    }

    /// The same with a texture.
    pub fn textured(self, texture: u8) -> Class {
        Class { texture: texture.min(TEXTURES), ..self }
    }
}

/// One stretch of time, such as a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LaneItem {
    /// "Message 1734: 11.0 ms".
    pub title: Text,
    /// Where it begins.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// From top to bottom.
    pub rows: Vec<LaneRow>,
    /// What a row did, whether it matters or not: thousands of [row, from_ns, to_ns, activity].
    #[schemars(with = "Vec<(usize, u64, u64, Activity)>")]
    pub states: Vec<LaneState>,
    /// What matters.
    pub pieces: Vec<LanePiece>,
    /// Times with names, such as points that a message passed.
    pub moments: Vec<(u64, String)>,
    /// The pieces as figures.
    #[serde(skip)]
    pub table: Table,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LaneRow {
    /// What several rows belong to, such as a host; "" for none.
    pub group: String,
    /// Such as a thread.
    pub name: String,
}

/// What a row did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "(usize, u64, u64, Activity)")]
pub struct LaneState {
    /// Its number.
    pub row: usize,
    /// From here.
    pub from_ns: u64,
    /// To here.
    pub to_ns: u64,
    /// This.
    pub activity: Activity,
}

/// What a row may be doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Activity {
    /// Running.
    Running,
    /// Ready to run, but another one took its place.
    Preempted,
    /// Ready to run.
    Ready,
    /// Waiting.
    Waiting,
    /// Not known.
    Unknown,
}

/// A stretch that matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LanePiece {
    /// On this row.
    pub row: usize,
    /// From here.
    pub from_ns: u64,
    /// To here.
    pub to_ns: u64,
    /// Number of its class.
    pub class: usize,
    /// What it is, in words.
    pub text: String,
}

impl From<LaneState> for (usize, u64, u64, Activity) {
    fn from(LaneState { row, from_ns, to_ns, activity }: LaneState) -> Self {
        (row, from_ns, to_ns, activity)
    }
}

impl Activity {
    /// On a terminal.
    pub(crate) fn mark(self) -> char {
        match self {
            Activity::Running => '─',
            Activity::Preempted | Activity::Ready => '~',
            Activity::Waiting => '·',
            Activity::Unknown => ' ',
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Activity::Running => "running",
            Activity::Preempted => "preempted",
            Activity::Ready => "ready to run",
            Activity::Waiting => "waiting",
            Activity::Unknown => "unknown",
        }
    }
}
