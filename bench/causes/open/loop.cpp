// An open loop: a source sends messages at its own times, whether or not the last one is done; a server takes them one by
// one. Known causes delay the server, or nothing does (--off). With --log, a line of each message at the end: when it was due, taken and
// done, and for how long it kept the threads by itself. Part of bench/causes; see ../README.md.
#include "taut.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <linux/futex.h>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <semaphore>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr int STAGES_MAX = 3;
constexpr uint32_t SLOTS = 1 << 14;

// Options.
uint64_t messages = 5000, period_ns = 1000000, work_ns = 200000, size_ns = 6000000, every_ns = 46000000, seed = 1;
int stages = 1, cpu = 1, other_cpu = 0, priority = 0;
bool poisson = false, processes = false, off = false;
std::string transport = "pipe", kind = "lock", tasks, log_path;

// What is known of a message without any recording.
struct Logged {
    uint64_t due_ns, taken_ns, done_ns;
    // Of all stages: what they computed or waited for it, less what was put in.
    std::atomic<uint64_t> usual_ns;
    // What was put in, and what it waited for the lock.
    uint64_t put_in_ns;
} *logged;

// What all threads and processes share: a lock, and a queue of one producer and one consumer for each stage, with a futex for
// the consumer to wait on.
struct Shared {
    pthread_mutex_t lock;
    struct {
        std::atomic<uint32_t> head, tail;
        uint64_t slots[SLOTS];
    } queue[STAGES_MAX];
} *shared;
int ends[STAGES_MAX][2];

uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
    timespec t{};
    clock_gettime(clock, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

void sleep_until(uint64_t ns) {
    timespec t = {time_t(ns / 1000000000u), long(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {}
}

double chance(uint64_t &state) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (double(state >> 11) + 0.5) / 9007199254740992.0;
}

// Computes for so long by the thread's own clock: what others take does not count.
void compute(uint64_t ns) {
    uint64_t until = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until) {}
}

void fail(const char *what) {
    perror(what);
    exit(2);
}

// Memory that forked processes share; all of its pages are there.
void *make_shared(size_t bytes) {
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) fail("mmap");
    return memory;
}

// Where the calling thread runs, and before which others. What else this machine does is no known cause: with --priority the
// loop comes before it.
void place(int on, int above = 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(on, &set);
    sched_setaffinity(0, sizeof set, &set);
    sched_param param{};
    param.sched_priority = priority > 0 ? priority + above : 0;
    if (param.sched_priority > 0 && sched_setscheduler(0, SCHED_FIFO, &param) != 0) fail("sched_setscheduler");
}

