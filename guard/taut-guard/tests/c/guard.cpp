// The wrapper of taut_guard.hpp, from C++17. Says the first thing that is not as it should be.
#include "taut_guard.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

using namespace std::chrono_literals;

#define MUST(holds) \
  do { if (!(holds)) { std::fprintf(stderr, "%d: %s\n", __LINE__, #holds); return 1; } } while (0)

static taut_guard_frame_t frame_at(int n, double mm_a_period) {
  taut_guard_frame_t frame{};
  frame.sequence = static_cast<std::uint32_t>(n % 256);
  frame.source_ns = taut::Nanoseconds{n * 10ms}.count();
  frame.has_source = 1;
  frame.arrival_ns = static_cast<std::uint64_t>(frame.source_ns);
  frame.tcp_mm[0] = mm_a_period * n;
  frame.frames_in_read = 1;
  return frame;
}

int main() {
  auto parameters = taut::parameters_for_tcp(10ms, 1000.0);
  MUST(taut::detection_bound(parameters, 1.25) == std::optional<taut::Nanoseconds>{31ms});
  MUST(!taut::detection_bound(parameters, 1.0));
  taut::SpeedGuard guard{parameters};
  for (int n = 0; n < 60; ++n) guard.update(frame_at(n, 6.0));
  MUST(guard.state() == TAUT_STATE_OK && !guard.trip() && guard.time_base() == TAUT_TIME_SOURCE);
  MUST(std::abs(guard.display_speed_mm_s().value() - 600.0) < 1e-6);
  MUST(guard.heartbeat(5, 590ms) == taut_guard_heartbeat_expected(guard.parameters_hash(), 5));
  MUST(!guard.heartbeat(5, 700ms));
  guard.count_bad_frame();
  guard.count_parser_resync(3);
  std::uint64_t sum = 0;
  guard.counters([&](std::string_view name, std::uint64_t value) { sum += name == "bad_frames" ? value : 0; });
  MUST(sum == 1);
  MUST(guard.tick(641ms).state == TAUT_STATE_STALE);
  MUST(guard.trip()->cause == TAUT_CAUSE_SILENCE && !guard.reset(641ms));
  int kept = 0;
  guard.black_box([&](const taut_guard_black_box_entry_t &entry) { kept += entry.state == TAUT_STATE_OK; });
  MUST(kept == 49);  // and one of INIT, before the first enable
  parameters.window_ns = 1;
  try {
    taut::SpeedGuard refused{parameters};
    MUST(false);
  } catch (const std::invalid_argument &error) {
    MUST(std::strstr(error.what(), "window_ns is 1") != nullptr);
  }

  taut::ServoWatchdog servo{100us, 100ms};
  MUST(servo.command(TAUT_COMMAND_ENABLE) && servo.command(TAUT_COMMAND_POSITION));
  for (int n = 0; n < 1001; ++n) servo.tick();
  MUST(servo.mode() == TAUT_SERVO_TIMEOUT && !servo.command(TAUT_COMMAND_POSITION) && servo.tick() == TAUT_DRIVE_DAMP);
  MUST(servo.timeouts() == 1 && servo.command(TAUT_COMMAND_STOP) && servo.command(TAUT_COMMAND_ENABLE) && servo.position(2ms));
  MUST(servo.position_unsafe_without_timeout());
  servo.fault();

  taut::DegradeChain chain{2, {1000000, 20000000, 100000000, 1000000000, 0, 0}, 5};
  MUST(chain.start(0ms));
  chain.reply(0, TAUT_REPORT_HEALTHY);
  chain.operator_heard(1ms);
  MUST(chain.cycle(1ms) == TAUT_CHAIN_RUNNING && chain.action(0).kind == TAUT_ACTION_FOLLOW);
  chain.degrade(9);
  MUST(chain.cycle(2ms) == TAUT_CHAIN_OTHER + 9 && chain.action(1).kd_scale == 1.5);
  MUST(chain.reply_age_cycles(1) == 2 && chain.missing_replies() == 3);
  chain.stop();

  taut::Ramp ramp{{0.1}, 0.06};
  MUST(ramp.next({0.2}).setpoint[0] < 0.11 && !ramp.next({0.2}).is_there && ramp.next({0.2}).is_there);

  taut::Ledger ledger;
  MUST(ledger.produce(1, 0ms) == TAUT_DONE && ledger.end(1, TAUT_FATE_LOST, TAUT_REASON_TRANSPORT, 1ms) == TAUT_DONE);
  MUST(ledger.count(TAUT_REASON_TRANSPORT) == 1 && ledger.balance(1ms)->rejected == 1);

  taut_limits_t limits{};
  limits.period_ns = 8000000;
  limits.axes = 1;
  limits.position_min[0] = -1;
  limits.position_max[0] = 1;
  limits.velocity_max[0] = 1;
  taut::Limiter limiter{limits, {}};
  MUST(limiter.shape({0.5})->setpoint[0] <= 0.008 && limiter.rehome({0.4}) && limiter.shape({0.4})->fate == TAUT_FATE_PASSED);
  MUST(!limiter.shape({std::numeric_limits<double>::quiet_NaN()}));
  taut::Approach approach{10, 15, 60};
  MUST(limiter.shape({0.45}, approach.share(9, 8))->fate == TAUT_FATE_HELD);

  taut::Playout playout{20ms, 15ms, 200ms};
  MUST(playout.push(0ms, {0.0}, 0ms) && playout.push(20ms, {20.0}, 20ms) && !playout.push(20ms, {20.0}, 21ms));
  MUST(std::abs(playout.play(45ms)->setpoint[0] - 10.0) < 1e-9);
  taut::Decimate decimate{40ms};
  MUST(decimate.keeps(0ms) && !decimate.keeps(20ms) && decimate.keeps(40ms));
  taut::KeepAlive keep_alive{0.001, 90ms};
  MUST(keep_alive.is_due({1.0}, 8ms, 0ms) && !keep_alive.is_due({1.0}, 8ms, 8ms) && keep_alive.is_due({2.0}, 8ms, 16ms));
  taut::Retry retry{20ms, 2};
  retry.begin(0ms);
  MUST(retry.left(5ms) == 15ms && retry.again(5ms) && !retry.again(6ms));

  // Two threads: each item is taken or comes back, none is torn.
  taut::Mailbox mailbox;
  constexpr std::uint64_t items = 100'000;
  std::uint64_t back = 0, taken = 0, torn = 0, last = 0;
  std::thread sender{[&] {
    for (std::uint64_t n = 1; n <= items; ++n) back += mailbox.put({n, ~n}).has_value();
  }};
  while (last < items) {
    const auto item = mailbox.take();
    if (!item) continue;
    torn += (*item)[1] != ~(*item)[0] || (*item)[0] <= last;
    last = (*item)[0];
    ++taken;
  }
  sender.join();
  MUST(torn == 0 && taken + back == items);
  MUST(ledger.end_older(5ms, TAUT_FATE_LOST, TAUT_REASON_TRANSPORT, 9ms) == 0 && ledger.share(TAUT_REASON_TRANSPORT) == 1.0);
  MUST(ledger.age_max() == 1ms);
  return 0;
}
