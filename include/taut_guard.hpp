// taut_guard.hpp: the guard, watchdog and ledger of taut_guard.h as C++17 values. Header only over the C ABI; refusals at
// construction are exceptions, nothing after it throws. Objects neither allocate nor own anything: put them on the stack.
//
//     taut::SpeedGuard guard{taut::parameters_for_tcp(10ms, 1000.0)};
//     if (!guard.update(frame).enables_motion) controlled_stop();
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef TAUT_GUARD_HPP
#define TAUT_GUARD_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "taut_guard.h"

namespace taut {

/// A point on CLOCK_MONOTONIC, or a time of it.
using Nanoseconds = std::chrono::nanoseconds;

namespace detail {
inline std::uint64_t ns(Nanoseconds time) { return static_cast<std::uint64_t>(time.count()); }
using Message = std::array<char, 160>;
inline void check(int code, const Message &message) {
  if (code != TAUT_DONE) throw std::invalid_argument(message.data());
}
}  // namespace detail

inline taut_guard_parameters_t parameters_for_tcp(Nanoseconds period, double limit_mm_s) {
  return taut_guard_parameters_for_tcp(detail::ns(period), limit_mm_s);
}

/// The longest time until a steady overspeed of ratio × L trips, if W_max can prove it.
inline std::optional<Nanoseconds> detection_bound(const taut_guard_parameters_t &parameters, double ratio,
                                                  std::uint32_t lost = 0, Nanoseconds delay = Nanoseconds{0}) {
  const auto bound = taut_guard_detection_bound_ns(&parameters, ratio, lost, detail::ns(delay));
  return bound < 0 ? std::nullopt : std::optional{Nanoseconds{bound}};
}

class SpeedGuard {
 public:
  /// Throws std::invalid_argument for parameters out of range, or if the start-up test fails.
  explicit SpeedGuard(const taut_guard_parameters_t &parameters) : hash_{taut_guard_parameters_hash(&parameters)} {
    detail::Message message{};
    detail::check(taut_guard_init(&guard_, &parameters, message.data(), message.size()), message);
  }

  taut_guard_verdict_t update(const taut_guard_frame_t &frame) noexcept { return taut_guard_update(&guard_, &frame); }
  taut_guard_verdict_t tick(Nanoseconds now) noexcept { return taut_guard_tick(&guard_, detail::ns(now)); }
  /// Whether the latched state could be left.
  bool reset(Nanoseconds now) noexcept { return taut_guard_reset(&guard_, detail::ns(now), nullptr, 0) == TAUT_DONE; }
  std::uint32_t state() noexcept { return taut_guard_state(&guard_); }
  std::uint32_t time_base() noexcept { return taut_guard_time_base(&guard_); }
  std::uint64_t parameters_hash() const noexcept { return hash_; }
  void count_bad_frame() noexcept { taut_guard_count_bad_frame(&guard_); }
  void count_parser_resync(std::uint64_t octets) noexcept { taut_guard_count_parser_resync(&guard_, octets); }

  std::optional<taut_guard_trip_t> trip() noexcept {
    taut_guard_trip_t trip{};
    return taut_guard_trip(&guard_, &trip) == 1 ? std::optional{trip} : std::nullopt;
  }

  std::optional<double> display_speed_mm_s() noexcept {
    const double speed = taut_guard_display_speed_mm_s(&guard_);
    return speed < 0 ? std::nullopt : std::optional{speed};
  }

  /// The answer to an outside heartbeat; nothing from a guard that must not enable motion.
  std::optional<std::uint32_t> heartbeat(std::uint32_t challenge, Nanoseconds now) noexcept {
    std::uint32_t answer = 0;
    return taut_guard_heartbeat(&guard_, challenge, detail::ns(now), &answer) == 1 ? std::optional{answer} : std::nullopt;
  }

  /// Calls `visit` with each of the last frames up to the first trip, oldest first.
  template <typename Visit>
  void black_box(Visit &&visit) {
    std::array<taut_guard_black_box_entry_t, TAUT_BLACK_BOX_FRAMES> entries{};
    const std::size_t count = taut_guard_black_box(&guard_, entries.data(), entries.size());
    for (std::size_t n = 0; n < count; ++n) visit(entries[n]);
  }

  /// Calls `visit` with the name and value of each counter.
  template <typename Visit>
  void counters(Visit &&visit) {
    for (std::size_t n = 0; n < taut_guard_counter_count(); ++n) {
      std::size_t length = 0;
      const char *name = taut_guard_counter_name(n, &length);
      visit(std::string_view{name, length}, taut_guard_counter(&guard_, n));
    }
  }

 private:
  taut_guard_t guard_{};
  std::uint64_t hash_;
};

class ServoWatchdog {
 public:
  ServoWatchdog(Nanoseconds tick, Nanoseconds timeout) {
    detail::Message message{};
    detail::check(taut_servo_init(&servo_, detail::ns(tick), detail::ns(timeout), message.data(), message.size()), message);
  }

