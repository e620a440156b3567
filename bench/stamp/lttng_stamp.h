/* A stamp as an LTTng-UST event: point, message id, value. Twice, so that one channel can carry
 * ros2_tracing's contexts and the other none. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER stamp_peer
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_stamp.h"
#if !defined(LTTNG_STAMP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_STAMP_H
#include <lttng/tracepoint.h>
#include <stdint.h>
LTTNG_UST_TRACEPOINT_EVENT_CLASS(stamp_peer, stamp,
    LTTNG_UST_TP_ARGS(uint32_t, point, uint64_t, message_id, uint64_t, value),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, point, point)
        lttng_ust_field_integer(uint64_t, message_id, message_id)
        lttng_ust_field_integer(uint64_t, value, value)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(stamp_peer, stamp, stamp_peer, bare,
    LTTNG_UST_TP_ARGS(uint32_t, point, uint64_t, message_id, uint64_t, value))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(stamp_peer, stamp, stamp_peer, with_contexts,
    LTTNG_UST_TP_ARGS(uint32_t, point, uint64_t, message_id, uint64_t, value))
#endif
#include <lttng/tracepoint-event.h>
