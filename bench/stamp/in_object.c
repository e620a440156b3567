/* Stamping from a shared object, as a node or plugin does: its thread-local state is found by a call, which with
 * -mtls-dialect=gnu2 is a short one. `run` builds both, with the name of the function on the command line. */
#include "taut.h"

#include "batch.h"

void STAMP_IN_OBJECT(uint64_t count);
void STAMP_IN_OBJECT(uint64_t count) {
  uint64_t i;
  for (i = 0; i < count; i++) {
    TAUT_STAMP("object.received", i);
    EACH_TIME();
  }
}
