//! Folders on the command line, for every option that names one. Where a file is meant, - is stdout; a folder of that name is a slip, and
//! so is a recording that is being made.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};

/// A folder.
pub fn named() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| checked(&path).map(|()| path))
}

/// A folder, or a URL.
pub fn or_url(text: &str) -> Result<String, String> {
    checked(Path::new(text)).map(|()| text.to_owned())
}

/// A recording that is being made: meanwhile stdout is its command's.
pub fn recording() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path == Path::new("-") {
        true => Err("no recording is made on stdout; name a file, or ./- if it is called so".to_owned()),
        false => Ok(path),
    })
}

fn checked(path: &Path) -> Result<(), String> {
    match path == Path::new("-") {
        true => Err("stdin and stdout are no folders; name a folder, or ./- if it is called so".to_owned()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, builder::ValueParser};

    use super::*;
    use crate::arguments;

    /// Paths that are no folders, or not always, although their words have folders in them.
    const NO_FOLDERS: &[&str] = &["A", "B", "FILE", "PATH", "RUN", "RUN|SET"];

    #[test]
    fn every_option_that_names_a_folder_refuses_a_dash() {
        let (mut folders, mut others) = (0, Vec::new());
        for (path, arg) in arguments::all() {
            let shown = format!("{} {}", path.join(" "), arg.get_id());
            let name = arguments::value_name(&arg);
            if ["FOLDER", "DIR", "DIR2"].contains(&name.as_str()) {
                folders += 1;
                let error = arguments::refused(&path, &arg, "-").unwrap_or_else(|| panic!("{shown} takes -"));
                assert!(error.contains("name a folder, or ./-"), "{shown}: {error}");
                assert_eq!(arguments::refused(&path, &arg, "./-"), None, "{shown}");
                continue;
            }
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default().to_lowercase();
            let is_path = |arg: &Arg| arg.get_value_parser().type_id() == ValueParser::path_buf().type_id();
            if is_path(&arg)
                && (help.contains("folder") || help.contains("directory"))
                && !NO_FOLDERS.contains(&name.as_str())
            {
                others.push(format!("{shown} <{name}>: {help}"));
            }
        }
        assert!(others.is_empty(), "name a folder, and not by folder::named:\n{}", others.join("\n"));
        assert!(folders >= 15, "{folders}");
    }

    #[test]
    fn every_recording_that_is_being_made_refuses_a_dash() {
        let mut recordings = 0;
        for (path, arg) in arguments::all() {
            let shown = format!("{} {}", path.join(" "), arg.get_id());
            if ["taut record output", "taut wakeup record"].contains(&shown.as_str()) {
                recordings += 1;
                let error = arguments::refused(&path, &arg, "-").unwrap_or_else(|| panic!("{shown} takes -"));
                assert!(error.contains("name a file, or ./-"), "{shown}: {error}");
                assert_eq!(arguments::refused(&path, &arg, "./-"), None, "{shown}");
            }
        }
        assert_eq!(recordings, 2);
    }

    /// A name of a folder need not be text.
    #[test]
    fn a_name_that_is_no_utf_8_is_a_folder() {
        use std::os::unix::ffi::OsStringExt;
        let name = std::ffi::OsString::from_vec(b"runs-\xff".to_vec());
        let words = ["taut".into(), "man".into(), name.clone()];
        let matches = <crate::Cli as clap::CommandFactory>::command().try_get_matches_from(words).unwrap();
        let (_, man) = matches.subcommand().unwrap();
        assert_eq!(man.get_one::<PathBuf>("folder"), Some(&PathBuf::from(name)));
    }
}
