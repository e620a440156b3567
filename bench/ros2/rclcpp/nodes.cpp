// What the nodes do: see nodes.hpp.
#include "nodes.hpp"

#include <cstdio>

namespace proof {

using namespace std::chrono_literals;

int64_t now_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

static void spin_for(std::chrono::nanoseconds time) {
  for (const int64_t end = now_ns() + time.count(); now_ns() < end;) {
  }
}

// The middleware takes the source timestamp when it publishes; within a process there is none.
static int64_t delay_of(const rclcpp::MessageInfo &info, int64_t wall_ns) {
  const rmw_message_info_t &of = info.get_rmw_message_info();
  return of.from_intra_process ? -1 : wall_ns - of.source_timestamp;
}

void Log::add(std::vector<int64_t> row) {
  rows.push_back(std::move(row));
}

void Log::write(const std::string &folder, const std::string &name) {
  FILE *file = fopen((folder + "/" + name + ".json").c_str(), "w");
  if (!file) return;
  fputc('[', file);
  for (size_t at = 0; at < rows.size(); at++) {
    fputs(at ? ",\n[" : "[", file);
    for (size_t of = 0; of < rows[at].size(); of++) fprintf(file, of ? ", %lld" : "%lld", (long long)rows[at][of]);
    fputc(']', file);
  }
  fputs("]\n", file);
  fclose(file);
}

Proof::Proof(const std::string &name, const rclcpp::NodeOptions &options) : Node(name, options) {
  kind = declare_parameter("case", "plain");
  truth = declare_parameter("truth", ".");
  end_ns = now_ns() + int64_t(declare_parameter("seconds", 10.0) * 1e9);
  period_us = kind == "khz" ? 1000 : 10'000;
  group = create_callback_group(kind == "reentrant" ? rclcpp::CallbackGroupType::Reentrant : rclcpp::CallbackGroupType::MutuallyExclusive);
}

Proof::~Proof() {
  for (auto &[name, log] : logs) log.write(truth, name);
}

void Proof::log(const std::string &name, std::vector<int64_t> row) {
  std::lock_guard lock(mutex);
  logs[name].add(std::move(row));
}

rclcpp::QoS Proof::profile() const { return rclcpp::QoS(kind.rfind("slow", 0) == 0 ? 1 : 10); }

rclcpp::SubscriptionOptions Proof::group_options() {
  rclcpp::SubscriptionOptions options;
  options.callback_group = group;
  return options;
}

Camera::Camera(const rclcpp::NodeOptions &options) : Proof("camera", options) {
  images = create_publisher<String>("image_raw", profile());
  timer = create_wall_timer(std::chrono::microseconds(period_us), [this] { publish(); }, group);
}

void Camera::publish() {
  if (now_ns() > end_ns || images->get_subscription_count() + images->get_intra_process_subscription_count() == 0) return;
  auto message = std::make_unique<String>();
  message->data = std::to_string(++number);
  const int64_t before = now_ns();
  images->publish(std::move(message));
  log("published", {number, before});
}

Detector::Detector(const rclcpp::NodeOptions &options) : Proof("detector", options) {
  detections = create_publisher<String>("detections", profile());
  auto on_image = [this](String::UniquePtr image, const rclcpp::MessageInfo &info) {
    const int64_t at = now_ns(), wall = now_ns(CLOCK_REALTIME);
    const int64_t number = std::stoll(image->data);
    log("received", {number, at, delay_of(info, wall)});
    if (kind.rfind("slow", 0) == 0) std::this_thread::sleep_for(15ms);
    const int64_t before = now_ns();
    detections->publish(std::move(image));
    log("detected", {number, before});
  };
  images = create_subscription<String>("image_raw", profile(), on_image, group_options());
  // In the group of the images, or (apart) in that of the node: then a thread of the executor is free for them.
  if (kind == "executor" || kind == "group" || kind == "apart")
    housekeeping = create_wall_timer(100ms, std::bind(&Detector::keep_house, this), kind == "apart" ? nullptr : group);
  // Of the node's own group: runs beside both.
  if (kind == "group") status = create_wall_timer(9ms, [] { std::this_thread::sleep_for(4ms); });
  if (kind == "flood") flood = create_subscription<String>("flood", 50, std::bind(&Detector::on_flood, this, std::placeholders::_1));
}

void Detector::on_flood(String::ConstSharedPtr) {
  const int64_t begin = now_ns();
  spin_for(5ms);
  log("injected", {begin, now_ns()});
}

void Detector::keep_house() {
  const int64_t begin = now_ns();
  std::this_thread::sleep_for(12ms);
  log("injected", {begin, now_ns()});
}

Planner::Planner(const rclcpp::NodeOptions &options) : Proof("planner", options) {
  auto on_detection = [this](const String &detection, const rclcpp::MessageInfo &info) {
    const int64_t at = now_ns(), wall = now_ns(CLOCK_REALTIME);
    log("planned", {std::stoll(detection.data), at, delay_of(info, wall)});
  };
  detections = create_subscription<String>("detections", profile(), on_detection, group_options());
}

Flood::Flood(const rclcpp::NodeOptions &options) : Proof("flood", options) {
  all = create_publisher<String>("flood", 50);
  timer = create_wall_timer(100ms, [this] {
    for (int at = 0; at < 4; at++) all->publish(String());
  });
}

Server::Server(const rclcpp::NodeOptions &options) : Proof("server", options) {
  auto serve = [this](Trigger::Request::SharedPtr, Trigger::Response::SharedPtr response) {
    log("served", {now_ns()});
    response->success = true;
  };
  service = create_service<Trigger>("work", serve, rclcpp::ServicesQoS(), group);
}

Caller::Caller(const rclcpp::NodeOptions &options) : Proof("caller", options) {
  client = create_client<Trigger>("work");
  timer = create_wall_timer(20ms, [this] {
    if (now_ns() > end_ns || !client->service_is_ready()) return;
    const int64_t call = ++number;
    log("called", {call, now_ns()});
    client->async_send_request(std::make_shared<Trigger::Request>(), [this, call](rclcpp::Client<Trigger>::SharedFuture) {
      log("answered", {call, now_ns()});
    });
  });
}

}  // namespace proof

#ifdef HAS_COMPONENTS
#include <rclcpp_components/register_node_macro.hpp>
RCLCPP_COMPONENTS_REGISTER_NODE(proof::Camera)
RCLCPP_COMPONENTS_REGISTER_NODE(proof::Detector)
RCLCPP_COMPONENTS_REGISTER_NODE(proof::Planner)
#endif
