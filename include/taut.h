/* taut.h: stamp messages from C11 and C++17, header only, nothing to link.
 *
 *     #include "taut.h"                        // compile with -pthread; nothing to link
 *
 *     void control_thread(void) {
 *         taut_prepare_thread();               // the one slow step, before real time begins
 *         for (;;) {
 *             struct setpoint s = next();
 *             TAUT_STAMP("control.received", s.id);
 *             if (!allowed(&s)) { TAUT_DROP(s.id, "joint_limit"); continue; }
 *             write_to_drive(&s);
 *             TAUT_STAMP("control.written", s.id);
 *             taut_applied(s.id);
 *         }
 *     }
 *
 * Without a session (TAUT_SESSION, which `taut record` sets) a stamp is one load and one branch. With
 * one it takes no lock, makes no system call and allocates nothing after a thread's first. Nothing
 * here fails or blocks the robot: what cannot be kept is counted (taut_lost). Compile with -DTAUT_OFF
 * to have all of it vanish. The bytes are those of docs/reference/protocol.md, version 1. 64-bit Linux, gcc or clang.
 *
 * Not from a signal handler: it may interrupt a stamp of its own thread. A child of raw clone calls
 * taut_after_fork() first. Strict C (-std=c11) includes this header first or defines _DEFAULT_SOURCE.
 * Shared objects loaded with RTLD_LOCAL each have a ring file of their own, all others share one. A stamp from
 * a shared object costs 2 ns more; gcc's -mtls-dialect=gnu2 (x86-64) takes them back.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TAUT_H
#define TAUT_H

#if !defined(TAUT_OFF) && !defined(_FEATURES_H) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE 1
#endif
#include <stddef.h>
#include <stdint.h>

/* What TAUT_NAME_LOCK takes: a string as the name, and as the lock a pointer to something that holds a futex word. The
 * two swapped do not compile. */
#ifdef __cplusplus
static inline const char *taut_lock_name_(const char *name) { return name; }
#define TAUT_LOCK_NAME_(name) taut_lock_name_(name)
#else
#define TAUT_LOCK_NAME_(name) _Generic((name), char *: (name), const char *: (name))
#endif
#define TAUT_LOCK_BYTES_(lock) (sizeof *(lock) * sizeof(char[sizeof *(lock) >= 4 ? 1 : -1]))

#ifdef TAUT_OFF

#define TAUT_STAMP(name, message_id) ((void)(message_id))
#define TAUT_STAMP_AT(name, message_id, intended_ns) ((void)(message_id), (void)(intended_ns))
#define TAUT_BEGIN(name) ((void)0)
#define TAUT_END(name) ((void)0)
#define TAUT_DROP(message_id, reason) ((void)(message_id))
#define TAUT_VALUE(name, value) ((void)(value))
#define TAUT_LOCK_WAIT(name) ((void)0)
#define TAUT_LOCK_ACQUIRED(name) ((void)0)
#define TAUT_NAME_LOCK(name, lock) ((void)TAUT_LOCK_NAME_(name), (void)TAUT_LOCK_BYTES_(lock), (void)(lock))
static inline uint32_t taut_point(const char *name) { (void)name; return 0; }
static inline void taut_stamp(uint32_t point, uint64_t message_id) { (void)point; (void)message_id; }
static inline void taut_stamp_at(uint32_t point, uint64_t message_id, uint64_t intended_ns) { (void)point; (void)message_id; (void)intended_ns; }
static inline void taut_outcome(uint64_t message_id, const char *reason) { (void)message_id; (void)reason; }
static inline void taut_applied(uint64_t message_id) { (void)message_id; }
static inline int taut_prepare_thread(void) { return 0; }
static inline int taut_attach(const char *session) { (void)session; return 0; }
static inline int taut_attached(void) { return 0; }
static inline uint64_t taut_lost(void) { return 0; }
static inline void taut_after_fork(void) {}
typedef struct { int nothing; } taut_telemetry_t;
#define TAUT_DESCRIBE(type, ...) struct taut_field_s
#define TAUT_TELEMETRY(name, type, rate_hz) ((void)(name), (void)(rate_hz), (taut_telemetry_t *)0)
#define TAUT_WRITE(channel, pointer) ((void)(channel), (void)(pointer))
static inline uint64_t taut_telemetry_lost(const taut_telemetry_t *channel) { (void)channel; return 0; }
static inline void taut_telemetry_close(taut_telemetry_t *channel) { (void)channel; }

#else /* !TAUT_OFF */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#ifdef __cplusplus
#include <array>
#endif

#ifndef __USE_MISC
#error "taut.h needs more than strict ISO C declares: include it first, or compile with -D_DEFAULT_SOURCE"
#endif
#ifndef __LP64__
#error "taut.h is for 64-bit Linux"
#endif

