// One thread waits for another by each means that sleeps on a futex: `waits MEANS`. The waiting thread stamps "want" and
// "got"; the other works for 2 ms before it hands over, or holds the lock for 2 ms.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
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
template <class Hold, class Release, class Lock, class Unlock>
void contend(Hold hold, Release release, Lock lock, Unlock unlock) {
    std::atomic<bool> is_done = false;
    std::thread holder([&] {
        while (!is_done) {
            std::this_thread::sleep_for(4ms);
            hold();
            work(2ms);
            release();
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

template <class Lock, class Unlock> void contend(Lock lock, Unlock unlock) { contend(lock, unlock, lock, unlock); }

void futex(std::atomic<int> &word, int operation, int value) {
    syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
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
    } else if (means == "state") {
        // The one asks and waits while the state is 2, as a mutex's is; the other looks now and then, and tells all.
        std::atomic<int> state = 0;
        const auto set = [&](int to) { state = to, futex(state, FUTEX_WAKE, INT_MAX); };
        const auto look = [&] {
            while (state != 2)
                std::this_thread::sleep_for(100us);
        };
        const auto await = [&] {
            while (state == 2)
                futex(state, FUTEX_WAIT, 2);
        };
        hand_over([&](auto) { set(2); }, [&](auto) { look(); }, [&](auto) { set(0); }, [&](auto) { await(); });
    } else if (means == "barrier") {
        std::barrier<> both(2);
        const auto meet = [&](auto) { both.arrive_and_wait(); };
        hand_over(meet, meet, meet, meet);
    } else if (means == "latch") {
        std::deque<std::latch> wanted, given;
        for (uint64_t id = 0; id <= rounds; id++) {
            wanted.emplace_back(1), given.emplace_back(1);
        }
        hand_over([&](uint64_t id) { wanted[id].count_down(); }, [&](uint64_t id) { wanted[id].wait(); },
                  [&](uint64_t id) { given[id].count_down(); }, [&](uint64_t id) { given[id].wait(); });
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
    } else if (means == "named_readers" || means == "named_writers") {
        // Neither waiter's words say that they are a lock's.
        std::shared_mutex mutex;
        TAUT_NAME_LOCK("map_lock", &mutex);
        const auto hold = [&] { mutex.lock(); };
        const auto release = [&] { mutex.unlock(); };
        if (means == "named_writers") {
            contend(hold, release);
        } else {
            contend(hold, release, [&] { mutex.lock_shared(); }, [&] { mutex.unlock_shared(); });
        }
    } else {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setprotocol(&attributes, means == "pi_mutex" ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
        pthread_mutexattr_setrobust(&attributes, means == "robust_mutex" ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
        pthread_mutex_t mutex;
        pthread_mutex_init(&mutex, &attributes);
        contend([&] { pthread_mutex_lock(&mutex); }, [&] { pthread_mutex_unlock(&mutex); });
    }
}
