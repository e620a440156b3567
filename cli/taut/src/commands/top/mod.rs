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
use taut_live::{Following, Growing, State};
use taut_points::hosts::MOST_HOSTS;
use taut_recording::Shown;
use taut_report::words;
use taut_top::Ended;

use crate::{
    config,
    exit::Done,
    input,
    joined::{Clocks, JoinArgs},
    ros_filter::RosFilter,
    scratch::Scratch,
};
use elsewhere::Elsewhere;

mod elsewhere;

/// Between two turns at least.
const TURN: Duration = Duration::from_secs(1);
/// Between two looks for the file of a recorder that was just started.
const LOOK: Duration = Duration::from_millis(20);

/// Show a running recording live: chains, hops, causes and threads.
///
/// Follows the running recorder's file; without one, --pid records the process and keeps nothing. Recordings of several
/// hosts are shown as one.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut top\n  taut top --pid 4242\n  taut top run.mcap ssh://alice@10.0.0.2\n\nKeys: ? explains them."
)]
pub struct Args {
    /// Recording being written, or one of each host, also ssh://HOST[/FILE] [default: the only recorder's].
    #[arg(conflicts_with_all = ["pid", "session"], value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Process to show; it need not stamp.
    #[arg(long)]
    pid: Option<i32>,
    /// Session directory [default: with --pid, the process's].
    #[arg(long, value_name = "DIR", value_parser = crate::folder::named())]
    session: Option<PathBuf>,
    /// Chains and deadlines [default: ./taut.toml].
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
    #[command(flatten)]
    join: JoinArgs,
    #[command(flatten)]
    ros: RosFilter,
}

/// Shows until the user has seen enough.
pub fn run(args: &Args) -> Result<Done> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        bail!("taut top draws on a terminal; for programs there is `taut record --serve`, and `taut report` for files");
    }
    let chains = config::load(args.config.as_deref())?.chains;
    if args.runs.len() < 2 && (!args.join.hosts.is_empty() || args.join.clocks.is_some()) {
        bail!("--hosts and --clocks are for recordings of several hosts; name one of each host");
    }
    let mut subject = subject(args)?;
    for growing in &subject.recordings {
        let named = || growing.path.shown();
        let file = File::open(&growing.path).with_context(named)?;
        if taut_recording::is_finished(&file).with_context(named)? {
            bail!("{}: has ended; next: taut report {}", named(), words::shell(&[named()]));
        }
    }
    let is_late = subject.own.is_none();
    let recordings = subject.recordings.clone();
    let (hosts, clocks) = (args.join.hosts.clone(), args.join.clocks.map(Clocks::source));
    let following = Following { recordings, chains, turn: TURN, is_late, has_tail: true, hosts, clocks };
    let state = Arc::new(Mutex::new(State::default()));
    let follower = taut_live::follow(following, Arc::clone(&state));
    let follower = follower.map_err(|(path, error)| anyhow::Error::from(error).context(path.shown()))?;
    // Recorder and follower have these files open. No other program can read them whole: what was read is freed.
    subject.own.iter_mut().for_each(|own| own.folder = None);
    subject.elsewhere.iter_mut().for_each(Elsewhere::is_followed);
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
    recordings: Vec<Growing>,
    title: String,
    /// The recorder that was started for it.
    own: Option<Own>,
    /// Recordings of other hosts, on their way.
    elsewhere: Vec<Elsewhere>,
}

impl Subject {
    fn new(growing: Growing, title: String, own: Option<Own>) -> Subject {
        Subject { recordings: vec![growing], title, own, elsewhere: Vec::new() }
    }

    fn of(recorder: Recorder) -> Result<Subject> {
        if !recorder.output.exists() {
            bail!("process {} records process {} and keeps no file to follow", recorder.pid, recorder.subject);
        }
        let title = format!("{}, process {}", name(&recorder.output), recorder.subject);
        Ok(Subject::new(Growing::of(recorder.output), title, None))
    }

    /// Recordings by their names.
    fn named(runs: &[PathBuf]) -> Result<Subject> {
        if runs.len() > MOST_HOSTS {
            bail!("taut top takes up to {MOST_HOSTS} recordings, one of each host; {} given", runs.len());
        }
        let earlier = |at: usize| runs[..at].iter().find(|run| *run == &runs[at] || input::is_one_file(run, &runs[at]));
        if let Some(run) = (1..runs.len()).find_map(earlier) {
            bail!("{}: is given twice; name the other host's recording", run.shown());
        }
        let mut subject = Subject { recordings: Vec::new(), title: String::new(), own: None, elsewhere: Vec::new() };
        for run in runs {
            subject.recordings.push(if Elsewhere::is_named(run) {
                let elsewhere = Elsewhere::begin(run)?;
                let growing = elsewhere.growing();
                subject.elsewhere.push(elsewhere);
                growing
            } else {
                Growing::of(run.clone())
            });
        }
        subject.title = runs.iter().map(|run| name(run)).collect::<Vec<String>>().join(" + ");
        Ok(subject)
    }
}

fn subject(args: &Args) -> Result<Subject> {
    if !args.runs.is_empty() {
        return Subject::named(&args.runs);
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
    folder: Option<Scratch>,
}

impl Own {
    fn start(pid: i32, session: Option<&Path>) -> Result<Subject> {
        let folder = Scratch::in_memory("taut-top-")?;
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
        let growing = Growing { eat: true, ..Growing::of(output) };
        Ok(Subject::new(growing, format!("process {pid}, nothing kept"), Some(own)))
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
