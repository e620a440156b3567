//! What every thread and CPU did, and the questions about it.

use std::collections::BTreeMap;

use foldhash::HashMap;
use taut_recording::host_numbers::host_of;

use crate::{
    cpu::{Cpu, Idle, Interrupt},
    objects::Objects,
    sequence::partition_from,
    timeline::{CLOSE_FAULTS_NS, Segment, ThreadState, Timeline, ascending},
};

/// What every thread and CPU did.
#[derive(Default)]
pub struct Timelines {
    /// By thread.
    pub threads: HashMap<i32, Timeline>,
    /// By number.
    pub cpus: Vec<Cpu>,
    /// No event was seen before this.
    pub start_ns: u64,
    /// No event was seen after this.
    pub end_ns: u64,
    /// Whether the recording sees system calls, and with them locks, I/O and sleeps.
    pub saw_calls: bool,
    /// Whether it sees the timers that sleeps and time-outs arm.
    pub saw_timers: bool,
    /// Whether it sees wakes: without privileges only switches are seen.
    pub saw_wakes: bool,
    /// Threads that were switched to or woken, and of which the kernel recorded nothing else.
    pub invisible: Vec<i32>,
    /// Switches that the kernel did not record, and that follow from later events.
    pub unseen: u64,
    /// Other switches that are missing: what happened around them is unknown.
    pub breaks: u64,
    /// Of each host: when some control group got its CPU quota again.
    pub(crate) quota_renewals: BTreeMap<u16, Vec<u64>>,
    /// Of each host: stretches in which some thread that could run on had been left for the idle task, by their start; each end is the
    /// latest so far.
    held_back: BTreeMap<u16, Vec<(u64, u64)>>,
}

impl Timelines {
    /// Whether there were no kernel events.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Stretches (from, to) in which events of some CPU may be missing that the recorder lost, in order and apart.
    pub fn missing(&self) -> Vec<(u64, u64)> {
        ascending(self.cpus.iter().flat_map(|cpu| cpu.holes.iter().copied()).collect())
    }

    /// What is missing in the events, one sentence each.
    pub fn gaps(&self, objects: &Objects) -> Vec<String> {
        let mut gaps = Vec::new();
        if self.unseen > 0 {
            gaps.push(format!(
                "{} switches between threads were not recorded by this kernel (of its idle task mostly); when they \
                 happened was derived from what the next thread did, so a wakeup may look microseconds longer than it was",
                self.unseen
            ));
        }
        if self.breaks > 0 {
            let often = if self.breaks == 1 { "once".to_owned() } else { format!("{} times", self.breaks) };
            gaps.push(format!(
                "{often} a thread was found on a CPU without having been switched to: what it and the one before did since \
                 their last event is unknown"
            ));
        }
        if !self.invisible.is_empty() {
            let names: Vec<_> = self.invisible.iter().map(|tid| objects.name(*tid, self.end_ns)).collect();
            let of = if names.len() == 1 { ("it", "it did") } else { ("them", "they did") };
            gaps.push(format!(
                "{} ran, and the kernel's tracing shows nothing else of {}: what {} is unknown",
                names.join(", "),
                of.0,
                of.1
            ));
        }
        gaps
    }

    /// Threads that ran on the CPU in that stretch, and for how long, longest first; tid 0 is idle.
    pub fn ran(&self, cpu: u16, from_ns: u64, to_ns: u64) -> Vec<(i32, u64)> {
        let mut sums: Vec<(i32, u64)> = Vec::new();
        for (tid, start, end) in self.stays(cpu, from_ns, to_ns) {
            match sums.iter_mut().find(|(known, _)| *known == tid) {
                Some((_, sum)) => *sum += end - start,
                None => sums.push((tid, end - start)),
            }
        }
        sums.sort_by_key(|(tid, ns)| (std::cmp::Reverse(*ns), *tid));
        sums
    }

    /// Whether the CPU idled for longer than that at a time in that stretch.
    pub fn idles_longer(&self, cpu: u16, from_ns: u64, to_ns: u64, than_ns: u64) -> bool {
        let is_longer = |from: u64, to: u64| to.saturating_sub(from) > than_ns;
        is_longer(from_ns, to_ns)
            && self.stays(cpu, from_ns, to_ns).any(|(tid, start, end)| tid == 0 && is_longer(start, end))
    }

    /// Whether the CPU was given to its idle task at that moment.
    pub fn idles_from(&self, cpu: u16, at_ns: u64) -> bool {
        let Some(cpu) = self.cpus.get(usize::from(cpu)) else { return false };
        let at = cpu.occupants.partition_point(|(since, _)| *since < at_ns);
        cpu.occupants.get(at) == Some(&(at_ns, 0))
    }

    /// The idle state that the CPU was in at that moment, where it is recorded.
    pub fn idle_state(&self, cpu: u16, at_ns: u64) -> Option<Idle> {
        let idle = &self.cpus.get(usize::from(cpu))?.idle;
        let next = idle.partition_point(|idle| idle.start_ns <= at_ns);
        let last = idle.get(next.checked_sub(1)?)?;
        (at_ns < last.end_ns && last.end_ns != u64::MAX).then_some(*last)
    }

    /// When some control group's CPU quota was renewed in that stretch on the thread's host.
    pub fn quota_renewals(&self, tid: i32, from_ns: u64, to_ns: u64) -> &[u64] {
        let renewals = self.quota_renewals.get(&host_of(tid)).map_or(&[][..], |all| all);
        let place = |ns: u64| renewals.partition_point(|renewed_ns| *renewed_ns <= ns);
        &renewals[place(from_ns)..place(to_ns.max(from_ns))]
    }

