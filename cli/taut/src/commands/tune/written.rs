//! The folder of a tuning: files that apply the recommendation, and the result in every form.

use std::{os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Context, Result};
use taut_recording::Shown;
use taut_report::{tune_document, tune_json};
use taut_tune::Tuned;

use crate::output;

/// Fails before the first trial where the result could not be written behind the last.
pub fn is_possible(folder: Option<&Path>, output: Option<&Path>) -> Result<()> {
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).with_context(|| folder.shown())?;
        tempfile::tempfile_in(folder).with_context(|| folder.shown())?;
    }
    output.map_or(Ok(()), output::is_possible)
}

/// Writes all of it.
pub fn folder(folder: &Path, tuned: &Tuned) -> Result<()> {
    for file in tuned.files() {
        let path = folder.join(file.name);
        output::write(&file.text, Some(&path))?;
        if file.is_program {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).with_context(|| path.shown())?;
        }
    }
    output::write(&format!("{:#}\n", tune_json(tuned)), Some(&folder.join("tune.json")))?;
    let document = tune_document(tuned);
    output::write(&taut_document::markdown(&document), Some(&folder.join("tune.md")))?;
    output::write(&taut_document::html(&document, None), Some(&folder.join("tune.html")))
}
