/* The talk of every benchmark program with `run`: one line "MODE COUNT" in, one line of ns out. The
 * programs live through the whole benchmark, so that `run` can interleave their batches. */
#ifndef BATCH_H
#define BATCH_H
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Keeps the compiler from merging or hoisting what is measured. */
#define EACH_TIME() __asm__ volatile("" ::: "memory")

static inline uint64_t thread_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int next_batch(char mode[32], uint64_t *count) {
  unsigned long long n;
  if (scanf("%31s %llu", mode, &n) != 2) return 0;
  *count = n;
  return 1;
}

static inline void answer_ns_each(uint64_t begin_ns, uint64_t count) {
  printf("%.4f\n", (double)(thread_ns() - begin_ns) / (double)count);
  fflush(stdout);
}
#endif
