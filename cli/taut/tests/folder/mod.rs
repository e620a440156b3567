//! A folder of its own for a test that runs `taut` as a process; what the tests of a command do in it they add themselves.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

/// No wait is longer than this, and none is that long: it ends a test whose event will not come, on however busy a machine.
pub const AT_MOST: Duration = Duration::from_secs(600);

pub struct Folder(pub tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Nothing while there is no such file.
    #[allow(dead_code, reason = "some tests read no file")]
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < AT_MOST, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}
