/* A trajectory on its way, with what was measured of it. All memory is had before the control thread gets it. */
#ifndef REACH_FOLLOW_H
#define REACH_FOLLOW_H

#include "controller.h"

enum { PERIOD_NS = 2000000 };

typedef struct {
  double time_s, position[JOINTS], speed[JOINTS]; /* rad, rad/s */
} point_t;

typedef struct follow {
  struct follow *next;
  size_t count, at; /* points, and the last one passed */
  point_t *points;
  size_t capacity, cycles, steps; /* of the columns, and how much is in them */
  int64_t *lateness_ns, *steps_ns;
  double errors_squared, error_max;
  size_t errors;
  /* Of the simulated clock: the first cycle, its state, and the last command; then the commands on CLOCK_MONOTONIC. */
  int64_t began_ns, from_ns, last_ns, first_command_ns, last_command_ns;
  int is_taken_up; /* the arm's brakes were seen to be off */
  uint32_t missed, late;
  const char *reason;
} follow_t;

/* NULL: no memory. The columns have room for `longest_ns` of a stall besides the motion. */
follow_t *follow_new(size_t count, const double *points, int64_t longest_ns);
/* It and those behind it. */
void follow_free(follow_t *follow);

static inline double follow_duration_s(const follow_t *follow) { return follow->points[follow->count - 1].time_s; }

/* Cubic between points (Hermite), at rest before and after. Times never go back. */
void follow_at(follow_t *follow, double time_s, double *position, double *speed, double *acceleration);

/* The cycle that was due at `due_ns` and the missed ones before it. */
void follow_note_lateness(follow_t *follow, int64_t lateness_ns, int64_t missed);

/* Sorts the columns. */
execution_t follow_execution(follow_t *follow);

#endif