#ifdef __cplusplus
extern "C" {
#define TAUT_ASSERT(condition) static_assert(condition, #condition)
#else
#define TAUT_ASSERT(condition) _Static_assert(condition, #condition)
#endif
#define TAUT_LIKELY(x) __builtin_expect(!!(x), 1)
#define TAUT_COLD __attribute__((cold, noinline, unused))
/* One state for all translation units and shared objects of a process, unless the includer keeps its own. */
#ifndef TAUT_SHARED
#define TAUT_SHARED __attribute__((weak, visibility("default")))
#endif
/* The ring file's content: 0 stamps, 1 ROS 2 events (trace/taut-ros2). */
#ifndef TAUT_CONTENT
#define TAUT_CONTENT 0
#endif

/* --- docs/reference/protocol.md as types ------------------------------------------------------------------ */

enum {
  TAUT_VERSION = TAUT_CONTENT ? 2 : 1,
  TAUT_SLOT_COUNT = 64,
  TAUT_NAME_CAPACITY = TAUT_CONTENT ? 32 : 2048,
  TAUT_NAME_MAX = 119,
  TAUT_PAGE = 4096,
  TAUT_DEFAULT_RING_RECORDS = TAUT_CONTENT ? 32768 : 131072
};
enum { TAUT_COUNTER_TSC = 1, TAUT_COUNTER_MONOTONIC = 2, TAUT_COUNTER_CNTVCT = 3 };
enum { TAUT_SLOT_FREE = 0, TAUT_SLOT_OPEN = 1, TAUT_SLOT_CLOSED = 2, TAUT_SLOT_CLAIMING = 3 };
enum {
  TAUT_KIND_STAMP = 1,
  TAUT_KIND_BEGIN = 2,
  TAUT_KIND_END = 3,
  TAUT_KIND_OUTCOME = 4,
  TAUT_KIND_VALUE = 5,
  TAUT_KIND_LOCK_WAIT = 6,
  TAUT_KIND_LOCK_ACQUIRED = 7,
  TAUT_KIND_LOCK_NAMED = 8
};

typedef struct {
  char magic[8];
  uint32_t version, counter, pid, slot_count, ring_records, name_capacity;
  uint64_t start_time, pid_namespace, names_offset, slots_offset, rings_offset, ring_stride;
  uint32_t content;
  char pad0[44];
  uint32_t name_count; /* atomic */
  char pad1[60];
  uint64_t lost_without_slot, lost_names, lost_telemetry; /* atomic */
} taut_header_t;

typedef struct {
  uint32_t length; /* atomic; 0 until published */
  uint32_t reserved;
  char bytes[120];
} taut_name_t;

typedef struct {
  uint32_t state, tid, generation, pad0;
  uint64_t opened_ns;
  char pad1[40];
  uint64_t head, lost;
  char pad2[48];
  uint64_t tail;
  char pad3[120];
} taut_slot_t;

typedef struct {
  uint64_t ticks, message_id;
  uint32_t point, kind;
  uint64_t value;
} taut_record_t;

typedef struct {
  char magic[8];
  uint32_t version, counter, pid, reserved, value_bytes, slot_count;
  uint64_t start_time, pid_namespace, slot_stride, description_bytes, ring_offset;
  char pad0[56];
  uint32_t state; /* atomic */
  char pad1[60];
  uint64_t head, lost; /* atomic */
  char pad2[48];
  uint64_t tail; /* atomic */
} taut_channel_t;

TAUT_ASSERT(sizeof(taut_header_t) == 216);
TAUT_ASSERT(offsetof(taut_header_t, content) == 80);
TAUT_ASSERT(offsetof(taut_header_t, name_count) == 128);
TAUT_ASSERT(offsetof(taut_channel_t, state) == 128);
TAUT_ASSERT(offsetof(taut_channel_t, head) == 192);
TAUT_ASSERT(offsetof(taut_channel_t, tail) == 256);
TAUT_ASSERT(sizeof(taut_name_t) == 128);
TAUT_ASSERT(sizeof(taut_slot_t) == 256);
TAUT_ASSERT(sizeof(taut_record_t) == 32);

/* --- state -------------------------------------------------------------------------------------- */

/* UNKNOWN: the next stamp looks at TAUT_SESSION. FAILED: asked for and not to be had; stamps are counted, and it is tried again. */
enum { TAUT_UNKNOWN = 0, TAUT_IS_OFF = 1, TAUT_ON = 2, TAUT_FAILED = 3 };

typedef struct {
  uint32_t state;               /* atomic; the hot path's one load */
  uint64_t lost_here;           /* atomic; stamps that no ring file could be told of yet */
  uint64_t lost_telemetry_here; /* atomic; the same of telemetry */
  taut_header_t *header;
  taut_record_t *rings[TAUT_SLOT_COUNT]; /* atomic; each mapped at its slot's first claim */
  char *session;                         /* of taut_attach, else NULL */
  dev_t device;                          /* of the ring file: */
  ino_t inode;                           /* robots that become daemons close descriptors they do not know */
  int fd;
  int has_handlers;
  pthread_key_t closer;
} taut_process_t;

/* The hot path compares the first two; a thread without a slot has no room either, and asks no further. */
typedef struct {
  uint64_t head;  /* position of the next record; what the slot's head is, or is about to be */
  uint64_t limit; /* there is room up to here, as far as is known: a tail seen earlier + the ring's records */
  taut_record_t *ring;
  uint64_t mask;
  taut_slot_t *slot; /* NULL until claimed */
  uint32_t counter;
  uint32_t refused; /* how often there was no slot, or TAUT_REFUSED_FOR_GOOD */
} taut_thread_t;

/* There are no bytes for its ring: a thread does not try that again in the midst of its work. */
#define TAUT_REFUSED_FOR_GOOD UINT32_MAX

/* A telemetry channel: its ring, or none yet. The hot path compares the first two, as in a thread. */
typedef struct taut_telemetry_s {
  uint64_t head, limit;
  char *slots;
  uint64_t mask;
  size_t stride, bytes;
  uint64_t sequence; /* how often was written, the dropped ones too */
  taut_channel_t *ring;
  size_t mapped;
  uint32_t counter, refused;
  uint64_t lost_here; /* dropped while there was no ring */
  double rate_hz;
  char *description;
  size_t description_bytes;
  struct taut_telemetry_s *next;
} taut_telemetry_t;

/* The names carry the layout's number: objects compiled with another taut.h keep their own state. */
#define taut_process_ taut_process_3_
#define taut_mutex_ taut_mutex_2_
#define taut_thread_ taut_thread_2_
#define taut_channels_ taut_channels_1_
TAUT_SHARED taut_process_t taut_process_ = {TAUT_UNKNOWN, 0, 0, NULL, {NULL}, NULL, 0, 0, -1, 0, 0};
TAUT_SHARED pthread_mutex_t taut_mutex_ = PTHREAD_MUTEX_INITIALIZER;
/* All telemetry channels, under the mutex: a fork's child must find them. */
TAUT_SHARED taut_telemetry_t *taut_channels_ = NULL;
/* __thread, not thread_local: no C++ wrapper call around what has no constructor. */
TAUT_SHARED __thread taut_thread_t taut_thread_ = {0, 0, NULL, 0, NULL, 0, 0};

static inline uint64_t taut_monotonic_ns_(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The counter that nearly everybody has; the hot path knows no other. */
#if defined(__x86_64__)
#define TAUT_USUAL_COUNTER TAUT_COUNTER_TSC
#elif defined(__aarch64__)
#define TAUT_USUAL_COUNTER TAUT_COUNTER_CNTVCT
#else
#define TAUT_USUAL_COUNTER TAUT_COUNTER_MONOTONIC
#endif

static inline uint64_t taut_usual_ticks_(void) {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return taut_monotonic_ns_();
#endif
}

/* --- attach: once a process, under the mutex ------------------------------------------------------ */

/* The slow steps must not show: errno stays, and no cancellation point ends the thread amid them. Signals wait meanwhile:
 * to reserve a ring takes about a millisecond, and a signal would end that with EINTR. */
typedef struct {
  int error_number, cancel_state;
  sigset_t signals;
} taut_aside_t;

TAUT_COLD static taut_aside_t taut_step_aside_(void) {
  taut_aside_t aside;
  sigset_t all;
  aside.error_number = errno;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &aside.cancel_state);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &aside.signals);
  return aside;
}

TAUT_COLD static void taut_step_back_(taut_aside_t aside) {
  pthread_sigmask(SIG_SETMASK, &aside.signals, NULL);
  pthread_setcancelstate(aside.cancel_state, NULL);
  errno = aside.error_number;
}

TAUT_COLD static uint32_t taut_best_counter_(void) {
  const char *forced = getenv("TAUT_CLOCK");
  if (forced && !strcmp(forced, "monotonic")) return TAUT_COUNTER_MONOTONIC;
#if defined(__aarch64__)
  return TAUT_COUNTER_CNTVCT;
#elif defined(__x86_64__)
  {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    char source[64] = "tsc";
    ssize_t length = -1;
    int fd;
    if (forced && !strcmp(forced, "tsc")) return TAUT_COUNTER_TSC;
    /* Invariant TSC: Intel SDM vol. 2A, CPUID leaf 80000007H, EDX bit 8. */
    if (!__get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) || !(edx & (1u << 8))) return TAUT_COUNTER_MONOTONIC;
    fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
      length = read(fd, source, sizeof source - 1);
      close(fd);
    }
    if (length > 0) {
      source[length] = 0;
      source[strcspn(source, "\n")] = 0;
    }
    return !strcmp(source, "tsc") || !strcmp(source, "kvm-clock") || !strcmp(source, "hyperv_clocksource_tsc_page")
               ? TAUT_COUNTER_TSC
               : TAUT_COUNTER_MONOTONIC;
  }
#else
  return TAUT_COUNTER_MONOTONIC;
#endif
}

TAUT_COLD static uint32_t taut_ring_records_(void) {
  const char *text = getenv("TAUT_RING_RECORDS");
  unsigned long n = text ? strtoul(text, NULL, 10) : 0;
  return n >= 64 && n <= 1ul << 24 && !(n & (n - 1)) ? (uint32_t)n : (uint32_t)TAUT_DEFAULT_RING_RECORDS;
}

/* Field 22 of /proc/self/stat; 0 when unreadable. */
TAUT_COLD static uint64_t taut_start_time_(void) {
  char text[1024];
  char *at;
  int field;
  ssize_t length;
  int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return 0;
  text[length] = 0;
  at = strrchr(text, ')');
  for (field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
  return at ? strtoull(at, NULL, 10) : 0;
}

/* Longer than the limit, and ftruncate would end the process with SIGXFSZ. */
TAUT_COLD static int taut_may_have_(size_t length) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= length;
}

/* Reserves, maps and fills in the fixed part of a new ring file; NULL if that cannot be. The rings are
 * mapped one by one when claimed: under mlockall(MCL_FUTURE) a mapping of the whole file would take
 * memory for all 64 of them. */
