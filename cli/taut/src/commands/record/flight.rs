//! `taut record --flight-recorder`: when its memory is saved, and how that is reported.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::mpsc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use taut_capture::{Answered, Asked, Flight, Kept, Recorder, Saved, recorder_of, recorders, save_now, session_of};
use taut_live::State;
use taut_recording::{Compression, Shown};
use taut_report::words;

use crate::scratch;

/// As --flight-memory has it.
const LEAST_MEMORY: u64 = 8 << 20;
/// Less is over before a message above a limit is known: the analysis of a busy stream may take its turns 10 s apart.
const LEAST_WITH_LIMIT: Duration = Duration::from_secs(15);

#[derive(clap::Args)]
#[group(id = "flight")]
pub struct Wanted {
    /// Keep only this long in memory [default: 30s]; saved by --save-above, --save, SIGUSR2 or a failure of the program,
    /// with -o run.mcap as run-1.mcap, run-2.mcap, …
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "30s",
          value_parser = crate::time::length, conflicts_with = "no_file")]
    pub flight_recorder: Option<Duration>,
    /// Memory limit; a window that does not fit is shortened.
    #[arg(long, value_name = "MIB", default_value_t = 256, requires = "flight_recorder",
          value_parser = clap::value_parser!(u64).range(8..=1 << 20))]
    flight_memory: u64,
    /// Save when a message takes longer than this end to end, at most once a window.
    #[arg(long, value_name = "TIME", value_parser = crate::time::length, requires = "flight_recorder")]
    pub save_above: Option<Duration>,
    /// With --save-above: only this chain.
    #[arg(long, value_name = "NAME", requires = "save_above")]
    chain: Option<String>,
    /// With --save-above: at most N saves.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "save_above")]
    most_saves: u32,
    /// Make the running flight recorder save, and print the file; --pid or --session selects one.
    #[arg(long, conflicts_with_all = ["command", "flight_recorder", "duration"])]
    pub save: bool,
}

/// What the recorder gets, and what is kept here to watch it.
pub fn prepare(args: &Wanted, name: &Path, compression: Compression) -> Result<Option<(Flight, Watch)>> {
    let Some(window) = args.flight_recorder else { return Ok(None) };
    if args.save_above.is_some() && window < LEAST_WITH_LIMIT {
        bail!(
            "--save-above needs --flight-recorder={} at least: a message above the limit is known up to 10 s later",
            taut_wakeup::length(LEAST_WITH_LIMIT)
        );
    }
    let (sender, saved) = mpsc::channel();
    let asked = Asked::default();
    let wanted = args.flight_memory << 20;
    // The rings lie there as well, and whatever else the machine's programs share.
    let room = scratch::room_in_memory().unwrap_or(u64::MAX);
    let most_bytes = wanted.min(room / 2);
    if most_bytes < LEAST_MEMORY {
        bail!(
            "--flight-recorder: only {} are free in {}; free some, or enlarge it (containers: --shm-size)",
            words::bytes(room),
            scratch::MEMORY
        );
    }
    let flight = Flight { window, most_bytes, name: name.to_owned(), compression, asked: asked.clone(), saved: sender };
    let watch = Watch {
        window,
        most_bytes,
        is_lowered: most_bytes < wanted,
        asked,
        saved,
        limit: args.save_above,
        chain: args.chain.clone(),
        saves_left: args.most_saves,
        seen_ns: 0,
        saved_at: None,
        unsaved_turns: 0,
        chains: BTreeSet::new(),
        kept: Vec::new(),
    };
    Ok(Some((flight, watch)))
}

/// A flight recorder under way.
pub struct Watch {
    window: Duration,
    most_bytes: u64,
    is_lowered: bool,
    asked: Asked,
    saved: mpsc::Receiver<Saved>,
    limit: Option<Duration>,
    chain: Option<String>,
    saves_left: u32,
    /// Up to here messages were looked at, CLOCK_MONOTONIC.
    seen_ns: u64,
    saved_at: Option<Instant>,
    unsaved_turns: u64,
    /// Names of all chains that messages were seen of.
    chains: BTreeSet<String>,
    kept: Vec<Kept>,
}

impl Watch {
    /// What is kept, and how it is saved.
    pub fn started(&self) -> String {
        let limit =
            self.limit.map_or(String::new(), |limit| format!(" a message above {},", taut_wakeup::length(limit)));
        let lowered = match self.is_lowered {
            true => format!(" (less than --flight-memory: half of what is free in {})", scratch::MEMORY),
            false => String::new(),
        };
        format!(
            "flight recorder: the last {} in at most {} of memory{lowered}; saved by{limit} SIGUSR2 to process {}, `taut record --save`, or when the program fails",
            taut_wakeup::length(self.window),
            words::bytes(self.most_bytes + self.most_bytes / 8),
            std::process::id()
        )
    }

