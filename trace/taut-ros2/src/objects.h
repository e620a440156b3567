/* What a ROS 2 handle is: entries of the process's file of objects (docs/reference/protocol.md, "ROS 2 objects").
 *
 * Events name handles by address alone. The file keeps what was said of each since the process began, so that a recorder that
 * comes late knows it too. Entries are appended where ROS makes an entity, which is not a hot path.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TAUT_ROS2_OBJECTS_H
#define TAUT_ROS2_OBJECTS_H

/* RosObjectKind of trace/taut-recording/src/records.rs, which says what the fields are. */
enum ros_object {
  CONTEXT = 1,
  NODE = 2,
  PUBLISHER = 3,
  SUBSCRIPTION = 4,
  SUBSCRIPTION_OBJECT = 5,
  SUBSCRIPTION_CALLBACK = 6,
  SERVICE = 7,
  SERVICE_CALLBACK = 8,
  CLIENT = 9,
  TIMER = 10,
  TIMER_CALLBACK = 11,
  TIMER_NODE = 12,
  CALLBACK_SYMBOL = 13,
  BUFFER_OF_IPB = 14,
  IPB_OF_SUBSCRIPTION = 15,
  RING_BUFFER = 16,
  GROUP_OF_TIMER = 17,
  GROUP_OF_SUBSCRIPTION = 18,
  RMW_PUBLISHER = 19,
  RMW_SUBSCRIPTION = 20,
  RMW_CLIENT = 21,
  STATE_MACHINE = 22,
  TRANSITION = 23,
  LINK = 24,
  NODE_CALLBACK = 25
};

enum { OBJECTS_VERSION = 1, OBJECTS_MAX_BYTES = 16 << 20, TEXT_MAX_BYTES = 1000 };

typedef struct {
  char magic[8];
  uint32_t version, reserved0, pid, reserved1[3];
  uint64_t start_time, pid_namespace;
  char pad0[80];
  uint64_t length, lost; /* atomic */
} objects_header_t;

typedef struct {
  uint32_t bytes; /* of the entry with its texts and the zeros behind them: a multiple of 8 */
  uint32_t kind;
  uint64_t time_ns, handle, owner, other, number;
  uint16_t name_bytes, text_bytes;
  uint32_t zero;
} object_t;

TAUT_ASSERT(offsetof(objects_header_t, start_time) == 32);
TAUT_ASSERT(offsetof(objects_header_t, length) == 128);
TAUT_ASSERT(sizeof(object_t) == 56);

/* Under taut_mutex_, but `pid`, which is looked at before. */
static struct {
  objects_header_t *header; /* mapped */
  int fd;
  pid_t pid; /* whose file it is, atomic; 0: there is none yet */
  dev_t device;
  ino_t inode; /* a robot that becomes a daemon closes descriptors that it does not know */
} objects = {NULL, -1, 0, 0, 0};

TAUT_COLD static bool have_objects_fd(void) {
  struct stat now;
  return objects.fd >= 0 && !fstat(objects.fd, &now) && now.st_dev == objects.device && now.st_ino == objects.inode;
}

/* Behind what is published, and publishes it. A full file system and the limit of a file's length are errors here and no
 * signals; what came of a failed write lies behind the published length, and the next one overwrites it. */
TAUT_COLD static bool append_objects(int fd, objects_header_t *header, const void *bytes, size_t count) {
  const uint64_t end = TAUT_PAGE + header->length;
  if (header->length + count > OBJECTS_MAX_BYTES || !taut_may_have_((size_t)end + count)) return false;
  if (pwrite(fd, bytes, count, (off_t)end) != (ssize_t)count) return false;
  __atomic_store_n(&header->length, header->length + count, __ATOMIC_RELEASE);
  return true;
}

/* After a fork the child has its parent's objects at the same addresses. */
TAUT_COLD static void copy_objects(int fd, objects_header_t *header) {
  char bytes[4096];
  const uint64_t length = __atomic_load_n(&objects.header->length, __ATOMIC_ACQUIRE);
  uint64_t at = 0;
  while (at < length) {
    const size_t left = (size_t)(length - at), want = left < sizeof bytes ? left : sizeof bytes;
    if (pread(objects.fd, bytes, want, (off_t)(TAUT_PAGE + at)) != (ssize_t)want || !append_objects(fd, header, bytes, want)) {
      header->lost++;
      return;
    }
    at += want;
  }
}

