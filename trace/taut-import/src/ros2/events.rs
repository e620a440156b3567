//! Which events of a trace are read, and which of their fields. One row an event; names that a field had in other versions
//! stand beside each other.
//!
//! `ros2:*` is ros2_tracing's from 1.0 (Foxy) to 8 (Lyrical and Rolling); `ros2_caret:*` CARET's, which says again what was
//! said before its recording began; `dds:*` of the instrumented DDS implementations. Kernel events are LTTng's.

use std::sync::LazyLock;

use taut_recording::Architecture;

use crate::ctf::Wanted;

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Init(Init),
    Ros(Ros),
    Kernel(Kernel),
    /// A system call begins, by its place in [`CALLS`]; or ends.
    Enter(usize),
    Exit(usize),
}

/// That something was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Init {
    Version,
    Node,
    Publisher,
    Subscription,
    SubscriptionObject,
    SubscriptionCallback,
    Service,
    ServiceCallback,
    Timer,
    TimerCallback,
    TimerNode,
    CallbackSymbol,
    BufferOfIpb,
    IpbOfSubscription,
    GroupOfTimer,
    GroupOfSubscription,
}

/// What happens to messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ros {
    CallbackStart,
    CallbackEnd,
    /// rclcpp, rcl and rmw say the same publish one after the other.
    RclcppPublish,
    RclPublish,
    RmwPublish,
    IntraPublish,
    /// The source timestamp of the publish that the thread is in.
    Stamp,
    Take,
    /// CARET: between take and callback.
    Dispatch,
    Enqueue,
    Dequeue,
}

/// What the kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    Switch,
    Waking,
    /// Like waking, where there is no waking.
    Wakeup,
    WakeupNew,
    Migrate,
    Fork,
    Exec,
    Exit,
    IrqEnter,
    IrqExit,
    SoftirqEnter,
    SoftirqExit,
    TimerVectorEnter,
    TimerVectorExit,
    Idle,
    Frequency,
    TimerStart,
    PageFault,
    /// What there was when the recording began.
    Process,
}

