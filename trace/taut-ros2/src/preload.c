/* libtaut_ros2.so: ROS 2 events of an unmodified node, for LD_PRELOAD.
 *
 * It defines the functions that rcl, rmw and rclcpp call at their tracepoints (libtracetools.so's, Humble to Rolling), writes
 * what they say into the session's rings (docs/protocol.md, "ROS 2 events"), and hands each call on to the real function, so
 * that LTTng goes on tracing. Without a session a call is a load, a branch and the real call.
 *
 * In C and not in Rust, because
 *  - it needs nothing: linked without any library, it has no NEEDED entry and no symbol versions, so that the C library of
 *    the process serves, whichever is there (glibc from 2.17 on). Rust's standard library would bring libgcc_s and the
 *    versions of the machine that built it into each process of a launch; without it, no test could be linked in;
 *  - the producer's side is include/taut.h, which the conformance tests hold against the protocol;
 *  - the interposed functions have C++ names, and one has different arguments in different releases: that is C's.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _DEFAULT_SOURCE 1
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <fcntl.h>

/* Before glibc 2.33 these three are no symbols of the C library but small functions that the linker adds. */
static int ros2_fstat(int fd, struct stat *file) { return (int)syscall(SYS_fstat, fd, file); }
static int ros2_stat(const char *path, struct stat *file) { return (int)syscall(SYS_newfstatat, AT_FDCWD, path, file, 0); }
#define fstat(fd, file) ros2_fstat(fd, file)
#define stat(path, file) ros2_stat(path, file)
static int ros2_register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weakref("__register_atfork")));
/* The handlers are never taken back: a preloaded object stays. Where the C library has no such function, the process gets no ring. */
#define pthread_atfork(before, parent, child) (ros2_register_atfork ? ros2_register_atfork(before, parent, child, NULL) : -1)

/* A ring file of its own, beside that of the node's stamps: what it loses are ROS 2 events. */
#define TAUT_SHARED static
#define TAUT_CONTENT 1
#include "../../../include/taut.h"

#define EXPORT __attribute__((visibility("default")))

/* In libdl before glibc 2.34, which every process with ROS 2 has. */
static void *ros2_dlsym(void *, const char *) __attribute__((weakref("dlsym")));
static int ros2_dlclose(void *) __attribute__((weakref("dlclose")));
/* Of the C++ library, if there is one. */
static char *ros2_demangle(const char *, char *, size_t *, int *) __attribute__((weakref("__cxa_demangle")));

/* --- events: into the thread's ring ---------------------------------------------------------------- */

enum { KIND_ROS_EVENT = 9, KIND_ROS_REST = 10 };

/* As in trace/taut-recording/src/records.rs, where they are explained. */
enum ros_event {
  CALLBACK_START = 1,
  CALLBACK_END,
  RCLCPP_PUBLISH,
  RCL_PUBLISH,
  RMW_PUBLISH,
  INTRA_PUBLISH,
  SOURCE_STAMP,
  TAKE,
  DISPATCH,
  ENQUEUE,
  DEQUEUE,
  BUFFER_CLEAR,
  RCL_TAKE,
  RCLCPP_TAKE,
  NEXT_READY,
  WAIT_FOR_WORK,
  EXECUTE,
  SEND_REQUEST,
  TAKE_REQUEST,
  SEND_RESPONSE,
  TAKE_RESPONSE
};

static void take_objects_along(void);

/* One record, or two that the consumer sees at once. */
static inline void put(taut_thread_t *here, uint64_t ticks, uint32_t event, uint64_t handle, const uint64_t *args, uint64_t records) {
  taut_record_t *record = &here->ring[here->head & here->mask];
  record->ticks = ticks;
  record->message_id = handle;
  record->point = event | (uint32_t)(records - 1) << 8;
  record->kind = KIND_ROS_EVENT;
  record->value = args[0];
  if (records == 2) {
    record = &here->ring[(here->head + 1) & here->mask];
    record->ticks = ticks;
    record->message_id = args[1];
    record->point = 0;
    record->kind = KIND_ROS_REST;
    record->value = args[2];
  }
  __builtin_prefetch(record + 16, 1);
  here->head += records;
  /* Release: the records are there before the consumer sees the new head. SYNC POINT head */
  __atomic_store_n(&here->slot->head, here->head, __ATOMIC_RELEASE);
}

