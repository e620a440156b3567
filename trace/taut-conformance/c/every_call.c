/* Every macro and function of taut.h once, for the compile matrix; the answers are used, so that
 * nothing is thrown away unseen. */
#include "taut.h"

typedef struct {
  double position;
  char letter;
} state_t;
TAUT_DESCRIBE(state_t, TAUT_FIELD(position, "rad"), TAUT_FIELD(letter, ""));

static uint64_t telemetry(uint64_t id) {
  const char *name = "state";
  const double rate_hz = 100;
  const state_t state = {1.5, 'a'};
  taut_telemetry_t *const channel = TAUT_TELEMETRY(name, state_t, rate_hz);
  const taut_telemetry_t *reader = channel;
  TAUT_WRITE(channel, &state);
  id += taut_telemetry_lost(reader);
  taut_telemetry_close(channel);
  return id;
}

static int mode(uint64_t id) {
  const char *lock_name = "lock";
  const uint64_t due_ns = id * 1000000;
  volatile uint32_t futex_word = 0;
  if (id > 1) /* each macro is one statement */
    TAUT_STAMP("point", id);
  else
    TAUT_DROP(id, "reason");
  if (id > 2)
    TAUT_STAMP_AT("point", id, due_ns);
  else
    taut_stamp_at(taut_point("dynamic"), id, due_ns);
  TAUT_BEGIN("work");
  TAUT_END("work");
  TAUT_VALUE("signal", 0.5);
  TAUT_NAME_LOCK(lock_name, &futex_word);
  TAUT_LOCK_WAIT("lock");
  TAUT_LOCK_ACQUIRED("lock");
  taut_stamp(taut_point("dynamic"), id);
  taut_outcome(id, "made_at_run_time");
  taut_applied(id);
  taut_after_fork();
  id = telemetry(id);
  return (int)id + taut_prepare_thread() + taut_attach("/nowhere") + taut_attached();
}

int main(int count, char **values) {
  (void)values;
  return mode((uint64_t)count) + (int)taut_lost();
}
