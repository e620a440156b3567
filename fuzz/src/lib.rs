//! What every importer promises of whatever bytes: a recording that is whole, or one sentence and nothing.

use std::path::Path;

use taut_import::{Error, Imported};

/// Runs an importer and holds it to that.
pub fn check(import: impl FnOnce(&Path) -> Result<Imported, Error>) {
    let to = std::env::temp_dir().join(format!("taut-fuzz-import-{}.mcap", std::process::id()));
    match import(&to) {
        Ok(imported) => {
            let contents = taut_recording::read(&std::fs::read(&to).expect("it was written"), &mut |_| {});
            let contents = contents.expect("a recording");
            let found = (contents.messages, contents.stamps, contents.damage.len());
            assert_eq!(found, (imported.messages, imported.stamps, 0));
            std::fs::remove_file(&to).expect("the file is ours");
        }
        Err(error) => assert!(!error.to_string().contains('\n') && !to.exists(), "{error}"),
    }
}
