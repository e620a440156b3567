// An open loop: a source sends messages at its own times, whether or not the last one is done; a server takes them one by
// one. Known causes delay the server, or nothing does (--off). Part of bench/causes; see ../README.md.
#define _GNU_SOURCE
#include "taut.h"

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STAGES_MAX = 3, SLOTS = 4096 };

// Options.
static uint64_t messages = 5000, period_ns = 1000000, work_ns = 200000, size_ns = 6000000, every_ns = 46000000;
static int poisson, processes, stages = 1, off, cpu = 1, other_cpu = 0;
static const char *transport = "pipe", *kind = "lock";
static uint64_t seed = 1;

// What all threads and processes share.
static struct shared {
    pthread_mutex_t lock;
    // A queue of one producer and one consumer for each stage, with a futex for the consumer to wait on.
    struct { _Atomic uint32_t head, tail; uint64_t slots[SLOTS]; } queue[STAGES_MAX];
} *shared;
static int ends[STAGES_MAX][2];

static uint64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns) {
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

static double chance(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

// Computes for so long by the thread's own clock: what others take does not count.
static void compute(uint64_t ns) {
    uint64_t until = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until) {}
}

static void pin(int to) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(to, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void fail(const char *what) {
    perror(what);
    exit(2);
}

static void put(int stage, uint64_t id) {
    if (strcmp(transport, "shm") != 0) {
        if (write(ends[stage][1], &id, sizeof id) != sizeof id) fail("write");
        return;
    }
    uint32_t tail = shared->queue[stage].tail;
    shared->queue[stage].slots[tail % SLOTS] = id;
    atomic_store(&shared->queue[stage].tail, tail + 1);
    syscall(SYS_futex, &shared->queue[stage].tail, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static uint64_t take(int stage) {
    uint64_t id;
    if (strcmp(transport, "shm") != 0) {
        if (read(ends[stage][0], &id, sizeof id) != sizeof id) fail("read");
        return id;
    }
    uint32_t head = shared->queue[stage].head;
    while (atomic_load(&shared->queue[stage].tail) == head)
        syscall(SYS_futex, &shared->queue[stage].tail, FUTEX_WAIT, head, NULL, NULL, 0);
    id = shared->queue[stage].slots[head % SLOTS];
    atomic_store(&shared->queue[stage].head, head + 1);
    return id;
}

static int is(const char *word) { return !off && strcmp(kind, word) == 0; }

static void *serve(void *argument) {
    int stage = (int)(intptr_t)argument;
    char name[16];
    snprintf(name, sizeof name, "stage%d", stage);
    prctl(PR_SET_NAME, name);
    pin(cpu);
    taut_prepare_thread();
    char took[32], did[32];
    snprintf(took, sizeof took, "stage%d.taken", stage), snprintf(did, sizeof did, "stage%d.done", stage);
    uint32_t taken = taut_point(took), done = taut_point(did);
    int is_last = stage == stages - 1;
    uint64_t state = seed * 77 + 3, strike_ns = now_ns(CLOCK_MONOTONIC);
    for (uint64_t n = 0; n < messages; n++) {
        uint64_t id = take(stage);
        taut_stamp(taken, id);
        compute(work_ns / (uint64_t)stages);
        if (is_last) {
            pthread_mutex_lock(&shared->lock);
            pthread_mutex_unlock(&shared->lock);
            if (now_ns(CLOCK_MONOTONIC) > strike_ns && (is("work") || is("sleep"))) {
                strike_ns = now_ns(CLOCK_MONOTONIC) + (uint64_t)((double)every_ns * (0.5 + chance(&state)));
                if (is("work")) compute(size_ns);
                else usleep((useconds_t)(size_ns / 1000));
            }
        }
        taut_stamp(done, id);
        if (is_last) taut_applied(id);
        else put(stage + 1, id);
    }
    return NULL;
}

// Holds the lock, or takes the CPU with a real-time priority.
static void *disturb(void *argument) {
    (void)argument;
    prctl(PR_SET_NAME, is("lock") ? "holder" : "hog");
    if (is("preempted")) {
        pin(cpu);
        struct sched_param fifo = {.sched_priority = 10};
        if (sched_setscheduler(0, SCHED_FIFO, &fifo) != 0) fail("sched_setscheduler");
    } else {
        pin(other_cpu);
    }
    for (;;) {
        sleep_until(now_ns(CLOCK_MONOTONIC) + every_ns);
        if (is("lock")) {
            pthread_mutex_lock(&shared->lock);
            sleep_until(now_ns(CLOCK_MONOTONIC) + size_ns);
            pthread_mutex_unlock(&shared->lock);
        } else {
            compute(size_ns);
        }
    }
    return NULL;
}

static void start(void *(*body)(void *), int argument, int in_process) {
    pthread_t thread;
    if (!in_process) {
        if (pthread_create(&thread, NULL, body, (void *)(intptr_t)argument) != 0) fail("pthread_create");
        return;
    }
    switch (fork()) {
    case -1: fail("fork"); break;
    case 0:
        taut_after_fork();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body((void *)(intptr_t)argument);
        _exit(0);
    default: break;
    }
}

static void parse(int count, char **words) {
    for (int at = 1; at < count; at++) {
        const char *word = words[at], *value = at + 1 < count ? words[at + 1] : "";
        if (strcmp(word, "--poisson") == 0) { poisson = 1; continue; }
        if (strcmp(word, "--processes") == 0) { processes = 1; continue; }
        if (strcmp(word, "--off") == 0) { off = 1; continue; }
        at++;
        if (strcmp(word, "--messages") == 0) messages = strtoull(value, NULL, 10);
        else if (strcmp(word, "--period-us") == 0) period_ns = strtoull(value, NULL, 10) * 1000;
        else if (strcmp(word, "--work-us") == 0) work_ns = strtoull(value, NULL, 10) * 1000;
        else if (strcmp(word, "--size-us") == 0) size_ns = strtoull(value, NULL, 10) * 1000;
        else if (strcmp(word, "--every-us") == 0) every_ns = strtoull(value, NULL, 10) * 1000;
        else if (strcmp(word, "--stages") == 0) stages = atoi(value);
        else if (strcmp(word, "--transport") == 0) transport = value;
        else if (strcmp(word, "--kind") == 0) kind = value;
        else if (strcmp(word, "--seed") == 0) seed = strtoull(value, NULL, 10);
        else if (strcmp(word, "--cpu") == 0) cpu = atoi(value), other_cpu = !cpu;
        else { fprintf(stderr, "unknown option %s\n", word); exit(2); }
    }
    if (stages < 1 || stages > STAGES_MAX || period_ns == 0) { fprintf(stderr, "--stages 1 to %d, --period-us above 0\n", STAGES_MAX); exit(2); }
}

int main(int count, char **words) {
    parse(count, words);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) fail("mmap");
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->lock, &attributes);
    for (int stage = 0; stage < stages; stage++) {
        int failed = strcmp(transport, "socket") == 0 ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends[stage]) : pipe(ends[stage]);
        if (failed) fail(transport);
    }
    TAUT_NAME_LOCK("cfg_lock", &shared->lock);
    for (int stage = 0; stage < stages; stage++) start(serve, stage, processes);
    if (is("lock") || is("preempted")) start(disturb, 0, processes);
    taut_prepare_thread();
    pin(other_cpu);
    prctl(PR_SET_TIMERSLACK, 1);
    uint64_t state = seed * 1234567 + 89, due = now_ns(CLOCK_MONOTONIC) + 300000000;
    for (uint64_t id = 1; id <= messages; id++) {
        due += poisson ? (uint64_t)(-log(chance(&state)) * (double)period_ns) : period_ns;
        sleep_until(due);
        TAUT_STAMP("source.sent", id);
        put(0, id);
    }
    // The last message is handled well before that, whatever delays it.
    sleep_until(now_ns(CLOCK_MONOTONIC) + 300000000);
    return 0;
}
