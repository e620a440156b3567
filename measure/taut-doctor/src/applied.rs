//! A remedy while it is in force. It is taken back when the guard goes out of scope, whatever ended the scope; only
//! SIGKILL and a loss of power leave it behind.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use crate::{DoctorError, Finding, Remedy, Setting, State, machine::chosen};

/// Holds a remedy in force.
#[derive(Debug)]
#[must_use = "the remedy is taken back as soon as this is dropped"]
pub struct Applied {
    folder: PathBuf,
    written: Vec<Setting>,
    _held: Option<File>,
}

impl Applied {
    /// The remedy of a finding, if it is one that can be tried and taken back: values for files, or a held device.
    ///
    /// # Errors
    /// Why it is not.
    pub fn remedy_of(finding: &Finding) -> Result<&Remedy, DoctorError> {
        let why = match &finding.remedy {
            Some(remedy @ Remedy::HoldAwake) => return Ok(remedy),
            Some(remedy @ Remedy::Write(settings)) => {
                let hotplug =
                    |s: &Setting| s.path.starts_with("/sys/devices/system/cpu/") && s.path.ends_with("/online");
                match settings.iter().any(hotplug) {
                    true => "it would switch CPUs on or off under the probe".into(),
                    false => return Ok(remedy),
                }
            }
            Some(Remedy::Boot(_)) => "it needs a reboot".into(),
            Some(Remedy::Run { command, .. }) => {
                format!("it is a command ({command}), and only values for files are put back with certainty")
            }
            Some(Remedy::Advise(_)) => "it is something a person has to do".into(),
            None => match finding.state {
                State::Good => format!("it is good already ({})", finding.value),
                _ => format!("there is none here: {}", finding.value),
            },
        };
        Err(DoctorError::NotMeasurable { id: finding.id, why })
    }

    /// Applies a remedy to the files below `folder`, which is "/" outside of tests. What was written before a file
    /// refused is taken back.
    ///
    /// # Errors
    /// The first file that does not take its value; a remedy that is no value for a file changes nothing.
    pub fn new(remedy: &Remedy, folder: &Path) -> Result<Applied, DoctorError> {
        let mut applied = Applied { folder: folder.to_owned(), written: Vec::new(), _held: None };
        match remedy {
            Remedy::Write(settings) => {
                for setting in settings {
                    write(&applied.at(&setting.path), &setting.new).map_err(|source| DoctorError::Write {
                        path: setting.path.clone(),
                        value: setting.new.clone(),
                        source,
                    })?;
                    applied.written.push(setting.clone());
                }
            }
            Remedy::HoldAwake => {
                const FILE: &str = "/dev/cpu_dma_latency";
                let hold = || {
                    let mut file = OpenOptions::new().write(true).open(applied.at(FILE))?;
                    file.write_all(&0i32.to_ne_bytes())?;
                    Ok(file)
                };
                let failed = |source| DoctorError::Write { path: FILE.into(), value: "0".into(), source };
                applied._held = Some(hold().map_err(failed)?);
            }
            Remedy::Run { .. } | Remedy::Boot(_) | Remedy::Advise(_) => {}
        }
        Ok(applied)
    }

    /// Takes it back, and looks whether that has come true.
    ///
    /// # Errors
    /// The first file that did not take its old value; the others are put back all the same.
    pub fn put_back(mut self) -> Result<(), DoctorError> {
        self.restore()
    }

    fn restore(&mut self) -> Result<(), DoctorError> {
        let mut result = Ok(());
        // Backwards: a later value may have been allowed by an earlier one.
        for setting in std::mem::take(&mut self.written).iter().rev() {
            if let Err(why) = restore(&self.at(&setting.path), &setting.old) {
                let command = setting.undo_command();
                result = result.and(Err(DoctorError::NotPutBack { path: setting.path.clone(), why, command }));
            }
        }
        result
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.join(path.trim_start_matches('/'))
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        // A caller that wants to know asks `put_back`; here the scope is ended by an error or a panic already.
        let _ = self.restore();
    }
}

fn write(path: &Path, value: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    // In one piece: the kernel takes each write for a whole value.
    file.write_all(format!("{value}\n").as_bytes())
}

