//! Messages on stderr. A full disk or a closed pipe there neither ends a recording nor changes an exit code.

use std::{fmt, io::Write};

/// As `eprintln!`, which panics where it cannot write.
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}

/// One write, so that lines of several processes do not mix; nothing in it that a terminal obeys but our own colours.
pub fn line(text: fmt::Arguments) {
    let _ = std::io::stderr().write_all((crate::output::harmless(&text.to_string()) + "\n").as_bytes());
}
