//! Sentences, and what a colour says: what all blocks of a document are made of.

use schemars::JsonSchema;
use serde::Serialize;

/// A sentence, parts of which stand out. Each renderer escapes every part; there is no raw form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Text(pub Vec<Part>);

/// A part of a [`Text`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Part {
    /// As the text around it.
    Plain(String),
    /// Stands out.
    Strong(String),
    /// A name or a command.
    Code(String),
}

/// What a colour says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Tone {
    /// Nothing.
    #[default]
    Plain,
    /// Better, passed.
    Good,
    /// Worse, failed.
    Bad,
    /// Not enough evidence.
    Undecided,
    /// Less prominent.
    Quiet,
    /// The n-th curve or class.
    Series(u8),
}

impl Text {
    /// The text without what makes parts stand out.
    pub fn plain(&self) -> String {
        self.0.iter().map(Part::text).collect()
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|part| part.text().is_empty())
    }

    /// With more text.
    pub fn and(mut self, text: impl Into<String>) -> Text {
        self.0.push(Part::Plain(text.into()));
        self
    }

    /// With more text, which stands out.
    pub fn strong(mut self, text: impl Into<String>) -> Text {
        self.0.push(Part::Strong(text.into()));
        self
    }

    /// With a name or a command.
    pub fn code(mut self, text: impl Into<String>) -> Text {
        self.0.push(Part::Code(text.into()));
        self
    }
}

impl Part {
    /// Its text.
    pub fn text(&self) -> &str {
        match self {
            Part::Plain(text) | Part::Strong(text) | Part::Code(text) => text,
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(vec![Part::Plain(text)])
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::from(text.to_owned())
    }
}
