//! A host by ssh: lines run there, files go there and come back by sftp. A folder made there goes with the connection.

use std::{
    ffi::OsString,
    fs::File,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::AtomicBool,
};

use super::run_command::{Ended, run};
use crate::Error;

/// A connection to a host, by the commands ssh and sftp.
#[derive(Debug)]
pub struct Remote {
    /// For messages.
    pub name: String,
    /// As for the command ssh: "robot@10.0.0.5", "ssh://robot@10.0.0.5:2222", or a name of ~/.ssh/config.
    destination: String,
    options: Vec<String>,
    folder: Option<String>,
}

impl Remote {
    /// Nothing is connected yet.
    pub fn new(name: &str, destination: &str, options: &[String]) -> Remote {
        let (name, destination) = (name.to_owned(), destination.to_owned());
        Remote { name, destination, options: options.to_vec(), folder: None }
    }

    /// Makes a folder whose name begins with this path, and returns the text `more` as the host's shell has it; or what the host says
    /// went wrong.
    ///
    /// # Errors
    /// ssh does not start; somebody wants it to end.
    pub fn make_folder(&mut self, path: &str, more: &str, stop: &AtomicBool) -> Result<Result<String, String>, Error> {
        let line = format!("folder=$(mktemp -d {}-XXXXXX) && echo \"$folder {more}\"", quoted(path));
        let made = self.ssh(&[], &line, stop)?;
        if made.code != Some(0) {
            return Ok(Err(made.said));
        }
        let (folder, said) = made.said.split_once(' ').unwrap_or((&made.said, ""));
        self.folder = Some(folder.to_owned());
        Ok(Ok(said.trim().to_owned()))
    }

    /// The folder there, once it is made.
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// Leaves the folder where it is.
    pub fn keep(&mut self) {
        self.folder = None;
    }

    /// Removes the folder there. Where that fails, it stays, and what is said names it.
    ///
    /// # Errors
    /// What the host says, in words.
    pub fn remove_folder(&mut self) -> Result<(), String> {
        let Some(folder) = self.folder.take() else {
            return Ok(());
        };
        let removed = self.ssh(&[], &format!("rm -rf {}", quoted(&folder)), &AtomicBool::new(false));
        match removed {
            Ok(ended) if ended.code == Some(0) => Ok(()),
            Ok(ended) => Err(format!("{folder} could not be removed: {}", ended.said)),
            Err(error) => Err(format!("{folder} could not be removed: {error}")),
        }
    }

    /// Runs a line of the host's shell to its end.
    ///
    /// # Errors
    /// ssh does not start; somebody wants it to end.
    pub fn ssh(&self, more: &[&str], line: &str, stop: &AtomicBool) -> Result<Ended, Error> {
        let mut arguments: Vec<OsString> = self.options();
        arguments.extend(more.iter().map(OsString::from));
        arguments.extend([OsString::from(&self.destination), line.into()]);
        self.run("ssh", &arguments, "", stop)
    }

    /// Runs a line and returns at once. What the line starts goes on if the connection ends.
    ///
    /// # Errors
    /// ssh does not start.
    pub fn start(&self, line: &str) -> Result<Child, Error> {
        let mut command = Command::new("ssh");
        command.args(self.options()).arg(&self.destination).arg(line);
        // A terminal's Ctrl-C is not for it.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().map_err(Error::system("ssh"))
    }

    /// Runs a line whose output goes to a file. Its input ends with the connection, or when the child is dropped.
    ///
    /// # Errors
    /// ssh does not start.
    pub fn stream(&self, line: &str, to: File) -> Result<Child, Error> {
        let mut command = Command::new("ssh");
        command.args(self.options()).arg(&self.destination).arg(line);
        command.stdin(Stdio::piped()).stdout(to).stderr(Stdio::null()).process_group(0);
        command.spawn().map_err(Error::system("ssh"))
    }

    /// Runs these commands of sftp.
    ///
    /// # Errors
    /// sftp does not start; somebody wants it to end.
    pub fn sftp(&self, batch: &str, stop: &AtomicBool) -> Result<Ended, Error> {
        let mut arguments: Vec<OsString> = self.options();
        arguments.extend(["-q", "-b", "-"].map(OsString::from));
        let of_url = self.destination.strip_prefix("ssh://").map(|rest| format!("sftp://{rest}"));
        arguments.push(of_url.unwrap_or_else(|| self.destination.clone()).into());
        self.run("sftp", &arguments, batch, stop)
    }

    fn options(&self) -> Vec<OsString> {
        let quick = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5"];
        quick.into_iter().chain(self.options.iter().map(String::as_str)).map(OsString::from).collect()
    }

    fn run(&self, program: &str, arguments: &[OsString], input: &str, stop: &AtomicBool) -> Result<Ended, Error> {
        let place = format!("host {:?}", self.name);
        run(Path::new(program), arguments, input, stop, (&place, "openssh-client"))
    }
}

impl Drop for Remote {
    /// After a failure, when the folder was not removed before.
    fn drop(&mut self) {
        let _ = self.remove_folder();
    }
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
