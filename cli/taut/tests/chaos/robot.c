/* Stamps numbered messages from several threads, and keeps an account of them where no death of this process reaches it:
 * in a file that the test maps. robot ACCOUNT FIRST_THREAD THREADS STAMPS PAUSE_US; STAMPS 0 is without end;
 * THREADS 0 is the first thread itself. */
#include "taut.h"

typedef struct {
  uint64_t stamped; /* calls that returned */
  uint64_t is_over; /* of the process, in its first thread's entry: 1 when it ended by itself */
  uint64_t unannounced; /* likewise: lost where no recorder can see it */
} account_t;

static account_t *account;
static uint64_t first, stamps;
static useconds_t pause_us;

static void *work(void *argument) {
  const uint64_t thread = (uint64_t)(uintptr_t)argument;
  uint64_t n;
  for (n = 1; !stamps || n <= stamps; n++) {
    TAUT_STAMP("chaos.tick", thread << 32 | n);
    __atomic_store_n(&account[thread].stamped, n, __ATOMIC_RELEASE);
    if (pause_us) usleep(pause_us);
  }
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t threads[256];
  uint64_t count, i;
  int fd;
  struct stat file;
  if (argc != 6 || (fd = open(argv[1], O_RDWR)) < 0 || fstat(fd, &file)) return 2;
  account = (account_t *)mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  first = strtoull(argv[2], NULL, 10);
  count = strtoull(argv[3], NULL, 10);
  stamps = strtoull(argv[4], NULL, 10);
  pause_us = (useconds_t)atoi(argv[5]);
  if (account == MAP_FAILED || count > 256 || (first + count) * sizeof *account > (size_t)file.st_size) return 2;
  if (!count) work((void *)(uintptr_t)first);
  for (i = 0; i < count; i++)
    if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(first + i))) return 3;
  for (i = 0; i < count; i++) pthread_join(threads[i], NULL);
  if (!taut_attached()) account[first].unannounced = taut_lost();
  account[first].is_over = 1;
  return 0;
}
