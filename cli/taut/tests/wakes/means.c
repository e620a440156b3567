// Two pairs of threads: ctrl-N is released every 4 ms and wakes bridge-N by MEANS.
// Usage: means MEANS ACTIVATIONS
#define _GNU_SOURCE
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <termios.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS = 2, PERIOD_NS = 4000000 };

struct pair {
    int number, from, to;
    _Atomic uint32_t word;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t ctrl, bridge;
};

static const char *means;
static int activations;

static int is(const char *name) { return strcmp(means, name) == 0; }

static void fail_if(int failed, const char *what) {
    if (failed) {
        perror(what);
        exit(1);
    }
}

static void name_thread(const char *name, int number) {
    char text[16];
    snprintf(text, sizeof text, "%s-%d", name, number);
    pthread_setname_np(pthread_self(), text);
}

// A submission queue of one read, by the system calls alone: the library is on few machines.
struct ring {
    int file;
    _Atomic uint32_t *submitted, *taken, *completed;
    uint32_t *order;
    struct io_uring_sqe *entry;
};

static struct ring new_ring(void) {
    struct io_uring_params of = {0};
    int file = syscall(SYS_io_uring_setup, 1, &of);
    fail_if(file < 0, "io_uring_setup");
    int rights = PROT_READ | PROT_WRITE;
    size_t size = of.sq_off.array + of.sq_entries * 4;
    char *in = mmap(NULL, size, rights, MAP_SHARED, file, IORING_OFF_SQ_RING);
    size = of.cq_off.cqes + of.cq_entries * sizeof(struct io_uring_cqe);
    char *out = mmap(NULL, size, rights, MAP_SHARED, file, IORING_OFF_CQ_RING);
    void *entry = mmap(NULL, sizeof(struct io_uring_sqe), rights, MAP_SHARED, file, IORING_OFF_SQES);
    return (struct ring){file, (void *)(in + of.sq_off.tail), (void *)(out + of.cq_off.head),
                         (void *)(out + of.cq_off.tail), (void *)(in + of.sq_off.array), entry};
}

static void read_by_ring(struct ring *ring, int from, void *to) {
    *ring->entry = (struct io_uring_sqe){
        .opcode = IORING_OP_READ, .fd = from, .addr = (uintptr_t)to, .len = 8, .off = (uint64_t)-1};
    ring->order[0] = 0;
    atomic_fetch_add(ring->submitted, 1);
    fail_if(syscall(SYS_io_uring_enter, ring->file, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0, "io_uring_enter");
    atomic_store(ring->taken, atomic_load(ring->completed));
}

static void *bridge(void *argument) {
    struct pair *pair = argument;
    name_thread("bridge", pair->number);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    struct ring ring = {0};
    if (is("io_uring")) ring = new_ring();
    uint32_t seen = 0;
    uint64_t value;
    for (int n = 0; n < activations; n++) {
        if (is("signal")) {
            sigwaitinfo(&signals, NULL);
        } else if (is("futex")) {
            while (atomic_load(&pair->word) == seen) syscall(SYS_futex, &pair->word, FUTEX_WAIT, seen, NULL);
            seen = atomic_load(&pair->word);
        } else if (is("condition")) {
            pthread_mutex_lock(&pair->lock);
            while (pair->word == seen) pthread_cond_wait(&pair->changed, &pair->lock);
            seen = pair->word;
            pthread_mutex_unlock(&pair->lock);
        } else if (is("io_uring")) {
            read_by_ring(&ring, pair->from, &value);
        } else {
            fail_if(read(pair->from, &value, 8) <= 0, "read");
        }
    }
    return NULL;
}

static void *ctrl(void *argument) {
    struct pair *pair = argument;
    name_thread("ctrl", pair->number);
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    uint64_t one = 1;
    for (int n = 0; n < activations; n++) {
        due.tv_nsec += PERIOD_NS;
        due.tv_sec += due.tv_nsec / 1000000000;
        due.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        if (is("signal")) {
            pthread_kill(pair->bridge, SIGUSR1);
        } else if (is("futex")) {
            atomic_fetch_add(&pair->word, 1);
            syscall(SYS_futex, &pair->word, FUTEX_WAKE, 1);
        } else if (is("condition")) {
            pthread_mutex_lock(&pair->lock);
            pair->word++;
            pthread_mutex_unlock(&pair->lock);
            pthread_cond_signal(&pair->changed);
        } else {
            fail_if(write(pair->to, &one, 8) != 8, "write");
        }
    }
    return NULL;
}

static void connect_pair(struct pair *pair) {
    int ends[2];
    if (is("eventfd")) {
        pair->from = pair->to = eventfd(0, 0);
    } else if (is("pty")) {
        pair->to = posix_openpt(O_RDWR | O_NOCTTY);
        fail_if(grantpt(pair->to) || unlockpt(pair->to), "posix_openpt");
        pair->from = open(ptsname(pair->to), O_RDWR | O_NOCTTY);
        struct termios raw;
        tcgetattr(pair->from, &raw);
        cfmakeraw(&raw);
        tcsetattr(pair->from, TCSANOW, &raw);
    } else {
        fail_if(pipe(ends), "pipe");
        pair->from = ends[0];
        pair->to = ends[1];
    }
}

int main(int count, char **words) {
    fail_if(count != 3, "usage: means MEANS ACTIVATIONS");
    means = words[1];
    activations = atoi(words[2]);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    static struct pair pairs[PAIRS];
    for (int n = 0; n < PAIRS; n++) {
        pairs[n].number = n + 1;
        pthread_mutex_init(&pairs[n].lock, NULL);
        pthread_cond_init(&pairs[n].changed, NULL);
        connect_pair(&pairs[n]);
        pthread_create(&pairs[n].bridge, NULL, bridge, &pairs[n]);
    }
    usleep(100000);
    for (int n = 0; n < PAIRS; n++) pthread_create(&pairs[n].ctrl, NULL, ctrl, &pairs[n]);
    for (int n = 0; n < PAIRS; n++) pthread_join(pairs[n].ctrl, NULL);
    // Wakes that come together may be one, so that bridges wait for more.
    return 0;
}
