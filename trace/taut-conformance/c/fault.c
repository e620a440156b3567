/* fault SESSION: everything that a producer asks the kernel for, between two calls of getppid. Prints what was stamped, what the
 * producer says was lost of it, whether it is attached, and the same two of telemetry. src/fault.rs and python/fault.py are the
 * same. */
#include "taut.h"

enum { STAMPS = 50, SHORT_LIVES = 64, VALUES = 20 };

typedef struct {
  double position;
} state_t;
TAUT_DESCRIBE(state_t, TAUT_FIELD(position, "rad"));

static uint64_t stamped;

static void *stamp_some(void *unused) {
  int i;
  for (i = 0; i < STAMPS; i++) TAUT_STAMP("fault", __atomic_add_fetch(&stamped, 1, __ATOMIC_RELAXED));
  return unused;
}

int main(int count, char **values) {
  taut_telemetry_t *log;
  state_t state = {1.5};
  int i;
  if (count != 2) return 2;
  getppid();
  taut_attach(values[1]);
  stamp_some(NULL);
  log = TAUT_TELEMETRY("state", state_t, 10);
  for (i = 0; i < VALUES; i++) TAUT_WRITE(log, &state);
  getppid();
  /* One after the other: the last finds no free slot, and reclaims one. */
  for (i = 0; i < SHORT_LIVES; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, stamp_some, NULL) || pthread_join(thread, NULL)) return 3;
  }
  printf("%llu %llu %d %d %llu\n", (unsigned long long)stamped, (unsigned long long)taut_lost(), taut_attached(), VALUES,
         (unsigned long long)taut_telemetry_lost(log));
  return 0;
}
