/* Public C functions of rcl and rmw whose arguments hold what no tracepoint does: sequence numbers and times of arrival, the
 * lateness of timers, waiting, and the end of handles. Each calls the real function and returns what that returns.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TAUT_ROS2_CALLS_H
#define TAUT_ROS2_CALLS_H

/* rmw_ret_t, rcl_ret_t. */
enum { RET_OK = 0, RET_ERROR = 1 };

#define RCL "librcl.so"

/* The beginning of rmw_message_info_t, which is the same from Humble to Rolling (rmw/types.h). */
typedef struct {
  int64_t source_timestamp, received_timestamp;
  uint64_t publication_sequence_number, reception_sequence_number;
  const char *gid_implementation;
  uint64_t gid[2];
} message_info_t;

/* Defines `name`: calls the real function into `result`; `before` and `after` are what is recorded. */
#define CALL(name, library, types, names, before, after)                                      \
  EXPORT int32_t name types;                                                                  \
  EXPORT int32_t name types {                                                                 \
    REAL(kept, #name, library, name);                                                         \
    int32_t(*next) types;                                                                     \
    int32_t result;                                                                           \
    void *address = real_of(&kept, CALLER);                                                   \
    memcpy(&next, &address, sizeof next);                                                     \
    if (!next) return RET_ERROR; /* Its caller was linked to one: this does not happen. */    \
    before;                                                                                   \
    result = next names;                                                                      \
    after;                                                                                    \
    return result;                                                                            \
  }

#define RMW "librmw_implementation.so"

static inline void add_take_info(int32_t result, const void *subscription, const bool *taken, const message_info_t *info) {
  if (result != RET_OK || !taken || !*taken || !info) return;
  add_event(TAKE_INFO, subscription, (uint64_t)info->received_timestamp, info->publication_sequence_number, info->gid[0] ^ info->gid[1]);
}

CALL(rmw_take_with_info, RMW, (const void *subscription, void *message, bool *taken, message_info_t *info, void *allocation),
     (subscription, message, taken, info, allocation), (void)0, add_take_info(result, subscription, taken, info))
CALL(rmw_take_serialized_message_with_info, RMW,
     (const void *subscription, void *message, bool *taken, message_info_t *info, void *allocation),
     (subscription, message, taken, info, allocation), (void)0, add_take_info(result, subscription, taken, info))

/* No middleware has a tracepoint where it lends a message (ROS_DISABLE_LOANED_MESSAGES=0); one that got it would have said so. */
static __thread uint32_t takes;
CALL(rmw_take_loaned_message_with_info, RMW,
     (const void *subscription, void **message, bool *taken, message_info_t *info, void *allocation),
     (subscription, message, taken, info, allocation), const uint32_t takes_before = takes,
     if (result == RET_OK && taken && *taken && info && takes_before == takes)
       add_event(TAKE, subscription, N(*message), (uint64_t)info->source_timestamp, true);
     add_take_info(result, subscription, taken, info))

/* rcl_timer_call calls rcl_timer_call_with_info where there is one (Jazzy on). */
static __thread uint32_t timers_called;
CALL(rcl_timer_call_with_info, RCL, (void *timer, int64_t *due_and_called), (timer, due_and_called), (void)0,
     if (result == RET_OK && !taut_is_off_()) {
       timers_called++;
       keep_timer(timer);
       add_event(TIMER_CALL, timer, (uint64_t)due_and_called[0], (uint64_t)due_and_called[1], 0);
     })
CALL(rcl_timer_call, RCL, (void *timer), (timer), const uint32_t called_before = timers_called,
     if (result == RET_OK && called_before == timers_called && !taut_is_off_()) {
       keep_timer(timer);
       add_event(TIMER_CALL, timer, 0, 0, 0);
     })

CALL(rcl_wait, RCL, (void *wait_set, int64_t timeout_ns), (wait_set, timeout_ns), add_event(WAIT, wait_set, (uint64_t)timeout_ns, 0, 0),
     add_event(WAIT_END, wait_set, (uint64_t)(int64_t)result, 0, 0))

/* Publishing within a process begins with this call in rclcpp, and its tracepoint comes after it and a search for subscriptions, 10 us
 * later in a thread whose caches are cold. With no other event of the thread in between, the event has the time of the call. */
static __thread struct {
  const void *publisher;
  moment_t when;
} counted;
static inline void count_subscriptions(const void *publisher) {
  if (taut_is_off_()) return;
  counted.publisher = publisher;
  counted.when = moment(0);
}
CALL(rcl_publisher_get_subscription_count, RCL, (const void *publisher, size_t *count), (publisher, count),
     count_subscriptions(publisher), (void)0)

/* Before the real function: afterwards the address may be another thread's already. */
CALL(rcl_node_fini, RCL, (void *node), (node), add_event(GONE, node, 0, 0, 0), (void)0)
CALL(rcl_publisher_fini, RCL, (void *publisher, void *node), (publisher, node), add_event(GONE, publisher, 0, 0, 0), (void)0)
CALL(rcl_subscription_fini, RCL, (void *subscription, void *node), (subscription, node), add_event(GONE, subscription, 0, 0, 0), (void)0)
CALL(rcl_service_fini, RCL, (void *service, void *node), (service, node), add_event(GONE, service, 0, 0, 0), (void)0)
CALL(rcl_client_fini, RCL, (void *client, void *node), (client, node), add_event(GONE, client, 0, 0, 0), (void)0)
CALL(rcl_timer_fini, RCL, (void *timer), (timer), if (!forget_timer(timer)) add_event(GONE, timer, 0, 0, 0), (void)0)

#endif
