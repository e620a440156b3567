//! Settings of the Python interpreter that no variable has: a `sitecustomize` module in front of the search path sets them, and then
//! loads the one that it hides.

use std::path::Path;

use crate::{Error, Setting};

/// Before the code that sets something.
const HEAD: &str =
    "\"\"\"Settings by `taut tune`. A module of the same name further down the path is loaded afterwards.\"\"\"
import os
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

/// Called once everything is set.
const DONE: &str = "_done()\n";
/// rclpy imports its executors late: they are changed as they are loaded. `EXECUTOR` stands for an expression.
const EXECUTOR: &str = "
import importlib.abc
import importlib.util


class _Executors(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != 'rclpy.executors':
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            sys.modules['rclpy'].executors = module
            module.SingleThreadedExecutor = EXECUTOR
            _done()

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _Executors())
";
const EVENTS_EXECUTOR: &str = "importlib.import_module('rclpy.experimental.events_executor').EventsExecutor";
const THREADED_EXECUTOR: &str = "module.MultiThreadedExecutor";
const FREEZE_COLLECTED: &str = "
import gc


def _freeze(phase, info):
    if phase == 'stop' and info['generation'] == 2:
        gc.callbacks.remove(_freeze)
        gc.freeze()
        _done()


gc.callbacks.append(_freeze)
";
const LOCK_MEMORY: &str = "
import ctypes
import os

if ctypes.CDLL(None, use_errno=True).mlockall(3) != 0:
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()) + ': memory cannot be locked; see ulimit -l')
";

/// The module's text; `None` where no setting needs it. `is_trial`: it says in a file beside it that it has set everything.
pub(crate) fn module(settings: &[Setting], is_trial: bool) -> Option<String> {
    let lines: String = settings
        .iter()
        .filter_map(|setting| match setting {
            Setting::SwitchInterval(s) => Some(format!("sys.setswitchinterval({s})\n")),
            Setting::CollectAfter(n) => Some(format!("import gc\n\ngc.set_threshold({n}, 50, 100)\n")),
            Setting::FreezeCollected => Some(FREEZE_COLLECTED.to_owned()),
            Setting::LockMemory => Some(LOCK_MEMORY.to_owned()),
            Setting::EventsExecutor => Some(EXECUTOR.replace("EXECUTOR", EVENTS_EXECUTOR)),
            Setting::ThreadedExecutor => Some(EXECUTOR.replace("EXECUTOR", THREADED_EXECUTOR)),
            _ => None,
        })
        .collect();
    let done = match is_trial {
        true => format!("    open(__file__ + '.{SET}' + str(os.getpid()), 'w').close()\n"),
        false => "    pass\n".to_owned(),
    };
    // Some settings are made while the program runs, and say so then.
    let is_late = settings
        .iter()
        .any(|one| matches!(one, Setting::EventsExecutor | Setting::ThreadedExecutor | Setting::FreezeCollected));
    let call = if is_late { "" } else { DONE };
    (!lines.is_empty()).then(|| format!("{HEAD}\n\ndef _done():\n{done}\n\n{lines}{call}{TAIL}"))
}

/// In the names of files of a trial's module, before the number of the process.
const SET: &str = "set-";

/// Writes the module into a folder, and says which variable makes Python load it.
pub(crate) fn variables(settings: &[Setting], folder: &Path) -> Result<Vec<(String, String)>, Error> {
    let Some(module) = module(settings, true) else { return Ok(Vec::new()) };
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let path = folder.join("sitecustomize.py");
    std::fs::write(&path, module).map_err(Error::file(&path))?;
    let before = std::env::var("PYTHONPATH").unwrap_or_default();
    let separator = if before.is_empty() { "" } else { ":" };
    Ok(vec![("PYTHONPATH".to_owned(), format!("{}{separator}{before}", folder.display()))])
}

/// How many interpreters of a trial have set everything.
pub(crate) fn set(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().contains(SET)).count()
}

