//! What work takes by the thread's own CPU clock: a second opinion on an injected change.

use rustix::time::{ClockId, clock_gettime};

/// CPU times of slowed messages and of the others, ns.
#[derive(Default)]
pub struct CpuTimes {
    plain: Vec<i64>,
    slowed: Vec<i64>,
}

impl CpuTimes {
    pub fn of(&mut self, is_slowed: bool, work: impl FnOnce()) {
        let began = now_ns();
        work();
        let side = if is_slowed { &mut self.slowed } else { &mut self.plain };
        side.push(now_ns() - began);
    }

    pub fn json(&self) -> String {
        let messages = self.plain.len() + self.slowed.len();
        let [plain, slowed] = [&self.plain, &self.slowed].map(|times| median(times.clone()));
        format!("{{\"plain_ns\": {plain}, \"slowed_ns\": {slowed}, \"messages\": {messages}}}")
    }
}

fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn median(mut times: Vec<i64>) -> i64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}
