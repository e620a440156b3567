/* Every function of taut_guard.h, from C11. Exits with the line of the first thing that is not as it should be. */
#include "taut_guard.h"

#include <math.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define MUST(holds) \
  do { if (!(holds)) return __LINE__; } while (0)

static taut_guard_frame_t frame_at(uint64_t n, double mm_a_period) {
  taut_guard_frame_t frame;
  memset(&frame, 0, sizeof frame);
  frame.sequence = (uint32_t)(n % 256);
  frame.source_ns = (int64_t)(n * 10 * MS);
  frame.has_source = 1;
  frame.arrival_ns = n * 10 * MS + MS;
  frame.tcp_mm[0] = mm_a_period * (double)n;
  frame.frames_in_read = 1;
  return frame;
}

static int sizes(void) {
  const size_t ours[] = {sizeof(taut_guard_parameters_t), sizeof(taut_guard_frame_t), sizeof(taut_guard_verdict_t),
                         sizeof(taut_guard_trip_t), sizeof(taut_guard_black_box_entry_t), sizeof(taut_guard_t),
                         sizeof(taut_servo_t), sizeof(taut_chain_t), sizeof(taut_timeouts_t), sizeof(taut_ledger_t),
                         sizeof(taut_balance_t), sizeof(taut_limiter_t), sizeof(taut_limits_t), sizeof(taut_shaped_t),
                         sizeof(taut_mailbox_t), sizeof(taut_playout_t), sizeof(taut_sampled_t), sizeof(taut_approach_t),
                         sizeof(taut_decimate_t), sizeof(taut_keep_alive_t), sizeof(taut_retry_t), sizeof(taut_ramp_t)};
  for (uint32_t n = 0; n < sizeof ours / sizeof *ours; ++n) MUST(taut_guard_sizeof(n) == ours[n]);
  MUST(taut_guard_sizeof(22) == 0);
  return 0;
}

static int speed(void) {
  taut_guard_parameters_t p = taut_guard_parameters_for_tcp(10 * MS, 1000.0);
  char why[160];
  taut_guard_t guard;
  MUST(p.has_tcp_limit == 1 && p.window_ns == 150 * MS && p.stale_ns == 50 * MS);
  MUST(taut_guard_detection_bound_ns(&p, 1.25, 0, 0) == (int64_t)(31 * MS));
  MUST(taut_guard_detection_bound_ns(&p, 1.0, 0, 0) == -1);
  MUST(taut_guard_init(&guard, &p, why, sizeof why) == TAUT_DONE);
  taut_guard_verdict_t v = {0, 0, 0, 0, 0};
  for (uint64_t n = 0; n < 100; ++n) {
    taut_guard_frame_t frame = frame_at(n, 9.5);
    v = taut_guard_update(&guard, &frame);
    MUST(n < 11 || v.state == TAUT_STATE_OK || v.state == TAUT_STATE_WARN);
  }
  MUST(v.enables_motion == 1 && v.is_degraded == 0 && v.ratio < 0.95 && v.ratio > 0.9);
  MUST(fabs(taut_guard_display_speed_mm_s(&guard) - 950.0) < 1e-6);
  MUST(taut_guard_time_base(&guard) == TAUT_TIME_SOURCE);
  uint32_t answer = 0;
  MUST(taut_guard_heartbeat(&guard, 99, 991 * MS, &answer) == 1);
  MUST(answer == taut_guard_heartbeat_expected(taut_guard_parameters_hash(&p), 99));
  taut_guard_trip_t trip;
  MUST(taut_guard_trip(&guard, &trip) == 0);
  for (uint64_t n = 100; n < 110; ++n) {
    taut_guard_frame_t frame = frame_at(n, 9.5);
    frame.tcp_mm[0] += 5.0 * (double)(n - 99);
    v = taut_guard_update(&guard, &frame);
  }
  MUST(v.state == TAUT_STATE_OVERSPEED && v.enables_motion == 0);
  MUST(taut_guard_trip(&guard, &trip) == 1 && trip.cause == TAUT_CAUSE_SPEED && trip.channel == 0 && trip.ratio > 1.0);
  MUST(trip.parameters_hash == taut_guard_parameters_hash(&p) && trip.time_base == TAUT_TIME_SOURCE);
  MUST(trip.has_proof == 1 && trip.proof[1].t_ns - trip.proof[0].t_ns == trip.span_ns && trip.span_ns > 0);
  MUST(trip.proof[1].tcp_mm[0] > trip.proof[0].tcp_mm[0]);
  taut_guard_black_box_entry_t entries[TAUT_BLACK_BOX_FRAMES];
  MUST(taut_guard_black_box(&guard, entries, TAUT_BLACK_BOX_FRAMES) == TAUT_BLACK_BOX_FRAMES);
  MUST(entries[49].frame.arrival_ns == trip.at_ns && entries[49].state == TAUT_STATE_OVERSPEED);
  MUST(taut_guard_black_box(&guard, entries, 3) == 3);
  MUST(taut_guard_reset(&guard, 1100 * MS, why, sizeof why) == TAUT_RESET_REFUSED && strstr(why, "100 ms") != NULL);
  for (uint64_t n = 110; n < 150; ++n) {
    taut_guard_frame_t frame = frame_at(n, 0.0);
    taut_guard_update(&guard, &frame);
  }
  MUST(taut_guard_reset(&guard, 1492 * MS, NULL, 0) == TAUT_DONE && taut_guard_state(&guard) == TAUT_STATE_OK);
  taut_guard_count_bad_frame(&guard);
  taut_guard_count_parser_resync(&guard, 7);
  int found = 0;
  for (size_t n = 0; n < taut_guard_counter_count(); ++n) {
    size_t length = 0;
    const char *name = taut_guard_counter_name(n, &length);
    if (length == 20 && memcmp(name, "parser_resync_octets", 20) == 0) found = taut_guard_counter(&guard, n) == 7;
  }
  MUST(found && taut_guard_counter_name(1000, NULL) == NULL);
  MUST(taut_guard_tick(&guard, 1600 * MS).state == TAUT_STATE_STALE);
  taut_guard_frame_t nan = frame_at(160, 0.0);
  nan.tcp_mm[2] = (double)NAN;
  MUST(taut_guard_init(&guard, &p, NULL, 0) == TAUT_DONE);
  MUST(taut_guard_update(&guard, &nan).state == TAUT_STATE_FAULT);
  return 0;
}

