//! An sshd of a test's own on loopback, with a key and a port of its own.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::folder::{AT_MOST, Folder};

/// With its port.
pub struct Sshd(Child, pub u16);

impl Sshd {
    /// `None` where there is no sshd.
    pub fn start(folder: &Folder) -> Option<Sshd> {
        let sshd = Path::new("/usr/sbin/sshd");
        if !sshd.exists() || Command::new("ssh").arg("-V").output().is_err() {
            return None;
        }
        for name in ["host_key", "key"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", name]).current_dir(folder.0.path());
            assert!(keygen.status().unwrap().success());
        }
        std::fs::copy(folder.path("key.pub"), folder.path("authorized")).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = |name: &str| folder.path(name).display().to_string();
        folder.write(
            "sshd_config",
            &format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
                 StrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n",
                path("host_key"),
                path("authorized")
            ),
        );
        // Where the daemon insists on its empty folder.
        let _ = std::fs::create_dir_all("/run/sshd");
        let mut command = Command::new(sshd);
        command.args(["-D", "-e", "-f", &path("sshd_config")]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if child.try_wait().unwrap().is_some() || began.elapsed() > AT_MOST {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Sshd(child, port))
    }

    /// Nobody gets in any more.
    pub fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.end();
    }
}
