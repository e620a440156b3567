//! Where the checks read: the files of this machine, or a machine written down in one text. A check does not
//! distinguish the two. Calls have names that start with `call:`; this machine makes them, a written-down one has their
//! results.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
};

use crate::{
    DoctorError,
    calls::Calls,
    missing::{Answer, Missing, missing},
};

/// Options of the kernel's build that checks ask for; the others are not kept.
pub(crate) const CONFIG: [&str; 15] = [
    "CONFIG_PREEMPT",
    "CONFIG_HZ=",
    "CONFIG_RT_GROUP_SCHED",
    "CONFIG_PROVE_LOCKING",
    "CONFIG_LOCK_STAT",
    "CONFIG_KASAN=",
    "CONFIG_KCSAN=",
    "CONFIG_UBSAN=",
    "CONFIG_DEBUG_ATOMIC_SLEEP",
    "CONFIG_DEBUG_KMEMLEAK=",
    "CONFIG_DEBUG_OBJECTS=",
    "CONFIG_SLUB_DEBUG_ON",
    "CONFIG_IRQSOFF_TRACER",
    "CONFIG_PREEMPT_TRACER",
    "CONFIG_NO_HZ_FULL",
];

/// A tree of files, with the answers of calls that no file gives.
#[derive(Debug, Default)]
pub struct Root {
    folder: Option<PathBuf>,
    calls: Option<Calls>,
    known: BTreeMap<String, Answer>,
    asked: RefCell<BTreeMap<String, Answer>>,
}

/// No file of interest is longer; a check never fills the memory.
const LONGEST: u64 = 2 << 20;

impl Root {
    /// This machine.
    pub fn live() -> Root {
        Root { calls: Some(Calls::new()), ..Root::at("/") }
    }

    /// The tree below `folder`, in which no call is answered.
    pub fn at(folder: impl Into<PathBuf>) -> Root {
        Root { folder: Some(folder.into()), ..Root::default() }
    }

    /// A machine written down: sections that start with `== PATH ==` and hold the file's text. `== PATH == EACCES`
    /// is a file that may not be read, any other word after it an error of that name. A path that ends in a slash is
    /// a folder and holds names, one a line; folders not given so hold what the other paths say. Lines before the
    /// first section are remarks.
    ///
    /// # Errors
    /// A path given twice, or none at all.
    pub fn recorded(text: &str) -> Result<Root, DoctorError> {
        let mut known = BTreeMap::new();
        let mut current: Option<(String, Answer)> = None;
        let mut put = |section: Option<(String, Answer)>, line| match section {
            Some((path, _)) if known.contains_key(&path) => Err(DoctorError::TwiceInMachine { path, line }),
            Some((path, answer)) => {
                known.insert(path, answer);
                Ok(())
            }
            None => Ok(()),
        };
        for (i, line) in text.lines().enumerate() {
            if let Some((path, why)) = line.strip_prefix("== ").and_then(|rest| rest.rsplit_once(" ==")) {
                let answer = match why.trim() {
                    "" => Ok(String::new()),
                    "ENOENT" => Err(Missing::Absent),
                    "EACCES" | "EPERM" => Err(Missing::Denied),
                    other => Err(Missing::Failed(other.to_owned())),
                };
                put(current.replace((path.to_owned(), answer)), i)?;
            } else if let Some((_, Ok(content))) = &mut current {
                // A line of a file that looks like a section is indented by one backslash.
                content.push_str(line.strip_prefix('\\').unwrap_or(line));
                content.push('\n');
            }
        }
        put(current, text.lines().count())?;
        if known.is_empty() { Err(DoctorError::NotAMachine) } else { Ok(Root { known, ..Root::default() }) }
    }

    /// Answers so from now on, whatever the machine says.
    pub fn tell(&mut self, name: &str, answer: Answer) {
        self.known.insert(name.to_owned(), answer);
    }

    /// The text of a file, or the answer of a call.
    ///
    /// # Errors
    /// Why there is none.
    pub fn read(&self, path: &str) -> Answer {
        let answer = match (&self.folder, self.known.get(path)) {
            (_, Some(answer)) => answer.clone(),
            (_, None) if path.starts_with("call:") => match &self.calls {
                Some(calls) => calls.answer(&path["call:".len()..]),
                None => Err(Missing::Absent),
            },
            (Some(folder), None) if path.starts_with('/') => read_file(&folder.join(&path[1..])),
            _ if self.hidden_folder(path) => Err(Missing::Denied),
            _ => Err(Missing::Absent),
        };
        self.asked.borrow_mut().insert(path.to_owned(), answer.clone());
        answer
    }

    /// The names in a folder, sorted.
    ///
    /// # Errors
    /// Why it cannot be listed.
    pub fn list(&self, folder: &str) -> Result<Vec<String>, Missing> {
        let key = format!("{folder}/");
        let names = match (&self.folder, self.known.get(&key)) {
            (_, Some(answer)) => answer.clone(),
            (Some(root), None) => list_folder(&root.join(&folder[1..])),
            _ if self.hidden_folder(folder) => Err(Missing::Denied),
            _ => self.implied(&key),
        };
        self.asked.borrow_mut().insert(key, names.clone());
        names.map(|names| names.lines().map(str::to_owned).collect())
    }

    /// Everything asked so far, written down so that [`Root::recorded`] answers the same.
    pub fn written_down(&self) -> String {
        let mut text = String::new();
        for (path, answer) in self.asked.borrow().iter() {
            match answer {
                // Absent files need no line, except where the folder's other files would imply them.
                Err(Missing::Absent) => {}
                Err(Missing::Denied) => text += &format!("== {path} == EACCES\n"),
                Err(Missing::Failed(why)) => text += &format!("== {path} == {}\n", why.replace('\n', " ")),
                Ok(content) => {
                    text += &format!("== {path} ==\n");
                    for line in content.lines() {
                        let escape = if line.starts_with("== ") || line.starts_with('\\') { "\\" } else { "" };
                        text += &format!("{escape}{line}\n");
                    }
                }
            }
        }
        text
    }

