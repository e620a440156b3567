/* taut_guard.h: keep a robot safe while its loop jitters, from C11 and C++17.
 *
 *     taut_guard_t guard;
 *     taut_guard_parameters_t p = taut_guard_parameters_for_tcp(10 * 1000000, 1000.0);   // 10 ms, 1 m/s
 *     char why[160];
 *     if (taut_guard_init(&guard, &p, why, sizeof why) != 0) die(why);
 *     for (;;) {                                          // in a thread of its own, above its producers
 *         taut_guard_verdict_t v = have_frame() ? taut_guard_update(&guard, &frame)
 *                                               : taut_guard_tick(&guard, monotonic_ns());
 *         if (!v.enables_motion) controlled_stop();
 *     }
 *
 * Link its library: it is in the wheel (find_package(taut COMPONENTS guard), pkg-config taut-guard), or cargo builds it:
 *
 *     cargo rustc --release -p taut-guard --features c --crate-type staticlib,cdylib
 *     cc robot.c -Iinclude target/release/libtaut_guard.a -lpthread -ldl -lm
 *
 * You own all storage: declare a handle anywhere, init it, and use it from one thread at a time (a mailbox: from one at
 * each end). Nothing allocates, locks,
 * calls the kernel or reads a clock; times are CLOCK_MONOTONIC nanoseconds that you pass in. A pointer is null or valid;
 * null, and a zeroed handle that was never initialised, are answered with TAUT_NO_HANDLE or with a verdict that stops.
 * `message`, where it is asked for, takes the words of a refusal, NUL-terminated; it may be null. This is no safety-rated
 * function. What each number means: docs/reference/guard.md.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TAUT_GUARD_H
#define TAUT_GUARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- what calls answer with ---------------------------------------------------------------------- */

enum {
  TAUT_DONE = 0,
  TAUT_NO_HANDLE = -1,
  TAUT_OUT_OF_RANGE = -2,
  TAUT_CONTRADICTION = -3,
  TAUT_SELF_TEST_FAILED = -4,
  TAUT_RESET_REFUSED = -5,
  TAUT_NOT_A_REJECTION = -6,
  TAUT_NOT_IN_FLIGHT = -7,
  TAUT_TOO_MANY_IN_FLIGHT = -8,
  TAUT_UNBALANCED = -9,
  TAUT_NOT_FINITE = -10,
  TAUT_NO_SUCH_FATE = -12
};

/* --- speed guard --------------------------------------------------------------------------------- */

enum { TAUT_JOINTS = 8, TAUT_BLACK_BOX_FRAMES = 50 };

enum { TAUT_TIME_SOURCE = 0, TAUT_TIME_SEQUENCE = 1, TAUT_TIME_ARRIVAL = 2 };

enum {
  TAUT_STATE_INIT = 0,
  TAUT_STATE_OK = 1,
  TAUT_STATE_WARN = 2,
  TAUT_STATE_UNKNOWN = 3,
  TAUT_STATE_OVERSPEED = 4, /* latched, as the next two */
  TAUT_STATE_STALE = 5,
  TAUT_STATE_FAULT = 6
};

enum {
  TAUT_CAUSE_SPEED = 1,
  TAUT_CAUSE_REPORTED_SPEED = 2,
  TAUT_CAUSE_SILENCE = 3,
  TAUT_CAUSE_LATE_DATA = 4,
  TAUT_CAUSE_STILL_UNKNOWN = 5,
  TAUT_CAUSE_CONFIGURATION = 6,
  TAUT_CAUSE_CLOCK = 7,
  TAUT_CAUSE_NOT_FINITE = 8,
  TAUT_CAUSE_DISAGREEMENT = 9
};