    /// Whether a quota held some thread of that one's host back in that stretch: it could run on, and was left for the idle task.
    pub fn is_held_back(&self, tid: i32, from_ns: u64, to_ns: u64) -> bool {
        let Some(held_back) = self.held_back.get(&host_of(tid)) else { return false };
        let began = held_back.partition_point(|(start, _)| *start < to_ns);
        began > 0 && held_back[began - 1].1 > from_ns
    }

    fn held_back(&self) -> BTreeMap<u16, Vec<(u64, u64)>> {
        let mut of_hosts: BTreeMap<u16, Vec<(u64, u64)>> = BTreeMap::new();
        for (tid, timeline) in &self.threads {
            let stretches = of_hosts.entry(host_of(*tid)).or_default();
            let next = timeline.segments.iter().skip(1);
            for (at, (segment, next)) in timeline.segments.iter().zip(next).enumerate() {
                let preempted = segment.state == ThreadState::Preempted && next.cpu == segment.cpu;
                if preempted && self.idles_from(segment.cpu, segment.start_ns) {
                    stretches.push((segment.start_ns, timeline.end_ns(at)));
                }
            }
        }
        for stretches in of_hosts.values_mut() {
            stretches.sort_unstable();
            let mut latest = 0;
            for stretch in stretches {
                latest = latest.max(stretch.1);
                stretch.1 = latest;
            }
        }
        of_hosts
    }

    /// Interrupts on the CPU that overlap that stretch.
    pub fn interrupts(&self, cpu: u16, from_ns: u64, to_ns: u64) -> &[Interrupt] {
        let Some(cpu) = self.cpus.get(usize::from(cpu)) else { return &[] };
        let first = cpu.interrupts.partition_point(|i| i.end_ns <= from_ns);
        &cpu.interrupts[first..partition_from(&cpu.interrupts, first, |i| i.start_ns < to_ns)]
    }

    /// Threads that ran on the CPU in that stretch, in order of time: (thread, from, to); tid 0 is idle.
    pub fn stays(&self, cpu: u16, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (i32, u64, u64)> + '_ {
        let cpu = self.cpus.get(usize::from(cpu));
        let all = cpu.map_or(&[][..], |cpu| &cpu.occupants);
        let first =
            cpu.map_or(0, |cpu| cpu.occupants.partition_point(|(since, _)| *since <= from_ns).saturating_sub(1));
        (first..all.len())
            .map_while(move |at| {
                let (since, tid) = all[at];
                let end = all.get(at + 1).map_or(u64::MAX, |next| next.0);
                (since < to_ns).then_some((tid, since.max(from_ns), end.min(to_ns)))
            })
            .filter(|(_, start, end)| start < end)
    }

    /// What is lost lies behind the CPU's last switch before the earliest moment at which it may have been; where that
    /// is not said, before the moment at which the loss was noticed, since a full buffer drops the newest.
    pub(crate) fn lose(&mut self, cpu: u16, since_ns: u64, until_ns: u64) {
        let Some(cpu) = self.cpus.get_mut(usize::from(cpu)) else { return };
        let since_ns = if since_ns == 0 { until_ns } else { since_ns };
        let at = cpu.occupants.partition_point(|(since, _)| *since <= since_ns);
        let from = at.checked_sub(1).map_or(self.start_ns, |at| cpu.occupants[at].0);
        cpu.holes.push((from, until_ns.max(from + 1)));
    }

    /// What can be said once all events are replayed.
    pub(crate) fn complete(&mut self) {
        self.settle();
        let usual_fault_ns = self.usual_fault_ns();
        self.threads.values_mut().for_each(|thread| thread.lay_out_faults(usual_fault_ns));
        self.held_back = self.held_back();
        self.saw_calls = self.threads.values().any(|thread| !thread.calls.is_empty());
        self.saw_timers = self.threads.values().any(|thread| !thread.timers.is_empty());
        let is_wake = |segment: &Segment| segment.state == ThreadState::Woken;
        self.saw_wakes = self.threads.values().any(|thread| thread.segments.iter().any(is_wake));
    }

    /// Takes what the missing events would have said out of the timelines.
    fn settle(&mut self) {
        for cpu in &mut self.cpus {
            cpu.holes = ascending(std::mem::take(&mut cpu.holes));
        }
        let of_any = self.missing();
        let on_cpu = |cpu: &mut Cpu| ascending(cpu.doubts.drain(..).chain(cpu.holes.iter().copied()).collect());
        let of_cpu: Vec<Vec<(u64, u64)>> = self.cpus.iter_mut().map(on_cpu).collect();
        for (tid, timeline) in &mut self.threads {
            if timeline.is_invisible() {
                self.invisible.push(*tid);
                let start_ns = self.start_ns;
                let unknown = Segment { start_ns, other: 0, cpu: 0, state: ThreadState::Unknown, flags: 0 };
                timeline.segments = vec![unknown].into();
                continue;
            }
            timeline.settle(&of_cpu, &of_any);
        }
        self.invisible.sort_unstable();
    }

    /// The median gap between faults that follow each other within 20 µs: little else can have happened
    /// between those, so that the gap is the fault. 1 µs where there are none.
    fn usual_fault_ns(&self) -> u64 {
        let gaps = self.threads.values().flat_map(|t| t.faults.windows(2)).map(|pair| pair[1] - pair[0]);
        let mut gaps: Vec<u64> = gaps.filter(|gap| *gap <= CLOSE_FAULTS_NS).collect();
        gaps.sort_unstable();
        taut_stats::rank(&gaps, 0.5).unwrap_or(1000)
    }
}
