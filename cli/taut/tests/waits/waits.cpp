// One thread waits for another by each means that sleeps on a futex: `waits MEANS`. The waiting thread stamps "want" and
// "got"; the other works for 2 ms before it hands over, or holds the lock for 2 ms.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>

#include "taut.h"

using namespace std::chrono_literals;

constexpr uint64_t rounds = 120;

void work(std::chrono::nanoseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
}

// Each round the waiting thread asks, the other works and gives. `ask` and `give` are of the same means.
template <class Ask, class Asked, class Give, class Get> void hand_over(Ask ask, Asked asked, Give give, Get get) {
    std::thread giver([&] {
        for (uint64_t id = 1; id <= rounds; id++) {
            asked(id);
            work(2ms);
            give(id);
        }
    });
    for (uint64_t id = 1; id <= rounds; id++) {
        std::this_thread::sleep_for(1ms);
        TAUT_STAMP("want", id);
        ask(id);
        get(id);
        TAUT_STAMP("got", id);
    }
    giver.join();
}

// The other holds the lock for 2 of each 6 ms, and never has to wait for it long.
template <class Lock, class Unlock> void contend(Lock lock, Unlock unlock) {
    std::atomic<bool> is_done = false;
    std::thread holder([&] {
        while (!is_done) {
            std::this_thread::sleep_for(4ms);
            lock();
            work(2ms);
            unlock();
        }
    });
    for (uint64_t id = 1; id <= 3 * rounds; id++) {
        std::this_thread::sleep_for(1ms);
        TAUT_STAMP("want", id);
        lock();
        unlock();
        TAUT_STAMP("got", id);
    }
    is_done = true;
    holder.join();
}

int main(int, char **arguments) {
    const std::string means = arguments[1];
    if (means == "semaphore") {
        std::binary_semaphore wanted(0), given(0);
        hand_over([&](auto) { wanted.release(); }, [&](auto) { wanted.acquire(); }, [&](auto) { given.release(); },
                  [&](auto) { given.acquire(); });
    } else if (means == "atomic") {
        // One word, on which both wait and which both wake: like a lock, but for its values.
        std::atomic<int> turn = 0;
        const auto pass = [&](int to) { turn = to, turn.notify_one(); };
        const auto await = [&](int from) { turn.wait(from); };
        hand_over([&](auto) { pass(1); }, [&](auto) { await(0); }, [&](auto) { pass(0); }, [&](auto) { await(1); });
    } else if (means == "condition") {
        std::mutex mutex;
        std::condition_variable changed;
        uint64_t wanted = 0, given = 0;
        const auto set = [&](uint64_t &value, uint64_t id) {
            std::lock_guard guard(mutex);
            value = id;
            changed.notify_all();
        };
        const auto await = [&](uint64_t &value, uint64_t id) {
            std::unique_lock guard(mutex);
            changed.wait(guard, [&] { return value == id; });
        };
        hand_over([&](uint64_t id) { set(wanted, id); }, [&](uint64_t id) { await(wanted, id); },
                  [&](uint64_t id) { set(given, id); }, [&](uint64_t id) { await(given, id); });
    } else if (means == "std_mutex") {
        std::mutex mutex;
        contend([&] { mutex.lock(); }, [&] { mutex.unlock(); });
    } else {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setprotocol(&attributes, means == "pi_mutex" ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
        pthread_mutex_t mutex;
        pthread_mutex_init(&mutex, &attributes);
        contend([&] { pthread_mutex_lock(&mutex); }, [&] { pthread_mutex_unlock(&mutex); });
    }
}