/* Bits of taut_guard_verdict_t.events. */
enum {
  TAUT_EVENT_GAP = 1 << 0,
  TAUT_EVENT_DUPLICATE = 1 << 1,
  TAUT_EVENT_LATE_INSERTED = 1 << 2,
  TAUT_EVENT_LATE_DISCARDED = 1 << 3,
  TAUT_EVENT_BAD_FRAME = 1 << 4,
  TAUT_EVENT_RESYNC = 1 << 5,
  TAUT_EVENT_RECEIVER_STALL = 1 << 6,
  TAUT_EVENT_RESIDUAL = 1 << 7,
  TAUT_EVENT_CLOCK_STEP = 1 << 8,
  TAUT_EVENT_LATE_DATA = 1 << 9,
  TAUT_EVENT_TIMING_SUSPECT = 1 << 10,
  TAUT_EVENT_DISAGREEMENT = 1 << 11,
  TAUT_EVENT_DEGRADED = 1 << 12,
  TAUT_EVENT_HOST_CLOCK_BACK = 1 << 13
};

typedef struct {
  uint64_t period_ns;               /* T */
  uint64_t sequence_modulus;        /* 256 for a u8 count, 0 for none */
  uint64_t source_error_ns;         /* e */
  uint64_t source_error_max_ns;
  uint64_t window_ns;               /* W_max */
  uint64_t stale_ns;                /* T_stale */
  uint64_t age_max_ns;              /* A_max */
  uint64_t tick_ns;
  uint64_t transport_max_ns;        /* D */
  uint64_t arrival_jitter_ns;       /* J */
  double tcp_limit_mm_s;            /* L */
  double tcp_error_mm;              /* p */
  double joint_limits_rad_s[TAUT_JOINTS];
  double joint_error_rad;
  double acceleration_max_mm_s2;
  double reported_tolerance_mm_s;
  uint32_t time_base;
  uint32_t drift_ppm;
  uint32_t joint_count;
  uint32_t trip_count;              /* N */
  uint32_t trip_of;                 /* M */
  uint32_t lost_max;                /* G */
  uint32_t source_is_monotonic;     /* 0 or 1, as the next two */
  uint32_t has_tcp_limit;
  uint32_t path_length;
  uint32_t reserved;
} taut_guard_parameters_t;

typedef struct {
  uint64_t arrival_ns;              /* CLOCK_MONOTONIC, as early as possible */
  int64_t source_ns;
  double tcp_mm[3];
  double joints_rad[TAUT_JOINTS];
  double reported_mm_s;
  uint32_t sequence;
  uint16_t frames_in_read;
  uint8_t has_source;
  uint8_t has_reported;
} taut_guard_frame_t;

typedef struct {
  double ratio;                     /* largest v_lb / L of the newest frame's pairs */
  uint32_t state;
  uint32_t events;
  uint32_t enables_motion;          /* 0: controlled stop */
  uint32_t is_degraded;
} taut_guard_verdict_t;

typedef struct {
  int64_t sequence;                 /* the rolling count without its wraps, from any start */
  int64_t t_ns;                     /* by the guard's time base */
  double tcp_mm[3];
  double joints_rad[TAUT_JOINTS];
} taut_guard_sample_t;

typedef struct {
  uint64_t at_ns;
  uint64_t parameters_hash;
  int64_t span_ns;                  /* between the two samples that prove it, or 0 */
  double ratio;
  uint32_t state;
  uint32_t cause;
  uint32_t channel;                 /* 0 the tool, 1 … 8 a joint, 255 the reported speed */
  uint32_t has_proof;
  uint32_t time_base;               /* what time was made of; TAUT_TIME_ARRIVAL is the degraded mode */
  uint32_t reserved;
  taut_guard_sample_t proof[2];     /* the earlier first */
} taut_guard_trip_t;

typedef struct {
  taut_guard_frame_t frame;
  double ratio;
  uint32_t state;
  uint32_t events;
} taut_guard_black_box_entry_t;

typedef struct { uint64_t storage[2048]; } taut_guard_t;

