//! The talk on stderr while recording: one line at the start, live counts on a terminal. A thread of its own writes it: a terminal that
//! takes nothing, since Ctrl-S stopped it or its ssh connection hangs, must not stop the recorder.

use std::{
    cell::OnceCell,
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread::JoinHandle,
};

use indicatif::{ProgressBar, ProgressStyle};
use taut_capture::{Progress, Started};
use taut_report::words;

/// What is said, and the counts that are shown, until the recording is over.
pub struct Live {
    bar: ProgressBar,
    quiet: bool,
    /// The bar is not asked for it later: what writes holds its lock, for as long as the terminal takes nothing.
    is_hidden: bool,
    /// `None` where no thread can be started: then who has something to say writes it.
    writer: OnceCell<Option<Writer>>,
}

/// The thread that writes.
struct Writer {
    said: mpsc::Sender<Said>,
    /// It has not yet shown the latest counts: what comes meanwhile is dropped.
    is_behind: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

enum Said {
    Line(String),
    Counts(String),
}

impl Live {
    pub fn new(quiet: bool) -> Live {
        let bar =
            if quiet || !std::io::stderr().is_terminal() { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("a fixed template"));
        let is_hidden = bar.is_hidden();
        Live { bar, quiet, is_hidden, writer: OnceCell::new() }
    }

    pub fn started(&self, started: &Started) {
        let subject = match started.pid {
            0 => "the whole machine".to_owned(),
            pid => format!("process {pid}"),
        };
        let mut line = format!("recording {subject}, {} tier", started.tier.word());
        if !started.kernel_source.is_empty() && started.kernel_source != "none" {
            line += &format!(" ({})", started.kernel_source);
        }
        self.say(&line);
        if !started.tier_reason.is_empty() {
            self.say(&started.tier_reason);
        }
    }

    pub fn say(&self, line: &str) {
        if !self.quiet {
            self.tell(Said::Line(format!("taut: {line}")));
        }
    }

    pub fn show(&self, progress: &Progress) {
        if self.is_hidden || self.writer().is_some_and(|writer| writer.is_behind.swap(true, Relaxed)) {
            return;
        }
        let lost =
            progress.lost_stamps + progress.lost_telemetry + progress.lost_kernel_events + progress.lost_ros_events;
        let ros = match progress.ros_events {
            0 => String::new(),
            n => format!(" · {} ROS 2 events", words::count(n)),
        };
        let telemetry = match progress.telemetry {
            0 => String::new(),
            n => format!(" · {} telemetry", words::count(n)),
        };
        let lost = match lost {
            0 => String::new(),
            n => format!(" · {}", words::lost(n, progress.lost_is_estimate)),
        };
        self.tell(Said::Counts(format!(
            "{:.0} s · {} stamps ({}/s){ros}{telemetry} · {} kernel events · {} processes, {} threads · {}{lost}",
            progress.elapsed.as_secs_f64(),
            words::count(progress.stamps),
            words::count(progress.stamps_per_s.round() as u64),
            words::count(progress.kernel_events),
            progress.processes,
            progress.threads,
            words::bytes(progress.file_bytes),
        )));
    }

    /// The recording is over: waits until all is written, however long the terminal takes.
    pub fn end(mut self) {
        if let Some(Some(Writer { said, thread, .. })) = self.writer.take() {
            drop(said);
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }

    /// The command runs by then, and was forked without this thread.
    fn writer(&self) -> Option<&Writer> {
        self.writer.get_or_init(|| Writer::start(&self.bar)).as_ref()
    }

    fn tell(&self, said: Said) {
        match self.writer() {
            Some(writer) => drop(writer.said.send(said)),
            None => said.write(&self.bar),
        }
    }
}

impl Writer {
    fn start(bar: &ProgressBar) -> Option<Writer> {
        let (said, heard) = mpsc::channel::<Said>();
        let (bar, is_behind) = (bar.clone(), Arc::new(AtomicBool::new(false)));
        let is_shown = Arc::clone(&is_behind);
        let body = move || {
            taut_capture::give_way();
            for said in heard {
                if matches!(said, Said::Counts(_)) {
                    is_shown.store(false, Relaxed);
                }
                said.write(&bar);
            }
        };
        let thread = std::thread::Builder::new().name("taut-talk".to_owned()).spawn(body).ok()?;
        Some(Writer { said, is_behind, thread })
    }
}

impl Said {
    fn write(self, bar: &ProgressBar) {
        match self {
            Said::Line(line) => bar.suspend(|| say!("{line}")),
            Said::Counts(counts) => {
                bar.set_message(counts);
                bar.tick();
            }
        }
    }
}