void put(int stage, uint64_t id) {
    if (transport != "shm") {
        if (write(ends[stage][1], &id, sizeof id) != sizeof id) fail("write");
        return;
    }
    auto &queue = shared->queue[stage];
    uint32_t tail = queue.tail;
    queue.slots[tail % SLOTS] = id;
    queue.tail = tail + 1;
    syscall(SYS_futex, &queue.tail, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

uint64_t take(int stage) {
    uint64_t id;
    if (transport != "shm") {
        if (read(ends[stage][0], &id, sizeof id) != sizeof id) fail("read");
        return id;
    }
    auto &queue = shared->queue[stage];
    uint32_t head = queue.head;
    while (queue.tail == head) syscall(SYS_futex, &queue.tail, FUTEX_WAIT, head, nullptr, nullptr, 0);
    id = queue.slots[head % SLOTS];
    queue.head = head + 1;
    return id;
}

bool is(const char *word) { return !off && kind == word; }

// Ways to hand a job to a helper thread and to be handed the answer.
struct Way {
    virtual ~Way() = default;
    virtual void give() = 0;
    virtual void take() = 0;
};

struct Semaphore : Way {
    std::binary_semaphore free{0};
    void give() override { free.release(); }
    void take() override { free.acquire(); }
};

struct Atomic : Way {
    std::atomic<int> given{0};
    void give() override {
        given.store(1);
        given.notify_one();
    }
    void take() override {
        given.wait(0);
        given.store(0);
    }
};

struct Condition : Way {
    std::mutex mutex;
    std::condition_variable changed;
    bool given = false;
    void give() override {
        std::lock_guard guard(mutex);
        given = true;
        changed.notify_one();
    }
    void take() override {
        std::unique_lock guard(mutex);
        changed.wait(guard, [this] { return given; });
        given = false;
    }
};

struct Way *ask, *answer;
uint64_t job_ns;

// What passes until the answer, of the calling thread's own clock and beside it.
uint64_t ask_helper(uint64_t ns) {
    uint64_t wall_ns = now_ns(), own_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    job_ns = ns;
    ask->give();
    answer->take();
    own_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - own_ns, wall_ns = now_ns() - wall_ns;
    return wall_ns - std::min(own_ns, wall_ns);
}

void *help(void *) {
    prctl(PR_SET_NAME, "helper");
    // libstdc++ spins with sched_yield at first, which is no wait on one CPU.
    place(other_cpu);
    for (;;) {
        ask->take();
        compute(job_ns);
        answer->give();
    }
}

void make_helper() {
    if (kind == "semaphore") ask = new Semaphore, answer = new Semaphore;
    else if (kind == "atomic_wait") ask = new Atomic, answer = new Atomic;
    else if (kind == "condition") ask = new Condition, answer = new Condition;
    else return;
    pthread_t thread;
    if (pthread_create(&thread, nullptr, help, nullptr) != 0) fail("pthread_create");
}

void *serve(void *argument) {
    int stage = int(intptr_t(argument));
    prctl(PR_SET_NAME, ("stage" + std::to_string(stage)).c_str());
    place(cpu);
    taut_prepare_thread();
    std::string name = "stage" + std::to_string(stage);
    uint32_t taken = taut_point((name + ".taken").c_str()), done = taut_point((name + ".done").c_str());
    bool is_last = stage == stages - 1;
    if (is_last) make_helper();
    uint64_t state = seed * 77 + 3, strike_ns = now_ns(), before_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t n = 0; n < messages; n++) {
        uint64_t id = take(stage);
        taut_stamp(taken, id);
        logged[id].taken_ns = now_ns();
        uint64_t own_ns = work_ns / uint64_t(stages), asked_ns = 0, put_in_ns = 0, beside_ns = 0;
        bool strikes = is_last && now_ns() > strike_ns;
        if (strikes) strike_ns = now_ns() + uint64_t(double(every_ns) * (0.5 + chance(state)));
        if (is_last && ask) {
            compute(own_ns / 2);
            uint64_t extra_ns = strikes && !off ? size_ns : 0;
            asked_ns = ask_helper(own_ns / 2 + extra_ns);
            asked_ns -= std::min(asked_ns, extra_ns);
            beside_ns = extra_ns;
        } else {
            compute(own_ns);
        }
        if (is_last) {
            uint64_t asks_ns = now_ns();
            pthread_mutex_lock(&shared->lock);
            if (is("lock") || is("pi_lock")) beside_ns += now_ns() - asks_ns;
            pthread_mutex_unlock(&shared->lock);
            if (strikes && is("work")) compute(put_in_ns = size_ns);
            if (strikes && is("sleep")) usleep(useconds_t(size_ns / 1000)), beside_ns += size_ns;
            logged[id].put_in_ns = put_in_ns + beside_ns;
        }
        taut_stamp(done, id);
        logged[id].done_ns = now_ns();
        if (is_last) taut_applied(id);
        else put(stage + 1, id);
        uint64_t own_clock_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
        logged[id].usual_ns += own_clock_ns - before_ns + asked_ns - put_in_ns;
        before_ns = own_clock_ns;
    }
    return nullptr;
}

// Holds the lock, takes the CPU with a higher priority, or uses up the quota.
void *disturb(void *) {
    bool holds = is("lock") || is("pi_lock");
    prctl(PR_SET_NAME, holds ? "holder" : is("quota") ? "burner" : "hog");
    place(holds || is("quota") ? other_cpu : cpu, holds || is("quota") ? 0 : 10);
    uint64_t state = seed * 55 + 7;
    for (;;) {
        sleep_until(now_ns() + uint64_t(double(every_ns) * (0.5 + chance(state))));
        if (holds) {
            pthread_mutex_lock(&shared->lock);
            sleep_until(now_ns() + size_ns);
            pthread_mutex_unlock(&shared->lock);
        } else {
            compute(size_ns);
        }
    }
}

void start(void *(*body)(void *), int argument, bool in_process) {
    if (!in_process) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, body, reinterpret_cast<void *>(intptr_t(argument))) != 0) fail("pthread_create");
        return;
    }
    switch (fork()) {
    case -1: fail("fork"); break;
    case 0:
        taut_after_fork();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body(reinterpret_cast<void *>(intptr_t(argument)));
        _exit(0);
    default: break;
    }
}