/* The defaults: source stamps within 1 ms, a u8 count, T_stale of five periods, W_max of fifteen. */
taut_guard_parameters_t taut_guard_parameters_for_tcp(uint64_t period_ns, double limit_mm_s);
uint64_t taut_guard_parameters_hash(const taut_guard_parameters_t *parameters);
/* Longest time until a steady overspeed of ratio × L trips, or -1 if W_max cannot prove it. */
int64_t taut_guard_detection_bound_ns(const taut_guard_parameters_t *parameters, double ratio, uint32_t lost, uint64_t delay_ns);
/* Checks the parameters and tests the guard with injected faults. */
int taut_guard_init(taut_guard_t *guard, const taut_guard_parameters_t *parameters, char *message, size_t capacity);
taut_guard_verdict_t taut_guard_update(taut_guard_t *guard, const taut_guard_frame_t *frame);
taut_guard_verdict_t taut_guard_tick(taut_guard_t *guard, uint64_t now_ns);
/* The only way out of a latched state: after 100 ms of fresh frames below half the limit. */
int taut_guard_reset(taut_guard_t *guard, uint64_t now_ns, char *message, size_t capacity);
uint32_t taut_guard_state(taut_guard_t *guard);
void taut_guard_count_bad_frame(taut_guard_t *guard);
void taut_guard_count_parser_resync(taut_guard_t *guard, uint64_t octets);
/* 1 and the first trip since the last reset, or 0. */
int taut_guard_trip(taut_guard_t *guard, taut_guard_trip_t *trip);
/* The last frames up to the first trip, oldest first; how many were written. */
size_t taut_guard_black_box(taut_guard_t *guard, taut_guard_black_box_entry_t *entries, size_t capacity);
/* Counters by index, with their names (not NUL-terminated). */
size_t taut_guard_counter_count(void);
const char *taut_guard_counter_name(size_t index, size_t *length);
uint64_t taut_guard_counter(taut_guard_t *guard, size_t index);
uint32_t taut_guard_time_base(taut_guard_t *guard);
/* For people's eyes: least squares over five samples; negative before that. Trips nothing. */
double taut_guard_display_speed_mm_s(taut_guard_t *guard);
/* A living guard's answer to a question from outside: 1, or 0 for a guard that must not enable motion. */
int taut_guard_heartbeat(taut_guard_t *guard, uint32_t challenge, uint64_t now_ns, uint32_t *answer);
uint32_t taut_guard_heartbeat_expected(uint64_t parameters_hash, uint32_t challenge);

/* --- watchdog ------------------------------------------------------------------------------------ */

enum { TAUT_COMMAND_STOP = 0, TAUT_COMMAND_ENABLE = 1, TAUT_COMMAND_POSITION = 2, TAUT_COMMAND_ZERO_VELOCITY = 3 };
enum { TAUT_DRIVE_OFF = 0, TAUT_DRIVE_POSITION = 1, TAUT_DRIVE_DAMP = 2 };
enum {
  TAUT_SERVO_STOPPED = 0,
  TAUT_SERVO_ENABLED = 1,
  TAUT_SERVO_POSITION = 2,
  TAUT_SERVO_ZERO_VELOCITY = 3,
  TAUT_SERVO_TIMEOUT = 4, /* latched: only a stop leaves it, as the next */
  TAUT_SERVO_FAULT = 5
};

typedef struct { uint64_t storage[16]; } taut_servo_t;

int taut_servo_init(taut_servo_t *servo, uint64_t tick_ns, uint64_t timeout_ns, char *message, size_t capacity);
/* 1 if obeyed, 0 if ignored. */
int taut_servo_command(taut_servo_t *servo, uint32_t command);
/* A position command with a time-out of its own. NaN means none, and is granted only with the flag. */
int taut_servo_position(taut_servo_t *servo, double timeout_s, int unsafe_without_timeout);
uint32_t taut_servo_tick(taut_servo_t *servo);
void taut_servo_fault(taut_servo_t *servo);
int taut_servo_mode(taut_servo_t *servo);
double taut_damping_torque_nm(double kd_nm_s, double omega_rad_s, double max_nm);

