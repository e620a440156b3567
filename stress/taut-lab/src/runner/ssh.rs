//! A host by ssh: this very program, the lab and the files that it names are put there by sftp, into a folder of the
//! lab's own that goes with it; nothing else is needed there.

use std::path::Path;

use super::{
    Host, Outcome, Runner, UNREACHABLE, command,
    remote::{Remote, quoted},
};
use crate::{Error, Order, inputs, manifest::Kind};

/// A connection to a host.
pub(super) struct Ssh<'a> {
    host: &'a Host,
    order: &'a Order<'a>,
    program: &'a Path,
    kind: Kind,
    remote: Remote,
}

impl<'a> Ssh<'a> {
    pub fn new(host: &'a Host, order: &'a Order<'a>, program: &'a Path, kind: Kind) -> Ssh<'a> {
        Ssh { host, order, program, kind, remote: Remote::new(&host.name, &host.ssh, &host.options) }
    }

    /// The folder there, with everything in it; or why there is none.
    fn prepared(&mut self) -> Result<Result<String, String>, Error> {
        if let Some(folder) = self.remote.folder() {
            return Ok(Ok(folder.to_owned()));
        }
        if let Err(why) = self.remote.make_folder(&format!("{}/taut-lab", self.host.folder), "", self.order.stop)? {
            return Ok(Err(why));
        }
        let folder = self.remote.folder().unwrap_or_default().to_owned();
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
        let sent = self.remote.sftp(&batch, self.order.stop)?;
        Ok(if sent.code == Some(0) { Ok(folder) } else { Err(sent.said) })
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
        let ran = self.remote.ssh(&["-tt"], &line, self.order.stop)?;
        if ran.code != Some(0) {
            if ran.code == Some(UNREACHABLE) || ran.code.is_none() {
                return Ok(Outcome::Lost(ran.said));
            }
            let place = format!("host {:?}", self.host.name);
            return Err(Error::Start { place, problem: format!("the lab there ended: {}", ran.said) });
        }
        let _ = std::fs::remove_dir_all(into);
        std::fs::create_dir_all(into).map_err(Error::file(into))?;
        let got = self.remote.sftp(&format!("get -r {folder}/{output}/* {}\n", into.display()), self.order.stop)?;
        if got.code != Some(0) {
            return Ok(Outcome::Lost(got.said));
        }
        Ok(Outcome::Ran(into.to_owned()))
    }

    fn leave(&mut self) -> Result<(), String> {
        self.remote.remove_folder()
    }
}