TAUT_COLD static taut_header_t *taut_lay_out_(int fd) {
  const uint32_t records = taut_ring_records_();
  const size_t stride = ((size_t)records * sizeof(taut_record_t) + TAUT_PAGE - 1) / TAUT_PAGE * TAUT_PAGE;
  const size_t names = TAUT_PAGE, slots = names + TAUT_NAME_CAPACITY * sizeof(taut_name_t);
  const size_t rings = slots + TAUT_SLOT_COUNT * sizeof(taut_slot_t);
  const size_t length = rings + TAUT_SLOT_COUNT * stride;
  const taut_header_t *parent = taut_process_.header;
  struct stat ns;
  taut_header_t *header;
  void *map;
  if (!taut_may_have_(length) || ftruncate(fd, (off_t)length)) return NULL;
  if (syscall(SYS_fallocate, fd, 0, (off_t)0, (off_t)rings)) return NULL;
  map = mmap(NULL, rings, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return NULL;
  header = (taut_header_t *)map;
  if (parent) { /* After a fork: ids cached at call sites stay valid. */
    uint32_t count = __atomic_load_n(&parent->name_count, __ATOMIC_ACQUIRE);
    memcpy((char *)map + names, (const char *)parent + names, slots - names);
    header->name_count = count < TAUT_NAME_CAPACITY ? count : (uint32_t)TAUT_NAME_CAPACITY;
  }
  memcpy(header->magic, "TAUTRING", 8);
  header->version = TAUT_VERSION;
  header->counter = taut_best_counter_();
  header->pid = (uint32_t)getpid();
  header->slot_count = TAUT_SLOT_COUNT;
  header->ring_records = records;
  header->name_capacity = TAUT_NAME_CAPACITY;
  header->start_time = taut_start_time_();
  header->pid_namespace = stat("/proc/self/ns/pid", &ns) ? 0 : (uint64_t)ns.st_ino;
  header->names_offset = names;
  header->slots_offset = slots;
  header->rings_offset = rings;
  header->ring_stride = stride;
  header->content = TAUT_CONTENT;
  return header;
}

/* Whether the descriptor still is the ring file's. */
TAUT_COLD static int taut_fd_is_ours_(void) {
  struct stat now;
  return taut_process_.fd >= 0 && !fstat(taut_process_.fd, &now) && now.st_dev == taut_process_.device &&
         now.st_ino == taut_process_.inode;
}

/* The new file takes the place of the parent's, whose rings are not this process's to write. */
TAUT_COLD static void taut_take_over_(int fd, const struct stat *file, size_t ring_bytes) {
  size_t i;
  if (taut_fd_is_ours_()) close(taut_process_.fd);
  for (i = 0; i < TAUT_SLOT_COUNT; i++)
    if (taut_process_.rings[i]) munmap((void *)taut_process_.rings[i], ring_bytes);
  memset((void *)taut_process_.rings, 0, sizeof taut_process_.rings);
  taut_process_.fd = fd;
  taut_process_.device = file->st_dev;
  taut_process_.inode = file->st_ino;
}

/* Gives a file its name and never another's: 0, or an error number, which is EEXIST where somebody has it. */
TAUT_COLD static int taut_publish_(const char *temporary, const char *path) {
#ifdef SYS_renameat2
  const long no_replace = 1; /* RENAME_NOREPLACE, which older headers lack */
  if (!syscall(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, path, no_replace)) return 0;
  if (errno != ENOSYS && errno != EINVAL) return errno;
#endif
  /* An old kernel, or a file system that does not know the flag. */
  if (link(temporary, path)) return errno;
  unlink(temporary);
  return 0;
}

TAUT_COLD static taut_header_t *taut_build_(const char *session) {
  char temporary[4096], path[4096];
  const size_t old_ring_bytes = taut_process_.header ? (size_t)taut_process_.header->ring_records * sizeof(taut_record_t) : 0;
  int n;
  for (n = 0; n < 10000; n++) {
    taut_header_t *header;
    struct stat file;
    int fd, error = 0;
    int a = snprintf(temporary, sizeof temporary, "%s/.%d-%d.tmp", session, (int)getpid(), n);
    int b = snprintf(path, sizeof path, "%s/%d-%d.taut", session, (int)getpid(), n);
    if (a < 0 || b < 0 || (size_t)a >= sizeof temporary || (size_t)b >= sizeof path) return NULL;
    if (!access(path, F_OK)) continue;
    fd = open(temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return NULL;
    header = taut_lay_out_(fd);
    if (header && !fstat(fd, &file) && !(error = taut_publish_(temporary, path))) {
      taut_take_over_(fd, &file, old_ring_bytes);
      return header;
    }
    if (header) munmap((void *)header, (size_t)header->rings_offset);
    unlink(temporary);
    close(fd);
    if (error != EEXIST) return NULL;
  }
  return NULL;
}

TAUT_COLD static void taut_before_fork_(void) { pthread_mutex_lock(&taut_mutex_); }
TAUT_COLD static void taut_after_fork_in_parent_(void) { pthread_mutex_unlock(&taut_mutex_); }

/* To be called by a child made by raw clone before it stamps; fork does it by itself. */
TAUT_COLD static void taut_after_fork(void) {
  static const taut_thread_t nowhere = {0, 0, NULL, 0, NULL, 0, 0};
  taut_telemetry_t *channel;
  for (channel = taut_channels_; channel; channel = channel->next) { /* Their rings are the parent's. */
    if (channel->ring) munmap((void *)channel->ring, channel->mapped);
    channel->ring = NULL;
    channel->head = channel->limit = channel->sequence = channel->lost_here = 0;
    channel->refused = 0;
  }
  if (__atomic_load_n(&taut_process_.state, __ATOMIC_ACQUIRE) == TAUT_ON)
    __atomic_store_n(&taut_process_.state, (uint32_t)TAUT_UNKNOWN, __ATOMIC_RELEASE);
  __atomic_store_n(&taut_process_.lost_here, (uint64_t)0, __ATOMIC_RELAXED);
  __atomic_store_n(&taut_process_.lost_telemetry_here, (uint64_t)0, __ATOMIC_RELAXED);
  taut_thread_ = nowhere;
}

TAUT_COLD static void taut_after_fork_in_child_(void) {
  pthread_mutex_unlock(&taut_mutex_);
  taut_after_fork();
}

/* Of a thread that ends. After a fork the key may still hold the parent's slot: not ours to close. */
TAUT_COLD static void taut_close_slot_(void *slot) {
  if (slot != (void *)taut_thread_.slot) return;
  taut_thread_.slot = NULL;
  taut_thread_.head = taut_thread_.limit = 0;
  taut_thread_.refused = TAUT_REFUSED_FOR_GOOD;
  __atomic_store_n(&((taut_slot_t *)slot)->state, (uint32_t)TAUT_SLOT_CLOSED, __ATOMIC_RELEASE);
}

/* The C library keeps the addresses of the two functions above: the shared object they are in must stay
 * when it is dlclosed. Weak, because before glibc 2.34 these two lived in libdl; who needs them has it. */
typedef struct { /* Dl_info, which needs _GNU_SOURCE */
  const char *path;
  void *base;
  const char *symbol;
  void *address;
} taut_object_t;
static int taut_dladdr_(const void *address, taut_object_t *object) __attribute__((weakref("dladdr"), unused));
static void *taut_dlopen_(const char *path, int flags) __attribute__((weakref("dlopen"), unused));

/* Before the mutex is taken: these two take the loader's lock, and whoever has that (dlopen, while constructors run) may
 * be about to stamp. */
TAUT_COLD static void taut_stay_loaded_(const char *session) {
#if defined(__PIC__) && !defined(__PIE__) /* a program is never unloaded */
  taut_object_t object;
  void *address;
  void (*function)(void *) = taut_close_slot_;
  if (!session || !*session || __atomic_load_n(&taut_process_.has_handlers, __ATOMIC_RELAXED)) return;
  memcpy(&address, &function, sizeof address);
  if (taut_dladdr_ && taut_dlopen_ && taut_dladdr_(address, &object) && object.path)
    (void)taut_dlopen_(object.path, RTLD_LAZY | 4 /* RTLD_NOLOAD */ | 0x1000 /* RTLD_NODELETE */);
#else
  (void)session;
#endif
}

/* The recorder is to know of what was lost before there was a ring file; and channels look for a ring again. */
TAUT_COLD static void taut_begin_file_(taut_header_t *header) {
  taut_telemetry_t *channel;
  const uint64_t lost = __atomic_exchange_n(&taut_process_.lost_here, (uint64_t)0, __ATOMIC_RELAXED);
  const uint64_t lost_telemetry = __atomic_exchange_n(&taut_process_.lost_telemetry_here, (uint64_t)0, __ATOMIC_RELAXED);
  __atomic_fetch_add(&header->lost_without_slot, lost, __ATOMIC_RELAXED);
  __atomic_fetch_add(&header->lost_telemetry, lost_telemetry, __ATOMIC_RELAXED);
  for (channel = taut_channels_; channel; channel = channel->next)
    __atomic_store_n(&channel->refused, 0u, __ATOMIC_RELAXED); /* Its own thread may be looking. */
  __atomic_store_n(&taut_process_.header, header, __ATOMIC_RELEASE);
}

/* With the mutex held. */
TAUT_COLD static void taut_attach_locked_(void) {
  const char *session = taut_process_.session ? taut_process_.session : getenv("TAUT_SESSION");
  uint32_t state = TAUT_IS_OFF;
  if (session && *session) {
    taut_header_t *header = NULL;
    if (!taut_process_.has_handlers) {
      const int have = !pthread_key_create(&taut_process_.closer, taut_close_slot_) &&
                       !pthread_atfork(taut_before_fork_, taut_after_fork_in_parent_, taut_after_fork_in_child_);
      __atomic_store_n(&taut_process_.has_handlers, have, __ATOMIC_RELAXED);
    }
    if (taut_process_.has_handlers) header = taut_build_(session);
    if (header) taut_begin_file_(header);
    state = header ? TAUT_ON : TAUT_FAILED;
  }
  __atomic_store_n(&taut_process_.state, state, __ATOMIC_RELEASE);
}

/* The ring file's header, attaching if nobody has tried yet; NULL when off or failed. */
TAUT_COLD static taut_header_t *taut_header_(void) {
  if (__atomic_load_n(&taut_process_.state, __ATOMIC_ACQUIRE) == TAUT_UNKNOWN) {
    const taut_aside_t aside = taut_step_aside_();
    taut_stay_loaded_(getenv("TAUT_SESSION"));
    pthread_mutex_lock(&taut_mutex_);
    if (__atomic_load_n(&taut_process_.state, __ATOMIC_ACQUIRE) == TAUT_UNKNOWN) taut_attach_locked_();
    pthread_mutex_unlock(&taut_mutex_);
    taut_step_back_(aside);
  }
  return __atomic_load_n(&taut_process_.state, __ATOMIC_ACQUIRE) == TAUT_ON
             ? __atomic_load_n(&taut_process_.header, __ATOMIC_ACQUIRE)
             : NULL;
}

/* --- names ---------------------------------------------------------------------------------------- */

/* The id of a name, from 1; 0 without a session, for an empty name, or when the table is full. */
TAUT_COLD static uint32_t taut_point(const char *name) {
  taut_header_t *header = taut_header_();
  size_t length = strlen(name);
  taut_name_t *names;
  uint32_t count, i;
  if (length > TAUT_NAME_MAX) { /* Cut before a character, not inside one. */
    length = TAUT_NAME_MAX;
    while (length && ((unsigned char)name[length] & 0xC0) == 0x80) length--;
  }
  if (!header || !length) return 0;
  names = (taut_name_t *)(void *)((char *)header + header->names_offset);
  count = __atomic_load_n(&header->name_count, __ATOMIC_ACQUIRE);
  for (i = 0; i < count && i < TAUT_NAME_CAPACITY; i++)
    if (__atomic_load_n(&names[i].length, __ATOMIC_ACQUIRE) == length && !memcmp(names[i].bytes, name, length)) return i + 1;
  /* A full table is not counted further: the number would come round, and entries be written again. */
  i = count < TAUT_NAME_CAPACITY ? __atomic_fetch_add(&header->name_count, 1u, __ATOMIC_ACQ_REL) : count;
  if (i >= TAUT_NAME_CAPACITY) {
    __atomic_fetch_add(&header->lost_names, (uint64_t)1, __ATOMIC_RELAXED);
    return 0;
  }
  memcpy(names[i].bytes, name, length);
  __atomic_store_n(&names[i].length, (uint32_t)length, __ATOMIC_RELEASE);
  return i + 1;
}

/* --- threads -------------------------------------------------------------------------------------- */

/* Counts what no ring took. Without a ring file the 2nd, 4th, 8th … of these tries once more to make it: what was in the way (no
 * descriptor left, no room) may be gone. */
TAUT_COLD static void taut_count_(uint64_t *in_file, uint64_t *here) {
  taut_aside_t aside;
  uint64_t lost;
  int attached;
  if (in_file) {
    __atomic_fetch_add(in_file, (uint64_t)1, __ATOMIC_RELAXED);
    return;
  }
  lost = __atomic_add_fetch(here, (uint64_t)1, __ATOMIC_RELAXED);
  if (lost < 2 || (lost & (lost - 1))) return;
  aside = taut_step_aside_();
  pthread_mutex_lock(&taut_mutex_);
  if (__atomic_load_n(&taut_process_.state, __ATOMIC_ACQUIRE) == TAUT_FAILED) taut_attach_locked_();
  attached = __atomic_load_n(&taut_process_.state, __ATOMIC_ACQUIRE) == TAUT_ON;
  pthread_mutex_unlock(&taut_mutex_);
  if (attached) taut_thread_.refused = 0; /* Not with the mutex, as in taut_attach. */
  taut_step_back_(aside);
}

TAUT_COLD static void taut_count_lost_(void) {
  taut_header_t *header = taut_header_();
  taut_count_(header ? &header->lost_without_slot : NULL, &taut_process_.lost_here);
}

/* Reserves the ring's bytes first: a full tmpfs is an error here, never a SIGBUS later. */
TAUT_COLD static taut_record_t *taut_map_ring_(taut_header_t *header, size_t index) {
  const size_t length = (size_t)header->ring_records * sizeof(taut_record_t);
  const size_t offset = (size_t)header->rings_offset + index * (size_t)header->ring_stride;
  taut_record_t *ring = __atomic_load_n(&taut_process_.rings[index], __ATOMIC_ACQUIRE);
  size_t page;
  if (ring) return ring; /* An earlier thread's of this slot. */
  if (!taut_fd_is_ours_() || syscall(SYS_fallocate, taut_process_.fd, 0, (off_t)offset, (off_t)length)) return NULL;
  ring = (taut_record_t *)mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, taut_process_.fd, (off_t)offset);
  if (ring == MAP_FAILED) return NULL;
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
  if (madvise((void *)ring, length, MADV_POPULATE_WRITE)) /* Before Linux 5.14. */
    for (page = 0; page < length; page += TAUT_PAGE) ((volatile char *)ring)[page] = 0;
  __atomic_store_n(&taut_process_.rings[index], ring, __ATOMIC_RELEASE);
  return ring;
}

static inline taut_slot_t *taut_slot_(const taut_header_t *header, size_t index) {
  return (taut_slot_t *)(void *)((char *)header + header->slots_offset) + index;
}

/* The first slot that was in this state and is being claimed now; NULL when none is in it. */
TAUT_COLD static taut_slot_t *taut_take_slot_(const taut_header_t *header, uint32_t state) {
  size_t i;
  for (i = 0; i < TAUT_SLOT_COUNT; i++) {
    taut_slot_t *slot = taut_slot_(header, i);
    uint32_t expected = state;
    if (__atomic_compare_exchange_n(&slot->state, &expected, (uint32_t)TAUT_SLOT_CLAIMING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return slot;
  }
  return NULL;
}

/* Gives the room of an ended thread's unread records to the next. They are lost and counted, but for the names of
 * locks, which a late consumer heeds: of those the newest stay, in at most half of the ring. */
TAUT_COLD static void taut_discard_(taut_slot_t *slot, taut_record_t *ring, uint64_t mask) {
  const uint64_t head = __atomic_load_n(&slot->head, __ATOMIC_RELAXED);
  /* Acquire: an earlier consumer has read what is about to be overwritten. */
  const uint64_t waiting = head - __atomic_load_n(&slot->tail, __ATOMIC_ACQUIRE);
  const uint64_t unread = waiting <= mask + 1 ? waiting : mask + 1; /* more for a tail that no consumer may have written */
  uint64_t at, kept = 0;
  for (at = 1; at <= unread && kept <= mask / 2; at++)
    if (ring[(head - at) & mask].kind == TAUT_KIND_LOCK_NAMED) ring[(head - ++kept) & mask] = ring[(head - at) & mask];
  __atomic_store_n(&slot->lost, slot->lost + (unread - kept), __ATOMIC_RELAXED);
  __atomic_store_n(&slot->tail, head - kept, __ATOMIC_RELEASE);
}

/* A slot of an ended thread, where no consumer is to free one. The lock says so: a consumer holds it while it has the
 * file, and waits while it is held here. Unlocked by hand: a child of raw clone has the descriptor, too. */
TAUT_COLD static taut_slot_t *taut_reclaim_(const taut_header_t *header) {
  taut_slot_t *slot = NULL;
  pthread_mutex_lock(&taut_mutex_);
  if (taut_fd_is_ours_() && !flock(taut_process_.fd, LOCK_EX | LOCK_NB)) {
    slot = taut_take_slot_(header, TAUT_SLOT_CLOSED);
    if (slot) taut_discard_(slot, taut_process_.rings[slot - taut_slot_(header, 0)], header->ring_records - 1u);
    flock(taut_process_.fd, LOCK_UN);
  }
  pthread_mutex_unlock(&taut_mutex_);
  return slot;
}

/* Gives this thread a slot: 0, else how `refused` goes on. */
TAUT_COLD static uint32_t taut_claim_of_(taut_header_t *header) {
  taut_slot_t *slot = taut_take_slot_(header, TAUT_SLOT_FREE);
  taut_record_t *ring;
  if (!slot) slot = taut_reclaim_(header);
  if (!slot) return taut_thread_.refused ? taut_thread_.refused : 1;
  ring = taut_map_ring_(header, (size_t)(slot - taut_slot_(header, 0)));
  if (!ring || pthread_setspecific(taut_process_.closer, slot)) {
    __atomic_store_n(&slot->state, (uint32_t)TAUT_SLOT_FREE, __ATOMIC_RELEASE);
    return TAUT_REFUSED_FOR_GOOD;
  }
  __atomic_store_n(&slot->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
  __atomic_store_n(&slot->generation, slot->generation + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->opened_ns, taut_monotonic_ns_(), __ATOMIC_RELAXED);
  __atomic_store_n(&slot->state, (uint32_t)TAUT_SLOT_OPEN, __ATOMIC_RELEASE);
  taut_thread_.ring = ring;
  taut_thread_.mask = header->ring_records - 1u;
  taut_thread_.counter = header->counter;
  taut_thread_.slot = slot;
  taut_thread_.head = taut_thread_.limit = __atomic_load_n(&slot->head, __ATOMIC_RELAXED);
  return 0;
}

/* Gives this thread a slot if it has none; 1 when it has one. A thread that got none looks again at its 2nd, 4th, 8th …
 * try: so it loses no more than twice what was lost before a slot came free, for a few looks in all. */
TAUT_COLD static int taut_claim_(void) {
  taut_header_t *header;
  taut_aside_t aside;
  if (taut_thread_.slot) return 1;
  if (taut_thread_.refused) {
    if (taut_thread_.refused == TAUT_REFUSED_FOR_GOOD) return 0;
    taut_thread_.refused++;
    if (taut_thread_.refused & (taut_thread_.refused - 1)) return 0;
  }
  header = taut_header_();
  if (!header && __atomic_load_n(&taut_process_.state, __ATOMIC_ACQUIRE) == TAUT_IS_OFF) return 0;
  aside = taut_step_aside_();
  if (header) taut_thread_.refused = taut_claim_of_(header);
  else if (!taut_thread_.refused) taut_thread_.refused = 1;
  taut_step_back_(aside);
  return taut_thread_.slot != NULL;
}

/* --- the hot path ----------------------------------------------------------------------------------- */

static inline int taut_is_off_(void) {
  return __atomic_load_n(&taut_process_.state, __ATOMIC_RELAXED) == TAUT_IS_OFF;
}

static inline void taut_put_(taut_thread_t *here, uint64_t ticks, uint32_t point, uint32_t kind, uint64_t message_id, uint64_t value) {
  taut_record_t *record = &here->ring[here->head & here->mask];
  record->ticks = ticks;
  record->message_id = message_id;
  record->point = point;
  record->kind = kind;
  record->value = value;
  /* The ring is longer than a cache, and the consumer has taken its lines: fetch those of the stamps to come. Past the
   * ring's end this fetches nothing. */
  __builtin_prefetch(record + 16, 1);
  here->head++;
  /* Release: the record is there before the consumer sees the new head. SYNC POINT head */
  __atomic_store_n(&here->slot->head, here->head, __ATOMIC_RELEASE);
}

/* A thread's first, one in as many as the ring has, and those of another counter; drops and counts what cannot be. */
TAUT_COLD static void taut_write_slowly_(uint32_t point, uint32_t kind, uint64_t message_id, uint64_t value) {
  taut_thread_t *here = &taut_thread_;
  if (!taut_claim_()) {
    if (!taut_is_off_()) taut_count_lost_();
    return;
  }
  if (here->head == here->limit) {
    /* Acquire: the consumer has read what is about to be overwritten. SYNC POINT tail */
    const uint64_t tail = __atomic_load_n(&here->slot->tail, __ATOMIC_ACQUIRE);
    if (here->head - tail > here->mask) { /* Also for a tail that no consumer may have written. */
      __atomic_store_n(&here->slot->lost, here->slot->lost + 1, __ATOMIC_RELAXED);
      return;
    }
    here->limit = tail + here->mask + 1;
  }
  taut_put_(here, here->counter == TAUT_USUAL_COUNTER ? taut_usual_ticks_() : taut_monotonic_ns_(), point, kind, message_id, value);
  if (here->counter != TAUT_USUAL_COUNTER) here->limit = here->head; /* the next one comes here too */
}

static inline void taut_write_(uint32_t point, uint32_t kind, uint64_t message_id, uint64_t value) {
  taut_thread_t *here = &taut_thread_;
  /* In a shared object this address is found by a call, which compilers make anew for each use if they may. */
  __asm__("" : "+r"(here));
  if (TAUT_LIKELY(here->head != here->limit))
    taut_put_(here, taut_usual_ticks_(), point, kind, message_id, value);
  else
    taut_write_slowly_(point, kind, message_id, value);
}

/* The message passed the point that taut_point gave. */
static inline void taut_stamp(uint32_t point, uint64_t message_id) {
  if (!taut_is_off_()) taut_write_(point, TAUT_KIND_STAMP, message_id, 0);
}

/* The message passed the point and was due at `intended_ns`, CLOCK_MONOTONIC (a std::chrono::steady_clock's time, too): the
 * moment that a periodic loop was to be woken, or a source was to send. 0: no such time. */
static inline void taut_stamp_at(uint32_t point, uint64_t message_id, uint64_t intended_ns) {
  if (!taut_is_off_()) taut_write_(point, TAUT_KIND_STAMP, message_id, intended_ns);
}

static inline uint64_t taut_bits_(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Looks a call site's name up and keeps id + 1; a name that the table refused keeps 1, for "no name". */
TAUT_COLD static uint32_t taut_look_up_(uint32_t *cached, const char *name) {
  const uint32_t point = taut_point(name);
  if (point || taut_header_()) __atomic_store_n(cached, point + 1, __ATOMIC_RELAXED);
  return point;
}

/* The id of a call site's name, looked up once; 0 in the cache is "not yet". */
static inline uint32_t taut_site_(uint32_t *cached, const char *name) {
  const uint32_t kept = __atomic_load_n(cached, __ATOMIC_RELAXED);
  return TAUT_LIKELY(kept) ? kept - 1 : taut_look_up_(cached, name);
}

#define TAUT_AT_SITE_(name, write)                          \
  do {                                                      \
    if (!taut_is_off_()) {                                  \
      static uint32_t taut_cached_ = 0;                     \
      const uint32_t taut_id_ = taut_site_(&taut_cached_, name); \
      write;                                                \
    }                                                       \
  } while (0)

/* The message passed here. `name` is the same string at each call of this line. */
#define TAUT_STAMP(name, message_id) TAUT_AT_SITE_(name, taut_write_(taut_id_, TAUT_KIND_STAMP, (message_id), 0))
/* As taut_stamp_at. */
#define TAUT_STAMP_AT(name, message_id, intended_ns) \
  TAUT_AT_SITE_(name, taut_write_(taut_id_, TAUT_KIND_STAMP, (message_id), (intended_ns)))
/* Work that is not a message's begins, ends. */
#define TAUT_BEGIN(name) TAUT_AT_SITE_(name, taut_write_(taut_id_, TAUT_KIND_BEGIN, 0, 0))
#define TAUT_END(name) TAUT_AT_SITE_(name, taut_write_(taut_id_, TAUT_KIND_END, 0, 0))
/* The message ended, not applied, for this reason. */
#define TAUT_DROP(message_id, reason) TAUT_AT_SITE_(reason, taut_write_(0, TAUT_KIND_OUTCOME, (message_id), taut_id_))
/* The signal has this value now. */
#define TAUT_VALUE(name, value) TAUT_AT_SITE_(name, taut_write_(taut_id_, TAUT_KIND_VALUE, 0, taut_bits_(value)))
/* About to take the lock of this name; it is taken. */
#define TAUT_LOCK_WAIT(name) TAUT_AT_SITE_(name, taut_write_(taut_id_, TAUT_KIND_LOCK_WAIT, 0, 0))
#define TAUT_LOCK_ACQUIRED(name) TAUT_AT_SITE_(name, taut_write_(taut_id_, TAUT_KIND_LOCK_ACQUIRED, 0, 0))

/* Waits on this lock are told by this name from now on: a pthread_mutex_t, sem_t, std::mutex or futex word, by
 * its address, which the kernel sees when somebody waits. Once, where the lock is made; looks the name up in
 * the table at each call. A lock that moves or is made anew elsewhere is named again. */
#define TAUT_NAME_LOCK(name, lock) \
  taut_name_lock_(TAUT_LOCK_NAME_(name), (uint64_t)(uintptr_t)(lock), TAUT_LOCK_BYTES_(lock))

TAUT_COLD static void taut_name_lock_(const char *name, uint64_t address, uint64_t bytes) {
  if (!taut_is_off_()) taut_write_(taut_point(name), TAUT_KIND_LOCK_NAMED, bytes, address);
}

/* The message reached its goal. */
static inline void taut_applied(uint64_t message_id) { TAUT_DROP(message_id, "applied"); }

/* As TAUT_DROP for a reason made at run time: looks the name up in the table at each call. */
static inline void taut_outcome(uint64_t message_id, const char *reason) {
  if (!taut_is_off_()) taut_write_(0, TAUT_KIND_OUTCOME, message_id, taut_point(reason));
}

/* --- off the hot path --------------------------------------------------------------------------------- */

/* Takes this thread's one slow step now: claims its ring and maps it in. 1 when the thread will stamp. */
static inline int taut_prepare_thread(void) { return !taut_is_off_() && taut_claim_(); }

/* Uses this session directory instead of TAUT_SESSION, or that again for NULL. 1 when attached; a process that already is stays
 * where it is. The caller stamps at once; other threads that lost stamps before look again as those without a slot do. */
TAUT_COLD static int taut_attach(const char *session) {
  const taut_aside_t aside = taut_step_aside_();
  int attached;
  taut_stay_loaded_(session);
  taut_thread_.refused = 0; /* Not with the mutex: a shared object's first access may take the loader's lock, too. */
  pthread_mutex_lock(&taut_mutex_);
  if (__atomic_load_n(&taut_process_.state, __ATOMIC_ACQUIRE) != TAUT_ON) {
    free(taut_process_.session);
    taut_process_.session = session ? strdup(session) : NULL;
    taut_attach_locked_();
  }
  attached = __atomic_load_n(&taut_process_.state, __ATOMIC_ACQUIRE) == TAUT_ON;
  pthread_mutex_unlock(&taut_mutex_);
  taut_step_back_(aside);
  return attached;
}

/* 1 when stamps go to a session. */
static inline int taut_attached(void) { return taut_header_() != NULL; }

/* Stamps lost by this process: ring full, no slot, no session to be had. */
static inline uint64_t taut_lost(void) {
  taut_header_t *header = taut_header_();
  uint64_t lost = __atomic_load_n(&taut_process_.lost_here, __ATOMIC_RELAXED);
  size_t i;
  if (!header) return lost;
  lost += __atomic_load_n(&header->lost_without_slot, __ATOMIC_RELAXED);
  for (i = 0; i < TAUT_SLOT_COUNT; i++)
    lost += __atomic_load_n(&taut_slot_(header, i)->lost, __ATOMIC_RELAXED);
  return lost;
}

/* --- telemetry: a whole struct by one copy ----------------------------------------------------------------
 *
 *     typedef struct { double position; float torque; uint8_t mode; } joint_t;
 *     TAUT_DESCRIBE(joint_t, TAUT_FIELD(position, "rad"), TAUT_FIELD(torque, "N·m"), TAUT_FIELD(mode, ""),
 *                   TAUT_CONSTANT(mode, STOPPED, 0), TAUT_CONSTANT(mode, POSITION, 10));
 *     typedef struct { double time; joint_t joint[12]; char state[16]; } quad_t;
 *     TAUT_DESCRIBE(quad_t, TAUT_FIELD(time, "s"), TAUT_STRUCT(joint, joint_t, ""), TAUT_FIELD(state, ""));
 *
 *     taut_telemetry_t *log = TAUT_TELEMETRY("quad", quad_t, 400);   // the one slow step; 400 Hz sizes the ring
 *     TAUT_WRITE(log, &quad);                                        // each cycle, from one thread
 *
 * Fields are bool, integers, float, double, enums, char arrays (UTF-8 text), and arrays of them; in C an
 * array of several dimensions names its element: TAUT_ELEMENTS(inertia, double, "kg·m²"). The recording has
 * a channel /telemetry/quad; the comment goes into its schema. */

typedef struct taut_struct_s taut_struct_t;
typedef struct taut_field_s {
  const char *name, *kind; /* kind: as in docs/reference/protocol.md, "struct" or "constant" */
  size_t each, bytes, offset;
  const char *comment; /* of a constant: its field */
  const taut_struct_t *(*of)(void);
  long long value;
} taut_field_t;
struct taut_struct_s {
  const char *name;
  size_t bytes;
  const taut_field_t *fields;
  size_t count;
};

#define TAUT_DESCRIBE(type, ...)                                                             \
  static inline const taut_struct_t *type##_taut_(void) {                                    \
    typedef type taut_self_t;                                                                \
    static const taut_field_t taut_fields_[] = {__VA_ARGS__};                                \
    static const taut_struct_t taut_struct_ = {#type, sizeof(taut_self_t), taut_fields_,     \
                                               sizeof taut_fields_ / sizeof taut_fields_[0]}; \
    return &taut_struct_;                                                                    \
  }                                                                                          \
  struct taut_field_s

#define TAUT_FIELD(member, comment)                                                                        \
  {#member, TAUT_KIND_(member), TAUT_EACH_(member), sizeof(((taut_self_t *)0)->member),                    \
   offsetof(taut_self_t, member), comment, NULL, 0}
#define TAUT_ELEMENTS(member, type, comment)                                                               \
  {#member, TAUT_KIND_OF_(type), sizeof(type), sizeof(((taut_self_t *)0)->member), offsetof(taut_self_t, member), comment, NULL, 0}
#define TAUT_STRUCT(member, type, comment)                                                                 \
  {#member, "struct", sizeof(type), sizeof(((taut_self_t *)0)->member), offsetof(taut_self_t, member), comment, type##_taut_, 0}
#define TAUT_CONSTANT(member, name, value) {#name, "constant", 0, 0, 0, #member, NULL, (long long)(value)}

/* A channel without a name, or of a rate that is not above 0 and up to 1,000,000, gets no ring: what is written to it counts as lost. */
#define TAUT_TELEMETRY(name, type, rate_hz) taut_telemetry_open_((name), type##_taut_(), (rate_hz))
/* The values are these now: one copy. A pointer to something else than the channel's struct is counted as lost. */
#define TAUT_WRITE(channel, pointer) taut_telemetry_write_((channel), (pointer), sizeof *(pointer))

/* As the compiler has it: signed on x86, unsigned on Arm. */
#define TAUT_KIND_OF_CHAR_ ((char)-1 < 0 ? "int8" : "uint8")

#ifndef __cplusplus
/* What an expression's type is; an array decays to a pointer to its element. */
#define TAUT_KIND_OF_VALUE_(x)                                                                                       \
  _Generic((x), _Bool: "bool", char: TAUT_KIND_OF_CHAR_, signed char: "int8", short: "int16", int: "int32", long: "int64",       \
           long long: "int64", unsigned char: "uint8", unsigned short: "uint16", unsigned: "uint32",                 \
           unsigned long: "uint64", unsigned long long: "uint64", float: "float32", double: "float64",               \
           _Bool *: "bool", char *: "text", signed char *: "int8", short *: "int16", int *: "int32", long *: "int64", \
           long long *: "int64", unsigned char *: "uint8", unsigned short *: "uint16", unsigned *: "uint32",         \
           unsigned long *: "uint64", unsigned long long *: "uint64", float *: "float32", double *: "float64")
/* A pointer in the struct is no value: told from an array by its address. */
#define TAUT_IS_VALUE_(x)                                                                                            \
  _Generic(&(x), _Bool **: -1, char **: -1, signed char **: -1, short **: -1, int **: -1, long **: -1,               \
           long long **: -1, unsigned char **: -1, unsigned short **: -1, unsigned **: -1, unsigned long **: -1,     \
           unsigned long long **: -1, float **: -1, double **: -1, default: 1)
#define TAUT_KIND_(member) TAUT_KIND_OF_VALUE_(((taut_self_t *)0)->member)
/* Of an array the elements' size follows from their kind: 0. */
#define TAUT_EACH_(member) (sizeof(char[TAUT_IS_VALUE_(((taut_self_t *)0)->member)]) - 1)
#define TAUT_KIND_OF_(type) TAUT_KIND_OF_VALUE_((type)0)
#else
#define TAUT_KIND_(member) taut_kind_of_<decltype(taut_self_t::member)>::kind()
#define TAUT_EACH_(member) taut_kind_of_<decltype(taut_self_t::member)>::each
#define TAUT_KIND_OF_(type) taut_kind_of_<type>::kind()
#endif

enum { TAUT_TELEMETRY_VERSION = 1, TAUT_SLOT_HEAD = 16, TAUT_MOST_NESTED = 256 };

/* The text being made; a failed malloc shows in the end. */
typedef struct {
  char *text;
  size_t length, capacity;
  int failed;
  const taut_struct_t *done[TAUT_MOST_NESTED];
  size_t done_count;
} taut_text_t;

TAUT_COLD static void taut_say_(taut_text_t *to, const char *text) {
  /* No control characters, which part the words, unless they are ours. */
  const size_t length = strlen(text);
  if (to->failed) return;
  if (to->length + length + 1 > to->capacity) {
    const size_t capacity = (to->capacity + length + 1) * 2;
    char *more = (char *)realloc(to->text, capacity);
    if (!more) {
      to->failed = 1;
      return;
    }
    to->text = more;
    to->capacity = capacity;
  }
  memcpy(to->text + to->length, text, length + 1);
  to->length += length;
}

TAUT_COLD static void taut_say_words_(taut_text_t *to, const char *words) {
  const size_t from = to->length;
  size_t i;
  taut_say_(to, words);
  for (i = from; !to->failed && i < to->length; i++)
    if ((unsigned char)to->text[i] < ' ') to->text[i] = ' ';
}

TAUT_COLD static void taut_say_number_(taut_text_t *to, long long number) {
  char digits[24];
  snprintf(digits, sizeof digits, "%lld", number);
  taut_say_(to, digits);
}

TAUT_COLD static void taut_say_field_(taut_text_t *to, const taut_struct_t *of, const taut_field_t *field) {
  const int is_text = !strcmp(field->kind, "text");
  const char *bits = field->kind + strcspn(field->kind, "0123456789");
  size_t each = field->each, i;
  for (i = 0; i < of->count; i++) {
    const taut_field_t *constant = &of->fields[i];
    if (strcmp(constant->kind, "constant") || strcmp(constant->comment, field->name)) continue;
    taut_say_(to, "constant\t");
    taut_say_(to, field->name);
    taut_say_(to, "\t");
    taut_say_(to, constant->name);
    taut_say_(to, "\t");
    taut_say_number_(to, constant->value);
    taut_say_(to, "\n");
  }
  if (!each) each = is_text ? field->bytes : *bits ? (size_t)atoi(bits) / 8 : 1;
  taut_say_(to, "field\t");
  taut_say_(to, field->name);
  taut_say_(to, "\t");
  taut_say_(to, field->kind);
  if (is_text) taut_say_number_(to, (long long)each);
  if (field->of) {
    taut_say_(to, " ");
    taut_say_(to, field->of()->name);
  }
  taut_say_(to, "\t");
  taut_say_number_(to, field->bytes == each ? 0 : (long long)(field->bytes / each));
  taut_say_(to, "\t");
  taut_say_number_(to, (long long)field->offset);
  taut_say_(to, "\t");
  taut_say_words_(to, field->comment);
  taut_say_(to, "\n");
}

/* Types before those that hold them, each once. */
TAUT_COLD static void taut_say_struct_(taut_text_t *to, const taut_struct_t *of) {
  size_t i;
  for (i = 0; i < to->done_count; i++)
    if (to->done[i] == of) return;
  for (i = 0; i < of->count; i++)
    if (of->fields[i].of) taut_say_struct_(to, of->fields[i].of());
  taut_say_(to, "type\t");
  taut_say_(to, of->name);
  taut_say_(to, "\t");
  taut_say_number_(to, (long long)of->bytes);
  taut_say_(to, "\n");
  for (i = 0; i < of->count; i++)
    if (strcmp(of->fields[i].kind, "constant")) taut_say_field_(to, of, &of->fields[i]);
  if (to->done_count < TAUT_MOST_NESTED) to->done[to->done_count++] = of;
}

/* As many as are written in 2 s, a power of two, within the budget of memory. */
TAUT_COLD static size_t taut_telemetry_slots_(double rate_hz, size_t stride) {
  const char *text = getenv("TAUT_TELEMETRY_BYTES");
  const size_t asked = text ? (size_t)strtoull(text, NULL, 10) : 0, budget = asked ? asked : (size_t)64 << 20;
  const double wanted = rate_hz * 2;
  size_t slots = 16;
  while (slots < (size_t)1 << 20 && (double)slots < wanted) slots *= 2;
  while (slots > 16 && slots * stride > budget) slots /= 2;
  return slots;
}

/* Makes the file of a channel and maps it in, page by page now and not in a control loop. */
TAUT_COLD static taut_channel_t *taut_telemetry_lay_out_(const taut_telemetry_t *channel, taut_header_t *process, int fd,
                                                         size_t slots, size_t stride, size_t *length) {
  const size_t ring = ((size_t)TAUT_PAGE + channel->description_bytes + TAUT_PAGE - 1) / TAUT_PAGE * TAUT_PAGE;
  taut_channel_t *header;
  size_t page;
  *length = ring + slots * stride;
  if (!taut_may_have_(*length) || ftruncate(fd, (off_t)*length)) return NULL;
  if (syscall(SYS_fallocate, fd, 0, (off_t)0, (off_t)*length)) return NULL;
  header = (taut_channel_t *)mmap(NULL, *length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if ((void *)header == MAP_FAILED) return NULL;
  if (madvise((void *)header, *length, MADV_POPULATE_WRITE)) /* Before Linux 5.14. */
    for (page = 0; page < *length; page += TAUT_PAGE) ((volatile char *)header)[page] = 0;
  memcpy(header->magic, "TAUTTELE", 8);
  header->version = TAUT_TELEMETRY_VERSION;
  header->counter = process->counter;
  header->pid = (uint32_t)getpid();
  header->value_bytes = (uint32_t)channel->bytes;
  header->slot_count = (uint32_t)slots;
  header->start_time = process->start_time;
  header->pid_namespace = process->pid_namespace;
  header->slot_stride = stride;
  header->description_bytes = channel->description_bytes;
  header->ring_offset = ring;
  header->state = TAUT_SLOT_OPEN;
  memcpy((char *)header + TAUT_PAGE, channel->description, channel->description_bytes);
  return header;
}

TAUT_COLD static int taut_telemetry_build_(taut_telemetry_t *channel, taut_header_t *process) {
  char temporary[4096], path[4096];
  const char *session = taut_process_.session ? taut_process_.session : getenv("TAUT_SESSION");
  const size_t stride = (TAUT_SLOT_HEAD + channel->bytes + 63) / 64 * 64;
  const size_t slots = taut_telemetry_slots_(channel->rate_hz, stride);
  size_t length = 0;
  int n;
  if (!session || !channel->description || !channel->bytes || channel->bytes > (size_t)1 << 20) return 0;
  for (n = 0; n < 10000; n++) {
    taut_channel_t *ring;
    int fd, error = 0;
    int a = snprintf(temporary, sizeof temporary, "%s/.%d-%d.telemetry.tmp", session, (int)getpid(), n);
    int b = snprintf(path, sizeof path, "%s/%d-%d.telemetry", session, (int)getpid(), n);
    if (a < 0 || b < 0 || (size_t)a >= sizeof temporary || (size_t)b >= sizeof path) return 0;
    if (!access(path, F_OK)) continue;
    fd = open(temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return 0;
    ring = taut_telemetry_lay_out_(channel, process, fd, slots, stride, &length);
    close(fd);
    if (!ring || (error = taut_publish_(temporary, path))) {
      if (ring) munmap((void *)ring, length);
      unlink(temporary);
      if (error == EEXIST) continue;
      return 0;
    }
    channel->ring = ring;
    channel->mapped = length;
    channel->slots = (char *)ring + ring->ring_offset;
    channel->stride = stride;
    channel->mask = slots - 1;
    channel->counter = process->counter;
    channel->head = channel->limit = 0;
    return 1;
  }
  return 0;
}

/* Gives the channel a ring if there is a session; 1 when it has one. A channel that got none looks again at its 2nd, 4th, 8th … try,
 * as a thread does. */
TAUT_COLD static int taut_telemetry_claim_(taut_telemetry_t *channel) {
  taut_header_t *process;
  taut_aside_t aside;
  uint32_t refused;
  if (channel->ring) return 1;
  refused = __atomic_load_n(&channel->refused, __ATOMIC_RELAXED);
  if (refused) {
    __atomic_store_n(&channel->refused, ++refused, __ATOMIC_RELAXED);
    if (refused & (refused - 1)) return 0;
  }
  process = taut_header_();
  if (!process && __atomic_load_n(&taut_process_.state, __ATOMIC_ACQUIRE) == TAUT_IS_OFF) return 0;
  aside = taut_step_aside_();
  if (!process || !taut_telemetry_build_(channel, process))
    __atomic_store_n(&channel->refused, refused ? refused : 1u, __ATOMIC_RELAXED);
  taut_step_back_(aside);
  return channel->ring != NULL;
}

/* Whether it has a name, and a rate that a control loop may have. */
TAUT_COLD static int taut_telemetry_is_sound_(const char *name, double rate_hz) {
  while (*name && (unsigned char)*name <= ' ') name++;
  return *name && rate_hz > 0 && rate_hz <= 1e6;
}

/* A channel of this name; NULL only without memory, and then writes go nowhere. */
TAUT_COLD static taut_telemetry_t *taut_telemetry_open_(const char *name, const taut_struct_t *of, double rate_hz) {
  taut_telemetry_t *channel = (taut_telemetry_t *)calloc(1, sizeof *channel);
  taut_text_t *text = (taut_text_t *)calloc(1, sizeof *text);
  if (!channel || !text) {
    free(channel);
    free(text);
    return NULL;
  }
  taut_say_(text, "name\t");
  taut_say_words_(text, name);
  taut_say_(text, "\n");
  taut_say_struct_(text, of);
  if (!text->failed && taut_telemetry_is_sound_(name, rate_hz)) {
    channel->description = text->text;
    channel->description_bytes = text->length;
  } else {
    free(text->text);
  }
  free(text);
  channel->bytes = of->bytes;
  channel->rate_hz = rate_hz;
  pthread_mutex_lock(&taut_mutex_);
  channel->next = taut_channels_;
  taut_channels_ = channel;
  pthread_mutex_unlock(&taut_mutex_);
  taut_telemetry_claim_(channel);
  return channel;
}

static inline void taut_telemetry_put_(taut_telemetry_t *channel, uint64_t ticks, const void *value, size_t bytes) {
  char *slot = channel->slots + (channel->head & channel->mask) * channel->stride;
  const uint64_t head[2] = {ticks, channel->sequence - 1};
  memcpy(slot, head, sizeof head);
  memcpy(slot + TAUT_SLOT_HEAD, value, bytes);
  channel->head++;
  /* Release: the value is there before the consumer sees the new head. SYNC POINT head */
  __atomic_store_n(&channel->ring->head, channel->head, __ATOMIC_RELEASE);
}

TAUT_COLD static void taut_telemetry_write_slowly_(taut_telemetry_t *channel, const void *value, size_t bytes) {
  if (!taut_telemetry_claim_(channel) || bytes != channel->bytes) {
    taut_header_t *process = taut_is_off_() ? NULL : taut_header_();
    channel->lost_here++;
    if (!taut_is_off_()) taut_count_(process ? &process->lost_telemetry : NULL, &taut_process_.lost_telemetry_here);
    return;
  }
  if (channel->head == channel->limit) {
    /* Acquire: the consumer has read what is about to be overwritten. SYNC POINT tail */
    const uint64_t tail = __atomic_load_n(&channel->ring->tail, __ATOMIC_ACQUIRE);
    if (channel->head - tail > channel->mask) { /* Also for a tail that no consumer may have written. */
      __atomic_store_n(&channel->ring->lost, channel->ring->lost + 1, __ATOMIC_RELAXED);
      return;
    }
    channel->limit = tail + channel->mask + 1;
  }
  taut_telemetry_put_(channel, channel->counter == TAUT_USUAL_COUNTER ? taut_usual_ticks_() : taut_monotonic_ns_(), value, bytes);
  if (channel->counter != TAUT_USUAL_COUNTER) channel->limit = channel->head; /* the next one comes here too */
}

static inline void taut_telemetry_write_(taut_telemetry_t *channel, const void *value, size_t bytes) {
  if (taut_is_off_() || !channel) return;
  channel->sequence++;
  if (TAUT_LIKELY(channel->head != channel->limit && bytes == channel->bytes))
    taut_telemetry_put_(channel, taut_usual_ticks_(), value, bytes);
  else
    taut_telemetry_write_slowly_(channel, value, bytes);
}

/* Values dropped because the ring was full or could not be had. */
static inline uint64_t taut_telemetry_lost(const taut_telemetry_t *channel) {
  if (!channel) return 0;
  return channel->lost_here + (channel->ring ? __atomic_load_n(&channel->ring->lost, __ATOMIC_RELAXED) : 0);
}

/* What was written stays for the recorder. */
TAUT_COLD static void taut_telemetry_close(taut_telemetry_t *channel) {
  taut_telemetry_t **at;
  if (!channel) return;
  pthread_mutex_lock(&taut_mutex_);
  for (at = &taut_channels_; *at && *at != channel; at = &(*at)->next) {}
  if (*at) *at = channel->next;
  pthread_mutex_unlock(&taut_mutex_);
  if (channel->ring) {
    __atomic_store_n(&channel->ring->state, (uint32_t)TAUT_SLOT_CLOSED, __ATOMIC_RELEASE);
    munmap((void *)channel->ring, channel->mapped);
  }
  free(channel->description);
  free(channel);
}

#ifdef __cplusplus
}

/* What a field's type is, and the bytes of one element. */
template <class T, bool is_enum = __is_enum(T)>
struct taut_kind_of_;
#define TAUT_KIND_IS_(type, word)                          \
  template <>                                              \
  struct taut_kind_of_<type, false> {                      \
    static constexpr size_t each = sizeof(type);           \
    static constexpr const char *kind() { return word; }   \
  };
TAUT_KIND_IS_(bool, "bool")
TAUT_KIND_IS_(char, TAUT_KIND_OF_CHAR_)
TAUT_KIND_IS_(signed char, "int8")
TAUT_KIND_IS_(short, "int16")
TAUT_KIND_IS_(int, "int32")
TAUT_KIND_IS_(long, "int64")
TAUT_KIND_IS_(long long, "int64")
TAUT_KIND_IS_(unsigned char, "uint8")
TAUT_KIND_IS_(unsigned short, "uint16")
TAUT_KIND_IS_(unsigned, "uint32")
TAUT_KIND_IS_(unsigned long, "uint64")
TAUT_KIND_IS_(unsigned long long, "uint64")
TAUT_KIND_IS_(float, "float32")
TAUT_KIND_IS_(double, "float64")
#undef TAUT_KIND_IS_
template <class T>
struct taut_kind_of_<T, true> : taut_kind_of_<__underlying_type(T)> {};
template <class T, size_t N>
struct taut_kind_of_<T[N], false> : taut_kind_of_<T> {};
template <class T, size_t N>
struct taut_kind_of_<std::array<T, N>, false> : taut_kind_of_<T> {};
template <size_t N>
struct taut_kind_of_<char[N], false> {
  static constexpr size_t each = N;
  static constexpr const char *kind() { return "text"; }
};
#endif
#endif /* TAUT_OFF */
#endif /* TAUT_H */
