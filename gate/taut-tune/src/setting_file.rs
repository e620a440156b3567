//! Files of the kernel that hold one setting.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::Path,
};

/// A setting's value as it is written back: of several words with one in brackets, that one.
pub(crate) fn read_setting(path: &Path) -> io::Result<String> {
    let text = std::fs::read_to_string(path)?;
    let text = text.trim();
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    Ok(chosen.unwrap_or(text).to_owned())
}

pub(crate) fn write_setting(path: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    // In one piece: the kernel takes each write for a whole value.
    file.write_all(format!("{value}\n").as_bytes())
}
