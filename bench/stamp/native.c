/* C's batches: reading the TSC, stamping from a program, stamping from a shared object, and the
 * distribution of single stamps. With TAUT_SESSION they are recorded, without it they are off. */
#include "taut.h"

#include <stdlib.h>
#include <x86intrin.h>

#include "batch.h"

void stamp_in_object(uint64_t count);
void stamp_in_object_gnu2(uint64_t count);

static void read_tsc(uint64_t count) {
  uint64_t i, sum = 0;
  for (i = 0; i < count; i++) {
    sum += __rdtsc();
    EACH_TIME();
  }
  __asm__ volatile("" ::"r"(sum));
}

static void stamp(uint64_t count) {
  uint64_t i;
  for (i = 0; i < count; i++) {
    TAUT_STAMP("control.received", i);
    EACH_TIME();
  }
}

static void nothing(uint64_t count) {
  uint64_t i;
  for (i = 0; i < count; i++) EACH_TIME();
}

static int by_size(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static double ticks_per_ns(void) {
  const uint64_t from_ns = taut_monotonic_ns_(), from = __rdtsc();
  while (taut_monotonic_ns_() - from_ns < 50000000) {
  }
  return (double)(__rdtsc() - from) / (double)(taut_monotonic_ns_() - from_ns);
}

/* Each stamp between two TSC reads, less the median of two reads with nothing between. */
static void single_stamps(uint64_t count, double per_ns) {
  uint64_t *spans = (uint64_t *)malloc(count * sizeof *spans), i, overhead;
  static const double quantiles[] = {0.5, 0.9, 0.99, 0.999, 0.9999};
  for (i = 0; i < count; i++) {
    const uint64_t from = __rdtsc();
    EACH_TIME();
    spans[i] = __rdtsc() - from;
  }
  qsort(spans, count, sizeof *spans, by_size);
  overhead = spans[count / 2];
  for (i = 0; i < count; i++) {
    const uint64_t from = __rdtsc();
    TAUT_STAMP("control.received", i);
    EACH_TIME();
    spans[i] = __rdtsc() - from;
  }
  qsort(spans, count, sizeof *spans, by_size);
  for (i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
    const uint64_t span = spans[(uint64_t)((double)count * quantiles[i])];
    printf("%.2f ", span > overhead ? (double)(span - overhead) / per_ns : 0.0);
  }
  printf("\n");
  fflush(stdout);
  free(spans);
}

int main(void) {
  char mode[32];
  uint64_t count;
  const double per_ns = ticks_per_ns();
  while (next_batch(mode, &count)) {
    const uint64_t begin = thread_ns();
    if (!strcmp(mode, "single")) {
      single_stamps(count, per_ns);
      continue;
    }
    if (!strcmp(mode, "tsc")) read_tsc(count);
    else if (!strcmp(mode, "stamp")) stamp(count);
    else if (!strcmp(mode, "object")) stamp_in_object(count);
    else if (!strcmp(mode, "object_gnu2")) stamp_in_object_gnu2(count);
    else nothing(count);
    answer_ns_each(begin, count);
  }
  return 0;
}
