/* Under ThreadSanitizer: a session is attached by one thread while others stamp and write telemetry into the void. */
#include "taut.h"

typedef struct {
  double position;
} state_t;
TAUT_DESCRIBE(state_t, TAUT_FIELD(position, "rad"));

static int is_attached;

static void *run(void *unused) {
  taut_telemetry_t *log = TAUT_TELEMETRY("state", state_t, 100);
  const state_t state = {1.5};
  uint64_t after = 0;
  while (after < 100) {
    TAUT_WRITE(log, &state);
    TAUT_STAMP("race", after);
    if (__atomic_load_n(&is_attached, __ATOMIC_RELAXED)) after++;
  }
  taut_telemetry_close(log);
  return unused;
}

int main(int count, char **values) {
  pthread_t threads[2];
  int i;
  if (count != 2) return 2;
  for (i = 0; i < 2; i++)
    if (pthread_create(&threads[i], NULL, run, NULL)) return 2;
  while (!taut_lost()) {}
  if (!taut_attach(values[1])) return 3;
  __atomic_store_n(&is_attached, 1, __ATOMIC_RELAXED);
  for (i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return 0;
}
