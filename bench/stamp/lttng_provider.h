/* LTTng-UST's form of the same event: three fields. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER taut_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_provider.h"
#if !defined(LTTNG_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_PROVIDER_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(taut_bench, stamp,
  LTTNG_UST_TP_ARGS(uint64_t, id, uint32_t, point, uint64_t, value),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, id, id) lttng_ust_field_integer(uint32_t, point, point)
                      lttng_ust_field_integer(uint64_t, value, value)))
#endif
#include <lttng/tracepoint-event.h>