    /// Asks for a save if a message took too long since the last look.
    pub fn look(&mut self, state: &State) {
        let Some(limit) = self.limit else { return };
        let limit_ns = limit.as_nanos() as u64;
        let new = state.chains.iter().map(|chain| &chain.name).filter(|name| !self.chains.contains(*name));
        let new: Vec<String> = new.cloned().collect();
        self.chains.extend(new);
        let chains = state.chains.iter().filter(|chain| self.chain.as_ref().is_none_or(|name| chain.name == *name));
        let turns = chains.flat_map(|chain| chain.recent.iter().map(|turn| (&chain.name, turn)));
        let fresh = turns.filter(|(_, (end_ns, ..))| *end_ns > self.seen_ns);
        let worst = fresh.filter_map(|(name, (.., figures))| Some((figures.way.max_ns()?, name))).max();
        self.seen_ns = self.seen_ns.max(state.until_ns);
        let Some((ns, name)) = worst.filter(|(ns, _)| *ns > limit_ns) else { return };
        let is_due = self.saved_at.is_none_or(|at| at.elapsed() >= self.window);
        if !is_due || self.saves_left == 0 {
            self.unsaved_turns += 1;
            return;
        }
        self.saves_left -= 1;
        self.saved_at = Some(Instant::now());
        self.asked.ask(&format!(
            "a message of {name} took {:.3} ms, above the limit of {}",
            ns as f64 / 1e6,
            taut_wakeup::length(limit)
        ));
    }

    /// What was saved since the last call, a line each.
    pub fn said(&mut self) -> Vec<String> {
        let saved: Vec<Saved> = self.saved.try_iter().collect();
        let line = |saved: Saved| match saved.result {
            Ok(kept) => {
                let (path, span) = (kept.path.shown(), kept.span.as_secs_f64());
                let lost = match kept.damaged {
                    0 => String::new(),
                    n => format!(", {}", damage(n)),
                };
                let size = words::bytes(kept.bytes);
                let line = format!("saved {path}: the last {span:.1} s, {size}{lost}, because {}", saved.why);
                self.kept.push(kept);
                line
            }
            Err(why) => format!("warning: not saved ({}): {why}", saved.why),
        };
        saved.into_iter().map(line).collect()
    }

    /// At the end.
    pub fn summary(&self) -> (String, String) {
        let mut text = match self.kept.as_slice() {
            [] => "flight recorder: nothing was saved".to_owned(),
            kept => format!("flight recorder: {} saved", words::quantity(kept.len() as u64, "recording")),
        };
        if self.unsaved_turns > 0 {
            text += &format!(
                "; messages above the limit in {} more were not saved (within a window of a save, or beyond --most-saves)",
                words::quantity(self.unsaved_turns, "turn")
            );
        }
        if let Some(name) = self.chain.as_ref().filter(|name| !self.chains.contains(*name)) {
            let seen: Vec<&str> = self.chains.iter().map(String::as_str).collect();
            let seen = if seen.is_empty() { "none".to_owned() } else { seen.join(", ") };
            text += &format!("; warning: --chain {name}: no message of it was seen, the chains were: {seen}");
        }
        let last = self.kept.last().map(|kept| words::shell(&[kept.path.shown()]));
        (text, last.map_or(String::new(), |path| format!("\ntaut: next: taut report {path}")))
    }
}

/// What of the memory could not be read back, and is missing in its saves.
pub fn damage(places: u64) -> String {
    format!("{} of the memory LOST", words::quantity(places, "damaged place"))
}

/// Asks a flight recorder for a save; where it is.
pub fn save(pid: Option<i32>, session: Option<&Path>) -> Result<Answered> {
    let recorder = find(pid, session)?;
    save_now(&recorder)?.map_err(|why| {
        let text = format!("process {}: not saved: {why}", recorder.pid);
        match why.errno {
            Some(errno) => anyhow::Error::new(std::io::Error::from_raw_os_error(errno)).context(text),
            None => anyhow::anyhow!(text),
        }
    })
}

fn find(pid: Option<i32>, session: Option<&Path>) -> Result<Recorder> {
    let mut all = recorders();
    if let Some(pid) = pid {
        if let Some(at) = all.iter().position(|recorder| recorder.pid == pid || recorder.subject == pid) {
            return Ok(all.swap_remove(at));
        }
        let path = session_of(pid, session)?;
        return path.as_deref().and_then(recorder_of).with_context(|| format!("process {pid} is not being recorded"));
    }
    if let Some(session) = session {
        // Of another user's it is not known.
        std::fs::read_dir(session).with_context(|| format!("{}: cannot be looked into", session.shown()))?;
        return recorder_of(session).with_context(|| format!("{}: no recorder is attached to it", session.shown()));
    }
    match (all.pop(), all.is_empty()) {
        (Some(recorder), true) => Ok(recorder),
        (None, _) => {
            bail!(
                "no recorder of this user runs; start one with `taut record --flight-recorder -- COMMAND`, or name its --session"
            )
        }
        (Some(last), false) => {
            all.push(last);
            let pids: Vec<String> = all.iter().map(|recorder| recorder.pid.to_string()).collect();
            bail!("several recorders run; name one with --pid: {}", pids.join(", "))
        }
    }
}
