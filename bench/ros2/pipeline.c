/* pipeline.py on rcl, with the tracepoints of rclcpp in the order in which rclcpp calls them: against the real libraries and headers of
 * the wheels. Usage: pipeline NAME LOG IN OUT HZ BYTES DEPTH BEST_EFFORT SECONDS FIRST; "-" for no topic, 0 for no timer. */
#define _GNU_SOURCE
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rosidl_runtime_c/string_functions.h>
#include <std_msgs/msg/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tracetools/tracetools.h>

#define CHECK(call)                                                                                  \
  do {                                                                                               \
    if ((call) != RCL_RET_OK) {                                                                      \
      fprintf(stderr, "%s: %s\n", #call, rcl_get_error_string().str);                                \
      exit(1);                                                                                       \
    }                                                                                                \
  } while (0)
enum { MOST = 1 << 20, MOST_INPUTS = 8 };

typedef struct {
  const char *topic;
  long long number, at;
} seen_t;
static seen_t published[MOST], received[MOST];
static size_t publications, receptions;
static rcl_publisher_t publisher;
static const char *out;
static std_msgs__msg__String message;
static char *text;
static size_t bytes;

static long long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void publish(long long number) {
  const int head = sprintf(text, "%lld ", number);
  long long before;
  memset(text + head, 'x', bytes);
  text[head + bytes] = 0;
  rosidl_runtime_c__String__assign(&message.data, text);
  before = now(CLOCK_MONOTONIC);
  TRACETOOLS_TRACEPOINT(rclcpp_publish, NULL, &message);
  CHECK(rcl_publish(&publisher, &message, NULL));
  if (publications < MOST) published[publications++] = (seen_t){out, number, before};
}

static void write_log(const char *path, const char *name) {
  FILE *file = fopen(path, "w");
  size_t at;
  if (!file) exit(1);
  fprintf(file, "{\"name\": \"%s\", \"called\": [], \"served\": [], \"answered\": [], \"published\": [", name);
  for (at = 0; at < publications; at++)
    fprintf(file, "%s[\"/%s\", %lld, %lld]", at ? "," : "", published[at].topic, published[at].number, published[at].at);
  fprintf(file, "], \"received\": [");
  for (at = 0; at < receptions; at++)
    fprintf(file, "%s[\"/%s\", %lld, %lld]", at ? "," : "", received[at].topic, received[at].number, received[at].at);
  fprintf(file, "]}");
  fclose(file);
}

int main(int argc, char **argv) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  rcl_context_t context = rcl_get_zero_initialized_context();
  rcl_node_t node = rcl_get_zero_initialized_node();
  rcl_node_options_t node_options = rcl_node_get_default_options();
  rcl_subscription_t inputs[MOST_INPUTS];
  const char *topics[MOST_INPUTS];
  char objects[MOST_INPUTS], callbacks[MOST_INPUTS], timer_callback;
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  rcl_clock_t clock;
  rcl_wait_set_t set = rcl_get_zero_initialized_wait_set();
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  size_t count = 0, at;
  long long end, number;
  double hz;
  if (argc != 11) return 2;
  hz = atof(argv[5]);
  bytes = strtoul(argv[6], NULL, 10);
  text = malloc(bytes + 32);
  number = atoll(argv[10]);
  out = strcmp(argv[4], "-") ? argv[4] : NULL;
  CHECK(rcl_init_options_init(&options, allocator));
  CHECK(rcl_init(0, NULL, &options, &context));
  CHECK(rcl_node_init(&node, argv[1], "", &context, &node_options));
  std_msgs__msg__String__init(&message);
  rmw_qos_profile_t profile = rmw_qos_profile_default;
  profile.depth = strtoul(argv[7], NULL, 10);
  profile.reliability = atoi(argv[8]) ? RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT : RMW_QOS_POLICY_RELIABILITY_RELIABLE;
  publisher = rcl_get_zero_initialized_publisher();
  if (out) {
    rcl_publisher_options_t of = rcl_publisher_get_default_options();
    of.qos = profile;
    CHECK(rcl_publisher_init(&publisher, &node, type, out, &of));
  }
  if (strcmp(argv[3], "-")) {
    char *topic = strtok(argv[3], ",");
    for (; topic && count < MOST_INPUTS; topic = strtok(NULL, ","), count++) {
      rcl_subscription_options_t of = rcl_subscription_get_default_options();
      of.qos = profile;
      inputs[count] = rcl_get_zero_initialized_subscription();
      topics[count] = topic;
      CHECK(rcl_subscription_init(&inputs[count], &node, type, topic, &of));
      TRACETOOLS_TRACEPOINT(rclcpp_subscription_init, &inputs[count], &objects[count]);
      TRACETOOLS_TRACEPOINT(rclcpp_subscription_callback_added, &objects[count], &callbacks[count]);
      if (TRACETOOLS_TRACEPOINT_ENABLED(rclcpp_callback_register))
        TRACETOOLS_DO_TRACEPOINT(rclcpp_callback_register, &callbacks[count], "Pipe::on_message");
    }
  }
  if (hz > 0) {
    CHECK(rcl_clock_init(RCL_STEADY_TIME, &clock, &allocator));
    CHECK(rcl_timer_init2(&timer, &clock, &context, (int64_t)(1e9 / hz), NULL, allocator, true));
    TRACETOOLS_TRACEPOINT(rclcpp_timer_callback_added, &timer, &timer_callback);
    if (TRACETOOLS_TRACEPOINT_ENABLED(rclcpp_callback_register))
      TRACETOOLS_DO_TRACEPOINT(rclcpp_callback_register, &timer_callback, "Pipe::on_timer");
    TRACETOOLS_TRACEPOINT(rclcpp_timer_link_node, &timer, &node);
  }
  CHECK(rcl_wait_set_init(&set, count, 0, hz > 0, 0, 0, 0, &context, allocator));
  end = now(CLOCK_MONOTONIC) + (long long)(atof(argv[9]) * 1e9);
  /* Those that receive end last: nothing is under way. */
  const long long last = end + (count ? 3000000000LL : 2000000000LL);
  std_msgs__msg__String taken;
  std_msgs__msg__String__init(&taken);
  while (now(CLOCK_MONOTONIC) < last) {
    rcl_ret_t waited;
    CHECK(rcl_wait_set_clear(&set));
    for (at = 0; at < count; at++) CHECK(rcl_wait_set_add_subscription(&set, &inputs[at], NULL));
    if (hz > 0) CHECK(rcl_wait_set_add_timer(&set, &timer, NULL));
    TRACETOOLS_TRACEPOINT(rclcpp_executor_wait_for_work, 100000000);
    waited = rcl_wait(&set, 100000000);
    if (waited != RCL_RET_OK && waited != RCL_RET_TIMEOUT) CHECK(waited);
    TRACETOOLS_TRACEPOINT(rclcpp_executor_get_next_ready);
    if (hz > 0 && set.timers[0]) {
      size_t others = 0;
      TRACETOOLS_TRACEPOINT(rclcpp_executor_execute, &timer);
      CHECK(rcl_timer_call(&timer));
      TRACETOOLS_TRACEPOINT(callback_start, &timer_callback, false);
      CHECK(rcl_publisher_get_subscription_count(&publisher, &others));
      if (others && now(CLOCK_MONOTONIC) < end) publish(++number);
      TRACETOOLS_TRACEPOINT(callback_end, &timer_callback);
    }
    for (at = 0; at < count; at++) {
      rmw_message_info_t info;
      if (!set.subscriptions[at]) continue;
      TRACETOOLS_TRACEPOINT(rclcpp_executor_execute, &inputs[at]);
      if (rcl_take(&inputs[at], &taken, &info, NULL) != RCL_RET_OK) {
        rcl_reset_error();
        continue;
      }
      TRACETOOLS_TRACEPOINT(rclcpp_take, &taken);
      TRACETOOLS_TRACEPOINT(callback_start, &callbacks[at], false);
      if (receptions < MOST) received[receptions++] = (seen_t){topics[at], atoll(taken.data.data), now(CLOCK_MONOTONIC)};
      if (out) publish(atoll(taken.data.data));
      TRACETOOLS_TRACEPOINT(callback_end, &callbacks[at]);
    }
  }
  write_log(argv[2], argv[1]);
  return 0;
}
