#define _GNU_SOURCE
#include "controller.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mujoco/mujoco.h>
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/string_functions.h>
#include <sensor_msgs/msg/joint_state.h>
#include <tracetools/tracetools.h>

#include "follow.h"
#include "link.h"

/* As in src/dynamics.rs and src/follow.rs, which say why. */
#define STIFFNESS 900.0
#define DAMPING 60.0
#define PATH_TOLERANCE_RAD 0.1
#define GOAL_TOLERANCE_RAD 0.01
#define GOAL_SETTLE_S 0.5
enum { JOINT_STATES_EVERY = 5, PROGRESS_EVERY = 10, FIFO_PRIORITY = 80, NS_PER_S = 1000000000 };

typedef struct {
  double position[JOINTS], speed[JOINTS], effort[JOINTS];
} state_t;

enum order { ORDER_NONE, ORDER_RESET, ORDER_FOLLOW, ORDER_CANCEL };

struct controller {
  /* Of the control thread. */
  mjModel *model; /* what it knows of the arm */
  mjData *data;
  link_t arm;
  follow_t *follow;
  double home[JOINTS], hold[JOINTS], torques[JOINTS];
  uint64_t resets;
  int64_t number, stall_limit_ns, behind_ns;
  rcl_clock_t clock;
  rcl_timer_t timer;
  rcl_wait_set_t wait_set;
  /* Of the publishing thread. */
  sensor_msgs__msg__JointState message;
  rcl_publisher_t publisher;
  rcl_context_t context;
  rcl_node_t node;
  pthread_t control, publish;
  atomic_int stop;
  /* Shared under the lock, which is held for as long as a copy takes. */
  pthread_mutex_t lock;
  pthread_cond_t orders_done, has_state, has_news;
  enum order order;
  follow_t *ordered, *given_up, *ended;
  int has_new_state, has_progress;
  state_t state;
  slips_t slips;
  double elapsed_s, error_rad;
};

static int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static struct timespec from_now(int64_t ns) {
  const int64_t at = monotonic_ns() + ns;
  return (struct timespec){.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S};
}

/* Computed torque: inertia times the wanted acceleration, and what gravity and motion ask for. 0: a torque is not finite, and all stay as
 * they were; fmax and fmin would make the range's end of NaN. */
static int compute(controller_t *c, const double *position, const double *speed, const double *acceleration) {
  double wanted[JOINTS], torque[JOINTS];
  memcpy(c->data->qpos, c->arm.state.position, sizeof c->arm.state.position);
  memcpy(c->data->qvel, c->arm.state.speed, sizeof c->arm.state.speed);
  mj_fwdPosition(c->model, c->data);
  mj_fwdVelocity(c->model, c->data);
  for (int i = 0; i < JOINTS; i++) {
    const double a = acceleration ? acceleration[i] : 0.0, v = speed ? speed[i] : 0.0;
    wanted[i] = a + STIFFNESS * (position[i] - c->data->qpos[i]) + DAMPING * (v - c->data->qvel[i]);
  }
  mj_mulM(c->model, c->data, torque, wanted);
  for (int i = 0; i < JOINTS; i++) {
    torque[i] += c->data->qfrc_bias[i] - c->data->qfrc_passive[i];
    if (!isfinite(torque[i])) return 0;
  }
  for (int i = 0; i < JOINTS; i++) {
    const mjtNum *range = &c->model->actuator_ctrlrange[2 * i];
    c->torques[i] = fmin(fmax(torque[i], range[0]), range[1]);
  }
  return 1;
}

/* For the thread that gives the next order to free. */
static void give_up(controller_t *c, follow_t *follow) {
  if (!follow) return;
  follow->next = c->given_up;
  c->given_up = follow;
}

/* What it follows is over; the lock is held. */
static void end_follow(controller_t *c, const char *reason) {
  follow_t *follow = c->follow;
  const double *end = follow->points[follow->count - 1].position;
  memcpy(c->hold, *reason ? c->arm.state.position : end, sizeof c->hold);
  follow->reason = reason;
  c->follow = NULL;
  give_up(c, c->ended); /* whose news nobody took */
  c->ended = follow;
  c->has_progress = 0;
  pthread_cond_broadcast(&c->has_news);
}

