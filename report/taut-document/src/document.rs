//! What a document is: a headline, and sections of text, findings, tables and charts. A subject builds one from its result, a renderer
//! shows it; neither knows the other.

use crate::{Chart, Lanes, Table, Text, Tone, table::Cell};

/// What is known of one subject, ready to be shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// What it is about, such as the name of a recording.
    pub title: String,
    /// How it was measured, in one line.
    pub measured: Text,
    /// The finding, in one sentence.
    pub headline: Text,
    /// In the order of reading.
    pub sections: Vec<Section>,
    /// What to bear in mind.
    pub notes: Vec<Text>,
    /// Commands that make the same document again.
    pub reproduce: Vec<String>,
}

/// A part of a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Its heading; none when empty.
    pub title: String,
    /// 1 for a part of the document, 2 for a part of the section before.
    pub level: u8,
    /// Where it is shown.
    pub show: Show,
    /// In the order of reading.
    pub blocks: Vec<Block>,
}

/// Where a section is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// Everywhere, at once.
    #[default]
    Always,
    /// Closed until opened, where that is possible.
    Folded,
    /// In HTML only.
    Page,
    /// In HTML only, closed until opened.
    PageFolded,
    /// In all but HTML, which shows the same in another way.
    Text,
    /// In what is passed on: HTML, and folded in Markdown.
    Kept,
}

/// One thing in a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(Text),
    /// Results, one by one.
    Findings(Vec<Finding>),
    /// Rows of figures.
    Table(Table),
    /// Curves over axes.
    Chart(Box<Chart>),
    /// Stretches of time, one line a thread.
    Lanes(Lanes),
    /// A finished picture, and what it shows. A page shows it as an image: nothing in it runs.
    Image {
        /// An `<svg>` element.
        svg: String,
        /// Stands for it where there are no pictures.
        text: Text,
    },
    /// Lines to copy.
    Code(String),
}

/// A result: of a hypothesis, of a figure that was judged, of a check; or a recommendation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// How it is coloured.
    pub tone: Tone,
    /// The result in a word or two: "contributes", "worse", "1.".
    pub label: String,
    /// The result as a sentence.
    pub text: Text,
    /// What it rests on.
    pub evidence: Option<Evidence>,
    /// What belongs to it, by a word: "want", "why", "do".
    pub details: Vec<(String, Text)>,
}

/// What a finding rests on: "430 of 43 012 messages: 71.2 %, 95 % interval 64.0 % to 78.1 %".
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// How many are affected.
    pub affected: u64,
    /// Of how many.
    pub of: u64,
    /// What they are, in the plural.
    pub what: String,
    /// The figure.
    pub value: Cell,
    /// Its 95 % interval.
    pub interval: Option<(Cell, Cell)>,
}

impl Document {
    /// Its sentences in plain form, for JSON: the headline apart, here the text of all findings.
    pub fn findings(&self) -> Vec<String> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        let findings = blocks.filter_map(|block| match block {
            Block::Findings(findings) => Some(findings),
            _ => None,
        });
        findings.flatten().map(|finding| finding.text.plain()).collect()
    }
}

impl Section {
    /// A section that is always shown.
    pub fn new(level: u8, title: impl Into<String>, blocks: Vec<Block>) -> Section {
        Section { title: title.into(), level, show: Show::Always, blocks }
    }

    /// Whether a terminal shows it.
    pub(crate) fn is_in_terminal(&self) -> bool {
        !matches!(self.show, Show::Page | Show::PageFolded | Show::Kept)
    }

    /// Whether a page has it closed.
    pub(crate) fn is_folded(&self) -> bool {
        matches!(self.show, Show::Folded | Show::PageFolded)
    }

    /// The same, shown elsewhere.
    pub fn shown(self, show: Show) -> Section {
        Section { show, ..self }
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Block {
        Block::Table(table)
    }
}

impl From<Chart> for Block {
    fn from(chart: Chart) -> Block {
        Block::Chart(Box::new(chart))
    }
}

impl Evidence {
    /// In words.
    pub fn sentence(&self) -> String {
        use crate::units::count;
        let figure = |cell: &Cell| cell.alone();
        let interval = self.interval.as_ref();
        let interval = interval
            .map_or(String::new(), |(low, high)| format!(", 95 % interval {} to {}", figure(low), figure(high)));
        let Evidence { affected, of, what, value, .. } = self;
        format!("{} of {} {what}: {}{interval}", count(*affected), count(*of), figure(value))
    }
}
