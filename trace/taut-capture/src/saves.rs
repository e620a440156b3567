//! How another process asks a flight recorder for a save: a request is a file in the session directory, which its owner alone may enter.
//! So it works across PID namespaces, no other process can be meant, and each answer belongs to its request.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read, Write},
    os::{
        fd::OwnedFd,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
        },
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::fs::{Dir, Mode, OFlags, open, openat, renameat};
use taut_clock::monotonic_ns;

use crate::{
    Error, Recorder, recorder_of,
    saved::{Answered, NotSaved, Saved},
};

/// In the session directory, for as long as a flight recorder has it.
const FOLDER: &str = "saves";
const REQUEST: &str = "request";
const ANSWER: &str = "answer";
/// A request is as long as any answer, which is written over it: there is room for it where memory is full.
const ANSWER_BYTES: usize = 8192;
/// Between two looks, of recorder and client.
const LOOK: Duration = Duration::from_millis(20);
/// Between two looks of a client whether there still is a recorder.
const LOOK_FOR_RECORDER: Duration = Duration::from_millis(500);

/// Removes what a killed flight recorder left in a session.
pub fn clear(session: &Path) {
    // There is none, as a rule. What belongs to another user stays, and is refused below.
    let _ = fs::remove_dir_all(session.join(FOLDER));
}

/// The recorder's side.
pub struct Requests {
    path: PathBuf,
    /// Its owner may move the session directory; this folder is the one that was made.
    folder: OwnedFd,
    taken: HashSet<OsString>,
    looked: Option<Instant>,
}

/// One that was taken and waits for its answer.
pub struct Request(OsString);

