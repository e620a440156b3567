/* A ROS 2 event becomes one or two records of the thread's ring: docs/reference/protocol.md, "ROS 2 events".
 *
 * The ring, its claim and its rules are taut.h's; here is only what the records hold.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TAUT_ROS2_EVENTS_H
#define TAUT_ROS2_EVENTS_H

enum { KIND_ROS_EVENT = 9, KIND_ROS_REST = 10 };

/* RosEvent of trace/taut-recording/src/records.rs, which says what the arguments are. */
enum ros_event {
  CALLBACK_START = 1,
  CALLBACK_END = 2,
  RCLCPP_PUBLISH = 3,
  RCL_PUBLISH = 4,
  RMW_PUBLISH = 5,
  INTRA_PUBLISH = 6,
  TAKE = 8,
  ENQUEUE = 10,
  DEQUEUE = 11,
  BUFFER_CLEAR = 12,
  RCL_TAKE = 13,
  RCLCPP_TAKE = 14,
  NEXT_READY = 15,
  WAIT_FOR_WORK = 16,
  EXECUTE = 17,
  SEND_REQUEST = 18,
  TAKE_REQUEST = 19,
  SEND_RESPONSE = 20,
  TAKE_RESPONSE = 21,
  TAKE_INFO = 22,
  TIMER_CALL = 23,
  WAIT = 24,
  WAIT_END = 25,
  GONE = 26,
  SCHEDULE = 27,
  JOINED = 28
};

/* In objects.h: after a fork the child's file of objects begins as its parent's. */
static void inherit_objects(void);

/* Both records of an event become visible at once. */
static inline void put_event(taut_thread_t *here, uint64_t ticks, uint32_t event, uint64_t handle, uint64_t arg0, uint64_t arg1,
                             uint64_t arg2, uint64_t records) {
  taut_record_t *record = &here->ring[here->head & here->mask];
  record->ticks = ticks;
  record->message_id = handle;
  record->point = event | (uint32_t)(records - 1) << 8;
  record->kind = KIND_ROS_EVENT;
  record->value = arg0;
  if (records == 2) {
    record = &here->ring[(here->head + 1) & here->mask];
    record->ticks = ticks;
    record->message_id = arg1;
    record->point = 0;
    record->kind = KIND_ROS_REST;
    record->value = arg2;
  }
  /* As taut_put_: the lines of the records to come. */
  __builtin_prefetch(record + 16, 1);
  here->head += records;
  /* Release: the records are there before the consumer sees the new head. SYNC POINT head */
  __atomic_store_n(&here->slot->head, here->head, __ATOMIC_RELEASE);
}

/* A thread's first event, one in about as many as the ring has records, and all of another counter. An event for which there
 * is no room is dropped and counted. */
TAUT_COLD static void put_event_slowly(uint32_t event, uint64_t handle, uint64_t arg0, uint64_t arg1, uint64_t arg2,
                                       uint64_t records) {
  taut_thread_t *here = &taut_thread_;
  if (!taut_claim_()) {
    if (!taut_is_off_()) taut_count_lost_();
    return;
  }
  inherit_objects();
  if (here->limit - here->head < records) {
    /* Acquire: the consumer has read what is about to be overwritten. SYNC POINT tail */
    const uint64_t tail = __atomic_load_n(&here->slot->tail, __ATOMIC_ACQUIRE);
    const uint64_t waiting = here->head - tail; /* more than the ring holds for a tail that no consumer may have written */
    if (waiting > here->mask + 1 || here->mask + 1 - waiting < records) {
      __atomic_store_n(&here->slot->lost, here->slot->lost + 1, __ATOMIC_RELAXED);
      return;
    }
    here->limit = tail + here->mask + 1;
  }
  put_event(here, here->counter == TAUT_USUAL_COUNTER ? taut_usual_ticks_() : taut_monotonic_ns_(), event, handle, arg0, arg1, arg2,
            records);
  if (here->counter != TAUT_USUAL_COUNTER) here->limit = here->head; /* the next one comes here too */
}

static inline void add_event(uint32_t event, const void *handle, uint64_t arg0, uint64_t arg1, uint64_t arg2) {
  const uint64_t records = arg1 | arg2 ? 2 : 1;
  taut_thread_t *here = &taut_thread_;
  if (taut_is_off_()) return;
  if (TAUT_LIKELY(here->limit - here->head >= records))
    put_event(here, taut_usual_ticks_(), event, (uint64_t)(uintptr_t)handle, arg0, arg1, arg2, records);
  else
    put_event_slowly(event, (uint64_t)(uintptr_t)handle, arg0, arg1, arg2, records);
}

/* A moment of this thread, and what it had said until then. */
typedef struct {
  uint64_t head, ticks;
  uint32_t said;
} moment_t;

static inline moment_t moment(uint32_t said) {
  moment_t now = {0, 0, said};
  if (taut_is_off_()) return now;
  now.head = taut_thread_.head;
  now.ticks = taut_usual_ticks_();
  return now;
}

/* With the time of an earlier moment, if the thread has recorded nothing since then. */
static inline void add_event_as_of(moment_t then, uint32_t event, const void *handle, uint64_t arg0, uint64_t arg1, uint64_t arg2) {
  const uint64_t records = arg1 | arg2 ? 2 : 1;
  taut_thread_t *here = &taut_thread_;
  if (!taut_is_off_() && then.head && then.head == here->head && here->limit - here->head >= records)
    put_event(here, then.ticks, event, (uint64_t)(uintptr_t)handle, arg0, arg1, arg2, records);
  else add_event(event, handle, arg0, arg1, arg2);
}

#endif
