//! Two git revisions as programs: checked out beside the working tree, built, and removed when the gate ends.

use std::{
    io::{Read, Seek},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use taut_recording::Shown;

use crate::scratch::Scratch;

use super::interrupt::Interrupt;

/// Built trees that a cache keeps.
const KEPT: usize = 4;
/// Says that a cached tree was built to the end, and with which command.
const BUILT: &str = ".taut-gate-built";

/// The trees of two revisions.
pub struct Trees {
    /// Folder and full name of the older revision.
    pub a: (PathBuf, String),
    /// Of the newer.
    pub b: (PathBuf, String),
    repository: PathBuf,
    /// Removed at the end, unless there is a cache.
    scratch: Option<Scratch>,
}

/// Checks out and builds "main..HEAD".
pub fn build(range: &str, command: &str, cache: Option<&Path>, quiet: bool, interrupt: &Interrupt) -> Result<Trees> {
    let Some((old, new)) = range.split_once("..").filter(|(old, _)| !old.is_empty()) else {
        bail!("--revisions {range}: write OLD..NEW as in main..HEAD");
    };
    let new = if new.is_empty() { "HEAD" } else { new.trim_start_matches('.') };
    let repository = PathBuf::from(git(Path::new("."), &["rev-parse", "--show-toplevel"])?);
    let name = |revision: &str| {
        git(&repository, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])
            .with_context(|| format!("--revisions {range}: {revision:?} is no revision of {}", repository.shown()))
    };
    let (a, b) = (name(old)?, name(new)?);
    let scratch = match cache {
        Some(folder) => {
            std::fs::create_dir_all(folder).with_context(|| folder.shown())?;
            None
        }
        None => Some(Scratch::new("taut-gate-trees-")?),
    };
    let folder = match (cache, &scratch) {
        (Some(folder), _) => std::path::absolute(folder)?,
        (None, Some(scratch)) => scratch.path().to_owned(),
        (None, None) => unreachable!("one of them is there"),
    };
    let trees = Trees { a: (folder.join(&a), a), b: (folder.join(&b), b), repository, scratch };
    for (tree, revision) in [&trees.a, &trees.b] {
        // What is half built is of no use to the next gate.
        trees.make(tree, revision, command, quiet, interrupt).inspect_err(|_| trees.remove(tree))?;
    }
    if cache.is_some() {
        trees.forget_old(&folder)?;
    }
    Ok(trees)
}

impl Trees {
    fn make(&self, tree: &Path, revision: &str, command: &str, quiet: bool, interrupt: &Interrupt) -> Result<()> {
        if std::fs::read_to_string(tree.join(BUILT)).is_ok_and(|built| built == command) {
            return Ok(());
        }
        if tree.exists() {
            self.remove(tree);
        }
        if !quiet {
            say!("taut: building {}", &revision[..12.min(revision.len())]);
        }
        git(&self.repository, &["worktree", "add", "--detach", "--force", &tree.to_string_lossy(), revision])?;
        interrupt.check()?;
        let mut said = tempfile::tempfile().context("file for what the build says")?;
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(tree).stdin(Stdio::null());
        shell.stdout(said.try_clone()?).stderr(said.try_clone()?);
        let status = interrupt.run(&mut shell)?;
        if !status.success() {
            let mut text = Vec::new();
            said.rewind()?;
            said.read_to_end(&mut text)?;
            let text = String::from_utf8_lossy(&text);
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            bail!("--build {command}: failed in revision {revision} ({status}): {}", last.trim());
        }
        std::fs::write(tree.join(BUILT), command).with_context(|| tree.shown())?;
        Ok(())
    }

    fn remove(&self, tree: &Path) {
        let _ = git(&self.repository, &["worktree", "remove", "--force", "--force", &tree.to_string_lossy()]);
        let _ = std::fs::remove_dir_all(tree);
    }

    /// A cache keeps the trees that were built last.
    fn forget_old(&self, folder: &Path) -> Result<()> {
        let mut trees: Vec<(std::time::SystemTime, PathBuf)> = std::fs::read_dir(folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter_map(|path| Some((path.join(BUILT).metadata().ok()?.modified().ok()?, path)))
            .filter(|(_, path)| *path != self.a.0 && *path != self.b.0)
            .collect();
        trees.sort();
        let extra = (trees.len() + 2).saturating_sub(KEPT);
        trees.iter().take(extra).for_each(|(_, tree)| self.remove(tree));
        Ok(())
    }
}

impl Drop for Trees {
    fn drop(&mut self) {
        if self.scratch.is_some() {
            self.remove(&self.a.0);
            self.remove(&self.b.0);
        }
        let _ = git(&self.repository, &["worktree", "prune"]);
    }
}

fn git(folder: &Path, words: &[&str]) -> Result<String> {
    let ran = Command::new("git").args(words).current_dir(folder).stdin(Stdio::null()).output().context("git")?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        bail!("git {}: {}", words[0], said.lines().last().unwrap_or("failed").trim());
    }
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}
