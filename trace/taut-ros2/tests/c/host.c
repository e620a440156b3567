/* Loads the node as Python loads an extension: what it brings along is not in the global scope. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  int (*node_main)(int, char **);
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), *address;
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
  address = dlsym(library, "node_main");
  memcpy(&node_main, &address, sizeof address);
  return node_main(argc - 1, argv + 1);
}
