//! `taut top` on a terminal that a test reads.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::FromRawFd,
    process::{Command, Stdio},
    ptr,
};

use assert_cmd::cargo::cargo_bin;

/// What `taut` with these arguments wrote to a terminal of 50 lines of 200 columns until it ended, which it must do well. It is
/// asked to end, by `q`, once `is_enough` says so of what it wrote by then.
pub fn shown(arguments: &[&str], folder: &std::path::Path, mut is_enough: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let (mut master, mut slave) = (0, 0);
    let size = libc::winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: both are written to; a name and settings of the terminal are not asked for; the size is read.
    let opened = unsafe { libc::openpty(&mut master, &mut slave, ptr::null_mut(), ptr::null(), &size) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both were opened just now, and are owned by nothing else.
    let (mut master, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
    let end = || Stdio::from(slave.try_clone().unwrap());
    let mut top = Command::new(cargo_bin!("taut"))
        .args(arguments)
        .current_dir(folder)
        .env("TERM", "xterm-256color")
        .stdin(end())
        .stdout(end())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(slave);
    let (mut shown, mut bytes, mut is_asked) = (Vec::new(), [0; 65536], false);
    // The end of the terminal is an error of its other end.
    while let Ok(read) = master.read(&mut bytes) {
        shown.extend_from_slice(&bytes[..read]);
        if !is_asked && is_enough(&shown) {
            is_asked = true;
            master.write_all(b"q").unwrap();
        }
    }
    assert!(top.wait().unwrap().success());
    shown
}