void parse(int count, char **words) {
    for (int at = 1; at < count; at++) {
        std::string word = words[at], value = at + 1 < count ? words[at + 1] : "";
        if (word == "--poisson") { poisson = true; continue; }
        if (word == "--processes") { processes = true; continue; }
        if (word == "--off") { off = true; continue; }
        at++;
        auto number = [&] { return strtoull(value.c_str(), nullptr, 10); };
        if (word == "--messages") messages = number();
        else if (word == "--period-us") period_ns = number() * 1000;
        else if (word == "--work-us") work_ns = number() * 1000;
        else if (word == "--size-us") size_ns = number() * 1000;
        else if (word == "--every-us") every_ns = number() * 1000;
        else if (word == "--stages") stages = int(number());
        else if (word == "--transport") transport = value;
        else if (word == "--kind") kind = value;
        else if (word == "--seed") seed = number();
        else if (word == "--priority") priority = int(number());
        else if (word == "--cgroup") tasks = value;
        else if (word == "--log") log_path = value;
        else if (word == "--cpu") cpu = int(number()), other_cpu = !cpu;
        else { fprintf(stderr, "unknown option %s\n", word.c_str()); exit(2); }
    }
    if (stages < 1 || stages > STAGES_MAX || period_ns == 0) {
        fprintf(stderr, "--stages 1 to %d, --period-us above 0\n", STAGES_MAX);
        exit(2);
    }
}

void write_log() {
    FILE *file = fopen(log_path.c_str(), "w");
    if (!file) fail(log_path.c_str());
    for (uint64_t id = 1; id <= messages; id++) {
        const Logged &of = logged[id];
        auto number = [](uint64_t ns) { return static_cast<unsigned long long>(ns); };
        fprintf(file, "%llu %llu %llu %llu ", number(of.due_ns), number(of.taken_ns), number(of.done_ns), number(of.usual_ns));
        fprintf(file, "%llu\n", number(of.put_in_ns));
    }
    if (fclose(file) != 0) fail(log_path.c_str());
}

void join_cgroup() {
    FILE *file = fopen(tasks.c_str(), "w");
    if (!file || fprintf(file, "%d", getpid()) < 0 || fclose(file) != 0) fail(tasks.c_str());
}

}  // namespace

int main(int count, char **words) {
    parse(count, words);
    if (!tasks.empty()) join_cgroup();
    shared = static_cast<Shared *>(make_shared(sizeof *shared));
    logged = static_cast<Logged *>(make_shared((messages + 1) * sizeof *logged));
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (kind == "pi_lock") pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&shared->lock, &attributes);
    for (int stage = 0; stage < stages; stage++) {
        int failed = transport == "socket" ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends[stage]) : pipe(ends[stage]);
        if (failed) fail(transport.c_str());
    }
    TAUT_NAME_LOCK("cfg_lock", &shared->lock);
    for (int stage = 0; stage < stages; stage++) start(serve, stage, processes);
    bool disturbs = is("lock") || is("pi_lock") || is("preempted") || is("own_priority") || is("quota");
    // The hog is a process of its own where it is nobody's of this program.
    if (disturbs) start(disturb, 0, processes || is("preempted"));
    taut_prepare_thread();
    place(other_cpu, 1);
    prctl(PR_SET_TIMERSLACK, 1);
    uint64_t state = seed * 1234567 + 89, due = now_ns() + 1000000000;
    for (uint64_t id = 1; id <= messages; id++) {
        due += poisson ? uint64_t(-std::log(chance(state)) * double(period_ns)) : period_ns;
        sleep_until(due);
        TAUT_STAMP_AT("source.sent", id, due);
        logged[id].due_ns = due;
        put(0, id);
    }
    // The last message is handled well before that, whatever delays it.
    sleep_until(now_ns() + 300000000);
    if (!log_path.empty()) write_log();
    return 0;
}
