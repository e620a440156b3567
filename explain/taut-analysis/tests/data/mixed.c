/* A robot loop with a bit of everything that threads wait for: a pipe, a mutex, a condition, a sleep, another process's CPU time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "taut.h"

static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER, inbox_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static uint64_t inbox, taken;
static int pipes[2];
static volatile int is_done;

static void rest(long us) { nanosleep(&(struct timespec){0, us * 1000}, NULL); }

static void work(double us) {
    struct timespec at, now;
    clock_gettime(CLOCK_MONOTONIC, &at);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((double)(now.tv_sec - at.tv_sec) * 1e6 + (double)(now.tv_nsec - at.tv_nsec) / 1e3 < us);
}

static void *map(void *none) {
    while (!is_done) {
        rest(7000);
        pthread_mutex_lock(&map_lock);
        work(1500);
        pthread_mutex_unlock(&map_lock);
    }
    return none;
}

static void *plan(void *none) {
    uint64_t id;
    while (read(pipes[0], &id, sizeof id) == sizeof id) {
        TAUT_STAMP("plan.taken", id);
        pthread_mutex_lock(&map_lock);
        work(60);
        pthread_mutex_unlock(&map_lock);
        TAUT_STAMP("plan.done", id);
        pthread_mutex_lock(&inbox_lock);
        if (inbox != taken) TAUT_DROP(inbox, "superseded");
        inbox = id;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&inbox_lock);
    }
    return none;
}

static void *drive(void *none) {
    uint64_t last = 0;
    while (last < 249) {
        pthread_mutex_lock(&inbox_lock);
        while (inbox == last) pthread_cond_wait(&filled, &inbox_lock);
        last = taken = inbox;
        pthread_mutex_unlock(&inbox_lock);
        TAUT_STAMP("drive.taken", last);
        rest(150);
        char *page = malloc(1 << 20);
        for (int i = 0; i < 1 << 20; i += 1 << 16) page[i] = 1;
        free(page);
        TAUT_STAMP("drive.sent", last);
        taut_applied(last);
    }
    return none;
}

int main(void) {
    pthread_t threads[3];
    if (pipe(pipes) != 0) return 1;
    TAUT_NAME_LOCK("map_lock", &map_lock);
    pthread_create(&threads[0], NULL, map, NULL);
    pthread_create(&threads[1], NULL, plan, NULL);
    pthread_create(&threads[2], NULL, drive, NULL);
    for (uint64_t id = 1; id < 250; id++) {
        TAUT_STAMP("main.sent", id);
        if (write(pipes[1], &id, sizeof id) != sizeof id) return 1;
        rest(2000);
    }
    pthread_join(threads[2], NULL);
    is_done = 1;
    close(pipes[1]);
    pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
    return 0;
}
