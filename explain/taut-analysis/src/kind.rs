//! Kinds of pieces: what makes two of them the same for sums.

use crate::{explained::Cause, walk::Piece};

/// What makes two pieces the same for sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub hop: u16,
    pub cause: Cause,
    pub detail: u32,
    pub tid: i32,
    pub other: i32,
    pub after: Option<(Cause, u32)>,
    /// Whether the message waited behind another meanwhile.
    pub queued: bool,
    /// As [`Piece::is_away`].
    pub is_away: bool,
}

impl Kind {
    pub fn of(hop: u16, piece: &Piece) -> Kind {
        let Piece { cause, detail, tid, other, after, behind, is_away, .. } = *piece;
        Kind { hop, cause, detail, tid, other, after, queued: behind.is_some(), is_away }
    }
}
