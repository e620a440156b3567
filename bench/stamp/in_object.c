/* Stamping from a shared object, as a node or plugin does: its thread-local state is found by a call. */
#include "taut.h"

#include "batch.h"

void stamp_in_object(uint64_t count);
void stamp_in_object(uint64_t count) {
  uint64_t i;
  for (i = 0; i < count; i++) {
    TAUT_STAMP("object.received", i);
    EACH_TIME();
  }
}
