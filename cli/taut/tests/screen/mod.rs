//! `taut top` on a terminal that a test reads.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::FromRawFd,
    process::{Command, Stdio},
    ptr,
};

use assert_cmd::cargo::cargo_bin;

const ROWS: u16 = 50;
const COLUMNS: u16 = 200;

/// What `taut` with these arguments wrote to a terminal until it ended; see [`shown_by`].
#[allow(dead_code, reason = "some tests have more to say of the command")]
pub fn shown(arguments: &[&str], folder: &std::path::Path, is_enough: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut top = Command::new(cargo_bin!("taut"));
    top.args(arguments).current_dir(folder);
    shown_by(top, is_enough)
}

/// What a command wrote to a terminal of 50 lines of 200 columns until it ended, which it must do well. It is asked to end, by `q`, once
/// `is_enough` says so of what it wrote by then.
pub fn shown_by(mut top: Command, mut is_enough: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let (mut master, mut slave) = (0, 0);
    let size = libc::winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: both are written to; a name and settings of the terminal are not asked for; the size is read.
    let opened = unsafe { libc::openpty(&mut master, &mut slave, ptr::null_mut(), ptr::null(), &size) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both were opened just now, and are owned by nothing else.
    let (mut master, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
    let end = || Stdio::from(slave.try_clone().unwrap());
    top.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(Stdio::null());
    let mut running = top.spawn().unwrap();
    drop((slave, top));
    let (mut shown, mut bytes, mut is_asked) = (Vec::new(), [0; 65536], false);
    // The end of the terminal is an error of its other end.
    while let Ok(read) = master.read(&mut bytes) {
        shown.extend_from_slice(&bytes[..read]);
        if !is_asked && is_enough(&shown) {
            is_asked = true;
            master.write_all(b"q").unwrap();
        }
    }
    assert!(running.wait().unwrap().success());
    shown
}

/// The lines that a terminal shows of it: only cells that change are written.
#[allow(dead_code, reason = "some tests look at the bytes")]
pub fn lines(bytes: &[u8]) -> Vec<String> {
    let mut cells = vec![vec![' '; COLUMNS.into()]; ROWS.into()];
    let (mut row, mut column) = (0, 0);
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default();
    for part in std::iter::once(first).chain(parts) {
        let end = part.find(|of: char| of.is_ascii_alphabetic()).map_or(0, |at| at + 1);
        let (command, text) = part.split_at(end);
        if let Some(place) = command.strip_suffix('H') {
            let mut numbers = place.split(';').map(|number| number.parse::<usize>().unwrap_or(1) - 1);
            (row, column) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        }
        for letter in text.chars() {
            if let Some(cell) = cells.get_mut(row).and_then(|row| row.get_mut(column)) {
                (*cell, column) = (letter, column + 1);
            }
        }
    }
    cells.into_iter().map(|row| row.into_iter().collect::<String>().trim_end().to_owned()).collect()
}
