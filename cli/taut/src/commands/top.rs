//! `taut top`: a session on the terminal while it is recorded.

use std::{
    fs::File,
    io::IsTerminal,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use taut_capture::{Recorder, recorder_of, recorders, session_of};
use taut_live::{Following, State};
use taut_recording::Shown;
use taut_report::words;
use taut_top::Ended;

use crate::{config, exit::Done, output, ros_filter::RosFilter};

/// Between two turns at least.
const TURN: Duration = Duration::from_secs(1);
/// Between two looks for the file of a recorder that was just started.
const LOOK: Duration = Duration::from_millis(20);

/// Show chains, hops, causes and threads of a running recording, live.
///
/// Follows the file of the running recorder. Without one, --pid records the process and keeps nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  taut top\n  taut top run.mcap\n  taut top --pid 4242\n\nKeys: ? explains them.")]
pub struct Args {
    /// A recording that is being written [default: that of the only recorder].
    #[arg(conflicts_with_all = ["pid", "session"])]
    run: Option<PathBuf>,
    /// A process; it need not stamp.
    #[arg(long)]
    pid: Option<i32>,
    /// Session directory [default: with --pid, that of the process's environment].
    #[arg(long, value_name = "DIR")]
    session: Option<PathBuf>,
    /// Declared chains [default: ./taut.toml if there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    ros: RosFilter,
}

/// Shows until the user has seen enough.
pub fn run(args: &Args) -> Result<Done> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        bail!("taut top draws on a terminal; for programs there is `taut record --serve`, and `taut report` for files");
    }
    let chains = config::load(args.config.as_deref())?.chains;
    let mut subject = subject(args)?;
    let (path, eat) = (subject.path().to_owned(), subject.own.is_some());
    let named = || path.shown();
    let file = File::open(&path).with_context(named)?;
    if taut_recording::is_finished(&file).with_context(named)? {
        bail!("{}: has ended; next: taut report {}", named(), words::shell(&[named()]));
    }
    drop(file);
    let following = Following { path: path.clone(), chains, turn: TURN, is_late: !eat, has_tail: true, eat };
    let state = Arc::new(Mutex::new(State::default()));
    let follower = taut_live::follow(following, Arc::clone(&state)).with_context(named)?;
    if let Some(own) = &mut subject.own {
        // Recorder and follower have the file open; nobody else can make anything of it, since what is read is given back.
        own.folder = None;
    }
    let wants = |points: &[&str]| args.ros.is_empty() || args.ros.wants(points);
    let title = subject.title.clone() + &args.ros.words();
    let ended = taut_top::run(&follower, &title, &wants, &mut unused_name);
    drop((follower, subject));
    let kept = state.lock().unwrap_or_else(PoisonError::into_inner).kept.take();
    match kept {
        Some(Ok(path)) => {
            let path = path.shown();
            say!("taut: recorded {path}\ntaut: next: taut report {}", words::shell(std::slice::from_ref(&path)));
        }
        Some(Err(why)) => say!("taut: warning: not recorded: {why}"),
        None => {}
    }
    match ended.context("terminal")? {
        Ended::Asked => Ok(Done::Fine),
        Ended::Failed(why) => bail!(why),
    }
}

/// What is looked at.
struct Subject {
    output: PathBuf,
    title: String,
    /// The recorder that was started for it.
    own: Option<Own>,
}

impl Subject {
    fn path(&self) -> &Path {
        &self.output
    }

    fn of(recorder: Recorder) -> Result<Subject> {
        if !recorder.output.exists() {
            bail!("process {} records process {} and keeps no file to follow", recorder.pid, recorder.subject);
        }
        let title = format!("{}, process {}", name(&recorder.output), recorder.subject);
        Ok(Subject { title, output: recorder.output, own: None })
    }
}

fn subject(args: &Args) -> Result<Subject> {
    if let Some(run) = &args.run {
        return Ok(Subject { output: run.clone(), title: name(run), own: None });
    }
    if let Some(pid) = args.pid {
        let session = session_of(pid, args.session.as_deref())?;
        return match session.as_deref().and_then(recorder_of) {
            Some(recorder) => Subject::of(recorder),
            None => Own::start(pid, session.as_deref()),
        };
    }
    if let Some(session) = &args.session {
        let without = || format!("{}: no recorder is attached to this session; pass --pid PID", session.shown());
        return recorder_of(session).with_context(without).and_then(Subject::of);
    }
    let mut all = recorders();
    match (all.pop(), all.is_empty()) {
        (Some(recorder), true) => Subject::of(recorder),
        (None, _) => bail!(
            "nothing is being recorded; start `taut record -- COMMAND`, or name a process that was started with TAUT_SESSION: --pid PID"
        ),
        (Some(last), false) => {
            all.push(last);
            let one = |recorder: &Recorder| format!("{} (process {})", recorder.output.shown(), recorder.subject);
            bail!("several recordings are under way; name one: {}", all.iter().map(one).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A file's name, for the head of the screen.
fn name(path: &Path) -> String {
    Path::new(path.file_name().unwrap_or(path.as_os_str())).shown()
}

/// A recorder of our own, which goes with us.
struct Own {
    child: Child,
    folder: Option<tempfile::TempDir>,
}

impl Own {
    fn start(pid: i32, session: Option<&Path>) -> Result<Subject> {
        let folder = output::unkept("taut-top-")?;
        let (output, said) = (folder.path().join("live.mcap"), folder.path().join("said"));
        let mut command = Command::new(std::env::current_exe().context("this program")?);
        command.args(["record", "--quiet", "--compression", "none", "--pid"]).arg(pid.to_string());
        command.arg("--output").arg(&output);
        if let Some(session) = session {
            command.arg("--session").arg(session);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said)?).process_group(0);
        // SAFETY: one system call between fork and exec, which is async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                let term = Some(rustix::process::Signal::TERM);
                Ok(rustix::process::set_parent_process_death_signal(term)?)
            });
        }
        let mut own = Own { child: command.spawn().context("a recorder")?, folder: Some(folder) };
        while !output.exists() {
            if own.child.try_wait()?.is_some() {
                let said = std::fs::read_to_string(&said).unwrap_or_default();
                let why =
                    said.lines().last().and_then(|line| line.strip_prefix("taut: ")).unwrap_or("the recorder ended");
                bail!("{why}");
            }
            std::thread::sleep(LOOK);
        }
        Ok(Subject { output, title: format!("process {pid}, nothing kept"), own: Some(own) })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// In the working directory.
fn unused_name() -> PathBuf {
    (1..).map(|n| PathBuf::from(format!("taut-top-{n}.mcap"))).find(|path| !path.exists()).unwrap_or_default()
}