  /// Whether the command was obeyed.
  bool command(std::uint32_t command) noexcept { return taut_servo_command(&servo_, command) == 1; }
  std::uint32_t tick() noexcept { return taut_servo_tick(&servo_); }
  /// A position command with a time-out of its own; without any only where `unsafe_without_timeout` says so.
  bool position(Nanoseconds timeout) noexcept { return taut_servo_position(&servo_, 1e-9 * static_cast<double>(timeout.count()), 0) == 1; }
  bool position_unsafe_without_timeout() noexcept {
    return taut_servo_position(&servo_, std::numeric_limits<double>::quiet_NaN(), 1) == 1;
  }
  void fault() noexcept { taut_servo_fault(&servo_); }
  std::uint64_t timeouts() noexcept { return taut_servo_counter(&servo_, 2); }
  int mode() noexcept { return taut_servo_mode(&servo_); }

 private:
  taut_servo_t servo_{};
};

class DegradeChain {
 public:
  DegradeChain(std::size_t servos, const taut_timeouts_t &timeouts, std::uint64_t reply_age_max) {
    detail::Message message{};
    detail::check(taut_chain_init(&chain_, servos, &timeouts, reply_age_max, message.data(), message.size()), message);
  }

  bool start(Nanoseconds now) noexcept { return taut_chain_start(&chain_, detail::ns(now)) == TAUT_DONE; }
  void stop() noexcept { taut_chain_stop(&chain_); }
  void reply(std::size_t servo, std::uint32_t report) noexcept { taut_chain_reply(&chain_, servo, report); }
  void operator_heard(Nanoseconds now) noexcept { taut_chain_operator(&chain_, detail::ns(now)); }
  void degrade(std::uint8_t cause) noexcept { taut_chain_degrade(&chain_, cause); }
  int cycle(Nanoseconds now) noexcept { return taut_chain_cycle(&chain_, detail::ns(now)); }

  struct Action {
    std::uint32_t kind;
    double kd_scale;
  };
  Action action(std::size_t servo) noexcept {
    Action action{TAUT_ACTION_STOP, 0.0};
    action.kind = taut_chain_action(&chain_, servo, &action.kd_scale);
    return action;
  }
  std::uint64_t reply_age_cycles(std::size_t servo) noexcept { return taut_chain_reply_age_cycles(&chain_, servo); }
  std::uint64_t missing_replies() noexcept { return taut_chain_counter(&chain_, 1); }

 private:
  taut_chain_t chain_{};
};

using Axes = std::array<double, TAUT_AXES>;

/// Back to work after a stop, from where the joints are.
class Ramp {
 public:
  Ramp(const Axes &measured, double step_max) {
    detail::Message message{};
    detail::check(taut_ramp_init(&ramp_, measured.data(), step_max, message.data(), message.size()), message);
  }

  struct Step {
    Axes setpoint;
    bool is_there;
  };
  Step next(const Axes &target) noexcept {
    Step step{};
    step.is_there = taut_ramp_next(&ramp_, target.data(), step.setpoint.data()) == 1;
    return step;
  }

 private:
  taut_ramp_t ramp_{};
};

class Ledger {
 public:
  Ledger() { taut_ledger_init(&ledger_); }

  int produce(std::uint64_t id, Nanoseconds now) noexcept { return taut_ledger_produce(&ledger_, id, detail::ns(now)); }
  int end(std::uint64_t id, std::uint32_t fate, std::uint32_t reason, Nanoseconds now) noexcept {
    return taut_ledger_end(&ledger_, id, fate, reason, detail::ns(now));
  }
  /// How many were ended; negative if the fate was refused.
  std::int64_t end_older(Nanoseconds before, std::uint32_t fate, std::uint32_t reason, Nanoseconds now) noexcept {
    return taut_ledger_end_older(&ledger_, detail::ns(before), fate, reason, detail::ns(now));
  }
  std::uint64_t count(std::uint32_t reason) noexcept { return taut_ledger_count(&ledger_, reason); }
  double share(std::uint32_t reason) noexcept { return taut_ledger_share(&ledger_, reason); }
  Nanoseconds age_max() noexcept { return Nanoseconds{taut_ledger_age_max_ns(&ledger_)}; }
  /// Nothing if setpoints are unexplained.
  std::optional<taut_balance_t> balance(Nanoseconds now) noexcept {
    taut_balance_t balance{};
    return taut_ledger_balance(&ledger_, detail::ns(now), &balance) == TAUT_DONE ? std::optional{balance} : std::nullopt;
  }

 private:
  taut_ledger_t ledger_{};
};

class Limiter {
 public:
  Limiter(const taut_limits_t &limits, const Axes &measured) {
    detail::Message message{};
    detail::check(taut_limiter_init(&limiter_, &limits, measured.data(), message.data(), message.size()), message);
  }

