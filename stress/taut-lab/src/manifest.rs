//! The log of a run, one JSON object a line, each on disk before the next trial starts: so that a crash costs the trial
//! it cut, and no more.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use taut_recording::printable;

use crate::{Error, Trial};

/// Its name in the run's folder.
pub const MANIFEST: &str = "manifest.jsonl";
/// How the first line begins.
const BEGIN: &[u8] = b"{\"record\":\"lab\"";
/// Raised when a record is renamed or changes its meaning.
const SCHEMA_VERSION: u32 = 1;

/// The first record: everything that decides what the trials are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Of the manifest.
    pub schema_version: u32,
    /// Of taut.
    pub taut: String,
    /// `run`, `sweep` or `break`.
    pub kind: Kind,
    /// The lab's file as the user typed it.
    pub file: String,
    /// What it said.
    pub toml: String,
    /// From the file.
    pub seed: u64,
    /// What confines threads.
    pub confinement: String,
    /// SHA-256 of the programs and files that the commands name.
    pub inputs: BTreeMap<String, String>,
    /// Facts of the machine.
    pub machine: BTreeMap<String, String>,
    /// For each round the scenarios in their order; empty for a search, which decides as it goes.
    pub order: Vec<Vec<String>>,
}

/// What a manifest is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `taut lab run`.
    Run,
    /// `taut lab sweep`.
    Sweep,
    /// `taut lab break`.
    Break,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
enum Record {
    Lab(Box<Header>),
    Trial(Box<Trial>),
}

/// A manifest that is written to; no other process writes to it meanwhile.
pub struct Manifest {
    folder: PathBuf,
    file: File,
}

impl Manifest {
    /// Begins one in a folder that has none, or one without a trial: a run that did not start left nothing to keep.
    ///
    /// # Errors
    /// A folder that already holds a run, or cannot be written.
    pub fn create(folder: &Path, header: &Header) -> Result<Manifest, Error> {
        fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let path = folder.join(MANIFEST);
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut manifest = Manifest { folder: folder.to_owned(), file: options.map_err(Error::file(&path))? };
        manifest.lock()?;
        if !manifest.is_empty()? {
            let problem = "holds a run already; add --resume to go on with it, or -o with another folder";
            return Err(Error::Manifest { folder: folder.to_owned(), problem: problem.into() });
        }
        manifest.begin(header)?;
        Ok(manifest)
    }

    /// Goes on with one. A last line that was cut is taken off; one without a trial begins again.
    ///
    /// # Errors
    /// No manifest, one of another kind or lab, one that another process writes, or one that is damaged.
    pub fn resume(folder: &Path, header: &Header) -> Result<(Manifest, Vec<Trial>), Error> {
        let path = folder.join(MANIFEST);
        let wrong = |problem: String| Error::Manifest { folder: folder.to_owned(), problem };
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => wrong("holds no run to resume; leave --resume out".into()),
            _ => Error::file(&path)(error),
        })?;
        let mut manifest = Manifest { folder: folder.to_owned(), file };
        manifest.lock()?;
        if manifest.is_empty()? {
            manifest.begin(header)?;
            return Ok((manifest, Vec::new()));
        }
        let bytes = manifest.bytes()?;
        let whole = whole_lines(&bytes);
        let (old, trials) = read(whole).map_err(wrong)?;
        if old.kind != header.kind {
            return Err(wrong("holds a run of another kind (run, sweep, break); use another folder with -o".into()));
        }
        if old.toml != header.toml {
            return Err(wrong(format!(
                "was made from another {}; put that back, or use another folder with -o",
                old.file
            )));
        }
        if let Some(changed) = old.inputs.iter().find(|(name, hash)| header.inputs.get(*name) != Some(hash)) {
            return Err(wrong(format!("{} has changed since; use another folder with -o", changed.0)));
        }
        let mut end = &manifest.file;
        end.set_len(whole.len() as u64).and_then(|()| end.seek(SeekFrom::End(0))).map_err(Error::file(&path))?;
        Ok((manifest, trials))
    }

    /// Whether it holds no trial. What this did not write is not empty.
    fn is_empty(&mut self) -> Result<bool, Error> {
        let bytes = self.bytes()?;
        let whole = whole_lines(&bytes);
        Ok(match whole.is_empty() {
            true => bytes.is_empty() || bytes.starts_with(BEGIN),
            false => read(whole).is_ok_and(|(_, trials)| trials.is_empty()),
        })
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let done = self.file.rewind().and_then(|()| self.file.read_to_end(&mut bytes));
        done.map_err(Error::file(&self.folder.join(MANIFEST)))?;
        Ok(bytes)
    }

    /// Writes the first line.
    fn begin(&mut self, header: &Header) -> Result<(), Error> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(Error::file(&self.folder.join(MANIFEST)))?;
        self.append(&Record::Lab(Box::new(header.clone())))?;
        // The name of the file, too, must survive.
        let folder = &self.folder;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::file(folder))
    }

    /// The trials of a whole manifest.
    pub(crate) fn trials_of(folder: &Path) -> Result<Vec<Trial>, Error> {
        let path = folder.join(MANIFEST);
        let bytes = fs::read(&path).map_err(Error::file(&path))?;
        let (_, trials) = read(&bytes).map_err(|problem| Error::Manifest { folder: folder.to_owned(), problem })?;
        Ok(trials)
    }

    /// Adds a trial; it is on disk when this returns.
    ///
    /// # Errors
    /// A disk that is full.
    pub fn trial(&mut self, trial: &Trial) -> Result<(), Error> {
        self.append(&Record::Trial(Box::new(trial.clone())))
    }

    fn append(&mut self, record: &Record) -> Result<(), Error> {
        let mut line = serde_json::to_vec(record).map_err(|error| Error::system(MANIFEST)(error.into()))?;
        line.push(b'\n');
        let done = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        done.map_err(Error::file(&self.folder.join(MANIFEST)))
    }

    fn lock(&self) -> Result<(), Error> {
        flock(&self.file, FlockOperation::NonBlockingLockExclusive).map_err(|_| Error::Manifest {
            folder: self.folder.clone(),
            problem: "is being written by another taut lab; wait for it, or use another folder with -o".into(),
        })
    }
}