static int misuse(void) {
  static taut_guard_t zeroed;
  taut_guard_parameters_t p = taut_guard_parameters_for_tcp(0, 1000.0);
  taut_guard_frame_t frame = frame_at(0, 0.0);
  char why[160], brief[8];
  MUST(taut_guard_update(&zeroed, &frame).enables_motion == 0 && taut_guard_state(&zeroed) == TAUT_STATE_FAULT);
  MUST(taut_guard_update(NULL, NULL).state == TAUT_STATE_FAULT && taut_guard_tick(NULL, 0).enables_motion == 0);
  MUST(taut_guard_init(&zeroed, &p, why, sizeof why) == TAUT_OUT_OF_RANGE && strncmp(why, "period_ns is 0", 14) == 0);
  MUST(taut_guard_init(&zeroed, &p, brief, sizeof brief) == TAUT_OUT_OF_RANGE && strcmp(brief, "period_") == 0);
  MUST(taut_guard_init(NULL, &p, why, sizeof why) == TAUT_NO_HANDLE && taut_guard_init(&zeroed, NULL, NULL, 0) == TAUT_NO_HANDLE);
  MUST(taut_guard_reset(&zeroed, 0, NULL, 0) == TAUT_NO_HANDLE && taut_guard_trip(&zeroed, NULL) == TAUT_NO_HANDLE);
  MUST(taut_guard_black_box(&zeroed, NULL, 5) == 0 && taut_guard_counter(&zeroed, 0) == 0);
  MUST(taut_guard_heartbeat(&zeroed, 0, 0, NULL) == TAUT_NO_HANDLE && taut_guard_parameters_hash(NULL) == 0);
  MUST(taut_servo_command(NULL, 0) == TAUT_NO_HANDLE && taut_chain_cycle(NULL, 0) == TAUT_NO_HANDLE);
  MUST(taut_ledger_produce(NULL, 0, 0) == TAUT_NO_HANDLE && taut_limiter_shape(NULL, NULL, NULL) == TAUT_NO_HANDLE);
  MUST(taut_ledger_end_older(NULL, 0, 0, 0, 0) == TAUT_NO_HANDLE && taut_ledger_share(NULL, 1) <= 0.0);
  static taut_playout_t playout;
  static taut_mailbox_t mailbox;
  static taut_retry_t retry;
  taut_sampled_t sampled;
  uint64_t item[TAUT_MAILBOX_WORDS] = {0};
  MUST(taut_playout_init(NULL, 0, 0, 0, NULL, 0) == TAUT_NO_HANDLE && taut_playout_play(&playout, 0, &sampled) == TAUT_NO_HANDLE);
  MUST(taut_mailbox_put(&mailbox, item, NULL) == TAUT_NO_HANDLE && taut_mailbox_take(NULL, item) == TAUT_NO_HANDLE);
  MUST(taut_retry_again(&retry, 0) == TAUT_NO_HANDLE && taut_retry_left_ns(NULL, 0) == 0);
  MUST(taut_approach_share(NULL, 1.0, 2.0) <= 0.0 && taut_decimate_keeps(NULL, 0) == TAUT_NO_HANDLE);
  MUST(taut_keep_alive_is_due(NULL, NULL, 0, 0) == TAUT_NO_HANDLE && taut_ramp_next(NULL, NULL, NULL) == TAUT_NO_HANDLE);
  MUST(taut_servo_counter(NULL, 0) == 0 && taut_chain_counter(NULL, 0) == 0 && taut_ledger_age_max_ns(NULL) == 0);
  return 0;
}

