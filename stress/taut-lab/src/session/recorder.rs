//! Records a trial with taut: a recorder of its own beside it, attached to the session that all processes stamp into.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{
    STEP,
    stack::{Stack, quoted},
};
use crate::{
    Error,
    isolation::{Child, ended},
};

/// The recording of a trial, in its folder.
pub(super) const RECORDING: &str = "trial.mcap";
/// How long a recorder may take to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A recorder beside a trial.
pub(super) struct Recorder(Child);

impl Recorder {
    /// Returns when it records; `pid` is any process with the session in its environment.
    pub fn start(stack: &mut Stack<'_>, pid: u32, logs: &Path) -> Result<Recorder, Error> {
        let recording: PathBuf = logs.join(RECORDING);
        let mut words: Vec<OsString> = stack.session.recorder.to_vec();
        words.extend(["--pid".into(), pid.to_string().into(), "-o".into(), recording.into()]);
        let tier = stack.session.lab.trial.tier.as_deref();
        words.extend(tier.into_iter().flat_map(|tier| ["--tier".into(), tier.into()]));
        let place = stack.place(logs, false);
        let child = Child::start("recorder", &words, &Default::default(), None, &place)?;
        stack.roots.insert(child.pid(), "recorder".into());
        let mut recorder = Recorder(child);
        let began = Instant::now();
        while !std::fs::read_to_string(recorder.0.stderr()).unwrap_or_default().contains("recording process") {
            let ended = recorder.0.ended().is_some();
            if ended || began.elapsed() > PATIENCE {
                let said = recorder.0.last_words().unwrap_or_else(|| "nothing".into());
                let problem = format!("the recorder did not begin; it said: {said}");
                return Err(Error::Start { place: "trial.report".into(), problem });
            }
            stack.session.rest(STEP.as_secs_f64())?;
        }
        Ok(recorder)
    }

    /// Asks it to end, and waits until the recording is whole; or says why it is not.
    pub fn finish(mut self, stack: &mut Stack<'_>) -> Result<Option<String>, Error> {
        self.0.signal(Signal::INT);
        let began = Instant::now();
        while self.0.ended().is_none() && began.elapsed() < PATIENCE {
            self.0.wait_a_little(STEP);
            stack.session.check_stop()?;
        }
        let end = self.0.ended();
        self.0.signal(Signal::KILL);
        stack.roots.remove(&self.0.pid());
        Ok(match end {
            Some(status) if status.success() => None,
            Some(status) => Some(format!("the recorder ended with {}{}", ended(status), quoted(&self.0))),
            None => Some(format!("the recorder was killed, as it had not ended within {} s", PATIENCE.as_secs())),
        })
    }
}
