//! The file of a recording while it is written: beside its place, so that a recording that does not come about destroys no
//! other one; locked, so that one command writes it at a time.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::Error;

/// Where a recording goes.
pub struct Output {
    place: PathBuf,
    /// Where it is written until it is in its place.
    partial: Option<PathBuf>,
    /// Whether what is beside its place stays there if it cannot be put into it.
    is_kept: bool,
    /// The file, locked for as long as it is written; or a pipe, so that its reader sees no end before the recording begins.
    _lock: Option<File>,
}

impl Output {
    /// Where links lead, also to what is not there yet: of a link it is the file behind it that is replaced.
    pub fn place_of(path: &Path) -> PathBuf {
        const MOST_LINKS: usize = 40;
        let next = |place: &PathBuf| Some(place.parent().unwrap_or(Path::new("")).join(fs::read_link(place).ok()?));
        let followed = || std::iter::successors(Some(path.to_owned()), next).take(MOST_LINKS).last();
        fs::canonicalize(path).ok().or_else(followed).unwrap_or_else(|| path.to_owned())
    }

    /// # Errors
    /// Another command writes it, or it may not be written.
    pub fn open(path: &Path) -> Result<Output, Error> {
        let refused = |source: io::Error| match source.kind() {
            ErrorKind::WouldBlock => Error::Busy { path: path.to_owned() },
            _ => Error::Io { path: path.to_owned(), source },
        };
        // Asked by the path as it is: a link of /dev/fd leads to what has no path of its own.
        if let Ok(there) = fs::metadata(path)
            && !there.is_file()
        {
            let lock = pipe(path, &there).map_err(refused)?;
            return Ok(Output { place: path.to_owned(), partial: None, is_kept: false, _lock: lock });
        }
        let place = Output::place_of(path);
        let name = place.file_name().ok_or(ErrorKind::IsADirectory.into()).map_err(refused)?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".partial");
        let partial = place.with_file_name(hidden);
        let lock = lock(&partial).map_err(refused)?;
        // From here on it goes with the output where that is refused.
        let output = Output { place, partial: Some(partial), is_kept: false, _lock: Some(lock) };
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
    ///
    /// # Errors
    /// What the file system says.
    pub fn put_in_place(&mut self) -> io::Result<()> {
        if let Some(partial) = &self.partial {
            // It is as private as what it replaces.
            if let (Ok(there), Some(file)) = (fs::metadata(&self.place), &self._lock) {
                let _ = file.set_permissions(there.permissions());
            }
            fs::rename(partial, &self.place)?;
            self.partial = None;
        }
        Ok(())
    }

    /// From now on there is something to lose.
    pub fn keep(&mut self) {
        self.is_kept = true;
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(partial) = self.partial.as_ref().filter(|_| !self.is_kept) {
            let _ = fs::remove_file(partial);
        }
    }
}

/// A pipe without a reader would hold the writer, and a recorded command with it, until one comes.
fn pipe(place: &Path, there: &fs::Metadata) -> io::Result<Option<File>> {
    if !there.file_type().is_fifo() {
        return Ok(None);
    }
    let opened = File::options().write(true).custom_flags(libc::O_NONBLOCK).open(place);
    opened.map(Some).map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => io::Error::new(ErrorKind::InvalidInput, "nothing reads this pipe; start its reader first"),
        _ => error,
    })
}

/// Makes a file, or takes over what a killed command left of one, and locks it.
fn lock(path: &Path) -> io::Result<File> {
    let open = |is_new| File::options().write(true).create_new(is_new).custom_flags(libc::O_NOFOLLOW).open(path);
    loop {
        let (file, is_new) = match open(true) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match open(false) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => (opened?, false),
            },
            made => (made?, true),
        };
        match is_locked(&file, path) {
            Ok(true) => return Ok(file),
            // Whoever had the lock before has put the file in its place, or removed it.
            Ok(false) => {}
            Err(error) => {
                if is_new && error.kind() != ErrorKind::WouldBlock {
                    let _ = fs::remove_file(path);
                }
                return Err(error);
            }
        }
    }
}

/// Locks a file; whether it still has this name then.
fn is_locked(file: &File, path: &Path) -> io::Result<bool> {
    file.try_lock()?;
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens it once no other test's child has it open, which is until that child is another program.
    fn opened(path: &Path) -> Output {
        loop {
            match Output::open(path) {
                Ok(output) => return output,
                Err(error) => assert!(matches!(error, Error::Busy { .. }), "{error}"),
            }
            std::thread::yield_now();
        }
    }

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
        let mut output = opened(&path);
        fs::write(output.path(), "new").unwrap();
        output.put_in_place().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(matches!(Output::open(&path), Err(Error::Busy { .. })), "it is written on in its place");
        drop(output);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        drop(opened(&path));
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

    #[test]
    fn a_pipe_of_this_process_is_written_by_its_number() {
        use std::{
            io::Read,
            os::fd::{AsRawFd, OwnedFd},
        };
        let (mut reader, writer) = io::pipe().unwrap();
        let writer = OwnedFd::from(writer);
        let path = PathBuf::from(format!("/dev/fd/{}", writer.as_raw_fd()));
        let mut output = Output::open(&path).unwrap();
        fs::write(output.path(), "whole").unwrap();
        output.put_in_place().unwrap();
        drop((output, writer));
        let mut read = [0; 5];
        reader.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"whole");
    }

    #[test]
    fn a_link_to_nothing_leads_to_the_file_that_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link.mcap"), folder.path().join("target.mcap"));
        std::os::unix::fs::symlink("target.mcap", &link).unwrap();
        let mut output = Output::open(&link).unwrap();
        fs::write(output.path(), "whole").unwrap();
        output.put_in_place().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "whole");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_recording_is_as_private_as_what_it_replaces() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.mcap");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let mut output = Output::open(&path).unwrap();
        fs::write(output.path(), "new").unwrap();
        output.put_in_place().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_pipe_without_a_reader_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let refused = Output::open(&path).err().unwrap().to_string();
        assert!(refused.contains("nothing reads this pipe"), "{refused}");
    }

    #[test]
    fn what_is_kept_stays_where_it_cannot_be_put_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.mcap");
        let mut output = Output::open(&path).unwrap();
        fs::write(output.path(), "whole").unwrap();
        // What cannot be replaced by a file.
        fs::create_dir(&path).unwrap();
        assert!(output.put_in_place().is_err());
        output.keep();
        let beside = output.path().to_owned();
        drop(output);
        assert_eq!(fs::read_to_string(beside).unwrap(), "whole");
    }
}
