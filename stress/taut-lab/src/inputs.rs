//! What the commands of a lab name: programs and files, by their hash, so that a run records what it ran.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read,
    path::{Component, Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::{Command, Error, Lab};

/// SHA-256 by path, of every word of a command that is a file or a program in PATH.
pub(crate) fn hashes(lab: &Lab) -> BTreeMap<String, String> {
    let commands = lab.processes.iter().map(|process| &process.command).chain([&lab.trial.command]);
    let files = commands.flat_map(named);
    files.filter_map(|path| Some((path.display().to_string(), sha256(&path)?))).collect()
}

/// Files and folders below this one that another host needs: those that commands name, and those that the lab lists.
///
/// # Errors
/// One holds the folder that results go to, and would be sent with itself in it.
pub(crate) fn to_send(lab: &Lab, results: &Path) -> Result<Vec<PathBuf>, Error> {
    let commands = lab.processes.iter().map(|process| &process.command).chain([&lab.trial.command]);
    let words = commands.flat_map(|command| match command {
        Command::Words(words) => words.clone(),
        Command::Line(line) => line.split_whitespace().map(str::to_owned).collect(),
    });
    // A command's "." is where it runs, there as here.
    let is_in_here = |path: &PathBuf| path.components().any(|c| matches!(c, Component::Normal(_)));
    let all = words.map(PathBuf::from).filter(is_in_here).chain(lab.files.iter().cloned());
    let is_below = |path: &PathBuf| path.is_relative() && path.components().all(|c| c.as_os_str() != "..");
    let found: BTreeSet<PathBuf> = all.filter(is_below).filter(|path| path.exists()).collect();
    let results = results.canonicalize().map_err(Error::file(results))?;
    let holds_results = |path: &&PathBuf| path.canonicalize().is_ok_and(|path| results.starts_with(path));
    if let Some(path) = found.iter().find(holds_results) {
        let problem = format!(
            "{:?} is to be sent to other hosts, and holds {}, where results go; put them elsewhere with -o, or name less",
            path.display().to_string(),
            results.display()
        );
        return Err(Error::Start { place: "files".into(), problem });
    }
    Ok(found.into_iter().collect())
}

/// The program that a word names, as a shell finds it.
pub(crate) fn program(word: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        use std::os::unix::fs::PermissionsExt;
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if word.contains('/') {
        return Some(PathBuf::from(word)).filter(is_program);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(word)).find(is_program)
}

fn named(command: &Command) -> Vec<PathBuf> {
    let words: Vec<String> = match command {
        Command::Words(words) => words.clone(),
        // Good enough for a record: quoting hides a name, and then it is not hashed.
        Command::Line(line) => line.split_whitespace().map(str::to_owned).collect(),
    };
    let file = |(at, word): (usize, &String)| match at {
        0 => program(word),
        _ => Some(PathBuf::from(word)).filter(|path| path.is_file()),
    };
    words.iter().enumerate().filter_map(file).collect()
}

pub(crate) fn sha256(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            n => hash.update(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_not_sent_with_the_results_in_it() {
        let results = tempfile::tempdir_in(".").unwrap();
        let name = PathBuf::from(results.path().file_name().unwrap());
        let of = |words: &[&str], files: &[&Path]| {
            let text = format!(
                "trials = 1\nfiles = {files:?}\n[trial]\ncommand = {words:?}\ntimeout_s = 1\n[[scenario]]\nname = \"none\""
            );
            to_send(&toml::from_str(&text).unwrap(), &name).map_err(|error| error.to_string())
        };
        // A command's "." is where it runs; the folder itself grew by its own archive until the disk was full.
        assert_eq!(of(&["ls", ".", "src"], &[]).unwrap(), [PathBuf::from("src")]);
        let said = of(&["ls"], &[Path::new(".")]).unwrap_err();
        assert!(said.contains("files") && said.contains("-o"), "{said}");
        assert!(of(&["ls"], &[&name]).is_err());
    }

    #[test]
    fn programs_and_files_of_a_command_are_hashed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let found = named(&Command::Words(vec!["sh".into(), file.path().display().to_string(), "--fast".into()]));
        assert_eq!((found.len(), &found[1]), (2, &file.path().to_owned()));
        // FIPS 180-2, appendix B.1.
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(file.path()).as_deref(), Some(known));
    }
}
