/* Takes a CPU for BUSY_US and rests for REST_US, again and again, for SECONDS at most. With FLOOD it broadcasts packets meanwhile to RECEIVERS
 * sockets that nobody reads: for each packet the kernel looks them all up where packets are received, as where many nodes of a robot listen to one
 * group. usage: hog BUSY_US REST_US SECONDS [FLOOD] */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RECEIVERS 64

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "usage: hog BUSY_US REST_US SECONDS [FLOOD]\n"), 2;
  prctl(PR_SET_NAME, "hog");
  const uint64_t busy_ns = strtoull(argv[1], NULL, 10) * 1000u;
  const uint64_t end = now_ns() + (uint64_t)(strtod(argv[3], NULL) * 1e9);
  const int to = argc > 4 ? socket(AF_INET, SOCK_DGRAM, 0) : -1;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
  socklen_t size = sizeof at;
  const int on = 1;
  for (int i = 0; to >= 0 && i < RECEIVERS; i++) {
    const int receiver = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(receiver, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(receiver, (struct sockaddr *)&at, size) != 0 || getsockname(receiver, (struct sockaddr *)&at, &size) != 0) return perror("hog"), 2;
  }
  at.sin_addr.s_addr = htonl(0x7fffffff); /* 127.255.255.255 */
  if (to >= 0 && setsockopt(to, SOL_SOCKET, SO_BROADCAST, &on, sizeof on) != 0) return perror("hog"), 2;
  static char packet[64];
  while (now_ns() < end) {
    const uint64_t begin = now_ns();
    while (now_ns() - begin < busy_ns) {
      if (to >= 0) sendto(to, packet, sizeof packet, MSG_DONTWAIT, (struct sockaddr *)&at, size);
    }
    usleep((useconds_t)strtoul(argv[2], NULL, 10));
  }
  return 0;
}
