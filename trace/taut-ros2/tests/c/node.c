/* Calls the tracepoints in the order in which rclcpp, rcl and rmw call them: `node SCENARIO NUMBER`. Built as a program, and as a
 * shared object that host.c loads with RTLD_LOCAL, as Python loads rclpy. */
#define _DEFAULT_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef const void *P;
void ros_trace_rcl_init(P);
void ros_trace_rcl_node_init(P, P, const char *, const char *);
void ros_trace_rmw_publisher_init(P, const uint8_t *);
void ros_trace_rcl_publisher_init(P, P, P, const char *, size_t);
void ros_trace_rmw_subscription_init(P, const uint8_t *);
void ros_trace_rcl_subscription_init(P, P, P, const char *, size_t);
void ros_trace_rclcpp_subscription_init(P, P);
void ros_trace_rclcpp_subscription_callback_added(P, P);
void ros_trace_rclcpp_publish(P, P);
void ros_trace_rcl_publish(P, P);
#ifdef ONE_ARGUMENT
void ros_trace_rmw_publish(P);
#else
void ros_trace_rmw_publish(P, P, int64_t);
#endif
void ros_trace_rmw_take(P, P, int64_t, bool);
void ros_trace_rcl_take(P);
void ros_trace_rclcpp_take(P);
void ros_trace_rcl_timer_init(P, int64_t);
void ros_trace_rclcpp_timer_callback_added(P, P);
void ros_trace_rclcpp_timer_link_node(P, P);
void ros_trace_rcl_service_init(P, P, P, const char *);
void ros_trace_rclcpp_service_callback_added(P, P);
void ros_trace_rcl_client_init(P, P, P, const char *);
void add_subscription(void *, void **) __asm__("_ZN6rclcpp13CallbackGroup16add_subscriptionESt10shared_ptrINS_16SubscriptionBaseEE");
void add_service(void *, void **) __asm__("_ZN6rclcpp13CallbackGroup11add_serviceESt10shared_ptrINS_11ServiceBaseEE");
void add_client(void *, void **) __asm__("_ZN6rclcpp13CallbackGroup10add_clientESt10shared_ptrINS_10ClientBaseEE");
void add_timer(void *, void **) __asm__("_ZN6rclcpp13CallbackGroup9add_timerESt10shared_ptrINS_9TimerBaseEE");
void ros_trace_callback_start(P, bool);
void ros_trace_callback_end(P);
void ros_trace_rclcpp_executor_get_next_ready(void);
void ros_trace_rclcpp_executor_wait_for_work(int64_t);
void ros_trace_rclcpp_executor_execute(P);
void ros_trace_rclcpp_callback_register(P, const char *);
#ifndef HUMBLE
bool ros_trace_enabled_rclcpp_callback_register(void);
void ros_trace_do_rclcpp_callback_register(P, const char *);
void ros_trace_rclcpp_intra_publish(P, P);
void ros_trace_rclcpp_construct_ring_buffer(P, uint64_t);
void ros_trace_rclcpp_buffer_to_ipb(P, P);
void ros_trace_rclcpp_ipb_to_subscription(P, P);
void ros_trace_rclcpp_ring_buffer_enqueue(P, uint64_t, uint64_t, bool);
void ros_trace_rclcpp_ring_buffer_dequeue(P, uint64_t, uint64_t);
#endif
#ifdef KILTED
void ros_trace_rmw_client_init(P, const uint8_t *);
#endif
int32_t rmw_send_request(P, P, int64_t *);
int32_t rmw_take_request(P, int64_t *, void *, bool *);
int32_t rmw_send_response(P, void *, void *);
int32_t rmw_take_response(P, int64_t *, void *, bool *);
int32_t rcl_wait(void *, int64_t);
int32_t rcl_timer_call_with_info(void *, int64_t *);
int32_t rcl_timer_call(void *);
int32_t rcl_timer_fini(void *);
int32_t rcl_publisher_get_subscription_count(const void *, uint64_t *);
int32_t rcl_publisher_fini(void *, void *);
int32_t rmw_take_with_info(const void *, void *, bool *, int64_t *, void *);
int32_t rmw_take_serialized_message_with_info(const void *, void *, bool *, int64_t *, void *);
int32_t rmw_take_loaned_message_with_info(const void *, void **, bool *, int64_t *, void *);
extern int stub_calls, stub_does;

