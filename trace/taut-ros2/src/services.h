/* Services of a middleware without tracepoints for them, as all are before Kilted: rmw's functions tell what these would.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TAUT_ROS2_SERVICES_H
#define TAUT_ROS2_SERVICES_H

/* rmw_request_id_t and rmw_service_info_t, which are the same from Humble to Rolling (rmw/types.h). */
typedef struct {
  uint8_t client[16];
  int64_t number;
} request_id_t;
typedef struct {
  int64_t source_timestamp, received_timestamp;
  request_id_t request;
} service_info_t;

/* Tracepoints of services that this thread passed: a middleware that has them calls them within these functions. */
static __thread uint32_t services_said;

/* What was not taken has no number: the caller's structure is as it was. */
static inline void add_take_request(const void *service, const service_info_t *info, bool taken) {
  add_event(TAKE_REQUEST, service, taken ? (uint64_t)info->request.number : 0, taken ? folded(info->request.client) : 0, taken);
}
static inline void add_take_response(const void *client, const service_info_t *info, bool taken) {
  add_event(TAKE_RESPONSE, client, taken ? (uint64_t)info->request.number : 0, taken ? (uint64_t)info->source_timestamp : 0, taken);
}

/* What is sent may be there before its function returns: it has the time of the call. */
CALL(rmw_send_request, RMW, (const void *client, const void *request, int64_t *number), (client, request, number),
     const moment_t begin = moment(services_said),
     if (result == RET_OK && number && begin.said == services_said)
       add_event_as_of(begin, SEND_REQUEST, client, (uint64_t)*number, 0, 0))
CALL(rmw_take_request, RMW, (const void *service, service_info_t *info, void *request, bool *taken), (service, info, request, taken),
     const uint32_t said = services_said,
     if (result == RET_OK && info && taken && said == services_said) add_take_request(service, info, *taken))
CALL(rmw_send_response, RMW, (const void *service, request_id_t *to, void *response), (service, to, response),
     const moment_t begin = moment(services_said),
     if (result == RET_OK && to && begin.said == services_said)
       add_event_as_of(begin, SEND_RESPONSE, service, (uint64_t)to->number, folded(to->client), 0))
CALL(rmw_take_response, RMW, (const void *client, service_info_t *info, void *response, bool *taken), (client, info, response, taken),
     const uint32_t said = services_said,
     if (result == RET_OK && info && taken && said == services_said) add_take_response(client, info, *taken))

#endif
