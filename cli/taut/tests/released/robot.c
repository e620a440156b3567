/* What the recordings here are of: 250 messages through two threads, a lock that a third one holds now and then, values,
 * telemetry, and every tenth message dropped. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#include "taut.h"

typedef struct { double position; int32_t mode; } arm_t;
TAUT_DESCRIBE(arm_t, TAUT_FIELD(position, "rad"), TAUT_FIELD(mode, ""));

static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER;
static int inbox[2];
static volatile int is_done;

static void rest(long us) { nanosleep(&(struct timespec){0, us * 1000}, NULL); }

static void work(double ms) {
    struct timespec at, now;
    clock_gettime(CLOCK_MONOTONIC, &at);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((double)(now.tv_sec - at.tv_sec) * 1e3 + (double)(now.tv_nsec - at.tv_nsec) / 1e6 < ms);
}

static void *map(void *none) {
    while (!is_done) {
        rest(50000);
        pthread_mutex_lock(&map_lock);
        work(6);
        pthread_mutex_unlock(&map_lock);
    }
    return none;
}

static void *control(void *none) {
    taut_telemetry_t *log = TAUT_TELEMETRY("arm", arm_t, 200);
    uint64_t id;
    while (read(inbox[0], &id, sizeof id) == sizeof id) {
        arm_t arm = {(double)id / 100, (int32_t)(id % 3)};
        TAUT_STAMP("control.taken", id);
        TAUT_LOCK_WAIT("map_lock");
        pthread_mutex_lock(&map_lock);
        TAUT_LOCK_ACQUIRED("map_lock");
        pthread_mutex_unlock(&map_lock);
        TAUT_STAMP("control.planned", id);
        TAUT_VALUE("speed", (double)(id % 40) / 8);
        TAUT_WRITE(log, &arm);
        if (id % 10 == 9) {
            TAUT_DROP(id, "joint_limit");
            continue;
        }
        rest(200);
        TAUT_STAMP("drive.sent", id);
        taut_applied(id);
    }
    return none;
}

int main(void) {
    pthread_t mapper, controller;
    TAUT_NAME_LOCK("map_lock", &map_lock);
    if (pipe(inbox)) return 1;
    pthread_create(&mapper, NULL, map, NULL);
    pthread_create(&controller, NULL, control, NULL);
    taut_prepare_thread();
    for (uint64_t id = 0; id < 250; id++) {
        rest(5000);
        TAUT_STAMP("sense.read", id);
        if (write(inbox[1], &id, sizeof id) != sizeof id) return 1;
    }
    close(inbox[1]);
    pthread_join(controller, NULL);
    is_done = 1;
    pthread_join(mapper, NULL);
    return 0;
}
