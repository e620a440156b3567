//! Whether a process of the system is ready.

use std::{
    net::{TcpStream, ToSocketAddrs},
    path::Path,
    process::Stdio,
    time::Duration,
};

use crate::Ready;

/// How long an address may take to answer one question.
const ANSWER: Duration = Duration::from_millis(200);

pub(crate) fn is_ready(ready: &Ready, stdout: &Path) -> bool {
    match ready {
        Ready::Stdout(text) => {
            let said = std::fs::read(stdout).unwrap_or_default();
            // Only whole lines: half of one may still become another.
            let whole = said.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &said[..end]);
            String::from_utf8_lossy(whole).lines().any(|line| line.contains(text))
        }
        Ready::File(path) => path.exists(),
        Ready::Tcp(address) => address
            .to_socket_addrs()
            .is_ok_and(|mut all| all.any(|address| TcpStream::connect_timeout(&address, ANSWER).is_ok())),
        Ready::Command(line) => {
            let mut command = std::process::Command::new("timeout");
            command.args(["10", "sh", "-c", line]);
            let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            quiet.status().is_ok_and(|status| status.success())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_line_counts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let ready = Ready::Stdout("ready".into());
        for (said, is) in [("", false), ("getting ready", false), ("getting ready\n", true), ("ready\nmore", true)] {
            std::fs::write(file.path(), said).unwrap();
            assert_eq!(is_ready(&ready, file.path()), is, "{said:?}");
        }
    }

    #[test]
    fn an_address_is_ready_once_somebody_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert!(is_ready(&Ready::Tcp(address.clone()), Path::new("")));
        drop(listener);
        assert!(!is_ready(&Ready::Tcp(address), Path::new("")));
    }
}