#define H(number) ((void *)(uintptr_t)(number))
enum { CONTEXT = 0x1000, NODE = 0x2000, PUBLISHER = 0x3000, RMW_PUBLISHER = 0x3100, SUBSCRIPTION = 0x4000, RMW_SUBSCRIPTION = 0x4100,
       OBJECT = 0x4200, CALLBACK = 0x4300, TIMER = 0x5000, TIMER_CALLBACK = 0x5100, MESSAGE = 0x6000, TAKEN = 0x7000, BUFFER = 0x8000 };

static const uint8_t gid[24] = {1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1};

static void make(const char *topic) {
  ros_trace_rcl_init(H(CONTEXT));
  ros_trace_rcl_node_init(H(NODE), H(NODE + 1), "camera", "/front");
  ros_trace_rmw_publisher_init(H(RMW_PUBLISHER), gid);
  ros_trace_rcl_publisher_init(H(PUBLISHER), H(NODE), H(RMW_PUBLISHER), topic, 10);
  ros_trace_rmw_subscription_init(H(RMW_SUBSCRIPTION), gid);
  ros_trace_rcl_subscription_init(H(SUBSCRIPTION), H(NODE), H(RMW_SUBSCRIPTION), topic, 1);
  ros_trace_rclcpp_subscription_init(H(SUBSCRIPTION), H(OBJECT));
  ros_trace_rclcpp_subscription_callback_added(H(OBJECT), H(CALLBACK));
#ifdef HUMBLE
  ros_trace_rclcpp_callback_register(H(CALLBACK), "Camera::on_image(Image)");
#else
  if (ros_trace_enabled_rclcpp_callback_register()) ros_trace_do_rclcpp_callback_register(H(CALLBACK), "Camera::on_image(Image)");
#endif
  ros_trace_rcl_timer_init(H(TIMER), 33000000);
  ros_trace_rclcpp_timer_callback_added(H(TIMER), H(TIMER_CALLBACK));
  ros_trace_rclcpp_timer_link_node(H(TIMER), H(NODE));
}

/* A timer publishes, a subscription of the same process takes. */
static void pass(int64_t n) {
  int64_t info[8];
  bool taken;
  ros_trace_rclcpp_executor_get_next_ready();
  ros_trace_rclcpp_executor_execute(H(TIMER));
  rcl_timer_call_with_info(H(TIMER), info);
  ros_trace_callback_start(H(TIMER_CALLBACK), false);
  ros_trace_rclcpp_publish(NULL, H(MESSAGE + n));
  ros_trace_rcl_publish(H(PUBLISHER), H(MESSAGE + n));
#ifdef ONE_ARGUMENT
  ros_trace_rmw_publish(H(MESSAGE + n));
#else
  ros_trace_rmw_publish(H(RMW_PUBLISHER), H(MESSAGE + n), 1000 + n);
#endif
  ros_trace_callback_end(H(TIMER_CALLBACK));
  ros_trace_rclcpp_executor_wait_for_work(-1);
  rcl_wait(H(0x9000), n ? -1 : 7);
  ros_trace_rclcpp_executor_get_next_ready();
  ros_trace_rclcpp_executor_execute(H(SUBSCRIPTION));
  ros_trace_rmw_take(H(RMW_SUBSCRIPTION), H(TAKEN), 1000 + n, true); /* within the next one */
  rmw_take_with_info(H(RMW_SUBSCRIPTION), H(TAKEN), &taken, info, NULL);
  ros_trace_rcl_take(H(TAKEN));
  ros_trace_rclcpp_take(H(TAKEN));
  ros_trace_callback_start(H(CALLBACK), false);
  ros_trace_callback_end(H(CALLBACK));
}

