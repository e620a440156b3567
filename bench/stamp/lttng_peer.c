/* LTTng-UST's batches. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_stamp.h"

#include "batch.h"

int main(void) {
  char mode[32];
  uint64_t count, i;
  while (next_batch(mode, &count)) {
    const uint64_t begin = thread_ns();
    if (!strcmp(mode, "bare")) {
      for (i = 0; i < count; i++) {
        lttng_ust_tracepoint(stamp_peer, bare, 1, i, 0);
        EACH_TIME();
      }
    } else {
      for (i = 0; i < count; i++) {
        lttng_ust_tracepoint(stamp_peer, with_contexts, 1, i, 0);
        EACH_TIME();
      }
    }
    answer_ns_each(begin, count);
  }
  return 0;
}