/* A thread's first, one in about as many as the ring has, and those of another counter; drops and counts what cannot be. */
TAUT_COLD static void put_slowly(uint32_t event, uint64_t handle, const uint64_t *args, uint64_t records) {
  taut_thread_t *here = &taut_thread_;
  if (!taut_claim_()) {
    if (!taut_is_off_()) taut_count_lost_();
    return;
  }
  take_objects_along();
  if (here->limit - here->head < records) {
    /* Acquire: the consumer has read what is about to be overwritten. SYNC POINT tail */
    const uint64_t tail = __atomic_load_n(&here->slot->tail, __ATOMIC_ACQUIRE);
    const uint64_t waiting = here->head - tail; /* more than the ring has for a tail that no consumer may have written */
    if (waiting > here->mask + 1 || here->mask + 1 - waiting < records) {
      __atomic_store_n(&here->slot->lost, here->slot->lost + 1, __ATOMIC_RELAXED);
      return;
    }
    here->limit = tail + here->mask + 1;
  }
  put(here, here->counter == TAUT_USUAL_COUNTER ? taut_usual_ticks_() : taut_monotonic_ns_(), event, handle, args, records);
  if (here->counter != TAUT_USUAL_COUNTER) here->limit = here->head; /* the next one comes here too */
}

static inline void emit(uint32_t event, const void *handle, uint64_t arg0, uint64_t arg1, uint64_t arg2) {
  const uint64_t args[3] = {arg0, arg1, arg2}, records = arg1 | arg2 ? 2 : 1;
  taut_thread_t *here = &taut_thread_;
  if (taut_is_off_()) return;
  if (TAUT_LIKELY(here->limit - here->head >= records))
    put(here, taut_usual_ticks_(), event, (uint64_t)(uintptr_t)handle, args, records);
  else
    put_slowly(event, (uint64_t)(uintptr_t)handle, args, records);
}

/* --- objects: appended to a file that stays ----------------------------------------------------------- */

/* As in records.rs. */
enum ros_object {
  CONTEXT = 1,
  NODE,
  PUBLISHER,
  SUBSCRIPTION,
  SUBSCRIPTION_OBJECT,
  SUBSCRIPTION_CALLBACK,
  SERVICE,
  SERVICE_CALLBACK,
  CLIENT,
  TIMER,
  TIMER_CALLBACK,
  TIMER_NODE,
  CALLBACK_SYMBOL,
  BUFFER_OF_IPB,
  IPB_OF_SUBSCRIPTION,
  RING_BUFFER,
  GROUP_OF_TIMER,
  GROUP_OF_SUBSCRIPTION,
  RMW_PUBLISHER,
  RMW_SUBSCRIPTION,
  RMW_CLIENT,
  STATE_MACHINE,
  TRANSITION,
  LINK
};

enum { OBJECTS_MAX_BYTES = 16 << 20, TEXT_MAX = 1000, KNOWN = 4096 };

typedef struct {
  char magic[8];
  uint32_t version, pid;
  uint64_t start_time, pid_namespace;
  char pad[32];
} objects_header_t;

typedef struct {
  uint32_t bytes; /* of this entry, its texts and the zeros behind them: a multiple of 8 */
  uint32_t kind;
  uint64_t time_ns, handle, owner, other, number;
  uint16_t name_bytes, text_bytes;
  uint32_t zero;
} object_t;

TAUT_ASSERT(sizeof(objects_header_t) == 64);
TAUT_ASSERT(sizeof(object_t) == 56);

/* Under taut_mutex_, but for `pid`, which is looked at before. */
static struct {
  int fd;
  pid_t pid; /* whose file it is; atomic */
  dev_t device;
  ino_t inode; /* robots that become daemons close descriptors they do not know */
  uint64_t length;
} objects = {-1, 0, 0, 0, 0};

