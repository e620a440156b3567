/* Takes a CPU for BUSY_US and rests for REST_US, again and again, for SECONDS at most. usage: hog BUSY_US REST_US SECONDS */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "usage: hog BUSY_US REST_US SECONDS\n"), 2;
  prctl(PR_SET_NAME, "hog");
  const uint64_t busy_ns = strtoull(argv[1], NULL, 10) * 1000u;
  const uint64_t end = now_ns() + (uint64_t)(strtod(argv[3], NULL) * 1e9);
  while (now_ns() < end) {
    const uint64_t begin = now_ns();
    while (now_ns() - begin < busy_ns) {}
    usleep((useconds_t)strtoul(argv[2], NULL, 10));
  }
  return 0;
}
