// Runs the nodes of a case, in processes of their own or in one, under the case's executor:
//   nodes TRUTH CASE --seconds 10
// writes what was published, received and injected to TRUTH/*.json, as bench/ros2/nodes.py does with rclpy.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include <rclcpp/experimental/executors/events_executor/events_executor.hpp>

#include "nodes.hpp"

using Names = std::vector<std::string>;

// One inner list is one process.
struct Case {
  std::string executor;
  bool intra;
  std::vector<Names> processes;
};

static const std::vector<Names> APART = {{"camera"}, {"detector"}, {"planner"}};
static const Names TOGETHER = {"camera", "detector", "planner"};

static const std::map<std::string, Case> CASES = {
    {"plain", {"single", false, APART}},
    {"khz", {"single", false, APART}},
    {"events", {"events", false, APART}},
    {"multi", {"multi", false, APART}},
    {"reentrant", {"multi", false, APART}},
    {"intra", {"single", true, {TOGETHER}}},
    {"intra_multi", {"multi", true, {TOGETHER}}},
    {"intra_events", {"events", true, {TOGETHER}}},
    {"one_process", {"single", false, {TOGETHER}}},
    {"executor", {"single", false, APART}},
    {"group", {"multi", false, APART}},
    {"apart", {"multi", false, APART}},
    {"fifo", {"single", false, {{"camera"}, {"detector"}, {"planner"}, {"hog"}}}},
    {"flood", {"single", false, {{"camera"}, {"detector"}, {"planner"}, {"flood"}}}},
    {"slow", {"single", false, APART}},
    {"slow_intra", {"multi", true, {TOGETHER}}},
    {"service", {"single", false, {{"server"}, {"caller"}}}},
};

static rclcpp::Node::SharedPtr make(const std::string &name, const rclcpp::NodeOptions &options) {
  if (name == "camera") return std::make_shared<proof::Camera>(options);
  if (name == "detector") return std::make_shared<proof::Detector>(options);
  if (name == "planner") return std::make_shared<proof::Planner>(options);
  if (name == "flood") return std::make_shared<proof::Flood>(options);
  if (name == "server") return std::make_shared<proof::Server>(options);
  return std::make_shared<proof::Caller>(options);
}

static rclcpp::Executor::SharedPtr executor_of(const std::string &name) {
  if (name == "multi") return std::make_shared<rclcpp::executors::MultiThreadedExecutor>(rclcpp::ExecutorOptions(), 4);
  if (name == "events") return std::make_shared<rclcpp::experimental::executors::EventsExecutor>();
  return std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
}

static void stay_on_cpu_0() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
}

// Runs above the detector, on its CPU, for 8 ms each 103 ms: at any phase of the camera.
static int hog(const std::string &truth, double seconds) {
  stay_on_cpu_0();
  sched_param above{};
  above.sched_priority = 50;
  if (sched_setscheduler(0, SCHED_FIFO, &above) != 0) return perror("SCHED_FIFO"), 1;
  proof::Log log;
  for (const int64_t end = proof::now_ns() + int64_t((seconds + 1) * 1e9); proof::now_ns() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(95));
    const int64_t begin = proof::now_ns();
    while (proof::now_ns() < begin + 8'000'000) {
    }
    log.add({begin, proof::now_ns()});
  }
  log.write(truth, "injected");
  return 0;
}

static int run(const Names &names, const std::string &truth, const std::string &kind, double seconds) {
  const Case &of = CASES.at(kind);
  if (names.front() == "hog") return hog(truth, seconds);
  if (kind == "fifo" && names.front() == "detector") stay_on_cpu_0();
  rclcpp::init(0, nullptr);
  rclcpp::NodeOptions options;
  options.use_intra_process_comms(of.intra).parameter_overrides({{"case", kind}, {"truth", truth}, {"seconds", seconds}});
  auto executor = executor_of(of.executor);
  std::vector<rclcpp::Node::SharedPtr> nodes;
  for (const std::string &name : names) executor->add_node(nodes.emplace_back(make(name, options)));
  // Whoever only receives ends last: nothing is under way then.
  const bool begins = names.front() == "camera" || names.front() == "caller";
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds + (begins && names.size() == 1 ? 0.5 : 1.5)));
    executor->cancel();
  });
  executor->spin();
  end.join();
  for (auto &node : nodes) executor->remove_node(node);
  nodes.clear();
  rclcpp::shutdown();
  return 0;
}

int main(int count, char **words) {
  const std::string truth = count > 2 ? words[1] : "", kind = count > 2 ? words[2] : "";
  const double seconds = count > 4 ? atof(words[4]) : 10.0;
  if (!CASES.count(kind)) {
    fprintf(stderr, "usage: nodes TRUTH CASE [--seconds N]; cases:");
    for (const auto &[name, of] : CASES) fprintf(stderr, " %s", name.c_str());
    fputc('\n', stderr);
    return 2;
  }
  if (count > 6) {
    Names names;
    for (int at = 6; at < count; at++) names.push_back(words[at]);
    return run(names, truth, kind, seconds);
  }
  std::filesystem::create_directories(truth);
  std::vector<pid_t> children;
  for (const Names &names : CASES.at(kind).processes) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string time = std::to_string(seconds);
      std::vector<const char *> all = {words[0], truth.c_str(), kind.c_str(), "--seconds", time.c_str(), "--role"};
      for (const std::string &name : names) all.push_back(name.c_str());
      all.push_back(nullptr);
      // By its own path, so that the processes have its name.
      execv(std::filesystem::canonical("/proc/self/exe").c_str(), const_cast<char **>(all.data()));
      _exit(127);
    }
    children.push_back(child);
  }
  int failed = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status != 0;
  }
  return failed;
}
