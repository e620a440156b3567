/* Cost of one stamp, in batches interleaved with batches of what it is compared with.
 * Prints: name batch_median_ns n_batches [p99.9_ns]. Run under `taut record` for "on", bare for "off". */
#include "taut.h"
#ifdef WITH_LTTNG
#include "lttng_provider.h"
#endif
#include <stdio.h>
#include <stdlib.h>

enum { CALLS = 20000, BATCHES = 60, SINGLES = 20000 };
static volatile uint64_t sink;

static double cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
static int less(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static double at(double *values, int n, double q) {
  qsort(values, (size_t)n, sizeof *values, less);
  return values[(int)(q * (n - 1))];
}
#define BATCH(out, call)                                        \
  do {                                                          \
    double t0 = cpu_ns();                                       \
    for (uint64_t i = 0; i < CALLS; i++) { call; }              \
    (out)[batch] = (cpu_ns() - t0) / CALLS;                     \
  } while (0)

int main(void) {
  static double tsc[BATCHES], stamp[BATCHES], single[SINGLES], empty[SINGLES];
  taut_prepare_thread();
  uint64_t before = taut_lost();
  for (int batch = 0; batch < BATCHES; batch++) {
    BATCH(tsc, sink = __rdtsc());
#ifdef WITH_LTTNG
    BATCH(stamp, lttng_ust_tracepoint(taut_bench, stamp, i, 7, 0));
#else
    BATCH(stamp, TAUT_STAMP("bench.point", i));
#endif
    usleep(20000); /* Time for the recorder: the ring must not fill. */
  }
  double mhz = 0;
  { uint64_t c = __rdtsc(); double t = (double)taut_monotonic_ns_(); usleep(100000);
    mhz = (double)(__rdtsc() - c) / ((double)taut_monotonic_ns_() - t); }
  for (int i = 0; i < SINGLES; i++) {
    unsigned aux;
    uint64_t a = __rdtscp(&aux), b = __rdtscp(&aux);
    empty[i] = (double)(b - a) / mhz;
    a = __rdtscp(&aux);
#ifdef WITH_LTTNG
    lttng_ust_tracepoint(taut_bench, stamp, (uint64_t)i, 7, 0);
#else
    TAUT_STAMP("bench.single", (uint64_t)i);
#endif
    b = __rdtscp(&aux);
    single[i] = (double)(b - a) / mhz;
  }
  double floor = at(empty, SINGLES, 0.5);
  printf("tsc %.2f %d\n", at(tsc, BATCHES, 0.5), BATCHES);
  printf("stamp %.2f %d %.1f\n", at(stamp, BATCHES, 0.5), BATCHES, at(single, SINGLES, 0.999) - floor);
  printf("lost %llu\n", (unsigned long long)(taut_lost() - before));
  return 0;
}
