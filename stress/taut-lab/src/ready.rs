//! Whether a process of the system is ready.

use std::{
    net::{TcpStream, ToSocketAddrs},
    path::Path,
    process::Stdio,
    time::{Duration, SystemTime},
};

use crate::{Ready, ros2::Discovery};

/// How long an address may take to answer one question.
const ANSWER: Duration = Duration::from_millis(200);

/// File systems note times by a clock of this grain.
const GRAIN: Duration = Duration::from_millis(20);

/// `started`: when the process was.
pub(crate) fn is_ready(ready: &Ready, stdout: &Path, started: SystemTime, discovery: &Discovery<'_>) -> bool {
    match ready {
        Ready::Stdout(text) => {
            let said = std::fs::read(stdout).unwrap_or_default();
            // Only whole lines: half of one may still become another.
            let whole = said.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &said[..end]);
            String::from_utf8_lossy(whole).lines().any(|line| line.contains(text))
        }
        // That of an earlier start says nothing of this one.
        Ready::File(path) => path.metadata().and_then(|meta| meta.modified()).is_ok_and(|at| at + GRAIN >= started),
        Ready::Tcp(address) => answers(address),
        Ready::Command(line) => {
            let mut command = std::process::Command::new("timeout");
            command.args(["10", "sh", "-c", line]);
            let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            quiet.status().is_ok_and(|status| status.success())
        }
        Ready::Ros2(name) => discovery.finds(name),
    }
}

/// Whether a process accepts connections there.
pub(crate) fn answers(address: &str) -> bool {
    let all = address.to_socket_addrs();
    all.is_ok_and(|mut all| all.any(|address| TcpStream::connect_timeout(&address, ANSWER).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn is_ready(ready: &Ready, stdout: &Path, started: SystemTime) -> bool {
        let discovery = Discovery { python: "python3".into(), environment: &BTreeMap::new() };
        super::is_ready(ready, stdout, started, &discovery)
    }

    #[test]
    fn only_a_whole_line_counts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let ready = Ready::Stdout("ready".into());
        for (said, is) in [("", false), ("getting ready", false), ("getting ready\n", true), ("ready\nmore", true)] {
            std::fs::write(file.path(), said).unwrap();
            assert_eq!(is_ready(&ready, file.path(), SystemTime::now()), is, "{said:?}");
        }
    }

    #[test]
    fn an_address_is_ready_once_somebody_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert!(answers(&address));
        drop(listener);
        assert!(!answers(&address));
    }

    #[test]
    fn a_file_of_an_earlier_start_is_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let ready = Ready::File(file.path().to_owned());
        let written = file.path().metadata().unwrap().modified().unwrap();
        assert!(is_ready(&ready, Path::new(""), written));
        assert!(!is_ready(&ready, Path::new(""), written + Duration::from_secs(1)));
        assert!(!is_ready(&Ready::File("/no/such/file".into()), Path::new(""), written));
    }
}
