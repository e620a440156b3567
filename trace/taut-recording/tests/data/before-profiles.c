/* What before-profiles.mcap is a recording of: five values and five messages of telemetry. */
#define _GNU_SOURCE
#include <time.h>

#include "taut.h"

typedef struct { double position; int32_t mode; } arm_t;
TAUT_DESCRIBE(arm_t, TAUT_FIELD(position, "rad"), TAUT_FIELD(mode, ""));

int main(void) {
    taut_telemetry_t *log = TAUT_TELEMETRY("arm", arm_t, 400);
    for (int i = 0; i < 5; i++) {
        arm_t arm = {i / 8.0, i};
        TAUT_VALUE("speed", i / 4.0);
        TAUT_WRITE(log, &arm);
    }
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    return 0;
}