static void obey(controller_t *c) {
  pthread_mutex_lock(&c->lock);
  switch (c->order) {
    case ORDER_RESET:
    case ORDER_FOLLOW:
      give_up(c, c->follow);
      c->follow = c->order == ORDER_FOLLOW ? c->ordered : NULL;
      c->ordered = NULL;
      if (c->order == ORDER_RESET) {
        c->resets++;
        memcpy(c->hold, c->home, sizeof c->hold);
      }
      break;
    case ORDER_CANCEL:
      if (c->follow) end_follow(c, "canceled");
      break;
    case ORDER_NONE: break;
  }
  if (c->order != ORDER_NONE) pthread_cond_broadcast(&c->orders_done);
  c->order = ORDER_NONE;
  pthread_mutex_unlock(&c->lock);
}

/* How the trajectory ended, if it did: "" at its goal, else why not. */
static const char *ended(controller_t *c, double elapsed_s, double error, int64_t lateness_ns) {
  const double over_s = elapsed_s - follow_duration_s(c->follow);
  if (!c->arm.state.is_stopped) c->follow->is_taken_up = 1;
  if (lateness_ns > c->stall_limit_ns) return "control stalled";
  if (c->follow->is_taken_up && c->arm.state.is_stopped) return "arm stopped: no commands";
  if (error > PATH_TOLERANCE_RAD) return "path tolerance violated";
  if (c->arm.state.touches) return "arm touched the cell";
  if (over_s >= 0 && error < GOAL_TOLERANCE_RAD) return "";
  if (over_s > GOAL_SETTLE_S) return "goal tolerance violated";
  return NULL;
}

/* One cycle: a command for now. The arm does not wait for a late controller, but its clock stands while the machine holds it up. -1: the
 * arm is gone. */
static int update(controller_t *c, int64_t first_due_ns) {
  const int64_t real_ns = monotonic_ns(), before = c->number;
  int stands;
  const int64_t began_ns = link_clock(&c->arm, real_ns, &stands), behind_ns = real_ns - began_ns;
  /* The timer is on real time, and this thread is not late by what the clock stood since the last time. */
  int64_t lateness_ns = real_ns - first_due_ns - (behind_ns > c->behind_ns ? behind_ns - c->behind_ns : 0);
  c->behind_ns = behind_ns;
  if (link_receive(&c->arm)) return -1;
  if (stands) return 0;
  lateness_ns = lateness_ns > 0 ? lateness_ns : 0;
  int64_t missed = lateness_ns / PERIOD_NS;
  lateness_ns -= missed * PERIOD_NS;
  const int64_t due_ns = began_ns - lateness_ns;
  const char *reason = NULL;
  double elapsed_s = 0.0, error = 0.0;
  follow_t *follow;
  c->number += 1 + missed;
  obey(c);
  if (c->arm.state.resets != c->resets) {
    /* A state from before the reset is no ground for a command. */
    link_reset(&c->arm, c->resets);
    return 0;
  }
  if ((follow = c->follow)) {
    double position[JOINTS], speed[JOINTS], acceleration[JOINTS];
    const int is_first = !follow->began_ns;
    if (is_first) {
      /* What was missed before the first cycle was not this trajectory's. */
      follow->began_ns = due_ns;
      follow->from_ns = (int64_t)c->arm.state.time_ns;
      follow->first_command_ns = real_ns - lateness_ns;
      missed = 0;
    }
    follow_note_lateness(follow, lateness_ns, missed);
    follow->missed += (uint32_t)missed;
    /* For the moment of the state, which a late cycle has from a later period. */
    elapsed_s = (double)((int64_t)c->arm.state.time_ns - follow->from_ns) / 1e9;
    follow_at(follow, elapsed_s, position, speed, acceleration);
    const int is_finite = compute(c, position, speed, acceleration);
    if (is_finite) link_command(&c->arm, is_first, c->torques);
    follow->last_command_ns = real_ns;
    follow->last_ns = began_ns;
    for (int i = 0; is_finite && i < JOINTS; i++) error = fmax(error, fabs(position[i] - c->arm.state.position[i]));
    follow->errors_squared += error * error;
    follow->errors++;
    follow->error_max = fmax(follow->error_max, error);
    reason = is_finite ? ended(c, elapsed_s, error, lateness_ns + missed * PERIOD_NS) : "torque not finite";
    const int64_t done_ns = link_clock(&c->arm, monotonic_ns(), &stands);
    follow->late += (uint32_t)missed + (done_ns > due_ns + PERIOD_NS);
    if (follow->steps < follow->capacity) follow->steps_ns[follow->steps++] = (int64_t)c->arm.state.step_ns;
  } else {
    if (compute(c, c->hold, NULL, NULL)) link_command(&c->arm, 1, c->torques); /* a stopped arm is taken up again, but not on its way */
  }
  pthread_mutex_lock(&c->lock);
  if (reason) {
    end_follow(c, reason);
  } else if (follow && c->number / PROGRESS_EVERY != before / PROGRESS_EVERY) {
    c->elapsed_s = elapsed_s;
    c->error_rad = error;
    c->has_progress = 1;
    pthread_cond_broadcast(&c->has_news);
  }
  if (c->number / JOINT_STATES_EVERY != before / JOINT_STATES_EVERY) {
    memcpy(c->state.position, c->arm.state.position, sizeof c->state.position);
    memcpy(c->state.speed, c->arm.state.speed, sizeof c->state.speed);
    memcpy(c->state.effort, c->torques, sizeof c->state.effort);
    c->slips = (slips_t){c->arm.state.slips, c->arm.state.slipped_ns, c->arm.state.slip_max_ns};
    c->has_new_state = 1;
    pthread_cond_signal(&c->has_state);
  }
  pthread_mutex_unlock(&c->lock);
  return 0;
}