    /// The paths and calls asked so far; a folder ends in a slash.
    pub fn asked(&self) -> Vec<String> {
        self.asked.borrow().keys().cloned().collect()
    }

    /// A written-down machine says of a folder that it may not be entered.
    fn hidden_folder(&self, path: &str) -> bool {
        Path::new(path)
            .ancestors()
            .any(|folder| self.known.get(&format!("{}/", folder.display())) == Some(&Err(Missing::Denied)))
    }

    fn implied(&self, key: &str) -> Answer {
        let mut names: Vec<&str> = self
            .known
            .range(key.to_owned()..)
            .map_while(|(path, _)| path.strip_prefix(key))
            .filter_map(|rest| rest.split('/').next())
            .filter(|name| !name.is_empty())
            .collect();
        names.dedup();
        if names.is_empty() { Err(Missing::Absent) } else { Ok(names.join("\n")) }
    }
}

fn read_file(path: &Path) -> Answer {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(missing)?;
    if path.extension().is_some_and(|e| e == "gz") {
        flate2::read::GzDecoder::new(file).take(LONGEST).read_to_end(&mut bytes).map_err(missing)?;
    } else {
        file.take(LONGEST).read_to_end(&mut bytes).map_err(missing)?;
    }
    // Device trees end their strings with NUL.
    Ok(shortened(path, String::from_utf8_lossy(&bytes).trim_end_matches('\0')))
}

/// The long files without the parts that no check reads, so that a machine written down stays readable.
fn shortened(path: &Path, text: &str) -> String {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    if name == "cpuinfo" {
        // Further processors repeat the first.
        return text.split("\n\n").next().unwrap_or_default().to_owned();
    }
    // /proc/config.gz and /boot/config-6.1.0.
    if name.starts_with("config") {
        return lines(text, &CONFIG);
    }
    match name {
        "meminfo" => lines(text, &["MemTotal", "MemFree", "MemAvailable"]),
        "status" => lines(text, &["Name:", "CapEff:", "Cpus_allowed_list:", "VmLck:", "VmRSS:", "VmSwap:"]),
        // Of /proc/stat the line of all CPUs; that of a thread is one line.
        "stat" => text.lines().next().unwrap_or_default().to_owned(),
        _ => text.to_owned(),
    }
}

fn lines(text: &str, wanted: &[&str]) -> String {
    let of_use = |line: &&str| wanted.iter().any(|word| line.contains(word));
    text.lines().filter(of_use).collect::<Vec<_>>().join("\n")
}

fn list_folder(path: &Path) -> Answer {
    let mut names: Vec<String> = std::fs::read_dir(path)
        .map_err(missing)?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names.join("\n"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_machine_or_an_error(text in any::<String>(), sections in "(== (/|call:)[a-c/]{0,4} == ?(E[A-Z]{0,6})?\n[=x\\\\ \n]{0,8}){0,6}") {
            for text in [&text, &sections] {
                let Ok(root) = Root::recorded(text) else { continue };
                for path in root.known.keys() {
                    let _ = (root.read(path), root.list(path));
                }
            }
        }

        #[test]
        fn any_content_is_written_down_and_read_back(content in "[^\r\0]{0,60}") {
            let mut root = Root::recorded("== /none ==\n").unwrap();
            root.tell("/file", Ok(content.clone()));
            let _ = root.read("/file");
            let again = Root::recorded(&root.written_down()).unwrap().read("/file").unwrap();
            prop_assert_eq!(again.lines().collect::<Vec<_>>(), content.lines().collect::<Vec<_>>());
        }
    }

    const TEXT: &str =
        "a remark\n== /proc/a ==\n1\n== /proc/b == EACCES\n== /sys/c/ == EACCES\n== /sys/d/e/f ==\nx\ny\n";

    #[test]
    fn a_recorded_machine_answers_as_written() {
        let root = Root::recorded(TEXT).unwrap();
        assert_eq!(root.read("/proc/a"), Ok("1\n".into()));
        assert_eq!(root.read("/proc/b"), Err(Missing::Denied));
        assert_eq!(root.read("/proc/z"), Err(Missing::Absent));
        assert_eq!(root.read("/sys/c/under"), Err(Missing::Denied), "a closed folder hides its files");
        assert_eq!(root.list("/sys/d"), Ok(vec!["e".into()]));
        assert_eq!(root.list("/sys/none"), Err(Missing::Absent));
    }

    #[test]
    fn what_was_asked_can_be_written_down_and_read_again() {
        let folder = std::env::temp_dir().join(format!("taut-doctor-root-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("proc/irq")).unwrap();
        std::fs::write(folder.join("proc/text"), "== not a section ==\n\\n\nlast").unwrap();
        let live = Root::at(&folder);
        let (text, names) = (live.read("/proc/text").unwrap(), live.list("/proc").unwrap());
        let again = Root::recorded(&live.written_down()).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(again.read("/proc/text").unwrap().trim_end(), text.trim_end());
        assert_eq!(again.list("/proc").unwrap(), names);
        assert_eq!(names, ["irq", "text"]);
    }

    #[test]
    fn a_text_without_sections_is_no_machine() {
        assert!(Root::recorded("nothing here").is_err());
        assert!(Root::recorded("== /a ==\n== /a ==\n").is_err());
    }
}