type Row = (&'static str, What, &'static [&'static str]);

/// By name without the provider, but for `dds:`.
const EVENTS: &[Row] = &[
    ("rcl_init", What::Init(Init::Version), &["context_handle", "init_timestamp", "version"]),
    ("rcl_node_init", What::Init(Init::Node), &["node_handle", "init_timestamp", "node_name", "namespace"]),
    (
        "rcl_publisher_init",
        What::Init(Init::Publisher),
        &["publisher_handle", "init_timestamp", "node_handle", "rmw_publisher_handle", "topic_name"],
    ),
    (
        "rcl_subscription_init",
        What::Init(Init::Subscription),
        &[
            "subscription_handle",
            "init_timestamp",
            "node_handle",
            "rmw_subscription_handle",
            "topic_name",
            "queue_depth",
        ],
    ),
    (
        "rclcpp_subscription_init",
        What::Init(Init::SubscriptionObject),
        &["subscription", "init_timestamp", "subscription_handle"],
    ),
    (
        "rclcpp_subscription_callback_added",
        What::Init(Init::SubscriptionCallback),
        &["callback", "init_timestamp", "subscription|subscription_handle"],
    ),
    (
        "rcl_service_init",
        What::Init(Init::Service),
        &["service_handle", "init_timestamp", "node_handle", "service_name"],
    ),
    (
        "rclcpp_service_callback_added",
        What::Init(Init::ServiceCallback),
        &["callback", "init_timestamp", "service_handle"],
    ),
    ("rcl_timer_init", What::Init(Init::Timer), &["timer_handle", "init_timestamp", "period"]),
    ("rclcpp_timer_callback_added", What::Init(Init::TimerCallback), &["callback", "init_timestamp", "timer_handle"]),
    ("rclcpp_timer_link_node", What::Init(Init::TimerNode), &["timer_handle", "init_timestamp", "node_handle"]),
    ("rclcpp_callback_register", What::Init(Init::CallbackSymbol), &["callback", "init_timestamp", "symbol"]),
    ("rclcpp_buffer_to_ipb", What::Init(Init::BufferOfIpb), &["buffer", "init_timestamp", "ipb"]),
    ("rclcpp_ipb_to_subscription", What::Init(Init::IpbOfSubscription), &["ipb", "init_timestamp", "subscription"]),
    (
        "callback_group_add_timer",
        What::Init(Init::GroupOfTimer),
        &["timer_handle", "init_timestamp", "callback_group_addr"],
    ),
    (
        "callback_group_add_subscription",
        What::Init(Init::GroupOfSubscription),
        &["subscription_handle", "init_timestamp", "callback_group_addr"],
    ),
    ("callback_start", What::Ros(Ros::CallbackStart), &["callback", "is_intra_process"]),
    ("callback_end", What::Ros(Ros::CallbackEnd), &["callback"]),
    ("rclcpp_publish", What::Ros(Ros::RclcppPublish), &["publisher_handle", "message"]),
    ("rcl_publish", What::Ros(Ros::RclPublish), &["publisher_handle", "message"]),
    ("rmw_publish", What::Ros(Ros::RmwPublish), &["rmw_publisher_handle", "message", "timestamp"]),
    ("rclcpp_intra_publish", What::Ros(Ros::IntraPublish), &["publisher_handle", "message"]),
    ("dds_write", What::Ros(Ros::Stamp), &["timestamp"]),
    ("dds_bind_addr_to_stamp", What::Ros(Ros::Stamp), &["source_stamp"]),
    ("dds:write", What::Ros(Ros::Stamp), &["timestamp"]),
    ("rmw_take", What::Ros(Ros::Take), &["rmw_subscription_handle", "source_timestamp", "taken"]),
    ("dispatch_subscription_callback", What::Ros(Ros::Dispatch), &["callback", "source_stamp|source_timestamp"]),
    ("rclcpp_ring_buffer_enqueue", What::Ros(Ros::Enqueue), &["buffer", "index", "overwritten"]),
    ("rclcpp_ring_buffer_dequeue", What::Ros(Ros::Dequeue), &["buffer", "index"]),
];

const KERNEL: &[Row] = &[
    (
        "sched_switch",
        What::Kernel(Kernel::Switch),
        &["prev_tid", "next_tid", "prev_state", "prev_prio", "next_prio", "prev_comm", "next_comm"],
    ),
    ("sched_waking", What::Kernel(Kernel::Waking), &["tid", "target_cpu", "prio"]),
    ("sched_wakeup", What::Kernel(Kernel::Wakeup), &["tid", "target_cpu", "prio"]),
    ("sched_wakeup_new", What::Kernel(Kernel::WakeupNew), &["tid", "target_cpu", "prio"]),
    ("sched_migrate_task", What::Kernel(Kernel::Migrate), &["tid", "orig_cpu", "dest_cpu"]),
    ("sched_process_fork", What::Kernel(Kernel::Fork), &["child_tid", "child_pid", "child_comm"]),
    ("sched_process_exec", What::Kernel(Kernel::Exec), &["old_tid"]),
    ("sched_process_exit", What::Kernel(Kernel::Exit), &["tid"]),
    ("irq_handler_entry", What::Kernel(Kernel::IrqEnter), &["irq"]),
    ("irq_handler_exit", What::Kernel(Kernel::IrqExit), &["irq"]),
    ("irq_softirq_entry", What::Kernel(Kernel::SoftirqEnter), &["vec"]),
    ("irq_softirq_exit", What::Kernel(Kernel::SoftirqExit), &["vec"]),
    ("x86_irq_vectors_local_timer_entry", What::Kernel(Kernel::TimerVectorEnter), &["vector"]),
    ("x86_irq_vectors_local_timer_exit", What::Kernel(Kernel::TimerVectorExit), &["vector"]),
    ("power_cpu_idle", What::Kernel(Kernel::Idle), &["state"]),
    ("power_cpu_frequency", What::Kernel(Kernel::Frequency), &["state", "cpu_id"]),
    ("timer_hrtimer_start", What::Kernel(Kernel::TimerStart), &["softexpires", "expires", "mode"]),
    ("x86_exceptions_page_fault_user", What::Kernel(Kernel::PageFault), &["address", "ip", "error_code"]),
    ("lttng_statedump_process_state", What::Kernel(Kernel::Process), &["tid", "pid", "name"]),
];

/// Whose numbers an imported recording's system calls have; a trace names them.
pub(super) const NUMBERED: Architecture = Architecture::X86_64;

/// System calls by name, with their numbers.
pub(super) static CALLS: LazyLock<Vec<(&str, u16)>> = LazyLock::new(|| NUMBERED.system_calls().collect());

/// What a call is about: a futex's address, a descriptor. Some pollers have neither.
const CALL_FIELDS: &[&str] = &["uaddr|fd|fildes|sockfd|epfd", "op"];
const RESULT: &[&str] = &["ret"];

/// The rows, for who reads a trace.
pub(super) struct Events;

impl Wanted for Events {
    fn event(&self, name: &str) -> Option<(u16, &'static [&'static str])> {
        let (rows, first, name) = match name.split_once(':') {
            Some(("ros2" | "ros2_caret", plain)) => (EVENTS, 0, plain),
            Some(("dds", _)) => (EVENTS, 0, name),
            Some(_) => return None,
            None => (KERNEL, EVENTS.len(), name),
        };
        if let Some(at) = rows.iter().position(|(known, ..)| *known == name) {
            return Some(((first + at) as u16, rows[at].2));
        }
        // LTTng says `compat_` of calls of 32-bit programs, whose numbers are others.
        let calls = EVENTS.len() + KERNEL.len();
        let call = |plain: &str| CALLS.iter().position(|(known, _)| *known == plain);
        if let Some(plain) = name.strip_prefix("syscall_entry_") {
            return Some(((calls + 2 * call(plain)?) as u16, CALL_FIELDS));
        }
        let plain = name.strip_prefix("syscall_exit_")?;
        Some(((calls + 2 * call(plain)? + 1) as u16, RESULT))
    }
}

/// What an event of that number says.
#[inline]
pub(super) fn what(number: u16) -> What {
    let number = usize::from(number);
    if let Some((_, what, _)) = EVENTS.get(number) {
        return *what;
    }
    if let Some((_, what, _)) = KERNEL.get(number - EVENTS.len()) {
        return *what;
    }
    let call = number - EVENTS.len() - KERNEL.len();
    if call.is_multiple_of(2) { What::Enter(call / 2) } else { What::Exit(call / 2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_found_by_its_name_and_its_number() {
        for (name, says, fields) in EVENTS {
            let full = if name.contains(':') { (*name).to_owned() } else { format!("ros2:{name}") };
            let (number, found) = Events.event(&full).unwrap();
            assert_eq!((what(number), found), (*says, *fields), "{full}");
        }
        for (name, says, _) in KERNEL {
            assert_eq!(what(Events.event(name).unwrap().0), *says, "{name}");
        }
        for (at, (name, _)) in CALLS.iter().enumerate() {
            assert_eq!(what(Events.event(&format!("syscall_entry_{name}")).unwrap().0), What::Enter(at));
            assert_eq!(what(Events.event(&format!("syscall_exit_{name}")).unwrap().0), What::Exit(at));
        }
        assert_eq!(Events.event("other:callback_start"), None);
        assert_eq!(Events.event("syscall_entry_unheard_of"), None);
    }
}