/* The control thread: a timer of rcl, whose callback is reported as rclcpp reports its own. */
static void *control(void *argument) {
  controller_t *c = argument;
  while (!c->stop) {
    rcl_timer_call_info_t called;
    bool is_ready = false;
    if (rcl_wait_set_clear(&c->wait_set) != RCL_RET_OK || rcl_wait_set_add_timer(&c->wait_set, &c->timer, NULL) != RCL_RET_OK) break;
    const rcl_ret_t waited = rcl_wait(&c->wait_set, -1);
    if (waited != RCL_RET_OK && waited != RCL_RET_TIMEOUT) break;
    if (rcl_timer_is_ready(&c->timer, &is_ready) != RCL_RET_OK || !is_ready) continue;
    if (rcl_timer_call_with_info(&c->timer, &called) != RCL_RET_OK) break;
    TRACETOOLS_TRACEPOINT(callback_start, (const void *)update, false);
    const int gone = update(c, called.expected_call_time); /* rcl's steady clock is CLOCK_MONOTONIC */
    TRACETOOLS_TRACEPOINT(callback_end, (const void *)update);
    if (gone) break;
  }
  if (!c->stop)
    fprintf(stderr, "reach: the control thread ended: %s\n", rcl_error_is_set() ? rcl_get_error_string().str : "the arm is gone");
  return NULL;
}

static void *publish(void *argument) {
  controller_t *c = argument;
  for (;;) {
    pthread_mutex_lock(&c->lock);
    while (!c->has_new_state && !c->stop) pthread_cond_wait(&c->has_state, &c->lock);
    const state_t state = c->state;
    c->has_new_state = 0;
    pthread_mutex_unlock(&c->lock);
    if (c->stop) return NULL;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    c->message.header.stamp.sec = (int32_t)now.tv_sec;
    c->message.header.stamp.nanosec = (uint32_t)now.tv_nsec;
    memcpy(c->message.position.data, state.position, sizeof state.position);
    memcpy(c->message.velocity.data, state.speed, sizeof state.speed);
    memcpy(c->message.effort.data, state.effort, sizeof state.effort);
    if (rcl_publish(&c->publisher, &c->message, NULL) != RCL_RET_OK) {
      fprintf(stderr, "reach: joint states: %s\n", rcl_get_error_string().str);
      rcl_reset_error();
    }
  }
}

static int make_message(sensor_msgs__msg__JointState *message) {
  char name[32];
  if (!sensor_msgs__msg__JointState__init(message) || !rosidl_runtime_c__String__Sequence__init(&message->name, JOINTS) ||
      !rosidl_runtime_c__double__Sequence__init(&message->position, JOINTS) ||
      !rosidl_runtime_c__double__Sequence__init(&message->velocity, JOINTS) ||
      !rosidl_runtime_c__double__Sequence__init(&message->effort, JOINTS) ||
      !rosidl_runtime_c__String__assign(&message->header.frame_id, "panda_link0"))
    return -1;
  for (int i = 0; i < JOINTS; i++) {
    snprintf(name, sizeof name, "panda_joint%d", i + 1);
    if (!rosidl_runtime_c__String__assign(&message->name.data[i], name)) return -1;
  }
  return 0;
}

