//! A hop's name.

use taut_document::Text;

/// "a.b → a.c" as "a.b → c", where both share the prefix.
pub(super) fn hop_name(from: &str, to: &str) -> Text {
    let short = match (from.split_once('.'), to.split_once('.')) {
        (Some((a, _)), Some((b, rest))) if a == b => rest,
        _ => to,
    };
    Text::default().code(from).and(" → ").code(short)
}