fn restore(path: &Path, old: &str) -> Result<(), String> {
    write(path, old).map_err(|error| error.to_string())?;
    let mut now = String::new();
    match File::open(path).and_then(|mut file| file.read_to_string(&mut now)) {
        Ok(_) if now.trim() == old || chosen(&now) == old => Ok(()),
        Ok(_) => Err(format!("it is {:?} after the write", now.trim())),
        // A file that can only be written took the value.
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("a"), "old a\n").unwrap();
        std::fs::write(tree.path().join("b"), "one [old_b] two\n").unwrap();
        tree
    }

    fn text(tree: &tempfile::TempDir, name: &str) -> String {
        std::fs::read_to_string(tree.path().join(name)).unwrap().trim().to_owned()
    }

    fn remedy(names: &[(&str, &str)]) -> Remedy {
        let setting =
            |(name, old): &(&str, &str)| Setting { path: format!("/{name}"), new: "new".into(), old: (*old).into() };
        Remedy::Write(names.iter().map(setting).collect())
    }

    #[test]
    fn only_what_can_be_taken_back_with_certainty_is_measured() {
        let finding = |state, remedy| {
            let check = crate::find("governor").unwrap();
            let root = crate::Root::recorded("== /none ==\n").unwrap();
            Finding {
                state,
                remedy,
                value: "fine".into(),
                ..crate::examine_one(check, &root, &crate::Asked::default())
            }
        };
        let why = |state, remedy| Applied::remedy_of(&finding(state, remedy)).unwrap_err().to_string();
        let hotplug = Setting { path: "/sys/devices/system/cpu/cpu3/online".into(), new: "0".into(), old: "1".into() };
        let run = Remedy::Run { command: "swapoff -a".into(), undo: "swapon -a".into() };
        assert!(Applied::remedy_of(&finding(State::Bad, Some(remedy(&[("a", "b")])))).is_ok());
        assert!(Applied::remedy_of(&finding(State::Warn, Some(Remedy::HoldAwake))).is_ok());
        assert!(why(State::Bad, Some(Remedy::Write(vec![hotplug]))).contains("on or off under the probe"));
        assert!(why(State::Warn, Some(run)).contains("(swapoff -a)"));
        assert!(why(State::Bad, Some(Remedy::Boot("nosmt".into()))).contains("reboot"));
        assert!(why(State::Good, None).contains("good already (fine)"));
        assert!(why(State::NotVisible, None).contains("there is none here"));
    }

    #[test]
    fn a_remedy_is_in_force_until_it_is_put_back() {
        let tree = tree();
        let applied = Applied::new(&remedy(&[("a", "old a"), ("b", "old_b")]), tree.path()).unwrap();
        assert_eq!((text(&tree, "a"), text(&tree, "b")), ("new".into(), "new".into()));
        applied.put_back().unwrap();
        assert_eq!((text(&tree, "a"), text(&tree, "b")), ("old a".into(), "old_b".into()));
    }

    #[test]
    fn a_panic_puts_it_back() {
        let tree = tree();
        let panicked = std::panic::catch_unwind(|| {
            let _applied = Applied::new(&remedy(&[("a", "old a")]), tree.path()).unwrap();
            assert_eq!(text(&tree, "a"), "new");
            panic!("in the middle of a measurement");
        });
        assert!(panicked.is_err());
        assert_eq!(text(&tree, "a"), "old a");
    }

    #[test]
    fn a_file_that_refuses_takes_the_others_back() {
        let tree = tree();
        let error = Applied::new(&remedy(&[("a", "old a"), ("none", "x")]), tree.path()).unwrap_err();
        assert_eq!(error.to_string(), "/none: cannot write \"new\"");
        assert_eq!(text(&tree, "a"), "old a");
    }

    #[test]
    fn what_could_not_be_put_back_is_said_with_the_command() {
        let tree = tree();
        let applied = Applied::new(&remedy(&[("a", "old a"), ("b", "old_b")]), tree.path()).unwrap();
        std::fs::remove_file(tree.path().join("b")).unwrap();
        let error = applied.put_back().unwrap_err().to_string();
        assert!(error.contains("/b could NOT be put back") && error.contains("echo old_b > /b"), "{error}");
        assert_eq!(text(&tree, "a"), "old a", "the others are put back all the same");
    }
}