static rcl_ret_t make_node(controller_t *c, int is_reliable, size_t depth) {
  const rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t init = rcl_get_zero_initialized_init_options();
  rcl_node_options_t node = rcl_node_get_default_options();
  rcl_publisher_options_t publisher = rcl_publisher_get_default_options();
  rcl_ret_t result;
  publisher.qos.reliability = is_reliable ? RMW_QOS_POLICY_RELIABILITY_RELIABLE : RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  publisher.qos.history = depth ? RMW_QOS_POLICY_HISTORY_KEEP_LAST : RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  publisher.qos.depth = depth;
  if ((result = rcl_init_options_init(&init, allocator)) != RCL_RET_OK) return result;
  result = rcl_init(0, NULL, &init, &c->context);
  if (rcl_init_options_fini(&init) != RCL_RET_OK || result != RCL_RET_OK) return RCL_RET_ERROR;
  if ((result = rcl_node_init(&c->node, "panda_arm_controller", "", &c->context, &node)) != RCL_RET_OK) return result;
  result = rcl_publisher_init(&c->publisher, &c->node, ROSIDL_GET_MSG_TYPE_SUPPORT(sensor_msgs, msg, JointState), "joint_states", &publisher);
  if (result != RCL_RET_OK) return result;
  if ((result = rcl_clock_init(RCL_STEADY_TIME, &c->clock, (rcl_allocator_t *)&allocator)) != RCL_RET_OK) return result;
  if ((result = rcl_timer_init2(&c->timer, &c->clock, &c->context, PERIOD_NS, NULL, allocator, true)) != RCL_RET_OK) return result;
  TRACETOOLS_TRACEPOINT(rclcpp_timer_callback_added, (const void *)&c->timer, (const void *)update);
  TRACETOOLS_TRACEPOINT(rclcpp_callback_register, (const void *)update, "reach_controller::update");
  TRACETOOLS_TRACEPOINT(rclcpp_timer_link_node, (const void *)&c->timer, (const void *)&c->node);
  return rcl_wait_set_init(&c->wait_set, 0, 0, 1, 0, 0, 0, &c->context, allocator);
}

static int start_threads(controller_t *c, int is_fifo) {
  pthread_attr_t attributes;
  const struct sched_param priority = {.sched_priority = FIFO_PRIORITY};
  int error;
  pthread_attr_init(&attributes);
  if (is_fifo) {
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &priority);
  }
  error = pthread_create(&c->control, &attributes, control, c);
  pthread_attr_destroy(&attributes);
  if (error) return error;
  pthread_setname_np(c->control, "control");
  if ((error = pthread_create(&c->publish, NULL, publish, c))) {
    c->stop = 1;
    pthread_join(c->control, NULL);
    return error;
  }
  pthread_setname_np(c->publish, "publish");
  return 0;
}

static void make_lock(controller_t *c) {
  pthread_mutexattr_t mutex;
  pthread_condattr_t condition;
  pthread_mutexattr_init(&mutex);
  /* The control thread may have a priority that the others have not. */
  pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&c->lock, &mutex);
  pthread_condattr_init(&condition);
  pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
  pthread_cond_init(&c->orders_done, &condition);
  pthread_cond_init(&c->has_state, &condition);
  pthread_cond_init(&c->has_news, &condition);
}

controller_t *reach_open(const char *model, int arm, int clock, int64_t stall_limit_ns, int is_fifo, int is_reliable, size_t depth, char *why, size_t why_size) {
  controller_t *c = calloc(1, sizeof *c);
  int error;
  if (!c) {
    snprintf(why, why_size, "no memory");
    return NULL;
  }
  c->context = rcl_get_zero_initialized_context();
  c->node = rcl_get_zero_initialized_node();
  c->publisher = rcl_get_zero_initialized_publisher();
  c->timer = rcl_get_zero_initialized_timer();
  c->wait_set = rcl_get_zero_initialized_wait_set();
  c->stall_limit_ns = stall_limit_ns;
  make_lock(c);
  if (!(c->model = mj_loadXML(model, NULL, why, (int)why_size)) || !(c->data = mj_makeData(c->model))) return NULL;
  mj_resetDataKeyframe(c->model, c->data, mj_name2id(c->model, mjOBJ_KEY, "home"));
  memcpy(c->home, c->data->qpos, sizeof c->home);
  memcpy(c->hold, c->home, sizeof c->hold);
  if (link_open(&c->arm, arm, clock)) {
    snprintf(why, why_size, "the simulated clock: %s", strerror(errno));
    return NULL;
  }
  if (make_message(&c->message) || make_node(c, is_reliable, depth) != RCL_RET_OK) {
    snprintf(why, why_size, "%s", rcl_error_is_set() ? rcl_get_error_string().str : "no memory");
    return NULL;
  }
  if ((error = start_threads(c, is_fifo))) {
    const char *remedy = is_fifo && error == EPERM ? "; --priority fifo needs root, CAP_SYS_NICE or an rtprio limit" : "";
    snprintf(why, why_size, "the control thread does not start: %s%s", strerror(error), remedy);
    return NULL;
  }
  return c;
}