/// A free-threaded interpreter in this search path, where a command's first word is an interpreter with the lock. The newest first.
pub(crate) fn free_threaded(program: &str, search: &str) -> Option<String> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let number = name.strip_prefix("python")?;
    if !number.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let folders = || search.split(':').filter(|folder| !folder.is_empty());
    let found = (FREE_THREADED.0..=FREE_THREADED.1).rev().find_map(|minor| {
        folders().map(|folder| Path::new(folder).join(format!("python3.{minor}t"))).find(|path| path.is_file())
    });
    found.map(|path| path.display().to_string())
}

/// The first release of Python 3 that has one, and one that none has reached.
const FREE_THREADED: (u32, u32) = (13, 30);

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
        assert_eq!(set(&ours), 1, "it says that it is set");
    }

    /// What a program prints whose interpreter has a setting.
    fn printed(setting: Setting, folder: &Path, program: &str) -> String {
        let variable = &variables(&[setting], folder).unwrap()[0].1;
        let said = Command::new("python3").args(["-c", program]).env("PYTHONPATH", variable).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr))
    }

    #[test]
    fn what_survives_the_first_full_collection_is_frozen() {
        let folder = tempfile::tempdir().unwrap();
        let program =
            "import gc; gc.collect(0); print(gc.get_freeze_count()); gc.collect(); print(gc.get_freeze_count() > 1000)";
        assert_eq!(printed(Setting::FreezeCollected, folder.path(), program), "0\nTrue\n");
    }

    #[test]
    fn memory_is_locked_or_the_module_says_why_not() {
        let folder = tempfile::tempdir().unwrap();
        let program =
            "print([int(line.split()[1]) > 0 for line in open('/proc/self/status') if line.startswith('VmLck')][0])";
        let said = printed(Setting::LockMemory, folder.path(), program);
        let is_locked = said == "True\n";
        assert!(is_locked || said.contains("ulimit -l"), "{said}");
        assert_eq!(set(folder.path()), usize::from(is_locked));
    }

    #[test]
    fn executors_are_changed_as_they_are_imported() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, package) = (folder.path().join("ours"), folder.path().join("rclpy"));
        std::fs::create_dir_all(package.join("experimental")).unwrap();
        for (name, text) in [
            ("__init__.py", ""),
            ("executors.py", "class SingleThreadedExecutor: pass\nclass MultiThreadedExecutor: pass\n"),
            ("experimental/__init__.py", ""),
            (
                "experimental/events_executor.py",
                "import rclpy.executors\nclass EventsExecutor(rclpy.executors.SingleThreadedExecutor): pass\n",
            ),
        ] {
            std::fs::write(package.join(name), text).unwrap();
        }
        let program = format!(
            "import sys; sys.path.append({:?}); import rclpy; from rclpy.executors import SingleThreadedExecutor as one; print(one.__name__)",
            folder.path()
        );
        assert_eq!(printed(Setting::EventsExecutor, &ours, &program), "EventsExecutor\n");
        assert_eq!(set(&ours), 1);
        assert_eq!(printed(Setting::ThreadedExecutor, &ours, &program), "MultiThreadedExecutor\n");
        let other = folder.path().join("other");
        printed(Setting::EventsExecutor, &other, "pass");
        assert_eq!(set(&other), 0, "a program without rclpy");
    }

    #[test]
    fn an_interpreter_without_the_lock_is_offered_for_one_with_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["python3.13t", "python3.14t", "python3.14"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let search = format!("/nowhere:{}", folder.path().display());
        let newest = folder.path().join("python3.14t").display().to_string();
        assert_eq!(free_threaded("/usr/bin/python3", &search), Some(newest.clone()));
        assert_eq!(free_threaded("python", &search), Some(newest));
        assert_eq!(free_threaded("python3.13t", &search), None);
        assert_eq!(free_threaded("./robot", &search), None);
        assert_eq!(free_threaded("python3", "/nowhere"), None);
    }
}
