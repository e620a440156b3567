/* libtaut_ros2.so: ROS 2 events of an unmodified node, for LD_PRELOAD.
 *
 * It defines the functions that rcl, rmw and rclcpp call at their tracepoints (those of libtracetools.so, Humble to Rolling),
 * writes their arguments into the session's rings (docs/reference/protocol.md, "ROS 2 events"), and passes each call on to the real
 * function, so that LTTng goes on tracing. Without a session a call costs a load, a branch and the real call.
 *
 * In C and not in Rust, because
 *  - it is linked without any library: it has no NEEDED entry and no symbol versions, so the C library of the process serves,
 *    whichever that is (glibc from 2.17 on). Rust's standard library would bring libgcc_s and the symbol versions of the machine
 *    that built it into each process of a launch;
 *  - the producer's side is include/taut.h, which the conformance tests hold against the protocol;
 *  - the functions have C++ names, and one has other arguments in other releases.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _DEFAULT_SOURCE 1
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Before glibc 2.33 these two are no symbols of the C library but small functions that the linker adds. */
static int ros2_fstat(int fd, struct stat *file) { return (int)syscall(SYS_fstat, fd, file); }
static int ros2_stat(const char *path, struct stat *file) { return (int)syscall(SYS_newfstatat, AT_FDCWD, path, file, 0); }
#define fstat(fd, file) ros2_fstat(fd, file)
#define stat(path, file) ros2_stat(path, file)
/* Before glibc 2.34 these are in libpthread, which a shell or a tool that is preloaded too may lack: such a process keeps no ring.
 * The handlers of fork are never taken back: a preloaded object stays. */
#pragma weak pthread_key_create
#pragma weak pthread_setspecific
#pragma weak pthread_sigmask
static int ros2_register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weakref("__register_atfork")));
#define pthread_atfork(before, parent, child) (ros2_register_atfork ? ros2_register_atfork(before, parent, child, NULL) : -1)

/* A state and a ring file of its own, beside those of the node's stamps. */
#define TAUT_SHARED static
#define TAUT_CONTENT 1
#include "taut.h"

#include "events.h"
#include "objects.h"
#include "real.h"

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)
#define TRACETOOLS "libtracetools.so"
#define N(pointer) ((uint64_t)(uintptr_t)(pointer))

/* RMW_GID_STORAGE_SIZE is 24 in Humble and 16 from Iron on; what Humble has behind the first 16 bytes is zeros. */
static uint64_t folded(const uint8_t *gid) {
  uint64_t halves[2] = {0, 0};
  if (gid) memcpy(halves, gid, sizeof halves);
  return halves[0] ^ halves[1];
}

#include "calls.h"
#include "groups.h"
#include "python.h"
#include "services.h"

/* --- tracepoints ---------------------------------------------------------------------------------------- */

/* A tracepoint has three names, the last two from Iron on: the call; whether it is enabled; the call after that question. `types`
 * and `names` are its arguments, `what` is done with them. The real `do` is called only if the real `enabled` is true. */