enum { TAUT_REPORT_HEALTHY = 0, TAUT_REPORT_TIMED_OUT = 1, TAUT_REPORT_FAULTED = 2 };
enum { TAUT_ACTION_STOP = 0, TAUT_ACTION_FOLLOW = 1, TAUT_ACTION_ZERO_VELOCITY = 2 };
/* What taut_chain_cycle gives: 0 stopped, 1 running, else one of these plus the servo's or the caller's number. */
enum {
  TAUT_CHAIN_STOPPED = 0,
  TAUT_CHAIN_RUNNING = 1,
  TAUT_CHAIN_SERVO_FAULT = 256 * 1,
  TAUT_CHAIN_SERVO_TIMEOUT = 256 * 2,
  TAUT_CHAIN_NO_REPLY = 256 * 3,
  TAUT_CHAIN_HOST_STALE = 256 * 4,
  TAUT_CHAIN_HOST_CLOCK = 256 * 5,
  TAUT_CHAIN_OPERATOR_LOST = 256 * 6,
  TAUT_CHAIN_OTHER = 256 * 7
};

typedef struct {
  uint64_t cycle_ns, host_stale_ns, servo_ns, operator_ns;
  uint64_t arm_stop_ns, arm_gap_ns; /* an arm's own stop, and the p99.9 gap it must bear; both 0: no arm */
} taut_timeouts_t;

typedef struct { uint64_t storage[64]; } taut_chain_t;

/* Up to 16 servos; reply_age_max is k, in cycles. */
int taut_chain_init(taut_chain_t *chain, size_t servos, const taut_timeouts_t *timeouts, uint64_t reply_age_max, char *message,
                    size_t capacity);
int taut_chain_start(taut_chain_t *chain, uint64_t now_ns);
void taut_chain_stop(taut_chain_t *chain);
void taut_chain_reply(taut_chain_t *chain, size_t servo, uint32_t report);
void taut_chain_operator(taut_chain_t *chain, uint64_t now_ns);
void taut_chain_degrade(taut_chain_t *chain, uint8_t cause);
int taut_chain_cycle(taut_chain_t *chain, uint64_t now_ns);
uint32_t taut_chain_action(taut_chain_t *chain, size_t servo, double *kd_scale);
/* Cycles since a servo answered. */
uint64_t taut_chain_reply_age_cycles(taut_chain_t *chain, size_t servo);
/* Saturating counts. Servo: 0 commands, 1 ignored, 2 time-outs, 3 own faults. Chain: 0 cycles, 1 missing replies, 2 causes
 * after the first. */
uint64_t taut_servo_counter(taut_servo_t *servo, size_t which);
uint64_t taut_chain_counter(taut_chain_t *chain, size_t which);

/* The best way to stop a joint that is left, by moteus's numbers. Hold needs power, an encoder and a speed; damping power
 * and a speed; the brake a driver. */
enum { TAUT_STOP_OFF = 0, TAUT_STOP_HOLD = 10, TAUT_STOP_DAMP = 12, TAUT_STOP_BRAKE = 15 };
uint32_t taut_best_stop(int has_power, int has_encoder, int has_speed, int has_driver);

typedef struct { uint64_t storage[16]; } taut_ramp_t;

/* Back to work after a stop, in steps of limited (Euclidean) length from where the joints are. TAUT_AXES numbers each. */
int taut_ramp_init(taut_ramp_t *ramp, const double *measured, double step_max, char *message, size_t capacity);
/* 1 if `setpoint` is the target. */
int taut_ramp_next(taut_ramp_t *ramp, const double *target, double *setpoint);

/* --- setpoint ledger ----------------------------------------------------------------------------- */

enum {
  TAUT_FATE_PASSED = 0,
  TAUT_FATE_MODIFIED = 1,
  TAUT_FATE_HELD = 2,
  TAUT_FATE_SUPERSEDED = 3,
  TAUT_FATE_REJECTED = 4, /* reasons 3 and 14 to 17 only */
  TAUT_FATE_LOST = 5
};

