//! `taut lab archive`: a run as one file that can be sent and checked: a zstd-compressed tar of its folder, with the
//! SHA-256 of every file in it.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use taut_recording::Output;

use crate::{Error, inputs::sha256, manifest};

/// Its name in the archive; `sha256sum -c` reads it.
pub const SUMS: &str = "SHA256SUMS";
/// zstd's: logs shrink to a tenth at any level.
const LEVEL: i32 = 9;

/// What was packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Files of the run.
    pub files: usize,
    /// Together.
    pub bytes: u64,
    /// The archive's.
    pub packed_bytes: u64,
}

/// Packs the run in `folder` into `output`, which appears when it is whole.
///
/// # Errors
/// A folder without a run, one that is being written, a file that is there already, a disk that is full.
pub fn archive(folder: &Path, output: &Path) -> Result<Packed, Error> {
    let _lock = manifest::held(folder)?;
    is_new(output)?;
    let mut files = Vec::new();
    walk(folder, &mut files).map_err(Error::file(folder))?;
    files.sort();
    let name = fs::canonicalize(folder).map_err(Error::file(folder))?;
    let name = PathBuf::from(name.file_name().unwrap_or("run".as_ref()));
    let mut sums = String::new();
    let mut bytes = 0;
    for file in &files {
        let below = file.strip_prefix(folder).unwrap_or(file);
        let gone = || io::Error::other("cannot be read");
        sums += &format!("{}  {}\n", sha256(file).ok_or_else(|| Error::file(file)(gone()))?, below.display());
        bytes += file.metadata().map_err(Error::file(file))?.len();
    }
    let mut place = Output::open(output).map_err(|error| match error {
        taut_recording::Error::Io { source, .. } => Error::file(output)(source),
        other => Error::system("taut lab archive")(io::Error::other(other)),
    })?;
    is_new(output)?;
    let packed = pack(place.path(), folder, &name, &files, &sums);
    packed.and_then(|()| place.put_in_place()).map_err(Error::file(output))?;
    let packed_bytes = output.metadata().map_err(Error::file(output))?.len();
    Ok(Packed { files: files.len(), bytes, packed_bytes })
}

/// An archive replaces none.
fn is_new(output: &Path) -> Result<(), Error> {
    if output.exists() {
        let there = io::Error::new(io::ErrorKind::AlreadyExists, "is there already; choose another name with -o");
        return Err(Error::file(output)(there));
    }
    Ok(())
}

fn pack(partial: &Path, folder: &Path, name: &Path, files: &[PathBuf], sums: &str) -> io::Result<()> {
    let mut tar = tar::Builder::new(zstd::Encoder::new(File::create(partial)?, LEVEL)?);
    let mut header = tar::Header::new_gnu();
    header.set_size(sums.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    tar.append_data(&mut header, name.join(SUMS), sums.as_bytes())?;
    for file in files {
        tar.append_path_with_name(file, name.join(file.strip_prefix(folder).unwrap_or(file)))?;
    }
    let mut file = tar.into_inner()?.finish()?;
    file.flush()?;
    file.sync_all()
}

/// Files only: what else lies there (a socket, a pipe) is no result.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, io::Read};

    use super::*;

    #[test]
    fn a_run_comes_back_as_it_was_with_its_sums() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("out");
        fs::create_dir_all(run.join("logs/a")).unwrap();
        let contents = [("manifest.jsonl", "{}\n".to_owned()), ("logs/a/trial.stdout", "x".repeat(100_000))];
        contents.iter().for_each(|(name, text)| fs::write(run.join(name), text).unwrap());
        let output = folder.path().join("out.tar.zst");
        let packed = archive(&run, &output).unwrap();
        assert_eq!((packed.files, packed.bytes), (2, 100_003));
        assert!(packed.packed_bytes < 1_000);

        let mut tar = tar::Archive::new(zstd::Decoder::new(File::open(&output).unwrap()).unwrap());
        let found: BTreeMap<String, String> = tar
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                (entry.path().unwrap().display().to_string(), text)
            })
            .collect();
        for (name, text) in &contents {
            assert_eq!(&found[&format!("out/{name}")], text);
            let sum = sha256(&run.join(name)).unwrap();
            assert!(found["out/SHA256SUMS"].contains(&format!("{sum}  {name}\n")));
        }
        assert_eq!(found.len(), 3);
        assert!(archive(&run, &output).unwrap_err().to_string().contains("there already"));
        let other = folder.path().join("other.tar.zst");
        let first = Output::open(&other).unwrap();
        fs::write(first.path(), "half").unwrap();
        let refused = archive(&run, &other).unwrap_err().to_string();
        assert!(refused.contains("other.tar.zst: another command writes it"), "{refused}");
        assert_eq!(fs::read(first.path()).unwrap(), b"half");
        assert!(archive(folder.path(), &output).unwrap_err().to_string().contains("holds no run"));
    }
}
