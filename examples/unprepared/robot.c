/* A robot that knows nothing of taut: a 500 Hz control loop sends commands over UDP to an actuator thread; a logger holds the loop's lock
 * while it "writes", for 8 ms ten times a second, or for as long as is given. Usage: robot [SECONDS [HELD_US]] */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_NS = 2000000, PORT = 5005 };

enum { WRITE_US = 8000 };

static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static useconds_t held_us = WRITE_US;

static struct sockaddr_in actuator_address(void) {
  return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void compute_us(long us) {
  struct timespec begin, now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void *actuator(void *socket_of_port) {
  int command, from = *(int *)socket_of_port;
  pthread_setname_np(pthread_self(), "actuator");
  while (recv(from, &command, sizeof command, 0) > 0) compute_us(50);
  return NULL;
}

static void *logger(void *unused) {
  pthread_setname_np(pthread_self(), "logger");
  for (;;) {
    usleep(92000);
    pthread_mutex_lock(&state_lock);
    usleep(held_us);
    pthread_mutex_unlock(&state_lock);
    usleep(WRITE_US - held_us);
  }
  return unused;
}

static void *control(void *seconds) {
  int sender = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = actuator_address();
  struct timespec release;
  pthread_setname_np(pthread_self(), "ctrl");
  clock_gettime(CLOCK_MONOTONIC, &release);
  for (int command = 0; command < *(double *)seconds * 1e9 / PERIOD_NS; command++) {
    release.tv_nsec += PERIOD_NS;
    if (release.tv_nsec >= 1000000000) release.tv_nsec -= 1000000000, release.tv_sec++;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &release, NULL);
    pthread_mutex_lock(&state_lock);
    compute_us(200);
    pthread_mutex_unlock(&state_lock);
    sendto(sender, &command, sizeof command, 0, (struct sockaddr *)&address, sizeof address);
  }
  return NULL;
}

int main(int count, char **words) {
  double seconds = count > 1 ? atof(words[1]) : 8;
  if (count > 2 && (held_us = atoi(words[2])) > WRITE_US) held_us = WRITE_US;
  int receiver = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = actuator_address();
  if (bind(receiver, (struct sockaddr *)&address, sizeof address)) return perror("UDP port 5005"), 1;

  pthread_t other, loop;
  pthread_create(&other, NULL, actuator, &receiver);
  pthread_create(&other, NULL, logger, NULL);
  pthread_create(&loop, NULL, control, &seconds);
  pthread_join(loop, NULL);
  return 0;
}
