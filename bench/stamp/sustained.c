/* Two threads, a million stamps a second each, for argv[1] seconds. */
#include "taut.h"
static int seconds = 60;
static void *work(void *arg) {
  uint64_t id = (uint64_t)(uintptr_t)arg << 40, start = taut_monotonic_ns_(), done = 0, total = (uint64_t)seconds * 1000000u;
  taut_prepare_thread();
  while (done < total) {
    uint64_t due = (taut_monotonic_ns_() - start) / 1000u;
    if (due > total) due = total;
    for (; done < due; done++) { TAUT_STAMP("bench.a", id); if (done & 1) id++; }
    usleep(500);
  }
  return NULL;
}
int main(int argc, char **argv) {
  pthread_t a, b;
  if (argc > 1) seconds = atoi(argv[1]);
  pthread_create(&a, NULL, work, (void *)1);
  pthread_create(&b, NULL, work, (void *)2);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
  return 0;
}
