// The n-th call of a name moves half of what was wanted, or fails: what strace cannot do. Preloaded into one process; its children
// are left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char wanted[16], log_path[4096];
static int nth, error_number;
enum { READ, WRITE, PREAD, MMAP, CALLS };
static const char *const names[CALLS] = {"read", "write", "pread64", "mmap"};
static atomic_int counts[CALLS];

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("TAUT_SHORT");  // NAME N ERRNO LOG
  if (text) sscanf(text, "%15s %d %d %4095s", wanted, &nth, &error_number, log_path);
  unsetenv("LD_PRELOAD");
  unsetenv("TAUT_SHORT");
}

// As strace writes it: the call with its thread, and what was done to it.
static void note(int call, const char *what) {
  char line[128];
  int length = snprintf(line, sizeof line, "%d %s(%s\n", gettid(), names[call], what);
  int file = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  ssize_t (*real_write)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  if (file >= 0) {
    if (real_write(file, line, length) != length) abort();
    close(file);
  }
}

static int is_due(int call) {
  if (!log_path[0]) return 0;
  int due = atomic_fetch_add(&counts[call], 1) + 1 == nth && !strcmp(wanted, names[call]);
  note(call, due ? ") = ? (INJECTED)" : ") = ?");
  return due;
}

ssize_t read(int fd, void *to, size_t length) {
  ssize_t (*real)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
  return real(fd, to, length > 1 && is_due(READ) ? length / 2 : length);
}

ssize_t write(int fd, const void *from, size_t length) {
  ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  return real(fd, from, length > 1 && is_due(WRITE) ? length / 2 : length);
}

ssize_t pread64(int fd, void *to, size_t length, off64_t at) {
  ssize_t (*real)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
  return real(fd, to, length > 1 && is_due(PREAD) ? length / 2 : length, at);
}

// Of files only: without memory of its own no program runs.
static void *map(const char *name, void *at, size_t length, int access, int flags, int fd, off64_t offset) {
  void *(*real)(void *, size_t, int, int, int, off64_t) = dlsym(RTLD_NEXT, name);
  if (fd >= 0 && is_due(MMAP)) {
    errno = error_number;
    return MAP_FAILED;
  }
  return real(at, length, access, flags, fd, offset);
}

void *mmap(void *at, size_t length, int access, int flags, int fd, off_t offset) {
  return map("mmap", at, length, access, flags, fd, offset);
}

void *mmap64(void *at, size_t length, int access, int flags, int fd, off64_t offset) {
  return map("mmap64", at, length, access, flags, fd, offset);
}
