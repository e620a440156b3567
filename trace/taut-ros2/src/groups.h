/* Which callback group each entity of an rclcpp node is given to: no tracepoint says it.
 *
 * rclcpp makes an entity and then adds it to its group, on one thread: NodeTopics, NodeServices and NodeTimers call
 * CallbackGroup's add_… with a std::shared_ptr, which is passed as the address of two pointers. The entity's handle is what the
 * tracepoints of this thread named before (a timer's: the next one). The functions have the same names from Humble to Kilted;
 * where they are not called, groups are not known.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TAUT_ROS2_GROUPS_H
#define TAUT_ROS2_GROUPS_H

#define RCLCPP "librclcpp.so"

/* Of this thread: what was made last and is in no group yet; the group that the next linked timer is of. */
static __thread struct {
  const void *subscription, *object, *service, *client, *timer_group;
} made;

static inline void make_subscription(const void *subscription, const void *object) {
  made.subscription = subscription;
  made.object = object;
}

TAUT_COLD static void group_made(const void **handle, const void *group) {
  if (*handle) add_object(GROUP_OF_SUBSCRIPTION, *handle, group, NULL, 0, NULL, NULL);
  *handle = NULL;
}

TAUT_COLD static void group_timer(const void *timer) {
  if (made.timer_group) add_object(GROUP_OF_TIMER, timer, made.timer_group, NULL, 0, NULL, NULL);
  made.timer_group = NULL;
}

/* The real function comes last, so that an exception of it meets no frame of C. */
#define ADD_TO_GROUP(symbol, what)                                 \
  EXPORT void symbol(void *group, const void *const *entity);      \
  EXPORT void symbol(void *group, const void *const *entity) {     \
    REAL(kept, #symbol, RCLCPP, symbol);                           \
    void (*next)(void *, const void *const *);                     \
    void *address = real_of(&kept, CALLER);                        \
    memcpy(&next, &address, sizeof next);                          \
    what;                                                          \
    if (next) next(group, entity);                                 \
  }

/* A subscription may be added that was made elsewhere: then it is another object. */
ADD_TO_GROUP(_ZN6rclcpp13CallbackGroup16add_subscriptionESt10shared_ptrINS_16SubscriptionBaseEE,
             if (*entity == made.object) group_made(&made.subscription, group))
ADD_TO_GROUP(_ZN6rclcpp13CallbackGroup11add_serviceESt10shared_ptrINS_11ServiceBaseEE, group_made(&made.service, group))
ADD_TO_GROUP(_ZN6rclcpp13CallbackGroup10add_clientESt10shared_ptrINS_10ClientBaseEE, group_made(&made.client, group))
ADD_TO_GROUP(_ZN6rclcpp13CallbackGroup9add_timerESt10shared_ptrINS_9TimerBaseEE, made.timer_group = group)

#endif