impl Drop for Manifest {
    /// A child that has not come from fork to exec yet holds the file open: closing alone would not free the lock.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl Header {
    /// Of this version.
    pub(crate) fn new(kind: Kind, file: &Path, toml: &str, lab: &crate::Lab) -> Header {
        Header {
            schema_version: SCHEMA_VERSION,
            taut: env!("CARGO_PKG_VERSION").to_owned(),
            kind,
            file: file.display().to_string(),
            toml: toml.to_owned(),
            seed: lab.seed,
            confinement: String::new(),
            inputs: crate::inputs::hashes(lab),
            machine: taut_wakeup::facts(),
            order: Vec::new(),
        }
    }
}

/// The manifest of a run that no process writes, held so that none begins to.
pub(crate) fn held(folder: &Path) -> Result<Manifest, Error> {
    let missing = |_| Error::Manifest { folder: folder.to_owned(), problem: format!("holds no run ({MANIFEST})") };
    let file = File::open(folder.join(MANIFEST)).map_err(missing)?;
    let manifest = Manifest { folder: folder.to_owned(), file };
    manifest.lock()?;
    Ok(manifest)
}

/// All lines but a last one that was cut.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)]
}

pub(crate) fn read(bytes: &[u8]) -> Result<(Header, Vec<Trial>), String> {
    let mut header = None;
    let mut trials = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
        // What it cites of the line may hold anything.
        let said = |error: serde_json::Error| format!("{MANIFEST} line {}: {}", at + 1, printable(error.to_string()));
        let record = serde_json::from_slice(line).map_err(said)?;
        match record {
            Record::Lab(lab) if at == 0 && lab.schema_version == SCHEMA_VERSION => header = Some(*lab),
            Record::Lab(_) => return Err(format!("{MANIFEST} line {}: of another version, or not the first", at + 1)),
            Record::Trial(mut trial) => {
                // A program's words, and perhaps another lab's file.
                trial.reason = trial.reason.map(printable);
                trials.push(*trial);
            }
        }
    }
    Ok((header.ok_or_else(|| format!("{MANIFEST} does not name its lab; start again with -o"))?, trials))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Id, Status};

    fn header(toml: &str) -> Header {
        Header {
            schema_version: SCHEMA_VERSION,
            taut: "0".into(),
            kind: Kind::Run,
            file: "lab.toml".into(),
            toml: toml.into(),
            seed: 1,
            confinement: "affinity".into(),
            inputs: BTreeMap::new(),
            machine: BTreeMap::new(),
            order: Vec::new(),
        }
    }

    fn trial(index: u32) -> Trial {
        Trial {
            id: Id { round: 0, scenario: "none".into(), index, varied: None },
            status: Status::Success,
            started_unix_s: 0.1,
            wall_s: 0.3,
            exit_code: Some(0),
            metrics: BTreeMap::from([("wall_s".into(), 0.1 + 0.2)]),
            logs: "logs/x".into(),
            ..Trial::default()
        }
    }

    #[test]
    fn a_line_that_was_cut_costs_its_trial_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut manifest = Manifest::create(folder.path(), &header("a")).unwrap();
        (0..2).for_each(|index| manifest.trial(&trial(index)).unwrap());
        drop(manifest);
        let path = folder.path().join(MANIFEST);
        let bytes = fs::read(&path).unwrap();
        let second = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        for cut in second..bytes.len() {
            fs::write(&path, &bytes[..cut]).unwrap();
            let (mut manifest, trials) = Manifest::resume(folder.path(), &header("a")).unwrap();
            assert_eq!(trials, [trial(0)], "cut at {cut}");
            manifest.trial(&trial(1)).unwrap();
            drop(manifest);
            assert_eq!(fs::read(&path).unwrap(), bytes, "cut at {cut}");
        }
    }

    #[test]
    fn another_lab_is_not_resumed_and_none_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let says = |result: Result<(), Error>, part: &str| {
            let text = result.unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        };
        says(Manifest::resume(folder.path(), &header("a")).map(drop), "leave --resume out");
        let open = Manifest::create(folder.path(), &header("a")).unwrap();
        says(Manifest::resume(folder.path(), &header("a")).map(drop), "another taut lab");
        drop(open);
        // A run that did not start is no run: the next one begins, in either way, whatever its lab says.
        for text in ["b", "c"] {
            Manifest::create(folder.path(), &header(text)).unwrap();
            let (_, trials) = Manifest::resume(folder.path(), &header("a")).unwrap();
            assert_eq!(trials, []);
        }
        Manifest::create(folder.path(), &header("a")).unwrap().trial(&trial(0)).unwrap();
        says(Manifest::create(folder.path(), &header("a")).map(drop), "--resume");
        says(Manifest::resume(folder.path(), &header("b")).map(drop), "another lab.toml");
        fs::write(folder.path().join(MANIFEST), "{}\n").unwrap();
        says(Manifest::resume(folder.path(), &header("a")).map(drop), "line 1");
    }
}
