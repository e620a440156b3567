/* Preloaded: CLOCK_REALTIME as if somebody had set it, by as many seconds as the first eight bytes of the file named in
 * CHAOS_CLOCK say. The machine's own clock, which others use, is left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
  static int (*real)(clockid_t, struct timespec *);
  static const int64_t *seconds;
  int result;
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  if (!seconds && getenv("CHAOS_CLOCK")) {
    int fd = open(getenv("CHAOS_CLOCK"), O_RDONLY | O_CLOEXEC);
    void *map = mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) seconds = (const int64_t *)map;
  }
  result = real(clock, time);
  if (!result && clock == CLOCK_REALTIME && seconds) time->tv_sec += *(volatile const int64_t *)seconds;
  return result;
}