TAUT_COLD static objects_header_t *lay_out_objects(int fd, const taut_header_t *process) {
  objects_header_t *header;
  if (!taut_may_have_(TAUT_PAGE) || ftruncate(fd, TAUT_PAGE) || syscall(SYS_fallocate, fd, 0, (off_t)0, (off_t)TAUT_PAGE)) return NULL;
  header = (objects_header_t *)mmap(NULL, TAUT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if ((void *)header == MAP_FAILED) return NULL;
  memcpy(header->magic, "TAUTROSO", 8);
  header->version = OBJECTS_VERSION;
  header->pid = (uint32_t)getpid();
  header->start_time = process->start_time;
  header->pid_namespace = process->pid_namespace;
  if (objects.header && have_objects_fd()) copy_objects(fd, header);
  return header;
}

/* Makes the process's file if need be; whether there is one that can be written. With taut_mutex_ held. */
TAUT_COLD static bool open_objects(const taut_header_t *process) {
  const char *session = taut_process_.session ? taut_process_.session : getenv("TAUT_SESSION");
  const pid_t pid = getpid();
  char temporary[4096], path[4096];
  int n;
  if (__atomic_load_n(&objects.pid, __ATOMIC_RELAXED) == pid) return have_objects_fd();
  for (n = 0; session && n < 10000; n++) {
    objects_header_t *header;
    struct stat file;
    int fd, error = 0;
    const int a = snprintf(temporary, sizeof temporary, "%s/.%d-%d.ros.tmp", session, (int)pid, n);
    const int b = snprintf(path, sizeof path, "%s/%d-%d.ros", session, (int)pid, n);
    if (a < 0 || b < 0 || (size_t)a >= sizeof temporary || (size_t)b >= sizeof path) return false;
    if (!access(path, F_OK)) continue;
    fd = open(temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return false;
    header = lay_out_objects(fd, process);
    if (header && !fstat(fd, &file) && !(error = taut_publish_(temporary, path))) {
      if (objects.header) munmap((void *)objects.header, TAUT_PAGE);
      if (have_objects_fd()) close(objects.fd);
      objects.header = header;
      objects.fd = fd;
      objects.device = file.st_dev;
      objects.inode = file.st_ino;
      __atomic_store_n(&objects.pid, pid, __ATOMIC_RELAXED);
      return true;
    }
    if (header) munmap((void *)header, TAUT_PAGE);
    unlink(temporary);
    close(fd);
    if (error != EEXIST) return false;
  }
  return false;
}

/* A child of fork that makes no object has a file of its own all the same, from its first event on. */
TAUT_COLD static void inherit_objects(void) {
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

/* Bytes of a text as they are kept: cut before a character and not inside one. */
static uint16_t kept_bytes(const char *text) {
  size_t length = text ? strnlen(text, TEXT_MAX_BYTES + 1) : 0;
  if (length > TEXT_MAX_BYTES) {
    length = TEXT_MAX_BYTES;
    while (length && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
  }
  return (uint16_t)length;
}

TAUT_COLD static void add_object_since(uint64_t time_ns, uint32_t kind, const void *handle, const void *owner, const void *other,
                                       uint64_t number, const char *name, const char *text) {
  union {
    object_t head;
    char bytes[sizeof(object_t) + 2 * TEXT_MAX_BYTES + 8];
  } entry;
  object_t *head = &entry.head;
  taut_header_t *process;
  taut_aside_t aside;
  if (taut_is_off_() || !(process = taut_header_())) return;
  memset(&entry, 0, sizeof entry);
  head->kind = kind;
  head->time_ns = time_ns;
  head->handle = (uint64_t)(uintptr_t)handle;
  head->owner = (uint64_t)(uintptr_t)owner;
  head->other = (uint64_t)(uintptr_t)other;
  head->number = number;
  head->name_bytes = kept_bytes(name);
  head->text_bytes = kept_bytes(text);
  head->bytes = (uint32_t)((sizeof *head + head->name_bytes + head->text_bytes + 7) / 8 * 8);
  if (name) memcpy(entry.bytes + sizeof *head, name, head->name_bytes);
  if (text) memcpy(entry.bytes + sizeof *head + head->name_bytes, text, head->text_bytes);
  aside = taut_step_aside_();
  pthread_mutex_lock(&taut_mutex_);
  if (!open_objects(process) || !append_objects(objects.fd, objects.header, &entry, head->bytes)) {
    if (objects.header && objects.pid == getpid()) objects.header->lost++;
    else __atomic_fetch_add(&process->lost_names, (uint64_t)1, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&taut_mutex_);
  taut_step_back_(aside);
}

TAUT_COLD static void add_object(uint32_t kind, const void *handle, const void *owner, const void *other, uint64_t number,
                                 const char *name, const char *text) {
  if (!taut_is_off_()) add_object_since(taut_monotonic_ns_(), kind, handle, owner, other, number, name, text);
}

/* --- timers --------------------------------------------------------------------------------------------
 *
 * rclpy makes a timer for each wait with a timeout, and destroys it uncalled: of those nothing is kept. A timer is written down
 * when it is called or given a callback, as of its making; the pending ones are few. */

enum { PENDING_TIMERS = 32 };

/* Under taut_mutex_, but the count, which is looked at before. */
static struct {
  uint32_t count; /* atomic */
  struct {
    const void *timer;
    uint64_t period_ns, time_ns;
  } timers[PENDING_TIMERS]; /* the oldest first */
} pending;

/* Takes a pending timer out, or the oldest for NULL. */
TAUT_COLD static bool take_pending(const void *timer, uint64_t *period_ns, uint64_t *time_ns, const void **taken) {
  uint32_t at, count;
  bool is_there = false;
  pthread_mutex_lock(&taut_mutex_);
  count = pending.count;
  for (at = 0; at < count && timer && pending.timers[at].timer != timer; at++) {}
  if (at < count) {
    *taken = pending.timers[at].timer;
    *period_ns = pending.timers[at].period_ns;
    *time_ns = pending.timers[at].time_ns;
    memmove(&pending.timers[at], &pending.timers[at + 1], (count - at - 1) * sizeof pending.timers[0]);
    __atomic_store_n(&pending.count, count - 1, __ATOMIC_RELAXED);
    is_there = true;
  }
  pthread_mutex_unlock(&taut_mutex_);
  return is_there;
}

TAUT_COLD static void write_pending(const void *timer) {
  uint64_t period_ns, time_ns;
  const void *taken;
  if (take_pending(timer, &period_ns, &time_ns, &taken))
    add_object_since(time_ns, TIMER, taken, NULL, NULL, period_ns, NULL, NULL);
}

/* The timer is in use. */
static inline void keep_timer(const void *timer) {
  if (__builtin_expect(__atomic_load_n(&pending.count, __ATOMIC_RELAXED) != 0, 0)) write_pending(timer);
}

TAUT_COLD static void add_timer(const void *timer, int64_t period_ns) {
  uint64_t ignored;
  const void *earlier;
  if (taut_is_off_()) return;
  (void)take_pending(timer, &ignored, &ignored, &earlier); /* Its address is another's now. */
  if (__atomic_load_n(&pending.count, __ATOMIC_RELAXED) >= PENDING_TIMERS) write_pending(NULL);
  pthread_mutex_lock(&taut_mutex_);
  if (pending.count < PENDING_TIMERS) {
    pending.timers[pending.count].timer = timer;
    pending.timers[pending.count].period_ns = (uint64_t)period_ns;
    pending.timers[pending.count].time_ns = taut_monotonic_ns_();
    __atomic_store_n(&pending.count, pending.count + 1, __ATOMIC_RELAXED);
    timer = NULL;
  }
  pthread_mutex_unlock(&taut_mutex_);
  /* Others filled it meanwhile. */
  if (timer) add_object(TIMER, timer, NULL, NULL, (uint64_t)period_ns, NULL, NULL);
}

/* Whether a timer that goes was never written down. */
static inline bool forget_timer(const void *timer) {
  uint64_t ignored;
  const void *taken;
  return __atomic_load_n(&pending.count, __ATOMIC_RELAXED) && take_pending(timer, &ignored, &ignored, &taken);
}

#endif