  /// Nothing for a target that is not finite. Near a boundary, the share of the way that may be gone.
  std::optional<taut_shaped_t> shape(const Axes &target, double share = 1.0) noexcept {
    taut_shaped_t shaped{};
    const int done = taut_limiter_shape_near(&limiter_, target.data(), share, &shaped);
    return done == TAUT_DONE ? std::optional{shaped} : std::nullopt;
  }
  bool rehome(const Axes &measured) noexcept { return taut_limiter_rehome(&limiter_, measured.data()) == TAUT_DONE; }

 private:
  taut_limiter_t limiter_{};
};

/// Slower towards a boundary, held at it, always free to leave.
class Approach {
 public:
  Approach(double stop_at, double resume_at, double slow_at) {
    detail::Message message{};
    detail::check(taut_approach_init(&approach_, stop_at, resume_at, slow_at, message.data(), message.size()), message);
  }
  double share(double distance, double next) noexcept { return taut_approach_share(&approach_, distance, next); }

 private:
  taut_approach_t approach_{};
};

/// A jittery stream at the servo's own rate, a constant delay behind.
class Playout {
 public:
  Playout(Nanoseconds period, Nanoseconds jitter, Nanoseconds delay_most) {
    detail::Message message{};
    detail::check(taut_playout_init(&playout_, detail::ns(period), detail::ns(jitter), detail::ns(delay_most), message.data(),
                                    message.size()),
                  message);
  }
  /// Whether it is of use.
  bool push(Nanoseconds produced, const Axes &setpoint, Nanoseconds arrival) noexcept {
    return taut_playout_push(&playout_, produced.count(), setpoint.data(), detail::ns(arrival)) == 1;
  }
  /// Nothing before the first two setpoints are due.
  std::optional<taut_sampled_t> play(Nanoseconds now) noexcept {
    taut_sampled_t sampled{};
    return taut_playout_play(&playout_, detail::ns(now), &sampled) == 1 ? std::optional{sampled} : std::nullopt;
  }

 private:
  taut_playout_t playout_{};
};

/// Fewer setpoints on purpose.
class Decimate {
 public:
  explicit Decimate(Nanoseconds period) {
    detail::Message message{};
    detail::check(taut_decimate_init(&decimate_, detail::ns(period), message.data(), message.size()), message);
  }
  bool keeps(Nanoseconds produced) noexcept { return taut_decimate_keeps(&decimate_, produced.count()) == 1; }

 private:
  taut_decimate_t decimate_{};
};

/// What does not change, for a third of the watchdog's time at most.
class KeepAlive {
 public:
  KeepAlive(double deadband, Nanoseconds watchdog) {
    detail::Message message{};
    detail::check(taut_keep_alive_init(&keep_alive_, deadband, detail::ns(watchdog), message.data(), message.size()), message);
  }
  bool is_due(const Axes &setpoint, Nanoseconds period, Nanoseconds now) noexcept {
    return taut_keep_alive_is_due(&keep_alive_, setpoint.data(), detail::ns(period), detail::ns(now)) == 1;
  }

 private:
  taut_keep_alive_t keep_alive_{};
};

/// A transmission's budget: attempts and one period.
class Retry {
 public:
  Retry(Nanoseconds period, std::uint32_t attempts_max) {
    detail::Message message{};
    detail::check(taut_retry_init(&retry_, detail::ns(period), attempts_max, message.data(), message.size()), message);
  }
  void begin(Nanoseconds now) noexcept { taut_retry_begin(&retry_, detail::ns(now)); }
  bool again(Nanoseconds now) noexcept { return taut_retry_again(&retry_, detail::ns(now)) == 1; }
  Nanoseconds left(Nanoseconds now) noexcept { return Nanoseconds{taut_retry_left_ns(&retry_, detail::ns(now))}; }

 private:
  taut_retry_t retry_{};
};

/// Depth 1, the latest wins: one thread puts, another takes. It stays where it was made, for both have its address.
class Mailbox {
 public:
  using Item = std::array<std::uint64_t, TAUT_MAILBOX_WORDS>;

  Mailbox() { taut_mailbox_init(&mailbox_); }
  Mailbox(const Mailbox &) = delete;
  Mailbox &operator=(const Mailbox &) = delete;

  /// The item that was overwritten unread, if one was.
  std::optional<Item> put(const Item &item) noexcept {
    Item before{};
    return taut_mailbox_put(&mailbox_, item.data(), before.data()) == 1 ? std::optional{before} : std::nullopt;
  }
  std::optional<Item> take() noexcept {
    Item item{};
    return taut_mailbox_take(&mailbox_, item.data()) == 1 ? std::optional{item} : std::nullopt;
  }

 private:
  taut_mailbox_t mailbox_{};
};

}  // namespace taut
#endif
