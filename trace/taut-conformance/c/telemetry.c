/* Writes telemetry: telemetry COUNT [fork|kill|full|wrong|refused|later]. The same as src/telemetry.rs, value by value. */
#include "taut.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum mode { STOPPED = 0, POSITION = 10 };

typedef struct {
  double position;
  float torque;
  uint8_t mode;
} joint_t;
TAUT_DESCRIBE(joint_t, TAUT_FIELD(position, "rad"), TAUT_FIELD(torque, "N·m"), TAUT_FIELD(mode, ""),
              TAUT_CONSTANT(mode, MODE_STOPPED, STOPPED), TAUT_CONSTANT(mode, MODE_POSITION, POSITION));

typedef struct {
  uint64_t cycle;
  joint_t joints[3];
  bool contact[4];
  int16_t current[2];
  char state[12];
  joint_t spare;
  double gains[2][3];
  int8_t last;
} leg_t;
TAUT_DESCRIBE(leg_t, TAUT_FIELD(cycle, ""), TAUT_STRUCT(joints, joint_t, "from the hip down"), TAUT_FIELD(contact, ""),
              TAUT_FIELD(current, "mA"), TAUT_FIELD(state, ""), TAUT_STRUCT(spare, joint_t, ""),
              TAUT_ELEMENTS(gains, double, ""), TAUT_FIELD(last, ""));

static void write_one(taut_telemetry_t *log, uint64_t cycle) {
  leg_t leg;
  int i;
  memset(&leg, 0xee, sizeof leg); /* The padding is not to be seen. */
  leg.cycle = cycle;
  for (i = 0; i < 3; i++) {
    leg.joints[i].position = (double)cycle + i * 0.25;
    leg.joints[i].torque = -1.5f * (float)i;
    leg.joints[i].mode = i == 1 ? POSITION : STOPPED;
  }
  for (i = 0; i < 4; i++) leg.contact[i] = (cycle >> i) & 1;
  leg.current[0] = -300;
  leg.current[1] = 300;
  memset(leg.state, 0, sizeof leg.state);
  snprintf(leg.state, sizeof leg.state, "s%llu", (unsigned long long)cycle);
  leg.spare = leg.joints[1];
  for (i = 0; i < 6; i++) leg.gains[i / 3][i % 3] = i;
  leg.last = -7;
  TAUT_WRITE(log, &leg);
}

/* Values lost of one that is written to a channel of this name and rate. */
static uint64_t lost_of(const char *name, double rate_hz) {
  taut_telemetry_t *log = TAUT_TELEMETRY(name, leg_t, rate_hz);
  uint64_t lost;
  write_one(log, 9);
  lost = taut_telemetry_lost(log);
  taut_telemetry_close(log);
  return lost;
}

/* Lets files be so long; returns how long they might be before. */
static rlim_t limit_files(rlim_t bytes) {
  struct rlimit limit;
  rlim_t before;
  if (getrlimit(RLIMIT_FSIZE, &limit)) return 0;
  before = limit.rlim_cur;
  limit.rlim_cur = bytes;
  return setrlimit(RLIMIT_FSIZE, &limit) ? 0 : before;
}

int main(int argc, char **argv) {
  const uint64_t count = strtoull(argc > 1 ? argv[1] : "1", NULL, 10);
  const char *what = argc > 2 ? argv[2] : "";
  const int is_late = !strcmp(what, "later") && taut_attached();
  const rlim_t before = is_late ? limit_files(4096) : 0; /* The channel gets no file before its second value. */
  taut_telemetry_t *log = TAUT_TELEMETRY("leg", leg_t, !strcmp(what, "full") ? 1 : 1000);
  uint64_t cycle, refused = 0;
  for (cycle = 0; cycle < count; cycle++) {
    if (is_late && cycle == 1) limit_files(before);
    write_one(log, cycle);
  }
  if (!strcmp(what, "refused")) {
    const char *const rates[] = {"0", "-1", "nan", "inf", "1e12"}, *const names[] = {"", " \n"};
    for (cycle = 0; cycle < 5; cycle++) refused += lost_of("none", strtod(rates[cycle], NULL));
    for (cycle = 0; cycle < 2; cycle++) refused += lost_of(names[cycle], 1000);
  }
  if (!strcmp(what, "wrong")) {
    joint_t joint = {0, 0, 0};
    TAUT_WRITE(log, &joint);
  }
  if (!strcmp(what, "fork")) {
    const pid_t child = fork();
    if (!child) {
      for (cycle = 0; cycle < count; cycle++) write_one(log, 1000 + cycle);
      _exit(0);
    }
    waitpid(child, NULL, 0);
    write_one(log, count);
  }
  if (!strcmp(what, "kill")) raise(SIGKILL);
  printf("%llu\n", (unsigned long long)(taut_telemetry_lost(log) + refused));
  taut_telemetry_close(log);
  return 0;
}
