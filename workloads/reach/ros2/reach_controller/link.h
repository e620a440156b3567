/* The link to the simulated arm, and the clock that it is on. src/packets.rs has the packets, workloads/clock the clock. */
#ifndef REACH_LINK_H
#define REACH_LINK_H

#include <stdatomic.h>
#include <stdint.h>

#include "controller.h"

/* The packet itself: words of 8 bytes, little-endian as the machines that this is built for. */
typedef struct {
  char tag[8];
  uint64_t time_ns, resets, is_stopped, touches, step_ns, slips, slipped_ns, slip_max_ns;
  double position[JOINTS], speed[JOINTS];
} arm_state_t;

typedef struct {
  _Atomic uint64_t behind_ns, until_ns;
} arm_clock_t;

typedef struct {
  int socket;
  const arm_clock_t *clock;
  arm_state_t state; /* the newest */
} link_t;

/* -1: `clock` cannot be mapped. */
int link_open(link_t *link, int socket, int clock);
void link_close(link_t *link);

/* Takes what has come. -1: the arm is gone. */
int link_receive(link_t *link);

void link_command(link_t *link, int recovers, const double *torques);
void link_reset(link_t *link, uint64_t number);

/* The simulated clock at `monotonic_ns`, and whether it stands. */
int64_t link_clock(const link_t *link, int64_t monotonic_ns, int *stands);

#endif
