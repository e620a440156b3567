//! What takes messages and reports no callbacks: programs on rcl alone (rclc, Rust), and actions of rclcpp. What their threads do
//! from a take until they wait or take again stands for a callback.

use foldhash::HashSet;
use taut_recording::{RosObject, RosObjectKind};

/// The middleware's subscriptions and services, and rcl's timers, by process and address.
#[derive(Default)]
pub(super) struct Bare(HashSet<(i32, u64)>);

impl Bare {
    pub fn of(objects: &[RosObject]) -> Bare {
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
        Bare(objects.iter().filter(is_bare).map(|object| (object.pid, address(object))).collect())
    }

    pub fn contains(&self, process: i32, address: u64) -> bool {
        self.0.contains(&(process, address))
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
