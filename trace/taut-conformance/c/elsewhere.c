/* A second translation unit of the program: it must share the first one's state. */
#include "taut.h"

#include "elsewhere.h"

void stamp_elsewhere(uint64_t id) { TAUT_STAMP("elsewhere", id); }
