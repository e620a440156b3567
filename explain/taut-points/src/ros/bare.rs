//! What takes messages and reports no callbacks: programs on rcl alone (rclc, Rust), actions of rclcpp, and subscriptions of which a
//! program of rclcpp takes messages by itself (`take`). What their threads do from a take until they wait or take again stands for a
//! callback; a message that is taken in a callback is one more that this callback has.

use foldhash::{HashMap, HashSet};
use taut_recording::{RosEvent, RosObject, RosObjectKind};

use super::events::{Events, MOST_NESTED};

/// The middleware's subscriptions and services, and rcl's timers, by process and address.
#[derive(Default)]
pub(super) struct Bare {
    all: HashSet<(i32, u64)>,
    /// Subscriptions of which callbacks take.
    read: HashSet<(i32, u64)>,
}

impl Bare {
    pub fn of(objects: &[RosObject], events: &Events) -> Bare {
        use RosObjectKind::*;
        let (mut report, mut python_actions) = (HashSet::default(), HashSet::default());
        for object in objects {
            match object.kind {
                SubscriptionCallback | ServiceCallback | TimerCallback | CallbackSymbol => {
                    _ = report.insert(object.pid)
                }
                NodeCallback => {
                    report.insert(object.pid);
                    if object.name.starts_with("action ") {
                        python_actions.insert(object.pid);
                    }
                }
                _ => {}
            }
        }
        let is_bare = |object: &&RosObject| match object.kind {
            Timer => !report.contains(&object.pid),
            Subscription | Service => {
                let is_action = object.name.contains("/_action/") && !python_actions.contains(&object.pid);
                !report.contains(&object.pid) || is_action
            }
            _ => false,
        };
        let address = |object: &RosObject| if object.kind == Timer { object.handle } else { object.other };
        let all = objects.iter().filter(is_bare).map(|object| (object.pid, address(object))).collect();
        let mut bare = Bare { all, ..Bare::default() };
        bare.add_taken_by_hand(objects, events);
        bare
    }

    /// Subscriptions that have a callback, which never runs although messages are taken.
    fn add_taken_by_hand(&mut self, objects: &[RosObject], events: &Events) {
        let mut begun: HashSet<(i32, u64)> = HashSet::default();
        // Whether in a callback.
        let mut taken: HashMap<(i32, u64), bool> = HashMap::default();
        // Callbacks that run, of one thread after the other, with what was taken in each.
        let mut stack: Vec<(u64, Vec<(i32, u64)>)> = Vec::new();
        let mut of: Option<u32> = None;
        events.by_thread(&mut |thread, pid, event, handle, args| {
            if of.replace(thread) != Some(thread) {
                stack.clear();
            }
            match event {
                RosEvent::CallbackStart => {
                    begun.insert((pid, handle));
                    if stack.len() < MOST_NESTED {
                        stack.push((handle, Vec::new()));
                    }
                }
                RosEvent::CallbackEnd => {
                    if let Some(at) = stack.iter().rposition(|(running, _)| *running == handle) {
                        taken.extend(stack.drain(at..).flat_map(|(_, takes)| takes).map(|of| (of, true)));
                    }
                }
                // In a callback once that ends: the end of one may be lost, or it was left by an exception.
                RosEvent::Take if args[2] != 0 => {
                    taken.entry((pid, handle)).or_default();
                    if let Some((_, takes)) = stack.last_mut() {
                        takes.push((pid, handle));
                    }
                }
                _ => {}
            }
        });
        let all_of = |kind: RosObjectKind| objects.iter().filter(move |object| object.kind == kind);
        let of_rcl: HashMap<(i32, u64), u64> = all_of(RosObjectKind::SubscriptionObject)
            .map(|object| ((object.pid, object.handle), object.owner))
            .collect();
        let mut has_begun: HashMap<(i32, u64), bool> = HashMap::default();
        for callback in all_of(RosObjectKind::SubscriptionCallback) {
            let subscription = of_rcl.get(&(callback.pid, callback.owner)).copied().unwrap_or(callback.owner);
            let has_begun = has_begun.entry((callback.pid, subscription)).or_default();
            *has_begun |= begun.contains(&(callback.pid, callback.handle));
        }
        // An address is used again: of all subscriptions that had it none must have run.
        let mut never_ran: HashMap<(i32, u64), bool> = HashMap::default();
        for subscription in all_of(RosObjectKind::Subscription) {
            let is_never_run = has_begun.get(&(subscription.pid, subscription.handle)) == Some(&false);
            *never_ran.entry((subscription.pid, subscription.other)).or_insert(true) &= is_never_run;
        }
        for (rmw, _) in never_ran.into_iter().filter(|(_, is_never_run)| *is_never_run) {
            match taken.get(&rmw) {
                Some(true) => _ = self.read.insert(rmw),
                Some(false) => _ = self.all.insert(rmw),
                None => {}
            }
        }
    }

    pub fn contains(&self, process: i32, address: u64) -> bool {
        self.all.contains(&(process, address))
    }

    /// Whether callbacks take messages of this subscription.
    pub fn is_read(&self, process: i32, address: u64) -> bool {
        self.read.contains(&(process, address))
    }
}

/// What a service or topic of an action is for: "action /turn goal".
pub(super) fn action_words(name: &str) -> Option<String> {
    let (action, what) = name.split_once("/_action/")?;
    let what = match what {
        "send_goal" => "goal",
        "cancel_goal" => "cancel",
        "get_result" => "get result",
        other => other,
    };
    Some(format!("action {action} {what}"))
}
