//! Flow events, and the slices that they bind to: the innermost that encloses them, or the next that begins.

use std::collections::HashMap;

/// Flow events that are kept, 32 bytes each.
pub const MOST: usize = 8_000_000;
/// "No slice."
const NONE: u32 = u32::MAX;
/// In a flow's name: it binds to the next slice.
const NEXT: u32 = 1 << 31;

/// All flow events of a trace, by thread.
#[derive(Default)]
pub struct Flows {
    threads: HashMap<u32, OfThread>,
    count: usize,
    /// Beyond [`MOST`].
    pub left_out: u64,
}

#[derive(Default)]
struct OfThread {
    /// In order of time once sorted.
    flows: Vec<Flow>,
    /// Places of those that bind to the next slice: who begins a slice must not walk over all others.
    next: Vec<u32>,
}

/// One flow event, compact: millions of them must fit.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub time_ns: u64,
    pub id: u64,
    /// How far its slice is: the slice's length, or how much later it begins.
    distance: u64,
    /// Name of its slice, or [`NONE`].
    slice: u32,
    /// Its own name's number, with [`NEXT`].
    name: u32,
}

/// What a flow event binds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    Enclosing,
    /// The next slice to begin: what ends a flow unless it says otherwise.
    Next,
}

impl Flow {
    /// `name` is below 2^31.
    pub fn new(time_ns: u64, id: u64, name: u32, binding: Binding) -> Flow {
        let name = if binding == Binding::Next { name | NEXT } else { name };
        Flow { time_ns, id, distance: u64::MAX, slice: NONE, name }
    }

    /// The name of the slice that it is bound to.
    pub fn slice(&self) -> Option<u32> {
        Some(self.slice).filter(|slice| *slice != NONE)
    }

    /// Its own name.
    pub fn name(&self) -> u32 {
        self.name & !NEXT
    }

    fn binding(&self) -> Binding {
        if self.name & NEXT != 0 { Binding::Next } else { Binding::Enclosing }
    }

    fn bind(&mut self, name: u32, distance: u64) {
        if self.slice == NONE || distance < self.distance {
            (self.slice, self.distance) = (name, distance);
        }
    }
}

impl Flows {
    pub fn add(&mut self, thread: u32, flow: Flow) {
        if self.count >= MOST {
            self.left_out += 1;
            return;
        }
        self.count += 1;
        self.threads.entry(thread).or_default().flows.push(flow);
    }

    /// To be called once, between the two passes.
    pub fn sort(&mut self) {
        for OfThread { flows, next } in self.threads.values_mut() {
            flows.sort_unstable_by_key(|flow| (flow.time_ns, flow.id));
            next.extend((0..).zip(&*flows).filter(|(_, flow)| flow.binding() == Binding::Next).map(|(at, _)| at));
        }
    }

    /// A slice begins: flows that wait for one bind to it, unless one before it did.
    pub fn begins(&mut self, thread: u32, name: u32, time_ns: u64) {
        let Some(OfThread { flows, next }) = self.threads.get_mut(&thread) else { return };
        let until = next.partition_point(|at| flows[*at as usize].time_ns <= time_ns);
        for at in next[..until].iter().rev() {
            let flow = &mut flows[*at as usize];
            let distance = time_ns - flow.time_ns;
            // One that has a nearer slice: those before it have one that is no farther than that.
            if flow.slice != NONE && flow.distance <= distance {
                break;
            }
            flow.bind(name, distance);
        }
    }

    /// A slice is known from its begin to its end: flows within it bind to it, unless a shorter one encloses them.
    pub fn covers(&mut self, thread: u32, name: u32, begin_ns: u64, end_ns: u64) {
        let Some(OfThread { flows, .. }) = self.threads.get_mut(&thread) else { return };
        let from = flows.partition_point(|flow| flow.time_ns < begin_ns);
        let within = flows[from..].iter_mut().take_while(|flow| flow.time_ns <= end_ns);
        for flow in within.filter(|flow| flow.binding() == Binding::Enclosing) {
            flow.bind(name, end_ns - begin_ns);
        }
    }

    /// By thread, each in order of time.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Flow)> {
        self.threads.iter().flat_map(|(thread, of)| of.flows.iter().map(|flow| (*thread, flow)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(flows: &Flows) -> Vec<Option<u32>> {
        flows.iter().map(|(_, flow)| flow.slice()).collect()
    }

    fn of(binding: Binding, times: &[u64]) -> Flows {
        let mut flows = Flows::default();
        times.iter().for_each(|time_ns| flows.add(0, Flow::new(*time_ns, 1, 0, binding)));
        flows.sort();
        flows
    }

    #[test]
    fn the_innermost_slice_is_bound_in_whatever_order_slices_come() {
        for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1]] {
            let mut flows = of(Binding::Enclosing, &[5, 15, 95]);
            for slice in order {
                let (begin_ns, end_ns) = [(0, 0), (0, 90), (10, 20), (15, 15)][slice as usize];
                flows.covers(0, slice, begin_ns, end_ns);
            }
            assert_eq!(bound(&flows), [Some(1), Some(3), None]);
        }
    }

    #[test]
    fn an_end_binds_to_the_slice_that_begins_next() {
        for order in [[1, 2, 3], [3, 2, 1], [2, 1, 3]] {
            let mut flows = of(Binding::Next, &[5, 6, 15, 95]);
            for slice in order {
                flows.begins(0, slice, [0, 4, 10, 20][slice as usize]);
            }
            assert_eq!(bound(&flows), [Some(2), Some(2), Some(3), None]);
        }
    }

    #[test]
    fn threads_do_not_mix() {
        let mut flows = of(Binding::Enclosing, &[5]);
        flows.covers(1, 9, 0, 10);
        assert_eq!(bound(&flows), [None]);
    }
}