/* What was last said, by a hash of kind and handle: the same is not said again. rclpy makes a timer for each wait. */
static uint64_t known[KNOWN]; /* atomic */

TAUT_COLD static bool objects_are_ours(void) {
  struct stat now;
  return objects.fd >= 0 && !fstat(objects.fd, &now) && now.st_dev == objects.device && now.st_ino == objects.inode;
}

/* At the end; a full disk and the limit of a file's length are errors here, and no signal. */
TAUT_COLD static bool append(int fd, uint64_t *length, const void *bytes, size_t count) {
  if (*length + count > OBJECTS_MAX_BYTES || !taut_may_have_((size_t)*length + count)) return false;
  if (pwrite(fd, bytes, count, (off_t)*length) != (ssize_t)count) return false; /* What came of it is written over by the next. */
  *length += count;
  return true;
}

/* After a fork: the child has its parent's objects at the same addresses. */
TAUT_COLD static void copy_objects(int fd, uint64_t *length) {
  char bytes[4096];
  uint64_t at = sizeof(objects_header_t);
  while (at < objects.length) {
    const size_t left = (size_t)(objects.length - at), want = left < sizeof bytes ? left : sizeof bytes;
    if (pread(objects.fd, bytes, want, (off_t)at) != (ssize_t)want || !append(fd, length, bytes, want)) return;
    at += want;
  }
}

