//! A figure of a gate as a cell: times and shares have forms of their own.

use taut_document::Cell;

/// A time or a share.
pub(super) fn number(is_share: bool, value: f64) -> Cell {
    if is_share { Cell::RareShare(value) } else { Cell::Time(value.round() as u64) }
}

/// A change of a time or of a share.
pub(super) fn change(is_share: bool, value: f64) -> Cell {
    if is_share { Cell::Points(value) } else { Cell::Change(value) }
}
