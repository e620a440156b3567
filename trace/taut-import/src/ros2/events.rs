//! Which events of a trace are read, and which of their fields. One row an event; names that a field had in other versions
//! stand beside each other.
//!
//! `ros2:*` is ros2_tracing's from 1.0 (Foxy) to 8 (Lyrical and Rolling); `ros2_caret:*` CARET's, which says again what was
//! said before its recording began; `dds:*` of the instrumented DDS implementations. Kernel events are LTTng's.

use std::sync::LazyLock;

use taut_recording::{Architecture, RosEvent, RosObjectKind};

use crate::ctf::Wanted;

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// That something was made.
    Init(RosObjectKind),
    /// What happens to messages.
    Ros(RosEvent),
    Kernel(Kernel),
    /// A system call begins, by its place in [`CALLS`]; or ends.
    Enter(usize),
    Exit(usize),
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
    ("rcl_init", What::Init(RosObjectKind::Context), &["context_handle", "init_timestamp", "version"]),
    (
        "rcl_node_init",
        What::Init(RosObjectKind::Node),
        &["node_handle", "init_timestamp", "node_name", "namespace", "rmw_handle"],
    ),
    (
        "rcl_publisher_init",
        What::Init(RosObjectKind::Publisher),
        &["publisher_handle", "init_timestamp", "node_handle", "rmw_publisher_handle", "topic_name", "queue_depth"],
    ),
    (
        "rcl_subscription_init",
        What::Init(RosObjectKind::Subscription),
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
        What::Init(RosObjectKind::SubscriptionObject),
        &["subscription", "init_timestamp", "subscription_handle"],
    ),
    (
        "rclcpp_subscription_callback_added",
        What::Init(RosObjectKind::SubscriptionCallback),
        &["callback", "init_timestamp", "subscription|subscription_handle"],
    ),
    (
        "rcl_service_init",
        What::Init(RosObjectKind::Service),
        &["service_handle", "init_timestamp", "node_handle", "service_name"],
    ),
    (
        "rclcpp_service_callback_added",
        What::Init(RosObjectKind::ServiceCallback),
        &["callback", "init_timestamp", "service_handle"],
    ),
    ("rcl_timer_init", What::Init(RosObjectKind::Timer), &["timer_handle", "init_timestamp", "period"]),
    (
        "rclcpp_timer_callback_added",
        What::Init(RosObjectKind::TimerCallback),
        &["callback", "init_timestamp", "timer_handle"],
    ),
    (
        "rclcpp_timer_link_node",
        What::Init(RosObjectKind::TimerNode),
        &["timer_handle", "init_timestamp", "node_handle"],
    ),
    ("rclcpp_callback_register", What::Init(RosObjectKind::CallbackSymbol), &["callback", "init_timestamp", "symbol"]),
    ("rclcpp_buffer_to_ipb", What::Init(RosObjectKind::BufferOfIpb), &["buffer", "init_timestamp", "ipb"]),
    (
        "rclcpp_ipb_to_subscription",
        What::Init(RosObjectKind::IpbOfSubscription),
        &["ipb", "init_timestamp", "subscription"],
    ),
    (
        "callback_group_add_timer",
        What::Init(RosObjectKind::GroupOfTimer),
        &["timer_handle", "init_timestamp", "callback_group_addr"],
    ),
    (
        "callback_group_add_subscription",
        What::Init(RosObjectKind::GroupOfSubscription),
        &["subscription_handle", "init_timestamp", "callback_group_addr"],
    ),
    ("callback_start", What::Ros(RosEvent::CallbackStart), &["callback", "is_intra_process"]),
    ("callback_end", What::Ros(RosEvent::CallbackEnd), &["callback"]),
    ("rclcpp_publish", What::Ros(RosEvent::RclcppPublish), &["publisher_handle", "message"]),
    ("rcl_publish", What::Ros(RosEvent::RclPublish), &["publisher_handle", "message"]),
    ("rmw_publish", What::Ros(RosEvent::RmwPublish), &["rmw_publisher_handle", "message", "timestamp"]),
    ("rclcpp_intra_publish", What::Ros(RosEvent::IntraPublish), &["publisher_handle", "message"]),
    ("dds_write", What::Ros(RosEvent::SourceStamp), &["timestamp"]),
    ("dds_bind_addr_to_stamp", What::Ros(RosEvent::SourceStamp), &["source_stamp"]),
    ("dds:write", What::Ros(RosEvent::SourceStamp), &["timestamp"]),
    ("rmw_take", What::Ros(RosEvent::Take), &["rmw_subscription_handle", "source_timestamp", "taken", "message"]),
    ("dispatch_subscription_callback", What::Ros(RosEvent::Dispatch), &["callback", "source_stamp|source_timestamp"]),
    ("rclcpp_ring_buffer_enqueue", What::Ros(RosEvent::Enqueue), &["buffer", "index", "overwritten"]),
    ("rclcpp_ring_buffer_dequeue", What::Ros(RosEvent::Dequeue), &["buffer", "index"]),
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