static int watchdog(void) {
  taut_servo_t servo;
  MUST(taut_servo_init(&servo, MS / 10, 100 * MS, NULL, 0) == TAUT_DONE);
  MUST(taut_servo_command(&servo, TAUT_COMMAND_POSITION) == 0 && taut_servo_command(&servo, TAUT_COMMAND_ENABLE) == 1);
  MUST(taut_servo_command(&servo, TAUT_COMMAND_POSITION) == 1 && taut_servo_tick(&servo) == TAUT_DRIVE_POSITION);
  for (int n = 0; n < 1001; ++n) taut_servo_tick(&servo);
  MUST(taut_servo_mode(&servo) == TAUT_SERVO_TIMEOUT && taut_servo_tick(&servo) == TAUT_DRIVE_DAMP);
  MUST(taut_servo_counter(&servo, 0) == 1 && taut_servo_counter(&servo, 1) == 1 && taut_servo_counter(&servo, 2) == 1);
  MUST(taut_servo_counter(&servo, 9) == 0);
  MUST(taut_servo_position(&servo, (double)NAN, 0) == TAUT_OUT_OF_RANGE && taut_servo_position(&servo, 0.1, 0) == 0);
  taut_servo_fault(&servo);
  MUST(taut_servo_tick(&servo) == TAUT_DRIVE_OFF);
  MUST(fabs(taut_damping_torque_nm(2.0, 1.0, 1.5) + 1.5) < 1e-12);

  taut_chain_t chain;
  taut_timeouts_t timeouts = {MS, 20 * MS, 100 * MS, 1000 * MS, 0, 0};
  MUST(taut_chain_init(&chain, 3, &timeouts, 5, NULL, 0) == TAUT_DONE && taut_chain_start(&chain, 0) == TAUT_DONE);
  for (uint64_t n = 1; n <= 10; ++n) {
    for (size_t s = 0; s < 3; ++s) taut_chain_reply(&chain, s, TAUT_REPORT_HEALTHY);
    taut_chain_operator(&chain, n * MS);
    MUST(taut_chain_cycle(&chain, n * MS) == TAUT_CHAIN_RUNNING);
  }
  double scale = 0.0;
  MUST(taut_chain_action(&chain, 0, &scale) == TAUT_ACTION_FOLLOW && taut_chain_action(&chain, 3, NULL) == TAUT_ACTION_STOP);
  taut_chain_reply(&chain, 1, TAUT_REPORT_FAULTED);
  MUST(taut_chain_cycle(&chain, 11 * MS) == TAUT_CHAIN_SERVO_FAULT + 1);
  MUST(taut_chain_action(&chain, 0, &scale) == TAUT_ACTION_ZERO_VELOCITY && scale > 1.4 && scale < 1.6);
  MUST(taut_chain_action(&chain, 1, NULL) == TAUT_ACTION_STOP);
  MUST(taut_chain_start(&chain, 0) == TAUT_RESET_REFUSED);
  MUST(taut_chain_counter(&chain, 0) == 11 && taut_chain_counter(&chain, 1) == 2);
  MUST(taut_chain_reply_age_cycles(&chain, 0) == 1 && taut_chain_reply_age_cycles(&chain, 3) == UINT64_MAX);
  MUST(taut_best_stop(1, 1, 1, 1) == TAUT_STOP_HOLD && taut_best_stop(1, 0, 1, 1) == TAUT_STOP_DAMP);
  MUST(taut_best_stop(0, 1, 1, 1) == TAUT_STOP_BRAKE && taut_best_stop(1, 1, 1, 0) == TAUT_STOP_OFF);
  taut_ramp_t ramp;
  double home[TAUT_AXES] = {0.1}, target[TAUT_AXES] = {0.2}, step[TAUT_AXES];
  MUST(taut_ramp_init(&ramp, home, 0.06, NULL, 0) == TAUT_DONE && taut_ramp_init(&ramp, home, 0.0, NULL, 0) == TAUT_OUT_OF_RANGE);
  MUST(taut_ramp_init(&ramp, home, 0.06, NULL, 0) == TAUT_DONE);
  MUST(taut_ramp_next(&ramp, target, step) == 0 && fabs(step[0] - 0.1) < 1e-12);
  MUST(taut_ramp_next(&ramp, target, step) == 0 && fabs(step[0] - 0.16) < 1e-12);
  MUST(taut_ramp_next(&ramp, target, step) == 1 && fabs(step[0] - 0.2) < 1e-12);
  taut_chain_stop(&chain);
  taut_chain_degrade(&chain, 4);
  MUST(taut_chain_cycle(&chain, 12 * MS) == TAUT_CHAIN_OTHER + 4);
  timeouts.cycle_ns = 50 * MS;
  MUST(taut_chain_init(&chain, 3, &timeouts, 5, NULL, 0) == TAUT_CONTRADICTION);
  timeouts.cycle_ns = MS;
  MUST(taut_chain_init(&chain, 17, &timeouts, 5, NULL, 0) == TAUT_OUT_OF_RANGE);
  return 0;
}

