/* Loops with a known cause of their tail, one for each situation of bench/tune/run. Each message goes from loop.due to loop.done.
 *
 * usage: situations KIND PERIOD_US SECONDS [CPU]   KIND: plain, faults, log, compute; with CPU all threads are bound to it, as a program of its own would */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "taut.h"

static volatile double sink;
static _Atomic int over;

static void compute(int rounds) {
  double x = 1;
  for (int i = 0; i < rounds; i++) x = x * 1.0000001 + 1e-9;
  sink = x;
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void until(uint64_t ns) {
  struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) {}
}

/* Formats lines without a pause, as a thread that writes logs does: most of 20 ms of each 25 ms. */
static void *write_log(void *nothing) {
  (void)nothing;
  prctl(PR_SET_NAME, "log");
  static char text[4096];
  while (!atomic_load(&over)) {
    const uint64_t begin = now_ns();
    while (now_ns() - begin < 20000000u) {
      for (int i = 0; i < 50; i++) snprintf(text, sizeof text, "%f %d", sink, i);
    }
    usleep(5000);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "usage: situations KIND PERIOD_US SECONDS [CPU]\n"), 2;
  const char *kind = argv[1];
  const uint64_t period_ns = strtoull(argv[2], NULL, 10) * 1000u;
  const double seconds = strtod(argv[3], NULL);
  if (argc > 4) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[4]), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) return perror("sched_setaffinity"), 2;
  }
  pthread_t writer;
  const int has_log = strcmp(kind, "log") == 0;
  if (has_log) pthread_create(&writer, NULL, write_log, NULL);
  prctl(PR_SET_NAME, "loop");
  uint64_t due = now_ns() + period_ns;
  const uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
  for (uint64_t id = 1; due < end; id++, due += period_ns) {
    until(due);
    TAUT_STAMP_AT("loop.due", id, due);
    TAUT_STAMP("loop.woken", id);
    if (strcmp(kind, "faults") == 0) {
      /* A buffer for each cycle: malloc maps and unmaps 8 MiB, and each page of it is faulted in. */
      const size_t bytes = id % 20 == 0 ? (size_t)8 << 20 : (size_t)1 << 16;
      char *buffer = malloc(bytes);
      for (size_t at = 0; at < bytes; at += 4096) buffer[at] = (char)id;
      sink = buffer[bytes / 2];
      free(buffer);
    }
    /* Every twentieth message is work of its own: no setting makes it shorter. */
    compute(strcmp(kind, "compute") == 0 && id % 20 == 0 ? 1000000 : 20000);
    TAUT_STAMP("loop.done", id);
  }
  atomic_store(&over, 1);
  if (has_log) pthread_join(writer, NULL);
  return 0;
}
