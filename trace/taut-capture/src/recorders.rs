//! Notes of recorders: each leaves one in its session directory, by which live readers find the file that it writes.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
};

use crate::{owner, plain, proc, session};

/// Of the note in the session directory.
const NAME: &str = "recorder";
/// First line of a note.
const VERSION: &str = "taut recorder 1";
/// Longer than any path.
const NOTE_BYTES: u64 = 1 << 16;

/// A recording under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorder {
    /// The recorder's.
    pub pid: i32,
    /// Root of what it records.
    pub subject: i32,
    /// Where the rings lie.
    pub session: PathBuf,
    /// The file it writes.
    pub output: PathBuf,
}

/// All recorders of sessions that taut made, and that of `TAUT_SESSION`, by session.
pub fn recorders() -> Vec<Recorder> {
    let mut sessions = session::made();
    sessions.extend(std::env::var_os("TAUT_SESSION").filter(|session| !session.is_empty()).map(PathBuf::from));
    sessions.sort();
    sessions.dedup();
    sessions.iter().filter_map(|session| recorder_of(session)).collect()
}

/// The one that records a session now.
pub fn recorder_of(session: &Path) -> Option<Recorder> {
    let bytes = read(&session.join(NAME))?;
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut word = || std::str::from_utf8(lines.next()?).ok();
    let is_ours = word()? == VERSION;
    let [pid, start_time, namespace, subject] =
        [word()?, word()?, word()?, word()?].map(|word| word.parse::<u64>().ok());
    let output = PathBuf::from(OsString::from_vec(lines.collect::<Vec<_>>().join(&b'\n')));
    let (pid, subject) = (i32::try_from(pid?).ok()?, i32::try_from(subject?).ok()?);
    // A recorder in another container has a pid that says nothing here; that its note is there has to do.
    let is_alive = namespace? != owner::namespace_of("self") || proc::runs(pid, start_time.filter(|start| *start != 0));
    (is_ours && is_alive).then(|| Recorder { pid, subject, session: session.to_owned(), output })
}

/// The session may be another user's: neither a pipe nor a link nor an endless file is read.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    plain::open(path).ok()?.take(NOTE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A note that goes with its recorder.
pub struct Note {
    path: PathBuf,
    text: Vec<u8>,
}

impl Note {
    /// Leaves a note that this process records `subject` into `output`. A recording does not fail without one.
    pub fn leave(session: &Path, subject: i32, output: &Path) -> io::Result<Note> {
        // 0: unknown.
        let start_time = proc::start_time(&proc::line("/proc/self/stat")).unwrap_or(0);
        let output = std::path::absolute(output)?;
        let head =
            format!("{VERSION}\n{}\n{start_time}\n{}\n{subject}\n", std::process::id(), owner::namespace_of("self"));
        let text = [head.as_bytes(), output.as_os_str().as_bytes()].concat();
        let path = session.join(NAME);
        // Whole or not at all: others read it at any time. A new file, never one that lies there under this name: root may
        // record into a session whose owner laid a link there.
        let partial = session.join(format!(".{NAME}-{}.tmp", std::process::id()));
        let _ = fs::remove_file(&partial);
        File::options().write(true).create_new(true).mode(0o600).open(&partial)?.write_all(&text)?;
        fs::rename(&partial, &path)?;
        Ok(Note { path, text })
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // Another recorder may have taken over a user's session since.
        if read(&self.path).is_some_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_found_while_its_recorder_lives() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(recorder_of(folder.path()), None);
        let output = folder.path().join("line\nbreak.mcap");
        let note = Note::leave(folder.path(), 4242, &output).unwrap();
        let (pid, session) = (std::process::id() as i32, folder.path().to_owned());
        assert_eq!(recorder_of(folder.path()), Some(Recorder { pid, subject: 4242, session, output }));
        let left = fs::read(folder.path().join(NAME)).unwrap();
        drop(note);
        assert_eq!(recorder_of(folder.path()), None);
        // As after kill -9: the process of that start time is gone.
        let start = proc::start_time(&proc::line("/proc/self/stat")).unwrap();
        let stale = String::from_utf8(left).unwrap().replacen(&format!("\n{start}\n"), "\n1\n", 1);
        fs::write(folder.path().join(NAME), stale).unwrap();
        assert_eq!(recorder_of(folder.path()), None);
    }

    #[test]
    fn a_note_of_a_successor_stays() {
        let folder = tempfile::tempdir().unwrap();
        let first = Note::leave(folder.path(), 1, Path::new("a.mcap")).unwrap();
        let second = Note::leave(folder.path(), 2, Path::new("b.mcap")).unwrap();
        drop(first);
        assert_eq!(recorder_of(folder.path()).unwrap().subject, 2);
        drop(second);
        assert_eq!(recorder_of(folder.path()), None);
    }

    #[test]
    fn a_note_is_private_and_never_written_through_a_link() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (victim, partial) = (folder.path().join("victim"), format!(".{NAME}-{}.tmp", std::process::id()));
        fs::write(&victim, "kept").unwrap();
        symlink(&victim, folder.path().join(partial)).unwrap();
        let _note = Note::leave(folder.path(), 1, Path::new("a.mcap")).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(fs::symlink_metadata(folder.path().join(NAME)).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_is_no_file_is_no_note_and_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join(NAME)).unwrap();
        assert_eq!(recorder_of(folder.path()), None);
        fs::remove_file(folder.path().join(NAME)).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(folder.path().join(NAME)).status().unwrap().success());
        assert_eq!(recorder_of(folder.path()), None);
    }

    #[test]
    fn nonsense_is_no_note() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "taut recorder 1", "taut recorder 1\nx\ny\nz\n1\nfile", "\u{0}\u{1}\n\n\n\n\n"] {
            fs::write(folder.path().join(NAME), text).unwrap();
            assert_eq!(recorder_of(folder.path()), None, "{text:?}");
        }
    }
}