/* A serialized message; a lent one, then one whose middleware says so; and none. */
static void other_takes(void) {
  void *lent = H(TAKEN + 1);
  int64_t info[8];
  bool taken;
  rmw_take_serialized_message_with_info(H(RMW_SUBSCRIPTION), H(TAKEN), &taken, info, NULL);
  rmw_take_loaned_message_with_info(H(RMW_SUBSCRIPTION), &lent, &taken, info, NULL);
  lent = H(TAKEN + 2);
  rmw_take_loaned_message_with_info(H(RMW_SUBSCRIPTION), &lent, &taken, info, NULL);
  lent = NULL;
  rmw_take_loaned_message_with_info(H(RMW_SUBSCRIPTION), &lent, &taken, info, NULL);
}

static void *passes(void *count) {
  int64_t n;
  for (n = 0; n < (int64_t)(intptr_t)count; n++) pass(n);
  return NULL;
}

#ifndef HUMBLE
static void intra(void) {
  ros_trace_rclcpp_construct_ring_buffer(H(BUFFER), 10);
  ros_trace_rclcpp_buffer_to_ipb(H(BUFFER), H(BUFFER + 1));
  ros_trace_rclcpp_ipb_to_subscription(H(BUFFER + 1), H(OBJECT));
  ros_trace_rclcpp_intra_publish(H(PUBLISHER), H(MESSAGE));
  ros_trace_rclcpp_ring_buffer_enqueue(H(BUFFER), 3, 11, true);
  ros_trace_rclcpp_ring_buffer_dequeue(H(BUFFER), 3, 9);
  ros_trace_callback_start(H(CALLBACK), true);
  ros_trace_callback_end(H(CALLBACK));
}
#endif

#ifndef HUMBLE
static void *other_thread(void *callback) {
  ros_trace_callback_end(callback);
  return NULL;
}
/* Another thread's event between the count of subscriptions and the tracepoint; then an event of this thread, too. */
static void counted(void) {
  int with_event;
  for (with_event = 0; with_event < 2; with_event++) {
    pthread_t thread;
    uint64_t count;
    ros_trace_callback_start(H(CALLBACK), false);
    rcl_publisher_get_subscription_count(H(PUBLISHER), &count);
    if (with_event) ros_trace_callback_end(H(CALLBACK));
    pthread_create(&thread, NULL, other_thread, H(0xf000));
    pthread_join(thread, NULL);
    ros_trace_rclcpp_intra_publish(H(PUBLISHER), H(MESSAGE));
  }
}
#endif

/* The last two were asked for nothing that is there. */
static void service(void) {
  int64_t info[5], number; /* rmw_service_info_t: two times and the request's id */
  bool taken;
#ifdef KILTED
  ros_trace_rmw_client_init(H(0xa100), gid);
#endif
  rmw_send_request(H(0xa100), H(MESSAGE), &number);
  rmw_take_request(H(0xb100), info, H(TAKEN), &taken);
  rmw_send_response(H(0xb100), &info[2], H(TAKEN));
  rmw_take_response(H(0xa100), info, H(MESSAGE), &taken);
  rmw_take_request(H(0xb100), info, NULL, &taken);
  rmw_take_response(H(0xa100), info, NULL, &taken);
}

