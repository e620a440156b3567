//! Where results go: stdout, or a file that is either whole or not there.

use std::{
    fs::File,
    io::{BufWriter, ErrorKind, IsTerminal, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use anyhow::{Context, Result};
use taut_document::{Document, Style};
use taut_recording::{Output, Shown, is_harmful};
use tempfile::NamedTempFile;

use crate::{format::Format, scratch::Scratch};

/// Writes the result to stdout, which "-" is, too, or to `path` by way of a temporary neighbour.
pub fn write(text: &str, path: Option<&Path>) -> Result<()> {
    match path.filter(|path| *path != Path::new("-")) {
        None => {
            let mut stdout = std::io::stdout().lock();
            // In a pipe, too: `less -R` and a CI's log obey as a terminal does. No form has such a character of its own.
            let written = stdout.write_all(harmless(text).as_bytes()).and_then(|()| stdout.flush());
            as_far_as_it_is_read(written.map_err(Into::into))?;
        }
        Some(path) => file(path, |out| Ok(out.write_all(text.as_bytes())?))?,
    }
    Ok(())
}

/// What a terminal may be given: text, ends of lines, and our own colours, in the direction in which they are written. Names from
/// foreign files may hold anything else; those of recordings were made harmless where they were read, and this is for all the others.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| is_harmful(c) && !matches!(c, '\n' | '\t')) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let kept = colour(rest);
        out.push_str(&rest[..kept]);
        if kept == 0
            && let Some(c) = rest.chars().next()
        {
            // An escape of JSON, too, which leaves these characters in its strings as they are, but for the lowest.
            match c {
                '\r' => out.push_str("\\r"),
                c => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            }
            rest = &rest[c.len_utf8()..];
        } else {
            rest = &rest[kept..];
        }
    }
    out + rest
}

/// Length of the sequence that sets a colour, if the text begins with one.
fn colour(text: &str) -> usize {
    let digits = text.strip_prefix("\x1b[").unwrap_or("");
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != ';');
    end.filter(|end| digits[*end..].starts_with('m')).map_or(0, |end| "\x1b[".len() + end + 1)
}

/// Has a result written to a temporary neighbour of `path`, which takes its place when all of it is there; "-" is stdout.
pub fn file(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    if path == Path::new("-") {
        let mut stdout = BufWriter::new(std::io::stdout().lock());
        return as_far_as_it_is_read(write(&mut stdout).and_then(|()| Ok(stdout.flush()?)));
    }
    let cannot = || format!("{}: cannot write", path.shown());
    if is_device(path) {
        let mut out = BufWriter::new(device(path).with_context(cannot)?);
        let written = write(&mut out).and_then(|()| Ok(out.flush()?));
        return as_far_as_it_is_read(written).with_context(cannot);
    }
    let path = &Output::place_of(path);
    let mut file = neighbour(path).with_context(cannot)?;
    let mut out = BufWriter::new(&mut file);
    write(&mut out).with_context(cannot)?;
    out.flush().with_context(cannot)?;
    drop(out);
    keep(file, path).with_context(cannot)
}

/// Fails where [`file`] would. For long work to call before it begins.
pub fn is_possible(path: &Path) -> Result<()> {
    if path == Path::new("-") || is_device(path) {
        return Ok(());
    }
    neighbour(&Output::place_of(path)).map(drop).with_context(|| format!("{}: cannot write", path.shown()))
}

/// What is no file (a pipe, a device) is written to and never replaced.
pub fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

fn device(path: &Path) -> std::io::Result<File> {
    File::options().write(true).open(path)
}

fn neighbour(path: &Path) -> std::io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new().prefix(".taut-").tempfile_in(folder)
}

/// Has a recording written to `path`, which a writer of recordings opens itself; to stdout ("-"), a pipe or a device it goes when it is whole.
pub fn recording<T>(path: &Path, write: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let is_stdout = path == Path::new("-");
    if !is_stdout && !is_device(path) {
        return write(path);
    }
    let folder = Scratch::in_memory("taut-out-")?;
    let whole = folder.path().join("recording.mcap");
    let written = write(&whole)?;
    let mut whole = File::open(&whole)?;
    if is_stdout {
        let mut stdout = std::io::stdout().lock();
        let copied = std::io::copy(&mut whole, &mut stdout).and_then(|_| stdout.flush());
        as_far_as_it_is_read(copied.map_err(Into::into))?;
    } else {
        let copied = device(path).and_then(|mut device| std::io::copy(&mut whole, &mut device));
        let copied = as_far_as_it_is_read(copied.map(drop).map_err(Into::into));
        copied.with_context(|| format!("{}: cannot write", path.shown()))?;
    }
    Ok(written)
}

