//! A program to tune, and `taut tune` as a process with a place of its own for journals.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use assert_cmd::cargo::cargo_bin;

use crate::folder::Folder;

/// A loop of 500 Hz that sleeps relative to its due time. With "brittle" it fails where its timer slack is 1 ns, with "rude" when it is stopped.
const LOOP: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include "taut.h"
static void fail(int signal) { _exit(signal); }
int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "rude") == 0) signal(SIGTERM, fail), signal(SIGINT, fail);
  if (argc > 1 && strcmp(argv[1], "brittle") == 0 && prctl(PR_GET_TIMERSLACK) == 1) return 9;
  FILE *pid = fopen("pid", "w");
  fprintf(pid, "%d\n", getpid());
  fclose(pid);
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  for (uint64_t id = 1;; id++) {
    t.tv_nsec += 2000000;
    if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    TAUT_STAMP_AT("loop.due", id, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
    TAUT_STAMP("loop.done", id);
  }
}
"#;

impl Folder {
    pub fn build(&self) {
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include").canonicalize().unwrap();
        self.write("loop.c", LOOP);
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=gnu11", "-O1", "-pthread", "-I"]).arg(include).args(["loop.c", "-o", "loop"]);
        assert!(gcc.current_dir(self.0.path()).status().unwrap().success());
    }

    /// With a place of its own for journals.
    pub fn taut(&self, arguments: &[&str]) -> Command {
        let runtime = self.path("runtime");
        std::fs::create_dir_all(&runtime).unwrap();
        let mut command = Command::new(cargo_bin!("taut"));
        command.args(arguments).current_dir(self.0.path()).env("XDG_RUNTIME_DIR", runtime).env_remove("TAUT_SESSION");
        command
    }

    pub fn journals(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("runtime/taut-tune")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
