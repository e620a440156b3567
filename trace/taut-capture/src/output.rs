//! The file of a recording: beside its place until its command runs, so that a recording that does not begin destroys no
//! other one; and one recorder's at a time.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::Error;

/// Where a recording goes.
pub struct Output {
    place: PathBuf,
    /// Where it is written until it is in its place.
    partial: Option<PathBuf>,
    /// The file, locked for as long as it is written; none of what is no file, such as a pipe.
    _lock: Option<File>,
}

impl Output {
    /// # Errors
    /// Another recorder writes it, or it may not be written.
    pub fn open(path: &Path) -> Result<Output, Error> {
        let refused = |source: io::Error| match source.kind() {
            ErrorKind::WouldBlock => Error::Busy { path: path.to_owned() },
            _ => taut_recording::Error::Io { path: path.to_owned(), source }.into(),
        };
        // Of a link it is the file behind it that is replaced.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&place) {
            Ok(there) if !there.is_file() => return Ok(Output { place, partial: None, _lock: None }),
            _ => {}
        }
        let name = place.file_name().ok_or(ErrorKind::IsADirectory.into()).map_err(refused)?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".partial");
        let partial = place.with_file_name(hidden);
        let lock = lock(&partial).map_err(refused)?;
        // From here on it goes with the output where that is refused.
        let output = Output { place, partial: Some(partial), _lock: Some(lock) };
        match File::options().read(true).write(true).open(&output.place) {
            Ok(there) => there.try_lock().map_err(|error| refused(error.into()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(refused(error)),
        }
        Ok(output)
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        self.partial.as_deref().unwrap_or(&self.place)
    }

    /// Puts what is being written in its place; what was there before goes.
    pub fn put_in_place(&mut self) -> io::Result<()> {
        if let Some(partial) = &self.partial {
            fs::rename(partial, &self.place)?;
            self.partial = None;
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let _ = fs::remove_file(partial);
        }
    }
}

/// Makes a file, or takes over what a killed recorder left of one, and locks it.
fn lock(path: &Path) -> io::Result<File> {
    loop {
        let file =
            File::options().write(true).create(true).truncate(false).custom_flags(libc::O_NOFOLLOW).open(path)?;
        file.try_lock()?;
        let ours = file.metadata()?;
        // Whoever had the lock before may have put the file in its place, or removed it.
        match fs::symlink_metadata(path) {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => return Ok(file),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_until_another_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.mcap");
        fs::write(&path, "precious").unwrap();
        let output = Output::open(&path).unwrap();
        fs::write(output.path(), "half").unwrap();
        assert!(matches!(Output::open(&path), Err(Error::Busy { .. })));
        drop(output);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let mut output = Output::open(&path).unwrap();
        fs::write(output.path(), "new").unwrap();
        output.put_in_place().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(matches!(Output::open(&path), Err(Error::Busy { .. })), "it is written on in its place");
        drop(output);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        Output::open(&path).unwrap();
    }

    #[test]
    fn what_is_no_file_is_written_where_it_is_and_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut null = Output::open(Path::new("/dev/null")).unwrap();
        null.put_in_place().unwrap();
        assert_eq!(null.path(), Path::new("/dev/null"));
        let (link, behind) = (folder.path().join("link"), folder.path().join("behind"));
        fs::write(&behind, "old").unwrap();
        std::os::unix::fs::symlink(&behind, &link).unwrap();
        let mut output = Output::open(&link).unwrap();
        fs::write(output.path(), "new").unwrap();
        output.put_in_place().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&behind).unwrap(), "new");
    }
}
