/* Two threads that together stamp 2 million times a second: every millisecond each of them takes 83 or 84
 * messages past 12 points, with uneven work between the points. Arguments: seconds. Prints
 * "STAMPS LOST LATE", where LATE counts milliseconds that began over a millisecond late. */
#include "taut.h"

#include <stdlib.h>

enum { STAMPS_PER_MS = 1000, POINTS = 12 };

typedef struct {
  pthread_t thread;
  uint64_t first_id, seconds, stamps, late;
} walker_t;

/* Up to some 350 ns, so that times on disk are not of the kind that compresses to nothing. */
static void uneven_work(uint64_t *random) {
  uint64_t i;
  *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17; /* xorshift64, Marsaglia 2003 */
  for (i = *random & 1023; i > 0; i--) __asm__ volatile("");
}

static void *walk(void *argument) {
  walker_t *walker = (walker_t *)argument;
  uint64_t ms, id = walker->first_id, random = id + 88172645463325252u, in_message = 0;
  uint32_t points[POINTS];
  struct timespec next;
  int i;
  for (i = 0; i < POINTS; i++) {
    char name[32];
    snprintf(name, sizeof name, "chain.point%d", i);
    points[i] = taut_point(name);
  }
  taut_prepare_thread();
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (ms = 0; ms < walker->seconds * 1000; ms++) {
    int n;
    for (n = 0; n < STAMPS_PER_MS; n++) {
      taut_stamp(points[in_message], id);
      uneven_work(&random);
      if (++in_message == POINTS) in_message = 0, id += 2;
    }
    walker->stamps += STAMPS_PER_MS;
    next.tv_nsec += 1000000;
    if (next.tv_nsec >= 1000000000) next.tv_nsec -= 1000000000, next.tv_sec++;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    if (taut_monotonic_ns_() > (uint64_t)next.tv_sec * 1000000000u + (uint64_t)next.tv_nsec + 1000000) walker->late++;
  }
  return NULL;
}

int main(int count, char **values) {
  walker_t walkers[2] = {{0, 0, 0, 0, 0}, {0, 1, 0, 0, 0}};
  uint64_t seconds = count > 1 ? strtoull(values[1], NULL, 10) : 60;
  int i;
  for (i = 0; i < 2; i++) {
    walkers[i].seconds = seconds;
    walkers[i].first_id = (uint64_t)i;
    if (pthread_create(&walkers[i].thread, NULL, walk, &walkers[i])) return 1;
  }
  for (i = 0; i < 2; i++) pthread_join(walkers[i].thread, NULL);
  printf("%llu %llu %llu\n", (unsigned long long)(walkers[0].stamps + walkers[1].stamps), (unsigned long long)taut_lost(),
         (unsigned long long)(walkers[0].late + walkers[1].late));
  return 0;
}
