/* The joint-trajectory controller as a library: src/controller.rs on a timer of rcl, over the same link to the simulated arm.
 * simulator.py starts the arm, loads this and puts the action in front of it.
 *
 * As in ros2_control, the thread that controls sends nothing: a second one publishes the joint states. */
#ifndef REACH_CONTROLLER_H
#define REACH_CONTROLLER_H

#include <stddef.h>
#include <stdint.h>

enum { JOINTS = 7 };

typedef struct controller controller_t;

/* Times in ns of CLOCK_MONOTONIC. */
typedef struct {
  int64_t first_command_ns, last_command_ns;
  int64_t lateness_p50_ns, lateness_p99_ns, lateness_max_ns, step_p50_ns, step_p99_ns, slipped_ns;
  uint32_t cycles, missed, late;
  double simulated_s, wall_s, tracking_rms_rad, tracking_max_rad;
} execution_t;

enum news { NEWS_NONE, NEWS_PROGRESS, NEWS_ENDED };

/* What there is to say of the trajectory that was started last. */
typedef struct {
  double elapsed_s, error_rad;
  const char *reason; /* "": at its goal */
  execution_t execution;
} news_t;

/* How the machine held the arm up since its last reset. */
typedef struct {
  uint64_t count, total_ns, max_ns;
} slips_t;

/* Starts both threads. `arm` is the link to the arm, `clock` the page of its clock: the caller's until reach_close. `depth` 0 keeps all
 * joint states. NULL: the text says why. */
controller_t *reach_open(const char *model, int arm, int clock, int64_t stall_limit_ns, int is_fifo, int is_reliable, size_t depth, char *why, size_t why_size);

/* Home and at rest, following nothing. 0 when it is, -1 when the control thread did not answer within 1 s. */
int reach_reset(controller_t *controller);

/* Follows it from the next cycle on; a trajectory on its way is given up without news. `points`: time_s, positions, speeds of each
 * point. -1: no memory. */
int reach_follow(controller_t *controller, size_t count, const double *points);

/* Ends the trajectory on its way: it holds where it is, and says so. */
void reach_cancel(controller_t *controller);

/* Waits for at most so long. Progress that nobody took in time is replaced by newer. */
enum news reach_news(controller_t *controller, int timeout_ms, news_t *news);

slips_t reach_slips(controller_t *controller);

void reach_close(controller_t *controller);

#endif
