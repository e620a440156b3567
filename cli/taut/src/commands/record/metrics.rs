//! `taut record --serve` and `--otlp`: live metrics beside the recording.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use anyhow::Result;
use taut_live::{Follower, Following, Growing, State};
use taut_metrics::{Pusher, Server};
use taut_recording::Shown;

use crate::{address, config, scratch::Scratch};

/// As Prometheus's exporters are numbered.
const ADDRESS: &str = "127.0.0.1:9464";
/// Between two turns: scrapes come each 10 s or so.
const TURN: Duration = Duration::from_secs(2);
/// The same where a message above a limit is waited for.
const WATCHED_TURN: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub struct Wanted {
    /// Serve live metrics to Prometheus at /metrics, without authentication [default: 127.0.0.1:9464].
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = ADDRESS)]
    serve: Option<String>,
    /// Push live metrics to an OpenTelemetry collector (OTLP over http), e.g. http://127.0.0.1:4318.
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Time between two pushes.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::time::length, requires = "otlp")]
    otlp_period: Duration,
    /// Keep no recording: metrics only.
    #[arg(long, conflicts_with = "output")]
    pub no_file: bool,
    /// Chains and deadlines [default: ./taut.toml].
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
}

/// Metrics on their way.
pub struct Metrics {
    state: Arc<Mutex<State>>,
    server: Option<Server>,
    pusher: Option<Pusher>,
    following: Option<Following>,
    follower: Option<Follower>,
    /// The file that is not kept.
    unwanted: Option<Scratch>,
    failure: Option<String>,
    said: mpsc::Receiver<String>,
}

impl Metrics {
    /// Listens before anything is recorded: an address that is taken must not cost a run.
    pub fn prepare(args: &Wanted, options: &mut taut_capture::Options, is_watched: bool) -> Result<Metrics> {
        if args.no_file && args.serve.is_none() && args.otlp.is_none() {
            anyhow::bail!("with --no-file nothing would come of it: add --serve or --otlp URL");
        }
        let state = Arc::new(Mutex::new(State::default()));
        let serve = |address: &String| -> Result<Server> {
            Ok(Server::start(address::resolved(address, ADDRESS)?, Arc::clone(&state))?)
        };
        let server = args.serve.as_ref().map(serve);
        let (say, said) = mpsc::channel();
        let push =
            |url: &String| Pusher::start(url, args.otlp_period, Arc::clone(&state), move |line| drop(say.send(line)));
        let pusher = args.otlp.as_ref().map(push);
        let unwanted =
            (args.no_file || options.flight.is_some()).then(|| Scratch::in_memory("taut-live-")).transpose()?;
        if let Some(folder) = &unwanted {
            options.output = folder.path().join("live.mcap");
            // What is given back at once need not be small.
            if args.no_file {
                options.compression = taut_recording::Compression::None;
            }
        }
        let is_wanted = server.is_some() || pusher.is_some() || is_watched;
        let following = match is_wanted {
            true => Some(Following {
                recordings: vec![Growing { eat: args.no_file, ..Growing::of(options.output.clone()) }],
                chains: config::load(args.config.as_deref())?.chains,
                turn: if is_watched { WATCHED_TURN } else { TURN },
                is_late: false,
                has_tail: false,
                hosts: Vec::new(),
                clocks: None,
            }),
            false => None,
        };
        let (server, pusher) = (server.transpose()?, pusher.transpose()?);
        Ok(Metrics { state, server, pusher, following, follower: None, unwanted, failure: None, said })
    }

    /// The recording runs.
    pub fn begin(&mut self, output: &Path, say: impl Fn(&str)) {
        let Some(following) = self.following.take() else {
            self.unwanted = None;
            return;
        };
        match taut_live::follow(following, Arc::clone(&self.state)) {
            Ok(follower) => self.follower = Some(follower),
            Err((_, error)) => self.failure = Some(format!("no live metrics: {}: {error}", output.shown())),
        }
        // Recorder and follower have it open; whatever ends them, nothing stays.
        self.unwanted = None;
        if let Some(address) = self.server.as_ref().map(Server::address) {
            say(&format!("metrics at http://{address}/metrics"));
        }
    }

    /// Shows what is known of messages now.
    pub fn look(&self, show: impl FnOnce(&State)) {
        show(&self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// All that happened is in the file: counts the last messages.
    pub fn end(&mut self) {
        let _ = self.follower.take().map(Follower::finish);
    }

    /// The recording is over: the last messages are pushed. Returns what went wrong.
    pub fn finish(mut self) -> Vec<String> {
        let failure = self.state.lock().unwrap_or_else(PoisonError::into_inner).failure.take();
        let failed = failure.map(|failure| format!("live metrics ended before the recording: {failure}"));
        // The pusher's end is a last push.
        drop((self.follower, self.pusher.take(), self.server, self.unwanted));
        self.failure.into_iter().chain(failed).chain(self.said.try_iter()).collect()
    }
}
