/* A shared object that stamps while it is loaded: its constructor runs with the loader's lock held. */
#include "taut.h"

void while_it_loads(void); /* of the program */

__attribute__((constructor)) static void on_load(void) {
  while_it_loads();
  TAUT_STAMP("constructor", 1);
}
