//! A host by ssh: this very program, the lab and the files that it names are put there by sftp, into a folder of the
//! lab's own that goes with it; nothing else is needed there.

use std::{
    ffi::OsString,
    path::Path,
    process::{Command, Stdio},
};

use super::{
    Host, Outcome, Runner, UNREACHABLE, command,
    run_command::{Ended, run},
};
use crate::{Error, Order, inputs, manifest::Kind};

/// A connection to a host.
pub(super) struct Ssh<'a> {
    host: &'a Host,
    order: &'a Order<'a>,
    program: &'a Path,
    kind: Kind,
    /// On the host, once it is there.
    folder: Option<String>,
}

impl<'a> Ssh<'a> {
    pub fn new(host: &'a Host, order: &'a Order<'a>, program: &'a Path, kind: Kind) -> Ssh<'a> {
        Ssh { host, order, program, kind, folder: None }
    }

    /// The folder there, with everything in it; or why there is none.
    fn prepared(&mut self) -> Result<Result<String, String>, Error> {
        if let Some(folder) = &self.folder {
            return Ok(Ok(folder.clone()));
        }
        let made = self.ssh(&[], &format!("mktemp -d {}/taut-lab-XXXXXX", quoted(&self.host.folder)))?;
        if made.code != Some(0) {
            return Ok(Err(made.said));
        }
        let folder = made.said.lines().last().unwrap_or_default().trim().to_owned();
        self.folder = Some(folder.clone());
        let (file, text) = self.order.file;
        let lab = self.order.folder.join(file.file_name().unwrap_or("lab.toml".as_ref()));
        std::fs::write(&lab, text).map_err(Error::file(&lab))?;
        let mut batch = format!("put {} {folder}/taut\nchmod 755 {folder}/taut\n", self.program.display());
        batch += &format!("put {} {folder}/lab.toml\n", lab.display());
        for sent in inputs::to_send(self.order.lab, self.order.folder)? {
            let mut folders: Vec<&Path> = sent.ancestors().skip(1).filter(|one| !one.as_os_str().is_empty()).collect();
            folders.reverse();
            for above in folders {
                batch += &format!("-mkdir {folder}/{}\n", above.display());
            }
            let recursive = if sent.is_dir() { "-r " } else { "" };
            batch += &format!("put -p {recursive}{} {folder}/{}\n", sent.display(), sent.display());
        }
        let sent = self.sftp(&batch)?;
        Ok(if sent.code == Some(0) { Ok(folder) } else { Err(sent.said) })
    }

    fn ssh(&self, more: &[&str], line: &str) -> Result<Ended, Error> {
        let mut arguments: Vec<OsString> = self.options();
        arguments.extend(more.iter().map(OsString::from));
        arguments.extend([OsString::from(&self.host.ssh), line.into()]);
        self.run("ssh", &arguments, "")
    }

    fn sftp(&self, batch: &str) -> Result<Ended, Error> {
        let mut arguments: Vec<OsString> = self.options();
        arguments.extend(["-q", "-b", "-"].map(OsString::from));
        arguments.push(OsString::from(&self.host.ssh));
        self.run("sftp", &arguments, batch)
    }

    fn options(&self) -> Vec<OsString> {
        let quick = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5"];
        quick.into_iter().chain(self.host.options.iter().map(String::as_str)).map(OsString::from).collect()
    }

    fn run(&self, program: &str, arguments: &[OsString], input: &str) -> Result<Ended, Error> {
        let place = format!("host {:?}", self.host.name);
        run(Path::new(program), arguments, input, self.order.stop, (&place, "openssh-client"))
    }
}

impl Runner for Ssh<'_> {
    fn name(&self) -> &str {
        &self.host.name
    }

    fn round(&mut self, round: u32, into: &Path) -> Result<Outcome, Error> {
        let folder = match self.prepared()? {
            Ok(folder) => folder,
            Err(why) => return Ok(Outcome::Lost(why)),
        };
        let output = format!("out-r{round}");
        let words: Vec<String> =
            command(self.kind, round, &output).iter().map(|word| quoted(&word.to_string_lossy())).collect();
        let line = format!("cd {} && rm -rf {output} && exec {}", quoted(&folder), words.join(" "));
        // With a terminal, so that the lab there ends when the connection does.
        let ran = self.ssh(&["-tt"], &line)?;
        if ran.code != Some(0) {
            if ran.code == Some(UNREACHABLE) || ran.code.is_none() {
                return Ok(Outcome::Lost(ran.said));
            }
            let place = format!("host {:?}", self.host.name);
            return Err(Error::Start { place, problem: format!("the lab there ended: {}", ran.said) });
        }
        let _ = std::fs::remove_dir_all(into);
        std::fs::create_dir_all(into).map_err(Error::file(into))?;
        let got = self.sftp(&format!("get -r {folder}/{output}/* {}\n", into.display()))?;
        if got.code != Some(0) {
            return Ok(Outcome::Lost(got.said));
        }
        Ok(Outcome::Ran(into.to_owned()))
    }
}

impl Drop for Ssh<'_> {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let mut arguments = self.options();
            arguments.extend([OsString::from(&self.host.ssh), format!("rm -rf {}", quoted(folder)).into()]);
            let _ = Command::new("ssh").args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
