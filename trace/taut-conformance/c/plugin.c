/* A shared object that is opened, stamps from a thread of its own, and is closed again. */
#include "taut.h"

#ifdef __cplusplus
extern "C"
#endif
    void stamp_in_plugin(uint64_t id);

void stamp_in_plugin(uint64_t id) { TAUT_STAMP("plugin", id); }