#define TRACEPOINT(event, types, names, what)                                                                              \
  EXPORT bool ros_trace_enabled_##event(void);                                                                             \
  EXPORT void ros_trace_##event types;                                                                                     \
  EXPORT void ros_trace_do_##event types;                                                                                  \
  static inline bool is_enabled_##event(const void *caller) {                                                              \
    REAL(kept, "ros_trace_enabled_" #event, TRACETOOLS, ros_trace_enabled_##event);                                        \
    bool (*enabled)(void);                                                                                                 \
    void *address = real_of(&kept, caller);                                                                                \
    memcpy(&enabled, &address, sizeof enabled);                                                                            \
    return enabled && enabled();                                                                                           \
  }                                                                                                                        \
  EXPORT bool ros_trace_enabled_##event(void) { return !taut_is_off_() || is_enabled_##event(CALLER); }                    \
  EXPORT void ros_trace_##event types {                                                                                    \
    REAL(kept, "ros_trace_" #event, TRACETOOLS, ros_trace_##event);                                                        \
    void(*next) types;                                                                                                     \
    void *address;                                                                                                         \
    what;                                                                                                                  \
    address = real_of(&kept, CALLER);                                                                                      \
    memcpy(&next, &address, sizeof next);                                                                                  \
    if (next) next names;                                                                                                  \
  }                                                                                                                        \
  EXPORT void ros_trace_do_##event types {                                                                                 \
    REAL(kept, "ros_trace_do_" #event, TRACETOOLS, ros_trace_do_##event);                                                  \
    void(*next) types;                                                                                                     \
    void *address;                                                                                                         \
    what;                                                                                                                  \
    address = real_of(&kept, CALLER);                                                                                      \
    memcpy(&next, &address, sizeof next);                                                                                  \
    if (next && is_enabled_##event(CALLER)) next names;                                                                    \
  }

#define P const void *

/* The process' first use of ROS: what takes the loader's lock is done here. */
TAUT_COLD static void add_context(P context, P caller) {
  look_up_all(caller);
  add_object(CONTEXT, context, NULL, NULL, 0, NULL, NULL);
  if (!taut_is_off_()) report_python_callbacks();
}

TRACEPOINT(rcl_init, (P context), (context), add_context(context, CALLER))
TRACEPOINT(rcl_node_init, (P node, P rmw, const char *name, const char *space), (node, rmw, name, space),
           add_object(NODE, node, NULL, rmw, 0, name, space))
TRACEPOINT(rmw_publisher_init, (P rmw, const uint8_t *gid), (rmw, gid), add_object(RMW_PUBLISHER, rmw, NULL, NULL, folded(gid), NULL, NULL))
TRACEPOINT(rcl_publisher_init, (P publisher, P node, P rmw, const char *topic, size_t depth), (publisher, node, rmw, topic, depth),
           add_object(PUBLISHER, publisher, node, rmw, depth, topic, NULL))
TRACEPOINT(rmw_subscription_init, (P rmw, const uint8_t *gid), (rmw, gid),
           add_object(RMW_SUBSCRIPTION, rmw, NULL, NULL, folded(gid), NULL, NULL))
TRACEPOINT(rcl_subscription_init, (P subscription, P node, P rmw, const char *topic, size_t depth),
           (subscription, node, rmw, topic, depth), add_object(SUBSCRIPTION, subscription, node, rmw, depth, topic, NULL))
TRACEPOINT(rclcpp_subscription_init, (P subscription, P object), (subscription, object),
           (make_subscription(subscription, object), add_object(SUBSCRIPTION_OBJECT, object, subscription, NULL, 0, NULL, NULL)))
TRACEPOINT(rclcpp_subscription_callback_added, (P object, P callback), (object, callback),
           add_object(SUBSCRIPTION_CALLBACK, callback, object, NULL, 0, NULL, NULL))
TRACEPOINT(rcl_service_init, (P service, P node, P rmw, const char *name), (service, node, rmw, name),
           add_object(SERVICE, service, node, rmw, 0, name, NULL))
TRACEPOINT(rclcpp_service_callback_added, (P service, P callback), (service, callback),
           (made.service = service, add_object(SERVICE_CALLBACK, callback, service, NULL, 0, NULL, NULL)))
TRACEPOINT(rcl_client_init, (P client, P node, P rmw, const char *name), (client, node, rmw, name),
           (made.client = client, add_object(CLIENT, client, node, rmw, 0, name, NULL)))
TRACEPOINT(rmw_client_init, (P rmw, const uint8_t *gid), (rmw, gid), add_object(RMW_CLIENT, rmw, NULL, NULL, folded(gid), NULL, NULL))
TRACEPOINT(rcl_timer_init, (P timer, int64_t period), (timer, period), add_timer(timer, period))
TRACEPOINT(rclcpp_timer_callback_added, (P timer, P callback), (timer, callback),
           (keep_timer(timer), add_object(TIMER_CALLBACK, callback, timer, NULL, 0, NULL, NULL)))
TRACEPOINT(rclcpp_timer_link_node, (P timer, P node), (timer, node),
           (keep_timer(timer), add_object(TIMER_NODE, timer, node, NULL, 0, NULL, NULL), group_timer(timer)))
TRACEPOINT(rclcpp_callback_register, (P callback, const char *symbol), (callback, symbol),
           add_object(CALLBACK_SYMBOL, callback, NULL, NULL, 0, symbol, NULL))
TRACEPOINT(rclcpp_buffer_to_ipb, (P buffer, P ipb), (buffer, ipb), add_object(BUFFER_OF_IPB, buffer, ipb, NULL, 0, NULL, NULL))
TRACEPOINT(rclcpp_ipb_to_subscription, (P ipb, P object), (ipb, object), add_object(IPB_OF_SUBSCRIPTION, ipb, object, NULL, 0, NULL, NULL))
TRACEPOINT(rclcpp_construct_ring_buffer, (P buffer, uint64_t capacity), (buffer, capacity),
           add_object(RING_BUFFER, buffer, NULL, NULL, capacity, NULL, NULL))
TRACEPOINT(rcl_lifecycle_state_machine_init, (P node, P machine), (node, machine),
           add_object(STATE_MACHINE, machine, node, NULL, 0, NULL, NULL))
TRACEPOINT(rcl_lifecycle_transition, (P machine, const char *start, const char *goal), (machine, start, goal),
           add_object(TRANSITION, machine, NULL, NULL, 0, start, goal))

/* Which inputs an output follows from, as the program states it: each pair is one link. */
TAUT_COLD static void add_links(const void **subscriptions, size_t inputs, const void **publishers, size_t outputs, uint64_t how) {
  size_t i, o;
  for (o = 0; o < outputs; o++)
    for (i = 0; i < inputs; i++) add_object(LINK, publishers[o], subscriptions[i], NULL, how, NULL, NULL);
}
TRACEPOINT(message_link_partial_sync, (P * subs, size_t inputs, P *pubs, size_t outputs), (subs, inputs, pubs, outputs),
           add_links(subs, inputs, pubs, outputs, 1))
TRACEPOINT(message_link_periodic_async, (P * subs, size_t inputs, P *pubs, size_t outputs), (subs, inputs, pubs, outputs),
           add_links(subs, inputs, pubs, outputs, 2))

static inline void add_intra_publish(P publisher, P message) {
  if (counted.publisher == publisher) add_event_as_of(counted.when, INTRA_PUBLISH, publisher, N(message), 0, 0);
  else add_event(INTRA_PUBLISH, publisher, N(message), 0, 0);
}

TRACEPOINT(callback_start, (P callback, bool is_intra), (callback, is_intra), add_event(CALLBACK_START, callback, is_intra, 0, 0))
TRACEPOINT(callback_end, (P callback), (callback), add_event(CALLBACK_END, callback, 0, 0, 0))
TRACEPOINT(rclcpp_publish, (P publisher, P message), (publisher, message), add_event(RCLCPP_PUBLISH, publisher, N(message), 0, 0))
TRACEPOINT(rclcpp_intra_publish, (P publisher, P message), (publisher, message), add_intra_publish(publisher, message))
TRACEPOINT(rmw_take, (P rmw, P message, int64_t stamp, bool taken), (rmw, message, stamp, taken),
           (takes++, add_event(TAKE, rmw, N(message), (uint64_t)stamp, taken)))
TRACEPOINT(rcl_take, (P message), (message), add_event(RCL_TAKE, NULL, N(message), 0, 0))
TRACEPOINT(rclcpp_take, (P message), (message), add_event(RCLCPP_TAKE, NULL, N(message), 0, 0))
TRACEPOINT(rclcpp_executor_get_next_ready, (void), (), add_event(NEXT_READY, NULL, 0, 0, 0))
TRACEPOINT(rclcpp_executor_wait_for_work, (int64_t timeout), (timeout), add_event(WAIT_FOR_WORK, NULL, (uint64_t)timeout, 0, 0))
TRACEPOINT(rclcpp_executor_execute, (P handle), (handle), add_event(EXECUTE, handle, 0, 0, 0))
TRACEPOINT(rclcpp_ring_buffer_enqueue, (P buffer, uint64_t index, uint64_t size, bool overwritten), (buffer, index, size, overwritten),
           add_event(ENQUEUE, buffer, index, overwritten, 0))
TRACEPOINT(rclcpp_ring_buffer_dequeue, (P buffer, uint64_t index, uint64_t size), (buffer, index, size),
           add_event(DEQUEUE, buffer, index, 0, 0))
TRACEPOINT(rclcpp_ring_buffer_clear, (P buffer), (buffer), add_event(BUFFER_CLEAR, buffer, 0, 0, 0))
TRACEPOINT(rmw_send_request, (P rmw, P request, int64_t number), (rmw, request, number),
           (services_said++, add_event(SEND_REQUEST, rmw, (uint64_t)number, 0, 0)))
TRACEPOINT(rmw_take_request, (P rmw, P request, const uint8_t *gid, int64_t number, bool taken), (rmw, request, gid, number, taken),
           (services_said++, add_event(TAKE_REQUEST, rmw, (uint64_t)number, folded(gid), taken)))
TRACEPOINT(rmw_send_response, (P rmw, P response, const uint8_t *gid, int64_t number, int64_t stamp),
           (rmw, response, gid, number, stamp), (services_said++, add_event(SEND_RESPONSE, rmw, (uint64_t)number, folded(gid), (uint64_t)stamp)))
TRACEPOINT(rmw_take_response, (P rmw, P response, int64_t number, int64_t stamp, bool taken), (rmw, response, number, stamp, taken),
           (services_said++, add_event(TAKE_RESPONSE, rmw, (uint64_t)number, (uint64_t)stamp, taken)))

/* rmw_publish has the message alone up to Iron, and publisher, message and source timestamp from Jazzy on. Iron and Jazzy export
 * the same symbols, so the call decides: rcl_publish came before it on this thread with the same message. */
static __thread const void *published;
TRACEPOINT(rcl_publish, (P publisher, P message), (publisher, message),
           (add_event(RCL_PUBLISH, publisher, N(message), 0, 0), published = message))

EXPORT bool ros_trace_enabled_rmw_publish(void);
enum { ABI_UNKNOWN, ABI_MESSAGE, ABI_PUBLISHER };
static int publish_abi; /* atomic */

TAUT_COLD static int find_publish_abi(const void *first, const void *second, const void *caller) {
  REAL(publish, "ros_trace_rmw_publish", TRACETOOLS, NULL);
  REAL(enabled, "ros_trace_enabled_rmw_publish", TRACETOOLS, ros_trace_enabled_rmw_publish);
  REAL(kilted, "ros_trace_rmw_client_init", TRACETOOLS, ros_trace_rmw_client_init);
  const char *release = getenv("ROS_DISTRO");
  int abi = ABI_UNKNOWN;
  if (real_of(&kilted, caller)) abi = ABI_PUBLISHER;
  else if (real_of(&publish, caller) && !real_of(&enabled, caller)) abi = ABI_MESSAGE; /* Humble has no ros_trace_enabled_ */
  else if (published && first == published) abi = ABI_MESSAGE;
  else if (published && second == published) abi = ABI_PUBLISHER;
  else if (release && release[0]) abi = release[0] <= 'i' ? ABI_MESSAGE : ABI_PUBLISHER;
  __atomic_store_n(&publish_abi, abi, __ATOMIC_RELAXED);
  return abi;
}

static inline void add_rmw_publish(const void *first, const void *second, int64_t stamp, const void *caller) {
  int abi;
  if (taut_is_off_()) return;
  abi = __atomic_load_n(&publish_abi, __ATOMIC_RELAXED);
  if (__builtin_expect(abi == ABI_UNKNOWN, 0)) abi = find_publish_abi(first, second, caller);
  if (abi == ABI_PUBLISHER) add_event(RMW_PUBLISH, first, N(second), (uint64_t)stamp, 0);
  else add_event(RMW_PUBLISH, NULL, abi == ABI_MESSAGE ? N(first) : 0, 0, 0);
}
/* With one argument the other two registers hold anything; they are passed on unread. */
TRACEPOINT(rmw_publish, (P first, P second, int64_t stamp), (first, second, stamp), add_rmw_publish(first, second, stamp, CALLER))

/* --- names of callbacks ------------------------------------------------------------------------------------ */

/* Of the C++ library, if there is one. */
static char *ros2_demangle(const char *, char *, size_t *, int *) __attribute__((weakref("__cxa_demangle")));

/* tracetools::detail's functions, which give no name in Humble's packages. The caller frees the text from Iron on; Humble's does
 * not, and asks once a callback. */
EXPORT char *_ZN10tracetools6detail15demangle_symbolEPKc(const char *mangled);
EXPORT char *_ZN10tracetools6detail18get_symbol_funcptrEPKv(const void *function);
EXPORT char *_ZN10tracetools6detail18get_symbol_funcptrEPv(void *function);

EXPORT char *_ZN10tracetools6detail15demangle_symbolEPKc(const char *mangled) {
  int status = 0;
  char *text = ros2_demangle && mangled ? ros2_demangle(mangled, NULL, NULL, &status) : NULL;
  return text || !mangled ? text : strdup(mangled);
}

EXPORT char *_ZN10tracetools6detail18get_symbol_funcptrEPKv(const void *function) {
  taut_object_t object;
  if (!taut_dladdr_ || !taut_dladdr_(function, &object) || !object.symbol) return NULL;
  return _ZN10tracetools6detail15demangle_symbolEPKc(object.symbol);
}

EXPORT char *_ZN10tracetools6detail18get_symbol_funcptrEPv(void *function) {
  return _ZN10tracetools6detail18get_symbol_funcptrEPKv(function);
}
