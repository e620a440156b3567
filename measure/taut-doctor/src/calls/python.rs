//! Version and build of `python3`. It may be a shell script in front of the interpreter, and slow: it starts first and
//! is read last, and gets a second.

use std::{
    cell::{OnceCell, RefCell},
    io::Read,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{Answer, Missing, missing::missing};

/// Version, whether it has a GIL, and how long a thread may keep it.
const QUESTION: &str = "import sys;print('version=%d.%d'%sys.version_info[:2]);\
    print('gil=%d'%getattr(sys,'_is_gil_enabled',lambda:1)());print('switch_s=%g'%sys.getswitchinterval())";
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Python {
    child: RefCell<Option<Result<Child, Missing>>>,
    answer: OnceCell<Answer>,
}

impl Python {
    pub fn start() -> Python {
        let mut command = Command::new("python3");
        command.args(["-I", "-S", "-c", QUESTION]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        Python { child: RefCell::new(Some(child.map_err(missing))), answer: OnceCell::new() }
    }

    pub fn answer(&self) -> Answer {
        self.answer.get_or_init(|| self.wait()).clone()
    }

    fn wait(&self) -> Answer {
        let mut child = self.child.take().unwrap_or(Err(Missing::Absent))?;
        let end = Instant::now() + PATIENCE;
        loop {
            match child.try_wait().map_err(missing)? {
                Some(status) if status.success() => break,
                Some(status) => return Err(Missing::Failed(format!("python3 ended with {status}"))),
                None if Instant::now() > end => {
                    stop(&mut child);
                    return Err(Missing::Failed("python3 did not answer within a second".into()));
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        let mut text = String::new();
        child.stdout.take().map(|mut out| out.read_to_string(&mut text));
        Ok(text)
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        if let Some(Ok(child)) = self.child.get_mut() {
            stop(child);
        }
    }
}

fn stop(child: &mut Child) {
    // It may have ended by itself meanwhile.
    let _ = child.kill();
    let _ = child.wait();
}