/* Gives an order and waits until it is obeyed. */
static int give(controller_t *c, enum order order, follow_t *ordered) {
  const struct timespec deadline = from_now(NS_PER_S);
  follow_t *given_up;
  int error = 0;
  pthread_mutex_lock(&c->lock);
  c->order = order;
  c->ordered = ordered;
  while (c->order != ORDER_NONE && !error) error = pthread_cond_timedwait(&c->orders_done, &c->lock, &deadline);
  if (error) {
    c->order = ORDER_NONE;
    give_up(c, ordered);
  }
  given_up = c->given_up;
  c->given_up = NULL;
  pthread_mutex_unlock(&c->lock);
  follow_free(given_up);
  return error ? -1 : 0;
}

int reach_reset(controller_t *c) { return give(c, ORDER_RESET, NULL); }

void reach_cancel(controller_t *c) { give(c, ORDER_CANCEL, NULL); }

int reach_follow(controller_t *c, size_t count, const double *points) {
  follow_t *follow = count ? follow_new(count, points, c->stall_limit_ns) : NULL;
  return follow ? give(c, ORDER_FOLLOW, follow) : -1;
}

enum news reach_news(controller_t *c, int timeout_ms, news_t *news) {
  const struct timespec deadline = from_now((int64_t)timeout_ms * 1000000);
  enum news what = NEWS_NONE;
  follow_t *ended;
  int error = 0;
  pthread_mutex_lock(&c->lock);
  while (!c->ended && !c->has_progress && !error) error = pthread_cond_timedwait(&c->has_news, &c->lock, &deadline);
  ended = c->ended;
  c->ended = NULL;
  if (c->has_progress) {
    what = NEWS_PROGRESS;
    news->elapsed_s = c->elapsed_s;
    news->error_rad = c->error_rad;
    c->has_progress = 0;
  }
  pthread_mutex_unlock(&c->lock);
  if (!ended) return what;
  news->reason = ended->reason;
  news->execution = follow_execution(ended);
  follow_free(ended);
  return NEWS_ENDED;
}

slips_t reach_slips(controller_t *c) {
  pthread_mutex_lock(&c->lock);
  const slips_t slips = c->slips;
  pthread_mutex_unlock(&c->lock);
  return slips;
}

void reach_close(controller_t *c) {
  pthread_mutex_lock(&c->lock);
  c->stop = 1;
  pthread_cond_broadcast(&c->has_state);
  pthread_mutex_unlock(&c->lock);
  pthread_join(c->control, NULL);
  pthread_join(c->publish, NULL);
  if (rcl_wait_set_fini(&c->wait_set) != RCL_RET_OK || rcl_timer_fini(&c->timer) != RCL_RET_OK ||
      rcl_clock_fini(&c->clock) != RCL_RET_OK || rcl_publisher_fini(&c->publisher, &c->node) != RCL_RET_OK ||
      rcl_node_fini(&c->node) != RCL_RET_OK || rcl_shutdown(&c->context) != RCL_RET_OK || rcl_context_fini(&c->context) != RCL_RET_OK)
    fprintf(stderr, "reach: the controller does not end cleanly: %s\n", rcl_get_error_string().str);
  sensor_msgs__msg__JointState__fini(&c->message);
  follow_free(c->follow);
  follow_free(c->ended);
  follow_free(c->given_up);
  link_close(&c->arm);
  mj_deleteData(c->data);
  mj_deleteModel(c->model);
  free(c);
}
