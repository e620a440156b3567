#include "link.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

static const char STATE[8] = "state/1", RESET[8] = "reset/1", COMMAND[] = "torque/1";

int link_open(link_t *link, int socket, int clock) {
  void *page = mmap(NULL, sizeof *link->clock, PROT_READ, MAP_SHARED, clock, 0);
  if (page == MAP_FAILED) return -1;
  link->socket = socket;
  link->clock = page;
  return 0;
}

void link_close(link_t *link) {
  if (link->clock) munmap((void *)link->clock, sizeof *link->clock);
}

int link_receive(link_t *link) {
  arm_state_t state;
  for (;;) {
    const ssize_t size = recv(link->socket, &state, sizeof state, MSG_DONTWAIT | MSG_TRUNC);
    if (size == (ssize_t)sizeof state && !memcmp(state.tag, STATE, sizeof STATE)) {
      link->state = state;
    } else if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
      return -1;
    } else if (size < 0 && errno == EAGAIN) {
      return 0;
    }
  }
}

/* What finds no room is lost, as on a real link. */
void link_command(link_t *link, int recovers, const double *torques) {
  struct {
    char tag[8];
    uint64_t recovers;
    double torques[JOINTS];
  } packet = {.recovers = recovers != 0};
  memcpy(packet.tag, COMMAND, sizeof packet.tag);
  memcpy(packet.torques, torques, sizeof packet.torques);
  send(link->socket, &packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void link_reset(link_t *link, uint64_t number) {
  struct {
    char tag[8];
    uint64_t number;
  } packet = {.number = number};
  memcpy(packet.tag, RESET, sizeof packet.tag);
  send(link->socket, &packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int64_t link_clock(const link_t *link, int64_t monotonic_ns, int *stands) {
  /* In this order: who sees the new end sees how far behind the clock is by then. */
  const int64_t until_ns = (int64_t)atomic_load_explicit(&link->clock->until_ns, memory_order_acquire);
  const int64_t free_ns = monotonic_ns - (int64_t)atomic_load_explicit(&link->clock->behind_ns, memory_order_acquire);
  *stands = free_ns > until_ns;
  return *stands ? until_ns : free_ns;
}
