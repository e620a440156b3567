//! Settings of the Python interpreter that no variable has: a `sitecustomize` module in front of the search path sets them, and then
//! loads the one that it hides.

use std::path::Path;

use crate::{Error, Setting};

/// Before the code that sets something.
const HEAD: &str =
    "\"\"\"Settings by `taut tune`. A module of the same name further down the path is loaded afterwards.\"\"\"
import sys
";
/// Behind it: Python loads only the first module of this name.
const TAIL: &str = "
import importlib.machinery as _machinery
import importlib.util as _util
import os as _os

_here = _os.path.dirname(_os.path.abspath(__file__))
_rest = [_folder for _folder in sys.path if _os.path.abspath(_folder or '.') != _here]
_found = _machinery.PathFinder.find_spec('sitecustomize', _rest)
if _found is not None and _found.loader is not None:
    _found.loader.exec_module(_util.module_from_spec(_found))
";

/// The module's text; `None` where no setting needs it.
pub(crate) fn module(settings: &[Setting]) -> Option<String> {
    let lines: String = settings
        .iter()
        .filter_map(|setting| match setting {
            Setting::SwitchInterval(s) => Some(format!("sys.setswitchinterval({s})\n")),
            Setting::CollectAfter(n) => Some(format!("import gc\n\ngc.set_threshold({n}, 50, 100)\n")),
            _ => None,
        })
        .collect();
    (!lines.is_empty()).then(|| format!("{HEAD}{lines}{TAIL}"))
}

/// Writes the module into a folder, and says which variable makes Python load it.
pub(crate) fn variables(settings: &[Setting], folder: &Path) -> Result<Vec<(String, String)>, Error> {
    let Some(module) = module(settings) else { return Ok(Vec::new()) };
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let path = folder.join("sitecustomize.py");
    std::fs::write(&path, module).map_err(Error::file(&path))?;
    let before = std::env::var("PYTHONPATH").unwrap_or_default();
    let separator = if before.is_empty() { "" } else { ":" };
    Ok(vec![("PYTHONPATH".to_owned(), format!("{}{separator}{before}", folder.display()))])
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_interpreter_is_set_and_the_hidden_module_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        std::fs::create_dir(&theirs).unwrap();
        std::fs::write(theirs.join("sitecustomize.py"), "import sys; sys.theirs = 1").unwrap();
        let settings = [Setting::SwitchInterval(0.0005), Setting::CollectAfter(60_000)];
        let path = &variables(&settings, &ours).unwrap()[0].1;
        let path = format!("{}:{}", path.split(':').next().unwrap(), theirs.display());
        let said = Command::new("python3")
            .args(["-c", "import gc, sys; print(sys.getswitchinterval(), gc.get_threshold()[0], sys.theirs)"])
            .env("PYTHONPATH", path)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "0.0005 60000 1\n", "{said:?}");
    }
}
