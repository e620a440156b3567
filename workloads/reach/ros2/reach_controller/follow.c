#include "follow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* After the last point a trajectory ends within 0.5 s. */
enum { SETTLE_CYCLES = 260 };

follow_t *follow_new(size_t count, const double *points, int64_t longest_ns) {
  follow_t *follow = calloc(1, sizeof *follow);
  if (!follow) return NULL;
  follow->count = count;
  follow->points = malloc(count * sizeof *follow->points);
  if (!follow->points) goto no_memory;
  memcpy(follow->points, points, count * sizeof *follow->points);
  follow->capacity = (size_t)((follow_duration_s(follow) * 1e9 + (double)longest_ns) / PERIOD_NS) + SETTLE_CYCLES;
  follow->lateness_ns = malloc(follow->capacity * sizeof *follow->lateness_ns);
  follow->steps_ns = malloc(follow->capacity * sizeof *follow->steps_ns);
  if (!follow->lateness_ns || !follow->steps_ns) goto no_memory;
  return follow;
no_memory:
  follow_free(follow);
  return NULL;
}

void follow_free(follow_t *follow) {
  while (follow) {
    follow_t *next = follow->next;
    free(follow->points);
    free(follow->lateness_ns);
    free(follow->steps_ns);
    free(follow);
    follow = next;
  }
}

void follow_at(follow_t *follow, double time_s, double *position, double *speed, double *acceleration) {
  memset(speed, 0, JOINTS * sizeof *speed);
  memset(acceleration, 0, JOINTS * sizeof *acceleration);
  if (time_s <= 0.0 || time_s >= follow_duration_s(follow)) {
    memcpy(position, follow->points[time_s <= 0.0 ? 0 : follow->count - 1].position, JOINTS * sizeof *position);
    return;
  }
  while (follow->points[follow->at + 1].time_s <= time_s) follow->at++;
  const point_t *from = &follow->points[follow->at], *to = from + 1;
  const double h = to->time_s - from->time_s, u = (time_s - from->time_s) / h;
  for (int joint = 0; joint < JOINTS; joint++) {
    const double p0 = from->position[joint], p1 = to->position[joint], m0 = h * from->speed[joint], m1 = h * to->speed[joint];
    const double a = 2 * p0 - 2 * p1 + m0 + m1, b = -3 * p0 + 3 * p1 - 2 * m0 - m1;
    position[joint] = ((a * u + b) * u + m0) * u + p0;
    speed[joint] = ((3 * a * u + 2 * b) * u + m0) / h;
    acceleration[joint] = (6 * a * u + 2 * b) / (h * h);
  }
}

void follow_note_lateness(follow_t *follow, int64_t lateness_ns, int64_t missed) {
  /* A missed cycle is as late as this one, and more by the periods between them. */
  for (int64_t periods = missed; periods >= 0 && follow->cycles < follow->capacity; periods--)
    follow->lateness_ns[follow->cycles++] = lateness_ns + periods * PERIOD_NS;
}

static int ascending(const void *one, const void *other) {
  const int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
  return (a > b) - (a < b);
}

/* The smallest value that has at least so many percent at or below it in rank, as numpy's "higher". */
static int64_t rank(const int64_t *sorted, size_t count, int percent) {
  return count ? sorted[(size_t)ceil(percent / 100.0 * (double)(count - 1))] : 0;
}

execution_t follow_execution(follow_t *follow) {
  const int64_t simulated_ns = follow->last_ns - follow->began_ns, real_ns = follow->last_command_ns - follow->first_command_ns;
  qsort(follow->lateness_ns, follow->cycles, sizeof *follow->lateness_ns, ascending);
  qsort(follow->steps_ns, follow->steps, sizeof *follow->steps_ns, ascending);
  return (execution_t){
      .first_command_ns = follow->first_command_ns,
      .last_command_ns = follow->last_command_ns,
      .cycles = (uint32_t)follow->cycles,
      .missed = follow->missed,
      .late = follow->late,
      .lateness_p50_ns = rank(follow->lateness_ns, follow->cycles, 50),
      .lateness_p99_ns = rank(follow->lateness_ns, follow->cycles, 99),
      .lateness_max_ns = rank(follow->lateness_ns, follow->cycles, 100),
      .step_p50_ns = rank(follow->steps_ns, follow->steps, 50),
      .step_p99_ns = rank(follow->steps_ns, follow->steps, 99),
      .slipped_ns = real_ns > simulated_ns ? real_ns - simulated_ns : 0,
      .simulated_s = (double)simulated_ns / 1e9,
      .wall_s = (double)real_ns / 1e9,
      .tracking_rms_rad = follow->errors ? sqrt(follow->errors_squared / (double)follow->errors) : 0.0,
      .tracking_max_rad = follow->error_max,
  };
}
