//! A library that the command's processes load (`LD_PRELOAD`): where it is written, and what the variable then holds.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use memmap2::MmapOptions;

use crate::session::check_private;

/// A shared object for `LD_PRELOAD`.
#[derive(Clone, Copy, Debug)]
pub struct Preload {
    /// Its file name.
    pub file_name: &'static str,
    /// What it holds.
    pub bytes: &'static [u8],
}

impl Preload {
    /// Writes it into the first of these folders that processes can run code from; a folder that is missing is made, its user's
    /// alone. A file that is there already is replaced as a whole: processes may run what it was.
    ///
    /// # Errors
    /// None of the folders serves; why the first does not.
    pub fn place(self, folders: &[PathBuf]) -> io::Result<PathBuf> {
        let mut refused = None;
        for folder in folders {
            match self.place_in(folder) {
                Ok(path) => return Ok(path),
                Err(error) => {
                    let text = format!("{}: {error}", folder.display());
                    refused.get_or_insert(io::Error::new(error.kind(), text));
                }
            }
        }
        Err(refused.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    fn place_in(self, folder: &Path) -> io::Result<PathBuf> {
        // The loader parts the names by both, and knows no escape.
        if folder.as_os_str().as_bytes().iter().any(|byte| b": ".contains(byte)) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "LD_PRELOAD takes no path with a space or a colon",
            ));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        check_private(folder, None)
            .map_err(|error| io::Error::new(io::ErrorKind::PermissionDenied, error.to_string()))?;
        let path = fs::canonicalize(folder)?.join(self.file_name);
        if !fs::read(&path).is_ok_and(|there| there == self.bytes) {
            let temporary = folder.join(format!(".{}-{}", self.file_name, std::process::id()));
            let _ = fs::remove_file(&temporary);
            let written = write_new(&temporary, self.bytes).and_then(|()| fs::rename(&temporary, &path));
            if let Err(error) = written {
                let _ = fs::remove_file(&temporary);
                return Err(error);
            }
        }
        // A file system that is mounted noexec, as /dev/shm is in many containers.
        let file = File::open(&path)?;
        // SAFETY: nothing is run of it, and it is unmapped at once.
        if let Err(error) = unsafe { MmapOptions::new().len(1).map_exec(&file) } {
            let _ = fs::remove_file(&path);
            return Err(io::Error::new(error.kind(), format!("no code can be run from there ({error})")));
        }
        Ok(path)
    }

    /// What `LD_PRELOAD` holds with this library at `path`, where it held `existing`: that stays in front, and another copy of
    /// this library goes.
    pub fn variable(self, existing: Option<&OsStr>, path: &Path) -> OsString {
        let existing = existing.map(OsStr::as_bytes).unwrap_or_default();
        let is_other =
            |name: &&[u8]| Path::new(OsStr::from_bytes(name)).file_name() != Some(OsStr::new(self.file_name));
        let mut names: Vec<&[u8]> =
            existing.split(|byte| b": ".contains(byte)).filter(|name| !name.is_empty()).filter(is_other).collect();
        names.push(path.as_os_str().as_bytes());
        OsStr::from_bytes(&names.join(&b':')).to_owned()
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o755).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: Preload = Preload { file_name: "libone.so", bytes: b"\x7fELF" };

    #[test]
    fn it_lies_in_the_first_folder_that_serves_and_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("made/for it");
        let second = folder.path().join("made/second");
        let path = LIBRARY.place(&[wanted, "/proc/no".into(), second.clone()]).unwrap();
        assert_eq!((path.parent().unwrap(), fs::read(&path).unwrap().as_slice()), (second.as_path(), LIBRARY.bytes));
        let running = File::open(&path).unwrap();
        let newer = Preload { bytes: b"\x7fELF and more", ..LIBRARY };
        assert_eq!(newer.place(std::slice::from_ref(&second)).unwrap(), path);
        assert_eq!((fs::read(&path).unwrap().as_slice(), running.metadata().unwrap().len()), (newer.bytes, 4));
        assert_eq!(fs::read_dir(&second).unwrap().count(), 1, "nothing else is left there");
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let error = LIBRARY.place(&[folder.path().to_owned()]).unwrap_err();
        assert!(error.to_string().contains("lets others in"), "{error}");
    }

    #[test]
    fn what_was_preloaded_stays_in_front() {
        let variable = |existing: &str| LIBRARY.variable(Some(OsStr::new(existing)), Path::new("/s/libone.so"));
        assert_eq!(variable(""), "/s/libone.so");
        assert_eq!(variable("libasan.so:/x/libvgl.so"), "libasan.so:/x/libvgl.so:/s/libone.so");
        assert_eq!(variable("a.so b.so"), "a.so:b.so:/s/libone.so");
        assert_eq!(variable("/old/libone.so:a.so"), "a.so:/s/libone.so", "another copy goes");
        assert_eq!(LIBRARY.variable(None, Path::new("/s/libone.so")), "/s/libone.so");
    }
}