/// Has files of these names written in `folder`, which is made if need be. They take their places when all are whole.
pub fn files(folder: &Path, names: &[String], write: impl FnOnce(Vec<&mut File>) -> Result<()>) -> Result<()> {
    let cannot = || format!("{}: cannot write", folder.shown());
    let is_new = !folder.exists();
    let all = || -> Result<()> {
        std::fs::create_dir_all(folder).with_context(cannot)?;
        let temporary = |_| tempfile::Builder::new().prefix(".taut-").tempfile_in(folder);
        let mut made = names.iter().map(temporary).collect::<std::io::Result<Vec<_>>>().with_context(cannot)?;
        write(made.iter_mut().map(NamedTempFile::as_file_mut).collect())?;
        for (file, name) in made.into_iter().zip(names) {
            keep(file, &folder.join(name)).with_context(cannot)?;
        }
        Ok(())
    };
    let written = all();
    if written.is_err() && is_new {
        // What was made for nothing goes; it is the other error that counts.
        let _ = std::fs::remove_dir(folder);
    }
    written
}

/// A result is for everybody to read, which a temporary file is not.
fn keep(file: NamedTempFile, path: &Path) -> std::io::Result<()> {
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}

/// A document in one of its forms.
pub fn rendered(document: &Document, form: Format, path: Option<&Path>) -> String {
    match form {
        Format::Html => taut_document::html(document, None),
        Format::Markdown => taut_document::markdown(document),
        _ => taut_document::terminal(document, style(path)),
    }
}

/// The same; the charts of its page can be pointed at.
pub fn interactive(document: &Document, form: Format, path: Option<&Path>) -> String {
    match form {
        Format::Html => taut_report::interactive(document),
        form => rendered(document, form, path),
    }
}

/// Width of tables on a terminal: a narrower terminal breaks their lines, and in wider rows the eye loses its line.
const COLUMNS: std::ops::RangeInclusive<u16> = 60..=160;

/// Colour only on a terminal, and not where NO_COLOR (no-color.org) forbids it; lines as wide as the terminal, elsewhere 100 columns.
pub fn style(path: Option<&Path>) -> Style {
    let stdout = std::io::stdout();
    if path.is_some() || !stdout.is_terminal() {
        return Style::default();
    }
    let color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // A terminal that does not know its size says 0.
    let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| size.ws_col);
    let width = match columns {
        0 => Style::default().width,
        columns => usize::from(columns.clamp(*COLUMNS.start(), *COLUMNS.end())),
    };
    Style { color, width }
}

/// A reader that closed its end has read enough. The command goes on: its exit code is its verdict, and further files are to be written.
pub fn as_far_as_it_is_read(written: Result<()>) -> Result<()> {
    let is_read = |error: &anyhow::Error| {
        let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
        io.is_some_and(|io| io.kind() == ErrorKind::BrokenPipe)
    };
    written.or_else(|error| if is_read(&error) { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_written_to_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link, behind) =
            (folder.path().join("pipe"), folder.path().join("link"), folder.path().join("behind"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read_to_string(pipe).unwrap()
        });
        write("result", Some(&pipe)).unwrap();
        assert_eq!(reader.join().unwrap(), "result");
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
        std::fs::write(&behind, "old").unwrap();
        std::os::unix::fs::symlink(&behind, &link).unwrap();
        write("new", Some(&link)).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&behind).unwrap(), "new");
    }

    #[test]
    fn a_reader_that_has_read_enough_is_no_failure_and_other_failures_are() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let path = std::path::PathBuf::from(format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer)));
        write("more than nothing", Some(&path)).unwrap();
        file(&path, |out| out.write_all(&[0; 1 << 20]).context("a table")).unwrap();
        recording(&path, |to| Ok(std::fs::write(to, "whole")?)).unwrap();
        let full = recording(Path::new("/dev/full"), |to| Ok(std::fs::write(to, "whole")?)).unwrap_err();
        assert_eq!(crate::exit::code_of(&full, crate::exit::Codes::Own), crate::exit::IO_FAILED, "{full:#}");
    }

    #[test]
    fn a_link_to_nothing_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        std::os::unix::fs::symlink("target", &link).unwrap();
        write("result", Some(&link)).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(target).unwrap(), "result");
    }

    #[test]
    fn a_terminal_gets_text_and_colours_and_nothing_else() {
        assert_eq!(harmless("\x1b[1;31mred\x1b[0m\tgrün\n"), "\x1b[1;31mred\x1b[0m\tgrün\n");
        let said = harmless("a\x1b[2Jb\x1b]0;title\x07\r\u{9b}2J\x1b");
        assert_eq!(said, r"a\u001b[2Jb\u001b]0;title\u0007\r\u009b2J\u001b");
        assert_eq!(harmless("run\u{202e}gpj.exe\u{2028}x"), r"run\u202egpj.exe\u2028x");
    }
}