/* The process's file, made if need be; false if it cannot be had. With taut_mutex_ held. */
TAUT_COLD static bool open_objects(const taut_header_t *process) {
  const char *session = taut_process_.session ? taut_process_.session : getenv("TAUT_SESSION");
  const pid_t pid = getpid();
  char temporary[4096], path[4096];
  int n;
  if (__atomic_load_n(&objects.pid, __ATOMIC_RELAXED) == pid) return objects_are_ours();
  for (n = 0; session && n < 10000; n++) {
    objects_header_t header = {"TAUTROSO", 1, (uint32_t)pid, process->start_time, process->pid_namespace, {0}};
    uint64_t length = 0;
    struct stat file;
    int fd, error = 0;
    const int a = snprintf(temporary, sizeof temporary, "%s/.%d-%d.ros.tmp", session, (int)pid, n);
    const int b = snprintf(path, sizeof path, "%s/%d-%d.ros", session, (int)pid, n);
    if (a < 0 || b < 0 || (size_t)a >= sizeof temporary || (size_t)b >= sizeof path) return false;
    if (!access(path, F_OK)) continue;
    fd = open(temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return false;
    if (append(fd, &length, &header, sizeof header) && !fstat(fd, &file)) {
      if (objects_are_ours()) copy_objects(fd, &length);
      error = taut_publish_(temporary, path);
      if (!error) {
        if (objects_are_ours()) close(objects.fd);
        objects.fd = fd;
        objects.device = file.st_dev;
        objects.inode = file.st_ino;
        objects.length = length;
        __atomic_store_n(&objects.pid, pid, __ATOMIC_RELAXED);
        return true;
      }
    }
    unlink(temporary);
    close(fd);
    if (error != EEXIST) return false;
  }
  return false;
}

/* A fork's child that makes no object still says what its handles are. */
TAUT_COLD static void take_objects_along(void) {
  const pid_t pid = __atomic_load_n(&objects.pid, __ATOMIC_RELAXED);
  const taut_header_t *process;
  taut_aside_t aside;
  if (!pid || pid == getpid() || !(process = taut_header_())) return;
  aside = taut_step_aside_();
  pthread_mutex_lock(&taut_mutex_);
  (void)open_objects(process);
  pthread_mutex_unlock(&taut_mutex_);
  taut_step_back_(aside);
}

/* FNV-1a, 64 bits. */
static uint64_t hash(uint64_t from, const void *bytes, size_t count) {
  const unsigned char *at = (const unsigned char *)bytes;
  for (; count--; at++) from = (from ^ *at) * 0x100000001b3u;
  return from;
}

/* Bytes of a text, cut before a character and not inside one. */
static uint16_t text_bytes(const char *text) {
  size_t length = text ? strnlen(text, TEXT_MAX + 1) : 0;
  if (length > TEXT_MAX) {
    length = TEXT_MAX;
    while (length && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
  }
  return (uint16_t)length;
}

TAUT_COLD static void say(uint32_t kind, const void *handle, const void *owner, const void *other, uint64_t number, const char *name,
                          const char *text) {
  union {
    object_t head;
    char bytes[sizeof(object_t) + 2 * TEXT_MAX + 8];
  } entry;
  object_t *head = &entry.head;
  taut_header_t *process;
  uint64_t content, key, expected;
  taut_aside_t aside;
  bool is_said;
  if (taut_is_off_() || !(process = taut_header_())) return;
  memset(&entry, 0, sizeof entry);
  head->kind = kind;
  head->handle = (uint64_t)(uintptr_t)handle;
  head->owner = (uint64_t)(uintptr_t)owner;
  head->other = (uint64_t)(uintptr_t)other;
  head->number = number;
  head->name_bytes = text_bytes(name);
  head->text_bytes = text_bytes(text);
  head->bytes = (uint32_t)((sizeof *head + head->name_bytes + head->text_bytes + 7) / 8 * 8);
  if (name) memcpy(entry.bytes + sizeof *head, name, head->name_bytes);
  if (text) memcpy(entry.bytes + sizeof *head + head->name_bytes, text, head->text_bytes);
  content = hash(0xcbf29ce484222325u, &entry, head->bytes) | 1;
  key = hash(hash(0xcbf29ce484222325u, &head->kind, sizeof head->kind), &head->handle, sizeof head->handle) % KNOWN;
  expected = __atomic_load_n(&known[key], __ATOMIC_RELAXED);
  if (expected == content && kind != TRANSITION) return;
  head->time_ns = taut_monotonic_ns_();
  aside = taut_step_aside_();
  pthread_mutex_lock(&taut_mutex_);
  is_said = open_objects(process) && append(objects.fd, &objects.length, &entry, head->bytes);
  pthread_mutex_unlock(&taut_mutex_);
  taut_step_back_(aside);
  if (is_said)
    __atomic_store_n(&known[key], content, __ATOMIC_RELAXED);
  else
    __atomic_fetch_add(&process->lost_names, (uint64_t)1, __ATOMIC_RELAXED);
}

/* --- the real functions ----------------------------------------------------------------------------- */

static char none; /* its address: there is no such function */

/* rclpy loads libtracetools with RTLD_LOCAL, where RTLD_NEXT does not look; for a linked program either serves. */
TAUT_COLD static void *look_up(void **kept, const char *name) {
  const int error_number = errno;
  void *found = NULL;
  if (taut_dlopen_ && ros2_dlsym) {
    void *library = taut_dlopen_("libtracetools.so", RTLD_LAZY | 4 /* RTLD_NOLOAD */);
    found = ros2_dlsym(library ? library : (void *)-1L /* RTLD_NEXT */, name);
    if (library && ros2_dlclose) ros2_dlclose(library);
  }
  if (!found) found = &none;
  __atomic_store_n(kept, found, __ATOMIC_RELEASE);
  errno = error_number;
  return found;
}

/* NULL where there is none. */
static inline void *real(void **kept, const char *name) {
  void *found = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
  if (__builtin_expect(!found, 0)) found = look_up(kept, name);
  return found == &none ? NULL : found;
}

/* A tracepoint has three names, the last two from Iron on: the call; whether anybody listens; the call after that question.
 * `types` and `names` are its arguments, `what` is done with them. The real `do` is called only if the real `enabled` says so. */
#define TRACEPOINT(event, types, names, what)                                                     \
  EXPORT bool ros_trace_enabled_##event(void);                                                    \
  EXPORT void ros_trace_##event types;                                                            \
  EXPORT void ros_trace_do_##event types;                                                         \
  static bool is_enabled_##event(void) {                                                          \
    static void *kept;                                                                            \
    bool (*enabled)(void);                                                                        \
    void *address = real(&kept, "ros_trace_enabled_" #event);                                     \
    memcpy(&enabled, &address, sizeof enabled);                                                   \
    return enabled && enabled();                                                                  \
  }                                                                                               \
  EXPORT bool ros_trace_enabled_##event(void) { return !taut_is_off_() || is_enabled_##event(); } \
  EXPORT void ros_trace_##event types {                                                           \
    static void *kept;                                                                            \
    void(*next) types;                                                                            \
    void *address = real(&kept, "ros_trace_" #event);                                             \
    what;                                                                                         \
    memcpy(&next, &address, sizeof next);                                                         \
    if (next) next names;                                                                         \
  }                                                                                               \
  EXPORT void ros_trace_do_##event types {                                                        \
    static void *kept;                                                                            \
    void(*next) types;                                                                            \
    void *address = real(&kept, "ros_trace_do_" #event);                                          \
    what;                                                                                         \
    memcpy(&next, &address, sizeof next);                                                         \
    if (next && is_enabled_##event()) next names;                                                 \
  }

/* 16 bytes in every release; what Humble has behind them is zeros. */
static uint64_t folded(const uint8_t *gid) {
  uint64_t halves[2] = {0, 0};
  if (gid) memcpy(halves, gid, sizeof halves);
  return halves[0] ^ halves[1];
}

/* --- tracepoints: objects ------------------------------------------------------------------------------ */

#define P const void *

TRACEPOINT(rcl_init, (P context), (context), say(CONTEXT, context, NULL, NULL, 0, NULL, NULL))
TRACEPOINT(rcl_node_init, (P node, P rmw, const char *name, const char *space), (node, rmw, name, space),
           say(NODE, node, NULL, rmw, 0, name, space))
TRACEPOINT(rmw_publisher_init, (P rmw, const uint8_t *gid), (rmw, gid), say(RMW_PUBLISHER, rmw, NULL, NULL, folded(gid), NULL, NULL))
TRACEPOINT(rcl_publisher_init, (P publisher, P node, P rmw, const char *topic, size_t depth), (publisher, node, rmw, topic, depth),
           say(PUBLISHER, publisher, node, rmw, depth, topic, NULL))
TRACEPOINT(rmw_subscription_init, (P rmw, const uint8_t *gid), (rmw, gid), say(RMW_SUBSCRIPTION, rmw, NULL, NULL, folded(gid), NULL, NULL))
TRACEPOINT(rcl_subscription_init, (P subscription, P node, P rmw, const char *topic, size_t depth), (subscription, node, rmw, topic, depth),
           say(SUBSCRIPTION, subscription, node, rmw, depth, topic, NULL))
TRACEPOINT(rclcpp_subscription_init, (P subscription, P object), (subscription, object),
           say(SUBSCRIPTION_OBJECT, object, subscription, NULL, 0, NULL, NULL))
TRACEPOINT(rclcpp_subscription_callback_added, (P object, P callback), (object, callback),
           say(SUBSCRIPTION_CALLBACK, callback, object, NULL, 0, NULL, NULL))
TRACEPOINT(rcl_service_init, (P service, P node, P rmw, const char *name), (service, node, rmw, name),
           say(SERVICE, service, node, rmw, 0, name, NULL))
TRACEPOINT(rclcpp_service_callback_added, (P service, P callback), (service, callback),
           say(SERVICE_CALLBACK, callback, service, NULL, 0, NULL, NULL))
TRACEPOINT(rcl_client_init, (P client, P node, P rmw, const char *name), (client, node, rmw, name),
           say(CLIENT, client, node, rmw, 0, name, NULL))
TRACEPOINT(rmw_client_init, (P rmw, const uint8_t *gid), (rmw, gid), say(RMW_CLIENT, rmw, NULL, NULL, folded(gid), NULL, NULL))
TRACEPOINT(rcl_timer_init, (P timer, int64_t period), (timer, period), say(TIMER, timer, NULL, NULL, (uint64_t)period, NULL, NULL))
TRACEPOINT(rclcpp_timer_callback_added, (P timer, P callback), (timer, callback), say(TIMER_CALLBACK, callback, timer, NULL, 0, NULL, NULL))
TRACEPOINT(rclcpp_timer_link_node, (P timer, P node), (timer, node), say(TIMER_NODE, timer, node, NULL, 0, NULL, NULL))
TRACEPOINT(rclcpp_callback_register, (P callback, const char *symbol), (callback, symbol),
           say(CALLBACK_SYMBOL, callback, NULL, NULL, 0, symbol, NULL))
TRACEPOINT(rclcpp_buffer_to_ipb, (P buffer, P ipb), (buffer, ipb), say(BUFFER_OF_IPB, buffer, ipb, NULL, 0, NULL, NULL))
TRACEPOINT(rclcpp_ipb_to_subscription, (P ipb, P object), (ipb, object), say(IPB_OF_SUBSCRIPTION, ipb, object, NULL, 0, NULL, NULL))
TRACEPOINT(rclcpp_construct_ring_buffer, (P buffer, uint64_t capacity), (buffer, capacity),
           say(RING_BUFFER, buffer, NULL, NULL, capacity, NULL, NULL))
TRACEPOINT(rcl_lifecycle_state_machine_init, (P node, P machine), (node, machine), say(STATE_MACHINE, machine, node, NULL, 0, NULL, NULL))
TRACEPOINT(rcl_lifecycle_transition, (P machine, const char *start, const char *goal), (machine, start, goal),
           say(TRANSITION, machine, NULL, NULL, 0, start, goal))

/* Which inputs an output follows from, as the program says: each pair is one link. */
TAUT_COLD static void say_links(const void **subscriptions, size_t inputs, const void **publishers, size_t outputs, uint64_t how) {
  size_t i, o;
  for (o = 0; o < outputs; o++)
    for (i = 0; i < inputs; i++) say(LINK, publishers[o], subscriptions[i], NULL, how, NULL, NULL);
}
TRACEPOINT(message_link_partial_sync, (P *subs, size_t inputs, P *pubs, size_t outputs), (subs, inputs, pubs, outputs),
           say_links(subs, inputs, pubs, outputs, 1))
TRACEPOINT(message_link_periodic_async, (P *subs, size_t inputs, P *pubs, size_t outputs), (subs, inputs, pubs, outputs),
           say_links(subs, inputs, pubs, outputs, 2))

/* --- tracepoints: events --------------------------------------------------------------------------------- */

#define N(pointer) ((uint64_t)(uintptr_t)(pointer))

TRACEPOINT(callback_start, (P callback, bool is_intra), (callback, is_intra), emit(CALLBACK_START, callback, is_intra, 0, 0))
TRACEPOINT(callback_end, (P callback), (callback), emit(CALLBACK_END, callback, 0, 0, 0))
TRACEPOINT(rclcpp_publish, (P publisher, P message), (publisher, message), emit(RCLCPP_PUBLISH, publisher, N(message), 0, 0))
TRACEPOINT(rclcpp_intra_publish, (P publisher, P message), (publisher, message), emit(INTRA_PUBLISH, publisher, N(message), 0, 0))
TRACEPOINT(rmw_take, (P rmw, P message, int64_t stamp, bool taken), (rmw, message, stamp, taken),
           emit(TAKE, rmw, N(message), (uint64_t)stamp, taken))
TRACEPOINT(rcl_take, (P message), (message), emit(RCL_TAKE, NULL, N(message), 0, 0))
TRACEPOINT(rclcpp_take, (P message), (message), emit(RCLCPP_TAKE, NULL, N(message), 0, 0))
TRACEPOINT(rclcpp_executor_get_next_ready, (void), (), emit(NEXT_READY, NULL, 0, 0, 0))
TRACEPOINT(rclcpp_executor_wait_for_work, (int64_t timeout), (timeout), emit(WAIT_FOR_WORK, NULL, (uint64_t)timeout, 0, 0))
TRACEPOINT(rclcpp_executor_execute, (P handle), (handle), emit(EXECUTE, handle, 0, 0, 0))
TRACEPOINT(rclcpp_ring_buffer_enqueue, (P buffer, uint64_t index, uint64_t size, bool overwritten), (buffer, index, size, overwritten),
           emit(ENQUEUE, buffer, index, overwritten, 0))
TRACEPOINT(rclcpp_ring_buffer_dequeue, (P buffer, uint64_t index, uint64_t size), (buffer, index, size), emit(DEQUEUE, buffer, index, 0, 0))
TRACEPOINT(rclcpp_ring_buffer_clear, (P buffer), (buffer), emit(BUFFER_CLEAR, buffer, 0, 0, 0))
TRACEPOINT(rmw_send_request, (P rmw, P request, int64_t number), (rmw, request, number), emit(SEND_REQUEST, rmw, (uint64_t)number, 0, 0))
TRACEPOINT(rmw_take_request, (P rmw, P request, const uint8_t *gid, int64_t number, bool taken), (rmw, request, gid, number, taken),
           emit(TAKE_REQUEST, rmw, (uint64_t)number, folded(gid), taken))
TRACEPOINT(rmw_send_response, (P rmw, P response, const uint8_t *gid, int64_t number, int64_t stamp), (rmw, response, gid, number, stamp),
           emit(SEND_RESPONSE, rmw, (uint64_t)number, folded(gid), (uint64_t)stamp))
TRACEPOINT(rmw_take_response, (P rmw, P response, int64_t number, int64_t stamp, bool taken), (rmw, response, number, stamp, taken),
           emit(TAKE_RESPONSE, rmw, (uint64_t)number, (uint64_t)stamp, taken))

/* rmw_publish has the message alone up to Iron, and publisher, message and source timestamp from Jazzy on. Iron and Jazzy have
 * the same symbols, so the call tells: rcl_publish came before it on this thread with the same message. */
static __thread const void *published;
TRACEPOINT(rcl_publish, (P publisher, P message), (publisher, message),
           (emit(RCL_PUBLISH, publisher, N(message), 0, 0), published = message))

enum { ABI_UNKNOWN, ABI_MESSAGE, ABI_PUBLISHER };
static int publish_abi; /* atomic */

TAUT_COLD static int find_publish_abi(const void *first, const void *second) {
  static void *publish, *enabled, *kilted; /* what is there tells Humble, which has no `enabled`, and Kilted */
  const char *release = getenv("ROS_DISTRO");
  int abi = ABI_UNKNOWN;
  if (real(&kilted, "ros_trace_rmw_client_init")) abi = ABI_PUBLISHER;
  else if (real(&publish, "ros_trace_rmw_publish") && !real(&enabled, "ros_trace_enabled_rmw_publish")) abi = ABI_MESSAGE;
  else if (published && first == published) abi = ABI_MESSAGE;
  else if (published && second == published) abi = ABI_PUBLISHER;
  else if (release && release[0]) abi = release[0] <= 'i' ? ABI_MESSAGE : ABI_PUBLISHER;
  __atomic_store_n(&publish_abi, abi, __ATOMIC_RELAXED);
  return abi;
}

static inline void emit_rmw_publish(const void *first, const void *second, int64_t stamp) {
  int abi;
  if (taut_is_off_()) return;
  abi = __atomic_load_n(&publish_abi, __ATOMIC_RELAXED);
  if (__builtin_expect(!abi, 0)) abi = find_publish_abi(first, second);
  if (abi == ABI_PUBLISHER) emit(RMW_PUBLISH, first, N(second), (uint64_t)stamp, 0);
  else if (abi == ABI_MESSAGE) emit(RMW_PUBLISH, NULL, N(first), 0, 0);
  else emit(RMW_PUBLISH, NULL, 0, 0, 0);
}
/* With one argument the other two registers hold anything; they are handed on unread. */
TRACEPOINT(rmw_publish, (P first, P second, int64_t stamp), (first, second, stamp), emit_rmw_publish(first, second, stamp))

/* --- names of callbacks ------------------------------------------------------------------------------------ */

/* tracetools::detail's, of which Humble's packages have none that say anything. The caller frees the text from Iron on; Humble's
 * does not, once a callback. */
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
