// A limiter of joint commands between a planner and a drive: takes one, holds it to the limits, passes it on. taut follows each
// command by the time stamp that it was born with, which every node on its way sees: through this node, and through all others
// that stamp, in other processes, too.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "rclcpp/rclcpp.hpp"
#include "sensor_msgs/msg/joint_state.hpp"
#include "taut.h"

using sensor_msgs::msg::JointState;

class Limiter : public rclcpp::Node {
 public:
  Limiter() : Node("limiter") {
    limit_ = declare_parameter("velocity_limit", 1.5);
    publisher_ = create_publisher<JointState>("joint_command_limited", rclcpp::QoS(1));
    subscription_ = create_subscription<JointState>(
        "joint_command", rclcpp::QoS(1), [this](const JointState::SharedPtr command) { take(*command); });
  }

 private:
  void take(JointState command) {
    const std::uint64_t id = id_of(command);
    TAUT_STAMP("limiter.received", id);
    for (double &velocity : command.velocity) {
      if (!std::isfinite(velocity)) {
        TAUT_DROP(id, "malformed");  // every command ends once, with a reason
        return;
      }
      velocity = std::clamp(velocity, -limit_, limit_);
    }
    TAUT_STAMP("limiter.limited", id);
    publisher_->publish(command);
    TAUT_STAMP("limiter.published", id);
  }

  // The time at which the command was made, in nanoseconds: its own from its first node to its last.
  static std::uint64_t id_of(const JointState &command) {
    return static_cast<std::uint64_t>(rclcpp::Time(command.header.stamp).nanoseconds());
  }

  double limit_ = 0;
  rclcpp::Publisher<JointState>::SharedPtr publisher_;
  rclcpp::Subscription<JointState>::SharedPtr subscription_;
};

int main(int argc, char **argv) {
  rclcpp::init(argc, argv);
  const auto limiter = std::make_shared<Limiter>();
  taut_prepare_thread();  // the one slow step, before the loop begins
  rclcpp::spin(limiter);
  rclcpp::shutdown();
  return 0;
}
