//! The state of one setting.

use crate::Remedy;
use schemars::JsonSchema;
use serde::Serialize;

/// How it stands with one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Works against a control loop.
    Bad,
    /// Could be better, or matters only for some loops.
    Warn,
    /// There is an answer, but this user or this container may not see it.
    NotVisible,
    /// As a control loop wants it.
    Good,
    /// The machine has no such thing, or none was named.
    NotApplicable,
}

/// What a look found, or why it could not look.
pub(crate) type Look = Result<Seen, Seen>;

/// A state with its words; the remedy of the table unless the look has a closer one.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub state: State,
    pub value: String,
    pub remedy: Option<Remedy>,
}

impl Seen {
    pub fn new(state: State, value: impl Into<String>) -> Seen {
        Seen { state, value: value.into(), remedy: None }
    }

    pub fn remedy(self, remedy: Remedy) -> Seen {
        Seen { remedy: Some(remedy), ..self }
    }

    pub fn boot(self, words: impl Into<String>) -> Seen {
        self.remedy(Remedy::Boot(words.into()))
    }

    pub fn advise(self, text: impl Into<String>) -> Seen {
        self.remedy(Remedy::Advise(text.into()))
    }

    pub fn run(self, command: impl Into<String>, undo: impl Into<String>) -> Seen {
        self.remedy(Remedy::Run { command: command.into(), undo: undo.into() })
    }

    /// A value for one file, whose old value is given.
    pub fn write(self, path: impl Into<String>, new: impl Into<String>, old: impl Into<String>) -> Seen {
        self.remedy(Remedy::Write(vec![crate::Setting { path: path.into(), new: new.into(), old: old.into() }]))
    }
}

pub(crate) fn good(value: impl Into<String>) -> Seen {
    Seen::new(State::Good, value)
}

pub(crate) fn warn(value: impl Into<String>) -> Seen {
    Seen::new(State::Warn, value)
}

pub(crate) fn bad(value: impl Into<String>) -> Seen {
    Seen::new(State::Bad, value)
}

pub(crate) fn not_applicable(value: impl Into<String>) -> Seen {
    Seen::new(State::NotApplicable, value)
}

pub(crate) fn not_visible(value: impl Into<String>) -> Seen {
    Seen::new(State::NotVisible, value)
}
