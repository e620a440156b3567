/* What a tracepoint costs: `cost EVENT BATCHES CALLS`, a line for each batch with its nanoseconds a call. Linked to a libtracetools,
 * and run with and without the preload and a session. Batches are parted by 2 ms, in which a recorder empties the ring; all of them fit into it. */
#define _DEFAULT_SOURCE 1
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void ros_trace_rcl_init(const void *);
void ros_trace_callback_start(const void *, bool);
void ros_trace_rmw_take(const void *, const void *, int64_t, bool);

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv) {
  const bool is_take = argc > 1 && !strcmp(argv[1], "rmw_take"), is_loop = argc > 1 && !strcmp(argv[1], "loop");
  const int batches = argc > 2 ? atoi(argv[2]) : 500, calls = argc > 3 ? atoi(argv[3]) : 2000;
  int batch, call, here;
  ros_trace_rcl_init(&here);
  for (batch = 0; batch < batches; batch++) {
    const double before = now_ns();
    if (is_loop)
      for (call = 0; call < calls; call++) __asm__ volatile("" ::"r"(call) : "memory");
    else if (is_take)
      for (call = 0; call < calls; call++) ros_trace_rmw_take(&here, &batch, 1000 + call, true);
    else
      for (call = 0; call < calls; call++) ros_trace_callback_start(&here, false);
    printf("%.3f\n", (now_ns() - before) / calls);
    usleep(2000);
  }
  return 0;
}
