//! What to do about a finding. Values for files and held devices are apart from command lines, since only they can be
//! tried and taken back with certainty.

/// How a remedy is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Values for files; they last until the next boot.
    Write(Vec<Setting>),
    /// /dev/cpu_dma_latency held open with 0 for as long as the loop runs.
    HoldAwake,
    /// A command line for a shell.
    Run {
        /// Applies it.
        command: String,
        /// Takes it back.
        undo: String,
    },
    /// Words for the kernel's command line.
    Boot(String),
    /// Something a person has to do.
    Advise(String),
}

/// A file's value before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The file.
    pub path: String,
    /// What to write.
    pub new: String,
    /// What was there, as it has to be written to have it back.
    pub old: String,
}

impl Remedy {
    /// One word for scripts.
    pub fn how(&self) -> &'static str {
        match self {
            Remedy::Write(_) => "write",
            Remedy::HoldAwake => "hold",
            Remedy::Run { .. } => "run",
            Remedy::Boot(_) => "boot",
            Remedy::Advise(_) => "advise",
        }
    }

    /// One line for a person.
    pub fn text(&self) -> String {
        match self {
            Remedy::Write(settings) => few(settings, Setting::command),
            Remedy::HoldAwake => "hold /dev/cpu_dma_latency open with 0 while the loop runs".into(),
            Remedy::Run { command, .. } => command.clone(),
            Remedy::Boot(words) => format!("kernel command line: {words}"),
            Remedy::Advise(text) => text.clone(),
        }
    }

    /// Takes it back, in one line; `None` where that is nothing one can write down.
    pub fn undo(&self) -> Option<String> {
        match self {
            Remedy::Write(settings) => Some(few(settings, Setting::undo_command)),
            Remedy::HoldAwake => Some("close the file".into()),
            Remedy::Run { undo, .. } if undo.is_empty() => None,
            Remedy::Run { undo, .. } => Some(undo.clone()),
            Remedy::Boot(words) => Some(format!("take {words} off the kernel's command line again")),
            Remedy::Advise(_) => None,
        }
    }

    /// Every text in it that came from a machine or goes into a script.
    pub(crate) fn texts(&self) -> Vec<&str> {
        match self {
            Remedy::Write(settings) => {
                settings.iter().flat_map(|s| [s.path.as_str(), s.new.as_str(), s.old.as_str()]).collect()
            }
            Remedy::HoldAwake => Vec::new(),
            Remedy::Run { command, undo } => vec![command, undo],
            Remedy::Boot(text) | Remedy::Advise(text) => vec![text],
        }
    }

    /// Shell commands that apply it; none where a shell cannot.
    pub fn commands(&self) -> Vec<String> {
        match self {
            Remedy::Write(settings) => settings.iter().map(Setting::command).collect(),
            Remedy::Run { command, .. } => vec![command.clone()],
            _ => Vec::new(),
        }
    }

    /// Shell commands that take it back.
    pub fn undo_commands(&self) -> Vec<String> {
        match self {
            Remedy::Write(settings) => settings.iter().map(Setting::undo_command).collect(),
            Remedy::Run { undo, .. } if !undo.is_empty() => vec![undo.clone()],
            _ => Vec::new(),
        }
    }
}

impl Setting {
    /// Writes the new value.
    pub fn command(&self) -> String {
        echo(&self.new, &self.path)
    }

    /// Writes the old value.
    pub fn undo_command(&self) -> String {
        echo(&self.old, &self.path)
    }
}

/// A word as a POSIX shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// `echo` takes -n for an option, and alters a backslash; `printf %s` does not.
fn echo(value: &str, path: &str) -> String {
    let option = value.strip_prefix('-').is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    let plain = !option && !value.contains('\\');
    let echo = if plain { "echo" } else { "printf '%s\\n'" };
    format!("{echo} {} > {}", quoted(value), quoted(path))
}

fn few(settings: &[Setting], command: impl Fn(&Setting) -> String) -> String {
    match settings {
        [] => String::new(),
        [one] => command(one),
        [one, rest @ ..] => format!("{} (and {} more: --fix has all)", command(one), rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        for word in ["0", "a b", "it's", "$(reboot)", "-n", "", "a\\b", "`x`;\"y\""] {
            let setting = Setting { path: "/dev/stdout".into(), new: word.into(), old: String::new() };
            let shell = std::process::Command::new("sh").args(["-c", &setting.command()]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&shell.stdout), format!("{word}\n"));
        }
    }

    #[test]
    fn many_files_are_one_line() {
        let setting = |n: u32| Setting { path: format!("/sys/{n}"), new: "1".into(), old: "0".into() };
        let remedy = Remedy::Write((0..64).map(setting).collect());
        assert_eq!(remedy.text(), "echo 1 > /sys/0 (and 63 more: --fix has all)");
        assert_eq!(remedy.undo().unwrap(), "echo 0 > /sys/0 (and 63 more: --fix has all)");
        assert_eq!(remedy.undo_commands().len(), 64);
    }
}
