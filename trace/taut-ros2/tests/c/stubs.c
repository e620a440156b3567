/* What stands behind the preload in these tests: a libtracetools that counts, and the functions of rcl and rmw that the preload
 * interposes, which return what a test can foresee. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

int stub_calls, stub_does;
__attribute__((unused)) static bool is_traced(void) { return getenv("STUB_TRACES") != NULL; }

#ifdef HUMBLE
#define TRACEPOINT(event) \
  void ros_trace_##event(void) { __atomic_fetch_add(&stub_calls, 1, __ATOMIC_RELAXED); }
#else
#define TRACEPOINT(event)                                                                 \
  void ros_trace_##event(void) { __atomic_fetch_add(&stub_calls, 1, __ATOMIC_RELAXED); }  \
  bool ros_trace_enabled_##event(void) { return is_traced(); }                            \
  void ros_trace_do_##event(void) { __atomic_fetch_add(&stub_does, 1, __ATOMIC_RELAXED); }
#endif
TRACEPOINT(rcl_init)
TRACEPOINT(rcl_node_init)
TRACEPOINT(rmw_publisher_init)
TRACEPOINT(rcl_publisher_init)
TRACEPOINT(rclcpp_publish)
TRACEPOINT(rcl_publish)
TRACEPOINT(rmw_publish)
TRACEPOINT(rmw_subscription_init)
TRACEPOINT(rcl_subscription_init)
TRACEPOINT(rclcpp_subscription_init)
TRACEPOINT(rclcpp_subscription_callback_added)
TRACEPOINT(rmw_take)
TRACEPOINT(rcl_take)
TRACEPOINT(rclcpp_take)
TRACEPOINT(rcl_service_init)
TRACEPOINT(rclcpp_service_callback_added)
TRACEPOINT(rcl_client_init)
TRACEPOINT(rcl_timer_init)
TRACEPOINT(rclcpp_timer_callback_added)
TRACEPOINT(rclcpp_timer_link_node)
TRACEPOINT(rclcpp_callback_register)
TRACEPOINT(callback_start)
TRACEPOINT(callback_end)
TRACEPOINT(rclcpp_executor_get_next_ready)
TRACEPOINT(rclcpp_executor_wait_for_work)
TRACEPOINT(rclcpp_executor_execute)
#ifndef HUMBLE
TRACEPOINT(rclcpp_intra_publish)
TRACEPOINT(rclcpp_construct_ring_buffer)
TRACEPOINT(rclcpp_buffer_to_ipb)
TRACEPOINT(rclcpp_ipb_to_subscription)
TRACEPOINT(rclcpp_ring_buffer_enqueue)
TRACEPOINT(rclcpp_ring_buffer_dequeue)
#endif
#ifdef KILTED
TRACEPOINT(rmw_client_init)
TRACEPOINT(rmw_send_request)
TRACEPOINT(rmw_take_request)
TRACEPOINT(rmw_send_response)
TRACEPOINT(rmw_take_response)
#endif

/* Of librclcpp, with the names of its C++ functions. */
#define ADD_TO_GROUP(symbol) \
  void symbol(void *group, void **entity) { __atomic_fetch_add(&stub_calls, group != NULL && entity != NULL, __ATOMIC_RELAXED); }
ADD_TO_GROUP(_ZN6rclcpp13CallbackGroup16add_subscriptionESt10shared_ptrINS_16SubscriptionBaseEE)
ADD_TO_GROUP(_ZN6rclcpp13CallbackGroup11add_serviceESt10shared_ptrINS_11ServiceBaseEE)
ADD_TO_GROUP(_ZN6rclcpp13CallbackGroup10add_clientESt10shared_ptrINS_10ClientBaseEE)
ADD_TO_GROUP(_ZN6rclcpp13CallbackGroup9add_timerESt10shared_ptrINS_9TimerBaseEE)

