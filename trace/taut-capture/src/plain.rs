//! Files at places where others may put pipes, links and devices, and we may be root: opened only if they are plain ones, and
//! never waited for.

use std::{fs::File, io, os::fd::AsFd, path::Path};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Opens a plain file for reading.
///
/// # Errors
/// It cannot be opened, or is a link or no plain file.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    open_in(CWD, path)
}

/// The same, of a file in an open folder.
///
/// # Errors
/// As of [`open`].
pub fn open_in(folder: impl AsFd, path: impl AsRef<Path>) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(openat(folder, path.as_ref(), flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plain_file_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        assert!(open(at("file")).is_ok());
        assert!(["link", "pipe", "nothing"].iter().all(|name| open(at(name)).is_err()));
        assert!(open("/dev/zero").is_err() && open(folder.path()).is_err());
    }
}
