// As much of rclcpp as examples/ros2_node uses, for machines without ROS: no middleware, and `spin` delivers a hundred made
// commands, one of them malformed.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "sensor_msgs/msg/joint_state.hpp"

namespace rclcpp {

struct QoS {
  explicit QoS(int) {}
};

struct Time {
  explicit Time(const builtin_interfaces::msg::Time &stamp) : stamp_(stamp) {}
  std::int64_t nanoseconds() const { return stamp_.sec * std::int64_t{1000000000} + stamp_.nanosec; }
  builtin_interfaces::msg::Time stamp_;
};

template <typename Message>
struct Publisher {
  using SharedPtr = std::shared_ptr<Publisher>;
  void publish(const Message &message) { last = message; ++count; }
  Message last;
  int count = 0;
};

template <typename Message>
struct Subscription {
  using SharedPtr = std::shared_ptr<Subscription>;
  std::function<void(typename Message::SharedPtr)> callback;
};

class Node {
 public:
  using Commands = sensor_msgs::msg::JointState;
  explicit Node(const std::string &) {}
  double declare_parameter(const std::string &, double value) { return value; }
  template <typename Message>
  typename Publisher<Message>::SharedPtr create_publisher(const std::string &, QoS) {
    published = std::make_shared<Publisher<Message>>();
    return published;
  }
  template <typename Message, typename Callback>
  typename Subscription<Message>::SharedPtr create_subscription(const std::string &, QoS, Callback callback) {
    subscribed = std::make_shared<Subscription<Message>>();
    subscribed->callback = callback;
    return subscribed;
  }
  Publisher<Commands>::SharedPtr published;
  Subscription<Commands>::SharedPtr subscribed;
};

inline void init(int, char **) {}
inline void shutdown() {}

inline void spin(const std::shared_ptr<Node> &node) {
  for (int n = 1; n <= 100; ++n) {
    auto command = std::make_shared<Node::Commands>();
    command->header.stamp = {1700000000, static_cast<std::uint32_t>(n)};
    command->velocity = {0.5, n == 50 ? std::numeric_limits<double>::quiet_NaN() : 9.0};
    node->subscribed->callback(command);
    const timespec pause = {0, 1000000};
    nanosleep(&pause, nullptr);
  }
  std::printf("%d %.1f\n", node->published->count, node->published->last.velocity[1]);
}

}  // namespace rclcpp