static int setpoints(void) {
  taut_ledger_t ledger;
  taut_balance_t balance;
  MUST(taut_ledger_init(&ledger) == TAUT_DONE);
  taut_limits_t limits;
  memset(&limits, 0, sizeof limits);
  limits.period_ns = 20 * MS;
  limits.axes = 2;
  for (int axis = 0; axis < 2; ++axis) {
    limits.position_min[axis] = -1.0;
    limits.position_max[axis] = 1.0;
    limits.velocity_max[axis] = 1.0;
  }
  double at[TAUT_AXES] = {0};
  taut_limiter_t limiter;
  taut_shaped_t shaped;
  MUST(taut_limiter_init(&limiter, &limits, at, NULL, 0) == TAUT_DONE);
  for (uint64_t id = 0; id < 1000; ++id) {
    at[0] = id % 2 ? 0.5 : -0.5;
    MUST(taut_ledger_produce(&ledger, id, id * 20 * MS) == TAUT_DONE);
    MUST(taut_limiter_shape(&limiter, at, &shaped) == TAUT_DONE && fabs(shaped.setpoint[0]) < 0.021);
    MUST(taut_ledger_end(&ledger, id, shaped.fate, shaped.reason, id * 20 * MS) == TAUT_DONE);
  }
  MUST(taut_ledger_count(&ledger, TAUT_REASON_VELOCITY_LIMIT) == 1000);
  MUST(taut_ledger_balance(&ledger, 20000 * MS, &balance) == TAUT_DONE);
  MUST(balance.produced == 1000 && balance.acknowledged == 1000 && balance.is_alarmed == 0);
  MUST(taut_ledger_produce(&ledger, 1, 0) == TAUT_DONE && taut_ledger_produce(&ledger, 1, 0) == TAUT_CONTRADICTION);
  MUST(taut_ledger_end(&ledger, 1, TAUT_FATE_REJECTED, TAUT_REASON_VELOCITY_LIMIT, 0) == TAUT_NOT_A_REJECTION);
  MUST(taut_ledger_end(&ledger, 1, 9, 9, 0) == TAUT_NO_SUCH_FATE && taut_ledger_end(&ledger, 2, 0, 0, 0) == TAUT_NOT_IN_FLIGHT);
  MUST(taut_ledger_end_older(&ledger, 1, TAUT_FATE_LOST, TAUT_REASON_TRANSPORT, 5) == 1 && taut_ledger_age_max_ns(&ledger) == 5);
  MUST(fabs(taut_ledger_share(&ledger, TAUT_REASON_TRANSPORT) - 1.0 / 1001.0) < 1e-12);
  MUST(taut_limiter_shape_near(&limiter, at, 0.0, &shaped) == TAUT_DONE);
  MUST(shaped.fate == TAUT_FATE_HELD && shaped.reason == TAUT_REASON_WORK_AREA);
  at[1] = (double)NAN;
  MUST(taut_limiter_shape(&limiter, at, &shaped) == TAUT_NOT_FINITE && taut_limiter_rehome(&limiter, at) == TAUT_NOT_FINITE);
  return 0;
}

