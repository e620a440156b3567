//! Where results go: stdout, or a file that is either whole or not there.

use std::{
    io::{ErrorKind, Write},
    path::Path,
};

use anyhow::{Context, Result};

/// Writes the result to stdout, or to `path` by way of a temporary neighbour.
pub fn write(text: &str, path: Option<&Path>) -> Result<()> {
    match path {
        None => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(text.as_bytes())?;
            stdout.flush()?;
        }
        Some(path) => whole_file(text, path).with_context(|| format!("{}: cannot write", path.display()))?,
    }
    Ok(())
}

/// Somebody downstream has read enough: that is success.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == ErrorKind::BrokenPipe)
}

fn whole_file(text: &str, path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".taut-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    use std::os::unix::fs::PermissionsExt;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}
