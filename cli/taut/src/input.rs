//! Where recordings come from: files that are mapped, not read.

use std::{fs::File, path::Path};

use anyhow::{Result, bail};
use memmap2::Mmap;

/// Whether both paths lead to one file that is there.
pub fn is_one_file(one: &Path, other: &Path) -> bool {
    std::fs::canonicalize(one).is_ok_and(|one| std::fs::canonicalize(other).is_ok_and(|other| one == other))
}

/// The bytes of the recording at `path`.
pub fn map(path: &Path) -> Result<Mmap> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        bail!("is a folder; name a recording (.mcap), or convert a bag or a trace (taut import --help)");
    }
    if metadata.len() == 0 {
        bail!("is empty; record again, or name another file");
    }
    // SAFETY: the map is read-only, and every read of it is checked (lengths, and CRCs where the file has them) before use; a
    // writer that truncates the file under us could still raise SIGBUS, which ends the command.
    Ok(unsafe { Mmap::map(&file)? })
}
