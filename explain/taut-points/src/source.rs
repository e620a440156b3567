//! What a source of points is.

use taut_recording::Record;

use crate::{linked::Linked, scene::Scene, source_kind::SourceKind};

/// Turns raw events of one kind into points that messages pass.
pub trait Source: Send {
    /// Which one it is.
    fn kind(&self) -> SourceKind;

    /// Takes a record; every record of a recording, in the order of its file.
    fn record(&mut self, record: &Record);

    /// Appends what the records taken come to. Asked once, after the last record.
    fn link(&mut self, scene: &Scene<'_>, out: &mut Linked);
}