enum {
  TAUT_REASON_NONE = 0,
  TAUT_REASON_DUPLICATE = 1,
  TAUT_REASON_OUT_OF_ORDER = 2,
  TAUT_REASON_STALE = 3,
  TAUT_REASON_SUPERSEDED = 4,
  TAUT_REASON_QUEUE_OVERFLOW = 5,
  TAUT_REASON_POSITION_LIMIT = 6,
  TAUT_REASON_VELOCITY_LIMIT = 7,
  TAUT_REASON_ACCELERATION_LIMIT = 8,
  TAUT_REASON_WORK_AREA = 9,
  TAUT_REASON_KINEMATICS = 10,
  TAUT_REASON_VALIDATOR_TIMING_BUG = 11,
  TAUT_REASON_SERVO_BUSY = 12,
  TAUT_REASON_SERVO_QUEUE = 13,
  TAUT_REASON_NOT_ENABLED = 14,
  TAUT_REASON_GUARD_LATCHED = 15,
  TAUT_REASON_TRANSPORT = 16,
  TAUT_REASON_MALFORMED = 17,
  TAUT_REASON_DEADBAND = 18,
  TAUT_REASON_DECIMATED = 19,
  TAUT_REASON_NOT_EXECUTED = 20
};

typedef struct {
  uint64_t produced, acknowledged, superseded, rejected, in_flight, silent;
  double delivered_share; /* NaN if nothing ended in the last 10 s */
  uint32_t is_alarmed, is_saturated;
} taut_balance_t;

typedef struct { uint64_t storage[512]; } taut_ledger_t;

/* Up to 64 setpoints without a fate. */
int taut_ledger_init(taut_ledger_t *ledger);
int taut_ledger_produce(taut_ledger_t *ledger, uint64_t id, uint64_t now_ns);
int taut_ledger_end(taut_ledger_t *ledger, uint64_t id, uint32_t fate, uint32_t reason, uint64_t now_ns);
/* Ends all that were produced before `before_ns`, with one fate; how many, or a negative number. */
int64_t taut_ledger_end_older(taut_ledger_t *ledger, uint64_t before_ns, uint32_t fate, uint32_t reason, uint64_t now_ns);
uint64_t taut_ledger_count(taut_ledger_t *ledger, uint32_t reason);
/* The same among all that were produced. */
double taut_ledger_share(taut_ledger_t *ledger, uint32_t reason);
/* The longest time from production to fate. */
uint64_t taut_ledger_age_max_ns(taut_ledger_t *ledger);
/* Once a second: TAUT_UNBALANCED if setpoints are unexplained. */
int taut_ledger_balance(taut_ledger_t *ledger, uint64_t now_ns, taut_balance_t *balance);

/* --- what to do instead of dropping a setpoint --------------------------------------------------- */

/* Jerk-limited retargeting is Ruckig's, which C++ has itself (github.com/pantor/ruckig); Rust and Python have it here. */

enum { TAUT_AXES = 8 };

typedef struct {
  uint64_t period_ns;
  double margin;
  double position_min[TAUT_AXES], position_max[TAUT_AXES], velocity_max[TAUT_AXES];
  uint32_t axes;   /* the rest stand still at 0 */
  uint32_t scales; /* 0: clamp each axis; 1: scale all by one factor, which keeps to the path */
} taut_limits_t;

typedef struct {
  double setpoint[TAUT_AXES];
  double amount;
  uint32_t fate; /* passed, modified or held */
  uint32_t reason;
} taut_shaped_t;

typedef struct { uint64_t storage[64]; } taut_limiter_t;

/* `measured`, `target`: TAUT_AXES numbers. */
int taut_limiter_init(taut_limiter_t *limiter, const taut_limits_t *limits, const double *measured, char *message, size_t capacity);
int taut_limiter_shape(taut_limiter_t *limiter, const double *target, taut_shaped_t *shaped);
/* Near a boundary that the caller watches: only a share of the way is gone (taut_approach_share); 0 holds. */
int taut_limiter_shape_near(taut_limiter_t *limiter, const double *target, double share, taut_shaped_t *shaped);
int taut_limiter_rehome(taut_limiter_t *limiter, const double *measured);

/* Towards a boundary that only the caller can measure (self-collision, a singularity): slower from `slow_at` on, held at
 * `stop_at` until `resume_at`, always free to leave. Distances grow inwards. */
typedef struct { uint64_t storage[8]; } taut_approach_t;

