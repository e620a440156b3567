// The nodes of the proof. Each takes parameters `case`, `truth` (a folder) and `seconds`, and writes its log when it is destroyed.
#pragma once
#include <cstdint>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <rclcpp/rclcpp.hpp>
#include <std_msgs/msg/string.hpp>
#include <std_srvs/srv/trigger.hpp>

namespace proof {

using std_msgs::msg::String;
using std_srvs::srv::Trigger;

int64_t now_ns(clockid_t clock = CLOCK_MONOTONIC);

// Rows of numbers as JSON in `truth`/`name`.json. Nothing is written while the node runs.
class Log {
 public:
  void add(std::vector<int64_t> row);
  void write(const std::string &folder, const std::string &name);

 private:
  std::deque<std::vector<int64_t>> rows;
};

// What the nodes have in common: the parameters.
class Proof : public rclcpp::Node {
 public:
  Proof(const std::string &name, const rclcpp::NodeOptions &options);
  ~Proof() override;

 protected:
  rclcpp::QoS profile() const;
  rclcpp::SubscriptionOptions group_options();
  std::string kind, truth;
  int64_t end_ns, period_us;
  // Of any thread.
  void log(const std::string &name, std::vector<int64_t> row);
  // Callbacks of a reentrant group may run at once.
  rclcpp::CallbackGroup::SharedPtr group;

 private:
  std::mutex mutex;
  std::map<std::string, Log> logs;
};

class Camera : public Proof {
 public:
  explicit Camera(const rclcpp::NodeOptions &options);

 private:
  void publish();
  rclcpp::Publisher<String>::SharedPtr images;
  rclcpp::TimerBase::SharedPtr timer;
  int64_t number = 0;
};

class Detector : public Proof {
 public:
  explicit Detector(const rclcpp::NodeOptions &options);

 private:
  void on_flood(String::ConstSharedPtr message);
  void keep_house();
  rclcpp::Publisher<String>::SharedPtr detections;
  rclcpp::Subscription<String>::SharedPtr images, flood;
  rclcpp::TimerBase::SharedPtr housekeeping, status;
};

class Planner : public Proof {
 public:
  explicit Planner(const rclcpp::NodeOptions &options);

 private:
  rclcpp::Subscription<String>::SharedPtr detections;
};

class Flood : public Proof {
 public:
  explicit Flood(const rclcpp::NodeOptions &options);

 private:
  rclcpp::Publisher<String>::SharedPtr all;
  rclcpp::TimerBase::SharedPtr timer;
};

// A service and what calls it each 20 ms.
class Server : public Proof {
 public:
  explicit Server(const rclcpp::NodeOptions &options);

 private:
  rclcpp::Service<Trigger>::SharedPtr service;
};

class Caller : public Proof {
 public:
  explicit Caller(const rclcpp::NodeOptions &options);

 private:
  rclcpp::Client<Trigger>::SharedPtr client;
  rclcpp::TimerBase::SharedPtr timer;
  int64_t number = 0;
};

}  // namespace proof
