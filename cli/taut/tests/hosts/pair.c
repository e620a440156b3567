// A desk that sends setpoints to a robot by UDP, a robot that answers each with a state, and a relay between the two.
//
//   pair desk ROBOT_ADDRESS MESSAGES PERIOD_US EVERY US
//   pair robot EVERY US
//   pair relay DESK_ADDRESS ROBOT_ADDRESS DELAY_US:JITTER_US DELAY_US:JITTER_US EVERY US
//
// The first delay is the one to the robot, the second the one back; jitter is the mean of an exponential distribution, and a packet
// never overtakes another. Of EVERY setpoints (0: of none) one takes US longer at each of them: the first at the relay, one more at the desk,
// which computes before it sends, one at the robot, which computes, and one at the robot, which sleeps.
#define _GNU_SOURCE
#include "taut.h"
#include <arpa/inet.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

enum { PORT = 4711, WAITING = 1 << 14 };
#define STATES (1ull << 32)

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static struct sockaddr_in address_of(const char *text) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}

static int bound(void) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in any = address_of("0.0.0.0");
  if (bind(fd, (struct sockaddr *)&any, sizeof any) != 0) exit(1);
  return fd;
}

struct packet {
  uint64_t id;
  uint64_t is_last;
};

static void *states(void *fd) {
  for (struct packet packet = {0}; !packet.is_last;) {
    if (recv(*(int *)fd, &packet, sizeof packet, 0) != sizeof packet) exit(1);
    TAUT_STAMP("state.received", packet.id);
  }
  return NULL;
}

static void compute(int64_t us) {
  for (int64_t until_ns = now_ns() + 1000 * us; now_ns() < until_ns;);
}

// Whether it is the message that the `quarter`th of four places holds.
static int is_held(uint64_t id, uint64_t every, uint64_t quarter) {
  return every > 0 && id % every == every * quarter / 4;
}

static int desk(const char *to, uint64_t messages, int64_t period_us, uint64_t every, int64_t held_us) {
  int fd = bound();
  struct sockaddr_in robot = address_of(to);
  pthread_t receiver;
  pthread_create(&receiver, NULL, states, &fd);
  int64_t due_ns = now_ns();
  for (uint64_t id = 1; id <= messages; id++) {
    due_ns += period_us * 1000;
    struct timespec due = {due_ns / 1000000000, due_ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    struct packet packet = {id, id == messages};
    TAUT_STAMP("setpoint.sent", id);
    if (is_held(id, every, 1)) compute(held_us);
    sendto(fd, &packet, sizeof packet, 0, (struct sockaddr *)&robot, sizeof robot);
  }
  pthread_join(receiver, NULL);
  return 0;
}

static int robot(uint64_t every, int64_t held_us) {
  int fd = bound();
  for (struct packet packet = {0}; !packet.is_last;) {
    struct sockaddr_in desk;
    socklen_t size = sizeof desk;
    if (recvfrom(fd, &packet, sizeof packet, 0, (struct sockaddr *)&desk, &size) != sizeof packet) return 1;
    TAUT_STAMP("setpoint.received", packet.id);
    compute(100);
    if (is_held(packet.id, every, 2)) compute(held_us);
    if (is_held(packet.id, every, 3)) usleep(held_us);
    TAUT_STAMP("setpoint.applied", packet.id);
    taut_applied(packet.id);
    packet.id += STATES;
    TAUT_STAMP("state.sent", packet.id);
    sendto(fd, &packet, sizeof packet, 0, (struct sockaddr *)&desk, size);
  }
  return 0;
}

struct way {
  struct sockaddr_in to;
  int64_t delay_us, jitter_us;
  int64_t last_ns;
  unsigned seed;
  size_t first, count;
  struct { int64_t at_ns; struct packet packet; } waiting[WAITING];
};

static void take(struct way *way, struct packet packet, int64_t held_us) {
  double share = (rand_r(&way->seed) + 1.0) / (RAND_MAX + 2.0);
  int64_t at_ns = now_ns() + 1000 * (way->delay_us + held_us) - (int64_t)(1000 * way->jitter_us * log(share));
  way->last_ns = at_ns > way->last_ns ? at_ns : way->last_ns;
  if (way->count == WAITING) exit(1);
  size_t place = (way->first + way->count++) % WAITING;
  way->waiting[place].at_ns = way->last_ns;
  way->waiting[place].packet = packet;
}

static int relay(char **arguments) {
  int fd = bound();
  static struct way ways[2];
  for (int at = 0; at < 2; at++) {
    ways[at].to = address_of(arguments[1 - at]);
    sscanf(arguments[2 + at], "%ld:%ld", &ways[at].delay_us, &ways[at].jitter_us);
    ways[at].seed = 1 + at;
  }
  uint64_t every = strtoull(arguments[4], NULL, 10);
  int64_t held_us = atoll(arguments[5]);
  for (int is_done = 0; !is_done;) {
    int64_t next_ns = now_ns() + 1000000000ll;
    for (int at = 0; at < 2; at++)
      if (ways[at].count > 0 && ways[at].waiting[ways[at].first].at_ns < next_ns)
        next_ns = ways[at].waiting[ways[at].first].at_ns;
    int64_t left_ns = next_ns - now_ns();
    struct timespec left = {left_ns > 0 ? left_ns / 1000000000 : 0, left_ns > 0 ? left_ns % 1000000000 : 0};
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    if (ppoll(&readable, 1, &left, NULL) > 0) {
      struct packet packet;
      struct sockaddr_in from;
      socklen_t size = sizeof from;
      recvfrom(fd, &packet, sizeof packet, 0, (struct sockaddr *)&from, &size);
      int back = from.sin_addr.s_addr == ways[0].to.sin_addr.s_addr;
      take(&ways[back], packet, !back && is_held(packet.id, every, 0) ? held_us : 0);
    }
    for (int at = 0; at < 2; at++) {
      struct way *way = &ways[at];
      while (way->count > 0 && way->waiting[way->first].at_ns <= now_ns()) {
        struct packet packet = way->waiting[way->first].packet;
        sendto(fd, &packet, sizeof packet, 0, (struct sockaddr *)&way->to, sizeof way->to);
        way->first = (way->first + 1) % WAITING;
        way->count--;
        is_done |= at == 1 && packet.is_last;
      }
    }
  }
  return 0;
}

int main(int count, char **arguments) {
  if (count == 7 && strcmp(arguments[1], "desk") == 0)
    return desk(arguments[2], strtoull(arguments[3], NULL, 10), atoll(arguments[4]), strtoull(arguments[5], NULL, 10), atoll(arguments[6]));
  if (count == 4 && strcmp(arguments[1], "robot") == 0) return robot(strtoull(arguments[2], NULL, 10), atoll(arguments[3]));
  if (count == 8 && strcmp(arguments[1], "relay") == 0) return relay(arguments + 2);
  return 2;
}