int taut_approach_init(taut_approach_t *approach, double stop_at, double resume_at, double slow_at, char *message, size_t capacity);
/* The share of a step that may be gone, from `distance` now and `next`, where the whole step would lead. */
double taut_approach_share(taut_approach_t *approach, double distance, double next);

/* A jittery stream at the servo's own rate, a constant delay behind: one period and `jitter_ns`, its p99. */
enum { TAUT_PLAYED_INTERPOLATED = 0, TAUT_PLAYED_EXTRAPOLATED = 1, TAUT_PLAYED_SLOWING = 2, TAUT_PLAYED_RESTING = 3 };

typedef struct {
  double setpoint[TAUT_AXES]; /* not yet limited: put a limiter behind */
  uint64_t added_delay_ns;    /* what jitter costs in feel */
  uint32_t source;
  uint32_t reserved;
} taut_sampled_t;

typedef struct { uint64_t storage[304]; } taut_playout_t;

int taut_playout_init(taut_playout_t *playout, uint64_t period_ns, uint64_t jitter_ns, uint64_t delay_most_ns, char *message,
                      size_t capacity);
/* 1, or 0 for one that is out of order or not finite. `produced_ns` by any clock. */
int taut_playout_push(taut_playout_t *playout, int64_t produced_ns, const double *setpoint, uint64_t arrival_ns);
/* 1, or 0 before the first two setpoints are due. */
int taut_playout_play(taut_playout_t *playout, uint64_t now_ns, taut_sampled_t *sampled);

/* Fewer setpoints on purpose: whether to send this one; if not, it is superseded for TAUT_REASON_DECIMATED. */
typedef struct { uint64_t storage[8]; } taut_decimate_t;

int taut_decimate_init(taut_decimate_t *decimate, uint64_t period_ns, char *message, size_t capacity);
int taut_decimate_keeps(taut_decimate_t *decimate, int64_t produced_ns);

/* What does not change, for a third of the watchdog's time at most: whether to send it; if not, TAUT_REASON_DEADBAND. */
typedef struct { uint64_t storage[16]; } taut_keep_alive_t;

int taut_keep_alive_init(taut_keep_alive_t *keep_alive, double deadband, uint64_t watchdog_ns, char *message, size_t capacity);
int taut_keep_alive_is_due(taut_keep_alive_t *keep_alive, const double *setpoint, uint64_t period_ns, uint64_t now_ns);

/* A transmission's budget: attempts and one period. After a failed attempt: 1 if another is allowed. */
typedef struct { uint64_t storage[8]; } taut_retry_t;

int taut_retry_init(taut_retry_t *retry, uint64_t period_ns, uint32_t attempts_max, char *message, size_t capacity);
void taut_retry_begin(taut_retry_t *retry, uint64_t now_ns);
int taut_retry_again(taut_retry_t *retry, uint64_t now_ns);
/* The most that an attempt made now may take: the time-out for the socket. */
uint64_t taut_retry_left_ns(taut_retry_t *retry, uint64_t now_ns);

/* Depth 1, the latest wins: one thread puts, another takes, neither ever waits. */
enum { TAUT_MAILBOX_WORDS = 10 };

typedef struct { uint64_t storage[40]; } taut_mailbox_t;

int taut_mailbox_init(taut_mailbox_t *mailbox);
/* 0, or 1 with the item that was overwritten unread (TAUT_REASON_SUPERSEDED). TAUT_MAILBOX_WORDS words each. */
int taut_mailbox_put(taut_mailbox_t *mailbox, const uint64_t *item, uint64_t *overwritten);
/* 1 with the latest item, or 0 if it was taken already. */
int taut_mailbox_take(taut_mailbox_t *mailbox, uint64_t *item);

/* Size in octets of struct number `which` as the library was built, in the order above: parameters, frame, verdict, trip,
 * black box entry, guard, servo, chain, timeouts, ledger, balance, limiter, limits, shaped; mailbox, playout, sampled,
 * approach, decimate, keep-alive, retry, ramp. Compare with sizeof once. */
size_t taut_guard_sizeof(uint32_t which);

#ifdef __cplusplus
}
#endif
#endif
