//! What may happen to a message. Each kind is one way in which a cause comes about; the causes are those of `docs/reference/causes.md`.

use crate::{files, locks, options::Options, peers, processor, timing};

pub trait Kind {
    /// Its name, its cause's word, and what may stand in the explanation's detail.
    fn name(&self) -> (&'static str, &'static str, &'static str);
    /// Before the message starts.
    fn prepare(&mut self, _ns: u64) {}
    /// In the message.
    fn strike(&mut self, ns: u64);
    /// In the messages to which nothing happens.
    fn usual(&mut self) {}
    /// Processes whose waiting for the CPU is a part of the message.
    fn helpers(&self) -> Vec<libc::pid_t> {
        Vec::new()
    }
    /// After the message: how long it took, as seen from here.
    fn settle(&mut self) -> u64;
}

pub fn make(name: &str, options: &Options) -> Result<Box<dyn Kind>, String> {
    Ok(match name {
        "work" => Box::new(processor::Work::default()),
        "preempted_fifo" => Box::new(processor::Hog::new(true, options)),
        "preempted_equal" => Box::new(processor::Hog::new(false, options)),
        "throttled" => Box::new(processor::Throttle::new(options)?),
        "irq" => Box::new(processor::Flood::new(options)?),
        "stopped" => Box::new(processor::Stop::new(options)),
        "lock_thread" => Box::new(locks::ThreadLock::new(options)),
        "lock_process" => Box::new(locks::ProcessLock::new(options)),
        "io_work" => Box::new(peers::Chain::new(true, options)),
        "io_sleep" => Box::new(peers::Chain::new(false, options)),
        "io_outside_socket" => Box::new(peers::Outside::socket(options)?),
        "io_outside_pipe" => Box::new(peers::Outside::pipe(options)?),
        "sleep" => Box::new(timing::Sleep::default()),
        "timer_slack" => Box::new(timing::Slack::default()),
        "page_fault_minor" => Box::new(files::FreshPages::default()),
        "page_fault_major" => Box::new(files::DroppedPages::new(options)?),
        "disk" => Box::new(files::Sync::new(options)?),
        "syscall" => Box::new(files::Zeros::new()?),
        _ => return Err(format!("no kind is called {name}")),
    })
}
