/* A shared object the program is linked with: it must share the program's state. */
#include "taut.h"

#include "elsewhere.h"

void stamp_in_linked_object(uint64_t id) { TAUT_STAMP("linked", id); }