/* As NodeTopics, NodeServices and NodeTimers of rclcpp: an entity is made and then added to its group. */
static void groups(void) {
  void *object[2] = {H(OBJECT), NULL}, *stranger[2] = {H(0x4f00), NULL}, *other[2] = {H(0xe000), NULL};
  add_subscription(H(0x100), object);
  ros_trace_rcl_subscription_init(H(SUBSCRIPTION + 1), H(NODE), H(RMW_SUBSCRIPTION), "/scan", 1);
  ros_trace_rclcpp_subscription_init(H(SUBSCRIPTION + 1), H(OBJECT + 8)); /* that of the intra-process buffer */
  ros_trace_rclcpp_subscription_init(H(SUBSCRIPTION + 1), H(OBJECT + 16));
  object[0] = H(OBJECT + 16);
  add_subscription(H(0x200), stranger); /* made by another thread, or before */
  add_subscription(H(0x200), object);
  add_subscription(H(0x300), object); /* once a making */
  ros_trace_rcl_service_init(H(0xe100), H(NODE), H(0xe101), "/work");
  ros_trace_rclcpp_service_callback_added(H(0xe100), H(0xe102));
  add_service(H(0x200), other);
  ros_trace_rcl_client_init(H(0xe200), H(NODE), H(0xe201), "/work");
  add_client(H(0x100), other);
  ros_trace_rcl_timer_init(H(TIMER + 1), 5);
  ros_trace_rclcpp_timer_callback_added(H(TIMER + 1), H(TIMER_CALLBACK + 1));
  add_timer(H(0x200), other);
  ros_trace_rclcpp_timer_link_node(H(TIMER + 1), H(NODE));
  ros_trace_rclcpp_timer_link_node(H(TIMER), H(NODE)); /* added by nobody */
}

int node_main(int argc, char **argv) {
  const char *scenario = argc > 1 ? argv[1] : "";
  const long number = argc > 2 ? atol(argv[2]) : 1;
  long i;
  errno = 77;
  if (!strcmp(scenario, "long_topic")) {
    char topic[2000];
    memset(topic, 't', sizeof topic);
    topic[0] = '/';
    topic[number] = 0;
    make(topic);
  } else {
    make("/image_raw");
  }
  if (!strcmp(scenario, "chain")) passes((void *)(intptr_t)number);
  if (!strcmp(scenario, "other_takes")) other_takes();
  if (!strcmp(scenario, "groups")) groups();
  if (!strcmp(scenario, "contexts")) make("/image_raw");
#ifndef HUMBLE
  if (!strcmp(scenario, "intra")) intra();
  if (!strcmp(scenario, "counted")) counted();
#endif
  if (!strcmp(scenario, "service")) service();
  if (!strcmp(scenario, "threads")) {
    pthread_t threads[16];
    for (i = 0; i < 16; i++) pthread_create(&threads[i], NULL, passes, (void *)(intptr_t)number);
    for (i = 0; i < 16; i++) pthread_join(threads[i], NULL);
  }
  if (!strcmp(scenario, "fork")) {
    int status = 1;
    const pid_t child = (pass(0), fork());
    if (child == 0) {
      passes((void *)(intptr_t)number);
      _exit(0);
    }
    waitpid(child, &status, 0);
    if (status) return 1;
  }
  if (!strcmp(scenario, "killed")) {
    passes((void *)(intptr_t)number);
    kill(getpid(), SIGKILL);
  }
  if (!strcmp(scenario, "wait_timers"))
    for (i = 0; i < number; i++) { /* rclpy's spin_once with a timeout */
      ros_trace_rcl_timer_init(H(0xc000), 1000 + i);
      rcl_wait(H(0x9000), 1000);
      rcl_timer_fini(H(0xc000));
    }
  if (!strcmp(scenario, "timers"))
    for (i = 0; i < number; i++) { /* used ones, more than can be pending */
      ros_trace_rcl_timer_init(H(0xd000 + i), 1000 + i);
      if (i % 2) rcl_timer_call(H(0xd000 + i));
    }
  if (!strcmp(scenario, "gone")) {
    rcl_publisher_fini(H(PUBLISHER), H(NODE));
    rcl_timer_call(H(TIMER));
    rcl_timer_fini(H(TIMER));
  }
  if (errno != 77) return 2;
  printf("%d %d %d\n", (int)getpid(), stub_calls, stub_does);
  return 0;
}

#ifdef PROGRAM
int main(int argc, char **argv) { return node_main(argc, argv); }
#endif