static int policies(void) {
  taut_approach_t approach;
  MUST(taut_approach_init(&approach, 10.0, 15.0, 60.0, NULL, 0) == TAUT_DONE);
  MUST(fabs(taut_approach_share(&approach, 35.0, 34.0) - 0.5) < 1e-12 && taut_approach_share(&approach, 10.0, 9.0) <= 0.0);
  MUST(taut_approach_init(&approach, 20.0, 15.0, 60.0, NULL, 0) == TAUT_OUT_OF_RANGE);

  taut_playout_t playout;
  taut_sampled_t sampled;
  double at[TAUT_AXES] = {0};
  char why[160];
  MUST(taut_playout_init(&playout, 20 * MS, 15 * MS, 900 * MS, why, sizeof why) == TAUT_OUT_OF_RANGE);
  MUST(strstr(why, "delay_most_ns") != NULL);
  MUST(taut_playout_init(&playout, 20 * MS, 15 * MS, 200 * MS, NULL, 0) == TAUT_DONE);
  MUST(taut_playout_play(&playout, 0, &sampled) == 0);
  for (uint64_t n = 0; n < 5; ++n) {
    at[0] = 20.0 * (double)n;
    MUST(taut_playout_push(&playout, (int64_t)(n * 20 * MS), at, n * 20 * MS) == 1);
  }
  MUST(taut_playout_push(&playout, 0, at, 100 * MS) == 0);
  MUST(taut_playout_play(&playout, 105 * MS, &sampled) == 1 && sampled.source == TAUT_PLAYED_INTERPOLATED);
  MUST(fabs(sampled.setpoint[0] - 70.0) < 1e-9 && sampled.added_delay_ns == 35 * MS);
  MUST(taut_playout_play(&playout, 900 * MS, &sampled) == 1 && sampled.source == TAUT_PLAYED_RESTING);

  taut_decimate_t decimate;
  MUST(taut_decimate_init(&decimate, 40 * MS, NULL, 0) == TAUT_DONE);
  MUST(taut_decimate_keeps(&decimate, 0) == 1 && taut_decimate_keeps(&decimate, (int64_t)(20 * MS)) == 0);
  taut_keep_alive_t keep_alive;
  MUST(taut_keep_alive_init(&keep_alive, 0.001, 90 * MS, NULL, 0) == TAUT_DONE);
  MUST(taut_keep_alive_is_due(&keep_alive, at, 8 * MS, 0) == 1 && taut_keep_alive_is_due(&keep_alive, at, 8 * MS, 8 * MS) == 0);
  MUST(taut_keep_alive_is_due(&keep_alive, at, 8 * MS, 24 * MS) == 1);
  taut_retry_t retry;
  MUST(taut_retry_init(&retry, 20 * MS, 2, NULL, 0) == TAUT_DONE);
  taut_retry_begin(&retry, 0);
  MUST(taut_retry_left_ns(&retry, 5 * MS) == 15 * MS && taut_retry_again(&retry, 5 * MS) == 1 && taut_retry_again(&retry, 6 * MS) == 0);

  taut_mailbox_t mailbox;
  uint64_t item[TAUT_MAILBOX_WORDS] = {1, 10}, got[TAUT_MAILBOX_WORDS];
  MUST(taut_mailbox_init(&mailbox) == TAUT_DONE && taut_mailbox_take(&mailbox, got) == 0);
  MUST(taut_mailbox_put(&mailbox, item, got) == 0);
  item[0] = 2;
  MUST(taut_mailbox_put(&mailbox, item, got) == 1 && got[0] == 1 && got[1] == 10);
  MUST(taut_mailbox_take(&mailbox, got) == 1 && got[0] == 2 && taut_mailbox_take(&mailbox, got) == 0);
  return 0;
}

int main(void) {
  int line = sizes();
  if (line == 0) line = speed();
  if (line == 0) line = misuse();
  if (line == 0) line = watchdog();
  if (line == 0) line = setpoints();
  if (line == 0) line = policies();
  return line == 0 ? 0 : (line % 250) + 1;
}