int32_t rcl_wait(void *set, int64_t timeout) { (void)set; return timeout == 7 ? 2 : 0; }
int32_t rcl_timer_call_with_info(void *timer, int64_t *info) {
  (void)timer;
  info[0] = 1000;
  info[1] = 1250;
  return 0;
}
int32_t rcl_timer_call(void *timer) {
  int64_t info[2];
#ifdef HUMBLE
  (void)timer; (void)info;
  return 0;
#else
  return rcl_timer_call_with_info(timer, info);
#endif
}
int32_t rcl_publisher_get_subscription_count(const void *publisher, uint64_t *count) {
  (void)publisher;
  *count = 1;
  return 0;
}
int32_t rcl_timer_fini(void *timer) { (void)timer; return 0; }
int32_t rcl_node_fini(void *node) { (void)node; return 0; }
int32_t rcl_publisher_fini(void *of, void *node) { (void)of; (void)node; return 0; }
int32_t rcl_subscription_fini(void *of, void *node) { (void)of; (void)node; return 0; }
int32_t rcl_service_fini(void *of, void *node) { (void)of; (void)node; return 0; }
int32_t rcl_client_fini(void *of, void *node) { (void)of; (void)node; return 0; }
static int32_t take(const void *message, bool *taken, int64_t *info) {
  *taken = message != NULL;
  info[0] = 5;
  info[1] = 500;
  info[2] = 3;
  info[3] = 9;
  info[5] = 0x10;
  info[6] = 0x03;
  return 0;
}
int32_t rmw_take_with_info(const void *of, void *message, bool *taken, int64_t *info, void *allocation) {
  (void)of; (void)allocation;
  return take(message, taken, info);
}
int32_t rmw_take_serialized_message_with_info(const void *of, void *message, bool *taken, int64_t *info, void *allocation) {
  (void)of; (void)allocation;
  return take(message, taken, info);
}
/* Of the second message that it lends it says so by the tracepoint. */
int32_t rmw_take_loaned_message_with_info(const void *of, void **message, bool *taken, int64_t *info, void *allocation) {
  void (*say)(const void *, const void *, int64_t, bool) = (void (*)(const void *, const void *, int64_t, bool))ros_trace_rmw_take;
  (void)allocation;
  if ((uintptr_t)*message % 16 == 2) say(of, *message, 6, true);
  return take(*message, taken, info);
}

/* rmw_request_id_t and rmw_service_info_t. From Kilted on each function says by a tracepoint what it did, too. */
typedef struct { uint8_t client[16]; int64_t number; } request_id_t;
typedef struct { int64_t source, received; request_id_t request; } service_info_t;
#ifdef KILTED
#define SAY(event, types, values)                      \
  do {                                                 \
    void(*say) types = (void(*) types)ros_trace_##event; \
    say values;                                        \
  } while (0)
#else
#define SAY(event, types, values) (void)0
#endif
static void fill(service_info_t *info) {
  const service_info_t known = {2000, 2100, {{0x10, 0, 0, 0, 0, 0, 0, 0, 0x03}, 41}};
  *info = known;
}
int32_t rmw_send_request(const void *client, const void *request, int64_t *number) {
  (void)client; (void)request;
  *number = 41;
  SAY(rmw_send_request, (const void *, const void *, int64_t), (client, request, 41));
  return 0;
}
int32_t rmw_take_request(const void *service, service_info_t *info, void *request, bool *taken) {
  (void)service;
  fill(info);
  *taken = request != NULL;
  SAY(rmw_take_request, (const void *, const void *, const uint8_t *, int64_t, bool), (service, request, info->request.client, 41, *taken));
  return 0;
}
int32_t rmw_send_response(const void *service, request_id_t *to, void *response) {
  (void)service; (void)to; (void)response;
  SAY(rmw_send_response, (const void *, const void *, const uint8_t *, int64_t, int64_t), (service, response, to->client, to->number, 2000));
  return 0;
}
int32_t rmw_take_response(const void *client, service_info_t *info, void *response, bool *taken) {
  (void)client;
  fill(info);
  *taken = response != NULL;
  SAY(rmw_take_response, (const void *, const void *, int64_t, int64_t, bool), (client, response, 41, 2000, *taken));
  return 0;
}
