/* Every macro and function of taut.h once, for the compile matrix; the answers are used, so that
 * nothing is thrown away unseen. */
#include "taut.h"

static int mode(uint64_t id) {
  volatile uint32_t futex_word = 0;
  if (id > 1) /* each macro is one statement */
    TAUT_STAMP("point", id);
  else
    TAUT_DROP(id, "reason");
  TAUT_BEGIN("work");
  TAUT_END("work");
  TAUT_VALUE("signal", 0.5);
  TAUT_NAME_LOCK("lock", &futex_word);
  TAUT_LOCK_WAIT("lock");
  TAUT_LOCK_ACQUIRED("lock");
  taut_stamp(taut_point("dynamic"), id);
  taut_outcome(id, "made_at_run_time");
  taut_applied(id);
  taut_after_fork();
  return taut_prepare_thread() + taut_attach("/nowhere") + taut_attached();
}

int main(int count, char **values) {
  (void)values;
  return mode((uint64_t)count) + (int)taut_lost();
}
