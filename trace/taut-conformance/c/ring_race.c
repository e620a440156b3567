/* The ring's two sides in one process under ThreadSanitizer: producers that come and go stamp as fast
 * as they can into small rings, while this consumer does what docs/reference/protocol.md "Consume" says.
 * Every stamp must arrive once and in order or be counted as lost. Prints "ARRIVED LOST"; exit 1 if not. */
#include "taut.h"

enum { PRODUCERS = 3, GENERATIONS = 40, STAMPS = 5000 };

static int producers_left = PRODUCERS;
static uint64_t next_id[PRODUCERS + 1][GENERATIONS]; /* what the consumer awaits, by producer and generation */
static uint64_t arrived;

/* The id says who stamped it: producer, generation, count. */
static uint64_t id_of(uint64_t producer, uint64_t generation, uint64_t n) { return producer << 40 | generation << 24 | n; }

typedef struct {
  uint64_t producer, generation;
} role_t;

static void *stamp_all(void *argument) {
  const role_t *role = (const role_t *)argument;
  uint64_t n;
  for (n = 0; n < STAMPS; n++) TAUT_STAMP("race", id_of(role->producer, role->generation, n));
  return NULL;
}

static void *produce(void *argument) {
  role_t role;
  role.producer = *(const uint64_t *)argument;
  for (role.generation = 0; role.generation < GENERATIONS; role.generation++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, stamp_all, &role)) abort();
    pthread_join(thread, NULL);
  }
  __atomic_fetch_sub(&producers_left, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void consume_slot(taut_header_t *header, size_t i) {
  taut_slot_t *slot = (taut_slot_t *)(void *)((char *)header + header->slots_offset) + i;
  const uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
  uint64_t tail = __atomic_load_n(&slot->tail, __ATOMIC_RELAXED);
  const uint64_t head = __atomic_load_n(&slot->head, __ATOMIC_ACQUIRE);
  const taut_record_t *ring = __atomic_load_n(&taut_process_.rings[i], __ATOMIC_ACQUIRE);
  for (; tail < head; tail++, arrived++) {
    const taut_record_t *record = &ring[tail & (header->ring_records - 1u)];
    const uint64_t producer = record->message_id >> 40, generation = record->message_id >> 24 & 0xffff;
    const uint64_t n = record->message_id & 0xffffff;
    if (producer > PRODUCERS || generation >= GENERATIONS || n < next_id[producer][generation] || record->kind != TAUT_KIND_STAMP) {
      fprintf(stderr, "torn or out of order: %llx\n", (unsigned long long)record->message_id);
      exit(1);
    }
    next_id[producer][generation] = n + 1;
  }
  __atomic_store_n(&slot->tail, tail, __ATOMIC_RELEASE);
  if (state == TAUT_SLOT_CLOSED) __atomic_store_n(&slot->state, (uint32_t)TAUT_SLOT_FREE, __ATOMIC_RELEASE);
}

int main(void) {
  pthread_t threads[PRODUCERS];
  uint64_t who[PRODUCERS], total = (uint64_t)PRODUCERS * GENERATIONS * STAMPS;
  taut_header_t *header;
  size_t i;
  int was_last;
  if (!taut_attached()) return 2;
  header = taut_process_.header;
  for (i = 0; i < PRODUCERS; i++) {
    who[i] = i;
    if (pthread_create(&threads[i], NULL, produce, &who[i])) return 2;
  }
  do {
    was_last = __atomic_load_n(&producers_left, __ATOMIC_ACQUIRE) == 0;
    for (i = 0; i < TAUT_SLOT_COUNT; i++) consume_slot(header, i);
  } while (!was_last);
  for (i = 0; i < PRODUCERS; i++) pthread_join(threads[i], NULL);
  printf("%llu %llu\n", (unsigned long long)arrived, (unsigned long long)taut_lost());
  return arrived + taut_lost() == total && arrived > total / 100 ? 0 : 1;
}