impl Requests {
    /// From now on others may ask.
    pub fn begin(session: &Path) -> io::Result<Requests> {
        let path = session.join(FOLDER);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = open(&path, flags, Mode::empty())?;
        if rustix::fs::fstat(&folder)?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Requests { path, folder, taken: HashSet::new(), looked: None })
    }

    /// What came since the last look, if one is due or with `now`.
    pub fn take(&mut self, now: bool) -> Vec<Request> {
        if !now && self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return Vec::new();
        }
        self.looked = Some(Instant::now());
        let names = Dir::read_from(&self.folder).into_iter().flatten().flatten();
        let names = names.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
        let requests: Vec<OsString> =
            names.filter(|name| Path::new(name).extension() == Some(REQUEST.as_ref())).collect();
        // Those that are answered have another name.
        self.taken.retain(|name| requests.contains(name));
        requests.into_iter().filter(|name| self.taken.insert(name.clone())).map(Request).collect()
    }

    /// A client that has given up hears nothing.
    pub fn answer(&self, request: &Request, saved: &Saved) {
        let text = match &saved.result {
            Ok(kept) => {
                // The client may be in another folder.
                let path = std::path::absolute(&kept.path).unwrap_or_else(|_| kept.path.clone());
                [format!("saved\n{}\n", kept.damaged).as_bytes(), path.as_os_str().as_bytes()].concat()
            }
            Err(why) => format!("failed\n{}\n{}", why.errno.unwrap_or(0), why.text).into_bytes(),
        };
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let written = openat(&self.folder, &request.0, flags, Mode::empty())
            .map_err(io::Error::from)
            .and_then(|file| File::from(file).write_all(&text[..text.len().min(ANSWER_BYTES)]));
        if written.is_ok() {
            let _ = renameat(&self.folder, &request.0, &self.folder, Path::new(&request.0).with_extension(ANSWER));
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).map(|there| (there.dev(), there.ino()));
        let made = rustix::fs::fstat(&self.folder).map(|made| (made.st_dev, made.st_ino));
        if let (Ok(ours), Ok(made)) = (ours, made)
            && ours == made
        {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Asks the recorder of a session for a save and waits for it; what was saved, or why not.
///
/// # Errors
/// It keeps no flight recorder, this user may not ask it, or it ends before it has saved.
pub fn save_now(recorder: &Recorder) -> Result<Result<Answered, NotSaved>, Error> {
    let folder = recorder.session.join(FOLDER);
    let name = |kind: &str| folder.join(format!("{}-{}.{kind}", std::process::id(), monotonic_ns()));
    let (partial, request) = (name("partial"), name(REQUEST));
    let asked = File::options().write(true).create_new(true).mode(0o600).open(&partial).and_then(|mut file| {
        file.write_all(&[0; ANSWER_BYTES])?;
        fs::rename(&partial, &request)
    });
    asked.map_err(|source| {
        let _ = fs::remove_file(&partial);
        match source.kind() {
            io::ErrorKind::NotFound => Error::NoFlight { pid: recorder.pid, output: recorder.output.clone() },
            io::ErrorKind::PermissionDenied => Error::NotPermitted { pid: recorder.pid, source },
            _ => Error::System { what: "a request for a save, in the session directory", source },
        }
    })?;
    let answer = request.with_extension(ANSWER);
    let mut looked = Instant::now();
    loop {
        if let Some(said) = read(&answer) {
            let _ = fs::remove_file(&answer);
            return Ok(said);
        }
        if looked.elapsed() >= LOOK_FOR_RECORDER {
            looked = Instant::now();
            if !is_recorded(&recorder.session) && !answer.exists() {
                let _ = fs::remove_file(&request);
                return Err(Error::EndedFirst { pid: recorder.pid });
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether a recorder of any PID namespace has the session's lock.
fn is_recorded(session: &Path) -> bool {
    File::open(session).is_ok_and(|folder| matches!(folder.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
        && recorder_of(session).is_some()
}

fn read(answer: &Path) -> Option<Result<Answered, NotSaved>> {
    let mut bytes = Vec::new();
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(answer).ok()?;
    file.take(ANSWER_BYTES as u64).read_to_end(&mut bytes).ok()?;
    bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
    match bytes.strip_prefix(b"saved\n") {
        Some(said) => {
            let end = said.iter().position(|byte| *byte == b'\n')?;
            let damaged = std::str::from_utf8(&said[..end]).ok()?.parse().ok()?;
            Some(Ok(Answered { path: OsString::from_vec(said[end + 1..].to_vec()).into(), damaged }))
        }
        None => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let (errno, text) = text.strip_prefix("failed\n")?.split_once('\n')?;
            Some(Err(NotSaved { text: text.to_owned(), errno: errno.parse().ok().filter(|errno| *errno != 0) }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::Kept;

    fn saved(path: &str) -> Saved {
        let kept = Kept { path: path.into(), span: Duration::ZERO, bytes: 1, damaged: 2 };
        Saved { why: String::new(), result: Ok(kept) }
    }

    #[test]
    fn each_request_gets_its_own_answer() {
        let session = tempfile::tempdir().unwrap();
        let mut requests = Requests::begin(session.path()).unwrap();
        let recorder = Recorder { pid: 1, subject: 1, session: session.path().to_owned(), output: "run.mcap".into() };
        let ask = |recorder: &Recorder| {
            let recorder = recorder.clone();
            std::thread::spawn(move || save_now(&recorder).unwrap())
        };
        let taken = |requests: &mut Requests| loop {
            if let Some(request) = requests.take(true).pop() {
                return request;
            }
        };
        // The session is recorded: by us.
        let lock = File::open(session.path()).unwrap();
        lock.lock().unwrap();
        let _note = crate::recorders::Note::leave(session.path(), 1, Path::new("run.mcap")).unwrap();
        let first = ask(&recorder);
        let first_request = taken(&mut requests);
        let second = ask(&recorder);
        let second_request = taken(&mut requests);
        requests.answer(&second_request, &saved("/b.mcap"));
        assert_eq!(second.join().unwrap().unwrap(), Answered { path: "/b.mcap".into(), damaged: 2 });
        let why = NotSaved { text: "disk".into(), errno: Some(28) };
        requests.answer(&first_request, &Saved { why: String::new(), result: Err(why.clone()) });
        assert_eq!(first.join().unwrap().unwrap_err(), why);
        drop(requests);
        assert!(matches!(save_now(&recorder), Err(Error::NoFlight { .. })));
    }

    #[test]
    fn a_request_to_a_recorder_that_was_killed_ends() {
        let session = tempfile::tempdir().unwrap();
        std::mem::forget(Requests::begin(session.path()).unwrap());
        let recorder = Recorder { pid: 1, subject: 1, session: session.path().to_owned(), output: "run.mcap".into() };
        assert!(matches!(save_now(&recorder), Err(Error::EndedFirst { pid: 1 })));
        clear(session.path());
        assert!(Requests::begin(session.path()).is_ok());
    }
}
