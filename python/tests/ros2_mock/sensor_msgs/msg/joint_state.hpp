// As much of sensor_msgs as examples/ros2_node uses.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace builtin_interfaces::msg {
struct Time {
  std::int32_t sec = 0;
  std::uint32_t nanosec = 0;
};
}  // namespace builtin_interfaces::msg

namespace std_msgs::msg {
struct Header {
  builtin_interfaces::msg::Time stamp;
};
}  // namespace std_msgs::msg

namespace sensor_msgs::msg {
struct JointState {
  using SharedPtr = std::shared_ptr<JointState>;
  std_msgs::msg::Header header;
  std::vector<double> velocity;
};
}  // namespace sensor_msgs::msg
