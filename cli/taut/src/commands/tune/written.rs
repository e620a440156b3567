//! The folder of a tuning: files that apply the recommendation, and the result in every form.

use std::{os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Context, Result};
use taut_recording::Shown;
use taut_report::{tune_document, tune_json};
use taut_tune::Tuned;

use crate::output;

/// Writes all of it.
pub fn folder(folder: &Path, tuned: &Tuned) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.shown())?;
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
