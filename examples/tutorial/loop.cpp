// A loop of one's own. 200 times a second a state is read, a command planned on a map and sent; now and
// then it is late. ./loop [--fixed]
#include "taut.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

std::mutex map_mutex;
std::vector<double> obstacles{0.1, 0.2, 0.3};
std::atomic<bool> done{false};

// std::mutex with a name: both ends of each wait are marked, so that it is seen without root, too.
struct MapLock {
    MapLock() {
        TAUT_LOCK_WAIT("map_lock");
        map_mutex.lock();
        TAUT_LOCK_ACQUIRED("map_lock");
    }
    ~MapLock() { map_mutex.unlock(); }
};

class Inbox {
  public:
    void put(std::optional<uint64_t> number) {
        std::lock_guard held(mutex_);
        numbers_.push_back(number);
        filled_.notify_one();
    }
    std::optional<uint64_t> take() {
        std::unique_lock held(mutex_);
        filled_.wait(held, [this] { return !numbers_.empty(); });
        auto number = numbers_.front();
        numbers_.pop_front();
        return number;
    }

  private:
    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::optional<uint64_t>> numbers_;
};

void sense(Inbox &inbox) {
    taut_prepare_thread();  // the one slow step, before real time begins
    auto due = std::chrono::steady_clock::now();
    for (uint64_t number = 0; number < 1000; number++) {
        std::this_thread::sleep_until(due += 5ms);
        // The message with this number was here, and due then.
        TAUT_STAMP_AT("sense.read", number, std::chrono::nanoseconds(due.time_since_epoch()).count());
        inbox.put(number);
    }
    inbox.put(std::nullopt);
}

void send(double) { std::this_thread::sleep_for(200us); }  // stands for the drive

void control(Inbox &inbox) {
    taut_prepare_thread();
    while (auto number = inbox.take()) {
        TAUT_STAMP("control.taken", *number);
        double command;
        {
            MapLock held;
            command = std::accumulate(obstacles.begin(), obstacles.end(), 0.0);
        }
        TAUT_STAMP("control.planned", *number);
        send(command);
        TAUT_STAMP("drive.sent", *number);
        taut_applied(*number);  // every message ends once: applied, or TAUT_DROP(number, "reason")
    }
}

std::vector<double> look() {
    std::this_thread::sleep_for(12ms);  // stands for the camera
    return {0.1, 0.2, 0.3};
}

void update_map(bool fixed) {
    while (!done) {
        std::this_thread::sleep_for(100ms);
        if (fixed) {
            auto seen = look();
            MapLock held;
            obstacles = seen;
        } else {
            MapLock held;
            obstacles = look();
        }
    }
}

int main(int argc, char **argv) {
    TAUT_NAME_LOCK("map_lock", &map_mutex);  // what the kernel sees of it has the name, too
    bool fixed = argc > 1 && std::strcmp(argv[1], "--fixed") == 0;
    Inbox inbox;
    std::thread mapper(update_map, fixed), controller(control, std::ref(inbox)), sensor(sense, std::ref(inbox));
    sensor.join();
    controller.join();
    done = true;
    mapper.join();
}
