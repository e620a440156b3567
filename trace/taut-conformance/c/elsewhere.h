/* Stamps from another translation unit and from a shared object that the program is linked with. */
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
void stamp_elsewhere(uint64_t id);
void stamp_in_linked_object(uint64_t id);
#ifdef __cplusplus
}
#endif
